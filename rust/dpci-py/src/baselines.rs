//! Mechanisms that others published, for comparison: the functional mechanism, and the histogram of a public grid.

use std::sync::Arc;

use dpci_core::Result;
use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::loss;
use dpci_core::mechanism::{self as core, CellRegression};
use dpci_core::privacy::{Calibration, Polynomial};
use dpci_core::row_domain::RowDomain;
use dpci_core::spec::{self, Axis, FunctionalChoices, Grid};
use pyo3::prelude::*;

use crate::cost::{Budget, Seal, Step, seals, steps};
use crate::errors::to_python;
use crate::loss::Loss;
use crate::names::{Named, unknown};
use crate::parts::{Read, Rules};
use crate::records::with_noise;
use crate::release::Kind;
use crate::terms::Terms;
use crate::values::Vector;

/// Validated public choices of the functional mechanism; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct FunctionalSpec {
    pub(crate) inner: spec::FunctionalSpec,
}

#[pymethods]
impl FunctionalSpec {
    #[new]
    #[pyo3(signature = (terms, *, n_columns, intercept, row_norm, polynomial, target_bound, l2_strength, budget, calibration))]
    fn new(
        terms: &Terms,
        n_columns: usize,
        intercept: Option<f64>,
        row_norm: f64,
        polynomial: &str,
        target_bound: f64,
        l2_strength: f64,
        budget: &Budget,
        calibration: Named<Calibration>,
    ) -> PyResult<Self> {
        let polynomial = match polynomial {
            "squared" => Polynomial::squared(target_bound).map_err(to_python)?,
            "logistic" => Polynomial::Logistic,
            _ => return Err(unknown("polynomial", &["squared", "logistic"], polynomial)),
        };
        let choices = FunctionalChoices {
            n_columns,
            intercept,
            row_norm,
            polynomial,
            l2_strength,
            budget: budget.inner,
            calibration: calibration.0,
            terms: terms.inner,
        };
        let inner = spec::FunctionalSpec::new(choices).map_err(to_python)?;
        Ok(Self { inner })
    }
}

/// Coefficients of the functional mechanism as Python reads them.
#[derive(IntoPyObject)]
pub(crate) struct Functional {
    params: Vector,
    steps: Vec<Step>,
    seals: Vec<Seal>,
    private: bool,
}

/// A public grid, the noise on its counts, and the regression on its cells; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct HistogramSpec {
    pub(crate) inner: spec::HistogramSpec,
    terms: spec::Terms,
    loss: Arc<dyn loss::Loss>,
    l2_strength: f64,
    intercept: Option<f64>,
}

/// Counts and their regression as Python reads them.
#[derive(IntoPyObject)]
pub(crate) struct Histogram {
    params: Vector,
    counts: Vector,
    steps: Vec<Step>,
    seals: Vec<Seal>,
    private: bool,
}

impl Kind for FunctionalSpec {
    type Values = Functional;

    fn rules(&self, on_violation: OnViolation) -> Rules {
        let c = self.inner.choices();
        let rows = RowDomain::Ball(c.row_norm);
        Rules::new(rows, c.polynomial.targets(), c.intercept, &c.terms, on_violation)
    }

    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<Functional> {
        let (spec, design) = (&self.inner, read.design()?);
        let params = with_noise!(seed, 0, |g| core::release_functional_mechanism(spec, &design, exec, g))?;
        Ok(Functional {
            params: Vector::of(params),
            steps: steps(std::slice::from_ref(spec.step())),
            seals: seals(spec.seals()),
            private: seed.is_none(),
        })
    }
}

impl Kind for HistogramSpec {
    type Values = Histogram;

    /// Every record has a nearest cell, so rows need no bound, and targets are always clipped.
    fn rules(&self, _: OnViolation) -> Rules {
        let (rows, targets) = (RowDomain::Ball(f64::MAX), self.loss.targets());
        Rules::new(rows, targets, self.intercept, &self.terms, OnViolation::Clip)
    }

    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<Histogram> {
        let (spec, design) = (&self.inner, read.design()?);
        let counts = with_noise!(seed, 0, |g| core::release_histogram(spec, &design, exec, g))?;
        let regression = CellRegression {
            loss: &*self.loss,
            l2_strength: self.l2_strength,
            intercept: self.intercept,
            has_shares: design.shares().is_some(),
        };
        let params = core::fit_histogram(spec.grid(), &counts, &regression, exec)?;
        Ok(Histogram {
            params: Vector(params),
            counts: Vector::of(counts),
            steps: steps(std::slice::from_ref(spec.step())),
            seals: seals(std::slice::from_ref(spec.seal())),
            private: seed.is_none(),
        })
    }
}

#[pymethods]
impl HistogramSpec {
    #[new]
    #[pyo3(signature = (terms, *, axes, n_columns, targets, loss, l2_strength, intercept, budget))]
    fn new(
        terms: &Terms,
        axes: Vec<(Vec<usize>, Vec<f64>)>,
        n_columns: usize,
        targets: Vec<f64>,
        loss: &Loss,
        l2_strength: f64,
        intercept: Option<f64>,
        budget: &Budget,
    ) -> PyResult<Self> {
        let axis = |(columns, levels)| Axis { columns, levels };
        let axes = axes.into_iter().map(axis).collect();
        let grid = Grid::new(axes, n_columns, targets).map_err(to_python)?;
        let terms = terms.inner;
        let inner = spec::HistogramSpec::new(grid, budget.inner, terms.neighbors);
        let inner = inner.map_err(to_python)?;
        Ok(Self {
            inner: inner.of_records(terms.unit, terms.weighting),
            terms,
            loss: Arc::clone(&loss.inner),
            l2_strength,
            intercept,
        })
    }

    /// Law and scale of the noise of a count.
    fn noise(&self) -> (&'static str, f64) {
        (self.inner.step().noise.name(), self.inner.step().scale)
    }

    #[getter]
    fn n_cells(&self) -> usize {
        self.inner.grid().n_cells()
    }
}
