//! Goes on in doubled precision where rounding stops a solver: Newton's method on a point and a gradient of 30 digits.
//!
//! 1. Evaluate the gradient at the point, both in doubled precision.
//! 2. Stop when the certificate, with the rounding of the gradient and of the point to f64, meets the tolerance.
//! 3. Step by `-H⁻¹r`, H the Hessian in f64 and r the residual; where the point lies on the sphere and is pressed against it with the
//!    multiplier `ν`, by the step of the Lagrangian `J + (ν/2)‖θ‖²` along the sphere, and back onto it.
//! 4. Halve the step until the residual falls.
//!
//! The residual is the stopping rule *and* the measure of progress: values would need twice its digits.

use super::Unrounded;
use super::risk::Risk;
use crate::Result;
use crate::linalg::{Cholesky, DOUBLED_EPSILON, Doubled, add_diagonal, vector};
use crate::loss::has_more_digits;
use crate::records::Request;
use crate::solver::{self, Minimum, Options, Problem, Stall};

/// Newton steps.
const MAX_STEPS: usize = 200;

/// Halvings of a step.
const MAX_HALVINGS: usize = 40;

/// Above this share of the last residual the Hessian is computed anew.
const FAST: f64 = 0.1;

/// Points whose length is this near to the radius are moved to the sphere: an f64 solver keeps a few roundings away from it.
const NEAR: f64 = 32.0 * f64::EPSILON;

/// Quantity that a step has to lessen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// `‖r‖`, which where curvatures differ much takes only short steps of Newton's method.
    Residual,
    /// `rᵀH⁻¹r`, H of the last point: takes whole steps wherever Newton's method converges quadratically.
    Energy,
}

/// A point and what its gradient says.
struct State {
    point: Vec<Doubled>,
    /// `ν`, 0 inside.
    multiplier: f64,
    /// `∇J + νθ`, rounded, and its norm.
    residual: Vec<f64>,
    norm: f64,
}

/// The minimiser to within the tolerance, from where a solver stalled; of its point all digits where `unrounded`.
pub(super) fn refine(
    risk: &Risk<'_>,
    stall: Stall,
    options: &Options,
    unrounded: bool,
    progress: Progress,
) -> Result<Unrounded> {
    if !has_more_digits(risk.objective.loss, stall.params.len(), options.radius) {
        return Err(stall.error);
    }
    let refiner = Refiner {
        risk,
        radius: options.radius,
        unrounded,
        progress,
    };
    let mut point: Vec<Doubled> = stall.params.iter().map(|&t| t.into()).collect();
    if let Some(radius) = options.radius
        && vector::norm(&stall.params) >= radius * (1.0 - NEAR)
    {
        move_to_sphere(&mut point, radius);
    }
    let mut here = refiner.observe(point)?;
    let mut factor = None;
    for step in 0..MAX_STEPS {
        let (params, rest, certificate) = refiner.certified(&here);
        let failed = |reason| solver::not_converged(options, certificate, stall.iterations + step, reason);
        if certificate <= options.tolerance {
            let minimum = Minimum {
                params,
                certificate,
                iterations: stall.iterations + step,
                method: stall.method,
            };
            return Ok(Unrounded { minimum, rest });
        }
        if !here.norm.is_finite() {
            return Err(failed("a value was not finite"));
        }
        let factored = match factor.take() {
            Some(factor) => factor,
            None => refiner.factorise(&params, here.multiplier)?,
        };
        let before = here.norm;
        let Some(next) = refiner.search(&here, &factored)? else {
            return Err(failed("rounding stopped progress, even in doubled precision"));
        };
        here = next;
        if here.norm <= FAST * before && progress == Progress::Residual {
            factor = Some(factored);
        }
    }
    let (_, _, certificate) = refiner.certified(&here);
    let reason = "the iteration limit was reached in doubled precision";
    Err(solver::not_converged(
        options,
        certificate,
        stall.iterations + MAX_STEPS,
        reason,
    ))
}

struct Refiner<'a> {
    risk: &'a Risk<'a>,
    radius: Option<f64>,
    unrounded: bool,
    progress: Progress,
}

impl Refiner<'_> {
    /// `∇J` at a point.
    fn gradient(&self, point: &[Doubled]) -> Result<Vec<Doubled>> {
        let objective = self.risk.objective;
        let request = Request::DoubledGradient { point: point.to_vec() };
        let total = objective
            .records
            .sums(&request, objective.loss, objective.weights, objective.exec)?
            .doubled;
        let n = Doubled::from(objective.n_samples);
        let linear = |j: usize| Doubled::from(objective.linear_term.map_or(0.0, |a| a[j]));
        let terms = total.into_iter().zip(point).enumerate();
        Ok(terms
            .map(|(j, (sum, &t))| sum / n + (t * objective.l2_strength + linear(j)))
            .collect())
    }

    /// The gradient at a point, and the multiplier that makes the residual least.
    fn observe(&self, point: Vec<Doubled>) -> Result<State> {
        let gradient = self.gradient(&point)?;
        let mut multiplier = 0.0;
        if let Some(radius) = self.radius
            && slack(&point, radius).abs() <= 0.5 * f64::EPSILON * radius
        {
            let pairs = gradient.iter().zip(&point);
            let along = pairs.fold(Doubled::default(), |sum, (&g, &t)| sum + g * t);
            let against = -along.rounded() / (radius * radius);
            multiplier = if against > 0.0 { against } else { 0.0 };
        }
        let residual = gradient.iter().zip(&point);
        let residual: Vec<f64> = residual.map(|(&g, &t)| (g + t * multiplier).rounded()).collect();
        Ok(State {
            norm: vector::norm_bound(&residual),
            point,
            multiplier,
            residual,
        })
    }

    /// The point in f64, inside the ball where there is one, what that took from it, and the bound on the distance to the minimiser: of the
    /// point in f64, or where it is not to be rounded of both together.
    fn certified(&self, state: &State) -> (Vec<f64>, Vec<f64>, f64) {
        let params: Vec<f64> = state.point.iter().map(|t| t.rounded()).collect();
        let params_norm = vector::norm_bound(&params) * (1.0 + f64::EPSILON);
        let mut rounding = self.risk.doubled_rounding(params_norm);
        let (mut strength, mut way) = (self.risk.strong_convexity(), 0.0);
        let mut inside = params;
        if let Some(radius) = self.radius {
            if !self.unrounded {
                inside = solver::pulled_into_ball(inside, radius);
            }
            // Where the point lies off the sphere that the multiplier speaks of, or outside the ball: on the way there the residual
            // changes by at most (H + ν) times the distance.
            let off = slack(&state.point, radius);
            if state.multiplier > 0.0 || off <= 0.0 {
                let roundings = state.point.len() as f64 + 8.0;
                way = 2.0 * off.abs() + roundings * DOUBLED_EPSILON * radius;
                rounding += (self.risk.steepness() + state.multiplier) * way;
                strength += 0.5 * state.multiplier;
            }
        }
        // The residual's own last operations.
        rounding += 4.0 * DOUBLED_EPSILON * (state.multiplier * params_norm + state.norm);
        let lost = state.point.iter().zip(&inside);
        let lost: Vec<f64> = lost.map(|(t, &p)| (*t - p.into()).rounded()).collect();
        let mut bound = solver::certificate(state.norm, rounding, strength) + way;
        if !self.unrounded {
            bound += vector::norm_bound(&lost);
        }
        (inside, lost, bound * (1.0 + 4.0 * f64::EPSILON))
    }

    /// The factor of `H + νI`.
    fn factorise(&self, params: &[f64], multiplier: f64) -> Result<Cholesky> {
        let (_, _, mut hessian) = self.risk.with_hessian(params)?;
        add_diagonal(&mut hessian, params.len(), multiplier);
        Cholesky::new(&hessian, params.len(), "the Hessian")
    }

    /// The next point along the step; `None` where the residual does not fall.
    fn search(&self, here: &State, factor: &Cholesky) -> Result<Option<State>> {
        let mut step: Vec<f64> = here.residual.iter().map(|r| -r).collect();
        factor.solve_in_place(&mut step);
        let energy = -vector::dot(&here.residual, &step);
        if here.multiplier > 0.0 {
            // Along the sphere: less what carries it across.
            let normal: Vec<f64> = here.point.iter().map(|t| t.rounded()).collect();
            let mut across = normal.clone();
            factor.solve_in_place(&mut across);
            let share = vector::dot(&normal, &step) / vector::dot(&normal, &across);
            for (s, a) in step.iter_mut().zip(&across) {
                *s -= share * a;
            }
        }
        let mut length = 1.0;
        for _ in 0..MAX_HALVINGS {
            let moved = here.point.iter().zip(&step);
            let mut point: Vec<Doubled> = moved.map(|(&t, s)| t + (length * s).into()).collect();
            if let Some(radius) = self.radius
                && (here.multiplier > 0.0 || slack(&point, radius) < 0.0)
            {
                move_to_sphere(&mut point, radius);
            }
            let next = self.observe(point)?;
            let falls = match self.progress {
                Progress::Residual => next.norm < here.norm,
                Progress::Energy => vector::dot(&next.residual, &factor.solve(&next.residual)) < energy,
            };
            if falls {
                return Ok(Some(next));
            }
            length *= 0.5;
        }
        Ok(None)
    }
}

/// `W - ‖θ‖`, but for its rounding, for a point near the sphere.
fn slack(point: &[Doubled], radius: f64) -> f64 {
    let short = Doubled::product(radius, radius) - Doubled::squared_norm(point);
    0.5 * short.rounded() / radius
}

fn move_to_sphere(point: &mut [Doubled], radius: f64) {
    let scale = Doubled::squared_norm(point).reciprocal_root() * radius;
    for t in point {
        *t = *t * scale;
    }
}
