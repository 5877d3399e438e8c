//! Repeated simulated releases for audits. Never private.

use dpci_core::Result;
use dpci_core::exec::Executor;
use dpci_core::privacy::Cost;
use dpci_core::spec;
use dpci_core::study;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::baselines::{FunctionalSpec, HistogramSpec};
use crate::data::{Data, Features};
use crate::errors::to_python;
use crate::per_instance::ReportSpec;
use crate::spec::{Spec, budget_of, steps};
use crate::task;

/// Runs of one task, on a thread pool of its own.
pub(crate) fn table(
    py: Python<'_>,
    shape: [usize; 2],
    n_threads: Option<usize>,
    simulate: impl FnOnce(&Executor<'_>) -> Result<Vec<f64>> + Send,
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let rows = task::run(py, |cancel| {
        simulate(&Executor::new(n_threads, usize::MAX, cancel)?)
    })?;
    PyArray1::from_vec(py, rows).reshape(shape)
}

#[pyfunction]
#[pyo3(signature = (spec, x, y, *, n_runs, seed, n_threads))]
pub(crate) fn simulate_releases<'py>(
    py: Python<'py>,
    spec: &Bound<'py, Spec>,
    x: Features<'py>,
    y: PyReadonlyArray1<'py, f64>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let data = Data::new(&x, &y)?;
    let spec = spec.get();
    let shape = [n_runs, study::release_width(&spec.inner)];
    table(py, shape, n_threads, |exec| {
        let design = data.design(spec, false, exec)?;
        study::simulate_releases(&spec.inner, &design, n_runs, seed, exec)
    })
}

#[pyfunction]
#[pyo3(signature = (spec, x, y, *, n_runs, seed, n_threads))]
pub(crate) fn simulate_reports<'py>(
    py: Python<'py>,
    spec: &Bound<'py, ReportSpec>,
    x: Features<'py>,
    y: PyReadonlyArray1<'py, f64>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let data = Data::new(&x, &y)?;
    let spec = spec.get();
    let shape = [n_runs, study::report_width(&spec.inner)];
    table(py, shape, n_threads, |exec| {
        let design = data.design(&spec.fit, false, exec)?;
        study::simulate_reports(&spec.inner, &design, n_runs, seed, exec)
    })
}

#[pyfunction]
#[pyo3(signature = (spec, x, y, *, n_runs, seed, n_threads))]
pub(crate) fn simulate_functional_mechanism<'py>(
    py: Python<'py>,
    spec: &Bound<'py, FunctionalSpec>,
    x: Features<'py>,
    y: PyReadonlyArray1<'py, f64>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let data = Data::new(&x, &y)?;
    let spec = spec.get();
    let shape = [n_runs, study::functional_width(&spec.inner)];
    table(py, shape, n_threads, |exec| {
        let design = spec.design(&data, false, exec)?;
        study::simulate_functional_mechanism(&spec.inner, &design, n_runs, seed, exec)
    })
}

#[pyfunction]
#[pyo3(signature = (spec, x, y, *, n_runs, seed, n_threads))]
pub(crate) fn simulate_histograms<'py>(
    py: Python<'py>,
    spec: &Bound<'py, HistogramSpec>,
    x: Features<'py>,
    y: PyReadonlyArray1<'py, f64>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let data = Data::new(&x, &y)?;
    let spec = spec.get();
    let shape = [n_runs, spec.inner.grid().n_cells()];
    table(py, shape, n_threads, |exec| {
        let design = spec.design(&data, exec)?;
        study::simulate_histograms(&spec.inner, &design, n_runs, seed, exec)
    })
}

/// The moments' steps when all margins are at most `margin` in size: with what noise they are released.
#[pyfunction]
pub(crate) fn moment_steps<'py>(
    py: Python<'py>,
    spec: &Bound<'py, Spec>,
    margin: f64,
) -> PyResult<Bound<'py, PyList>> {
    let noise = spec.get().inner.moment_noise(margin).map_err(to_python)?;
    steps(py, &noise.map(|n| n.steps).unwrap_or_default())
}

/// How a vector is sealed; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Seal {
    inner: spec::Seal,
}

#[pymethods]
impl Seal {
    #[new]
    #[pyo3(signature = (*, dim, distance, notion, epsilon, rho, delta))]
    fn new(
        dim: usize,
        distance: f64,
        notion: &str,
        epsilon: f64,
        rho: f64,
        delta: f64,
    ) -> PyResult<Self> {
        let cost = Cost::of(budget_of(notion, epsilon, rho, delta)?);
        let inner = spec::Seal::new(spec::Part::Values, dim, distance, cost).map_err(to_python)?;
        Ok(Self { inner })
    }

    #[getter]
    fn lattice(&self) -> f64 {
        self.inner.lattice()
    }

    /// Law of the integer noise and its scale, in lattice steps.
    fn noise(&self) -> (&'static str, u64) {
        (self.inner.family().name(), self.inner.scale())
    }
}

#[pyfunction]
#[pyo3(signature = (seal, values, *, n_runs, seed, n_threads))]
pub(crate) fn simulate_seals<'py>(
    py: Python<'py>,
    seal: &Bound<'py, Seal>,
    values: PyReadonlyArray1<'py, f64>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (seal, values) = (&seal.get().inner, values.as_slice()?);
    table(py, [n_runs, values.len()], n_threads, |exec| {
        study::simulate_seals(seal, values, n_runs, seed, exec)
    })
}
