//! Minimises an empirical risk with a certificate: the objective handed to a solver, refined where rounding stops it, or to that of the
//! hinge.
//!
//! A quadratic loss needs one pass (`quadratic.rs`, up to 400 parameters). Its certificate includes a bound on the rounding of the gradient
//! so computed; where that spoils it, the point found is where an ordinary solve starts. Smooth built-in losses without a radius and with up
//! to 100 parameters have a way that always ends (`guaranteed.rs`).

mod guaranteed;
mod hinge;
mod quadratic;
mod refine;
mod risk;

use refine::Progress;
use risk::{Risk, Sampled};

use crate::error::check_length;
use crate::loss::{PREDICTOR_ROOM, always_converges};
use crate::objective::Objective;
use crate::records::Request;
use crate::solver::{self, Attempt, Method, Minimum, Options, Problem, Stall};
use crate::{Error, Result};

/// Rows shorter than this could vanish in underflow when their squares are summed.
const LEAST_LENGTH: f64 = 1e-150;

/// The certified minimiser of `objective`, from `start` or from zero.
pub fn minimize_risk(objective: &Objective<'_>, start: Option<&[f64]>, options: &Options) -> Result<Minimum> {
    Ok(minimize(objective, start, options, false)?.minimum)
}

/// A minimiser with the digits that f64 does not hold.
#[derive(Debug, Clone)]
pub(crate) struct Unrounded {
    /// The point in f64; its certificate is that of the point together with the rest.
    pub(crate) minimum: Minimum,
    /// Part of the point that rounding removed, at most one rounding of each number; zeros where f64 alone found it.
    pub(crate) rest: Vec<f64>,
}

impl Unrounded {
    fn whole(minimum: Minimum) -> Self {
        Self {
            rest: vec![0.0; minimum.params.len()],
            minimum,
        }
    }
}

/// The certified minimiser of `objective` from zero, with all digits that were found: a point too long for the tolerance in f64 may have
/// enough with them.
pub(crate) fn minimize_unrounded(objective: &Objective<'_>, options: &Options) -> Result<Unrounded> {
    minimize(objective, None, options, true)
}

fn minimize(objective: &Objective<'_>, start: Option<&[f64]>, options: &Options, unrounded: bool) -> Result<Unrounded> {
    let dim = objective.n_params();
    if let Some(linear) = objective.linear_term {
        check_length("linear_term", dim, linear.len())?;
    }
    let zero = vec![0.0; dim];
    let start = start.unwrap_or(&zero);
    if let Some(bound) = objective.loss.predictor_bound() {
        check_domain(bound, longest_row(objective)?, options.radius)?;
    }
    let automatic = options.method == Method::Auto;
    let options = &Options {
        method: method_for(objective, options),
        ..*options
    };
    if objective.loss.kinked() {
        return hinge::minimize(objective, start, options, unrounded);
    }
    let risk = Risk::new(objective, options.radius)?;
    let mut start = start.to_vec();
    if quadratic::serves(objective, options) {
        match quadratic::minimize(&risk, options)? {
            Ok(minimum) => return Ok(Unrounded::whole(minimum)),
            Err(stall) => start = stall.params,
        }
    }
    let mut first = *options;
    if automatic && begins_with_a_sample(objective, options, &start) {
        start = minimiser_of_sample(&risk, start, options)?;
        first.method = Method::Preconditioned;
    }
    let stall = match solver::attempt(&risk, &start, &first)? {
        Ok(minimum) => return Ok(Unrounded::whole(minimum)),
        Err(stall) => stall,
    };
    let stall = match again_by_newton(&risk, stall, options)? {
        Ok(minimum) => return Ok(Unrounded::whole(minimum)),
        Err(stall) => stall,
    };
    match refine::refine(&risk, stall, options, unrounded, Progress::Residual) {
        Err(refused @ Error::NotConverged { .. })
            if automatic && always_converges(objective.loss, dim, options.radius) =>
        {
            guaranteed::minimize(&risk, refused, options, unrounded)
        }
        found => found,
    }
}

/// Whether to begin at the minimiser of a sample: so near the end gradients are enough, of which several cost as much as a Hessian.
fn begins_with_a_sample(objective: &Objective<'_>, options: &Options, start: &[f64]) -> bool {
    objective.records.design().is_some()
        && objective.loss.n_predictors() == 1
        && options.radius.is_none()
        && start.len() <= solver::PRECONDITIONED_MAX_DIM
        && objective.records.n_rows() >= SAMPLED_MIN_ROWS * start.len()
        && start.iter().all(|t| *t == 0.0)
}

/// The minimiser of the risk of a sample of the rows, or where its solver stopped.
fn minimiser_of_sample(risk: &Risk<'_>, start: Vec<f64>, options: &Options) -> Result<Vec<f64>> {
    let sampled = Sampled(risk);
    let options = Options {
        method: Method::Newton,
        tolerance: sampled.tolerance().max(options.tolerance),
        ..*options
    };
    match solver::attempt(&sampled, &start, &options) {
        Ok(Ok(minimum)) => Ok(minimum.params),
        Ok(Err(stall)) => Ok(stall.params),
        Err(Error::NotConverged { .. }) => Ok(start),
        Err(error) => Err(error),
    }
}

/// Rows for each parameter at which a sample of them tells where to begin.
const SAMPLED_MIN_ROWS: usize = 1600;

/// Gradients alone need steps without end where curvatures differ by many powers of ten; Hessians do not.
fn again_by_newton(risk: &Risk<'_>, stall: Stall, options: &Options) -> Result<Attempt> {
    let by_gradients = matches!(stall.method, Method::Lbfgs | Method::Preconditioned);
    let rounded = matches!(stall.error, Error::NotConverged { reason, .. } if reason == solver::ROUNDED);
    if !by_gradients || rounded || risk.dim() > FALLBACK_MAX_DIM || options.method != Method::Auto {
        return Ok(Err(stall));
    }
    let newton = Options {
        method: Method::Newton,
        ..*options
    };
    solver::attempt(risk, &stall.params, &newton)
}

/// Up to this size a Hessian takes seconds at most.
const FALLBACK_MAX_DIM: usize = 2048;

/// Up to this size a pass over rows that are read anew costs more for the reading than for the Hessian.
const NEWTON_IN_PARTS_MAX_DIM: usize = 1024;

/// Newton's method in place of an automatic choice where rows are in parts: it makes the fewest passes; and for losses of several linear
/// predictors, whose Hessians are not sampled.
fn method_for(objective: &Objective<'_>, options: &Options) -> Method {
    let newton = objective.records.design().is_none() || objective.loss.n_predictors() > 1;
    let small = objective.n_params() <= NEWTON_IN_PARTS_MAX_DIM;
    if options.method == Method::Auto && options.radius.is_none() && newton && small {
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
        "a loss with predictor_bound={bound} requires a radius of at most {}, which is the bound divided by the norm of the \
        longest row \
         (intercept included), got radius={}",
        bound / longest,
        radius.map_or_else(|| "None".into(), |w| w.to_string()),
    )))
}

/// The length of the longest row, rounded up, past the squares that vanish in underflow.
fn longest_row(objective: &Objective<'_>) -> Result<f64> {
    let sums = objective
        .records
        .sums(&Request::Lengths, objective.loss, objective.weights, objective.exec)?;
    let longest = sums.squares[1].sqrt().max(f64::MIN_POSITIVE);
    Ok(longest * (1.0 + f64::EPSILON) + LEAST_LENGTH)
}

#[cfg(test)]
mod tests;
