//! Polishes a settled point of the hinge risk in doubled precision: the method of multipliers once more, on few rows.
//!
//! Rows that f64 cannot tell from their kinks are at it here only if they are to 30 digits. Where rows differ by little the
//! kinks have to be stiff to tell them apart, beyond what f64 can solve; then the systems are doubled too.
//!
//! The sphere is treated as a kink: with `c = (‖θ‖² - W²)/2` and a multiplier `r ≥ nλ`, the ridge, the smoothed risk has
//! the ridge `max(nλ, r + κc)`, which then becomes `r`. A point between sphere and kinks that touch does not determine
//! `r` and the `β`; any that rest will do, so touching needs no case of its own.

use super::certify::Polished;
use super::kink_split::{KinkSplit, length, slack_error};
use super::multipliers::{Multiplied, row_stiffness};
use super::smoothed::Smoothed;
use crate::Result;
use crate::exec::Executor;
use crate::linalg::{DOUBLED_EPSILON, Doubled, vector};

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
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] where rounding breaks a system, [`crate::Error::Interrupted`].
pub(super) fn polish(
    split: &KinkSplit,
    at: &Multiplied,
    terms: Terms,
    exec: &Executor<'_>,
) -> Result<Polished> {
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
    pub(super) fn new(
        split: &KinkSplit,
        at: &Multiplied,
        terms: Terms,
        reach: f64,
        exec: &'a Executor<'a>,
    ) -> Self {
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
