//! Losses against finite differences and grids.

use super::*;

/// A loss that is in no list would be tested by nothing; one of several predictors has tests of its own.
#[test]
fn every_file_has_an_example() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/loss");
    let mut types = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let found = text
            .lines()
            .filter_map(|line| line.strip_prefix("impl Loss for "))
            .map(|rest| rest.trim_end_matches(" {").to_owned());
        types.extend(found.filter(|name| name != "Custom" && name != "Multinomial"));
    }
    assert!(types.len() >= 6, "{types:?}");
    for name in types {
        let shown = |loss: &dyn Loss| format!("{loss:?}");
        assert!(examples().iter().any(|l| shown(&**l).starts_with(&name)), "{name}");
    }
}

/// Losses with a second derivative nearly everywhere.
fn curved() -> impl Iterator<Item = Box<dyn Loss>> {
    examples().into_iter().filter(|loss| !loss.kinked())
}

/// Targets of every kind that a loss takes, the extreme ones among them.
fn targets(loss: &dyn Loss) -> Vec<f64> {
    match loss.targets() {
        Targets::Signs | Targets::Classes { .. } => loss.targets().ends().to_vec(),
        Targets::Interval { lower, upper } => (0..=128)
            .map(|i| lower + (upper - lower) * f64::from(i) / 128.0)
            .chain((upper > 1.0).then_some(1.0))
            .collect(),
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
    for loss in curved() {
        for i in -100..100 {
            let u = f64::from(i) * 0.0684 + 0.003;
            for y in targets(&*loss) {
                let h = 1e-5;
                let [_, slope, curvature] = evaluate(&*loss, u, y);
                let ([v1, s1, c1], [v0, s0, c0]) = (evaluate(&*loss, u + h, y), evaluate(&*loss, u - h, y));
                assert!((slope - (v1 - v0) / (2.0 * h)).abs() < 1e-6, "{loss:?} {u}");
                if (c1 - c0).abs() < 1e-3 {
                    assert!((curvature - (s1 - s0) / (2.0 * h)).abs() < 1e-6, "{loss:?} {u}");
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
    for loss in curved() {
        let mut total = 0.0;
        let out = Batch::of_total(&mut total);
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
    for loss in curved().filter(|l| l.slope_bound().is_finite()) {
        for u in [-1e4, 1e4, -1e300, 1e300] {
            let [value, slope, curvature] = evaluate(&*loss, u, 1.0);
            assert!(
                value.is_finite() && slope.abs() <= loss.slope_bound() && curvature >= 0.0,
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
                assert!((got - expected).abs() < 1e-14 * (1.0 + u.abs()), "{u} {label}");
            }
        }
    }
}

/// A function of (|slope|, curvature) whose supremum is claimed.
type Combination = Box<dyn Fn(f64, f64) -> f64>;

#[test]
fn mean_slopes_vanish_at_null_predictors() {
    for share in [0.003, 0.25, 0.5, 0.9] {
        let mean = |of: [f64; 2]| share * of[1] + (1.0 - share) * of[0];
        for (loss, y) in [(&Logistic as &dyn Loss, [-1.0, 1.0]), (&SoftLogistic, [0.0, 1.0])] {
            let at = |u, part| y.map(|y| evaluate(loss, u, y)[part]);
            let (u, curvature) = loss.null_predictor(mean(at(0.0, 1))).unwrap();
            assert!((u - (share / (1.0 - share)).ln()).abs() < 1e-12);
            assert!(mean(at(u, 1)).abs() < 1e-12);
            assert!((mean(at(u, 2)) - curvature).abs() < 1e-12);
        }
    }
}

/// The mean slope vanishes at the best constant, and slopes there are an affine function of those at 0.
#[test]
fn mean_slopes_vanish_at_best_constants() {
    let poisson: std::sync::Arc<dyn Loss> = std::sync::Arc::new(Poisson::new(4.0).unwrap());
    let counted = Continued::new(&poisson).unwrap();
    for share in [0.003, 0.25, 0.5, 0.9] {
        for (loss, y) in [
            (&counted as &dyn Loss, [0.0, 3.0]),
            (&Probit, [-1.0, 1.0]),
            (&CLogLog, [-1.0, 1.0]),
            (&Logistic, [-1.0, 1.0]),
        ] {
            let at = |u, part| y.map(|y| evaluate(loss, u, y)[part]);
            let mean = |of: [f64; 2]| share * of[1] + (1.0 - share) * of[0];
            let found = loss.best_constant(mean(at(0.0, 1)), 1e-9).unwrap();
            assert!((found.slope - mean(at(0.0, 1))).abs() < 1e-12);
            assert!(mean(at(found.predictor, 1)).abs() < 1e-9, "{loss:?} {share}");
            assert!((mean(at(found.predictor, 2)) - found.curvature).abs() < 1e-9);
            for (there, here) in at(found.predictor, 1).into_iter().zip(at(0.0, 1)) {
                assert!((there - found.factor * (here - found.slope)).abs() < 1e-9);
            }
            // Noise hides that a class is rare.
            let hidden = loss.best_constant(at(0.0, 1)[0], 0.1).unwrap();
            assert!(hidden.predictor.is_finite() && hidden.predictor < found.predictor.max(-1.0));
        }
    }
}

/// Beyond their reach continued losses are straight lines that touch the loss; before, they are the loss.
#[test]
fn continued_losses_are_tangents_beyond_their_reach() {
    for (loss, y, end) in [
        (
            std::sync::Arc::new(Poisson::new(4.0).unwrap()) as std::sync::Arc<dyn Loss>,
            3.0,
            4f64.ln() + 1.0,
        ),
        (std::sync::Arc::new(Probit), -1.0, 5.0),
        (std::sync::Arc::new(Probit), 1.0, -5.0),
        (std::sync::Arc::new(CLogLog), -1.0, 2.5),
    ] {
        let continued = Continued::new(&loss).unwrap();
        let at_end = evaluate(&*loss, end, y);
        for step in [1e-3, 0.7, 3.0, 900.0] {
            let [inner, outer] = [end - step * end.signum(), end + step * end.signum()];
            if step < 5.0 {
                let pairs = evaluate(&continued, inner, y)
                    .into_iter()
                    .zip(evaluate(&*loss, inner, y));
                for (found, expected) in pairs {
                    assert_eq!(found.to_bits(), expected.to_bits());
                }
            }
            let [value, slope, curvature] = evaluate(&continued, outer, y);
            assert_eq!(slope.to_bits(), at_end[1].to_bits());
            assert_eq!(curvature.to_bits(), 0.0_f64.to_bits());
            let line = at_end[0] + at_end[1] * (outer - end);
            assert!((value / line - 1.0).abs() < 1e-12);
            assert!(slope.abs() <= continued.slope_bound());
        }
        assert!(Continued::new(&(std::sync::Arc::new(Logistic) as std::sync::Arc<dyn Loss>)).is_none());
    }
}

/// Suprema bound a fine grid and are nearly attained on it.
#[test]
fn suprema_are_tight_on_a_grid() {
    for loss in curved() {
        for radius in [0.0, 0.1, 0.5, 0.9, 1.0, 2.0, 7.0] {
            let is_sign = loss.targets() == Targets::Signs;
            let steps = if is_sign { 20_000 } else { 1000 };
            let predictors = (-steps..=steps).map(|i| radius * f64::from(i) / f64::from(steps));
            let grid: Vec<[f64; 3]> = predictors
                .flat_map(|u| targets(&*loss).into_iter().map(move |y| (u, y)))
                .map(|(u, y)| evaluate(&*loss, u, y))
                .collect();
            let best = |f: &dyn Fn(f64, f64) -> f64| grid.iter().map(|[_, s, c]| f(s.abs(), *c)).fold(0.0, f64::max);
            let cases: [(f64, Combination); 5] = [
                (loss.sup_slope(radius), Box::new(|s, _| s)),
                (loss.sup_curvature(radius), Box::new(|_, c| c)),
                (loss.sup_weighted_sum(2.0, radius), Box::new(|s, c| 2.0 * c + s * s)),
                (loss.sup_weighted_sum(0.3, radius), Box::new(|s, c| 0.3 * c + s * s)),
                (
                    loss.sup_joint_norm(3.0, radius),
                    Box::new(|s, c| (3.0 * c).hypot(s * s)),
                ),
            ];
            for (claimed, f) in cases {
                let found = best(&*f);
                assert!(
                    found <= claimed && claimed <= found * 1.002 + 1e-12,
                    "{loss:?} {radius} {found} {claimed}"
                );
            }
        }
    }
}

/// The range of the values is attained at the ends of the interval, or at a predictor that equals its target.
#[test]
fn ranges_are_those_of_a_grid() {
    for loss in examples() {
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

/// The greatest pull bounds a grid and is nearly attained on it.
#[test]
fn pulls_are_those_of_a_grid() {
    let mut known = 0;
    for loss in examples() {
        let pull = |u: f64, y: f64| -evaluate(&*loss, u, y)[1] * u;
        let grid = (-4000..=4000).map(|i| f64::from(i) * 5e-3);
        let found = grid
            .flat_map(|u| targets(&*loss).into_iter().map(move |y| (u, y)))
            .map(|(u, y)| pull(u, y))
            .fold(0.0, f64::max);
        let claimed = loss.greatest_pull();
        assert!(found <= claimed, "{loss:?} {found} {claimed}");
        if claimed.is_finite() {
            known += 1;
            assert!(claimed <= found * 1.001, "{loss:?} {found} {claimed}");
        }
    }
    assert_eq!(known, examples().len() - 1, "all but the hinge");
    // W(1/e), by scipy.special.lambertw.
    assert!((Logistic.greatest_pull() - 0.278_464_542_761_073_8).abs() < 1e-14);
    for s in [1e-300, 1e-15, 1e15] {
        let claimed = SmoothHinge::new(s).unwrap().greatest_pull();
        assert!(
            claimed >= 0.25 * s.max(1.0) && claimed < 1.1 * s.max(1.0),
            "{s} {claimed}"
        );
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

/// `[u, sigmoid(u), sigmoid((1 - u)/0.1)]`, the sigmoids in two parts, by mpmath with 60 digits (mpmath 1.4.1; 0.1 the f64 number).
#[expect(clippy::unreadable_literal, reason = "printed by mpmath")]
fn sigmoids() -> Vec<[f64; 5]> {
    vec![
        [0.0, 0.5, 0.0, 0.9999546021312976, -4.4043732211910243e-17],
        [
            0.3,
            0.574442516811659,
            -4.7456482573436975e-17,
            0.9990889488055994,
            -4.282870273611372e-17,
        ],
        [
            -0.3,
            0.425557483188341,
            -8.05466865782085e-18,
            0.999997739675702,
            4.9954616068944606e-17,
        ],
        [1.0, 0.7310585786300049, -1.679727399649845e-17, 0.5, 0.0],
        [
            -1.0,
            0.2689414213699951,
            1.679727399649845e-17,
            0.9999999979388464,
            -3.704475853651505e-17,
        ],
        [
            2.5,
            0.9241418199787564,
            8.549720986121e-18,
            3.05902226925625e-07,
            -6.500008489901502e-24,
        ],
        [
            -7.25,
            0.0007096703991005881,
            4.699953730340519e-20,
            1.0,
            -1.4815122368763341e-36,
        ],
        [
            17.5,
            0.999999974890009,
            4.8452311682676913e-17,
            2.194878508014319e-72,
            9.167636065562867e-89,
        ],
        [-33.125, 4.111452592548017e-15, -1.189319961678296e-31, 1.0, 0.0],
        [
            36.9,
            0.9999999999999999,
            1.6717541677247583e-17,
            1.2254088054640776e-156,
            4.2877278954797616e-173,
        ],
        [-41.0, 1.5628821893349888e-18, -2.8439156604822715e-35, 1.0, 0.0],
        [120.0, 1.0, -7.667648073937911e-53, 0.0, 0.0],
        [-300.5, 3.1225412772322846e-131, 2.3777947889417906e-147, 1.0, 0.0],
    ]
}

#[test]
fn doubled_slopes_have_thirty_digits() {
    let slope = |loss: &dyn Loss, u, y| {
        let mut slopes = [u];
        assert!(loss.doubled_slopes(&mut slopes, &[y]));
        slopes[0]
    };
    let near = |got: Doubled, high: f64, low: f64, what: &str| {
        let error = (got - Doubled::sum(high, low)).rounded();
        assert!(error.abs() <= 1e-30, "{what} {error:e}");
    };
    let smooth = SmoothHinge::new(0.1).unwrap();
    let huber = HuberHinge::new(0.5).unwrap();
    for [u, p, p_low, q, q_low] in sigmoids() {
        let x = Doubled::from(u);
        near(slope(&Logistic, x, -1.0), p, p_low, "logistic");
        near(slope(&Logistic, -x, 1.0), -p, -p_low, "logistic");
        near(slope(&SoftLogistic, x, 0.0), p, p_low, "soft");
        near(slope(&smooth, x, 1.0), -q, -q_low, "smooth hinge");
        near(slope(&smooth, -x, -1.0), q, q_low, "smooth hinge");
        // Exact: h = 1/2 makes the slope 1.5 - z between 0 and 1.
        let depth = (1.5 - u).clamp(0.0, 1.0);
        near(slope(&huber, x, 1.0), -depth, 0.0, "Huber hinge");
        let squared = slope(&Squared::new(1.0).unwrap(), x, 0.25);
        assert!((squared.rounded() - 2.0 * (u - 0.25)).abs() <= 1e-13);
    }
    assert!(!Hinge.has_doubled_slopes());
}

#[test]
fn curvatures_vanish_where_slopes_are_greatest() {
    let mut with_slack = 0;
    for loss in curved() {
        let slack = loss.curvature_slack();
        if slack.is_infinite() {
            continue;
        }
        with_slack += 1;
        let mut greatest = 0.0_f64;
        for y in targets(&*loss) {
            for i in -3000..3000 {
                let [_, slope, curvature] = evaluate(&*loss, f64::from(i) * 1e-2, y);
                greatest = greatest.max(curvature - slack * (loss.slope_bound() - slope.abs()));
            }
        }
        assert!(greatest <= 1e-14, "{loss:?} {greatest}");
    }
    assert!(with_slack >= 3);
    assert!(HuberHinge::new(1.0).unwrap().curvature_slack().is_infinite());
}

#[test]
fn curvatures_change_no_faster_than_their_concordance() {
    for loss in curved() {
        let concordance = loss.self_concordance();
        if concordance.is_infinite() || loss.is_quadratic() {
            continue;
        }
        let step = 1e-3 / concordance;
        let mut greatest = 0.0_f64;
        for y in targets(&*loss) {
            for i in -4000..4000 {
                let u = f64::from(i) * 1e-2 / concordance.min(10.0);
                let [low, high] = [u, u + step].map(|u| evaluate(&*loss, u, y)[2]);
                if low > 1e-250 && high > 1e-250 {
                    greatest = greatest.max((high / low).ln().abs() / step);
                }
            }
        }
        // The greatest rate is attained in the tails.
        assert!(greatest <= concordance * (1.0 + 1e-9), "{loss:?} {greatest}");
        assert!(greatest >= concordance * 0.99, "{loss:?} {greatest}");
    }
    // Pieces of parabolas have none.
    assert!(HuberHinge::new(1.0).unwrap().self_concordance().is_infinite());
}

#[test]
fn values_of_single_rows_are_those_of_batches_of_one() {
    for loss in examples() {
        let all = targets(&*loss);
        let u: Vec<f64> = (0..300).map(|i| 1.3 * (f64::from(i) * 0.7).sin()).collect();
        let y: Vec<f64> = (0..300).map(|i| all[i % all.len()]).collect();
        let expected: Vec<[u64; 2]> = (0..300)
            .map(|i| evaluate(&*loss, u[i], y[i]))
            .map(|[_, slope, curvature]| [slope.to_bits(), curvature.to_bits()])
            .collect();
        for arch in crate::linalg::architectures() {
            for n in [1, 63, 300] {
                let (mut slopes, mut curvatures) = (vec![9.0; n], vec![9.0; n]);
                crate::linalg::with_arch(arch, || {
                    loss.evaluate_singly(&u[..n], &y[..n], [&mut slopes, &mut curvatures])
                        .unwrap();
                });
                let found = slopes.iter().zip(&curvatures);
                let found = found.map(|(slope, curvature)| [slope.to_bits(), curvature.to_bits()]);
                assert!(found.eq(expected[..n].iter().copied()), "{loss:?} {arch:?}");
            }
        }
    }
}
