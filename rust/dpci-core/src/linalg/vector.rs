//! Dot products and scaled additions over rows, with run-time choice of the instruction set.

use pulp::{Arch, Simd, WithSimd};

/// Σ aᵢbᵢ.
#[must_use]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Euclidean norm, without overflow for finite entries; NaN if any entry is NaN.
#[must_use]
pub fn norm(a: &[f64]) -> f64 {
    // Not f64::max, which drops NaN: a NaN gradient would look converged, a NaN row would look short.
    let largest = a.iter().fold(0.0_f64, |m, v| {
        if v.abs() <= m || m.is_nan() {
            m
        } else {
            v.abs()
        }
    });
    if !(largest > 0.0) || !largest.is_finite() {
        return largest;
    }
    if (1e-140..1e140).contains(&largest) {
        return dot(a, a).sqrt();
    }
    largest
        * a.iter()
            .map(|v| (v / largest) * (v / largest))
            .sum::<f64>()
            .sqrt()
}

/// Upper bound on the Euclidean norm: products, sums of nonnegative terms, root and scaling err by less than `len/2 + 6` units of
/// `ε/2`, beside a last digit where numbers are subnormal. NaN if any entry is NaN.
#[must_use]
pub fn norm_bound(a: &[f64]) -> f64 {
    // Not a sum with the least number, which takes longer than the norm.
    (norm(a) * (1.0 + (a.len() as f64 + 8.0) * f64::EPSILON)).next_up()
}

/// Copies multiplicities into a block's buffer as numbers.
#[must_use]
pub fn load<'b>(from: &[u32], to: &'b mut [f64]) -> &'b [f64] {
    let to = &mut to[..from.len()];
    for (t, f) in to.iter_mut().zip(from) {
        *t = f64::from(*f);
    }
    to
}

/// Moves values into `[low, high]`; NaN stays NaN.
pub fn clamp(values: &mut [f64], low: f64, high: f64) {
    for v in values {
        // Not f64::clamp, which panics where a bound is NaN.
        *v = if *v < low {
            low
        } else if *v > high {
            high
        } else {
            *v
        };
    }
}

/// `values *= factors`, elementwise.
pub fn multiply(values: &mut [f64], factors: &[f64]) {
    for (v, f) in values.iter_mut().zip(factors) {
        *v *= f;
    }
}

/// The same numbers in double precision, exactly.
#[must_use]
pub fn widened(singles: &[f32]) -> Vec<f64> {
    struct Op<'a>(&'a [f32], &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _simd: S) {
            let Op(singles, doubles) = self;
            for (double, single) in doubles.iter_mut().zip(singles) {
                *double = f64::from(*single);
            }
        }
    }
    let mut doubles = vec![0.0; singles.len()];
    Arch::new().dispatch(Op(singles, &mut doubles));
    doubles
}

/// `out[i] = ‖rows[i]‖²` for contiguous rows of `width` entries; overflow and NaN come out as they are.
pub fn rows_squared_norms(rows: &[f64], width: usize, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], usize, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, width, out) = self;
            for (row, o) in rows.chunks_exact(width).zip(out) {
                let (head, tail) = S::as_simd_f64s(row);
                let mut sums = [simd.splat_f64s(0.0); 4];
                for quad in head.chunks(4) {
                    for (sum, &v) in sums.iter_mut().zip(quad) {
                        *sum = simd.mul_add_f64s(v, v, *sum);
                    }
                }
                let rest = simd.partial_load_f64s(tail);
                sums[0] = simd.mul_add_f64s(rest, rest, sums[0]);
                let pairs = [
                    simd.add_f64s(sums[0], sums[1]),
                    simd.add_f64s(sums[2], sums[3]),
                ];
                *o = simd.reduce_sum_f64s(simd.add_f64s(pairs[0], pairs[1]));
            }
        }
    }
    if width == 0 {
        out.fill(0.0);
    } else {
        Arch::new().dispatch(Op(rows, width, out));
    }
}

/// `out[i] = rows[i] · vector` for contiguous rows of the vector's length.
pub fn rows_times_vector(rows: &[f64], vector: &[f64], out: &mut [f64]) {
    if vector.is_empty() {
        out.fill(0.0);
    } else {
        Arch::new().dispatch(RowsTimesVector::<false>(rows, &[], vector, out));
    }
}

/// The same for rows whose entries are multiplied by `scales[i]` and rounded first: the result is that of the same rows stored scaled, bit
/// by bit.
pub fn scaled_rows_times_vector(rows: &[f64], scales: &[f64], vector: &[f64], out: &mut [f64]) {
    if vector.is_empty() {
        out.fill(0.0);
    } else {
        Arch::new().dispatch(RowsTimesVector::<true>(rows, scales, vector, out));
    }
}

/// Rows, their scales if `SCALED`, the vector and the products.
struct RowsTimesVector<'a, const SCALED: bool>(&'a [f64], &'a [f64], &'a [f64], &'a mut [f64]);

impl<const SCALED: bool> WithSimd for RowsTimesVector<'_, SCALED> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(rows, scales, vector, out) = self;
        let width = vector.len();
        let (v_head, v_tail) = S::as_simd_f64s(vector);
        let splat = |i: usize| simd.splat_f64s(if SCALED { scales[i] } else { 1.0 });
        let times = |scale: S::f64s, entries: S::f64s| {
            if SCALED {
                simd.mul_f64s(scale, entries)
            } else {
                entries
            }
        };
        let quads = out.len() / 4 * 4;
        let groups = rows
            .chunks_exact(4 * width)
            .zip(out.chunks_exact_mut(4))
            .enumerate();
        for (group, (rows, out)) in groups {
            // Four rows share the loads of the vector and hide the latency of the sums.
            let (r0, rest) = rows.split_at(width);
            let (r1, rest) = rest.split_at(width);
            let (r2, r3) = rest.split_at(width);
            let (h0, t0) = S::as_simd_f64s(r0);
            let (h1, t1) = S::as_simd_f64s(r1);
            let (h2, t2) = S::as_simd_f64s(r2);
            let (h3, t3) = S::as_simd_f64s(r3);
            let [c0, c1, c2, c3] = [0, 1, 2, 3].map(|k| splat(4 * group + k));
            let mut s = [simd.splat_f64s(0.0); 4];
            for ((((&v, &a), &b), &c), &d) in v_head.iter().zip(h0).zip(h1).zip(h2).zip(h3) {
                s[0] = simd.mul_add_f64s(times(c0, a), v, s[0]);
                s[1] = simd.mul_add_f64s(times(c1, b), v, s[1]);
                s[2] = simd.mul_add_f64s(times(c2, c), v, s[2]);
                s[3] = simd.mul_add_f64s(times(c3, d), v, s[3]);
            }
            if !v_tail.is_empty() {
                let v = simd.partial_load_f64s(v_tail);
                s[0] = simd.mul_add_f64s(times(c0, simd.partial_load_f64s(t0)), v, s[0]);
                s[1] = simd.mul_add_f64s(times(c1, simd.partial_load_f64s(t1)), v, s[1]);
                s[2] = simd.mul_add_f64s(times(c2, simd.partial_load_f64s(t2)), v, s[2]);
                s[3] = simd.mul_add_f64s(times(c3, simd.partial_load_f64s(t3)), v, s[3]);
            }
            for (o, s) in out.iter_mut().zip(s) {
                *o = simd.reduce_sum_f64s(s);
            }
        }
        let rest = rows.chunks_exact(width).zip(out.iter_mut()).enumerate();
        for (i, (row, o)) in rest.skip(quads) {
            let (head, tail) = S::as_simd_f64s(row);
            let scale = splat(i);
            let mut s = simd.splat_f64s(0.0);
            for (&a, &v) in head.iter().zip(v_head) {
                s = simd.mul_add_f64s(times(scale, a), v, s);
            }
            if !v_tail.is_empty() {
                s = simd.mul_add_f64s(
                    times(scale, simd.partial_load_f64s(tail)),
                    simd.partial_load_f64s(v_tail),
                    s,
                );
            }
            *o = simd.reduce_sum_f64s(s);
        }
    }
}

/// `out += Σ weights[i] · rows[i]` for contiguous rows of the output's length.
pub fn add_weighted_rows(rows: &[f64], weights: &[f64], out: &mut [f64]) {
    struct Op<'a>(&'a [f64], &'a [f64], &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, weights, out) = self;
            let width = out.len();
            let (o_head, o_tail) = S::as_mut_simd_f64s(out);
            let quads = weights.len() / 4 * 4;
            for (rows, w) in rows.chunks_exact(4 * width).zip(weights.chunks_exact(4)) {
                let (r0, rest) = rows.split_at(width);
                let (r1, rest) = rest.split_at(width);
                let (r2, r3) = rest.split_at(width);
                let (h0, t0) = S::as_simd_f64s(r0);
                let (h1, t1) = S::as_simd_f64s(r1);
                let (h2, t2) = S::as_simd_f64s(r2);
                let (h3, t3) = S::as_simd_f64s(r3);
                let s = [
                    simd.splat_f64s(w[0]),
                    simd.splat_f64s(w[1]),
                    simd.splat_f64s(w[2]),
                    simd.splat_f64s(w[3]),
                ];
                for ((((o, &a), &b), &c), &d) in o_head.iter_mut().zip(h0).zip(h1).zip(h2).zip(h3) {
                    let ab = simd.mul_add_f64s(a, s[0], simd.mul_add_f64s(b, s[1], *o));
                    *o = simd.mul_add_f64s(c, s[2], simd.mul_add_f64s(d, s[3], ab));
                }
                for (k, o) in o_tail.iter_mut().enumerate() {
                    *o += w[0] * t0[k] + w[1] * t1[k] + (w[2] * t2[k] + w[3] * t3[k]);
                }
            }
            for (row, &w) in rows.chunks_exact(width).zip(weights).skip(quads) {
                let (head, tail) = S::as_simd_f64s(row);
                let s = simd.splat_f64s(w);
                for (o, &a) in o_head.iter_mut().zip(head) {
                    *o = simd.mul_add_f64s(a, s, *o);
                }
                for (o, a) in o_tail.iter_mut().zip(tail) {
                    *o += w * a;
                }
            }
        }
    }
    if !out.is_empty() {
        Arch::new().dispatch(Op(rows, weights, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(len: usize, step: f64) -> Vec<f64> {
        (0..len).map(|i| (i as f64 * step).sin()).collect()
    }

    #[test]
    fn kernels_equal_plain_loops() {
        for width in [1, 2, 7, 8, 11, 16, 91] {
            for n in [0, 1, 3, 4, 9] {
                let rows = wave(n * width, 0.7);
                let vector = wave(width, 1.3);
                let weights = wave(n, 2.1);
                let mut squares = vec![9.0; n];
                rows_squared_norms(&rows, width, &mut squares);
                let mut u = vec![9.0; n];
                rows_times_vector(&rows, &vector, &mut u);
                let mut g = wave(width, 0.1);
                let mut expected = g.clone();
                add_weighted_rows(&rows, &weights, &mut g);
                for i in 0..n {
                    let row = &rows[i * width..][..width];
                    assert!((u[i] - dot(row, &vector)).abs() < 1e-13);
                    assert!((squares[i] - dot(row, row)).abs() < 1e-13);
                    expected
                        .iter_mut()
                        .zip(row)
                        .for_each(|(e, r)| *e += weights[i] * r);
                }
                assert!(g.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-13));
            }
        }
    }

    #[test]
    fn the_bound_is_no_less_than_the_norm() {
        let least = f64::from_bits(1);
        assert!(norm_bound(&[least, least]) >= 2.0 * least);
        assert!(norm_bound(&[3.0, 4.0]) > 5.0 && norm_bound(&[3.0, 4.0]) < 5.0 + 1e-13);
        assert!(norm_bound(&[0.0; 4]) <= least);
        assert!(norm_bound(&[f64::NAN, 1.0]).is_nan());
    }

    #[test]
    fn norm_survives_extremes() {
        assert!((norm(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3e-200, 4e-200]) / 5e-200 - 1.0).abs() < 1e-15);
        assert!((norm(&[3.0, 4.0]) - 5.0).abs() < 1e-15);
        for nan in [
            &[1.0, f64::NAN][..],
            &[f64::NAN, 0.0],
            &[f64::NAN, 0.0, 1.0],
            &[f64::NAN, f64::INFINITY],
        ] {
            assert!(norm(nan).is_nan());
        }
        assert!(norm(&[1.0, f64::NEG_INFINITY]).is_infinite());
        assert!(norm(&[]).abs() < f64::MIN_POSITIVE);
    }
}
