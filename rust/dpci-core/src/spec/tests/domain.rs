//! Bounds on a ball, declared domains and declared strong convexity.

use super::*;
use crate::loss::{Hinge, Loss, Squared};
use crate::privacy::Perturbation::{Objective, Output};
use crate::row_domain::RowDomain;
use crate::spec::Terms;

#[test]
fn a_ball_bounds_slopes_and_shifts() {
    let squared = Arc::new(Squared::new(2.0).unwrap());
    let base = Choices {
        loss: squared,
        radius: Some(4.0),
        ..choices(Output, pure(1.0))
    };
    // 2(RW + B) = 2(5 + 2).
    let on_ball = spec(base.clone());
    assert_just_above(on_ball.slope_bound(), 14.0);
    assert_near(on_ball.curvature_bound(), 2.0, 1e-14);
    assert!(on_ball.sensitivity() <= 2.0 * 14.0 * 1.25 / 10.0 * (1.0 + 1e-12));
    let add_remove = Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..base.terms
        },
        ..base.clone()
    };
    assert_just_above(spec(add_remove).sensitivity(), 14.0 * 1.25 / 10.0);
    let paper = Choices {
        calibration: Calibration::Paper,
        ..base.clone()
    };
    assert_just_above(spec(paper.clone()).slope_bound(), 14.0);
    let message = refusal(Choices { radius: None, ..base });
    assert!(message.contains("got radius=None"), "{message}");

    let logistic = Choices {
        radius: Some(4.0),
        ..choices(Output, pure(1.0))
    };
    assert_just_above(spec(logistic.clone()).slope_bound(), 1.0 / (1.0 + (-5.0_f64).exp()));
    // The published constants do without the ball.
    let paper = Choices {
        calibration: Calibration::Paper,
        ..logistic.clone()
    };
    assert_near(spec(paper).slope_bound(), 1.0, 0.0);
    // 2R·max of sigmoid(t)·√(1 - t²/25) over nλ, by mpmath; the published sensitivity has the slopes alone.
    assert_just_above(spec(logistic.clone()).sensitivity(), 0.202_159_761_132_651_45);
    let pure_objective = spec(Choices {
        perturbation: Objective,
        ..logistic.clone()
    });
    assert_just_above(pure_objective.sensitivity(), 2.021_597_611_326_514_5);
    // Not under add/remove, where one gradient moves.
    let steepest = 1.25 / (1.0 + (-5.0_f64).exp());
    let add_remove = Choices {
        terms: Terms {
            neighbors: Neighbors::AddRemove,
            ..logistic.terms
        },
        ..logistic.clone()
    };
    assert_just_above(spec(add_remove).sensitivity(), steepest / 10.0);
    // Gaussian noise looks at corners, a little further apart than two gradients can be.
    let gaussian = |radius| {
        let choices = Choices {
            perturbation: Objective,
            budget: approx(1.0, 1e-6),
            radius,
            ..logistic.clone()
        };
        (spec(choices.clone()).sensitivity(), spec(choices).law().scale())
    };
    let ((longest, with), (both, without)) = (gaussian(Some(4.0)), gaussian(None));
    assert_just_above(both, 2.5);
    assert!(longest > 2.021_597 && longest < 1.02 * 2.021_597, "{longest}");
    assert!(
        with < 0.85 * without && with > longest / both * without,
        "{with} {without}"
    );
}

#[test]
fn the_regulariser_is_a_ball_for_output_perturbation() {
    let at = |loss: Arc<dyn Loss>, l2_strength, radius| {
        spec(Choices {
            loss,
            l2_strength,
            radius,
            ..choices(Output, pure(1.0))
        })
        .sensitivity()
    };
    // The greater of the two balls changes nothing.
    let (logistic, reach) = (Arc::new(Logistic), (0.278_464_542_761_073_8_f64 / 0.01).sqrt());
    assert_just_above(at(logistic.clone(), 0.01, None), SENSITIVITY);
    assert_just_above(at(logistic.clone(), 0.01, Some(1.1 * reach)), SENSITIVITY);
    assert!(at(logistic, 0.01, Some(0.9 * reach)) < 0.99 * SENSITIVITY);
    // B²/2 over λ = .5 for the squared loss: r = R·B = 2.5, D = 4R√(1-q²)(rq + B) with q = 2r/(B + √(B² + 8r²)) by hand.
    let (b, r) = (2.0_f64, 2.5_f64);
    let q = 2.0 * r / (b + (b * b + 8.0 * r * r).sqrt());
    let expected = 4.0 * 1.25 * (1.0 - q * q).sqrt() * (r * q + b) / 500.0;
    assert_just_above(at(Arc::new(Squared::new(2.0).unwrap()), 0.5, Some(1e3)), expected);
    // A hinge's two steepest slopes meet at the kink, wherever the ball ends.
    assert_just_above(at(Arc::new(Hinge), 0.01, None), 0.25);
    // Objective perturbation and add/remove have minimisers anywhere.
    let objective = spec(choices(Objective, pure(1.0)));
    assert_just_above(objective.sensitivity(), 2.5);
}

#[test]
fn a_ball_must_be_neither_too_great_nor_too_small() {
    let at = |radius| Choices {
        radius: Some(radius),
        ..choices(Output, pure(1.0))
    };
    for radius in [1.1e60, 1e200, 0.9e-60, 1e-200] {
        let message = refusal(at(radius));
        assert!(message.starts_with("radius must be at least 1e-60"), "{message}");
    }
    for radius in [0.9e60, 1.1e-60] {
        let refused = Spec::new(at(radius)).err().map(|e| e.to_string());
        assert!(!refused.is_some_and(|m| m.starts_with("radius")), "{radius}");
    }
}

#[test]
fn a_loss_is_used_where_it_is_declared() {
    // Predictors up to 4 = 1.25 · 3.2.
    let at = |radius| Choices {
        loss: parabola(0.0),
        radius,
        ..choices(Output, pure(1.0))
    };
    assert!(Spec::new(at(Some(3.2))).is_ok());
    for radius in [None, Some(3.2 * (1.0 + 1e-13)), Some(4.0)] {
        let message = refusal(at(radius));
        assert!(message.contains("requires a radius of at most 3.19"), "{message}");
    }
}

#[test]
fn declared_strong_convexity_counts_with_the_square_of_the_row() {
    let one_column = |row_norm| Choices {
        n_columns: 1,
        intercept: None,
        rows: RowDomain::Ball(row_norm),
        loss: parabola(0.4),
        radius: Some(4.0 / row_norm),
        ..choices(Output, pure(1.0))
    };
    for (row_norm, square) in [(2.0, 4.0), (0.5, 0.25), (1.0, 1.0)] {
        let spec = spec(one_column(row_norm));
        let extra = spec.strong_convexity() - 0.01;
        // Down, for rows that are shorter by rounding.
        assert!(extra < 0.4 * square && extra > 0.4 * square * (1.0 - 1e-8), "{extra}");
        assert_near(
            spec.sensitivity(),
            2.0 * 2.0 * row_norm / (1000.0 * spec.strong_convexity()),
            0.5,
        );
    }
    // Powers of two, so that all that is missing is the room for rounding: four units.
    let exact = spec(Choices {
        n_columns: 0,
        intercept: Some(0.5),
        loss: parabola(0.5),
        radius: Some(1.0),
        ..choices(Output, pure(1.0))
    });
    assert_near(1.0 - exact.extra_convexity() / 0.125, 4.0 * f64::EPSILON, 0.0);
    // λ = 0 serves where the loss is strongly convex itself.
    assert!(
        Spec::new(Choices {
            l2_strength: 0.0,
            ..one_column(2.0)
        })
        .is_ok()
    );
    let constant = Choices {
        n_columns: 0,
        intercept: Some(0.75),
        ..one_column(1.0)
    };
    let refused = Spec::new(constant.clone()).unwrap_err().to_string();
    // The bound of the row counts the column that is not there: 4/1.25.
    assert!(refused.contains("radius of at most 3.19"), "{refused}");
    let spec = spec(Choices {
        radius: Some(3.0),
        ..constant
    });
    assert_near(spec.strong_convexity() - 0.01, 0.4 * 0.5625, 1e-8);
    // Down: .5·.75² is a float, and what counts is below it.
    let half = super::spec(Choices {
        loss: parabola(0.5),
        l2_strength: 0.0,
        ..spec.asked_choices()
    });
    assert!(half.strong_convexity() < 0.281_25 && half.strong_convexity() > 0.281_25 * (1.0 - 1e-14));
}

#[test]
fn strong_convexity_is_refused_where_it_does_not_hold() {
    let base = Choices {
        n_columns: 1,
        intercept: None,
        loss: parabola(0.4),
        radius: Some(4.0),
        ..choices(Output, pure(1.0))
    };
    assert!(Spec::new(base.clone()).is_ok());
    for (broken, why) in [
        (
            Choices {
                n_columns: 2,
                ..base.clone()
            },
            "2 parameters",
        ),
        (
            Choices {
                intercept: Some(0.5),
                radius: Some(3.0),
                ..base.clone()
            },
            "2 parameters",
        ),
        (
            Choices {
                perturbation: Objective,
                ..base.clone()
            },
            "mechanism=\"objective\"",
        ),
        (
            Choices {
                terms: Terms {
                    neighbors: Neighbors::AddRemove,
                    ..base.terms
                },
                ..base.clone()
            },
            "neighbors=\"add_remove\"",
        ),
    ] {
        let message = refusal(broken);
        assert!(message.ends_with(&format!("got {why}")), "{message}");
    }
    // Nothing of this matters to a loss that declares none.
    let none = Choices {
        loss: parabola(0.0),
        n_columns: 2,
        ..base
    };
    assert_near(spec(none).strong_convexity(), 0.01, 0.0);
}

#[test]
fn kinks_rule_out_what_needs_a_hessian() {
    let base = Choices {
        loss: Arc::new(Hinge),
        ..choices(Output, pure(1.0))
    };
    assert!(Spec::new(base.clone()).is_ok());
    let message = refusal(Choices {
        perturbation: Objective,
        ..base.clone()
    });
    assert!(
        message.contains("requires a loss with a second derivative"),
        "{message}"
    );
    let message = refusal(Choices {
        moments: Moments::Joint,
        ..base.clone()
    });
    assert!(message.contains("a loss with a Hessian"), "{message}");
    let message = refusal(Choices {
        project: true,
        ..base.clone()
    });
    assert!(message.contains("project=True requires a radius"), "{message}");
    assert!(
        Spec::new(Choices {
            project: true,
            radius: Some(1.0),
            ..base
        })
        .is_ok()
    );
}
