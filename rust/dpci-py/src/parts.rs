//! Rows in parts: sums that travel between processes, and computations whose sums Python's code brings.

use dpci_core::design::{OnViolation, RowBounds};
use dpci_core::erm::minimize_risk;
use dpci_core::error::check_length;
use dpci_core::exec::Executor;
use dpci_core::linalg::check_matrix_dim;
use dpci_core::loss::{Continued, Loss as CoreLoss};
use dpci_core::objective::Objective;
use dpci_core::records::{self as core, Part, PartPersons, Parts, Records};
use dpci_core::row_domain::RowDomain;
use dpci_core::solver::Options;
use dpci_core::unit::{Unit, Weighting};
use dpci_core::{Error, Result};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::blocks::{Found, check_l2_strength, method_of, regularised_moments};
use crate::errors::to_python;
use crate::loss::Loss;
use crate::records::{Data, Features, on_violation};
use crate::rows::Rows as Domain;
use crate::spec::unit_of;
use crate::task;
use crate::values::{Matrix, Vector};

/// Sums that are requested of the records, and the key of the fit; immutable and picklable.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Request {
    inner: core::KeyedRequest,
    key: [u8; 32],
}

#[pymethods]
impl Request {
    #[new]
    fn new(name: &str, point: PyReadonlyArray1<'_, f64>, key: [u8; 32]) -> PyResult<Self> {
        let request = core::Request::new(name, point.as_slice()?.to_vec()).map_err(to_python)?;
        Ok(Self::keyed(request, key))
    }

    #[getter]
    fn name(&self) -> String {
        self.inner.request.name().into_owned()
    }

    #[getter]
    fn point(&self) -> Vector {
        Vector(self.inner.request.point())
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.key)
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> (String, Vector, Bound<'py, PyBytes>) {
        (self.name(), self.point(), self.key(py))
    }
}

impl Request {
    fn keyed(request: core::Request, key: [u8; 32]) -> Self {
        let inner = core::KeyedRequest {
            request,
            key: core::FingerprintKey::new(key),
        };
        Self { inner, key }
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
    fn new(
        n_rows: usize,
        n_records: usize,
        fingerprint: u128,
        numbers: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Self> {
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

#[pyfunction]
#[pyo3(signature = (request, x, y, *, loss, row_norm, intercept, clip, n_threads, persons=None, max_rows=None, weights=None, weight_bound=None))]
pub(crate) fn part_sums(
    py: Python<'_>,
    request: &Bound<'_, Request>,
    x: Features<'_>,
    y: PyReadonlyArray1<'_, f64>,
    loss: &Bound<'_, Loss>,
    row_norm: Domain<'_>,
    intercept: Option<f64>,
    clip: bool,
    n_threads: Option<usize>,
    persons: Option<(PyReadonlyArray1<'_, i64>, PyReadonlyArray2<'_, u64>)>,
    max_rows: Option<u32>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    weight_bound: Option<f64>,
) -> PyResult<Sums> {
    let data = Data::new(&x, &y)?;
    let unit = unit_of(persons.is_some(), max_rows)?;
    let persons = persons.as_ref();
    let persons = persons.map(|(numbers, tags)| {
        let (tags, rest) = tags.as_slice()?.as_chunks();
        check_length("the tags of persons", 0, rest.len()).map_err(to_python)?;
        let numbers = numbers.as_slice()?;
        PyResult::Ok(PartPersons {
            numbers,
            tags,
            unit,
        })
    });
    let persons = persons.transpose()?;
    let weights = weights.as_ref().map(|w| w.as_slice()).transpose()?;
    let weighting = weight_bound.map(|bound| Weighting::new(bound, bound));
    let weights = match (weights, weighting.transpose().map_err(to_python)?) {
        (Some(weights), Some(weighting)) => Some((weights, weighting)),
        (None, None) => None,
        (weights, _) => {
            return Err(to_python(Error::Unsupported(format!(
                "weights and weight_bound must be given together, got {} alone",
                weights.map_or("weight_bound", |_| "weights")
            ))));
        }
    };
    let (request, loss) = (request.get(), loss.get());
    let bounds = RowBounds {
        rows: row_norm.domain(),
        targets: loss.inner.targets(),
        on_violation: on_violation(clip),
    };
    // Newton steps alone move rows, and they continue a loss that has no bounds, wherever the rows are.
    let continued = match request.inner.request {
        core::Request::Moved { .. } => Continued::new(&loss.inner),
        _ => None,
    };
    let counted: &dyn CoreLoss = match &continued {
        Some(continued) => continued,
        None => &*loss.inner,
    };
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

/// Facts about records in parts before a fit sums over them.
#[derive(Clone)]
pub(crate) struct Facts<'a> {
    pub(crate) first: &'a FirstPass,
    pub(crate) n_params: usize,
    pub(crate) intercept: Option<f64>,
    pub(crate) bounds: RowBounds,
    pub(crate) unit: Unit,
    pub(crate) weight_bound: Option<f64>,
}

/// The request and the sums of a first pass: every later one has its key and must find its rows.
#[derive(FromPyObject)]
pub(crate) struct FirstPass(Py<Request>, Py<Sums>);

/// Runs `work` on records whose sums `evaluate`, a function from [`Request`] to [`Sums`], brings.
pub(crate) fn with_parts<T: Send>(
    py: Python<'_>,
    evaluate: Py<PyAny>,
    facts: Facts<'_>,
    work: impl FnOnce(&dyn Records, &Executor<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let FirstPass(request, first) = facts.first;
    let key = request.get().key;
    let answer = move |py: Python<'_>, request: core::Request| -> PyResult<core::Sums> {
        let sums = evaluate.bind(py).call1((Request::keyed(request, key),))?;
        Ok(sums.cast::<Sums>()?.get().inner.clone())
    };
    task::run_asking(
        py,
        |cancel, ask| {
            let evaluate = |request: &core::Request| ask(request.clone());
            let Facts {
                n_params,
                intercept,
                bounds,
                unit,
                weight_bound,
                ..
            } = facts;
            let first = &first.get().inner;
            let parts = Parts::new(first, n_params, intercept, bounds, &evaluate)?;
            let parts = parts.counted(unit, weight_bound);
            work(&parts, &Executor::sequential(cancel))
        },
        answer,
    )
}

/// Facts of records without a bound on their rows, for functions that make no privacy claim.
fn unbounded<'a>(
    first: &'a FirstPass,
    n_params: usize,
    loss: &Loss,
    intercept: Option<f64>,
) -> Facts<'a> {
    Facts {
        first,
        n_params,
        intercept,
        bounds: RowBounds {
            rows: RowDomain::Ball(f64::MAX),
            targets: loss.inner.targets(),
            on_violation: OnViolation::Error,
        },
        unit: Unit::Row,
        weight_bound: None,
    }
}

#[pyfunction]
#[pyo3(signature = (evaluate, *, first, n_params, loss, l2_strength, radius, intercept, linear_term, start, solver, tolerance, max_iterations))]
pub(crate) fn minimize_erm_parts(
    py: Python<'_>,
    evaluate: Py<PyAny>,
    first: FirstPass,
    n_params: usize,
    loss: &Bound<'_, Loss>,
    l2_strength: f64,
    radius: Option<f64>,
    intercept: Option<f64>,
    linear_term: Option<PyReadonlyArray1<'_, f64>>,
    start: Option<PyReadonlyArray1<'_, f64>>,
    solver: &str,
    tolerance: f64,
    max_iterations: usize,
) -> PyResult<Found> {
    let linear_term = linear_term.as_ref().map(|a| a.as_slice()).transpose()?;
    let start = start.as_ref().map(|a| a.as_slice()).transpose()?;
    let loss = loss.get();
    let options = Options {
        method: method_of(solver)?,
        tolerance,
        max_iterations,
        radius,
    };
    let facts = unbounded(&first, n_params, loss, intercept);
    let minimum = with_parts(py, evaluate, facts, |records, exec| {
        let objective = Objective {
            records,
            weights: None,
            loss: &*loss.inner,
            l2_strength: check_l2_strength(l2_strength)?,
            extra_convexity: 0.0,
            linear_term,
            n_samples: records.n_records() as f64,
            exec,
        };
        minimize_risk(&objective, start, &options)
    })?;
    Ok(minimum.into())
}

#[pyfunction]
#[pyo3(signature = (evaluate, params, *, first, n_params, loss, l2_strength, intercept))]
pub(crate) fn hessian_and_gradient_cov_parts(
    py: Python<'_>,
    evaluate: Py<PyAny>,
    params: PyReadonlyArray1<'_, f64>,
    first: FirstPass,
    n_params: usize,
    loss: &Bound<'_, Loss>,
    l2_strength: f64,
    intercept: Option<f64>,
) -> PyResult<(Matrix, Matrix)> {
    let (params, loss) = (params.as_slice()?, loss.get());
    check_matrix_dim(params.len()).map_err(to_python)?;
    let facts = unbounded(&first, n_params, loss, intercept);
    let [hessian, gradient_cov] = with_parts(py, evaluate, facts, |records, exec| {
        regularised_moments(records, loss, params, l2_strength, exec)
    })?;
    Ok((Matrix::square(hessian), Matrix::square(gradient_cov)))
}
