//! Gaussian noise: independent normal coordinates of one standard deviation.

use rand::RngExt;
use rand_distr::StandardNormal;

use super::{NoiseGenerator, bounded, check_dim, check_positive};
use crate::bugs;
use crate::{Error, Result};

/// `N(0, σ²I)` on `R^dim`.
#[derive(Debug, Clone, Copy)]
pub struct Gaussian {
    dim: usize,
    std_dev: f64,
}

impl Gaussian {
    /// The law on `R^dim` with standard deviation σ = `std_dev`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `dim` is at least 1 and `std_dev` is finite and positive.
    pub fn new(dim: usize, std_dev: f64) -> Result<Self> {
        check_dim(dim)?;
        check_positive("std_dev", std_dev)?;
        Ok(Self { dim, std_dev })
    }

    /// One draw, of length `dim`.
    pub fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        let mut draw = vec![0.0; self.dim];
        self.draw(generator, &mut draw);
        draw
    }

    /// One draw for a release, within [`Self::error_bound`] of an ideal draw, which has the law exactly.
    ///
    /// # Errors
    /// [`Error::NoiseTail`] with probability below 2⁻⁹⁹⁰, for any data.
    pub fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        let (mut draw, half_square) = bounded::normals(self.dim, generator)?;
        bounded::check_tail((2.0 * half_square).sqrt(), self.tail())?;
        for x in &mut draw {
            *x *= self.std_dev;
        }
        Ok(bugs::stale(draw))
    }

    /// Greatest Euclidean distance of [`Self::sample_bounded`] from the ideal draw, also after a map of [`super::symmetric`].
    #[must_use]
    pub fn error_bound(&self) -> f64 {
        let relative = bounded::NORMAL_ERROR + bounded::U;
        bounded::distance(relative, self.tail(), self.std_dev, self.dim)
    }

    /// Tail bound of the standard numbers drawn, an even number.
    fn tail(&self) -> f64 {
        bounded::normal_tail(self.dim.next_multiple_of(2))
    }

    /// One draw into `out`.
    ///
    /// # Errors
    /// [`Error::Length`] unless `out` has length `dim`.
    pub fn fill(&self, generator: &mut impl NoiseGenerator, out: &mut [f64]) -> Result<()> {
        if out.len() != self.dim {
            return Err(Error::Length {
                name: "noise",
                expected: self.dim,
                got: out.len(),
            });
        }
        self.draw(generator, out);
        Ok(())
    }

    fn draw(&self, generator: &mut impl NoiseGenerator, out: &mut [f64]) {
        for x in out {
            *x = self.std_dev * generator.sample::<f64, _>(StandardNormal);
        }
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
                    assert_cdf(draws.iter().map(|b| b[coordinate]).collect(), |x| {
                        normal_cdf(x / 3.0)
                    });
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
        let law = Gaussian::new(2, 1.0).unwrap();
        assert!(
            law.fill(&mut SimulationGenerator::new(1, 0), &mut [0.0; 1])
                .is_err()
        );
    }
}
