//! Sixteen weighted Gram matrices at once: products of columns are made once and multiplied into all sets of weights.

use pulp::{Arch, Simd, WithSimd};

use super::gram::{LEFT, PackedBlock, RIGHT, tile_kernel};
use super::lanes::{SparseRow, index};
use super::symmetric::mirror_lower;

/// Sets of weights handled at once.
pub const SETS: usize = RIGHT;

/// Accumulates `Σ w_ik xᵢ xᵢᵀ` for [`SETS`] sets of weights `k`.
#[derive(Debug)]
pub struct MultiGram {
    dim: usize,
    /// For column `j` and panel `p ≤ j/8`: products of column `j` with the eight columns of the panel, by set.
    tiles: Vec<f64>,
    products: Vec<f64>,
    /// Products of column pairs from sparse rows, by set: the lower triangle row by row.
    pairs: Vec<[f64; SETS]>,
}

impl MultiGram {
    /// Accumulators of `dim × dim` matrices.
    #[must_use]
    pub fn new(dim: usize) -> Self {
        Self {
            dim,
            tiles: Vec::new(),
            products: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// Adds the rows of the block with their weights.
    ///
    /// # Panics
    /// If dimensions or the number of weights differ.
    pub fn add(&mut self, block: &PackedBlock, weights: &[[f64; SETS]]) {
        assert!(block.dim() == self.dim && weights.len() == block.n_rows());
        let n_tiles: usize = (0..self.dim).map(|j| j / LEFT + 1).sum();
        self.tiles.resize(n_tiles * LEFT * RIGHT, 0.0);
        self.products.resize(block.n_rows() * LEFT, 0.0);
        Arch::new().dispatch(AddBlock {
            dim: self.dim,
            block,
            weights,
            products: &mut self.products,
            tiles: &mut self.tiles,
        });
    }

    /// Adds sparse rows, each followed by `last` (an intercept) where it is given.
    pub fn add_sparse(
        &mut self,
        rows: &[SparseRow<'_>],
        last: Option<f64>,
        weights: &[[f64; SETS]],
    ) {
        self.pairs
            .resize(self.dim * (self.dim + 1) / 2, [0.0; SETS]);
        Arch::new().dispatch(AddSparse {
            dim: self.dim,
            rows,
            last,
            weights,
            pairs: &mut self.pairs,
        });
    }

    /// The matrix of one set, divided by `divisor`: full, row-major, exactly symmetric.
    #[must_use]
    pub fn finish(&self, set: usize, divisor: f64) -> Vec<f64> {
        let dim = self.dim;
        let mut out = vec![0.0; dim * dim];
        let mut tiles = self.tiles.chunks_exact(LEFT * RIGHT);
        for j in 0..dim {
            for (p, tile) in tiles.by_ref().take(j / LEFT + 1).enumerate() {
                for (i, values) in tile.chunks_exact(RIGHT).enumerate() {
                    let column = p * LEFT + i;
                    if column <= j {
                        out[j * dim + column] = values[set] / divisor;
                    }
                }
            }
        }
        for (k, sums) in self.pairs.iter().enumerate() {
            let (row, column) = triangle(k);
            out[row * dim + column] += sums[set] / divisor;
        }
        mirror_lower(&mut out, dim);
        out
    }
}

/// Row and column of entry `k` of a lower triangle stored row by row.
fn triangle(k: usize) -> (usize, usize) {
    let row = (8 * k + 1).isqrt().div_ceil(2) - 1;
    let row = if (row + 1) * (row + 2) / 2 <= k {
        row + 1
    } else {
        row
    };
    (row, k - row * (row + 1) / 2)
}

/// One packed block added to every tile.
struct AddBlock<'a> {
    dim: usize,
    block: &'a PackedBlock,
    weights: &'a [[f64; SETS]],
    products: &'a mut [f64],
    tiles: &'a mut [f64],
}

impl WithSimd for AddBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut tiles = self.tiles.chunks_exact_mut(LEFT * RIGHT);
        for j in 0..self.dim {
            for (p, tile) in tiles.by_ref().take(j / LEFT + 1).enumerate() {
                let panel = self.block.left_panel(p);
                let column = self.block.column(j);
                let (products, _) = self.products.as_chunks_mut::<LEFT>();
                for ((product, row), x) in products.iter_mut().zip(panel).zip(column) {
                    let x = simd.splat_f64s(x);
                    let (product, _) = S::as_mut_simd_f64s(product);
                    let (row, _) = S::as_simd_f64s(row);
                    for (p, &r) in product.iter_mut().zip(row) {
                        *p = simd.mul_f64s(x, r);
                    }
                }
                match S::F64_LANES {
                    8 => tile_kernel::<S, 8, 2>(simd, products, self.weights, 0, tile),
                    4 | 2 => tile_kernel::<S, 4, 2>(simd, products, self.weights, 0, tile),
                    _ => tile_kernel::<S, 4, 1>(simd, products, self.weights, 0, tile),
                }
            }
        }
    }
}

/// Sparse rows added pair by pair.
struct AddSparse<'a> {
    dim: usize,
    rows: &'a [SparseRow<'a>],
    last: Option<f64>,
    weights: &'a [[f64; SETS]],
    pairs: &'a mut [[f64; SETS]],
}

impl WithSimd for AddSparse<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let pairs = self.pairs;
        let mut add = |row: usize, column: usize, x: f64, weights: &[f64; SETS]| {
            let x = simd.splat_f64s(x);
            let (sums, _) = S::as_mut_simd_f64s(&mut pairs[row * (row + 1) / 2 + column]);
            let (weights, _) = S::as_simd_f64s(weights);
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                *sum = simd.mul_add_f64s(x, weight, *sum);
            }
        };
        for ((columns, values), weights) in self.rows.iter().zip(self.weights) {
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
    fn triangle_counts_row_by_row() {
        let expected = (0..40).flat_map(|row| (0..=row).map(move |column| (row, column)));
        assert!(expected.enumerate().all(|(k, pair)| triangle(k) == pair));
    }

    #[test]
    fn dense_and_sparse_equal_plain_loops() {
        for dim in [1, 2, 8, 9, 11, 17, 33] {
            let (n, width) = (7, dim - 1);
            let features: Vec<f64> = (0..n * width).map(|i| (i as f64 * 0.37).sin()).collect();
            let weights: Vec<[f64; SETS]> = (0..n)
                .map(|i| std::array::from_fn(|k| (i * 3 + k) as f64 * 0.1))
                .collect();
            let mut dense = MultiGram::new(dim);
            let mut block = PackedBlock::new(dim, 10);
            block.fill(n, &features, None, Some(2.0));
            dense.add(&block, &weights);
            let columns: Vec<i32> = (0..i32::try_from(width).unwrap()).collect();
            let rows: Vec<SparseRow<'_>> = (0..n)
                .map(|i| (&columns[..], &features[i * width..(i + 1) * width]))
                .collect();
            let mut sparse = MultiGram::new(dim);
            sparse.add_sparse(&rows, Some(2.0), &weights);
            let entry = |i: usize, a: usize| {
                if a == width {
                    2.0
                } else {
                    features[i * width + a]
                }
            };
            for set in [0, 5, 15] {
                let (d, s) = (dense.finish(set, 2.0), sparse.finish(set, 2.0));
                for a in 0..dim {
                    for b in 0..dim {
                        let products = (0..n).map(|i| weights[i][set] * entry(i, a) * entry(i, b));
                        let expected: f64 = products.sum::<f64>() / 2.0;
                        assert!((d[a * dim + b] - expected).abs() < 1e-12, "{dim}");
                        assert!((s[a * dim + b] - expected).abs() < 1e-12, "{dim}");
                    }
                }
            }
        }
    }
}
