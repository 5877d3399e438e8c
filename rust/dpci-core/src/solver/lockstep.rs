//! Several near problems minimised side by side, so that one pass over the rows serves a gradient of each.
//!
//! 1. All lanes start at one point, where their gradients are known, with one Cholesky factor as preconditioner.
//! 2. A lane that meets its certificate is done.
//! 3. The others take full quasi-Newton steps (two-loop recursion in front of the factor).
//! 4. One pass gives the gradients of all lanes, the first ones with few digits, and is told when it is likely to be the last; go on with 2.
//! 5. A lane whose gradient fails to halve twice has stalled and is handed back for a solver with a line search.
//!
//! No lane sees another's numbers: a lane's result does not depend on its company. It serves studies, which release nothing: its
//! certificates are those of the gradients as computed, without their rounding.

use std::sync::Arc;

use super::lbfgs::{Model, State};
use super::{Method, Minimum, certificate};
use crate::Result;
use crate::linalg::{Cholesky, LANES, Lane, vector};

/// Steps after which a lane counts as stalled.
const MAX_STEPS: usize = 40;

/// Derivatives that a pass is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Gradients for a step that others follow, which need few digits.
    Rough,
    /// Gradients by which a minimum may be certified.
    Exact,
    /// The same where the points are likely to be the minima, so that what is wanted there may be computed in the same pass.
    Last,
}

/// Problems whose gradients come together.
pub trait LockstepProblem {
    /// Number of variables.
    fn dim(&self) -> usize;

    /// λ of the strong convexity of every problem.
    fn strong_convexity(&self) -> f64;

    /// How many passes are [`Pass::Rough`]: the same for all groups of problems, so that none depends on its company.
    fn n_rough(&self) -> usize {
        0
    }

    /// Gradients of all problems at a point each; `points[j]` holds variable `j` of each. The points of a rough pass are away from the
    /// start by numbers that single precision holds.
    fn gradients(&self, points: &[Lane], pass: Pass) -> Result<Vec<Lane>>;
}

/// One problem on its way.
struct Run {
    model: Model,
    here: Option<State>,
    params: Vec<f64>,
    reached: f64,
    /// By what the last step shrank the certificate.
    rate: f64,
    failures: usize,
    steps: usize,
    done: bool,
}

/// Where all problems start.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The point.
    pub params: &'a [f64],
    /// The gradient of each problem there.
    pub gradients: &'a [Lane],
    /// Factor of a matrix near the Hessians there.
    pub factor: &'a Arc<Cholesky>,
}

/// The certified minimum of each of the first `n_problems` problems, or the last point of one that stalled.
pub fn minimize_lockstep(
    problem: &impl LockstepProblem,
    n_problems: usize,
    start: Start<'_>,
    tolerance: f64,
) -> Result<Vec<std::result::Result<Minimum, Vec<f64>>>> {
    let dim = problem.dim();
    let mut runs: Vec<Run> = (0..n_problems)
        .map(|_| Run {
            model: Model::shared(start.factor),
            here: None,
            params: start.params.to_vec(),
            reached: f64::INFINITY,
            rate: f64::NAN,
            failures: 0,
            steps: 0,
            done: false,
        })
        .collect();
    let mut gradients = start.gradients.to_vec();
    let mut pass = Pass::Exact;
    for number in 1.. {
        for (lane, run) in runs.iter_mut().enumerate().filter(|(_, run)| run.is_active()) {
            let gradient: Vec<f64> = gradients.iter().map(|g| g[lane]).collect();
            run.observe(gradient, problem.strong_convexity(), tolerance, pass);
        }
        let mut active = runs.iter().filter(|run| run.is_active()).peekable();
        if active.peek().is_none() {
            break;
        }
        pass = if number <= problem.n_rough() {
            Pass::Rough
        } else if active.all(|run| run.is_nearly_done(tolerance)) {
            Pass::Last
        } else {
            Pass::Exact
        };
        if pass == Pass::Rough {
            for run in runs.iter_mut().filter(|run| run.is_active()) {
                run.round(start.params);
            }
        }
        let mut points = vec![[0.0; LANES]; dim];
        for (lane, run) in runs.iter().enumerate() {
            for (point, value) in points.iter_mut().zip(&run.params) {
                point[lane] = *value;
            }
        }
        gradients = problem.gradients(&points, pass)?;
    }
    Ok(runs.into_iter().map(Run::finish).collect())
}

impl Run {
    fn is_active(&self) -> bool {
        !self.done && self.failures < 2 && self.steps < MAX_STEPS
    }

    /// Whether one more step like the last one meets the certificate.
    fn is_nearly_done(&self, tolerance: f64) -> bool {
        self.reached * self.rate <= tolerance
    }

    /// Moves `params` to the nearest point whose distance from the start single precision holds.
    #[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
    fn round(&mut self, start: &[f64]) {
        for (value, start) in self.params.iter_mut().zip(start) {
            *value = start + f64::from((*value - start) as f32);
        }
    }

    /// Takes in the gradient at `params` and moves on; a rough one certifies nothing.
    fn observe(&mut self, gradient: Vec<f64>, strong_convexity: f64, tolerance: f64, pass: Pass) {
        let reached = certificate(vector::norm_bound(&gradient), 0.0, strong_convexity);
        if reached <= tolerance && pass != Pass::Rough {
            self.reached = reached;
            self.done = true;
            return;
        }
        if !(reached <= 0.5 * self.reached) {
            self.failures += 1;
        }
        if !reached.is_finite() {
            self.failures = 2;
            return;
        }
        if self.here.is_some() {
            self.rate = reached / self.reached;
        }
        self.reached = reached;
        let state = State {
            params: self.params.clone(),
            value: 0.0,
            gradient,
        };
        if let Some(before) = &self.here {
            self.model.remember(before, &state);
        }
        let direction = self.model.direction(&state.gradient);
        self.params.iter_mut().zip(&direction).for_each(|(p, d)| *p += d);
        self.here = Some(state);
        self.steps += 1;
    }

    fn finish(self) -> std::result::Result<Minimum, Vec<f64>> {
        if self.done {
            return Ok(Minimum {
                params: self.params,
                certificate: self.reached,
                iterations: self.steps,
                method: Method::Preconditioned,
            });
        }
        // The last point with a finite gradient.
        Err(self.here.map_or(self.params, |state| state.params))
    }
}
