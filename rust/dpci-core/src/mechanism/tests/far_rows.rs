//! Rows beyond their bounds: their weights, the sensitivities that follow, and the releases that take them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::newton::{choices as newton_choices, data};
use crate::Result;
use crate::design::{Csr, Design, OnViolation, Persons, RowBounds, Rows};
use crate::exec::Executor;
use crate::linalg::vector;
use crate::loss::{Hinge, HuberHinge, Logistic, Loss, SmoothHinge, Targets};
use crate::mechanism::{Sealing, Values, release_fit, release_newton};
use crate::moments::data_moments;
use crate::noise::SimulationGenerator;
use crate::privacy::{Budget, Neighbors, Perturbation};
use crate::row_domain::{Blocks, RowDomain};
use crate::spec::testing::*;
use crate::spec::{Choices, Moments, NewtonSpec, NoiseKind, ReportSpec, Spec, TuningMethod, TuningSpec};
use crate::unit::{Unit, Weighting};

fn blocks() -> RowDomain {
    RowDomain::Blocks(Arc::new(Blocks::new(vec![0.5, 2.0], vec![0, 1, 1]).unwrap()))
}

/// Rows of length 0 to 1e140 on lines in every direction, and classes.
fn far_rows() -> (Vec<f64>, Vec<f64>) {
    let lengths = [0.0, 0.3, 0.999, 1.0, 1.0 + 1e-12, 1.5, 7.0, 1e3, 1e40, 1e140];
    let mut rows = Vec::new();
    for (k, length) in (0..40).zip(lengths.iter().cycle()) {
        let angle = f64::from(k);
        let direction = [angle.sin(), angle.cos(), (2.0 * angle).sin()];
        let norm = vector::norm(&direction);
        rows.extend(direction.map(|x| length * x / norm));
    }
    let targets = (0..40).map(|k| if k % 3 == 0 { -1.0 } else { 1.0 }).collect();
    (rows, targets)
}

fn bounds(rows: RowDomain, on_violation: OnViolation) -> RowBounds {
    RowBounds {
        rows,
        targets: Targets::Signs,
        on_violation,
    }
}

#[test]
fn rows_beyond_their_bounds_weigh_the_square_of_what_would_bring_them_there() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (rows, targets) = far_rows();
    let starts: Vec<i64> = (0..=40).map(|i| 3 * i).collect();
    let columns: Vec<i32> = (0..120).map(|k| k % 3).collect();
    for domain in [RowDomain::Ball(1.0), blocks()] {
        let held = bounds(domain.clone(), OnViolation::Weight);
        let dense = Design::new(Rows::dense(&rows, 3), &targets, Some(0.5), &held, &exec).unwrap();
        let shares = dense.shares().unwrap().to_vec();
        assert_eq!(dense.weight_bound(), Some(1.0));
        for (x, w) in rows.chunks_exact(3).zip(&shares) {
            let size = match &domain {
                RowDomain::Ball(bound) => vector::norm(x) / bound,
                RowDomain::Blocks(_) => (x[0].abs() / 0.5).max(f64::midpoint(x[1].abs(), x[2].abs())),
            };
            let expected = size.max(1.0).powi(-2);
            assert!((w - expected).abs() <= 1e-9 * expected, "{x:?} {w}");
            assert!(*w <= expected.next_up().next_up());
        }
        let csr = Csr::new(&starts[..], &columns[..], &rows[..], 3).unwrap();
        let sparse = Design::new(Rows::Csr(csr), &targets, Some(0.5), &held, &exec).unwrap();
        assert_eq!(sparse.shares(), Some(&shares[..]));
        // Weights of a caller and shares of persons are multiplied by it.
        let given: Vec<f64> = (0..40).map(|k| f64::from(k % 5)).collect();
        let weighting = Weighting::new(4.0, 40.0).unwrap();
        let both = dense.clone().weighted(&given, weighting).unwrap();
        let numbers: Vec<i64> = (0..40).map(|k| k / 2).collect();
        let persons = Persons::new(&numbers, Unit::persons(None).unwrap(), &exec).unwrap();
        let of_persons = dense.clone().of_persons(persons).unwrap();
        for i in 0..40 {
            assert_eq!(
                both.shares().unwrap()[i].to_bits(),
                (given[i] / 4.0 * shares[i]).to_bits()
            );
            assert_eq!(of_persons.shares().unwrap()[i].to_bits(), (0.5 * shares[i]).to_bits());
        }
        assert_eq!(both.weight_bound(), Some(4.0));
    }
}

#[test]
fn no_row_adds_more_than_one_within_its_bounds_could() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (rows, targets) = far_rows();
    let losses: [Arc<dyn Loss>; 3] = [
        Arc::new(Logistic),
        Arc::new(SmoothHinge::new(0.5).unwrap()),
        Arc::new(HuberHinge::new(0.5).unwrap()),
    ];
    let whole = 1.25_f64.sqrt();
    for (loss, params) in losses
        .iter()
        .flat_map(|loss| [[0.0; 4], [1.0, -2.0, 0.5, 0.1], [1e3, 1e3, -40.0, 5.0]].map(|params| (loss, params)))
    {
        for (i, x) in rows.chunks_exact(3).enumerate() {
            let held = bounds(RowDomain::Ball(1.0), OnViolation::Weight);
            let y = &targets[i..=i];
            let one = Design::new(Rows::dense(x, 3), y, Some(0.5), &held, &exec).unwrap();
            let found = data_moments(&one, &**loss, &params, 1.0, &exec).unwrap();
            let trace = |matrix: &[f64]| (0..4).map(|k| matrix[5 * k]).sum::<f64>();
            let (t, l) = (loss.curvature_bound(), loss.slope_bound());
            let room = 1.0 + 1e-12;
            assert!(trace(&found.curvature) <= t * whole.powi(2) * room, "{x:?}");
            assert!(trace(&found.squared_slope) <= (l * whole).powi(2) * room, "{x:?}");
        }
    }
}

#[test]
fn shares_so_small_that_they_lose_digits_are_0() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let bound: f64 = 1e-12;
    let held = bounds(RowDomain::Ball(bound), OnViolation::Weight);
    let mut least = f64::INFINITY;
    // Shares would be from 0 to 30 times the least number, and a quarter of each would be rounded.
    for quotient in (0..400).map(|k| (1.5 + 0.02 * f64::from(k)) * 1e161 / 4.0) {
        let x = [quotient * bound];
        let design = Design::new(Rows::dense(&x, 1), &[1.0], None, &held, &exec).unwrap();
        let found = data_moments(&design, &Logistic, &[0.0], 1.0, &exec).unwrap();
        let greatest = 0.25 * bound * bound * (1.0 + 1e-12);
        assert!(found.curvature[0] <= greatest, "{}", found.curvature[0] / greatest);
        least = least.min(design.shares().unwrap()[0]);
    }
    assert_eq!(least.to_bits(), 0);
}

/// Choices of a fit to the rows of [`far_rows`], which weigh less beyond the unit ball.
fn far(perturbation: Perturbation, epsilon: f64) -> Choices {
    let mut far = Choices {
        n_columns: 3,
        intercept: Some(0.5),
        ..choices(perturbation, pure(epsilon))
    };
    far.terms.n_samples = 40;
    far.terms.weighting = Some(Weighting::new(1.0, 40.0).unwrap().of_far_rows());
    far
}

/// A fit to rows of a domain with this treatment and these weights, if it is offered.
fn fitted(
    choices: &Choices,
    of: (RowDomain, OnViolation),
    (rows, weights): (&[f64], Option<&[f64]>),
) -> Result<Vec<f64>> {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let targets = far_rows().1;
    let held = bounds(of.0, of.1);
    let rows = Rows::dense(rows, 3);
    let mut design = Design::new(rows, &targets, Some(0.5), &held, &exec)?;
    if let (Some(weights), Some(weighting)) = (weights, choices.terms.weighting) {
        design = design.weighted(weights, weighting)?;
    }
    let spec = Spec::new(choices.clone())?;
    let mut generator = SimulationGenerator::new(5, 0);
    let fit = release_fit(&spec, &design, &exec, &mut generator)?;
    Ok(fit.params.values().to_vec())
}

#[test]
fn a_fit_with_far_rows_is_that_of_their_weights() {
    let (mut rows, _) = far_rows();
    // Rows as far as that are not within any public bound.
    for x in &mut rows {
        *x = x.clamp(-50.0, 50.0);
    }
    let weights: Vec<f64> = rows
        .chunks_exact(3)
        .map(|x| vector::norm(x).max(1.0).powi(-2))
        .collect();
    for perturbation in [Perturbation::Objective, Perturbation::Output] {
        let far = far(perturbation, 1e9);
        let found = fitted(&far, (RowDomain::Ball(1.0), OnViolation::Weight), (&rows, None));
        let mut wide = far.clone();
        wide.rows = RowDomain::Ball(100.0);
        wide.terms.weighting = Some(Weighting::new(1.0, 40.0).unwrap());
        let given = (&rows[..], Some(&weights[..]));
        let expected = fitted(&wide, (wide.rows.clone(), OnViolation::Error), given);
        for (a, b) in found.unwrap().iter().zip(expected.unwrap()) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

#[test]
fn rows_must_be_treated_as_the_mechanism_expects() {
    let (rows, _) = far_rows();
    let inside: Vec<f64> = rows.chunks_exact(3).flat_map(|_| [0.5, 0.1, 0.2]).collect();
    let ball = || RowDomain::Ball(1.0);
    for perturbation in [Perturbation::Objective, Perturbation::Output] {
        let far = far(perturbation, 1.0);
        let mut near = far.clone();
        near.terms.weighting = None;
        let rules = [
            OnViolation::Error,
            OnViolation::Clip,
            OnViolation::Weight,
            OnViolation::Keep,
        ];
        for rule in rules {
            let of_far = fitted(&far, (ball(), rule), (&inside, None));
            assert_eq!(of_far.is_ok(), rule == OnViolation::Weight, "{rule:?}");
            let of_near = fitted(&near, (ball(), rule), (&inside, None));
            assert_eq!(of_near.is_ok(), !rule.keeps_rows(), "{rule:?}");
        }
        let refused = |choices: Choices| Spec::new(choices).unwrap_err().to_string();
        let within = Choices {
            radius: Some(1.0),
            ..far.clone()
        };
        let refused = refused(within);
        assert!(refused.contains("only without a radius"), "{refused}");
    }
    let kinked = Choices {
        loss: Arc::new(Hinge),
        moments: Moments::None,
        ..far(Perturbation::Output, 1.0)
    };
    let refused = Spec::new(kinked).unwrap_err().to_string();
    assert!(refused.contains("does not support the hinge loss"), "{refused}");
}

#[test]
fn newton_steps_weigh_rows_of_any_length_themselves() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let budget = [Budget::zcdp(0.5).unwrap(), Budget::pure(1.0).unwrap()];
    for budget in budget {
        let spec = NewtonSpec::new(newton_choices(3000, budget)).unwrap();
        let released = |rows: &[f64], targets: &[f64], rule| {
            let held = bounds(RowDomain::Ball(1.0), rule);
            let design = Design::new(Rows::dense(rows, 3), targets, Some(0.5), &held, &exec)?;
            let mut generator = SimulationGenerator::new(3, 0);
            release_newton(&spec, &design, &exec, &mut Sealing(&mut generator))
        };
        let (mut rows, targets) = data(3000);
        let held = released(&rows, &targets, OnViolation::Error).unwrap();
        let kept = released(&rows, &targets, OnViolation::Keep).unwrap();
        let differ = held.params.iter().zip(&kept.params).any(|(a, b)| (a - b).abs() > 1e-9);
        assert!(!differ, "{:?} {:?}", held.params, kept.params);
        assert!(released(&rows, &targets, OnViolation::Weight).is_err());
        rows[..3].copy_from_slice(&[1e140, -1e140, 3.0]);
        rows[3..6].copy_from_slice(&[0.0, 40.0, 0.0]);
        let far = released(&rows, &targets, OnViolation::Keep).unwrap();
        assert!(far.params.iter().all(|p| p.is_finite()));
        assert!(released(&rows, &targets, OnViolation::Error).is_err());
    }
}

#[test]
fn a_tuning_and_a_report_refuse_far_rows() {
    let far = far(Perturbation::Objective, 1.0);
    let loss: Arc<dyn Loss> = Arc::new(Logistic);
    let tuned = TuningSpec::new(
        std::slice::from_ref(&far),
        loss,
        Some(1.0),
        pure(1.0),
        TuningMethod::Chunks,
    );
    let refused = tuned.unwrap_err().to_string();
    assert!(refused.contains("got rows=\"weight\""), "{refused}");
    let mut reported = Choices {
        budget: approx(1.0, 1e-6),
        moments: Moments::None,
        ..far
    };
    reported.terms.neighbors = Neighbors::AddRemove;
    reported.noise = Some(NoiseKind::ShapedGaussian);
    let refused = ReportSpec::new(&reported, None).unwrap_err().to_string();
    assert!(refused.contains("rows=\"weight\""), "{refused}");
}
