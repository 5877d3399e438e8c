//! Two weighted Gram matrices of each lane, of the dense rows that its sample holds, in single precision: register tiles, lower triangle only.
//!
//! A sample drawn with replacement leaves out a third of the rows. Those that it holds are copied together, lane by lane.

use pulp::{Simd, WithSimd};

use super::gram::tile_kernel;
use super::lanes::{LANES, Lane};
use super::number::Number;
use super::packed::{LEFT, PackedBlock, RIGHT};
use super::packed_lanes::SETS;

/// Rows that are held before the lanes take theirs: with the copies of one lane they stay in a second-level cache.
const HELD: usize = 384;

/// Most rows that are summed in single precision.
const BLOCK: usize = 128;

/// Columns of a tile: those of both sets fill its width.
const COLUMNS: usize = RIGHT / SETS;

/// Sums by lane and tile, and the rows that are not yet in them.
#[derive(Debug)]
pub(super) struct LaneTiles {
    rows: PackedBlock<f32>,
    /// Weights of each row, by lane.
    weights: Vec<[[f32; SETS]; LANES]>,
    /// Rows of one lane, as they are.
    left: PackedBlock<f32>,
    /// The same times their weights: [`COLUMNS`] of one set beside those of the other.
    right: PackedBlock<f32>,
    sums: Vec<f64>,
}

impl LaneTiles {
    /// Sums of `dim × dim` matrices.
    pub(super) fn new(dim: usize) -> Self {
        Self {
            rows: PackedBlock::new(dim, HELD),
            weights: Vec::with_capacity(HELD),
            left: PackedBlock::new(dim, BLOCK),
            right: PackedBlock::new(SETS * dim.next_multiple_of(COLUMNS), BLOCK),
            sums: vec![0.0; LANES * n_sums(dim)],
        }
    }

    /// Adds contiguous rows, each followed by `last` (an intercept) where it is given.
    pub(super) fn add(&mut self, rows: &[f64], last: Option<f64>, weights: [&[Lane]; SETS]) {
        let width = self.rows.dim - usize::from(last.is_some());
        let n = weights[0].len();
        for start in (0..n).step_by(BLOCK) {
            let range = start..(start + BLOCK).min(n);
            if self.weights.len() + range.len() > HELD {
                self.add_held();
            }
            let held = &rows[range.start * width..range.end * width];
            crate::linalg::arch().dispatch(Hold {
                rows: held,
                width,
                last,
                weights: weights.map(|set| &set[range.clone()]),
                tiles: self,
            });
        }
    }

    /// Adds the rows that are held to the sums of each lane.
    pub(super) fn add_held(&mut self) {
        let sums_of_lane = n_sums(self.rows.dim);
        let mut drawn = [0; HELD];
        for (lane, sums) in self.sums.chunks_exact_mut(sums_of_lane).enumerate() {
            let mut n_drawn = 0;
            for (i, weights) in self.weights.iter().enumerate() {
                // Without a branch, which nobody could predict.
                drawn[n_drawn] = i;
                n_drawn += usize::from(weights[lane].map(f32::to_bits) != [0; SETS]);
            }
            // Blocks of about equal size.
            let size = n_drawn.div_ceil(n_drawn.div_ceil(BLOCK).max(1)).max(1);
            for drawn in drawn[..n_drawn].chunks(size) {
                crate::linalg::arch().dispatch(AddBlock {
                    rows: &self.rows,
                    drawn,
                    weights: &self.weights,
                    lane,
                    left: &mut self.left,
                    right: &mut self.right,
                    sums,
                });
            }
        }
        self.weights.clear();
    }

    /// Adds the lower triangle of the matrix of one set and lane, divided by `divisor`.
    pub(super) fn add_to(&self, set: usize, lane: usize, divisor: f64, out: &mut [f64]) {
        let dim = self.rows.dim;
        let sums = self.sums[lane * n_sums(dim)..].chunks_exact(LEFT * RIGHT);
        for (tile, (p, q)) in sums.zip(tiles(dim)) {
            // Entry (i, j) of a set is the product of columns LEFT·p + i and COLUMNS·q + j; the lower triangle is kept.
            for (i, values) in tile.chunks_exact(RIGHT).enumerate() {
                for (j, value) in values[set * COLUMNS..][..COLUMNS].iter().enumerate() {
                    let (a, b) = (LEFT * p + i, COLUMNS * q + j);
                    if a < dim && b <= a {
                        out[a * dim + b] += value / divisor;
                    }
                }
            }
        }
    }
}

/// The tiles that touch the triangle left column ≥ right column: numbers of their groups of left and of right columns.
fn tiles(dim: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..dim.div_ceil(COLUMNS)).flat_map(move |q| {
        let first = (COLUMNS * q).saturating_sub(LEFT - 1).div_ceil(LEFT);
        (first..dim.div_ceil(LEFT)).map(move |p| (p, q))
    })
}

/// Numbers in all tiles of a lane.
fn n_sums(dim: usize) -> usize {
    tiles(dim).count() * LEFT * RIGHT
}

/// Rounds weights and rows, which are then held.
struct Hold<'a> {
    rows: &'a [f64],
    width: usize,
    last: Option<f64>,
    weights: [&'a [Lane]; SETS],
    tiles: &'a mut LaneTiles,
}

impl WithSimd for Hold<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let held = &mut self.tiles.weights;
        let first = held.len();
        let [one, other] = self.weights;
        held.extend(
            one.iter()
                .zip(other)
                .map(|(one, other)| std::array::from_fn(|lane| [f32::of(one[lane]), f32::of(other[lane])])),
        );
        let rows = &mut self.tiles.rows;
        rows.n_rows = held.len();
        let stride = rows.stride;
        let places = rows.rows_mut()[first * stride..].chunks_exact_mut(stride);
        for (i, place) in places.enumerate() {
            let row = &self.rows[i * self.width..][..self.width];
            for (out, value) in place.iter_mut().zip(row) {
                *out = f32::of(*value);
            }
            if let Some(last) = self.last {
                place[self.width] = f32::of(last);
            }
        }
    }
}

/// Some rows of one lane, added to its sums.
struct AddBlock<'a> {
    rows: &'a PackedBlock<f32>,
    drawn: &'a [usize],
    weights: &'a [[[f32; SETS]; LANES]],
    lane: usize,
    left: &'a mut PackedBlock<f32>,
    right: &'a mut PackedBlock<f32>,
    sums: &'a mut [f64],
}

impl WithSimd for AddBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        self.pack(simd);
        // As many registers as a tile is wide, and no more than two: narrow machines have 16.
        match S::F32_LANES {
            8 | 4 | 2 => self.multiply::<S, 2>(simd),
            _ => self.multiply::<S, 1>(simd),
        }
    }
}

impl AddBlock<'_> {
    /// Copies the rows together, and once more times their weights.
    #[inline(always)]
    fn pack<S: Simd>(&mut self, simd: S) {
        let stride = self.rows.stride;
        let source = self.rows.columns_from(0);
        (self.left.n_rows, self.right.n_rows) = (self.drawn.len(), self.drawn.len());
        let weighted_stride = self.right.stride;
        let places = self.left.rows_mut().chunks_exact_mut(stride);
        let weighted = self.right.rows_mut().chunks_exact_mut(weighted_stride);
        for (i, (place, weighted)) in self.drawn.iter().zip(places.zip(weighted)) {
            let [first, second] = self.weights[*i][self.lane];
            let row = &source[i * stride..][..stride];
            place.copy_from_slice(row);
            let columns = row.as_chunks::<COLUMNS>().0;
            for (x, out) in columns.iter().zip(weighted.as_chunks_mut::<RIGHT>().0) {
                let (one, other) = out.split_at_mut(COLUMNS);
                scale(simd, first, x, one);
                scale(simd, second, x, other);
            }
        }
    }

    #[inline(always)]
    fn multiply<S: Simd, const VECTORS: usize>(self, simd: S) {
        let width = VECTORS * S::F32_LANES;
        let strides = [self.left.stride, self.right.stride];
        let tiles = tiles(self.rows.dim).zip(self.sums.chunks_exact_mut(LEFT * RIGHT));
        for ((p, q), tile) in tiles {
            let left = self.left.columns_from(LEFT * p);
            for column in (0..RIGHT).step_by(width) {
                let right = self.right.columns_from(RIGHT * q + column);
                let (left, right) = ((left, strides[0]), (right, strides[1]));
                let sums = tile_kernel::<S, f32, VECTORS>(simd, left, right);
                for (sums, target) in sums.into_iter().zip(tile.chunks_exact_mut(RIGHT)) {
                    let mut block = [0.0; RIGHT];
                    f32::vectors_mut::<S>(&mut block)[..VECTORS].copy_from_slice(&sums);
                    for (total, sum) in target[column..].iter_mut().zip(&block[..width]) {
                        *total += f64::from(*sum);
                    }
                }
            }
        }
    }
}

/// `out = factor · x`.
#[inline(always)]
fn scale<S: Simd>(simd: S, factor: f32, x: &[f32], out: &mut [f32]) {
    let ((vectors, rest), (out, out_rest)) = (S::as_simd_f32s(x), S::as_mut_simd_f32s(out));
    let splat = simd.splat_f32s(factor);
    for (out, x) in out.iter_mut().zip(vectors) {
        *out = simd.mul_f32s(splat, *x);
    }
    for (out, x) in out_rest.iter_mut().zip(rest) {
        *out = factor * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{architectures, with_arch};

    #[test]
    fn rows_that_no_sample_holds_and_many_blocks_equal_plain_loops() {
        let (n, dim) = (2 * HELD + 37, 19);
        let rows: Vec<f64> = (0..n * dim).map(|i| (i as f64 * 0.37).sin()).collect();
        // Lane 3 is empty, lane 4 has every row.
        let weight = |set: usize, i: usize, lane: usize| {
            let count = match lane {
                3 => 0,
                4 => 1,
                _ => (i * 7 + lane * 5 + i / 3) % 3,
            };
            count as f64 * (0.5 + 0.25 * set as f64 + 0.125 * (i % 2) as f64)
        };
        let weights: [Vec<Lane>; SETS] = [0, 1].map(|set| {
            (0..n)
                .map(|i| std::array::from_fn(|lane| weight(set, i, lane)))
                .collect()
        });
        for arch in architectures() {
            with_arch(arch, || {
                let mut tiles = LaneTiles::new(dim);
                let mut first = 0;
                for size in [1, 200, 32, n - 233] {
                    let range = first..first + size;
                    let part = [&weights[0][range.clone()], &weights[1][range.clone()]];
                    tiles.add(&rows[range.start * dim..range.end * dim], None, part);
                    first += size;
                }
                tiles.add_held();
                for (set, lane) in [(0, 0), (1, 3), (0, 4), (1, 15)] {
                    let mut found = vec![0.0; dim * dim];
                    tiles.add_to(set, lane, 2.0, &mut found);
                    for a in 0..dim {
                        for b in 0..=a {
                            let terms = (0..n).map(|i| weight(set, i, lane) * rows[i * dim + a] * rows[i * dim + b]);
                            let expected = terms.sum::<f64>() / 2.0;
                            assert!((found[a * dim + b] - expected).abs() < 1e-4, "{arch:?}");
                        }
                    }
                }
            });
        }
    }
}
