//! Minimisers of smooth, strongly convex functions that certify their answer.
//!
//! For a λ-strongly convex `J`, `‖θ - argmin J‖ ≤ ‖∇J(θ)‖/λ`: the certificate, with the rounding of the computed gradient counted and
//! every step rounded up; `ball.rs` has that of a minimiser over a ball. A point that misses the tolerance is never a result, because
//! the privacy proofs speak of the exact minimiser: it is an error, or where rounding alone stands in the way a [`Stall`], from
//! which a caller with more digits may go on.
//!
//! - *Damped Newton* with Cholesky, up to 32 parameters (1024 for rows in parts): value, gradient and Hessian come in one pass.
//! - *Preconditioned L-BFGS* up to 400, and of many rows always, from the minimiser of a sample of them (`erm/mod.rs`): the factor of one Hessian, from a sample of the rows where they are many, in the middle of the
//!   two-loop recursion; renewed when progress is slow.
//! - *L-BFGS* above that, with 20 remembered steps and a bracketing line search.
//! - *Newton over a ball*, wherever there is a radius, up to 16,384 parameters, because it needs Hessians.
//! - *The ellipsoid method*, for what `erm/guaranteed.rs` asks of it.
//! - *Lockstep*, in studies: sixteen near problems from one start, with one shared factor and no line search.
//!
//! All but lockstep accept a step by Armijo's rule or, where values agree to rounding, by its derivative form: values alone cannot certify
//! 10⁻⁹. The Newton decrement, the relative decrease and the duality gap are no stopping rules, because they bound the value, not the
//! distance.

mod ball;
mod ellipsoid;
mod lbfgs;
mod line_search;
mod lockstep;
mod newton;

use crate::error::{check_length, check_positive};
use crate::linalg::vector;
use crate::{Error, Result};

pub(crate) use ball::pulled_into_ball;
pub(crate) use ellipsoid::{Ellipsoid, greatest_cuts};
pub use lockstep::{LockstepProblem, Pass, Start, minimize_lockstep};

/// A smooth, strongly convex function.
pub trait Problem {
    /// Number of variables.
    fn dim(&self) -> usize;

    /// λ of the strong convexity.
    fn strong_convexity(&self) -> f64;

    /// Bound on the norm of the Hessian at every point.
    fn steepness(&self) -> f64;

    /// Bound on the Euclidean distance of the gradient that is computed at a point to the exact one.
    fn rounding(&self, point: &[f64]) -> f64;

    /// Value and gradient at a point.
    fn value_and_gradient(&self, point: &[f64]) -> Result<(f64, Vec<f64>)>;

    /// Value, gradient and Hessian (row-major) at a point.
    fn with_hessian(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)>;

    /// Value, gradient, and a positive definite matrix near the Hessian that is cheaper than it, where there is one.
    fn with_preconditioner(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        self.with_hessian(point)
    }
}

/// Which method minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// [`Method::Ball`] with a radius; else by size [`Method::Newton`], then [`Method::Preconditioned`], then [`Method::Lbfgs`].
    Auto,
    /// Damped Newton with a Cholesky factorisation.
    Newton,
    /// L-BFGS preconditioned by a Cholesky factorisation of a Hessian, renewed when progress is slow.
    Preconditioned,
    /// Limited-memory BFGS, without any Hessian.
    Lbfgs,
    /// For the hinge: multipliers of the rows at their kinks, polished in doubled precision.
    Multipliers,
    /// Newton over a ball: the one method that takes a radius.
    Ball,
}

impl Method {
    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Newton => "newton",
            Self::Preconditioned => "preconditioned",
            Self::Lbfgs => "lbfgs",
            Self::Multipliers => "multipliers",
            Self::Ball => "ball",
        }
    }
}

/// Up to this size a Hessian costs little more than the gradient pass that comes with it.
const NEWTON_MAX_DIM: usize = 32;

/// Up to this size one Hessian, n·d²/2 products, costs less than the passes that it saves.
pub(crate) const PRECONDITIONED_MAX_DIM: usize = 400;

/// How a solver is run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Method.
    pub method: Method,
    /// The certificate `‖∇J‖/λ` to reach, > 0.
    pub tolerance: f64,
    /// Iterations allowed.
    pub max_iterations: usize,
    /// `W`: minimise over `‖θ‖ ≤ W`, and evaluate nowhere else; > 0.
    pub radius: Option<f64>,
}

/// A certified minimiser.
#[derive(Debug, Clone)]
pub struct Minimum {
    /// The point.
    pub params: Vec<f64>,
    /// Upper bound on its distance to the exact minimiser.
    pub certificate: f64,
    /// Iterations made.
    pub iterations: usize,
    /// The method that ran.
    pub method: Method,
}

/// Where rounding, a line search or the last iteration stopped a solver short of its tolerance.
#[derive(Debug, Clone)]
pub struct Stall {
    /// The last point.
    pub params: Vec<f64>,
    /// Iterations made.
    pub iterations: usize,
    /// The method that ran.
    pub method: Method,
    /// Error to report where nobody goes on from the point.
    pub error: Error,
}

/// A minimum, or how far a solver got.
pub type Attempt = std::result::Result<Minimum, Stall>;

/// Minimises `problem` from `start`.
pub fn minimize(problem: &impl Problem, start: &[f64], options: &Options) -> Result<Minimum> {
    attempt(problem, start, options)?.map_err(|stall| stall.error)
}

/// Minimises `problem` from `start`, as far as its rounding allows.
pub fn attempt(problem: &impl Problem, start: &[f64], options: &Options) -> Result<Attempt> {
    check_options(problem.dim(), start, options)?;
    let dim = problem.dim();
    let method = match (options.method, options.radius) {
        (Method::Auto | Method::Ball, Some(radius)) => {
            return ball::minimize(problem, start, radius, options);
        }
        (method, radius @ Some(_)) | (method @ Method::Ball, radius) => {
            return Err(Error::Unsupported(format!(
                "solver must be \"auto\" or \"ball\" with a radius, and must not be \"ball\" without a radius, got solver=\"{}\" and \
                 radius={}",
                method.name(),
                radius.map_or_else(|| "None".into(), |w| w.to_string())
            )));
        }
        (Method::Auto, None) if dim <= NEWTON_MAX_DIM => Method::Newton,
        (Method::Auto, None) if dim <= PRECONDITIONED_MAX_DIM => Method::Preconditioned,
        (Method::Auto, None) => Method::Lbfgs,
        (chosen, None) => chosen,
    };
    if method == Method::Newton {
        newton::minimize(problem, start, options)
    } else {
        lbfgs::minimize(problem, start, options, method)
    }
}

/// Refuses a start of another length than `dim`, and a tolerance or radius that is not finite and positive.
pub(crate) fn check_options(dim: usize, start: &[f64], options: &Options) -> Result<()> {
    let radius = options.radius.map(|radius| ("radius", radius));
    for (name, value) in [("tolerance", options.tolerance)].into_iter().chain(radius) {
        check_positive(name, value)?;
    }
    check_length("start", dim, start.len())
}

/// Why a solver stops whose gradient is within its rounding.
pub(crate) const ROUNDED: &str = "rounding stopped progress";

/// Bound on the distance to the minimiser, from a computed gradient.
#[derive(Debug, Clone, Copy)]
struct Reach {
    /// Upper bound on the distance; NaN, which passes no comparison, where the gradient holds one.
    certificate: f64,
    /// Whether the gradient is within its own rounding, so that further steps are blind.
    blurred: bool,
}

impl Reach {
    /// `(‖g‖ + rounding)/λ`, rounded up.
    fn of(problem: &impl Problem, point: &[f64], gradient: &[f64]) -> Self {
        let (norm, rounding) = (vector::norm_bound(gradient), problem.rounding(point));
        Self {
            certificate: certificate(norm, rounding, problem.strong_convexity()),
            blurred: norm <= rounding,
        }
    }

    /// Whether a solver has nothing more to do.
    fn ends(self, tolerance: f64) -> bool {
        self.certificate <= tolerance || self.blurred
    }
}

/// `(norm + rounding)/λ`, rounded up.
pub(crate) fn certificate(norm: f64, rounding: f64, strong_convexity: f64) -> f64 {
    (norm + rounding) / strong_convexity * (1.0 + 4.0 * f64::EPSILON) + f64::MIN_POSITIVE
}

pub(crate) fn not_converged(options: &Options, certificate: f64, iterations: usize, reason: &'static str) -> Error {
    Error::NotConverged {
        tolerance: options.tolerance,
        certificate,
        iterations,
        reason,
    }
}

#[cfg(test)]
mod tests;
