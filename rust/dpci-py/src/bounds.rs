//! Released bounds of columns: public points, the counts of a table at them, and the choice.

use dpci_core::design::Persons;
use dpci_core::mechanism as core;
use dpci_core::spec;
use pyo3::prelude::*;

use crate::cost::{Budget, Step};
use crate::errors::to_python;
use crate::records::{Records, with_noise};
use crate::spec::unit_of;
use crate::task;

/// Validated public choices of a release of bounds; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct BoundsSpec {
    inner: spec::BoundsSpec,
}

#[pymethods]
impl BoundsSpec {
    #[new]
    #[pyo3(signature = (*, columns, n_samples, budget, persons=false, max_rows=None))]
    fn new(
        columns: Vec<(Option<(f64, f64)>, bool)>,
        n_samples: usize,
        budget: &Budget,
        persons: bool,
        max_rows: Option<u32>,
    ) -> PyResult<Self> {
        let column = |(range, zeros): (Option<(f64, f64)>, bool)| spec::ColumnRange {
            range: range.map(Into::into),
            zeros,
        };
        let columns = columns.into_iter().map(column).collect();
        let unit = unit_of(persons, max_rows)?;
        let inner = spec::BoundsSpec::new(columns, n_samples, budget.inner, unit);
        Ok(Self {
            inner: inner.map_err(to_python)?,
        })
    }

    #[getter]
    fn share(&self) -> f64 {
        self.inner.share()
    }

    #[getter]
    fn steps(&self) -> Vec<Step> {
        self.inner.steps().map(Step::from).collect()
    }
}

/// Bounds as Python reads them.
#[derive(IntoPyObject)]
pub(crate) struct ReleasedBounds {
    bounds: Vec<Option<(f64, f64)>>,
    steps: Vec<Step>,
    private: bool,
}

fn pair(bounds: Option<[f64; 2]>) -> Option<(f64, f64)> {
    bounds.map(Into::into)
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, n_threads, seed))]
pub(crate) fn release_bounds(
    py: Python<'_>,
    spec: &Bound<'_, BoundsSpec>,
    records: &Bound<'_, Records>,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<ReleasedBounds> {
    let spec = &spec.get().inner;
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    task::run_over(py, &data, n_threads, |exec| {
        let ids = data.persons();
        let persons = ids.map(|ids| Persons::new(ids, spec.unit(), exec));
        let (rows, persons) = (data.rows(), persons.transpose()?);
        let bounds = with_noise!(seed, 0, |g| core::release_bounds(
            spec,
            &rows,
            persons.as_ref(),
            exec,
            g
        ))?;
        Ok(ReleasedBounds {
            bounds: bounds.into_iter().map(pair).collect(),
            steps: spec.steps().map(Step::from).collect(),
            private: seed.is_none(),
        })
    })
}
