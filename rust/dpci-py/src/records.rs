//! Records as Python passes them: rows in a contiguous matrix, a compressed sparse one or coded, their targets, persons and weights.

use std::sync::OnceLock;

use dpci_core::design::{
    Category, Checked, Coded, Codes, Csr, Design, Layout, Numbers, OnViolation, Persons, RowBounds, Rows,
};
use dpci_core::exec::Executor;
use dpci_core::row_domain::RowDomain;
use dpci_core::unit::{Unit, Weighting};
use dpci_core::{Error, Result};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::loss::Loss;
use crate::names::Named;
use crate::parts::Rules;
use crate::task;
use crate::values::{Floats, Table};

/// Features in either form.
#[derive(FromPyObject)]
pub(crate) enum Features<'py> {
    Dense(Matrix<'py>),
    /// Dense ones whose columns are moved and scaled: (rows, middle, half).
    Placed((Matrix<'py>, Floats<'py>, Floats<'py>)),
    /// (indptr, indices, values, k).
    Csr(
        (
            PyReadonlyArray1<'py, i64>,
            PyReadonlyArray1<'py, i32>,
            Values<'py>,
            usize,
        ),
    ),
    Coded(CodedRows<'py>),
}

/// The attributes of coded rows.
#[derive(FromPyObject)]
pub(crate) struct CodedRows<'py> {
    numbers: Table<'py>,
    codes: CodesArray<'py>,
    /// Columns of the numbers.
    columns: Vec<usize>,
    /// (first column, number of levels, entry) of each category.
    categories: Vec<(usize, usize, f64)>,
}

/// Contiguous codes of any width.
#[derive(FromPyObject)]
pub(crate) enum CodesArray<'py> {
    Bytes(PyReadonlyArray2<'py, u8>),
    Words(PyReadonlyArray2<'py, u16>),
    Longs(PyReadonlyArray2<'py, u32>),
}

impl Features<'_> {
    /// The rows, checked unless they were before, and their numbers of entries and columns.
    fn rows(&self, is_checked: bool) -> PyResult<(Rows<'_>, usize, usize)> {
        match self {
            Self::Dense(matrix) => matrix.rows(),
            Self::Placed((matrix, middle, half)) => {
                let (rows, entries, width) = matrix.rows()?;
                let rows = rows.placed(middle.as_slice()?, half.as_slice()?);
                Ok((rows.map_err(to_python)?, entries, width))
            }
            Self::Csr((starts, columns, values, width)) => {
                let (starts, columns) = (starts.as_slice()?, columns.as_slice()?);
                let values = values.numbers()?;
                let csr = if is_checked {
                    Csr::of_checked(starts, columns, values, *width)
                } else {
                    Csr::new(starts, columns, values, *width).map_err(to_python)?
                };
                Ok((Rows::Csr(csr), columns.len(), *width))
            }
            Self::Coded(coded) => coded.rows(is_checked),
        }
    }
}

impl CodedRows<'_> {
    /// The rows, checked unless they were before, and their numbers of entries and columns.
    fn rows(&self, is_checked: bool) -> PyResult<(Rows<'_>, usize, usize)> {
        let codes = match &self.codes {
            CodesArray::Bytes(codes) => Codes::Bytes(codes.as_slice()?.into()),
            CodesArray::Words(codes) => Codes::Words(codes.as_slice()?.into()),
            CodesArray::Longs(codes) => Codes::Longs(codes.as_slice()?.into()),
        };
        let category = |&(first, levels, value)| Category { first, levels, value };
        let categories = self.categories.iter().map(category).collect();
        let layout = Layout::new(self.columns.clone(), categories).map_err(to_python)?;
        let width = layout.n_columns();
        let numbers = self.numbers.as_slice()?;
        let make = if is_checked { Coded::of_checked } else { Coded::new };
        let rows = Rows::Coded(make(numbers, codes, layout.into()).map_err(to_python)?);
        let n_rows = rows.n_rows().unwrap_or_default();
        let each = self.columns.len() + self.categories.len();
        Ok((rows, n_rows * each, width))
    }
}

/// Contiguous rows in either precision.
#[derive(FromPyObject)]
pub(crate) enum Matrix<'py> {
    Double(Table<'py>),
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
    Double(Floats<'py>),
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
    Ok(if owner.is_instance(&file)? { rows.mapped() } else { rows })
}

/// Rows and targets in memory, and whose they are and how much they count where that is not one each. A check is remembered: what follows
/// it under the same bounds makes no other pass. Nobody may write to the arrays between.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Records {
    rows: Py<PyAny>,
    targets: Py<PyArray1<f64>>,
    persons: Option<Py<PyArray1<i64>>>,
    weights: Option<Py<PyArray1<f64>>>,
    checked: OnceLock<Checked>,
    /// The rows that were checked, where codes were recognised in them.
    coded: OnceLock<Coded<'static>>,
}

#[pymethods]
impl Records {
    #[new]
    #[pyo3(signature = (x, y, *, persons=None, weights=None))]
    fn new(
        x: Bound<'_, PyAny>,
        y: Bound<'_, PyArray1<f64>>,
        persons: Option<Bound<'_, PyArray1<i64>>>,
        weights: Option<Bound<'_, PyArray1<f64>>>,
    ) -> PyResult<Self> {
        x.extract::<Features<'_>>()?;
        Ok(Self {
            rows: x.unbind(),
            targets: y.unbind(),
            persons: persons.map(Bound::unbind),
            weights: weights.map(Bound::unbind),
            checked: OnceLock::new(),
            coded: OnceLock::new(),
        })
    }

    /// Refuses rows, targets and weights outside their bounds, for a caller who wants bad data refused before paying for a release.
    #[pyo3(signature = (*, loss, row_norm, intercept, on_violation, n_threads, weight_bound=None))]
    fn check(
        &self,
        py: Python<'_>,
        loss: &Loss,
        row_norm: crate::rows::Rows<'_>,
        intercept: Option<f64>,
        on_violation: Named<OnViolation>,
        n_threads: Option<usize>,
        weight_bound: Option<f64>,
    ) -> PyResult<()> {
        let arrays = self.arrays(py)?;
        let data = arrays.data()?;
        let rows = match row_norm.domain() {
            RowDomain::Ball(norm) => data
                .rows()
                .unit_blocks()
                .map_err(to_python)?
                .unwrap_or(RowDomain::Ball(norm)),
            blocks @ RowDomain::Blocks(_) => blocks,
        };
        let bounds = RowBounds {
            rows,
            targets: loss.inner.targets(),
            on_violation: on_violation.0,
        };
        let (checked, coded) = task::run_over(py, &data, n_threads, |exec| {
            let coded = data.rows().recognised(&bounds.rows, exec)?;
            let rows = coded.as_ref().map(|coded| Rows::Coded(coded.borrowed()));
            let rows = rows.unwrap_or_else(|| data.rows());
            let checked = Design::check(rows, data.targets(), intercept, &bounds, exec)?;
            if let (Some(weights), Some(bound)) = (data.weights, weight_bound) {
                // Of the two public values the bound alone decides which weights pass.
                let design = data.held(intercept, checked.clone())?;
                design.weighted(weights, Weighting::new(bound, bound)?)?;
            }
            Ok((checked, coded))
        })?;
        // Of two checks at once either one serves.
        let _ = (self.checked.set(checked), coded.map(|coded| self.coded.set(coded)));
        Ok(())
    }
}

impl Records {
    /// The arrays, borrowed from Python for the time of a call.
    pub(crate) fn arrays<'py>(&'py self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        Ok(Arrays {
            rows: self.rows.bind(py).extract()?,
            targets: self.targets.bind(py).readonly(),
            persons: self.persons.as_ref().map(|of| of.bind(py).readonly()),
            weights: self.weights.as_ref().map(|of| of.bind(py).readonly()),
            checked: self.checked.get(),
            coded: self.coded.get(),
        })
    }
}

/// The arrays of records.
pub(crate) struct Arrays<'py> {
    rows: Features<'py>,
    targets: Floats<'py>,
    persons: Option<PyReadonlyArray1<'py, i64>>,
    weights: Option<Floats<'py>>,
    checked: Option<&'py Checked>,
    coded: Option<&'py Coded<'static>>,
}

impl Arrays<'_> {
    pub(crate) fn data(&self) -> PyResult<Data<'_>> {
        let targets = self.targets.as_slice()?;
        let (rows, entries, width) = self.rows.rows(self.checked.is_some())?;
        let coded = self.coded.map(|coded| Rows::Coded(coded.borrowed()));
        let (persons, weights) = (self.persons.as_ref(), self.weights.as_ref());
        Ok(Data {
            rows: coded.unwrap_or(rows),
            targets,
            persons: persons.map(|p| p.as_slice()).transpose()?,
            weights: weights.map(|w| w.as_slice()).transpose()?,
            checked: self.checked,
            elements: entries + targets.len(),
            width,
        })
    }
}

/// Rows, targets and what they count, as slices of Python's arrays.
pub(crate) struct Data<'a> {
    rows: Rows<'a>,
    targets: &'a [f64],
    pub(crate) persons: Option<&'a [i64]>,
    pub(crate) weights: Option<&'a [f64]>,
    checked: Option<&'a Checked>,
    elements: usize,
    width: usize,
}

impl<'a> Data<'a> {
    /// Numbers in one pass, for the choice of the number of threads.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn rows(&self) -> Rows<'a> {
        self.rows.clone()
    }

    pub(crate) fn targets(&self) -> &'a [f64] {
        self.targets
    }

    /// Whose the rows are, where a unit has several.
    pub(crate) fn persons_of(&self, unit: Unit, exec: &Executor<'_>) -> Result<Option<Persons>> {
        let numbers = self.persons.map(|numbers| Persons::new(numbers, unit, exec));
        numbers.transpose()
    }

    fn held(&self, intercept: Option<f64>, checked: Checked) -> Result<Design<'a>> {
        Design::of_checked(self.rows(), self.targets, intercept, checked)
    }

    /// The design that these rules make, checked unless it was before.
    pub(crate) fn design(&self, rules: &Rules, exec: &Executor<'_>) -> Result<Design<'a>> {
        let (bounds, intercept) = (&rules.bounds, rules.intercept);
        let checked = self.checked.filter(|checked| checked.bounds() == bounds);
        let mut design = if let Some(checked) = checked {
            self.held(intercept, checked.clone())?
        } else {
            let coded = self.rows.recognised(&bounds.rows, exec)?;
            let rows = coded.map_or_else(|| self.rows(), Rows::Coded);
            Design::new(rows, self.targets, intercept, bounds, exec)?
        };
        if let Some(persons) = self.persons_of(rules.unit, exec)? {
            design = design.of_persons(persons)?;
        }
        match (self.weights, rules.weighting) {
            (Some(weights), Some(weighting)) => design.weighted(weights, weighting),
            (Some(_), None) => Err(Error::Unsupported(
                "weight_bound must be given with weights, got weight_bound=None".into(),
            )),
            // That weights are missing is found where rows and choices meet.
            (None, _) => Ok(design),
        }
    }
}

/// A release with noise of the operating system, or of a stream of a seed.
macro_rules! with_noise {
    ($seed:expr, $stream:expr, |$generator:ident| $release:expr) => {
        match $seed {
            None => {
                let $generator = &mut dpci_core::noise::ReleaseGenerator::new()?;
                $release
            }
            Some(seed) => {
                let $generator = &mut dpci_core::noise::SimulationGenerator::new(seed, $stream);
                $release
            }
        }
    };
}
pub(crate) use with_noise;
