//! What noisy matrices say of those behind them, and how far that can be wrong (docs/method.md, "Noise in the matrices").
//!
//! The noise of both matrices is invariant under rotations. So the eigenvectors `u_i` of the released Hessian are random around the
//! true ones `w_j`, with weights `(u_iᵀw_j)²` whose law depends on the true eigenvalues alone. These are estimated from the released
//! ones; weights are then simulated, and every function of the true matrices is replaced by its mean along each released direction.

use super::MatrixDraws;
use crate::linalg::{Eigen, add_diagonal, product_transposed};
use crate::noise::{MatrixLaw, NoiseLaw};
use crate::privacy::Perturbation;
use crate::{Error, Result};

/// Least share of the variance that the information equality expects: below it the noise of the gradient covariance is seen.
const LEAST_SHARE: f64 = 0.1;

/// Least shape of the law of the true variance over the estimated one: an exponential law.
const LEAST_SHAPE: f64 = 1.0;

/// Released matrices, and the public values that say what noise is in them.
#[derive(Debug, Clone, Copy)]
pub struct NoisyMatrices<'a> {
    /// Hessian with the regulariser's part, not projected; row-major.
    pub hessian: &'a [f64],
    /// Covariance of the gradients, not projected.
    pub gradient_cov: &'a [f64],
    /// Noise of the Hessian; `None` where its data part is zero for every data set.
    pub hessian_noise: Option<MatrixLaw>,
    /// Noise of the gradient covariance.
    pub gradient_cov_noise: MatrixLaw,
    /// λ.
    pub l2_strength: f64,
    /// Least eigenvalue that the true Hessian can have, at least λ.
    pub strong_convexity: f64,
    /// Public number of samples.
    pub n_samples: f64,
    /// Where the noise of the coefficients enters.
    pub perturbation: Perturbation,
    /// Law of that noise.
    pub law: NoiseLaw,
}

/// The estimated law, in the coordinates of the data: matrices are row-major and symmetric.
#[derive(Debug)]
pub(super) struct Estimate {
    /// Covariance of the sampling error; noise can make it indefinite.
    pub(super) sampling: Vec<f64>,
    /// What it is at least, along every contrast.
    pub(super) least_sampling: Vec<f64>,
    /// What the noise of the coefficients is multiplied with.
    pub(super) noise: Vec<f64>,
    /// Shape of the gamma law of the true variance over the estimated one.
    pub(super) shape: f64,
}

/// Means along the released directions, of functions of the true matrices.
struct Directions {
    /// Eigenvectors of the released Hessian, one after another.
    vectors: Vec<f64>,
    /// `E uᵀH⁻²u`.
    square: Vec<f64>,
    /// `E uᵀH⁻¹ΣH⁻¹u` with the covariance that the information equality expects.
    sandwich: Vec<f64>,
    /// Standard deviation of an isometric coordinate of the gradient covariance's noise.
    noise: f64,
}

/// One simulated release of a Hessian that is diagonal: its eigenvectors, one after another, and the noise of the covariance.
struct Simulated<'a> {
    vectors: Vec<f64>,
    gradient_cov_noise: (f64, &'a [f64]),
}

impl NoisyMatrices<'_> {
    /// Estimates the law of the error.
    ///
    /// # Errors
    /// [`Error::Length`] for matrices of another size than the draws, [`Error::NotPositiveDefinite`] for entries that are not finite.
    pub(super) fn estimate(&self, draws: &MatrixDraws) -> Result<Estimate> {
        let dim = draws.dim();
        self.check(dim)?;
        let noise = self.gradient_cov_noise.isometric_std_dev(dim);
        let mut data_part = self.hessian.to_vec();
        add_diagonal(&mut data_part, dim, -self.strong_convexity);
        let mut released = Eigen::new(&data_part, dim, "the released Hessian")?;
        let hessian_noise = self
            .hessian_noise
            .map_or(0.0, |law| law.isometric_std_dev(dim));
        // The trace has the noise of √d coordinates: what is less than that cannot be told from nothing.
        let root = (dim as f64).sqrt();
        let trace: f64 = released.values.iter().sum();
        let missing = (hessian_noise * root - trace).max(0.0) / dim as f64;
        for l in &mut released.values {
            *l += missing;
        }

        let (simulated, eigenvalues) = simulate(&released.values, hessian_noise, draws)?;
        let inverse: Vec<f64> = eigenvalues
            .iter()
            .map(|h| (h + self.strong_convexity).recip())
            .collect();
        let covariance = self.expected_covariance(&eigenvalues, noise * root);
        let directions =
            Directions::new(released.vectors, &simulated, [&inverse, &covariance], noise);
        let (mean, shape) = self.ratios(&directions, &simulated, [&inverse, &covariance]);

        let rotated = rotate(self.gradient_cov, &directions.vectors, dim);
        let sampling = directions.shrink(&rotated);
        // A ratio below 1 says that the estimate is too long; half of it is believed (docs/method.md).
        let factor = if mean < 1.0 { mean.sqrt() } else { mean };
        let back = |matrix: &[f64], scale: f64| {
            let mut out = rotate_back(matrix, &directions.vectors, dim);
            for entry in &mut out {
                *entry *= scale;
            }
            out
        };
        let noise = match self.perturbation {
            Perturbation::Objective => {
                let roots: Vec<f64> = directions.square.iter().map(|m| m.sqrt()).collect();
                back(&diagonal(&roots), factor.sqrt() / self.n_samples)
            }
            Perturbation::Output => diagonal(&vec![factor.sqrt(); dim]),
        };
        let least = diagonal(&directions.sandwich);
        Ok(Estimate {
            sampling: back(&sampling, factor / self.n_samples),
            least_sampling: back(&least, LEAST_SHARE * factor / self.n_samples),
            noise,
            shape,
        })
    }

    fn check(&self, dim: usize) -> Result<()> {
        for (name, matrix) in [
            ("hessian", self.hessian),
            ("gradient_cov", self.gradient_cov),
        ] {
            if matrix.len() != dim * dim {
                return Err(Error::Length {
                    name,
                    expected: dim * dim,
                    got: matrix.len(),
                });
            }
            if !matrix.iter().all(|entry| entry.is_finite()) {
                return Err(Error::NotPositiveDefinite("a released matrix"));
            }
        }
        Ok(())
    }

    /// The eigenvalues of Σ along those of the Hessian, if Σ is a multiple of its data part (the information equality) with the
    /// released trace; of the identity where that part is zero for every data set.
    fn expected_covariance(&self, eigenvalues: &[f64], trace_noise: f64) -> Vec<f64> {
        let dim = eigenvalues.len();
        let released: f64 = self.gradient_cov.iter().step_by(dim + 1).sum();
        let trace = released.max(trace_noise);
        let shift = self.strong_convexity - self.l2_strength;
        let data_trace: f64 = eigenvalues.iter().map(|h| h + shift).sum();
        if data_trace > 0.0 {
            let multiple = trace / data_trace;
            eigenvalues.iter().map(|h| multiple * (h + shift)).collect()
        } else {
            vec![trace / dim as f64; dim]
        }
    }

    /// Mean and shape of the law of the true variance over the estimated one, from the simulated releases and along all true directions.
    fn ratios(
        &self,
        directions: &Directions,
        simulated: &[Simulated<'_>],
        [inverse, covariance]: [&[f64]; 2],
    ) -> (f64, f64) {
        let dim = inverse.len();
        let noise = self.law.coordinate_variance();
        let n = self.n_samples;
        let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
        for release in simulated {
            let expected = mix(&release.vectors, &directions.sandwich);
            let square = mix(&release.vectors, &directions.square);
            let (sign, unit) = release.gradient_cov_noise;
            let mut rotated = rotate_diagonal(covariance, &release.vectors, dim);
            for (entry, z) in rotated.iter_mut().zip(unit) {
                *entry += sign * directions.noise * z;
            }
            let shrunk = directions.shrink(&rotated);
            // Row i: entry i of the shrunk matrix's product with the eigenvectors, which are rows.
            let half = product_transposed(&shrunk, &transposed(&release.vectors, dim), dim);
            for j in 0..dim {
                let sampling: f64 = (0..dim)
                    .map(|i| release.vectors[i * dim + j] * half[i * dim + j])
                    .sum();
                let sampling = sampling.max(LEAST_SHARE * expected[j]);
                let (true_noise, found_noise) = match self.perturbation {
                    Perturbation::Objective => {
                        let per_record = noise / (n * n);
                        (inverse[j].powi(2) * per_record, square[j] * per_record)
                    }
                    Perturbation::Output => (noise, noise),
                };
                let truth = inverse[j].powi(2) * covariance[j] / n + true_noise;
                let ratio = truth / (sampling / n + found_noise);
                sum += ratio;
                squares += ratio * ratio;
                count += 1.0;
            }
        }
        let mean = sum / count;
        let variance = (squares / count - mean * mean).max(0.0);
        (mean, (mean * mean / variance).max(LEAST_SHAPE))
    }
}

impl Directions {
    fn new(
        vectors: Vec<f64>,
        simulated: &[Simulated<'_>],
        [inverse, covariance]: [&[f64]; 2],
        noise: f64,
    ) -> Self {
        let squares: Vec<f64> = inverse.iter().map(|m| m * m).collect();
        let sandwiches: Vec<f64> = squares.iter().zip(covariance).map(|(m, s)| m * s).collect();
        let mean = |values: &[f64]| {
            let mut means = vec![0.0; values.len()];
            for release in simulated {
                for (mean, vector) in means
                    .iter_mut()
                    .zip(release.vectors.chunks_exact(values.len()))
                {
                    *mean += vector
                        .iter()
                        .zip(values)
                        .map(|(w, v)| w * w * v)
                        .sum::<f64>();
                }
            }
            for m in &mut means {
                *m /= simulated.len() as f64;
            }
            means
        };
        Self {
            vectors,
            square: mean(&squares),
            sandwich: mean(&sandwiches),
            noise,
        }
    }

    /// The posterior mean of `H⁻¹ΣH⁻¹` in the released directions, given the released Σ there: entry by entry, the prior is what
    /// the information equality expects, with a standard deviation of that size.
    fn shrink(&self, gradient_cov: &[f64]) -> Vec<f64> {
        let dim = self.square.len();
        let mut out = vec![0.0; dim * dim];
        for i in 0..dim {
            for k in 0..dim {
                let entry = i * dim + k;
                let expected = if i == k { self.sandwich[i] } else { 0.0 };
                let found = (self.square[i] * self.square[k]).sqrt() * gradient_cov[entry];
                let prior = self.sandwich[i] * self.sandwich[k];
                let noise = self.noise.powi(2) * self.square[i] * self.square[k];
                let weight = if noise > 0.0 {
                    prior / (prior + noise)
                } else {
                    1.0
                };
                out[entry] = expected + weight * (found - expected);
            }
        }
        out
    }
}

/// Simulates releases of the Hessian's data part, whose released eigenvalues these are, and corrects the eigenvalues by what noise does
/// to them on average.
fn simulate<'a>(
    released: &[f64],
    noise: f64,
    draws: &'a MatrixDraws,
) -> Result<(Vec<Simulated<'a>>, Vec<f64>)> {
    let dim = released.len();
    let first = onto_simplex(released);
    let mut corrected: Vec<f64> = first.iter().zip(released).map(|(h, l)| h + l).collect();
    let mut simulated = Vec::with_capacity(draws.len());
    for (sign, hessian, gradient_cov) in draws.signed() {
        let mut matrix: Vec<f64> = hessian.iter().map(|z| sign * noise * z).collect();
        for (entry, h) in matrix.iter_mut().step_by(dim + 1).zip(&first) {
            *entry += h;
        }
        let eigen = Eigen::new(&matrix, dim, "a simulated Hessian")?;
        for (c, l) in corrected.iter_mut().zip(&eigen.values) {
            *c -= l / draws.len() as f64;
        }
        simulated.push(Simulated {
            vectors: eigen.vectors,
            gradient_cov_noise: (sign, gradient_cov),
        });
    }
    let mut eigenvalues = onto_simplex(&corrected);
    eigenvalues.sort_unstable_by(f64::total_cmp);
    Ok((simulated, eigenvalues))
}

/// The nearest values that are at least 0 and have the same sum, which noise barely changes; zeros if that is negative.
fn onto_simplex(values: &[f64]) -> Vec<f64> {
    let total: f64 = values.iter().sum();
    if total <= 0.0 {
        return vec![0.0; values.len()];
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut threshold) = (0.0, 0.0);
    for (i, value) in sorted.iter().enumerate() {
        sum += value;
        let candidate = (sum - total) / (i as f64 + 1.0);
        if value - candidate <= 0.0 {
            break;
        }
        threshold = candidate;
    }
    values.iter().map(|v| (v - threshold).max(0.0)).collect()
}

/// `Σ_i u_ij² values_i` for every j: what a quadratic form with these values along the eigenvectors is along the axes.
fn mix(vectors: &[f64], values: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; values.len()];
    for (vector, value) in vectors.chunks_exact(values.len()).zip(values) {
        for (o, u) in out.iter_mut().zip(vector) {
            *o += value * u * u;
        }
    }
    out
}

/// `U A Uᵀ` for eigenvectors that are the rows of U, and a symmetric A.
fn rotate(matrix: &[f64], vectors: &[f64], dim: usize) -> Vec<f64> {
    product_transposed(&product_transposed(vectors, matrix, dim), vectors, dim)
}

/// `Uᵀ A U`.
fn rotate_back(matrix: &[f64], vectors: &[f64], dim: usize) -> Vec<f64> {
    rotate(matrix, &transposed(vectors, dim), dim)
}

/// `U diag(values) Uᵀ`.
fn rotate_diagonal(values: &[f64], vectors: &[f64], dim: usize) -> Vec<f64> {
    let scaled: Vec<f64> = vectors
        .chunks_exact(dim)
        .flat_map(|vector| vector.iter().zip(values).map(|(u, v)| u * v))
        .collect();
    product_transposed(&scaled, vectors, dim)
}

fn transposed(matrix: &[f64], dim: usize) -> Vec<f64> {
    (0..dim * dim)
        .map(|entry| matrix[entry % dim * dim + entry / dim])
        .collect()
}

fn diagonal(values: &[f64]) -> Vec<f64> {
    let dim = values.len();
    let mut out = vec![0.0; dim * dim];
    for (entry, value) in out.iter_mut().step_by(dim + 1).zip(values) {
        *entry = *value;
    }
    out
}
