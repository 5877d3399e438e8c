//! Ranges of losses over predictors of a bounded size, from their values at the ends.

use super::sigmoid_family::up;
use super::{Batch, Loss, entropy};

/// The range of a falling function of the margin over margins of size at most `radius`.
pub(super) fn margin_range(loss: &dyn Loss, radius: f64) -> f64 {
    let value = |z: f64| {
        let mut total = f64::NAN;
        let out = Batch::of_total(&mut total);
        loss.evaluate(&[z], &[1.0], out).map_or(f64::NAN, |()| total)
    };
    // The rounding of the greater value bounds that of the difference. NaN: no range is known.
    let greatest = value(-radius);
    let range = greatest - value(radius) + 16.0 * f64::EPSILON * greatest;
    if range.is_nan() { f64::INFINITY } else { range }
}

/// The losses at both ends of |u| ≤ `radius` and of the targets, past their rounding: the greatest among them is that of all, because losses
/// are convex in both.
fn at_ends(loss: &dyn Loss, radius: f64) -> [f64; 4] {
    let [lower, upper] = loss.targets().ends();
    let ends = [[radius, lower], [radius, upper], [-radius, lower], [-radius, upper]];
    ends.map(|[u, y]| {
        let mut total = f64::NAN;
        let out = Batch::of_total(&mut total);
        loss.evaluate(&[u], &[y], out).map_or(f64::INFINITY, |()| total)
    })
}

/// The range of a loss whose least value is 0, at a predictor that fits its target, with parts as great as the entropy of its counts.
pub(super) fn deviance_range(loss: &dyn Loss, radius: f64, count_bound: f64) -> f64 {
    let greatest = at_ends(loss, radius).into_iter().fold(0.0, f64::max);
    let parts = count_bound * (1.0 + radius + entropy(count_bound).abs());
    up(greatest) + 16.0 * f64::EPSILON * parts
}

/// The range of a loss that rises or falls for each target.
pub(super) fn range_at_ends(loss: &dyn Loss, radius: f64) -> f64 {
    let ends = at_ends(loss, radius);
    let greatest = ends.into_iter().fold(0.0, f64::max);
    let least = ends.into_iter().fold(f64::INFINITY, f64::min);
    greatest - least + 16.0 * f64::EPSILON * greatest
}
