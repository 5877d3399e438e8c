//! Contiguous rows times one vector, and weighted sums of rows, in doubled precision: several numbers at a time.

use pulp::{Simd, WithSimd};

use super::doubled::Doubled;

/// Rows that are transposed together.
const GROUP: usize = 16;

/// Columns whose sums stay in registers together: each addition waits for the last, so that several vectors are added in turn.
const COLUMNS: usize = 32;

/// `sums[i] += factor[i]·x[i]`; halves are apart, so that vectors hold them as they are.
#[inline(always)]
fn add_products<const N: usize>([high, low]: [&mut [f64; N]; 2], factor: Doubled, x: &[f64; N], fused: bool) {
    for ((high, low), x) in high.iter_mut().zip(low).zip(x) {
        let sum = Doubled::of_halves([*high, *low]) + factor.times(*x, fused);
        [*high, *low] = sum.halves();
    }
}

wide_loop! {
    /// `out[i] = Σ_j rows[i][j]·point[j]`, added from the first j to the last.
    pub fn doubled_predict(rows: &'a [f64], point: &'a [Doubled], out: &'a mut [Doubled]) {
        out.fill(Doubled::default());
        if point.is_empty() {
            return;
        }
        let (groups, rest) = out.as_chunks_mut::<GROUP>();
        let mut rows = rows.chunks_exact(point.len());
        let mut columns = vec![[0.0; GROUP]; point.len()];
        for sums in groups {
            for (i, row) in rows.by_ref().take(GROUP).enumerate() {
                for (column, x) in columns.iter_mut().zip(row) {
                    column[i] = *x;
                }
            }
            let (mut high, mut low) = ([0.0; GROUP], [0.0; GROUP]);
            for (column, p) in columns.iter().zip(point) {
                add_products([&mut high, &mut low], *p, column, !S::IS_SCALAR);
            }
            for ((sum, high), low) in sums.iter_mut().zip(high).zip(low) {
                *sum = Doubled::of_halves([high, low]);
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
        let dim = out.len();
        for (k, sums) in out.chunks_mut(COLUMNS).enumerate() {
            let (start, width) = (k * COLUMNS, sums.len());
            let (mut high, mut low) = ([0.0; COLUMNS], [0.0; COLUMNS]);
            for (i, sum) in sums.iter().enumerate() {
                [high[i], low[i]] = sum.halves();
            }
            let mut x = [0.0; COLUMNS];
            for (row, weight) in rows.chunks_exact(dim).zip(weights) {
                x[..width].copy_from_slice(&row[start..start + width]);
                add_products([&mut high, &mut low], *weight, &x, !S::IS_SCALAR);
            }
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = Doubled::of_halves([high[i], low[i]]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::arch::{architectures, with_arch};

    #[test]
    fn rows_are_added_as_one_by_one() {
        for (n, dim) in [(1, 1), (3, 21), (19, 4), (128, 9), (5, 0), (33, 70), (4, 32)] {
            let rows: Vec<f64> = (0..n * dim).map(|i| (i as f64 * 0.7).sin()).collect();
            let vector = |length: usize| -> Vec<Doubled> {
                let number = |i| Doubled::sum((i as f64 * 1.3).cos(), 1e-17 * (i as f64).sin());
                (0..length).map(number).collect()
            };
            let (point, weights) = (vector(dim), vector(n));
            for arch in architectures() {
                with_arch(arch, || {
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
                });
            }
        }
    }
}
