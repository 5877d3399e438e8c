//! Whole releases: with almost no noise they are the minimiser and its moments, and post-processing is what the formulas say.

use super::*;
use crate::loss::Squared;
use crate::mechanism::fit::margin_radius;
use crate::mechanism::{
    Release, Sealing, Simulated, Simulating, Values, check_design, project_release, release, release_fit,
};
use crate::noise::SimulationGenerator;
use crate::privacy::Perturbation::{Objective, Output};
use crate::spec::Terms;

/// Six rows of two columns with targets in ±1.
const ROWS: [f64; 12] = [0.6, 0.0, 0.0, 0.8, -0.5, 0.5, 0.3, 0.9, -0.7, -0.1, 0.2, -0.4];
const TARGETS: [f64; 6] = [0.5, -1.0, 0.25, 0.75, -0.5, 1.0];
const LAMBDA: f64 = 0.1;

fn squared(perturbation: Perturbation, budget: Budget) -> Choices {
    Choices {
        terms: Terms::of_rows(6, Neighbors::ReplaceOne),
        n_columns: 2,
        intercept: None,
        loss: Arc::new(Squared::new(1.0).unwrap()),
        l2_strength: LAMBDA,
        radius: Some(10.0),
        moments: Moments::Joint,
        projection: Projection::Floor,
        ..choices(perturbation, budget)
    }
}

fn with_rows(test: impl FnOnce(&Design<'_>, &Executor<'_>)) {
    let targets = Squared::new(1.0).unwrap().targets();
    with_design(&ROWS, 2, &TARGETS, None, &row_bounds(1.0, targets), test);
}

/// `(1/6) Σ weight(i)·xᵢxᵢᵀ`.
fn moment(weight: impl Fn(usize) -> f64) -> [f64; 4] {
    let mut out = [0.0; 4];
    for (i, x) in ROWS.chunks_exact(2).enumerate() {
        for (entry, o) in out.iter_mut().enumerate() {
            *o += weight(i) * x[entry / 2] * x[entry % 2] / 6.0;
        }
    }
    out
}

/// Minimiser, Hessian and gradient covariance of the ridge regression, by Cramer's rule.
fn ridge_regression() -> ([f64; 2], [f64; 4], [f64; 4]) {
    let mut h = moment(|_| 2.0);
    h[0] += LAMBDA;
    h[3] += LAMBDA;
    let mut c = [0.0; 2];
    for (x, y) in ROWS.chunks_exact(2).zip(TARGETS) {
        c[0] += 2.0 * x[0] * y / 6.0;
        c[1] += 2.0 * x[1] * y / 6.0;
    }
    let det = h[0] * h[3] - h[1] * h[2];
    let theta = [(c[0] * h[3] - c[1] * h[1]) / det, (h[0] * c[1] - h[2] * c[0]) / det];
    let mut cov = moment(|i| {
        let u = ROWS[2 * i] * theta[0] + ROWS[2 * i + 1] * theta[1];
        4.0 * (u - TARGETS[i]).powi(2)
    });
    for (entry, v) in cov.iter_mut().enumerate() {
        *v -= LAMBDA * LAMBDA * theta[entry / 2] * theta[entry % 2];
    }
    (theta, h, cov)
}

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64], room: f64) {
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() < room, "{got:?} against {expected:?}");
    }
}

#[test]
fn with_almost_no_noise_a_release_is_the_ridge_regression() {
    let (theta, hessian, cov) = ridge_regression();
    with_rows(|design, exec| {
        for budget in [pure(1e8), zcdp(1e14), approx(1e12, 0.5)] {
            for moments in [Moments::Joint, Moments::Separate] {
                let spec = spec(Choices {
                    moments,
                    ..squared(Output, budget)
                });
                let mut generator = SimulationGenerator::new(81, 0);
                let fit = release_fit(&spec, design, exec, &mut generator).unwrap();
                assert_close(fit.params.values(), &theta, 1e-3);
                let [h, s] = fit.matrices.as_ref().unwrap();
                assert_close(h, &hessian, 2e-2);
                assert_close(s, &cov, 2e-2);
                let simulated = release(&spec, design, exec, &mut Simulating(&mut generator)).unwrap();
                let simulated = project_release(&spec, &simulated).unwrap();
                assert_close(simulated.params.values(), &theta, 1e-3);
                let [h, s] = simulated.matrices.as_ref().unwrap();
                assert_close(h, &hessian, 2e-2);
                assert_close(s, &cov, 2e-2);
                let steps = if moments == Moments::Joint { 2 } else { 3 };
                assert_eq!((fit.steps.len(), fit.seals.len()), (steps, 3));
                assert_eq!(fit.steps[0].query.name(), "coefficients");
                let spent: f64 = fit.steps.iter().map(|s| s.cost.value()).sum();
                assert!(spent > 0.0 && fit.spectral_radius > 0.0);
            }
        }
    });
}

#[test]
fn noise_of_the_objective_moves_the_minimiser_by_the_hessian() {
    // The logistic risk of records x = 1, three of four with target 1: its derivative at θ is σ(θ) - 3/4 + λθ + b/n.
    let (x, y) = ([1.0; 4], [1.0, 1.0, 1.0, -1.0]);
    let base = Choices {
        terms: Terms::of_rows(4, Neighbors::ReplaceOne),
        n_columns: 1,
        intercept: None,
        l2_strength: 0.3,
        ..choices(Objective, pure(1e6))
    };
    let derivative = |theta: f64| 1.0 / (1.0 + (-theta).exp()) - 0.75 + 0.3 * theta;
    let bounds = row_bounds(1.0, Targets::Signs);
    with_design(&x, 1, &y, None, &bounds, |design, exec| {
        let mut generator = SimulationGenerator::new(82, 0);
        let exact = release(&spec(base.clone()), design, exec, &mut Sealing(&mut generator)).unwrap();
        assert!(derivative(exact.params.values()[0]).abs() < 1e-4);
        assert!(exact.hessian.is_none() && exact.gradient_cov.is_none() && exact.noise.is_none());
        // Noise of many seeds: the derivative at the release is -b/n, whose scale is that of the law.
        let noisy = spec(Choices {
            budget: pure(4.0),
            ..base
        });
        for simulated in [false, true] {
            let sizes = (0..400).map(|stream| {
                let mut generator = SimulationGenerator::new(83, stream);
                let params = if simulated {
                    let made = release(&noisy, design, exec, &mut Simulating(&mut generator));
                    made.unwrap().params.into_values()
                } else {
                    let made = release(&noisy, design, exec, &mut Sealing(&mut generator));
                    made.unwrap().params.into_values()
                };
                4.0 * derivative(params[0]).abs()
            });
            let mean = sizes.sum::<f64>() / 400.0;
            // One dimension: exponential of mean 1/rate, so five standard errors of 400 draws are a quarter.
            assert_near(mean, noisy.law().scale(), 0.25);
        }
    });
}

fn simulated(values: &[f64]) -> Simulated {
    Simulated::new("x", values.to_vec()).unwrap()
}

fn by_hand(spec: &Spec, params: &[f64], hessian: Option<&[f64]>, cov: &[f64]) -> Release<Simulated> {
    Release {
        params: simulated(params),
        hessian: hessian.map(simulated),
        gradient_cov: Some(simulated(cov)),
        noise: spec.moment_noise(1.0).unwrap(),
    }
}

#[test]
fn projection_by_hand() {
    let base = Choices {
        terms: Terms {
            n_samples: 600_000,
            ..squared(Output, pure(1.0)).terms
        },
        ..squared(Output, pure(1.0))
    };
    let params = [2.0, 0.0];
    let (h, s) = ([0.5, 0.0, 0.0, -0.3], [0.9, 0.0, 0.0, -0.2]);
    // H + λ, the eigenvalue -.2 raised to λ; Σ - λ²θθᵀ with the eigenvalue -.2 raised to 0, or to the paper's λ.
    let cases = [
        (Calibration::Tight, Projection::Floor, 0.0),
        (Calibration::Paper, Projection::Floor, LAMBDA),
    ];
    for (calibration, projection, floor) in cases {
        let spec = spec(Choices {
            projection,
            calibration,
            ..base.clone()
        });
        let fit = project_release(&spec, &by_hand(&spec, &params, Some(&h), &s)).unwrap();
        let [hessian, cov] = fit.matrices.unwrap();
        assert_close(&hessian, &[0.6, 0.0, 0.0, LAMBDA], 1e-12);
        assert_close(&cov, &[0.9 - 0.04, 0.0, 0.0, floor], 1e-12);
        assert_eq!(fit.projection, Projection::Floor);
        assert_eq!(fit.params.values(), params);
    }
    // What is below λ + r_H is not believed.
    let spec = spec(Choices {
        projection: Projection::Cautious,
        ..base.clone()
    });
    let radius = spec.moment_noise(1.0).unwrap().unwrap().spectral_radius(2);
    let h = [0.9 * radius, 0.0, 0.0, 1.1 * radius];
    let fit = project_release(&spec, &by_hand(&spec, &params, Some(&h), &s)).unwrap();
    assert_near(fit.spectral_radius, radius, 0.0);
    let [hessian, _] = fit.matrices.unwrap();
    assert_close(&hessian, &[LAMBDA, 0.0, 0.0, LAMBDA + 1.1 * radius], 1e-12);
    // A Hessian without a data part is λI, whatever the projection.
    let fit = project_release(&spec, &by_hand(&spec, &params, None, &s)).unwrap();
    let [hessian, _] = fit.matrices.unwrap();
    assert_close(&hessian, &[LAMBDA, 0.0, 0.0, LAMBDA], 1e-15);
    // Off the diagonal, and moments at the nearest point of the ball: θ = (20, 0) stands for (10, 0).
    let s = [3.0, 0.5, 0.5, 4.0];
    let fit = project_release(&spec, &by_hand(&spec, &[20.0, 0.0], None, &s)).unwrap();
    let [_, cov] = fit.matrices.unwrap();
    assert_close(&cov, &[3.0 - 1.0, 0.5, 0.5, 4.0], 1e-12);
}

#[test]
fn the_default_projection_counts_the_noise() {
    use Projection::{Auto, Cautious, Floor, NoiseAware};
    assert_eq!(
        [Auto, Floor, Cautious, NoiseAware].map(Projection::decided),
        [NoiseAware, Floor, Cautious, NoiseAware]
    );
    assert_eq!(
        [Floor, Cautious, Auto, NoiseAware].map(Projection::name),
        ["floor", "cautious", "auto", "noise_aware"]
    );
}

#[test]
fn margins_reach_the_norm_of_row_and_parameters() {
    let spec = spec(choices(Output, pure(1.0)));
    let radius = margin_radius(&spec, &simulated(&[3.0, 0.0, -4.0]));
    assert!((6.25..=6.25 * (1.0 + 1e-14)).contains(&radius), "{radius}");
}

#[test]
fn rows_that_were_checked_otherwise_are_refused() {
    let base = Choices {
        terms: Terms::of_rows(4, Neighbors::ReplaceOne),
        n_columns: 1,
        intercept: Some(0.5),
        ..choices(Output, pure(1.0))
    };
    let interval = Targets::Interval {
        lower: -1.0,
        upper: 1.0,
    };
    let check = |choices: &Choices, n: usize, row_norm: f64, targets, intercept| {
        let mut said = None;
        let bounds = row_bounds(row_norm, targets);
        with_design(&vec![0.5; n], 1, &vec![1.0; n], intercept, &bounds, |design, _| {
            said = check_design(&spec(choices.clone()), design)
                .err()
                .map(|e| e.to_string());
        });
        said
    };
    let signs = Targets::Signs;
    assert_eq!(check(&base, 4, 1.0, signs, Some(0.5)), None);
    assert_eq!(check(&base, 4, 0.7, signs, Some(0.5)), None);
    // Each of the three alone is enough.
    for (row_norm, targets, intercept) in [
        (1.0 + 1e-15, signs, Some(0.5)),
        (2.0, signs, Some(0.5)),
        (1.0, interval, Some(0.5)),
        (1.0, signs, Some(0.25)),
    ] {
        let said = check(&base, 4, row_norm, targets, intercept).unwrap();
        assert!(said.starts_with("rows must be checked against the bounds"), "{said}");
    }
    let said = check(&base, 4, 1.0, signs, None).unwrap();
    assert!(said.starts_with("each row of X must have"), "{said}");
    for n in [3, 5] {
        assert!(check(&base, n, 1.0, signs, Some(0.5)).unwrap().starts_with("X must"));
    }
    let add_remove = Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..base.terms
        },
        ..base
    };
    for n in [3, 5, 64] {
        assert_eq!(check(&add_remove, n, 1.0, signs, Some(0.5)), None);
    }
    let said = check(&add_remove, 65, 1.0, signs, Some(0.5)).unwrap();
    assert!(said.starts_with("n_public must be at least a sixteenth"), "{said}");
}

#[test]
fn a_release_checks_its_rows() {
    let spec = spec(Choices {
        terms: Terms {
            n_samples: 7,
            ..squared(Output, pure(1.0)).terms
        },
        ..squared(Output, pure(1.0))
    });
    let short = super::spec(Choices {
        terms: Terms::of_rows(4, Neighbors::ReplaceOne),
        n_columns: 1,
        intercept: None,
        loss: parabola(0.4),
        radius: Some(4.0),
        ..choices(Output, pure(1.0))
    });
    let mut generator = SimulationGenerator::new(84, 0);
    with_rows(|design, exec| {
        assert!(release(&spec, design, exec, &mut Sealing(&mut generator)).is_err());
        assert!(release(&spec, design, exec, &mut Simulating(&mut generator)).is_err());
    });
    let bounds = row_bounds(1.0, Targets::Signs);
    with_design(&[1.0, 1.0, 0.5, 1.0], 1, &[1.0; 4], None, &bounds, |design, exec| {
        assert!(release(&short, design, exec, &mut Sealing(&mut generator)).is_err());
        assert!(release(&short, design, exec, &mut Simulating(&mut generator)).is_err());
    });
}

#[test]
fn output_perturbation_moves_into_the_ball_where_asked_to() {
    let far = |project| Choices {
        radius: Some(0.01),
        project,
        moments: Moments::None,
        ..squared(Output, pure(0.1))
    };
    with_rows(|design, exec| {
        for project in [false, true] {
            let mut generator = SimulationGenerator::new(85, 0);
            let released = release(&spec(far(project)), design, exec, &mut Sealing(&mut generator)).unwrap();
            let norm = released.params.values()[0].hypot(released.params.values()[1]);
            assert_eq!(norm <= 0.01 * (1.0 + 1e-14), project, "{norm}");
        }
    });
}
