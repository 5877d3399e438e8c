//! The law of the coefficients' noise, as the intervals need it: a name and a scale, both public.

use super::{AnyLaw, Family, Gaussian, Law, SphericalLaplace, check_dim, check_positive};
use crate::{Error, Result};

/// Law of the noise vector `b` that perturbs the coefficients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoiseLaw {
    /// Independent normal coordinates.
    Gaussian {
        /// Standard deviation of a coordinate.
        std_dev: f64,
    },
    /// Density proportional to `exp(-rate·‖b‖₂)` on `R^dim`.
    SphericalLaplace {
        /// Number of coordinates.
        dim: usize,
        /// Rate γ.
        rate: f64,
    },
}

impl NoiseLaw {
    /// The law named `name` (see [`Self::name`]) with the given [`Self::scale`] on `R^dim`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another name, [`Error::OutOfRange`] for a bad scale or dimension.
    pub fn from_name(name: &str, dim: usize, scale: f64) -> Result<Self> {
        let law = match name {
            "gaussian" => Self::Gaussian { std_dev: scale },
            "spherical_laplace" => Self::SphericalLaplace {
                dim,
                rate: 1.0 / scale,
            },
            other => {
                return Err(Error::Unsupported(format!(
                    "noise_law must be \"gaussian\" or \"spherical_laplace\", got noise_law={other:?}"
                )));
            }
        };
        law.check()?;
        Ok(law)
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the dimension is at least 1 and the scale is finite and positive.
    pub fn check(&self) -> Result<()> {
        match *self {
            Self::Gaussian { std_dev } => check_positive("std_dev", std_dev),
            Self::SphericalLaplace { dim, rate } => {
                check_dim(dim)?;
                check_positive("rate", rate)
            }
        }
    }

    /// Checks that the law lives on `R^dim`; a Gaussian law lives on all of them.
    ///
    /// # Errors
    /// [`Error::Length`] when it does not.
    pub fn check_dim(&self, dim: usize) -> Result<()> {
        match *self {
            Self::SphericalLaplace { dim: expected, .. } if expected != dim => Err(Error::Length {
                name: "params",
                expected,
                got: dim,
            }),
            _ => Ok(()),
        }
    }

    /// The law on `R^dim`, to draw from.
    ///
    /// # Errors
    /// As [`Self::check`] and [`Self::check_dim`].
    pub fn on(&self, dim: usize) -> Result<AnyLaw> {
        self.check_dim(dim)?;
        Ok(match *self {
            Self::Gaussian { std_dev } => Gaussian::new(dim, std_dev)?.into(),
            Self::SphericalLaplace { dim, rate } => SphericalLaplace::new(dim, rate)?.into(),
        })
    }

    /// Euclidean distance of a bounded draw of `dim` coordinates to the ideal one; infinite where [`Self::on`] has no law.
    #[must_use]
    pub fn error_bound(&self, dim: usize) -> f64 {
        self.on(dim).map_or(f64::INFINITY, |law| law.error_bound())
    }

    /// No draw of `dim` coordinates for a release is longer: its error bound is at least 12 roundings of its tail bound.
    #[must_use]
    pub fn greatest_norm(&self, dim: usize) -> f64 {
        self.error_bound(dim) / (6.0 * f64::EPSILON)
    }

    /// `"gaussian"` or `"spherical_laplace"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.family().name()
    }

    /// The family.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            Self::Gaussian { .. } => Family::Gaussian,
            Self::SphericalLaplace { .. } => Family::SphericalLaplace,
        }
    }

    /// Standard deviation of the Gaussian, 1/rate of the spherical Laplace law.
    #[must_use]
    pub fn scale(&self) -> f64 {
        match *self {
            Self::Gaussian { std_dev } => std_dev,
            Self::SphericalLaplace { rate, .. } => 1.0 / rate,
        }
    }

    /// Standard deviation of one coordinate, or of any unit contrast: σ, or `√(dim+1)/rate`.
    #[must_use]
    pub fn coordinate_std_dev(&self) -> f64 {
        match *self {
            Self::Gaussian { std_dev } => std_dev,
            Self::SphericalLaplace { dim, rate } => (dim as f64 + 1.0).sqrt() / rate,
        }
    }

    /// Variance of one coordinate: σ², or `(dim+1)/rate²`.
    #[must_use]
    pub fn coordinate_variance(&self) -> f64 {
        self.coordinate_std_dev().powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_scales_and_variances() {
        let gaussian = NoiseLaw::Gaussian { std_dev: 0.25 };
        assert_eq!(gaussian.name(), "gaussian");
        assert!((gaussian.scale() - 0.25).abs() < 1e-15);
        assert!((gaussian.coordinate_variance() - 0.0625).abs() < 1e-15);
        let laplace = NoiseLaw::SphericalLaplace { dim: 3, rate: 2.0 };
        assert_eq!(laplace.name(), "spherical_laplace");
        assert!((laplace.scale() - 0.5).abs() < 1e-15);
        assert!((laplace.coordinate_variance() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(NoiseLaw::Gaussian { std_dev: bad }.check().is_err());
            assert!(
                NoiseLaw::SphericalLaplace { dim: 1, rate: bad }
                    .check()
                    .is_err()
            );
        }
        assert!(
            NoiseLaw::SphericalLaplace { dim: 0, rate: 1.0 }
                .check()
                .is_err()
        );
        assert!(
            NoiseLaw::SphericalLaplace { dim: 2, rate: 1.0 }
                .check_dim(3)
                .is_err()
        );
        assert!(NoiseLaw::Gaussian { std_dev: 1.0 }.check_dim(3).is_ok());
    }
}
