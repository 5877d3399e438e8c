//! The noise of the coefficients for every budget, relation and mechanism.

use super::*;
use crate::Error;
use crate::noise::NoiseLaw;
use crate::privacy::{Cost, Split};
use crate::spec::{NoiseKind, Terms, step_cost};

const OBJECTIVE: Perturbation = Perturbation::Objective;
const OUTPUT: Perturbation = Perturbation::Output;

/// `ln(1+κ)` of the base choices.
const LOG_DET: f64 = 0.038_318_864_302_136_6;

fn scale_and_sensitivity(choices: Choices) -> (f64, f64) {
    let spec = spec(choices);
    assert_near(spec.coefficients.scale, spec.law().scale(), 0.0);
    (spec.law().scale(), spec.sensitivity())
}

#[test]
fn objective_perturbation_pays_for_the_jacobian() {
    let base = choices(OBJECTIVE, pure(1.0));
    let (scale, sensitivity) = scale_and_sensitivity(base.clone());
    assert_just_above(sensitivity, 2.5);
    assert_just_above(scale, 2.5 / (LEFT - LOG_DET));
    let (scale, sensitivity) = scale_and_sensitivity(Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..base.terms
        },
        ..base.clone()
    });
    assert_just_above(sensitivity, 1.25);
    assert_just_above(scale, 1.25 / (LEFT - LOG_DET));
    let (scale, _) = scale_and_sensitivity(Choices {
        variant: Variant::Cms11,
        ..base.clone()
    });
    assert_just_above(scale, 2.5 / (LEFT - 2.0 * LOG_DET));
    // ε·tanh(ε/2) = .999·ρ.
    let (scale, _) = scale_and_sensitivity(Choices {
        budget: zcdp(0.5),
        ..base.clone()
    });
    assert_near(scale, 2.5 / (1.043_059_341_470_084_7 - LOG_DET), 1e-11);
    // ε²/2 = .999·ρ.
    let (scale, _) = scale_and_sensitivity(Choices {
        budget: zcdp(0.5),
        calibration: Calibration::Paper,
        ..base
    });
    assert_near(scale, 2.5 / (LEFT.sqrt() - LOG_DET), 1e-11);
}

#[test]
fn gaussian_objective_perturbation() {
    // Roots of the sums of hockey-stick divergences, to 17 digits elsewhere.
    let base = choices(OBJECTIVE, approx(1.0, 1e-6));
    let (scale, sensitivity) = scale_and_sensitivity(base.clone());
    assert_just_above(sensitivity, 2.5);
    assert_near(scale, 10.962_814_888_062_98, 1e-9);
    let add_remove = Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..base.terms
        },
        ..base.clone()
    };
    let (scale, _) = scale_and_sensitivity(add_remove.clone());
    assert_near(scale, 5.481_407_444_031_285, 1e-9);
    // Kifer, Smith & Thakurta; κ is below ε/2.
    let paper = Choices {
        calibration: Calibration::Paper,
        ..add_remove
    };
    let (scale, _) = scale_and_sensitivity(paper.clone());
    assert_near(scale, 13.710_954_399_184_801, 1e-11);
    let message = refusal(Choices {
        terms: Terms {
            neighbors: Neighbors::ReplaceOne,
            ..paper.terms
        },
        ..paper
    });
    assert!(message.contains("add_remove"), "{message}");
}

#[test]
fn output_perturbation_hides_the_minimiser() {
    let base = choices(OUTPUT, pure(1.0));
    let (scale, sensitivity) = scale_and_sensitivity(base.clone());
    assert_just_above(sensitivity, SENSITIVITY);
    assert_just_above(scale, SENSITIVITY / LEFT);
    // LR/(nλ) = .125 under add/remove.
    let (scale, _) = scale_and_sensitivity(Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..base.terms
        },
        ..base.clone()
    });
    assert_just_above(scale, 0.125 / LEFT);
    let (scale, _) = scale_and_sensitivity(Choices {
        budget: zcdp(0.5),
        ..base.clone()
    });
    assert_just_above(scale, SENSITIVITY / LEFT.sqrt());
    let gaussian = Choices {
        budget: approx(1.0, 1e-6),
        ..base.clone()
    };
    let (scale, _) = scale_and_sensitivity(gaussian.clone());
    assert_near(scale, SENSITIVITY / 0.236_473_272_066_093_45, 1e-9);
    // ρ + 2√(ρ ln 1/δ) = ε, and 2LR/(nλ) = .25.
    let (scale, _) = scale_and_sensitivity(Choices {
        calibration: Calibration::Paper,
        ..gaussian
    });
    assert_near(scale, 0.25 / (2.0_f64 * 0.017_433_363_911_776_286).sqrt(), 1e-11);
    // 4(LR + λW)/(nλ) of Wu et al.
    let (_, sensitivity) = scale_and_sensitivity(Choices {
        calibration: Calibration::Paper,
        radius: Some(3.0),
        ..base
    });
    assert_just_above(sensitivity, 4.0 * (1.25 + 0.03) / 10.0);
}

#[test]
fn shares_add_up_to_what_the_seal_leaves() {
    let base = Choices {
        moments: Moments::Joint,
        split: Some(Split::new(0.8, 0.1, 0.1).unwrap()),
        ..choices(OUTPUT, pure(1.0))
    };
    let shares = |choices: &Choices| {
        let spec = spec(choices.clone());
        let [h, s] = spec.moment_costs.unwrap();
        assert_eq!(spec.reserved(), None);
        [spec.coefficients.cost, h, s].map(Cost::value)
    };
    let [c, h, s] = shares(&base);
    assert!(c + h + s <= LEFT * (1.0 + f64::EPSILON));
    for (got, expected) in [(c, 0.8), (h, 0.1), (s, 0.1)] {
        assert_near(got, expected * LEFT, 1e-13);
    }
    let rho = Choices {
        budget: zcdp(0.5),
        ..base.clone()
    };
    for (got, expected) in shares(&rho).into_iter().zip([0.8, 0.1, 0.1]) {
        assert_near(got, 0.5 * expected * LEFT, 1e-13);
    }
    let asked = Choices {
        split: Some(Split::new(0.6, 0.3, 0.1).unwrap()),
        ..base.clone()
    };
    for (got, expected) in shares(&asked).into_iter().zip([0.6, 0.3, 0.1]) {
        assert_near(got, expected * LEFT, 1e-13);
    }
    let paper = Choices {
        calibration: Calibration::Paper,
        split: None,
        ..base.clone()
    };
    for (got, expected) in shares(&paper).into_iter().zip([0.5, 0.25, 0.25]) {
        assert_near(got, expected * LEFT, 1e-13);
    }
    // μ² of (ε, δ) is shared.
    let approx = Choices {
        budget: approx(1.0, 1e-6),
        ..base
    };
    let mu2 = 0.236_473_272_066_093_45_f64.powi(2);
    for (got, expected) in shares(&approx).into_iter().zip([0.8, 0.1, 0.1]) {
        assert_near(got, mu2 * expected, 1e-9);
    }
    let spec = spec(approx);
    assert!(matches!(spec.coefficients.cost, Cost::MuSquared(_)));
    assert_near(spec.law().scale(), SENSITIVITY / (0.8 * mu2).sqrt(), 1e-9);
}

/// The unit by the public choices is that of the cost itself.
#[test]
fn costs_have_the_unit_of_the_choices() {
    for perturbation in [OBJECTIVE, OUTPUT] {
        for budget in [pure(1.0), zcdp(0.5), approx(1.0, 1e-6)] {
            for calibration in [Calibration::Tight, Calibration::Paper] {
                let spec = spec(Choices {
                    terms: Terms::of_rows(1000, Neighbors::AddRemove),
                    calibration,
                    ..choices(perturbation, budget)
                });
                let cost = spec.coefficients.cost;
                let found = step_cost(budget, calibration, perturbation, cost.value());
                assert_eq!(found.unit(), cost.unit());
                // A δ keeps its proportion to ε, down to rounding.
                assert_near(found.mu(), cost.mu(), 1e-12);
            }
        }
    }
}

#[test]
fn a_reserve_is_left_for_the_caller() {
    let base = Choices {
        reserve: 0.25,
        ..choices(OUTPUT, zcdp(0.5))
    };
    let reserved = spec(base.clone());
    assert_near(reserved.coefficients.cost.value(), 0.75 * 0.5 * LEFT, 1e-13);
    let Some(Cost::Rho(rho)) = reserved.reserved() else {
        panic!("a share of rho")
    };
    assert_near(rho, 0.25 * 0.5 * LEFT, 1e-13);
    assert_near(reserved.coefficient_share(), 0.75, 1e-15);
    assert_eq!(spec(choices(OUTPUT, zcdp(0.5))).reserved(), None);
    for reserve in [-0.1, 1.0, f64::NAN] {
        let message = refusal(Choices {
            reserve,
            ..base.clone()
        });
        assert!(message.starts_with("reserve must be"), "{message}");
    }
    let message = refusal(Choices {
        moments: Moments::Joint,
        ..base
    });
    assert!(message.starts_with("reserve must be"), "{message}");
}

#[test]
fn every_combination_is_offered_or_refused() {
    let budgets = [pure(1.0), zcdp(0.5), approx(1.0, 1e-6)];
    let noises = [
        None,
        Some(NoiseKind::SphericalLaplace),
        Some(NoiseKind::Gaussian),
        Some(NoiseKind::ShapedLaplace),
        Some(NoiseKind::ShapedGaussian),
    ];
    for perturbation in [OBJECTIVE, OUTPUT] {
        for (b, budget) in budgets.into_iter().enumerate() {
            // Gaussian noise for (ε, δ), and for ρ where the minimiser is perturbed.
            let gaussian = b == 2 || (b == 1 && perturbation == OUTPUT);
            for noise in noises {
                let offered = match noise {
                    None => true,
                    Some(NoiseKind::Gaussian) => gaussian,
                    Some(NoiseKind::SphericalLaplace) => !gaussian,
                    // Rows in a ball have no shape.
                    Some(NoiseKind::ShapedLaplace | NoiseKind::ShapedGaussian) => false,
                };
                let made = Spec::new(Choices {
                    noise,
                    ..choices(perturbation, budget)
                });
                assert_eq!(made.is_ok(), offered, "{perturbation:?} {budget:?} {noise:?}");
                match made {
                    Ok(spec) => {
                        let law = matches!(spec.law(), NoiseLaw::Gaussian { .. });
                        assert_eq!(law, gaussian);
                        let profile = gaussian && perturbation == OBJECTIVE;
                        assert_eq!(spec.objective_profile().is_some(), profile);
                    }
                    Err(error) => assert!(error.to_string().contains("noise="), "{error}"),
                }
            }
            let cms11 = Spec::new(Choices {
                variant: Variant::Cms11,
                ..choices(perturbation, budget)
            });
            let offered = b != 2 && perturbation == OBJECTIVE;
            assert_eq!(cms11.is_ok(), offered, "{perturbation:?} {budget:?}");
        }
        let projected = Spec::new(Choices {
            project: true,
            radius: Some(1.0),
            ..choices(perturbation, pure(1.0))
        });
        assert_eq!(projected.is_ok(), perturbation == OUTPUT);
    }
    let message = refusal(Choices {
        split: Some(Split::PAPER),
        ..choices(OUTPUT, pure(1.0))
    });
    assert!(message.starts_with("split must be None"), "{message}");
}

#[test]
fn too_little_regularisation_is_refused_with_the_least_that_works() {
    // nλ(e^ε - 1) > tR² with the ε that the seal leaves.
    let least = |epsilon: f64| 0.390_625 / (1000.0 * epsilon.exp_m1());
    let at = |l2_strength, budget| Choices {
        l2_strength,
        ..choices(OBJECTIVE, budget)
    };
    for (value, works) in [(0.99, false), (1.0 + 1e-9, true)] {
        assert_eq!(Spec::new(at(value * least(LEFT), pure(1.0))).is_ok(), works);
        assert_eq!(Spec::new(at(value * least(LEFT), approx(1.0, 1e-6))).is_ok(), works);
        let rho = Spec::new(at(value * least(1.043_059_341_470_084_7), zcdp(0.5)));
        assert_eq!(rho.is_ok(), works);
    }
    for budget in [pure(1.0), approx(1.0, 1e-6)] {
        let error = Spec::new(at(1e-5, budget)).unwrap_err();
        let Error::RegularizationTooSmall {
            least: named,
            value,
            epsilon,
        } = error
        else {
            panic!("{error}")
        };
        assert_just_above(named, least(LEFT));
        // As it was asked for.
        assert_near(value, 1e-5, 0.0);
        assert_near(epsilon, 1.0, 0.0);
    }
    // A share of ε is not what was asked for.
    let error = Spec::new(Choices {
        moments: Moments::Joint,
        split: Some(Split::new(0.8, 0.1, 0.1).unwrap()),
        ..at(1e-5, pure(1.0))
    });
    let Err(Error::RegularizationTooSmall { epsilon, .. }) = error else {
        panic!("{error:?}")
    };
    assert_near(epsilon, 0.8 * LEFT, 1e-13);
    let error = Spec::new(Choices {
        reserve: 0.5,
        ..at(1e-5, pure(1.0))
    });
    let Err(Error::RegularizationTooSmall { epsilon, .. }) = error else {
        panic!("{error:?}")
    };
    assert_near(epsilon, 0.5 * LEFT, 1e-13);
    // 2tR²/(nε), with room for a caller who computed it.
    let paper = |l2_strength| Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..at(l2_strength, approx(1.0, 1e-6)).terms
        },
        calibration: Calibration::Paper,
        ..at(l2_strength, approx(1.0, 1e-6))
    };
    let least = 2.0 * 0.390_625 / (1000.0 * LEFT);
    assert!(Spec::new(paper(least)).is_ok());
    let Err(Error::RegularizationTooSmall { least: named, .. }) = Spec::new(paper(0.99 * least)) else {
        panic!("refused")
    };
    assert_just_above(named, least);
}
