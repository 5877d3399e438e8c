//! What the logistic loss and the smooth hinge share: slope `-p` and curvature `c·p(1-p)` with `p` a sigmoid of the margin.

use super::Batch;

/// `1 / (1 + e⁻ᵗ)` and its complement, both without cancellation.
pub(super) fn sigmoid_pair(t: f64) -> (f64, f64) {
    pair(t, (-t.abs()).exp())
}

/// The pair from `e = e^{-|t|}`.
fn pair(t: f64, e: f64) -> (f64, f64) {
    let large = 1.0 / (1.0 + e);
    let small = e * large;
    if t >= 0.0 {
        (large, small)
    } else {
        (small, large)
    }
}

/// Rows whose factors `1 + e ≤ 2` are multiplied before one logarithm is taken; the product stays below 2^512.
const GROUP: usize = 512;

/// Evaluates `s·log(1 + e^{(m - yu)/s})` in a batch; `s = 1, m = 0` is the logistic loss.
///
/// One exponential serves value, slope and curvature: it is most of the cost.
pub(super) fn evaluate(s: f64, m: f64, u: &[f64], y: &[f64], out: Batch<'_>) {
    let Batch {
        total,
        mut slope,
        mut curvature,
    } = out;
    let mut sum = 0.0;
    for (group, (u, y)) in u.chunks(GROUP).zip(y.chunks(GROUP)).enumerate() {
        let mut product = 1.0;
        for (k, (u, y)) in u.iter().zip(y).enumerate() {
            let i = group * GROUP + k;
            let t = (m - u * y) / s;
            let e = (-t.abs()).exp();
            let (p, q) = pair(t, e);
            sum += t.max(0.0);
            product *= 1.0 + e;
            if let Some(slope) = &mut slope {
                slope[i] = -y * p;
            }
            if let Some(curvature) = &mut curvature {
                curvature[i] = p * q / s;
            }
        }
        sum += product.ln();
    }
    if let Some(total) = total {
        *total = s * sum;
    }
}

/// The range of `p` over a margin interval, with the factor `c` of the curvature `c·p(1-p)`. Ends come with their
/// complements `1-p`, which would cancel if computed from `p`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlopeRange {
    pub(super) least: (f64, f64),
    pub(super) greatest: (f64, f64),
    pub(super) factor: f64,
}

/// Rounds a supremum up, past the rounding of its few operations.
pub(super) fn up(value: f64) -> f64 {
    value * (1.0 + 16.0 * f64::EPSILON)
}

impl SlopeRange {
    pub(super) fn sup_slope(self) -> f64 {
        up(self.greatest.0).min(1.0)
    }

    pub(super) fn sup_curvature(self) -> f64 {
        // p(1-p) grows up to p = 1/2.
        self.maximum([0.5, 0.5], |p, q| self.factor * p * q)
    }

    pub(super) fn sup_weighted_sum(self, k: f64) -> f64 {
        // k·c·p(1-p) + p² has its stationary point at kc / (2(kc-1)).
        let kc = k * self.factor;
        let stationary = kc / (2.0 * (kc - 1.0));
        self.maximum([stationary, stationary], |p, q| kc * p * q + p * p)
    }

    pub(super) fn sup_joint_norm(self, alpha: f64) -> f64 {
        // d/dp [a²p²(1-p)² + p⁴] = 2p[(2a²+2)p² - 3a²p + a²].
        let a2 = (alpha * self.factor).powi(2);
        let root = (9.0 * a2 * a2 - 4.0 * (2.0 * a2 + 2.0) * a2).sqrt();
        let stationary = [root, -root].map(|r| (3.0 * a2 + r) / (4.0 * a2 + 4.0));
        self.maximum(stationary, |p, q| p * (a2 * q * q + p * p).sqrt())
    }

    /// Maximum of `f(p, 1-p)` over the range: at an end, or at a stationary point inside (NaN: none).
    fn maximum(self, stationary: [f64; 2], f: impl Fn(f64, f64) -> f64) -> f64 {
        let [low, high] = [self.least, self.greatest].map(|(p, q)| f(p, q));
        // Not f64::max, which drops NaN: a bound that is NaN must stay NaN and be refused.
        let ends = if low > high || low.is_nan() {
            low
        } else {
            high
        };
        let inside = stationary
            .into_iter()
            .filter(|p| (self.least.0..=self.greatest.0).contains(p));
        inside
            .map(|p| f(p, 1.0 - p))
            .fold(up(ends), |m, v| if up(v) > m { up(v) } else { m })
    }
}
