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
    getters! { self =>
        name: &'static str = "cloglog";
        is_likelihood: bool = true;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![]));
        slope_bound: f64 = f64::INFINITY;
        curvature_bound: f64 = f64::INFINITY;
        /// Over which an exponential changes by a power of e.
        curvature_width: f64 = 1.0;
        /// Slope of a negative class of seven records in a hundred.
        usual_slope: f64 = 2.7;
        one_signed: bool = true;
        greatest_pull: f64 = up(cells::greatest_pull(|z| self.greatest_push(z), 40.0));
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

    /// Beyond, the negative class has a probability of less than one in a hundred thousand.
    fn continued_beyond(&self, _y: f64) -> Option<[f64; 2]> {
        Some([f64::NEG_INFINITY, 2.5])
    }

    fn best_constant(&self, slope: f64, least: f64) -> Option<Constant> {
        constant_of_classes(self, slope, least, |share| (-(-share).ln_1p()).ln())
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
        let ends = [greatest - tilt * radius, self.greatest_push(radius) + tilt * radius];
        ends[0].max(ends[1]) + 16.0 * f64::EPSILON * (greatest + tilt * radius)
    }

    fn greatest_push(&self, margin: f64) -> f64 {
        exp_up(-margin)
    }

    /// Range of the negative class, `e^r - e^{-r}`, and of the positive one, from `-log(1 - exp(-e^{-r}))`, at most
    /// `r + e^{-r}`, to almost 0.
    fn value_range(&self, radius: f64) -> f64 {
        super::range_at_ends(self, radius)
    }
}
