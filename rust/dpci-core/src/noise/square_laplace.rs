//! Spherical Laplace noise on all entries of a square matrix, then symmetrised: the law that a paper prints.

use super::symmetric::from_entries;
use super::{Law, NoiseGenerator, SphericalLaplace, check_dim};
use crate::Result;

/// `(E + Eᵀ)/2` for a spherical Laplace draw E on `R^(dim²)`.
///
/// This is what Wang, Kifer & Lee, "Differentially private confidence intervals for ERM", print; it is private because
/// symmetrising is post-processing, but carries up to √2 more noise than the isometric coordinates. (For Gaussian noise the
/// two laws agree.)
#[derive(Debug, Clone, Copy)]
pub struct SquareLaplace {
    dim: usize,
    entries: SphericalLaplace,
}

impl SquareLaplace {
    /// The law on symmetric `dim`×`dim` matrices with rate γ = `rate`.
    pub fn new(dim: usize, rate: f64) -> Result<Self> {
        check_dim(dim)?;
        let entries = SphericalLaplace::new(dim * dim, rate)?;
        Ok(Self { dim, entries })
    }
}

impl Law for SquareLaplace {
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        from_entries(self.dim, &self.entries.sample(generator))
    }

    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        Ok(from_entries(self.dim, &self.entries.sample_bounded(generator)?))
    }

    /// Error bound of the entries, because symmetrising brings nothing further apart.
    fn error_bound(&self) -> f64 {
        self.entries.error_bound()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::assert_mean;

    #[test]
    fn draws_have_the_printed_moments() {
        // An entry of the raw matrix has variance (d²+1)/rate²; symmetrising halves it off the diagonal.
        let (dim, rate) = (3, 2.0);
        let law = SquareLaplace::new(dim, rate).unwrap();
        let mut generator = SimulationGenerator::new(22, 0);
        let draws: Vec<_> = (0..20_000).map(|_| law.sample(&mut generator)).collect();
        let bounded: Vec<_> = (0..20_000)
            .map(|_| law.sample_bounded(&mut generator).unwrap())
            .collect();
        let variance = 10.0 / (rate * rate);
        for draws in [draws, bounded] {
            for (entry, share) in [(4, 1.0), (5, 0.5)] {
                let squares = draws.iter().map(|m| m[entry].powi(2) / variance);
                assert_mean(&squares.collect::<Vec<_>>(), share);
            }
            assert!(draws.iter().all(|m| m[5].to_bits() == m[7].to_bits()));
        }
        assert!(SquareLaplace::new(0, 1.0).is_err());
        assert!(SquareLaplace::new(2, f64::NAN).is_err());
    }
}
