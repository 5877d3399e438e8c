//! Gaussian noise in the metric of blocks: independent normal coordinates, each with the spread of its block.

use std::sync::Arc;

use super::{Gaussian, Law, NoiseGenerator};
use crate::Result;
use crate::row_domain::Blocks;

/// `N(0, σ²C)` with C the diagonal of [`Blocks::metric`], in which no row is longer than 1.
#[derive(Debug, Clone)]
pub struct ShapedGaussian {
    standard: Gaussian,
    std_devs: Vec<f64>,
}

impl ShapedGaussian {
    /// The law in the metric of `blocks` with σ = `std_dev`.
    pub fn new(blocks: &Arc<Blocks>, std_dev: f64) -> Result<Self> {
        super::check_positive("std_dev", std_dev)?;
        // Rounded up: less noise than the proof asks for is none that it covers.
        let of_variance = |c: f64| std_dev * c.sqrt() * (1.0 + 4.0 * f64::EPSILON);
        let std_devs: Vec<f64> = blocks.metric().into_iter().map(of_variance).collect();
        for value in &std_devs {
            super::check_positive("std_dev", *value)?;
        }
        Ok(Self {
            standard: Gaussian::new(std_devs.len(), 1.0)?,
            std_devs,
        })
    }

    fn spread(&self, mut draw: Vec<f64>) -> Vec<f64> {
        draw.iter_mut().zip(&self.std_devs).for_each(|(x, s)| *x *= s);
        draw
    }
}

impl Law for ShapedGaussian {
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        self.spread(self.standard.sample(generator))
    }

    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        Ok(self.spread(self.standard.sample_bounded(generator)?))
    }

    /// Error bound of a spherical law with the greatest standard deviation, which multiplies its draws in the same way.
    fn error_bound(&self) -> f64 {
        let greatest = self.std_devs.iter().fold(0.0, |a: f64, s| a.max(*s));
        Gaussian::new(self.std_devs.len(), greatest).map_or(f64::INFINITY, |law| law.error_bound())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::{assert_cdf, assert_mean, normal_cdf};

    #[test]
    fn coordinates_are_normal_with_the_spread_of_their_block() {
        let blocks = Arc::new(Blocks::new(vec![0.5, 3.0], vec![0, 1, 1, 1]).unwrap());
        let law = ShapedGaussian::new(&blocks, 2.0).unwrap();
        let mut generator = SimulationGenerator::new(22, 0);
        let draws: Vec<_> = (0..20_000).map(|_| law.sample(&mut generator)).collect();
        let bounded: Vec<_> = (0..20_000)
            .map(|_| law.sample_bounded(&mut generator).unwrap())
            .collect();
        for draws in [draws, bounded] {
            // 2a√(D/k)
            for (j, std_dev) in [(0, 2.0), (1, 6.0 * (4.0_f64 / 3.0).sqrt())] {
                assert_cdf(draws.iter().map(|b| b[j]).collect(), |x| normal_cdf(x / std_dev));
            }
            let products: Vec<f64> = draws.iter().map(|b| b[1] * b[2]).collect();
            assert_mean(&products, 0.0);
        }
        let wide = Gaussian::new(4, 6.0 * (4.0_f64 / 3.0).sqrt()).unwrap();
        assert!((law.error_bound() / wide.error_bound() - 1.0).abs() < 1e-12);
        for bad in [0.0, f64::NAN, f64::INFINITY, 1e-320] {
            assert!(ShapedGaussian::new(&blocks, bad).is_err() || bad > 0.0);
        }
    }
}
