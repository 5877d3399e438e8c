//! One Newton step from released parameters to those without the ridge, and when it may be believed (docs/proofs/intervals.md).
//!
//! At the regularised minimiser the gradient of the risk is `-λθ`, so that the unregularised one is near `θ + λH₀⁻¹θ`, with the Hessian
//! `H₀` of the risk alone. The step is taken in the directions in which the released Hessian is clear of its noise. In the others the
//! distance to the target counts as an error, of the size that parameters as great as the released ones would have.

use crate::linalg::{Eigen, add_diagonal, product_transposed, vector};
use crate::privacy::Perturbation;
use crate::{Error, Result};

/// Eigenvalues of the released Hessian that are believed, over the edge of the spectrum of its noise.
const CLEAR: f64 = 1.5;
/// The same over the greatest of them, for rounding.
const ROUNDING: f64 = 1e-9;
/// Greatest share of a contrast's standard error that the distance in the hidden directions may be.
const MOST_HIDDEN: f64 = 0.45;
/// Standard errors by which what the law leaves out may move a contrast, at most.
const MOST: f64 = 0.3;

/// Why a contrast of the unregularised target is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The noise hides the Hessian along the contrast: released values do not tell how far the ridge moved it.
    Hidden,
    /// The noise in the Hessian moves the step by too much for a first-order law.
    MatrixTooNoisy,
    /// The ridge moved the parameters so far that the curvature may have changed on the way.
    RidgeTooStrong,
}

impl Obstacle {
    /// `"hidden"`, `"matrix_too_noisy"` or `"ridge_too_strong"`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::MatrixTooNoisy => "matrix_too_noisy",
            Self::RidgeTooStrong => "ridge_too_strong",
        }
    }
}

/// What was released of a regularised fit, and the public values behind it.
#[derive(Debug, Clone, Copy)]
pub struct Regularised<'a> {
    /// Hessian with the ridge; row-major.
    pub hessian: &'a [f64],
    /// Parameters.
    pub params: &'a [f64],
    /// What their noise is multiplied with; see [`super::ErrorLaw::noise`].
    pub noise_map: &'a [f64],
    /// λ.
    pub l2_strength: f64,
    /// Standard deviation of an isometric coordinate of the Hessian's noise.
    pub noise: f64,
    /// Mean second derivative of the loss; `None` where it is the same at all parameters.
    pub curvature: Option<f64>,
    /// Public number of samples.
    pub n_samples: f64,
    /// Where the noise of the coefficients enters.
    pub perturbation: Perturbation,
}

/// The step: a linear map of the released parameters, and what the noise in the Hessian adds to the error.
#[derive(Debug)]
pub struct NewtonStep {
    dim: usize,
    map: Vec<f64>,
    covariance: Vec<f64>,
    /// `H₀⁻¹` in the clear directions.
    inverse: Vec<f64>,
    /// The distance to the target in the other directions is this times standard normals.
    hidden: Vec<f64>,
    /// Second-order effect of the Hessian's noise on the step.
    drift: Vec<f64>,
    /// Bound on the effect of a changing curvature on a contrast, over the root of its variance `cᵀH₀⁻¹c`.
    bend: f64,
    /// How much longer errors may be than the curvature before the step says.
    stretch: f64,
}

impl NewtonStep {
    /// The step from these parameters.
    ///
    /// # Errors
    /// [`Error::Length`] for a Hessian of another size than the parameters, [`Error::NotPositiveDefinite`] for one whose entries are not finite.
    pub fn new(fit: &Regularised<'_>) -> Result<Self> {
        let dim = fit.params.len();
        for (name, matrix) in [("hessian", fit.hessian), ("noise_map", fit.noise_map)] {
            if matrix.len() != dim * dim {
                return Err(Error::Length {
                    name,
                    expected: dim * dim,
                    got: matrix.len(),
                });
            }
        }
        let (lambda, noise) = (fit.l2_strength, fit.noise);
        let mut without_ridge = fit.hessian.to_vec();
        add_diagonal(&mut without_ridge, dim, -lambda);
        let eigen = Eigen::new(&without_ridge, dim, "the released Hessian")?;
        let greatest = eigen.values.last().copied().unwrap_or(0.0);
        let edge = (CLEAR * noise * (2.0 * dim as f64).sqrt()).max(ROUNDING * greatest);
        let clear = |value: f64| value > edge;
        let trace: f64 = eigen
            .values
            .iter()
            .filter(|v| clear(**v))
            .map(|v| v.recip())
            .sum();
        // On average noise makes an inverse greater by as much as this makes it less.
        let shift = 0.5 * noise * noise * trace;
        let of_values = |f: &dyn Fn(f64) -> f64| {
            let values = eigen.values.iter().map(|v| f(*v)).collect();
            Eigen {
                values,
                vectors: eigen.vectors.clone(),
            }
            .recompose()
        };
        let inverse = of_values(&|v| if clear(v) { (v + shift).recip() } else { 0.0 });
        let step = times(&inverse, fit.params);
        let projection = of_values(&|v| if clear(v) { 0.0 } else { 1.0 });
        let hidden_params = vector::norm(&times(&projection, fit.params));
        let hidden = fit.hidden_distance(&projection, hidden_params);
        let square = product_transposed(&inverse, &inverse, dim);
        let mut map: Vec<f64> = inverse.iter().map(|m| lambda * m).collect();
        add_diagonal(&mut map, dim, 1.0);

        // To first order: `-M E u` within the clear directions, and `M² E θ` from the hidden ones.
        let length = vector::norm(&step);
        let twice = times(&inverse, &step);
        let fourth = product_transposed(&square, &square, dim);
        let weight = 0.5 * (noise * lambda).powi(2);
        let mut covariance = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..dim {
                let at = i * dim + j;
                let within = length * length * square[at] + twice[i] * twice[j];
                covariance[at] = weight * (within + hidden_params.powi(2) * fourth[at]);
            }
        }
        for (entry, distance) in covariance
            .iter_mut()
            .zip(product_transposed(&hidden, &hidden, dim))
        {
            *entry += distance;
        }
        let again = times(&inverse, &twice);
        let drift = twice
            .iter()
            .zip(&again)
            .map(|(t, a)| 0.5 * lambda * noise * noise * (trace * t + a))
            .collect();
        let moved = lambda * lambda * vector::dot(&step, &times(&without_ridge, &step));
        Ok(Self {
            dim,
            map,
            covariance,
            inverse,
            hidden,
            drift,
            bend: fit.curvature.map_or(0.0, |weight| bend(moved, weight)),
            stretch: fit.curvature.map_or(1.0, |weight| {
                (moved.max(0.0) / weight.max(f64::MIN_POSITIVE))
                    .sqrt()
                    .exp()
            }),
        })
    }

    /// `I + λH₀⁻¹`, row-major and symmetric: the unregularised parameters are this times the released ones.
    #[must_use]
    pub fn map(&self) -> &[f64] {
        &self.map
    }

    /// Covariance that the noise in the Hessian adds to the error, to first order.
    #[must_use]
    pub fn covariance(&self) -> &[f64] {
        &self.covariance
    }

    /// By how much to multiply errors: the step is one of `√E(xᵀδ)²` in a typical predictor, along which the curvature of a likelihood
    /// whose third derivative is at most the second falls by no more than the exponential of that.
    #[must_use]
    pub fn stretch(&self) -> f64 {
        self.stretch
    }

    /// Why a contrast is not given, if it is not; `std_error`: that of the contrast of the unregularised parameters.
    ///
    /// # Errors
    /// [`Error::Length`] for a contrast of another size.
    pub fn obstacle(&self, contrast: &[f64], std_error: f64) -> Result<Option<Obstacle>> {
        if contrast.len() != self.dim {
            return Err(Error::Length {
                name: "contrast",
                expected: self.dim,
                got: contrast.len(),
            });
        }
        let column = |j: usize| -> f64 {
            let rows = self.hidden.chunks_exact(self.dim).zip(contrast);
            rows.map(|(row, c)| c * row[j]).sum()
        };
        let distance: Vec<f64> = (0..self.dim).map(column).collect();
        let information = vector::dot(contrast, &times(&self.inverse, contrast));
        let checks = [
            (
                Obstacle::Hidden,
                vector::norm(&distance),
                MOST_HIDDEN * std_error,
            ),
            (
                Obstacle::MatrixTooNoisy,
                vector::dot(contrast, &self.drift).abs(),
                MOST * std_error,
            ),
            (
                Obstacle::RidgeTooStrong,
                self.bend * information.max(0.0).sqrt(),
                MOST * std_error,
            ),
        ];
        // Written so that a NaN is an obstacle.
        Ok(checks
            .into_iter()
            .find(|(_, off, most)| !(off <= most))
            .map(|(obstacle, _, _)| obstacle))
    }
}

impl Regularised<'_> {
    /// The factor of the covariance of the distance to the target in the hidden directions, with so long parameters there.
    ///
    /// The distance is `λH⁻¹θ` with the unregularised θ, which is taken for normal and as great along each direction as the released
    /// parameters are there or everywhere: a ridge makes those along which the data say nothing vanish. Of output perturbation nothing is known of `λH⁻¹` but that it is at most 1.
    fn hidden_distance(&self, projection: &[f64], length: f64) -> Vec<f64> {
        let dim = self.params.len();
        let rank: f64 = projection.iter().step_by(dim + 1).sum();
        let all = vector::norm(self.params) / (dim as f64).sqrt();
        let size = (length / rank.round().max(1.0).sqrt()).max(all);
        let (gain, factor) = match self.perturbation {
            Perturbation::Objective => (
                self.l2_strength * self.n_samples,
                product_transposed(self.noise_map, projection, dim),
            ),
            Perturbation::Output => (1.0, projection.to_vec()),
        };
        factor.iter().map(|entry| gain * size * entry).collect()
    }
}

/// `½E|ℓ'''|(xᵀδ)²|xᵀw|` of a likelihood whose third derivative is at most the second, for predictors with the fourth moment of a normal
/// law: over `√(wᵀH₀w)`, from `δᵀH₀δ` and the mean second derivative.
fn bend(moved: f64, weight: f64) -> f64 {
    if moved <= 0.0 {
        return 0.0;
    }
    0.5 * 3.0_f64.sqrt() * moved / weight.max(0.0).sqrt()
}

/// A symmetric matrix times a vector.
fn times(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    let rows = matrix.chunks_exact(vector.len());
    rows.map(|row| vector::dot(row, vector)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: [f64; 4] = [1.0, 0.0, 0.0, 1.0];

    fn fit<'a>(hessian: &'a [f64], params: &'a [f64]) -> Regularised<'a> {
        Regularised {
            hessian,
            params,
            noise_map: &IDENTITY,
            l2_strength: 0.1,
            noise: 0.0,
            curvature: None,
            n_samples: 100.0,
            perturbation: Perturbation::Objective,
        }
    }

    #[track_caller]
    fn assert_near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(expected) {
            assert!(
                (f - e).abs() < 1e-12 * e.abs().max(1.0),
                "{found:?} {expected:?}"
            );
        }
    }

    #[test]
    fn a_quadratic_risk_without_noise_loses_its_ridge() {
        // H₀ = [[2, 1], [1, 1]], the minimiser without the ridge is (3, -1): (H₀ + λ)θ = H₀(3, -1) = (5, 2).
        let hessian = [2.1, 1.0, 1.0, 1.1];
        let det = 2.1 * 1.1 - 1.0;
        let params = [(1.1 * 5.0 - 2.0) / det, (2.1 * 2.0 - 5.0) / det];
        let step = NewtonStep::new(&fit(&hessian, &params)).unwrap();
        assert_near(&times(step.map(), &params), &[3.0, -1.0]);
        assert_near(step.covariance(), &[0.0; 4]);
        assert_near(&[step.stretch()], &[1.0]);
        assert_eq!(step.obstacle(&[1.0, 2.0], 1e-9).unwrap(), None);
        assert!(step.obstacle(&[1.0], 1.0).is_err());
        assert!(NewtonStep::new(&fit(&hessian[..3], &params)).is_err());
        assert!(NewtonStep::new(&fit(&[f64::NAN; 4], &params)).is_err());
    }

    #[test]
    fn noise_in_the_hessian_adds_its_first_order_variance() {
        let (hessian, params) = ([2.1, 0.0, 0.0, 1.1], [3.0, 1.0]);
        let noise = 1e-4;
        let step = NewtonStep::new(&Regularised {
            noise,
            ..fit(&hessian, &params)
        })
        .unwrap();
        // w = (½, 0), u = (3/2, 1): ½s²λ²(‖w‖²‖u‖² + (wᵀu)²) for the first.
        let first = 0.5 * (noise * 0.1_f64).powi(2) * (0.25 * 3.25 + 0.75 * 0.75);
        assert!((step.covariance()[0] / first - 1.0).abs() < 1e-6);
        // The inverse is smaller by ½s² times its trace, here 3/2.
        let shift = 0.5 * noise * noise * 1.5;
        assert_near(&step.map()[..1], &[1.0 + 0.1 / (2.0 + shift)]);
    }

    #[test]
    fn hidden_directions_are_left_and_count_as_an_error() {
        // The second eigenvalue is below the edge 1.5 s √4.
        let (hessian, params) = ([2.1, 0.0, 0.0, 0.3], [3.0, 0.5]);
        let noisy = Regularised {
            noise: 0.1,
            ..fit(&hessian, &params)
        };
        let step = NewtonStep::new(&noisy).unwrap();
        assert_near(&step.map()[3..], &[1.0]);
        // λ n ‖N e₂‖ times the root mean square of both parameters: .1 · 100 · √(9.25/2).
        assert_near(&step.covariance()[3..], &[462.5]);
        let [first, second] = [[1.0, 0.0], [0.0, 1.0]];
        assert_eq!(step.obstacle(&first, 1.0).unwrap(), None);
        assert_eq!(step.obstacle(&second, 47.8).unwrap(), None);
        assert_eq!(
            step.obstacle(&second, 47.7).unwrap(),
            Some(Obstacle::Hidden)
        );
        let output = Regularised {
            perturbation: Perturbation::Output,
            ..noisy
        };
        assert_near(
            &NewtonStep::new(&output).unwrap().covariance()[3..],
            &[4.625],
        );
    }

    #[test]
    fn what_the_law_leaves_out_is_an_obstacle() {
        let (hessian, params) = ([2.1, 0.0, 0.0, 1.1], [3.0, 1.0]);
        let noisy = Regularised {
            noise: 0.1,
            ..fit(&hessian, &params)
        };
        let step = NewtonStep::new(&noisy).unwrap();
        let first = [1.0, 0.0];
        assert_eq!(
            step.obstacle(&first, 1e-3).unwrap(),
            Some(Obstacle::MatrixTooNoisy)
        );
        assert_eq!(step.obstacle(&first, 1.0).unwrap(), None);
        assert_eq!(
            step.obstacle(&first, f64::NAN).unwrap(),
            Some(Obstacle::Hidden)
        );
        // ½√3 δᵀH₀δ/√weight · √(cᵀH₀⁻¹c): λ²(θᵀH₀⁻¹θ) = .01(9/2 + 1) along √½.
        let curved = Regularised {
            curvature: Some(0.25),
            ..fit(&hessian, &params)
        };
        let step = NewtonStep::new(&curved).unwrap();
        assert_near(&[step.stretch()], &[(0.055_f64 / 0.25).sqrt().exp()]);
        let off = 0.5 * 3.0_f64.sqrt() * 0.055 / 0.5 * 0.5_f64.sqrt();
        assert_eq!(step.obstacle(&first, off / 0.29).unwrap(), None);
        let found = step.obstacle(&first, off / 0.31).unwrap();
        assert_eq!(found, Some(Obstacle::RidgeTooStrong));
        assert_eq!(Obstacle::RidgeTooStrong.name(), "ridge_too_strong");
    }
}
