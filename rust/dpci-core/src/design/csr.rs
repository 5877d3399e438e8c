//! Compressed sparse rows, with an optional scale per row from clipping.

use std::borrow::Cow;
use std::ops::Range;

use super::Numbers;
use super::scales::{BlockScales, Scales, column_index};
use crate::linalg::{GramAccumulator, PackedBlock, sparse_times_vector, vector};
use crate::{Error, Result};

/// Sparse features: the entries of row `i` stand at `starts[i]..starts[i + 1]`, columns strictly increasing. Row `i` stands for
/// the entries `scale(i)·v`, rounded to f64.
#[derive(Debug, Clone)]
pub struct Csr<'a> {
    starts: Cow<'a, [i64]>,
    columns: Cow<'a, [i32]>,
    values: Numbers<'a>,
    n_columns: usize,
    scales: Option<Vec<f64>>,
    block_scales: Option<BlockScales>,
}

/// Consecutive rows, their values in double precision, before scaling.
#[derive(Debug, Clone)]
pub struct CsrBlock<'r> {
    starts: Cow<'r, [i64]>,
    columns: Cow<'r, [i32]>,
    values: Cow<'r, [f64]>,
}

/// The entries of one row.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'r> {
    /// Columns, strictly increasing.
    pub columns: &'r [i32],
    /// Values.
    pub values: &'r [f64],
}

impl<'a> Csr<'a> {
    /// Checks the structure.
    pub fn new(
        starts: impl Into<Cow<'a, [i64]>>,
        columns: impl Into<Cow<'a, [i32]>>,
        values: impl Into<Numbers<'a>>,
        n_columns: usize,
    ) -> Result<Self> {
        let (starts, columns, values) = (starts.into(), columns.into(), values.into());
        crate::error::check_length("indices", values.len(), columns.len())?;
        let malformed = |what: String| Err(Error::Unsupported(format!("a sparse X must have {what}")));
        let last = starts.last().copied().unwrap_or(-1);
        if starts.first() != Some(&0) || usize::try_from(last).ok() != Some(values.len()) {
            return malformed(format!(
                "an indptr that runs from 0 to its number of entries, {}, got an end of {last}",
                values.len()
            ));
        }
        if let Some(row) = starts.windows(2).position(|w| w[0] > w[1]) {
            return malformed(format!(
                "an indptr that never decreases, got a decrease after row {row}"
            ));
        }
        let csr = Self::of_checked(starts, columns, values, n_columns);
        for i in 0..csr.n_rows() {
            let columns = &csr.columns[csr.range(i..i + 1)];
            let in_range = |c: &i32| usize::try_from(*c).is_ok_and(|c| c < n_columns);
            if !columns.iter().all(in_range) || columns.windows(2).any(|w| w[0] >= w[1]) {
                return malformed(format!(
                    "strictly increasing column indices below {n_columns} in each row, got other indices in row {i}"
                ));
            }
        }
        Ok(csr)
    }

    /// Rows whose structure is known to be right: [`Self::new`] accepted it before.
    pub fn of_checked(
        starts: impl Into<Cow<'a, [i64]>>,
        columns: impl Into<Cow<'a, [i32]>>,
        values: impl Into<Numbers<'a>>,
        n_columns: usize,
    ) -> Self {
        Self {
            starts: starts.into(),
            columns: columns.into(),
            values: values.into(),
            n_columns,
            scales: None,
            block_scales: None,
        }
    }

    pub(super) fn set_scales(&mut self, scales: Scales) {
        match scales {
            Scales::None => {}
            Scales::Rows(scales) => self.scales = Some(scales),
            Scales::Blocks(scales) => self.block_scales = Some(scales),
        }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn n_columns(&self) -> usize {
        self.n_columns
    }

    pub(super) fn n_entries(&self) -> usize {
        self.values.len()
    }

    /// Where the entries of a range of rows stand.
    fn range(&self, rows: Range<usize>) -> Range<usize> {
        offset(self.starts[rows.start])..offset(self.starts[rows.end])
    }

    /// The entries of a range of rows, before the rows are scaled.
    pub(crate) fn block(&self, rows: Range<usize>) -> CsrBlock<'_> {
        let range = self.range(rows.clone());
        let columns = &self.columns[range.clone()];
        let values = self.values.doubles(range);
        let values = match &self.block_scales {
            Some(scales) => {
                let entry = |i: usize| offset(self.starts[i]);
                scales.sparse(&rows, entry, columns, values)
            }
            None => values,
        };
        CsrBlock {
            starts: Cow::Borrowed(&self.starts[rows.start..=rows.end]),
            columns: Cow::Borrowed(columns),
            values,
        }
    }

    /// The chosen rows, owned, scales applied.
    pub(super) fn select(&self, rows: &[usize]) -> Csr<'static> {
        let ranges = rows.iter().map(|&i| self.range(i..i + 1));
        let (mut starts, mut columns) = (vec![0], Vec::new());
        for range in ranges.clone() {
            columns.extend_from_slice(&self.columns[range]);
            starts.push(i64::try_from(columns.len()).unwrap_or(i64::MAX));
        }
        if self.block_scales.is_some() {
            let mut values = Vec::with_capacity(columns.len());
            for &i in rows {
                values.extend_from_slice(&self.block(i..i + 1).values);
            }
            return Csr::of_checked(starts, columns, values, self.n_columns);
        }
        let scales = self.scales.as_ref().map(|s| rows.iter().map(|&i| s[i]));
        let values = self.values.gathered(ranges, scales);
        Csr::of_checked(starts, columns, values, self.n_columns)
    }

    pub(super) fn scale(&self, i: usize) -> f64 {
        self.scales.as_ref().map_or(1.0, |s| s[i])
    }

    pub(super) fn squared_norms(&self, range: Range<usize>, out: &mut [f64]) {
        for (entries, o) in self.block(range).rows().zip(out) {
            *o = vector::dot(entries.values, entries.values);
        }
    }

    pub(super) fn times_vector(&self, range: Range<usize>, vector: &[f64], out: &mut [f64]) {
        let block = self.block(range.clone());
        for ((i, entries), o) in range.zip(block.rows()).zip(out) {
            let scale = self.scale(i);
            let scaled = entries.iter().map(|(c, v)| (c, scale * v));
            *o = sparse_times_vector(scaled, vector);
        }
    }

    pub(super) fn add_weighted(&self, range: Range<usize>, weights: &[f64], out: &mut [f64]) {
        let block = self.block(range.clone());
        for ((i, entries), weight) in range.zip(block.rows()).zip(weights) {
            let weight = weight * self.scale(i);
            for (c, v) in entries.iter() {
                out[c] += weight * v;
            }
        }
    }

    /// Counterpart of the design's method.
    pub(super) fn scatter_weighted(
        &self,
        range: Range<usize>,
        weights: &[f64],
        places: &[(usize, usize)],
        out: &mut [f64],
    ) {
        let block = self.block(range.clone());
        for &(i, place) in places {
            let weight = weights[i] * self.scale(range.start + i);
            for (c, v) in block.entries(i).iter() {
                out[place + c] += weight * v;
            }
        }
    }

    /// Whether Gram matrices are cheaper from pairs of entries than from dense blocks, whose vector instructions add an entry in a
    /// fiftieth of the time of a pair (`benches/row_storage.py`).
    pub(super) fn prefers_pairs(&self) -> bool {
        let mean = self.n_entries() as f64 / self.n_rows() as f64;
        48.0 * mean * mean < (self.n_columns as f64).powi(2)
    }

    pub(super) fn add_pairs(
        &self,
        range: Range<usize>,
        last: Option<f64>,
        weights: &[f64],
        gram: &mut GramAccumulator,
    ) {
        let mut scaled = Vec::new();
        let block = self.block(range.clone());
        for ((i, entries), weight) in range.zip(block.rows()).zip(weights) {
            if *weight != 0.0 {
                // The entries are scaled, not the weight, whose product with a tiny scale squared would lose its digits.
                scaled.clear();
                scaled.extend(entries.values.iter().map(|v| self.scale(i) * v));
                gram.add_sparse(entries.columns, &scaled, last, *weight);
            }
        }
    }

    pub(super) fn pack(&self, range: Range<usize>, last: Option<f64>, block: &mut PackedBlock) {
        let mut rows = vec![0.0; range.len() * self.n_columns];
        let sparse = self.block(range.clone());
        let dense = rows.chunks_exact_mut(self.n_columns.max(1));
        for ((i, entries), row) in range.clone().zip(sparse.rows()).zip(dense) {
            for (c, v) in entries.iter() {
                row[c] = self.scale(i) * v;
            }
        }
        block.fill(range.len(), &rows, None, last);
    }
}

/// An offset as an index: the structure was checked when the rows were made.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 ≤ offset ≤ number of entries in memory"
)]
fn offset(start: i64) -> usize {
    start as usize
}

impl CsrBlock<'static> {
    /// Rows whose entries were just made.
    pub(super) fn owned(starts: Vec<i64>, columns: Vec<i32>, values: Vec<f64>) -> Self {
        Self {
            starts: starts.into(),
            columns: columns.into(),
            values: values.into(),
        }
    }

    /// The same as rows, where the first entry is that of the first row.
    pub(super) fn into_rows(self, n_columns: usize) -> Csr<'static> {
        Csr::of_checked(self.starts, self.columns, self.values.into_owned(), n_columns)
    }
}

impl CsrBlock<'_> {
    /// Entries of the `i`-th row of the block.
    pub(crate) fn entries(&self, i: usize) -> Entries<'_> {
        let first = offset(self.starts[0]);
        let range = offset(self.starts[i]) - first..offset(self.starts[i + 1]) - first;
        Entries {
            columns: &self.columns[range.clone()],
            values: &self.values[range],
        }
    }

    /// Entries of the rows in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Entries<'_>> {
        (0..self.starts.len() - 1).map(|i| self.entries(i))
    }
}

impl Entries<'_> {
    /// Columns and values.
    pub fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        self.columns
            .iter()
            .map(|c| column_index(*c))
            .zip(self.values.iter().copied())
    }
}
