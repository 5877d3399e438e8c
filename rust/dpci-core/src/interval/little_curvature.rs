//! Curvature that its noise hides, where the covariance of the gradients shows the directions (docs/proofs/intervals.md, "Little curvature").
//!
//! Huber's loss, quantiles and narrow hinges have curvature in a few rows and slopes in most. Σ is then seen long before the data part D of
//! the Hessian. A posterior of D around a multiple of Σ takes the place of the simulated releases: the law of the error is a mean over all
//! that D can be.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use rand::RngExt;
use statrs::function::erf::erfc_inv;

use super::MatrixDraws;
use super::curvature_prior::{DRAWS, Prior};
use super::directions::{along, diagonal, diagonal_of, rotate_back, sandwich, trace, weighted};
use super::noise_aware::{Along, DEVIATION, Estimate, LEAST_SHAPE, NoisyMatrices};
use super::spectrum::onto_simplex;
use crate::Result;
use crate::linalg::{Eigen, add_diagonal, product_transposed, transposed, vector};
use crate::noise::SimulationGenerator;
use crate::privacy::Perturbation;

/// How much clearer the trace of Σ must be than that of D: in standard deviations of its noise, and over those of D.
const CLEARER: [f64; 2] = [2.0, 2.0];

/// Public, so that the same release always has the same intervals.
const SEED: u64 = 0x6470_6370;

/// The posterior of D in directions in which its mean is diagonal.
pub(super) struct Posterior {
    dim: usize,
    /// Directions, one after another.
    vectors: Vec<f64>,
    /// Mean eigenvalues.
    mean: Vec<f64>,
    /// Eigenvalues, draw by draw.
    curvatures: Vec<f64>,
    /// Variances of the entries of D off the diagonal; 0 on it.
    turns: Vec<f64>,
    /// Σ in the directions, shrunk towards its diagonal.
    gradient_cov: Vec<f64>,
    /// Its diagonal, draw by draw.
    variances: Vec<f64>,
}

impl Posterior {
    /// `None` where the loss is a likelihood, whose Σ is D with more noise, or Σ is not seen much better than D.
    pub(super) fn new(matrices: &NoisyMatrices<'_>, draws: &MatrixDraws) -> Result<Option<Self>> {
        let dim = draws.dim();
        matrices.check(dim)?;
        let Some(law) = matrices.hessian_noise.filter(|_| !matrices.is_likelihood) else {
            return Ok(None);
        };
        let noise = law.isometric_std_dev(dim);
        let cov_noise = matrices.gradient_cov_std_dev(dim);
        let mut data_part = matrices.hessian.to_vec();
        add_diagonal(&mut data_part, dim, -matrices.strong_convexity);
        let [clear, clearer] = CLEARER;
        let seen = trace(matrices.gradient_cov, dim) / cov_noise;
        let is_clearer = seen >= clear * (dim as f64).sqrt() && seen >= clearer * trace(&data_part, dim) / noise;
        if !is_clearer {
            return Ok(None);
        }
        let prior = Prior::of(matrices.may_be_flat);
        let released = Eigen::new(matrices.gradient_cov, dim, "the released covariance")?;
        // Above 0, so that no multiple of Σ is without curvature anywhere.
        let least = 1e-3 * trace(matrices.gradient_cov, dim) / dim as f64;
        let eigenvalues: Vec<f64> = onto_simplex(&released.values)
            .into_iter()
            .map(|s| s.max(least))
            .collect();
        let rotated = sandwich(&data_part, &released.vectors, dim);
        let found = diagonal_of(&rotated, dim);
        let convexity = matrices.strong_convexity;
        let ratios = prior.ratios(&eigenvalues, &found, noise, convexity);
        let posterior = Self::around(&prior, &released.vectors, &eigenvalues, &rotated, &ratios, noise)?;
        Ok(Some(posterior.with_covariance(matrices)))
    }

    /// Entry by entry D is normal around cΣ, and so is its release around D.
    fn around(
        prior: &Prior,
        axes: &[f64],
        eigenvalues: &[f64],
        found: &[f64],
        ratios: &[f64],
        noise: f64,
    ) -> Result<Self> {
        let dim = eigenvalues.len();
        let curved = ratios.iter().filter(|c| **c > 0.0);
        let ratio = curved.clone().sum::<f64>() / curved.count().max(1) as f64;
        let before = |i: usize, k: usize| (prior.deviation * ratio).powi(2) * eigenvalues[i] * eigenvalues[k];
        let weight = |i: usize, k: usize| before(i, k) / (before(i, k) + noise * noise);
        let mut expected = vec![0.0; dim * dim];
        let mut after = vec![0.0; dim * dim];
        for (i, eigenvalue) in eigenvalues.iter().enumerate() {
            for k in 0..dim {
                let prior_mean = if i == k { ratio * eigenvalue } else { 0.0 };
                let entry = i * dim + k;
                expected[entry] = prior_mean + weight(i, k) * (found[entry] - prior_mean);
                after[entry] = weight(i, k) * noise * noise;
            }
        }
        let turned = Eigen::new(&expected, dim, "the expected Hessian")?;
        let squares: Vec<f64> = turned.vectors.iter().map(|q| q * q).collect();
        let mut turns = sandwich(&after, &squares, dim);
        let mut std_devs = vec![0.0; dim];
        for (i, std_dev) in std_devs.iter_mut().enumerate() {
            *std_dev = std::mem::take(&mut turns[i * dim + i]).sqrt();
        }
        // An entry off the diagonal has half the variance of its isometric coordinate.
        vector::scale(&mut turns, 0.5);
        // How far an eigenvalue follows c, as far as its own release does not tell it.
        let follows: Vec<f64> = squares
            .chunks_exact(dim)
            .map(|row| {
                let terms = row.iter().enumerate();
                terms.map(|(j, q)| q * (1.0 - weight(j, j)) * eigenvalues[j]).sum()
            })
            .collect();
        let shown = sandwich(found, &turned.vectors, dim);
        let expected_along = along(&squares, eigenvalues);
        let mut curvatures = vec![0.0; DRAWS * dim];
        for i in 0..dim {
            let shown = shown[i * dim + i];
            let levels = shuffled_levels(2 * i as u64);
            for ((draw, c), level) in curvatures.chunks_exact_mut(dim).zip(ratios).zip(levels) {
                if *c > 0.0 {
                    let center = turned.values[i] + follows[i] * (c - ratio);
                    let flat = prior.flat_given(shown, c * expected_along[i], noise);
                    if level > flat {
                        let level = (level - flat) / (1.0 - flat);
                        draw[i] = positive_quantile(center, std_devs[i], level);
                    }
                }
            }
        }
        let mut mean = vec![0.0; dim];
        for draw in curvatures.chunks_exact(dim) {
            for (mean, h) in mean.iter_mut().zip(draw) {
                *mean += h / DRAWS as f64;
            }
        }
        Ok(Self {
            dim,
            vectors: product_transposed(&turned.vectors, &transposed(axes, dim), dim),
            mean,
            curvatures,
            turns,
            gradient_cov: Vec::new(),
            variances: Vec::new(),
        })
    }

    /// Adds Σ, whose diagonal is what is expected of it.
    fn with_covariance(mut self, matrices: &NoisyMatrices<'_>) -> Self {
        let dim = self.dim;
        let noise = matrices.gradient_cov_std_dev(dim);
        let rotated = sandwich(matrices.gradient_cov, &self.vectors, dim);
        let found = diagonal_of(&rotated, dim);
        let least = 1e-3 * found.iter().sum::<f64>() / dim as f64;
        let expected: Vec<f64> = onto_simplex(&found).into_iter().map(|s| s.max(least)).collect();
        self.gradient_cov = matrices.shrink(&vec![1.0; dim], &expected, &rotated);
        self.variances = vec![0.0; DRAWS * dim];
        for i in 0..dim {
            let prior = (DEVIATION * expected[i]).powi(2);
            let std_dev = (prior * noise * noise / (prior + noise * noise)).sqrt();
            let levels = shuffled_levels(2 * i as u64 + 1);
            let (mut sum, center) = (0.0, self.gradient_cov[i * dim + i]);
            for (draw, level) in self.variances.chunks_exact_mut(dim).zip(levels) {
                draw[i] = positive_quantile(center, std_dev, level);
                sum += draw[i];
            }
            self.gradient_cov[i * dim + i] = sum / DRAWS as f64;
        }
        self
    }

    /// Mean and shape of the law over the draws.
    pub(super) fn estimate(&self, matrices: &NoisyMatrices<'_>, draws: &MatrixDraws) -> Estimate {
        let dim = self.dim;
        let count = DRAWS as f64;
        let inverses = self.inverses(matrices.strong_convexity);
        let mut mean = vec![0.0; dim];
        let mut products = vec![0.0; dim * dim];
        for draw in inverses.chunks_exact(dim) {
            for (i, a) in draw.iter().enumerate() {
                mean[i] += a / count;
                for (product, b) in products[i * dim..].iter_mut().zip(draw) {
                    *product += a * b / count;
                }
            }
        }
        let square = diagonal_of(&products, dim);
        let products = products.iter().zip(&self.gradient_cov);
        let sampling: Vec<f64> = products.map(|(p, s)| p * s).collect();
        let least = diagonal_of(&sampling, dim);
        let (factor, shape) = self.spread(matrices, draws, &inverses);
        matrices.assemble(&Along {
            vectors: &self.vectors,
            sampling,
            least,
            mean,
            square,
            output: 1.0,
            factor,
            shape,
        })
    }

    /// The diagonal of `H⁻¹`, draw by draw.
    ///
    /// With its diagonal `a⁻¹` and independent entries off it of variance `t`, the mean of `H⁻¹` is `a_i + a_i² Σ_k t_ik a_k` to second order.
    fn inverses(&self, convexity: f64) -> Vec<f64> {
        let mut inverses = Vec::with_capacity(self.curvatures.len());
        for draw in self.curvatures.chunks_exact(self.dim) {
            let straight: Vec<f64> = draw.iter().map(|h| (convexity + h).recip()).collect();
            let turned = along(&self.turns, &straight);
            let pairs = straight.iter().zip(turned);
            // No eigenvalue of the true inverse is above that of the strong convexity.
            inverses.extend(pairs.map(|(a, turned)| (a + a * a * turned).min(convexity.recip())));
        }
        inverses
    }

    /// Mean variance of the error over that at the mean of D, and the shape of its law, over contrasts in no particular direction.
    fn spread(&self, matrices: &NoisyMatrices<'_>, draws: &MatrixDraws, inverses: &[f64]) -> (f64, f64) {
        let dim = self.dim;
        let n = matrices.n_samples;
        let noise = matrices.law.coordinate_variance();
        let of_noise = match matrices.perturbation {
            Perturbation::Objective => noise / (n * n),
            Perturbation::Output => 0.0,
        };
        let added = match matrices.perturbation {
            Perturbation::Objective => 0.0,
            Perturbation::Output => noise,
        };
        // By direction, of one draw: the variance of the error.
        let along = |inverses: &[f64], variances: &[f64]| -> Vec<f64> {
            let pairs = inverses.iter().zip(variances);
            pairs.map(|(a, s)| a * a * (s / n + of_noise)).collect()
        };
        let plug_in: Vec<f64> = self
            .mean
            .iter()
            .map(|h| (matrices.strong_convexity + h).recip())
            .collect();
        let variances = diagonal_of(&self.gradient_cov, dim);
        let plug_in = along(&plug_in, &variances);
        let by_draw: Vec<f64> = inverses
            .chunks_exact(dim)
            .zip(self.variances.chunks_exact(dim))
            .flat_map(|(inverses, variances)| along(inverses, variances))
            .collect();
        let (mut factor, mut relative, mut count) = (0.0, 0.0, 0.0);
        for draw in draws.iter().step_by(2) {
            for contrast in draw.contrasts.chunks_exact(dim) {
                let weights: Vec<f64> = contrast.iter().map(|c| c * c).collect();
                let (mut sum, mut sum_of_squares) = (0.0, 0.0);
                for along in by_draw.chunks_exact(dim) {
                    let variance = weighted(&weights, along) + added;
                    sum += variance;
                    sum_of_squares += variance * variance;
                }
                let mean = sum / DRAWS as f64;
                factor += mean / (weighted(&weights, &plug_in) + added);
                relative += (sum_of_squares / DRAWS as f64 / (mean * mean) - 1.0).max(0.0);
                count += 1.0;
            }
        }
        (factor / count, (count / relative).max(LEAST_SHAPE))
    }

    /// The mean Hessian and Σ, in the coordinates of the data.
    pub(super) fn matrices(&self, matrices: &NoisyMatrices<'_>) -> [Vec<f64>; 2] {
        let mut hessian = rotate_back(&diagonal(&self.mean), &self.vectors, self.dim);
        add_diagonal(&mut hessian, self.dim, matrices.strong_convexity);
        [hessian, rotate_back(&self.gradient_cov, &self.vectors, self.dim)]
    }
}

/// Levels in the middle of equal parts of (0, 1), in random order.
fn shuffled_levels(stream: u64) -> Vec<f64> {
    let mut generator = SimulationGenerator::new(SEED, stream);
    let mut levels: Vec<f64> = (0..DRAWS).map(|i| (i as f64 + 0.5) / DRAWS as f64).collect();
    for i in (1..DRAWS).rev() {
        levels.swap(i, generator.random_range(0..=i));
    }
    levels
}

/// Quantile of a normal law that is cut off at 0.
fn positive_quantile(mean: f64, std_dev: f64, level: f64) -> f64 {
    if !(std_dev > 0.0) {
        return mean.max(0.0);
    }
    let score = mean / std_dev;
    if score < -25.0 {
        // The tail is exponential.
        return -(1.0 - level).ln() * std_dev / -score;
    }
    let above = (1.0 - level) * 0.5 * libm::erfc(-score * FRAC_1_SQRT_2);
    (mean + std_dev * SQRT_2 * erfc_inv(2.0 * above)).max(0.0)
}

#[cfg(test)]
mod tests;
