//! The squared loss `(u - y)²` of a real target `|y| ≤ B`.

use super::sigmoid_family::up;
use super::{Batch, Loss, Targets, diameter, weighted_sum};
use crate::Result;
use crate::error::check;
use crate::linalg::Doubled;

/// Squared loss: curvature 2, slope `2(u - y)` without a bound unless the domain of the parameters has one.
#[derive(Debug, Clone, Copy)]
pub struct Squared {
    target_bound: f64,
}

/// Greatest `target_bound`: squares of slopes stay far from overflow.
const GREATEST_TARGET_BOUND: f64 = 1e70;

impl Squared {
    /// The squared loss for targets in `[-target_bound, target_bound]`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the bound is positive and at most 10⁷⁰.
    pub fn new(target_bound: f64) -> Result<Self> {
        check(
            target_bound > 0.0 && target_bound <= GREATEST_TARGET_BOUND,
            "target_bound",
            "> 0 and at most 1e70",
            target_bound,
        )?;
        Ok(Self { target_bound })
    }
}

impl Loss for Squared {
    getters! { self =>
        name: &'static str = "squared";
        is_likelihood: bool = true;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![self.target_bound]));
        is_quadratic: bool = true;
        slope_bound: f64 = f64::INFINITY;
        curvature_bound: f64 = 2.0;
        self_concordance: f64 = 0.0;
        one_signed: bool = false;
        /// `2(y - u)u` at `u = y/2`, `y = B`.
        greatest_pull: f64 = up(0.5 * self.target_bound * self.target_bound);
    }

    fn targets(&self) -> Targets {
        Targets::Interval {
            lower: -self.target_bound,
            upper: self.target_bound,
        }
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        let residuals = || u.iter().zip(y).map(|(u, y)| u - y);
        if let Some(total) = out.total {
            *total = weighted_sum(residuals().map(|r| r * r), out.weights);
        }
        if let Some(slope) = out.slope {
            slope.iter_mut().zip(residuals()).for_each(|(o, r)| *o = 2.0 * r);
        }
        if let Some(curvature) = out.curvature {
            curvature.fill(2.0);
        }
        Ok(())
    }

    /// One rounding, of the difference.
    fn slope_error(&self, radius: f64) -> f64 {
        f64::EPSILON * self.sup_slope(radius)
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        for (u, y) in u.iter_mut().zip(y) {
            *u = (*u - Doubled::from(*y)) * 2.0;
        }
        true
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        up(2.0 * (radius + self.target_bound))
    }

    fn sup_curvature(&self, _radius: f64) -> f64 {
        2.0
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        up(2.0 * k + self.sup_slope(radius).powi(2))
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        up((2.0 * alpha).hypot(self.sup_slope(radius).powi(2)))
    }

    /// The slope is at most `2B - 2z` at the margin z, a line: `max over s of 2Rr sin 2s + 4RB cos s`, R the `row_norm` and r the
    /// `radius`. 4RB as r vanishes, half of twice the greatest gradient as it grows.
    fn gradient_diameter(&self, row_norm: f64, radius: f64) -> f64 {
        up(row_norm * diameter::below_line(2.0 * self.target_bound, 2.0 * radius))
    }

    fn value_range(&self, radius: f64) -> f64 {
        // The least value is 0, at a predictor that equals its target.
        up((radius + self.target_bound).powi(2))
    }
}
