//! Budgets, steps and seals as frozen objects: what a release may spend, and what it spent and on which noise.

use dpci_core::Result;
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
#[derive(Clone)]
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
#[pyclass(frozen, get_all, module = "dpci._core")]
#[derive(Clone)]
pub(crate) struct Seal {
    release: &'static str,
    noise: &'static str,
    lattice: f64,
    scale: u64,
    distance: f64,
    std_dev: f64,
    cost: Parameters,
}

#[pymethods]
impl Seal {
    /// The seal of the values of an audit.
    #[new]
    #[pyo3(signature = (*, dim, distance, budget))]
    fn new(dim: usize, distance: f64, budget: &Budget) -> PyResult<Self> {
        let seal = values_seal(dim, distance, budget).map_err(to_python)?;
        Ok(Self::from(&seal))
    }
}

/// The seal of so many values in an audit.
pub(crate) fn values_seal(dim: usize, distance: f64, budget: &Budget) -> Result<spec::Seal> {
    spec::Seal::new(spec::Part::Values, dim, distance, Cost::of(budget.inner))
}

impl From<&spec::Seal> for Seal {
    fn from(seal: &spec::Seal) -> Self {
        Self {
            release: seal.part().name(),
            noise: seal.family().name(),
            lattice: seal.lattice(),
            scale: seal.scale(),
            distance: seal.distance(),
            std_dev: seal.std_dev(),
            cost: Parameters(seal.cost()),
        }
    }
}

/// A cost as the parameters of a budget.
#[derive(Clone, Copy)]
pub(crate) struct Parameters(pub(crate) Cost);

impl<'py> IntoPyObject<'py> for Parameters {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self.0 {
            Cost::Epsilon(epsilon) => vec![("epsilon", epsilon)],
            Cost::Rho(rho) => vec![("rho", rho)],
            Cost::MuSquared(mu_squared) => vec![("mu_squared", mu_squared)],
            Cost::EpsilonDelta { epsilon, delta } => vec![("epsilon", epsilon), ("delta", delta)],
        }
        .into_py_dict(py)
    }
}

/// The steps of a release.
pub(crate) fn steps(steps: &[spec::Step]) -> Vec<Step> {
    steps.iter().map(Step::from).collect()
}

/// The seals of a release.
pub(crate) fn seals(seals: &[spec::Seal]) -> Vec<Seal> {
    seals.iter().map(Seal::from).collect()
}
