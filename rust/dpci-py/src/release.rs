//! Releases: one way for every kind, which says how it checks rows and makes values for Python of them; and what audits repeat.

use dpci_core::Result;
use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::study::{self, Repeated as _};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::baselines::{FunctionalSpec, HistogramSpec};
use crate::cost::{Budget, Step, steps, values_seal};
use crate::errors::to_python;
use crate::fit::Spec;
use crate::names::Named;
use crate::newton::NewtonSpec;
use crate::parts::{Read, Rules, Source};
use crate::per_instance::ReportSpec;
use crate::records::Records;
use crate::regression::MomentMatrixSpec;
use crate::task;
use crate::tuning::TuningSpec;
use crate::values::{Floats, Matrix};

/// Validated public choices of a release, and the release.
pub(crate) trait Kind: Sync {
    /// Released values as Python reads them.
    type Values: Send + for<'py> IntoPyObject<'py>;

    /// How rows are checked and counted.
    fn rules(&self, on_violation: OnViolation) -> Rules;

    /// The release, with noise of the operating system, or of a stream of a seed.
    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<Self::Values>;
}

/// The choices of a release of any kind.
#[derive(FromPyObject)]
pub(crate) enum AnySpec<'py> {
    Fit(Bound<'py, Spec>),
    Newton(Bound<'py, NewtonSpec>),
    Report(Bound<'py, ReportSpec>),
    Functional(Bound<'py, FunctionalSpec>),
    MomentMatrix(Bound<'py, MomentMatrixSpec>),
    Histogram(Bound<'py, HistogramSpec>),
    Tuning(Bound<'py, TuningSpec>),
}

/// The same for a release of whatever kind.
macro_rules! of_kind {
    ($spec:expr, |$kind:ident| $do:expr) => {
        of_kind!($spec, $kind, $do, Fit Newton Report Functional MomentMatrix Histogram Tuning)
    };
    ($spec:expr, $kind:ident, $do:expr, $($name:ident)*) => {
        match $spec {
            $(crate::release::AnySpec::$name(spec) => {
                let $kind = spec.get();
                $do
            })*
        }
    };
}
pub(crate) use of_kind;

/// `progress` is called, on the calling thread, with 1 after each model that a tuning compares. It gets nothing of the data.
#[pyfunction]
#[pyo3(signature = (spec, records, *, on_violation, n_threads, seed, progress=None))]
pub(crate) fn release<'py>(
    py: Python<'py>,
    spec: AnySpec<'py>,
    records: Source<'py>,
    on_violation: Named<OnViolation>,
    n_threads: Option<usize>,
    seed: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    of_kind!(&spec, |kind| {
        let rules = kind.rules(on_violation.0);
        let work = |read: Read<'_>, exec: &Executor<'_>| kind.release(read, seed, exec);
        let values = records.run(py, rules, n_threads, progress, work)?;
        values.into_bound_py_any(py)
    })
}

/// Repeated simulated releases; not private. Rows are checked against the bounds of each mechanism.
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
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    of_kind!(&spec, |kind| {
        let rules = kind.rules(OnViolation::Error);
        table(py, [n_runs, kind.inner.width()], n_threads, |exec| {
            let design = data.design(&rules, exec)?;
            study::simulate(&kind.inner, &design, n_runs, seed, exec)
        })
    })
}

/// Runs of one task, on a thread pool of its own.
fn table(
    py: Python<'_>,
    shape: [usize; 2],
    n_threads: Option<usize>,
    simulate: impl FnOnce(&Executor<'_>) -> Result<Vec<f64>> + Send,
) -> PyResult<Matrix> {
    let rows = task::run(py, |cancel| simulate(&Executor::new(n_threads, usize::MAX, cancel)?))?;
    Ok(Matrix::new(rows, shape))
}

/// The moments' steps when all margins are at most `margin` in size: with what noise they are released.
#[pyfunction]
pub(crate) fn moment_steps(spec: &Spec, margin: f64) -> PyResult<Vec<Step>> {
    let noise = spec.inner.moment_noise(margin).map_err(to_python)?;
    Ok(steps(&noise.map(|n| n.steps).unwrap_or_default()))
}

#[pyfunction]
#[pyo3(signature = (values, *, distance, budget, n_runs, seed, n_threads))]
pub(crate) fn simulate_seals(
    py: Python<'_>,
    values: Floats<'_>,
    distance: f64,
    budget: &Budget,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Matrix> {
    let values = values.as_slice()?;
    let seal = values_seal(values.len(), distance, budget).map_err(to_python)?;
    table(py, [n_runs, values.len()], n_threads, |exec| {
        study::simulate_seals(&seal, values, n_runs, seed, exec)
    })
}
