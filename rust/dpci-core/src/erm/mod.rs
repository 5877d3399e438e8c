//! Minimises an empirical risk with a certificate: the objective handed to a solver, refined where rounding stops it, or to that of the
//! hinge.

#[cfg(test)]
mod certificate_tests;
mod certify;
mod hinge;
mod kink_split;
mod multipliers;
mod polish;
mod quadratic;
mod refine;
mod risk;
mod smoothed;

use crate::error::check_length;
use crate::loss::PREDICTOR_ROOM;
use crate::objective::Objective;
use crate::records::Request;
use crate::solver::{self, Method, Minimum, Options};
use crate::{Error, Result};

/// Rows shorter than this could vanish in underflow when their squares are summed.
const LEAST_LENGTH: f64 = 1e-150;

/// The certified minimiser of `objective`, from `start` or from zero.
///
/// # Errors
/// As [`solver::minimize`] and [`Objective::evaluate`]; [`Error::Unsupported`] for a domain on which the loss is not declared.
pub fn minimize_risk(
    objective: &Objective<'_>,
    start: Option<&[f64]>,
    options: &Options,
) -> Result<Minimum> {
    let dim = objective.records.n_params();
    if let Some(linear) = objective.linear_term {
        check_length("linear_term", dim, linear.len())?;
    }
    let zero = vec![0.0; dim];
    let start = start.unwrap_or(&zero);
    if let Some(bound) = objective.loss.predictor_bound() {
        check_domain(bound, longest_row(objective)?, options.radius)?;
    }
    let options = &Options {
        method: method_for(objective, options),
        ..*options
    };
    if objective.loss.kinked() {
        return hinge::minimize(objective, start, options);
    }
    let risk = risk::Risk::new(objective)?;
    let mut start = start.to_vec();
    if quadratic::serves(objective, options) {
        match quadratic::minimize(&risk, options)? {
            Ok(minimum) => return Ok(minimum),
            Err(stall) => start = stall.params,
        }
    }
    match solver::attempt(&risk, &start, options)? {
        Ok(minimum) => Ok(minimum),
        Err(stall) => refine::refine(&risk, stall, options),
    }
}

/// Up to this size a pass over rows that are read anew costs more for the reading than for the Hessian.
const NEWTON_IN_PARTS_MAX_DIM: usize = 1024;

/// Newton's method in place of an automatic choice where rows are in parts: it makes the fewest passes.
fn method_for(objective: &Objective<'_>, options: &Options) -> Method {
    let in_parts = objective.records.design().is_none();
    let small = objective.records.n_params() <= NEWTON_IN_PARTS_MAX_DIM;
    if options.method == Method::Auto && options.radius.is_none() && in_parts && small {
        Method::Newton
    } else {
        options.method
    }
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

/// The length of the longest row, rounded up, past the squares that vanish in underflow.
fn longest_row(objective: &Objective<'_>) -> Result<f64> {
    let sums = objective.records.sums(
        &Request::Lengths,
        objective.loss,
        objective.weights,
        objective.exec,
    )?;
    let longest = sums.squares[1].sqrt().max(f64::MIN_POSITIVE);
    Ok(longest * (1.0 + f64::EPSILON) + LEAST_LENGTH)
}

#[cfg(test)]
mod tests;
