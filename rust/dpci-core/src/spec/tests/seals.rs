//! Distances and costs of seals, and what they say where there is none.

use super::*;
use crate::loss::gradient_rounding;
use crate::privacy::Cost;
use crate::privacy::Perturbation::{Objective, Output};
use crate::spec::Terms;
use crate::spec::fit::{noise_rounding, share_seal, unit_mean_rounding};
use crate::spec::seal::{Part, Seal, lattice_below};
use crate::unit::Unit;

fn message(dim: usize, distance: f64, cost: Cost) -> String {
    Seal::new(Part::Values, dim, distance, cost).unwrap_err().to_string()
}

#[test]
fn a_seal_needs_a_lattice_and_a_cost() {
    // The lattice alone, the cost alone and the dimension alone are each enough to refuse.
    for distance in [0.0, -1.0, 1e-310, f64::NAN, f64::INFINITY] {
        for cost in [Cost::Epsilon(1.0), Cost::Rho(1.0)] {
            let said = message(3, distance, cost);
            assert!(said.starts_with("the distance to the ideal value must be"), "{said}");
        }
    }
    for cost in [0.0, 1e-310, f64::NAN, f64::INFINITY] {
        for cost in [Cost::Epsilon(cost), Cost::Rho(cost)] {
            let said = message(3, 1.0, cost);
            assert!(said.starts_with("the distance to the ideal value must be"), "{said}");
        }
    }
    assert!(message(0, 1.0, Cost::Epsilon(1.0)).starts_with("the distance"));
    // More than 2^60 steps.
    assert!(message(3, 1.0, Cost::Epsilon(1e-18)).starts_with("the budget of a seal must be"));
    assert!(Seal::new(Part::Values, 3, 1.0, Cost::Epsilon(1e-16)).is_ok());
    assert!(message(3, 1.0, Cost::Rho(1e-24)).starts_with("the budget of a seal must be"));
    assert!(Seal::new(Part::Values, 3, 1.0, Cost::Rho(1e-20)).is_ok());
    // At the edge of normal numbers.
    assert!(Seal::new(Part::Values, 1, 3.0 * f64::MIN_POSITIVE, Cost::Epsilon(1.0)).is_ok());
}

#[test]
fn lattices_are_powers_of_two() {
    for (bound, expected) in [
        (1.0, 1.0),
        (1.999, 1.0),
        (1.0_f64.next_up(), 1.0),
        (0.75, 0.5),
        (5e-324, 0.0),
        (-1.0, 0.0),
    ] {
        assert_near(lattice_below(bound), expected, 0.0);
    }
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0] {
        assert_near(lattice_below(bad), 0.0, 0.0);
    }
}

#[test]
fn the_scale_of_a_seal_by_hand() {
    // d = 4, τ = 2.1: g = 1 ≤ τ/2. L1: (2·4.2 + 4)/.01 = 1240 steps; L2: (4.2 + 2)/√(2·.02) = 31 steps.
    let pure = Seal::new(Part::Values, 4, 2.1, Cost::Epsilon(0.01)).unwrap();
    assert_near(pure.lattice(), 1.0, 0.0);
    assert!((1240..=1241).contains(&pure.scale()), "{pure:?}");
    assert_eq!(pure.family().name(), "discrete_laplace");
    assert_near(pure.std_dev(), 2.0_f64.sqrt() * pure.scale() as f64, 1e-13);
    let rho = Seal::new(Part::Values, 4, 2.1, Cost::Rho(0.02)).unwrap();
    assert!((31..=32).contains(&rho.scale()), "{rho:?}");
    assert_near(rho.std_dev(), rho.scale() as f64, 1e-13);
    assert!(rho.std_dev() >= rho.scale() as f64);
    // μ² = 2ρ.
    let squared = Seal::new(Part::Values, 4, 2.1, Cost::MuSquared(0.04)).unwrap();
    assert_eq!(squared.scale(), rho.scale());
    assert_near(rho.distance(), 2.1, 0.0);
    // The noise asked for is what comes out, up to the lattice: a factor from 3 down to 2.
    for dim in [1, 4, 100] {
        let root = f64::sqrt(dim as f64);
        let distance = Seal::distance_for(5.0, dim, Cost::Epsilon(0.5)).unwrap();
        assert_near(distance, 5.0 / (2.0_f64.sqrt() * (6.0 * root + 1.0 / root)), 1e-14);
        let distance = Seal::distance_for(5.0, dim, Cost::Rho(0.125)).unwrap();
        assert_near(distance, 5.0 / (6.0 + 1.0 / root), 1e-14);
    }
}

#[test]
fn seals_share_what_was_split_off() {
    let (_, seal) = pure(1.0).split_off_seal();
    let cost = share_seal(seal, 3).value();
    assert!(3.0 * cost <= 1e-3 && cost > 1e-3 / 3.0 * (1.0 - 6.0 * f64::EPSILON));
    assert_near(share_seal(zcdp(0.5), 1).value(), 0.5, 1e-14);
    // One vector without moments, three with them.
    let base = choices(Output, pure(1.0));
    assert_near(spec(base.clone()).seal().cost().value(), 1e-3, 1e-13);
    let joint = Choices {
        moments: Moments::Joint,
        ..base
    };
    assert_near(spec(joint).seal().cost().value(), 1e-3 / 3.0, 1e-13);
}

#[test]
fn roundings_of_means() {
    // A made-up rounding that tells how many rows it was asked for.
    let rows = |n: usize| n as f64;
    let one = unit_mean_rounding(rows, 1000.0, Neighbors::ReplaceOne, Unit::Row);
    assert!(one > 1000.0 - 1e-9 && one < 1000.0 + 1e-9);
    let none = unit_mean_rounding(|_| 0.0, 1000.0, Neighbors::ReplaceOne, Unit::Row);
    assert_near(none, f64::EPSILON, 0.0);
    // Sixteen times the records, each a sixteenth part of n more.
    assert_near(
        unit_mean_rounding(rows, 1000.0, Neighbors::AddRemove, Unit::Row),
        16.0 * 16_000.0,
        1e-12,
    );
    assert_near(
        unit_mean_rounding(|_| 0.0, 1000.0, Neighbors::AddRemove, Unit::Row),
        16.0 * f64::EPSILON,
        0.0,
    );
}

#[test]
fn the_distance_of_coefficients_has_room_for_the_noise() {
    for perturbation in [Objective, Output] {
        for budget in [pure(1.0), zcdp(0.5), pure(1e12)] {
            let spec = spec(choices(perturbation, budget));
            let rounding = noise_rounding(spec.bounded(), spec.law());
            let draw = spec.law().error_bound(3);
            // e/(nλ) for noise that errs by e; the sum with coefficients of norm LR/λ = 125 beside it for output perturbation.
            let (least, most) = match perturbation {
                Objective => (draw / 10.0, 2.001 * draw / 10.0),
                Output => (draw, 2.001 * (draw + f64::EPSILON * 125.0)),
            };
            assert!(rounding >= least && rounding <= most, "{perturbation:?} {budget:?}");
            assert!(spec.seal().distance() >= 2.0 * rounding);
            // Digits of parameters whose predictors are at most 4.
            assert!(spec.seal().distance() >= 16.0 * f64::EPSILON * 4.0 / 1.25 * (1.0 - 1e-9));
        }
    }
    // On a ball no parameter is greater than its radius.
    let ball = spec(Choices {
        radius: Some(0.01),
        ..choices(Output, pure(1e12))
    });
    let draw = ball.law().error_bound(3);
    let rounding = noise_rounding(ball.bounded(), ball.law());
    assert!(rounding <= 2.001 * (draw + f64::EPSILON * 0.01));
}

#[test]
fn a_loss_in_f64_needs_room_for_its_slopes() {
    // Slopes up to 2, each with 64 units of its own and the rounding of their sum; as much again for predictors; and half of the
    // distance is the solver's.
    let custom = Choices {
        loss: parabola(0.0),
        radius: Some(3.0),
        ..choices(Objective, pure(1e12))
    };
    let least = |rows| 2.0 * 2.0 * (128.0 * f64::EPSILON + 2.0 * gradient_rounding(rows)) * 1.25 / 0.01;
    let distance = spec(custom.clone()).seal().distance();
    // The part of the predictors is bounded by the parameters' norm, here below the radius.
    let between = |found: f64, most: f64| found >= 0.5 * most && found <= most * (1.0 + 1e-9);
    assert!(between(distance, least(1000)), "{distance:e}");
    let add_remove = Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..custom.terms
        },
        ..custom
    };
    let distance = spec(add_remove).seal().distance();
    assert!(between(distance, 16.0 * least(1000)), "{distance:e}");
}

#[test]
fn the_digits_of_parameters_bound_the_distance_below() {
    // Predictors up to 4 at R = 1.25, in sixteen units: with almost no noise nothing else counts.
    let spec = spec(choices(Objective, pure(1e12)));
    assert_near(spec.seal().distance(), 16.0 * f64::EPSILON * 3.2, 1e-9);
    // A ball of radius 1 has no greater parameters.
    let ball = super::spec(Choices {
        radius: Some(1.0),
        ..choices(Objective, pure(1e12))
    });
    assert_near(ball.seal().distance(), 16.0 * f64::EPSILON, 1e-9);
}

#[test]
fn the_greatest_minimiser_is_the_steepest_slope_over_the_convexity() {
    // L = 2, R = 1, λ + m = .5 + .5: no minimiser is longer than 2; so it is 32 under add/remove, without the floor 64, but for W = 4.
    let base = Choices {
        n_columns: 1,
        intercept: None,
        loss: parabola(0.5),
        l2_strength: 0.5,
        radius: Some(4.0),
        ..choices(Output, pure(1e13))
    };
    let rounding = |choices: Choices| {
        let spec = spec(choices);
        let draw = 2.0 * spec.law().error_bound(1);
        (noise_rounding(spec.bounded(), spec.law()) - draw) / (2.0 * f64::EPSILON)
    };
    assert_near(rounding(base.clone()), 2.0, 1e-3);
    let longer = Choices {
        loss: parabola(0.0),
        ..base.clone()
    };
    assert_near(rounding(longer.clone()), 4.0, 1e-3);
    let short = Choices {
        l2_strength: 2.0,
        ..longer.clone()
    };
    assert_near(rounding(short.clone()), 1.0, 1e-3);
    let add_remove = Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..short.terms
        },
        ..short
    };
    assert_near(rounding(add_remove), 4.0, 1e-3);
}
