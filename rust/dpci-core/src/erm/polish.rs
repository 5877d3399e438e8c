//! Polishes a settled point of the hinge risk in doubled precision: the method of multipliers once more, on few rows.
//!
//! Rows that f64 cannot tell from their kinks are at it here only if they are to 30 digits. Where rows differ by little the
//! kinks have to be stiff to tell them apart, beyond what f64 can solve; then the systems are doubled too. On
//! the sphere the ridge is one more unknown of Newton's steps.

use std::cmp::Ordering;

use super::certify::Polished;
use super::kink_split::{Split, length, slack_error};
use super::multipliers::{Multiplied, factorise, greatest_stiffness, line_search, row_stiffness};
use crate::Result;
use crate::exec::Executor;
use crate::linalg::{Cholesky, DOUBLED_EPSILON, Doubled, DoubledCholesky, vector};

/// Updates of the multipliers, and steps for each.
const MAX_UPDATES: usize = 60;
const MAX_STEPS: usize = 300;

/// An update that leaves more than this share of the unrest asks for stiffer kinks.
const FAST: f64 = 1e-3;

/// Growth of the stiffness then: rows that differ by little have to be told apart.
const GROWTH: f64 = 64.0;

/// Greatest ratio of the eigenvalues of a system.
const MAX_CONDITION: f64 = 1e26;

/// Rows whose kink lies farther than this share of the point's length are settled before polishing.
const SHARE_NEAR: f64 = 1e-7;

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
    pub(super) ridge: Doubled,
    /// `W²` where the ball bounds the point, so that the ridge is free.
    pub(super) sphere: Option<Doubled>,
    pub(super) params: Vec<Doubled>,
    pub(super) multipliers: Vec<Doubled>,
    pub(super) exec: &'a Executor<'a>,
}

/// The point `at` in doubled precision, and its distance to the minimiser if the split settled its rows rightly.
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] where rounding breaks a system, [`crate::Error::Interrupted`].
pub(super) fn polish(
    split: &Split,
    at: &Multiplied,
    terms: Terms,
    exec: &Executor<'_>,
) -> Result<Polished> {
    let mut reach = (SHARE_NEAR * vector::norm(&at.params)).max(10.0 * at.unrest);
    loop {
        let polished = Polish::new(split, at, terms, reach, exec).run()?;
        // With every near row kept the clearance is infinite, so this ends, unless the point is not a number.
        if polished.settled_rightly || !(reach < f64::INFINITY) {
            return Ok(polished);
        }
        reach *= WIDEN;
    }
}

/// The smoothed hinges at a point.
struct Smoothed {
    /// `β + κt` before clamping, and after it.
    raw: Vec<f64>,
    slopes: Vec<Doubled>,
    /// On which of its three pieces each hinge is, and which are on the middle one.
    pieces: Vec<Ordering>,
    bent: Vec<usize>,
    /// The negative gradient.
    descent: Vec<Doubled>,
}

/// A factor in f64, where its condition allows that, or in doubled precision.
enum Factor {
    Plain(Cholesky),
    Doubled(DoubledCholesky),
}

impl Factor {
    fn solve_in_place(&self, rhs: &mut [Doubled]) {
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

impl<'a> Polish<'a> {
    /// Settles the rows of `split` that are clear of their kinks at the point `at`.
    pub(super) fn new(
        split: &Split,
        at: &Multiplied,
        terms: Terms,
        reach: f64,
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
    fn run(mut self) -> Result<Polished> {
        let greatest = MAX_CONDITION * self.ridge.rounded() / self.counts.len().max(1) as f64;
        let mut before = f64::INFINITY;
        for _ in 0..MAX_UPDATES {
            let slopes = self.minimize_smoothed()?;
            let unrest = (0..slopes.len())
                .map(|i| (slopes[i] - self.multipliers[i]).rounded().abs() / self.kappa(i))
                .fold(0.0, f64::max);
            self.multipliers = slopes;
            if unrest <= DOUBLED_EPSILON || (unrest > 0.5 * before && self.stiffness >= greatest) {
                break;
            }
            if unrest > FAST * before {
                self.stiffness = (self.stiffness * GROWTH).min(greatest);
            }
            before = unrest;
        }
        self.move_into_ball();
        Ok(self.certified())
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.dim..(i + 1) * self.dim]
    }

    fn kappa(&self, i: usize) -> f64 {
        row_stiffness(self.stiffness, self.lengths[i])
    }

    pub(super) fn slack(&self, i: usize) -> Doubled {
        Doubled::from(1.0) - Doubled::dot(self.row(i), &self.params)
    }

    /// The negative gradient `pull + Σ p·a - rθ`.
    pub(super) fn descent(&self, slopes: &[Doubled]) -> Vec<Doubled> {
        let mut descent = self.pull.clone();
        for (i, &slope) in slopes.iter().enumerate() {
            add_row(&mut descent, self.row(i), slope);
        }
        for (d, &t) in descent.iter_mut().zip(&self.params) {
            *d = *d - self.ridge * t;
        }
        descent
    }

    /// The smoothed hinges at the point.
    fn smoothed(&self) -> Smoothed {
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
        Smoothed {
            bent: (0..slopes.len()).filter(|&i| pieces[i].is_eq()).collect(),
            descent: self.descent(&slopes),
            raw: raw.iter().map(|r| r.rounded()).collect(),
            slopes,
            pieces,
        }
    }

    /// Newton's method on the smoothed risk; returns the slopes at its end.
    fn minimize_smoothed(&mut self) -> Result<Vec<Doubled>> {
        let mut factor: Option<(Vec<usize>, Factor)> = None;
        let mut here = self.smoothed();
        let (mut residual, mut resting) = (f64::INFINITY, true);
        for _ in 0..MAX_STEPS {
            self.exec.check()?;
            let excess = self.excess();
            let scale = self.ridge.rounded() * vector::norm(&self.from);
            let rounded: Vec<f64> = here.descent.iter().map(|d| d.rounded()).collect();
            let relative = |square: Doubled| (excess / square.rounded()).abs();
            let now = vector::norm(&rounded) / scale + self.sphere.map_or(0.0, relative);
            if now <= DOUBLED_EPSILON || (resting && !(now < 0.5 * residual)) {
                break;
            }
            residual = if resting { now } else { f64::INFINITY };
            if factor.as_ref().is_none_or(|(bent, _)| *bent != here.bent) {
                factor = Some((here.bent.clone(), self.factorise(&here.bent)?));
            }
            let Some((_, factor)) = &factor else { break };
            let mut step = here.descent.clone();
            factor.solve_in_place(&mut step);
            if self.sphere.is_some() && resting {
                self.move_ridge(factor, &mut step, excess);
            }
            let before = self.params.clone();
            self.walk(&before, &step, 1.0);
            let next = self.smoothed();
            resting = next.pieces == here.pieces;
            if resting {
                here = next;
            } else {
                let length = self.step_length(&here, &step);
                self.walk(&before, &step, length);
                here = self.smoothed();
            }
        }
        Ok(here.slopes)
    }

    /// Moves the point to `from + length·step`.
    fn walk(&mut self, from: &[Doubled], step: &[Doubled], length: f64) {
        for ((t, &f), &s) in self.params.iter_mut().zip(from).zip(step) {
            *t = f + s * length;
        }
    }

    /// How far to go along a step on which rows change their piece.
    fn step_length(&self, here: &Smoothed, step: &[Doubled]) -> f64 {
        let shifts: Vec<f64> = (0..self.counts.len())
            .map(|i| Doubled::dot(self.row(i), step).rounded())
            .collect();
        let products = here.descent.iter().zip(step);
        let first = -products
            .fold(Doubled::default(), |sum, (&d, &s)| sum + d * s)
            .rounded();
        let along = self.ridge.rounded() * Doubled::squared_norm(step).rounded();
        line_search(first, |length| {
            let rows = shifts.iter().enumerate().map(|(i, shift)| {
                let raw = here.raw[i] - length * shift * self.kappa(i);
                shift * (here.slopes[i].rounded() - raw.clamp(0.0, self.counts[i]))
            });
            first + length * along + rows.sum::<f64>()
        })
    }

    /// The factor of the system of these bent rows.
    fn factorise(&self, bent: &[usize]) -> Result<Factor> {
        let ridge = self.ridge.rounded();
        if self.stiffness <= greatest_stiffness(ridge, bent.len()) {
            let kappa = |i| self.kappa(i);
            let factor = factorise(&self.rows, self.dim, bent, kappa, ridge, self.exec)?;
            return Ok(Factor::Plain(factor));
        }
        let rows: Vec<f64> = bent.iter().flat_map(|&i| self.row(i)).copied().collect();
        let weights: Vec<f64> = bent.iter().map(|&i| self.kappa(i)).collect();
        let factor = DoubledCholesky::of_gram(&rows, self.dim, &weights, ridge)?;
        Ok(Factor::Doubled(factor))
    }

    /// `(‖θ‖² - W²)/2` where the point has to lie on the sphere, otherwise 0.
    fn excess(&self) -> f64 {
        let excess = |square| (Doubled::squared_norm(&self.params) - square).rounded();
        0.5 * self.sphere.map_or(0.0, excess)
    }

    /// Moves the ridge and bends the step so that it ends on the sphere: a system bordered by the point.
    fn move_ridge(&mut self, factor: &Factor, step: &mut [Doubled], excess: f64) {
        let mut response = self.params.clone();
        factor.solve_in_place(&mut response);
        let along = |v: &[Doubled]| {
            let products = self.params.iter().zip(v);
            products
                .fold(Doubled::default(), |sum, (&t, &v)| sum + t * v)
                .rounded()
        };
        let change = (along(step) + excess) / along(&response);
        if (self.ridge.rounded() + change) / self.terms.n_samples > self.terms.l2_strength {
            self.ridge = self.ridge + change.into();
            for (s, &r) in step.iter_mut().zip(&response) {
                *s = *s - r * change;
            }
        }
    }
}

/// `sum += weight·row`.
fn add_row(sum: &mut [Doubled], row: &[f64], weight: Doubled) {
    for (s, &x) in sum.iter_mut().zip(row) {
        *s = *s + weight * x;
    }
}
