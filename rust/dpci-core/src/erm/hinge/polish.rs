//! Polishes a settled point of the hinge risk in doubled precision: the method of multipliers once more, on few rows.
//!
//! Rows that f64 cannot tell from their kinks are at it here only if they are to 30 digits. Where rows differ by little the
//! kinks have to be stiff to tell them apart, beyond what f64 can solve; then the systems are doubled too.
//!
//! The sphere is treated as a kink: with `c = (‖θ‖² - W²)/2` and a multiplier `r ≥ nλ`, the ridge, the smoothed risk has
//! the ridge `max(nλ, r + κc)`, which then becomes `r`. A point between sphere and kinks that touch does not determine
//! `r` and the `β`; any that rest will do, so touching needs no case of its own.
//!
//! The distance to the minimiser, rounding included:
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

use std::cmp::Ordering;

use super::distance;
use super::kink_split::{KinkSplit, length, slack_error};
use super::multipliers::{Multiplied, factorise, greatest_stiffness, line_search, row_stiffness};
use crate::Result;
use crate::exec::Executor;
use crate::linalg::{Cholesky, DOUBLED_EPSILON, Doubled, DoubledCholesky, vector};

/// Newton steps for one smoothed risk.
const MAX_STEPS: usize = 300;

/// Steps along the sphere, which is not piecewise quadratic, that may fail to halve the residual.
const PATIENCE: usize = 3;

/// Relative change of the ridge up to which a factor is used again.
const RIDGE_SHARE: f64 = 1e-3;

/// Updates of the multipliers.
const MAX_UPDATES: usize = 60;

/// An update that leaves more than this share of the unrest asks for stiffer kinks.
const FAST: f64 = 1e-3;

/// Growth of the stiffness then: rows that differ by little have to be told apart.
const GROWTH: f64 = 64.0;

/// Greatest ratio of the eigenvalues of a system.
const MAX_CONDITION: f64 = 1e26;

/// Stiffness, in terms of the ridge, and number of last updates after stiffer ones. These have found the multipliers, but
/// turn the last digits of the point into force; softer kinks with the same multipliers do not.
const SOFT: f64 = 1e12;
const SOFT_UPDATES: usize = 3;

/// Rows whose kink lies farther than this share of the point's length are settled before polishing.
pub(super) const SHARE_NEAR: f64 = 1e-7;

/// Growth of that distance where the point moved farther.
const WIDEN: f64 = 1e3;

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
    pub(super) terms: Terms,
    pub(super) dim: usize,
    pub(super) rows: Vec<f64>,
    pub(super) counts: Vec<f64>,
    pub(super) lengths: Vec<f64>,
    pub(super) pull: Vec<Doubled>,
    pub(super) pull_error: f64,
    /// Near rows of the split, and the mass of those among them that are settled here.
    pub(super) n_near: usize,
    pub(super) settled_mass: f64,
    pub(super) clearance: f64,
    pub(super) from: Vec<f64>,
    pub(super) stiffness: f64,
    /// The multiplier of the sphere, at least `nλ`.
    pub(super) ridge: Doubled,
    pub(super) least_ridge: Doubled,
    /// `W²`, where there is a ball.
    pub(super) sphere: Option<Doubled>,
    pub(super) params: Vec<Doubled>,
    pub(super) multipliers: Vec<Doubled>,
    pub(super) exec: &'a Executor<'a>,
}

/// The point `at` in doubled precision, and its distance to the minimiser if the split settled its rows rightly.
pub(super) fn polish(split: &KinkSplit, at: &Multiplied, terms: Terms, exec: &Executor<'_>) -> Result<Polished> {
    let mut reach = (SHARE_NEAR * vector::norm(&at.params)).max(10.0 * at.unrest);
    loop {
        let mut polish = Polish::new(split, at, terms, reach, exec);
        polish.settle()?;
        let polished = polish.certified();
        // With every near row kept the clearance is infinite, so this ends, unless the point is not a number.
        if polished.settled_rightly || !(reach < f64::INFINITY) {
            return Ok(polished);
        }
        reach *= WIDEN;
    }
}

impl<'a> Polish<'a> {
    /// Settles the rows of `split` that are clear of their kinks at the point `at`.
    pub(super) fn new(split: &KinkSplit, at: &Multiplied, terms: Terms, reach: f64, exec: &'a Executor<'a>) -> Self {
        let dim = split.dim;
        let least_ridge = Doubled::product(terms.n_samples, terms.l2_strength);
        let raised = terms.radius.is_some() && at.ridge > least_ridge.rounded();
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
            ridge: if raised { at.ridge.into() } else { least_ridge },
            least_ridge,
            sphere: terms.radius.map(|w| Doubled::product(w, w)),
            params: at.params.iter().map(|&t| t.into()).collect(),
            multipliers: Vec::new(),
            exec,
        };
        let params_norm = vector::norm(&at.params);
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
        polish
    }

    /// Finds point and multipliers in doubled precision.
    pub(super) fn settle(&mut self) -> Result<()> {
        let greatest = MAX_CONDITION * self.ridge.rounded() / self.counts.len().max(1) as f64;
        let mut before = f64::INFINITY;
        for _ in 0..MAX_UPDATES {
            let unrest = self.update()?;
            if unrest <= DOUBLED_EPSILON || (unrest > 0.5 * before && self.stiffness >= greatest) {
                break;
            }
            if unrest > FAST * before {
                self.stiffness = (self.stiffness * GROWTH).min(greatest);
            }
            before = unrest;
        }
        let soft = SOFT * self.ridge.rounded();
        if self.stiffness > soft {
            self.stiffness = soft;
            for _ in 0..SOFT_UPDATES {
                self.update()?;
            }
        }
        self.move_into_ball();
        Ok(())
    }

    /// Updates the multipliers at the minimum of the smoothed risk; returns how far that moved a kink.
    fn update(&mut self) -> Result<f64> {
        let Smoothed { slopes, ridge, .. } = self.minimize_smoothed()?;
        let sphere = self.terms.radius.map_or(0.0, |w| {
            (ridge - self.ridge).rounded().abs() / self.sphere_kappa() / w / w
        });
        let unrest = (0..slopes.len())
            .map(|i| (slopes[i] - self.multipliers[i]).rounded().abs() / self.kappa(i))
            .fold(sphere, f64::max);
        self.multipliers = slopes;
        self.ridge = ridge;
        Ok(unrest)
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.dim..(i + 1) * self.dim]
    }

    pub(super) fn kappa(&self, i: usize) -> f64 {
        row_stiffness(self.stiffness, self.lengths[i])
    }

    /// `κ` of the sphere, zero where there is none: that of a row as long as the radius, for the normal at `θ` is `θ`.
    pub(super) fn sphere_kappa(&self) -> f64 {
        let kappa = |radius| row_stiffness(self.stiffness, radius);
        self.terms.radius.map_or(0.0, kappa)
    }

    pub(super) fn slack(&self, i: usize) -> Doubled {
        Doubled::from(1.0) - Doubled::dot(self.row(i), &self.params)
    }

    /// The negative gradient `pull + Σ p·a - rθ`.
    pub(super) fn descent(&self, slopes: &[Doubled], ridge: Doubled) -> Vec<Doubled> {
        let mut descent = self.pull.clone();
        for (i, &slope) in slopes.iter().enumerate() {
            add_row(&mut descent, self.row(i), slope);
        }
        for (d, &t) in descent.iter_mut().zip(&self.params) {
            *d = *d - ridge * t;
        }
        descent
    }
}

/// `sum += weight·row`.
fn add_row(sum: &mut [Doubled], row: &[f64], weight: Doubled) {
    for (s, &x) in sum.iter_mut().zip(row) {
        *s = *s + weight * x;
    }
}

/// A point and what is known of it.
#[derive(Debug)]
pub(super) struct Polished {
    /// The point, rounded.
    pub(super) params: Vec<f64>,
    /// Part of the point that rounding took from it.
    pub(super) rest: Vec<f64>,
    /// Upper bound on the distance of the point before rounding to the minimiser, if the split settled its rows rightly.
    pub(super) certificate: f64,
    /// How far rounding moved it.
    pub(super) lost: f64,
    /// Whether no row that was settled for polishing can have changed sides.
    pub(super) settled_rightly: bool,
}

impl Polish<'_> {
    /// Shrinks a point that rounding left outside the ball.
    pub(super) fn move_into_ball(&mut self) {
        let Some(radius) = self.terms.radius else {
            return;
        };
        let square = Doubled::product(radius, radius);
        let room = self.product_rounding();
        let excess = (Doubled::squared_norm(&self.params) - square).rounded() / square.rounded();
        if excess > -room {
            let factor = Doubled::from(1.0) - (0.5 * excess + room).into();
            for t in &mut self.params {
                *t = *t * factor;
            }
        }
    }

    /// Bound on the relative error of a product of two vectors of parameters, in terms of their lengths.
    fn product_rounding(&self) -> f64 {
        (self.dim as f64 + 4.0) * DOUBLED_EPSILON
    }

    /// The bound on the distance to the minimiser, rounding included, see the head of this file.
    pub(super) fn certified(&self) -> Polished {
        let Terms {
            n_samples: n,
            l2_strength,
            ..
        } = self.terms;
        let params: Vec<f64> = self.params.iter().map(|t| t.rounded()).collect();
        let params_norm = vector::norm(&params);
        let rounding = self.product_rounding();
        let mut mass = self.settled_mass;
        // Products that vanish in underflow.
        let mut excess = f64::MIN_POSITIVE;
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
        let descent = self.descent(&self.multipliers, self.ridge);
        let residual: Vec<f64> = descent.iter().map(|d| d.rounded()).collect();
        let pull: Vec<f64> = self.pull.iter().map(|p| p.rounded()).collect();
        let size = mass + vector::norm(&pull) + self.ridge.rounded() * params_norm;
        let sums = rounding + self.n_near as f64 * DOUBLED_EPSILON;
        let residual = vector::norm(&residual) + self.pull_error + sums * size;
        let (mut nu, mut sagging) = (0.0, 0.0);
        if let Some(square) = self.sphere {
            nu = (self.ridge - self.least_ridge).rounded() / n;
            let short = (square - Doubled::squared_norm(&self.params)).rounded();
            sagging = 0.5 * nu * (short + rounding * square.rounded());
        }
        let strength = l2_strength + 0.5 * nu;
        let lost = self.params.iter().zip(&params);
        let rest: Vec<f64> = lost.map(|(t, &p)| (*t - p.into()).rounded()).collect();
        let lost = vector::norm_bound(&rest);
        let bound = residual / n / strength + ((excess / n + sagging) / strength).sqrt();
        Polished {
            // The few f64 operations above err by far less than a millionth.
            certificate: bound * (1.0 + 1e-6),
            settled_rightly: distance(&params, &self.from) + lost < self.clearance,
            lost,
            params,
            rest,
        }
    }
}

/// The smoothed hinges at a point.
pub(super) struct Smoothed {
    /// `β + κt` before clamping, and after it.
    raw: Vec<f64>,
    pub(super) slopes: Vec<Doubled>,
    /// On which of its three pieces each hinge is, and which are on the middle one.
    pieces: Vec<Ordering>,
    pub(super) bent: Vec<usize>,
    /// The same for the sphere: the ridge, and whether it is above the least one.
    raw_ridge: f64,
    pub(super) ridge: Doubled,
    pressed: bool,
    /// The negative gradient.
    descent: Vec<Doubled>,
}

/// The factor of the system of these bent rows at this ridge.
pub(super) struct Factored {
    bent: Vec<usize>,
    ridge: f64,
    pub(super) factor: Factor,
}

/// A factor in f64, where its condition allows that, or in doubled precision.
pub(super) enum Factor {
    Plain(Cholesky),
    Doubled(DoubledCholesky),
}

impl Factor {
    pub(super) fn solve_in_place(&self, rhs: &mut [Doubled]) {
        match self {
            Self::Doubled(factor) => factor.solve_in_place(rhs),
            Self::Plain(factor) => {
                let mut rounded: Vec<f64> = rhs.iter().map(|r| r.rounded()).collect();
                factor.solve_in_place(&mut rounded);
                for (r, value) in rhs.iter_mut().zip(rounded) {
                    *r = value.into();
                }
            }
        }
    }
}

impl Factored {
    /// Whether a step with this factor is as good as one with a new factor.
    fn serves(&self, here: &Smoothed) -> bool {
        self.bent == here.bent && (here.ridge.rounded() / self.ridge - 1.0).abs() <= RIDGE_SHARE
    }
}

impl Polish<'_> {
    /// The smoothed hinges at the point.
    pub(super) fn smoothed(&self) -> Smoothed {
        let raw: Vec<Doubled> = (0..self.counts.len())
            .map(|i| self.multipliers[i] + self.slack(i) * self.kappa(i))
            .collect();
        let clamped = raw.iter().zip(&self.counts);
        let slopes: Vec<Doubled> = clamped.map(|(r, &count)| r.clamp(count)).collect();
        let piece = |(slope, &count): (&Doubled, &f64)| {
            if *slope == Doubled::default() {
                Ordering::Less
            } else if *slope == Doubled::from(count) {
                Ordering::Greater
            } else {
                Ordering::Equal
            }
        };
        let pieces: Vec<Ordering> = slopes.iter().zip(&self.counts).map(piece).collect();
        let excess = |square| (Doubled::squared_norm(&self.params) - square) * 0.5;
        let raw_ridge = self.ridge + self.sphere.map_or_else(Doubled::default, excess) * self.sphere_kappa();
        let pressed = (raw_ridge - self.least_ridge).rounded() > 0.0;
        let ridge = if pressed { raw_ridge } else { self.least_ridge };
        Smoothed {
            bent: (0..slopes.len()).filter(|&i| pieces[i].is_eq()).collect(),
            raw_ridge: raw_ridge.rounded(),
            ridge,
            pressed,
            descent: self.descent(&slopes, ridge),
            raw: raw.iter().map(|r| r.rounded()).collect(),
            slopes,
            pieces,
        }
    }

    /// Newton's method on the smoothed risk; returns the hinges at its end.
    pub(super) fn minimize_smoothed(&mut self) -> Result<Smoothed> {
        let mut factored: Option<Factored> = None;
        let mut here = self.smoothed();
        let (mut residual, mut resting, mut stalls) = (f64::INFINITY, true, 0);
        for _ in 0..MAX_STEPS {
            self.exec.check()?;
            let scale = here.ridge.rounded() * vector::norm(&self.from);
            let rounded: Vec<f64> = here.descent.iter().map(|d| d.rounded()).collect();
            let now = vector::norm(&rounded) / scale;
            let stalled = resting && !(now < 0.5 * residual);
            stalls = if stalled { stalls + 1 } else { 0 };
            // Kinks alone are piecewise quadratic: without a change of piece the residual falls to rounding at once.
            if now <= DOUBLED_EPSILON || stalls > if here.pressed { PATIENCE } else { 0 } {
                break;
            }
            // The least one: at the level of rounding it goes up and down.
            residual = if resting { now.min(residual) } else { f64::INFINITY };
            let factored = match &mut factored {
                Some(old) if old.serves(&here) => old,
                other => other.insert(self.factorise(&here)?),
            };
            let step = self.newton_step(factored, &here);
            let before = self.params.clone();
            self.walk(&before, &step, 1.0);
            let next = self.smoothed();
            resting = next.pieces == here.pieces && next.pressed == here.pressed;
            let whole = resting && !here.pressed;
            let length = if whole {
                1.0
            } else {
                self.step_length(&before, &here, &step)
            };
            here = if length < 1.0 {
                self.walk(&before, &step, length);
                self.smoothed()
            } else {
                next
            };
        }
        Ok(here)
    }

    /// Newton's step: the sphere adds `κθθᵀ` to the system of the rows, by the formula of Sherman and Morrison.
    fn newton_step(&self, factored: &Factored, here: &Smoothed) -> Vec<Doubled> {
        let mut step = here.descent.clone();
        factored.factor.solve_in_place(&mut step);
        if here.pressed {
            let mut response = self.params.clone();
            factored.factor.solve_in_place(&mut response);
            let kappa = self.sphere_kappa();
            let along = dot(&self.params, &step) * kappa;
            let change = along / (Doubled::from(1.0) + dot(&self.params, &response) * kappa);
            for (s, &r) in step.iter_mut().zip(&response) {
                *s = *s - r * change;
            }
        }
        step
    }

    /// Moves the point to `from + length·step`.
    fn walk(&mut self, from: &[Doubled], step: &[Doubled], length: f64) {
        for ((t, &f), &s) in self.params.iter_mut().zip(from).zip(step) {
            *t = f + s * length;
        }
    }

    /// How far to go along a step from `before` on which rows change their piece or the sphere bends.
    fn step_length(&self, before: &[Doubled], here: &Smoothed, step: &[Doubled]) -> f64 {
        let shifts: Vec<f64> = (0..self.counts.len())
            .map(|i| Doubled::dot(self.row(i), step).rounded())
            .collect();
        let first = -dot(&here.descent, step).rounded();
        let square = Doubled::squared_norm(step).rounded();
        let along = dot(before, step).rounded();
        let (kappa, least) = (self.sphere_kappa(), self.least_ridge.rounded());
        line_search(first, |length| {
            let rows = shifts.iter().enumerate().map(|(i, shift)| {
                let change = -length * shift * self.kappa(i);
                let raw = here.raw[i] + change;
                // Where nothing is clamped the difference of the slopes would be lost in their rounding.
                let inside = here.pieces[i].is_eq() && raw >= 0.0 && raw <= self.counts[i];
                let slope = || raw.clamp(0.0, self.counts[i]) - here.slopes[i].rounded();
                -shift * if inside { change } else { slope() }
            });
            let change = kappa * length * (along + 0.5 * length * square);
            let raw = here.raw_ridge + change;
            let inside = here.pressed && raw >= least;
            let change = if inside {
                change
            } else {
                raw.max(least) - here.ridge.rounded()
            };
            let sphere = change * along + (here.ridge.rounded() + change) * length * square;
            first + sphere + rows.sum::<f64>()
        })
    }

    /// The factor of the system of the bent rows at a ridge.
    pub(super) fn factorise(&self, here: &Smoothed) -> Result<Factored> {
        let (bent, ridge) = (&here.bent, here.ridge.rounded());
        let factor = if self.stiffness <= greatest_stiffness(ridge, bent.len()) {
            let kappa = |i| self.kappa(i);
            Factor::Plain(factorise(&self.rows, self.dim, bent, kappa, ridge, self.exec)?)
        } else {
            let rows: Vec<f64> = bent.iter().flat_map(|&i| self.row(i)).copied().collect();
            let weights: Vec<f64> = bent.iter().map(|&i| self.kappa(i)).collect();
            Factor::Doubled(DoubledCholesky::of_gram(&rows, self.dim, &weights, ridge)?)
        };
        Ok(Factored {
            bent: bent.clone(),
            ridge,
            factor,
        })
    }
}

/// `Σ a[j]·b[j]`.
fn dot(a: &[Doubled], b: &[Doubled]) -> Doubled {
    let products = a.iter().zip(b);
    products.fold(Doubled::default(), |sum, (&a, &b)| sum + a * b)
}
