//! What is expected of the covariance, and the estimated matrices.

use super::*;

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
    assert_near(
        &expected(&matrices(&hessian, &equality, 0.01)),
        &[2.0, 4.0, 8.0],
        1e-12,
    );
    // A round covariance: believed sooner where the loss is no likelihood.
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
