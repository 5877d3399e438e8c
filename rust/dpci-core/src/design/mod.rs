//! The rows: features, targets and the implicit intercept column, checked once against their public bounds.
//!
//! Everything that reads rows goes through [`Design`]: linear predictors, weighted sums of rows, Gram matrices. Rows are dense,
//! sparse or coded; equal records can be merged, each then standing for as many records as its multiplicity says.

mod blocks;
mod check;
mod coded;
mod csr;
mod dense;
mod limits;
mod merge;
mod moved;
mod numbers;
mod persons;
mod placement;
mod recognise;
mod scales;
mod weights;

pub use check::Checked;
use check::Extremes;
pub use coded::{Coded, Codes};
pub use csr::{Csr, CsrBlock, Entries};
pub use dense::Dense;
use limits::Limits;
pub use moved::Moved;
pub use numbers::Numbers;
pub use persons::Persons;
use placement::Placement;
use scales::Scales;
use weights::Weights;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::error::check_length;
use crate::exec::{Executor, check_room, row_chunks};
pub use crate::linalg::{Category, Layout};
use crate::linalg::{GramAccumulator, PackedBlock};
use crate::loss::Targets;
use crate::row_domain::{Blocks, RowDomain};
use crate::{Error, Result};

/// How the features are stored.
#[derive(Debug, Clone)]
pub enum Rows<'a> {
    /// Contiguous rows.
    Dense(Dense<'a>),
    /// Compressed sparse rows.
    Csr(Csr<'a>),
    /// Numbers and codes of categories.
    Coded(Coded<'a>),
}

/// Consecutive rows, however they are stored.
pub(crate) enum RowBlock<'r> {
    /// All entries.
    Dense(Cow<'r, [f64]>),
    /// Entries that are not zero.
    Sparse(CsrBlock<'r>),
}

impl<'a> Rows<'a> {
    /// Contiguous rows of `n_columns` features.
    pub fn dense(features: &'a [f64], n_columns: usize) -> Self {
        Self::Dense(Dense::new(features, n_columns))
    }

    /// The same, owned.
    pub(crate) fn dense_owned(features: Vec<f64>, n_columns: usize) -> Self {
        Self::Dense(Dense::new(features, n_columns))
    }

    /// The same in single precision.
    pub fn dense_single(features: &'a [f32], n_columns: usize) -> Self {
        Self::Dense(Dense::new(features, n_columns))
    }

    /// Declares dense rows to be a mapped file, which may be larger than memory: no part of it is copied to merge equal records.
    pub fn mapped(mut self) -> Self {
        if let Self::Dense(dense) = &mut self {
            dense.is_mapped = true;
        }
        self
    }

    /// Declares that column `j` of dense rows stands for `(v - middle[j]) / half[j]`, which the domain bounds. With
    /// [`OnViolation::Clip`] finite numbers beyond ±1 are moved there.
    ///
    /// # Errors
    /// [`Error::Length`] for other numbers of columns; [`Error::Unsupported`] for sparse rows, which would not stay sparse.
    pub fn placed(mut self, middle: &[f64], half: &[f64]) -> Result<Self> {
        let Self::Dense(dense) = &mut self else {
            let rule = "rows must be dense where columns are centred, because centring fills their zeros, got sparse or coded rows";
            return Err(Error::Unsupported(rule.into()));
        };
        check_length("middle", dense.n_columns(), middle.len())?;
        check_length("half", dense.n_columns(), half.len())?;
        dense.placement = Some(Placement::new(middle, half));
        Ok(self)
    }

    /// The domain of placed rows where no other blocks are given: every column within ±1. `None` for rows as they are.
    ///
    /// # Errors
    /// As [`Blocks::new`].
    pub fn unit_blocks(&self) -> Result<Option<RowDomain>> {
        let n_columns = self.n_columns();
        if !matches!(self, Self::Dense(dense) if dense.placement.is_some()) || n_columns == 0 {
            return Ok(None);
        }
        let blocks = Blocks::new(vec![1.0; n_columns], (0..n_columns).collect())?;
        Ok(Some(RowDomain::Blocks(Arc::new(blocks))))
    }

    fn is_mapped(&self) -> bool {
        matches!(self, Self::Dense(dense) if dense.is_mapped)
    }

    fn n_columns(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.n_columns(),
            Self::Csr(csr) => csr.n_columns(),
            Self::Coded(coded) => coded.n_columns(),
        }
    }

    /// The entries of a range of rows, before the rows are scaled.
    pub(crate) fn block(&self, range: Range<usize>) -> RowBlock<'_> {
        match self {
            Self::Dense(dense) => RowBlock::Dense(dense.rows(&range)),
            Self::Csr(csr) => RowBlock::Sparse(csr.block(range)),
            Self::Coded(coded) => RowBlock::Sparse(coded.block(range)),
        }
    }

    /// Numbers stored: what one pass reads.
    fn n_entries(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.n_entries(),
            Self::Csr(csr) => csr.n_entries(),
            Self::Coded(coded) => coded.n_entries(),
        }
    }

    /// Number of rows; `None` for dense ones without columns, which do not say.
    pub fn n_rows(&self) -> Option<usize> {
        match self {
            Self::Dense(dense) => dense.n_entries().checked_div(dense.n_columns()),
            Self::Csr(csr) => Some(csr.n_rows()),
            Self::Coded(coded) => Some(coded.n_rows()),
        }
    }

    /// Chunks of rows whose partial sums are combined in order, see [`row_chunks`].
    fn chunks(&self, n_rows: usize) -> Vec<Range<usize>> {
        row_chunks(n_rows, (self.n_entries() / n_rows).max(1))
    }

    fn check_rows(&self, expected: usize) -> Result<()> {
        check_length("y", self.n_rows().unwrap_or(expected), expected)
    }

    /// Refuses rows of another shape than so many targets and the bounds, and too little memory; places columns as the bounds ask.
    fn prepare(&mut self, n_records: usize, intercept: Option<f64>, bounds: &RowBounds) -> Result<()> {
        let n_params = self.n_columns() + usize::from(intercept.is_some());
        if n_records == 0 || n_params == 0 {
            return Err(Error::Empty {
                rows: n_records,
                params: n_params,
            });
        }
        self.check_rows(n_records)?;
        bounds.rows.check_columns(self.n_columns())?;
        // Merging copies at most half of the entries; labels, predictors, weights and hashes are a few numbers a row.
        let merged = if self.is_mapped() { 0 } else { self.n_entries() / 2 };
        check_room(merged + n_records.saturating_mul(16))?;
        if let Self::Dense(dense) = self
            && let Some(placement) = &mut dense.placement
        {
            placement.clip = bounds.on_violation == OnViolation::Clip;
        }
        Ok(())
    }

    fn scale(&self, i: usize) -> f64 {
        match self {
            Self::Dense(dense) => dense.scale(i),
            Self::Csr(csr) => csr.scale(i),
            Self::Coded(_) => 1.0,
        }
    }

    fn set_scales(&mut self, scales: Scales) {
        if let (Self::Coded(coded), Scales::Rows(_) | Scales::Blocks(_)) = (&*self, &scales) {
            *self = Self::Csr(coded.sparse());
        }
        match self {
            Self::Dense(dense) => dense.set_scales(scales),
            Self::Csr(csr) => csr.set_scales(scales),
            Self::Coded(_) => {}
        }
    }
}

/// Checked rows with their targets. Borrowed from the caller, who must not write to them meanwhile.
#[derive(Debug, Clone)]
pub struct Design<'a> {
    rows: Rows<'a>,
    targets: Cow<'a, [f64]>,
    multiplicities: Option<Vec<u32>>,
    persons: Option<Persons>,
    weights: Option<Weights>,
    n_records: usize,
    intercept: Option<f64>,
    bounds: RowBounds,
    /// Squared lengths of the shortest and of the longest row without the intercept, where the check found them.
    extremes: Option<Extremes>,
    /// Limits on the derivatives of rows that were moved.
    limits: Option<Limits>,
}

impl<'a> Design<'a> {
    /// Checks and holds rows with their targets, one for each row.
    ///
    /// The domain is that of the features alone; `intercept` appends a constant to every row. Finiteness, the domain and targets are
    /// checked once, here; with [`OnViolation::Clip`] longer rows, or blocks of them, are scaled down to their bound and real targets
    /// moved into their interval.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Length`], [`Error::NonFiniteRow`], [`Error::RowNorm`], [`Error::RowBlock`],
    /// [`Error::Target`], [`Error::Interrupted`], [`Error::Resource`] where there is no memory to work in.
    pub fn new(
        mut rows: Rows<'a>,
        targets: &'a [f64],
        intercept: Option<f64>,
        bounds: &RowBounds,
        exec: &Executor<'_>,
    ) -> Result<Self> {
        rows.prepare(targets.len(), intercept, bounds)?;
        let checked = Checked::new(&rows, targets, bounds, exec)?;
        Ok(Self::held(rows, targets, intercept, checked))
    }

    /// The check alone, for a caller who wants bad data refused before paying for a release.
    ///
    /// # Errors
    /// Same as for [`Self::new`].
    pub fn check(
        mut rows: Rows<'_>,
        targets: &[f64],
        intercept: Option<f64>,
        bounds: &RowBounds,
        exec: &Executor<'_>,
    ) -> Result<Checked> {
        rows.prepare(targets.len(), intercept, bounds)?;
        Checked::new(&rows, targets, bounds, exec)
    }

    /// Holds the rows and targets that were checked, which must be unchanged, without another pass.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Length`].
    pub fn of_checked(
        mut rows: Rows<'a>,
        targets: &'a [f64],
        intercept: Option<f64>,
        checked: Checked,
    ) -> Result<Self> {
        rows.prepare(targets.len(), intercept, &checked.bounds)?;
        Ok(Self::held(rows, targets, intercept, checked))
    }

    fn held(mut rows: Rows<'a>, targets: &'a [f64], intercept: Option<f64>, checked: Checked) -> Self {
        rows.set_scales(checked.scales);
        Self {
            weights: checked.shares.map(Weights::of_shares),
            rows,
            n_records: targets.len(),
            targets: checked.targets.map_or(Cow::Borrowed(targets), Cow::Owned),
            multiplicities: None,
            persons: None,
            intercept,
            bounds: checked.bounds,
            extremes: checked.extremes,
            limits: None,
        }
    }

    getters! { self =>
        /// Number of records that the rows stand for.
        pub n_records: usize = self.n_records;
        /// The public bounds that the rows were checked against.
        pub bounds: &RowBounds = &self.bounds;
        /// The rows as they are stored.
        pub rows: &Rows<'a> = &self.rows;
        /// The constant appended to each row.
        pub intercept: Option<f64> = self.intercept;
        /// Number of rows stored: of distinct records if they were merged.
        pub n_rows: usize = self.targets.len();
        /// How many records each row stands for; `None`: one.
        pub multiplicities: Option<&[u32]> = self.multiplicities.as_deref();
        /// Number of parameters, the intercept included.
        pub n_params: usize = self.rows.n_columns() + usize::from(self.intercept.is_some());
        /// Chunks of rows whose partial sums are combined in order, see [`row_chunks`].
        pub chunks: Vec<Range<usize>> = self.rows.chunks(self.n_rows());
        /// Numbers stored: what one pass reads.
        pub(crate) n_entries: usize = self.rows.n_entries();
    }

    /// Targets of a range of rows.
    pub fn targets(&self, range: Range<usize>) -> &[f64] {
        &self.targets[range]
    }

    /// Writes `xᵢᵀθ` for a range of rows.
    pub fn linear_predictor(&self, range: Range<usize>, params: &[f64], out: &mut [f64]) {
        let (coefficients, constant) = self.split_intercept(params);
        match &self.rows {
            Rows::Dense(dense) => dense.times_vector(range, coefficients, out),
            Rows::Csr(csr) => csr.times_vector(range, coefficients, out),
            Rows::Coded(coded) => coded.times_vector(range, coefficients, out),
        }
        if let Some(constant) = constant {
            for u in out {
                *u += constant;
            }
        }
    }

    /// Adds `Σ weights[i]·xᵢ` over a range of rows. `weights` is used as scratch space and holds anything afterwards.
    pub fn add_weighted_rows(&self, range: Range<usize>, weights: &mut [f64], out: &mut [f64]) {
        let (coefficients, constant) = out.split_at_mut(self.rows.n_columns());
        if let (Some(scale), Some(last)) = (self.intercept, constant.first_mut()) {
            *last += scale * weights.iter().sum::<f64>();
        }
        match &self.rows {
            Rows::Dense(dense) => dense.add_weighted(range, weights, coefficients),
            Rows::Csr(csr) => csr.add_weighted(range, weights, coefficients),
            Rows::Coded(coded) => coded.add_weighted(range, weights, coefficients),
        }
    }

    /// Adds `Σ weights[i]·xᵢxᵢᵀ` over a range of rows to each accumulator with its weights; `block` is scratch space.
    pub fn add_grams<const K: usize>(
        &self,
        range: Range<usize>,
        weights: [&[f64]; K],
        grams: &mut [GramAccumulator; K],
        block: &mut PackedBlock,
    ) {
        match &self.rows {
            Rows::Csr(csr) if csr.prefers_pairs() => {
                for (weights, gram) in weights.into_iter().zip(grams) {
                    csr.add_pairs(range.clone(), self.intercept, weights, gram);
                }
                return;
            }
            Rows::Coded(coded) if coded.prefers_tables() => {
                coded.add_tables(range, self.intercept, weights, grams);
                return;
            }
            Rows::Csr(csr) => csr.pack(range, self.intercept, block),
            Rows::Coded(coded) => coded.pack(range, self.intercept, block),
            Rows::Dense(dense) => dense.pack(range, self.intercept, block),
        }
        for (weights, gram) in weights.into_iter().zip(grams) {
            gram.add(block, weights);
        }
    }

    /// Both of the above, for which dense rows are made once; the first weights are scratch space, as there.
    pub fn add_rows_and_gram(
        &self,
        range: Range<usize>,
        (weights, out): (&mut [f64], &mut [f64]),
        gram_weights: &[f64],
        gram: &mut [GramAccumulator; 1],
        block: &mut PackedBlock,
    ) {
        let Rows::Dense(dense) = &self.rows else {
            self.add_weighted_rows(range.clone(), weights, out);
            self.add_grams(range, [gram_weights], gram, block);
            return;
        };
        let (coefficients, constant) = out.split_at_mut(self.rows.n_columns());
        if let (Some(scale), Some(last)) = (self.intercept, constant.first_mut()) {
            *last += scale * weights.iter().sum::<f64>();
        }
        let rows = dense.rows(&range);
        dense.pack_rows(&rows, range.clone(), self.intercept, block);
        dense.add_weighted_of(&rows, range, weights, coefficients);
        gram[0].add(block, gram_weights);
    }

    /// Writes a range of rows one after another, `n_params` numbers each, zeros of sparse rows included.
    pub fn write_rows(&self, range: Range<usize>, out: &mut [f64]) {
        let n_columns = self.rows.n_columns();
        let block = self.rows.block(range.clone());
        for ((at, i), out) in range.enumerate().zip(out.chunks_exact_mut(self.n_params())) {
            let (features, last) = out.split_at_mut(n_columns);
            last.fill(self.intercept.unwrap_or_default());
            let scale = self.rows.scale(i);
            match &block {
                RowBlock::Dense(rows) => {
                    for (f, v) in features.iter_mut().zip(&rows[at * n_columns..]) {
                        *f = scale * v;
                    }
                }
                RowBlock::Sparse(block) => {
                    features.fill(0.0);
                    for (c, v) in block.entries(at).iter() {
                        features[c] = scale * v;
                    }
                }
            }
        }
    }

    /// Columns and entries of a range of rows, the intercept last, without zeros; `None` for dense rows.
    pub(crate) fn sparse_block(&self, range: Range<usize>) -> Option<SparseBlock> {
        let block = match &self.rows {
            Rows::Dense(_) => return None,
            Rows::Csr(csr) => csr.block(range.clone()),
            Rows::Coded(coded) => coded.block(range.clone()),
        };
        let last = self.intercept.map(|constant| (self.rows.n_columns(), constant));
        let mut found = SparseBlock::default();
        for (row, i) in block.rows().zip(range) {
            let scale = self.rows.scale(i);
            let scaled = row.iter().map(|(c, v)| (c, scale * v));
            (found.entries).extend(scaled.chain(last).filter(|(_, x)| *x != 0.0));
            found.ends.push(found.entries.len());
        }
        Some(found)
    }

    /// The coefficients, and the intercept's contribution to every linear predictor.
    fn split_intercept<'p>(&self, params: &'p [f64]) -> (&'p [f64], Option<f64>) {
        match (self.intercept, params.split_last()) {
            (Some(scale), Some((last, rest))) => (rest, Some(scale * last)),
            _ => (params, None),
        }
    }
}

/// Entries of a block of sparse rows that are not 0, row after row.
#[derive(Debug, Default)]
pub(crate) struct SparseBlock {
    entries: Vec<(usize, f64)>,
    ends: Vec<usize>,
}

impl SparseBlock {
    /// Columns and values of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[(usize, f64)]> {
        let mut start = 0;
        self.ends
            .iter()
            .map(move |end| &self.entries[std::mem::replace(&mut start, *end)..*end])
    }
}

/// Treatment of rows outside their domain and of real targets outside their interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnViolation {
    /// An error.
    Error,
    /// The row is scaled down to the bound, or each block of it, the target moved into its interval.
    Clip,
    /// The row stays as it is and weighs less: `1/q²` where it is q times as long as the bound allows. So neither `w‖x‖` nor `w‖x‖²` is
    /// greater than of rows within it (docs/weights.md, "Rows beyond their bounds"). Targets are moved.
    Weight,
    /// The row stays as it is, for a release that weighs the rows itself. Targets are moved.
    Keep,
}

impl OnViolation {
    /// Whether targets are moved into their interval.
    #[must_use]
    pub fn moves_targets(self) -> bool {
        self != Self::Error
    }

    /// Whether rows may be longer than their bound.
    #[must_use]
    pub fn keeps_rows(self) -> bool {
        matches!(self, Self::Weight | Self::Keep)
    }
}

/// The public bounds that every row has to obey.
#[derive(Debug, Clone, PartialEq)]
pub struct RowBounds {
    /// Where the features lie, without the intercept.
    pub rows: RowDomain,
    /// Targets of the loss.
    pub targets: Targets,
    /// Treatment of a row outside the bounds.
    pub on_violation: OnViolation,
}
