//! Bootstrap studies: repeated simulated fits on samples of one data set. Never private.

use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::study as core;
use pyo3::prelude::*;

use crate::errors::InvalidInput;
use crate::names::Named;
use crate::parts::Source;
use crate::release::{AnySpec, Kind as _, of_kind};
use crate::task;
use crate::values::{Matrix, Vector};

/// A data set with the configurations that are repeated on samples of it.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Study {
    inner: core::Study,
    n_ways: usize,
}

/// One way to fit, as the core repeats it.
fn core_of(spec: &AnySpec<'_>) -> PyResult<core::StudySpec> {
    match spec {
        AnySpec::Fit(spec) => Ok(spec.get().inner.clone().into()),
        AnySpec::Newton(spec) => Ok(spec.get().inner.clone().into()),
        _ => Err(InvalidInput::new_err(
            "a study must repeat fits, got another kind of release",
        )),
    }
}

/// Parameters, lower and upper bounds by replicate.
type Replicates = (Matrix, Matrix, Matrix);

#[pymethods]
impl Study {
    #[new]
    #[pyo3(signature = (specs, records, *, on_violation, n_threads))]
    fn new(
        py: Python<'_>,
        specs: Vec<AnySpec<'_>>,
        records: Source<'_>,
        on_violation: Named<OnViolation>,
        n_threads: Option<usize>,
    ) -> PyResult<Self> {
        let first = specs
            .first()
            .ok_or_else(|| InvalidInput::new_err("a study needs at least one configuration, got none"))?;
        let rules = of_kind!(first, |kind| kind.rules(on_violation.0));
        let all = specs.iter().map(core_of).collect::<PyResult<Vec<_>>>()?;
        let inner = records.run(py, rules, n_threads, None, |read, exec| {
            core::Study::new(&read.design()?, &all, exec)
        })?;
        let n_ways = all.len();
        Ok(Self { inner, n_ways })
    }

    /// Standard errors without privacy of the target of each fit by Newton steps; None for others.
    fn std_errors(&self) -> Vec<Option<Vector>> {
        self.inner.std_errors().map(|errors| errors.map(Vector::from)).collect()
    }

    fn targets(&self) -> Vec<Vector> {
        self.inner.targets().map(Vector::from).collect()
    }

    #[getter]
    fn n_distinct(&self) -> usize {
        self.inner.n_distinct()
    }

    #[pyo3(signature = (start, stop, *, seed, level, n_threads))]
    fn run(
        &self,
        py: Python<'_>,
        start: u64,
        stop: u64,
        seed: u64,
        level: Option<f64>,
        n_threads: Option<usize>,
    ) -> PyResult<Vec<Replicates>> {
        let outcomes = task::run(py, |cancel| {
            let exec = Executor::new(n_threads, usize::MAX, cancel)?;
            self.inner.run(start..stop, seed, level, &exec)
        })?;
        let n = outcomes.len();
        let matrix = |c: usize, of: fn(&core::Outcome) -> &[f64]| {
            let values = outcomes.iter().flat_map(|o| of(&o[c])).copied();
            Matrix::rows(values.collect(), n)
        };
        let one = |c| {
            let (lower, upper) = (matrix(c, |o| &o.bounds[0]), matrix(c, |o| &o.bounds[1]));
            (matrix(c, |o| &o.params), lower, upper)
        };
        Ok((0..self.n_ways).map(one).collect())
    }
}
