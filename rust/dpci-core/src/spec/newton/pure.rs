//! The stages under pure DP: objective perturbation on round rows, whose minimiser is the start of the last step.
//!
//! Costs add up linearly, so that many noisy gradients would each have little. The perturbed minimiser needs none: there the noisy gradient
//! is known, as what the ridge balances (`docs/proofs/newton_pure.md`).

use std::sync::Arc;

use super::{NewtonSpec, NormBounds, Planned};
use crate::Result;
use crate::noise::{AnyLaw, MatrixLaw};
use crate::privacy::{Budget, Calibration, Perturbation, laplace_rate};
use crate::row_domain::RowDomain;
use crate::spec::fit::{greatest_mass, greatest_rows};
use crate::spec::step::check_scale;
use crate::spec::{Choices, MatrixNoise, Moments, NoiseKind, Part, Projection, Query, Seal, Spec, Step, Variant};

/// Rounds in which the rows are made round: the second sees directions that the noise of the first hides.
pub(super) const ROUNDS: usize = 2;
/// Shares of the budget, after the seals': of the radii, each shape, the mean slope at 0 and both matrices. The coefficients have the rest.
pub(super) const RADII: [f64; ROUNDS + 1] = [0.01, 0.01, 0.03];
pub(super) const SHAPE: f64 = 0.03;
const NULL_SLOPE: f64 = 0.01;
pub(super) const MOMENTS: f64 = 0.22;

/// Seals but for that of the mean slope at 0.
const SEALS: u32 = 8;
const _: () = assert!(SEALS as usize == 2 * ROUNDS + 1 + 3);

/// Share of the records whose rows weigh less, before each round; the noise of small tables hides more.
const BEYOND: f64 = 0.05;
/// The same at last: where the noise of the start has at least the variance of sampling, and where it has next to none.
const BEYOND_LAST: [f64; 2] = [0.12, 0.02];
/// For both variances: the radius over the root of the dimension; and the mean square of slopes over that of the greatest, which is .06 to
/// .25 for log-odds.
const LONG_ROW: f64 = 1.5;
const SQUARED_SLOPE: f64 = 0.15;
/// Shares below this many standard deviations of their noise are not told from none.
pub(super) const SEEN: f64 = 3.0;

/// The ridge over the least one, of losses that pay for the Jacobian: where the price is a tenth of the budget.
const RIDGE: f64 = 12.0;
/// No ridge is below this part of the greatest curvature, times the number of rows over the second number where there are more, so that every
/// minimiser has a certificate.
const LEAST_RIDGE: f64 = 1e-7;
const MANY_ROWS: f64 = 1e7;

/// Scales of the noise of the mean slope at 0 below which the share of a class is not told from none.
const SEEN_SHARE: f64 = 2.0;

/// Weight of the Hessian in the joint release, over `L²/t`: intervals need it more than the covariance, which is near it where the model
/// holds.
const HESSIAN_WEIGHT: f64 = 12.0;

impl NewtonSpec {
    /// Whether the mean slope at 0 is released, which tells the best constant predictor.
    pub(crate) fn has_null_slope(&self) -> bool {
        self.choices.intercept.is_some() && self.choices.loss.null_predictor(0.0).is_some()
    }

    /// Seals: radii, shapes, the mean slope at 0, parameters, Hessian and covariance.
    pub(super) fn pure_seals(&self) -> u32 {
        SEALS + u32::from(self.has_null_slope())
    }

    /// Least share of a class that the noise of the mean slope at 0, of this scale, lets be told from none.
    pub(crate) fn least_share(scale: f64) -> f64 {
        (SEEN_SHARE * scale).min(0.5)
    }

    /// Whether noise hides the rarer class, by the predictor that the released share of the classes makes: it is then that of the least
    /// share. Post-processing.
    pub fn hides_class(&self, predictor: f64) -> Result<bool> {
        if !self.is_pure() || !self.has_null_slope() {
            return Ok(false);
        }
        let share = (1.0 + predictor.abs().exp()).recip();
        Ok(share <= Self::least_share(self.null_slope()?.step.scale) * (1.0 + 1e-6))
    }

    /// The noise of the mean slope at 0, which is at most 1/2 in size.
    pub(crate) fn null_slope(&self) -> Result<Planned<AnyLaw>> {
        let (bounds, cost) = (self.choices.terms.bounds(1.0, 1)?, self.share(NULL_SLOPE));
        let sensitivity = bounds.argmin(bounds.objective_shift(0.5), 1.0);
        let kind = (Query::NullSlope, Part::Gradient);
        Planned::independent(kind, cost, &bounds, sensitivity, 1.0, self.seal_cost)
    }

    /// Objective perturbation on rows that weigh less beyond this radius: noise, ridge and seal.
    ///
    /// # Privacy
    /// A weighted row z has `w‖z‖ ≤ r` and `w‖z‖² ≤ r²`, which is all that the proof takes of rows of norm r. Losses whose curvature
    /// vanishes at the greatest slope do not pay for the Jacobian ([`Variant::Offset`]).
    pub(crate) fn perturbed(&self, radius: f64) -> Result<Spec> {
        let c = &self.choices;
        let (bounds, loss) = (self.bounds(radius)?, &c.loss);
        let before: f64 =
            RADII.iter().sum::<f64>() + ROUNDS as f64 * SHAPE + if self.has_null_slope() { NULL_SLOPE } else { 0.0 };
        let cost = self.share(1.0 - before - MOMENTS);
        let epsilon = cost.value();
        let (variant, ridge) = match loss.curvature_slack() {
            slack if slack.is_finite() => (
                Variant::Offset,
                bounds.offset_l2_strength(loss.slope_bound(), slack, epsilon),
            ),
            _ => (
                Variant::Standard,
                RIDGE * bounds.least_l2_strength(loss.curvature_bound(), epsilon),
            ),
        };
        let rows = greatest_rows(bounds.records, bounds.neighbors, bounds.unit) as f64;
        let steepest = greatest_mass(&bounds) * loss.curvature_bound() * radius.powi(2);
        let least = LEAST_RIDGE * steepest * (rows / MANY_ROWS).max(1.0);
        let choices = Choices {
            terms: c.terms,
            n_columns: self.n_params(),
            intercept: None,
            rows: RowDomain::Ball(radius),
            loss: Arc::clone(loss),
            l2_strength: ridge.max(least),
            radius: None,
            budget: Budget::pure(epsilon)?,
            perturbation: Perturbation::Objective,
            variant,
            project: false,
            noise: Some(NoiseKind::SphericalLaplace),
            split: None,
            moments: Moments::None,
            reserve: 0.0,
            projection: Projection::Auto,
            calibration: Calibration::Tight,
        };
        Spec::with_seal(choices, c.budget, self.seal_cost)
    }

    /// Share of the records whose rows weigh less, before a round or at last.
    ///
    /// The noise of the start grows with the longest row. Where it is the greater part of the error, a shorter radius shortens intervals; where
    /// it is small, weights shall move no coefficient.
    pub(super) fn beyond(&self, round: usize) -> Result<f64> {
        if round < ROUNDS {
            return Ok(BEYOND);
        }
        let [most, least] = BEYOND_LAST;
        let dim = self.n_params() as f64;
        let start = self.perturbed(LONG_ROW * dim.sqrt())?;
        let noise = (dim + 1.0) * start.coefficients().scale.powi(2);
        let sampling = SQUARED_SLOPE * self.choices.loss.slope_bound().powi(2) * self.divisor();
        Ok((most * noise / sampling).clamp(least, most))
    }

    /// The ridge of the risk whose perturbed minimiser is the start of the last step, where rows weigh less beyond this radius.
    pub fn ridge(&self, radius: f64) -> Result<f64> {
        Ok(self.perturbed(radius)?.l2_strength())
    }

    /// The radius beyond which rows weigh less, which makes these bounds.
    fn radius_of(&self, bounds: NormBounds) -> f64 {
        bounds.gradient / self.choices.loss.slope_bound()
    }

    /// Adds the steps and seals after the radii and shapes.
    pub(super) fn plan_pure(&self, bounds: NormBounds, steps: &mut Vec<Step>, seals: &mut Vec<Seal>) -> Result<()> {
        if self.has_null_slope() {
            let slope = self.null_slope()?;
            steps.push(slope.step);
            seals.push(slope.seal);
        }
        let perturbed = self.perturbed(self.radius_of(bounds))?;
        let moments = self.moments(bounds)?;
        steps.extend([perturbed.coefficients().clone(), moments.step]);
        seals.extend([*perturbed.seal()].into_iter().chain(moments.seals));
        Ok(())
    }

    /// Matrix Laplace noise on the Hessian and on the gradient covariance as one query: `γ_H‖Δ_H‖_* + γ_Σ‖Δ_Σ‖_* ≤ ε`.
    pub(super) fn pure_moments(&self, bounds: NormBounds) -> Result<[MatrixNoise; 2]> {
        let (loss, cost) = (&self.choices.loss, self.share(MOMENTS));
        let rows = self.bounds(self.radius_of(bounds))?;
        let weight = HESSIAN_WEIGHT * loss.slope_bound().powi(2) / loss.curvature_bound();
        let sensitivity = rows.nuclear(loss.sup_weighted_sum(weight, f64::INFINITY));
        let rate = laplace_rate(sensitivity, cost.value())?;
        let rates = [weight * rate, rate];
        check_scale(rates.iter().all(|rate| rate.recip().is_normal()), cost)?;
        Ok(rates.map(|rate| MatrixNoise {
            law: MatrixLaw::MatrixLaplace { rate },
            sensitivity,
        }))
    }
}
