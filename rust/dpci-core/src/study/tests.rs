//! Replicates against fits of the expanded samples, for every storage.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::intervals::bounds as intervals_of;
use super::weights::Resampler;
use super::*;
use crate::Error;
use crate::design::{Csr, Design, OnViolation, RowBounds, Rows};
use crate::exec::Executor;
use crate::linalg::vector;
use crate::loss::{Hinge, HuberHinge, Logistic, Loss, Squared};
use crate::mechanism::{Sealing, Simulating, Values, project_release, release};
use crate::noise::SimulationGenerator;
use crate::privacy::{Budget, Calibration, Neighbors, Perturbation};
use crate::row_domain::RowDomain;
use crate::spec::{Choices, Moments, Projection, Spec, Terms, Variant};

pub(super) const N: usize = 1500;
pub(super) const WIDTH: usize = 5;

/// Records of which many repeat, some zeros.
pub(super) fn records() -> (Vec<f64>, Vec<f64>) {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..N {
        let k = if i % 3 == 0 { i % 7 } else { i };
        x.extend((0..WIDTH).map(|j| {
            if (k + j) % 3 == 0 {
                0.0
            } else {
                0.4 * ((k * WIDTH + j) as f64).sin()
            }
        }));
        y.push(if (k * k) % 5 < 2 { 1.0 } else { -1.0 });
    }
    (x, y)
}

pub(super) fn spec(loss: Arc<dyn Loss>, perturbation: Perturbation, budget: Budget) -> Spec {
    Spec::new(Choices {
        terms: Terms::of_rows(N, Neighbors::ReplaceOne),
        n_columns: WIDTH,
        intercept: Some(0.5),
        rows: RowDomain::Ball(1.0),
        loss,
        l2_strength: 0.02,
        radius: None,
        variant: Variant::Standard,
        project: false,
        budget,
        perturbation,
        noise: None,
        split: None,
        moments: Moments::Joint,
        reserve: 0.0,
        projection: Projection::Floor,
        calibration: Calibration::Tight,
    })
    .unwrap()
}

/// Budgets so large, and so noise so small, that certificates are below the 1e-8 of the comparisons.
pub(super) fn specs() -> Vec<Spec> {
    let huber = HuberHinge::new(0.5).unwrap();
    vec![
        spec(Arc::new(Logistic), Perturbation::Objective, Budget::pure(60.0).unwrap()),
        spec(Arc::new(Logistic), Perturbation::Output, Budget::zcdp(2000.0).unwrap()),
        spec(Arc::new(huber), Perturbation::Objective, Budget::zcdp(500.0).unwrap()),
        spec(
            Arc::new(huber),
            Perturbation::Output,
            Budget::approx(500.0, 1e-6).unwrap(),
        ),
    ]
}

pub(super) const BOUNDS: RowBounds = RowBounds {
    rows: RowDomain::Ball(1.0),
    targets: crate::loss::Targets::Signs,
    on_violation: OnViolation::Clip,
};

/// The same numbers as compressed sparse rows.
fn sparse(x: &[f64]) -> Csr<'static> {
    let (mut starts, mut columns, mut values) = (vec![0_i64], Vec::new(), Vec::new());
    for row in x.chunks(WIDTH) {
        for (j, v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            columns.push(i32::try_from(j).unwrap());
            values.push(*v);
        }
        starts.push(i64::try_from(values.len()).unwrap());
    }
    Csr::new(starts, columns, values, WIDTH).unwrap()
}

#[test]
fn a_replicate_equals_a_fit_of_the_expanded_sample() {
    let (_, y) = records();
    assert_replicates_equal_fits(&specs(), &BOUNDS, &y, Some(0.95));
}

/// With little noise all lanes are within the reach of the series, with much noise some are in some blocks.
#[test]
fn series_around_the_target_change_nothing() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (x, y) = records();
    let design = Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), &BOUNDS, &exec).unwrap();
    let noisy = spec(Arc::new(Logistic), Perturbation::Objective, Budget::pure(0.1).unwrap());
    for (spec, room) in [(&specs()[0], 1e-8), (&specs()[1], 1e-8), (&noisy, 1e-4)] {
        let [by_series, by_loss] = [true, false].map(|is_near| {
            let mut study = Study::new(&design, std::slice::from_ref(spec), &exec).unwrap();
            for population in &mut study.populations {
                assert!(!population.is_near);
                population.is_near = is_near;
            }
            let target = study.populations[0].target.clone();
            (study.run(5..40, 9, Some(0.95), &exec).unwrap(), target)
        });
        let ((by_series, target), (by_loss, _)) = (by_series, by_loss);
        let mut farthest = 0.0_f64;
        for (left, right) in by_series.iter().flatten().zip(by_loss.iter().flatten()) {
            let gap = |left: &[f64], right: &[f64]| {
                let gaps = left.iter().zip(right).map(|(l, r)| (l - r).abs());
                gaps.fold(0.0, f64::max)
            };
            assert!(gap(&left.params, &right.params) < room);
            for (left, right) in left.bounds.iter().zip(&right.bounds) {
                assert!(gap(left, right) < 10.0 * room);
            }
            farthest = farthest.max(gap(&left.params, &target));
        }
        assert_eq!(farthest > 4.0, room > 1e-6, "{farthest}");
    }
}

/// Parameters of every replicate, and intervals at a level, dense and sparse, whatever the cut into calls.
fn assert_replicates_equal_fits(specs: &[Spec], bounds: &RowBounds, y: &[f64], level: Option<f64>) {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (x, _) = records();
    let dense = Design::new(Rows::dense(&x, WIDTH), y, Some(0.5), bounds, &exec).unwrap();
    let csr = Design::new(Rows::Csr(sparse(&x)), y, Some(0.5), bounds, &exec).unwrap();
    for design in [dense, csr] {
        let merged = design.merged(&exec).unwrap();
        assert!(merged.n_rows() < N && merged.n_records() == N);
        let study = Study::new(&design, specs, &exec).unwrap();
        let outcomes = study.run(3..14, 9, level, &exec).unwrap();
        // Any cut into calls gives the same bits.
        let parts = [
            study.run(3..4, 9, level, &exec).unwrap(),
            study.run(4..14, 9, level, &exec).unwrap(),
        ];
        for (whole, part) in outcomes.iter().zip(parts.concat()) {
            assert!(
                whole
                    .iter()
                    .zip(&part)
                    .all(|(a, b)| a.params == b.params && a.bounds == b.bounds)
            );
        }
        let resampler = Resampler::new(&merged).unwrap();
        for (replicate, outcome) in (3_u64..).zip(&outcomes) {
            let mut counts = resampler.no_counts();
            let generator = SimulationGenerator::new(9, replicate * 256);
            resampler.draw(&mut [generator], &mut counts).unwrap();
            let weights = counts.of(0);
            // The sample, record by record, from the first record of each distinct row.
            let dense_rows = Design::new(Rows::dense(&x, WIDTH), y, Some(0.5), bounds, &exec)
                .unwrap()
                .merged(&exec)
                .unwrap();
            let Rows::Dense(rows) = dense_rows.rows() else {
                unreachable!()
            };
            let (mut sample_x, mut sample_y) = (Vec::new(), Vec::new());
            for (i, weight) in weights.iter().enumerate() {
                for _ in 0..*weight {
                    sample_x.extend_from_slice(&rows.rows(&(i..i + 1)));
                    sample_y.push(dense_rows.targets(i..i + 1)[0]);
                }
            }
            let sample = Design::new(Rows::dense(&sample_x, WIDTH), &sample_y, Some(0.5), bounds, &exec).unwrap();
            for (c, (spec, outcome)) in specs.iter().zip(outcome).enumerate() {
                let mut generator = SimulationGenerator::new(9, replicate * 256 + 1 + c as u64);
                let fit = release(spec, &sample, &exec, &mut Simulating(&mut generator)).unwrap();
                // Both are certified to the tolerance, which follows the noise.
                assert!(2.0 * spec.study_tolerance() < 1e-8);
                let close = |a: &[f64], b: &[f64], by| a.iter().zip(b).all(|(a, b)| (a - b).abs() < by);
                assert!(close(fit.params.values(), &outcome.params, 1e-8), "configuration {c}");
                let Some(level) = level else {
                    continue;
                };
                // The same noise on both moments: the same intervals, as far as these follow the parameters.
                let expected = intervals_of(spec, &project_release(spec, &fit).unwrap(), level, None).unwrap();
                for (expected, found) in expected.iter().zip(&outcome.bounds) {
                    assert!(close(expected, found, 1e-7), "configuration {c}");
                }
                assert!(outcome.bounds[0].iter().zip(&outcome.bounds[1]).all(|(l, u)| l < u));
            }
        }
    }
}

const REAL: RowBounds = RowBounds {
    targets: crate::loss::Targets::Interval {
        lower: -1.0,
        upper: 1.0,
    },
    ..BOUNDS
};

/// The squared loss on a ball.
fn squared(radius: f64, perturbation: Perturbation, moments: Moments) -> Spec {
    let like = spec(Arc::new(Logistic), Perturbation::Output, Budget::zcdp(1e6).unwrap());
    Spec::new(Choices {
        loss: Arc::new(Squared::new(1.0).unwrap()),
        radius: Some(radius),
        perturbation,
        moments,
        ..like.choices().clone()
    })
    .unwrap()
}

#[test]
fn replicates_keep_to_the_ball() {
    let (x, y) = records();
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let study = |spec: Spec, bounds: &RowBounds| {
        let design = Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), bounds, &exec).unwrap();
        Study::new(&design, &[spec], &exec).unwrap()
    };
    let all = study(squared(10.0, Perturbation::Output, Moments::None), &REAL);
    let norm = vector::norm(all.targets().next().unwrap());
    // Far away, just above the minimiser of the full data so that some samples leave the ball, and below it.
    for radius in [10.0, 1.02 * norm, 0.5 * norm] {
        let specs = [Perturbation::Output, Perturbation::Objective].map(|p| squared(radius, p, Moments::Joint));
        let level = (radius > norm).then_some(0.95);
        assert_replicates_equal_fits(&specs, &REAL, &y, level);
    }
    let near = study(squared(1.02 * norm, Perturbation::Output, Moments::None), &REAL);
    let outcomes = near.run(0..32, 1, None, &exec).unwrap();
    let norms = outcomes.iter().map(|o| vector::norm(&o[0].params));
    let on_sphere = norms.filter(|n| *n >= 1.02 * norm - 1e-6).count();
    assert!((2..31).contains(&on_sphere), "{on_sphere}");
    let active = study(squared(0.5 * norm, Perturbation::Output, Moments::Joint), &REAL);
    let refused = active.run(0..2, 1, Some(0.9), &exec);
    assert!(matches!(refused, Err(Error::Unsupported(_))));
}

/// The hinge is minimised one by one. It has no moments, and so no intervals.
#[test]
fn replicates_of_the_hinge_are_fits_without_intervals() {
    let (x, y) = records();
    let hinge = |radius: Option<f64>, moments: Moments| {
        Spec::new(Choices {
            loss: Arc::new(Hinge),
            radius,
            ..squared(1.0, Perturbation::Output, moments).choices().clone()
        })
    };
    assert!(matches!(hinge(None, Moments::Joint), Err(Error::Unsupported(_))));
    let specs = [None, Some(0.2)].map(|radius| hinge(radius, Moments::None).unwrap());
    assert_replicates_equal_fits(&specs, &BOUNDS, &y, None);
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let design = Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), &BOUNDS, &exec).unwrap();
    let study = Study::new(&design, &specs[..1], &exec).unwrap();
    let refused = study.run(0..2, 1, Some(0.9), &exec);
    assert!(matches!(refused, Err(Error::Unsupported(_))));
}

#[test]
fn sparse_and_dense_fits_agree() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (x, y) = records();
    let dense = Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), &BOUNDS, &exec).unwrap();
    let csr = Design::new(Rows::Csr(sparse(&x)), &y, Some(0.5), &BOUNDS, &exec).unwrap();
    for spec in specs() {
        let merged = [&dense, &csr].map(|d| d.merged(&exec).unwrap());
        let releases: Vec<Vec<f64>> = [&dense, &csr, &merged[0], &merged[1]]
            .into_iter()
            .map(|design| {
                let mut generator = SimulationGenerator::new(1, 2);
                let made = release(&spec, design, &exec, &mut Sealing(&mut generator)).unwrap();
                [made.params.values(), made.gradient_cov.as_ref().unwrap().values()].concat()
            })
            .collect();
        let near = 1e-8;
        for other in &releases[1..] {
            assert!(releases[0].iter().zip(other).all(|(a, b)| (a - b).abs() < near));
        }
    }
}

#[test]
fn only_rows_that_repeat_are_merged_in_a_fit() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let n = 20_000;
    let y = vec![1.0; n];
    for (n_distinct, expected) in [(n, n), (1_000, 1_000), (n / 2, n)] {
        let x: Vec<f64> = (0..n).map(|i| (i % n_distinct) as f64 / n as f64).collect();
        let design = Design::new(Rows::dense(&x, 1), &y, None, &BOUNDS, &exec).unwrap();
        let compacted = design.compacted(&exec).unwrap();
        assert_eq!(compacted.n_rows(), expected);
        assert_eq!(compacted.n_records(), n);
        let records = compacted.multiplicities().map_or(n, |m| m.iter().sum::<u32>() as usize);
        assert_eq!(records, n);
    }
}

/// Two Huber hinges of the same slopes at the minimiser are still two losses, and one loss at two budgets is one.
#[test]
fn only_equal_losses_share_a_minimiser() {
    let huber = |h: f64| Arc::new(HuberHinge::new(h).unwrap());
    let budget = || Budget::pure(1.0).unwrap();
    let one = spec(huber(0.5), Perturbation::Output, budget());
    let same = spec(huber(0.5), Perturbation::Objective, Budget::pure(2.0).unwrap());
    let other = spec(huber(0.4), Perturbation::Output, budget());
    let logistic = spec(Arc::new(Logistic), Perturbation::Output, budget());
    assert!(population::same_risk(&one, &same));
    assert!(!population::same_risk(&one, &other) && !population::same_risk(&one, &logistic));
}
