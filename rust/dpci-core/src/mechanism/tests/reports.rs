//! Models with per-instance reports: what each of the three releases spends, and what leaves.

use super::*;
use crate::interval::Perturbation::{Objective, Output};
use crate::mechanism::seal::Seal;
use crate::mechanism::{Cost, ReportSpec, release_report};
use crate::noise::SimulationGenerator;
use crate::objective::{gradient_rounding, hessian_rounding};
use crate::per_instance::{Claim, HessianBound};

const SHARES: [f64; 3] = [0.6, 0.2, 0.2];

fn report() -> Choices {
    Choices {
        neighbors: Neighbors::AddRemove,
        ..choices(Objective, approx(1.0, 1e-6))
    }
}

#[test]
fn shares_divide_the_squared_ratios() {
    // δ_G(ε̃; m) + δ_G(ε̃; m√.4) = δ, to 17 digits elsewhere.
    let m2 = 0.052_003_890_619_390_91;
    let spec = ReportSpec::new(&report(), Some(SHARES)).unwrap();
    let steps = spec.steps();
    let names: Vec<_> = steps.iter().map(|s| (s.name, s.noise)).collect();
    let expected =
        ["coefficients", "report_gradient", "report_hessian"].map(|name| (name, "gaussian"));
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
    assert_near(
        spec.fit().law().scale(),
        super::spec(report()).law().scale(),
        0.0,
    );
    let claim = Claim::new(1e-6, false, HessianBound::Paper).unwrap();
    assert!(spec.check_claim(&claim).is_ok());
}

#[test]
fn reports_are_for_one_mechanism() {
    for broken in [
        Choices {
            neighbors: Neighbors::ReplaceOne,
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
            assert!(
                message.starts_with("a per-instance report takes"),
                "{message}"
            );
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
    let error = at(0.01)
        .check_claim(&claim(HessianBound::Paper))
        .unwrap_err();
    let crate::Error::RidgeBelowNoise { least, value } = error else {
        panic!("{error}")
    };
    assert_near(value, 0.01, 0.0);
    assert!(holds(least) && !holds(least * (1.0 - 1e-9)), "{least}");
    assert!(at(least).check_claim(&claim(HessianBound::Paper)).is_ok());
    assert!(
        at(0.99 * least)
            .check_claim(&claim(HessianBound::Paper))
            .is_err()
    );
    assert!(
        at(0.01)
            .check_claim(&claim(HessianBound::Interpolated))
            .is_ok()
    );
}

#[test]
fn what_a_report_releases() {
    // Records x = 1, three of four with target 1: gradient 4(σ(θ) - 3/4) + 4λθ, Hessian 4σ(1-σ) + 4λ.
    let one = Choices {
        n_samples: 4,
        n_columns: 1,
        intercept: None,
        l2_strength: 0.3,
        budget: approx(1e5, 0.1),
        ..report()
    };
    let bounds = row_bounds(1.0, Targets::Signs);
    with_design(
        &[1.0; 4],
        1,
        &[1.0, 1.0, 1.0, -1.0],
        None,
        &bounds,
        |design, exec| {
            let mut generator = SimulationGenerator::new(95, 0);
            let spec = ReportSpec::new(&one, Some([0.2, 0.4, 0.4])).unwrap();
            let noise = spec.steps().iter().map(|s| s.scale).fold(0.0, f64::max);
            assert!(noise < 0.02, "{noise}");
            let released = release_report(&spec, design, exec, &mut generator).unwrap();
            let theta = released.params.values()[0];
            let sigma = 1.0 / (1.0 + (-theta).exp());
            let [gradient, hessian] = released.derivatives.unwrap().map(|v| v.values()[0]);
            assert!(
                (gradient - (4.0 * (sigma - 0.75) + 1.2 * theta)).abs() < 6.0 * noise,
                "{gradient}"
            );
            assert!(
                (hessian - (4.0 * sigma * (1.0 - sigma) + 1.2)).abs() < 6.0 * noise,
                "{hessian}"
            );
            assert_eq!(released.seals.len(), 3);
            let names: Vec<_> = released.seals.iter().map(Seal::name).collect();
            assert_eq!(names, ["params", "gradient", "hessian"]);
            for seal in &released.seals[1..] {
                // Wide enough for the rounding of the sums, narrow against the noise.
                assert!(seal.distance() > 64.0 * f64::EPSILON && seal.distance() < 1e-9);
            }
            let spec = ReportSpec::new(&one, None).unwrap();
            let released = release_report(&spec, design, exec, &mut generator).unwrap();
            assert!(released.derivatives.is_none() && released.seals.len() == 1);
        },
    );
    with_design(
        &[1.0; 4],
        1,
        &[1.0; 4],
        Some(0.5),
        &bounds,
        |design, exec| {
            let mut generator = SimulationGenerator::new(95, 1);
            let spec = ReportSpec::new(&one, None).unwrap();
            assert!(release_report(&spec, design, exec, &mut generator).is_err());
        },
    );
}

#[test]
fn the_seals_of_a_report_hide_the_rounding_of_sums() {
    // u²/4 with slopes up to 2 and curvature 1/2, at parameters of norm at most 3; sixteen times the rows may be there.
    let custom = Choices {
        loss: parabola(0.0),
        radius: Some(3.0),
        budget: approx(1e9, 0.1),
        ..report()
    };
    let bounds = row_bounds(1.0, Targets::Signs);
    let choices = Choices {
        n_samples: 10,
        ..custom
    };
    let rows = [0.5; 20];
    with_design(&rows, 2, &[1.0; 10], Some(0.75), &bounds, |design, exec| {
        let mut generator = SimulationGenerator::new(96, 0);
        let spec = ReportSpec::new(&choices, Some(SHARES)).unwrap();
        let released = release_report(&spec, design, exec, &mut generator).unwrap();
        let steps = spec.steps();
        let gradient = 160.0 * gradient_rounding(160) * 2.0 * 1.25;
        let hessian = 160.0 * hessian_rounding(160) * 0.5 * 1.5625;
        for ((seal, data), step) in released.seals[1..]
            .iter()
            .zip([gradient, hessian])
            .zip(&steps[1..])
        {
            // Noise errs by a part in 10¹² of itself at most.
            let most = 1.1 * data + 1e-12 * step.scale;
            assert!(
                seal.distance() >= data && seal.distance() <= most,
                "{seal:?} {data:e}"
            );
        }
    });
}
