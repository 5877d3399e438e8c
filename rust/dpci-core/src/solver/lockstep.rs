//! Several near problems minimised side by side, so that one pass over the rows serves a gradient of each.
//!
//! 1. All lanes start at one point, where their gradients are known, with one Cholesky factor as preconditioner.
//! 2. A lane that meets its certificate is done.
//! 3. The others take full quasi-Newton steps (two-loop recursion in front of the factor).
//! 4. One pass gives the gradients of all lanes, to the precision that each lane wants: one that certifies nothing yet serves a step with
//!    few digits. Go on with 2.
//! 5. A lane whose gradient fails to halve twice has stalled and is handed back for a solver with a line search.
//!
//! No lane sees another's numbers, and what it wants depends on its own: a lane's result does not depend on its company. It serves studies, which release nothing: its
//! certificates are those of the gradients as computed, without their rounding.

use std::sync::Arc;

use super::lbfgs::{Model, State};
use super::{Method, Minimum, certificate};
use crate::Result;
use crate::linalg::{Cholesky, LANES, Lane, vector};

/// Steps after which a lane counts as stalled.
const MAX_STEPS: usize = 40;

/// What a lane wants a gradient for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: it has its minimum, or there is no such lane.
    Nothing,
    /// A step: a few digits serve.
    Step,
    /// A certificate: this is likely to be its minimum.
    Certificate,
}

/// Problems whose gradients come together.
pub trait LockstepProblem {
    /// Number of variables.
    fn dim(&self) -> usize;

    /// λ of the strong convexity of every problem.
    fn strong_convexity(&self) -> f64;

    /// Gradients of all problems at a point each; `points[j]` holds variable `j` of each. Where no lane wants a [`Wanted::Step`] these are
    /// likely to be the minima, so that what is wanted there may be computed in the same pass. A gradient that has all digits, although a
    /// step needs few, is marked [`Wanted::Certificate`].
    ///
    /// # Errors
    /// Whatever the functions raise.
    fn gradients(&self, points: &[Lane], wanted: &mut [Wanted; LANES]) -> Result<Vec<Lane>>;
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
    /// What the next gradient is for, and whether it has all digits.
    wanted: Wanted,
    certified: bool,
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
///
/// # Errors
/// The problem's own errors.
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
            wanted: Wanted::Certificate,
            certified: true,
        })
        .collect();
    let mut gradients = start.gradients.to_vec();
    loop {
        for (lane, run) in runs
            .iter_mut()
            .enumerate()
            .filter(|(_, run)| run.is_active())
        {
            let gradient: Vec<f64> = gradients.iter().map(|g| g[lane]).collect();
            run.observe(gradient, problem.strong_convexity(), tolerance);
        }
        if !runs.iter().any(Run::is_active) {
            return Ok(runs.into_iter().map(Run::finish).collect());
        }
        let mut points = vec![[0.0; LANES]; dim];
        let mut wanted = [Wanted::Nothing; LANES];
        for (lane, run) in runs.iter().enumerate() {
            for (point, value) in points.iter_mut().zip(&run.params) {
                point[lane] = *value;
            }
            if run.is_active() {
                wanted[lane] = run.wanted;
            }
        }
        gradients = problem.gradients(&points, &mut wanted)?;
        for (run, wanted) in runs.iter_mut().zip(wanted) {
            run.certified = wanted == Wanted::Certificate;
        }
    }
}

impl Run {
    fn is_active(&self) -> bool {
        self.wanted != Wanted::Nothing && self.failures < 2 && self.steps < MAX_STEPS
    }

    /// Whether one more step like the last one meets the certificate.
    fn is_nearly_done(&self, tolerance: f64) -> bool {
        self.reached <= tolerance || self.reached * self.rate <= tolerance
    }

    /// Takes in the gradient at `params` and moves on.
    fn observe(&mut self, gradient: Vec<f64>, strong_convexity: f64, tolerance: f64) {
        let reached = certificate(vector::norm_bound(&gradient), 0.0, strong_convexity);
        let certified = self.certified;
        if certified && reached <= tolerance {
            self.reached = reached;
            self.wanted = Wanted::Nothing;
            return;
        }
        let is_slow = !(reached <= 0.5 * self.reached);
        // A gradient with few digits may have none left; the next has all.
        self.failures += usize::from(is_slow && certified);
        if !reached.is_finite() {
            self.failures = 2;
            return;
        }
        if self.here.is_some() {
            self.rate = reached / self.reached;
        }
        self.reached = reached;
        // Once all digits are wanted they are to the end; the first gradient, at the common start, has them anyway.
        let was_wanted = self.wanted == Wanted::Certificate && self.here.is_some();
        let all_digits = is_slow || was_wanted;
        self.wanted = if all_digits || self.is_nearly_done(tolerance) {
            Wanted::Certificate
        } else {
            Wanted::Step
        };
        let state = State {
            params: self.params.clone(),
            value: 0.0,
            gradient,
        };
        if let Some(before) = &self.here {
            self.model.remember(before, &state);
        }
        let direction = self.model.direction(&state.gradient);
        self.params
            .iter_mut()
            .zip(&direction)
            .for_each(|(p, d)| *p += d);
        self.here = Some(state);
        self.steps += 1;
    }

    fn finish(self) -> std::result::Result<Minimum, Vec<f64>> {
        if self.wanted == Wanted::Nothing {
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
