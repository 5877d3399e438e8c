//! Repeated simulations for audits. Never private.

use dpci_core::Result;
use dpci_core::exec::Executor;
use dpci_core::study;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::cost::{Budget, Step, steps, values_seal};
use crate::errors::to_python;
use crate::spec::Spec;
use crate::task;
use crate::values::Matrix;

/// Runs of one task, on a thread pool of its own.
pub(crate) fn table(
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
    values: PyReadonlyArray1<'_, f64>,
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
