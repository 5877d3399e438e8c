//! A law of noise on symmetric matrices: a name and a scale, both public, and its draws.

use super::{Gaussian, MatrixLaplace, NoiseGenerator, SquareLaplace, symmetric};
use crate::Result;

/// A noise law on symmetric matrices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MatrixLaw {
    /// Independent normals in isometric coordinates.
    Gaussian {
        /// Standard deviation of an isometric coordinate.
        std_dev: f64,
    },
    /// Difference of two Wisharts, density ratio at most `e^{rate·nuclear norm}`.
    MatrixLaplace {
        /// Rate γ.
        rate: f64,
    },
    /// Spherical Laplace on all `d²` entries, symmetrised: the paper's.
    SquareLaplace {
        /// Rate γ.
        rate: f64,
    },
}

impl MatrixLaw {
    /// `"gaussian"`, `"matrix_laplace"` or `"spherical_laplace"`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian { .. } => "gaussian",
            Self::MatrixLaplace { .. } => "matrix_laplace",
            Self::SquareLaplace { .. } => "spherical_laplace",
        }
    }

    /// Standard deviation of the Gaussian, 1/rate of the others.
    #[must_use]
    pub fn scale(self) -> f64 {
        match self {
            Self::Gaussian { std_dev } => std_dev,
            Self::MatrixLaplace { rate } | Self::SquareLaplace { rate } => 1.0 / rate,
        }
    }

    /// Standard deviation of an off-diagonal entry.
    #[must_use]
    pub fn off_diagonal_std_dev(self, dim: usize) -> f64 {
        let d = dim as f64;
        let coordinate = match self {
            Self::Gaussian { std_dev } => std_dev,
            Self::MatrixLaplace { rate } => (d + 1.0).sqrt() / rate,
            Self::SquareLaplace { rate } => (d * d + 1.0).sqrt() / rate,
        };
        coordinate / 2.0_f64.sqrt()
    }

    /// A symmetric noise matrix for a release, row-major, within [`Self::error_bound`] of the ideal draw.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] for a scale that is not finite and positive, [`crate::Error::NoiseTail`].
    pub fn sample_bounded(
        self,
        dim: usize,
        generator: &mut impl NoiseGenerator,
    ) -> Result<Vec<f64>> {
        match self {
            Self::Gaussian { std_dev } => {
                let law = Gaussian::new(symmetric::isometric_dim(dim), std_dev)?;
                let coordinates = law.sample_bounded(generator)?;
                Ok(symmetric::from_isometric(dim, &coordinates))
            }
            Self::MatrixLaplace { rate } => {
                MatrixLaplace::new(dim, rate)?.sample_bounded(generator)
            }
            Self::SquareLaplace { rate } => {
                SquareLaplace::new(dim, rate)?.sample_bounded(generator)
            }
        }
    }

    /// Greatest Frobenius distance of [`Self::sample_bounded`] to the ideal draw.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] for a scale that is not finite and positive.
    pub fn error_bound(self, dim: usize) -> Result<f64> {
        Ok(match self {
            Self::Gaussian { std_dev } => {
                Gaussian::new(symmetric::isometric_dim(dim), std_dev)?.error_bound()
            }
            Self::MatrixLaplace { rate } => MatrixLaplace::new(dim, rate)?.error_bound(),
            Self::SquareLaplace { rate } => SquareLaplace::new(dim, rate)?.error_bound(),
        })
    }

    /// A symmetric noise matrix for a simulation, row-major.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] for a scale that is not finite and positive.
    pub fn sample(self, dim: usize, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        Ok(match self {
            Self::Gaussian { std_dev } => {
                let coordinates =
                    Gaussian::new(symmetric::isometric_dim(dim), std_dev)?.sample(generator);
                symmetric::from_isometric(dim, &coordinates)
            }
            Self::MatrixLaplace { rate } => MatrixLaplace::new(dim, rate)?.sample(generator),
            Self::SquareLaplace { rate } => SquareLaplace::new(dim, rate)?.sample(generator),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;

    #[test]
    fn entries_off_the_diagonal() {
        for (law, variance) in [
            (MatrixLaw::Gaussian { std_dev: 3.0 }, 9.0 / 2.0),
            // (d+1)/γ² and (d²+1)/γ² for an isometric coordinate, of which an entry is 1/√2.
            (MatrixLaw::MatrixLaplace { rate: 0.5 }, 4.0 * 5.0 / 2.0),
            (MatrixLaw::SquareLaplace { rate: 0.5 }, 4.0 * 17.0 / 2.0),
        ] {
            assert!((law.off_diagonal_std_dev(4) / f64::sqrt(variance) - 1.0).abs() < 1e-14);
            // 20,000 draws: six standard errors of a variance whose kurtosis is at most 9 are below .13.
            let mut generator = SimulationGenerator::new(61, 0);
            let (mut simulated, mut bounded) = (0.0, 0.0);
            for _ in 0..10_000 {
                let draw = law.sample(4, &mut generator).unwrap();
                assert_eq!(draw[1].to_bits(), draw[4].to_bits());
                simulated += 0.5 * (draw[1].powi(2) + draw[11].powi(2));
                let draw = law.sample_bounded(4, &mut generator).unwrap();
                assert_eq!(draw[1].to_bits(), draw[4].to_bits());
                bounded += 0.5 * (draw[1].powi(2) + draw[11].powi(2));
            }
            assert!((simulated / 1e4 / variance - 1.0).abs() < 0.15);
            assert!((bounded / 1e4 / variance - 1.0).abs() < 0.15);
        }
    }
}
