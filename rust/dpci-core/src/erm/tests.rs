//! Starts from a sample of the rows lead to the same minimiser.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::design::{Design, OnViolation, RowBounds, Rows};
use crate::exec::{BLOCK, Executor};
use crate::loss::{Logistic, Targets};
use crate::objective::HessianRows;
use crate::row_domain::RowDomain;

const N: usize = 4000;
const TERM: [f64; 2] = [0.03, -0.05];

/// Rows of two columns, the second ten times smaller, with a class each.
fn records() -> (Vec<f64>, Vec<f64>) {
    let entry = |i: usize| (i as f64 * 0.73 + 1.0).sin() * [1.0, 0.1][i % 2];
    let rows: Vec<f64> = (0..2 * N).map(entry).collect();
    let class = |i: usize| {
        if rows[2 * i] + (i as f64 * 1.7).sin() > 0.0 {
            1.0
        } else {
            -1.0
        }
    };
    let targets = (0..N).map(class).collect();
    (rows, targets)
}

/// The risk of records that count as `n_samples`.
fn with_objective((rows, targets): &(Vec<f64>, Vec<f64>), n_samples: f64, test: impl FnOnce(&Objective<'_>)) {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let bounds = RowBounds {
        rows: RowDomain::Ball(2.0),
        targets: Targets::Signs,
        on_violation: OnViolation::Error,
    };
    let design = Design::new(Rows::dense(rows, 2), targets, None, &bounds, &exec).unwrap();
    test(&Objective {
        linear_term: Some(&TERM),
        ..Objective::new(&design, &Logistic, 1e-4, n_samples, &exec)
    });
}

fn options(method: Method, tolerance: f64) -> Options {
    Options {
        method,
        tolerance,
        max_iterations: 200,
        radius: None,
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let moved: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    crate::linalg::vector::norm(&moved)
}

#[test]
fn the_risk_of_a_sample_is_that_of_every_tenth_block() {
    let all = records();
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for start in (0..N).step_by(10 * BLOCK) {
        let end = (start + BLOCK).min(N);
        rows.extend_from_slice(&all.0[2 * start..2 * end]);
        targets.extend_from_slice(&all.1[start..end]);
    }
    let point = [0.7, -1.1];
    let n_sampled = targets.len() as f64;
    with_objective(&(rows, targets), n_sampled, |sample| {
        let expected = sample.evaluate(&point, HessianRows::All).unwrap();
        with_objective(&all, N as f64, |objective| {
            let found = objective.evaluate(&point, HessianRows::SampleAlone).unwrap();
            assert!((found.value - expected.value).abs() < 1e-12);
            assert!(distance(&found.gradient, &expected.gradient) < 1e-12);
            let hessians = (found.hessian.unwrap(), expected.hessian.unwrap());
            assert!(distance(&hessians.0, &hessians.1) < 1e-12);
        });
    });
}

#[test]
fn a_start_from_a_sample_ends_at_the_same_point() {
    with_objective(&records(), N as f64, |objective| {
        let usual = minimize_risk(objective, None, &options(Method::Newton, 1e-8)).unwrap();
        let found = minimize_risk(objective, None, &options(Method::Auto, 1e-8)).unwrap();
        assert!(found.certificate <= 1e-8 && found.method == Method::Preconditioned);
        assert!(distance(&found.params, &usual.params) <= 2e-8);
        let from_zero = minimize_risk(objective, None, &options(Method::Preconditioned, 1e-8));
        assert!(found.iterations < from_zero.unwrap().iterations);
        // With a start that the caller chose none is looked for.
        let given = minimize_risk(objective, Some(&[1e-9, 0.0]), &options(Method::Auto, 1e-8));
        assert_eq!(given.unwrap().method, Method::Newton);
    });
}
