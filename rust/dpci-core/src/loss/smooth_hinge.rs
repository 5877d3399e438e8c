//! The smooth hinge `s·log(1 + e^{(1-z)/s})` of the margin `z = yu` (Li et al., *Effect of epsilon on utility*).

use super::sigmoid_family::{self, SlopeRange};
use super::{Batch, Loss};
use crate::Result;
use crate::error::check;
use crate::linalg::{Doubled, doubled_sigmoid};

/// Smooth hinge with smoothing `s > 0`: slope bound 1, curvature bound 1/(4s).
#[derive(Debug, Clone, Copy)]
pub struct SmoothHinge {
    s: f64,
}

/// Up to this t the end of the computed exponential, e⁻⁷⁰⁸, is less than a rounding of e⁻ᵗ.
const LONGEST_TAIL: f64 = 660.0;

impl SmoothHinge {
    /// A smooth hinge with smoothing `s`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `s` is finite, > 0 and its reciprocal finite.
    pub fn new(s: f64) -> Result<Self> {
        check(
            s > 0.0 && s.is_finite() && (1.0 / s).is_finite(),
            "s",
            "finite and > 0",
            s,
        )?;
        Ok(Self { s })
    }

    fn range(self, radius: f64) -> SlopeRange {
        let [low, high] = [1.0 - radius, 1.0 + radius].map(|t| t / self.s);
        SlopeRange::between(low, high, 1.0 / self.s)
    }
}

impl Loss for SmoothHinge {
    getters! { self =>
        name: &'static str = "smooth_hinge";
        /// With a greater s the curvature at margin 0 is at least .4 of the greatest.
        may_be_flat: bool = self.s < 0.5;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![self.s]));
        slope_bound: f64 = 1.0;
        curvature_bound: f64 = 0.25 / self.s;
        self_concordance: f64 = 1.0 / self.s;
        curvature_slack: f64 = 1.0 / self.s;
        one_signed: bool = true;
        greatest_pull: f64 = sigmoid_family::greatest_pull(self.s, 1.0);
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        sigmoid_family::evaluate(self.s, 1.0, u, y, out);
        Ok(())
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        for (u, y) in u.iter_mut().zip(y) {
            *u = (Doubled::from(1.0) - *u * *y) / Doubled::from(self.s);
        }
        doubled_sigmoid(u);
        for (u, y) in u.iter_mut().zip(y) {
            *u = *u * -y;
        }
        true
    }

    /// Where all margins are below 1, the greatest curvature is that at `t = (1 - radius)/s`, which is about e⁻ᵗ: the three roundings of
    /// t become 3t of e⁻ᵗ. Beyond `LONGEST_TAIL` the computed exponential ends too near, and what is computed and what is exact have
    /// nothing in common but their bounds, 0 and the supremum.
    fn tail_roundings(&self, radius: f64) -> f64 {
        let t = (1.0 - radius) / self.s;
        if t <= 0.0 {
            0.0
        } else if t <= LONGEST_TAIL {
            4.0 * t
        } else {
            4.0 / f64::EPSILON
        }
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        self.range(radius).sup_slope()
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        self.range(radius).sup_curvature()
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        self.range(radius).sup_weighted_sum(k)
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        self.range(radius).sup_joint_norm(alpha)
    }

    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        sigmoid_family::sup_tilted_slope(self.s, 1.0, tilt, radius)
    }

    fn value_range(&self, radius: f64) -> f64 {
        super::margin_range(self, radius)
    }
}
