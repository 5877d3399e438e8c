//! Draws of the noise of released matrices in standard units, by which the intervals simulate a release.

use crate::Result;
use crate::noise::{Law, MatrixLaw, SimulationGenerator};

/// Directions whose errors are simulated, over all draws: a hundred give a mean to a few percent of its spread.
const DIRECTIONS: usize = 100;

/// Public, so that the same release always has the same intervals.
const SEED: u64 = 0x6470_6369;

/// Draws of the noise of the Hessian and of the gradient covariance whose isometric coordinates have standard deviation 1. Each comes
/// with its negative: what is odd in the noise then averages to 0.
#[derive(Debug, Clone)]
pub struct MatrixDraws {
    dim: usize,
    pairs: Vec<[Vec<f64>; 2]>,
}

impl MatrixDraws {
    /// Draws for matrices of this dimension, by laws whose scale does not matter; `None`: a Hessian without noise.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] for a dimension of 0.
    pub fn new(dim: usize, hessian: Option<MatrixLaw>, gradient_cov: MatrixLaw) -> Result<Self> {
        let n_pairs = (DIRECTIONS / (2 * dim.max(1))).max(1);
        let pairs = (0..n_pairs as u64).map(|pair| {
            // A stream for each matrix: whether the Hessian has noise changes nothing for the other.
            let hessian = match hessian {
                Some(law) => standard(law, dim, 2 * pair)?,
                None => vec![0.0; dim * dim],
            };
            Ok([hessian, standard(gradient_cov, dim, 2 * pair + 1)?])
        });
        let pairs = pairs.collect::<Result<_>>()?;
        Ok(Self { dim, pairs })
    }

    /// Dimension of the matrices.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// Each draw as its sign and the matrices in standard units.
    pub(super) fn signed(&self) -> impl Iterator<Item = (f64, &[f64], &[f64])> {
        self.pairs.iter().flat_map(|[hessian, gradient_cov]| {
            [1.0, -1.0].map(|sign| (sign, &**hessian, &**gradient_cov))
        })
    }

    /// Number of draws.
    pub(super) fn len(&self) -> usize {
        2 * self.pairs.len()
    }
}

/// One draw in standard units.
fn standard(law: MatrixLaw, dim: usize, stream: u64) -> Result<Vec<f64>> {
    let std_dev = law.isometric_std_dev(dim);
    let mut generator = SimulationGenerator::new(SEED, stream);
    let mut draw = law.on(dim)?.sample(&mut generator);
    for entry in &mut draw {
        *entry /= std_dev;
    }
    Ok(draw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hessian_without_noise_changes_no_draw_of_the_covariance() {
        let law = MatrixLaw::MatrixLaplace { rate: 2.0 };
        let with = MatrixDraws::new(6, Some(law), law).unwrap();
        let without = MatrixDraws::new(6, None, law).unwrap();
        assert_eq!(with.len(), without.len());
        for ((sign, hessian, cov), (other_sign, none, other)) in with.signed().zip(without.signed())
        {
            assert_eq!((sign.to_bits(), cov), (other_sign.to_bits(), other));
            assert!(none.iter().all(|z| z.abs() < f64::MIN_POSITIVE));
            assert_ne!(hessian, cov);
        }
    }
}
