//! Newton iteration over the ball `‖θ‖ ≤ W`: its quadratic models are minimised exactly over the ball.
//!
//! 1. Evaluate value, gradient and Hessian, first at the start pulled into the ball.
//! 2. Stop when the certificate meets the tolerance, or the gradient is within its rounding.
//! 3. Minimise the quadratic model over the ball: `(H + νI)x = Hθ - ∇J` with `‖x‖ = W`, or `ν = 0` where that x is inside.
//! 4. Try steps 1, ½-or-shorter, ... towards `x` until the line search accepts; all of them lie in the ball.
//!
//! Nothing is ever evaluated outside the ball: a loss may be declared there alone.
//!
//! The certificate. Let `‖θ‖ = W`, `ν ≥ 0`, `r = ∇J(θ) + νθ` and `D = ‖θ - θ*‖`, θ* the minimiser over the ball. Strong
//! convexity and the variational inequality at θ* give `λD² ≤ ⟨∇J(θ), θ - θ*⟩ = ⟨r, θ - θ*⟩ - ν⟨θ, θ - θ*⟩`, and
//! `⟨θ, θ - θ*⟩ ≥ D²/2` because `‖θ*‖ ≤ ‖θ‖`; so `D ≤ ‖r‖/(λ + ν/2)`. Inside the ball `D ≤ ‖∇J‖/λ`, as without it. Computed
//! points keep a few roundings away from the sphere; what that distance can change is added, and the rounding of the gradient.

use super::line_search::{Sample, accepts, shorten};
use super::newton::{MAX_TRIALS, predicts_convergence};
use super::{Attempt, Method, Minimum, Options, Problem, ROUNDED, Reach, Stall, certificate, not_converged};
use crate::Result;
use crate::error::check;
use crate::linalg::{Cholesky, MAX_MATRIX_DIM, add_diagonal, vector};

/// Steps of the secular equation; Newton's method needs about ten.
const MAX_SECULAR_STEPS: usize = 100;

/// Steps without progress of value or certificate after which rounding is known to have stopped it.
const MAX_IDLE_STEPS: usize = 20;

/// Relative distance that computed points keep from the sphere: what their own rounding, at most half of it, may add to a norm.
const ROOM: f64 = 4.0 * f64::EPSILON;

/// The ball, and how computed points stay in it.
#[derive(Debug, Clone, Copy)]
struct Ball {
    radius: f64,
}

/// The nearest point of the ball `‖θ‖ ≤ radius`, whose length stays within it for certain.
pub(crate) fn pulled_into_ball(params: Vec<f64>, radius: f64) -> Vec<f64> {
    Ball { radius }.pulled(params)
}

/// The quadratic model's minimiser over the ball, and the multiplier of the constraint.
struct Target {
    point: Vec<f64>,
    multiplier: f64,
}

/// Value, gradient and, where it is known, Hessian at a point of the ball.
struct State {
    params: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    hessian: Option<Vec<f64>>,
}

pub(super) fn minimize(problem: &impl Problem, start: &[f64], radius: f64, options: &Options) -> Result<Attempt> {
    let dim = problem.dim();
    check(
        dim <= MAX_MATRIX_DIM,
        "the number of parameters with a radius",
        "at most 16384",
        dim as f64,
    )?;
    let ball = Ball { radius };
    let mut here = evaluate(problem, ball.pulled(start.to_vec()), true)?;
    let mut reached = ball.reach(problem, &here);
    let (mut best, mut idle) = (reached.certificate, 0);
    for iteration in 0..=options.max_iterations {
        if reached.certificate <= options.tolerance {
            return Ok(Ok(Minimum {
                params: here.params,
                certificate: reached.certificate,
                iterations: iteration,
                method: Method::Ball,
            }));
        }
        let failed = |reason| not_converged(options, reached.certificate, iteration, reason);
        if !reached.certificate.is_finite() || !here.value.is_finite() {
            return Err(failed("a value was not finite"));
        }
        if reached.blurred || idle == MAX_IDLE_STEPS {
            return Ok(Err(Stall {
                params: here.params,
                iterations: iteration,
                method: Method::Ball,
                error: failed(ROUNDED),
            }));
        }
        if iteration == options.max_iterations {
            break;
        }
        let matrix = match here.hessian.take() {
            Some(matrix) => matrix,
            None => problem.with_hessian(&here.params)?.2,
        };
        let target = ball.minimize_model(&here, &matrix)?;
        let Some(next) = search(problem, ball, &here, &target, reached, options)? else {
            let reason = "the line search failed";
            let error = not_converged(options, reached.certificate, iteration + 1, reason);
            return Ok(Err(Stall {
                params: here.params,
                iterations: iteration + 1,
                method: Method::Ball,
                error,
            }));
        };
        let rounding = 64.0 * f64::EPSILON * here.value.abs();
        let falls = next.value < here.value - rounding;
        here = next;
        reached = ball.reach(problem, &here);
        let better = reached.certificate < best;
        idle = if falls || better { 0 } else { idle + 1 };
        best = if better { reached.certificate } else { best };
    }
    Ok(Err(Stall {
        params: here.params,
        iterations: options.max_iterations,
        method: Method::Ball,
        error: not_converged(
            options,
            reached.certificate,
            options.max_iterations,
            "the iteration limit was reached",
        ),
    }))
}

/// The first acceptable point on the way from `here` to the model's minimiser; `None` if there is none.
fn search(
    problem: &impl Problem,
    ball: Ball,
    here: &State,
    target: &Target,
    reached: Reach,
    options: &Options,
) -> Result<Option<State>> {
    let difference = target.point.iter().zip(&here.params).map(|(x, t)| x - t);
    let direction: Vec<f64> = difference.collect();
    // On the sphere J falls along the sphere only, and values along the chord say little once steps are short: the full step
    // is judged by the Lagrangian J + ν/2‖θ‖², whose Newton step it is. J falls at least as much, as the step ends on the sphere.
    let lagrangian = |state: &State, multiplier: f64| {
        let norm2 = vector::dot(&state.params, &state.params);
        let along = vector::dot(&state.params, &direction);
        Sample {
            value: state.value + 0.5 * multiplier * norm2,
            slope: vector::dot(&state.gradient, &direction) + multiplier * along,
        }
    };
    let start = lagrangian(here, 0.0);
    let constrained = lagrangian(here, target.multiplier);
    let last = predicts_convergence(reached.certificate, options.tolerance, constrained.slope);
    let mut step = 1.0;
    for trial in 0..MAX_TRIALS {
        let params = if trial == 0 {
            target.point.clone()
        } else {
            let moved = here.params.iter().zip(&direction);
            ball.pulled(moved.map(|(t, p)| t + step * p).collect())
        };
        let next = evaluate(problem, params, trial == 0 && !last)?;
        let end = lagrangian(&next, 0.0);
        let falls = start.slope < 0.0 && accepts(start, end, step);
        let full = trial == 0 && accepts(constrained, lagrangian(&next, target.multiplier), 1.0);
        if falls || full || ball.reach(problem, &next).ends(options.tolerance) {
            return Ok(Some(next));
        }
        step = shorten(start, end, step);
    }
    Ok(None)
}

fn evaluate(problem: &impl Problem, params: Vec<f64>, with_hessian: bool) -> Result<State> {
    let (value, gradient, hessian) = if with_hessian {
        let (value, gradient, hessian) = problem.with_hessian(&params)?;
        (value, gradient, Some(hessian))
    } else {
        let (value, gradient) = problem.value_and_gradient(&params)?;
        (value, gradient, None)
    };
    Ok(State {
        params,
        value,
        gradient,
        hessian,
    })
}

impl Ball {
    /// `‖θ‖/W` to within half the [`ROOM`], whatever the number of entries: a compensated sum (Neumaier 1974).
    fn relative_norm(self, params: &[f64]) -> f64 {
        let (mut sum, mut lost) = (0.0_f64, 0.0);
        for p in params {
            let square = (p / self.radius) * (p / self.radius);
            let next = sum + square;
            lost += if sum >= square {
                (sum - next) + square
            } else {
                (square - next) + sum
            };
            sum = next;
        }
        (sum + lost).sqrt()
    }

    /// The point times what brings it onto the sphere, less the room.
    fn on_sphere(self, mut params: Vec<f64>) -> Vec<f64> {
        let scale = (1.0 - ROOM) / self.relative_norm(&params);
        vector::scale(&mut params, scale);
        params
    }

    /// The nearest point of the ball.
    fn pulled(self, params: Vec<f64>) -> Vec<f64> {
        if self.relative_norm(&params) <= 1.0 - ROOM {
            params
        } else {
            self.on_sphere(params)
        }
    }

    /// Bound on the distance to the minimiser over the ball, from the gradient at a point of it.
    fn reach(self, problem: &impl Problem, state: &State) -> Reach {
        let inside = Reach::of(problem, &state.params, &state.gradient);
        let slack = self.radius * (1.0 - self.relative_norm(&state.params) * (1.0 - 0.5 * ROOM));
        let norm2 = vector::dot(&state.params, &state.params);
        // Any number that is not negative will do.
        let multiplier = -vector::dot(&state.gradient, &state.params) / norm2;
        if !(slack <= 3.0 * ROOM * self.radius && multiplier > 0.0) {
            return inside;
        }
        let rest = state.gradient.iter().zip(&state.params);
        let rest: Vec<f64> = rest.map(|(g, p)| g + multiplier * p).collect();
        // The rounding of r, whose two terms cancel and are about as long, and the way to the sphere, on which r changes by at most
        // (H + ν)·slack.
        let cancelled = 4.0 * f64::EPSILON * vector::norm_bound(&state.gradient);
        let norm = vector::norm_bound(&rest);
        let rounding = problem.rounding(&state.params) + cancelled + (problem.steepness() + multiplier) * slack;
        let strength = problem.strong_convexity() + 0.5 * multiplier;
        let on_sphere = certificate(norm, rounding, strength) + slack;
        if on_sphere < inside.certificate {
            Reach {
                certificate: on_sphere * (1.0 + 4.0 * f64::EPSILON),
                blurred: norm <= rounding,
            }
        } else {
            inside
        }
    }

    /// Minimises the quadratic model at a point over the ball.
    ///
    /// The multiplier solves `1/‖x(ν)‖ = 1/W`, whose left side is concave: Newton's method rises to the root from any lower
    /// bound (Moré & Sorensen 1983). Where the constraint is inactive, the first `x`, at ν = 0, is the answer.
    fn minimize_model(self, here: &State, hessian: &[f64]) -> Result<Target> {
        let (params, gradient, dim) = (&here.params, &here.gradient, here.params.len());
        let trace: f64 = hessian.iter().step_by(dim + 1).sum();
        let rows = hessian.chunks_exact(dim).zip(gradient);
        let rhs: Vec<f64> = rows.map(|(h, g)| vector::dot(h, params) - g).collect();
        // ‖x(ν)‖ ≥ ‖Hθ - ∇J‖/(tr H + ν).
        let mut multiplier = (vector::norm(&rhs) / self.radius - trace).max(0.0);
        let mut shifted = hessian.to_vec();
        let mut shift = 0.0;
        let mut point = Vec::new();
        for _ in 0..MAX_SECULAR_STEPS {
            add_diagonal(&mut shifted, dim, multiplier - shift);
            shift = multiplier;
            let factor = Cholesky::new(&shifted, dim, "the Hessian")?;
            // Steps, not points, are solved for: they keep their digits when they get short.
            let mut step: Vec<f64> = gradient
                .iter()
                .zip(params)
                .map(|(g, p)| -(g + multiplier * p))
                .collect();
            factor.solve_in_place(&mut step);
            point = params.iter().zip(&step).map(|(p, s)| p + s).collect();
            let norm = self.relative_norm(&point);
            if norm <= 1.0 {
                break;
            }
            let norm2 = vector::dot(&point, &point);
            let change = norm2 / vector::dot(&point, &factor.solve(&point)) * (norm - 1.0);
            let next = multiplier + change;
            if !(next > multiplier) {
                break;
            }
            multiplier = next;
        }
        // With a multiplier the point belongs on the sphere, from which rounding keeps it away on either side.
        let point = if multiplier > 0.0 {
            self.on_sphere(point)
        } else {
            self.pulled(point)
        };
        Ok(Target { point, multiplier })
    }
}

#[cfg(test)]
mod tests;
