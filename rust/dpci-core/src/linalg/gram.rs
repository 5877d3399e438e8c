//! Weighted Gram matrices `Σ wᵢ xᵢ xᵢᵀ` from blocks of rows: packed panels, register tiles, lower triangle only.

use pulp::{Arch, Simd, WithSimd};

use super::symmetric::mirror_lower;
use crate::exec::{BLOCK, Executor, row_chunks};
use crate::{Error, Result};

/// Columns of a right panel (the contiguous operand of a tile).
const RIGHT: usize = 16;
/// Columns of a left panel (the broadcast operand of a tile).
const LEFT: usize = 8;

/// A block of rows, packed in panels of [`RIGHT`] columns so that a tile reads memory in order.
#[derive(Debug)]
pub struct PackedBlock {
    dim: usize,
    capacity: usize,
    n_rows: usize,
    right: Vec<f64>,
}

impl PackedBlock {
    /// Room for `capacity` rows of `dim` entries.
    #[must_use]
    pub fn new(dim: usize, capacity: usize) -> Self {
        let panels = dim.div_ceil(RIGHT);
        Self {
            dim,
            capacity,
            n_rows: 0,
            right: vec![0.0; panels * capacity * RIGHT],
        }
    }

    /// Empties the block.
    pub fn clear(&mut self) {
        self.n_rows = 0;
    }

    /// Appends `scale · row` followed by `last` (an intercept) where it is given.
    ///
    /// # Panics
    /// If the block is full or the row has another length.
    pub fn push(&mut self, row: &[f64], scale: f64, last: Option<f64>) {
        assert!(self.n_rows < self.capacity && row.len() + usize::from(last.is_some()) == self.dim);
        let stride = self.capacity * RIGHT;
        for (panel, part) in row.chunks(RIGHT).enumerate() {
            let at = panel * stride + self.n_rows * RIGHT;
            let target = &mut self.right[at..at + RIGHT];
            if let (Ok(target), Ok(part)) = (
                <&mut [f64; RIGHT]>::try_from(&mut *target),
                <&[f64; RIGHT]>::try_from(part),
            ) {
                for (t, p) in target.iter_mut().zip(part) {
                    *t = scale * p;
                }
            } else {
                for (t, p) in target.iter_mut().zip(part) {
                    *t = scale * p;
                }
            }
        }
        if let Some(value) = last {
            let column = self.dim - 1;
            self.right[column / RIGHT * stride + self.n_rows * RIGHT + column % RIGHT] = value;
        }
        self.n_rows += 1;
    }
}

/// Accumulates `Σ wᵢ xᵢ xᵢᵀ` over packed blocks.
#[derive(Debug)]
pub struct GramAccumulator {
    dim: usize,
    left: Vec<f64>,
    tiles: Vec<f64>,
}

impl GramAccumulator {
    /// An accumulator of `dim × dim` matrices.
    #[must_use]
    pub fn new(dim: usize) -> Self {
        let n_tiles = tiles(dim).count();
        Self {
            dim,
            left: Vec::new(),
            tiles: vec![0.0; n_tiles * LEFT * RIGHT],
        }
    }

    /// Adds `Σ weights[i] · xᵢ xᵢᵀ` over the rows of the block.
    ///
    /// # Panics
    /// If dimensions or the number of weights differ.
    pub fn add(&mut self, block: &PackedBlock, weights: &[f64]) {
        assert!(block.dim == self.dim && weights.len() == block.n_rows);
        self.pack_left(block, weights);
        Arch::new().dispatch(AddBlock {
            dim: self.dim,
            n_rows: block.n_rows,
            left: &self.left,
            right: &block.right,
            right_stride: block.capacity * RIGHT,
            tiles: &mut self.tiles,
        });
    }

    /// The weighted rows in panels of [`LEFT`] columns.
    fn pack_left(&mut self, block: &PackedBlock, weights: &[f64]) {
        let n = block.n_rows;
        self.left.resize(self.dim.div_ceil(LEFT) * n * LEFT, 0.0);
        for (panel, target) in self.left.chunks_exact_mut((n * LEFT).max(1)).enumerate() {
            let start = panel * LEFT / RIGHT * block.capacity * RIGHT + panel * LEFT % RIGHT;
            let source = block.right[start..].chunks(RIGHT);
            for ((t, s), w) in target.chunks_exact_mut(LEFT).zip(source).zip(weights) {
                for (t, s) in t.iter_mut().zip(&s[..LEFT]) {
                    *t = w * s;
                }
            }
        }
    }

    /// Adds another accumulator of the same dimension.
    ///
    /// # Panics
    /// If dimensions differ.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.dim, other.dim);
        for (a, b) in self.tiles.iter_mut().zip(&other.tiles) {
            *a += b;
        }
    }

    /// The matrix, divided by `divisor`: full, row-major, exactly symmetric.
    #[must_use]
    pub fn finish(&self, divisor: f64) -> Vec<f64> {
        let dim = self.dim;
        let mut out = vec![0.0; dim * dim];
        for (tile, (p, q)) in self.tiles.chunks_exact(LEFT * RIGHT).zip(tiles(dim)) {
            // Tile entry (i, j) is the product of columns LEFT·p + i and RIGHT·q + j; the lower triangle is kept.
            for (i, values) in tile.chunks_exact(RIGHT).enumerate() {
                for (j, value) in values.iter().enumerate() {
                    let (a, b) = (LEFT * p + i, RIGHT * q + j);
                    if b < dim && a <= b {
                        out[b * dim + a] = value / divisor;
                    }
                }
            }
        }
        mirror_lower(&mut out, dim);
        out
    }
}

/// The (left panel, right panel) pairs that touch the triangle left column ≤ right column.
fn tiles(dim: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..dim.div_ceil(RIGHT)).flat_map(move |q| {
        (0..dim.div_ceil(LEFT).min((q + 1) * (RIGHT / LEFT))).map(move |p| (p, q))
    })
}

/// One block added to every tile.
struct AddBlock<'a> {
    dim: usize,
    n_rows: usize,
    left: &'a [f64],
    right: &'a [f64],
    right_stride: usize,
    tiles: &'a mut [f64],
}

impl WithSimd for AddBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let n = self.n_rows;
        for (tile, (p, q)) in self
            .tiles
            .chunks_exact_mut(LEFT * RIGHT)
            .zip(tiles(self.dim))
        {
            let left = &self.left[p * n * LEFT..][..n * LEFT];
            let right = &self.right[q * self.right_stride..][..n * RIGHT];
            match S::F64_LANES {
                // 512 bit: 16 accumulators; 256 bit: 8 of 16 registers; narrower: plain code.
                8 => tile_kernel::<S, 8, 2>(simd, left, right, tile),
                4 => tile_kernel::<S, 4, 2>(simd, left, right, tile),
                2 => tile_kernel::<S, 4, 2>(simd, left, right, tile),
                _ => tile_kernel::<S, 4, 1>(simd, left, right, tile),
            }
        }
    }
}

/// `tile += leftᵀ · right` in sub-tiles of `ROWS` × (`VECTORS` · lanes) register accumulators.
#[inline(always)]
fn tile_kernel<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    left: &[f64],
    right: &[f64],
    tile: &mut [f64],
) {
    let lanes = S::F64_LANES;
    for column in (0..RIGHT).step_by(VECTORS * lanes) {
        for row in (0..LEFT).step_by(ROWS) {
            let mut sums = [[simd.splat_f64s(0.0); VECTORS]; ROWS];
            for (l, r) in left.chunks_exact(LEFT).zip(right.chunks_exact(RIGHT)) {
                let (r, _) = S::as_simd_f64s(&r[column..column + VECTORS * lanes]);
                let l = &l[row..row + ROWS];
                for i in 0..ROWS {
                    let weight = simd.splat_f64s(l[i]);
                    for v in 0..VECTORS {
                        sums[i][v] = simd.mul_add_f64s(weight, r[v], sums[i][v]);
                    }
                }
            }
            for (i, sums) in sums.into_iter().enumerate() {
                let at = (row + i) * RIGHT + column;
                let (target, _) = S::as_mut_simd_f64s(&mut tile[at..at + VECTORS * lanes]);
                for (t, s) in target.iter_mut().zip(sums) {
                    *t = simd.add_f64s(*t, s);
                }
            }
        }
    }
}

/// `Σ weights[i] xᵢ xᵢᵀ` over contiguous rows of `dim` entries; row-major, exactly symmetric.
///
/// # Errors
/// [`Error::Length`], [`Error::Empty`], [`Error::Interrupted`].
pub fn weighted_gram(
    rows: &[f64],
    dim: usize,
    weights: &[f64],
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    if dim == 0 || weights.is_empty() {
        return Err(Error::Empty {
            rows: weights.len(),
            params: dim,
        });
    }
    if rows.len() != weights.len() * dim {
        return Err(Error::Length {
            name: "weights",
            expected: rows.len() / dim,
            got: weights.len(),
        });
    }
    let chunks = row_chunks(weights.len(), dim);
    let partials = exec.map(chunks.len(), |c| {
        let mut accumulator = GramAccumulator::new(dim);
        let mut packed = PackedBlock::new(dim, BLOCK);
        let chunk = chunks[c].clone();
        let blocks = rows[chunk.start * dim..chunk.end * dim].chunks(BLOCK * dim);
        for (rows, weights) in blocks.zip(weights[chunk].chunks(BLOCK)) {
            exec.check()?;
            packed.clear();
            for row in rows.chunks_exact(dim) {
                packed.push(row, 1.0, None);
            }
            accumulator.add(&packed, weights);
        }
        Ok(accumulator)
    })?;
    let total = partials.into_iter().reduce(|mut total, part| {
        total.merge(&part);
        total
    });
    total.map(|t| t.finish(1.0)).ok_or(Error::Empty {
        rows: 0,
        params: dim,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_plain_loops_for_every_remainder() {
        for dim in [1, 2, 7, 8, 9, 15, 16, 17, 24, 33, 91] {
            let rows: Vec<Vec<f64>> = (0..13)
                .map(|i| {
                    (0..dim)
                        .map(|j| ((i * dim + j) as f64 * 0.37).sin())
                        .collect()
                })
                .collect();
            let weights: Vec<f64> = (0..13).map(|i| (f64::from(i) * 1.7).cos()).collect();
            let mut accumulator = GramAccumulator::new(dim);
            let mut block = PackedBlock::new(dim, 5);
            for (rows, weights) in rows.chunks(5).zip(weights.chunks(5)) {
                block.clear();
                for row in rows {
                    block.push(&row[..dim - 1], 1.0, Some(row[dim - 1]));
                }
                accumulator.add(&block, weights);
            }
            let gram = accumulator.finish(2.0);
            for a in 0..dim {
                for b in 0..dim {
                    let expected: f64 = rows
                        .iter()
                        .zip(&weights)
                        .map(|(r, w)| w * r[a] * r[b] / 2.0)
                        .sum();
                    assert!((gram[a * dim + b] - expected).abs() < 1e-13, "dim {dim}");
                }
            }
        }
    }
}
