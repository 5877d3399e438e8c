//! Minimises a hinge risk of few rows by the method of multipliers: `Σ m·max(0, 1 - aᵀθ) + (r/2)‖θ‖² - pullᵀθ`.
//!
//! 1. Each hinge is replaced by its smoothing around a multiplier `β` in `[0, m]`: `max_p p·t - (p - β)²/(2κ)` over the same
//!    interval, `t = 1 - aᵀθ`. Its slope is `p = clamp(β + κt)`.
//! 2. The smoothed risk, a piecewise quadratic, is minimised by Newton's method with a line search on its derivative.
//! 3. `β` becomes `p` and the stiffness `κ` grows, until a step moves no kink by more than rounding.
//!
//! Unlike with smoothing alone, `t` at the kinks goes to zero while `κ` stays bounded, so the systems stay solvable.
//! Dependent or repeated rows at the kink do no harm: any of their multipliers will do. Nothing here is trusted: the
//! caller certifies the point.

use super::kink_split::{KinkSplit, length};
use crate::exec::Executor;
use crate::linalg::{Cholesky, add_diagonal, rows_times_vector, vector, weighted_gram};
use crate::{Error, Result};

/// Newton steps for one smoothed risk. A risk left before its minimum only makes the next one start worse.
const MAX_NEWTON_STEPS: usize = 100;

/// Steps shorter than this share of the point end the search for a smoothed minimum: polishing does the rest.
const STEP_SHARE: f64 = 1e-13;

/// Updates of the multipliers at one ridge.
const MAX_UPDATES: usize = 30;

/// Ridges tried until the point lies on the sphere.
const MAX_RIDGES: usize = 100;

/// Growth of the stiffness with each update of the multipliers.
const GROWTH: f64 = 16.0;

/// Greatest ratio of the eigenvalues of a system: beyond it the Cholesky factorisation may fail.
const MAX_CONDITION: f64 = 1e11;

/// The rows of the problem.
pub(super) struct NearRisk<'a> {
    dim: usize,
    rows: &'a [f64],
    counts: &'a [f64],
    /// Lengths of the rows.
    lengths: Vec<f64>,
    pull: Vec<f64>,
    exec: &'a Executor<'a>,
}

/// A point with the multipliers of the near rows.
#[derive(Debug, Clone)]
pub(super) struct Multiplied {
    /// `θ`.
    pub(super) params: Vec<f64>,
    /// `β`, one for each near row.
    pub(super) multipliers: Vec<f64>,
    /// The ridge `r`: `nλ`, or more where the ball bounds the point.
    pub(super) ridge: f64,
    /// κ for rows of length 1.
    pub(super) stiffness: f64,
    /// How far the last update moved a kink.
    pub(super) unrest: f64,
}

/// `κ` of a row: that of a row of length 1 over the squared length, so that kinks count by their distance.
pub(super) fn row_stiffness(stiffness: f64, length: f64) -> f64 {
    stiffness / length / length
}

/// Greatest stiffness at which a system of `n_bent` rows is well enough conditioned.
pub(super) fn greatest_stiffness(ridge: f64, n_bent: usize) -> f64 {
    MAX_CONDITION * ridge / n_bent.max(1) as f64
}

/// The Cholesky factor of `ridge·I + Σ κᵢ aᵢaᵢᵀ` over the rows `bent`.
pub(super) fn factorise(
    rows: &[f64],
    dim: usize,
    bent: &[usize],
    stiffness: impl Fn(usize) -> f64,
    ridge: f64,
    exec: &Executor<'_>,
) -> Result<Cholesky> {
    let mut matrix = vec![0.0; dim * dim];
    if !bent.is_empty() {
        let selected: Vec<f64> = bent
            .iter()
            .flat_map(|&i| &rows[i * dim..(i + 1) * dim])
            .copied()
            .collect();
        let weights: Vec<f64> = bent.iter().map(|&i| stiffness(i)).collect();
        matrix = weighted_gram(&selected, dim, &weights, exec)?;
    }
    add_diagonal(&mut matrix, dim, ridge);
    Cholesky::new(&matrix, dim, "the system of the hinge's kinks")
}

impl<'a> NearRisk<'a> {
    /// The risk of the near rows of a split; the settled ones are its linear term.
    pub(super) fn new(split: &'a KinkSplit, exec: &'a Executor<'a>) -> Self {
        let dim = split.dim;
        let rows = split.near.chunks_exact(dim);
        Self {
            dim,
            rows: &split.near,
            counts: &split.counts,
            lengths: rows.map(|row| length(vector::dot(row, row), row)).collect(),
            pull: split.pull.iter().map(|p| p.rounded()).collect(),
            exec,
        }
    }

    /// A point to settle from.
    ///
    /// `width` is how far from its kink a row may be for its multiplier to start between 0 and `m`.
    pub(super) fn start(&self, params: Vec<f64>, ridge: f64, width: f64) -> Multiplied {
        let slacks = self.slacks(&params);
        let multipliers = slacks
            .iter()
            .zip(self.counts)
            .map(|(t, m)| m * (0.5 + 0.5 * t / width).clamp(0.0, 1.0))
            .collect();
        Multiplied {
            params,
            multipliers,
            ridge,
            stiffness: ridge,
            unrest: f64::INFINITY,
        }
    }

    /// Settles at the least ridge, not below `least`, that keeps the point within `radius` of zero.
    ///
    /// While no row changes its piece, the part of the point across the kinks is inversely proportional to the ridge and the
    /// rest constant, so a secular equation in the ridge has a closed form; a bracket guards it.
    pub(super) fn settle_within(&self, at: &mut Multiplied, least: f64, radius: Option<f64>) -> Result<()> {
        let Some(radius) = radius else {
            return self.settle(at);
        };
        let (mut low, mut high) = (0.0, f64::INFINITY);
        for _ in 0..MAX_RIDGES {
            self.settle(at)?;
            let norm = vector::norm(&at.params);
            let excess = (norm - radius) * (norm + radius);
            if (norm <= radius && at.ridge <= least) || excess.abs() <= 1e-14 * radius * radius {
                break;
            }
            if excess > 0.0 {
                low = at.ridge;
            } else {
                high = at.ridge;
            }
            let bent = self.bent(&at.multipliers);
            let mut across = at.params.clone();
            self.factorise(at, &bent)?.solve_in_place(&mut across);
            let across = at.ridge * vector::norm(&across);
            let guess = at.ridge / (1.0 - excess / (across * across)).sqrt();
            let next = if guess > low.max(least) && guess < high {
                guess
            } else if low < least {
                least
            } else if high == f64::INFINITY {
                4.0 * low
            } else if high - low > 4.0 * f64::EPSILON * high {
                (low * high).sqrt()
            } else {
                break;
            };
            // The farther the ridge moves, the more multipliers change, which stiff kinks would hinder.
            at.stiffness = at.stiffness.min(next * (next / (next - at.ridge).abs()).max(1.0));
            at.ridge = next;
        }
        Ok(())
    }

    /// Updates the multipliers until they rest.
    pub(super) fn settle(&self, at: &mut Multiplied) -> Result<()> {
        at.unrest = f64::INFINITY;
        for _ in 0..MAX_UPDATES {
            let next = self.minimize_smoothed(at)?;
            let moves = next.iter().zip(&at.multipliers).zip(&self.lengths);
            let unrest = moves
                .map(|((new, old), l)| (new - old).abs() / (row_stiffness(at.stiffness, *l) * l))
                .fold(0.0, f64::max);
            let before = std::mem::replace(&mut at.unrest, unrest);
            at.multipliers = next;
            let greatest = greatest_stiffness(at.ridge, self.bent(&at.multipliers).len());
            let rounding = 4.0 * f64::EPSILON * vector::norm(&at.params);
            if at.unrest <= rounding || (at.stiffness >= greatest && at.unrest > 0.5 * before) {
                break;
            }
            at.stiffness = (at.stiffness * GROWTH).min(greatest);
        }
        Ok(())
    }

    /// Rows whose multiplier is free to move both ways.
    fn bent(&self, multipliers: &[f64]) -> Vec<usize> {
        let free = |&i: &usize| multipliers[i] > 0.0 && multipliers[i] < self.counts[i];
        (0..multipliers.len()).filter(free).collect()
    }

    /// The factor of the system of these bent rows.
    fn factorise(&self, at: &Multiplied, bent: &[usize]) -> Result<Cholesky> {
        let stiffness = |i: usize| row_stiffness(at.stiffness, self.lengths[i]);
        factorise(self.rows, self.dim, bent, stiffness, at.ridge, self.exec)
    }

    /// `1 - aᵀθ` for each row.
    fn slacks(&self, params: &[f64]) -> Vec<f64> {
        let mut slacks = vec![0.0; self.counts.len()];
        rows_times_vector(self.rows, params, &mut slacks);
        for t in &mut slacks {
            *t = 1.0 - *t;
        }
        slacks
    }

    /// Minimises the smoothed risk around the multipliers from `at.params`, which it moves; returns the slopes there.
    fn minimize_smoothed(&self, at: &mut Multiplied) -> Result<Vec<f64>> {
        let kappas: Vec<f64> = self.lengths.iter().map(|l| row_stiffness(at.stiffness, *l)).collect();
        let multipliers = at.multipliers.clone();
        let raw = |i: usize, t: f64| multipliers[i] + kappas[i] * t;
        let slope = |i: usize, t: f64| raw(i, t).clamp(0.0, self.counts[i]);
        // On which of its three pieces the smoothed hinge of each row lies.
        let pieces = |slacks: &[f64]| -> Vec<i8> {
            let piece = |(i, &t): (usize, &f64)| {
                let raw = raw(i, t);
                i8::from(raw > 0.0) + i8::from(raw >= self.counts[i])
            };
            slacks.iter().enumerate().map(piece).collect()
        };
        let mut slacks = self.slacks(&at.params);
        let mut lying = pieces(&slacks);
        for _ in 0..MAX_NEWTON_STEPS {
            self.exec.check()?;
            let slopes: Vec<f64> = (0..slacks.len()).map(|i| slope(i, slacks[i])).collect();
            let mut direction: Vec<f64> = self.pull.clone();
            vector::add_weighted_rows(self.rows, &slopes, &mut direction);
            for (p, t) in direction.iter_mut().zip(&at.params) {
                *p -= at.ridge * t;
            }
            let descent = direction.clone();
            let bent: Vec<usize> = (0..lying.len()).filter(|&i| lying[i] == 1).collect();
            self.factorise(at, &bent)?.solve_in_place(&mut direction);
            let mut shifts = vec![0.0; slacks.len()];
            rows_times_vector(self.rows, &direction, &mut shifts);
            let first = -vector::dot(&descent, &direction);
            let along = vector::dot(&direction, &direction);
            // The derivative along the direction: the ridge's part is linear, each row's part piecewise linear.
            let derivative = |step: f64| {
                let rows = shifts
                    .iter()
                    .enumerate()
                    .map(|(i, w)| w * (slopes[i] - slope(i, slacks[i] - step * w)));
                first + step * at.ridge * along + rows.sum::<f64>()
            };
            let step = line_search(first, derivative);
            for (t, p) in at.params.iter_mut().zip(&direction) {
                *t += step * p;
            }
            slacks = self.slacks(&at.params);
            let next = pieces(&slacks);
            let unchanged = next == lying;
            lying = next;
            let small = vector::norm(&direction) <= STEP_SHARE * vector::norm(&at.params);
            if (step >= 1.0 && unchanged) || small {
                break;
            }
        }
        if at.params.iter().any(|t| !t.is_finite()) {
            return Err(Error::NotPositiveDefinite("the system of the hinge's kinks"));
        }
        Ok((0..slacks.len()).map(|i| slope(i, slacks[i])).collect())
    }
}

/// A step whose derivative is at most half the first one in size: 1, or by regula falsi between 0 and 1 (Illinois).
pub(super) fn line_search(first: f64, derivative: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut at_low) = (0.0, first);
    let (mut high, mut at_high) = (1.0, derivative(1.0));
    if !(at_high > 0.5 * first.abs()) {
        return 1.0;
    }
    let mut side = 0;
    for _ in 0..60 {
        let step = low + (high - low) * at_low / (at_low - at_high);
        let here = derivative(step);
        if here.abs() <= 0.1 * first.abs() || !here.is_finite() {
            return step;
        }
        if here < 0.0 {
            (low, at_low) = (step, here);
            at_high *= if side < 0 { 0.5 } else { 1.0 };
            side = -1;
        } else {
            (high, at_high) = (step, here);
            at_low *= if side > 0 { 0.5 } else { 1.0 };
            side = 1;
        }
    }
    low
}
