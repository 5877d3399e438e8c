//! Random choices without bias: one of several at given odds, the exponential mechanism, a partition into parts of given sizes.

use super::NoiseGenerator;
use super::integer::{bernoulli, bernoulli_exp, uniform_below};

/// An index below `n`, all exactly equally likely; 0 where `n` is 0.
pub fn uniform_index(n: usize, generator: &mut impl NoiseGenerator) -> usize {
    uniform_below(n as u128, generator) as usize
}

/// An index with probability exactly `pᵢ/Σp`, each float taken as the number it is: a rest that rounding leaves in `Σp` goes to all in
/// proportion. What is not positive and finite has probability 0; 0 where nothing has more.
pub fn weighted_index(probabilities: &[f64], generator: &mut impl NoiseGenerator) -> usize {
    let weight = |i: usize| match probabilities[i] {
        p if p > 0.0 && p.is_finite() => p,
        _ => 0.0,
    };
    let n = probabilities.len();
    let greatest = (0..n).map(weight).max_by(f64::total_cmp).unwrap_or(0.0);
    if !(greatest > 0.0) {
        return 0;
    }
    // Scaled by a power of two, so that at least one in 2n proposals is accepted.
    let (_, exponent) = libm::frexp(greatest);
    loop {
        let i = uniform_index(n, generator);
        if bernoulli(weight(i), exponent, generator) {
            return i;
        }
    }
}

/// An index with probability exactly proportional to `exp(-exponents[i]/denominator)`; one of the least exponents where the denominator is
/// 0, and 0 where there are none.
///
/// A uniform proposal is accepted with probability `exp(-(exponents[i] - least)/denominator)`: on average at most as many proposals as
/// there are indexes.
pub fn exponential_index(exponents: &[u64], denominator: u64, generator: &mut impl NoiseGenerator) -> usize {
    let Some(least) = exponents.iter().min() else {
        return 0;
    };
    loop {
        let i = uniform_index(exponents.len(), generator);
        let excess = u128::from(exponents[i] - least);
        if bernoulli_exp(excess, u128::from(denominator), generator) {
            return i;
        }
    }
}

/// The numbers `0..Σ sizes` in parts of these sizes, all partitions exactly equally likely; each part in order.
pub fn partition(sizes: &[usize], generator: &mut impl NoiseGenerator) -> Vec<Vec<usize>> {
    let mut part_of: Vec<usize> = sizes
        .iter()
        .enumerate()
        .flat_map(|(part, size)| std::iter::repeat_n(part, *size))
        .collect();
    // Fisher and Yates.
    for last in (1..part_of.len()).rev() {
        part_of.swap(last, uniform_index(last + 1, generator));
    }
    let mut parts: Vec<Vec<usize>> = sizes.iter().map(|s| Vec::with_capacity(*s)).collect();
    for (i, part) in part_of.into_iter().enumerate() {
        parts[part].push(i);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::assert_counts;

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
        assert_counts(&weighted, &odds);
        assert_counts(&uniform, &[0.25; 4]);
        for n in [0, 1] {
            assert_eq!(uniform_index(n, &mut generator), 0);
        }
    }

    #[test]
    fn weights_are_proportional_at_any_size() {
        let mut generator = SimulationGenerator::new(34, 0);
        for size in [5e-324, 1e-300, 1e-3, 3.0, 1e300] {
            let mut counts = [0; 3];
            for _ in 0..30_000 {
                let weights = [size, 2.0 * size, 5.0 * size];
                counts[weighted_index(&weights, &mut generator)] += 1;
            }
            assert_counts(&counts, &[0.125, 0.25, 0.625]);
        }
        for odd in [&[][..], &[0.0], &[f64::NAN, -1.0, f64::INFINITY]] {
            assert_eq!(weighted_index(odd, &mut generator), 0);
        }
        assert_eq!(weighted_index(&[f64::NAN, 1e-9], &mut generator), 1);
    }

    #[test]
    fn indexes_have_the_odds_of_the_exponential_mechanism() {
        let mut generator = SimulationGenerator::new(35, 0);
        let least = u64::MAX - 5_000;
        for (exponents, denominator) in [
            ([0_u64, 3, 1, 40], 2_u64),
            ([least, least + 1000, least + 5000, least], 1000),
        ] {
            let least = exponents[0];
            let weights = exponents.map(|e| (-((e - least) as f64) / denominator as f64).exp());
            let total: f64 = weights.iter().sum();
            let mut counts = [0; 4];
            for _ in 0..200_000 {
                counts[exponential_index(&exponents, denominator, &mut generator)] += 1;
            }
            assert_counts(&counts, &weights.map(|w| w / total));
        }
        let chosen = exponential_index(&[u64::MAX, 0, u64::MAX], 1, &mut generator);
        assert_eq!(chosen, 1);
        assert_eq!(exponential_index(&[9, 4], 0, &mut generator), 1);
        assert_eq!(exponential_index(&[], 1, &mut generator), 0);
    }

    #[test]
    fn partitions_are_uniform() {
        let mut generator = SimulationGenerator::new(32, 0);
        let n = 60_000;
        // Six partitions of 0..4 into two pairs.
        let mut counts = [0; 16];
        for _ in 0..n {
            let parts = partition(&[2, 2], &mut generator);
            let mut all = parts.concat();
            counts[4 * parts[0][0] + parts[0][1]] += 1;
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3]);
        }
        let odds: [f64; 16] = std::array::from_fn(|e| if e / 4 < e % 4 { 1.0 / 6.0 } else { 0.0 });
        assert_counts(&counts, &odds);
    }
}
