//! Mechanisms that others published, for comparison: the functional mechanism, and the histogram of a public grid.

use std::sync::Arc;

use dpci_core::Result;
use dpci_core::design::{Design, OnViolation, RowBounds};
use dpci_core::exec::Executor;
use dpci_core::mechanism::{self as core, CellRegression, Values};
use dpci_core::privacy::Polynomial;
use dpci_core::row_domain::RowDomain;
use dpci_core::spec::{self, Axis, FunctionalChoices, Grid};
use dpci_core::unit::Weighting;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cost::{Budget, seals, steps};
use crate::errors::to_python;
use crate::loss::Loss;
use crate::records::{Data, Records, on_violation, with_noise};
use crate::spec::{calibration_of, neighbors_of, unit_of, unknown, weighting_of};
use crate::task;

/// Validated public choices of the functional mechanism; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct FunctionalSpec {
    pub(crate) inner: spec::FunctionalSpec,
}

#[pymethods]
impl FunctionalSpec {
    #[new]
    #[pyo3(signature = (*, n_samples, n_columns, intercept, row_norm, polynomial, target_bound, l2_strength, budget, calibration, neighbors, persons=false, max_rows=None, weight_bound=None, weight_total=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword-only: one per public choice"
    )]
    fn new(
        n_samples: usize,
        n_columns: usize,
        intercept: Option<f64>,
        row_norm: f64,
        polynomial: &str,
        target_bound: f64,
        l2_strength: f64,
        budget: &Budget,
        calibration: &str,
        neighbors: &str,
        persons: bool,
        max_rows: Option<u32>,
        weight_bound: Option<f64>,
        weight_total: Option<f64>,
    ) -> PyResult<Self> {
        let polynomial = match polynomial {
            "squared" => Polynomial::squared(target_bound).map_err(to_python)?,
            "logistic" => Polynomial::Logistic,
            _ => return Err(unknown("polynomial", polynomial)),
        };
        let choices = FunctionalChoices {
            n_samples,
            n_columns,
            intercept,
            row_norm,
            polynomial,
            l2_strength,
            budget: budget.inner,
            calibration: calibration_of(calibration)?,
            neighbors: neighbors_of(neighbors)?,
            unit: unit_of(persons, max_rows)?,
            weighting: weighting_of(weight_bound, weight_total, n_samples)?,
        };
        let inner = spec::FunctionalSpec::new(choices).map_err(to_python)?;
        Ok(Self { inner })
    }
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, clip, n_threads, seed))]
pub(crate) fn release_functional_mechanism<'py>(
    py: Python<'py>,
    spec: &Bound<'py, FunctionalSpec>,
    records: &Bound<'py, Records>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let spec = spec.get();
    let params = task::run_over(py, &data, n_threads, |exec| {
        let design = spec.design(&data, clip, exec)?;
        with_noise!(seed, 0, |generator| core::release_functional_mechanism(
            &spec.inner,
            &design,
            exec,
            generator
        ))
    })?;
    let dict = PyDict::new(py);
    dict.set_item("params", PyArray1::from_vec(py, params.into_values()))?;
    dict.set_item("steps", steps(std::slice::from_ref(spec.inner.step())))?;
    dict.set_item("seals", seals(spec.inner.seals()))?;
    dict.set_item("private", seed.is_none())?;
    Ok(dict)
}

/// A public grid, the noise on its counts, and the regression on its cells; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct HistogramSpec {
    pub(crate) inner: spec::HistogramSpec,
    loss: Loss,
    l2_strength: f64,
    intercept: Option<f64>,
}

impl FunctionalSpec {
    /// The rows, checked against the bounds of the mechanism.
    pub(crate) fn design<'a>(
        &self,
        data: &Data<'a>,
        clip: bool,
        exec: &Executor<'_>,
    ) -> Result<Design<'a>> {
        let choices = self.inner.choices();
        let bounds = RowBounds {
            rows: RowDomain::Ball(choices.row_norm),
            targets: choices.polynomial.targets(),
            on_violation: on_violation(clip),
        };
        let counted = (choices.unit, choices.weighting);
        data.design(&bounds, choices.intercept, counted, exec)
    }
}

impl HistogramSpec {
    /// Every record has a nearest cell, so rows need no bound.
    pub(crate) fn design<'a>(&self, data: &Data<'a>, exec: &Executor<'_>) -> Result<Design<'a>> {
        let bounds = RowBounds {
            rows: RowDomain::Ball(f64::MAX),
            targets: self.loss.inner.targets(),
            on_violation: OnViolation::Clip,
        };
        data.design(&bounds, self.intercept, self.inner.records(), exec)
    }
}

#[pymethods]
impl HistogramSpec {
    #[new]
    #[pyo3(signature = (*, axes, n_columns, targets, loss, l2_strength, intercept, budget, neighbors, persons=false, max_rows=None, weight_bound=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword-only: one per public choice"
    )]
    fn new(
        axes: Vec<(Vec<usize>, Vec<f64>)>,
        n_columns: usize,
        targets: Vec<f64>,
        loss: &Loss,
        l2_strength: f64,
        intercept: Option<f64>,
        budget: &Budget,
        neighbors: &str,
        persons: bool,
        max_rows: Option<u32>,
        weight_bound: Option<f64>,
    ) -> PyResult<Self> {
        let axis = |(columns, levels)| Axis { columns, levels };
        let axes = axes.into_iter().map(axis).collect();
        let grid = Grid::new(axes, n_columns, targets).map_err(to_python)?;
        let inner = spec::HistogramSpec::new(grid, budget.inner, neighbors_of(neighbors)?)
            .map_err(to_python)?;
        // The noisy counts are their own total.
        let weighting = weight_bound.map(|bound| Weighting::new(bound, bound));
        let weighting = weighting.transpose().map_err(to_python)?;
        Ok(Self {
            inner: inner.of_records(unit_of(persons, max_rows)?, weighting),
            loss: Loss {
                inner: Arc::clone(&loss.inner),
            },
            l2_strength,
            intercept,
        })
    }

    /// Law and scale of the noise of a count.
    fn noise(&self) -> (&'static str, f64) {
        (self.inner.step().noise.name(), self.inner.step().scale)
    }

    #[getter]
    fn n_cells(&self) -> usize {
        self.inner.grid().n_cells()
    }
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, n_threads, seed))]
pub(crate) fn release_histogram<'py>(
    py: Python<'py>,
    spec: &Bound<'py, HistogramSpec>,
    records: &Bound<'py, Records>,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let spec = spec.get();
    let loss = &*spec.loss.inner;
    let (counts, params) = task::run_over(py, &data, n_threads, |exec| {
        let design = spec.design(&data, exec)?;
        let counts = with_noise!(seed, 0, |generator| core::release_histogram(
            &spec.inner,
            &design,
            exec,
            generator
        ))?;
        let regression = CellRegression {
            loss,
            l2_strength: spec.l2_strength,
            intercept: spec.intercept,
            has_shares: design.shares().is_some(),
        };
        let params = core::fit_histogram(spec.inner.grid(), &counts, &regression, exec)?;
        Ok((counts, params))
    })?;
    let dict = PyDict::new(py);
    dict.set_item("params", PyArray1::from_vec(py, params))?;
    dict.set_item("counts", PyArray1::from_vec(py, counts.into_values()))?;
    dict.set_item("steps", steps(std::slice::from_ref(spec.inner.step())))?;
    dict.set_item("seals", seals(std::slice::from_ref(spec.inner.seal())))?;
    dict.set_item("private", seed.is_none())?;
    Ok(dict)
}
