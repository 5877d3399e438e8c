//! Refuses public choices whose scales double precision cannot carry through a fit, its intervals and its files.

use std::ops::RangeInclusive;

use super::distances::greatest_minimiser;
use super::{Choices, Spec};
use crate::error::check;
use crate::privacy::{Budget, Perturbation};
use crate::{Error, Result};

/// Sizes of which products of four, and ratios of squares, are normal numbers: intervals are computed from variances, and tests from
/// squares of these.
const SIZES: RangeInclusive<f64> = 1e-60..=1e60;
const SIZE_RULE: &str = "at least 1e-60 and at most 1e60";

/// Budgets; with a greater one two releases differ in no digit.
const BUDGETS: RangeInclusive<f64> = 1e-60..=1e15;

/// Greatest eigenvalue of a released Hessian, as a multiple of the least: rounding of the greatest must not reach the least, which is what
/// the matrix is positive definite by. Likewise for the variance that noise in the gradient covariance claims, against what the covariance of
/// an error consists of without it: that of the noise in the coefficients, or the greatest that sampling can have. With a great budget the
/// former is far below the latter, and so may the noise be.
const GREATEST_RATIO: f64 = 1e12;

/// Refuses public numbers out of all proportion.
pub(super) fn check_sizes(c: &Choices, budget: Budget) -> Result<()> {
    let strength = (c.loss.curvature_floor() == 0.0).then_some(("l2_strength", c.l2_strength));
    let scale = c.intercept.map(|s| ("intercept", s));
    let radius = c.radius.map(|w| ("radius", w));
    check_budget(budget)?;
    let optional = [strength, scale, radius].into_iter().flatten();
    let mut sizes = [("row_norm", c.rows.norm())].into_iter().chain(optional);
    sizes.try_for_each(|(name, value)| check_size(name, value))
}

/// Refuses a budget out of all proportion.
pub(in crate::spec) fn check_budget(budget: Budget) -> Result<()> {
    let (name, value) = match budget {
        Budget::Pure { epsilon } | Budget::Approx { epsilon, .. } => ("epsilon", epsilon),
        Budget::Zcdp { rho } => ("rho", rho),
    };
    check(BUDGETS.contains(&value), name, "at least 1e-60 and at most 1e15", value)
}

/// Refuses public bounds of columns, or of targets, by which numbers could not be moved and scaled: their middle and half their width.
pub fn check_bounds(of_targets: bool, middle: f64, half: f64) -> Result<()> {
    let name = if of_targets {
        "target_bound"
    } else {
        "half the width of bounds"
    };
    check_size(name, half)?;
    if middle.abs() <= *SIZES.end() {
        return Ok(());
    }
    Err(Error::OutOfRange {
        name: "the middle of bounds",
        rule: "at least -1e60 and at most 1e60",
        value: middle,
    })
}

/// Refuses a public size that is out of all proportion.
pub(in crate::spec) fn check_size(name: &'static str, value: f64) -> Result<()> {
    if SIZES.contains(&value) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        name,
        rule: SIZE_RULE,
        value,
    })
}

impl Spec {
    /// Refuses choices of which each is in proportion but not what follows from them.
    pub(super) fn check_scales(&self) -> Result<()> {
        let [least_gain, greatest_gain] = self.noise_gain();
        let [least_noise, greatest_noise] = self.law.std_dev_range();
        let scales = [
            ("the row norm with the intercept", self.bounds.row_norm),
            ("the strong convexity of the objective", self.strong_convexity()),
            (
                "the least standard deviation of the noise in a coefficient",
                least_noise * least_gain,
            ),
            (
                "the greatest standard deviation of the noise in a coefficient",
                greatest_noise * greatest_gain,
            ),
            (
                "the greatest norm of the coefficients without noise",
                greatest_minimiser(self.bounded()),
            ),
        ];
        for (what, value) in scales {
            if !SIZES.contains(&value) {
                return Err(Error::Unsupported(format!(
                    "{what} must be {SIZE_RULE}, got {value:e}: choose l2_strength, row_norm, intercept and the budget closer to 1"
                )));
            }
        }
        // Scales grow with the margin. Those of the least margins are normal numbers, far above 1e-290, because all sizes and budgets have bounds.
        let Some(moments) = self.moment_noise(self.greatest_margin())? else {
            return Ok(());
        };
        let least = self.strong_convexity();
        let data = self.domain.curvature_bound * self.bounds.row_norm.powi(2);
        let greatest = least + data + moments.spectral_radius(self.n_params());
        if !(greatest <= GREATEST_RATIO * least) {
            return Err(Error::Unsupported(format!(
                "the greatest eigenvalue that the released Hessian can have must be at most {GREATEST_RATIO:e} times the strong \
                 convexity of the objective, got {greatest:e} and {least:e}: use a greater l2_strength or budget, a smaller row_norm, or \
                 moments=\"none\""
            )));
        }
        // All variances pass through the same inverse Hessian in objective perturbation; in output perturbation the noise of the coefficients
        // passes through none.
        let gain = match self.choices.perturbation {
            Perturbation::Objective => 1.0 / self.bounds.n,
            Perturbation::Output => least,
        };
        let of_noise = (least_noise * gain).powi(2);
        let of_data = (self.domain.slope_bound * self.bounds.row_norm).powi(2) / self.bounds.n;
        let claimed = moments.gradient_cov.spectral_radius(self.n_params()) / self.bounds.n;
        if !(claimed <= GREATEST_RATIO * of_noise.max(of_data)) {
            return Err(Error::Unsupported(format!(
                "the variance due to noise in the gradient covariance must be at most {GREATEST_RATIO:e} times the greater one of the variance \
                 of the noise in the coefficients and the greatest variance due to sampling, got {claimed:e} against {of_noise:e} and \
                 {of_data:e}: give the gradient covariance a greater share in split"
            )));
        }
        Ok(())
    }
}
