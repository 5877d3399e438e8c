//! Bounds the distance of a polished point to the minimiser of the hinge risk, rounding included.
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

use super::distance;
use super::polish::{Polish, Terms};
use crate::linalg::{DOUBLED_EPSILON, Doubled, vector};

/// A point and what is known of it.
#[derive(Debug)]
pub(super) struct Polished {
    /// The point, rounded.
    pub(super) params: Vec<f64>,
    /// What rounding took from it.
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
