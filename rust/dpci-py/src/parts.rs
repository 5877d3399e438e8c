//! Rows in memory or in parts, checked by the same rules; sums that travel between processes.

use dpci_core::design::{Design, OnViolation, RowBounds};
use dpci_core::error::check_length;
use dpci_core::exec::Executor;
use dpci_core::loss::{Continued, Loss as CoreLoss, Targets};
use dpci_core::privacy::Neighbors;
use dpci_core::records::{self as core, Part, PartPersons, Parts, Records};
use dpci_core::row_domain::RowDomain;
use dpci_core::spec::Terms;
use dpci_core::unit::{Unit, Weighting};
use dpci_core::{Error, Result};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::errors::{InvalidInput, to_python};
use crate::loss::Loss;
use crate::names::Named;
use crate::records::Records as Held;
use crate::rows::Rows as Domain;
use crate::task;
use crate::terms::unit_of;
use crate::values::{Floats, Vector};

/// Sums that are requested of the records, and the key of the fit; immutable and picklable.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Request {
    inner: core::KeyedRequest,
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    point: Vector,
    #[pyo3(get)]
    key: [u8; 32],
}

#[pymethods]
impl Request {
    #[new]
    fn new(name: &str, point: Floats<'_>, key: [u8; 32]) -> PyResult<Self> {
        let request = core::Request::new(name, point.as_slice()?.to_vec()).map_err(to_python)?;
        Ok(Self::keyed(request, key))
    }

    fn __getnewargs__(&self) -> (&str, Vector, [u8; 32]) {
        (&self.name, self.point.clone(), self.key)
    }
}

impl Request {
    fn keyed(request: core::Request, key: [u8; 32]) -> Self {
        Self {
            name: request.name().into_owned(),
            point: Vector(request.point()),
            inner: core::KeyedRequest {
                request,
                key: core::FingerprintKey::new(key),
            },
            key,
        }
    }
}

/// Sums over some of the records; immutable and picklable.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Sums {
    inner: core::Sums,
}

#[pymethods]
impl Sums {
    #[new]
    fn new(n_rows: usize, n_records: usize, fingerprint: u128, numbers: Floats<'_>) -> PyResult<Self> {
        let numbers = numbers.as_slice()?;
        let inner = core::Sums::from_numbers(n_rows, n_records, fingerprint, numbers);
        Ok(Self {
            inner: inner.map_err(to_python)?,
        })
    }

    #[getter]
    fn n_rows(&self) -> usize {
        self.inner.n_rows()
    }

    #[getter]
    fn n_records(&self) -> usize {
        self.inner.n_records()
    }

    fn check_same_rows(&self, other: &Self) -> PyResult<()> {
        other.inner.check_same_rows(&self.inner).map_err(to_python)
    }

    fn merge(&self, other: &Self) -> PyResult<Self> {
        let mut inner = self.inner.clone();
        inner.merge(&other.inner).map_err(to_python)?;
        Ok(Self { inner })
    }

    fn __getnewargs__(&self) -> (usize, usize, u128, Vector) {
        let numbers = Vector(self.inner.numbers());
        let [n_rows, n_records] = [self.inner.n_rows(), self.inner.n_records()];
        (n_rows, n_records, self.inner.fingerprint(), numbers)
    }
}

/// Weights with their bound; those of rows beyond their bounds alone, which the check finds, are `None`.
fn weights_of(
    weights: Option<&[f64]>,
    bound: Option<f64>,
    on_violation: OnViolation,
) -> PyResult<Option<(&[f64], Weighting)>> {
    let weighting = bound.map(|bound| Weighting::new(bound, bound));
    match (weights, weighting.transpose().map_err(to_python)?) {
        (Some(weights), Some(weighting)) => Ok(Some((weights, weighting))),
        (None, None) => Ok(None),
        (None, Some(_)) if on_violation == OnViolation::Weight => Ok(None),
        (weights, _) => Err(alone("weights", "weight_bound", weights.is_some())),
    }
}

#[pyfunction]
#[pyo3(signature = (request, records, *, loss, row_norm, intercept, on_violation, n_threads, tags=None, max_rows=None, weight_bound=None))]
pub(crate) fn part_sums(
    py: Python<'_>,
    request: &Bound<'_, Request>,
    records: &Bound<'_, Held>,
    loss: &Bound<'_, Loss>,
    row_norm: Domain<'_>,
    intercept: Option<f64>,
    on_violation: Named<OnViolation>,
    n_threads: Option<usize>,
    tags: Option<PyReadonlyArray2<'_, u64>>,
    max_rows: Option<u32>,
    weight_bound: Option<f64>,
) -> PyResult<Sums> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let persons = match (data.persons, &tags) {
        (Some(numbers), Some(tags)) => {
            let (tags, rest) = tags.as_slice()?.as_chunks();
            check_length("the tags of persons", 0, rest.len()).map_err(to_python)?;
            let unit = unit_of(true, max_rows)?;
            Some(PartPersons { numbers, tags, unit })
        }
        (None, None) => None,
        (numbers, _) => return Err(alone("persons", "tags", numbers.is_some())),
    };
    let weights = weights_of(data.weights, weight_bound, on_violation.0)?;
    let (request, loss) = (request.get(), loss.get());
    let bounds = RowBounds {
        rows: row_norm.domain(),
        targets: loss.inner.targets(),
        on_violation: on_violation.0,
    };
    // Newton steps alone move rows, and they continue a loss that has no bounds, wherever the rows are.
    let continued = match request.inner.request {
        core::Request::Moved { .. } => Continued::new(&loss.inner),
        _ => None,
    };
    let counted = continued.as_ref().map(|loss| loss as &dyn CoreLoss);
    let counted = counted.unwrap_or(&*loss.inner);
    let inner = task::run_over(py, &data, n_threads, |exec| {
        core::part_sums(
            &request.inner,
            Part {
                rows: data.rows(),
                targets: data.targets(),
                persons,
                weights,
            },
            counted,
            intercept,
            &bounds,
            exec,
        )
    })?;
    Ok(Sums { inner })
}

/// The refusal of one of two arguments that are given together.
fn alone(first: &str, second: &str, is_first: bool) -> PyErr {
    let given = if is_first { first } else { second };
    InvalidInput::new_err(format!(
        "{first} and {second} must be given together, got {given} alone"
    ))
}

/// Rules by which rows are checked and counted.
#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) bounds: RowBounds,
    pub(crate) intercept: Option<f64>,
    pub(crate) unit: Unit,
    pub(crate) weighting: Option<Weighting>,
}

impl Rules {
    /// Rules that public choices make.
    pub(crate) fn new(
        rows: RowDomain,
        targets: Targets,
        intercept: Option<f64>,
        terms: &Terms,
        on_violation: OnViolation,
    ) -> Self {
        Self {
            bounds: RowBounds {
                rows,
                targets,
                on_violation,
            },
            intercept,
            unit: terms.unit,
            weighting: terms.weighting,
        }
    }

    /// No bound on the rows, for functions that make no privacy claim.
    pub(crate) fn unbounded(loss: &Loss, intercept: Option<f64>, terms: Option<&Terms>) -> Self {
        let rows = Terms::of_rows(0, Neighbors::ReplaceOne);
        let (ball, targets) = (RowDomain::Ball(f64::MAX), loss.inner.targets());
        Self::new(ball, targets, intercept, terms.unwrap_or(&rows), OnViolation::Error)
    }
}

/// Records that are read: in memory, or sums of those in parts.
pub(crate) enum Read<'a> {
    Held(Box<Design<'a>>),
    Summed(&'a dyn Records),
}

impl<'a> Read<'a> {
    pub(crate) fn held(design: Design<'a>) -> Self {
        Self::Held(Box::new(design))
    }

    pub(crate) fn records(&self) -> &dyn Records {
        match self {
            Self::Held(design) => &**design,
            Self::Summed(parts) => *parts,
        }
    }

    /// Rows in memory, equal ones merged.
    pub(crate) fn compacted(self, exec: &Executor<'_>) -> Result<Self> {
        match self {
            Self::Held(design) => Ok(Self::held(design.compacted(exec)?)),
            summed @ Self::Summed(_) => Ok(summed),
        }
    }

    /// Rows in memory, for what sums are not enough.
    pub(crate) fn design(self) -> Result<Design<'a>> {
        match self {
            Self::Held(design) => Ok(*design),
            Self::Summed(_) => Err(Error::Unsupported(
                "rows must be in memory for this function, got rows in parts".into(),
            )),
        }
    }
}

/// Records as Python has them: in memory, or in parts.
#[derive(FromPyObject)]
pub(crate) enum Source<'py> {
    Memory(Bound<'py, Held>),
    Parts(Described),
}

/// The attributes of rows in parts. The request and the sums are those of a first pass: every later one has its key and must find its rows.
#[derive(FromPyObject)]
pub(crate) struct Described {
    /// From a [`Request`] to its [`Sums`].
    evaluate: Py<PyAny>,
    first: (Py<Request>, Py<Sums>),
    n_columns: usize,
}

impl Source<'_> {
    /// Runs `work` on the records, checked by these rules. `progress` is called, on the calling thread, with 1 for each step of which work
    /// on rows in memory tells. It gets nothing of the data.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        rules: Rules,
        n_threads: Option<usize>,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(Read<'_>, &Executor<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let records = match self {
            Self::Memory(records) => records.get(),
            Self::Parts(parts) => return parts.run(py, rules, work),
        };
        let arrays = records.arrays(py)?;
        let data = arrays.data()?;
        let work = |exec: &Executor<'_>| work(Read::held(data.design(&rules, exec)?), exec);
        let Some(progress) = progress else {
            return task::run_over(py, &data, n_threads, work);
        };
        task::run_asking(
            py,
            |cancel, ask| {
                // An exception of the caller's sets the flag of cancellation, which the next step sees.
                let tell = || drop(ask(()));
                work(&Executor::new(n_threads, data.elements(), cancel)?.telling(&tell))
            },
            |py, ()| progress.call1(py, (1,)).map(drop),
        )
    }
}

impl Described {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        rules: Rules,
        work: impl FnOnce(Read<'_>, &Executor<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let (request, first) = (self.first.0.get(), &self.first.1.get().inner);
        let n_params = self.n_columns + usize::from(rules.intercept.is_some());
        let answer = |py: Python<'_>, asked: core::Request| -> PyResult<core::Sums> {
            let asked = Request::keyed(asked, request.key);
            let sums = self.evaluate.bind(py).call1((asked,))?;
            Ok(sums.cast::<Sums>()?.get().inner.clone())
        };
        task::run_asking(
            py,
            |cancel, ask| {
                let evaluate = |request: &core::Request| ask(request.clone());
                let weight_bound = rules.weighting.map(|weighting| weighting.bound);
                let parts = Parts::new(first, n_params, rules.intercept, rules.bounds, &evaluate)?;
                let parts = parts.counted(rules.unit, weight_bound);
                work(Read::Summed(&parts), &Executor::sequential(cancel))
            },
            answer,
        )
    }
}
