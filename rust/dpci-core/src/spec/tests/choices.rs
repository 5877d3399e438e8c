//! Refusals of a specification before any data are seen, and its memory of the choices.

use super::*;
use crate::loss::Hinge;
use crate::privacy::Perturbation::{Objective, Output};
use crate::row_domain::RowDomain;
use crate::spec::Terms;

#[test]
fn scalars_must_be_finite_and_positive() {
    let base = choices(Output, pure(1.0));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for (name, broken) in [
            (
                "row_norm",
                Choices {
                    rows: RowDomain::Ball(bad),
                    ..base.clone()
                },
            ),
            (
                "l2_strength",
                Choices {
                    l2_strength: bad,
                    ..base.clone()
                },
            ),
            (
                "intercept",
                Choices {
                    intercept: Some(bad),
                    ..base.clone()
                },
            ),
            (
                "radius",
                Choices {
                    radius: Some(bad),
                    ..base.clone()
                },
            ),
        ] {
            let message = refusal(broken);
            assert!(
                message.starts_with(&format!("{name} must be finite and > 0")),
                "{message}"
            );
        }
    }
    for empty in [
        Choices {
            terms: Terms {
                n_samples: 0,
                ..base.terms
            },
            ..base.clone()
        },
        Choices {
            n_columns: 0,
            intercept: None,
            ..base.clone()
        },
    ] {
        let error = Spec::new(empty).unwrap_err();
        assert!(matches!(error, crate::Error::Empty { .. }), "{error}");
    }
    assert_eq!(
        spec(Choices {
            n_columns: 0,
            ..base.clone()
        })
        .n_params(),
        1
    );
    assert_eq!(
        spec(Choices {
            intercept: None,
            ..base.clone()
        })
        .n_params(),
        2
    );
    assert_eq!(spec(base).n_params(), 3);
}

#[test]
fn scales_beyond_double_precision_are_refused() {
    // Where the noise of the minimiser, 2LR/(nλ), overflows, or its square is subnormal.
    for l2_strength in [1e-310, 1e308] {
        for perturbation in [Objective, Output] {
            let tried = Spec::new(Choices {
                l2_strength,
                ..choices(perturbation, pure(1.0))
            });
            assert!(tried.is_err(), "{l2_strength} {perturbation:?}");
        }
    }
    for budget in [pure(1e-308), zcdp(1e-320)] {
        assert!(Spec::new(choices(Output, budget)).is_err(), "{budget:?}");
    }
}

#[test]
fn noise_that_hides_the_ridge_in_rounding_is_refused() {
    // The noise in the Hessian is in proportion to 1/ε, at ε = 10⁻⁷ some thousands.
    let joint = |epsilon| Choices {
        moments: Moments::Joint,
        l2_strength: 1e-9,
        ..choices(Output, pure(epsilon))
    };
    spec(joint(0.1));
    let message = refusal(joint(1e-7));
    assert!(
        message.starts_with("the greatest eigenvalue that the released Hessian can have must be at most 1e12 times"),
        "{message}"
    );
}

#[test]
fn a_released_hessian_has_eigenvalues_within_a_trillion() {
    let at = |epsilon| {
        Spec::new(Choices {
            moments: Moments::Joint,
            l2_strength: 1e-9,
            ..choices(Output, pure(epsilon))
        })
    };
    let (mut refused, mut allowed) = (1e-7_f64, 0.1_f64);
    for _ in 0..60 {
        let middle = (refused * allowed).sqrt();
        match at(middle) {
            Ok(_) => allowed = middle,
            Err(_) => refused = middle,
        }
    }
    let spec = at(allowed).unwrap();
    let noise = spec.moment_noise(f64::INFINITY).unwrap().unwrap();
    let greatest = 1e-9 + 0.390_625 + noise.spectral_radius(3);
    assert_near(greatest / 1e-9, 1e12, 1e-6);
}

#[test]
fn noise_in_coefficients_must_be_neither_too_little_nor_too_much() {
    // The noise of the objective, about 2R/ε, reaches the coefficients as its 1/(n(λ + R²/4)): 10⁻⁶⁶ of it.
    let message = refusal(Choices {
        rows: RowDomain::Ball(1e-58),
        intercept: None,
        l2_strength: 1.0,
        ..choices(Objective, pure(1e5))
    });
    assert!(
        message.starts_with("the least standard deviation of the noise in a coefficient must be"),
        "{message}"
    );
}

#[test]
fn as_many_parameters_as_the_solver_of_the_hinge_takes() {
    let hinge = |n_columns| {
        Spec::new(Choices {
            n_columns,
            intercept: None,
            loss: Arc::new(Hinge),
            ..choices(Output, pure(1.0))
        })
    };
    hinge(2048).unwrap();
    let refused = hinge(2049).unwrap_err().to_string();
    assert!(
        refused.starts_with("the number of parameters must be at most 2048"),
        "{refused}"
    );
}

#[test]
fn moments_of_many_parameters_are_refused_where_matrices_are_released() {
    let wide = |moments| Choices {
        n_columns: 100_000,
        moments,
        ..choices(Output, pure(1.0))
    };
    assert!(Spec::new(wide(Moments::Joint)).is_err());
    assert!(Spec::new(wide(Moments::Separate)).is_err());
    assert!(Spec::new(wide(Moments::None)).is_ok());
}

#[test]
fn the_choices_are_remembered() {
    let asked = Choices {
        variant: Variant::Cms11,
        l2_strength: 1e-6,
        radius: Some(3.0),
        ..choices(Objective, pure(1.0))
    };
    let spec = spec(asked.clone());
    // Δ' = tR²/(n(e^(ε/4) - 1)) - λ, after which ε/2 goes to the noise.
    let raised = 0.390_625 / (1000.0 * (0.25 * LEFT).exp_m1());
    assert_near(spec.l2_strength(), raised, 1e-9);
    assert_near(spec.asked_choices().l2_strength, 1e-6, 0.0);
    assert_eq!(spec.asked_choices().budget, pure(1.0));
    assert_eq!(spec.budget(), pure(1.0));
    let Budget::Pure { epsilon } = spec.choices().budget else {
        panic!("pure")
    };
    assert_near(epsilon, LEFT, 1e-15);
    assert!(epsilon + spec.seal().cost().value() <= 1.0);
    assert_eq!(spec.radius(), Some(3.0));
    assert_near(spec.row_norm(), 1.25, 1e-15);
    assert!(spec.row_norm() >= 1.25);
    assert_near(spec.strong_convexity(), raised, 1e-9);
    assert_near(spec.curvature_bound(), 0.25, 1e-15);
    // Steepest at the margin -RW = -3.75.
    assert_just_above(spec.slope_bound(), 1.0 / (1.0 + (-3.75_f64).exp()));
    let again = Spec::new(spec.asked_choices()).unwrap();
    assert_near(again.law().scale(), spec.law().scale(), 0.0);
}

#[test]
fn the_paper_has_its_own_method() {
    let base = Choices {
        calibration: Calibration::Paper,
        moments: Moments::Joint,
        projection: Projection::Auto,
        ..choices(Output, pure(1.0))
    };
    let paper = spec(base.clone());
    assert_eq!(paper.choices().moments, Moments::Separate);
    assert_eq!(paper.choices().projection, Projection::Floor);
    assert_eq!(paper.choices().split, Some(crate::privacy::Split::PAPER));
    let without = spec(Choices {
        moments: Moments::None,
        ..base.clone()
    });
    assert_eq!(without.choices().split, None);
    let message = refusal(Choices {
        projection: Projection::Cautious,
        ..base
    });
    assert!(message.contains("got projection=\"cautious\""), "{message}");
}

#[test]
fn tolerances_are_small_parts_of_the_noise() {
    for perturbation in [Objective, Output] {
        for budget in [pure(1.0), zcdp(0.5), approx(1.0, 1e-6)] {
            let spec = spec(choices(perturbation, budget));
            let distance = spec.seal().distance();
            assert!(spec.tolerance() <= distance && spec.tolerance() >= 0.5 * distance);
            // The noise of the seal is at most a hundredth of what a coefficient gets at least.
            let noise = spec.law().coordinate_std_dev() * spec.noise_gain()[0];
            let share = spec.seal().std_dev() / noise;
            assert!(
                share <= 0.010_01 && share > 0.004,
                "{perturbation:?} {budget:?} {share}"
            );
            assert_near(spec.study_tolerance(), 1e-6 * noise, 1e-12);
        }
    }
    // 10⁻⁶ of the noise, but 10⁻⁹ where that is less, and never more than 10⁻⁴ of it.
    for (epsilon, expected) in [(1e3, 1e-9), (1e6, 1e-4 * 2.0 * SENSITIVITY * 1e-6 / LEFT)] {
        let spec = spec(choices(Output, pure(epsilon)));
        assert_near(spec.study_tolerance(), expected, 1e-9);
    }
}

#[test]
fn costs_keep_their_unit_and_their_proportion() {
    use crate::privacy::Cost;
    assert_eq!(Cost::of(pure(2.0)), Cost::Epsilon(2.0));
    assert_eq!(Cost::of(zcdp(2.0)), Cost::Rho(2.0));
    assert_eq!(Cost::Rho(2.0).with(0.5), Cost::Rho(0.5));
    assert_eq!(Cost::MuSquared(2.0).with(0.5), Cost::MuSquared(0.5));
    assert_eq!(Cost::Epsilon(2.0).with(0.5), Cost::Epsilon(0.5));
    let both = Cost::of(approx(2.0, 1e-6));
    assert_near(both.value(), 2.0, 0.0);
    let Cost::EpsilonDelta { epsilon, delta } = both.with(0.5) else {
        panic!("both")
    };
    assert_near(epsilon, 0.5, 0.0);
    assert!(delta <= 0.25e-6 && delta > 0.25e-6 * (1.0 - 1e-14));
    // ρ = μ²/2, and no Gaussian is pure.
    assert_near(Cost::Rho(0.5).mu(), 1.0, 1e-15);
    assert_near(Cost::MuSquared(0.25).mu(), 0.5, 1e-15);
    assert_near(Cost::Epsilon(1.0).mu(), 0.0, 0.0);
    // Bun & Steinke's ρ of (.999, .999e-6).
    let mu = Cost::of(approx(0.999, 0.999e-6)).mu();
    assert_near(mu, (2.0_f64 * 0.017_433_363_911_776_286).sqrt(), 1e-11);
}
