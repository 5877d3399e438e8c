//! Polishes a settled point in doubled precision, and bounds its distance to the minimiser of the hinge risk.
//!
//! A subgradient `g` of the risk `J` at `θ` certifies `‖θ - θ*‖ ≤ ‖g‖/λ`, but with `0 < β < m` it is one only where `1 - aᵀθ` is
//! exactly zero. In general it is an e-subgradient, `e = (1/n) Σ (m·max(0, t) - β·t)`, `t = 1 - aᵀθ`. On the ball
//! `‖θ‖ ≤ W` let `r = g + νθ` with any `ν ≥ 0`. Strong convexity of `J + (ν/2)‖·‖²` and of `J` at its constrained minimiser give
//!
//! `(λ + ν/2)·D² ≤ ‖r‖·D + e + (ν/2)(W² - ‖θ‖²)` for the distance `D`, so
//! `D ≤ ‖r‖/s + √((e + (ν/2)(W² - ‖θ‖²))/s)`, `s = λ + ν/2`.
//!
//! The root of e costs half the digits. So `θ` and `β` are found to 30 digits, and e is some 10⁻³⁰; the point that is
//! returned, rounded to f64, is farther from the minimiser only by that rounding. No rank of the rows at the kink
//! has to be known.

use super::hinge::distance;
use super::kink_split::{Split, length, slack_error};
use super::multipliers::{Multiplied, factorise, greatest_stiffness, row_stiffness};
use crate::Result;
use crate::exec::Executor;
use crate::linalg::{Cholesky, DOUBLED_EPSILON, Doubled, vector};

/// Updates of the multipliers, and steps for each.
const MAX_UPDATES: usize = 40;
const MAX_STEPS: usize = 12;

/// Rows whose kink lies farther than this share of the point's length are settled before polishing.
const SHARE_NEAR: f64 = 1e-7;

/// The public numbers of the problem.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// `n`.
    pub(super) n_samples: f64,
    /// λ.
    pub(super) l2_strength: f64,
    /// `W`, where the point has to lie in a ball.
    pub(super) radius: Option<f64>,
}

/// Rows at their kinks, and the point in doubled precision.
pub(super) struct Polish<'a> {
    terms: Terms,
    dim: usize,
    rows: Vec<f64>,
    counts: Vec<f64>,
    lengths: Vec<f64>,
    pull: Vec<Doubled>,
    pull_error: f64,
    /// Near rows of the split, and the mass of those among them that are settled here.
    n_near: usize,
    settled_mass: f64,
    clearance: f64,
    from: Vec<f64>,
    stiffness: f64,
    ridge: Doubled,
    /// `W²` where the ball bounds the point, so that the ridge is free.
    sphere: Option<Doubled>,
    params: Vec<Doubled>,
    multipliers: Vec<Doubled>,
    exec: &'a Executor<'a>,
}

/// A point and what is known of it.
#[derive(Debug)]
pub(super) struct Polished {
    /// The point, rounded.
    pub(super) params: Vec<f64>,
    /// Upper bound on its distance to the minimiser, if all settled rows were settled rightly.
    pub(super) certificate: f64,
    /// Whether those settled here were.
    pub(super) settled_rightly: bool,
}

/// Slacks, slopes and the negative gradient at a point.
struct Slopes {
    slopes: Vec<Doubled>,
    bent: Vec<usize>,
    descent: Vec<Doubled>,
}

impl<'a> Polish<'a> {
    /// Settles the rows of `split` that are clear of their kinks at the point `at`.
    pub(super) fn new(
        split: &Split,
        at: &Multiplied,
        terms: Terms,
        exec: &'a Executor<'a>,
    ) -> Self {
        let dim = split.dim;
        let least = Doubled::product(terms.n_samples, terms.l2_strength);
        let active = terms.radius.filter(|_| at.ridge > least.rounded());
        let sphere = active.map(|w| Doubled::product(w, w));
        let mut polish = Self {
            terms,
            dim,
            rows: Vec::new(),
            counts: Vec::new(),
            lengths: Vec::new(),
            pull: split.pull.clone(),
            pull_error: split.pull_error,
            n_near: split.counts.len(),
            settled_mass: 0.0,
            clearance: f64::INFINITY,
            from: at.params.clone(),
            stiffness: at.stiffness,
            ridge: sphere.map_or(least, |_| at.ridge.into()),
            sphere,
            params: at.params.iter().map(|&t| t.into()).collect(),
            multipliers: Vec::new(),
            exec,
        };
        let params_norm = vector::norm(&at.params);
        let reach = (SHARE_NEAR * params_norm).max(10.0 * at.unrest);
        let rows = split.near.chunks_exact(dim).zip(&split.counts);
        for ((row, &count), &multiplier) in rows.zip(&at.multipliers) {
            let length = length(vector::dot(row, row), row);
            let slack = 1.0 - vector::dot(row, &at.params);
            let distance = (slack.abs() - slack_error(dim, length, params_norm)) / length;
            if distance > reach {
                polish.clearance = polish.clearance.min(distance);
                if slack > 0.0 {
                    add_row(&mut polish.pull, row, count.into());
                    polish.settled_mass += count * length;
                }
            } else {
                polish.rows.extend_from_slice(row);
                polish.counts.push(count);
                polish.lengths.push(length);
                polish.multipliers.push(multiplier.into());
            }
        }
        let n_kept = polish.counts.len();
        polish.stiffness = greatest_stiffness(at.ridge, n_kept).max(at.stiffness);
        polish
    }

    /// Finds point and multipliers in doubled precision.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] where rounding breaks a system, [`crate::Error::Interrupted`].
    pub(super) fn run(mut self) -> Result<Polished> {
        let mut before = f64::INFINITY;
        for _ in 0..MAX_UPDATES {
            let slopes = self.minimize_smoothed()?;
            let unrest = (0..slopes.len())
                .map(|i| (slopes[i] - self.multipliers[i]).rounded().abs() / self.kappa(i))
                .fold(0.0, f64::max);
            self.multipliers = slopes;
            if unrest <= DOUBLED_EPSILON || !(unrest < 0.9 * before) {
                break;
            }
            before = unrest;
        }
        self.move_into_ball();
        Ok(self.certified())
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.dim..(i + 1) * self.dim]
    }

    fn kappa(&self, i: usize) -> f64 {
        row_stiffness(self.stiffness, self.lengths[i])
    }

    fn slack(&self, i: usize) -> Doubled {
        Doubled::from(1.0) - Doubled::dot(self.row(i), &self.params)
    }

    /// The negative gradient `pull + Σ p·a - rθ`.
    fn descent(&self, slopes: &[Doubled]) -> Vec<Doubled> {
        let mut descent = self.pull.clone();
        for (i, &slope) in slopes.iter().enumerate() {
            add_row(&mut descent, self.row(i), slope);
        }
        for (d, &t) in descent.iter_mut().zip(&self.params) {
            *d = *d - self.ridge * t;
        }
        descent
    }

    /// Slopes of the smoothed hinges at the point.
    fn slopes(&self) -> Slopes {
        let raw = |i| self.multipliers[i] + self.slack(i) * self.kappa(i);
        let slopes: Vec<Doubled> = (0..self.counts.len())
            .map(|i| raw(i).clamp(self.counts[i]))
            .collect();
        let free = |&i: &usize| {
            slopes[i] != Doubled::default() && slopes[i] != Doubled::from(self.counts[i])
        };
        Slopes {
            bent: (0..slopes.len()).filter(free).collect(),
            descent: self.descent(&slopes),
            slopes,
        }
    }

    /// Newton's method, with residuals in doubled precision and systems in f64; returns the slopes at its end.
    fn minimize_smoothed(&mut self) -> Result<Vec<Doubled>> {
        let mut factor: Option<(Vec<usize>, Cholesky)> = None;
        let mut here = self.slopes();
        let mut residual = f64::INFINITY;
        for _ in 0..MAX_STEPS {
            self.exec.check()?;
            let mut step: Vec<f64> = here.descent.iter().map(|d| d.rounded()).collect();
            let excess = self.excess();
            let scale = self.ridge.rounded() * vector::norm(&self.from);
            let now = vector::norm(&step) / scale
                + self.sphere.map_or(0.0, |square| (excess / square.rounded()).abs());
            if now <= DOUBLED_EPSILON || !(now < 0.9 * residual) {
                break;
            }
            residual = now;
            if factor.as_ref().is_none_or(|(bent, _)| *bent != here.bent) {
                let new = factorise(
                    &self.rows,
                    self.dim,
                    &here.bent,
                    |i| self.kappa(i),
                    self.ridge.rounded(),
                    self.exec,
                )?;
                factor = Some((here.bent, new));
            }
            if let Some((_, factor)) = &factor {
                factor.solve_in_place(&mut step);
                self.take_step(factor, step, excess);
            }
            here = self.slopes();
        }
        Ok(here.slopes)
    }

    /// `(‖θ‖² - W²)/2` where the point has to lie on the sphere, otherwise 0.
    fn excess(&self) -> f64 {
        let excess = |square| (Doubled::squared_norm(&self.params) - square).rounded();
        0.5 * self.sphere.map_or(0.0, excess)
    }

    /// Moves the point, and where it has to stay on the sphere the ridge: a system bordered by the point.
    fn take_step(&mut self, factor: &Cholesky, mut step: Vec<f64>, excess: f64) {
        if self.sphere.is_some() {
            let point: Vec<f64> = self.params.iter().map(|t| t.rounded()).collect();
            let response = factor.solve(&point);
            let change = (vector::dot(&point, &step) + excess) / vector::dot(&point, &response);
            if (self.ridge.rounded() + change) / self.terms.n_samples > self.terms.l2_strength {
                self.ridge = self.ridge + change.into();
                for (s, r) in step.iter_mut().zip(&response) {
                    *s -= change * r;
                }
            }
        }
        for (t, s) in self.params.iter_mut().zip(step) {
            *t = *t + s.into();
        }
    }

    /// Shrinks a point that rounding left outside the ball.
    fn move_into_ball(&mut self) {
        let Some(radius) = self.terms.radius else {
            return;
        };
        let square = Doubled::product(radius, radius);
        let room = self.rounding();
        let excess = (Doubled::squared_norm(&self.params) - square).rounded() / square.rounded();
        if excess > -room {
            let factor = Doubled::from(1.0) - (0.5 * excess + room).into();
            for t in &mut self.params {
                *t = *t * factor;
            }
        }
    }

    /// Bound on the relative error of a sum over parameters or near rows.
    fn rounding(&self) -> f64 {
        8.0 * (self.dim + self.n_near + 4) as f64 * DOUBLED_EPSILON
    }

    /// The bound on the distance to the minimiser, rounding included, see the head of this file.
    fn certified(&self) -> Polished {
        let Terms {
            n_samples: n,
            l2_strength,
            ..
        } = self.terms;
        let params: Vec<f64> = self.params.iter().map(|t| t.rounded()).collect();
        let params_norm = vector::norm(&params);
        let rounding = self.rounding();
        let mut mass = self.settled_mass;
        let mut excess = 0.0;
        for (i, &multiplier) in self.multipliers.iter().enumerate() {
            let (count, slack) = (self.counts[i], self.slack(i));
            let share = if slack.rounded() > 0.0 {
                Doubled::from(count) - multiplier
            } else {
                -multiplier
            };
            let error = rounding * count * (1.0 + self.lengths[i] * params_norm);
            excess += (slack * share).rounded().abs() + error;
            mass += count * self.lengths[i];
        }
        let descent = self.descent(&self.multipliers);
        let residual: Vec<f64> = descent.iter().map(|d| d.rounded()).collect();
        let pull: Vec<f64> = self.pull.iter().map(|p| p.rounded()).collect();
        let size = mass + vector::norm(&pull) + self.ridge.rounded() * params_norm;
        let residual = vector::norm(&residual) + self.pull_error + rounding * size;
        let (mut nu, mut sagging) = (0.0, 0.0);
        if let Some(square) = self.sphere {
            nu = (self.ridge.rounded() / n - l2_strength).max(0.0);
            let short = (square - Doubled::squared_norm(&self.params)).rounded();
            sagging = 0.5 * nu * (short + rounding * square.rounded());
        }
        let strength = l2_strength + 0.5 * nu;
        let lost = self.params.iter().zip(&params);
        let lost: Vec<f64> = lost.map(|(t, &p)| (*t - p.into()).rounded()).collect();
        let bound = residual / n / strength
            + ((excess / n + sagging) / strength).sqrt()
            + vector::norm(&lost);
        Polished {
            // The few f64 operations above err by far less than a millionth.
            certificate: bound * (1.0 + 1e-6),
            settled_rightly: distance(&params, &self.from) + vector::norm(&lost) < self.clearance,
            params,
        }
    }
}

/// `sum += weight·row`.
fn add_row(sum: &mut [Doubled], row: &[f64], weight: Doubled) {
    for (s, &x) in sum.iter_mut().zip(row) {
        *s = *s + weight * x;
    }
}
