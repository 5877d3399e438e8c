//! Weighted Gram matrices of coded rows: a table for each pair of categories, in which a row adds its weight in one place.
//!
//! A code of a category has one row of sums: with the numbers, with the codes of the categories before it, and with itself. Short rows of
//! sums are added up plainly over a block of rows, over blocks, and then with compensation, long ones with compensation at once.

use std::sync::Arc;

use pulp::{Simd, WithSimd};

use super::coded::Layout;
use super::doubled::two_sum;
use super::gram::{GramAccumulator, PLAIN_BLOCKS};
use super::packed::{LINE_BYTES, PackedBlock};
use crate::exec::BLOCK;

/// Sums for each pair of columns up to which blocks are added up plainly: moving them costs less than compensating each addition.
const PLAIN: usize = 1024;

/// The numbers of a row are handled in groups of so many, the last one filled up with zeros.
const GROUP: usize = 8;

/// A block of coded rows: the numbers of each, an intercept among them, and the places of its codes in a table.
#[derive(Debug, Clone, Copy)]
pub struct CodedBlock<'b> {
    /// Numbers, as many for each row as the layout has, and one more for an intercept.
    pub numbers: &'b [f64],
    /// Places in a table.
    pub places: &'b [u32],
}

/// Sums over coded rows of one layout.
#[derive(Debug, Clone)]
pub(super) struct CodedGram {
    layout: Arc<Layout>,
    /// Products of the numbers.
    numbers: GramAccumulator,
    packed: PackedBlock,
    /// Where the sums of each category begin, and how many there are.
    bases: Vec<usize>,
    /// Number of categories whose sums are added up plainly.
    n_plain: usize,
    /// The sums over a block, and over the last few blocks.
    plain: Vec<f64>,
    /// Where the first cache line of them begins.
    start: usize,
    middle: Vec<f64>,
    n_blocks: usize,
    /// The numbers of a block in their groups.
    groups: Vec<[f64; GROUP]>,
    high: Vec<f64>,
    low: Vec<f64>,
}

impl CodedGram {
    /// For rows with so many numbers, the intercept included.
    pub(super) fn new(layout: &Arc<Layout>, n_numbers: usize) -> Self {
        let mut bases = vec![0];
        let mut n_plain = 0;
        for (k, category) in layout.categories().iter().enumerate() {
            let size = (category.levels + 1) * width(layout, n_numbers, k);
            if n_plain == k && size <= PLAIN * (n_numbers + k + 1) {
                n_plain += 1;
            }
            bases.push(bases[k] + size);
        }
        // Vectors that lie on two lines of the cache are slow to load soon after they were stored.
        let plain = vec![0.0; bases[n_plain] + GROUP];
        let total = bases[layout.categories().len()];
        Self {
            layout: Arc::clone(layout),
            numbers: GramAccumulator::new(n_numbers),
            packed: PackedBlock::new(n_numbers, BLOCK),
            start: plain.as_ptr().align_offset(LINE_BYTES).min(GROUP),
            plain,
            middle: vec![0.0; bases[n_plain]],
            n_blocks: 0,
            groups: vec![[0.0; GROUP]; BLOCK * n_numbers.div_ceil(GROUP)],
            high: vec![0.0; total],
            low: vec![0.0; total],
            bases,
            n_plain,
        }
    }

    /// Adds at most [`BLOCK`] rows with their weights.
    pub(super) fn add(&mut self, block: CodedBlock<'_>, weights: &[f64]) {
        let n_numbers = self.numbers.dim();
        if n_numbers > 0 {
            self.packed.fill(weights.len(), block.numbers, None, None);
            self.numbers.add(&self.packed, weights);
            let n_groups = n_numbers.div_ceil(GROUP);
            let groups = self.groups.chunks_exact_mut(n_groups);
            for (groups, numbers) in groups.zip(block.numbers.chunks_exact(n_numbers)) {
                groups.as_flattened_mut()[..n_numbers].copy_from_slice(numbers);
            }
        }
        let plain = &mut self.plain[self.start..][..self.bases[self.n_plain]];
        crate::linalg::arch().dispatch(AddPairs {
            layout: &self.layout,
            bases: &self.bases,
            n_plain: self.n_plain,
            sums: [plain, &mut self.high, &mut self.low],
            groups: &self.groups,
            n_groups: n_numbers.div_ceil(GROUP),
            places: block.places,
            weights,
        });
        let plain = &mut self.plain[self.start..][..self.bases[self.n_plain]];
        move_sums(&mut self.middle, plain);
        self.n_blocks += 1;
        if self.n_blocks == PLAIN_BLOCKS {
            self.flush();
        }
    }

    /// Moves the sums over the last blocks to the compensated ones.
    fn flush(&mut self) {
        compensate(&mut self.high, &mut self.low, &mut self.middle);
        self.n_blocks = 0;
    }

    /// Calls `add` with the row and the column of each entry of the lower triangle, and both halves of its sum.
    pub(super) fn for_each(mut self, mut add: impl FnMut(usize, usize, [f64; 2])) {
        self.flush();
        let layout = self.layout;
        let n_numbers = self.numbers.dim();
        // An intercept stands behind all columns.
        let column = |j: usize| {
            let numbers = layout.numbers();
            numbers.get(j).copied().unwrap_or(layout.n_columns())
        };
        let mut put = |a: usize, b: usize, sum| add(a.max(b), a.min(b), sum);
        self.numbers.for_each(|a, b, sum| put(column(a), column(b), sum));
        for (k, category) in layout.categories().iter().enumerate() {
            let width = width(&layout, n_numbers, k);
            let before = n_numbers.next_multiple_of(GROUP);
            for (level, at) in category.columns().enumerate() {
                let base = self.bases[k] + (level + 1) * width;
                let sum =
                    |place: usize, factor: f64| [self.high[base + place] * factor, self.low[base + place] * factor];
                for j in 0..n_numbers {
                    put(at, column(j), sum(j, category.value));
                }
                for (l, other) in layout.categories()[..k].iter().enumerate() {
                    let first = before + layout.start(l) + 1;
                    for (place, column) in (first..).zip(other.columns()) {
                        put(at, column, sum(place, category.value * other.value));
                    }
                }
                let itself = before + layout.start(k);
                put(at, at, sum(itself, category.value * category.value));
            }
        }
    }
}

/// Room for the sums of one code of a category: whole groups.
fn width(layout: &Layout, n_numbers: usize, category: usize) -> usize {
    (n_numbers.next_multiple_of(GROUP) + layout.start(category) + 1).next_multiple_of(GROUP)
}

wide_loop! {
    /// Adds numbers to others, and makes them 0.
    fn move_sums(to: &'a mut [f64], from: &'a mut [f64]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to += *from;
            *from = 0.0;
        }
    }
}

wide_loop! {
    /// The same with what is lost.
    fn compensate(high: &'a mut [f64], low: &'a mut [f64], from: &'a mut [f64]) {
        for ((high, low), from) in high.iter_mut().zip(low).zip(from) {
            let (sum, lost) = two_sum(*high, *from);
            *high = sum;
            *low += lost;
            *from = 0.0;
        }
    }
}

/// The pairs of a block added to all tables.
struct AddPairs<'a> {
    layout: &'a Layout,
    bases: &'a [usize],
    n_plain: usize,
    /// Plain ones, and both halves of compensated ones.
    sums: [&'a mut [f64]; 3],
    groups: &'a [[f64; GROUP]],
    n_groups: usize,
    places: &'a [u32],
    weights: &'a [f64],
}

impl WithSimd for AddPairs<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            layout,
            bases,
            n_plain,
            sums: [plain, high, low],
            groups,
            n_groups,
            places,
            weights,
        } = self;
        let k = layout.categories().len();
        let n = n_groups * GROUP;
        for (i, (places, &weight)) in places.chunks_exact(k.max(1)).zip(weights).enumerate() {
            let groups = groups[i * n_groups..][..n_groups].as_flattened();
            let factor = simd.splat_f64s(weight);
            for (c, place) in places.iter().enumerate() {
                let start = layout.start(c);
                let width = (n + start + 1).next_multiple_of(GROUP);
                let range = bases[c] + (*place as usize - start) * width..;
                if c < n_plain {
                    let row = &mut plain[range][..width];
                    let (of_numbers, of_codes) = row.split_at_mut(n);
                    // A group is a whole number of vectors.
                    let (sums, _) = S::as_mut_simd_f64s(of_numbers);
                    let (numbers, _) = S::as_simd_f64s(groups);
                    for (sum, x) in sums.iter_mut().zip(numbers) {
                        *sum = simd.mul_add_f64s(factor, *x, *sum);
                    }
                    for other in &places[..c] {
                        of_codes[*other as usize] += weight;
                    }
                    of_codes[start] += weight;
                    continue;
                }
                let (high, low) = (&mut high[range.clone()][..width], &mut low[range][..width]);
                let mut add = |at: usize, term: f64| {
                    let (sum, lost) = two_sum(high[at], term);
                    high[at] = sum;
                    low[at] += lost;
                };
                for (at, x) in groups.iter().enumerate() {
                    add(at, weight * x);
                }
                for other in &places[..c] {
                    add(n + *other as usize, weight);
                }
                add(n + start, weight);
            }
        }
    }
}
