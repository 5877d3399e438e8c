//! Bounds on a ball, declared domains and declared strong convexity.

use super::*;
use crate::mechanism::fit::check_strong_convexity;
use crate::mechanism::moment_point;
use crate::privacy::Perturbation::Output;
use crate::row_domain::RowDomain;
use crate::spec::Terms;

#[test]
fn rows_must_be_as_long_as_strong_convexity_counts_on() {
    let check = |row_norm: f64, loss: &Arc<dyn Loss>, least: f64| {
        let spec = spec(Choices {
            terms: Terms::of_rows(4, Neighbors::ReplaceOne),
            n_columns: 1,
            intercept: None,
            rows: RowDomain::Ball(row_norm),
            loss: Arc::clone(loss),
            radius: Some(4.0 / row_norm),
            ..choices(Output, pure(1.0))
        });
        let rows = [row_norm, -row_norm, least, row_norm];
        let mut outcome = None;
        let bounds = row_bounds(row_norm, Targets::Signs);
        with_design(&rows, 1, &[1.0; 4], None, &bounds, |design, exec| {
            outcome = Some(check_strong_convexity(&spec, design, exec));
        });
        outcome.unwrap().map_err(|error| error.to_string())
    };
    let (flat, convex) = (parabola(0.0), parabola(0.4));
    for row_norm in [0.25, 0.5, 1.0, 2.0, 4.0] {
        assert!(check(row_norm, &convex, row_norm).is_ok());
        assert!(check(row_norm, &convex, -row_norm * (1.0 - 1e-9)).is_ok());
        for part in [0.0, 0.3, 0.9, 1.0 - 1e-8] {
            let message = check(row_norm, &convex, row_norm * part).unwrap_err();
            assert!(message.starts_with("every row of X must have Euclidean norm row_norm"));
            assert!(check(row_norm, &flat, row_norm * part).is_ok());
        }
    }
}

#[test]
fn moments_are_taken_within_the_ball() {
    use crate::mechanism::{Simulated, Values};
    let params = Simulated::new("params", vec![3.0, 0.0, -4.0]).unwrap();
    let at = |radius| {
        let spec = spec(Choices {
            radius,
            ..choices(Output, pure(1.0))
        });
        (moment_point(&spec, &params).into_values(), spec.greatest_margin())
    };
    let (point, margin) = at(Some(2.5));
    for (got, expected) in point.iter().zip([1.5, 0.0, -2.0]) {
        assert!((got - expected).abs() < 1e-15);
    }
    assert_just_above(margin, 1.25 * 2.5);
    let (point, _) = at(Some(5.0));
    assert_eq!(point, params.values());
    let (point, margin) = at(None);
    assert_eq!(point, params.values());
    assert!(margin.is_infinite());
}
