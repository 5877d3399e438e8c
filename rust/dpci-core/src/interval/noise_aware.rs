//! Estimates of the matrices behind noisy ones, and how far they can be wrong (docs/proofs/intervals.md, "Noise in the matrices").
//!
//! The noise of both matrices is invariant under rotations. So the eigenvectors `u_i` of the released Hessian are random around the
//! true ones `w_j`, with overlaps `(u_iᵀw_j)²` whose law depends on the true eigenvalues alone. These are estimated from the released
//! ones; overlaps are then simulated, and every function of the true matrices is replaced by its mean along each released direction.
//! The same simulated releases go through the whole estimation again, which shows how far it can be from the truth.

use super::MatrixDraws;
use super::directions::{along, diagonal, diagonal_of, rotate_back, rotate_diagonal, sandwich, weighted};
use super::level_law::LevelLaw;
use super::little_curvature::Posterior;
use super::rare_columns::{Gradients, shortfalls};
use super::spectrum::{Eigenvalues, Spectrum};
use crate::error::check_length;
use crate::linalg::{Eigen, add_diagonal, product_transposed, vector};
use crate::noise::{LevelTotals, MatrixLaw, NoiseLaw};
use crate::privacy::Perturbation;
use crate::{Error, Result};

/// Least share of the variance that is expected: below it the noise of the gradient covariance is seen.
pub(super) const LEAST_SHARE: f64 = 0.1;

/// Least shape of the law of the true variance over the estimated one: an exponential law.
pub(super) const LEAST_SHAPE: f64 = 1.0;

/// Standard deviation of Σ around what is expected of it, as a share of that.
pub(super) const DEVIATION: f64 = 0.5;

/// Standard errors by which Σ must be rounder than the data part of the Hessian before that is believed: for a loss that is a likelihood, and
/// for others.
const BELIEF: [f64; 2] = [2.0, 0.5];

/// Released matrices, and the public values that say what noise is in them.
#[derive(Debug, Clone)]
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
    /// Whether the loss is the negative logarithm of a likelihood: Σ is then a multiple of the Hessian's data part if the model holds.
    pub is_likelihood: bool,
    /// Whether the data part of the Hessian may vanish where Σ does not ([`crate::loss::Loss::may_be_flat`]).
    pub may_be_flat: bool,
    /// Bounds on the gradients of single records; `None` for losses of several predictors.
    pub gradients: Option<Gradients<'a>>,
    /// The level totals among the entries of the Hessian.
    pub levels: Option<&'a LevelTotals>,
}

/// The estimated law, in the coordinates of the data: matrices are row-major and symmetric.
#[derive(Debug)]
pub(super) struct Estimate {
    /// Covariance of the sampling error; noise can make it indefinite.
    pub(super) sampling: Vec<f64>,
    /// Lower bound on the sampling covariance along every contrast.
    pub(super) least_sampling: Vec<f64>,
    /// Multiplier of the coefficients' noise.
    pub(super) noise: Vec<f64>,
    /// Mean of the true variance over the first estimate, by which that was multiplied.
    pub(super) factor: f64,
    /// Shape of the gamma law of the true variance over the estimated one.
    pub(super) shape: f64,
}

/// Parts of the law, in orthonormal directions.
pub(super) struct Along<'a> {
    /// The directions, one after another.
    pub(super) vectors: &'a [f64],
    /// `H⁻¹ΣH⁻¹`.
    pub(super) sampling: Vec<f64>,
    /// The expected diagonal of that.
    pub(super) least: Vec<f64>,
    /// The diagonal of `H⁻¹`.
    pub(super) mean: Vec<f64>,
    /// The diagonal of `H⁻²`.
    pub(super) square: Vec<f64>,
    /// Multiplier of the noise of output perturbation.
    pub(super) output: f64,
    /// [`Estimate::factor`].
    pub(super) factor: f64,
    /// [`Estimate::shape`].
    pub(super) shape: f64,
}

/// Means along the released directions, of functions of the true matrices.
struct Directions {
    /// `E uᵀH⁻¹u`.
    mean: Vec<f64>,
    /// `E uᵀH⁻²u`.
    square: Vec<f64>,
    /// The same with equal hidden eigenvalues.
    level: Vec<f64>,
    /// `E uᵀH⁻¹ΣH⁻¹u` with these and the expected covariance.
    sandwich: Vec<f64>,
}

impl NoisyMatrices<'_> {
    /// Estimates the law of the error.
    pub(super) fn estimate(&self, draws: &MatrixDraws) -> Result<Estimate> {
        if let Some(law) = LevelLaw::new(self)? {
            return law.estimate(self);
        }
        if let Some(posterior) = Posterior::new(self, draws)? {
            return Ok(posterior.estimate(self, draws));
        }
        let (released, spectrum) = self.spectrum(draws)?;
        let rotated = sandwich(self.gradient_cov, &released.vectors, draws.dim());
        let covariance = self.expected_covariance(&spectrum.overlaps, &spectrum.eigenvalues.equal, &rotated);
        let directions = self.directions(&spectrum.overlaps, &spectrum.eigenvalues, &covariance);
        let (factor, shape) = self.ratio(&spectrum, &covariance);
        let scaled = |values: &[f64], scale: f64| values.iter().map(|v| v * scale).collect();
        let sampling = self.shrink(&directions.level, &directions.sandwich, &rotated);
        Ok(self.assemble(&Along {
            vectors: &released.vectors,
            sampling: scaled(&sampling, factor),
            least: scaled(&directions.sandwich, factor),
            mean: scaled(&directions.mean, factor.sqrt()),
            square: scaled(&directions.square, factor),
            output: factor.sqrt(),
            factor,
            shape,
        }))
    }

    /// The law in the coordinates of the data.
    pub(super) fn assemble(&self, along: &Along<'_>) -> Estimate {
        let dim = along.least.len();
        let back = |matrix: &[f64], scale: f64| {
            let mut out = rotate_back(matrix, along.vectors, dim);
            vector::scale(&mut out, scale);
            out
        };
        let mut sampling = back(&along.sampling, self.n_samples.recip());
        let shortfalls = shortfalls(self, along, &sampling);
        for (variance, more) in sampling.iter_mut().step_by(dim + 1).zip(shortfalls) {
            *variance += more;
        }
        let noise = match self.perturbation {
            Perturbation::Objective => {
                // No eigenvalue of the true inverse is above that of the strong convexity.
                let greatest = self.strong_convexity.recip();
                let squares = along.square.iter();
                let mut roots: Vec<f64> = squares.map(|m| m.sqrt().min(greatest)).collect();
                if self.is_uneven() {
                    // The released directions tell the mean of the inverse. What is beyond it lies in directions that they do not tell, and
                    // has the mean variance of all coordinates: a quiet coordinate is not taken for all.
                    let variance = self.law.coordinate_variance() / self.n_samples.powi(2);
                    let mut beyond = Vec::with_capacity(dim);
                    for (root, mean) in roots.iter_mut().zip(&along.mean) {
                        let known = root.min(*mean);
                        beyond.push((*root * *root - known * known) * variance);
                        *root = known;
                    }
                    for (entry, more) in sampling.iter_mut().zip(back(&diagonal(&beyond), 1.0)) {
                        *entry += more;
                    }
                }
                back(&diagonal(&roots), self.n_samples.recip())
            }
            Perturbation::Output => diagonal(&vec![along.output; dim]),
        };
        let least = diagonal(&along.least);
        Estimate {
            sampling,
            least_sampling: back(&least, LEAST_SHARE / self.n_samples),
            noise,
            factor: along.factor,
            shape: along.shape,
        }
    }

    /// Hessian and gradient covariance as they are estimated: with the eigenvalues of the true Hessian, and the covariance shrunk to what is
    /// expected of it.
    pub fn estimated(&self, draws: &MatrixDraws) -> Result<[Vec<f64>; 2]> {
        let dim = draws.dim();
        if let Some(law) = LevelLaw::new(self)? {
            return law.matrices(self);
        }
        if let Some(posterior) = Posterior::new(self, draws)? {
            return Ok(posterior.matrices(self));
        }
        let (released, spectrum) = self.spectrum(draws)?;
        let rotated = sandwich(self.gradient_cov, &released.vectors, dim);
        let covariance = self.expected_covariance(&spectrum.overlaps, &spectrum.eigenvalues.equal, &rotated);
        let gradient_cov = self.shrink(&vec![1.0; dim], &covariance, &rotated);
        let mut hessian = rotate_back(&diagonal(&spectrum.eigenvalues.unequal), &released.vectors, dim);
        add_diagonal(&mut hessian, dim, self.strong_convexity);
        Ok([hessian, rotate_back(&gradient_cov, &released.vectors, dim)])
    }

    /// Eigenvalues and eigenvectors of the released Hessian without its least part, and what they say of the true eigenvalues.
    fn spectrum<'d>(&self, draws: &'d MatrixDraws) -> Result<(Eigen, Spectrum<'d>)> {
        let dim = draws.dim();
        self.check(dim)?;
        let mut data_part = self.hessian.to_vec();
        add_diagonal(&mut data_part, dim, -self.strong_convexity);
        let released = Eigen::new(&data_part, dim, "the released Hessian")?;
        let noise = self.hessian_noise.map_or(0.0, |law| law.isometric_std_dev(dim));
        let spectrum = Spectrum::new(&released.values, noise, self.may_be_flat, draws)?;
        Ok((released, spectrum))
    }

    pub(super) fn check(&self, dim: usize) -> Result<()> {
        for (name, matrix) in [("hessian", self.hessian), ("gradient_cov", self.gradient_cov)] {
            check_length(name, dim * dim, matrix.len())?;
            if !matrix.iter().all(|entry| entry.is_finite()) {
                return Err(Error::NotPositiveDefinite("a released matrix"));
            }
        }
        Ok(())
    }

    /// Whether the coordinates of the noise have different variances.
    fn is_uneven(&self) -> bool {
        self.law.blocks().is_some() || self.law.relative_std_devs().is_some()
    }

    /// Standard deviation of an isometric coordinate of the gradient covariance's noise.
    pub(super) fn gradient_cov_std_dev(&self, dim: usize) -> f64 {
        self.gradient_cov_noise.isometric_std_dev(dim)
    }

    /// The eigenvalues of Σ along those of the Hessian: a mixture of a multiple of its data part (the information equality) and of the
    /// identity, with the released trace. How much of the second comes from the released diagonal.
    fn expected_covariance(&self, overlaps: &[f64], eigenvalues: &[f64], gradient_cov: &[f64]) -> Vec<f64> {
        let dim = eigenvalues.len();
        let size = dim as f64;
        let noise = self.gradient_cov_std_dev(dim);
        let found = diagonal_of(gradient_cov, dim);
        let trace = found.iter().sum::<f64>().max(noise * size.sqrt());
        let shift = self.strong_convexity - self.l2_strength;
        let data_trace: f64 = eigenvalues.iter().map(|h| h + shift).sum();
        if !(data_trace > 0.0) {
            return vec![trace / size; dim];
        }
        let multiple = trace / data_trace;
        let equality: Vec<f64> = eigenvalues.iter().map(|h| multiple * (h + shift)).collect();
        let round = trace / size;
        // Least squares through the diagonal, whose entries also deviate from the model.
        let (mut product, mut square) = (0.0, 0.0);
        for (expected, found) in along(overlaps, &equality).iter().zip(&found) {
            let variance = noise * noise + expected * expected;
            product += (round - expected) * (found - expected) / variance;
            square += (round - expected).powi(2) / variance;
        }
        let share = if square > 0.0 {
            let believed = BELIEF[usize::from(!self.is_likelihood)];
            (product / square - believed / square.sqrt()).clamp(0.0, 1.0)
        } else {
            0.0
        };
        equality.iter().map(|e| (1.0 - share) * e + share * round).collect()
    }

    fn directions(&self, overlaps: &[f64], eigenvalues: &Eigenvalues, covariance: &[f64]) -> Directions {
        let squares = self.inverse_squares(&eigenvalues.unequal);
        let inverses: Vec<f64> = squares.iter().map(|m| m.sqrt()).collect();
        let levels = self.inverse_squares(&eigenvalues.equal);
        let sandwiches: Vec<f64> = levels.iter().zip(covariance).map(|(m, s)| m * s).collect();
        Directions {
            mean: along(overlaps, &inverses),
            square: along(overlaps, &squares),
            level: along(overlaps, &levels),
            sandwich: along(overlaps, &sandwiches),
        }
    }

    /// The eigenvalues of `H⁻²`.
    fn inverse_squares(&self, eigenvalues: &[f64]) -> Vec<f64> {
        eigenvalues
            .iter()
            .map(|h| (h + self.strong_convexity).powi(-2))
            .collect()
    }

    /// The posterior mean of `H⁻¹ΣH⁻¹` in the released directions, given the released Σ there: entry by entry, the prior is what
    /// is expected, with a standard deviation of half that size.
    pub(super) fn shrink(&self, level: &[f64], sandwich: &[f64], gradient_cov: &[f64]) -> Vec<f64> {
        let dim = level.len();
        let noise = self.gradient_cov_std_dev(dim).powi(2);
        let mut out = vec![0.0; dim * dim];
        for i in 0..dim {
            for k in 0..dim {
                let entry = i * dim + k;
                let expected = if i == k { sandwich[i] } else { 0.0 };
                let found = (level[i] * level[k]).sqrt() * gradient_cov[entry];
                let prior = DEVIATION.powi(2) * sandwich[i] * sandwich[k];
                let noise = noise * level[i] * level[k];
                let weight = if noise > 0.0 { prior / (prior + noise) } else { 1.0 };
                out[entry] = expected + weight * (found - expected);
            }
        }
        out
    }

    /// Mean and shape of the law of the true variance over the estimated one, from the simulated releases.
    fn ratio(&self, spectrum: &Spectrum<'_>, covariance: &[f64]) -> (f64, f64) {
        let dim = covariance.len();
        let noise_in_cov = self.gradient_cov_std_dev(dim);
        let n = self.n_samples;
        let noise = self.law.coordinate_variance();
        let squares = self.inverse_squares(&spectrum.eigenvalues.unequal);
        let levels = self.inverse_squares(&spectrum.eigenvalues.equal);
        let noise_of = |weights: &[f64], squares: &[f64]| match self.perturbation {
            Perturbation::Objective => weighted(weights, squares) * noise / (n * n),
            Perturbation::Output => noise,
        };
        let (mut sum, mut sum_of_squares, mut count) = (0.0, 0.0, 0.0);
        for release in &spectrum.simulated {
            let draw = release.draw;
            let truth: Vec<f64> = covariance
                .iter()
                .zip(draw.deviations)
                .map(|(s, deviation)| s * (1.0 + draw.sign * DEVIATION * deviation))
                .collect();
            let mut rotated = rotate_diagonal(&truth, &release.vectors, dim);
            for (entry, z) in rotated.iter_mut().zip(draw.gradient_cov) {
                *entry += draw.sign * noise_in_cov * z;
            }
            let expected = self.expected_covariance(&spectrum.overlaps, &release.eigenvalues.equal, &rotated);
            let found = self.directions(&spectrum.overlaps, &release.eigenvalues, &expected);
            let shrunk = self.shrink(&found.level, &found.sandwich, &rotated);
            // Row c: contrast c in the released directions.
            let inside = product_transposed(draw.contrasts, &release.vectors, dim);
            let half = product_transposed(&inside, &shrunk, dim);
            let rows = draw.contrasts.chunks_exact(dim).zip(inside.chunks_exact(dim));
            for ((contrast, inside), half) in rows.zip(half.chunks_exact(dim)) {
                let weights = |c: &[f64]| -> Vec<f64> { c.iter().map(|x| x * x).collect() };
                let (true_weights, weights) = (weights(contrast), weights(inside));
                let true_sampling: f64 = true_weights
                    .iter()
                    .zip(levels.iter().zip(&truth))
                    .map(|(w, (m, s))| w * m * s)
                    .sum();
                let sampling = vector::dot(half, inside);
                let least = LEAST_SHARE * weighted(&weights, &found.sandwich);
                // Not f64::max, which would turn an overflow's NaN into certainty.
                let sampling = if sampling < least { least } else { sampling };
                let ratio = (true_sampling / n + noise_of(&true_weights, &squares))
                    / (sampling / n + noise_of(&weights, &found.square));
                sum += ratio;
                sum_of_squares += ratio * ratio;
                count += 1.0;
            }
        }
        let mean = sum / count;
        let variance = (sum_of_squares / count - mean * mean).max(0.0);
        (mean, (mean * mean / variance).max(LEAST_SHAPE))
    }
}

#[cfg(test)]
mod tests;
