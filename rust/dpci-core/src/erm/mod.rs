//! Minimises an empirical risk with a certificate: the objective handed to a solver, or to that of the hinge.

mod certify;
mod hinge;
mod kink_split;
mod multipliers;
mod polish;
mod quadratic;

use crate::exec::{BLOCK, blocks};
use crate::loss::PREDICTOR_ROOM;
use crate::objective::{HessianRows, Objective};
use crate::solver::{self, Minimum, Options, Problem};
use crate::{Error, Result};

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
/// As [`solver::minimize`] and [`Objective::evaluate`]; [`Error::Unsupported`] for a domain on which the loss is not declared.
pub fn minimize_risk(
    objective: &Objective<'_>,
    start: Option<&[f64]>,
    options: &Options,
) -> Result<Minimum> {
    let zero = vec![0.0; objective.design.n_params()];
    let start = start.unwrap_or(&zero);
    if let Some(bound) = objective.loss.predictor_bound() {
        check_domain(bound, longest_row(objective)?, options.radius)?;
    }
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

/// Refuses a domain with predictors beyond `bound`: the loss may be anything there, so no certificate would hold.
fn check_domain(bound: f64, longest: f64, radius: Option<f64>) -> Result<()> {
    if radius.is_some_and(|w| w * longest <= bound * (1.0 + PREDICTOR_ROOM)) {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "a loss with predictor_bound={bound} needs a radius of at most {}, the bound over the norm of the longest row with its \
         intercept, got radius={}",
        bound / longest,
        radius.map_or_else(|| "None".into(), |w| w.to_string()),
    )))
}

/// The length of the longest row.
fn longest_row(objective: &Objective<'_>) -> Result<f64> {
    let design = objective.design;
    let chunks = design.chunks();
    let longest = objective.exec.map(chunks.len(), |c| {
        let mut squares = [0.0; BLOCK];
        let mut longest = 0.0_f64;
        for range in blocks(chunks[c].clone()) {
            objective.exec.check()?;
            let squares = &mut squares[..range.len()];
            design.squared_norms(range, squares);
            longest = squares.iter().copied().fold(longest, f64::max);
        }
        Ok(longest.sqrt())
    })?;
    Ok(longest.into_iter().fold(f64::MIN_POSITIVE, f64::max))
}

#[cfg(test)]
mod tests;
