//! One Newton step from released parameters to those without the ridge, and when it may be believed (docs/proofs/intervals.md).
//!
//! At the regularised minimiser the gradient of the risk is `-λθ`, so that the unregularised one is near `θ + λH₀⁻¹θ`, with the Hessian
//! `H₀` of the risk alone. A contrast is given where every direction of the released Hessian is clear of its noise, or where a long
//! distance in the others would not move it. What decides is a choice by noisy values, and fits in which it turns out well by chance have
//! a Hessian that is too great. So errors are those of a lower bound of it near the limit, and the bounds on what the step leaves out are
//! counted as errors: they do not decide. The length of the step decides, too, and chance in it is counted near its limit.

use super::directions::sandwich;
use crate::Result;
use crate::error::check_length;
use crate::linalg::{Eigen, add_diagonal, product_transposed, times, vector};
use crate::noise::MatrixLaw;
use crate::privacy::Perturbation;

/// Least eigenvalue of the released Hessian that is believed, over the greatest, for rounding.
const ROUNDING: f64 = 1e-9;
/// Greatest share of a contrast's length that may lie in hidden directions.
const HIDDEN_SHARE: f64 = 1e-3;
/// Length of the parameters that hidden directions may have, over that of all parameters after the step.
const HIDDEN_LENGTH: f64 = 10.0;
/// Greatest share of a contrast's standard error that the distance in the hidden directions may be.
const MOST_HIDDEN: f64 = 0.45;
/// Greatest change of a predictor on the way, from the ridge alone: beyond 1 one step says nothing.
const MOST_CHANGE: f64 = 0.8;
/// Greatest error, in standard errors of the change, that is assumed of fits that pass the limit of the change by chance.
const MOST_CHANCE: f64 = 2.0;

named! {
    /// Why a contrast of the unregularised target is not given.
    pub enum Obstacle {
        /// The noise hides the Hessian in directions that matter: released values do not tell how far the ridge moved the contrast.
        Hidden = "hidden",
        /// The ridge moved the parameters so far that the curvature may have changed on the way.
        RidgeTooStrong = "ridge_too_strong",
    }
}

/// Released values of a regularised fit, and the public values behind them.
#[derive(Debug, Clone, Copy)]
pub struct Regularised<'a> {
    /// Hessian with the ridge; row-major.
    pub hessian: &'a [f64],
    /// Parameters.
    pub params: &'a [f64],
    /// λ.
    pub l2_strength: f64,
    /// Noise of the Hessian; `None` without.
    pub noise: Option<MatrixLaw>,
    /// Mean second derivative of the loss; `None` where it is the same at all parameters.
    pub curvature: Option<f64>,
    /// Length that no row exceeds, with its constant.
    pub longest_row: f64,
    /// Where the noise of the coefficients enters.
    pub perturbation: Perturbation,
}

/// The step: a linear map of the released parameters, and the errors that it makes.
#[derive(Debug)]
pub struct NewtonStep {
    dim: usize,
    map: Vec<f64>,
    sampling_map: Vec<f64>,
    noise_map: Vec<f64>,
    covariance: Vec<f64>,
    /// The part of the covariance that stands for the distance in hidden directions.
    hidden: Vec<f64>,
    /// Onto the hidden directions.
    projection: Vec<f64>,
    /// Greatest change of a predictor on the way; 0 where the curvature is the same at all parameters.
    change: f64,
    /// The derivative of the change with respect to the released parameters.
    change_gradient: Vec<f64>,
    /// The least believed eigenvalue over the limit.
    least: f64,
    /// Standard deviation of the noise along one direction, over that eigenvalue.
    least_noise: f64,
    /// By how much more than other errors those of fits that pass by chance are multiplied: the curvature at the end of the way is at
    /// least this part of that at its start.
    chance_stretch: f64,
    /// The same of all errors of such fits: the standard error of a likelihood's minimiser is the root of an inverse curvature.
    end_stretch: f64,
    /// The Hessian without the ridge, divided by the mean curvature; empty where the curvature is the same at all parameters.
    predictors: Vec<f64>,
    params: Vec<f64>,
}

impl NewtonStep {
    /// The step from these parameters.
    pub fn new(fit: &Regularised<'_>) -> Result<Self> {
        let dim = fit.params.len();
        check_length("hessian", dim * dim, fit.hessian.len())?;
        let lambda = fit.l2_strength;
        let noise = fit.noise.map_or(0.0, |law| law.isometric_std_dev(dim));
        let clear_at = fit.noise.map_or(0.0, least_clear);
        let mut without_ridge = fit.hessian.to_vec();
        add_diagonal(&mut without_ridge, dim, -lambda);
        let eigen = Eigen::new(&without_ridge, dim, "the released Hessian")?;
        let greatest = eigen.values.last().copied().unwrap_or(0.0);
        let limit = (clear_at * noise).max(ROUNDING * greatest);
        // 2 standard deviations of the noise for an eigenvalue at the limit, and twice as far up for one that is farther up.
        let lower = |value: f64| value.min(2.0 * (value - (clear_at - 1.0) * noise));
        let clear = || eigen.values.iter().filter(|v| **v > limit);
        let of_values = |in_clear: &dyn Fn(f64) -> f64, in_hidden: f64| {
            let values = eigen.values.iter();
            Eigen {
                values: values
                    .map(|v| if *v > limit { in_clear(*v) } else { in_hidden })
                    .collect(),
                vectors: eigen.vectors.clone(),
            }
            .recompose()
        };

        // On average noise makes an inverse greater by as much as this makes it less.
        let shift = 0.5 * noise * noise * clear().map(|v| v.recip()).sum::<f64>();
        let map = of_values(&|v| 1.0 + lambda / (v + shift), 1.0);
        let sampling_map = of_values(&|v| (v + lambda) / lower(v), 1.0);
        let noise_map = match fit.perturbation {
            Perturbation::Objective => sampling_map.clone(),
            Perturbation::Output => of_values(&|v| 1.0 + lambda / lower(v), 1.0),
        };

        // The greatest inverse: everything below is as if it were the true one.
        let inverse = of_values(&|v| lower(v).recip(), 0.0);
        let trace: f64 = clear().map(|v| lower(*v).recip()).sum();
        let step = times(&inverse, fit.params);
        let twice = times(&inverse, &step);
        let again = times(&inverse, &twice);
        let square = product_transposed(&inverse, &inverse, dim);
        let length = vector::norm(&step);
        let weight = 0.5 * (noise * lambda).powi(2);
        // Second-order effect of the Hessian's noise on the step.
        let drift: Vec<f64> = twice
            .iter()
            .zip(&again)
            .map(|(t, a)| 0.5 * lambda * noise * noise * (trace * t + a))
            .collect();
        let moved = (lambda * lambda * vector::dot(&step, &times(&without_ridge, &step))).max(0.0);
        let change = fit.curvature.map_or(0.0, |_| fit.longest_row * lambda * length);
        let change_gradient = if change > 0.0 {
            let factor = fit.longest_row * lambda / length;
            twice.iter().map(|t| factor * t).collect()
        } else {
            vec![0.0; dim]
        };
        let bend = (growth(change.min(MOST_CHANGE)) - 1.0).powi(2) * moved;
        let mut covariance = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..dim {
                let at = i * dim + j;
                let first = length * length * square[at] + twice[i] * twice[j];
                covariance[at] = weight * first + drift[i] * drift[j] + bend * inverse[at];
            }
        }

        let projection = of_values(&|_| 0.0, 1.0);
        let mut hidden = vec![0.0; dim * dim];
        if eigen.values.iter().any(|v| *v <= limit) {
            let squared_length = (HIDDEN_LENGTH * vector::norm(&times(&map, fit.params))).powi(2);
            // No hidden direction has more curvature than this, and it moves a clear contrast by its root at most.
            let most = 2.0 * limit;
            for ((entry, p), m) in hidden.iter_mut().zip(&projection).zip(&inverse) {
                *entry = squared_length * (p + most * m);
            }
        }
        for (entry, more) in covariance.iter_mut().zip(&hidden) {
            *entry += more;
        }

        let least = clear().fold(f64::INFINITY, |a, b| a.min(*b)) / limit;
        let (stretch, chance_stretch, end_stretch) = stretches(fit.curvature, change, moved);
        let stretched = |matrix: Vec<f64>| matrix.into_iter().map(|m| stretch * m).collect();
        Ok(Self {
            dim,
            map,
            sampling_map: stretched(sampling_map),
            noise_map: stretched(noise_map),
            covariance,
            hidden,
            projection,
            change,
            change_gradient,
            least,
            least_noise: noise / (least * limit),
            chance_stretch,
            end_stretch,
            predictors: squares_of_predictors(&without_ridge, fit.curvature),
            params: fit.params.to_vec(),
        })
    }

    getters! { self =>
        /// `I + λH₀⁻¹`, row-major and symmetric: the unregularised parameters are this times the released ones.
        pub map: &[f64] = &self.map;
        /// The sampling error of the unregularised parameters is at most this times that of the released ones.
        pub sampling_map: &[f64] = &self.sampling_map;
        /// The same of the error that the noise of the coefficients makes.
        pub noise_map: &[f64] = &self.noise_map;
        /// Covariance that stands for the noise of the Hessian in the step, and for the bounds on what the step leaves out.
        pub covariance: &[f64] = &self.covariance;
    }

    /// Covariance that stands for the choice of fits: those near a limit may have passed it by chance.
    ///
    /// `released` is the covariance of the error of the released parameters, row-major.
    pub fn chance(&self, released: &[f64]) -> Result<Vec<f64>> {
        let dim = self.dim;
        check_length("released", dim * dim, released.len())?;
        let mut covariance = vec![0.0; dim * dim];
        if self.predictors.is_empty() {
            return Ok(covariance);
        }
        // By how much the logarithm of a Hessian moves with the parameters: as much as a typical predictor at most.
        let moved = |error: &[f64]| {
            let square = vector::dot(error, &times(&self.predictors, error));
            square.max(0.0).sqrt()
        };
        // The change is positive and skewed, so that its margin is on the logarithmic scale. Both the parameters and the Hessian move it.
        let size = self.add_chance(&mut covariance, released, &self.change_gradient, |error| {
            let spread = vector::dot(error, &self.change_gradient) / self.change;
            ((MOST_CHANGE / self.change).ln() / (spread + moved(error)), 1.0)
        });
        // All errors of such fits are those of a Hessian that is too great: the more so, the nearer the limit.
        let more = (size / MOST_CHANCE).powi(2) * (self.end_stretch.powi(2) - 1.0);
        if more > 0.0 {
            let errors = sandwich(released, &self.sampling_map, dim);
            for (entry, error) in covariance.iter_mut().zip(errors) {
                *entry += more * error;
            }
        }
        // Short parameters have a great Hessian. Noise moves it, too, and what is due to noise says nothing of the parameters.
        let along_params = times(&self.predictors, &self.params);
        self.add_chance(&mut covariance, released, &along_params, |error| {
            let spread = moved(error).hypot(self.least_noise);
            (self.least.ln() / spread, moved(error) / spread)
        });
        Ok(covariance)
    }

    /// Adds the covariance for one choice, by a value with this gradient; `margin`: from one standard error of the released parameters
    /// along it to the standard errors between the value and its limit, and the share of these that the parameters cause. Returns the
    /// error that is assumed, in standard errors.
    fn add_chance(
        &self,
        covariance: &mut [f64],
        released: &[f64],
        gradient: &[f64],
        margin: impl Fn(&[f64]) -> (f64, f64),
    ) -> f64 {
        let along = times(released, gradient);
        let std_dev = vector::dot(&along, gradient).sqrt();
        let error: Vec<f64> = along.iter().map(|a| a / std_dev).collect();
        let (margin, share) = margin(&error);
        let size = share * (MOST_CHANCE - 0.5 * margin);
        // Written so that a NaN adds nothing: there nothing moves, or the fit has an obstacle.
        if !(std_dev > 0.0 && size > 0.0) {
            return 0.0;
        }
        let size = size.min(MOST_CHANCE);
        let error: Vec<f64> = self
            .sampling_map
            .chunks_exact(self.dim)
            .map(|row| size * self.chance_stretch * vector::dot(row, &error))
            .collect();
        for (row, a) in covariance.chunks_exact_mut(self.dim).zip(&error) {
            for (entry, b) in row.iter_mut().zip(&error) {
                *entry += a * b;
            }
        }
        size
    }

    /// Why a contrast is not given, if it is not; `std_error`: that of the contrast of the unregularised parameters.
    pub fn obstacle(&self, contrast: &[f64], std_error: f64) -> Result<Option<Obstacle>> {
        check_length("contrast", self.dim, contrast.len())?;
        let distance = vector::dot(contrast, &times(&self.hidden, contrast));
        let within = vector::norm(&times(&self.projection, contrast));
        // Written so that a NaN is an obstacle, here and below.
        let seen =
            distance.max(0.0).sqrt() <= MOST_HIDDEN * std_error && within <= HIDDEN_SHARE * vector::norm(contrast);
        Ok(if !seen {
            Some(Obstacle::Hidden)
        } else if !(self.change < MOST_CHANGE) {
            Some(Obstacle::RidgeTooStrong)
        } else {
            None
        })
    }
}

/// Least eigenvalue of the released Hessian that is believed, over the standard deviation of the noise along one direction.
///
/// Fits that pass by chance exceed it by as much as the tail of the noise is long: by little with normal tails, by much with
/// exponential ones.
fn least_clear(law: MatrixLaw) -> f64 {
    match law {
        MatrixLaw::Gaussian { .. } => 6.0,
        MatrixLaw::MatrixLaplace { .. } | MatrixLaw::SquareLaplace { .. } => 10.0,
    }
}

/// By how much the inverse of the mean Hessian on the way can exceed that of the Hessian at its start, where third derivatives are at most
/// the second: `ρ/(1 - exp(-ρ))` if no predictor changes by more than ρ. The step with the latter changes them by `1 - exp(-ρ)`.
fn growth(change: f64) -> f64 {
    if change > 1e-8 {
        -(-change).ln_1p() / change
    } else {
        1.0
    }
}

/// By how much errors exceed those of the Hessian at the start of the way: all of them, by a typical predictor; and by how much more
/// [`NewtonStep::chance_stretch`] and [`NewtonStep::end_stretch`], by the greatest change of one.
fn stretches(curvature: Option<f64>, change: f64, moved: f64) -> (f64, f64, f64) {
    let Some(mean) = curvature else {
        return (1.0, 1.0, 1.0);
    };
    let typical = (moved / mean.max(f64::MIN_POSITIVE)).sqrt();
    let stretch = typical.min(MOST_CHANGE).exp();
    // The curvature at the end of the way is at least this part of that at its start.
    let left = 1.0 - change.min(MOST_CHANGE);
    let end = (left.sqrt().recip() / stretch).max(1.0);
    (stretch, (left.recip() / stretch).max(1.0), end)
}

/// Mean squares of the predictors, as a matrix; empty where the curvature is the same at all parameters.
fn squares_of_predictors(hessian: &[f64], curvature: Option<f64>) -> Vec<f64> {
    curvature.map_or_else(Vec::new, |mean| {
        let mean = mean.max(f64::MIN_POSITIVE);
        hessian.iter().map(|h| h / mean).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Law as _, SimulationGenerator};

    fn gaussian(std_dev: f64) -> MatrixLaw {
        MatrixLaw::Gaussian { std_dev }
    }

    fn fit<'a>(hessian: &'a [f64], params: &'a [f64]) -> Regularised<'a> {
        Regularised {
            hessian,
            params,
            l2_strength: 0.1,
            noise: None,
            curvature: None,
            longest_row: 1.0,
            perturbation: Perturbation::Objective,
        }
    }

    #[track_caller]
    fn assert_near(found: &[f64], expected: &[f64]) {
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-12 * e.abs().max(1.0), "{found:?} {expected:?}");
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
        assert_near(step.sampling_map(), step.map());
        assert_near(step.noise_map(), step.map());
        assert_eq!(step.obstacle(&[1.0, 2.0], 1e-9).unwrap(), None);
        assert_eq!(step.obstacle(&[1.0, 2.0], f64::NAN).unwrap(), Some(Obstacle::Hidden));
        assert!(step.obstacle(&[1.0], 1.0).is_err());
        assert!(NewtonStep::new(&fit(&hessian[..3], &params)).is_err());
        assert!(NewtonStep::new(&fit(&[f64::NAN; 4], &params)).is_err());
    }

    #[test]
    fn noise_in_the_hessian_adds_its_variance_and_its_drift() {
        let (hessian, params) = ([2.1, 0.0, 0.0, 1.1], [3.0, 1.0]);
        let noise = 1e-3;
        let noisy = Regularised {
            noise: Some(gaussian(noise)),
            ..fit(&hessian, &params)
        };
        let step = NewtonStep::new(&noisy).unwrap();
        // w = (½, 0), u = (3/2, 1): ½s²λ²(‖w‖²‖u‖² + (wᵀu)²) for the first, and (½λs²(tr(M) wᵀu + wᵀMu))², tr M = 3/2.
        let first = 0.5 * (noise * 0.1_f64).powi(2) * (0.25 * 3.25 + 0.75 * 0.75);
        let drift = 0.5 * 0.1 * noise * noise * (1.5 * 0.75 + 0.375);
        assert_near(&[step.covariance()[0] / first], &[1.0 + drift * drift / first]);
        // The inverse is smaller by ½s² times its trace.
        let shift = 0.5 * noise * noise * 1.5;
        assert_near(&step.map()[..1], &[1.0 + 0.1 / (2.0 + shift)]);
    }

    #[test]
    fn errors_near_the_limit_are_those_of_a_lower_bound() {
        // Over their noise of .1 the eigenvalues are 7 and 10: the first counts as 4.
        let (hessian, params) = ([0.8, 0.0, 0.0, 1.1], [3.0, 1.0]);
        let noisy = Regularised {
            noise: Some(gaussian(0.1)),
            ..fit(&hessian, &params)
        };
        let step = NewtonStep::new(&noisy).unwrap();
        assert_near(step.sampling_map(), &[0.8 / 0.4, 0.0, 0.0, 1.1]);
        assert_near(step.noise_map(), step.sampling_map());
        let output = Regularised {
            perturbation: Perturbation::Output,
            ..noisy
        };
        let step = NewtonStep::new(&output).unwrap();
        assert_near(step.noise_map(), &[1.0 + 0.1 / 0.4, 0.0, 0.0, 1.1]);
        // Laplace noise of the same size hides both, and an eigenvalue of 11 counts as 4.
        let rate = 10.0 * 3.0_f64.sqrt();
        let laplace = |hessian: &[f64]| {
            NewtonStep::new(&Regularised {
                hessian,
                noise: Some(MatrixLaw::MatrixLaplace { rate }),
                ..noisy
            })
            .unwrap()
        };
        assert_near(laplace(&hessian).map(), &[1.0, 0.0, 0.0, 1.0]);
        let clear = laplace(&[1.2, 0.0, 0.0, 2.1]);
        assert_near(clear.sampling_map(), &[1.2 / 0.4, 0.0, 0.0, 1.05]);
    }

    #[test]
    fn a_hidden_direction_hides_what_it_may_move() {
        // 5.9 of its noise.
        let (hessian, params) = ([2.1, 0.0, 0.0, 0.69], [3.0, 0.5]);
        let noisy = Regularised {
            noise: Some(gaussian(0.1)),
            ..fit(&hessian, &params)
        };
        let step = NewtonStep::new(&noisy).unwrap();
        for contrast in [[1.0, 0.0], [0.0, 1.0]] {
            let found = step.obstacle(&contrast, 1.0).unwrap();
            assert_eq!(found, Some(Obstacle::Hidden));
        }
        // However long the interval is.
        let found = step.obstacle(&[0.0, 1.0], 1e9).unwrap();
        assert_eq!(found, Some(Obstacle::Hidden));
        // Two columns that are one: their sum is estimable and their difference is not.
        let collinear = [2.1, 2.0, 2.0, 2.1];
        let step = NewtonStep::new(&fit(&collinear, &params)).unwrap();
        assert_eq!(step.obstacle(&[1.0, 1.0], 0.1).unwrap(), None);
        assert_eq!(step.obstacle(&[1.0, -1.0], 0.1).unwrap(), Some(Obstacle::Hidden));
    }

    #[test]
    fn a_changing_curvature_is_counted_exactly_where_it_falls_fastest() {
        // The risk e⁻ᵗ + at has the third derivative -e⁻ᵗ, and its minimum at -log a. With the gradient -λθ at θ, a = e⁻ᶿ - λθ.
        for theta in [0.5_f64, 1.0, 1.6] {
            let second = (-theta).exp();
            let least = -(second - 0.1 * theta).ln();
            let (hessian, params) = ([second + 0.1], [theta]);
            let curved = Regularised {
                curvature: Some(1.0),
                ..fit(&hessian, &params)
            };
            let step = NewtonStep::new(&curved).unwrap();
            let off = least - step.map()[0] * theta;
            assert!((step.covariance()[0].sqrt() / off - 1.0).abs() < 1e-9);
            assert_eq!(step.obstacle(&[1.0], 1.0).unwrap(), None);
            // An error in the gradient moves the minimiser by its inverse curvature there, which fits near the limit count.
            let there = (-least).exp();
            assert!(step.sampling_map()[0] * step.chance_stretch * (1.0 + 1e-9) >= (second + 0.1) / there);
            let longer = Regularised {
                longest_row: 0.81 * second / (0.1 * theta),
                ..curved
            };
            let found = NewtonStep::new(&longer).unwrap().obstacle(&[1.0], 1.0);
            assert_eq!(found.unwrap(), Some(Obstacle::RidgeTooStrong));
        }
        assert_eq!(Obstacle::RidgeTooStrong.name(), "ridge_too_strong");
    }

    #[test]
    fn fits_near_a_limit_count_that_they_may_have_passed_it_by_chance() {
        // One parameter: the change is Rλθ/H₀², its derivative Rλ/H₀², and the error of the step is the released one times H/H₀.
        let (hessian, params) = ([2.1], [3.0]);
        let of = |change: f64| Regularised {
            curvature: Some(1.0),
            longest_row: change / (0.1 * 1.5),
            ..fit(&hessian, &params)
        };
        let chance = |change: f64, std_dev: f64| {
            let step = NewtonStep::new(&of(change)).unwrap();
            step.chance(&[std_dev * std_dev]).unwrap()[0].sqrt() / step.sampling_map()[0]
        };
        let limit = 0.8;
        for (change, std_dev) in [(0.79, 0.3), (0.6, 0.5), (0.3, 1.0)] {
            // Standard error of the change over the change: that of θ over θ, and that of the predictor √2·θ.
            let margin = f64::ln(limit / change) / (std_dev / 3.0 + 2.0_f64.sqrt() * std_dev);
            // The least curvature on the way is 1 - change of that at its start; a typical predictor changes by √.045.
            let (left, typical) = (1.0 - change, f64::exp(0.045_f64.sqrt()));
            let size = 2.0 - margin / 2.0;
            let by_chance = size * f64::max(1.0 / (left * typical), 1.0);
            let of_all = (size / 2.0).powi(2) * f64::max(1.0 / (left * typical * typical) - 1.0, 0.0);
            let expected = std_dev * (by_chance * by_chance + of_all).sqrt();
            assert_near(&[chance(change, std_dev)], &[expected]);
        }
        // Near the least eigenvalue that is believed: with H₀ = 2 and a mean curvature of 1 a predictor changes by √2 times the error.
        for (ratio, std_dev) in [(1.05_f64, 0.3), (1.4, 0.2)] {
            let noisy = Regularised {
                noise: Some(gaussian(2.0 / (6.0 * ratio * gaussian(1.0).isometric_std_dev(1)))),
                ..of(1e-3)
            };
            let step = NewtonStep::new(&noisy).unwrap();
            let by_params = 2.0_f64.sqrt() * std_dev;
            let spread = by_params.hypot(1.0 / (6.0 * ratio));
            let size = (2.0 - ratio.ln() / spread / 2.0) * by_params / spread;
            let found = step.chance(&[std_dev * std_dev]).unwrap()[0].sqrt();
            assert_near(&[found / step.sampling_map()[0]], &[size * std_dev]);
        }
        // Far from the limit, and where nothing bends: nothing.
        let step = NewtonStep::new(&of(0.05)).unwrap();
        assert!(chance(0.05, 0.3).abs() < 1e-300);
        assert!(step.chance(&[1.0, 2.0]).is_err());
        let straight = NewtonStep::new(&fit(&hessian, &params)).unwrap();
        assert_near(&straight.chance(&[1.0]).unwrap(), &[0.0]);
    }

    /// Coverage of 95% intervals of what is given, and its share, where the weak direction of a quadratic risk has this curvature over the
    /// noise and the ridge is as great as that.
    fn coverage_where_given(curvature: f64, law: MatrixLaw, error: f64) -> (f64, f64) {
        const DRAWS: u32 = 10_000;
        let noise = law.isometric_std_dev(2);
        let (strong, weak) = (60.0 * noise, curvature * noise);
        let lambda = weak;
        let (matrices, errors) = (law.on(2).unwrap(), MatrixLaw::Gaussian { std_dev: 1.0 }.on(2).unwrap());
        let mut generator = SimulationGenerator::new(0, 0);
        let (mut given, mut covered) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let mut hessian = matrices.sample(&mut generator);
            let score = errors.sample(&mut generator);
            hessian[0] += strong + lambda;
            hessian[3] += weak + lambda;
            // The minimiser without the ridge is (1, -3), the noise of the gradients has this standard deviation.
            let params = [
                (strong + error * noise * score[0]) / (strong + lambda),
                (-3.0 * weak + error * noise * score[3]) / (weak + lambda),
            ];
            let step = NewtonStep::new(&Regularised {
                hessian: &hessian,
                params: &params,
                l2_strength: lambda,
                noise: Some(law),
                curvature: None,
                longest_row: 1.0,
                perturbation: Perturbation::Objective,
            })
            .unwrap();
            // The law of the released parameters, from the released Hessian.
            let inverse = Eigen::new(&hessian, 2, "test").map(|eigen| {
                let values = eigen.values.iter().map(|v| error * noise / v).collect();
                Eigen { values, ..eigen }.recompose()
            });
            let half = product_transposed(step.noise_map(), &inverse.unwrap(), 2);
            let variance = half[2].powi(2) + half[3].powi(2) + step.covariance()[3];
            let contrast = [0.0, 1.0];
            if step.obstacle(&contrast, variance.sqrt()).unwrap().is_none() {
                given += 1.0;
                let off = vector::dot(&contrast, &times(step.map(), &params)) + 3.0;
                covered += f64::from(u8::from(off.abs() <= 1.959_964 * variance.sqrt()));
            }
        }
        (covered / given, given / f64::from(DRAWS))
    }

    #[test]
    fn what_is_given_rarely_covers_as_what_is_given_always() {
        for law in [
            MatrixLaw::Gaussian { std_dev: 1e-3 },
            MatrixLaw::MatrixLaplace { rate: 1e3 },
        ] {
            for error in [0.1, 1.0] {
                for beyond in [-2.5, -1.5, 0.0, 2.0, 12.0] {
                    let curvature = least_clear(law) + beyond;
                    let (covered, share) = coverage_where_given(curvature, law, error);
                    assert!(share > 0.005, "{share}");
                    // Below it at .93 once in a million: 4.75 standard errors of a share of at least 50 draws.
                    let allowed = 4.75 * (0.93 * 0.07 / (share * 10_000.0)).sqrt();
                    assert!(
                        covered >= 0.93 - allowed,
                        "{law:?} {error} {curvature}: {covered} of {share}"
                    );
                }
            }
        }
    }
}
