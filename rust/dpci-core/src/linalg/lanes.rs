//! Rows times several vectors at once: element `j` of all vectors stands together, one vector to a lane.

use pulp::{Simd, WithSimd};

use super::number::Number;

/// Vectors handled at once. A pass over many columns waits for memory, so it serves more vectors than one register holds.
pub const LANES: usize = 16;

/// One number of each vector.
pub type Lane = [f64; LANES];

/// A sparse row: columns and values.
pub type SparseRow<'a> = (&'a [i32], &'a [f64]);

/// Rows of one block.
#[derive(Debug, Clone, Copy)]
pub enum LaneRows<'a> {
    /// Contiguous rows of the width that the number of points implies.
    Dense(&'a [f64]),
    /// Sparse rows.
    Sparse(&'a [SparseRow<'a>]),
}

/// `out[i][l] += Σ_j rows[i][j] · points[j][l]`.
pub fn lanes_predict(rows: LaneRows<'_>, points: &[Lane], out: &mut [Lane]) {
    struct Op<'a>(LaneRows<'a>, &'a [Lane], &'a mut [Lane]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, points, out) = self;
            match S::F64_LANES {
                // Eight registers of sums keep two multiply-add units busy; narrow machines have 16.
                8 => predict::<S, 2, 8>(simd, rows, points, out),
                4 => predict::<S, 4, 2>(simd, rows, points, out),
                2 => predict::<S, 8, 1>(simd, rows, points, out),
                _ => predict::<S, 16, 1>(simd, rows, points, out),
            }
        }
    }
    crate::linalg::arch().dispatch(Op(rows, points, out));
}

/// `out[j][l] += Σ_i rows[i][j] · weights[i][l]`.
pub fn lanes_accumulate(rows: LaneRows<'_>, weights: &[Lane], out: &mut [Lane]) {
    struct Op<'a>(LaneRows<'a>, &'a [Lane], &'a mut [Lane]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, weights, out) = self;
            match S::F64_LANES {
                8 => accumulate::<S, 2, 8>(simd, rows, weights, out),
                4 => accumulate::<S, 4, 2>(simd, rows, weights, out),
                2 => accumulate::<S, 8, 1>(simd, rows, weights, out),
                _ => accumulate::<S, 16, 1>(simd, rows, weights, out),
            }
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

wide_loop! {
    /// Each byte as a number.
    pub fn lanes_of_bytes(bytes: &'a [[u8; LANES]], out: &'a mut [Lane]) {
        // One row of numbers: for rows of lanes the compiler would gather numbers across the rows.
        for (out, byte) in out.as_flattened_mut().iter_mut().zip(bytes.as_flattened()) {
            *out = f64::from(*byte);
        }
    }
}

/// `values[i][l] *= factors[i]`.
pub fn lanes_scale(factors: &[f64], values: &mut [Lane]) {
    for (values, factor) in values.iter_mut().zip(factors) {
        for value in values {
            *value *= factor;
        }
    }
}

wide_loop! {
    /// `out[i][l] = values[i][l] · counts[i][l]`.
    pub fn lanes_product(values: &'a [Lane], counts: &'a [Lane], out: &'a mut [Lane]) {
        let pairs = values.as_flattened().iter().zip(counts.as_flattened());
        for (out, (value, count)) in out.as_flattened_mut().iter_mut().zip(pairs) {
            *out = value * count;
        }
    }
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

#[inline(always)]
fn load<S: Simd, T: Number, const V: usize>(lane: &[T; LANES]) -> [T::Vector<S>; V] {
    let vectors = T::vectors::<S>(lane);
    std::array::from_fn(|v| vectors[v])
}

/// `sum += x · lane`.
#[inline(always)]
fn add<S: Simd, T: Number, const V: usize>(simd: S, x: T, lane: [T::Vector<S>; V], sum: &mut [T::Vector<S>; V]) {
    let x = T::splat(simd, x);
    for (s, l) in sum.iter_mut().zip(lane) {
        *s = T::multiply_add(simd, x, l, *s);
    }
}

#[inline(always)]
fn store<S: Simd, T: Number, const V: usize>(sum: [T::Vector<S>; V], out: &mut [T; LANES]) {
    T::vectors_mut::<S>(out).copy_from_slice(&sum);
}

#[inline(always)]
fn predict<S: Simd, const V: usize, const R: usize>(simd: S, rows: LaneRows<'_>, points: &[Lane], out: &mut [Lane]) {
    match rows {
        LaneRows::Dense(rows) => predict_dense::<S, f64, V, R>(simd, rows, points, out),
        LaneRows::Sparse(rows) => {
            for ((columns, values), out) in rows.iter().zip(out) {
                let mut sum = load::<S, f64, V>(out);
                for (column, x) in columns.iter().zip(*values) {
                    let point = load::<S, f64, V>(&points[index(*column)]);
                    add::<S, f64, V>(simd, *x, point, &mut sum);
                }
                store::<S, f64, V>(sum, out);
            }
        }
    }
}

/// `R` rows share the loads of the points and hide the latency of the sums.
#[inline(always)]
pub(super) fn predict_dense<S: Simd, T: Number, const V: usize, const R: usize>(
    simd: S,
    rows: &[T],
    points: &[[T; LANES]],
    out: &mut [[T; LANES]],
) {
    let width = points.len();
    if width == 0 {
        return;
    }
    let (groups, rest) = out.as_chunks_mut::<R>();
    for (rows, out) in rows.chunks_exact(R * width).zip(groups.iter_mut()) {
        let rows: [&[T]; R] = std::array::from_fn(|r| &rows[r * width..][..width]);
        let mut sums: [[T::Vector<S>; V]; R] = std::array::from_fn(|r| load::<S, T, V>(&out[r]));
        for (j, point) in points.iter().enumerate() {
            let point = load::<S, T, V>(point);
            for (row, sum) in rows.iter().zip(&mut sums) {
                add::<S, T, V>(simd, row[j], point, sum);
            }
        }
        for (sum, out) in sums.into_iter().zip(out) {
            store::<S, T, V>(sum, out);
        }
    }
    let rows = rows[R * width * groups.len()..].chunks_exact(width);
    for (row, out) in rows.zip(rest) {
        let mut sum: [T::Vector<S>; V] = load::<S, T, V>(out);
        for (x, point) in row.iter().zip(points) {
            add::<S, T, V>(simd, *x, load::<S, T, V>(point), &mut sum);
        }
        store::<S, T, V>(sum, out);
    }
}

#[inline(always)]
fn accumulate<S: Simd, const V: usize, const C: usize>(
    simd: S,
    rows: LaneRows<'_>,
    weights: &[Lane],
    out: &mut [Lane],
) {
    match rows {
        LaneRows::Dense(rows) => accumulate_dense::<S, f64, V, C>(simd, rows, weights, out),
        LaneRows::Sparse(rows) => {
            for ((columns, values), weight) in rows.iter().zip(weights) {
                for (column, x) in columns.iter().zip(*values) {
                    let out = &mut out[index(*column)];
                    let mut sum = load::<S, f64, V>(out);
                    add::<S, f64, V>(simd, *x, load::<S, f64, V>(weight), &mut sum);
                    store::<S, f64, V>(sum, out);
                }
            }
        }
    }
}

/// The sums of `C` columns stay in registers for all rows.
#[inline(always)]
pub(super) fn accumulate_dense<S: Simd, T: Number, const V: usize, const C: usize>(
    simd: S,
    rows: &[T],
    weights: &[[T; LANES]],
    out: &mut [[T; LANES]],
) {
    let width = out.len();
    let (chunks, rest) = out.as_chunks_mut::<C>();
    let n_chunks = chunks.len();
    for (c, out) in chunks.iter_mut().enumerate() {
        accumulate_columns::<S, T, V, C>(simd, (rows, width, C * c), weights, out);
    }
    let (pairs, rest) = rest.as_chunks_mut::<2>();
    let n_pairs = pairs.len();
    for (c, out) in pairs.iter_mut().enumerate() {
        let first = C * n_chunks + 2 * c;
        accumulate_columns::<S, T, V, 2>(simd, (rows, width, first), weights, out);
    }
    for (c, out) in rest.iter_mut().enumerate() {
        let first = C * n_chunks + 2 * n_pairs + c;
        let out = std::array::from_mut(out);
        accumulate_columns::<S, T, V, 1>(simd, (rows, width, first), weights, out);
    }
}

/// `out[c][l] += Σ_i rows[i][first + c] · weights[i][l]` for contiguous rows of some width.
#[inline(always)]
fn accumulate_columns<S: Simd, T: Number, const V: usize, const C: usize>(
    simd: S,
    (rows, width, first): (&[T], usize, usize),
    weights: &[[T; LANES]],
    out: &mut [[T; LANES]; C],
) {
    let mut sums: [[T::Vector<S>; V]; C] = std::array::from_fn(|c| load::<S, T, V>(&out[c]));
    for (row, weight) in rows.chunks_exact(width).zip(weights) {
        let weight = load::<S, T, V>(weight);
        for (sum, x) in sums.iter_mut().zip(&row[first..first + C]) {
            add::<S, T, V>(simd, *x, weight, sum);
        }
    }
    for (sum, out) in sums.into_iter().zip(out) {
        store::<S, T, V>(sum, out);
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
            let weights: Vec<Lane> = (0..n).map(|i| std::array::from_fn(|l| (i + l) as f64 * 0.3)).collect();
            let columns: Vec<i32> = (0..i32::try_from(width).unwrap()).collect();
            let sparse: Vec<SparseRow<'_>> = rows.chunks(width).map(|r| (&columns[..], r)).collect();
            for rows_as in [LaneRows::Dense(&rows), LaneRows::Sparse(&sparse)] {
                let (mut u, mut g) = (vec![[1.0; LANES]; n], vec![[1.0; LANES]; width]);
                lanes_predict(rows_as, &points, &mut u);
                lanes_accumulate(rows_as, &weights, &mut g);
                for l in 0..LANES {
                    for i in 0..n {
                        let expected: f64 = (0..width).map(|j| rows[i * width + j] * points[j][l]).sum();
                        assert!((u[i][l] - 1.0 - expected).abs() < 1e-12);
                    }
                    for j in 0..width {
                        let expected: f64 = (0..n).map(|i| rows[i * width + j] * weights[i][l]).sum();
                        assert!((g[j][l] - 1.0 - expected).abs() < 1e-12);
                    }
                }
            }
        }
    }
}
