//! Statements of a plan before any data are seen, and how the noise follows the budget.

use super::*;
use crate::privacy::Perturbation::{Objective, Output};
use crate::spec::Terms;

#[test]
fn a_plan_names_the_least_regularisation() {
    let least = |choices| spec(choices).plan().unwrap().least_l2_strength;
    let exact = |epsilon: f64| 0.390_625 / (1000.0 * epsilon.exp_m1());
    assert_just_above(least(choices(Objective, pure(1.0))), exact(LEFT));
    assert_near(
        least(choices(Objective, zcdp(0.5))),
        exact(1.043_059_341_470_084_7),
        1e-11,
    );
    assert_just_above(least(choices(Objective, approx(1.0, 1e-6))), exact(LEFT));
    for choices in [
        choices(Output, pure(1.0)),
        Choices {
            variant: Variant::Cms11,
            ..choices(Objective, pure(1.0))
        },
    ] {
        assert_near(least(choices), 0.0, 0.0);
    }
    assert_just_above(
        least(Choices {
            terms: Terms::of_rows(1000, Neighbors::AddRemove),
            calibration: Calibration::Paper,
            ..choices(Objective, approx(1.0, 1e-6))
        }),
        2.0 * 0.390_625 / (1000.0 * LEFT),
    );
}

#[test]
fn the_slope_of_the_scale_is_its_difference() {
    let budgets = [pure(1.0), zcdp(0.5), approx(1.0, 1e-6)];
    let scaled = |budget: Budget, factor: f64| match budget {
        Budget::Pure { epsilon } => pure(epsilon * factor),
        Budget::Zcdp { rho } => zcdp(rho * factor),
        Budget::Approx { epsilon, delta } => approx(epsilon * factor, delta),
    };
    let first = |budget: Budget| match budget {
        Budget::Pure { epsilon } | Budget::Approx { epsilon, .. } => epsilon,
        Budget::Zcdp { rho } => rho,
    };
    for perturbation in [Objective, Output] {
        for calibration in [Calibration::Tight, Calibration::Paper] {
            for (moments, reserve, n_samples) in [
                (Moments::None, 0.0, 1000),
                (Moments::None, 0.3, 1000),
                // The default share of the moments at its greatest, between, and at its least.
                (Moments::Joint, 0.0, 1000 / 3),
                (Moments::Joint, 0.0, 1000),
                (Moments::Joint, 0.0, 5000),
            ] {
                for budget in budgets {
                    let at = |factor: f64| {
                        spec(Choices {
                            terms: Terms::of_rows(n_samples, Neighbors::AddRemove),
                            calibration,
                            moments,
                            reserve,
                            ..choices(perturbation, scaled(budget, factor))
                        })
                    };
                    let step = 1e-4;
                    let difference =
                        (at(1.0 + step).law().scale() - at(1.0 - step).law().scale()) / (2.0 * step * first(budget));
                    assert_near(at(1.0).scale_slope(), difference, 1e-5);
                }
            }
        }
    }
}

#[test]
fn the_lengths_of_a_plan() {
    // ±1.96 standard deviations of the noise and of the seal, times the least and the greatest 1/(n(λ + tR²)), 1/(nλ).
    let quantile = 1.959_963_984_540_054;
    let objective = spec(choices(Objective, approx(1.0, 1e-6)));
    let gains = [1.0 / (1000.0 * (0.01 + 0.390_625)), 0.1];
    for (got, gain) in objective.noise_gain().into_iter().zip(gains) {
        assert_near(got, gain, 1e-14);
    }
    let length = |std_dev: f64, seal: f64| 2.0 * quantile * std_dev.hypot(seal);
    let plan = objective.plan().unwrap();
    let seal = objective.seal().std_dev();
    for (got, gain) in plan.privacy_length.into_iter().zip(gains) {
        assert_near(got, length(objective.law().scale() * gain, seal), 1e-9);
    }
    assert_eq!((plan.steps.len(), plan.seals.len()), (1, 1));
    assert_near(plan.spectral_radius, 0.0, 0.0);
    let output = choices(Output, zcdp(0.5));
    let plan = spec(output.clone()).plan().unwrap();
    for got in plan.privacy_length {
        assert_near(
            got,
            length(SENSITIVITY / LEFT.sqrt(), spec(output.clone()).seal().std_dev()),
            1e-9,
        );
    }
    // No interval is longer than the ball.
    let ball = Choices {
        radius: Some(0.2),
        ..output
    };
    for got in spec(ball).plan().unwrap().privacy_length {
        assert_near(got, 0.4, 1e-15);
    }
}
