//! Releases: one way for every kind, which says how it checks rows and makes values for Python of them.

use dpci_core::Result;
use dpci_core::design::Design;
use dpci_core::exec::Executor;
use dpci_core::study::Repeated;
use pyo3::prelude::*;

use crate::baselines::{FunctionalSpec, HistogramSpec};
use crate::newton::NewtonSpec;
use crate::parts::{Facts, FirstPass, with_parts};
use crate::per_instance::ReportSpec;
use crate::records::{Data, Records};
use crate::regression::MomentMatrixSpec;
use crate::spec::Spec;
use crate::task;
use crate::tuning::TuningSpec;

/// Validated public choices of a release, and the release.
pub(crate) trait Kind: Sync {
    /// The choices in the core.
    type Core: Repeated;
    /// Released values as Python reads them.
    type Values: Send;

    /// The choices in the core.
    fn core(&self) -> &Self::Core;

    /// The rows, checked against the bounds of the release.
    fn design<'a>(&self, data: &Data<'a>, clip: bool, exec: &Executor<'_>) -> Result<Design<'a>>;

    /// The release, with noise of the operating system, or of a stream of a seed.
    fn release(
        &self,
        design: Design<'_>,
        seed: Option<u64>,
        exec: &Executor<'_>,
    ) -> Result<Self::Values>;
}

/// A release of sums alone, whose rows may be in parts.
pub(crate) trait OfSums: Kind {
    /// Public facts of the parts.
    fn facts<'a>(&self, first: &'a FirstPass, clip: bool) -> Facts<'a>;

    /// The release from sums, see [`Kind::release`].
    fn release_sums(
        &self,
        records: &dyn dpci_core::records::Records,
        seed: Option<u64>,
        exec: &Executor<'_>,
    ) -> Result<Self::Values>;
}

fn release<K: Kind>(
    py: Python<'_>,
    spec: &K,
    records: &Bound<'_, Records>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<K::Values> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    task::run_over(py, &data, n_threads, |exec| {
        spec.release(spec.design(&data, clip, exec)?, seed, exec)
    })
}

/// Functions of one kind of release each.
macro_rules! releases {
    ($($name:ident: $kind:ty),*) => {
        $(
            #[pyfunction]
            #[pyo3(signature = (spec, records, *, clip, n_threads, seed))]
            pub(crate) fn $name(
                py: Python<'_>,
                spec: &Bound<'_, $kind>,
                records: &Bound<'_, Records>,
                clip: bool,
                n_threads: Option<usize>,
                seed: Option<u64>,
            ) -> PyResult<<$kind as Kind>::Values> {
                release(py, spec.get(), records, clip, n_threads, seed)
            }
        )*
    };
}

releases! {
    fit: Spec,
    fit_newton: NewtonSpec,
    release_report: ReportSpec,
    release_functional_mechanism: FunctionalSpec,
    release_moment_matrix: MomentMatrixSpec
}

/// `progress` is called, on the calling thread, with 1 after each model that is compared. It gets nothing of the data.
#[pyfunction]
#[pyo3(signature = (spec, records, *, clip, n_threads, seed, progress))]
pub(crate) fn release_tuning(
    py: Python<'_>,
    spec: &Bound<'_, TuningSpec>,
    records: &Bound<'_, Records>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<<TuningSpec as Kind>::Values> {
    let Some(progress) = progress else {
        return release(py, spec.get(), records, clip, n_threads, seed);
    };
    let (spec, arrays) = (spec.get(), records.get().arrays(py)?);
    let data = arrays.data()?;
    task::run_asking(
        py,
        |cancel, ask| {
            // An exception of the caller's sets the flag of cancellation, which the next step sees.
            let tell = || drop(ask(()));
            let exec = Executor::new(n_threads, data.elements(), cancel)?.telling(&tell);
            spec.release(spec.design(&data, clip, &exec)?, seed, &exec)
        },
        |py, ()| progress.call1(py, (1,)).map(drop),
    )
}

/// Every record has a nearest cell: nothing is clipped.
#[pyfunction]
#[pyo3(signature = (spec, records, *, n_threads, seed))]
pub(crate) fn release_histogram(
    py: Python<'_>,
    spec: &Bound<'_, HistogramSpec>,
    records: &Bound<'_, Records>,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<<HistogramSpec as Kind>::Values> {
    release(py, spec.get(), records, false, n_threads, seed)
}

/// The same for rows in parts, whose sums `evaluate` brings.
macro_rules! releases_of_parts {
    ($($name:ident: $kind:ty),*) => {
        $(
            #[pyfunction]
            #[pyo3(signature = (spec, evaluate, *, first, clip, seed))]
            pub(crate) fn $name(
                py: Python<'_>,
                spec: &Bound<'_, $kind>,
                evaluate: Py<PyAny>,
                first: FirstPass,
                clip: bool,
                seed: Option<u64>,
            ) -> PyResult<<$kind as Kind>::Values> {
                let spec = spec.get();
                with_parts(py, evaluate, spec.facts(&first, clip), |parts, exec| {
                    spec.release_sums(parts, seed, exec)
                })
            }
        )*
    };
}

releases_of_parts! {
    fit_parts: Spec,
    fit_newton_parts: NewtonSpec,
    release_moment_matrix_parts: MomentMatrixSpec
}
