//! Dot products and scaled additions over rows, with run-time choice of the instruction set.

use pulp::{Simd, WithSimd};

use super::arch::arch;
use super::predict::rows_times_themselves;

/// Σ aᵢbᵢ.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Euclidean norm, without overflow for finite entries; NaN if any entry is NaN.
pub fn norm(a: &[f64]) -> f64 {
    // Not f64::max, which drops NaN: a NaN gradient would look converged, a NaN row would look short.
    let largest = a
        .iter()
        .fold(0.0_f64, |m, v| if v.abs() <= m || m.is_nan() { m } else { v.abs() });
    if !(largest > 0.0) || !largest.is_finite() {
        return largest;
    }
    if (1e-140..1e140).contains(&largest) {
        return dot(a, a).sqrt();
    }
    largest * a.iter().map(|v| (v / largest) * (v / largest)).sum::<f64>().sqrt()
}

/// Upper bound on the Euclidean norm: products, sums of nonnegative terms, root and scaling err by less than `len/2 + 6` units of
/// `ε/2`, beside a last digit where numbers are subnormal. NaN if any entry is NaN.
pub fn norm_bound(a: &[f64]) -> f64 {
    sparse_norm_bound(a, a.len())
}

/// The bound of a vector of `len` entries that holds these and zeros: that of the whole vector, bit by bit.
pub fn sparse_norm_bound(a: &[f64], len: usize) -> f64 {
    rounded_up(norm(a), len)
}

/// A computed norm of so many entries, past its roundings.
fn rounded_up(norm: f64, len: usize) -> f64 {
    // Not a sum with the least number, which takes longer than the norm.
    (norm * (1.0 + (len as f64 + 8.0) * f64::EPSILON)).next_up()
}

/// Copies multiplicities into a block's buffer as numbers.
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

/// `values *= factor`.
pub fn scale(values: &mut [f64], factor: f64) {
    for v in values {
        *v *= factor;
    }
}

/// `values /= divisor`.
pub fn divide(values: &mut [f64], divisor: f64) {
    for v in values {
        *v /= divisor;
    }
}

/// `values *= factors`, elementwise.
pub fn multiply(values: &mut [f64], factors: &[f64]) {
    for (v, f) in values.iter_mut().zip(factors) {
        *v *= f;
    }
}

/// The same numbers in double precision, exactly.
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
    arch().dispatch(Op(singles, &mut doubles));
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
                // Four sums by name: as an array with an index the compiler may keep them in memory, which takes twice as long.
                let [mut s0, mut s1, mut s2, mut s3] = [simd.splat_f64s(0.0); 4];
                let (quads, rest) = head.as_chunks::<4>();
                for &[a, b, c, d] in quads {
                    s0 = simd.mul_add_f64s(a, a, s0);
                    s1 = simd.mul_add_f64s(b, b, s1);
                    s2 = simd.mul_add_f64s(c, c, s2);
                    s3 = simd.mul_add_f64s(d, d, s3);
                }
                if let Some(&a) = rest.first() {
                    s0 = simd.mul_add_f64s(a, a, s0);
                }
                if let Some(&b) = rest.get(1) {
                    s1 = simd.mul_add_f64s(b, b, s1);
                }
                if let Some(&c) = rest.get(2) {
                    s2 = simd.mul_add_f64s(c, c, s2);
                }
                let last = simd.partial_load_f64s(tail);
                s0 = simd.mul_add_f64s(last, last, s0);
                let pairs = [simd.add_f64s(s0, s1), simd.add_f64s(s2, s3)];
                *o = simd.reduce_sum_f64s(simd.add_f64s(pairs[0], pairs[1]));
            }
        }
    }
    if width == 0 {
        out.fill(0.0);
    } else {
        arch().dispatch(Op(rows, width, out));
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
        arch().dispatch(Op(rows, weights, out));
    }
}

/// `out[i] = Mᵀrows[i]` for contiguous rows of `width` entries; M is square and row-major. Products are added one after another, so
/// that the bits are the same for all vectors.
pub fn move_rows(rows: &[f64], width: usize, map: &[f64], out: &mut [f64]) {
    /// Rows whose sums are in registers at a time: they share the loads of the map.
    const ROWS: usize = 8;
    struct Op<'a>(&'a [f64], usize, &'a [f64], &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, width, map, out) = self;
            let mut panel = vec![simd.splat_f64s(0.0); width];
            for first in (0..width).step_by(S::F64_LANES) {
                let columns = first..(first + S::F64_LANES).min(width);
                for (p, from) in panel.iter_mut().zip(map.chunks_exact(width)) {
                    *p = simd.partial_load_f64s(&from[columns.clone()]);
                }
                let groups = rows.chunks(ROWS * width);
                for (rows, out) in groups.zip(out.chunks_mut(ROWS * width)) {
                    let n = rows.len() / width;
                    // Fewer rows than the others have: the last one again.
                    let row: [&[f64]; ROWS] = std::array::from_fn(|r| &rows[r.min(n - 1) * width..][..width]);
                    let mut sums = [simd.splat_f64s(0.0); ROWS];
                    for (k, p) in panel.iter().enumerate() {
                        for (sum, row) in sums.iter_mut().zip(row) {
                            *sum = simd.add_f64s(*sum, simd.mul_f64s(simd.splat_f64s(row[k]), *p));
                        }
                    }
                    for (out, sum) in out.chunks_exact_mut(width).zip(sums) {
                        match S::as_mut_simd_f64s(&mut out[columns.clone()]) {
                            ([whole], _) => *whole = sum,
                            (_, part) => simd.partial_store_f64s(part, sum),
                        }
                    }
                }
            }
        }
    }
    if width > 0 {
        arch().dispatch(Op(rows, width, map, out));
    }
}

/// [`norm_bound`] of contiguous rows of `width` entries; the bits are the same for all vectors.
pub fn rows_norm_bounds(rows: &[f64], width: usize, out: &mut [f64]) {
    rows_times_themselves(rows, width, out);
    for (i, o) in out.iter_mut().enumerate() {
        *o = if (1e-280..1e280).contains(o) {
            rounded_up(o.sqrt(), width)
        } else {
            norm_bound(&rows[i * width..][..width])
        };
    }
}

/// `out[place..] += weights[i]·rows[i]` for the contiguous rows of `width` entries that have a place; `places` are pairs (i, place).
pub fn scatter_weighted_rows(rows: &[f64], width: usize, weights: &[f64], places: &[(usize, usize)], out: &mut [f64]) {
    struct Op<'a>(&'a [f64], usize, &'a [f64], &'a [(usize, usize)], &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _simd: S) {
            let Op(rows, width, weights, places, out) = self;
            for &(i, place) in places {
                let row = &rows[i * width..][..width];
                let weight = weights[i];
                for (o, x) in out[place..][..width].iter_mut().zip(row) {
                    *o += weight * x;
                }
            }
        }
    }
    arch().dispatch(Op(rows, width, weights, places, out));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::arch::{architectures, with_arch};

    fn wave(len: usize, step: f64) -> Vec<f64> {
        (0..len).map(|i| (i as f64 * step).sin()).collect()
    }

    #[test]
    fn kernels_equal_plain_loops() {
        for width in [1, 2, 7, 8, 11, 16, 91] {
            for n in [0, 1, 3, 4, 9] {
                let rows = wave(n * width, 0.7);
                let weights = wave(n, 2.1);
                let (map, mut moved) = (wave(width * width, 1.3), vec![9.0; n * width]);
                move_rows(&rows, width, &map, &mut moved);
                for (k, value) in moved.iter().enumerate() {
                    let (row, column) = (&rows[k / width * width..], k % width);
                    let plain = (0..width).fold(0.0, |sum, j| sum + row[j] * map[j * width + column]);
                    assert_eq!(value.to_bits(), f64::to_bits(plain));
                }
                let (mut squares, mut bounds) = (vec![9.0; n], vec![9.0; n]);
                rows_squared_norms(&rows, width, &mut squares);
                rows_norm_bounds(&rows, width, &mut bounds);
                let mut g = wave(width, 0.1);
                let mut expected = g.clone();
                add_weighted_rows(&rows, &weights, &mut g);
                for i in 0..n {
                    let row = &rows[i * width..][..width];
                    assert!((squares[i] - dot(row, row)).abs() < 1e-13);
                    assert!(bounds[i] >= norm(row) && bounds[i] <= norm_bound(row) * (1.0 + 1e-14));
                    expected.iter_mut().zip(row).for_each(|(e, r)| *e += weights[i] * r);
                }
                assert!(g.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-13));
                // All in one place, from the last row to the first: the same sum; the entry before it stays.
                let places: Vec<_> = (0..n).rev().map(|i| (i, 1)).collect();
                let mut scattered = vec![0.5];
                scattered.extend(wave(width, 0.1));
                scatter_weighted_rows(&rows, width, &weights, &places, &mut scattered);
                assert!((scattered[0] - 0.5).abs() < f64::MIN_POSITIVE);
                assert!(scattered[1..].iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-13));
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
        let rows = [3e200, 4e200, 3e-200, 4e-200, 0.0, 0.0, 1.0, f64::NAN];
        let mut bounds = [0.0; 4];
        rows_norm_bounds(&rows, 2, &mut bounds);
        for (row, bound) in rows.chunks_exact(2).zip(bounds) {
            assert_eq!(bound.to_bits(), norm_bound(row).to_bits());
        }
    }

    #[test]
    fn norms_have_the_same_bits_for_all_vectors() {
        for width in [1, 5, 8, 21, 64] {
            let rows = wave(30 * width, 0.7);
            let of = |arch| {
                let mut bounds = [0.0; 30];
                with_arch(arch, || rows_norm_bounds(&rows, width, &mut bounds));
                bounds.map(f64::to_bits)
            };
            let found: Vec<_> = architectures().into_iter().map(of).collect();
            assert!(found.iter().all(|bounds| *bounds == found[0]));
        }
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
