//! Contiguous rows times one vector, and weighted sums of rows, in doubled precision: several numbers at a time.

use pulp::{Simd, WithSimd};

use super::doubled::Doubled;

/// Rows that are transposed together.
const GROUP: usize = 16;

wide_loop! {
    /// `out[i] = Σ_j rows[i][j]·point[j]`, added from the first j to the last.
    pub fn doubled_predict(rows: &'a [f64], point: &'a [Doubled], out: &'a mut [Doubled]) {
        out.fill(Doubled::default());
        if point.is_empty() {
            return;
        }
        let (groups, rest) = out.as_chunks_mut::<GROUP>();
        let mut rows = rows.chunks_exact(point.len());
        for sums in groups {
            let rows: [&[f64]; GROUP] = std::array::from_fn(|_| rows.next().unwrap_or_default());
            for (j, p) in point.iter().enumerate() {
                let column: [f64; GROUP] = std::array::from_fn(|i| rows[i][j]);
                for (sum, x) in sums.iter_mut().zip(column) {
                    *sum = *sum + *p * x;
                }
            }
        }
        for (sum, row) in rest.iter_mut().zip(rows) {
            *sum = Doubled::dot(row, point);
        }
    }
}

wide_loop! {
    /// `out[j] += Σ_i weights[i]·rows[i][j]`, added from the first i to the last.
    pub fn doubled_accumulate(rows: &'a [f64], weights: &'a [Doubled], out: &'a mut [Doubled]) {
        if out.is_empty() {
            return;
        }
        for (row, weight) in rows.chunks_exact(out.len()).zip(weights) {
            for (sum, x) in out.iter_mut().zip(row) {
                *sum = *sum + *weight * *x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_as_one_by_one() {
        for (n, dim) in [(1, 1), (3, 21), (19, 4), (128, 9), (5, 0)] {
            let rows: Vec<f64> = (0..n * dim).map(|i| (i as f64 * 0.7).sin()).collect();
            let vector = |length: usize| -> Vec<Doubled> {
                let number = |i| Doubled::sum((i as f64 * 1.3).cos(), 1e-17 * (i as f64).sin());
                (0..length).map(number).collect()
            };
            let (point, weights) = (vector(dim), vector(n));
            let mut found = vec![Doubled::from(f64::NAN); n];
            doubled_predict(&rows, &point, &mut found);
            for (i, found) in found.iter().enumerate() {
                assert_eq!(*found, Doubled::dot(&rows[i * dim..][..dim], &point));
            }
            let mut sums = vec![Doubled::from(1.0); dim];
            doubled_accumulate(&rows, &weights, &mut sums);
            for (j, sum) in sums.iter().enumerate() {
                let one_by_one = |sum, i| sum + weights[i] * rows[i * dim + j];
                assert_eq!(*sum, (0..n).fold(Doubled::from(1.0), one_by_one));
            }
        }
    }
}
