//! The law of the error of released parameters, from released values alone.
//!
//! Objective perturbation: `θ₀ - θ̃ ≈ H⁻¹(G/√n + b/n)`; output perturbation: `θ₀ - θ̃ ≈ H⁻¹G/√n - b`, with `G ~ N(0, Σ)` and a
//! fresh `b` (Wang, Kifer & Lee, equations 4 and 8).

use super::MatrixDraws;
use super::directions::sandwich;
use super::noise_aware::NoisyMatrices;
use crate::Result;
use crate::error::{check, check_length};
use crate::linalg::{Cholesky, add_diagonal, vector};
use crate::noise::NoiseLaw;
use crate::privacy::Perturbation;

/// Normal given Ω, the mixing variable of the noise, and W: covariance `W·(sampling + Ω·noise·noise)`.
///
/// W is the true variance over the estimated one, 1 for matrices that are taken as they are, gamma with mean 1 for noisy ones.
#[derive(Debug)]
pub struct ErrorLaw {
    dim: usize,
    sampling: Vec<f64>,
    least_sampling: Option<Vec<f64>>,
    noise: Vec<f64>,
    factor: f64,
    shape: f64,
}

impl ErrorLaw {
    /// Takes the (row-major, `dim × dim`) Hessian and gradient covariance as the true ones.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for matrices of another size, [`crate::Error::OutOfRange`] for `n_samples`,
    /// [`crate::Error::NotPositiveDefinite`] for the Hessian.
    pub fn plug_in(
        hessian: &[f64],
        gradient_cov: &[f64],
        dim: usize,
        n_samples: f64,
        perturbation: Perturbation,
    ) -> Result<Self> {
        for (name, matrix) in [("hessian", hessian), ("gradient_cov", gradient_cov)] {
            check_length(name, dim * dim, matrix.len())?;
        }
        check_samples(n_samples)?;
        let factor = Cholesky::new(hessian, dim, "the released Hessian")?;
        let mut identity = vec![0.0; dim * dim];
        add_diagonal(&mut identity, dim, 1.0);
        let mut inverse = factor.solve(&identity);
        let mut sampling = sandwich(gradient_cov, &inverse, dim);
        for i in 0..dim {
            for j in 0..i {
                let mean = f64::midpoint(sampling[i * dim + j], sampling[j * dim + i]);
                (sampling[i * dim + j], sampling[j * dim + i]) = (mean, mean);
            }
        }
        vector::divide(&mut sampling, n_samples);
        let noise = match perturbation {
            Perturbation::Objective => {
                vector::divide(&mut inverse, n_samples);
                inverse
            }
            Perturbation::Output => identity,
        };
        Ok(Self {
            dim,
            sampling,
            least_sampling: None,
            noise,
            factor: 1.0,
            shape: f64::INFINITY,
        })
    }

    /// Counts the noise in the matrices.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for matrices of another size than the draws, [`crate::Error::OutOfRange`] for `n_samples`,
    /// [`crate::Error::NotPositiveDefinite`] for entries that are not finite.
    pub fn noise_aware(matrices: &NoisyMatrices<'_>, draws: &MatrixDraws) -> Result<Self> {
        check_samples(matrices.n_samples)?;
        let estimate = matrices.estimate(draws)?;
        Ok(Self {
            dim: draws.dim(),
            sampling: estimate.sampling,
            least_sampling: Some(estimate.least_sampling),
            noise: estimate.noise,
            factor: estimate.factor,
            shape: estimate.shape,
        })
    }

    /// The law of these parts, whose matrices are taken as they are. Row i of `noise` has what coordinate i of the noise adds to each parameter.
    pub(super) fn of_parts(sampling: Vec<f64>, least_sampling: Vec<f64>, noise: Vec<f64>) -> Self {
        Self {
            dim: sampling.len().isqrt(),
            sampling,
            least_sampling: Some(least_sampling),
            noise,
            factor: 1.0,
            shape: f64::INFINITY,
        }
    }

    getters! { self =>
        /// Covariance of the sampling error; noise in the matrices can make it indefinite.
        pub sampling: &[f64] = &self.sampling;
        /// Multiplier of the coefficients' noise: a symmetric matrix, or for the last of several steps what each coordinate of the noise adds to
        /// each parameter, by rows.
        pub noise: &[f64] = &self.noise;
        /// Factor by which simulated releases multiplied the variance by; 1 for matrices that are taken as they are.
        pub factor: f64 = self.factor;
        /// Shape of the gamma law of W; infinite if W is 1.
        pub shape: f64 = self.shape;
        /// A covariance that the sampling error has at least along every contrast; `None` for matrices that are taken as they are.
        pub least_sampling: Option<&[f64]> = self.least_sampling.as_deref();
    }

    /// For the contrast `cᵀθ`: the sampling variance, and the multipliers of the noise as [`super::half_widths`] takes them for this law.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for a contrast of another length.
    pub fn multipliers(&self, contrast: &[f64], law: &NoiseLaw) -> Result<(f64, Vec<f64>)> {
        let (variance, multiplier) = self.components(contrast)?;
        let relative = law.relative_std_devs();
        if law.blocks().is_none() && relative.is_none() {
            return Ok((variance, vec![multiplier]));
        }
        let rows = self.noise.chunks_exact(self.dim);
        let mut multipliers: Vec<f64> = rows.map(|row| vector::dot(row, contrast)).collect();
        if let Some(relative) = relative {
            for (multiplier, std_dev) in multipliers.iter_mut().zip(relative) {
                *multiplier *= std_dev;
            }
            multipliers = vec![vector::norm(&multipliers)];
        }
        Ok((variance, multipliers))
    }

    /// For the contrast `cᵀθ`: the sampling variance `v`, and the multiplier `a` of one coordinate of the noise.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for a contrast of another length.
    pub fn components(&self, contrast: &[f64]) -> Result<(f64, f64)> {
        check_length("contrast", self.dim, contrast.len())?;
        let form = |matrix: &[f64]| -> f64 {
            let rows = matrix.chunks_exact(self.dim).zip(contrast);
            rows.map(|(row, c)| c * vector::dot(row, contrast)).sum()
        };
        let variance = form(&self.sampling);
        let least = self.least_sampling.as_deref().map_or(0.0, form);
        // Not f64::max, which would turn an overflow's NaN into certainty.
        let variance = if variance < least { least } else { variance };
        let product: Vec<f64> = self
            .noise
            .chunks_exact(self.dim)
            .map(|row| vector::dot(row, contrast))
            .collect();
        Ok((variance, vector::norm(&product)))
    }
}

fn check_samples(n_samples: f64) -> Result<()> {
    check(
        n_samples >= 1.0 && n_samples.is_finite(),
        "n_samples",
        "finite and at least 1",
        n_samples,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::MatrixLaw;

    const HESSIAN: [f64; 4] = [2.0, 0.5, 0.5, 1.0];
    const COV: [f64; 4] = [1.0, -0.25, -0.25, 3.0];

    /// `H⁻¹ΣH⁻¹/n` and `H⁻¹/n` written out, n = 10.
    fn by_hand() -> ([f64; 4], [f64; 4]) {
        let inverse = [1.0 / 1.75, -0.5 / 1.75, -0.5 / 1.75, 2.0 / 1.75];
        let entry = |i: usize, j: usize| -> f64 {
            let terms = (0..4).map(|e| inverse[2 * i + e / 2] * COV[e] * inverse[2 * (e % 2) + j]);
            terms.sum::<f64>() / 10.0
        };
        let sampling = [entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1)];
        (sampling, inverse.map(|h| h / 10.0))
    }

    fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() <= tolerance * e.abs().max(1e-3), "{found:?} {expected:?}");
        }
    }

    fn noisy(scale: f64) -> NoisyMatrices<'static> {
        NoisyMatrices {
            hessian: &HESSIAN,
            gradient_cov: &COV,
            hessian_noise: Some(MatrixLaw::Gaussian { std_dev: scale }),
            gradient_cov_noise: MatrixLaw::Gaussian { std_dev: scale },
            l2_strength: 0.01,
            strong_convexity: 0.01,
            n_samples: 10.0,
            perturbation: Perturbation::Objective,
            law: NoiseLaw::Gaussian { std_dev: 0.3 },
            is_likelihood: true,
            may_be_flat: false,
            gradients: None,
            levels: None,
        }
    }

    #[test]
    fn the_plug_in_law_is_the_sandwich() {
        let (sampling, noise) = by_hand();
        let law = ErrorLaw::plug_in(&HESSIAN, &COV, 2, 10.0, Perturbation::Objective).unwrap();
        assert_near(law.sampling(), &sampling, 1e-14);
        assert_near(law.noise(), &noise, 1e-14);
        assert!(law.least_sampling().is_none() && law.shape().is_infinite());
        let (v, a) = law.components(&[1.0, 2.0]).unwrap();
        let expected = sampling[0] + 4.0 * sampling[1] + 4.0 * sampling[3];
        assert_near(&[v], &[expected], 1e-14);
        let along = [noise[0] + 2.0 * noise[1], noise[2] + 2.0 * noise[3]];
        assert_near(&[a], &[along[0].hypot(along[1])], 1e-14);
        let output = ErrorLaw::plug_in(&HESSIAN, &COV, 2, 10.0, Perturbation::Output).unwrap();
        assert_near(&[output.components(&[3.0, 4.0]).unwrap().1], &[5.0], 1e-14);
        assert!(law.components(&[1.0]).is_err());
        for n in [0.5, f64::NAN, f64::INFINITY] {
            assert!(ErrorLaw::plug_in(&HESSIAN, &COV, 2, n, Perturbation::Output).is_err());
        }
        assert!(ErrorLaw::plug_in(&COV, &HESSIAN[..3], 2, 10.0, Perturbation::Output).is_err());
    }

    #[test]
    fn without_noise_the_noise_aware_law_is_the_sandwich() {
        let (sampling, noise) = by_hand();
        let matrices = noisy(1e-9);
        let draws = MatrixDraws::new(2, matrices.hessian_noise, matrices.gradient_cov_noise).unwrap();
        let law = ErrorLaw::noise_aware(&matrices, &draws).unwrap();
        assert_near(law.sampling(), &sampling, 1e-7);
        assert_near(law.noise(), &noise, 1e-7);
    }

    #[test]
    fn the_same_release_has_the_same_law_and_a_rotated_one_the_rotated_law() {
        let matrices = noisy(0.3);
        let draws = MatrixDraws::new(2, matrices.hessian_noise, matrices.gradient_cov_noise).unwrap();
        let law = ErrorLaw::noise_aware(&matrices, &draws).unwrap();
        let again = ErrorLaw::noise_aware(&matrices, &draws).unwrap();
        assert_eq!(law.sampling(), again.sampling());
        // The axes change their places and a sign.
        let turned = |m: &[f64]| [m[3], -m[2], -m[1], m[0]];
        let (hessian, cov) = (turned(&HESSIAN), turned(&COV));
        let other = NoisyMatrices {
            hessian: &hessian,
            gradient_cov: &cov,
            ..matrices
        };
        let other = ErrorLaw::noise_aware(&other, &draws).unwrap();
        assert_near(other.sampling(), &turned(law.sampling()), 1e-12);
        assert_near(other.noise(), &turned(law.noise()), 1e-12);
        assert_near(&[other.shape()], &[law.shape()], 1e-12);
        assert!(law.shape() >= 1.0 && law.shape() < 1e3);
    }

    #[test]
    fn an_indefinite_covariance_has_a_least_variance() {
        let cov = [-5.0, 0.0, 0.0, 0.1];
        let matrices = NoisyMatrices {
            gradient_cov: &cov,
            ..noisy(0.5)
        };
        let draws = MatrixDraws::new(2, matrices.hessian_noise, matrices.gradient_cov_noise).unwrap();
        let law = ErrorLaw::noise_aware(&matrices, &draws).unwrap();
        let (v, a) = law.components(&[1.0, 0.0]).unwrap();
        assert!(v > 0.0 && a > 0.0);
        assert!(v >= law.least_sampling().unwrap()[0]);
        let bad = NoisyMatrices {
            hessian: &[f64::NAN; 4],
            ..matrices.clone()
        };
        assert!(ErrorLaw::noise_aware(&bad, &draws).is_err());
        let short = NoisyMatrices {
            hessian: &HESSIAN[..1],
            ..matrices
        };
        assert!(ErrorLaw::noise_aware(&short, &draws).is_err());
    }
}
