//! Losses against finite differences and grids.

use super::*;

fn losses() -> Vec<Box<dyn Loss>> {
    vec![
        Box::new(Logistic),
        Box::new(HuberHinge::new(0.5).unwrap()),
        Box::new(HuberHinge::new(2.0).unwrap()),
        Box::new(SmoothHinge::new(0.1).unwrap()),
        Box::new(SmoothHinge::new(2.0).unwrap()),
        Box::new(SoftLogistic),
        Box::new(Squared::new(1.0).unwrap()),
        Box::new(Squared::new(0.2).unwrap()),
    ]
}

/// Targets of every kind that a loss takes, the extreme ones among them.
fn targets(loss: &dyn Loss) -> Vec<f64> {
    match loss.targets() {
        Targets::Signs => vec![-1.0, 1.0],
        Targets::Interval { lower, upper } => vec![
            lower,
            0.7 * lower + 0.3 * upper,
            0.5 * (lower + upper),
            upper,
        ],
    }
}

fn evaluate(loss: &dyn Loss, u: f64, y: f64) -> [f64; 3] {
    let (mut v, mut s, mut c) = (0.0, [0.0], [0.0]);
    let out = Batch {
        total: Some(&mut v),
        slope: Some(&mut s),
        curvature: Some(&mut c),
        weights: None,
    };
    loss.evaluate(&[u], &[y], out).unwrap();
    [v, s[0], c[0]]
}

#[test]
fn derivatives_equal_finite_differences() {
    for loss in losses() {
        for i in -400..400 {
            let u = f64::from(i) * 0.0171 + 0.003;
            for y in targets(&*loss) {
                let h = 1e-5;
                let [_, slope, curvature] = evaluate(&*loss, u, y);
                let ([v1, s1, c1], [v0, s0, c0]) =
                    (evaluate(&*loss, u + h, y), evaluate(&*loss, u - h, y));
                assert!((slope - (v1 - v0) / (2.0 * h)).abs() < 1e-6, "{loss:?} {u}");
                if (c1 - c0).abs() < 1e-3 {
                    assert!(
                        (curvature - (s1 - s0) / (2.0 * h)).abs() < 1e-6,
                        "{loss:?} {u}"
                    );
                }
            }
        }
    }
}

/// The total of many rows, long margins among them, equals the sum of the rows' totals.
#[test]
fn totals_add_up() {
    let u: Vec<f64> = (0..2000).map(|i| f64::from(i % 41 - 20) * 3.0).collect();
    let y = vec![1.0; u.len()];
    for loss in losses() {
        let mut total = 0.0;
        let out = Batch {
            total: Some(&mut total),
            ..Batch::default()
        };
        loss.evaluate(&u, &y, out).unwrap();
        let expected: f64 = u.iter().map(|u| evaluate(&*loss, *u, 1.0)[0]).sum();
        assert!((total / expected - 1.0).abs() < 1e-12, "{loss:?}");
        let out = Batch {
            total: Some(&mut total),
            weights: Some(&[3.0; 2000]),
            ..Batch::default()
        };
        loss.evaluate(&u, &y, out).unwrap();
        assert!((total / expected / 3.0 - 1.0).abs() < 1e-12, "{loss:?}");
    }
}

#[test]
fn no_overflow_at_huge_margins() {
    for loss in losses().into_iter().filter(|l| l.slope_bound().is_finite()) {
        for u in [-1e4, 1e4, -1e300, 1e300] {
            let [value, slope, curvature] = evaluate(&*loss, u, 1.0);
            assert!(
                value.is_finite() && slope.abs() <= 1.0 && curvature >= 0.0,
                "{loss:?} {u}"
            );
        }
    }
}

/// Labels 0 and 1 are the classes of the logistic loss; between them the loss is linear in the label.
#[test]
fn soft_labels_mix_the_classes() {
    for i in -60..=60 {
        let u = f64::from(i) * 0.5;
        let [of_zero, of_one] = [-1.0, 1.0].map(|y| evaluate(&Logistic, u, y));
        for label in [0.0, 0.25, 1.0] {
            let got = evaluate(&SoftLogistic, u, label);
            for (got, (zero, one)) in got.into_iter().zip(of_zero.into_iter().zip(of_one)) {
                let expected = (1.0 - label) * zero + label * one;
                assert!(
                    (got - expected).abs() < 1e-14 * (1.0 + u.abs()),
                    "{u} {label}"
                );
            }
        }
    }
}

/// A function of (|slope|, curvature) whose supremum is claimed.
type Combination = Box<dyn Fn(f64, f64) -> f64>;

/// Suprema bound a fine grid and are nearly attained on it.
#[test]
fn suprema_are_tight_on_a_grid() {
    for loss in losses() {
        for radius in [0.0, 0.1, 0.5, 0.9, 1.0, 2.0, 7.0] {
            let predictors = (-20_000..=20_000).map(|i| radius * f64::from(i) / 20_000.0);
            let grid: Vec<[f64; 3]> = predictors
                .flat_map(|u| targets(&*loss).into_iter().map(move |y| (u, y)))
                .map(|(u, y)| evaluate(&*loss, u, y))
                .collect();
            let best = |f: &dyn Fn(f64, f64) -> f64| {
                grid.iter()
                    .map(|[_, s, c]| f(s.abs(), *c))
                    .fold(0.0, f64::max)
            };
            let cases: [(f64, Combination); 5] = [
                (loss.sup_slope(radius), Box::new(|s, _| s)),
                (loss.sup_curvature(radius), Box::new(|_, c| c)),
                (
                    loss.sup_weighted_sum(2.0, radius),
                    Box::new(|s, c| 2.0 * c + s * s),
                ),
                (
                    loss.sup_weighted_sum(0.3, radius),
                    Box::new(|s, c| 0.3 * c + s * s),
                ),
                (
                    loss.sup_joint_norm(3.0, radius),
                    Box::new(|s, c| (3.0 * c).hypot(s * s)),
                ),
            ];
            for (claimed, f) in cases {
                let found = best(&*f);
                assert!(
                    found <= claimed && claimed <= found * 1.001 + 1e-12,
                    "{loss:?} {radius} {found} {claimed}"
                );
            }
        }
    }
}

/// The range of the values is attained at the ends of the interval, or at a predictor that equals its target.
#[test]
fn ranges_are_those_of_a_grid() {
    let mut all = losses();
    all.push(Box::new(Hinge));
    for loss in all {
        for radius in [0.1, 0.9, 2.0, 7.0] {
            let predictors = (-2000..=2000).map(|i| radius * f64::from(i) / 2000.0);
            let values: Vec<f64> = predictors
                .flat_map(|u| targets(&*loss).into_iter().map(move |y| (u, y)))
                .map(|(u, y)| evaluate(&*loss, u, y)[0])
                .collect();
            let greatest = values.iter().copied().fold(f64::MIN, f64::max);
            let least = values.iter().copied().fold(f64::MAX, f64::min);
            let claimed = loss.value_range(radius);
            assert!(
                greatest - least <= claimed && claimed <= (greatest - least) * 1.01,
                "{loss:?} {radius}"
            );
        }
    }
}

/// The hinge is the limit of the Huber hinge, and its slope is a subgradient everywhere.
#[test]
fn hinge_beside_its_smoothing() {
    let smooth = HuberHinge::new(1e-9).unwrap();
    for i in -300..=300 {
        let u = f64::from(i) * 0.0101;
        for y in [-1.0, 1.0] {
            let [value, slope, curvature] = evaluate(&Hinge, u, y);
            let [near, near_slope, _] = evaluate(&smooth, u, y);
            assert!((value - near).abs() < 1e-8 && curvature == 0.0);
            assert!((slope - near_slope).abs() < 1e-12, "{u} {y}");
        }
    }
    assert!(evaluate(&Hinge, 1.0, 1.0)[1].abs() < f64::MIN_POSITIVE);
    assert!(Hinge.kinked() && !Logistic.kinked());
}

#[test]
fn parameters_are_checked() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-320] {
        assert!(HuberHinge::new(bad).is_err() && SmoothHinge::new(bad).is_err());
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e71] {
        assert!(Squared::new(bad).is_err());
    }
}
