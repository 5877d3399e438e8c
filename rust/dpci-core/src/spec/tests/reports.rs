//! Models with per-instance reports: what each of the three releases spends, and what leaves.

use super::*;
use crate::privacy::Cost;
use crate::privacy::Perturbation::{Objective, Output};
use crate::spec::{Claim, HessianBound, ReportSpec, Terms};

const SHARES: [f64; 3] = [0.6, 0.2, 0.2];

fn report() -> Choices {
    Choices {
        terms: Terms::of_rows(1000, Neighbors::AddRemove),
        ..choices(Objective, approx(1.0, 1e-6))
    }
}

#[test]
fn shares_divide_the_squared_ratios() {
    // δ_G(ε̃; m) + δ_G(ε̃; m√.4) = δ, to 17 digits elsewhere.
    let m2 = 0.052_003_890_619_390_91;
    let spec = ReportSpec::new(&report(), Some(SHARES)).unwrap();
    let steps = spec.steps();
    let names: Vec<_> = steps.iter().map(|s| (s.query.name(), s.noise.name())).collect();
    let expected = ["coefficients", "report_gradient", "report_hessian"].map(|name| (name, "gaussian"));
    assert_eq!(names, expected);
    // LR, LR and tR².
    for ((step, share), sensitivity) in steps.iter().zip(SHARES).zip([1.25, 1.25, 0.390_625]) {
        let Cost::MuSquared(cost) = step.cost else {
            panic!("{step:?}")
        };
        assert_near(cost, share * m2, 1e-9);
        assert_just_above(step.sensitivity, sensitivity);
        assert_near(step.scale, sensitivity / (share * m2).sqrt(), 1e-9);
    }
    let total: f64 = steps.iter().map(|s| s.cost.value()).sum();
    assert!(total <= m2 * (1.0 + 1e-12));
    // Three seals share what was split off.
    assert_near(spec.fit().seal().cost().value(), 1e-3 / 3.0, 1e-12);
    assert_near(spec.ridge(), 10.0, 1e-14);
    assert_eq!(spec.fit().budget(), approx(1.0, 1e-6));
}

#[test]
fn published_releases_add_up() {
    let paper = Choices {
        calibration: Calibration::Paper,
        ..report()
    };
    let spec = ReportSpec::new(&paper, Some(SHARES)).unwrap();
    let steps = spec.steps();
    for (step, share) in steps.iter().zip(SHARES) {
        let Cost::EpsilonDelta { epsilon, delta } = step.cost else {
            panic!("{step:?}")
        };
        assert_near(epsilon, share * LEFT, 1e-12);
        assert_near(delta, LEFT * 1e-6 / 3.0, 1e-12);
    }
    let deltas: f64 = steps
        .iter()
        .map(|s| match s.cost {
            Cost::EpsilonDelta { delta, .. } => delta,
            _ => f64::NAN,
        })
        .sum();
    assert!(deltas <= LEFT * 1e-6 * (1.0 + 1e-15));
    // LR·√(8 ln(2/δ) + 4ε)/ε, then Gaussians at their own (ε, δ).
    assert_near(steps[0].scale, 23.525_868_044_119_175, 1e-11);
    assert_near(steps[1].scale, 1.25 / 0.049_504_911_932_179_61, 1e-9);
    assert_near(steps[2].scale, 0.390_625 / 0.049_504_911_932_179_61, 1e-9);
}

#[test]
fn reports_without_data_release_the_coefficients_alone() {
    let spec = ReportSpec::new(&report(), None).unwrap();
    assert_eq!(spec.steps().len(), 1);
    assert_near(spec.fit().law().scale(), super::spec(report()).law().scale(), 0.0);
    let claim = Claim::new(1e-6, false, HessianBound::Paper).unwrap();
    assert!(spec.check_claim(&claim).is_ok());
}

#[test]
fn reports_are_for_one_mechanism() {
    for broken in [
        Choices {
            terms: Terms::of_rows(1000, Neighbors::ReplaceOne),
            ..report()
        },
        Choices {
            perturbation: Output,
            ..report()
        },
        Choices {
            moments: Moments::Joint,
            ..report()
        },
        Choices {
            budget: pure(1.0),
            ..report()
        },
        Choices {
            budget: zcdp(1.0),
            ..report()
        },
    ] {
        for shares in [None, Some(SHARES)] {
            let message = ReportSpec::new(&broken, shares).unwrap_err().to_string();
            assert!(message.starts_with("a per-instance report requires"), "{message}");
        }
    }
    let wide = Choices {
        n_columns: 100_000,
        ..report()
    };
    assert!(ReportSpec::new(&wide, Some(SHARES)).is_err());
}

#[test]
fn the_published_bound_needs_a_ridge_of_twice_the_radius() {
    let claim = |bound| Claim::new(1e-6, false, bound).unwrap();
    let at = |l2_strength| {
        ReportSpec::new(
            &Choices {
                l2_strength,
                ..report()
            },
            Some(SHARES),
        )
        .unwrap()
    };
    let holds = |l2_strength| {
        let spec = at(l2_strength);
        let radius = claim(HessianBound::Paper).hessian_radius(3, spec.steps()[2].scale);
        spec.ridge() >= 2.0 * radius
    };
    let error = at(0.01).check_claim(&claim(HessianBound::Paper)).unwrap_err();
    let crate::Error::RidgeBelowNoise { least, value } = error else {
        panic!("{error}")
    };
    assert_near(value, 0.01, 0.0);
    assert!(holds(least) && !holds(least * (1.0 - 1e-9)), "{least}");
    assert!(at(least).check_claim(&claim(HessianBound::Paper)).is_ok());
    assert!(at(0.99 * least).check_claim(&claim(HessianBound::Paper)).is_err());
    assert!(at(0.01).check_claim(&claim(HessianBound::Interpolated)).is_ok());
}

#[test]
fn the_public_part_of_a_gradient_is_rounded_by_four_units() {
    let spec = ReportSpec::new(&report(), Some(SHARES)).unwrap();
    let [gradient, _] = spec.derivative_seals(1e15, [0.0; 2]).unwrap();
    assert_near(gradient.distance(), 4.0 * f64::EPSILON * 1e15, 1e-6);
}

#[test]
fn the_hessian_of_a_claim_fails_with_half_of_its_probability() {
    let claim = Claim::new(0.02, false, HessianBound::Interpolated).unwrap();
    let radius = crate::privacy::reach::greatest_eigenvalue(5, 0.3, 0.01);
    assert_near(claim.hessian_radius(5, 0.3), 1.001 * radius, 1e-12);
}
