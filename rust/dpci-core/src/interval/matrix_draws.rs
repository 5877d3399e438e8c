//! Draws of the noise of released matrices in standard units, by which the intervals simulate a release.

use crate::Result;
use crate::linalg::{Eigen, vector};
use crate::noise::{Law, MatrixLaw, SimulationGenerator};

/// Directions whose errors are simulated, over all draws: with ten parameters they leave a Monte Carlo error of about .003 in the coverage.
const DIRECTIONS: usize = 100;

/// Public, so that the same release always has the same intervals.
const SEED: u64 = 0x6470_6369;

/// Draws of the noise of the Hessian and of the gradient covariance whose isometric coordinates have standard deviation 1. Each comes
/// with its negative: what is odd in the noise then averages to 0.
#[derive(Debug, Clone)]
pub struct MatrixDraws {
    dim: usize,
    pairs: Vec<Pair>,
}

#[derive(Debug, Clone)]
struct Pair {
    hessian: Vec<f64>,
    gradient_cov: Vec<f64>,
    signs: Vec<f64>,
    contrasts: Vec<f64>,
}

/// One simulated noise in standard units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw<'a> {
    /// Sign by which the matrices and the deviations are multiplied: 1 or -1.
    pub(super) sign: f64,
    pub(super) hessian: &'a [f64],
    pub(super) gradient_cov: &'a [f64],
    /// By true direction: whether Σ has more (1) or less (-1) there than expected.
    pub(super) deviations: &'a [f64],
    /// Orthonormal contrasts in no particular direction, one after another.
    pub(super) contrasts: &'a [f64],
}

impl MatrixDraws {
    /// Draws for matrices of this dimension, by laws whose scale does not matter; `None`: a Hessian without noise.
    pub fn new(dim: usize, hessian: Option<MatrixLaw>, gradient_cov: MatrixLaw) -> Result<Self> {
        let gaussian = MatrixLaw::Gaussian { std_dev: 1.0 };
        let n_pairs = (DIRECTIONS / (2 * dim.max(1))).max(1);
        let pairs = (0..n_pairs as u64).map(|pair| {
            // A stream for each: whether the Hessian has noise changes nothing for the others.
            let [of_hessian, of_cov, of_signs, of_contrasts] = [0, 1, 2, 3].map(|kind| 4 * pair + kind);
            let hessian = match hessian {
                Some(law) => standard(law, dim, of_hessian)?,
                None => vec![0.0; dim * dim],
            };
            let mut signs = standard(gaussian, dim, of_signs)?;
            signs.truncate(dim);
            for sign in &mut signs {
                *sign = sign.signum();
            }
            // The eigenvectors of a Gaussian matrix are uniform among rotations.
            let rotation = standard(gaussian, dim, of_contrasts)?;
            Ok(Pair {
                hessian,
                gradient_cov: standard(gradient_cov, dim, of_cov)?,
                signs,
                contrasts: Eigen::new(&rotation, dim, "a simulated rotation")?.vectors,
            })
        });
        let pairs = pairs.collect::<Result<_>>()?;
        Ok(Self { dim, pairs })
    }

    /// Dimension of the matrices.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// The draws.
    pub(super) fn iter(&self) -> impl Iterator<Item = Draw<'_>> {
        self.pairs.iter().flat_map(|pair| {
            [1.0, -1.0].map(|sign| Draw {
                sign,
                hessian: &pair.hessian,
                gradient_cov: &pair.gradient_cov,
                deviations: &pair.signs,
                contrasts: &pair.contrasts,
            })
        })
    }
}

/// One draw in standard units.
fn standard(law: MatrixLaw, dim: usize, stream: u64) -> Result<Vec<f64>> {
    let std_dev = law.isometric_std_dev(dim);
    let mut generator = SimulationGenerator::new(SEED, stream);
    let mut draw = law.on(dim)?.sample(&mut generator);
    vector::divide(&mut draw, std_dev);
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
        assert_eq!(with.iter().count(), without.iter().count());
        for (draw, other) in with.iter().zip(without.iter()) {
            assert_eq!(draw.sign.to_bits(), other.sign.to_bits());
            assert_eq!(draw.gradient_cov, other.gradient_cov);
            assert_eq!(draw.deviations, other.deviations);
            assert_eq!(draw.contrasts, other.contrasts);
            assert!(other.hessian.iter().all(|z| z.abs() < f64::MIN_POSITIVE));
            assert_ne!(draw.hessian, draw.gradient_cov);
        }
    }
}
