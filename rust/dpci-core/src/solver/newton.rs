//! Damped Newton iteration with a Cholesky factorisation.
//!
//! 1. Evaluate value, gradient and Hessian.
//! 2. Stop when the certificate `‖∇J‖/λ` meets the tolerance, or the gradient is within its rounding.
//! 3. Solve `∇²J · p = -∇J`.
//! 4. Try steps 1, ½-or-shorter, ... until the line search accepts.
//!
//! The Newton decrement is *not* the stopping rule: it bounds the value, while the proofs need the distance to the minimiser.
//! Where the last step predicts that the next point will pass step 2, its Hessian is not computed.

use super::line_search::{Sample, accepts, shorten};
use super::{Attempt, Method, Minimum, Options, Problem, ROUNDED, Reach, Stall, not_converged};
use crate::Result;
use crate::linalg::{Cholesky, vector};

/// Trials of one line search.
pub(super) const MAX_TRIALS: usize = 60;

pub(super) fn minimize(problem: &impl Problem, start: &[f64], options: &Options) -> Result<Attempt> {
    let mut params = start.to_vec();
    let (mut value, mut gradient, hessian) = problem.with_hessian(&params)?;
    let mut hessian = Some(hessian);
    let mut reached = Reach::of(problem, &params, &gradient);
    for iteration in 0..=options.max_iterations {
        if reached.certificate <= options.tolerance {
            return Ok(Ok(Minimum {
                params,
                certificate: reached.certificate,
                iterations: iteration,
                method: Method::Newton,
            }));
        }
        let failed = |reason| not_converged(options, reached.certificate, iteration, reason);
        if !reached.certificate.is_finite() || !value.is_finite() {
            return Err(failed("a value was not finite"));
        }
        if reached.blurred {
            let error = failed(ROUNDED);
            return Ok(Err(Stall {
                params,
                iterations: iteration,
                method: Method::Newton,
                error,
            }));
        }
        if iteration == options.max_iterations {
            break;
        }
        let matrix = match hessian.take() {
            Some(matrix) => matrix,
            None => problem.with_hessian(&params)?.2,
        };
        let mut direction = Cholesky::new(&matrix, problem.dim(), "the Hessian")?.solve(&gradient);
        for p in &mut direction {
            *p = -*p;
        }
        let here = Sample {
            value,
            slope: vector::dot(&gradient, &direction),
        };
        let mut step = 1.0;
        let mut accepted = false;
        for trial in 0..MAX_TRIALS {
            let candidate: Vec<f64> = params.iter().zip(&direction).map(|(t, p)| t + step * p).collect();
            // A full step is mostly taken, so its Hessian comes in the same pass, unless this step looks like the last.
            let last = predicts_convergence(reached.certificate, options.tolerance, here.slope);
            let (next_value, next_gradient, next_hessian) = if trial == 0 && !last {
                let (v, g, h) = problem.with_hessian(&candidate)?;
                (v, g, Some(h))
            } else {
                let (v, g) = problem.value_and_gradient(&candidate)?;
                (v, g, None)
            };
            let there = Sample {
                value: next_value,
                slope: vector::dot(&next_gradient, &direction),
            };
            let next_reached = Reach::of(problem, &candidate, &next_gradient);
            if accepts(here, there, step) || next_reached.ends(options.tolerance) {
                (params, value, gradient, hessian) = (candidate, next_value, next_gradient, next_hessian);
                reached = next_reached;
                accepted = true;
                break;
            }
            step = shorten(here, there, step);
        }
        if !accepted {
            let reason = "the line search failed";
            let error = not_converged(options, reached.certificate, iteration + 1, reason);
            return Ok(Err(Stall {
                params,
                iterations: iteration + 1,
                method: Method::Newton,
                error,
            }));
        }
    }
    Ok(Err(Stall {
        params,
        iterations: options.max_iterations,
        method: Method::Newton,
        error: not_converged(
            options,
            reached.certificate,
            options.max_iterations,
            "the iteration limit was reached",
        ),
    }))
}

/// Whether quadratic convergence should end the iteration with this step. A guess: it only saves or costs time.
pub(super) fn predicts_convergence(reached: f64, tolerance: f64, slope: f64) -> bool {
    // The decrement -slope shrinks like its square; with it the certificate by about √(-slope).
    reached * (-slope).sqrt() <= tolerance
}
