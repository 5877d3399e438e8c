//! Blocks of rows in panels of columns, and their products times the weights of all lanes: the inner part of many Gram matrices.

use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lane};
use super::number::Number;

/// Matrices of each lane.
pub(super) const SETS: usize = 2;

/// Columns of a panel: the widest register of single precision.
const PANEL: usize = 16;

/// Pairs of a tile.
pub(super) const PAIRS: usize = 8;

/// Products of the columns of a panel with each other, each pair once.
const TRIANGLE: usize = PANEL * (PANEL + 1) / 2;

/// Sums of some column pairs, by set and lane.
pub(super) type Tile = [[Lane; SETS]; PAIRS];

/// Columns `first..first + n_columns` of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) index: usize,
    pub(super) first: usize,
    pub(super) n_columns: usize,
}

impl Panel {
    /// Tiles for the pairs within the panel.
    pub(super) fn n_triangle_tiles(self) -> usize {
        (self.n_columns * (self.n_columns + 1) / 2).div_ceil(PAIRS)
    }

    /// Tiles for all pairs whose first column lies in this panel: those within it, then its columns with each panel before.
    pub(super) fn n_tiles(self) -> usize {
        self.n_triangle_tiles() + self.n_columns * self.index * (PANEL / PAIRS)
    }
}

pub(super) fn panels(dim: usize) -> impl Iterator<Item = Panel> {
    (0..dim.div_ceil(PANEL)).map(move |index| Panel {
        index,
        first: index * PANEL,
        n_columns: PANEL.min(dim - index * PANEL),
    })
}

/// The rows and weights of a block in one precision.
#[derive(Debug, Default)]
pub(super) struct Packed<T> {
    /// The rows, and in panels of their columns, panel after panel.
    rows: Vec<T>,
    panels: Vec<[T; PANEL]>,
    products: Vec<[T; PANEL]>,
    triangles: Vec<[T; TRIANGLE + PANEL]>,
    /// Weights by set.
    weights: [Vec<[T; LANES]>; SETS],
}

impl<T: Number> Packed<T> {
    /// Adds a block of rows, at least one, to every tile.
    pub(super) fn add(
        &mut self,
        dim: usize,
        (rows, last, weights): (&[f64], Option<f64>, [&[Lane]; SETS]),
        tiles: &mut [Tile],
    ) {
        let n = weights[0].len();
        let zero = T::default();
        self.rows.resize(rows.len(), zero);
        self.panels.resize(dim.div_ceil(PANEL) * n, [zero; PANEL]);
        self.products.resize(n, [zero; PANEL]);
        self.triangles.resize(n, [zero; TRIANGLE + PANEL]);
        for held in &mut self.weights {
            held.resize(n, [zero; LANES]);
        }
        crate::linalg::arch().dispatch(AddBlock {
            dim,
            rows,
            last,
            weights,
            packed: self,
            tiles,
        });
    }
}

/// One block of rows added to every tile.
struct AddBlock<'a, T> {
    dim: usize,
    rows: &'a [f64],
    last: Option<f64>,
    weights: [&'a [Lane]; SETS],
    packed: &'a mut Packed<T>,
    tiles: &'a mut [Tile],
}

impl<T: Number> AddBlock<'_, T> {
    /// Rounds weights and rows, the rows into panels; what lies right of the last column is never used.
    #[inline(always)]
    fn pack(&mut self) {
        let width = self.dim - usize::from(self.last.is_some());
        let n = self.weights[0].len();
        for (rounded, weights) in self.packed.weights.iter_mut().zip(self.weights) {
            round(weights.as_flattened(), rounded.as_flattened_mut());
        }
        round(self.rows, &mut self.packed.rows);
        for i in 0..n {
            let row = &self.packed.rows[i * width..(i + 1) * width];
            for (p, part) in row.chunks(PANEL).enumerate() {
                self.packed.panels[p * n + i][..part.len()].copy_from_slice(part);
            }
        }
        if let Some(last) = self.last {
            for panel in &mut self.packed.panels[width / PANEL * n..][..n] {
                panel[width % PANEL] = T::of(last);
            }
        }
    }
}

/// Numbers in another precision.
#[inline(always)]
fn round<T: Number>(values: &[f64], out: &mut [T]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = T::of(*value);
    }
}

impl<T: Number> WithSimd for AddBlock<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        self.pack();
        let Packed {
            panels: columns,
            products,
            triangles,
            weights,
            ..
        } = self.packed;
        let n = products.len();
        let weights = [&weights[0][..], &weights[1][..]];
        let mut tiles = self.tiles.iter_mut();
        for panel in panels(self.dim) {
            let own = &columns[panel.index * n..][..n];
            for (triangle, row) in triangles.iter_mut().zip(own) {
                // The products of column k with all: what goes past column k is overwritten by those of column k + 1.
                for (k, x) in row.iter().enumerate().take(panel.n_columns) {
                    multiply(simd, *x, row, &mut triangle[k * (k + 1) / 2..][..PANEL]);
                }
            }
            for (t, tile) in tiles.by_ref().take(panel.n_triangle_tiles()).enumerate() {
                T::add_tile(simd, triangles, t * PAIRS, weights, tile);
            }
            for k in 0..panel.n_columns {
                for other in columns.chunks_exact(n).take(panel.index) {
                    for ((product, row), other) in products.iter_mut().zip(own).zip(other) {
                        multiply(simd, row[k % PANEL], other, product);
                    }
                    for (t, tile) in tiles.by_ref().take(PANEL / PAIRS).enumerate() {
                        T::add_tile(simd, products, t * PAIRS, weights, tile);
                    }
                }
            }
        }
    }
}

/// `out = x · columns`.
#[inline(always)]
fn multiply<S: Simd, T: Number>(simd: S, x: T, columns: &[T; PANEL], out: &mut [T]) {
    let x = T::splat(simd, x);
    for (o, &c) in T::vectors_mut::<S>(out)
        .iter_mut()
        .zip(T::vectors::<S>(columns))
    {
        *o = T::multiply(simd, x, c);
    }
}

/// `tile += Σ products[i][from..from + 8] ⊗ weights[i]`, for `ROWS` products at a time and the `VECTORS` registers of a set's lanes.
#[inline(always)]
pub(super) fn tile_kernel<
    S: Simd,
    T: Number,
    const ROWS: usize,
    const VECTORS: usize,
    const W: usize,
>(
    simd: S,
    products: &[[T; W]],
    from: usize,
    weights: [&[[T; LANES]]; SETS],
    tile: &mut Tile,
) {
    for (group, tile) in tile.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
        let zero = T::splat(simd, T::default());
        let mut sums = [[[zero; VECTORS]; SETS]; ROWS];
        for ((products, first), second) in products.iter().zip(weights[0]).zip(weights[1]) {
            let weights = [T::vectors::<S>(first), T::vectors::<S>(second)];
            let products = &products[from + group * ROWS..][..ROWS];
            for (sums, product) in sums.iter_mut().zip(products) {
                let product = T::splat(simd, *product);
                for (sums, weights) in sums.iter_mut().zip(weights) {
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum = T::multiply_add(simd, product, *weight, *sum);
                    }
                }
            }
        }
        for (tile, sums) in tile.iter_mut().zip(&sums) {
            for (tile, sums) in tile.iter_mut().zip(sums) {
                let mut block = [T::default(); LANES];
                T::vectors_mut::<S>(&mut block).copy_from_slice(sums);
                for (total, sum) in tile.iter_mut().zip(block) {
                    *total += sum.into();
                }
            }
        }
    }
}
