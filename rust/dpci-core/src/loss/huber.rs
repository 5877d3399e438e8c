//! Huber's loss of a real target `|y| ≤ B`: `r²/2` for residuals `r = u - y` up to k, `k|r| - k²/2` beyond.

use super::sigmoid_family::up;
use super::{Batch, Loss, Targets, by_row};
use crate::Result;
use crate::error::check;
use crate::linalg::Doubled;

/// Huber's loss: slope bound k, curvature 1 for residuals up to k and 0 beyond.
#[derive(Debug, Clone, Copy)]
pub struct Huber {
    target_bound: f64,
    k: f64,
}

/// Greatest bound and k: squares stay far from overflow.
const GREATEST: f64 = 1e70;

impl Huber {
    /// Huber's loss with the corner `k` for targets in `[-target_bound, target_bound]`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless both are positive and at most 10⁷⁰.
    pub fn new(target_bound: f64, k: f64) -> Result<Self> {
        for (name, value) in [("target_bound", target_bound), ("k", k)] {
            check(value > 0.0 && value <= GREATEST, name, "> 0 and at most 1e70", value)?;
        }
        Ok(Self { target_bound, k })
    }

    /// Greatest residual.
    fn reach(self, radius: f64) -> f64 {
        up(radius + self.target_bound)
    }
}

impl Loss for Huber {
    getters! { self =>
        name: &'static str = "huber";
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![self.target_bound, self.k]));
        slope_bound: f64 = self.k;
        curvature_bound: f64 = 1.0;
        one_signed: bool = false;
    }

    fn targets(&self) -> Targets {
        Targets::Interval {
            lower: -self.target_bound,
            upper: self.target_bound,
        }
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        let k = self.k;
        by_row(
            [u, y],
            out,
            |u, y| {
                let size = (u - y).abs();
                if size <= k {
                    0.5 * size * size
                } else {
                    k * (size - 0.5 * k)
                }
            },
            |u, y| {
                let residual = u - y;
                // NaN stays NaN.
                if residual.abs() > k {
                    k.copysign(residual)
                } else {
                    residual
                }
            },
            |u, y| {
                if (u - y).abs() <= k { 1.0 } else { 0.0 }
            },
        );
        Ok(())
    }

    /// One rounding, of the difference, which is not used where it is more than twice k.
    fn slope_error(&self, radius: f64) -> f64 {
        f64::EPSILON * self.sup_slope(radius)
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        let k = Doubled::from(self.k);
        for (u, y) in u.iter_mut().zip(y) {
            let residual = *u - Doubled::from(*y);
            *u = (residual + k).clamp(2.0 * self.k) - k;
        }
        true
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        self.reach(radius).min(self.k)
    }

    /// A residual of 0 is always within reach.
    fn sup_curvature(&self, _radius: f64) -> f64 {
        1.0
    }

    // The steepest curved residual has the slope bound of all, so both suprema are attained together.

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        up(k + self.sup_slope(radius).powi(2))
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        up(alpha.hypot(self.sup_slope(radius).powi(2)))
    }

    /// `min(k, B - z) + tilt·z` rises up to `z = B - k` and from there with `tilt - 1`. No record pushes against a margin beyond B.
    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        let corner = (self.target_bound - self.k).clamp(-radius, radius);
        let at = |z: f64| (self.target_bound - z).min(self.k) + tilt * z;
        let rounding = 16.0 * f64::EPSILON * (self.k.min(self.reach(radius)) + tilt * radius);
        at(corner).max(at(radius)) + rounding
    }

    /// `(B - u)u` up to the residual k, `ku` before it.
    fn greatest_pull(&self) -> f64 {
        let (b, k) = (self.target_bound, self.k);
        up(if 2.0 * k >= b { 0.25 * b * b } else { k * (b - k) })
    }

    fn value_range(&self, radius: f64) -> f64 {
        let size = self.reach(radius);
        up(if size <= self.k {
            0.5 * size * size
        } else {
            self.k * (size - 0.5 * self.k)
        })
    }
}
