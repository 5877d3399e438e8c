//! Releases: one way for every kind, which says how it checks rows and makes values for Python of them.

use dpci_core::Result;
use dpci_core::exec::Executor;
use dpci_core::study::{self, Repeated};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::audit::table;
use crate::baselines::{FunctionalSpec, HistogramSpec};
use crate::newton::NewtonSpec;
use crate::parts::{Read, Rules, Source};
use crate::per_instance::ReportSpec;
use crate::records::Records;
use crate::regression::MomentMatrixSpec;
use crate::spec::Spec;
use crate::task;
use crate::tuning::TuningSpec;
use crate::values::Matrix;

/// Validated public choices of a release, and the release.
pub(crate) trait Kind: Sync {
    /// The choices in the core.
    type Core: Repeated;
    /// Released values as Python reads them.
    type Values: Send + for<'py> IntoPyObject<'py>;

    /// The choices in the core.
    fn core(&self) -> &Self::Core;

    /// How rows are checked and counted.
    fn rules(&self, clip: bool) -> Rules;

    /// The release, with noise of the operating system, or of a stream of a seed.
    fn release(
        &self,
        read: Read<'_>,
        seed: Option<u64>,
        exec: &Executor<'_>,
    ) -> Result<Self::Values>;
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
#[pyo3(signature = (spec, records, *, clip, n_threads, seed, progress=None))]
pub(crate) fn release<'py>(
    py: Python<'py>,
    spec: AnySpec<'py>,
    records: Source<'py>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    of_kind!(&spec, |kind| {
        let rules = kind.rules(clip);
        let work = |read: Read<'_>, exec: &Executor<'_>| kind.release(read, seed, exec);
        let values = match progress {
            None => records.run(py, rules, n_threads, work),
            Some(progress) => telling(py, &records, &rules, n_threads, progress, work),
        };
        values?.into_bound_py_any(py)
    })
}

fn telling<T: Send>(
    py: Python<'_>,
    records: &Source<'_>,
    rules: &Rules,
    n_threads: Option<usize>,
    progress: Py<PyAny>,
    work: impl FnOnce(Read<'_>, &Executor<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let arrays = records.in_memory()?.arrays(py)?;
    let data = arrays.data()?;
    task::run_asking(
        py,
        |cancel, ask| {
            // An exception of the caller's sets the flag of cancellation, which the next step sees.
            let tell = || drop(ask(()));
            let exec = Executor::new(n_threads, data.elements(), cancel)?.telling(&tell);
            work(Read::held(data.design(rules, &exec)?), &exec)
        },
        |py, ()| progress.call1(py, (1,)).map(drop),
    )
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
        let (core, rules) = (kind.core(), kind.rules(false));
        table(py, [n_runs, core.width()], n_threads, |exec| {
            study::simulate(core, &data.design(&rules, exec)?, n_runs, seed, exec)
        })
    })
}
