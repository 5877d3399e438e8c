//! Budgets, steps and seals as frozen objects: what a release may spend, and what it spent and on which noise.

use dpci_core::privacy::{Budget as CoreBudget, Cost};
use dpci_core::spec;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::errors::to_python;

/// A budget in one of the three notions.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Budget {
    pub(crate) inner: CoreBudget,
}

#[pymethods]
impl Budget {
    #[staticmethod]
    fn pure(epsilon: f64) -> PyResult<Self> {
        Self::of(CoreBudget::pure(epsilon))
    }

    #[staticmethod]
    fn zcdp(rho: f64) -> PyResult<Self> {
        Self::of(CoreBudget::zcdp(rho))
    }

    #[staticmethod]
    fn approx(epsilon: f64, delta: f64) -> PyResult<Self> {
        Self::of(CoreBudget::approx(epsilon, delta))
    }
}

impl Budget {
    fn of(budget: dpci_core::Result<CoreBudget>) -> PyResult<Self> {
        let inner = budget.map_err(to_python)?;
        Ok(Self { inner })
    }
}

/// One step of a release.
#[pyclass(frozen, get_all, module = "dpci._core")]
pub(crate) struct Step {
    #[pyo3(name = "step")]
    query: &'static str,
    noise: &'static str,
    cost: f64,
    scale: f64,
    hessian_scale: Option<f64>,
    levels_scale: Option<f64>,
    sensitivity: f64,
}

impl From<&spec::Step> for Step {
    fn from(step: &spec::Step) -> Self {
        Self {
            query: step.query.name(),
            noise: step.noise.name(),
            cost: step.cost.value(),
            scale: step.scale,
            hessian_scale: step.hessian_scale,
            levels_scale: step.levels_scale,
            sensitivity: step.sensitivity,
        }
    }
}

/// How one released vector is sealed; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Seal {
    pub(crate) inner: spec::Seal,
}

#[pymethods]
impl Seal {
    /// The seal of the values of an audit.
    #[new]
    #[pyo3(signature = (*, dim, distance, budget))]
    fn new(dim: usize, distance: f64, budget: &Budget) -> PyResult<Self> {
        let cost = Cost::of(budget.inner);
        let inner = spec::Seal::new(spec::Part::Values, dim, distance, cost).map_err(to_python)?;
        Ok(Self { inner })
    }

    #[getter]
    fn release(&self) -> &'static str {
        self.inner.part().name()
    }

    #[getter]
    fn noise(&self) -> &'static str {
        self.inner.family().name()
    }

    #[getter]
    fn lattice(&self) -> f64 {
        self.inner.lattice()
    }

    #[getter]
    fn scale(&self) -> u64 {
        self.inner.scale()
    }

    #[getter]
    fn distance(&self) -> f64 {
        self.inner.distance()
    }

    #[getter]
    fn std_dev(&self) -> f64 {
        self.inner.std_dev()
    }

    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters(py, self.inner.cost())
    }
}

/// A cost as the parameters of a budget.
pub(crate) fn parameters(py: Python<'_>, cost: Cost) -> PyResult<Bound<'_, PyDict>> {
    match cost {
        Cost::Epsilon(epsilon) => vec![("epsilon", epsilon)],
        Cost::Rho(rho) => vec![("rho", rho)],
        Cost::MuSquared(mu_squared) => vec![("mu_squared", mu_squared)],
        Cost::EpsilonDelta { epsilon, delta } => vec![("epsilon", epsilon), ("delta", delta)],
    }
    .into_py_dict(py)
}

/// The steps of a release.
pub(crate) fn steps(steps: &[spec::Step]) -> Vec<Step> {
    steps.iter().map(Step::from).collect()
}

/// The seals of a release.
pub(crate) fn seals(seals: &[spec::Seal]) -> Vec<Seal> {
    let seals = seals.iter().copied();
    seals.map(|inner| Seal { inner }).collect()
}
