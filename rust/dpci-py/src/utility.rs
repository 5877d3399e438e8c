//! Utility as a function of the budget: a measuring point, and what follows from it at other budgets. Never private.

use dpci_core::Result;
use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::study as core;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::fit::Spec;
use crate::names::Named;
use crate::records::Records;
use crate::release::Kind as _;
use crate::task;
use crate::values::{Floats, Matrix, Table, Vector};

type Optional<'py> = Option<Floats<'py>>;

/// A data set with the loss that is fitted to it.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Utility {
    inner: core::Utility,
    n_threads: Option<usize>,
    /// Numbers in one pass, for the choice of the number of threads.
    elements: usize,
}

/// Parameters at one budget and one draw of the noise.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct UtilityAnchor {
    inner: core::Anchor,
    #[pyo3(get)]
    params: Vector,
}

/// The minimiser without noise.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct UtilityCenter {
    inner: core::Center,
    #[pyo3(get)]
    params: Vector,
    #[pyo3(get)]
    hessian: Matrix,
}

impl Utility {
    /// Runs work that needs an executor.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Executor<'_>) -> Result<T> + Send) -> PyResult<T> {
        task::run(py, |cancel| {
            work(&Executor::new(self.n_threads, self.elements, cancel)?)
        })
    }
}

/// The metric that a width stands for.
fn metric(width: Option<f64>) -> core::Metric {
    width.map_or(core::Metric::Loss, |width| core::Metric::SmoothedAccuracy { width })
}

#[pymethods]
impl Utility {
    #[new]
    #[pyo3(signature = (spec, records, *, on_violation, n_threads))]
    fn new(
        py: Python<'_>,
        spec: &Bound<'_, Spec>,
        records: &Bound<'_, Records>,
        on_violation: Named<OnViolation>,
        n_threads: Option<usize>,
    ) -> PyResult<Self> {
        let arrays = records.get().arrays(py)?;
        let data = arrays.data()?;
        let spec = spec.get();
        let inner = task::run_over(py, &data, n_threads, |exec| {
            let design = data.design(&spec.rules(on_violation.0), exec)?.compacted(exec)?;
            core::Utility::new(&design, &spec.inner)
        })?;
        Ok(Self {
            inner,
            n_threads,
            elements: data.elements(),
        })
    }

    /// Total count of the rows.
    #[getter]
    fn total(&self) -> f64 {
        self.inner.total()
    }

    #[staticmethod]
    fn draw_noise(spec: &Spec, seed: u64, stream: u64) -> PyResult<Vector> {
        let noise = core::Utility::draw_noise(&spec.inner, seed, stream).map_err(to_python)?;
        Ok(Vector(noise))
    }

    #[pyo3(signature = (spec, noise, *, params, start))]
    fn anchor(
        &self,
        py: Python<'_>,
        spec: &Bound<'_, Spec>,
        noise: Floats<'_>,
        params: Optional<'_>,
        start: Optional<'_>,
    ) -> PyResult<UtilityAnchor> {
        let (spec, noise) = (&spec.get().inner, noise.as_slice()?.to_vec());
        let params = params.as_ref().map(|p| p.as_slice()).transpose()?;
        let start = start.as_ref().map(|s| s.as_slice()).transpose()?;
        let inner = self.run(py, |exec| self.inner.anchor(spec, noise, params, start, exec))?;
        let params = inner.params().into();
        Ok(UtilityAnchor { inner, params })
    }

    fn derivative(&self, anchor: &UtilityAnchor, scale_slope: f64, l2_slope: f64) -> PyResult<Vector> {
        let derivative = self.inner.derivative(&anchor.inner, scale_slope, l2_slope);
        Ok(Vector(derivative.map_err(to_python)?))
    }

    fn predict(
        &self,
        py: Python<'_>,
        anchor: &Bound<'_, UtilityAnchor>,
        specs: Vec<Bound<'_, Spec>>,
        n_steps: usize,
    ) -> PyResult<Matrix> {
        let anchor = &anchor.get().inner;
        let specs: Vec<_> = specs.iter().map(|s| &s.get().inner).collect();
        let n = specs.len();
        let points = self.run(py, |exec| self.inner.predict(anchor, &specs, n_steps, exec))?;
        Ok(Matrix::new(points.concat(), [n, self.inner.n_params()]))
    }

    #[pyo3(signature = (params, *, width))]
    fn means(&self, py: Python<'_>, params: Table<'_>, width: Option<f64>) -> PyResult<Vector> {
        let dim = params.shape()[1].max(1);
        let rows = params.as_slice()?.chunks(dim);
        let points: Vec<Vec<f64>> = rows.map(<[f64]>::to_vec).collect();
        let means = self.run(py, |exec| self.inner.means(metric(width), &points, exec))?;
        Ok(Vector(means))
    }

    #[pyo3(signature = (params, *, width))]
    fn mean_derivatives(&self, py: Python<'_>, params: Floats<'_>, width: Option<f64>) -> PyResult<(Vector, Matrix)> {
        let params = params.as_slice()?;
        let (gradient, hessian) = self.run(py, |exec| self.inner.mean_derivatives(metric(width), params, exec))?;
        Ok((Vector(gradient), Matrix::square(hessian)))
    }

    #[pyo3(signature = (l2_strength, *, start))]
    fn center(&self, py: Python<'_>, l2_strength: f64, start: Optional<'_>) -> PyResult<UtilityCenter> {
        let start = start.as_ref().map(|s| s.as_slice()).transpose()?;
        let inner = self.run(py, |exec| self.inner.center(l2_strength, start, exec))?;
        Ok(UtilityCenter {
            params: inner.params().into(),
            hessian: Matrix::square(inner.hessian()),
            inner,
        })
    }

    fn mean_shift(&self, py: Python<'_>, center: &Bound<'_, UtilityCenter>, variance: f64) -> PyResult<Vector> {
        let center = &center.get().inner;
        let shift = self.run(py, |exec| self.inner.mean_shift(center, variance, exec))?;
        Ok(Vector(shift))
    }

    #[pyo3(signature = (center, variance, shift, *, width))]
    fn smoothed(
        &self,
        py: Python<'_>,
        center: &Bound<'_, UtilityCenter>,
        variance: f64,
        shift: Floats<'_>,
        width: Option<f64>,
    ) -> PyResult<(f64, Vector, Matrix)> {
        let (center, shift) = (&center.get().inner, shift.as_slice()?);
        let smoothed = self.run(py, |exec| {
            self.inner.smoothed(center, metric(width), variance, shift, exec)
        })?;
        let (gradient, hessian) = (smoothed.gradient, smoothed.hessian);
        Ok((smoothed.value, Vector(gradient), Matrix::square(hessian)))
    }
}
