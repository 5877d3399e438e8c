//! Released bounds and levels of columns: public points, the counts of a table at them, and the choice.

use dpci_core::exec::Executor;
use dpci_core::mechanism as core;
use dpci_core::spec;
use pyo3::prelude::*;

use crate::cost::{Budget, Step};
use crate::errors::to_python;
use crate::records::{Records, with_noise};
use crate::task;
use crate::terms::{Terms, unit_of};

/// Validated public choices of a release of bounds; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct BoundsSpec {
    inner: spec::BoundsSpec,
    #[pyo3(get)]
    share: f64,
    #[pyo3(get)]
    steps: Vec<Step>,
}

#[pymethods]
impl BoundsSpec {
    #[new]
    #[pyo3(signature = (terms, *, columns, budget))]
    fn new(terms: &Terms, columns: Vec<(Option<(f64, f64)>, bool)>, budget: &Budget) -> PyResult<Self> {
        let column = |(range, zeros): (Option<(f64, f64)>, bool)| spec::ColumnRange {
            range: range.map(Into::into),
            zeros,
            found: false,
        };
        let columns = columns.into_iter().map(column).collect();
        let (n_samples, unit) = (terms.inner.n_samples, terms.inner.unit);
        let inner = spec::BoundsSpec::new(columns, n_samples, budget.inner, unit);
        let inner = inner.map_err(to_python)?;
        Ok(Self {
            share: inner.share(),
            steps: inner.steps().map(Step::from).collect(),
            inner,
        })
    }
}

/// Validated public choices of a release of levels; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct LevelsSpec {
    inner: spec::LevelsSpec,
    #[pyo3(get)]
    half_count: f64,
    #[pyo3(get)]
    steps: Vec<Step>,
}

#[pymethods]
impl LevelsSpec {
    #[new]
    #[pyo3(signature = (terms, *, n_columns, budget))]
    fn new(terms: &Terms, n_columns: usize, budget: &Budget) -> PyResult<Self> {
        let (unit, neighbors) = (terms.inner.unit, terms.inner.neighbors);
        let inner = spec::LevelsSpec::new(n_columns, budget.inner, unit, neighbors);
        let inner = inner.map_err(to_python)?;
        Ok(Self {
            half_count: inner.half_count(),
            steps: vec![Step::from(inner.step())],
            inner,
        })
    }
}

/// Validated public choices of a release of counts; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct CountsSpec {
    inner: spec::CountsSpec,
    #[pyo3(get)]
    step: Step,
}

#[pymethods]
impl CountsSpec {
    #[new]
    #[pyo3(signature = (terms, *, n_columns, budget))]
    fn new(terms: &Terms, n_columns: Option<usize>, budget: &Budget) -> PyResult<Self> {
        let (unit, neighbors) = (terms.inner.unit, terms.inner.neighbors);
        let counted = n_columns.map_or(spec::Counted::Records, spec::Counted::Columns);
        let inner = spec::CountsSpec::new(counted, budget.inner, unit, neighbors);
        let inner = inner.map_err(to_python)?;
        Ok(Self {
            step: Step::from(inner.step()),
            inner,
        })
    }
}

#[pyfunction]
#[pyo3(signature = (spec, counts, *, seed))]
pub(crate) fn release_counts(
    py: Python<'_>,
    spec: &Bound<'_, CountsSpec>,
    counts: Vec<u64>,
    seed: Option<u64>,
) -> PyResult<Vec<i64>> {
    let spec = &spec.get().inner;
    task::run(py, |cancel| {
        let exec = Executor::sequential(cancel);
        with_noise!(seed, 0, |g| core::release_counts(spec, &counts, &exec, g))
    })
}

/// A column, its range, whether 0 stands apart, and whether the range was found.
type Counted = (usize, Option<(f64, f64)>, bool, bool);

/// Counts at the public points of a column, and between them.
type Counts = (Vec<u64>, Vec<u64>);

fn counted((column, range, zeros, found): Counted) -> (usize, spec::ColumnRange) {
    let range = range.map(Into::into);
    let known = spec::ColumnRange { range, zeros, found };
    (column, known)
}

#[pyfunction]
#[pyo3(signature = (columns, records, *, max_rows, n_threads))]
pub(crate) fn count_cells(
    py: Python<'_>,
    columns: Vec<Counted>,
    records: &Bound<'_, Records>,
    max_rows: Option<u32>,
    n_threads: Option<usize>,
) -> PyResult<Vec<Counts>> {
    let columns: Vec<_> = columns.into_iter().map(counted).collect();
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let unit = unit_of(data.persons.is_some(), max_rows)?;
    task::run_over(py, &data, n_threads, |exec| {
        let persons = data.persons_of(unit, exec)?;
        let counts = core::count_cells(&columns, &data.rows(), persons.as_ref(), exec)?;
        Ok(counts.into_iter().map(|c| (c.at, c.between)).collect())
    })
}

/// Rows in memory, or a function that counts those of all parts at the points of columns.
#[derive(FromPyObject)]
pub(crate) enum Countable<'py> {
    Memory(Bound<'py, Records>),
    Parts(Py<PyAny>),
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, n_threads, seed))]
pub(crate) fn release_bounds(
    py: Python<'_>,
    spec: &Bound<'_, BoundsSpec>,
    records: Countable<'_>,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<Vec<Option<(f64, f64)>>> {
    let spec = &spec.get().inner;
    let found = match records {
        Countable::Memory(records) => {
            let arrays = records.get().arrays(py)?;
            let data = arrays.data()?;
            task::run_over(py, &data, n_threads, |exec| {
                let (rows, persons) = (data.rows(), data.persons_of(spec.unit(), exec)?);
                let persons = persons.as_ref();
                with_noise!(seed, 0, |g| core::release_bounds(spec, &rows, persons, exec, g))
            })
        }
        Countable::Parts(count) => task::run_asking(
            py,
            |cancel, ask| {
                let exec = Executor::sequential(cancel);
                let count = |columns: &core::CountedColumns| {
                    let columns = columns.iter();
                    let asked = columns.map(|(j, known)| (*j, pair(known.range), known.zeros, known.found));
                    let counts: Vec<Counts> = ask(asked.collect())?;
                    let of_column = |(at, between)| core::ColumnCounts { at, between };
                    Ok(counts.into_iter().map(of_column).collect())
                };
                with_noise!(seed, 0, |g| core::release_counted_bounds(spec, &count, &exec, g))
            },
            |py, columns: Vec<Counted>| count.bind(py).call1((columns,))?.extract(),
        ),
    };
    Ok(found?.into_iter().map(pair).collect())
}

fn pair(bounds: Option<[f64; 2]>) -> Option<(f64, f64)> {
    bounds.map(Into::into)
}

/// Rows in memory, or the numbers of rows of each level of each column.
#[derive(FromPyObject)]
pub(crate) enum Levelled<'py> {
    Memory(Bound<'py, Records>),
    Counts(Vec<Vec<u64>>),
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, n_threads, seed))]
pub(crate) fn release_levels(
    py: Python<'_>,
    spec: &Bound<'_, LevelsSpec>,
    records: Levelled<'_>,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<Vec<Vec<u64>>> {
    let spec = &spec.get().inner;
    match records {
        Levelled::Memory(records) => {
            let arrays = records.get().arrays(py)?;
            let data = arrays.data()?;
            task::run_over(py, &data, n_threads, |exec| {
                let (rows, persons) = (data.rows(), data.persons_of(spec.unit(), exec)?);
                let persons = persons.as_ref();
                with_noise!(seed, 0, |g| core::release_levels(spec, &rows, persons, exec, g))
            })
        }
        Levelled::Counts(counts) => task::run(py, |cancel| {
            let exec = Executor::sequential(cancel);
            let kept = |kept: Vec<bool>| (0..).zip(kept).filter(|(_, kept)| *kept);
            with_noise!(seed, 0, |g| counts
                .iter()
                .map(|each| core::release_kept(spec, each, &exec, g))
                .map(|found| Ok(kept(found?).map(|(level, _)| level).collect()))
                .collect())
        }),
    }
}
