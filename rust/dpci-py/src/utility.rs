//! Utility as a function of the budget: a measuring point, and what follows from it at other budgets. Never private.

use dpci_core::Result;
use dpci_core::exec::Executor;
use dpci_core::study as core;
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::records::Records;
use crate::spec::Spec;
use crate::task;

type Vector<'py> = Bound<'py, PyArray1<f64>>;
type Matrix<'py> = Bound<'py, PyArray2<f64>>;
type Optional<'py> = Option<PyReadonlyArray1<'py, f64>>;

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
}

/// The minimiser without noise.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct UtilityCenter {
    inner: core::Center,
}

#[pymethods]
impl UtilityAnchor {
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> Vector<'py> {
        PyArray1::from_slice(py, self.inner.params())
    }
}

#[pymethods]
impl UtilityCenter {
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> Vector<'py> {
        PyArray1::from_slice(py, self.inner.params())
    }

    #[getter]
    fn hessian<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py>> {
        let dim = self.inner.params().len();
        PyArray1::from_slice(py, self.inner.hessian()).reshape([dim, dim])
    }
}

impl Utility {
    /// Runs work that needs an executor.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Executor<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        task::run(py, |cancel| {
            work(&Executor::new(self.n_threads, self.elements, cancel)?)
        })
    }
}

/// The metric that a width stands for.
fn metric(width: Option<f64>) -> core::Metric {
    width.map_or(core::Metric::Loss, |width| core::Metric::SmoothedAccuracy {
        width,
    })
}

#[pymethods]
impl Utility {
    #[new]
    #[pyo3(signature = (spec, records, *, clip, n_threads))]
    fn new<'py>(
        py: Python<'py>,
        spec: &Bound<'py, Spec>,
        records: &Bound<'py, Records>,
        clip: bool,
        n_threads: Option<usize>,
    ) -> PyResult<Self> {
        let arrays = records.get().arrays(py)?;
        let data = arrays.data()?;
        let spec = spec.get();
        let inner = task::run_over(py, &data, n_threads, |exec| {
            let design = spec.design(&data, clip, exec)?.compacted(exec)?;
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
    fn draw_noise<'py>(
        py: Python<'py>,
        spec: &Spec,
        seed: u64,
        stream: u64,
    ) -> PyResult<Vector<'py>> {
        let noise = core::Utility::draw_noise(&spec.inner, seed, stream).map_err(to_python)?;
        Ok(PyArray1::from_vec(py, noise))
    }

    #[pyo3(signature = (spec, noise, *, params, start))]
    fn anchor<'py>(
        &self,
        py: Python<'py>,
        spec: &Bound<'py, Spec>,
        noise: PyReadonlyArray1<'py, f64>,
        params: Optional<'py>,
        start: Optional<'py>,
    ) -> PyResult<UtilityAnchor> {
        let (spec, noise) = (&spec.get().inner, noise.as_slice()?.to_vec());
        let params = params.as_ref().map(|p| p.as_slice()).transpose()?;
        let start = start.as_ref().map(|s| s.as_slice()).transpose()?;
        let inner = self.run(py, |exec| {
            self.inner.anchor(spec, noise, params, start, exec)
        })?;
        Ok(UtilityAnchor { inner })
    }

    fn derivative<'py>(
        &self,
        py: Python<'py>,
        anchor: &UtilityAnchor,
        scale_slope: f64,
        l2_slope: f64,
    ) -> PyResult<Vector<'py>> {
        let derivative = self.inner.derivative(&anchor.inner, scale_slope, l2_slope);
        Ok(PyArray1::from_vec(py, derivative.map_err(to_python)?))
    }

    fn predict<'py>(
        &self,
        py: Python<'py>,
        anchor: &Bound<'py, UtilityAnchor>,
        specs: Vec<Bound<'py, Spec>>,
        n_steps: usize,
    ) -> PyResult<Matrix<'py>> {
        let anchor = &anchor.get().inner;
        let specs: Vec<_> = specs.iter().map(|s| &s.get().inner).collect();
        let n = specs.len();
        let points = self.run(py, |exec| self.inner.predict(anchor, &specs, n_steps, exec))?;
        PyArray1::from_vec(py, points.concat()).reshape([n, self.inner.n_params()])
    }

    #[pyo3(signature = (params, *, width))]
    fn means<'py>(
        &self,
        py: Python<'py>,
        params: PyReadonlyArray2<'py, f64>,
        width: Option<f64>,
    ) -> PyResult<Vector<'py>> {
        let dim = params.shape()[1].max(1);
        let points: Vec<Vec<f64>> = params
            .as_slice()?
            .chunks(dim)
            .map(<[f64]>::to_vec)
            .collect();
        let means = self.run(py, |exec| self.inner.means(metric(width), &points, exec))?;
        Ok(PyArray1::from_vec(py, means))
    }

    #[pyo3(signature = (params, *, width))]
    fn mean_derivatives<'py>(
        &self,
        py: Python<'py>,
        params: PyReadonlyArray1<'py, f64>,
        width: Option<f64>,
    ) -> PyResult<(Vector<'py>, Matrix<'py>)> {
        let params = params.as_slice()?;
        let (gradient, hessian) = self.run(py, |exec| {
            self.inner.mean_derivatives(metric(width), params, exec)
        })?;
        let dim = gradient.len();
        let hessian = PyArray1::from_vec(py, hessian).reshape([dim, dim])?;
        Ok((PyArray1::from_vec(py, gradient), hessian))
    }

    #[pyo3(signature = (l2_strength, *, start))]
    fn center<'py>(
        &self,
        py: Python<'py>,
        l2_strength: f64,
        start: Optional<'py>,
    ) -> PyResult<UtilityCenter> {
        let start = start.as_ref().map(|s| s.as_slice()).transpose()?;
        let inner = self.run(py, |exec| self.inner.center(l2_strength, start, exec))?;
        Ok(UtilityCenter { inner })
    }

    fn mean_shift<'py>(
        &self,
        py: Python<'py>,
        center: &Bound<'py, UtilityCenter>,
        variance: f64,
    ) -> PyResult<Vector<'py>> {
        let center = &center.get().inner;
        let shift = self.run(py, |exec| self.inner.mean_shift(center, variance, exec))?;
        Ok(PyArray1::from_vec(py, shift))
    }

    #[pyo3(signature = (center, variance, shift, *, width))]
    fn smoothed<'py>(
        &self,
        py: Python<'py>,
        center: &Bound<'py, UtilityCenter>,
        variance: f64,
        shift: PyReadonlyArray1<'py, f64>,
        width: Option<f64>,
    ) -> PyResult<(f64, Vector<'py>, Matrix<'py>)> {
        let (center, shift) = (&center.get().inner, shift.as_slice()?);
        let smoothed = self.run(py, |exec| {
            self.inner
                .smoothed(center, metric(width), variance, shift, exec)
        })?;
        let dim = shift.len();
        let hessian = PyArray1::from_vec(py, smoothed.hessian).reshape([dim, dim])?;
        let gradient = PyArray1::from_vec(py, smoothed.gradient);
        Ok((smoothed.value, gradient, hessian))
    }
}
