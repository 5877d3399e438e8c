//! Released levels of columns: the choices, and the release.

use dpci_core::exec::Executor;
use dpci_core::mechanism as core;
use dpci_core::spec;
use pyo3::prelude::*;

use crate::cost::{Budget, Step};
use crate::errors::to_python;
use crate::records::{Records, with_noise};
use crate::task;
use crate::terms::Terms;

/// Validated public choices of a release of levels; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct LevelsSpec {
    inner: spec::LevelsSpec,
}

#[pymethods]
impl LevelsSpec {
    #[new]
    #[pyo3(signature = (terms, *, n_columns, budget))]
    fn new(terms: &Terms, n_columns: usize, budget: &Budget) -> PyResult<Self> {
        let (unit, neighbors) = (terms.inner.unit, terms.inner.neighbors);
        let inner = spec::LevelsSpec::new(n_columns, budget.inner, unit, neighbors);
        Ok(Self {
            inner: inner.map_err(to_python)?,
        })
    }

    #[getter]
    fn half_count(&self) -> f64 {
        self.inner.half_count()
    }

    #[getter]
    fn steps(&self) -> Vec<Step> {
        vec![Step::from(self.inner.step())]
    }
}

/// Levels as Python reads them.
#[derive(IntoPyObject)]
pub(crate) struct ReleasedLevels {
    levels: Vec<Vec<u64>>,
    private: bool,
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, n_threads, seed))]
pub(crate) fn release_levels(
    py: Python<'_>,
    spec: &Bound<'_, LevelsSpec>,
    records: &Bound<'_, Records>,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<ReleasedLevels> {
    let spec = &spec.get().inner;
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    task::run_over(py, &data, n_threads, |exec| {
        let (rows, persons) = (data.rows(), data.persons_of(spec.unit(), exec)?);
        let levels = with_noise!(seed, 0, |g| core::release_levels(
            spec,
            &rows,
            persons.as_ref(),
            exec,
            g
        ))?;
        Ok(ReleasedLevels {
            levels,
            private: seed.is_none(),
        })
    })
}

#[pyfunction]
#[pyo3(signature = (spec, counts, *, seed))]
pub(crate) fn release_levels_parts(
    py: Python<'_>,
    spec: &Bound<'_, LevelsSpec>,
    counts: Vec<Vec<u64>>,
    seed: Option<u64>,
) -> PyResult<Vec<Vec<bool>>> {
    let spec = &spec.get().inner;
    task::run(py, |cancel| {
        let exec = Executor::sequential(cancel);
        with_noise!(seed, 0, |g| counts
            .iter()
            .map(|each| core::release_kept(spec, each, &exec, g))
            .collect())
    })
}
