//! Gaussian noise on symmetric matrices: independent normals of one standard deviation in isometric coordinates.

use super::symmetric::{from_isometric, isometric_dim};
use super::{Gaussian, Law, NoiseGenerator, check_dim};
use crate::Result;

/// Independent normal isometric coordinates: an entry off the diagonal has 1/√2 of the standard deviation of one on it.
#[derive(Debug, Clone, Copy)]
pub struct SymmetricGaussian {
    dim: usize,
    coordinates: Gaussian,
}

impl SymmetricGaussian {
    /// The law on symmetric `dim`×`dim` matrices; an isometric coordinate has standard deviation `std_dev`.
    pub fn new(dim: usize, std_dev: f64) -> Result<Self> {
        check_dim(dim)?;
        let coordinates = Gaussian::new(isometric_dim(dim), std_dev)?;
        Ok(Self { dim, coordinates })
    }
}

impl Law for SymmetricGaussian {
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        from_isometric(self.dim, &self.coordinates.sample(generator))
    }

    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        let coordinates = self.coordinates.sample_bounded(generator)?;
        Ok(from_isometric(self.dim, &coordinates))
    }

    /// Error bound of the coordinates, in which the Frobenius norm is the Euclidean norm.
    fn error_bound(&self) -> f64 {
        self.coordinates.error_bound()
    }
}
