//! Linear predictors, by one order of operations on every machine.
//!
//! The proof of the moments takes a predictor as a function of its record and the parameters alone (docs/certificates.md, "Moments").
//! So entry j of a row goes to lane j mod 8, is multiplied and then added, never in one rounding, and the lanes are added in a fixed
//! order: whatever vectors the processor has, and whether the row is stored dense or sparse. A zero changes no lane, since lanes start
//! at +0 and so never become -0.

use pulp::{Simd, WithSimd};

use super::arch::arch;

/// Partial sums of one predictor.
pub(super) const LANES: usize = 8;

/// `out[i] = rows[i] · vector` for contiguous rows of the vector's length.
pub fn rows_times_vector(rows: &[f64], vector: &[f64], out: &mut [f64]) {
    if vector.is_empty() {
        out.fill(0.0);
    } else {
        arch().dispatch(RowsTimesVector::<false>(rows, &[], vector, out));
    }
}

/// The same for rows whose entries are multiplied by `scales[i]` and rounded first: the result is that of the same rows stored scaled, bit
/// by bit.
pub fn scaled_rows_times_vector(rows: &[f64], scales: &[f64], vector: &[f64], out: &mut [f64]) {
    if vector.is_empty() {
        out.fill(0.0);
    } else {
        arch().dispatch(RowsTimesVector::<true>(rows, scales, vector, out));
    }
}

/// `out[i] = rows[i] · rows[i]` for contiguous rows of `width` entries, by the same order of operations.
pub(super) fn rows_times_themselves(rows: &[f64], width: usize, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], usize, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(rows, width, out) = self;
            for (row, o) in rows.chunks_exact(width).zip(out) {
                [*o] = match S::F64_LANES {
                    8 => products::<S, 1, 1, false>(simd, [row], [1.0], row),
                    4 => products::<S, 2, 1, false>(simd, [row], [1.0], row),
                    2 => products::<S, 4, 1, false>(simd, [row], [1.0], row),
                    _ => products::<S, 8, 1, false>(simd, [row], [1.0], row),
                };
            }
        }
    }
    if width == 0 {
        out.fill(0.0);
    } else {
        arch().dispatch(Op(rows, width, out));
    }
}

/// The product of a sparse row, entries in the order of their columns, with a vector: that of the same row stored dense, bit by bit.
pub fn sparse_times_vector(entries: impl Iterator<Item = (usize, f64)>, vector: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for (column, value) in entries {
        lanes[column % LANES] += value * vector[column];
    }
    sum(lanes)
}

/// The lanes, added in halves.
#[inline(always)]
pub(super) fn sum(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Rows, their scales if `SCALED`, the vector and the products.
struct RowsTimesVector<'a, const SCALED: bool>(&'a [f64], &'a [f64], &'a [f64], &'a mut [f64]);

impl<const SCALED: bool> WithSimd for RowsTimesVector<'_, SCALED> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // So many registers hold the lanes of one row.
        match S::F64_LANES {
            8 => self.run::<S, 1>(simd),
            4 => self.run::<S, 2>(simd),
            2 => self.run::<S, 4>(simd),
            _ => self.run::<S, 8>(simd),
        }
    }
}

impl<const SCALED: bool> RowsTimesVector<'_, SCALED> {
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        let Self(rows, scales, vector, out) = self;
        let width = vector.len();
        let scale = |i: usize| if SCALED { scales[i] } else { 1.0 };
        let quads = out.len() / 4 * 4;
        let groups = rows.chunks_exact(4 * width).zip(out.chunks_exact_mut(4)).enumerate();
        for (group, (rows, out)) in groups {
            // Four rows share the loads of the vector and hide the latency of the sums.
            let rows: [&[f64]; 4] = std::array::from_fn(|k| &rows[k * width..][..width]);
            let scales = std::array::from_fn(|k| scale(4 * group + k));
            out.copy_from_slice(&products::<S, V, 4, SCALED>(simd, rows, scales, vector));
        }
        let rest = rows.chunks_exact(width).zip(out.iter_mut()).enumerate();
        for (i, (row, o)) in rest.skip(quads) {
            [*o] = products::<S, V, 1, SCALED>(simd, [row], [scale(i)], vector);
        }
    }
}

/// Products of `R` rows with the vector; `V` registers hold the lanes of each.
#[inline(always)]
fn products<S: Simd, const V: usize, const R: usize, const SCALED: bool>(
    simd: S,
    rows: [&[f64]; R],
    scales: [f64; R],
    vector: &[f64],
) -> [f64; R] {
    let scales = scales.map(|scale| simd.splat_f64s(scale));
    let mut sums = [[simd.splat_f64s(0.0); V]; R];
    // Not a multiply-add, which rounds once where the processor has it.
    let add = |sum: &mut S::f64s, scale: S::f64s, entries: S::f64s, v: S::f64s| {
        let entries = if SCALED { simd.mul_f64s(scale, entries) } else { entries };
        *sum = simd.add_f64s(*sum, simd.mul_f64s(entries, v));
    };
    let (chunks, tail) = vector.as_chunks::<LANES>();
    let heads: [&[[f64; LANES]]; R] = std::array::from_fn(|r| rows[r].as_chunks::<LANES>().0);
    for (k, chunk) in chunks.iter().enumerate() {
        let (v, _) = S::as_simd_f64s(chunk);
        for r in 0..R {
            let (entries, _) = S::as_simd_f64s(&heads[r][k]);
            for i in 0..V {
                add(&mut sums[r][i], scales[r], entries[i], v[i]);
            }
        }
    }
    if !tail.is_empty() {
        let (whole, part) = S::as_simd_f64s(tail);
        for r in 0..R {
            let (entries, rest) = S::as_simd_f64s(&rows[r][chunks.len() * LANES..]);
            for (i, (entries, v)) in entries.iter().zip(whole).enumerate() {
                add(&mut sums[r][i], scales[r], *entries, *v);
            }
            if !part.is_empty() {
                let (entries, v) = (simd.partial_load_f64s(rest), simd.partial_load_f64s(part));
                add(&mut sums[r][whole.len()], scales[r], entries, v);
            }
        }
    }
    sums.map(|lanes| {
        let mut numbers = [0.0; LANES];
        S::as_mut_simd_f64s(&mut numbers).0.copy_from_slice(&lanes);
        sum(numbers)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::arch::{architectures, with_arch};

    /// The order of operations in plain Rust, which neither fuses nor reorders.
    fn plain(row: &[f64], scale: f64, vector: &[f64]) -> f64 {
        let mut lanes = [0.0; LANES];
        for (j, (x, v)) in row.iter().zip(vector).enumerate() {
            lanes[j % LANES] += scale * x * v;
        }
        sum(lanes)
    }

    #[test]
    fn every_machine_and_storage_has_the_same_bits() {
        for width in [0, 1, 3, 7, 8, 9, 20, 61, 200] {
            for n in [1, 3, 4, 9] {
                // A third of the entries are zeros of either sign.
                let entry = |i: usize| match i % 6 {
                    0 => 0.0,
                    3 => -0.0,
                    _ => (i as f64 * 0.7).sin(),
                };
                let rows: Vec<f64> = (0..n * width).map(entry).collect();
                let vector: Vec<f64> = (0..width).map(|j| (j as f64 * 1.3).cos()).collect();
                let scales: Vec<f64> = (0..n).map(|i| 1.0 / (1.0 + i as f64)).collect();
                let row = |i: usize| &rows[i * width..(i + 1) * width];
                for arch in architectures() {
                    let (mut u, mut scaled) = (vec![9.0; n], vec![9.0; n]);
                    with_arch(arch, || {
                        rows_times_vector(&rows, &vector, &mut u);
                        scaled_rows_times_vector(&rows, &scales, &vector, &mut scaled);
                    });
                    for i in 0..n {
                        assert_eq!(u[i].to_bits(), plain(row(i), 1.0, &vector).to_bits());
                        let expected = plain(row(i), scales[i], &vector);
                        assert_eq!(scaled[i].to_bits(), expected.to_bits(), "{arch:?} {width}");
                        let entries = row(i).iter().copied().enumerate();
                        let sparse = sparse_times_vector(entries.filter(|e| e.1 != 0.0), &vector);
                        assert_eq!(u[i].to_bits(), sparse.to_bits());
                    }
                }
            }
        }
    }
}
