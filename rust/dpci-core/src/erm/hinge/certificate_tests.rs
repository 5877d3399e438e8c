//! Certificates of points whose every part is known by hand, and the room they leave for rounding.

use std::sync::atomic::AtomicBool;

use super::kink_split::{KinkSplit, sample, slack_error, split};
use super::multipliers::Multiplied;
use super::polish::{Polish, Polished, Terms, polish};
use crate::design::{Design, OnViolation, RowBounds, Rows};
use crate::exec::Executor;
use crate::linalg::{DOUBLED_EPSILON, Doubled};
use crate::loss::{Hinge, Targets, gradient_rounding, hessian_rounding};
use crate::objective::Objective;
use crate::row_domain::RowDomain;

/// One parameter, n = 10, λ = 1/2, no rows: the gradient is 5θ minus the pull.
fn bare<'a>(param: f64, pull: f64, exec: &'a Executor<'a>) -> Polish<'a> {
    Polish {
        terms: Terms {
            n_samples: 10.0,
            l2_strength: 0.5,
            radius: None,
        },
        dim: 1,
        rows: Vec::new(),
        counts: Vec::new(),
        lengths: Vec::new(),
        pull: vec![pull.into()],
        pull_error: 0.0,
        n_near: 0,
        settled_mass: 0.0,
        clearance: f64::INFINITY,
        from: vec![param],
        stiffness: 1.0,
        ridge: 5.0.into(),
        least_ridge: 5.0.into(),
        sphere: None,
        params: vec![param.into()],
        multipliers: Vec::new(),
        exec,
    }
}

fn with_exec(test: impl FnOnce(&Executor<'_>)) {
    let cancel = AtomicBool::new(false);
    test(&Executor::sequential(&cancel));
}

#[track_caller]
fn assert_bound(polish: &Polish<'_>, exact: f64) {
    let Polished { certificate, .. } = polish.certified();
    assert!(
        certificate >= exact && certificate <= exact * (1.0 + 1.001e-6),
        "{certificate:e} against {exact:e}"
    );
}

#[test]
fn a_residual_counts_over_the_strong_convexity() {
    with_exec(|exec| {
        // 5·2 - 7 = 3, over nλ = 5.
        let mut point = bare(2.0, 7.0, exec);
        assert_bound(&point, 0.6);
        point.pull_error = 0.5;
        assert_bound(&point, 0.7);
    });
}

#[test]
fn what_a_multiplier_misses_counts_with_its_root() {
    with_exec(|exec| {
        // A row of two records at slack 1 - .5 = .5 with β = 1/2: e = (2 - .5)·.5/10; the residual 5 - .5·.5 - 4.75 vanishes.
        let mut point = bare(1.0, 4.75, exec);
        (point.rows, point.counts, point.lengths) = (vec![0.5], vec![2.0], vec![0.5]);
        point.multipliers = vec![0.5.into()];
        assert_bound(&point, (0.075_f64 / 0.5).sqrt());
        // Beyond its kink, at slack -.5, it misses β·.5; the residual 15 - .25·... vanishes with this pull.
        let mut point = bare(3.0, 14.75, exec);
        (point.rows, point.counts, point.lengths) = (vec![0.5], vec![2.0], vec![0.5]);
        point.multipliers = vec![0.5.into()];
        assert_bound(&point, (0.025_f64 / 0.5).sqrt());
    });
}

#[test]
fn on_the_sphere_the_multiplier_adds_strength_and_sagging() {
    with_exec(|exec| {
        // ν = (9 - 5)/10 = .4, so s = .7; W² - θ² = 4 - 1 = 3 sags by ν/2·3 = .6; the residual is 9 - 2 = 7 over ns.
        let mut point = bare(1.0, 2.0, exec);
        (point.ridge, point.sphere) = (9.0.into(), Some(4.0.into()));
        point.terms.radius = Some(2.0);
        assert_bound(&point, 0.7 / 0.7 + (0.6_f64 / 0.7).sqrt());
        point.pull = vec![9.0.into()];
        assert_bound(&point, (0.6_f64 / 0.7).sqrt());
    });
}

#[test]
fn what_rounding_to_f64_loses_is_told_beside_the_certificate() {
    with_exec(|exec| {
        let half_a_unit = 1e-17;
        let mut point = bare(1.0, 5.0, exec);
        point.params = vec![Doubled::sum(1.0, half_a_unit)];
        point.pull = vec![Doubled::sum(5.0, 5.0 * half_a_unit)];
        let Polished {
            certificate,
            lost,
            rest,
            ..
        } = point.certified();
        assert!(lost >= half_a_unit && lost <= half_a_unit * (1.0 + 1e-12));
        assert!((rest[0] - half_a_unit).abs() <= 1e-12 * half_a_unit);
        assert!(certificate <= 1e-3 * half_a_unit, "{certificate:e}");
    });
}

#[test]
fn sums_of_doubled_numbers_leave_room_for_their_rounding() {
    with_exec(|exec| {
        // Nothing is off: all that is left are errors of additions, each a doubled unit of what was added up.
        for (n_near, mass, pull) in [(0, 0.0, 5.0), (1000, 0.0, 5.0), (0, 1e6, 5.0), (1000, 1e6, 5.0)] {
            let mut point = bare(3.0, 3.0 * pull, exec);
            (point.n_near, point.settled_mass) = (n_near, mass);
            let size = mass + 3.0 * (pull + 5.0);
            let additions = n_near as f64 + 1.0;
            let least = additions * DOUBLED_EPSILON * size / 5.0;
            let Polished { certificate, .. } = point.certified();
            assert!(
                certificate >= least && certificate <= 8.0 * least,
                "{certificate:e} {least:e}"
            );
        }
        // So do products: a row at its kink misses nothing, but its slack of one product errs by five units of 1 + 4·1/4, for each of
        // a hundred records.
        let mut point = bare(4.0, 20.0 - 0.125, exec);
        (point.rows, point.counts, point.lengths) = (vec![0.25], vec![100.0], vec![0.25]);
        point.multipliers = vec![0.5.into()];
        let said = (5.0 * DOUBLED_EPSILON * 100.0 * 2.0 / 10.0 / 0.5).sqrt();
        let Polished { certificate, .. } = point.certified();
        assert!((certificate / said - 1.0).abs() < 1e-3, "{certificate:e} {said:e}");
        // And on the sphere: where |θ| = W exactly, W² has an error all the same.
        let mut point = bare(2.0, 18.0, exec);
        (point.ridge, point.sphere) = (9.0.into(), Some(4.0.into()));
        let least = (0.5 * 0.4 * 4.0 * DOUBLED_EPSILON / 0.7).sqrt();
        let Polished { certificate, .. } = point.certified();
        assert!(
            certificate >= least && certificate <= 4.0 * least,
            "{certificate:e} {least:e}"
        );
    });
}

#[test]
fn a_point_is_settled_while_it_stays_within_the_clearance() {
    with_exec(|exec| {
        let mut point = bare(1.0, 5.0, exec);
        point.from = vec![1.25];
        for (clearance, settled) in [(0.25, false), (0.26, true), (0.1, false), (f64::INFINITY, true)] {
            point.clearance = clearance;
            assert_eq!(point.certified().settled_rightly, settled, "{clearance}");
        }
    });
}

/// Kinks at 1 and, of three records, at 2, and a pull of 4: the minimiser is at 1.1, where the second alone slopes, because
/// nλθ = 5·1.1 = 4 + 3·.5.
fn two_kinks() -> KinkSplit {
    KinkSplit {
        dim: 1,
        near: vec![1.0, 0.5],
        counts: vec![1.0, 3.0],
        pull: vec![4.0.into()],
        pull_error: 0.0,
        clearance: f64::INFINITY,
    }
}

fn at(param: f64) -> Multiplied {
    Multiplied {
        params: vec![param],
        multipliers: vec![0.0, 3.0],
        ridge: 5.0,
        stiffness: 1e3,
        unrest: 0.0,
    }
}

const LINE: Terms = Terms {
    n_samples: 10.0,
    l2_strength: 0.5,
    radius: None,
};

#[test]
fn rows_clear_of_their_kinks_are_settled_with_their_mass_and_their_room() {
    with_exec(|exec| {
        let polish = Polish::new(&two_kinks(), &at(1.1), LINE, 0.01, exec);
        assert!(polish.rows.is_empty());
        // Three records of length a half, on the sloping side.
        assert!((polish.settled_mass - 1.5).abs() < 1e-12);
        assert!((polish.pull[0].rounded() - 5.5).abs() < 1e-12);
        // The kink at 1 is .1 away, less what the slack may be off.
        let room = slack_error(1, 1.0, 1.1);
        assert!(polish.clearance <= 0.1 - 0.5 * room && polish.clearance > 0.1 - 2.0 * room);
    });
}

#[test]
fn rows_that_were_settled_wrongly_are_found_by_a_wider_reach() {
    with_exec(|exec| {
        // From 3, where no row slopes, the point moves over both kinks.
        let far = Multiplied {
            multipliers: vec![0.0, 0.0],
            ..at(3.0)
        };
        let found = polish(&two_kinks(), &far, LINE, exec).unwrap();
        assert!(found.settled_rightly);
        assert!((found.params[0] - 1.1).abs() < 1e-12, "{}", found.params[0]);
    });
}

#[test]
fn a_point_moves_just_into_the_ball() {
    with_exec(|exec| {
        for (param, radius) in [(2.0, 1.0), (1.0, 1.0), (1.0 + 1e-30, 1.0), (1.0, 3.0)] {
            let mut point = bare(param, 5.0, exec);
            point.terms.radius = Some(radius);
            if param > radius {
                point.params = vec![Doubled::sum(radius, (param - radius) * 1e-14)];
            }
            point.move_into_ball();
            let square = (Doubled::squared_norm(&point.params) - Doubled::product(radius, radius)).rounded();
            // Inside by the rounding of the square, and no farther.
            if param < radius {
                assert!((point.params[0] - param.into()).rounded() == 0.0);
            } else {
                assert!(
                    square <= -DOUBLED_EPSILON && square > -1e3 * DOUBLED_EPSILON,
                    "{square:e}"
                );
            }
        }
    });
}

#[test]
fn slacks_err_by_their_products() {
    // One unit for each product and eight more, of numbers up to 1 + length·norm.
    for (dim, length, norm, units) in [(1, 1.0, 1.0, 18.0), (100, 2.0, 3.0, 756.0), (5, 0.0, 9.0, 13.0)] {
        let error = slack_error(dim, length, norm) / f64::EPSILON;
        assert!((error / units - 1.0).abs() < 1e-12, "{error} {units}");
    }
}

#[test]
fn a_split_knows_how_far_its_sums_may_be_off() {
    with_exec(|exec| {
        let bounds = RowBounds {
            rows: RowDomain::Ball(2.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Error,
        };
        // All rows on the sloping side at 0: nothing is near, and the mass is the number of rows.
        for n in [1_usize, 100, 10_000] {
            let rows = vec![1.0; n];
            let design = Design::new(Rows::dense(&rows, 1), &rows, None, &bounds, exec).unwrap();
            for (linear, term) in [(0.0, None), (0.0, Some([0.0])), (3.0, Some([3.0]))] {
                let objective = Objective {
                    records: &design,
                    weights: None,
                    loss: &Hinge,
                    l2_strength: 0.5,
                    extra_convexity: 0.0,
                    linear_term: term.as_ref().map(|t| &t[..]),
                    n_samples: n as f64,
                    exec,
                };
                let found = split(&objective, &[0.0], 0.5).unwrap();
                let mass = n as f64;
                assert!((found.pull[0].rounded() - (mass - mass * linear)).abs() < 1e-9);
                // (2N·ε)² of compensated sums, and 32 doubled units of what is added: the second rules where rows are few.
                let compensated = (2.0 * mass * f64::EPSILON).powi(2) * mass;
                let said = compensated + 32.0 * DOUBLED_EPSILON * mass * (1.0 + linear);
                assert!((found.pull_error / said - 1.0).abs() < 1e-9, "{n} {said:e}");
                // The kink of a row is at distance 1, up to the rounding of its slack.
                assert!(found.clearance < 1.0 && found.clearance > 1.0 - 1e-14);
            }
        }
    });
}

#[test]
fn sums_of_weighted_rows_err_by_no_more_than_they_say() {
    with_exec(|exec| {
        let bounds = RowBounds {
            rows: RowDomain::Ball(2.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Error,
        };
        let n: u32 = 5000;
        let rows: Vec<f64> = (0..n).map(|i| 0.1 + 0.05 * f64::from(i).sin()).collect();
        let targets: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let weights: Vec<u32> = (0..n).map(|i| 1_000_003 + 7 * i).collect();
        let design = Design::new(Rows::dense(&rows, 1), &targets, None, &bounds, exec).unwrap();
        let objective = Objective {
            records: &design,
            weights: Some(&weights),
            loss: &Hinge,
            l2_strength: 0.5,
            extra_convexity: 0.0,
            linear_term: None,
            n_samples: f64::from(n),
            exec,
        };
        // At 0 every row is on the sloping side.
        let found = split(&objective, &[0.0], 0.5).unwrap();
        let mut exact = Doubled::default();
        for ((x, y), w) in rows.iter().zip(&targets).zip(&weights) {
            exact = exact + Doubled::product(f64::from(*w) * y, *x);
        }
        let gap = (exact - found.pull[0]).rounded().abs();
        assert!(gap <= found.pull_error, "{gap:e} {:e}", found.pull_error);
    });
}

#[test]
fn a_sample_takes_every_third_row_for_three() {
    with_exec(|exec| {
        let bounds = RowBounds {
            rows: RowDomain::Ball(20.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Error,
        };
        // The last row is taken, the second of those kept is zero and has no kink, two are equal.
        let rows = [1.0, 9.0, 9.0, 0.0, 9.0, 9.0, 2.0, 9.0, 9.0, 1.0];
        let targets = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 1.0];
        let design = Design::new(Rows::dense(&rows, 1), &targets, None, &bounds, exec).unwrap();
        let objective = Objective {
            records: &design,
            weights: None,
            loss: &Hinge,
            l2_strength: 0.5,
            extra_convexity: 0.0,
            linear_term: Some(&[0.5]),
            n_samples: 10.0,
            exec,
        };
        let found = sample(&objective, 3).unwrap();
        assert_eq!((found.near, found.counts), (vec![-2.0, 1.0], vec![3.0, 6.0]));
        assert!((found.pull[0].rounded() + 5.0).abs() < f64::MIN_POSITIVE);
    });
}

#[test]
fn declared_convexity_adds_to_the_ridge() {
    with_exec(|exec| {
        let bounds = RowBounds {
            rows: RowDomain::Ball(2.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Error,
        };
        let rows = [1.0; 6];
        let design = Design::new(Rows::dense(&rows, 1), &rows, None, &bounds, exec).unwrap();
        let with = |extra_convexity, weights| Objective {
            records: &design,
            weights,
            loss: &Hinge,
            l2_strength: 0.25,
            extra_convexity,
            linear_term: None,
            n_samples: 10.0,
            exec,
        };
        // Down where two numbers are added.
        let both = with(0.5, None).strong_convexity();
        assert!(both < 0.75 && both > 0.75 * (1.0 - 2.0 * f64::EPSILON));
        assert!((with(0.0, None).strong_convexity() - 0.25).abs() < f64::MIN_POSITIVE);
        assert!((with(0.0, None).n_records() - 6.0).abs() < f64::MIN_POSITIVE);
        assert!((with(0.0, Some(&[1, 2, 3, 0, 0, 4])).n_records() - 10.0).abs() < f64::MIN_POSITIVE);
    });
}

#[test]
fn roundings_of_sums_are_counted() {
    // Half a unit for each addition in a block of 128, 8 more of a term, and the 256 of a value; a Gram matrix adds its plain blocks.
    let units = |rounding: f64| rounding / (0.5 * f64::EPSILON);
    assert!((units(gradient_rounding(1)) - 392.0).abs() < 0.01);
    assert!(units(hessian_rounding(1)) >= 392.0);
    // The second order of compensated sums.
    let many = 1 << 40;
    let second = (many as f64 * f64::EPSILON).powi(2);
    assert!(((gradient_rounding(many) - gradient_rounding(1)) / second - 1.0).abs() < 1e-6);
}
