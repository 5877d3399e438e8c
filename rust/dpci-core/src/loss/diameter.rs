//! How far apart the gradients of two records can be at one θ of a ball, from lines above the slope of the loss.

use super::sigmoid_family::up;

/// Diameter of the gradients in units of the bound on a row's norm, if the slope at margin z is at most `offset - tilt·z` for
/// |z| ≤ `radius` and `rise = tilt·radius`: `max over s of 2·offset·cos s + rise·sin 2s`, rounded up.
///
/// docs/proofs/domains.md, "Two gradients at one θ", has the proof.
pub(super) fn below_line(offset: f64, rise: f64) -> f64 {
    // In units of the greater of the two, so that nothing overflows but the answer.
    let unit = offset.max(rise);
    let (offset, rise) = (offset / unit, rise / unit);
    // sin s solves 2·rise·q² + offset·q - rise = 0; written so that nothing cancels.
    let q = 2.0 * rise / (offset + (offset * offset + 8.0 * rise * rise).sqrt());
    up(2.0 * ((1.0 - q) * (1.0 + q)).sqrt() * (rise * q + offset) * unit)
}

/// Length of the longest difference at a corner of the region of two slopes that Gaussian objective perturbation looks at, in units of
/// the bound on a row's norm: both at most `greatest`, and their sum at most what the line allows at some θ (docs/proofs/domains.md,
/// "Corners of two slopes"). Rounded up.
pub(super) fn corner_below_line(greatest: f64, offset: f64, rise: f64) -> f64 {
    let longest = 2.0 * greatest;
    // The sum of slopes is at most `least + growth·x`, x the half of the length of the sum of the two rows.
    let (least, growth) = (2.0 * offset, 2.0 * rise);
    if !(least >= greatest && least < longest && growth > 0.0) {
        return up(longest);
    }
    // (least + growth·x)² + 4·greatest·(greatest - least - growth·x)·x², greatest at a root of its derivative or where the sum of
    // slopes is no less than both at their greatest.
    let linear = growth * growth + 4.0 * greatest * (greatest - least);
    let root = (linear * linear + 24.0 * greatest * growth * least * growth).sqrt();
    let x = ((linear + root) / (12.0 * greatest * growth)).min((longest - least) / growth);
    let sum = least + growth * x;
    let square = sum * sum + 4.0 * greatest * (greatest - sum) * (x * x);
    // A maximum off by the rounding of its place is off by less than the rounding of its value.
    up(up(square).sqrt()).min(up(longest))
}

/// Range of ln(rise / `greatest`) that is searched: a flatter line is as good as a level one, a steeper one is worse.
const RISES: [f64; 2] = [-30.0, std::f64::consts::LN_2];

/// The least of the bounds, and at most `2·greatest`, that lines above the slope give on |z| ≤ `radius`: `bound(offset, rise)` with
/// `offset = sup_tilted(tilt)`, at least the supremum of the slope plus `tilt·z` there, and `rise = tilt·radius`.
///
/// Every line is valid, so nothing rests on the search: golden section, exact where the bound is convex in the tilt.
pub(super) fn least(
    greatest: f64,
    radius: f64,
    sup_tilted: impl Fn(f64) -> f64,
    bound: impl Fn(f64, f64) -> f64,
) -> f64 {
    let at = |log: f64| {
        let rise = greatest * log.exp();
        bound(sup_tilted(rise / radius), rise)
    };
    let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
    let [mut low, mut high] = RISES;
    let mut least = up(2.0 * greatest);
    for _ in 0..60 {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        let [at_a, at_b] = [a, b].map(at);
        // f64::min drops NaN, which numbers at the ends of the range can give.
        least = least.min(at_a).min(at_b);
        if at_a <= at_b {
            high = b;
        } else {
            low = a;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, Logistic, Loss, Targets, examples};

    /// `|l'|` at the margin z: over both signs of the predictor and all targets, the slope that pushes against z.
    fn slope(loss: &dyn Loss, z: f64) -> f64 {
        let targets = match loss.targets() {
            Targets::Signs | Targets::Classes { .. } => loss.targets().ends().to_vec(),
            Targets::Interval { lower, upper } => vec![lower, 0.5 * (lower + upper), upper],
        };
        let at = |u: f64, y: f64| {
            let mut slope = [0.0];
            let out = Batch::slopes(&mut slope);
            loss.evaluate(&[u], &[y], out).unwrap();
            slope[0]
        };
        let pushes = targets.iter().flat_map(|y| [-at(z, *y), at(-z, *y)]);
        pushes.fold(0.0, f64::max)
    }

    /// The distance between gradients at angles a and b to θ, on either side of it.
    fn distance([s, t]: [f64; 2], [a, b]: [f64; 2]) -> f64 {
        (s * s + t * t - 2.0 * s * t * (a + b).cos()).sqrt()
    }

    #[test]
    fn no_pair_of_a_grid_exceeds_it_and_some_pair_nearly_reaches_it() {
        const CELLS: u32 = 600;
        for loss in examples() {
            for radius in [0.01, 0.3, 0.7, 1.1, 1.7, 2.5, 5.0, 12.0, 40.0] {
                let angles: Vec<f64> = (0..=CELLS)
                    .map(|i| std::f64::consts::PI * f64::from(i) / f64::from(CELLS))
                    .collect();
                let slopes: Vec<f64> = angles.iter().map(|a| slope(&*loss, radius * a.cos())).collect();
                let mut greatest = 0.0_f64;
                for (i, a) in angles.iter().enumerate() {
                    for (j, b) in angles.iter().enumerate().skip(i) {
                        greatest = greatest.max(distance([slopes[i], slopes[j]], [*a, *b]));
                    }
                }
                let claimed = loss.gradient_diameter(1.0, radius);
                assert!(
                    greatest <= claimed && claimed <= 1.002 * greatest,
                    "{loss:?} {radius}: {greatest} {claimed}"
                );
                assert!(claimed <= 2.0 * loss.sup_slope(radius) * (1.0 + 1e-14));
                // Rows of another length scale it.
                let scaled = loss.gradient_diameter(3.0, radius);
                assert!((scaled / (3.0 * claimed) - 1.0).abs() < 1e-14);
            }
        }
    }

    /// Two rows of full length whose sum is `2x` long, at the θ that turns against both: their slopes, and the corners that hold them.
    #[test]
    fn corners_hold_the_slopes_of_every_pair() {
        for loss in examples().iter().filter(|loss| loss.one_signed()) {
            for radius in [0.3, 1.1, 2.5, 5.0, 12.0] {
                let greatest = loss.sup_slope(radius);
                let claimed = loss.gradient_corner(1.0, radius);
                assert!(claimed >= loss.gradient_diameter(1.0, radius) * (1.0 - 1e-12));
                let mut reached = 0.0_f64;
                for i in 0..=1000 {
                    let x = f64::from(i) / 1000.0;
                    // At margins ±t beside that of the sum the two slopes add up to less, or to what the line allows.
                    let sum = 2.0 * slope(&**loss, -radius * x);
                    let other = (sum - greatest).clamp(0.0, greatest);
                    let angles = [x.acos(), x.acos()];
                    reached = reached.max(distance([greatest, other], angles));
                }
                // Lines bound slopes from above where they are concave; below that the region is greater.
                let concave = slope(&**loss, 0.0) >= 0.5 * (greatest + slope(&**loss, radius));
                let most = if concave { 1.01 * reached } else { 2.0 * greatest };
                assert!(
                    reached <= claimed * (1.0 + 1e-12) && claimed <= most * (1.0 + 1e-12),
                    "{loss:?} {radius}: {reached} {claimed}"
                );
            }
        }
    }

    #[test]
    fn known_diameters_of_the_logistic_loss() {
        // 2 max over t of sigmoid(t)·√(1 - t²/r²), by scipy.optimize.
        for (radius, expected) in [(3.0, 1.418_958_3), (5.0, 1.617_278_1)] {
            let found = Logistic.gradient_diameter(1.0, radius);
            assert!((found - expected).abs() < 1e-6, "{radius} {found}");
        }
    }

    #[test]
    fn extreme_balls_have_a_diameter() {
        for loss in examples() {
            let mut last = 0.0;
            let bounded = |radius: &f64| loss.sup_slope(*radius).is_finite();
            let powers = (-60..=60).step_by(5);
            for radius in powers.map(|p| 10.0_f64.powi(p)).filter(bounded) {
                let found = loss.gradient_diameter(1.0, radius);
                assert!(
                    // Cells of the angle have a width.
                    found.is_finite() && found >= last * (1.0 - 1e-3),
                    "{loss:?} {radius}"
                );
                last = found;
            }
        }
    }
}
