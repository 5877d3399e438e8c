//! Tests of the hinge solver's parts: splits against plain loops, certificates of points that are not minimisers, cancellation.

use std::sync::atomic::AtomicBool;

use super::approach::{Limit, Limits, approach};
use super::kink_split::split;
use super::multipliers::NearRisk;
use super::polish::{Factor, Polish, Polished, Terms};
use super::settle;
use crate::Error;
use crate::design::{Design, OnViolation, RowBounds, Rows};
use crate::erm::minimize_risk;
use crate::exec::Executor;
use crate::linalg::{Doubled, vector};
use crate::loss::{Hinge, Targets};
use crate::objective::Objective;
use crate::row_domain::RowDomain;
use crate::solver::{Method, Options};

const BOUNDS: RowBounds = RowBounds {
    rows: RowDomain::Ball(2.0),
    targets: Targets::Signs,
    on_violation: OnViolation::Error,
};

/// Rows of three features, of which the first half is repeated, and their targets.
pub(super) fn data(n: usize) -> (Vec<f64>, Vec<f64>) {
    let entry = |i: usize| (i as f64 * 0.73 + (i * i % 17) as f64).sin();
    let mut rows: Vec<f64> = (0..3 * n).map(entry).collect();
    let mut targets: Vec<f64> = (0..n).map(|i| entry(5 * i + 1).signum()).collect();
    rows.extend_from_within(..n / 2 * 3);
    targets.extend_from_within(..n / 2);
    (rows, targets)
}

/// The objective of a design, handed to a test.
pub(super) fn with_objective(design: &Design<'_>, l2_strength: f64, test: impl FnOnce(&Objective<'_>)) {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    test(&Objective {
        records: design,
        weights: None,
        loss: &Hinge,
        l2_strength,
        extra_convexity: 0.0,
        linear_term: None,
        n_samples: design.n_records() as f64,
        exec: &exec,
    });
}

pub(super) fn design<'a>(rows: &'a [f64], targets: &'a [f64]) -> Design<'a> {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    Design::new(Rows::dense(rows, 3), targets, None, &BOUNDS, &exec).unwrap()
}

pub(super) fn options(radius: Option<f64>) -> Options {
    Options {
        method: Method::Auto,
        tolerance: 1e-10,
        max_iterations: 100,
        radius,
    }
}

fn terms(objective: &Objective<'_>, radius: Option<f64>) -> Terms {
    Terms {
        n_samples: objective.n_samples,
        l2_strength: objective.l2_strength,
        radius,
    }
}

#[test]
fn a_split_keeps_near_rows_and_sums_the_rest() {
    let (rows, targets) = data(300);
    with_objective(&design(&rows, &targets), 0.1, |objective| {
        let params = [0.9, -0.4, 0.7];
        let found = split(objective, &params, 0.2).unwrap();
        let (mut pull, mut n_near) = ([0.0; 3], 0.0);
        for (row, y) in rows.chunks(3).zip(&targets) {
            let slack = 1.0 - y * vector::dot(row, &params);
            let distance = slack.abs() / vector::norm(row);
            if distance <= 0.2 {
                n_near += 1.0;
            } else {
                assert!(distance >= found.clearance * (1.0 - 1e-12));
                let below = if slack > 0.0 { *y } else { 0.0 };
                for (p, x) in pull.iter_mut().zip(row) {
                    *p += below * x;
                }
            }
        }
        assert!(n_near > 10.0 && found.clearance > 0.2);
        assert!((found.counts.iter().sum::<f64>() - n_near).abs() < 1e-12);
        assert!((found.counts.len() as f64) < n_near);
        for (p, f) in pull.iter().zip(&found.pull) {
            assert!((p - f.rounded()).abs() < 1e-12);
        }
    });
}

#[test]
fn the_certificate_of_any_point_bounds_its_distance() {
    let (rows, targets) = data(60);
    with_objective(&design(&rows, &targets), 0.05, |objective| {
        for radius in [None, Some(1.2)] {
            let best = minimize_risk(objective, None, &options(radius)).unwrap();
            assert!(best.certificate < 1e-13);
            let all = split(objective, &best.params, f64::INFINITY).unwrap();
            let risk = NearRisk::new(&all, objective.exec);
            let terms = terms(objective, radius);
            let ridge = terms.n_samples * terms.l2_strength;
            for k in 1..12_u8 {
                // Points off the minimiser by 10⁻ᵏ, with the multipliers that their slacks suggest.
                let mut params = best.params.clone();
                params[usize::from(k % 3)] += 0.1_f64.powi(k.into());
                let ridge = if radius.is_some() { 1.5 * ridge } else { ridge };
                let at = risk.start(params, ridge, 1e-3);
                let mut point = Polish::new(&all, &at, terms, f64::INFINITY, objective.exec);
                point.move_into_ball();
                let Polished {
                    params, certificate, ..
                } = point.certified();
                let gap: Vec<f64> = params.iter().zip(&best.params).map(|(a, b)| a - b).collect();
                assert!(vector::norm(&gap) <= certificate + best.certificate, "{k}");
            }
        }
    });
}

#[test]
fn samples_and_smoothed_risks_lead_to_the_same_minimiser() {
    let (rows, targets) = data(400);
    let limit = |entries| Limit { entries, rows: 0 };
    with_objective(&design(&rows, &targets), 0.02, |objective| {
        for radius in [None, Some(0.9)] {
            let options = options(radius);
            let best = minimize_risk(objective, None, &options).unwrap();
            let approached = |direct, near| {
                let limits = Limits {
                    direct: limit(direct),
                    near: limit(near),
                    copied: 0,
                };
                approach(objective, &[0.0; 3], &options, limits).unwrap()
            };
            let at_once = approached(usize::MAX, 0);
            assert!(at_once.iterations == 0 && at_once.reach.is_infinite());
            let sampled = approached(150, usize::MAX);
            assert!(sampled.iterations == 0 && sampled.reach.is_finite());
            // No number of near rows is few enough, so that every width of the smoothed hinge is used.
            let smoothed = approached(150, 0);
            assert!(smoothed.iterations > 0 && smoothed.width < 1e-3);
            for near in [at_once, sampled, smoothed] {
                let found = settle(objective, &options, near, false).unwrap().minimum;
                let gap: Vec<f64> = found.params.iter().zip(&best.params).map(|(a, b)| a - b).collect();
                assert!(vector::norm(&gap) <= found.certificate + best.certificate);
                assert!(found.certificate < 1e-13);
            }
        }
    });
}

#[test]
fn rows_that_differ_by_little_need_doubled_systems() {
    // Two directions 10⁻⁸ apart, both at their kink in (1, 0, 0), where the unit sphere touches the first.
    let kinds = [[1.0, 0.0, 0.0], [1.0, 1e-8, 0.0], [0.0, -1e-8, 0.0]];
    let rows = [kinds[0].repeat(13), kinds[1].repeat(10), kinds[2].repeat(2)].concat();
    let targets = vec![1.0; 25];
    let design = design(&rows, &targets);
    with_objective(&design, 0.4, |objective| {
        for radius in [None, Some(1.0)] {
            let best = minimize_risk(objective, None, &options(radius)).unwrap();
            assert!(best.certificate < 1e-12);
            assert!(vector::norm(&best.params[1..]) < 1e-12 && (best.params[0] - 1.0).abs() < 1e-12);
            let all = split(objective, &best.params, f64::INFINITY).unwrap();
            let risk = NearRisk::new(&all, objective.exec);
            let terms = terms(objective, radius);
            let least = terms.n_samples * terms.l2_strength;
            let mut at = risk.start(vec![0.0; 3], least, 1.0);
            risk.settle_within(&mut at, least, radius).unwrap();
            let mut polish = Polish::new(&all, &at, terms, f64::INFINITY, objective.exec);
            polish.settle().unwrap();
            let here = polish.smoothed();
            let factored = polish.factorise(&here).unwrap();
            assert!(!here.bent.is_empty());
            assert!(matches!(factored.factor, Factor::Doubled(_)), "{:e}", polish.stiffness);
            assert!(polish.certified().certificate < 1e-12);
        }
    });
}

#[test]
fn systems_are_solved_at_any_stiffness() {
    let (rows, targets) = data(60);
    with_objective(&design(&rows, &targets), 0.05, |objective| {
        let all = split(objective, &[0.3; 3], f64::INFINITY).unwrap();
        let risk = NearRisk::new(&all, objective.exec);
        let terms = terms(objective, None);
        let ridge = terms.n_samples * terms.l2_strength;
        let at = risk.start(vec![0.3; 3], ridge, 1.0);
        let mut polish = Polish::new(&all, &at, terms, f64::INFINITY, objective.exec);
        for (share, in_doubled, tolerance) in [(1e3, false, 1e-11), (1e16, true, 1e-13)] {
            polish.stiffness = share * ridge;
            let mut here = polish.smoothed();
            here.bent = vec![0, 3];
            let factor = polish.factorise(&here).unwrap().factor;
            assert_eq!(matches!(factor, Factor::Doubled(_)), in_doubled);
            let right = [1.0, -2.0, 0.5].map(Doubled::from);
            let mut solution = right;
            factor.solve_in_place(&mut solution);
            for j in 0..3 {
                let mut left = solution[j] * ridge;
                for &i in &here.bent {
                    let along = Doubled::dot(polish.row(i), &solution);
                    left = left + along * polish.kappa(i) * polish.row(i)[j];
                }
                assert!((left - right[j]).rounded().abs() < tolerance, "{share:e}");
            }
        }
    });
}

#[test]
fn merged_records_have_the_same_minimiser() {
    let (rows, targets) = data(40);
    let plain = design(&rows, &targets);
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let merged = plain.merged(&exec).unwrap();
    assert!(merged.n_rows() < plain.n_rows());
    for radius in [None, Some(0.8)] {
        let mut found = Vec::new();
        for design in [&plain, &merged] {
            with_objective(design, 0.01, |objective| {
                found.push(minimize_risk(objective, None, &options(radius)).unwrap().params);
            });
        }
        let same = found[0].iter().zip(&found[1]).all(|(a, b)| (a - b).abs() < 1e-13);
        assert!(same, "{found:?}");
    }
}

#[test]
fn cancellation_stops_it() {
    let (rows, targets) = data(40);
    let design = design(&rows, &targets);
    let cancel = AtomicBool::new(true);
    let exec = Executor::sequential(&cancel);
    with_objective(&design, 0.01, |objective| {
        let cancelled = Objective {
            exec: &exec,
            ..*objective
        };
        let found = minimize_risk(&cancelled, None, &options(None));
        assert!(matches!(found, Err(Error::Interrupted)));
    });
}
