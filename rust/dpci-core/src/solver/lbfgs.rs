//! Limited-memory BFGS (Nocedal 1980; two-loop recursion), bare or preconditioned by a Cholesky factor of a Hessian.
//!
//! 1. Evaluate value and gradient; where preconditioned, also the Hessian, and factorise it.
//! 2. Stop when the certificate `‖∇J‖/λ` meets the tolerance, or the gradient is within its rounding.
//! 3. Direction by the two-loop recursion over the last [`MEMORY`] steps, with the factor in its middle.
//! 4. Bracketing line search for sufficient decrease and the curvature condition.
//! 5. Keep the step if its curvature `sᵀy` is positive.
//! 6. Where rounding may hide progress: full steps while gradients halve, for who goes on in doubled precision.
//! 7. Where preconditioned: factorise again when the present rate needs more steps than a new Hessian costs.
//!
//! The relative decrease of the value is *not* a stopping rule: it is blind below the square root of the rounding error.

use std::collections::VecDeque;
use std::sync::Arc;

use super::line_search::{Sample, accepts, shorten};
use super::{Attempt, Method, Minimum, Options, Problem, ROUNDED, Reach, Stall, not_converged};
use crate::Result;
use crate::linalg::{Cholesky, vector};

/// Steps remembered.
const MEMORY: usize = 20;
/// Trials of one line search.
const MAX_TRIALS: usize = 60;
/// Steps beyond the bound on the rounding.
const MAX_SETTLING: usize = 10;
/// Curvature condition: the slope must shrink at least to this share.
const CURVATURE: f64 = 0.9;

/// One remembered step.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    product: f64,
}

/// The current point.
pub(super) struct State {
    pub(super) params: Vec<f64>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
}

/// The quasi-Newton model of the inverse Hessian.
#[derive(Default)]
pub(super) struct Model {
    factor: Option<Arc<Cholesky>>,
    pairs: VecDeque<Pair>,
}

pub(super) fn minimize(problem: &impl Problem, start: &[f64], options: &Options, method: Method) -> Result<Attempt> {
    let preconditioned = method == Method::Preconditioned;
    let mut model = Model::default();
    let mut here = evaluate(problem, start.to_vec(), preconditioned, &mut model)?;
    let mut reached = Reach::of(problem, &here.params, &here.gradient);
    for iteration in 0..=options.max_iterations {
        if reached.certificate <= options.tolerance {
            return Ok(Ok(Minimum {
                params: here.params,
                certificate: reached.certificate,
                iterations: iteration,
                method,
            }));
        }
        let failed = |reason| not_converged(options, reached.certificate, iteration, reason);
        if !reached.certificate.is_finite() || !here.value.is_finite() {
            return Err(failed("a value was not finite"));
        }
        if reached.blurred {
            let error = failed(ROUNDED);
            return Ok(Err(Stall {
                params: settled(problem, here, &model)?,
                iterations: iteration,
                method,
                error,
            }));
        }
        if iteration == options.max_iterations {
            break;
        }
        let Some(next) = search(problem, &here, &model, options.tolerance)? else {
            if model.pairs.is_empty() {
                let reason = "the line search failed";
                let error = not_converged(options, reached.certificate, iteration + 1, reason);
                return Ok(Err(Stall {
                    params: here.params,
                    iterations: iteration + 1,
                    method,
                    error,
                }));
            }
            // The memory can be stale near the end: once more without it.
            model.pairs.clear();
            continue;
        };
        model.remember(&here, &next);
        let before = reached.certificate;
        here = next;
        reached = Reach::of(problem, &here.params, &here.gradient);
        if preconditioned && is_slow(before, reached.certificate, options.tolerance, problem.dim()) {
            here = evaluate(problem, here.params, true, &mut model)?;
        }
    }
    Ok(Err(Stall {
        params: here.params,
        iterations: options.max_iterations,
        method,
        error: not_converged(
            options,
            reached.certificate,
            options.max_iterations,
            "the iteration limit was reached",
        ),
    }))
}

/// Evaluates a point; with a new preconditioner, for which the memory is dropped, if `precondition`.
fn evaluate(problem: &impl Problem, params: Vec<f64>, precondition: bool, model: &mut Model) -> Result<State> {
    let (value, gradient) = if precondition {
        let (value, gradient, hessian) = problem.with_preconditioner(&params)?;
        model.factor = Some(Arc::new(Cholesky::new(&hessian, problem.dim(), "the Hessian")?));
        model.pairs.clear();
        (value, gradient)
    } else {
        problem.value_and_gradient(&params)?
    };
    Ok(State {
        params,
        value,
        gradient,
    })
}

/// Where gradients no longer halve. Rounding is mostly far below its bound, and who goes on in doubled precision pays ten of these passes
/// for one.
fn settled(problem: &impl Problem, mut here: State, model: &Model) -> Result<Vec<f64>> {
    for _ in 0..MAX_SETTLING {
        let direction = model.direction(&here.gradient);
        let moved = here.params.iter().zip(&direction);
        let params: Vec<f64> = moved.map(|(t, p)| t + p).collect();
        let (value, gradient) = problem.value_and_gradient(&params)?;
        if !(2.0 * vector::norm(&gradient) < vector::norm(&here.gradient)) {
            break;
        }
        here = State {
            params,
            value,
            gradient,
        };
    }
    Ok(here.params)
}

/// Whether the rate of the last step leaves more steps to go than a new Hessian costs: about `dim/64` gradients, and then
/// few steps. A guess: it only saves or costs time.
fn is_slow(before: f64, reached: f64, tolerance: f64, dim: usize) -> bool {
    let rate = (reached / before).ln();
    let to_go = (tolerance / reached).ln();
    to_go < 0.0 && (rate >= 0.0 || to_go / rate > 4.0 + dim as f64 / 64.0)
}

impl Model {
    /// A model that starts from a shared factor.
    pub(super) fn shared(factor: &Arc<Cholesky>) -> Self {
        Self {
            factor: Some(Arc::clone(factor)),
            pairs: VecDeque::new(),
        }
    }

    /// `-B·gradient` for the model `B` of the inverse Hessian.
    pub(super) fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut weights = vec![0.0; self.pairs.len()];
        for (weight, pair) in weights.iter_mut().zip(&self.pairs).rev() {
            *weight = vector::dot(&pair.step, &q) / pair.product;
            q.iter_mut().zip(&pair.change).for_each(|(q, y)| *q -= *weight * y);
        }
        if let Some(factor) = &self.factor {
            factor.solve_in_place(&mut q);
        } else if let Some(last) = self.pairs.back() {
            let scale = last.product / vector::dot(&last.change, &last.change);
            vector::scale(&mut q, scale);
        }
        for (weight, pair) in weights.iter().zip(&self.pairs) {
            let beta = vector::dot(&pair.change, &q) / pair.product;
            q.iter_mut()
                .zip(&pair.step)
                .for_each(|(q, s)| *q += (weight - beta) * s);
        }
        q
    }

    /// Keeps a step of positive curvature.
    pub(super) fn remember(&mut self, from: &State, to: &State) {
        let difference = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
        let step: Vec<f64> = difference(&to.params, &from.params);
        let change: Vec<f64> = difference(&to.gradient, &from.gradient);
        let product = vector::dot(&step, &change);
        if product > f64::EPSILON * vector::norm(&step) * vector::norm(&change) {
            self.pairs.push_back(Pair { step, change, product });
            if self.pairs.len() > MEMORY {
                self.pairs.pop_front();
            }
        }
    }

    /// First step length to try. A bare gradient says nothing about the scale of θ.
    fn first_step(&self, gradient: &[f64]) -> f64 {
        if self.pairs.is_empty() && self.factor.is_none() {
            (1.0 / vector::norm(gradient)).min(1.0)
        } else {
            1.0
        }
    }
}

/// Finds a step with sufficient decrease and a much smaller slope; `None` when no trial is accepted.
fn search(problem: &impl Problem, from: &State, model: &Model, tolerance: f64) -> Result<Option<State>> {
    let direction = model.direction(&from.gradient);
    let here = Sample {
        value: from.value,
        slope: vector::dot(&from.gradient, &direction),
    };
    if !(here.slope < 0.0) {
        return Ok(None);
    }
    let mut step = model.first_step(&from.gradient);
    let (mut low, mut high) = (0.0_f64, f64::INFINITY);
    for _ in 0..MAX_TRIALS {
        let params: Vec<f64> = from.params.iter().zip(&direction).map(|(t, p)| t + step * p).collect();
        let (value, gradient) = problem.value_and_gradient(&params)?;
        let there = Sample {
            value,
            slope: vector::dot(&gradient, &direction),
        };
        let ends = Reach::of(problem, &params, &gradient).ends(tolerance);
        if !accepts(here, there, step) && !ends {
            high = step;
            step = low + shorten(here, there, step - low).min(0.9 * (high - low));
        } else if there.slope < CURVATURE * here.slope && !ends {
            // Too short: the slope is still almost as steep.
            low = step;
            step = if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * step
            };
        } else {
            return Ok(Some(State {
                params,
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
