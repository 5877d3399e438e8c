//! Upper bounds on suprema, by cells of the domain that are halved until a bound on each says no more than points do.

/// Relative distance between a supremum and its bound.
const TOLERANCE: f64 = 1e-4;

/// Bound on the supremum over `[low, high]`: `bound` holds for all of a cell and falls to `value` as the cell shrinks to a point.
pub(super) fn greatest(range: [f64; 2], bound: impl Fn(f64, f64) -> f64, value: impl Fn(f64) -> f64) -> f64 {
    let mut found = value(range[0]).max(value(range[1]));
    let mut claimed = found;
    let mut open = vec![range];
    while let Some([low, high]) = open.pop() {
        let above = bound(low, high);
        if above.is_nan() {
            return f64::INFINITY;
        }
        let middle = 0.5 * (low + high);
        if above > found * (1.0 + TOLERANCE) && low < middle && middle < high {
            found = found.max(value(middle));
            open.extend([[low, middle], [middle, high]]);
        } else {
            claimed = claimed.max(above);
        }
    }
    claimed
}

/// Bound on `z·push(z)` over margins z, if `push` falls and the product does beyond `end`.
pub(super) fn greatest_pull(push: impl Fn(f64) -> f64, end: f64) -> f64 {
    greatest([0.0, end], |low, high| high * push(low), |z| z * push(z))
}

/// Cells of the angle between a row and `-θ`.
const ANGLES: usize = 4096;

/// Greatest distance between the gradients of two rows of length at most 1 at one θ of length at most `radius`, if `push` falls and
/// bounds the slope at each margin.
///
/// docs/proofs/families.md, "Two gradients of any convex loss": the θ is as long as it may be, the two rows lie in a plane with it and on either
/// side, and a row that points away from `-θ` may be shorter than 1.
pub(super) fn greatest_distance(push: impl Fn(f64) -> f64, radius: f64) -> f64 {
    let steepest = push(-radius);
    if !(steepest.is_finite() && steepest > 0.0) {
        return f64::INFINITY;
    }
    let angle = |i: usize| std::f64::consts::PI * (i as f64 / ANGLES as f64);
    let margin = |i: usize| -radius * angle(i).cos();
    // At the beginning of each cell, in units of the steepest: no later slope in it is greater.
    let slopes_at_zero = push(0.0) / steepest;
    let mut longest = 0.0_f64;
    let slopes: Vec<f64> = (0..ANGLES)
        .map(|i| {
            let (here, next) = (margin(i), margin(i + 1));
            // Cosines are rounded; a margin below is safe.
            let slope = push(here - 1e-15 * radius).max(0.0) / steepest;
            if 2 * i <= ANGLES {
                longest = next * slope;
                return slope;
            }
            // A row of length s has the gradient s·push(s·z), and s·z is one of the margins below z.
            let shorter = longest / here;
            longest = longest.max(next * slope);
            slope.max(shorter).min(slopes_at_zero)
        })
        .collect();
    let distance = |s: f64, t: f64, apart: f64| {
        let cosine = apart.min(std::f64::consts::PI).cos();
        (s * s + t * t - 2.0 * s * t * cosine).max(0.0).sqrt()
    };
    // The first slopes of a pair of ranges of cells and their last angles: the distance is convex in each slope.
    let bound = |[a, b]: [usize; 2], size: usize| {
        let (s, t) = (slopes[a], slopes[b]);
        s.max(t).max(distance(s, t, angle(a + size) + angle(b + size)))
    };
    let mut greatest = 1.0_f64;
    let mut open = vec![([0, 0], ANGLES)];
    while let Some((at, size)) = open.pop() {
        let above = bound(at, size);
        if above <= greatest {
            continue;
        }
        if size == 1 {
            greatest = above;
            continue;
        }
        let half = size / 2;
        let mut parts = [[0, 0], [0, half], [half, 0], [half, half]]
            .map(|[a, b]| [at[0] + a, at[1] + b])
            .map(|part| (bound(part, half), part));
        // The most promising part is opened first; of a pair and its mirror image one is enough.
        parts.sort_by(|a, b| a.0.total_cmp(&b.0));
        open.extend(
            parts
                .into_iter()
                .filter(|(_, [a, b])| a <= b)
                .map(|(_, part)| (part, half)),
        );
    }
    greatest * steepest * (1.0 + 1e-12)
}
