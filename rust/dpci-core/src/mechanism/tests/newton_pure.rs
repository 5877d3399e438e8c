//! Newton steps under pure DP: the perturbed minimiser, the costs, and the privacy of every stage by brute force.

use std::sync::Arc;

use super::newton::{choices, data, gradient, released, with_design};
use crate::linalg::{add_diagonal, project_eigenvalues, vector};
use crate::loss::{Huber, Logistic, Loss, SmoothHinge};
use crate::moments::{data_moments, second_moments};
use crate::noise::NoiseLaw;
use crate::privacy::{Budget, Cost};
use crate::spec::{NewtonChoices, NewtonSpec, Query, Variant};

const N: usize = 6;
const DIM: usize = 4;
const RADIUS: f64 = 2.0;
const POINTS: [[f64; DIM]; 3] = [[0.3, -0.2, 0.9, -1.4], [0.0; DIM], [5.0, 5.0, -5.0, 5.0]];

fn spec(n: usize, epsilon: f64, loss: Arc<dyn Loss>) -> NewtonSpec {
    NewtonSpec::new(NewtonChoices {
        loss,
        ..choices(n, Budget::pure(epsilon).unwrap())
    })
    .unwrap()
}

fn map() -> Vec<f64> {
    (0..16).map(|i| f64::from(i * i % 7 - 3)).collect()
}

/// All neighbours of a small table in its first record.
fn neighbours() -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut all = Vec::new();
    for code in 0..27 {
        let digit = |k: u32| f64::from(code / 3_i32.pow(k) % 3 - 1) * 0.57;
        for target in [-1.0, 1.0] {
            let mut other = data(N);
            other.0[..3].copy_from_slice(&[digit(0), digit(1), digit(2)]);
            other.1[0] = target;
            all.push(other);
        }
    }
    all
}

/// The sum of a function of the eigenvalues.
fn spectral_sum(matrix: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let mapped = project_eigenvalues(matrix, DIM, "a test's matrix", of).unwrap();
    mapped.iter().step_by(DIM + 1).sum()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[test]
fn with_little_noise_the_last_step_ends_at_the_minimiser_over_the_weighted_rows() {
    let found = released(&spec(3000, 1e6, Arc::new(Logistic)), 3);
    let perturbed = found.perturbed.unwrap();
    assert!(perturbed.l2_strength > 0.0);
    // The centre is the best constant: its log-odds are those of the share of positive records.
    let shift = difference(&found.params, &perturbed.centre);
    assert!(vector::norm(&perturbed.centre) > 0.1 && vector::norm(&shift) > 0.1);
    with_design(&data(3000), Logistic.targets(), |design, exec| {
        let moved = design.moved(&found.round_map, exec).unwrap();
        let round = moved.within(found.radii[2], 99.0);
        let slope = gradient(&round, &Logistic, &found.params, exec);
        assert!(vector::norm(&slope) < 1e-5, "{slope:?}");
        let at_centre = gradient(&round, &Logistic, &perturbed.centre, exec);
        // The mean of the slopes, as zᵀv = 1 for the centre's direction v.
        let mean = vector::dot(&at_centre, &perturbed.centre) / vector::norm(&perturbed.centre);
        assert!(mean.abs() < 1e-4, "{mean}");
    });
}

#[test]
fn the_gradient_is_what_the_ridge_balances() {
    let spec = spec(20_000, 1.0, Arc::new(Logistic));
    let found = released(&spec, 4);
    let perturbed = found.perturbed.unwrap();
    let (ridge, start) = (perturbed.l2_strength, &found.starts[0]);
    assert!((spec.ridge(found.radii[2]).unwrap() / ridge - 1.0).abs() < 1e-15);
    for ((g, p), c) in found.gradients[0].iter().zip(start).zip(&perturbed.centre) {
        assert!((g + ridge * (p - c)).abs() < 1e-15);
    }
    // With its noise, whose norm is far below ten times its mean.
    let NoiseLaw::SphericalLaplace { rate, .. } = *spec.perturbed(found.radii[2]).unwrap().law() else {
        panic!("the noise is spherical")
    };
    with_design(&data(20_000), Logistic.targets(), |design, exec| {
        let round = design.moved(&found.round_map, exec).unwrap();
        let round = round.within(found.radii[2], 99.0);
        let noise = difference(&found.gradients[0], &gradient(&round, &Logistic, start, exec));
        assert!(vector::norm(&noise) * 20_000.0 < 10.0 * DIM as f64 / rate);
        assert!(vector::norm(&noise) > 0.0);
    });
}

#[test]
fn stages_spend_the_budget_and_no_more() {
    let huber: Arc<dyn Loss> = Arc::new(Huber::new(1.0, 0.3).unwrap());
    let losses: [Arc<dyn Loss>; 2] = [Arc::new(Logistic), huber];
    for loss in losses {
        let has_null = loss.null_predictor(0.0).is_some();
        let spec = spec(4000, 1.3, loss);
        let (steps, seals) = spec.planned(&[0.7, 2.0, 3.0], &[spec.bounds_within(3.0)]).unwrap();
        let spent: f64 = steps.iter().map(|step| step.cost.value()).sum();
        let sealed: f64 = seals.iter().map(|seal| seal.cost().value()).sum();
        let whole = 0.999 * 1.3;
        assert!(spent <= whole && spent > whole * (1.0 - 1e-9), "{spent}");
        assert!(sealed <= 0.0013 && sealed > 0.0013 * (1.0 - 1e-9));
        let null = steps.iter().filter(|step| step.query == Query::NullSlope);
        assert_eq!(null.count(), usize::from(has_null));
        for step in &steps {
            let Cost::Epsilon(epsilon) = step.cost else {
                panic!("the cost is pure")
            };
            let ratio = step.sensitivity / step.scale;
            if step.query == Query::Coefficients && !has_null {
                // Some of it pays for the Jacobian.
                assert!(ratio < epsilon && ratio > 0.8 * epsilon, "{step:?}");
            } else {
                assert!((ratio / epsilon - 1.0).abs() < 1e-9, "{step:?}");
            }
        }
    }
    let spec = spec(4000, 1.3, Arc::new(Logistic));
    let found = released(&spec, 5);
    let planned = spec.planned(&found.radii, &found.bounds).unwrap();
    assert_eq!((found.steps, found.seals), planned);
}

/// The changes of counts, matrices and slopes, in the norms of their noise.
#[test]
fn no_neighbour_moves_a_query_further_than_its_sensitivity() {
    let spec = spec(N, 1.0, Arc::new(Logistic));
    let moments = spec.moments(spec.bounds_within(RADIUS)).unwrap();
    let weight = moments.gradient_cov.law.scale() / moments.hessian.law.scale();
    let sensitivities = [
        spec.radius(0, 9.0).unwrap().noise.step.sensitivity,
        spec.shape(RADIUS).unwrap().step.sensitivity,
        spec.null_slope().unwrap().step.sensitivity,
        moments.step.sensitivity,
    ];
    let n = N as f64;
    let queries = |data: &(Vec<f64>, Vec<f64>)| {
        with_design(data, Logistic.targets(), |design, exec| {
            let moved = design.moved(&map(), exec).unwrap();
            let counts: Vec<f64> = moved.counts(&[0.5, 1.0, 2.0, 4.0]).values().collect();
            let round = moved.within(RADIUS, 99.0);
            let gram = second_moments(&round, exec).unwrap().gram;
            let slope = crate::mechanism::newton::sum_at_zero(design, &Logistic, exec).unwrap();
            let matrices = POINTS.map(|point| {
                let moments = data_moments(&round, &Logistic, &point, n, exec).unwrap();
                [moments.curvature, moments.squared_slope]
            });
            (counts, gram, slope, matrices)
        })
    };
    let all: Vec<_> = neighbours().iter().map(queries).collect();
    let nuclear = |a: &[f64], b: &[f64]| spectral_sum(&difference(a, b), f64::abs);
    let mut greatest = [0.0_f64; 4];
    for a in &all {
        for b in &all {
            let counts: f64 = difference(&a.0, &b.0).iter().map(|v| v.abs()).sum();
            let of_moments =
                |(x, y): (&[Vec<f64>; 2], &[Vec<f64>; 2])| weight * nuclear(&x[0], &y[0]) + nuclear(&x[1], &y[1]);
            let moments = a.3.iter().zip(&b.3).map(of_moments).fold(0.0, f64::max);
            let changes = [counts / n, nuclear(&a.1, &b.1) / n, (a.2 - b.2).abs() / n, moments];
            for ((worst, change), s) in greatest.iter_mut().zip(changes).zip(sensitivities) {
                *worst = worst.max(change / s);
            }
        }
    }
    assert!(greatest.iter().all(|ratio| *ratio <= 1.0 + 1e-12), "{greatest:?}");
    // Not far too great either.
    assert!(greatest.iter().all(|ratio| *ratio > 0.3), "{greatest:?}");
}

/// The logarithm of the ratio of the densities of the minimiser, between all neighbours and at many points: what the noise that leads there
/// weighs, and the Jacobian.
#[test]
fn no_neighbour_makes_a_minimiser_more_likely_than_its_cost() {
    let losses: [Arc<dyn Loss>; 2] = [Arc::new(Logistic), Arc::new(SmoothHinge::new(0.5).unwrap())];
    for loss in losses {
        let spec = spec(N, 1.5, Arc::clone(&loss)).perturbed(RADIUS).unwrap();
        assert_eq!(spec.choices().variant, Variant::Offset);
        let NoiseLaw::SphericalLaplace { rate, .. } = *spec.law() else {
            panic!("the noise is spherical")
        };
        let ridge = spec.l2_strength();
        let log_density = |data: &(Vec<f64>, Vec<f64>), point: &[f64; DIM]| {
            with_design(data, loss.targets(), |design, exec| {
                let round = design.moved(&map(), exec).unwrap().within(RADIUS, 99.0);
                let mut noise = gradient(&round, &*loss, point, exec);
                noise.iter_mut().zip(point).for_each(|(g, p)| *g += ridge * p);
                let moments = data_moments(&round, &*loss, point, N as f64, exec).unwrap();
                let mut jacobian = moments.curvature;
                add_diagonal(&mut jacobian, DIM, ridge);
                spectral_sum(&jacobian, f64::ln) - rate * N as f64 * vector::norm(&noise)
            })
        };
        let epsilon = spec.coefficients().cost.value();
        let mut greatest = 0.0_f64;
        let mut points = POINTS.to_vec();
        for i in 0..40 {
            let far = 1.3_f64.powi(i % 10) * 0.3;
            points.push(std::array::from_fn(|j| {
                far * (f64::from(i) * 1.7 + j as f64 * 2.1).sin()
            }));
        }
        let all = neighbours();
        for point in points {
            let found: Vec<f64> = all.iter().map(|data| log_density(data, &point)).collect();
            let highest = found.iter().copied().fold(f64::MIN, f64::max);
            let lowest = found.iter().copied().fold(f64::MAX, f64::min);
            greatest = greatest.max(highest - lowest);
        }
        assert!(greatest <= epsilon, "{loss:?} {greatest} {epsilon}");
        // With less of a ridge the Jacobian is not covered: what is left is small.
        assert!(greatest > 0.5 * epsilon, "{loss:?} {greatest} {epsilon}");
    }
}
