//! The Poisson loss of a count with a log link: `e^u - yu`, less its least value over u.

use super::sigmoid_family::up;
use super::{Batch, Constant, Loss, Targets, by_row, cells, deviance_range, entropy};
use crate::Result;
use crate::error::check;
use crate::linalg::{Doubled, doubled_exp};

/// Poisson loss for counts in `[0, count_bound]`: slope `e^u - y`, curvature `e^u`, bounded on a bounded domain only.
#[derive(Debug, Clone, Copy)]
pub struct Poisson {
    count_bound: f64,
}

/// Greatest bound on counts: their squares stay far from overflow.
pub(super) const GREATEST_COUNT: f64 = 1e70;

/// Refuses bounds on counts that are not positive, or too great.
pub(super) fn check_count_bound(count_bound: f64) -> Result<()> {
    check(
        count_bound > 0.0 && count_bound <= GREATEST_COUNT,
        "count_bound",
        "> 0 and at most 1e70",
        count_bound,
    )
}

/// Greatest predictor for which an exponential and its square are far from overflow.
const GREATEST_PREDICTOR: f64 = 150.0;

/// `e^radius`, rounded up; infinite where it is not used.
pub(super) fn exp_up(radius: f64) -> f64 {
    if radius <= GREATEST_PREDICTOR {
        up((radius + 4.0 * f64::EPSILON * radius.abs()).exp())
    } else {
        f64::INFINITY
    }
}

impl Poisson {
    /// The Poisson loss for counts in `[0, count_bound]`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the bound is positive and at most 10⁷⁰.
    pub fn new(count_bound: f64) -> Result<Self> {
        check_count_bound(count_bound)?;
        Ok(Self { count_bound })
    }

    /// The greatest of a function of (|slope|, curvature) that grows with both and is convex in the mean `e^u`, over the interval of means
    /// and of counts: at a corner.
    fn at_corners(self, radius: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
        let (high, low) = (exp_up(radius), 1.0 / exp_up(radius));
        let corners = [
            f(high, high),
            f((self.count_bound - low).abs(), low),
            f((self.count_bound - high).abs(), high),
        ];
        up(corners.into_iter().fold(0.0, f64::max))
    }
}

impl Loss for Poisson {
    getters! { self =>
        name: &'static str = "poisson";
        is_likelihood: bool = true;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![self.count_bound]));
        slope_bound: f64 = f64::INFINITY;
        curvature_bound: f64 = f64::INFINITY;
        self_concordance: f64 = 1.0;
        /// Over which an exponential changes by a power of e.
        curvature_width: f64 = 1.0;
        /// Slope of a quarter of the bound on counts.
        usual_slope_at_zero: f64 = (0.25 * self.count_bound).max(1.0);
        one_signed: bool = false;
    }

    fn targets(&self) -> Targets {
        Targets::Interval {
            lower: 0.0,
            upper: self.count_bound,
        }
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        by_row(
            [u, y],
            out,
            |u, y| (u.exp() - y * u + entropy(y) - y).max(0.0),
            |u, y| u.exp() - y,
            |u, _| u.exp(),
        );
        Ok(())
    }

    /// An exponential of one unit in the last place, and a difference.
    fn slope_error(&self, radius: f64) -> f64 {
        4.0 * f64::EPSILON * (exp_up(radius) + self.count_bound)
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        doubled_exp(u);
        for (u, y) in u.iter_mut().zip(y) {
            *u = *u - Doubled::from(*y);
        }
        true
    }

    /// A mean beyond e times every count is no model of them.
    fn continued_beyond(&self, _y: f64) -> Option<[f64; 2]> {
        Some([f64::NEG_INFINITY, self.count_bound.ln() + 1.0])
    }

    /// Slope of two events where hardly any are expected; counts with a bound of at most 1 are taken to be scaled, at least to tenths.
    fn usual_slope(&self) -> f64 {
        if self.count_bound > 1.0 {
            2.0
        } else {
            0.2 * self.count_bound
        }
    }

    fn best_constant(&self, slope: f64, least: f64) -> Option<Constant> {
        let mean = (1.0 - slope).clamp(least.min(self.count_bound), self.count_bound);
        Some(Constant {
            slope: 1.0 - mean,
            predictor: mean.ln(),
            curvature: mean,
            factor: 1.0,
        })
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        self.at_corners(radius, |slope, _| slope)
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        exp_up(radius)
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        self.at_corners(radius, |slope, curvature| k * curvature + slope * slope)
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        self.at_corners(radius, |slope, curvature| (alpha * curvature).hypot(slope * slope))
    }

    /// Supremum of `e^{-z}`, which is convex, at an end; of `B - e^z` at an end or where its derivative is the tilt.
    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        let high = exp_up(radius);
        let flat = tilt.ln().clamp(-radius, radius);
        let found = [
            high - tilt * radius,
            1.0 / high + tilt * radius,
            self.count_bound - flat.exp() + tilt * flat,
        ];
        let rounding = 16.0 * f64::EPSILON * (high + self.count_bound + tilt * radius);
        found.into_iter().fold(0.0, f64::max) + rounding
    }

    fn greatest_push(&self, margin: f64) -> f64 {
        let falling = exp_up(-margin);
        let counted = self.count_bound - 1.0 / exp_up(-margin);
        up(falling.max(counted))
    }

    fn greatest_pull(&self) -> f64 {
        let end = 40.0 + self.count_bound.ln_1p();
        up(cells::greatest_pull(|z| self.greatest_push(z), end))
    }

    fn value_range(&self, radius: f64) -> f64 {
        deviance_range(self, radius, self.count_bound)
    }
}
