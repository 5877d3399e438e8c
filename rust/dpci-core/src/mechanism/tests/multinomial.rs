//! A loss of several linear predictors: its sums, its sensitivity by brute force, its releases and what is refused.

use super::*;
use crate::erm::minimize_risk;
use crate::loss::Multinomial;
use crate::mechanism::{Values, release_fit};
use crate::moments::data_moments;
use crate::noise::SimulationGenerator;
use crate::objective::{HessianRows, Objective};
use crate::privacy::Perturbation::{Objective as ObjectivePerturbed, Output};
use crate::records::Records;
use crate::row_domain::Blocks;
use crate::solver::{Method, Options};
use crate::spec::{Terms, Variant};

const COLUMNS: usize = 2;

fn multinomial(classes: usize, budget: Budget) -> Choices {
    Choices {
        terms: Terms::of_rows(60, Neighbors::ReplaceOne),
        n_columns: COLUMNS,
        intercept: Some(0.75),
        loss: Arc::new(Multinomial::new(classes).unwrap()),
        l2_strength: 0.01,
        moments: Moments::Joint,
        ..choices(Output, budget)
    }
}

/// Rows of norm at most 1, some of them equal, and their classes.
fn table(n: usize, classes: usize) -> (Vec<f64>, Vec<f64>) {
    let rows = (0..n * COLUMNS).map(|i| 0.7 * ((i % 50) as f64 * 0.731).sin());
    let targets = (0..n).map(|i| ((i % 25) % classes) as f64);
    (rows.collect(), targets.collect())
}

fn objective<'a>(
    records: &'a dyn Records,
    loss: &'a dyn Loss,
    (l2_strength, n_samples): (f64, f64),
    exec: &'a Executor<'a>,
) -> Objective<'a> {
    Objective {
        records,
        weights: None,
        loss,
        l2_strength,
        extra_convexity: 0.0,
        linear_term: None,
        n_samples,
        exec,
    }
}

#[test]
fn sums_are_the_derivatives_of_the_risk_and_the_moments_of_its_gradients() {
    for classes in [3, 5] {
        let loss = Multinomial::new(classes).unwrap();
        // 25 records, each often enough that all are merged.
        let n = 25 * 700;
        let (rows, targets) = table(n, classes);
        let bounds = row_bounds(1.0, loss.targets());
        with_design(&rows, COLUMNS, &targets, Some(0.75), &bounds, |design, exec| {
            let merged = design.clone().compacted(exec).unwrap();
            assert_eq!(merged.n_rows(), 25);
            let dim = (classes - 1) * 3;
            let params: Vec<f64> = (0..dim).map(|i| (i as f64 * 1.3).cos()).collect();
            let value = |records: &dyn Records, params: &[f64]| {
                let objective = objective(records, &loss, (0.01, n as f64), exec);
                objective.evaluate(params, HessianRows::All).unwrap()
            };
            let [plain, of_merged] = [value(design, &params), value(&merged, &params)];
            let hessian = plain.hessian.as_ref().unwrap();
            let h = 1e-6;
            for i in 0..dim {
                assert!((plain.gradient[i] - of_merged.gradient[i]).abs() < 1e-13);
                let moved = |by: f64| {
                    let mut params = params.clone();
                    params[i] += by;
                    value(&merged, &params)
                };
                let (up, down) = (moved(h), moved(-h));
                let slope = (up.value - down.value) / (2.0 * h);
                assert!((slope - plain.gradient[i]).abs() < 1e-8);
                for j in 0..dim {
                    let curvature = (up.gradient[j] - down.gradient[j]) / (2.0 * h);
                    assert!((curvature - hessian[i * dim + j]).abs() < 1e-8);
                }
            }
            // The gradient of one record alone, without the ridge, is what the second moments are made of.
            let mut expected = vec![0.0; dim * dim];
            for (row, target) in rows.chunks_exact(COLUMNS).zip(&targets).take(25) {
                with_design(row, COLUMNS, &[*target], Some(0.75), &bounds, |one, exec| {
                    let of_one = objective(one, &loss, (0.0, 1.0), exec);
                    let g = of_one.evaluate(&params, HessianRows::None).unwrap().gradient;
                    for (e, i) in expected.iter_mut().zip(0..) {
                        *e += g[i / dim] * g[i % dim] / 25.0;
                    }
                });
            }
            for records in [design as &dyn Records, &merged] {
                let found = data_moments(records, &loss, &params, n as f64, exec).unwrap();
                for i in 0..dim * dim {
                    let ridge = if i / dim == i % dim { 0.01 } else { 0.0 };
                    assert!((found.curvature[i] + ridge - hessian[i]).abs() < 1e-13);
                    assert!((found.squared_slope[i] - expected[i]).abs() < 1e-13);
                }
            }
        });
    }
}

/// 9999 short rows of class 1 hold its parameters far out, so that the record that is replaced is surely taken for class 1, before and after,
/// while it belongs to class 2: docs/proofs/multinomial.md, "The bound is attained".
#[test]
fn one_record_moves_the_minimiser_by_the_sensitivity() {
    let (n, l2_strength) = (10_000, 1e-4);
    for classes in [3, 4] {
        let choices = Choices {
            terms: Terms {
                n_samples: n,
                ..multinomial(classes, zcdp(0.5)).terms
            },
            intercept: None,
            l2_strength,
            moments: Moments::None,
            ..multinomial(classes, zcdp(0.5))
        };
        let sensitivity = Spec::new(choices.clone()).unwrap().sensitivity();
        let minimisers = [1.0, -1.0].map(|sign| {
            let mut rows = vec![0.0; COLUMNS * n];
            rows.iter_mut().step_by(COLUMNS).for_each(|x| *x = 0.02);
            rows[COLUMNS * (n - 1)..].copy_from_slice(&[0.1, sign * 0.99_f64.sqrt()]);
            let mut targets = vec![1.0; n];
            targets[n - 1] = 2.0;
            let mut params = Vec::new();
            let bounds = row_bounds(1.0, choices.loss.targets());
            with_design(&rows, COLUMNS, &targets, None, &bounds, |design, exec| {
                let objective = objective(design, &*choices.loss, (l2_strength, n as f64), exec);
                let options = Options {
                    method: Method::Auto,
                    tolerance: 1e-7,
                    max_iterations: 200,
                    radius: None,
                };
                params = minimize_risk(&objective, None, &options).unwrap().params;
            });
            params
        });
        let moved = minimisers[0].iter().zip(&minimisers[1]);
        let moved = moved.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        assert!(
            moved <= sensitivity && moved > 0.99 * sensitivity,
            "{classes}: {moved} {sensitivity}"
        );
    }
}

#[test]
fn a_release_with_almost_no_noise_is_the_minimiser() {
    for (budget, neighbors, perturbation) in [
        (pure(1e10), Neighbors::ReplaceOne, Output),
        (zcdp(1e14), Neighbors::AddRemove, Output),
        (pure(1e10), Neighbors::AddRemove, ObjectivePerturbed),
        (approx(1e14, 0.5), Neighbors::ReplaceOne, ObjectivePerturbed),
    ] {
        let choices = Choices {
            terms: Terms {
                neighbors,
                ..multinomial(3, budget).terms
            },
            perturbation,
            ..multinomial(3, budget)
        };
        let spec = spec(choices);
        let (rows, targets) = table(60, 3);
        let bounds = row_bounds(1.0, spec.choices().loss.targets());
        with_design(&rows, COLUMNS, &targets, Some(0.75), &bounds, |design, exec| {
            let mut generator = SimulationGenerator::new(1, 0);
            let fit = release_fit(&spec, design, exec, &mut generator).unwrap();
            let objective = objective(design, &*spec.choices().loss, (0.01, 60.0), exec);
            let found = objective.evaluate(fit.params.values(), HessianRows::All).unwrap();
            assert!(found.gradient.iter().all(|g| g.abs() < 1e-6), "{:?}", found.gradient);
            let [hessian, _] = fit.matrices.unwrap();
            for (a, b) in hessian.iter().zip(found.hessian.unwrap()) {
                assert!((a - b).abs() < 1e-6);
            }
        });
    }
}

#[test]
fn the_noise_follows_from_the_bounds() {
    // R = 1.25, nλ = .6.
    let sensitivity = |neighbors| {
        spec(Choices {
            terms: Terms {
                neighbors,
                ..multinomial(4, zcdp(0.5)).terms
            },
            ..multinomial(4, zcdp(0.5))
        })
        .sensitivity()
    };
    let one = 2.0_f64.sqrt() * 1.25 / 0.6;
    assert_just_above(sensitivity(Neighbors::ReplaceOne), 2.0 * one);
    assert_just_above(sensitivity(Neighbors::AddRemove), one);
    let noise = spec(multinomial(4, pure(1.0))).moment_noise(9.0).unwrap();
    // 2R²·sup(2 tr M + ‖r‖²)/n.
    assert_just_above(
        noise.unwrap().gradient_cov.sensitivity,
        2.0 * 1.25_f64.powi(2) * 2.5 / 60.0,
    );
    let noise = spec(multinomial(4, zcdp(0.5))).moment_noise(9.0).unwrap();
    // √2·R²·√(4²/4 + 4)/n: the weight 4 of the Hessian makes the least noise.
    assert_near(
        noise.unwrap().gradient_cov.sensitivity,
        2.0_f64.sqrt() * 1.25_f64.powi(2) * 8.0_f64.sqrt() / 60.0,
        1e-6,
    );
}

/// The logarithm of `det(A + M ⊗ xxᵀ)/det A` in exact form, A a multiple of the identity: `s = ‖x‖²` over that multiple, and M of the
/// probabilities p of the classes but the reference.
fn log_ratio(p: &[f64], s: f64) -> f64 {
    let logs: f64 = p.iter().map(|p| (s * p).ln_1p()).sum();
    let rest: f64 = p.iter().map(|p| s * p * p / (1.0 + s * p)).sum();
    logs + (1.0 - rest).ln()
}

#[test]
fn the_determinant_of_objective_perturbation_is_bounded_with_the_rank() {
    for classes in 3..=6 {
        for (share, attained) in [(0.01, 0.99), (0.2, 0.95), (5.0, 0.6)] {
            // tR²/(nλ) is the share; R = 1.25.
            let trace = (classes as f64 - 2.0) / (classes as f64 - 1.0);
            let l2_strength = trace * 1.25_f64.powi(2) / (60.0 * share);
            let choices = Choices {
                perturbation: ObjectivePerturbed,
                l2_strength,
                moments: Moments::None,
                ..multinomial(classes, approx(50.0, 1e-3))
            };
            let log_det = spec(choices).objective_profile().unwrap().log_det;
            let others = classes - 1;
            let rank = others as f64;
            assert_just_above(log_det, rank * (share / rank).ln_1p());
            let mut greatest = log_ratio(&vec![1.0 / rank; others], share / trace);
            for draw in 0..3000 {
                let odds: Vec<f64> = (0..classes)
                    .map(|k| (4.0 * ((draw * 11 + k * 5) as f64 * 0.331).sin()).exp())
                    .collect();
                let total: f64 = odds.iter().sum();
                let p: Vec<f64> = odds[1..].iter().map(|odds| odds / total).collect();
                greatest = greatest.max(log_ratio(&p, share / trace));
            }
            assert!(
                greatest <= log_det && greatest > attained * log_det,
                "{classes} {share}: {greatest} {log_det}"
            );
        }
    }
}

#[test]
fn the_noise_of_objective_perturbation_follows_from_the_bounds() {
    // R = 1.25, nλ = .6, κ = ⅔·R²/.6 of rank 3; √2R of each record that changes.
    let kappa = 2.0 / 3.0 * 1.25_f64.powi(2) / 0.6;
    for (neighbors, records) in [(Neighbors::ReplaceOne, 2.0), (Neighbors::AddRemove, 1.0)] {
        let choices = Choices {
            terms: Terms {
                neighbors,
                ..multinomial(4, pure(5.0)).terms
            },
            perturbation: ObjectivePerturbed,
            moments: Moments::None,
            ..multinomial(4, pure(5.0))
        };
        let spec = spec(choices);
        let shift = records * 2.0_f64.sqrt() * 1.25;
        assert_just_above(spec.sensitivity(), shift);
        let left = spec.coefficients().cost.value() - 3.0 * (kappa / 3.0).ln_1p();
        assert_near(spec.law().scale(), shift / left, 1e-12);
        let least = spec.plan().unwrap().least_l2_strength;
        let e = (spec.coefficients().cost.value() / 3.0).exp_m1();
        assert_near(least, 2.0 / 3.0 * 1.25_f64.powi(2) / (60.0 * 3.0 * e), 1e-12);
    }
}

#[test]
fn what_is_not_proved_is_refused() {
    let good = multinomial(3, zcdp(0.5));
    for bad in [
        Choices {
            perturbation: ObjectivePerturbed,
            variant: Variant::Cms11,
            l2_strength: 10.0,
            ..good.clone()
        },
        Choices {
            perturbation: ObjectivePerturbed,
            rows: RowDomain::Blocks(Arc::new(Blocks::new(vec![0.5; 2], vec![0, 1]).unwrap())),
            ..good.clone()
        },
        Choices {
            radius: Some(1.0),
            ..good.clone()
        },
        Choices {
            calibration: Calibration::Paper,
            ..good.clone()
        },
        Choices {
            moments: Moments::None,
            reserve: 0.1,
            ..good.clone()
        },
    ] {
        let message = refusal(bad);
        assert!(message.contains("the multinomial loss does not support"), "{message}");
    }
    let bounds = row_bounds(1.0, good.loss.targets());
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    for target in [-1.0, 0.5, 3.0, f64::NAN] {
        let (rows, targets) = ([0.1, 0.2], [target]);
        let design = Design::new(Rows::dense(&rows, 2), &targets, None, &bounds, &exec);
        let message = design.unwrap_err().to_string();
        assert!(message.contains("a whole number from 0 to 2"), "{message}");
    }
}
