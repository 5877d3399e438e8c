//! Rows as Python passes them: a contiguous matrix, or the parts of a compressed sparse one.

use dpci_core::Result;
use dpci_core::design::{Csr, Design, OnViolation, Rows};
use dpci_core::exec::Executor;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::spec::Spec;

/// Features in either form.
#[derive(FromPyObject)]
pub(crate) enum Features<'py> {
    /// C-contiguous float64 of shape (n, k).
    Dense(PyReadonlyArray2<'py, f64>),
    /// (indptr, indices, values, k).
    Csr(
        (
            PyReadonlyArray1<'py, i64>,
            PyReadonlyArray1<'py, i32>,
            PyReadonlyArray1<'py, f64>,
            usize,
        ),
    ),
}

/// What happens to rows and targets outside their bounds.
pub(crate) fn on_violation(clip: bool) -> OnViolation {
    if clip {
        OnViolation::Clip
    } else {
        OnViolation::Error
    }
}

/// The rows of a data set and their targets, borrowed from Python's arrays.
pub(crate) struct Data<'a> {
    rows: Rows<'a>,
    targets: &'a [f64],
    elements: usize,
}

impl<'a> Data<'a> {
    pub(crate) fn new(x: &'a Features<'_>, y: &'a PyReadonlyArray1<'_, f64>) -> PyResult<Self> {
        let targets = y.as_slice()?;
        let (rows, entries) = match x {
            Features::Dense(x) => (Rows::dense(x.as_slice()?, x.shape()[1]), x.len()),
            Features::Csr((starts, columns, values, width)) => {
                let (starts, columns) = (starts.as_slice()?, columns.as_slice()?);
                let csr =
                    Csr::new(starts, columns, values.as_slice()?, *width).map_err(to_python)?;
                (Rows::Csr(csr), columns.len())
            }
        };
        Ok(Self {
            rows,
            targets,
            elements: entries + targets.len(),
        })
    }

    /// Numbers in one pass, for the choice of the number of threads.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Rows.
    pub(crate) fn rows(&self) -> Rows<'a> {
        self.rows.clone()
    }

    /// Targets.
    pub(crate) fn targets(&self) -> &'a [f64] {
        self.targets
    }

    /// The checked design of a private fit or a study.
    pub(crate) fn design(
        &self,
        spec: &Spec,
        clip: bool,
        exec: &Executor<'_>,
    ) -> Result<Design<'a>> {
        let intercept = spec.inner.choices().intercept;
        Design::new(
            self.rows(),
            self.targets,
            intercept,
            &spec.row_bounds(clip),
            exec,
        )
    }
}
