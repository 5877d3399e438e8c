//! Blocks of rows in panels of columns, and their products times the weights of all lanes: the inner part of many Gram matrices.

use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lane};
use super::number::Number;

/// Matrices of each lane.
pub(super) const SETS: usize = 2;

/// Columns of a panel: the widest register of single precision.
const PANEL: usize = 16;

/// Most pairs whose sums are held at once, see [`groups`].
const PAIRS: usize = 6;

/// Products of the columns of a panel with each other, each pair once.
const TRIANGLE: usize = PANEL * (PANEL + 1) / 2;

/// Sums of a column pair, by set and lane.
pub(super) type Sums = [Lane; SETS];

/// So many pairs in groups of five and six, whose sums fill the registers: their sizes, which have some pairs more where there are few.
fn groups(n_pairs: usize) -> impl Iterator<Item = usize> {
    let n = n_pairs.div_ceil(PAIRS);
    let whole = n_pairs.saturating_sub(n * (PAIRS - 1));
    (0..n).map(move |group| PAIRS - usize::from(group >= whole))
}

/// Pairs in [`groups`].
fn n_held(n_pairs: usize) -> usize {
    groups(n_pairs).sum()
}

/// Columns `first..first + n_columns` of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) index: usize,
    pub(super) first: usize,
    pub(super) n_columns: usize,
}

impl Panel {
    /// Pairs within the panel.
    fn n_triangle_pairs(self) -> usize {
        self.n_columns * (self.n_columns + 1) / 2
    }

    /// Sums that are held for the pairs within the panel.
    pub(super) fn n_triangle_sums(self) -> usize {
        n_held(self.n_triangle_pairs())
    }

    /// Those for all pairs whose first column lies in this panel: those within it, then its columns with each panel before.
    pub(super) fn n_sums(self) -> usize {
        self.n_triangle_sums() + self.n_columns * self.index * PANEL
    }
}

pub(super) fn panels(dim: usize) -> impl Iterator<Item = Panel> {
    (0..dim.div_ceil(PANEL)).map(move |index| Panel {
        index,
        first: index * PANEL,
        n_columns: PANEL.min(dim - index * PANEL),
    })
}

/// Rows that are held until their products are summed: many, because each sum begins and ends with work of its own.
/// Not so many that those of a panel and their weights leave a first-level cache.
pub(super) const HELD: usize = 128;

/// Rows and their weights in one precision, until there are enough of them.
#[derive(Debug, Default)]
pub(super) struct Packed<T> {
    /// Rows in panels of their columns, panel after panel.
    panels: Vec<[T; PANEL]>,
    triangles: Vec<[T; TRIANGLE + PANEL]>,
    /// Weights by set, and the same times the numbers of a column.
    weights: [Vec<[T; LANES]>; SETS],
    scaled: [Vec<[T; LANES]>; SETS],
    n_held: usize,
    rounded: Vec<T>,
}

impl<T: Number> Packed<T> {
    /// Adds rows to those that are held, and when these are enough to all sums.
    pub(super) fn add(
        &mut self,
        dim: usize,
        (rows, last, weights): (&[f64], Option<f64>, [&[Lane]; SETS]),
        sums: &mut [Sums],
    ) {
        let width = dim - usize::from(last.is_some());
        let zero = T::default();
        self.panels
            .resize(dim.div_ceil(PANEL) * HELD, [zero; PANEL]);
        self.triangles.resize(HELD, [zero; TRIANGLE + PANEL]);
        for held in self.weights.iter_mut().chain(&mut self.scaled) {
            held.resize(HELD, [zero; LANES]);
        }
        let mut from = 0;
        while from < weights[0].len() {
            let to = weights[0].len().min(from + HELD - self.n_held);
            let weights = weights.map(|weights| &weights[from..to]);
            self.hold(&rows[from * width..to * width], width, last, weights);
            if self.n_held == HELD {
                self.flush(dim, sums);
            }
            from = to;
        }
    }

    /// Rounds rows and weights, the rows into panels; what lies right of the last column is never used.
    fn hold(&mut self, rows: &[f64], width: usize, last: Option<f64>, weights: [&[Lane]; SETS]) {
        let first = self.n_held;
        self.n_held += weights[0].len();
        let held = first..self.n_held;
        for (rounded, weights) in self.weights.iter_mut().zip(weights) {
            let rounded = &mut rounded[held.clone()];
            round(weights.as_flattened(), rounded.as_flattened_mut());
        }
        self.rounded.resize(rows.len(), T::default());
        round(rows, &mut self.rounded);
        if width > 0 {
            for (i, row) in self.rounded.chunks_exact(width).enumerate() {
                for (p, part) in row.chunks(PANEL).enumerate() {
                    self.panels[p * HELD + first + i][..part.len()].copy_from_slice(part);
                }
            }
        }
        if let Some(last) = last {
            for panel in &mut self.panels[width / PANEL * HELD..][held] {
                panel[width % PANEL] = T::of(last);
            }
        }
    }

    /// Adds the rows that are held to all sums.
    pub(super) fn flush(&mut self, dim: usize, sums: &mut [Sums]) {
        if self.n_held > 0 {
            crate::linalg::arch().dispatch(AddHeld {
                dim,
                packed: self,
                sums,
            });
            self.n_held = 0;
        }
    }
}

/// Rows that are held, added to all sums.
struct AddHeld<'a, T> {
    dim: usize,
    packed: &'a mut Packed<T>,
    sums: &'a mut [Sums],
}

/// Numbers in another precision.
pub(crate) fn round<T: Number>(values: &[f64], out: &mut [T]) {
    struct Op<'a, T>(&'a [f64], &'a mut [T]);
    impl<T: Number> WithSimd for Op<'_, T> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _simd: S) {
            let Op(values, out) = self;
            for (out, value) in out.iter_mut().zip(values) {
                *out = T::of(*value);
            }
        }
    }
    crate::linalg::arch().dispatch(Op(values, out));
}

impl<T: Number> WithSimd for AddHeld<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let n = self.packed.n_held;
        let Packed {
            panels: columns,
            triangles,
            weights,
            scaled,
            ..
        } = self.packed;
        let triangles = &mut triangles[..n];
        let weights = [&weights[0][..n], &weights[1][..n]];
        let mut rest = self.sums;
        for panel in panels(self.dim) {
            let own = &columns[panel.index * HELD..][..n];
            for (triangle, row) in triangles.iter_mut().zip(own) {
                // The products of column k with all: what goes past column k is overwritten by those of column k + 1.
                for (k, x) in row.iter().enumerate().take(panel.n_columns) {
                    multiply(simd, *x, row, &mut triangle[k * (k + 1) / 2..][..PANEL]);
                }
            }
            let (sums, others) = rest.split_at_mut(panel.n_triangle_sums());
            rest = others;
            add_products(simd, triangles, panel.n_triangle_pairs(), weights, sums);
            if panel.index == 0 {
                continue;
            }
            for k in 0..panel.n_columns {
                for (scaled, weights) in scaled.iter_mut().zip(weights) {
                    for ((scaled, weights), row) in scaled.iter_mut().zip(weights).zip(own) {
                        multiply(simd, row[k % PANEL], weights, scaled);
                    }
                }
                let scaled = [&scaled[0][..n], &scaled[1][..n]];
                for other in columns.chunks_exact(HELD).take(panel.index) {
                    let (sums, others) = rest.split_at_mut(PANEL);
                    rest = others;
                    add_products(simd, &other[..n], PANEL, scaled, sums);
                }
            }
        }
    }
}

/// `sums[k] += Σ products[i][k] ⊗ weights[i]` for the first products of every row.
#[inline(always)]
fn add_products<S: Simd, T: Number, const W: usize>(
    simd: S,
    products: &[[T; W]],
    n_pairs: usize,
    weights: [&[[T; LANES]]; SETS],
    mut sums: &mut [Sums],
) {
    let mut from = 0;
    for size in groups(n_pairs) {
        let (group, rest) = sums.split_at_mut(size);
        T::add_group(simd, products, from, weights, group);
        (from, sums) = (from + size, rest);
    }
}

/// `out = x · numbers`.
#[inline(always)]
fn multiply<S: Simd, T: Number, const W: usize>(simd: S, x: T, numbers: &[T; W], out: &mut [T]) {
    let x = T::splat(simd, x);
    for (o, &n) in T::vectors_mut::<S>(out)
        .iter_mut()
        .zip(T::vectors::<S>(numbers))
    {
        *o = T::multiply(simd, x, n);
    }
}

/// `sums[k] += Σ products[i][from + k] ⊗ weights[i]` for `PAIRS` products at a time; `SETS_AT_ONCE` sets of weights and the `VECTORS`
/// registers of a set's lanes.
#[inline(always)]
pub(super) fn add_pairs<
    S: Simd,
    T: Number,
    const PAIRS: usize,
    const SETS_AT_ONCE: usize,
    const VECTORS: usize,
    const W: usize,
>(
    simd: S,
    products: &[[T; W]],
    from: usize,
    weights: [&[[T; LANES]]; SETS],
    sums: &mut [Sums],
) {
    let zero = T::splat(simd, T::default());
    for first in (0..SETS).step_by(SETS_AT_ONCE) {
        let mut registers = [[[zero; VECTORS]; SETS_AT_ONCE]; PAIRS];
        for (i, products) in products.iter().enumerate() {
            let products = &products[from..from + PAIRS];
            for (pairs, product) in registers.iter_mut().zip(products) {
                let product = T::splat(simd, *product);
                for (registers, weights) in pairs.iter_mut().zip(&weights[first..]) {
                    let weights = T::vectors::<S>(&weights[i]);
                    for (register, weight) in registers.iter_mut().zip(weights) {
                        *register = T::multiply_add(simd, product, *weight, *register);
                    }
                }
            }
        }
        for (sums, pairs) in sums.iter_mut().zip(&registers) {
            for (sums, registers) in sums[first..].iter_mut().zip(pairs) {
                let mut block = [T::default(); LANES];
                T::vectors_mut::<S>(&mut block).copy_from_slice(registers);
                for (total, sum) in sums.iter_mut().zip(block) {
                    *total += sum.into();
                }
            }
        }
    }
}
