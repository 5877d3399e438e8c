//! A block of rows by column, and products of its columns times the weights of all lanes: the inner part of many Gram matrices.

use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lane};
use super::number::Number;

/// Matrices of each lane.
pub(super) const SETS: usize = 2;

/// Rows of a block.
pub(super) const BLOCK: usize = 64;

/// Sums of the products of two columns, by set and lane.
pub(super) type Pair = [Lane; SETS];

/// The rows and weights of a block in one precision, until it is full.
#[derive(Debug, Default)]
pub(super) struct Packed<T> {
    /// Rows that are held and not yet added to the pairs.
    n_rows: usize,
    /// Entries by column.
    columns: Vec<[T; BLOCK]>,
    /// Weights by set.
    weights: [Vec<[T; LANES]>; SETS],
}

impl<T: Number> Packed<T> {
    /// Takes in at most a block of rows; adds full blocks to every pair of the lower triangle, row by row.
    pub(super) fn add(
        &mut self,
        (rows, last, weights): (&[f64], Option<f64>, [&[Lane]; SETS]),
        pairs: &mut [Pair],
        dim: usize,
    ) {
        let n = weights[0].len();
        if self.n_rows + n > BLOCK {
            self.add_held(pairs);
        }
        self.columns.resize(dim, [T::default(); BLOCK]);
        for held in &mut self.weights {
            held.resize(BLOCK, [T::default(); LANES]);
        }
        crate::linalg::arch().dispatch(Hold {
            rows,
            last,
            weights,
            packed: self,
        });
        self.n_rows += n;
        if self.n_rows == BLOCK {
            self.add_held(pairs);
        }
    }

    /// Adds the rows that are held to every pair.
    pub(super) fn add_held(&mut self, pairs: &mut [Pair]) {
        if self.n_rows == 0 {
            return;
        }
        for held in &mut self.weights {
            // Weights of 0 meet entries of an earlier block.
            held[self.n_rows..].fill([T::default(); LANES]);
        }
        self.n_rows = 0;
        crate::linalg::arch().dispatch(AddHeld { packed: self, pairs });
    }
}

/// Rounds weights and rows, which are then held.
struct Hold<'a, T> {
    rows: &'a [f64],
    last: Option<f64>,
    weights: [&'a [Lane]; SETS],
    packed: &'a mut Packed<T>,
}

impl<T: Number> WithSimd for Hold<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let first = self.packed.n_rows;
        for (rounded, weights) in self.packed.weights.iter_mut().zip(self.weights) {
            let rounded = rounded[first..].as_flattened_mut().iter_mut();
            for (out, value) in rounded.zip(weights.as_flattened()) {
                *out = T::of(*value);
            }
        }
        let columns = &mut self.packed.columns;
        let width = columns.len() - usize::from(self.last.is_some());
        for (i, row) in self.rows.chunks_exact(width.max(1)).enumerate() {
            for (column, value) in columns.iter_mut().zip(row) {
                column[first + i] = T::of(*value);
            }
        }
        if let Some(last) = self.last {
            columns[width].fill(T::of(last));
        }
    }
}

/// The rows that are held, added to every pair.
struct AddHeld<'a, T> {
    packed: &'a Packed<T>,
    pairs: &'a mut [Pair],
}

impl<T: Number> WithSimd for AddHeld<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let [first, second] = &self.packed.weights;
        T::add_pairs(simd, &self.packed.columns, [first, second], self.pairs);
    }
}

/// `pairs[ab][s][l] += Σ_i columns[a][i] · columns[b][i] · weights[s][i][l]`, for `PAIRS` at a time and the `VECTORS` registers of a
/// set's lanes.
#[inline(always)]
pub(super) fn add_pairs<S: Simd, T: Number, const PAIRS: usize, const VECTORS: usize>(
    simd: S,
    columns: &[[T; BLOCK]],
    weights: [&[[T; LANES]]; SETS],
    pairs: &mut [Pair],
) {
    let mut triangle = (0..columns.len()).flat_map(|row| (0..=row).map(move |column| (row, column)));
    let (groups, rest) = pairs.as_chunks_mut::<PAIRS>();
    let mut products = [[T::default(); BLOCK]; PAIRS];
    for group in groups {
        for (product, (row, column)) in products.iter_mut().zip(&mut triangle) {
            multiply(simd, &columns[row], &columns[column], product);
        }
        kernel::<S, T, PAIRS, VECTORS>(simd, &products, weights, group);
    }
    for pair in rest {
        let product = &mut products[0];
        if let Some((row, column)) = triangle.next() {
            multiply(simd, &columns[row], &columns[column], product);
        }
        kernel::<S, T, 1, VECTORS>(simd, std::array::from_ref(product), weights, std::array::from_mut(pair));
    }
}

/// `out = a · b`.
#[inline(always)]
fn multiply<S: Simd, T: Number>(simd: S, a: &[T; BLOCK], b: &[T; BLOCK], out: &mut [T; BLOCK]) {
    let factors = T::vectors::<S>(a).iter().zip(T::vectors::<S>(b));
    for (out, (a, b)) in T::vectors_mut::<S>(out).iter_mut().zip(factors) {
        *out = T::multiply(simd, *a, *b);
    }
}

/// `pairs[p][s] += Σ_i products[p][i] · weights[s][i]`: the sums over the block stay in registers.
#[inline(always)]
fn kernel<S: Simd, T: Number, const PAIRS: usize, const VECTORS: usize>(
    simd: S,
    products: &[[T; BLOCK]; PAIRS],
    weights: [&[[T; LANES]]; SETS],
    pairs: &mut [Pair; PAIRS],
) {
    for (set, weights) in weights.into_iter().enumerate() {
        let zero = T::splat(simd, T::default());
        let mut sums = [[zero; VECTORS]; PAIRS];
        for (i, weights) in weights.iter().enumerate().take(BLOCK) {
            let weights = T::vectors::<S>(weights);
            for (sums, product) in sums.iter_mut().zip(products) {
                let product = T::splat(simd, product[i]);
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = T::multiply_add(simd, product, *weight, *sum);
                }
            }
        }
        for (pair, sums) in pairs.iter_mut().zip(&sums) {
            let mut block = [T::default(); LANES];
            T::vectors_mut::<S>(&mut block).copy_from_slice(sums);
            for (total, sum) in pair[set].iter_mut().zip(block) {
                *total += sum.into();
            }
        }
    }
}
