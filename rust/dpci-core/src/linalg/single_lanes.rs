//! Rows times several vectors at once in single precision, for numbers of which few digits are needed.

use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lane, accumulate_dense, predict_dense};
use super::number::Number;

/// One number of each vector.
pub type SingleLane = [f32; LANES];

/// `out[i][l] += Σ_j rows[i][j] · points[j][l]` for contiguous rows.
pub fn single_predict(rows: &[f32], points: &[SingleLane], out: &mut [SingleLane]) {
    struct Op<'a>(&'a [f32], &'a [SingleLane], &'a mut [SingleLane]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, points, out) = self;
            match S::F32_LANES {
                16 => predict_dense::<S, f32, 1, 8>(simd, rows, points, out),
                8 => predict_dense::<S, f32, 2, 4>(simd, rows, points, out),
                4 => predict_dense::<S, f32, 4, 2>(simd, rows, points, out),
                _ => predict_dense::<S, f32, 16, 1>(simd, rows, points, out),
            }
        }
    }
    crate::linalg::arch().dispatch(Op(rows, points, out));
}

/// `out[j][l] += Σ_i rows[i][j] · weights[i][l]` for contiguous rows.
pub fn single_accumulate(rows: &[f32], weights: &[SingleLane], out: &mut [SingleLane]) {
    struct Op<'a>(&'a [f32], &'a [SingleLane], &'a mut [SingleLane]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, weights, out) = self;
            match S::F32_LANES {
                16 => accumulate_dense::<S, f32, 1, 10>(simd, rows, weights, out),
                8 => accumulate_dense::<S, f32, 2, 5>(simd, rows, weights, out),
                4 => accumulate_dense::<S, f32, 4, 2>(simd, rows, weights, out),
                _ => accumulate_dense::<S, f32, 16, 1>(simd, rows, weights, out),
            }
        }
    }
    crate::linalg::arch().dispatch(Op(rows, weights, out));
}

wide_loop! {
    /// The nearest numbers in single precision.
    pub fn single_of(values: &'a [f64], out: &'a mut [f32]) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = f32::of(*value);
        }
    }
}

wide_loop! {
    /// `values[i][l] *= counts[i][l]`.
    pub fn single_count(counts: &'a [[u8; LANES]], values: &'a mut [SingleLane]) {
        let values = values.as_flattened_mut().iter_mut();
        for (value, count) in values.zip(counts.as_flattened()) {
            *value *= f32::from(*count);
        }
    }
}

wide_loop! {
    /// Adds values to totals in double precision.
    pub fn single_add(values: &'a [SingleLane], totals: &'a mut [Lane]) {
        let totals = totals.as_flattened_mut().iter_mut();
        for (total, value) in totals.zip(values.as_flattened()) {
            *total += f64::from(*value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_equal_plain_loops() {
        for (n, width) in [(1, 1), (5, 3), (9, 11), (8, 91), (19, 4)] {
            let entries: Vec<f64> = (0..n * width).map(|i| (i as f64 * 0.7).sin()).collect();
            let points: Vec<SingleLane> = (0..width)
                .map(|j| std::array::from_fn(|l| (j * LANES + l) as f32 * 0.1))
                .collect();
            let counts: Vec<[u8; LANES]> = (0..n)
                .map(|i| std::array::from_fn(|l| u8::try_from(13 * i + l).unwrap()))
                .collect();
            let mut rows = vec![0.0; n * width];
            single_of(&entries, &mut rows);
            let mut products = vec![[1.0; LANES]; n];
            single_predict(&rows, &points, &mut products);
            let mut weights = vec![[0.5; LANES]; n];
            single_count(&counts, &mut weights);
            let mut sums = vec![[0.0; LANES]; width];
            single_accumulate(&rows, &weights, &mut sums);
            let mut totals = vec![[3.0; LANES]; width];
            single_add(&sums, &mut totals);
            for l in 0..LANES {
                for i in 0..n {
                    let row = &entries[i * width..][..width];
                    let terms = row.iter().zip(&points).map(|(x, p)| x * f64::from(p[l]));
                    let (expected, size) = terms.fold((1.0, 1.0), |(a, b), t| (a + t, b + t.abs()));
                    assert!((f64::from(products[i][l]) - expected).abs() < 1e-6 * size);
                }
                for j in 0..width {
                    let terms = (0..n).map(|i| 0.5 * f64::from(counts[i][l]) * entries[i * width + j]);
                    let (expected, size) = terms.fold((3.0, 3.0), |(a, b), t| (a + t, b + t.abs()));
                    assert!((totals[j][l] - expected).abs() < 1e-6 * size);
                }
            }
        }
    }
}
