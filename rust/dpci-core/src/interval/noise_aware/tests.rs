//! Properties that the covariance and the estimated matrices must have.

use std::sync::Arc;

use super::*;
use crate::linalg::Cholesky;
use crate::noise::{Gaussian, Law, SimulationGenerator};
use crate::row_domain::Blocks;

/// Three parameters, Hessian diag(1.1, 2.1, 4.1) with λ = .1, noise of standard deviation .01 or of 1.
fn matrices<'a>(hessian: &'a [f64], gradient_cov: &'a [f64], noise: f64) -> NoisyMatrices<'a> {
    let law = MatrixLaw::Gaussian { std_dev: noise };
    NoisyMatrices {
        hessian,
        gradient_cov,
        hessian_noise: Some(law),
        gradient_cov_noise: law,
        l2_strength: 0.1,
        strong_convexity: 0.1,
        n_samples: 100.0,
        perturbation: Perturbation::Objective,
        law: NoiseLaw::Gaussian { std_dev: 1.0 },
        is_likelihood: true,
        may_be_flat: false,
        gradients: None,
        levels: None,
    }
}

fn expected(matrices: &NoisyMatrices<'_>) -> Vec<f64> {
    let identity = diagonal(&[1.0; 3]);
    matrices.expected_covariance(&identity, &[1.0, 2.0, 4.0], matrices.gradient_cov)
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() < tolerance, "{found:?} {expected:?}");
    }
}

#[test]
fn what_is_expected_of_the_covariance() {
    let hessian = diagonal(&[1.1, 2.1, 4.1]);
    // The information equality up to a factor, at the released trace.
    let equality = diagonal(&[2.0, 4.0, 8.0]);
    assert_near(&expected(&matrices(&hessian, &equality, 0.01)), &[2.0, 4.0, 8.0], 1e-12);
    // A round covariance: believed sooner where the loss is not a likelihood.
    let round = diagonal(&[3.0; 3]);
    let likelihood = matrices(&hessian, &round, 0.01);
    let other = NoisyMatrices {
        is_likelihood: false,
        ..likelihood.clone()
    };
    let spread = |found: &[f64]| found[2] - found[0];
    assert!(spread(&expected(&other)) < 0.8 * spread(&expected(&likelihood)));
    assert_near(&[expected(&other).iter().sum()], &[9.0], 1e-12);
    // A trace below its own standard deviation, here √3.
    let negative = diagonal(&[-1.0; 3]);
    let found = expected(&matrices(&hessian, &negative, 1.0));
    assert_near(&[found.iter().sum()], &[3.0_f64.sqrt()], 1e-12);
}

#[test]
fn estimated_matrices_keep_sums_and_are_the_released_ones_without_noise() {
    let hessian = [2.0, 0.3, 0.0, 0.3, 1.0, 0.2, 0.0, 0.2, 0.5];
    let cov = [1.0, -0.1, 0.2, -0.1, 2.0, 0.0, 0.2, 0.0, 0.7];
    for (noise, tolerance) in [(1e-9, 1e-6), (0.3, 2.0)] {
        let noisy = matrices(&hessian, &cov, noise);
        let draws = MatrixDraws::new(3, noisy.hessian_noise, noisy.gradient_cov_noise).unwrap();
        let [found, found_cov] = noisy.estimated(&draws).unwrap();
        assert_near(&found, &hessian, tolerance);
        assert_near(&found_cov, &cov, tolerance);
        let trace: f64 = found.iter().step_by(4).sum();
        assert!((trace - 3.5).abs() < 0.1, "{trace}");
        assert!(Eigen::new(&found, 3, "the estimate").unwrap().values[0] >= 0.1 - 1e-12);
    }
}

/// A coordinate with little noise of its own, in tables whose curvature the noise hides: its error is that of the others, which an inverse Hessian
/// mixes into it (bank customers, whose rare categories have the little noise).
#[test]
fn a_quiet_coordinate_is_not_taken_for_all() {
    let blocks = Arc::new(Blocks::new(vec![0.02, 1.0, 1.0], vec![0, 1, 2]).unwrap());
    let law = NoiseLaw::ShapedLaplace {
        blocks: Arc::clone(&blocks),
        rate: 1.0,
    };
    let radius = 20.0;
    let variances: Vec<f64> = blocks.variances().iter().map(|v| v * radius).collect();
    let mut generator = SimulationGenerator::new(7, 0);
    let mut symmetric = |std_dev: f64| {
        let draw = Gaussian::new(6, std_dev).unwrap().sample(&mut generator);
        let root = std::f64::consts::SQRT_2;
        let [a, b, c] = [draw[3] / root, draw[4] / root, draw[5] / root];
        [draw[0], a, b, a, draw[1], c, b, c, draw[2]]
    };
    let gradient_cov = diagonal(&[1e-9; 3]);
    let (mut actual, mut estimated) = (0.0, 0.0);
    for _ in 0..60 {
        let directions = Eigen::new(&symmetric(1.0), 3, "directions").unwrap();
        let mut hessian = rotate_back(&diagonal(&[0.1, 0.4, 1.1]), &directions.vectors, 3);
        let row = Cholesky::new(&hessian, 3, "hessian").unwrap().solve(&[1.0, 0.0, 0.0]);
        let terms = row.iter().zip(&variances).map(|(r, v)| (r / 100.0).powi(2) * v);
        actual += terms.sum::<f64>();
        for (entry, noise) in hessian.iter_mut().zip(symmetric(0.5)) {
            *entry += noise;
        }
        let noisy = NoisyMatrices {
            law: law.clone(),
            gradient_cov_noise: MatrixLaw::Gaussian { std_dev: 1e-9 },
            ..matrices(&hessian, &gradient_cov, 0.5)
        };
        let draws = MatrixDraws::new(3, noisy.hessian_noise, noisy.gradient_cov_noise).unwrap();
        let found = noisy.estimate(&draws).unwrap();
        let terms = found.noise[..3].iter().zip(&variances).map(|(m, v)| m * m * v);
        estimated += found.sampling[0] + terms.sum::<f64>();
    }
    let ratio = estimated / actual;
    // Of three directions the mean variance is a rough guess; its own noise alone would be a fiftieth.
    assert!((0.4..2.0).contains(&ratio), "{ratio}");
}
