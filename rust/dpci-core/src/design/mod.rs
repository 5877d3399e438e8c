//! The rows: features, targets and the implicit intercept column, checked once against their public bounds.
//!
//! Everything that reads rows goes through [`Design`]: linear predictors, weighted sums of rows, packed blocks for Gram
//! matrices. A new storage (compressed sparse rows, merged duplicates) is one more variant of [`Rows`].

mod check;
mod dense;

pub use check::{OnViolation, row_norm_bound};
pub use dense::Dense;

use std::borrow::Cow;
use std::ops::Range;

use crate::exec::{Executor, row_chunks};
use crate::linalg::PackedBlock;
use crate::loss::Targets;
use crate::{Error, Result};

/// How the features are stored.
#[derive(Debug)]
pub enum Rows<'a> {
    /// Contiguous rows.
    Dense(Dense<'a>),
}

/// Checked rows with their targets. Borrowed from the caller, who must not write to them meanwhile.
#[derive(Debug)]
pub struct Design<'a> {
    rows: Rows<'a>,
    targets: Cow<'a, [f64]>,
    intercept: Option<f64>,
}

impl<'a> Design<'a> {
    /// Checks and holds `n` rows of `n_columns` features.
    ///
    /// `row_norm` bounds the Euclidean norm of the features alone; `intercept` appends a constant to every row. Finiteness,
    /// row norms and targets are checked once, here; with [`OnViolation::Clip`] longer rows are scaled down to the bound
    /// and real targets moved into their interval.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Length`], [`Error::NonFiniteRow`], [`Error::RowNorm`], [`Error::Target`],
    /// [`Error::Interrupted`].
    pub fn new(
        features: &'a [f64],
        n_columns: usize,
        targets: &'a [f64],
        intercept: Option<f64>,
        bounds: &RowBounds,
        exec: &Executor<'_>,
    ) -> Result<Self> {
        let n_rows = targets.len();
        let n_params = n_columns + usize::from(intercept.is_some());
        if n_rows == 0 || n_params == 0 {
            return Err(Error::Empty {
                rows: n_rows,
                params: n_params,
            });
        }
        if features.len() != n_rows * n_columns {
            return Err(Error::Length {
                name: "y",
                expected: features.len() / n_columns.max(1),
                got: n_rows,
            });
        }
        let targets = check::checked_targets(targets, bounds)?;
        let dense = Dense::new(features, n_columns);
        let mut design = Self {
            rows: Rows::Dense(dense),
            targets,
            intercept,
        };
        let scales = check::checked_row_scales(&design, bounds, exec)?;
        let Rows::Dense(dense) = &mut design.rows;
        dense.set_scales(scales);
        Ok(design)
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.targets.len()
    }

    /// Number of parameters, the intercept included.
    #[must_use]
    pub fn n_params(&self) -> usize {
        let Rows::Dense(dense) = &self.rows;
        dense.n_columns() + usize::from(self.intercept.is_some())
    }

    /// Targets of a range of rows.
    #[must_use]
    pub fn targets(&self, range: Range<usize>) -> &[f64] {
        &self.targets[range]
    }

    /// Chunks of rows whose partial sums are combined in order, see [`row_chunks`].
    #[must_use]
    pub fn chunks(&self) -> Vec<Range<usize>> {
        row_chunks(self.n_rows(), self.n_params())
    }

    /// Writes `xᵢᵀθ` for a range of rows.
    pub fn linear_predictor(&self, range: Range<usize>, params: &[f64], out: &mut [f64]) {
        let Rows::Dense(dense) = &self.rows;
        let (coefficients, constant) = self.split_intercept(params);
        dense.times_vector(range, coefficients, out);
        if let Some(constant) = constant {
            for u in out {
                *u += constant;
            }
        }
    }

    /// Adds `Σ weights[i]·xᵢ` over a range of rows. `weights` is used as scratch space and holds anything afterwards.
    pub fn add_weighted_rows(&self, range: Range<usize>, weights: &mut [f64], out: &mut [f64]) {
        let Rows::Dense(dense) = &self.rows;
        let mut coefficients = out;
        if let Some(scale) = self.intercept {
            let (last, rest) = coefficients
                .split_last_mut()
                .unwrap_or_else(|| unreachable!("an intercept is a parameter"));
            *last += scale * weights.iter().sum::<f64>();
            coefficients = rest;
        }
        dense.add_weighted(range, weights, coefficients);
    }

    /// Packs a range of rows for [`crate::linalg::GramAccumulator`].
    pub fn pack(&self, range: Range<usize>, block: &mut PackedBlock) {
        let Rows::Dense(dense) = &self.rows;
        dense.pack(range, self.intercept, block);
    }

    /// The coefficients, and the intercept's contribution to every linear predictor.
    fn split_intercept<'p>(&self, params: &'p [f64]) -> (&'p [f64], Option<f64>) {
        match (self.intercept, params.split_last()) {
            (Some(scale), Some((last, rest))) => (rest, Some(scale * last)),
            _ => (params, None),
        }
    }
}

/// The public bounds that every row has to obey.
#[derive(Debug, Clone, Copy)]
pub struct RowBounds {
    /// Bound on the Euclidean norm of the features, without the intercept.
    pub row_norm: f64,
    /// Targets of the loss.
    pub targets: Targets,
    /// What happens to a row outside the bounds.
    pub on_violation: OnViolation,
}
