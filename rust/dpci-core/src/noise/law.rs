//! The law of the coefficients' noise, as the intervals need it: a name and a scale, both public.

use std::sync::Arc;

use super::{
    AnyLaw, Family, Gaussian, Law, ShapedGaussian, ShapedLaplace, SphericalLaplace, check_dim, check_positive,
};
use crate::error::check_length;
use crate::row_domain::Blocks;
use crate::{Error, Result};

/// Law of the noise vector `b` that perturbs the coefficients.
#[derive(Debug, Clone, PartialEq)]
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
    /// Density proportional to `exp(-rate·‖b‖_K)`, K the unit ball of the blocks.
    ShapedLaplace {
        /// The shape.
        blocks: Arc<Blocks>,
        /// Rate γ.
        rate: f64,
    },
    /// Independent normal coordinates in the metric of the blocks.
    ShapedGaussian {
        /// The shape.
        blocks: Arc<Blocks>,
        /// σ: a coordinate has variance σ² times that of [`Blocks::metric`].
        std_dev: f64,
    },
}

impl NoiseLaw {
    /// The law named `name` (see [`Self::name`]) with the given [`Self::scale`] on `R^dim`; `blocks` are those of a shaped one.
    pub fn from_name(name: &str, dim: usize, scale: f64, blocks: Option<&Arc<Blocks>>) -> Result<Self> {
        let rate = 1.0 / scale;
        let law = match (name, blocks) {
            ("gaussian", _) => Self::Gaussian { std_dev: scale },
            ("spherical_laplace", _) => Self::SphericalLaplace { dim, rate },
            ("shaped_laplace", Some(blocks)) => {
                let blocks = Arc::clone(blocks);
                Self::ShapedLaplace { blocks, rate }
            }
            ("shaped_gaussian", Some(blocks)) => Self::ShapedGaussian {
                blocks: Arc::clone(blocks),
                std_dev: scale,
            },
            ("shaped_laplace" | "shaped_gaussian", None) => {
                return Err(Error::Unsupported(format!(
                    "noise_law={name:?} requires rows with blocks, got none"
                )));
            }
            (other, _) => {
                return Err(Error::Unsupported(format!(
                    "noise_law must be \"gaussian\", \"spherical_laplace\", \"shaped_laplace\" or \"shaped_gaussian\", got noise_law={other:?}"
                )));
            }
        };
        law.check()?;
        law.check_dim(dim)?;
        Ok(law)
    }

    /// The same law at another [`Self::scale`].
    pub fn with_scale(&self, scale: f64) -> Self {
        let rate = 1.0 / scale;
        match self {
            Self::Gaussian { .. } => Self::Gaussian { std_dev: scale },
            Self::SphericalLaplace { dim, .. } => Self::SphericalLaplace { dim: *dim, rate },
            Self::ShapedLaplace { blocks, .. } => Self::ShapedLaplace {
                blocks: Arc::clone(blocks),
                rate,
            },
            Self::ShapedGaussian { blocks, .. } => Self::ShapedGaussian {
                blocks: Arc::clone(blocks),
                std_dev: scale,
            },
        }
    }

    /// Checks the parameters.
    pub fn check(&self) -> Result<()> {
        match *self {
            Self::Gaussian { std_dev } | Self::ShapedGaussian { std_dev, .. } => check_positive("std_dev", std_dev),
            Self::SphericalLaplace { dim, rate } => {
                check_dim(dim)?;
                check_positive("rate", rate)
            }
            Self::ShapedLaplace { rate, .. } => check_positive("rate", rate),
        }
    }

    /// Checks that the law lives on `R^dim`; a Gaussian law lives on all of them.
    pub fn check_dim(&self, dim: usize) -> Result<()> {
        let expected = match self {
            Self::Gaussian { .. } => dim,
            Self::SphericalLaplace { dim, .. } => *dim,
            Self::ShapedLaplace { blocks, .. } | Self::ShapedGaussian { blocks, .. } => blocks.dim(),
        };
        check_length("params", expected, dim)
    }

    /// The law on `R^dim`, to draw from.
    pub fn on(&self, dim: usize) -> Result<AnyLaw> {
        self.check_dim(dim)?;
        Ok(match self {
            Self::Gaussian { std_dev } => Gaussian::new(dim, *std_dev)?.into(),
            Self::SphericalLaplace { dim, rate } => SphericalLaplace::new(*dim, *rate)?.into(),
            Self::ShapedLaplace { blocks, rate } => ShapedLaplace::new(Arc::clone(blocks), *rate)?.into(),
            Self::ShapedGaussian { blocks, std_dev } => ShapedGaussian::new(blocks, *std_dev)?.into(),
        })
    }

    /// Euclidean distance of a bounded draw of `dim` coordinates to the ideal one; infinite where [`Self::on`] has no law.
    pub fn error_bound(&self, dim: usize) -> f64 {
        self.on(dim).map_or(f64::INFINITY, |law| law.error_bound())
    }

    /// No draw of `dim` coordinates for a release is longer: its error bound is at least 12 roundings of its tail bound.
    pub fn greatest_norm(&self, dim: usize) -> f64 {
        self.error_bound(dim) / (6.0 * f64::EPSILON)
    }

    /// The name of the family.
    pub fn name(&self) -> &'static str {
        self.family().name()
    }

    /// The family.
    pub fn family(&self) -> Family {
        match self {
            Self::Gaussian { .. } => Family::Gaussian,
            Self::SphericalLaplace { .. } => Family::SphericalLaplace,
            Self::ShapedLaplace { .. } => Family::ShapedLaplace,
            Self::ShapedGaussian { .. } => Family::ShapedGaussian,
        }
    }

    /// The blocks of a shaped Laplace law, whose contrasts follow no ellipse.
    pub fn blocks(&self) -> Option<&Arc<Blocks>> {
        match self {
            Self::ShapedLaplace { blocks, .. } => Some(blocks),
            _ => None,
        }
    }

    /// Standard deviation of the Gaussian, 1/rate of the others.
    pub fn scale(&self) -> f64 {
        match *self {
            Self::Gaussian { std_dev } | Self::ShapedGaussian { std_dev, .. } => std_dev,
            Self::SphericalLaplace { rate, .. } | Self::ShapedLaplace { rate, .. } => 1.0 / rate,
        }
    }

    /// Least and greatest standard deviation of a coordinate, and so of any unit contrast, as coordinates are uncorrelated.
    pub fn std_dev_range(&self) -> [f64; 2] {
        let (variances, unit) = match self {
            Self::ShapedLaplace { blocks, rate } => (blocks.variances(), radius_std_dev(blocks.dim(), *rate)),
            Self::ShapedGaussian { blocks, std_dev } => (blocks.metric(), *std_dev),
            _ => return [self.coordinate_std_dev(); 2],
        };
        let ends = [
            variances.iter().fold(f64::INFINITY, |a, b| a.min(*b)),
            variances.iter().fold(0.0, |a: f64, b| a.max(*b)),
        ];
        ends.map(|variance| variance.sqrt() * unit)
    }

    /// Standard deviation of one coordinate, or of any unit contrast: σ, or `√(dim+1)/rate`; of a shaped law the root of the mean variance
    /// of its coordinates.
    pub fn coordinate_std_dev(&self) -> f64 {
        match self {
            Self::Gaussian { std_dev } => *std_dev,
            Self::SphericalLaplace { dim, rate } => (*dim as f64 + 1.0).sqrt() / rate,
            Self::ShapedLaplace { blocks, rate } => {
                let mean = blocks.variances().iter().sum::<f64>() / blocks.dim() as f64;
                mean.sqrt() * radius_std_dev(blocks.dim(), *rate)
            }
            Self::ShapedGaussian { blocks, std_dev } => {
                let mean = blocks.metric().iter().sum::<f64>() / blocks.dim() as f64;
                mean.sqrt() * std_dev
            }
        }
    }

    /// Standard deviations of the coordinates over [`Self::coordinate_std_dev`]; `None` for a law that is the same in all directions, and
    /// for one whose contrasts follow no ellipse.
    pub fn relative_std_devs(&self) -> Option<Vec<f64>> {
        let Self::ShapedGaussian { blocks, .. } = self else {
            return None;
        };
        let metric = blocks.metric();
        let mean = metric.iter().sum::<f64>() / blocks.dim() as f64;
        Some(metric.into_iter().map(|c| (c / mean).sqrt()).collect())
    }

    /// Variance of each of `dim` coordinates.
    pub fn coordinate_variances(&self, dim: usize) -> Vec<f64> {
        match self {
            Self::ShapedLaplace { blocks, rate } => {
                let radius = radius_std_dev(blocks.dim(), *rate).powi(2);
                blocks.variances().iter().map(|v| v * radius).collect()
            }
            Self::ShapedGaussian { blocks, std_dev } => {
                let metric = blocks.metric();
                metric.iter().map(|c| c * std_dev.powi(2)).collect()
            }
            Self::Gaussian { .. } | Self::SphericalLaplace { .. } => {
                vec![self.coordinate_variance(); dim]
            }
        }
    }

    /// Its square.
    pub fn coordinate_variance(&self) -> f64 {
        self.coordinate_std_dev().powi(2)
    }
}

/// `√(E r²)` of the Gamma(dim+1, 1/rate) number r of a shaped law.
fn radius_std_dev(dim: usize, rate: f64) -> f64 {
    let dim = dim as f64;
    ((dim + 1.0) * (dim + 2.0)).sqrt() / rate
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
            assert!(NoiseLaw::SphericalLaplace { dim: 1, rate: bad }.check().is_err());
        }
        assert!(NoiseLaw::SphericalLaplace { dim: 0, rate: 1.0 }.check().is_err());
        assert!(NoiseLaw::SphericalLaplace { dim: 2, rate: 1.0 }.check_dim(3).is_err());
        assert!(NoiseLaw::Gaussian { std_dev: 1.0 }.check_dim(3).is_ok());
    }
}
