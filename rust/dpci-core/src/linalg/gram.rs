//! Weighted Gram matrices `Σ wᵢ xᵢ xᵢᵀ` from packed blocks of rows: register tiles, lower triangle only.
//!
//! They are most of the time of a fit. A block of rows is copied to where cache lines begin, with scale and intercept applied, and
//! once more times the weights, unless these are equal: then they multiply the sums of the block. Tiles of 6 columns times two registers
//! of columns are accumulated in registers: twelve of sums, which keep two multiply-add units busy. The two matrices of the moments
//! share one packed block. Sparse rows are packed like dense ones, or, where few entries are not zero, add the products of the pairs
//! of their entries one by one.

use std::sync::Arc;

use pulp::{Simd, WithSimd};

use super::coded::Layout;
use super::coded_gram::{CodedBlock, CodedGram};
use super::compensated::CompensatedSum;
use super::doubled::two_sum;
use super::lanes::index;
use super::number::Number;
use super::packed::{LEFT, PackedBlock, RIGHT};
use super::symmetric::mirror_lower;
use crate::error::check_length;
use crate::exec::{BLOCK, Executor, matrix_chunks};
use crate::{Error, Result};

/// Blocks that are added up plainly before their sum is added to the compensated one.
pub(super) const PLAIN_BLOCKS: usize = 32;

/// Accumulates `Σ wᵢ xᵢ xᵢᵀ` over packed blocks and sparse rows.
///
/// Its rounding does not grow with the number of rows: see [`GRAM_ROUNDINGS`].
#[derive(Debug, Clone)]
pub struct GramAccumulator {
    dim: usize,
    /// The rows of the last block times their weights, where these differ; empty until then.
    weighted: Option<PackedBlock>,
    /// The sum over the last few blocks.
    tiles: Vec<f64>,
    n_blocks: usize,
    total: CompensatedSum,
    /// Lower triangle from sparse rows, row-major, with what each addition lost; empty until the first one.
    pairs: Vec<[f64; 2]>,
    /// The sum over coded rows; nothing until the first one.
    coded: Option<Box<CodedGram>>,
}

/// Roundings that one term of an accumulated sum passes through, up to second order (docs/certificates.md, "Sums over rows"):
/// scaled entries, weight and product, the additions in its block and over `PLAIN_BLOCKS`, compensated sum and quotient.
pub const GRAM_ROUNDINGS: usize = BLOCK + PLAIN_BLOCKS + 8;

impl GramAccumulator {
    /// An accumulator of `dim × dim` matrices.
    pub fn new(dim: usize) -> Self {
        let n_tiles = tiles(dim).count();
        Self {
            dim,
            weighted: None,
            tiles: vec![0.0; n_tiles * LEFT * RIGHT],
            n_blocks: 0,
            total: CompensatedSum::default(),
            pairs: Vec::new(),
            coded: None,
        }
    }

    /// Adds `Σ weights[i] · xᵢ xᵢᵀ` over a block of coded rows of this layout, the same for all blocks.
    pub fn add_coded(&mut self, layout: &Arc<Layout>, block: CodedBlock<'_>, weights: &[f64]) {
        let n_numbers = layout.numbers().len() + (self.dim - layout.n_columns());
        let new = || Box::new(CodedGram::new(layout, n_numbers));
        self.coded.get_or_insert_with(new).add(block, weights);
    }

    /// Moves the sum over coded rows to the pairs of entries.
    fn spread(&mut self) {
        if let Some(coded) = self.coded.take() {
            let dim = self.dim;
            self.pairs.resize(dim * dim, [0.0; 2]);
            coded.for_each(|a, b, sum| add_halves(&mut self.pairs[a * dim + b], sum));
        }
    }

    /// Calls `add` with the row and the column of each entry of the lower triangle, and both halves of its sum over packed blocks.
    pub(super) fn for_each(mut self, mut add: impl FnMut(usize, usize, [f64; 2])) {
        self.flush();
        let [high, low] = self.total.halves();
        let sums = high.chunks_exact(LEFT * RIGHT).zip(low.chunks_exact(LEFT * RIGHT));
        for ((high, low), (p, q)) in sums.zip(tiles(self.dim)) {
            // Tile entry (i, j) is the product of columns LEFT·p + i and RIGHT·q + j; the lower triangle is kept.
            for (at, (high, low)) in high.iter().zip(low).enumerate() {
                let (a, b) = (LEFT * p + at / RIGHT, RIGHT * q + at % RIGHT);
                if b < self.dim && a <= b {
                    add(b, a, [*high, *low]);
                }
            }
        }
    }

    /// Adds `weight · x xᵀ` of one sparse row, whose last entry is `last` (an intercept) where it is given. Columns increase.
    pub fn add_sparse(&mut self, columns: &[i32], values: &[f64], last: Option<f64>, weight: f64) {
        let add = |[high, low]: &mut [f64; 2], term: f64| {
            let (sum, lost) = two_sum(*high, term);
            *high = sum;
            *low += lost;
        };
        let dim = self.dim;
        self.pairs.resize(dim * dim, [0.0; 2]);
        for (k, (column, value)) in columns.iter().zip(values).enumerate() {
            let row = &mut self.pairs[index(*column) * dim..][..dim];
            let scaled = weight * value;
            for (c, v) in columns[..=k].iter().zip(values) {
                add(&mut row[index(*c)], scaled * v);
            }
        }
        if let Some(last) = last {
            let row = &mut self.pairs[(dim - 1) * dim..];
            let scaled = weight * last;
            for (c, v) in columns.iter().zip(values) {
                add(&mut row[index(*c)], scaled * v);
            }
            add(&mut row[dim - 1], scaled * last);
        }
    }

    /// Adds `Σ weights[i] · xᵢ xᵢᵀ` over the rows of the block.
    ///
    /// # Panics
    /// If dimensions or the number of weights differ.
    pub fn add(&mut self, block: &PackedBlock, weights: &[f64]) {
        assert!(block.dim == self.dim && weights.len() == block.n_rows);
        // Equal weights, such as the curvatures of a quadratic loss, multiply the sums of a block.
        let [first, ..] = weights else { return };
        let common = weights.iter().all(|w| w.to_bits() == first.to_bits());
        let right = if common {
            block
        } else {
            let weighted = self
                .weighted
                .get_or_insert_with(|| PackedBlock::new(block.dim, block.capacity));
            weighted.fill_weighted(block, weights);
            weighted
        };
        crate::linalg::arch().dispatch(AddBlock {
            left: block,
            right,
            factor: if common { *first } else { 1.0 },
            tiles: &mut self.tiles,
        });
        self.n_blocks += 1;
        if self.n_blocks == PLAIN_BLOCKS {
            self.flush();
        }
    }

    /// Moves the sum over the last blocks to the compensated one.
    fn flush(&mut self) {
        self.total.add(&self.tiles);
        self.tiles.fill(0.0);
        self.n_blocks = 0;
    }

    /// Adds another accumulator of the same dimension.
    ///
    /// # Panics
    /// If dimensions differ.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.dim, other.dim);
        self.flush();
        self.spread();
        self.total.merge(&other.total);
        self.total.add(&other.tiles);
        if !other.pairs.is_empty() {
            self.pairs.resize(other.pairs.len(), [0.0; 2]);
            for (a, b) in self.pairs.iter_mut().zip(&other.pairs) {
                add_halves(a, *b);
            }
        }
        if let Some(coded) = &other.coded {
            let dim = self.dim;
            self.pairs.resize(dim * dim, [0.0; 2]);
            let coded = CodedGram::clone(coded);
            coded.for_each(|a, b, sum| add_halves(&mut self.pairs[a * dim + b], sum));
        }
    }

    /// Number of rows and columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The sum as it was rounded, what was lost, and the part from sparse rows, from which [`GramAccumulator::from_numbers`] makes the
    /// same sum.
    pub fn numbers(&self) -> [Vec<f64>; 3] {
        let mut total = self.total.clone();
        total.add(&self.tiles);
        let [high, low] = total.halves().map(<[f64]>::to_vec);
        let mut pairs = Self {
            pairs: self.pairs.clone(),
            coded: self.coded.clone(),
            ..Self::new(self.dim)
        };
        pairs.spread();
        [high, low, pairs.pairs.as_flattened().to_vec()]
    }

    /// The sum whose [`GramAccumulator::numbers`] these are; `None` where their lengths do not go with the dimension.
    pub fn from_numbers(dim: usize, [high, low, pairs]: [&[f64]; 3]) -> Option<Self> {
        if dim > super::MAX_MATRIX_DIM {
            return None;
        }
        let (pairs, rest) = pairs.as_chunks();
        let legal = high.len() == tiles(dim).count() * LEFT * RIGHT
            && (pairs.is_empty() || pairs.len() == dim * dim)
            && rest.is_empty();
        let total = CompensatedSum::from_halves(high, low).filter(|_| legal)?;
        Some(Self {
            total,
            pairs: pairs.to_vec(),
            ..Self::new(dim)
        })
    }

    /// The matrix, divided by `divisor`: full, row-major, exactly symmetric.
    pub fn finish(mut self, divisor: f64) -> Vec<f64> {
        let dim = self.dim;
        let mut out = vec![0.0; dim * dim];
        self.spread();
        let pairs = std::mem::take(&mut self.pairs);
        self.for_each(|a, b, [high, low]| out[a * dim + b] = (high + low) / divisor);
        for (o, [high, low]) in out.iter_mut().zip(&pairs) {
            *o += (high + low) / divisor;
        }
        mirror_lower(&mut out, dim);
        out
    }
}

/// Adds both halves of a sum.
fn add_halves(sum: &mut [f64; 2], other: [f64; 2]) {
    let (high, lost) = two_sum(sum[0], other[0]);
    *sum = [high, sum[1] + lost + other[1]];
}

/// Tiles with a group `q` of right columns that touch the triangle left column ≤ right column.
fn n_tiles(dim: usize, q: usize) -> usize {
    dim.div_ceil(LEFT).min(((q + 1) * RIGHT).div_ceil(LEFT))
}

/// All of them: numbers of the groups of left and right columns.
fn tiles(dim: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..dim.div_ceil(RIGHT)).flat_map(move |q| (0..n_tiles(dim, q)).map(move |p| (p, q)))
}

/// One block added to every tile.
struct AddBlock<'a> {
    left: &'a PackedBlock,
    right: &'a PackedBlock,
    /// By which the products of the block are multiplied.
    factor: f64,
    tiles: &'a mut [f64],
}

impl WithSimd for AddBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Twelve registers of sums keep two multiply-add units busy, and narrow machines have 16.
        match S::F64_LANES {
            8 | 4 | 2 => self.add::<S, 2>(simd),
            _ => self.add::<S, 1>(simd),
        }
    }
}

impl AddBlock<'_> {
    /// Adds the products of [`LEFT`] columns with `VECTORS` registers of columns at a time. The latter stay in a first-level cache while
    /// the former change.
    #[inline(always)]
    fn add<S: Simd, const VECTORS: usize>(self, simd: S) {
        let width = VECTORS * S::F64_LANES;
        let (dim, stride) = (self.left.dim, self.left.stride);
        let mut rest = self.tiles;
        for q in 0..dim.div_ceil(RIGHT) {
            let (tiles, others) = rest.split_at_mut(n_tiles(dim, q) * LEFT * RIGHT);
            rest = others;
            for column in (0..RIGHT).step_by(width) {
                let right = RIGHT * q + column;
                if right >= dim {
                    break;
                }
                for (p, tile) in tiles.chunks_exact_mut(LEFT * RIGHT).enumerate() {
                    if LEFT * p >= right + width {
                        break; // beyond the diagonal
                    }
                    let left = self.left.columns_from(LEFT * p);
                    let right = self.right.columns_from(right);
                    let sums = tile_kernel::<S, f64, VECTORS>(simd, (left, stride), (right, stride));
                    let factor = simd.splat_f64s(self.factor);
                    for (i, sums) in sums.into_iter().enumerate() {
                        let target = &mut tile[i * RIGHT + column..][..width];
                        let (target, _) = S::as_mut_simd_f64s(target);
                        for (t, s) in target.iter_mut().zip(sums) {
                            *t = simd.mul_add_f64s(s, factor, *t);
                        }
                    }
                }
            }
        }
    }
}

/// `leftᵀ · right`: the first [`LEFT`] columns of the left rows and `VECTORS` registers of the right ones; rows with their distances.
#[inline(always)]
pub(super) fn tile_kernel<S: Simd, T: Number, const VECTORS: usize>(
    simd: S,
    (left, left_stride): (&[T], usize),
    (right, right_stride): (&[T], usize),
) -> [[T::Vector<S>; VECTORS]; LEFT] {
    let width = VECTORS * (size_of::<T::Vector<S>>() / size_of::<T>());
    let mut sums = [[T::splat(simd, T::default()); VECTORS]; LEFT];
    let rows = left.chunks_exact(left_stride).zip(right.chunks_exact(right_stride));
    for (l, r) in rows {
        let r = T::vectors::<S>(&r[..width]);
        for (sums, &value) in sums.iter_mut().zip(&l[..LEFT]) {
            let value = T::splat(simd, value);
            for (sum, &r) in sums.iter_mut().zip(r) {
                *sum = T::multiply_add(simd, value, r, *sum);
            }
        }
    }
    sums
}

/// `Σ weights[i] xᵢ xᵢᵀ` over contiguous rows of `dim` entries; row-major, exactly symmetric.
pub fn weighted_gram(rows: &[f64], dim: usize, weights: &[f64], exec: &Executor<'_>) -> Result<Vec<f64>> {
    if dim == 0 || weights.is_empty() {
        return Err(Error::Empty {
            rows: weights.len(),
            params: dim,
        });
    }
    check_length("rows", weights.len() * dim, rows.len())?;
    super::check_matrix_dim(dim)?;
    let chunks = matrix_chunks(weights.len(), dim);
    let partials = exec.map(chunks.len(), |c| {
        let mut accumulator = GramAccumulator::new(dim);
        let mut packed = PackedBlock::new(dim, BLOCK);
        let chunk = chunks[c].clone();
        let blocks = rows[chunk.start * dim..chunk.end * dim].chunks(BLOCK * dim);
        for (rows, weights) in blocks.zip(weights[chunk].chunks(BLOCK)) {
            exec.check()?;
            packed.fill(weights.len(), rows, None, None);
            accumulator.add(&packed, weights);
        }
        Ok(accumulator)
    })?;
    let total = partials.into_iter().reduce(|mut total, part| {
        total.merge(&part);
        total
    });
    let empty = Error::Empty { rows: 0, params: dim };
    total.map(|t| t.finish(1.0)).ok_or(empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_plain_loops_for_every_remainder() {
        for dim in [1, 2, 7, 8, 9, 15, 16, 17, 24, 33, 91] {
            // Scaled rows with an intercept of 3.
            let n = 13;
            let width = dim - 1;
            let features: Vec<f64> = (0..n * width).map(|i| (i as f64 * 0.37).sin()).collect();
            let scales: Vec<f64> = (0..n).map(|i| 1.0 / (1.0 + i as f64)).collect();
            let weights: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7).cos()).collect();
            let mut accumulator = GramAccumulator::new(dim);
            let mut block = PackedBlock::new(dim, 5);
            for range in [0..5, 5..10, 10..13] {
                let rows = &features[range.start * width..range.end * width];
                block.fill(range.len(), rows, Some(&scales[range.clone()]), Some(3.0));
                accumulator.add(&block, &weights[range]);
            }
            let gram = accumulator.finish(2.0);
            let entry = |i: usize, a: usize| {
                if a == width {
                    3.0
                } else {
                    features[i * width + a] * scales[i]
                }
            };
            for a in 0..dim {
                for b in 0..dim {
                    let products = (0..n).map(|i| weights[i] * entry(i, a) * entry(i, b));
                    let expected: f64 = products.sum::<f64>() / 2.0;
                    assert!((gram[a * dim + b] - expected).abs() < 1e-13, "dim {dim}");
                }
            }
        }
    }
}
