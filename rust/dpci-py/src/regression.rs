//! Linear regression from one moment matrix: its release, and the equations of each regression.

use dpci_core::Result;
use dpci_core::design::{Design, RowBounds};
use dpci_core::exec::Executor;
use dpci_core::interval::{self, MomentEquations};
use dpci_core::mechanism::{self as core, MomentMatrixRelease, Values};
use dpci_core::noise::MatrixLaw;
use dpci_core::spec::{self, LevelCap, MatrixBudget, MomentMatrixChoices, ResidualPlan};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cost::{Budget, seals, steps};
use crate::errors::{InvalidInput, to_python};
use crate::parts::{Facts, FirstPass, with_parts};
use crate::records::{Data, Records, on_violation, with_noise};
use crate::rows::Rows;
use crate::spec::{neighbors_of, unit_of, weighting_of};
use crate::task;

/// Validated public choices of a moment matrix; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct MomentMatrixSpec {
    pub(crate) inner: spec::MomentMatrixSpec,
}

#[pymethods]
impl MomentMatrixSpec {
    #[new]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword-only: one per public choice"
    )]
    #[pyo3(signature = (*, n_samples, n_columns, further_targets = 0, row_norm, target_bound, residuals, residual_share, refined = Vec::new(), refined_share = 0.5, budget = None, mu = None, neighbors, persons = false, max_rows = None, weight_bound = None, weight_total = None))]
    fn new(
        n_samples: usize,
        n_columns: usize,
        further_targets: usize,
        row_norm: Rows<'_>,
        target_bound: f64,
        residuals: Vec<(Vec<usize>, Vec<f64>, Vec<f64>)>,
        residual_share: f64,
        refined: Vec<(Vec<usize>, Vec<f64>, Vec<f64>)>,
        refined_share: f64,
        budget: Option<&Budget>,
        mu: Option<f64>,
        neighbors: &str,
        persons: bool,
        max_rows: Option<u32>,
        weight_bound: Option<f64>,
        weight_total: Option<f64>,
    ) -> PyResult<Self> {
        let budget = match (budget, mu) {
            (Some(budget), None) => MatrixBudget::Of(budget.inner),
            (None, Some(mu)) => MatrixBudget::Gaussian { mu },
            _ => {
                return Err(InvalidInput::new_err(
                    "exactly one of budget and mu must be given, got both or neither",
                ));
            }
        };
        let inner = spec::MomentMatrixSpec::new(MomentMatrixChoices {
            n_samples,
            n_columns,
            further_targets,
            rows: row_norm.domain(),
            target_bound,
            residuals: residuals.into_iter().map(plan).collect(),
            residual_share,
            refined: refined.into_iter().map(plan).collect(),
            refined_share,
            budget,
            neighbors: neighbors_of(neighbors)?,
            unit: unit_of(persons, max_rows)?,
            weighting: weighting_of(weight_bound, weight_total, n_samples)?,
        });
        Ok(Self {
            inner: inner.map_err(to_python)?,
        })
    }

    /// The constant behind each row.
    #[getter]
    fn intercept(&self) -> f64 {
        self.inner.intercept()
    }

    /// By which the columns of a row are multiplied: 1 but for further targets.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.inner.weights()[..self.inner.choices().n_columns])
    }

    /// By which targets are multiplied.
    #[getter]
    fn target_weight(&self) -> f64 {
        self.inner.target_weight()
    }

    /// Standard deviation of an isometric coordinate of the noise in the matrix, the seal's included.
    #[getter]
    fn noise_std_dev(&self) -> f64 {
        self.inner.noise_std_dev()
    }

    /// Steps and seals of a release whose matrix and levels of refined regressions are these, and the points of residuals.
    #[pyo3(signature = (matrix, levels = Vec::new()))]
    fn planned<'py>(
        &self,
        py: Python<'py>,
        matrix: PyReadonlyArray2<'py, f64>,
        levels: Vec<Vec<f64>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let matrix = matrix.as_slice()?;
        let planned = core::planned_steps(&self.inner, matrix, &levels).map_err(to_python)?;
        let (mut spent, mut sealed) = (vec![self.inner.step().clone()], vec![*self.inner.seal()]);
        let mut points = Vec::new();
        for (point, noise) in planned.residuals {
            spent.push(noise.step);
            sealed.push(noise.seal);
            points.push(PyArray1::from_vec(py, point));
        }
        let mut refined = Vec::new();
        for gradient in &planned.gradients {
            spent.push(gradient.level_noise.step.clone());
            sealed.push(gradient.level_noise.seal);
        }
        for gradient in planned.gradients {
            spent.push(gradient.noise.step);
            sealed.push(gradient.noise.seal);
            let point = PyArray1::from_vec(py, gradient.point);
            refined.push((point, gradient.cap, gradient.square_weight));
        }
        let dict = PyDict::new(py);
        dict.set_item("steps", steps(&spent))?;
        dict.set_item("seals", seals(&sealed))?;
        dict.set_item("points", points)?;
        dict.set_item("refined", refined)?;
        Ok(dict)
    }
}

impl MomentMatrixSpec {
    fn bounds(&self, clip: bool) -> RowBounds {
        RowBounds {
            rows: self.inner.choices().rows.clone(),
            targets: self.inner.loss().targets(),
            on_violation: on_violation(clip),
        }
    }

    /// The rows, checked against the bounds of the matrix.
    pub(crate) fn design<'a>(
        &self,
        data: &Data<'a>,
        clip: bool,
        exec: &Executor<'_>,
    ) -> Result<Design<'a>> {
        let c = self.inner.choices();
        let intercept = Some(self.inner.intercept());
        data.design(&self.bounds(clip), intercept, (c.unit, c.weighting), exec)
    }

    fn release(
        &self,
        records: &dyn dpci_core::records::Records,
        seed: Option<u64>,
        exec: &Executor<'_>,
    ) -> Result<MomentMatrixRelease> {
        with_noise!(seed, 0, |generator| core::release_moment_matrix(
            &self.inner,
            records,
            exec,
            generator
        ))
    }

    fn to_dict<'py>(
        &self,
        py: Python<'py>,
        release: MomentMatrixRelease,
        private: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("steps", steps(&release.steps(&self.inner)))?;
        dict.set_item("seals", seals(&release.seals(&self.inner)))?;
        dict.set_item("private", private)?;
        dict.set_item("matrix", square(py, release.matrix.into_values())?)?;
        let residuals = release.residuals.into_iter().map(|r| {
            let moments = square(py, r.moments.into_values())?;
            Ok((PyArray1::from_vec(py, r.point), moments))
        });
        dict.set_item("residuals", residuals.collect::<PyResult<Vec<_>>>()?)?;
        let gradients = release.gradients.into_iter().map(|g| {
            let gradient = PyArray1::from_vec(py, g.gradient.into_values());
            let point = PyArray1::from_vec(py, g.planned.point);
            let levels = PyArray1::from_vec(py, g.levels.into_values());
            (
                point,
                levels,
                gradient,
                g.planned.cap,
                g.planned.square_weight,
            )
        });
        dict.set_item("refined", gradients.collect::<Vec<_>>())?;
        Ok(dict)
    }
}

fn plan((regressors, ridge, response): (Vec<usize>, Vec<f64>, Vec<f64>)) -> ResidualPlan {
    ResidualPlan {
        regressors,
        ridge,
        response,
    }
}

/// A square matrix.
fn square(py: Python<'_>, values: Vec<f64>) -> PyResult<Bound<'_, numpy::PyArray2<f64>>> {
    let dim = values.len().isqrt();
    PyArray1::from_vec(py, values).reshape([dim, dim])
}

/// Standard deviation of an isometric coordinate of a released matrix, its seal's noise included.
#[pyfunction]
#[pyo3(signature = (noise, *, scale, dim, seal_std_dev))]
pub(crate) fn sealed_std_dev(
    noise: &str,
    scale: f64,
    dim: usize,
    seal_std_dev: f64,
) -> PyResult<f64> {
    let law = MatrixLaw::from_name(noise, scale).map_err(to_python)?;
    Ok(spec::sealed_std_dev(law, dim, seal_std_dev))
}

/// The cap that the released levels of residuals call for, as a part of the greatest residual, the share above which a level is seen, and
/// the share beyond the cap for which intervals account.
#[pyfunction]
#[pyo3(signature = (levels, *, noise, scale))]
pub(crate) fn level_cap(
    levels: PyReadonlyArray1<'_, f64>,
    noise: &str,
    scale: f64,
) -> PyResult<(f64, f64, f64)> {
    let found = LevelCap::new(levels.as_slice()?, noise, scale).map_err(to_python)?;
    Ok((found.cap, found.threshold, found.unseen))
}

/// Threshold that the least eigenvalue of the second moments of so many regressors must exceed.
#[pyfunction]
#[pyo3(signature = (std_dev, *, n_regressors))]
pub(crate) fn clear_of_noise(std_dev: f64, n_regressors: usize) -> f64 {
    spec::clear_of_noise(std_dev, n_regressors)
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, clip, n_threads, seed))]
pub(crate) fn release_moment_matrix<'py>(
    py: Python<'py>,
    spec: &Bound<'py, MomentMatrixSpec>,
    records: &Bound<'py, Records>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let spec = spec.get();
    let release = task::run_over(py, &data, n_threads, |exec| {
        spec.release(&spec.design(&data, clip, exec)?, seed, exec)
    })?;
    spec.to_dict(py, release, seed.is_none())
}

#[pyfunction]
#[pyo3(signature = (spec, evaluate, *, first, clip, seed))]
pub(crate) fn release_moment_matrix_parts<'py>(
    py: Python<'py>,
    spec: &Bound<'py, MomentMatrixSpec>,
    evaluate: Py<PyAny>,
    first: FirstPass,
    clip: bool,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = spec.get();
    let facts = Facts {
        first: &first,
        n_params: spec.inner.n_params(),
        intercept: Some(spec.inner.intercept()),
        bounds: spec.bounds(clip),
        unit: spec.inner.choices().unit,
        weight_bound: spec.inner.choices().weighting.map(|w| w.bound),
    };
    let release = with_parts(py, evaluate, facts, |parts, exec| {
        spec.release(parts, seed, exec)
    })?;
    spec.to_dict(py, release, seed.is_none())
}

#[pyfunction]
#[pyo3(signature = (matrix, features, response, *, ridge, residual_moments, start = None))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arrays are extracted by value"
)]
pub(crate) fn moment_regression<'py>(
    py: Python<'py>,
    matrix: PyReadonlyArray2<'py, f64>,
    features: PyReadonlyArray2<'py, f64>,
    response: PyReadonlyArray1<'py, f64>,
    ridge: PyReadonlyArray2<'py, f64>,
    residual_moments: Option<PyReadonlyArray2<'py, f64>>,
    start: Option<(PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let start = match &start {
        None => None,
        Some((params, gradient)) => Some(interval::Start {
            params: params.as_slice()?,
            gradient: gradient.as_slice()?,
        }),
    };
    let residual_moments = residual_moments
        .as_ref()
        .map(|m| m.as_slice())
        .transpose()?;
    let equations = MomentEquations {
        matrix: matrix.as_slice()?,
        dim: matrix.shape()[0],
        features: features.as_slice()?,
        response: response.as_slice()?,
        ridge: ridge.as_slice()?,
        residual_moments,
        start,
    };
    let found = py
        .detach(|| interval::moment_regression(&equations))
        .map_err(to_python)?;
    let dict = PyDict::new(py);
    for (name, vector) in [
        ("params", found.params),
        ("cross", found.cross),
        ("direction", found.direction),
    ] {
        dict.set_item(name, PyArray1::from_vec(py, vector))?;
    }
    for (name, matrix) in [("gain", found.gain), ("classical", found.classical)] {
        dict.set_item(name, square(py, matrix)?)?;
    }
    dict.set_item("robust", found.robust.map(|m| square(py, m)).transpose()?)?;
    for (name, value) in [
        ("error_norm2", found.error_norm2),
        ("residual_norm2", found.residual_norm2),
        ("residual_square", found.residual_square),
        ("fitted_noise", found.fitted_noise),
        ("step_square", found.step_square),
        ("inverse_trace", found.inverse_trace),
        ("degrees", found.degrees),
        ("least_eigenvalue", found.least_eigenvalue),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
