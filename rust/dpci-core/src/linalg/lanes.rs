//! Rows times several vectors at once: element `j` of all vectors stands together, one vector to a lane.

use pulp::{Arch, Simd, WithSimd};

/// Vectors handled at once: the lanes of the widest registers.
pub const LANES: usize = 8;

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
                8 => predict::<S, 1>(simd, rows, points, out),
                4 => predict::<S, 2>(simd, rows, points, out),
                2 => predict::<S, 4>(simd, rows, points, out),
                _ => predict::<S, 8>(simd, rows, points, out),
            }
        }
    }
    Arch::new().dispatch(Op(rows, points, out));
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
                8 => accumulate::<S, 1>(simd, rows, weights, out),
                4 => accumulate::<S, 2>(simd, rows, weights, out),
                2 => accumulate::<S, 4>(simd, rows, weights, out),
                _ => accumulate::<S, 8>(simd, rows, weights, out),
            }
        }
    }
    Arch::new().dispatch(Op(rows, weights, out));
}

#[inline(always)]
fn load<S: Simd, const V: usize>(lane: &Lane) -> [S::f64s; V] {
    let (vectors, _) = S::as_simd_f64s(lane);
    std::array::from_fn(|v| vectors[v])
}

/// `sum += x · lane`.
#[inline(always)]
fn add<S: Simd, const V: usize>(simd: S, x: f64, lane: [S::f64s; V], sum: &mut [S::f64s; V]) {
    let x = simd.splat_f64s(x);
    for (s, l) in sum.iter_mut().zip(lane) {
        *s = simd.mul_add_f64s(x, l, *s);
    }
}

#[inline(always)]
fn store<S: Simd, const V: usize>(simd: S, sum: [S::f64s; V], out: &mut Lane) {
    let (out, _) = S::as_mut_simd_f64s(out);
    for (o, s) in out.iter_mut().zip(sum) {
        *o = simd.add_f64s(*o, s);
    }
}

#[inline(always)]
fn predict<S: Simd, const V: usize>(
    simd: S,
    rows: LaneRows<'_>,
    points: &[Lane],
    out: &mut [Lane],
) {
    let zero = [simd.splat_f64s(0.0); V];
    match rows {
        LaneRows::Dense(rows) => {
            let width = points.len().max(1);
            // Four rows share the loads of the points and hide the latency of the sums.
            let (fours, rest) = out.as_chunks_mut::<4>();
            for (rows, out) in rows.chunks_exact(4 * width).zip(fours.iter_mut()) {
                let mut sums = [zero; 4];
                for (j, point) in points.iter().enumerate() {
                    let point = load::<S, V>(point);
                    for (r, sum) in sums.iter_mut().enumerate() {
                        add(simd, rows[r * width + j], point, sum);
                    }
                }
                for (sum, out) in sums.into_iter().zip(out) {
                    store(simd, sum, out);
                }
            }
            for (row, out) in rows[4 * width * fours.len()..]
                .chunks_exact(width)
                .zip(rest)
            {
                let mut sum = zero;
                for (x, point) in row.iter().zip(points) {
                    add(simd, *x, load::<S, V>(point), &mut sum);
                }
                store(simd, sum, out);
            }
        }
        LaneRows::Sparse(rows) => {
            for ((columns, values), out) in rows.iter().zip(out) {
                let mut sum = zero;
                for (column, x) in columns.iter().zip(*values) {
                    add(simd, *x, load::<S, V>(&points[index(*column)]), &mut sum);
                }
                store(simd, sum, out);
            }
        }
    }
}

#[inline(always)]
fn accumulate<S: Simd, const V: usize>(
    simd: S,
    rows: LaneRows<'_>,
    weights: &[Lane],
    out: &mut [Lane],
) {
    let zero = [simd.splat_f64s(0.0); V];
    match rows {
        LaneRows::Dense(rows) => {
            let width = out.len().max(1);
            let (fours, rest) = weights.as_chunks::<4>();
            for (rows, weights) in rows.chunks_exact(4 * width).zip(fours) {
                let weights: [[S::f64s; V]; 4] = std::array::from_fn(|r| load::<S, V>(&weights[r]));
                for (j, out) in out.iter_mut().enumerate() {
                    let mut sum = zero;
                    for (r, weight) in weights.into_iter().enumerate() {
                        add(simd, rows[r * width + j], weight, &mut sum);
                    }
                    store(simd, sum, out);
                }
            }
            for (row, weight) in rows[4 * width * fours.len()..]
                .chunks_exact(width)
                .zip(rest)
            {
                for (x, out) in row.iter().zip(out.iter_mut()) {
                    let mut sum = zero;
                    add(simd, *x, load::<S, V>(weight), &mut sum);
                    store(simd, sum, out);
                }
            }
        }
        LaneRows::Sparse(rows) => {
            for ((columns, values), weight) in rows.iter().zip(weights) {
                for (column, x) in columns.iter().zip(*values) {
                    let mut sum = zero;
                    add(simd, *x, load::<S, V>(weight), &mut sum);
                    store(simd, sum, &mut out[index(*column)]);
                }
            }
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
        for (n, width) in [(1, 1), (5, 3), (9, 11), (8, 91)] {
            let rows: Vec<f64> = (0..n * width).map(|i| (i as f64 * 0.7).sin()).collect();
            let points: Vec<Lane> = (0..width)
                .map(|j| std::array::from_fn(|l| (j * 8 + l) as f64 * 0.1))
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
