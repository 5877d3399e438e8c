//! The smoothed quantile loss of a real target `|y| ≤ B`: `s·log(1 + e^{(u - y)/s}) - τ(u - y)`, the pinball loss with its kink rounded over
//! a width s.

use super::sigmoid_family::{self, SlopeRange, sigmoid_pair, up};
use super::{Batch, Loss, Targets, by_row, cells};
use crate::linalg::{Doubled, doubled_sigmoid};
use crate::{Error, Result};

/// Smoothed quantile loss: slope `p - τ` with p the sigmoid of `(u - y)/s`, at most max(τ, 1 - τ) in size; curvature at most 1/(4s).
#[derive(Debug, Clone, Copy)]
pub struct Quantile {
    tau: f64,
    target_bound: f64,
    s: f64,
}

/// Greatest bound and width, and inverse of the least width.
const GREATEST: f64 = 1e70;

impl Quantile {
    /// The loss of the quantile τ with the width `s`, for targets in `[-target_bound, target_bound]`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless τ is between .001 and .999, the bound and s are positive and at most 10⁷⁰, and s is at least 10⁻⁷⁰ and
    /// between 10⁻⁶ and 1 of the bound.
    pub fn new(quantile: f64, target_bound: f64, s: f64) -> Result<Self> {
        let check = |name, rule, value: f64, holds: bool| {
            if holds {
                Ok(())
            } else {
                Err(Error::OutOfRange { name, rule, value })
            }
        };
        let inside = (0.001..=0.999).contains(&quantile);
        check("quantile", "at least 0.001 and at most 0.999", quantile, inside)?;
        let bounded = target_bound > 0.0 && target_bound <= GREATEST;
        check("target_bound", "> 0 and at most 1e70", target_bound, bounded)?;
        let ratio = s / target_bound;
        let wide = s >= 1.0 / GREATEST && (1e-6..=1.0).contains(&ratio);
        check(
            "s",
            "between 1e-6 and 1 times target_bound, and at least 1e-70",
            s,
            wide,
        )?;
        Ok(Self {
            tau: quantile,
            target_bound,
            s,
        })
    }

    /// Greatest residual over s, past the rounding of its parts.
    fn reach(self, radius: f64) -> f64 {
        up((radius + self.target_bound) / self.s)
    }

    fn derivatives(self, t: f64) -> [f64; 2] {
        let (p, q) = sigmoid_pair(t);
        [p - self.tau, p * q / self.s]
    }

    /// Supremum of a function of (|slope|, curvature) that grows with both.
    fn supremum(self, radius: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
        // Far out nothing changes any more, and the cells would be too coarse.
        let reach = self.reach(radius).min(750.0);
        let value = |t: f64| {
            let [slope, curvature] = self.derivatives(t);
            f(slope.abs(), curvature)
        };
        let bound = |low: f64, high: f64| {
            let [[a, c], [b, d]] = [low, high].map(|t| self.derivatives(t));
            let crest = low <= 0.0 && 0.0 <= high;
            let curvature = if crest { 0.25 / self.s } else { c.max(d) };
            f(a.abs().max(b.abs()), curvature)
        };
        up(up(cells::greatest([-reach, reach], bound, value)))
    }

    /// The difference of a sigmoid and τ is rounded in units of 1.
    const ROUNDING: f64 = 4.0 * f64::EPSILON;
}

impl Loss for Quantile {
    getters! { self =>
        name: &'static str = "quantile";
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![self.tau, self.target_bound, self.s]));
        slope_bound: f64 = self.tau.max(1.0 - self.tau);
        curvature_bound: f64 = 0.25 / self.s;
        self_concordance: f64 = 1.0 / self.s;
        one_signed: bool = false;
    }

    fn targets(&self) -> Targets {
        Targets::Interval {
            lower: -self.target_bound,
            upper: self.target_bound,
        }
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        by_row(
            [u, y],
            out,
            |u, y| {
                let t = (u - y) / self.s;
                // Each part of size |t| with its own factor, so that nothing cancels.
                let steep = if t > 0.0 { 1.0 - self.tau } else { self.tau };
                self.s * (steep * t.abs() + (-t.abs()).exp().ln_1p())
            },
            |u, y| self.derivatives((u - y) / self.s)[0],
            |u, y| self.derivatives((u - y) / self.s)[1],
        );
        Ok(())
    }

    /// A sigmoid of a quotient of a difference.
    fn slope_error(&self, _radius: f64) -> f64 {
        8.0 * f64::EPSILON
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        for (u, y) in u.iter_mut().zip(y) {
            *u = (*u - Doubled::from(*y)) / Doubled::from(self.s);
        }
        doubled_sigmoid(u);
        for u in u {
            *u = *u - Doubled::from(self.tau);
        }
        true
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        let reach = self.reach(radius);
        let ends = [reach, -reach].map(|t| self.derivatives(t)[0].abs());
        up(ends[0].max(ends[1]) + Self::ROUNDING).min(self.slope_bound())
    }

    fn sup_curvature(&self, _radius: f64) -> f64 {
        self.curvature_bound()
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        self.supremum(radius, |slope, curvature| {
            k * curvature + (slope + Self::ROUNDING).powi(2)
        })
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        self.supremum(radius, |slope, curvature| {
            (alpha * curvature).hypot((slope + Self::ROUNDING).powi(2))
        })
    }

    /// Supremum of a sigmoid of `(B - z)/s`, less τ or 1 - τ.
    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        let sup = sigmoid_family::sup_tilted_slope(self.s, self.target_bound, tilt, radius);
        sup - self.tau.min(1.0 - self.tau) + Self::ROUNDING
    }

    /// Falls to 0 where the residual is as many widths above it as the quantile asks for.
    fn greatest_pull(&self) -> f64 {
        let least = self.tau.min(1.0 - self.tau);
        let push = |z: f64| {
            let t = (self.target_bound - z) / self.s;
            SlopeRange::between(t, t, 1.0).sup_slope() - least + Self::ROUNDING
        };
        let end = self.target_bound + 8.0 * self.s;
        up(cells::greatest_pull(push, end))
    }

    /// The least is that of the residual with slope 0, if it is within reach.
    fn value_range(&self, radius: f64) -> f64 {
        let value = |t: f64| {
            let steep = if t > 0.0 { 1.0 - self.tau } else { self.tau };
            self.s * (steep * t.abs() + (-t.abs()).exp().ln_1p())
        };
        let reach = self.reach(radius);
        let flattest = (self.tau / (1.0 - self.tau)).ln().clamp(-reach, reach);
        let greatest = value(reach).max(value(-reach));
        up(greatest - value(flattest)) + 16.0 * f64::EPSILON * greatest
    }
}
