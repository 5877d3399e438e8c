//! A law of noise on symmetric matrices: a name and a scale, both public, and the law to draw from.

use super::{AnyLaw, Family, MatrixLaplace, SquareLaplace, SymmetricGaussian, check_positive};
use crate::{Error, Result};

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
    /// The law named `name` (see [`Self::name`]) with the given [`Self::scale`].
    pub fn from_name(name: &str, scale: f64) -> Result<Self> {
        check_positive("the noise scale", scale)?;
        match name {
            "gaussian" => Ok(Self::Gaussian { std_dev: scale }),
            "matrix_laplace" => Ok(Self::MatrixLaplace { rate: scale.recip() }),
            "spherical_laplace" => Ok(Self::SquareLaplace { rate: scale.recip() }),
            other => Err(Error::Unsupported(format!(
                "the noise of a matrix must be \"gaussian\", \"matrix_laplace\" or \"spherical_laplace\", got {other:?}"
            ))),
        }
    }

    /// `"gaussian"`, `"matrix_laplace"` or `"spherical_laplace"`.
    pub fn name(self) -> &'static str {
        self.family().name()
    }

    /// The family.
    pub fn family(self) -> Family {
        match self {
            Self::Gaussian { .. } => Family::Gaussian,
            Self::MatrixLaplace { .. } => Family::MatrixLaplace,
            Self::SquareLaplace { .. } => Family::SphericalLaplace,
        }
    }

    /// Standard deviation of the Gaussian, 1/rate of the others.
    pub fn scale(self) -> f64 {
        match self {
            Self::Gaussian { std_dev } => std_dev,
            Self::MatrixLaplace { rate } | Self::SquareLaplace { rate } => 1.0 / rate,
        }
    }

    /// Standard deviation of an isometric coordinate.
    pub fn isometric_std_dev(self, dim: usize) -> f64 {
        let d = dim as f64;
        match self {
            Self::Gaussian { std_dev } => std_dev,
            Self::MatrixLaplace { rate } => (d + 1.0).sqrt() / rate,
            Self::SquareLaplace { rate } => (d * d + 1.0).sqrt() / rate,
        }
    }

    /// Standard deviation of an off-diagonal entry.
    pub fn off_diagonal_std_dev(self, dim: usize) -> f64 {
        self.isometric_std_dev(dim) / 2.0_f64.sqrt()
    }

    /// The law on symmetric `dim`×`dim` matrices, to draw from.
    pub fn on(self, dim: usize) -> Result<AnyLaw> {
        Ok(match self {
            Self::Gaussian { std_dev } => SymmetricGaussian::new(dim, std_dev)?.into(),
            Self::MatrixLaplace { rate } => MatrixLaplace::new(dim, rate)?.into(),
            Self::SquareLaplace { rate } => SquareLaplace::new(dim, rate)?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Law, SimulationGenerator};

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
            let law = law.on(4).unwrap();
            let mut generator = SimulationGenerator::new(61, 0);
            let (mut simulated, mut bounded) = (0.0, 0.0);
            for _ in 0..10_000 {
                let draw = law.sample(&mut generator);
                assert_eq!(draw[1].to_bits(), draw[4].to_bits());
                simulated += 0.5 * (draw[1].powi(2) + draw[11].powi(2));
                let draw = law.sample_bounded(&mut generator).unwrap();
                assert_eq!(draw[1].to_bits(), draw[4].to_bits());
                bounded += 0.5 * (draw[1].powi(2) + draw[11].powi(2));
            }
            assert!((simulated / 1e4 / variance - 1.0).abs() < 0.15);
            assert!((bounded / 1e4 / variance - 1.0).abs() < 0.15);
        }
    }
}
