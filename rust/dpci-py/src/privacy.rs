//! Accounting of budgets: no data.

use dpci_core::Result;
use dpci_core::loss::{Loss as _, Multinomial};
use dpci_core::noise::MatrixLaw;
use dpci_core::privacy::{self as core, Calibration, Neighbors, Perturbation};
use dpci_core::row_domain::row_norm_bound;
use dpci_core::spec;
use pyo3::prelude::*;

use crate::cost::Budget;
use crate::errors::to_python;
use crate::names::Named;
use crate::rows::Rows;
use crate::terms::unit_of;

/// How Gaussian objective perturbation composes with Gaussian releases that follow it.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct ObjectiveProfile {
    pub(crate) inner: core::ObjectiveProfile,
}

#[pymethods]
impl ObjectiveProfile {
    #[new]
    #[pyo3(signature = (*, n_samples, row_norm, intercept, curvature_bound, l2_strength, one_signed, neighbors, pair=2.0, n_params=1, n_classes=None, persons=false, max_rows=None))]
    fn new(
        n_samples: f64,
        row_norm: Rows<'_>,
        intercept: Option<f64>,
        curvature_bound: Option<f64>,
        l2_strength: f64,
        one_signed: bool,
        neighbors: Named<Neighbors>,
        pair: f64,
        n_params: usize,
        n_classes: Option<usize>,
        persons: bool,
        max_rows: Option<u32>,
    ) -> PyResult<Self> {
        let row_norm = row_norm_bound(row_norm.domain().norm(), intercept);
        let bounds = core::DataBounds::new(n_samples, row_norm, neighbors.0, n_params);
        let bounds = bounds.map_err(to_python)?.of(unit_of(persons, max_rows)?);
        let (slopes, predictors, trace) = match n_classes {
            None if one_signed => (core::Slopes::OneSigned, 1, curvature_bound),
            None => (core::Slopes::AnySign, 1, curvature_bound),
            Some(classes) => {
                let loss = Multinomial::new(classes).map_err(to_python)?;
                let trace = Some(loss.sup_curvature(f64::INFINITY));
                (core::Slopes::of(&loss), loss.n_predictors(), trace)
            }
        };
        let trace = trace.unwrap_or(f64::INFINITY);
        let bounds = bounds.predicting(predictors);
        let inner = core::ObjectiveProfile::new(&bounds, slopes, trace, l2_strength);
        Ok(Self {
            inner: inner.map_err(to_python)?.with_pair(pair),
        })
    }

    #[getter]
    fn shift(&self) -> f64 {
        self.inner.shift()
    }

    fn delta(&self, epsilon: f64, ratio: f64, mu: f64) -> f64 {
        self.inner.delta(epsilon, ratio, mu)
    }

    fn rdp(&self, order: f64, ratio: f64, mu: f64) -> PyResult<f64> {
        self.inner.rdp(order, ratio, mu).map_err(to_python)
    }
}

/// Functions of the core as they are.
macro_rules! functions {
    ($($name:ident($($argument:ident: $class:ty),*) -> $value:ty, $call:expr;)*) => {
        $(#[pyfunction]
        pub(crate) fn $name($($argument: $class),*) -> PyResult<$value> {
            $call.map_err(to_python)
        })*
    };
}

functions! {
    gaussian_delta(epsilon: f64, mu: f64) -> f64, core::gaussian_delta(epsilon, mu);
    gaussian_mu(epsilon: f64, delta: f64) -> f64, core::gaussian_mu(epsilon, delta);
    pure_to_zcdp(epsilon: f64, calibration: Named<Calibration>) -> f64,
        core::pure_to_zcdp(epsilon, calibration.0);
    zcdp_to_pure(rho: f64, calibration: Named<Calibration>) -> f64,
        core::zcdp_to_pure(rho, calibration.0);
    zcdp_to_approx_epsilon(rho: f64, delta: f64, calibration: Named<Calibration>) -> f64,
        core::zcdp_to_approx_epsilon(rho, delta, calibration.0);
    zcdp_to_approx_delta(rho: f64, epsilon: f64) -> f64, core::zcdp_to_approx_delta(rho, epsilon);
    approx_to_zcdp(epsilon: f64, delta: f64, calibration: Named<Calibration>) -> f64,
        core::approx_to_zcdp(epsilon, delta, calibration.0);
    pure_rdp(epsilon: f64, order: f64) -> f64, Ok(core::pure_rdp(epsilon, order));
    unsealed(whole: f64) -> f64, Ok(core::unsealed(whole));
    cms11_raised(epsilon: f64, sensitivity: f64, scale: f64) -> bool,
        Ok(core::cms11_raised(epsilon, sensitivity, scale));
    check_bounds(of_targets: bool, middle: f64, half: f64) -> (),
        spec::check_bounds(of_targets, middle, half);
    check_excess(n_public: usize, n_rows: usize) -> (),
        spec::check_excess(n_public as f64, Neighbors::AddRemove, n_rows as f64);
    check_shares(shares: [f64; 3]) -> (), spec::check_shares(shares).map(drop);
    joint_delta(epsilon: f64, mu: f64, stage_epsilon: f64, stages: u32) -> f64,
        core::BoundedRange::new(stage_epsilon, stages).and_then(|ranges| ranges.delta(epsilon, mu));
    joint_rest(epsilon: f64, delta: f64, stage_epsilon: f64, stages: u32) -> f64,
        rest_of(epsilon, delta, stage_epsilon, stages);
    cost_unit(budget: &Budget, calibration: Named<Calibration>, mechanism: Named<Perturbation>) -> &'static str,
        Ok(spec::step_cost(budget.inner, calibration.0, mechanism.0, 1.0).unit());
    step_mu(budget: &Budget, calibration: Named<Calibration>, mechanism: Named<Perturbation>, cost: f64) -> f64,
        Ok(spec::step_cost(budget.inner, calibration.0, mechanism.0, cost).mu());
    sealed_std_dev(noise: &str, scale: f64, dim: usize, seal_std_dev: f64) -> f64,
        MatrixLaw::from_name(noise, scale).map(|law| spec::sealed_std_dev(law, dim, seal_std_dev));
    clear_of_noise(std_dev: f64, n_regressors: usize) -> f64,
        Ok(spec::clear_of_noise(std_dev, n_regressors));
}

/// The part of ε that mechanisms of a bounded range leave to Gaussian noise.
fn rest_of(epsilon: f64, delta: f64, stage_epsilon: f64, stages: u32) -> Result<f64> {
    let whole = core::Budget::approx(epsilon, delta)?;
    match core::BoundedRange::new(stage_epsilon, stages)?.rest(whole)? {
        core::Budget::Approx { epsilon, .. } => Ok(epsilon),
        core::Budget::Pure { .. } | core::Budget::Zcdp { .. } => Ok(0.0),
    }
}
