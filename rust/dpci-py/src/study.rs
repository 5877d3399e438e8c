//! Bootstrap studies: repeated simulated fits on samples of one data set. Never private.

use dpci_core::Result;
use dpci_core::design::Design;
use dpci_core::exec::Executor;
use dpci_core::study as core;
use pyo3::prelude::*;

use crate::errors::InvalidInput;
use crate::newton::NewtonSpec;
use crate::records::{Data, Records};
use crate::release::Kind as _;
use crate::spec::Spec;
use crate::task;
use crate::values::{Matrix, Vector};

/// A data set with the configurations that are repeated on samples of it.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Study {
    inner: core::Study,
    n_ways: usize,
}

/// Public choices of one way to fit.
#[derive(FromPyObject)]
enum AnySpec<'py> {
    Minimum(Bound<'py, Spec>),
    Newton(Bound<'py, NewtonSpec>),
}

/// The same, which other threads may read.
#[derive(Clone, Copy)]
enum Plain<'a> {
    Minimum(&'a Spec),
    Newton(&'a NewtonSpec),
}

impl AnySpec<'_> {
    fn plain(&self) -> Plain<'_> {
        match self {
            Self::Minimum(spec) => Plain::Minimum(spec.get()),
            Self::Newton(spec) => Plain::Newton(spec.get()),
        }
    }
}

impl Plain<'_> {
    fn core(self) -> core::StudySpec {
        match self {
            Self::Minimum(spec) => spec.inner.clone().into(),
            Self::Newton(spec) => spec.inner.clone().into(),
        }
    }

    fn design<'a>(self, data: &Data<'a>, clip: bool, exec: &Executor<'_>) -> Result<Design<'a>> {
        match self {
            Self::Minimum(spec) => spec.design(data, clip, exec),
            Self::Newton(spec) => spec.design(data, clip, exec),
        }
    }
}

/// Parameters, lower and upper bounds by replicate.
type Replicates = (Matrix, Matrix, Matrix);

#[pymethods]
impl Study {
    #[new]
    #[pyo3(signature = (specs, records, *, clip, n_threads))]
    fn new(
        py: Python<'_>,
        specs: Vec<AnySpec<'_>>,
        records: &Bound<'_, Records>,
        clip: bool,
        n_threads: Option<usize>,
    ) -> PyResult<Self> {
        let arrays = records.get().arrays(py)?;
        let data = arrays.data()?;
        let specs: Vec<Plain<'_>> = specs.iter().map(AnySpec::plain).collect();
        let first = specs.first().ok_or_else(|| {
            InvalidInput::new_err("a study needs at least one configuration, got none")
        })?;
        let all: Vec<_> = specs.iter().map(|spec| spec.core()).collect();
        let inner = task::run_over(py, &data, n_threads, |exec| {
            let design = first.design(&data, clip, exec)?;
            core::Study::new(&design, &all, exec)
        })?;
        let n_ways = all.len();
        Ok(Self { inner, n_ways })
    }

    /// Standard errors without privacy of the target of each fit by Newton steps; None for others.
    fn std_errors(&self) -> Vec<Option<Vector>> {
        self.inner
            .std_errors()
            .map(|errors| errors.map(Vector::from))
            .collect()
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
        let matrix = |pick: &dyn Fn(&core::Outcome) -> Vec<f64>, c: usize| {
            let values = outcomes.iter().flat_map(|o| pick(&o[c])).collect();
            Matrix::rows(values, n)
        };
        let one = |c| {
            (
                matrix(&|o| o.params.clone(), c),
                matrix(&|o| o.bounds[0].clone(), c),
                matrix(&|o| o.bounds[1].clone(), c),
            )
        };
        Ok((0..self.n_ways).map(one).collect())
    }
}
