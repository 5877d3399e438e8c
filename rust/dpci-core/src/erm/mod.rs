//! Minimises an empirical risk with a certificate: the objective handed to a solver, or to that of the hinge.

mod certify;
mod hinge;
mod kink_split;
mod multipliers;
mod polish;
mod quadratic;
mod smoothed;

use crate::Result;
use crate::objective::{HessianRows, Objective};
use crate::solver::{self, Minimum, Options, Problem};

impl Problem for Objective<'_> {
    fn dim(&self) -> usize {
        self.design.n_params()
    }

    fn strong_convexity(&self) -> f64 {
        self.l2_strength + self.extra_convexity
    }

    fn value_and_gradient(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let e = self.evaluate(point, HessianRows::None)?;
        Ok((e.value, e.gradient))
    }

    fn with_hessian(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let e = self.evaluate(point, HessianRows::All)?;
        Ok((e.value, e.gradient, e.hessian.unwrap_or_default()))
    }

    fn with_preconditioner(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let e = self.evaluate(point, HessianRows::Sample)?;
        Ok((e.value, e.gradient, e.hessian.unwrap_or_default()))
    }
}

/// The certified minimiser of `objective`, from `start` or from zero.
///
/// # Errors
/// As [`solver::minimize`] and [`Objective::evaluate`].
pub fn minimize_risk(
    objective: &Objective<'_>,
    start: Option<&[f64]>,
    options: &Options,
) -> Result<Minimum> {
    let zero = vec![0.0; objective.design.n_params()];
    let start = start.unwrap_or(&zero);
    if objective.loss.kinked() {
        return hinge::minimize(objective, start, options);
    }
    if quadratic::serves(objective, options) {
        return match quadratic::minimize(objective, options)? {
            Ok(minimum) => Ok(minimum),
            Err(near) => solver::minimize(objective, &near, options),
        };
    }
    solver::minimize(objective, start, options)
}

#[cfg(test)]
mod tests;
