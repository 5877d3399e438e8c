//! Random choices: one of several at given odds, a partition into parts of given sizes, and the Gumbel noise of noisy maxima.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::Exp1;

use super::NoiseGenerator;

/// An index below `n`, all equally likely; 0 where `n` is 0.
pub fn uniform_index(n: usize, generator: &mut impl NoiseGenerator) -> usize {
    if n == 0 {
        0
    } else {
        generator.random_range(0..n)
    }
}

/// An index drawn with the given probabilities, which sum to 1.
pub fn weighted_index(probabilities: &[f64], generator: &mut impl NoiseGenerator) -> usize {
    let mut rest: f64 = generator.random();
    let chosen = probabilities.iter().position(|p| {
        rest -= p;
        rest < 0.0
    });
    // Rounding may leave a rest beyond the last.
    chosen.unwrap_or(probabilities.len().saturating_sub(1))
}

/// The numbers `0..Σ sizes` in parts of these sizes, all partitions equally likely; each part in order.
pub fn partition(sizes: &[usize], generator: &mut impl NoiseGenerator) -> Vec<Vec<usize>> {
    let mut part_of: Vec<usize> = sizes
        .iter()
        .enumerate()
        .flat_map(|(part, size)| std::iter::repeat_n(part, *size))
        .collect();
    part_of.shuffle(generator);
    let mut parts: Vec<Vec<usize>> = sizes.iter().map(|s| Vec::with_capacity(*s)).collect();
    for (i, part) in part_of.into_iter().enumerate() {
        parts[part].push(i);
    }
    parts
}

/// Standard Gumbel noise: `argmax(wᵢ + noiseᵢ)` is i with probability proportional to `exp(wᵢ)`.
pub fn gumbel(generator: &mut impl NoiseGenerator) -> f64 {
    -generator.sample::<f64, _>(Exp1).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::assert_cdf;

    /// Five standard deviations, a two-sided false-positive rate below 1e-6.
    fn near(count: usize, n: usize, p: f64) -> bool {
        let n = n as f64;
        (count as f64 - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt()
    }

    #[test]
    fn choices_have_their_odds() {
        let mut generator = SimulationGenerator::new(31, 0);
        let n = 100_000;
        let odds = [0.1, 0.0, 0.65, 0.25];
        let (mut weighted, mut uniform) = ([0; 4], [0; 4]);
        for _ in 0..n {
            weighted[weighted_index(&odds, &mut generator)] += 1;
            uniform[uniform_index(4, &mut generator)] += 1;
        }
        for i in 0..4 {
            assert!(near(weighted[i], n, odds[i]) && near(uniform[i], n, 0.25));
        }
    }

    #[test]
    fn partitions_are_uniform() {
        let mut generator = SimulationGenerator::new(32, 0);
        let n = 60_000;
        // Six partitions of 0..4 into two pairs.
        let mut counts = [[0; 4]; 4];
        for _ in 0..n {
            let parts = partition(&[2, 2], &mut generator);
            let mut all = parts.concat();
            counts[parts[0][0]][parts[0][1]] += 1;
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3]);
        }
        for (i, row) in counts.iter().enumerate() {
            for (j, count) in row.iter().enumerate() {
                assert!(near(*count, n, if i < j { 1.0 / 6.0 } else { 0.0 }));
            }
        }
    }

    #[test]
    fn gumbel_noise_has_its_law() {
        let mut generator = SimulationGenerator::new(33, 0);
        let draws = (0..20_000).map(|_| gumbel(&mut generator)).collect();
        assert_cdf(draws, |x| (-(-x).exp()).exp());
    }
}
