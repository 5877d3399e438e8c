//! The two parts of an estimate's error from released values alone: sampling variance and the multiplier of the noise.
//!
//! Objective perturbation: `θ₀ - θ̃ ≈ H̃⁻¹(G/√n + b/n)`; output perturbation: `θ₀ - θ̃ ≈ H̃⁻¹G/√n - b`, with `G ~ N(0, Σ̃)` and a
//! fresh `b` (Wang, Kifer & Lee, equations 4 and 8).

use crate::linalg::{Cholesky, vector};
use crate::noise::NoiseLaw;
use crate::privacy::Perturbation;
use crate::{Error, Result};

/// The released matrices, factorised for the sandwich `V = H⁻¹ΣH⁻¹/n`.
#[derive(Debug)]
pub struct Sandwich<'a> {
    factor: Cholesky,
    gradient_cov: &'a [f64],
    dim: usize,
    n_samples: f64,
    perturbation: Perturbation,
}

impl<'a> Sandwich<'a> {
    /// From the released (row-major, `dim × dim`) Hessian and gradient covariance.
    ///
    /// # Errors
    /// [`Error::Length`] for matrices of another size, [`Error::OutOfRange`] for `n_samples`,
    /// [`Error::NotPositiveDefinite`] for the Hessian.
    pub fn new(
        hessian: &[f64],
        gradient_cov: &'a [f64],
        dim: usize,
        n_samples: f64,
        perturbation: Perturbation,
    ) -> Result<Self> {
        for (name, matrix) in [("hessian", hessian), ("gradient_cov", gradient_cov)] {
            if matrix.len() != dim * dim {
                return Err(Error::Length {
                    name,
                    expected: dim * dim,
                    got: matrix.len(),
                });
            }
        }
        if !(n_samples >= 1.0) || !n_samples.is_finite() {
            return Err(Error::OutOfRange {
                name: "n_samples",
                rule: "finite and at least 1",
                value: n_samples,
            });
        }
        let factor = Cholesky::new(hessian, dim, "the released Hessian")?;
        Ok(Self {
            factor,
            gradient_cov,
            dim,
            n_samples,
            perturbation,
        })
    }

    /// For the contrast `cᵀθ`: the sampling variance `v = cᵀVc` and the multiplier `a` of one coordinate of the noise,
    /// `‖H⁻¹c‖/n` (objective) or `‖c‖` (output).
    ///
    /// # Errors
    /// [`Error::Length`] for a contrast of another length.
    pub fn components(&self, contrast: &[f64]) -> Result<(f64, f64)> {
        if contrast.len() != self.dim {
            return Err(Error::Length {
                name: "contrast",
                expected: self.dim,
                got: contrast.len(),
            });
        }
        let influence = self.factor.solve(contrast);
        let variance: f64 = self
            .gradient_cov
            .chunks_exact(self.dim)
            .zip(&influence)
            .map(|(row, h)| h * vector::dot(row, &influence))
            .sum();
        let multiplier = match self.perturbation {
            Perturbation::Objective => vector::norm(&influence) / self.n_samples,
            Perturbation::Output => vector::norm(contrast),
        };
        // The released Σ̃ is positive semidefinite up to rounding.
        // Not f64::max, which would turn an overflow's NaN into certainty.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        Ok((variance / self.n_samples, multiplier))
    }

    /// The covariance of the error, sampling and noise together (row-major).
    #[must_use]
    pub fn cov(&self, law: &NoiseLaw) -> Vec<f64> {
        let d = self.dim;
        let noise = law.coordinate_variance();
        let mut identity = vec![0.0; d * d];
        crate::linalg::add_diagonal(&mut identity, d, 1.0);
        let inverse = self.factor.solve(&identity);
        let half = self.factor.solve(self.gradient_cov);
        let mut out = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..=i {
                // half holds H⁻¹Σ by columns, so entry (i, j) of H⁻¹ΣH⁻¹ pairs row i of it with column j of the inverse.
                let sampling: f64 = (0..d)
                    .map(|k| half[k * d + i] * inverse[j * d + k])
                    .sum::<f64>()
                    / self.n_samples;
                let from_noise = match self.perturbation {
                    Perturbation::Objective => {
                        let (a, b) = (&inverse[i * d..(i + 1) * d], &inverse[j * d..(j + 1) * d]);
                        noise * vector::dot(a, b) / (self.n_samples * self.n_samples)
                    }
                    Perturbation::Output => noise * f64::from(u8::from(i == j)),
                };
                out[i * d + j] = sampling + from_noise;
                out[j * d + i] = out[i * d + j];
            }
        }
        out
    }
}
