//! Many weighted Gram matrices at once, two for each lane: products of columns are made once and multiplied into all weights.

use pulp::{Simd, WithSimd};

use super::gram::{LEFT, tile_kernel};
use super::lanes::{LANES, Lane, SparseRow, index};
use super::packed::RIGHT;
use super::symmetric::mirror_lower;

/// Matrices of each lane.
const SETS: usize = 2;

const _: () = assert!(LANES == RIGHT);

/// Products of eight columns with each other, each pair once, in whole panels.
const TRIANGLE: usize = 40;

/// Accumulates `Σ w_ikl xᵢ xᵢᵀ` for two sets of weights `k`, each with all lanes `l`.
#[derive(Debug)]
pub struct MultiGram {
    dim: usize,
    /// By set: sums of products of column pairs by lane, eight pairs to a tile, in the order of [`for_each_pair`].
    tiles: [Vec<f64>; SETS],
    /// The rows at hand in panels of eight columns, panel after panel.
    panels: Vec<[f64; LEFT]>,
    products: Vec<[f64; LEFT]>,
    triangles: Vec<[f64; TRIANGLE]>,
    /// Products of column pairs from sparse rows, by set and lane: the lower triangle row by row.
    pairs: Vec<[Lane; SETS]>,
}

impl MultiGram {
    /// Accumulators of `dim × dim` matrices.
    #[must_use]
    pub fn new(dim: usize) -> Self {
        Self {
            dim,
            tiles: std::array::from_fn(|_| Vec::new()),
            panels: Vec::new(),
            products: Vec::new(),
            triangles: Vec::new(),
            pairs: Vec::new(),
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
        let n_panels = self.dim.div_ceil(LEFT);
        let n_tiles = panels(self.dim).map(Panel::n_tiles).sum::<usize>();
        for tiles in &mut self.tiles {
            tiles.resize(n_tiles * LEFT * RIGHT, 0.0);
        }
        self.panels.resize(n_panels * n, [0.0; LEFT]);
        self.products.resize(n, [0.0; LEFT]);
        self.triangles.resize(n, [0.0; TRIANGLE]);
        crate::linalg::arch().dispatch(AddBlock {
            rows,
            last,
            weights,
            gram: self,
        });
    }

    /// Adds sparse rows, each followed by `last` (an intercept) where it is given.
    pub fn add_sparse(
        &mut self,
        rows: &[SparseRow<'_>],
        last: Option<f64>,
        weights: [&[Lane]; SETS],
    ) {
        self.pairs
            .resize(self.dim * (self.dim + 1) / 2, [[0.0; LANES]; SETS]);
        crate::linalg::arch().dispatch(AddSparse {
            dim: self.dim,
            rows,
            last,
            weights,
            pairs: &mut self.pairs,
        });
    }

    /// The matrix of one set and lane, divided by `divisor`: full, row-major, exactly symmetric.
    #[must_use]
    pub fn finish(&self, set: usize, lane: usize, divisor: f64) -> Vec<f64> {
        let dim = self.dim;
        let mut out = vec![0.0; dim * dim];
        if !self.tiles[set].is_empty() {
            let entries = self.tiles[set].chunks_exact(RIGHT);
            for_each_pair(dim, entries, |row, column, values| {
                out[row * dim + column] = values[lane] / divisor;
            });
        }
        for (k, sums) in self.pairs.iter().enumerate() {
            let (row, column) = triangle(k);
            out[row * dim + column] += sums[set][lane] / divisor;
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

/// Columns `first..first + n_columns` of a matrix.
#[derive(Clone, Copy)]
struct Panel {
    index: usize,
    first: usize,
    n_columns: usize,
}

impl Panel {
    /// Tiles for the pairs within the panel.
    fn n_triangle_tiles(self) -> usize {
        (self.n_columns * (self.n_columns + 1) / 2).div_ceil(LEFT)
    }

    /// Tiles for all pairs whose first column lies in this panel: those within it, then its columns with each panel before.
    fn n_tiles(self) -> usize {
        self.n_triangle_tiles() + self.n_columns * self.index
    }
}

fn panels(dim: usize) -> impl Iterator<Item = Panel> {
    (0..dim.div_ceil(LEFT)).map(move |index| Panel {
        index,
        first: index * LEFT,
        n_columns: LEFT.min(dim - index * LEFT),
    })
}

/// Calls `visit(row, column, sums)` for every entry of the lower triangle, in the order of the tiles.
fn for_each_pair<'t>(
    dim: usize,
    mut entries: impl Iterator<Item = &'t [f64]>,
    mut visit: impl FnMut(usize, usize, &'t [f64]),
) {
    for panel in panels(dim) {
        for (k, values) in entries
            .by_ref()
            .take(panel.n_triangle_tiles() * LEFT)
            .enumerate()
        {
            let (row, column) = triangle(k);
            if row < panel.n_columns {
                visit(panel.first + row, panel.first + column, values);
            }
        }
        for row in 0..panel.n_columns {
            for (column, values) in entries.by_ref().take(panel.first).enumerate() {
                visit(panel.first + row, column, values);
            }
        }
    }
}

/// One block of rows added to every tile.
struct AddBlock<'a> {
    rows: &'a [f64],
    last: Option<f64>,
    weights: [&'a [Lane]; SETS],
    gram: &'a mut MultiGram,
}

impl AddBlock<'_> {
    /// Copies the rows into panels; what lies right of the last column stays 0.
    #[inline(always)]
    fn pack(&mut self) {
        let width = self.gram.dim - usize::from(self.last.is_some());
        let n = self.weights[0].len();
        for i in 0..n {
            let row = &self.rows[i * width..(i + 1) * width];
            let (whole, rest) = row.as_chunks::<LEFT>();
            for (p, part) in whole.iter().enumerate() {
                self.gram.panels[p * n + i] = *part;
            }
            if !rest.is_empty() {
                self.gram.panels[whole.len() * n + i][..rest.len()].copy_from_slice(rest);
            }
            if let Some(last) = self.last {
                self.gram.panels[width / LEFT * n + i][width % LEFT] = last;
            }
        }
    }
}

impl WithSimd for AddBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let n = self.weights[0].len();
        if n == 0 {
            return;
        }
        self.pack();
        let gram = self.gram;
        let [first, second] = &mut gram.tiles;
        let mut tiles = first
            .chunks_exact_mut(LEFT * RIGHT)
            .zip(second.chunks_exact_mut(LEFT * RIGHT));
        for panel in panels(gram.dim) {
            let own = &gram.panels[panel.index * n..][..n];
            for (triangle, row) in gram.triangles.iter_mut().zip(own) {
                // The products of column k with all eight: what goes past column k is overwritten by those of column k + 1.
                for k in 0..LEFT {
                    let at = k * (k + 1) / 2;
                    multiply(simd, row[k], row, &mut triangle[at..at + LEFT]);
                }
            }
            for (t, tile) in tiles.by_ref().take(panel.n_triangle_tiles()).enumerate() {
                for (tile, weights) in [tile.0, tile.1].into_iter().zip(self.weights) {
                    add_tile(simd, &gram.triangles, t * LEFT, weights, tile);
                }
            }
            for k in 0..panel.n_columns {
                for (q, tile) in tiles.by_ref().take(panel.index).enumerate() {
                    let other = &gram.panels[q * n..][..n];
                    for ((product, row), other) in gram.products.iter_mut().zip(own).zip(other) {
                        multiply(simd, row[k % LEFT], other, product);
                    }
                    for (tile, weights) in [tile.0, tile.1].into_iter().zip(self.weights) {
                        add_tile(simd, &gram.products, 0, weights, tile);
                    }
                }
            }
        }
    }
}

/// `out = x · columns`.
#[inline(always)]
fn multiply<S: Simd>(simd: S, x: f64, columns: &[f64; LEFT], out: &mut [f64]) {
    let x = simd.splat_f64s(x);
    let (out, _) = S::as_mut_simd_f64s(out);
    let (columns, _) = S::as_simd_f64s(columns);
    for (o, &c) in out.iter_mut().zip(columns) {
        *o = simd.mul_f64s(x, c);
    }
}

/// `tile += Σ products[i][from..from + 8] ⊗ weights[i]`.
#[inline(always)]
fn add_tile<S: Simd, const W: usize>(
    simd: S,
    products: &[[f64; W]],
    from: usize,
    weights: &[Lane],
    tile: &mut [f64],
) {
    match S::F64_LANES {
        8 => tile_kernel::<S, 8, 2, W>(simd, products, from, weights, 0..RIGHT, tile),
        4 | 2 => tile_kernel::<S, 4, 2, W>(simd, products, from, weights, 0..RIGHT, tile),
        _ => tile_kernel::<S, 4, 1, W>(simd, products, from, weights, 0..RIGHT, tile),
    }
}

/// Sparse rows added pair by pair.
struct AddSparse<'a> {
    dim: usize,
    rows: &'a [SparseRow<'a>],
    last: Option<f64>,
    weights: [&'a [Lane]; SETS],
    pairs: &'a mut [[Lane; SETS]],
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
    fn triangle_counts_row_by_row() {
        let expected = (0..40).flat_map(|row| (0..=row).map(move |column| (row, column)));
        assert!(expected.enumerate().all(|(k, pair)| triangle(k) == pair));
    }

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
            let part =
                |range: std::ops::Range<usize>| [&weights[0][range.clone()], &weights[1][range]];
            let mut dense = MultiGram::new(dim);
            // Two blocks, the second shorter.
            dense.add(&features[..4 * width], Some(2.0), part(0..4));
            dense.add(&features[4 * width..], Some(2.0), part(4..n));
            let columns: Vec<i32> = (0..i32::try_from(width).unwrap()).collect();
            let rows: Vec<SparseRow<'_>> = (0..n)
                .map(|i| (&columns[..], &features[i * width..(i + 1) * width]))
                .collect();
            let mut sparse = MultiGram::new(dim);
            sparse.add_sparse(&rows, Some(2.0), part(0..n));
            let entry = |i: usize, a: usize| {
                if a == width {
                    2.0
                } else {
                    features[i * width + a]
                }
            };
            for (set, lane) in [(0, 0), (0, 5), (1, 15)] {
                let (d, s) = (dense.finish(set, lane, 2.0), sparse.finish(set, lane, 2.0));
                for a in 0..dim {
                    for b in 0..dim {
                        let products =
                            (0..n).map(|i| weights[set][i][lane] * entry(i, a) * entry(i, b));
                        let expected: f64 = products.sum::<f64>() / 2.0;
                        assert!((d[a * dim + b] - expected).abs() < 1e-12, "{dim}");
                        assert!((s[a * dim + b] - expected).abs() < 1e-12, "{dim}");
                    }
                }
            }
        }
    }
}
