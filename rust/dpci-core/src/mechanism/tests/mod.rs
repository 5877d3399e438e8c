//! Tests of the mechanisms: releases with almost no noise against closed forms.

mod baselines;
mod domain;
mod far_rows;
mod multinomial;
mod newton;
mod newton_pure;
mod releases;
mod reports;
mod runs;
mod seals;
mod tuning;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::design::{Design, OnViolation, RowBounds, Rows};
use crate::exec::Executor;
use crate::loss::{Logistic, Loss, Targets};
use crate::privacy::{Budget, Calibration, Neighbors, Perturbation};
use crate::row_domain::RowDomain;
use crate::spec::testing::*;
use crate::spec::{Choices, Moments, Projection, Spec};

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
        rows: RowDomain::Ball(row_norm),
        targets,
        on_violation: OnViolation::Error,
    }
}
