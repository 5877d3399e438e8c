//! Noise: two kinds of generator, and one distribution a file.
//!
//! [`ReleaseGenerator`] feeds releases, [`SimulationGenerator`] feeds studies and tests; every sampler takes either through
//! [`NoiseGenerator`].

mod bounded;
mod choice;
mod discrete;
mod gaussian;
mod generator;
mod integer;
mod joint_choice;
mod kept_levels;
mod laplace;
mod law;
mod level_totals;
mod matrix_laplace;
mod matrix_law;
mod shaped_gaussian;
mod shaped_laplace;
mod spherical_laplace;
mod square_laplace;
pub mod symmetric;
mod symmetric_gaussian;
#[cfg(test)]
pub(crate) mod testing;
mod uniform;

pub use choice::{exponential_index, partition, uniform_index, weighted_index};
pub use discrete::{DiscreteGaussian, DiscreteLaplace};
pub use gaussian::Gaussian;
pub use generator::{NoiseGenerator, ReleaseGenerator, SimulationGenerator};
pub use joint_choice::{Entry, joint_index};
pub use kept_levels::kept_levels;
pub use laplace::Laplace;
pub use law::NoiseLaw;
pub use level_totals::{LevelTotals, Totals};
pub use matrix_laplace::MatrixLaplace;
pub use matrix_law::MatrixLaw;
pub use shaped_gaussian::ShapedGaussian;
pub use shaped_laplace::ShapedLaplace;
pub use spherical_laplace::SphericalLaplace;
pub use square_laplace::SquareLaplace;
pub use symmetric_gaussian::SymmetricGaussian;

use crate::Result;
use crate::error::{check, check_positive};

/// A law of noise: vectors, or symmetric matrices (row-major) and their Frobenius norm.
pub trait Law {
    /// One draw for a simulation, by the fast samplers of a library.
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64>;

    /// One draw for a release, within [`Self::error_bound`] of an ideal draw, which has the law exactly.
    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>>;

    /// Greatest Euclidean distance of [`Self::sample_bounded`] from the ideal draw, also after a map of [`symmetric`].
    fn error_bound(&self) -> f64;
}

/// Lists the laws once: [`AnyLaw`] is one of them.
macro_rules! laws {
    ($($law:ident)*) => {
        /// A law that public choices decide on.
        #[derive(Debug, Clone)]
        pub enum AnyLaw {
            $(
                #[doc = concat!("See [`", stringify!($law), "`](struct@", stringify!($law), ").")]
                $law($law),
            )*
        }

        impl Law for AnyLaw {
            fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
                match self {
                    $(Self::$law(law) => law.sample(generator),)*
                }
            }

            fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
                match self {
                    $(Self::$law(law) => law.sample_bounded(generator),)*
                }
            }

            fn error_bound(&self) -> f64 {
                match self {
                    $(Self::$law(law) => law.error_bound(),)*
                }
            }
        }

        $(
            impl From<$law> for AnyLaw {
                fn from(law: $law) -> Self {
                    Self::$law(law)
                }
            }
        )*
    };
}

named! {
    /// The families of noise, as records name them.
    pub enum Family {
        /// No noise: the value is the same for all data.
        None = "none",
        /// [`Gaussian`], [`SymmetricGaussian`].
        Gaussian = "gaussian",
        /// [`Laplace`].
        Laplace = "laplace",
        /// [`SphericalLaplace`], [`SquareLaplace`].
        SphericalLaplace = "spherical_laplace",
        /// [`ShapedLaplace`].
        ShapedLaplace = "shaped_laplace",
        /// [`ShapedGaussian`].
        ShapedGaussian = "shaped_gaussian",
        /// [`MatrixLaplace`].
        MatrixLaplace = "matrix_laplace",
        /// Law of the exponential mechanism: see [`exponential_index`].
        Gumbel = "gumbel",
        /// Law of the choice whether a level is kept: see [`kept_levels`].
        Bernoulli = "bernoulli",
        /// [`DiscreteLaplace`].
        DiscreteLaplace = "discrete_laplace",
        /// [`DiscreteGaussian`].
        DiscreteGaussian = "discrete_gaussian",
    }
}

laws! { Gaussian Laplace SphericalLaplace ShapedLaplace ShapedGaussian SymmetricGaussian MatrixLaplace SquareLaplace }

/// Refuses a dimension of zero.
fn check_dim(dim: usize) -> Result<()> {
    check(dim > 0, "dim", "at least 1", 0.0)
}

#[cfg(test)]
mod tests;
