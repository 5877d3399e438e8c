//! Compressed sparse rows, with an optional scale per row from clipping.

use std::borrow::Cow;
use std::ops::Range;

use crate::linalg::{GramAccumulator, PackedBlock, vector};
use crate::{Error, Result};

/// Sparse features: the entries of row `i` stand at `starts[i]..starts[i + 1]`, columns strictly increasing. Row `i` stands for
/// the entries `scale(i)·v`, rounded to f64.
#[derive(Debug, Clone)]
pub struct Csr<'a> {
    starts: Cow<'a, [i64]>,
    columns: Cow<'a, [i32]>,
    values: Cow<'a, [f64]>,
    n_columns: usize,
    scales: Option<Vec<f64>>,
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
    ///
    /// # Errors
    /// [`Error::Unsupported`] for starts that do not begin at 0, decrease or run past the entries, and for columns that are
    /// out of range or not strictly increasing within a row; [`Error::Length`].
    pub fn new(
        starts: impl Into<Cow<'a, [i64]>>,
        columns: impl Into<Cow<'a, [i32]>>,
        values: impl Into<Cow<'a, [f64]>>,
        n_columns: usize,
    ) -> Result<Self> {
        let (starts, columns, values) = (starts.into(), columns.into(), values.into());
        crate::error::check_length("indices", values.len(), columns.len())?;
        let malformed =
            |what: String| Err(Error::Unsupported(format!("a sparse X must have {what}")));
        let last = starts.last().copied().unwrap_or(-1);
        if starts.first() != Some(&0) || usize::try_from(last).ok() != Some(values.len()) {
            return malformed(format!(
                "indptr from 0 to {} entries, got an end of {last}",
                values.len()
            ));
        }
        if let Some(row) = starts.windows(2).position(|w| w[0] > w[1]) {
            return malformed(format!(
                "nondecreasing indptr, got a decrease after row {row}"
            ));
        }
        let csr = Self {
            starts,
            columns,
            values,
            n_columns,
            scales: None,
        };
        for i in 0..csr.n_rows() {
            let columns = csr.entries(i).columns;
            let in_range = |c: &i32| usize::try_from(*c).is_ok_and(|c| c < n_columns);
            if !columns.iter().all(in_range) || columns.windows(2).any(|w| w[0] >= w[1]) {
                return malformed(format!(
                    "strictly increasing columns below {n_columns} in each row, got others in row {i}"
                ));
            }
        }
        Ok(csr)
    }

    /// Owned rows whose structure is known to be right.
    pub(super) fn from_checked(
        starts: Vec<i64>,
        columns: Vec<i32>,
        values: Vec<f64>,
        n_columns: usize,
    ) -> Csr<'static> {
        Csr {
            starts: starts.into(),
            columns: columns.into(),
            values: values.into(),
            n_columns,
            scales: None,
        }
    }

    pub(super) fn set_scales(&mut self, scales: Option<Vec<f64>>) {
        self.scales = scales;
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

    /// Entries of a row, before scaling. The structure was checked, so the starts are valid indexes.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 ≤ starts ≤ number of entries in memory"
    )]
    pub(crate) fn entries(&self, i: usize) -> Entries<'_> {
        let range = self.starts[i] as usize..self.starts[i + 1] as usize;
        Entries {
            columns: &self.columns[range.clone()],
            values: &self.values[range],
        }
    }

    pub(super) fn scale(&self, i: usize) -> f64 {
        self.scales.as_ref().map_or(1.0, |s| s[i])
    }

    pub(super) fn squared_norms(&self, range: Range<usize>, out: &mut [f64]) {
        for (i, o) in range.zip(out) {
            let values = self.entries(i).values;
            *o = vector::dot(values, values);
        }
    }

    pub(super) fn times_vector(&self, range: Range<usize>, vector: &[f64], out: &mut [f64]) {
        for (i, o) in range.zip(out) {
            let scale = self.scale(i);
            let entries = self.entries(i);
            *o = entries.iter().map(|(c, v)| scale * v * vector[c]).sum();
        }
    }

    pub(super) fn add_weighted(&self, range: Range<usize>, weights: &[f64], out: &mut [f64]) {
        for (i, weight) in range.zip(weights) {
            let weight = weight * self.scale(i);
            for (c, v) in self.entries(i).iter() {
                out[c] += weight * v;
            }
        }
    }

    /// Whether Gram matrices are cheaper from pairs of entries than from dense blocks, which use vector instructions.
    pub(super) fn prefers_pairs(&self) -> bool {
        let mean = self.n_entries() as f64 / self.n_rows() as f64;
        8.0 * mean * mean < (self.n_columns as f64).powi(2)
    }

    pub(super) fn add_pairs(
        &self,
        range: Range<usize>,
        last: Option<f64>,
        weights: &[f64],
        gram: &mut GramAccumulator,
    ) {
        let mut scaled = Vec::new();
        for (i, weight) in range.zip(weights) {
            if *weight != 0.0 {
                let entries = self.entries(i);
                // The entries are scaled, not the weight, whose product with a tiny scale squared would lose its digits.
                scaled.clear();
                scaled.extend(entries.values.iter().map(|v| self.scale(i) * v));
                gram.add_sparse(entries.columns, &scaled, last, *weight);
            }
        }
    }

    pub(super) fn pack(&self, range: Range<usize>, last: Option<f64>, block: &mut PackedBlock) {
        let mut rows = vec![0.0; range.len() * self.n_columns];
        for (i, row) in range
            .clone()
            .zip(rows.chunks_exact_mut(self.n_columns.max(1)))
        {
            for (c, v) in self.entries(i).iter() {
                row[c] = self.scale(i) * v;
            }
        }
        block.fill(range.len(), &rows, None, last);
    }
}

impl Entries<'_> {
    /// Columns and values.
    #[expect(
        clippy::cast_sign_loss,
        reason = "columns were checked to lie in 0..n_columns"
    )]
    pub fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        self.columns
            .iter()
            .map(|c| *c as usize)
            .zip(self.values.iter().copied())
    }
}
