//! Repeated simulated releases for audits. Never private.

use dpci_core::Result;
use dpci_core::design::Design;
use dpci_core::exec::Executor;
use dpci_core::study::{self, Repeated};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::baselines::{FunctionalSpec, HistogramSpec};
use crate::cost::{Seal, Step, steps};
use crate::errors::to_python;
use crate::per_instance::ReportSpec;
use crate::records::Records;
use crate::regression::MomentMatrixSpec;
use crate::spec::Spec;
use crate::task;
use crate::tuning::TuningSpec;

/// Runs of one task, on a thread pool of its own.
fn table(
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

/// The choices of a release that can be repeated.
#[derive(FromPyObject)]
pub(crate) enum AnySpec<'py> {
    Fit(Bound<'py, Spec>),
    Report(Bound<'py, ReportSpec>),
    Functional(Bound<'py, FunctionalSpec>),
    MomentMatrix(Bound<'py, MomentMatrixSpec>),
    Histogram(Bound<'py, HistogramSpec>),
    Tuning(Bound<'py, TuningSpec>),
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, n_runs, seed, n_threads))]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    spec: AnySpec<'py>,
    records: &Bound<'py, Records>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let repetition = Repetition {
        n_runs,
        seed,
        n_threads,
    };
    // Rows are checked against the bounds of each mechanism.
    match &spec {
        AnySpec::Fit(spec) => {
            let spec = spec.get();
            repetition.of(py, &spec.inner, |exec| spec.design(&data, false, exec))
        }
        AnySpec::Report(spec) => {
            let spec = spec.get();
            repetition.of(py, &spec.inner, |exec| spec.fit.design(&data, false, exec))
        }
        AnySpec::Functional(spec) => {
            let spec = spec.get();
            repetition.of(py, &spec.inner, |exec| spec.design(&data, false, exec))
        }
        AnySpec::MomentMatrix(spec) => {
            let spec = spec.get();
            repetition.of(py, &spec.inner, |exec| spec.design(&data, false, exec))
        }
        AnySpec::Histogram(spec) => {
            let spec = spec.get();
            repetition.of(py, &spec.inner, |exec| spec.design(&data, exec))
        }
        AnySpec::Tuning(spec) => {
            let spec = spec.get();
            repetition.of(py, &spec.inner, |exec| {
                spec.first.design(&data, false, exec)
            })
        }
    }
}

/// How often, with which noise and on how many threads.
struct Repetition {
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
}

impl Repetition {
    fn of<'py, 'a>(
        &self,
        py: Python<'py>,
        spec: &impl Repeated,
        design: impl FnOnce(&Executor<'_>) -> Result<Design<'a>> + Send,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        table(py, [self.n_runs, spec.width()], self.n_threads, |exec| {
            study::simulate(spec, &design(exec)?, self.n_runs, self.seed, exec)
        })
    }
}

/// The moments' steps when all margins are at most `margin` in size: with what noise they are released.
#[pyfunction]
pub(crate) fn moment_steps(spec: &Spec, margin: f64) -> PyResult<Vec<Step>> {
    let noise = spec.inner.moment_noise(margin).map_err(to_python)?;
    Ok(steps(&noise.map(|n| n.steps).unwrap_or_default()))
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
