//! Bootstrap weights: exact multinomial draws over rows that stand for many records each, in linear time.

use rand::RngExt;
use rand_distr::{Binomial, Distribution};

use crate::design::Design;
use crate::noise::NoiseGenerator;
use crate::{Error, Result};

/// Rows of more records than this get a binomial draw each; the others share index draws.
const LARGE: u32 = 32;

/// Draws how often each row appears in a sample of the design's records with replacement.
#[derive(Debug)]
pub struct Resampler {
    n_rows: usize,
    n_records: u64,
    /// Rows of many records.
    large: Vec<(usize, u32)>,
    /// Every record of the other rows, by the number of its row.
    small: Vec<u32>,
}

impl Resampler {
    /// For the records of a design.
    ///
    /// # Errors
    /// [`Error::Resource`] for more than 2³² rows.
    pub fn new(design: &Design<'_>) -> Result<Self> {
        let n_rows = design.n_rows();
        let too_many = |_| Error::Resource("more than 2^32 rows".into());
        u32::try_from(n_rows).map_err(too_many)?;
        let multiplicity = |i: usize| design.multiplicities().map_or(1, |m| m[i]);
        let large = (0..n_rows)
            .map(|i| (i, multiplicity(i)))
            .filter(|(_, m)| *m > LARGE)
            .collect();
        let mut small = Vec::new();
        for i in 0..n_rows {
            let m = multiplicity(i);
            if m <= LARGE {
                small.extend(std::iter::repeat_n(
                    u32::try_from(i).map_err(too_many)?,
                    m as usize,
                ));
            }
        }
        Ok(Self {
            n_rows,
            n_records: design.n_records() as u64,
            large,
            small,
        })
    }

    /// Draws Multinomial(n, mᵢ/n) weights into `weights`: one binomial after another for the large rows, given what the earlier
    /// ones took, then an index for each remaining record.
    ///
    /// # Errors
    /// [`Error::Resource`] if a binomial law is refused, which its arguments do not allow.
    pub fn draw(&self, generator: &mut impl NoiseGenerator, weights: &mut Vec<u32>) -> Result<()> {
        weights.clear();
        weights.resize(self.n_rows, 0);
        let (mut draws, mut records) = (self.n_records, self.n_records);
        for &(row, multiplicity) in &self.large {
            let share = f64::from(multiplicity) / records as f64;
            let law =
                Binomial::new(draws, share.min(1.0)).map_err(|e| Error::Resource(e.to_string()))?;
            let taken = law.sample(generator);
            weights[row] = u32::try_from(taken).map_err(|e| Error::Resource(e.to_string()))?;
            draws -= taken;
            records -= u64::from(multiplicity);
        }
        for _ in 0..draws {
            weights[self.small[generator.random_range(0..self.small.len())] as usize] += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;

    /// Chi-square over many draws against Multinomial(n, mᵢ/n); false-positive rate 1e-6.
    #[test]
    fn weights_follow_the_multinomial_law() {
        let multiplicities = [1_u32, 1, 3, 40, 100, 5, 33, 2];
        let n: u32 = multiplicities.iter().sum();
        let resampler = Resampler {
            n_rows: 8,
            n_records: u64::from(n),
            large: (0..8)
                .map(|i| (i, multiplicities[i]))
                .filter(|(_, m)| *m > LARGE)
                .collect(),
            small: (0..8_u32)
                .flat_map(|i| std::iter::repeat_n(i, multiplicities[i as usize] as usize))
                .filter(|i| multiplicities[*i as usize] <= LARGE)
                .collect(),
        };
        let mut generator = SimulationGenerator::new(11, 0);
        let draws = 20_000;
        let (mut sums, mut squares, mut cross) = ([0.0; 8], [0.0; 8], 0.0);
        let mut weights = Vec::new();
        for _ in 0..draws {
            resampler.draw(&mut generator, &mut weights).unwrap();
            assert_eq!(weights.iter().sum::<u32>(), n);
            for i in 0..8 {
                sums[i] += f64::from(weights[i]);
                squares[i] += f64::from(weights[i]).powi(2);
            }
            cross += f64::from(weights[3]) * f64::from(weights[4]);
        }
        // Counts over all draws are one multinomial of draws·n: chi-square with 7 degrees of freedom, quantile 1-1e-6 is 40.5.
        let chi: f64 = (0..8)
            .map(|i| {
                let expected = f64::from(draws) * f64::from(multiplicities[i]);
                (sums[i] - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 40.5, "{chi}");
        // Variances mᵢ(1 - mᵢ/n), relative error √(2/draws)·4.9.
        for i in 0..8 {
            let (mean, p) = (
                f64::from(multiplicities[i]),
                f64::from(multiplicities[i]) / f64::from(n),
            );
            let variance = squares[i] / f64::from(draws) - (sums[i] / f64::from(draws)).powi(2);
            let kurtosis = 2.0 + 1.0 / (mean * (1.0 - p));
            assert!(
                (variance / (mean * (1.0 - p)) - 1.0).abs()
                    < 4.9 * (kurtosis / f64::from(draws)).sqrt()
            );
        }
        // Covariance -m₃m₄/n between two large rows.
        let covariance = cross / f64::from(draws) - sums[3] * sums[4] / f64::from(draws).powi(2);
        let spread = (40.0_f64 * 0.8 * 100.0 * 0.5).sqrt();
        assert!(
            (covariance + 4000.0 / f64::from(n)).abs() < 5.5 * spread / f64::from(draws).sqrt()
        );
    }
}
