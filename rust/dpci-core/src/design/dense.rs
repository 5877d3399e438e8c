//! Contiguous rows, mostly borrowed from the caller, with an optional scale per row from clipping.

use std::borrow::Cow;
use std::ops::Range;

use super::Numbers;
use super::placement::Placement;
use super::scales::{BlockScales, Scales};
use crate::linalg::{PackedBlock, rows_times_vector, scaled_rows_times_vector, vector};

/// Row-major features. Row `i` stands for the entries `scale(i)·v`, rounded to f64, v placed and with its blocks scaled where they are.
#[derive(Debug, Clone)]
pub struct Dense<'a> {
    features: Numbers<'a>,
    n_columns: usize,
    /// Shift and scale of the columns, applied to the numbers first.
    pub(super) placement: Option<Placement>,
    scales: Option<Vec<f64>>,
    block_scales: Option<BlockScales>,
    /// Whether the features are a mapped file, of which no large part may be copied into memory.
    pub(super) is_mapped: bool,
}

impl<'a> Dense<'a> {
    pub(super) fn new(features: impl Into<Numbers<'a>>, n_columns: usize) -> Self {
        Self {
            features: features.into(),
            n_columns,
            placement: None,
            scales: None,
            block_scales: None,
            is_mapped: false,
        }
    }

    pub(super) fn set_scales(&mut self, scales: Scales) {
        match scales {
            Scales::None => {}
            Scales::Rows(scales) => self.scales = Some(scales),
            Scales::Blocks(scales) => self.block_scales = Some(scales),
        }
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Number of rows; 0 without columns, which do not say.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_entries().checked_div(self.n_columns).unwrap_or(0)
    }

    pub(super) fn n_entries(&self) -> usize {
        self.features.len()
    }

    pub(super) fn scale(&self, i: usize) -> f64 {
        self.scales.as_ref().map_or(1.0, |s| s[i])
    }

    /// Features of a row, before the row is scaled.
    pub(super) fn row(&self, i: usize) -> Cow<'_, [f64]> {
        self.rows(&(i..i + 1))
    }

    /// Features of a range of rows, before they are scaled.
    pub(crate) fn rows(&self, range: &Range<usize>) -> Cow<'_, [f64]> {
        let rows = self
            .features
            .doubles(range.start * self.n_columns..range.end * self.n_columns);
        let rows = match &self.placement {
            Some(placement) => Cow::Owned(placement.of(&rows)),
            None => rows,
        };
        match &self.block_scales {
            Some(scales) => scales.dense(range, rows),
            None => rows,
        }
    }

    /// All features, where they are owned and the rows as they stand for themselves.
    pub(super) fn own_features(&mut self) -> Option<&mut [f64]> {
        match (&mut self.features, &self.placement, &self.scales, &self.block_scales) {
            (Numbers::Double(Cow::Owned(features)), None, None, None) => Some(features),
            _ => None,
        }
    }

    /// The chosen rows, owned, scales applied.
    pub(super) fn select(&self, rows: &[usize]) -> Dense<'static> {
        if self.block_scales.is_some() || self.placement.is_some() {
            let mut features = Vec::with_capacity(rows.len() * self.n_columns);
            for &i in rows {
                features.extend(self.row(i).iter().map(|v| self.scale(i) * v));
            }
            return Dense::new(features, self.n_columns);
        }
        let ranges = rows.iter().map(|i| i * self.n_columns..(i + 1) * self.n_columns);
        let scales = self.scales.as_ref().map(|s| rows.iter().map(|&i| s[i]));
        Dense::new(self.features.gathered(ranges, scales), self.n_columns)
    }

    pub(super) fn squared_norms(&self, range: Range<usize>, out: &mut [f64]) {
        vector::rows_squared_norms(&self.rows(&range), self.n_columns, out);
    }

    pub(super) fn pack(&self, range: Range<usize>, last: Option<f64>, block: &mut PackedBlock) {
        self.pack_rows(&self.rows(&range), range, last, block);
    }

    /// Packs what [`Dense::rows`] returned for this range.
    pub(super) fn pack_rows(&self, rows: &[f64], range: Range<usize>, last: Option<f64>, block: &mut PackedBlock) {
        let scales = self.scales.as_ref().map(|s| &s[range.clone()]);
        block.fill(range.len(), rows, scales, last);
    }

    pub(super) fn times_vector(&self, range: Range<usize>, vector: &[f64], out: &mut [f64]) {
        // The scaled entries, rounded, are the row.
        let rows = self.rows(&range);
        match &self.scales {
            Some(scales) => scaled_rows_times_vector(&rows, &scales[range], vector, out),
            None => rows_times_vector(&rows, vector, out),
        }
    }

    pub(super) fn add_weighted(&self, range: Range<usize>, weights: &mut [f64], out: &mut [f64]) {
        self.add_weighted_of(&self.rows(&range), range, weights, out);
    }

    /// The same of what [`Dense::rows`] returned for this range.
    pub(super) fn add_weighted_of(&self, rows: &[f64], range: Range<usize>, weights: &mut [f64], out: &mut [f64]) {
        if let Some(scales) = &self.scales {
            for (w, s) in weights.iter_mut().zip(&scales[range]) {
                *w *= s;
            }
        }
        vector::add_weighted_rows(rows, weights, out);
    }

    /// Counterpart of the design's method.
    pub(super) fn scatter_weighted(
        &self,
        range: Range<usize>,
        weights: &[f64],
        places: &[(usize, usize)],
        out: &mut [f64],
    ) {
        let rows = self.rows(&range);
        let scaled: Cow<'_, [f64]> = match &self.scales {
            Some(scales) => weights.iter().zip(&scales[range]).map(|(w, s)| w * s).collect(),
            None => weights.into(),
        };
        vector::scatter_weighted_rows(&rows, self.n_columns, &scaled, places, out);
    }
}
