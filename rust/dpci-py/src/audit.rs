//! Repeated simulated releases for audits. Never private.

use dpci_core::Result;
use dpci_core::exec::Executor;
use dpci_core::study::{self, Repeated as _};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::baselines::{FunctionalSpec, HistogramSpec};
use crate::cost::{Seal, Step, steps};
use crate::errors::to_python;
use crate::newton::NewtonSpec;
use crate::per_instance::ReportSpec;
use crate::records::Records;
use crate::regression::MomentMatrixSpec;
use crate::release::Kind;
use crate::spec::Spec;
use crate::task;
use crate::tuning::TuningSpec;
use crate::values::Matrix;

/// Runs of one task, on a thread pool of its own.
fn table(
    py: Python<'_>,
    shape: [usize; 2],
    n_threads: Option<usize>,
    simulate: impl FnOnce(&Executor<'_>) -> Result<Vec<f64>> + Send,
) -> PyResult<Matrix> {
    let rows = task::run(py, |cancel| {
        simulate(&Executor::new(n_threads, usize::MAX, cancel)?)
    })?;
    Ok(Matrix::new(rows, shape))
}

/// The choices of a release that can be repeated.
#[derive(FromPyObject)]
pub(crate) enum AnySpec<'py> {
    Fit(Bound<'py, Spec>),
    Report(Bound<'py, ReportSpec>),
    Functional(Bound<'py, FunctionalSpec>),
    MomentMatrix(Bound<'py, MomentMatrixSpec>),
    Histogram(Bound<'py, HistogramSpec>),
    Tuning(Bound<'py, TuningSpec>),
    Newton(Bound<'py, NewtonSpec>),
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, n_runs, seed, n_threads))]
pub(crate) fn simulate(
    py: Python<'_>,
    spec: AnySpec<'_>,
    records: &Bound<'_, Records>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Matrix> {
    match &spec {
        AnySpec::Fit(spec) => repeat(py, spec.get(), records, n_runs, seed, n_threads),
        AnySpec::Report(spec) => repeat(py, spec.get(), records, n_runs, seed, n_threads),
        AnySpec::Functional(spec) => repeat(py, spec.get(), records, n_runs, seed, n_threads),
        AnySpec::MomentMatrix(spec) => repeat(py, spec.get(), records, n_runs, seed, n_threads),
        AnySpec::Histogram(spec) => repeat(py, spec.get(), records, n_runs, seed, n_threads),
        AnySpec::Tuning(spec) => repeat(py, spec.get(), records, n_runs, seed, n_threads),
        AnySpec::Newton(spec) => repeat(py, spec.get(), records, n_runs, seed, n_threads),
    }
}

/// Rows are checked against the bounds of each mechanism.
fn repeat<K: Kind>(
    py: Python<'_>,
    spec: &K,
    records: &Bound<'_, Records>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Matrix> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let width = spec.core().width();
    table(py, [n_runs, width], n_threads, |exec| {
        let design = spec.design(&data, false, exec)?;
        study::simulate(spec.core(), &design, n_runs, seed, exec)
    })
}

/// The moments' steps when all margins are at most `margin` in size: with what noise they are released.
#[pyfunction]
pub(crate) fn moment_steps(spec: &Spec, margin: f64) -> PyResult<Vec<Step>> {
    let noise = spec.inner.moment_noise(margin).map_err(to_python)?;
    Ok(steps(&noise.map(|n| n.steps).unwrap_or_default()))
}

#[pyfunction]
#[pyo3(signature = (seal, values, *, n_runs, seed, n_threads))]
pub(crate) fn simulate_seals(
    py: Python<'_>,
    seal: &Bound<'_, Seal>,
    values: PyReadonlyArray1<'_, f64>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Matrix> {
    let (seal, values) = (&seal.get().inner, values.as_slice()?);
    table(py, [n_runs, values.len()], n_threads, |exec| {
        study::simulate_seals(seal, values, n_runs, seed, exec)
    })
}
