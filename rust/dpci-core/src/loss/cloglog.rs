//! The complementary log-log loss of two classes, the positive one with the probability `1 - exp(-e^u)`.

use super::poisson::exp_up;
use super::sigmoid_family::up;
use super::{Batch, Constant, Loss, by_row, cells, constant_of_classes};
use crate::Result;
use crate::linalg::{Doubled, doubled_exp, doubled_exp_ratio};

/// Complementary log-log loss: `e^u` for the negative class, `-log(1 - exp(-e^u))` for the positive one. Slopes and curvatures of the
/// negative class are `e^u`; those of the positive one are at most 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct CLogLog;

/// `s/(e^s - 1)` for `s ≥ 0`: the slope of the positive class at `s = e^u` in size.
fn ratio(s: f64) -> f64 {
    if s == 0.0 { 1.0 } else { s / s.exp_m1() }
}

impl Loss for CLogLog {
    fn name(&self) -> &'static str {
        "cloglog"
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn identity(&self) -> Option<(&'static str, Vec<f64>)> {
        Some((self.name(), vec![]))
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        by_row(
            [u, y],
            out,
            |u, y| {
                let s = u.exp();
                // Where s vanishes in underflow, log s is still u.
                let positive = if s > f64::MIN_POSITIVE {
                    -(-(-s).exp_m1()).ln()
                } else {
                    -u
                };
                if y < 0.0 { s } else { positive }
            },
            |u, y| {
                let s = u.exp();
                if y < 0.0 { s } else { -ratio(s) }
            },
            |u, y| {
                let s = u.exp();
                let a = ratio(s);
                if y < 0.0 {
                    s
                } else if a == 0.0 {
                    0.0
                } else {
                    // The parts cancel for a small s, to a few roundings of 1, which is at most the supremum.
                    (a * (s + a - 1.0)).clamp(0.0, 1.0)
                }
            },
        );
        Ok(())
    }

    /// Error of an exponential, or of a quotient with exponentials that is at most 1.
    fn slope_error(&self, radius: f64) -> f64 {
        8.0 * f64::EPSILON * exp_up(radius)
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        doubled_exp(u);
        let mut ratios = u.to_vec();
        doubled_exp_ratio(&mut ratios);
        for ((u, ratio), y) in u.iter_mut().zip(ratios).zip(y) {
            if *y > 0.0 {
                *u = -ratio;
            }
        }
        true
    }

    fn slope_bound(&self) -> f64 {
        f64::INFINITY
    }

    fn curvature_bound(&self) -> f64 {
        f64::INFINITY
    }

    /// Beyond, the negative class has a probability of less than one in a hundred thousand.
    fn continued_beyond(&self, _y: f64) -> Option<[f64; 2]> {
        Some([f64::NEG_INFINITY, 2.5])
    }

    /// Over which an exponential changes by a power of e.
    fn curvature_width(&self) -> f64 {
        1.0
    }

    /// Slope of a negative class of seven records in a hundred.
    fn usual_slope(&self) -> f64 {
        2.7
    }

    fn best_constant(&self, slope: f64, least: f64) -> Option<Constant> {
        constant_of_classes(self, slope, least, |share| (-(-share).ln_1p()).ln())
    }

    fn one_signed(&self) -> bool {
        true
    }

    // The negative class at the greatest predictor has slope and curvature e^radius, at least 1; the positive class has less than 1.

    fn sup_slope(&self, radius: f64) -> f64 {
        exp_up(radius)
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        exp_up(radius)
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        let greatest = exp_up(radius);
        up(k * greatest + greatest * greatest)
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        let greatest = exp_up(radius);
        up((alpha * greatest).hypot(greatest * greatest))
    }

    /// `e^{-z}` is convex, so at an end; no slope of the positive class is greater, as `s² ≤ e^s - 1`.
    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        let greatest = exp_up(radius);
        let ends = [
            greatest - tilt * radius,
            self.greatest_push(radius) + tilt * radius,
        ];
        ends[0].max(ends[1]) + 16.0 * f64::EPSILON * (greatest + tilt * radius)
    }

    fn greatest_push(&self, margin: f64) -> f64 {
        exp_up(-margin)
    }

    fn greatest_pull(&self) -> f64 {
        up(cells::greatest_pull(|z| self.greatest_push(z), 40.0))
    }

    /// Range of the negative class, `e^r - e^{-r}`, and of the positive one, from `-log(1 - exp(-e^{-r}))`, at most
    /// `r + e^{-r}`, to almost 0.
    fn value_range(&self, radius: f64) -> f64 {
        super::range_at_ends(self, radius)
    }
}
