//! Rows as Python passes them: a contiguous matrix, or the parts of a compressed sparse one, in double or single precision.

use dpci_core::design::{Csr, Design, Numbers, OnViolation, Persons, Rows};
use dpci_core::exec::Executor;
use dpci_core::spec::Choices;
use dpci_core::unit::{Unit, Weighting};
use dpci_core::{Error, Result};
use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::spec::Spec;

/// Features in either form.
#[derive(FromPyObject)]
pub(crate) enum Features<'py> {
    /// Matrix of shape (n, k).
    Dense(Matrix<'py>),
    /// Dense ones whose columns are moved and scaled: (rows, middle, half).
    Placed(
        (
            Matrix<'py>,
            PyReadonlyArray1<'py, f64>,
            PyReadonlyArray1<'py, f64>,
        ),
    ),
    /// (indptr, indices, values, k).
    Csr(
        (
            PyReadonlyArray1<'py, i64>,
            PyReadonlyArray1<'py, i32>,
            Values<'py>,
            usize,
        ),
    ),
}

/// Contiguous rows in either precision.
#[derive(FromPyObject)]
pub(crate) enum Matrix<'py> {
    /// C-contiguous float64.
    Double(PyReadonlyArray2<'py, f64>),
    /// C-contiguous float32.
    Single(PyReadonlyArray2<'py, f32>),
}

impl Matrix<'_> {
    /// The rows, and their numbers of entries and columns.
    fn rows(&self) -> PyResult<(Rows<'_>, usize, usize)> {
        let (rows, shape, array) = match self {
            Self::Double(x) => {
                let rows = Rows::dense(x.as_slice()?, x.shape()[1]);
                (rows, x.shape(), x.as_any())
            }
            Self::Single(x) => {
                let rows = Rows::dense_single(x.as_slice()?, x.shape()[1]);
                (rows, x.shape(), x.as_any())
            }
        };
        Ok((declared(rows, array)?, shape[0] * shape[1], shape[1]))
    }
}

/// Entries of sparse rows in either precision.
#[derive(FromPyObject)]
pub(crate) enum Values<'py> {
    /// Contiguous float64.
    Double(PyReadonlyArray1<'py, f64>),
    /// Contiguous float32.
    Single(PyReadonlyArray1<'py, f32>),
}

impl Values<'_> {
    fn numbers(&self) -> PyResult<Numbers<'_>> {
        Ok(match self {
            Self::Double(values) => values.as_slice()?.into(),
            Self::Single(values) => values.as_slice()?.into(),
        })
    }
}

/// The rows, declared to be a mapped file if the array is a view of one.
fn declared<'a>(rows: Rows<'a>, array: &Bound<'_, PyAny>) -> PyResult<Rows<'a>> {
    // Where nobody has loaded the module there are no such arrays, and a release needs no file of Python's library.
    let loaded = array.py().import("sys")?.getattr("modules")?;
    let Ok(module) = loaded.get_item("mmap") else {
        return Ok(rows);
    };
    let file = module.getattr("mmap")?;
    let mut owner = array.clone();
    // A view knows the array, and that the object, which owns its memory.
    while owner.is_instance_of::<PyUntypedArray>() {
        owner = owner.getattr("base")?;
    }
    Ok(if owner.is_instance(&file)? {
        rows.mapped()
    } else {
        rows
    })
}

/// Treatment of rows and targets outside their bounds.
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
    width: usize,
}

impl<'a> Data<'a> {
    pub(crate) fn new(x: &'a Features<'_>, y: &'a PyReadonlyArray1<'_, f64>) -> PyResult<Self> {
        let targets = y.as_slice()?;
        let (rows, entries, width) = match x {
            Features::Dense(matrix) => matrix.rows()?,
            Features::Placed((matrix, middle, half)) => {
                let (rows, entries, width) = matrix.rows()?;
                let rows = rows.placed(middle.as_slice()?, half.as_slice()?);
                (rows.map_err(to_python)?, entries, width)
            }
            Features::Csr((starts, columns, values, width)) => {
                let (starts, columns) = (starts.as_slice()?, columns.as_slice()?);
                let csr =
                    Csr::new(starts, columns, values.numbers()?, *width).map_err(to_python)?;
                (Rows::Csr(csr), columns.len(), *width)
            }
        };
        Ok(Self {
            rows,
            targets,
            elements: entries + targets.len(),
            width,
        })
    }

    /// Numbers in one pass, for the choice of the number of threads.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Columns.
    pub(crate) fn width(&self) -> usize {
        self.width
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

/// Whose the rows are, and what they weigh.
pub(crate) struct Counts<'a> {
    persons: Option<&'a [i64]>,
    weights: Option<&'a [f64]>,
}

impl<'a> Counts<'a> {
    pub(crate) fn new(
        persons: Option<&'a PyReadonlyArray1<'_, i64>>,
        weights: Option<&'a PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        Ok(Self {
            persons: persons.map(|p| p.as_slice()).transpose()?,
            weights: weights.map(|w| w.as_slice()).transpose()?,
        })
    }

    /// The design in which rows count so; equal records are merged where each counts once.
    pub(crate) fn on<'d>(
        &self,
        design: Design<'d>,
        choices: &Choices,
        exec: &Executor<'_>,
    ) -> Result<Design<'d>> {
        self.of(design, choices.unit, choices.weighting, exec)?
            .compacted(exec)
    }

    /// The design in which rows count so.
    pub(crate) fn of<'d>(
        &self,
        mut design: Design<'d>,
        unit: Unit,
        weighting: Option<Weighting>,
        exec: &Executor<'_>,
    ) -> Result<Design<'d>> {
        if let Some(numbers) = self.persons {
            design = design.of_persons(Persons::new(numbers, unit, exec)?)?;
        }
        match (self.weights, weighting) {
            (Some(weights), Some(weighting)) => design.weighted(weights, weighting),
            (Some(_), None) => Err(Error::Unsupported(
                "weight_bound must be given with weights, got weight_bound=None".into(),
            )),
            // That weights are missing is found where rows and choices meet.
            (None, _) => Ok(design),
        }
    }
}

/// Two matrices.
pub(crate) type Matrices<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);
