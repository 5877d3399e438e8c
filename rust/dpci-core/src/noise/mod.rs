//! Noise: two kinds of generator, and one distribution a file.
//!
//! [`ReleaseGenerator`] feeds releases, [`SimulationGenerator`] feeds studies and tests; every sampler takes either through
//! [`NoiseGenerator`], whose `PRIVATE` constant says which one it was.

mod bounded;
mod choice;
mod discrete;
mod gaussian;
mod generator;
mod integer;
mod laplace;
mod law;
mod matrix_laplace;
mod matrix_law;
mod spherical_laplace;
mod square_laplace;
pub mod symmetric;
#[cfg(test)]
pub(crate) mod testing;
mod uniform;

pub use choice::{exponential_index, partition, uniform_index, weighted_index};
pub use discrete::{DiscreteGaussian, DiscreteLaplace};
pub use gaussian::Gaussian;
pub use generator::{NoiseGenerator, ReleaseGenerator, SimulationGenerator};
pub use laplace::Laplace;
pub use law::NoiseLaw;
pub use matrix_laplace::MatrixLaplace;
pub use matrix_law::MatrixLaw;
pub use spherical_laplace::SphericalLaplace;
pub use square_laplace::SquareLaplace;

use crate::{Error, Result};

/// Refuses a dimension of zero.
fn check_dim(dim: usize) -> Result<()> {
    if dim == 0 {
        return Err(Error::OutOfRange {
            name: "dim",
            rule: "at least 1",
            value: 0.0,
        });
    }
    Ok(())
}

/// Refuses a scale parameter that is not finite and positive.
fn check_positive(name: &'static str, value: f64) -> Result<()> {
    if !(value > 0.0 && value.is_finite()) {
        return Err(Error::OutOfRange {
            name,
            rule: "finite and > 0",
            value,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
