//! Choices of which calibrations are known by hand, for tests of this module and of the mechanisms.

use std::sync::Arc;

use super::{Choices, FunctionalChoices, Moments, Projection, Spec, Terms, TuningMethod, TuningSpec, Variant};
use crate::loss::{Custom, Declaration, Evaluate, Logistic, Loss, Targets};
use crate::privacy::{Budget, Calibration, Neighbors, Perturbation, Polynomial};
use crate::row_domain::RowDomain;

/// Share of a budget that the seal leaves.
pub(crate) const LEFT: f64 = 0.999;

/// Sensitivity of the minimiser with [`choices`], to 16 digits by mpmath: `2R·max of sigmoid(t)·√(1 - t²/r²)` over nλ = 10, with
/// r = R·√(W(1/e)/λ) = 6.596, W Lambert's function. 2LR/(nλ), which add/remove halves, is .25.
pub(crate) const SENSITIVITY: f64 = 0.213_877_377_149_022_7;

/// 1000 rows of two columns with norm at most 1 and a constant .75, so R = 1.25: κ = .25·1.25²/(1000·.01) = .0390625.
pub(crate) fn choices(perturbation: Perturbation, budget: Budget) -> Choices {
    Choices {
        terms: Terms::of_rows(1000, Neighbors::ReplaceOne),
        n_columns: 2,
        intercept: Some(0.75),
        rows: RowDomain::Ball(1.0),
        loss: Arc::new(Logistic),
        l2_strength: 0.01,
        radius: None,
        budget,
        perturbation,
        variant: Variant::Standard,
        project: false,
        noise: None,
        split: None,
        moments: Moments::None,
        reserve: 0.0,
        projection: Projection::Auto,
        calibration: Calibration::Tight,
    }
}

pub(crate) fn pure(epsilon: f64) -> Budget {
    Budget::Pure { epsilon }
}

pub(crate) fn zcdp(rho: f64) -> Budget {
    Budget::Zcdp { rho }
}

pub(crate) fn approx(epsilon: f64, delta: f64) -> Budget {
    Budget::Approx { epsilon, delta }
}

pub(crate) fn spec(choices: Choices) -> Spec {
    Spec::new(choices).unwrap()
}

pub(crate) fn refusal(choices: Choices) -> String {
    Spec::new(choices).unwrap_err().to_string()
}

/// At least the exact value, and above it by rounding alone.
#[track_caller]
pub(crate) fn assert_just_above(got: f64, exact: f64) {
    assert!(
        got >= exact * (1.0 - 2.0 * f64::EPSILON) && got <= exact * (1.0 + 1e-11),
        "{got:?} against {exact:?}"
    );
}

#[track_caller]
pub(crate) fn assert_near(got: f64, expected: f64, relative: f64) {
    assert!(
        (got - expected).abs() <= relative * expected.abs(),
        "{got:?} against {expected:?}"
    );
}

/// `u²/4` with targets ±1 up to predictors of size 4, of which a floor of the curvature is declared.
#[derive(Debug)]
pub(crate) struct Parabola;

impl Evaluate for Parabola {
    fn value(&self, u: &[f64], _y: &[f64], out: &mut [f64]) -> crate::Result<()> {
        out.iter_mut().zip(u).for_each(|(o, u)| *o = 0.25 * u * u);
        Ok(())
    }

    fn slope(&self, u: &[f64], _y: &[f64], out: &mut [f64]) -> crate::Result<()> {
        out.iter_mut().zip(u).for_each(|(o, u)| *o = 0.5 * u);
        Ok(())
    }

    fn curvature(&self, _u: &[f64], _y: &[f64], out: &mut [f64]) -> crate::Result<()> {
        out.fill(0.5);
        Ok(())
    }
}

/// Slope at most 2, curvature .5, strong convexity as declared, predictors up to 4.
pub(crate) fn parabola(strong_convexity: f64) -> Arc<dyn Loss> {
    let declared = Declaration {
        slope_bound: 2.0,
        curvature_bound: 0.5,
        strong_convexity,
        one_signed: false,
        targets: Targets::Signs,
        predictor_bound: Some(4.0),
    };
    Arc::new(Custom::new(Arc::new(Parabola), declared).unwrap())
}

/// A random number of runs, ten on average.
pub(crate) const REPEAT: TuningMethod = TuningMethod::Repeat {
    shape: 1.0,
    expected_runs: 10.0,
};

/// A candidate of a tuning.
pub(crate) fn candidate(l2_strength: f64) -> Choices {
    Choices {
        l2_strength,
        radius: Some(2.0),
        ..choices(Perturbation::Output, pure(1.0))
    }
}

/// The choice among candidates, by the logistic loss.
pub(crate) fn tuned(
    candidates: &[Choices],
    radius: Option<f64>,
    budget: Budget,
    method: TuningMethod,
) -> Result<TuningSpec, String> {
    TuningSpec::new(candidates, Arc::new(Logistic), radius, budget, method).map_err(|e| e.to_string())
}

/// The functional mechanism on four rows of two columns, with targets up to 2.
pub(crate) fn functional(budget: Budget) -> FunctionalChoices {
    FunctionalChoices {
        terms: Terms::of_rows(4, Neighbors::AddRemove),
        n_columns: 2,
        intercept: None,
        row_norm: 1.0,
        polynomial: Polynomial::squared(2.0).unwrap(),
        l2_strength: 0.1,
        budget,
        calibration: Calibration::Tight,
    }
}
