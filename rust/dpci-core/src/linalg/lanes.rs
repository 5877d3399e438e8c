//! Rows times several vectors at once: element `j` of all vectors stands together, one vector to a lane.

use pulp::{Simd, WithSimd};

use super::number::Number;

/// Vectors handled at once. A pass over many columns waits for memory, so it serves more vectors than one register holds.
pub const LANES: usize = 16;

/// One number of each vector.
pub type Lane<T = f64> = [T; LANES];

/// A sparse row: columns and values.
pub type SparseRow<'a, T = f64> = (&'a [i32], &'a [T]);

/// Rows of one block.
#[derive(Debug, Clone, Copy)]
pub enum LaneRows<'a, T = f64> {
    /// Contiguous rows of the width that the number of points implies.
    Dense(&'a [T]),
    /// Sparse rows.
    Sparse(&'a [SparseRow<'a, T>]),
}

/// `out[i][l] += Σ_j rows[i][j] · points[j][l]`.
pub(crate) fn lanes_predict<T: Number>(
    rows: LaneRows<'_, T>,
    points: &[Lane<T>],
    out: &mut [Lane<T>],
) {
    struct Op<'a, T>(LaneRows<'a, T>, &'a [Lane<T>], &'a mut [Lane<T>]);
    impl<T: Number> WithSimd for Op<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, points, out) = self;
            T::predict(simd, rows, points, out);
        }
    }
    crate::linalg::arch().dispatch(Op(rows, points, out));
}

/// `out[j][l] += Σ_i rows[i][j] · weights[i][l]`.
pub(crate) fn lanes_accumulate<T: Number>(
    rows: LaneRows<'_, T>,
    weights: &[Lane<T>],
    out: &mut [Lane<T>],
) {
    struct Op<'a, T>(LaneRows<'a, T>, &'a [Lane<T>], &'a mut [Lane<T>]);
    impl<T: Number> WithSimd for Op<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, weights, out) = self;
            T::accumulate(simd, rows, weights, out);
        }
    }
    crate::linalg::arch().dispatch(Op(rows, weights, out));
}

/// Each value in all lanes of its row.
pub fn lanes_spread(values: &[f64], out: &mut [Lane]) {
    for (lane, value) in out.iter_mut().zip(values) {
        lane.fill(*value);
    }
}

/// Each byte as a number.
pub(crate) fn lanes_of_bytes<T: Number>(bytes: &[[u8; LANES]], out: &mut [Lane<T>]) {
    struct Op<'a, T>(&'a [[u8; LANES]], &'a mut [Lane<T>]);
    impl<T: Number> WithSimd for Op<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _simd: S) {
            let Op(bytes, out) = self;
            // One row of numbers: for rows of lanes the compiler would gather numbers across the rows.
            for (out, byte) in out.as_flattened_mut().iter_mut().zip(bytes.as_flattened()) {
                *out = T::from(*byte);
            }
        }
    }
    crate::linalg::arch().dispatch(Op(bytes, out));
}

/// `values[i][l] *= factors[i]`.
pub(crate) fn lanes_scale<T: Number + std::ops::MulAssign>(
    factors: &[f64],
    values: &mut [Lane<T>],
) {
    for (values, factor) in values.iter_mut().zip(factors) {
        let factor = T::of(*factor);
        for value in values {
            *value *= factor;
        }
    }
}

/// `out[i][l] = values[i][l] · counts[i][l]`.
pub(crate) fn lanes_product<T: Number>(
    values: &[Lane<T>],
    counts: &[Lane<T>],
    out: &mut [Lane<T>],
) {
    struct Op<'a, T>(&'a [Lane<T>], &'a [Lane<T>], &'a mut [Lane<T>]);
    impl<T: Number> WithSimd for Op<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(values, counts, out) = self;
            let pairs = values.iter().zip(counts);
            for (out, (values, counts)) in out.iter_mut().zip(pairs) {
                let pairs = T::vectors::<S>(values).iter().zip(T::vectors::<S>(counts));
                for (out, (&value, &count)) in T::vectors_mut::<S>(out).iter_mut().zip(pairs) {
                    *out = T::multiply(simd, value, count);
                }
            }
        }
    }
    crate::linalg::arch().dispatch(Op(values, counts, out));
}

wide_loop! {
    /// `curvature[i][l] *= counts[i][l]` and `slope[i][l] = slope[i][l]² · counts[i][l]`: what the moments weigh rows with.
    pub fn lanes_weigh_moments(
        curvature: &'a mut [Lane], slope: &'a mut [Lane], counts: &'a [Lane]
    ) {
        let curvature = curvature.as_flattened_mut().iter_mut();
        let both = curvature.zip(slope.as_flattened_mut());
        for ((curvature, slope), count) in both.zip(counts.as_flattened()) {
            *curvature *= count;
            *slope = *slope * *slope * count;
        }
    }
}

/// `out[i][l] = values[i] · counts[i][l]`.
pub fn lanes_outer(values: &[f64], counts: &[Lane], out: &mut [Lane]) {
    struct Op<'a>(&'a [f64], &'a [Lane], &'a mut [Lane]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(values, counts, out) = self;
            for ((out, value), counts) in out.iter_mut().zip(values).zip(counts) {
                let value = simd.splat_f64s(*value);
                let (out, _) = S::as_mut_simd_f64s(out);
                let (counts, _) = S::as_simd_f64s(counts);
                for (out, count) in out.iter_mut().zip(counts) {
                    *out = simd.mul_f64s(value, *count);
                }
            }
        }
    }
    crate::linalg::arch().dispatch(Op(values, counts, out));
}

/// Registers `first..first + V` of a row of lanes.
#[inline(always)]
fn load<S: Simd, T: Number, const V: usize>(lane: &Lane<T>, first: usize) -> [T::Vector<S>; V] {
    let vectors = &T::vectors::<S>(lane)[first..first + V];
    std::array::from_fn(|v| vectors[v])
}

/// `sum += x · lane`.
#[inline(always)]
fn add<S: Simd, T: Number, const V: usize>(
    simd: S,
    x: T,
    lane: [T::Vector<S>; V],
    sum: &mut [T::Vector<S>; V],
) {
    let x = T::splat(simd, x);
    for (s, l) in sum.iter_mut().zip(lane) {
        *s = T::multiply_add(simd, x, l, *s);
    }
}

#[inline(always)]
fn store<S: Simd, T: Number, const V: usize>(
    sum: [T::Vector<S>; V],
    out: &mut Lane<T>,
    first: usize,
) {
    T::vectors_mut::<S>(out)[first..first + V].copy_from_slice(&sum);
}

/// `R` rows share the loads of the points, `V` registers of them at a time.
#[inline(always)]
pub(super) fn predict<S: Simd, T: Number, const V: usize, const R: usize>(
    simd: S,
    rows: LaneRows<'_, T>,
    points: &[Lane<T>],
    out: &mut [Lane<T>],
) {
    let firsts = || (0..LANES / T::per_vector::<S>()).step_by(V);
    match rows {
        LaneRows::Dense(rows) => {
            let width = points.len();
            if width == 0 {
                return;
            }
            let (groups, rest) = out.as_chunks_mut::<R>();
            let n_grouped = R * width * groups.len();
            for (rows, out) in rows.chunks_exact(R * width).zip(groups) {
                let rows: [&[T]; R] = std::array::from_fn(|r| &rows[r * width..][..width]);
                for first in firsts() {
                    let mut sums: [[T::Vector<S>; V]; R] =
                        std::array::from_fn(|r| load::<S, T, V>(&out[r], first));
                    for (j, point) in points.iter().enumerate() {
                        let point = load::<S, T, V>(point, first);
                        for (row, sum) in rows.iter().zip(&mut sums) {
                            add::<S, T, V>(simd, row[j], point, sum);
                        }
                    }
                    for (sum, out) in sums.into_iter().zip(&mut *out) {
                        store::<S, T, V>(sum, out, first);
                    }
                }
            }
            for (row, out) in rows[n_grouped..].chunks_exact(width).zip(rest) {
                for first in firsts() {
                    let mut sum = load::<S, T, V>(out, first);
                    for (x, point) in row.iter().zip(points) {
                        add::<S, T, V>(simd, *x, load::<S, T, V>(point, first), &mut sum);
                    }
                    store::<S, T, V>(sum, out, first);
                }
            }
        }
        LaneRows::Sparse(rows) => {
            for ((columns, values), out) in rows.iter().zip(out) {
                for first in firsts() {
                    let mut sum = load::<S, T, V>(out, first);
                    for (column, x) in columns.iter().zip(*values) {
                        let point = load::<S, T, V>(&points[index(*column)], first);
                        add::<S, T, V>(simd, *x, point, &mut sum);
                    }
                    store::<S, T, V>(sum, out, first);
                }
            }
        }
    }
}

/// Numbers of dense rows that are read again for each group of columns: so many stay in a first-level cache.
const READ_AGAIN: usize = 1 << 11;

/// The sums of up to six columns stay in registers for many rows, `V` registers of each at a time.
#[inline(always)]
pub(super) fn accumulate<S: Simd, T: Number, const V: usize>(
    simd: S,
    rows: LaneRows<'_, T>,
    weights: &[Lane<T>],
    out: &mut [Lane<T>],
) {
    match rows {
        LaneRows::Dense(rows) => {
            let width = out.len();
            if width == 0 {
                return;
            }
            let n_groups = width.div_ceil(6);
            let step = (READ_AGAIN / width).max(16);
            for (rows, weights) in rows.chunks(step * width).zip(weights.chunks(step)) {
                let mut rest = &mut *out;
                for group in 0..n_groups {
                    // As equal as may be: two or three would not keep the multiply-add units busy.
                    let size = rest.len().div_ceil(n_groups - group);
                    let rows = (rows, width, width - rest.len());
                    let (sums, others) = rest.split_at_mut(size);
                    rest = others;
                    match size {
                        6 => columns::<S, T, V, 6>(simd, rows, weights, sums),
                        5 => columns::<S, T, V, 5>(simd, rows, weights, sums),
                        4 => columns::<S, T, V, 4>(simd, rows, weights, sums),
                        3 => columns::<S, T, V, 3>(simd, rows, weights, sums),
                        2 => columns::<S, T, V, 2>(simd, rows, weights, sums),
                        _ => columns::<S, T, V, 1>(simd, rows, weights, sums),
                    }
                }
            }
        }
        LaneRows::Sparse(rows) => {
            for ((columns, values), weight) in rows.iter().zip(weights) {
                for (column, x) in columns.iter().zip(*values) {
                    let out = &mut out[index(*column)];
                    for first in (0..LANES / T::per_vector::<S>()).step_by(V) {
                        let mut sum = load::<S, T, V>(out, first);
                        add::<S, T, V>(simd, *x, load::<S, T, V>(weight, first), &mut sum);
                        store::<S, T, V>(sum, out, first);
                    }
                }
            }
        }
    }
}

/// `out[c][l] += Σ_i rows[i][first + c] · weights[i][l]` for contiguous rows of some width.
#[inline(always)]
fn columns<S: Simd, T: Number, const V: usize, const C: usize>(
    simd: S,
    (rows, width, column): (&[T], usize, usize),
    weights: &[Lane<T>],
    out: &mut [Lane<T>],
) {
    for first in (0..LANES / T::per_vector::<S>()).step_by(V) {
        let mut sums: [[T::Vector<S>; V]; C] =
            std::array::from_fn(|c| load::<S, T, V>(&out[c], first));
        for (row, weight) in rows.chunks_exact(width).zip(weights) {
            let weight = load::<S, T, V>(weight, first);
            for (sum, x) in sums.iter_mut().zip(&row[column..column + C]) {
                add::<S, T, V>(simd, *x, weight, sum);
            }
        }
        for (sum, out) in sums.into_iter().zip(&mut *out) {
            store::<S, T, V>(sum, out, first);
        }
    }
}

#[expect(clippy::cast_sign_loss, reason = "columns are indexes")]
pub(super) fn index(column: i32) -> usize {
    column as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_equal_plain_loops() {
        for (n, width) in [(1, 1), (5, 3), (9, 11), (8, 91), (19, 4)] {
            let rows: Vec<f64> = (0..n * width).map(|i| (i as f64 * 0.7).sin()).collect();
            let points: Vec<Lane> = (0..width)
                .map(|j| std::array::from_fn(|l| (j * LANES + l) as f64 * 0.1))
                .collect();
            let weights: Vec<Lane> = (0..n)
                .map(|i| std::array::from_fn(|l| (i + l) as f64 * 0.3))
                .collect();
            let columns: Vec<i32> = (0..i32::try_from(width).unwrap()).collect();
            let sparse: Vec<SparseRow<'_>> =
                rows.chunks(width).map(|r| (&columns[..], r)).collect();
            for rows_as in [LaneRows::Dense(&rows), LaneRows::Sparse(&sparse)] {
                let (mut u, mut g) = (vec![[1.0; LANES]; n], vec![[1.0; LANES]; width]);
                lanes_predict(rows_as, &points, &mut u);
                lanes_accumulate(rows_as, &weights, &mut g);
                for l in 0..LANES {
                    for i in 0..n {
                        let expected: f64 =
                            (0..width).map(|j| rows[i * width + j] * points[j][l]).sum();
                        assert!((u[i][l] - 1.0 - expected).abs() < 1e-12);
                    }
                    for j in 0..width {
                        let expected: f64 =
                            (0..n).map(|i| rows[i * width + j] * weights[i][l]).sum();
                        assert!((g[j][l] - 1.0 - expected).abs() < 1e-12);
                    }
                }
            }
        }
    }
}
