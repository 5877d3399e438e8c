//! Limited-memory BFGS (Nocedal 1980; two-loop recursion) for thousands of variables.
//!
//! 1. Evaluate value and gradient.
//! 2. Stop when the certificate `‖∇J‖/λ` meets the tolerance.
//! 3. Direction by the two-loop recursion over the last [`MEMORY`] steps.
//! 4. Bracketing line search for sufficient decrease and the curvature condition.
//! 5. Keep the step if its curvature `sᵀy` is positive.
//!
//! The relative decrease of the value is *not* a stopping rule: it is blind below the square root of the rounding error.

use std::collections::VecDeque;

use super::line_search::{Sample, accepts, shorten};
use super::{Method, Minimum, Options, Problem, certificate, not_converged};
use crate::Result;
use crate::linalg::vector;

/// Steps remembered.
const MEMORY: usize = 20;
/// Trials of one line search.
const MAX_TRIALS: usize = 60;
/// Curvature condition: the slope must shrink at least to this share.
const CURVATURE: f64 = 0.9;

/// One remembered step.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    product: f64,
}

pub(super) fn minimize(
    problem: &impl Problem,
    start: &[f64],
    options: &Options,
) -> Result<Minimum> {
    let lambda = problem.strong_convexity();
    let mut params = start.to_vec();
    let (mut value, mut gradient) = problem.value_and_gradient(&params)?;
    let mut pairs: VecDeque<Pair> = VecDeque::with_capacity(MEMORY + 1);
    let mut reached = certificate(&gradient, lambda);
    for iteration in 0..=options.max_iterations {
        if reached <= options.tolerance {
            return Ok(Minimum {
                params,
                certificate: reached,
                iterations: iteration,
                method: Method::Lbfgs,
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
        let direction = direction(&gradient, &pairs);
        let here = Sample {
            value,
            slope: vector::dot(&gradient, &direction),
        };
        // The first direction is the bare gradient: its length says nothing about the scale of θ.
        let first = if pairs.is_empty() {
            (1.0 / vector::norm(&gradient)).min(1.0)
        } else {
            1.0
        };
        let Some(next) = search(problem, &params, &direction, here, first, options.tolerance)?
        else {
            if pairs.is_empty() {
                return Err(not_converged(
                    options,
                    reached,
                    iteration + 1,
                    "the line search failed",
                ));
            }
            // The memory can be stale near the end: once more from the gradient.
            pairs.clear();
            continue;
        };
        let step: Vec<f64> = next
            .params
            .iter()
            .zip(&params)
            .map(|(a, b)| a - b)
            .collect();
        let change: Vec<f64> = next
            .gradient
            .iter()
            .zip(&gradient)
            .map(|(a, b)| a - b)
            .collect();
        let product = vector::dot(&step, &change);
        if product > f64::EPSILON * vector::norm(&step) * vector::norm(&change) {
            pairs.push_back(Pair {
                step,
                change,
                product,
            });
            if pairs.len() > MEMORY {
                pairs.pop_front();
            }
        }
        (params, value, gradient) = (next.params, next.value, next.gradient);
        reached = certificate(&gradient, lambda);
    }
    Err(not_converged(
        options,
        reached,
        options.max_iterations,
        "too few iterations",
    ))
}

/// `-H·gradient` for the quasi-Newton approximation `H` of the inverse Hessian.
fn direction(gradient: &[f64], pairs: &VecDeque<Pair>) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut weights = vec![0.0; pairs.len()];
    for (weight, pair) in weights.iter_mut().zip(pairs).rev() {
        *weight = vector::dot(&pair.step, &q) / pair.product;
        q.iter_mut()
            .zip(&pair.change)
            .for_each(|(q, y)| *q -= *weight * y);
    }
    if let Some(last) = pairs.back() {
        let scale = last.product / vector::dot(&last.change, &last.change);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for (weight, pair) in weights.iter().zip(pairs) {
        let beta = vector::dot(&pair.change, &q) / pair.product;
        q.iter_mut()
            .zip(&pair.step)
            .for_each(|(q, s)| *q += (weight - beta) * s);
    }
    q
}

/// A point that the line search accepted.
struct Accepted {
    params: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// Finds a step with sufficient decrease and a much smaller slope; `None` when no trial is accepted.
fn search(
    problem: &impl Problem,
    params: &[f64],
    direction: &[f64],
    here: Sample,
    first: f64,
    tolerance: f64,
) -> Result<Option<Accepted>> {
    if !(here.slope < 0.0) {
        return Ok(None);
    }
    let mut step = first;
    let (mut low, mut high) = (0.0_f64, f64::INFINITY);
    for _ in 0..MAX_TRIALS {
        let point: Vec<f64> = params
            .iter()
            .zip(direction)
            .map(|(t, p)| t + step * p)
            .collect();
        let (value, gradient) = problem.value_and_gradient(&point)?;
        let there = Sample {
            value,
            slope: vector::dot(&gradient, direction),
        };
        let certified = certificate(&gradient, problem.strong_convexity()) <= tolerance;
        if !accepts(here, there, step) && !certified {
            high = step;
            step = low + shorten(here, there, step - low).min(0.9 * (high - low));
        } else if there.slope < CURVATURE * here.slope && !certified {
            // Too short: the slope is still almost as steep.
            low = step;
            step = if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * step
            };
        } else {
            return Ok(Some(Accepted {
                params: point,
                value,
                gradient,
            }));
        }
        if !step.is_finite() || (high.is_finite() && high - low <= f64::EPSILON * high) {
            break;
        }
    }
    Ok(None)
}
