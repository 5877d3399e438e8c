//! Slope `-p` and curvature `c·p(1-p)`, with `p` a sigmoid of the margin: shared by the logistic loss and the smooth hinge.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::Batch;

/// `1 / (1 + e⁻ᵗ)` and its complement, both without cancellation.
pub(super) fn sigmoid_pair(t: f64) -> (f64, f64) {
    let e = (-t.abs()).exp();
    let large = 1.0 / (1.0 + e);
    let small = e * large;
    if t >= 0.0 { (large, small) } else { (small, large) }
}

/// Log-odds of the share of positive records, which is 1/2 less the mean slope at 0, and the curvature there.
pub(super) fn null_predictor(slope: f64) -> (f64, f64) {
    let (positive, negative) = (0.5 - slope, 0.5 + slope);
    ((positive / negative).ln(), positive * negative)
}

/// Rows handled at a time: their factors `1 + e ≤ 2` are multiplied before one logarithm is taken, which stays below 2^128.
const GROUP: usize = 128;

/// Independent partial sums and products, one for each lane of the widest vectors.
const LANES: usize = 8;

/// Reciprocals that come from one division.
const QUAD: usize = 4;

/// Distance between rows whose reciprocals come from one division: a multiple of the lanes of a study, which so never meet.
const STRIDE: usize = crate::linalg::LANES;

/// Evaluates `s·log(1 + e^{(m - yu)/s})` in a batch; `s = 1, m = 0` is the logistic loss.
pub(super) fn evaluate(s: f64, m: f64, u: &[f64], y: &[f64], out: Batch<'_>) {
    let singly = false;
    crate::linalg::arch().dispatch(Evaluate {
        s,
        m,
        u,
        y,
        out,
        singly,
    });
}

/// Slopes and curvatures of the logistic loss, each by a division of its own.
pub(super) fn evaluate_singly(u: &[f64], y: &[f64], slope: &mut [f64], curvature: &mut [f64]) {
    let out = Batch::derivatives(slope, curvature);
    let (s, m, singly) = (1.0, 0.0, true);
    crate::linalg::arch().dispatch(Evaluate {
        s,
        m,
        u,
        y,
        out,
        singly,
    });
}

/// A batch to be evaluated; a type of its own because only its `with_simd` is compiled for the wide instruction sets.
struct Evaluate<'a> {
    s: f64,
    m: f64,
    u: &'a [f64],
    y: &'a [f64],
    out: Batch<'a>,
    /// Whether no division is shared, so that each value depends on its own row alone.
    singly: bool,
}

impl WithSimd for Evaluate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            s,
            m,
            u,
            y,
            mut out,
            singly,
        } = self;
        let mut buffers = [[0.0; GROUP]; 3];
        let mut sum = 0.0;
        for start in (0..u.len()).step_by(GROUP) {
            let rows = start..(start + GROUP).min(u.len());
            let inputs = [&u[rows.clone()], &y[rows.clone()]];
            let how = (s, m, singly);
            sum += evaluate_group(simd, how, inputs, rows, &mut out, &mut buffers);
        }
        if let Some(total) = &mut out.total {
            **total = s * sum;
        }
    }
}

/// Evaluates at most [`GROUP`] rows and returns their total over `s` (0 where it is not wanted). Plain loops over arrays, which
/// the compiler turns into vectors.
#[inline(always)]
fn evaluate_group<S: Simd>(
    simd: S,
    (s, m, singly): (f64, f64, bool),
    [u, y]: [&[f64]; 2],
    rows: Range<usize>,
    out: &mut Batch<'_>,
    buffers: &mut [[f64; GROUP]; 3],
) -> f64 {
    let rate = 1.0 / s;
    let [t, e, large] = buffers;
    let (t, e, large) = (&mut t[..u.len()], &mut e[..u.len()], &mut large[..u.len()]);
    for ((t, e), (u, y)) in t.iter_mut().zip(e.iter_mut()).zip(u.iter().zip(y)) {
        *t = (m - u * y) * rate;
        *e = exp_nonpositive(-t.abs());
    }
    if singly {
        own_reciprocals(e, large);
    } else {
        reciprocals(simd, e, large);
    }
    if let Some(slope) = &mut out.slope {
        let cells = t.iter().zip(&*e).zip(&*large);
        for ((o, ((t, e), large)), y) in slope[rows.clone()].iter_mut().zip(cells).zip(y) {
            *o = -y * if *t >= 0.0 { *large } else { e * large };
        }
    }
    if let Some(curvature) = &mut out.curvature {
        for ((o, e), large) in curvature[rows.clone()].iter_mut().zip(&*e).zip(&*large) {
            *o = e * large * large * rate;
        }
    }
    if out.total.is_none() {
        return 0.0;
    }
    let weights = out.weights.map_or(&[][..], |weights| &weights[rows]);
    match weights.first() {
        None => total(t, e),
        // As those of persons with equally many rows.
        Some(first) if is_constant(weights) => first * total(t, e),
        Some(_) => weighted_total(t, e, weights),
    }
}

#[inline(always)]
fn is_constant(weights: &[f64]) -> bool {
    let first = weights[0].to_bits();
    weights.iter().all(|weight| weight.to_bits() == first)
}

/// `Σ max(t, 0) + ln(1 + e)`, with one logarithm.
#[inline(always)]
fn total(t: &[f64], e: &[f64]) -> f64 {
    let (mut sums, mut products) = ([0.0; LANES], [1.0; LANES]);
    for (t, e) in t.chunks(LANES).zip(e.chunks(LANES)) {
        for (((sum, product), t), e) in sums.iter_mut().zip(&mut products).zip(t).zip(e) {
            *sum += positive_part(*t);
            *product *= 1.0 + e;
        }
    }
    sums.iter().sum::<f64>() + products.iter().product::<f64>().ln()
}

/// `Σ w·(max(t, 0) + ln(1 + e))`.
#[inline(always)]
fn weighted_total(t: &[f64], e: &[f64], weights: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let cells = t.chunks(LANES).zip(e.chunks(LANES));
    for ((t, e), weights) in cells.zip(weights.chunks(LANES)) {
        for (((sum, t), e), weight) in sums.iter_mut().zip(t).zip(e).zip(weights) {
            *sum += weight * (positive_part(*t) + ln_one_plus(*e));
        }
    }
    sums.iter().sum()
}

/// `out = 1/(1 + e)` for `e` in [0, 1].
///
/// A division costs as much as all else together, so four share one: `1/a = bcd·(1/abcd)` and so on, factors in [1, 2]. NaN spreads within a quad, all of which is refused.
#[inline(always)]
fn reciprocals<S: Simd>(simd: S, e: &[f64], out: &mut [f64]) {
    let one = simd.splat_f64s(1.0);
    // The five roundings may add up to 3ε, and no slope may exceed its bound of 1, on which sensitivities rest.
    let below_one = simd.splat_f64s(1.0 - 4.0 * f64::EPSILON);
    let (quads, rest) = e.as_chunks::<{ QUAD * STRIDE }>();
    let (out_quads, out_rest) = out.as_chunks_mut::<{ QUAD * STRIDE }>();
    for (e, out) in quads.iter().zip(out_quads) {
        let (e, _) = S::as_simd_f64s(e);
        let (out, _) = S::as_mut_simd_f64s(out);
        let stride = STRIDE / S::F64_LANES;
        for v in 0..stride {
            let at = |k: usize| k * stride + v;
            let [a, b, c, d] = [0, 1, 2, 3].map(|k| simd.add_f64s(one, e[at(k)]));
            let (ab, cd) = (simd.mul_f64s(a, b), simd.mul_f64s(c, d));
            let inverse = simd.div_f64s(below_one, simd.mul_f64s(ab, cd));
            let (inverse_ab, inverse_cd) = (simd.mul_f64s(inverse, cd), simd.mul_f64s(inverse, ab));
            out[at(0)] = simd.mul_f64s(inverse_ab, b);
            out[at(1)] = simd.mul_f64s(inverse_ab, a);
            out[at(2)] = simd.mul_f64s(inverse_cd, d);
            out[at(3)] = simd.mul_f64s(inverse_cd, c);
        }
    }
    own_reciprocals(rest, out_rest);
}

/// The same with a division each.
#[inline(always)]
fn own_reciprocals(e: &[f64], out: &mut [f64]) {
    for (e, out) in e.iter().zip(out) {
        *out = 1.0 / (1.0 + e);
    }
}

/// `max(t, 0)` that keeps NaN.
#[inline(always)]
fn positive_part(t: f64) -> f64 {
    if t < 0.0 { 0.0 } else { t }
}

/// `eˣ` for `x ≤ 0`, to 2 units in the last place; `e⁻⁷⁰⁸` below -708; NaN stays NaN.
///
/// The library's `exp` is a call for each row, which costs more than all else in a pass over few columns; this one is plain
/// arithmetic that vectorises. `x = n·ln 2 + r`, a Taylor polynomial of degree 13 at `|r| ≤ ln 2/2`, and `n` added to the exponent.
#[inline(always)]
fn exp_nonpositive(x: f64) -> f64 {
    // Adding 1.5·2⁵² rounds to an integer and leaves it in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts, the first with trailing zeros so that its product with n is exact.
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x < -708.0 { -708.0 } else { x };
    let shifted = x.mul_add(std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let mut sum = 1.0 / 6_227_020_800.0;
    for coefficient in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
    ] {
        sum = r.mul_add(sum, coefficient);
    }
    // 1 + r + r²·sum, smallest parts first.
    let value = 1.0 + (r * r).mul_add(sum, r);
    f64::from_bits(value.to_bits().wrapping_add(shifted.to_bits() << 52))
}

/// `ln(1 + e)` for `e` in [0, 1], to a few units in the last place: `2·artanh(z)`, `z = e/(2 + e) ≤ 1/3`, by the Taylor polynomial whose
/// first term left out is below 2·10⁻¹⁷ of it. The library's function is a call for each row, as that of `exp` is.
#[inline(always)]
fn ln_one_plus(e: f64) -> f64 {
    let z = e / (2.0 + e);
    let square = z * z;
    let mut sum = 1.0 / 31.0;
    for odd in (0..15).rev() {
        sum = square.mul_add(sum, 1.0 / f64::from(2 * odd + 1));
    }
    2.0 * z * sum
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
    /// Over `[low, high]`, moved outwards past the rounding of its ends, which an exponential would magnify.
    pub(super) fn between(low: f64, high: f64, factor: f64) -> Self {
        let room = |t: f64| 4.0 * f64::EPSILON * (1.0 + t.abs());
        Self {
            least: sigmoid_pair(low - room(low)),
            greatest: sigmoid_pair(high + room(high)),
            factor,
        }
    }

    pub(super) fn sup_slope(self) -> f64 {
        up(self.greatest.0).min(1.0)
    }

    pub(super) fn sup_curvature(self) -> f64 {
        // p(1-p) grows up to p = 1/2. Where it vanishes in underflow, the least normal number is above it.
        self.maximum([0.5, 0.5], |p, q| {
            let product = p * q;
            let vanishes = product < f64::MIN_POSITIVE;
            self.factor * if vanishes { f64::MIN_POSITIVE } else { product }
        })
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
        let ends = if low > high || low.is_nan() { low } else { high };
        let inside = stationary
            .into_iter()
            .filter(|p| (self.least.0..=self.greatest.0).contains(p));
        inside
            .map(|p| f(p, 1.0 - p))
            .fold(up(ends), |m, v| if up(v) > m { up(v) } else { m })
    }
}

/// [`super::Loss::sup_tilted_slope`] of the loss `s·log(1 + e^{(m - z)/s})`, whose slope at margin z is the sigmoid of `t = (m - z)/s`.
pub(super) fn sup_tilted_slope(s: f64, m: f64, tilt: f64, radius: f64) -> f64 {
    let [low, high] = [m - radius, m + radius].map(|z| z / s);
    let range = SlopeRange::between(low, high, 1.0 / s);
    // At both ends, and where the sigmoid is concave and has the derivative tilt·s = p(1-p).
    let ends = [range.greatest.0 - tilt * radius, range.least.0 + tilt * radius];
    let product = tilt * s;
    let root = (1.0 - 4.0 * product).sqrt();
    let (p, q) = (0.5 * (1.0 + root), 2.0 * product / (1.0 + root));
    let t = (p / q).ln();
    let touching = (t <= high * (1.0 + 1e-9) + 1e-9).then_some(p + tilt * (m - s * t));
    // The parts of the sum can cancel, so its rounding is counted in units of both.
    let rounding = 16.0 * f64::EPSILON * (range.sup_slope() + tilt * (m + radius));
    ends.into_iter().chain(touching).fold(0.0, f64::max) + rounding
}

/// [`super::Loss::greatest_pull`] of the same loss: `sup of z·p` over margins z, p the slope there.
pub(super) fn greatest_pull(s: f64, m: f64) -> f64 {
    // The derivative of ln(z·p), 1/z - (1-p)/s, falls; at m + 2s it is negative.
    let rises = |z: f64| 1.0 / z > sigmoid_pair((z - m) / s).0 / s;
    let (mut low, mut high) = (0.0, m + 2.0 * s);
    loop {
        let middle = 0.5 * (low + high);
        if !(low < middle && middle < high) {
            break;
        }
        if rises(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    // The maximum lies between the two up to rounding, and p falls.
    let room = 8.0 * f64::EPSILON * high;
    up((high + room) * SlopeRange::between(0.0, (m - low + room) / s, 1.0).sup_slope())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_agrees_with_the_library() {
        for i in 0..200_000 {
            let x = -708.0 * (f64::from(i) / 200_000.0).powi(3);
            let (got, expected) = (exp_nonpositive(x), x.exp());
            assert!((got / expected - 1.0).abs() <= 4.5e-16, "{x} {got} {expected}");
        }
        assert!((exp_nonpositive(0.0) - 1.0).abs() < f64::MIN_POSITIVE);
        assert!(exp_nonpositive(f64::NEG_INFINITY) > 0.0);
        assert!(exp_nonpositive(f64::NAN).is_nan());
    }
    #[test]
    fn the_logarithm_agrees_with_the_library() {
        for i in 0..=200_000 {
            let e = (f64::from(i) / 200_000.0).powi(3);
            let (got, expected) = (ln_one_plus(e), e.ln_1p());
            assert!((got - expected).abs() <= 6e-16 * expected, "{e} {got} {expected}");
        }
        assert!((ln_one_plus(1e-300) / 1e-300 - 1.0).abs() < f64::EPSILON);
        assert!(ln_one_plus(f64::NAN).is_nan());
    }
}
