//! Many weighted Gram matrices at once, two for each lane: products of columns are made once and multiplied into all weights.
//!
//! Products of dense rows are summed over a block in the precision that is asked for, and over blocks in double precision. With AVX2
//! the sums of five pairs of columns stay in registers for a block of 64 rows. From 48 parameters on, if no records were merged, the rows
//! that a lane's sample holds, 63% of them, are copied together and multiplied in register tiles (`lane_tiles.rs`).

use pulp::{Simd, WithSimd};

use super::lane_tiles::LaneTiles;
use super::lanes::{LANES, Lane, SparseRow, index};
use super::packed_lanes::{BLOCK, Packed, Pair, SETS};
use super::symmetric::mirror_lower;

/// In which products of dense rows are made and summed over a block; those of sparse rows are always in double precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Twice as fast. An entry is off by at most `(N + 4)·2⁻²⁴` of the sum of its absolute terms, `N` the rows of a block; roundings of many
    /// blocks cancel, so that it is about `√B` times less in `B` of them.
    Single,
    /// Double precision, as everywhere else.
    Double,
}

/// Accumulates `Σ w_ikl xᵢ xᵢᵀ` for two sets of weights `k`, each with all lanes `l`.
#[derive(Debug)]
pub struct MultiGram {
    dim: usize,
    precision: Precision,
    /// The lower triangles row by row.
    pairs: Vec<Pair>,
    /// The block at hand; one of the two is in use.
    single: Packed<f32>,
    double: Packed<f64>,
    /// Takes dense rows instead, where it is there.
    tiles: Option<LaneTiles>,
}

/// Parameters from which products of the rows of one lane at a time are faster, because they leave out the others.
const TILED: usize = 48;

impl MultiGram {
    /// Accumulators of `dim × dim` matrices.
    pub fn new(dim: usize, precision: Precision) -> Self {
        Self {
            dim,
            precision,
            pairs: vec![[[0.0; LANES]; SETS]; dim * (dim + 1) / 2],
            single: Packed::default(),
            double: Packed::default(),
            tiles: None,
        }
    }

    /// The same in single precision for samples of distinct records, each of which leaves out a third of the rows.
    pub fn of_samples(dim: usize) -> Self {
        Self {
            tiles: (dim >= TILED).then(|| LaneTiles::new(dim)),
            ..Self::new(dim, Precision::Single)
        }
    }

    /// Adds contiguous rows, each followed by `last` (an intercept) where it is given.
    ///
    /// # Panics
    /// If there are not as many rows as weights.
    pub fn add(&mut self, rows: &[f64], last: Option<f64>, weights: [&[Lane]; SETS]) {
        let n = weights[0].len();
        let width = self.dim - usize::from(last.is_some());
        assert!(rows.len() == n * width && weights[1].len() == n);
        if let Some(tiles) = &mut self.tiles {
            return tiles.add(rows, last, weights);
        }
        for start in (0..n).step_by(BLOCK) {
            let range = start..(start + BLOCK).min(n);
            let block = (
                &rows[range.start * width..range.end * width],
                last,
                weights.map(|set| &set[range.clone()]),
            );
            match self.precision {
                Precision::Single => self.single.add(block, &mut self.pairs, self.dim),
                Precision::Double => self.double.add(block, &mut self.pairs, self.dim),
            }
        }
    }

    /// Adds sparse rows, each followed by `last` (an intercept) where it is given.
    pub fn add_sparse(&mut self, rows: &[SparseRow<'_>], last: Option<f64>, weights: [&[Lane]; SETS]) {
        crate::linalg::arch().dispatch(AddSparse {
            dim: self.dim,
            rows,
            last,
            weights,
            pairs: &mut self.pairs,
        });
    }

    /// The matrix of one set and lane, divided by `divisor`: full, row-major, exactly symmetric.
    pub fn finish(&mut self, set: usize, lane: usize, divisor: f64) -> Vec<f64> {
        self.single.add_held(&mut self.pairs);
        self.double.add_held(&mut self.pairs);
        let dim = self.dim;
        let mut out = vec![0.0; dim * dim];
        let triangle = (0..dim).flat_map(|row| (0..=row).map(move |column| row * dim + column));
        for (entry, sums) in triangle.zip(&self.pairs) {
            out[entry] = sums[set][lane] / divisor;
        }
        if let Some(tiles) = &mut self.tiles {
            tiles.add_held();
            tiles.add_to(set, lane, divisor, &mut out);
        }
        mirror_lower(&mut out, dim);
        out
    }
}

/// Sparse rows added pair by pair.
struct AddSparse<'a> {
    dim: usize,
    rows: &'a [SparseRow<'a>],
    last: Option<f64>,
    weights: [&'a [Lane]; SETS],
    pairs: &'a mut [Pair],
}

impl WithSimd for AddSparse<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let pairs = self.pairs;
        let mut add = |row: usize, column: usize, x: f64, weights: [&Lane; SETS]| {
            let x = simd.splat_f64s(x);
            let sums = &mut pairs[row * (row + 1) / 2 + column];
            for (sums, weights) in sums.iter_mut().zip(weights) {
                let (sums, _) = S::as_mut_simd_f64s(sums);
                let (weights, _) = S::as_simd_f64s(weights);
                for (sum, &weight) in sums.iter_mut().zip(weights) {
                    *sum = simd.mul_add_f64s(x, weight, *sum);
                }
            }
        };
        let [first, second] = self.weights;
        for ((columns, values), weights) in self.rows.iter().zip(first.iter().zip(second)) {
            let weights = [weights.0, weights.1];
            for (k, (row, x)) in columns.iter().zip(*values).enumerate() {
                for (column, v) in columns[..=k].iter().zip(*values) {
                    add(index(*row), index(*column), x * v, weights);
                }
            }
            if let Some(last) = self.last {
                for (column, v) in columns.iter().zip(*values) {
                    add(self.dim - 1, index(*column), last * v, weights);
                }
                add(self.dim - 1, self.dim - 1, last * last, weights);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_equal_plain_loops() {
        for dim in [1, 2, 8, 9, 11, 17, 33] {
            let (n, width) = (7, dim - 1);
            let features: Vec<f64> = (0..n * width).map(|i| (i as f64 * 0.37).sin()).collect();
            let weights: [Vec<Lane>; SETS] = [0, 1].map(|set| {
                (0..n)
                    .map(|i| std::array::from_fn(|l| (i * 3 + l + 7 * set) as f64 * 0.1))
                    .collect()
            });
            let part = |range: std::ops::Range<usize>| [&weights[0][range.clone()], &weights[1][range]];
            let mut dense = MultiGram::new(dim, Precision::Double);
            // Two blocks, the second shorter.
            dense.add(&features[..4 * width], Some(2.0), part(0..4));
            dense.add(&features[4 * width..], Some(2.0), part(4..n));
            let columns: Vec<i32> = (0..i32::try_from(width).unwrap()).collect();
            let rows: Vec<SparseRow<'_>> = (0..n)
                .map(|i| (&columns[..], &features[i * width..(i + 1) * width]))
                .collect();
            let mut sparse = MultiGram::new(dim, Precision::Double);
            sparse.add_sparse(&rows, Some(2.0), part(0..n));
            let entry = |i: usize, a: usize| {
                if a == width { 2.0 } else { features[i * width + a] }
            };
            let mut single = MultiGram::new(dim, Precision::Single);
            single.add(&features[..4 * width], Some(2.0), part(0..4));
            single.add(&features[4 * width..], Some(2.0), part(4..n));
            let mut tiled = MultiGram {
                tiles: Some(LaneTiles::new(dim)),
                ..MultiGram::new(dim, Precision::Single)
            };
            tiled.add(&features[..4 * width], Some(2.0), part(0..4));
            tiled.add(&features[4 * width..], Some(2.0), part(4..n));
            for (set, lane) in [(0, 0), (0, 5), (1, 15)] {
                let rounded = single.finish(set, lane, 2.0);
                let of_lane = tiled.finish(set, lane, 2.0);
                let (d, s) = (dense.finish(set, lane, 2.0), sparse.finish(set, lane, 2.0));
                for a in 0..dim {
                    for b in 0..dim {
                        let products = (0..n).map(|i| weights[set][i][lane] * entry(i, a) * entry(i, b));
                        let expected: f64 = products.sum::<f64>() / 2.0;
                        assert!((d[a * dim + b] - expected).abs() < 1e-12, "{dim}");
                        assert!((rounded[a * dim + b] - expected).abs() < 1e-5, "{dim}");
                        assert!((of_lane[a * dim + b] - expected).abs() < 1e-5, "{dim}");
                        assert!((s[a * dim + b] - expected).abs() < 1e-12, "{dim}");
                    }
                }
            }
        }
    }

    #[test]
    fn roundings_of_single_precision_cancel_over_many_blocks() {
        let (dim, block, n_blocks) = (3, 64, 512);
        let [mut single, mut double] =
            [Precision::Single, Precision::Double].map(|precision| MultiGram::new(dim, precision));
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..n_blocks {
            let rows: Vec<f64> = (0..block * dim).map(|_| next() - 0.3).collect();
            let weights: [Vec<Lane>; SETS] =
                std::array::from_fn(|_| (0..block).map(|_| std::array::from_fn(|_| 3.0 * next())).collect());
            for gram in [&mut single, &mut double] {
                gram.add(&rows, None, [&weights[0], &weights[1]]);
            }
        }
        for (set, lane) in [(0, 3), (1, 15)] {
            let [rounded, exact] = [&mut single, &mut double].map(|gram| gram.finish(set, lane, 1.0));
            for (rounded, exact) in rounded.iter().zip(&exact) {
                // Of the diagonal, which is 1.5 times the mean of a square of 0.12 for each of 32,768 rows.
                assert!((rounded - exact).abs() < 5e-8 * 6_000.0, "{rounded} {exact}");
                assert!((rounded - exact).abs() > 0.0);
            }
        }
    }
}
