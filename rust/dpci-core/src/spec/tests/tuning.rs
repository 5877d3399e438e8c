//! Private choices among candidates: how parts and budgets are shared, and what is refused.

use super::*;
use crate::loss::Squared;
use crate::noise::NoiseLaw;
use crate::privacy::Perturbation::Objective;
use crate::privacy::RunCount;
use crate::row_domain::RowDomain;
use crate::spec::{NoiseKind, Terms, TuningMethod, check_common, check_predictor};

/// `ln(1+e^z) - ln(1+e^-z)` is the range of the logistic loss over predictors up to z = 1.25·W.
fn range(radius: f64) -> f64 {
    1.25 * radius
}

#[test]
fn the_greatest_radius_bounds_the_scores_wherever_it_stands() {
    let of = |radius| Choices {
        radius: Some(radius),
        ..candidate(0.1)
    };
    for radii in [[3.0, 1.0, 2.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]] {
        let spec = tuned(&radii.map(of), None, pure(0.8), TuningMethod::Chunks).unwrap();
        let least_part = *spec.chunk_sizes().unwrap().last().unwrap() as f64;
        assert_near(spec.score_step().sensitivity, range(3.0) / least_part, 1e-6);
    }
}

#[test]
fn parts_share_the_records_and_each_has_the_budget() {
    let small = |l2_strength| Choices {
        terms: Terms::of_rows(14, Neighbors::ReplaceOne),
        ..candidate(l2_strength)
    };
    let candidates = [small(0.1), small(0.2), small(0.3)];
    let spec = tuned(&candidates, None, pure(0.8), TuningMethod::Chunks).unwrap();
    assert_eq!(spec.chunk_sizes().unwrap(), [4, 4, 3, 3]);
    assert!(spec.run_count().is_none() && spec.score_seal().is_none());
    for (model, n) in spec.candidates().iter().zip([4.0, 4.0, 3.0]) {
        assert_near(model.bounds().n, n, 0.0);
        assert_eq!(model.budget(), pure(0.8));
        assert_eq!(model.choices().moments, Moments::None);
    }
    let step = spec.score_step();
    assert_eq!(step.noise.name(), "gumbel");
    assert_eq!(step.budget, pure(0.8));
    // The range over the three records of the least part, rounding included.
    assert_near(step.sensitivity, range(2.0) / 3.0, 1e-6);
    assert!(step.sensitivity > range(2.0) / 3.0);
    assert_near(step.scale, 2.0 * step.sensitivity / 0.8, 1e-14);
    // ε²/8 = ρ.
    let rho = tuned(&candidates, None, zcdp(0.5), TuningMethod::Chunks).unwrap();
    assert_near(rho.score_step().scale, 2.0 * rho.score_step().sensitivity / 2.0, 1e-12);
    // A record for each part is enough, and fewer are not.
    let four = |n_samples| {
        [0.1, 0.2, 0.3].map(|l| Choices {
            terms: Terms::of_rows(n_samples, Neighbors::ReplaceOne),
            ..candidate(l)
        })
    };
    assert_eq!(
        tuned(&four(4), None, pure(0.8), TuningMethod::Chunks)
            .unwrap()
            .chunk_sizes()
            .unwrap(),
        [1; 4]
    );
    let said = tuned(&four(3), None, pure(0.8), TuningMethod::Chunks).unwrap_err();
    assert!(said.starts_with("n_samples must be at least 4"), "{said}");
    assert!(tuned(&four(3), None, pure(0.8), REPEAT).is_ok());
}

#[test]
fn a_repeated_run_has_a_third_of_epsilon() {
    // ε/(2+η), of which a quarter is for the score.
    let spec = tuned(&[candidate(0.1), candidate(0.2)], None, pure(0.9), REPEAT).unwrap();
    assert!(spec.chunk_sizes().is_none());
    assert_near(spec.run_count().unwrap().mean(), 10.0, 1e-9);
    for model in spec.candidates() {
        let Budget::Pure { epsilon } = model.budget() else {
            panic!("pure")
        };
        assert_near(epsilon, 0.75 * 0.3, 1e-13);
        assert_near(model.bounds().n, 1000.0, 0.0);
    }
    let step = spec.score_step();
    let Budget::Pure { epsilon } = step.budget else {
        panic!("pure")
    };
    assert_near(epsilon, 0.25 * 0.3, 1e-13);
    assert_eq!(step.noise.name(), "laplace");
    assert_near(step.sensitivity, range(2.0) / 1000.0, 1e-6);
    assert_near(step.scale, step.sensitivity / (0.25 * 0.3 * LEFT), 1e-12);
    let seal = spec.score_seal().unwrap();
    assert_near(seal.cost().value(), 0.25 * 0.3 * 1e-3, 1e-12);
    // The error of one draw in one dimension, and of its sum with a loss of at most ln(1 + e^2.5).
    let law = NoiseLaw::SphericalLaplace {
        dim: 1,
        rate: 1.0 / step.scale,
    };
    let errors = law.error_bound(1) + f64::EPSILON * 2.5_f64.exp().ln_1p();
    assert_near(seal.distance(), 2.0 * errors, 1e-7);
    assert!(seal.distance() < 1e-6 * step.scale);
}

#[test]
fn gaussian_runs_where_they_are_allowed_and_less() {
    let (epsilon, delta) = (1.0, 1e-6);
    let two = |change: &dyn Fn(Choices) -> Choices| [candidate(0.1), candidate(0.2)].map(change);
    let noise = |candidates: &[Choices], budget| {
        tuned(candidates, None, budget, REPEAT).map(|spec| spec.score_step().noise.name())
    };
    let gaussian = |c| Choices {
        noise: Some(NoiseKind::Gaussian),
        ..c
    };
    let laplace = |c| Choices {
        noise: Some(NoiseKind::SphericalLaplace),
        ..c
    };
    let objective = |c| Choices {
        perturbation: Objective,
        ..c
    };
    let wide = |c| Choices { n_columns: 400, ..c };
    let both = approx(epsilon, delta);
    // Few parameters: (d+1)/ε² is less than 1/(2ρ).
    assert_eq!(noise(&two(&|c| c), both).unwrap(), "laplace");
    assert_eq!(noise(&two(&gaussian), both).unwrap(), "gaussian");
    assert_eq!(noise(&two(&wide), both).unwrap(), "gaussian");
    assert_eq!(noise(&two(&|c| laplace(wide(c))), both).unwrap(), "laplace");
    assert_eq!(noise(&two(&|c| objective(wide(c))), both).unwrap(), "laplace");
    // One candidate that cannot is enough.
    assert_eq!(
        noise(&[wide(candidate(0.1)), objective(wide(candidate(0.2)))], both).unwrap(),
        "laplace"
    );
    for (candidates, budget) in [
        (two(&gaussian), pure(1.0)),
        (two(&gaussian), zcdp(0.1)),
        (two(&|c| objective(gaussian(c))), both),
    ] {
        let said = noise(&candidates, budget).unwrap_err();
        assert!(said.contains("got noise=\"gaussian\""), "{said}");
    }
    // Where the variances of both cross: 1/(2ρ) against (d+1)/ε₁² at ε₁ = .75·ε/3.
    let count = RunCount::new(1.0, 10.0).unwrap();
    let rho = 0.75 * count.run_rho(epsilon, delta).unwrap();
    let crossing = 0.25_f64.powi(2) / (2.0 * rho) - 1.0;
    for d in 1..40_u32 {
        let candidates = two(&|c| Choices {
            n_columns: d as usize - 1,
            ..c
        });
        let expected = if f64::from(d) > crossing { "gaussian" } else { "laplace" };
        assert_eq!(noise(&candidates, both).unwrap(), expected, "{d} {crossing}");
    }
    assert!(crossing > 2.0 && crossing < 39.0, "{crossing}");
    // Their ρ, split as ε is.
    let spec = tuned(&two(&gaussian), None, both, REPEAT).unwrap();
    let Budget::Zcdp { rho: of_model } = spec.candidates()[0].budget() else {
        panic!("zCDP")
    };
    assert_near(of_model, rho, 1e-12);
    let step = spec.score_step();
    let Budget::Zcdp { rho: of_score } = step.budget else {
        panic!("zCDP")
    };
    assert_near(of_score, rho / 3.0, 1e-12);
    assert!(of_model + of_score <= rho / 0.75);
    assert_near(step.scale, step.sensitivity / (2.0 * LEFT * rho / 3.0).sqrt(), 1e-12);
    // The error of one draw, and of its sum with a loss of at most ln(1 + e^2.5).
    let law = NoiseLaw::Gaussian { std_dev: step.scale };
    let errors = law.error_bound(1) + f64::EPSILON * 2.5_f64.exp().ln_1p();
    assert_near(spec.score_seal().unwrap().distance(), 2.0 * errors, 1e-7);
}

#[test]
fn candidates_must_agree_in_their_rows() {
    let base = candidate(0.1);
    let said = |other: Choices| {
        let pair = [base.clone(), other];
        check_common(&pair, &Logistic).map_err(|e| e.to_string())
    };
    assert!(
        said(Choices {
            l2_strength: 0.7,
            radius: None,
            ..base.clone()
        })
        .is_ok()
    );
    for (name, other) in [
        (
            "n_samples",
            Choices {
                terms: Terms {
                    n_samples: 999,
                    ..base.terms
                },
                ..base.clone()
            },
        ),
        (
            "n_columns",
            Choices {
                n_columns: 3,
                ..base.clone()
            },
        ),
        (
            "intercept",
            Choices {
                intercept: None,
                ..base.clone()
            },
        ),
        (
            "row_norm",
            Choices {
                rows: RowDomain::Ball(1.5),
                ..base.clone()
            },
        ),
    ] {
        let said = said(other).unwrap_err();
        assert!(
            said.starts_with(&format!("candidates must have the same {name}")),
            "{said}"
        );
    }
    let squared = Choices {
        loss: Arc::new(Squared::new(1.0).unwrap()),
        ..base.clone()
    };
    assert!(said(squared).unwrap_err().contains("targets"));
    let add_remove = Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..base.terms
        },
        ..base.clone()
    };
    assert!(said(add_remove).unwrap_err().contains("got neighbors=\"add_remove\""));
    let other = Choices {
        rows: RowDomain::Ball(1.5),
        ..base.clone()
    };
    let refused = tuned(&[base, other], None, pure(1.0), REPEAT).unwrap_err();
    assert!(
        refused.starts_with("candidates must have the same row_norm"),
        "{refused}"
    );
    assert!(
        tuned(&[], None, pure(1.0), REPEAT)
            .unwrap_err()
            .contains("at least one")
    );
}

#[test]
fn scores_need_a_ball() {
    let free = |l| Choices {
        radius: None,
        ..candidate(l)
    };
    for method in [TuningMethod::Chunks, REPEAT] {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let said = tuned(&[candidate(0.1)], Some(bad), pure(1.0), method).unwrap_err();
            assert!(said.starts_with("validation_radius must be finite and > 0"), "{said}");
        }
        let said = tuned(&[candidate(0.1), free(0.2)], None, pure(1.0), method).unwrap_err();
        assert!(said.starts_with("every candidate must have a radius"), "{said}");
        assert!(tuned(&[free(0.2)], Some(0.3), pure(1.0), method).is_ok());
        let spec = tuned(&[candidate(0.1), free(0.2)], Some(3.0), pure(1.0), method).unwrap();
        assert_eq!(spec.radii(), [2.0, 3.0]);
        assert_eq!(spec.n_params(), 3);
        // The greatest ball bounds the scores, wherever it stands.
        let swapped = tuned(&[free(0.2), candidate(0.1)], Some(3.0), pure(1.0), method).unwrap();
        for spec in [&spec, &swapped] {
            let n = spec.chunk_sizes().map_or(1000.0, |sizes| sizes[2] as f64);
            assert_near(spec.score_step().sensitivity, range(3.0) / n, 1e-6);
        }
        assert_eq!(swapped.radii(), [3.0, 2.0]);
    }
}

#[test]
fn validation_losses_stay_in_their_domain() {
    let loss = parabola(0.0);
    assert!(check_predictor(&*loss, 4.0).is_ok());
    assert!(check_predictor(&*loss, 4.0 * (1.0 + 1e-9)).is_ok());
    assert!(check_predictor(&*loss, 4.0 * (1.0 + 1e-8)).is_err());
    assert!(check_predictor(&*loss, f64::NAN).is_err());
    assert!(check_predictor(&Logistic, 1e300).is_ok());
}
