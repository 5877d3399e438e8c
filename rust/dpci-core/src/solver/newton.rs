//! Damped Newton iteration with a Cholesky factorisation.
//!
//! 1. Evaluate value, gradient and Hessian.
//! 2. Stop when the certificate `‖∇J‖/λ` meets the tolerance.
//! 3. Solve `∇²J · p = -∇J`.
//! 4. Try steps 1, ½-or-shorter, ... until the line search accepts.
//!
//! The Newton decrement is *not* the stopping rule: it bounds the value, while the proofs need the distance to the minimiser.
//! Where the last step predicts that the next point will pass step 2, its Hessian is not computed.

use super::line_search::{Sample, accepts, shorten};
use super::{Method, Minimum, Options, Problem, certificate, not_converged};
use crate::Result;
use crate::linalg::{Cholesky, vector};

/// Trials of one line search.
pub(super) const MAX_TRIALS: usize = 60;

pub(super) fn minimize(
    problem: &impl Problem,
    start: &[f64],
    options: &Options,
) -> Result<Minimum> {
    let lambda = problem.strong_convexity();
    let mut params = start.to_vec();
    let (mut value, mut gradient, hessian) = problem.with_hessian(&params)?;
    let mut hessian = Some(hessian);
    let mut reached = certificate(&gradient, lambda);
    for iteration in 0..=options.max_iterations {
        if reached <= options.tolerance {
            return Ok(Minimum {
                params,
                certificate: reached,
                iterations: iteration,
                method: Method::Newton,
            });
        }
        if !reached.is_finite() || !value.is_finite() {
            return Err(not_converged(
                options,
                reached,
                iteration,
                "a value was not finite",
            ));
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
            let candidate: Vec<f64> = params
                .iter()
                .zip(&direction)
                .map(|(t, p)| t + step * p)
                .collect();
            // A full step is mostly taken, so its Hessian comes in the same pass, unless this step looks like the last.
            let last = predicts_convergence(reached, options.tolerance, here.slope);
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
            let next_reached = certificate(&next_gradient, lambda);
            if accepts(here, there, step) || next_reached <= options.tolerance {
                (params, value, gradient, hessian) =
                    (candidate, next_value, next_gradient, next_hessian);
                reached = next_reached;
                accepted = true;
                break;
            }
            step = shorten(here, there, step);
        }
        if !accepted {
            return Err(not_converged(
                options,
                reached,
                iteration + 1,
                "the line search failed",
            ));
        }
    }
    Err(not_converged(
        options,
        reached,
        options.max_iterations,
        "too few iterations",
    ))
}

/// Whether quadratic convergence should end the iteration with this step. A guess: it only saves or costs time.
pub(super) fn predicts_convergence(reached: f64, tolerance: f64, slope: f64) -> bool {
    // The decrement -slope shrinks like its square; with it the certificate by about √(-slope).
    reached * (-slope).sqrt() <= tolerance
}
