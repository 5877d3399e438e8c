//! Tests of coordinate descent: rows without zeros, the point that follows from the shares, hard rows, and ways back from failure.

use std::sync::atomic::AtomicBool;

use super::approach::{Limit, Limits, approach, descended};
use super::descent::Descent;
use super::kink_split::{KinkSplit, split};
use super::settle;
use super::tests::{data, design, options, with_objective};
use crate::exec::Executor;
use crate::linalg::vector;
use crate::objective::Objective;

/// Limits by which a few hundred rows of three features are many.
const FEW: Limits = Limits {
    direct: Limit { entries: 1200, rows: 0 },
    near: Limit {
        entries: usize::MAX,
        rows: 0,
    },
    copied: usize::MAX,
};

/// The data with every third entry zero, and a row of zeros.
fn sparse_data(n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut rows, targets) = data(n);
    for (k, x) in rows.iter_mut().enumerate() {
        if (k * k) % 7 < 2 {
            *x = 0.0;
        }
    }
    rows[9..12].fill(0.0);
    (rows, targets)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let gap: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    vector::norm(&gap)
}

#[test]
fn the_point_follows_from_the_shares() {
    let (rows, targets) = sparse_data(400);
    let weights: Vec<u32> = (0..600).map(|i| i % 4).collect();
    with_objective(&design(&rows, &targets), 0.02, |objective| {
        let weighted = Objective {
            weights: Some(&weights),
            linear_term: Some(&[0.1, -0.2, 0.0]),
            ..*objective
        };
        let ridge = weighted.n_samples * weighted.l2_strength;
        let mut descent = Descent::new(&weighted, usize::MAX).unwrap().unwrap();
        for enough in [300, 20] {
            let moving = descent.descend(enough, objective.exec).unwrap();
            assert!(moving <= enough, "{moving}");
            let mut expected = [-60.0, 120.0, 0.0];
            for (i, row) in rows.chunks(3).enumerate() {
                let share = descent.shares()[i];
                assert!((0.0..=1.0).contains(&share));
                let has_kink = weights[i] > 0 && vector::norm(row) > 0.0;
                assert!(has_kink || share == 0.0);
                for (e, x) in expected.iter_mut().zip(row) {
                    *e += share * f64::from(weights[i]) * targets[i] * x;
                }
            }
            let expected = expected.map(|e| e / ridge);
            assert!(distance(descent.params(), &expected) < 1e-12);
        }
        assert!(descent.shares().iter().any(|s| *s > 0.0 && *s < 1.0));
        // The nearest rows, one by one, and the others on their sides make the same risk: its gradient is that of all rows.
        let nearest = descent.nearest(50);
        assert!(nearest.split.counts.len() >= 50 && nearest.split.counts.len() < 300);
        let mut gradient: Vec<f64> = nearest.split.pull.iter().map(|p| p.rounded()).collect();
        let kinks = nearest.split.near.chunks(3).zip(&nearest.split.counts);
        for (row, count) in kinks {
            if vector::dot(row, descent.params()) < 1.0 {
                vector::add_weighted_rows(row, &[*count], &mut gradient);
            }
        }
        let mut expected = [-60.0, 120.0, 0.0];
        for (i, row) in rows.chunks(3).enumerate() {
            if targets[i] * vector::dot(row, descent.params()) < 1.0 {
                for (e, x) in expected.iter_mut().zip(row) {
                    *e += f64::from(weights[i]) * targets[i] * x;
                }
            }
        }
        assert!(distance(&gradient, &expected) < 1e-9);
    });
}

#[test]
fn rows_without_their_zeros_are_split_as_all_entries_are() {
    let (rows, targets) = sparse_data(400);
    let weights: Vec<u32> = (0..600).map(|i| i % 4).collect();
    with_objective(&design(&rows, &targets), 0.02, |objective| {
        let weighted = Objective {
            weights: Some(&weights),
            linear_term: Some(&[0.1, -0.2, 0.0]),
            ..*objective
        };
        let mut descent = Descent::new(&weighted, usize::MAX).unwrap().unwrap();
        descent.descend(20, objective.exec).unwrap();
        for reach in [0.0, 0.1, f64::INFINITY] {
            let found = descent.split(&weighted, reach).unwrap();
            let expected = split(&weighted, descent.params(), reach).unwrap();
            let near = |split: &KinkSplit| {
                // In one order, whatever the signs of zeros.
                let rows = split.near.chunks(3).zip(&split.counts);
                let mut near: Vec<_> = rows
                    .map(|(row, count)| (row.iter().map(|x| (x + 0.0).to_bits()).collect(), *count))
                    .collect();
                near.sort_by(|a: &(Vec<u64>, f64), b| a.0.cmp(&b.0));
                near
            };
            assert_eq!(near(&found), near(&expected), "{reach}");
            let pairs = found.pull.iter().zip(&expected.pull);
            for (a, b) in pairs {
                assert!((*a - *b).rounded().abs() <= expected.pull_error, "{reach}");
            }
            assert!((found.pull_error / expected.pull_error - 1.0).abs() < 1e-12);
            // Infinite where no row is settled.
            let clearances = [&found, &expected].map(|split| split.clearance.min(9.0));
            assert!((clearances[0] - clearances[1]).abs() < 1e-13, "{reach}");
        }
    });
}

/// Rows and targets that leave descent little to go by.
fn hard_rows() -> Vec<(&'static str, Vec<f64>, Vec<f64>)> {
    let n = 400;
    let (rows, targets) = sparse_data(n);
    let n_all = targets.len();
    let one_direction: Vec<f64> = (0..n).flat_map(|i| [1.0 - (i % 3) as f64 * 0.1, 0.0, 0.0]).collect();
    let nearly_equal: Vec<f64> = (0..n).flat_map(|i| [1.0, i as f64 * 1e-10, 0.0]).collect();
    let separable: Vec<f64> = targets.iter().flat_map(|y| [0.9 * y, 0.1, 0.0]).collect();
    let lengths: Vec<f64> = rows
        .iter()
        .enumerate()
        .map(|(k, x)| x * [1.0, 1e-3, 1e-6, 1e-12][k / 3 % 4])
        .collect();
    vec![
        ("all", rows.clone(), targets.clone()),
        ("all kinks at one point", [0.6, 0.8, 0.0].repeat(n), vec![1.0; n]),
        ("zeros", vec![0.0; 3 * n], vec![1.0; n]),
        (
            "contradictions",
            [[0.3, 0.4, 0.0], [0.3, 0.4, 0.0]].concat().repeat(n / 2),
            [1.0, -1.0].repeat(n / 2),
        ),
        ("one direction", one_direction, vec![1.0; n]),
        ("nearly equal", nearly_equal, vec![1.0; n]),
        ("separable", separable, targets),
        ("one class", rows, vec![1.0; n_all]),
        ("long and short", lengths, vec![1.0; n_all]),
    ]
}

#[test]
fn hard_rows_have_the_minimiser_that_is_found_without_descent() {
    let mut n_descended = 0;
    for (name, rows, targets) in hard_rows() {
        let design = design(&rows, &targets);
        for (l2_strength, radius) in [
            (0.02, None),
            (0.3, None),
            (1e-5, None),
            (0.02, Some(0.7)),
            (0.02, Some(50.0)),
        ] {
            with_objective(&design, l2_strength, |objective| {
                let options = options(radius);
                let found = |limits| {
                    let near = approach(objective, &[0.0; 3], &options, limits).unwrap();
                    settle(objective, &options, near, false).unwrap().minimum
                };
                n_descended += usize::from(descended(objective, &options, FEW).unwrap().is_some());
                let with = found(FEW);
                let without = found(Limits { copied: 0, ..FEW });
                let gap = distance(&with.params, &without.params);
                assert!(
                    gap <= with.certificate + without.certificate,
                    "{name} {l2_strength} {radius:?}: {gap:e}"
                );
                assert!(with.certificate <= 1e-10, "{name}");
            });
        }
    }
    assert!(n_descended >= 25, "{n_descended}");
}

#[test]
fn descent_gives_up_where_it_does_not_lead_there() {
    let (rows, targets) = sparse_data(400);
    let design = design(&rows, &targets);
    let leads = |l2_strength, radius, limits| {
        let mut leads = false;
        with_objective(&design, l2_strength, |objective| {
            leads = descended(objective, &options(radius), limits).unwrap().is_some();
        });
        leads
    };
    assert!(leads(0.02, None, FEW) && leads(0.02, Some(50.0), FEW));
    // The ball binds; the ridge is so small that rows move on and on; the copy would be too large.
    assert!(!leads(0.02, Some(0.5), FEW));
    assert!(!leads(1e-9, None, FEW));
    assert!(!leads(0.02, None, Limits { copied: 1799, ..FEW }));
}

#[test]
fn threads_change_nothing() {
    let (rows, targets) = sparse_data(60_000);
    let design = design(&rows, &targets);
    let cancel = AtomicBool::new(false);
    with_objective(&design, 0.002, |objective| {
        let found = |threads| {
            let exec = Executor::new(Some(threads), usize::MAX / 2, &cancel).unwrap();
            let objective = Objective {
                exec: &exec,
                ..*objective
            };
            let options = options(None);
            assert!(
                descended(&objective, &options, super::approach::LIMITS)
                    .unwrap()
                    .is_some()
            );
            super::minimize(&objective, &[0.0; 3], &options, false)
                .unwrap()
                .minimum
                .params
        };
        assert_eq!(found(1), found(3));
    });
}
