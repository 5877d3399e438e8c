//! Minimises the smoothed risk of polishing by Newton's method in doubled precision.

use std::cmp::Ordering;

use super::multipliers::{factorise, greatest_stiffness, line_search};
use super::polish::Polish;
use crate::Result;
use crate::linalg::{Cholesky, DOUBLED_EPSILON, Doubled, DoubledCholesky, vector};

/// Newton steps for one smoothed risk.
const MAX_STEPS: usize = 300;

/// Steps along the sphere, which is not piecewise quadratic, that may fail to halve the residual.
const PATIENCE: usize = 3;

/// Relative change of the ridge up to which a factor is used again.
const RIDGE_SHARE: f64 = 1e-3;

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
        let raw_ridge =
            self.ridge + self.sphere.map_or_else(Doubled::default, excess) * self.sphere_kappa();
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
            residual = if resting {
                now.min(residual)
            } else {
                f64::INFINITY
            };
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
            Factor::Plain(factorise(
                &self.rows, self.dim, bent, kappa, ridge, self.exec,
            )?)
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
