//! Gaussian noise: independent normal coordinates of one standard deviation.

use rand::RngExt;
use rand_distr::StandardNormal;

use super::{Law, NoiseGenerator, bounded, check_dim, check_positive};
use crate::Result;
use crate::bugs;

/// `N(0, σ²I)` on `R^dim`.
#[derive(Debug, Clone, Copy)]
pub struct Gaussian {
    dim: usize,
    std_dev: f64,
}

impl Gaussian {
    /// The law on `R^dim` with standard deviation σ = `std_dev`.
    pub fn new(dim: usize, std_dev: f64) -> Result<Self> {
        check_dim(dim)?;
        check_positive("std_dev", std_dev)?;
        Ok(Self { dim, std_dev })
    }

    /// Tail bound of the standard numbers drawn, an even number.
    fn tail(&self) -> f64 {
        bounded::normal_tail(self.dim.next_multiple_of(2))
    }
}

impl Law for Gaussian {
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        let standard = || generator.sample::<f64, _>(StandardNormal);
        let draws = std::iter::repeat_with(standard).take(self.dim);
        draws.map(|z| self.std_dev * z).collect()
    }

    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        let (mut draw, half_square) = bounded::normals(self.dim, generator)?;
        bounded::check_tail((2.0 * half_square).sqrt(), self.tail())?;
        for x in &mut draw {
            *x *= self.std_dev;
        }
        Ok(bugs::stale(draw))
    }

    fn error_bound(&self) -> f64 {
        let relative = bounded::NORMAL_ERROR + bounded::U;
        bounded::distance(relative, self.tail(), self.std_dev, self.dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::{assert_cdf, normal_cdf};

    #[test]
    fn coordinates_are_normal() {
        for dim in [1, 2, 11] {
            let law = Gaussian::new(dim, 3.0).unwrap();
            let mut generator = SimulationGenerator::new(21, dim as u64);
            let draws: Vec<_> = (0..20_000).map(|_| law.sample(&mut generator)).collect();
            let bounded: Vec<_> = (0..20_000)
                .map(|_| law.sample_bounded(&mut generator).unwrap())
                .collect();
            for draws in [draws, bounded] {
                for coordinate in [0, dim - 1] {
                    assert_cdf(draws.iter().map(|b| b[coordinate]).collect(), |x| normal_cdf(x / 3.0));
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert!(Gaussian::new(0, 1.0).is_err());
        for std_dev in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Gaussian::new(2, std_dev).is_err());
        }
    }
}
