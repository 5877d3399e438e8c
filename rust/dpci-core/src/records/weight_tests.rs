//! Sums over weighted rows beside their definition, term by term in doubled precision.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::design::{OnViolation, Persons, Rows};
use crate::linalg::vector;
use crate::loss::{
    Batch, HuberHinge, LEVELS, Logistic, Targets, gradient_rounding, hessian_rounding, levels_of, moment_rounding,
    person_rounding,
};
use crate::row_domain::RowDomain;
use crate::unit::Weighting;

const DIM: usize = 3;
const BOUND: f64 = 3.7;
const PARAMS: [f64; DIM] = [0.7, -0.4, 1.1];

/// Rows, targets and weights.
fn survey(n: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let x = (0..n * DIM).map(|i| 0.55 * (i as f64 * 0.731).sin());
    let y = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 });
    let w = (0..n).map(|i| BOUND * (i as f64 * 0.377).sin().powi(2));
    (x.collect(), y.collect(), w.collect())
}

fn with_design(n: usize, weights: Option<&[f64]>, test: impl FnOnce(Design<'_>, &Executor<'_>)) {
    let (x, y, _) = survey(n);
    let bounds = RowBounds {
        rows: RowDomain::Ball(1.0),
        targets: Targets::Signs,
        on_violation: OnViolation::Error,
    };
    let cancel = AtomicBool::new(false);
    let exec = Executor::new(Some(2), usize::MAX, &cancel).unwrap();
    let design = Design::new(Rows::dense(&x, DIM), &y, None, &bounds, &exec).unwrap();
    let weighting = Weighting::new(BOUND, n as f64 * BOUND).unwrap();
    test(
        match weights {
            Some(weights) => design.weighted(weights, weighting).unwrap(),
            None => design,
        },
        &exec,
    );
}

fn sums(design: &Design<'_>, request: &Request, loss: &dyn Loss, exec: &Executor<'_>) -> Sums {
    design.sums(request, loss, None, exec).unwrap()
}

/// The distance of computed numbers to exact ones.
fn distance(computed: &[f64], exact: &[Doubled]) -> f64 {
    let gaps = computed.iter().zip(exact);
    let gaps: Vec<f64> = gaps.map(|(&c, &e)| (e - c.into()).rounded()).collect();
    vector::norm_bound(&gaps)
}

fn check(n: usize, loss: &dyn Loss) {
    let (x, _, weights) = survey(n);
    with_design(n, Some(&weights), |design, exec| {
        let mut numbers = vec![0.0; 3 * n];
        let (u, rest) = numbers.split_at_mut(n);
        let (slope, curvature) = rest.split_at_mut(n);
        design.linear_predictor(0..n, &PARAMS, u);
        let out = Batch::derivatives(&mut *slope, &mut *curvature);
        loss.evaluate(u, design.targets(0..n), out).unwrap();
        let zero = Doubled::default();
        let (mut gradient, mut hessian) = (vec![zero; DIM], vec![zero; DIM * DIM]);
        let mut covariance = hessian.clone();
        for (i, row) in x.chunks_exact(DIM).enumerate() {
            let share = Doubled::from(weights[i] / BOUND);
            for j in 0..DIM {
                gradient[j] = gradient[j] + share * slope[i] * row[j];
                for k in 0..DIM {
                    let product = Doubled::product(row[j], row[k]) * share;
                    let at = j * DIM + k;
                    hessian[at] = hessian[at] + product * curvature[i];
                    covariance[at] = covariance[at] + product * share * slope[i] * slope[i];
                }
            }
        }
        let params = PARAMS.to_vec();
        let risk = Request::Risk {
            params: params.clone(),
            hessian: HessianRows::All,
        };
        let found = sums(&design, &risk, loss, exec);
        let slopes: Vec<f64> = found.slopes.values().take(DIM).collect();
        let all = n as f64;
        assert!(distance(&slopes, &gradient) <= all * gradient_rounding(n));
        let gram = found.grams.into_iter().next().unwrap().finish(1.0);
        assert!(distance(&gram, &hessian) <= all * hessian_rounding(n));
        let found = sums(&design, &Request::Moments { params }, loss, exec);
        let [h, s] = <[_; 2]>::try_from(found.grams).unwrap();
        let room = all * loss.sup_curvature(2.0);
        assert!(distance(&h.finish(1.0), &hessian) <= room * moment_rounding(n));
        assert!(distance(&s.finish(1.0), &covariance) <= all * person_rounding(n));
        // No slope of these losses is beyond 1.
        let request = Request::Capped {
            of: Capped::Slopes,
            params: PARAMS.to_vec(),
            cap: 1.0,
            targets: true,
        };
        let gram = sums(&design, &request, loss, exec).grams.remove(0);
        assert!(distance(&gram.finish(1.0), &covariance) <= all * person_rounding(n));
        let request = Request::Capped {
            of: Capped::Gradient,
            params: PARAMS.to_vec(),
            cap: 1.0,
            targets: true,
        };
        let found: Vec<f64> = sums(&design, &request, loss, exec).slopes.values().collect();
        assert!(distance(&found[..DIM], &gradient) <= all * gradient_rounding(n));
        let squares = (0..n).map(|i| weights[i] / BOUND * slope[i] * slope[i]);
        assert!((found[DIM] - squares.sum::<f64>()).abs() <= 1e-12 * all);
        let request = Request::Capped {
            of: Capped::Levels,
            params: PARAMS.to_vec(),
            cap: 1.0,
            targets: true,
        };
        let found = sums(&design, &request, loss, exec).slopes;
        let mut levels = vec![zero; LEVELS + 1];
        for (slope, weight) in slope.iter().zip(&weights) {
            let (upper, share) = levels_of(slope.abs());
            levels[upper] = levels[upper] + Doubled::from(weight / BOUND) * (1.0 - share);
            levels[upper + 1] = levels[upper + 1] + Doubled::from(weight / BOUND) * share;
        }
        let found: Vec<f64> = found.values().collect();
        assert!(distance(&found, &levels[..LEVELS]) <= all * gradient_rounding(n));
    });
}

#[test]
fn weighted_sums_are_within_their_rounding() {
    for n in [1, 130, 20_000] {
        check(n, &Logistic);
        check(n, &HuberHinge::new(0.5).unwrap());
    }
}

#[test]
fn a_weight_is_no_multiplicity_in_the_covariance() {
    // A record that weighs half of the bound: half of its Hessian, a quarter of its squared gradient.
    let request = Request::Moments {
        params: PARAMS.to_vec(),
    };
    let found = [BOUND, 0.5 * BOUND].map(|weight| {
        let mut found = None;
        with_design(1, Some(&[weight]), |design, exec| {
            found = Some(sums(&design, &request, &Logistic, exec).grams);
        });
        found.unwrap().into_iter().map(|gram| gram.finish(1.0)[0])
    });
    let [whole, half] = found.map(Iterator::collect::<Vec<f64>>);
    assert_eq!(
        [half[0].to_bits(), half[1].to_bits()],
        [(0.5 * whole[0]).to_bits(), (0.25 * whole[1]).to_bits()]
    );
}

#[test]
fn persons_with_weights_are_persons_whose_rows_count_less() {
    let n = 300;
    let (_, _, weights) = survey(n);
    let ids: Vec<i64> = (0..n).map(|i| i64::try_from(i / 3).unwrap()).collect();
    let request = Request::Moments {
        params: PARAMS.to_vec(),
    };
    // With weights at the bound a person counts as without.
    let moments = |weights: Option<Vec<f64>>| {
        let mut found = None;
        with_design(n, None, |design, exec| {
            let persons = Persons::new(&ids, Unit::persons(None).unwrap(), exec).unwrap();
            let mut design = design.of_persons(persons).unwrap();
            if let Some(weights) = &weights {
                let weighting = Weighting::new(BOUND, 1000.0).unwrap();
                design = design.weighted(weights, weighting).unwrap();
            }
            found = Some(sums(&design, &request, &Logistic, exec).grams);
        });
        let grams = found.unwrap().into_iter();
        grams.map(|gram| gram.finish(1.0)).collect::<Vec<_>>()
    };
    assert_eq!(moments(None), moments(Some(vec![BOUND; n])));
    let [less, more] = [moments(Some(weights)), moments(None)];
    assert!((0..2).all(|k| (0..DIM).all(|j| less[k][j * (DIM + 1)] < more[k][j * (DIM + 1)])));
}
