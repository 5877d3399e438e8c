//! Newton iteration over a ball: each step minimises the quadratic model over the ball exactly.

use super::line_search::{Sample, accepts, shorten};
use super::{Method, Minimum, Options, Problem, certificate, not_converged};
use crate::linalg::{Cholesky, add_diagonal, vector};
use crate::{Error, Result};

/// Trials of one line search.
const MAX_TRIALS: usize = 60;

pub(super) fn minimize(
    problem: &impl Problem,
    start: &[f64],
    radius: f64,
    options: &Options,
) -> Result<Minimum> {
    if !(radius > 0.0) || !radius.is_finite() {
        return Err(Error::OutOfRange {
            name: "radius",
            rule: "finite and > 0",
            value: radius,
        });
    }
    let norm = vector::norm(start);
    let shrink = if norm > radius { radius / norm } else { 1.0 };
    let mut params: Vec<f64> = start.iter().map(|v| v * shrink).collect();
    let mut reached = f64::INFINITY;
    for iteration in 0..options.max_iterations {
        let (value, gradient, hessian) = problem.with_hessian(&params)?;
        reached = ball_certificate(problem, &params, &gradient, radius);
        if reached <= options.tolerance {
            return Ok(Minimum {
                params,
                certificate: reached,
                iterations: iteration,
                method: Method::Newton,
            });
        }
        let target = model_minimum(&hessian, &params, &gradient, radius)?;
        let direction: Vec<f64> = target.iter().zip(&params).map(|(x, t)| x - t).collect();
        let here = Sample {
            value,
            slope: vector::dot(&gradient, &direction),
        };
        let mut step = 1.0;
        let mut next = None;
        for _ in 0..MAX_TRIALS {
            let candidate: Vec<f64> = params
                .iter()
                .zip(&direction)
                .map(|(t, p)| t + step * p)
                .collect();
            let (value, gradient) = problem.value_and_gradient(&candidate)?;
            let there = Sample {
                value,
                slope: vector::dot(&gradient, &direction),
            };
            if accepts(here, there, step)
                || ball_certificate(problem, &candidate, &gradient, radius) <= options.tolerance
            {
                next = Some(candidate);
                break;
            }
            step = shorten(here, there, step);
        }
        let Some(candidate) = next else {
            return Err(not_converged(
                options,
                reached,
                iteration + 1,
                "the line search failed",
            ));
        };
        params = candidate;
    }
    Err(not_converged(
        options,
        reached,
        options.max_iterations,
        "too few iterations",
    ))
}

/// `‖∇J + νθ‖/λ` with the best ν ≥ 0, which is 0 inside the ball.
fn ball_certificate(problem: &impl Problem, params: &[f64], gradient: &[f64], radius: f64) -> f64 {
    let lambda = problem.strong_convexity();
    let norm = vector::norm(params);
    let inside = certificate(gradient, lambda);
    let nu = -vector::dot(gradient, params) / (norm * norm);
    if !(nu > 0.0) {
        return inside;
    }
    let residual: Vec<f64> = gradient
        .iter()
        .zip(params)
        .map(|(g, t)| g + nu * t)
        .collect();
    inside.min(certificate(&residual, lambda) + (radius - norm).abs())
}

/// The minimiser over the ball of the quadratic model at `params`: `(H + νI)x = Hθ - g`.
fn model_minimum(
    hessian: &[f64],
    params: &[f64],
    gradient: &[f64],
    radius: f64,
) -> Result<Vec<f64>> {
    let dim = params.len();
    let right: Vec<f64> = (0..dim)
        .map(|i| vector::dot(&hessian[i * dim..(i + 1) * dim], params) - gradient[i])
        .collect();
    let solve = |nu: f64| {
        let mut matrix = hessian.to_vec();
        add_diagonal(&mut matrix, dim, nu);
        Ok::<_, Error>(Cholesky::new(&matrix, dim, "the Hessian")?.solve(&right))
    };
    let free = solve(0.0)?;
    if vector::norm(&free) <= radius {
        return Ok(free);
    }
    // ‖x(ν)‖ ≤ ‖right‖/ν, so the upper end is feasible.
    let (mut low, mut high) = (0.0, vector::norm(&right) / radius);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if vector::norm(&solve(middle)?) > radius {
            low = middle;
        } else {
            high = middle;
        }
    }
    let mut x = solve(high)?;
    let scale = radius / vector::norm(&x);
    x.iter_mut().for_each(|v| *v *= scale);
    Ok(x)
}
