//! Tests of the mechanisms against closed forms: calibrations with numbers by hand, releases with almost no noise.

mod baselines;
mod calibration;
mod choices;
mod domain;
mod moments;
mod plans;
mod releases;
mod reports;
mod runs;
mod seals;
mod tuning;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Choices, Moments, Projection, Spec, Variant};
use crate::design::{Design, OnViolation, RowBounds, Rows};
use crate::exec::Executor;
use crate::interval::Perturbation;
use crate::loss::{Custom, Declaration, Evaluate, Logistic, Loss, Targets};
use crate::privacy::{Budget, Calibration, Neighbors};

/// What the seal leaves of a budget.
const LEFT: f64 = 0.999;

/// 1000 rows of two columns with norm at most 1 and a constant .75, so R = 1.25: κ = .25·1.25²/(1000·.01) = .0390625.
fn choices(perturbation: Perturbation, budget: Budget) -> Choices {
    Choices {
        n_samples: 1000,
        n_columns: 2,
        intercept: Some(0.75),
        row_norm: 1.0,
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
        neighbors: Neighbors::ReplaceOne,
    }
}

fn pure(epsilon: f64) -> Budget {
    Budget::Pure { epsilon }
}

fn zcdp(rho: f64) -> Budget {
    Budget::Zcdp { rho }
}

fn approx(epsilon: f64, delta: f64) -> Budget {
    Budget::Approx { epsilon, delta }
}

fn spec(choices: Choices) -> Spec {
    Spec::new(choices).unwrap()
}

fn refusal(choices: Choices) -> String {
    Spec::new(choices).unwrap_err().to_string()
}

/// At least the exact value, and above it by rounding alone.
#[track_caller]
fn assert_just_above(got: f64, exact: f64) {
    assert!(
        got >= exact * (1.0 - 2.0 * f64::EPSILON) && got <= exact * (1.0 + 1e-11),
        "{got:?} against {exact:?}"
    );
}

#[track_caller]
fn assert_near(got: f64, expected: f64, relative: f64) {
    assert!(
        (got - expected).abs() <= relative * expected.abs(),
        "{got:?} against {expected:?}"
    );
}

/// Runs a test on rows and targets.
fn with_design(
    rows: &[f64],
    n_columns: usize,
    targets: &[f64],
    intercept: Option<f64>,
    bounds: &RowBounds,
    test: impl FnOnce(&Design<'_>, &Executor<'_>),
) {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let rows = Rows::dense(rows, n_columns);
    let design = Design::new(rows, targets, intercept, bounds, &exec).unwrap();
    test(&design, &exec);
}

fn row_bounds(row_norm: f64, targets: Targets) -> RowBounds {
    RowBounds {
        row_norm,
        targets,
        on_violation: OnViolation::Error,
    }
}

/// `u²/4` with targets ±1 up to predictors of size 4, of which a floor of the curvature is declared.
#[derive(Debug)]
struct Parabola;

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
fn parabola(strong_convexity: f64) -> Arc<dyn Loss> {
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
