//! The negative binomial loss of a count with a log link and a public dispersion: `(y + k)·log(1 + e^u/k) - yu`, less its least value over
//! u, with `k = 1/dispersion`.

use super::poisson::check_count_bound;
use super::sigmoid_family::{self, SlopeRange, sigmoid_pair, up};
use super::{Batch, Loss, Targets, by_row, cells, deviance_range, entropy};
use crate::Result;
use crate::error::check;
use crate::linalg::{Doubled, doubled_sigmoid};

/// Negative binomial loss: slope `(y + k)p - y` and curvature `(y + k)p(1 - p)` with p the sigmoid of `u - ln k`. The slope is at most the
/// greater of `count_bound` and `k` in size, without a bound on the parameters.
#[derive(Debug, Clone, Copy)]
pub struct NegativeBinomial {
    count_bound: f64,
    dispersion: f64,
    /// `k`.
    size: f64,
    /// `ln k`.
    shift: f64,
}

impl NegativeBinomial {
    /// The negative binomial loss for counts in `[0, count_bound]` whose variance is `mean + dispersion·mean²`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless the bound is positive and at most 10⁷⁰ and the dispersion between 10⁻⁶ and 10⁶.
    pub fn new(count_bound: f64, dispersion: f64) -> Result<Self> {
        check_count_bound(count_bound)?;
        check(
            (1e-6..=1e6).contains(&dispersion),
            "dispersion",
            "from 1e-6 to 1e6 (use the Poisson loss for counts without overdispersion)",
            dispersion,
        )?;
        let size = 1.0 / dispersion;
        Ok(Self {
            count_bound,
            dispersion,
            size,
            shift: size.ln(),
        })
    }

    /// Slope and curvature, neither of which cancels for counts of 0.
    fn derivatives(self, u: f64, y: f64) -> [f64; 2] {
        let (p, q) = sigmoid_pair(u - self.shift);
        [self.size * p - y * q, (y + self.size) * p * q]
    }

    /// Supremum of a function of (|slope|, curvature) that grows with both and is convex in them: these are convex and linear in the count,
    /// so it is attained at count 0 or at the greatest.
    fn over_counts(self, radius: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
        let reach = radius + 4.0 * f64::EPSILON * (radius + self.shift.abs());
        // Far out nothing changes any more, and the cells would be too coarse.
        let reach = reach.min(1500.0);
        let of = |y: f64| {
            let value = |u: f64| {
                let [slope, curvature] = self.derivatives(u, y);
                f(slope.abs(), curvature)
            };
            let bound = |low: f64, high: f64| {
                let [[s, c], [t, d]] = [low, high].map(|u| self.derivatives(u, y));
                let crest = (low..=high).contains(&self.shift);
                let curvature = if crest { 0.25 * (y + self.size) } else { c.max(d) };
                f(s.abs().max(t.abs()), curvature)
            };
            cells::greatest([-reach, reach], bound, value)
        };
        up(up(of(0.0).max(of(self.count_bound))))
    }
}

impl Loss for NegativeBinomial {
    getters! { self =>
        name: &'static str = "negative_binomial";
        is_likelihood: bool = true;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![self.count_bound, self.dispersion]));
        slope_bound: f64 = self.count_bound.max(self.size);
        curvature_bound: f64 = up(0.25 * (self.count_bound + self.size));
        self_concordance: f64 = 1.0;
        one_signed: bool = false;
    }

    fn targets(&self) -> Targets {
        Targets::Interval {
            lower: 0.0,
            upper: self.count_bound,
        }
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        let k = self.size;
        by_row(
            [u, y],
            out,
            |u, y| {
                let v = u - self.shift;
                let soft = v.max(0.0) + (-v.abs()).exp().ln_1p();
                // The loss of the mean y, at which it is least.
                let least = (y + k) * (y * self.dispersion).ln_1p() - entropy(y);
                ((y + k) * soft - y * u - least).max(0.0)
            },
            |u, y| self.derivatives(u, y)[0],
            |u, y| self.derivatives(u, y)[1],
        );
        Ok(())
    }

    /// Products of sigmoids, which err by the size of their argument in units of themselves.
    fn slope_error(&self, radius: f64) -> f64 {
        let roundings = 4.0 + radius.min(1500.0) + self.shift.abs();
        f64::EPSILON * roundings * (self.sup_slope(radius) + self.count_bound)
    }

    /// The shift is the f64 number.
    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        for u in &mut *u {
            *u = *u - Doubled::from(self.shift);
        }
        doubled_sigmoid(u);
        for (u, y) in u.iter_mut().zip(y) {
            *u = *u * Doubled::sum(*y, self.size) - Doubled::from(*y);
        }
        true
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        // Slopes grow with the predictor and fall with the count.
        let room = 4.0 * f64::EPSILON * (radius + self.shift.abs());
        let rising = self.derivatives(radius + room, 0.0)[0];
        let falling = -self.derivatives(-radius - room, self.count_bound)[0];
        up(rising.max(falling)).min(self.slope_bound())
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        let [low, high] = [-radius - self.shift, radius - self.shift];
        SlopeRange::between(low, high, self.count_bound + self.size).sup_curvature()
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        self.over_counts(radius, |slope, curvature| k * curvature + slope * slope)
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        self.over_counts(radius, |slope, curvature| (alpha * curvature).hypot(slope * slope))
    }

    /// Supremum of `(B + k)σ(ln k - z) - k` and of `kσ(-ln k - z)`.
    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        let (whole, k) = (self.count_bound + self.size, self.size);
        let sup = |m: f64, scale: f64| scale * sigmoid_family::sup_tilted_slope(1.0, m, tilt / scale, radius);
        let rounding = 16.0 * f64::EPSILON * (whole + tilt * self.shift.abs());
        (sup(self.shift, whole) - k).max(sup(-self.shift, k)) + rounding
    }

    fn greatest_push(&self, margin: f64) -> f64 {
        let room = 4.0 * f64::EPSILON * (margin.abs() + self.shift.abs());
        let counted = -self.derivatives(margin - room, self.count_bound)[0];
        up(counted.max(self.derivatives(room - margin, 0.0)[0]))
    }

    /// `e^{-z}` bounds the slopes of count 0, and those of the greatest change their sign.
    fn greatest_pull(&self) -> f64 {
        let end = 40.0 + self.count_bound.ln_1p();
        up(cells::greatest_pull(|z| self.greatest_push(z), end))
    }

    fn value_range(&self, radius: f64) -> f64 {
        deviance_range(self, radius, self.count_bound)
    }
}
