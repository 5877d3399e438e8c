//! The Huber hinge of the margin `z = yu`: 0 above 1+h, (1+h-z)²/4h within h of 1, 1-z below 1-h.

use pulp::{Simd, WithSimd};

use super::sigmoid_family::up;
use super::{Batch, Loss, weighted_sum};
use crate::Result;
use crate::error::check;
use crate::linalg::Doubled;

/// Huber hinge of half-width `h > 0`: slope bound 1, curvature bound 1/(2h).
#[derive(Debug, Clone, Copy)]
pub struct HuberHinge {
    h: f64,
}

impl HuberHinge {
    /// A Huber hinge of half-width `h`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `h` is finite, > 0 and its reciprocal finite.
    pub fn new(h: f64) -> Result<Self> {
        check(
            h > 0.0 && h.is_finite() && (1.0 / h).is_finite(),
            "h",
            "finite and > 0",
            h,
        )?;
        Ok(Self { h })
    }

    /// The position in the quadratic part: 0 above it, 1 below it.
    #[inline(always)]
    fn depth(self, z: f64) -> f64 {
        // 1 - z first: it is exact near 1, and so keeps its digits however small h is.
        ((1.0 - z + self.h) * (0.5 / self.h)).clamp(0.0, 1.0)
    }

    /// Whether a margin of modulus at most `radius` can lie in the quadratic part, whose ends count as inside.
    fn curved_within(self, radius: f64) -> bool {
        // NaN counts as inside: the larger bound is the safe one.
        !(up(radius) < 1.0 - self.h)
    }
}

/// A batch to be evaluated; a type because a closure would not be compiled for the wide instruction sets.
struct Evaluate<'a> {
    loss: HuberHinge,
    u: &'a [f64],
    y: &'a [f64],
    out: Batch<'a>,
}

impl WithSimd for Evaluate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { loss, u, y, out } = self;
        let rows = || u.iter().zip(y);
        if let Some(total) = out.total {
            let values = rows().map(|(u, y)| match loss.depth(u * y) {
                depth if depth < 1.0 => loss.h * depth * depth,
                _ => 1.0 - u * y,
            });
            *total = weighted_sum(values, out.weights);
        }
        if let Some(slope) = out.slope {
            for (o, (u, y)) in slope.iter_mut().zip(rows()) {
                *o = -y * loss.depth(u * y);
            }
        }
        if let Some(curvature) = out.curvature {
            for (o, (u, y)) in curvature.iter_mut().zip(rows()) {
                *o = if (1.0 - u * y).abs() <= loss.h {
                    0.5 / loss.h
                } else {
                    0.0
                };
            }
        }
    }
}

impl Loss for HuberHinge {
    getters! { self =>
        name: &'static str = "huber_hinge";
        may_be_flat: bool = self.h < 1.0;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![self.h]));
        slope_bound: f64 = 1.0;
        curvature_bound: f64 = 0.5 / self.h;
        one_signed: bool = true;
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        crate::linalg::arch().dispatch(Evaluate { loss: *self, u, y, out });
        Ok(())
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        for (u, y) in u.iter_mut().zip(y) {
            let depth = Doubled::from(1.0) - *u * *y + Doubled::from(self.h);
            *u = (depth / Doubled::from(2.0 * self.h)).clamp(1.0) * -y;
        }
        true
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        up(self.depth(-radius)).min(1.0)
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        if self.curved_within(radius) {
            self.curvature_bound()
        } else {
            0.0
        }
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        // The steepest curved margin has the slope bound of the whole interval, so both suprema are reached together.
        up(k * self.sup_curvature(radius) + self.sup_slope(radius).powi(2))
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        up((alpha * self.sup_curvature(radius)).hypot(self.sup_slope(radius).powi(2)))
    }

    /// The slope plus a rising line is linear up to where the parabola begins, from there to its end, and rises beyond.
    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        let greatest = self.sup_slope(radius);
        let beginning = (1.0 - self.h).max(-radius).min(radius);
        let at_beginning = greatest + tilt * beginning;
        let at_end = self.depth(radius) + tilt * radius;
        // The parts of the sum can cancel, so its rounding is counted in units of both.
        at_beginning.max(at_end) + 16.0 * f64::EPSILON * (greatest + tilt * radius)
    }

    /// At the vertex of `z(1+h-z)/2h`, where that lies in the quadratic part, or else where that part begins.
    fn greatest_pull(&self) -> f64 {
        let h = self.h;
        up(if 3.0 * h >= 1.0 {
            (1.0 + h) * (1.0 + h) / (8.0 * h)
        } else {
            1.0 - h
        })
    }

    fn value_range(&self, radius: f64) -> f64 {
        super::margin_range(self, radius)
    }
}
