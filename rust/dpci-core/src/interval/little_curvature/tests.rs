//! Coverage by the law of a known Hessian and covariance, and the parts of the posterior.

use super::*;
use crate::interval::{ErrorLaw, ErrorShape, half_widths};
use crate::noise::{Gaussian, Law, MatrixLaw, NoiseLaw};

const CONVEXITY: f64 = 0.02;
/// Gradients of a constant and of three columns, as those of Huber's loss with k = .05.
const COVARIANCE: [f64; 4] = [2.0e-3, 2.5e-4, 2.5e-4, 2.5e-4];

struct Case {
    /// Curvature of the four directions.
    curvature: [f64; 4],
    noise: f64,
    perturbation: Perturbation,
    may_be_flat: bool,
}

fn symmetric(std_dev: f64, generator: &mut SimulationGenerator) -> Vec<f64> {
    let draw = Gaussian::new(10, std_dev).unwrap().sample(generator);
    let mut out = vec![0.0; 16];
    let mut rest = draw[4..].iter();
    for i in 0..4 {
        out[5 * i] = draw[i];
        for j in 0..i {
            let entry = rest.next().unwrap() * FRAC_1_SQRT_2;
            (out[4 * i + j], out[4 * j + i]) = (entry, entry);
        }
    }
    out
}

/// Mean coverage of 95% intervals over releases and over all parameters, and in the worst one; their length over those with known matrices.
fn coverage(case: &Case) -> [f64; 3] {
    let (n, law) = (1000.0, NoiseLaw::Gaussian { std_dev: 0.01 });
    let mut generator = SimulationGenerator::new(11, 0);
    let hessian_noise = MatrixLaw::Gaussian { std_dev: case.noise };
    let cov_std_dev = 2.5e-3 * case.noise;
    let gradient_cov_noise = MatrixLaw::Gaussian { std_dev: cov_std_dev };
    let draws = MatrixDraws::new(4, Some(hessian_noise), gradient_cov_noise).unwrap();
    let shape = |matrices| ErrorShape {
        law: law.clone(),
        matrices,
    };
    let level = 0.95;
    let variances: Vec<f64> = (0..4)
        .map(|j| {
            let inverse = (CONVEXITY + case.curvature[j]).recip();
            let noise = match case.perturbation {
                Perturbation::Objective => inverse / n,
                Perturbation::Output => 1.0,
            };
            COVARIANCE[j] * inverse * inverse / n + (noise * 0.01).powi(2)
        })
        .collect();
    let (mut by_parameter, mut longer) = ([0.0; 4], 0.0);
    let releases = 60;
    for _ in 0..releases {
        let mut hessian = symmetric(case.noise, &mut generator);
        let mut gradient_cov = symmetric(cov_std_dev, &mut generator);
        for j in 0..4 {
            hessian[5 * j] += CONVEXITY + case.curvature[j];
            gradient_cov[5 * j] += COVARIANCE[j];
        }
        let matrices = NoisyMatrices {
            hessian: &hessian,
            gradient_cov: &gradient_cov,
            hessian_noise: Some(hessian_noise),
            gradient_cov_noise,
            l2_strength: CONVEXITY,
            strong_convexity: CONVEXITY,
            n_samples: n,
            perturbation: case.perturbation,
            law: law.clone(),
            is_likelihood: false,
            may_be_flat: case.may_be_flat,
            gradients: None,
            levels: None,
        };
        let found = ErrorLaw::noise_aware(&matrices, &draws).unwrap();
        for j in 0..4 {
            let mut unit = [0.0; 4];
            unit[j] = 1.0;
            let (v, a) = found.multipliers(&unit, &law).unwrap();
            let width = half_widths(&[v], &a, &shape(found.shape()), level).unwrap()[0];
            let score = width / variances[j].sqrt();
            by_parameter[j] += libm::erf(score * FRAC_1_SQRT_2) / f64::from(releases);
            longer += score / 1.96 / (4.0 * f64::from(releases));
        }
    }
    let worst = by_parameter.iter().copied().fold(1.0, f64::min);
    [by_parameter.iter().sum::<f64>() / 4.0, worst, longer]
}

/// Curvature in proportion to the covariance, and not, from a fiftieth of the noise to five times it.
#[test]
fn intervals_cover_where_noise_hides_the_curvature() {
    for (curvature, noise, least) in [
        ([0.08, 0.01, 0.01, 0.01], 0.04, 0.93),
        ([0.016, 0.002, 0.002, 0.002], 0.04, 0.93),
        ([0.3, 0.04, 0.04, 0.04], 0.04, 0.93),
        ([0.05, 0.0, 0.02, 0.01], 0.04, 0.92),
        ([0.08, 0.01, 0.01, 0.01], 0.01, 0.94),
    ] {
        for (perturbation, may_be_flat) in [
            (Perturbation::Objective, false),
            (Perturbation::Output, false),
            (Perturbation::Objective, true),
        ] {
            let case = Case {
                curvature,
                noise,
                perturbation,
                may_be_flat,
            };
            // A direction without curvature cannot be excluded of a loss that may be flat.
            let longest = if may_be_flat { 2.2 } else { 1.8 };
            let [mean, worst, longer] = coverage(&case);
            assert!(
                mean >= least && worst >= 0.88 && longer < longest,
                "{curvature:?} {noise} {perturbation:?} {may_be_flat}: {mean} {worst} {longer}"
            );
        }
    }
}

#[test]
fn rows_without_curvature_are_covered() {
    let case = |may_be_flat| Case {
        curvature: [0.0; 4],
        noise: 0.04,
        perturbation: Perturbation::Objective,
        may_be_flat,
    };
    for (may_be_flat, least) in [(true, 0.90), (false, 0.88)] {
        let [mean, worst, _] = coverage(&case(may_be_flat));
        assert!(mean >= least && worst >= least - 0.04, "{may_be_flat} {mean} {worst}");
    }
}

#[test]
fn quantiles_of_a_normal_law_cut_off_at_zero() {
    let distribution = |x: f64, mean: f64, std_dev: f64| {
        let above = |x: f64| libm::erfc((x - mean) / std_dev * FRAC_1_SQRT_2);
        1.0 - above(x) / above(0.0)
    };
    for (mean, std_dev) in [(1.0, 0.5), (0.0, 2.0), (-3.0, 1.0), (-24.0, 1.0)] {
        for level in [0.01, 0.3, 0.5, 0.99] {
            let x = positive_quantile(mean, std_dev, level);
            assert!(
                (distribution(x, mean, std_dev) - level).abs() < 1e-6,
                "{mean} {level} {x}"
            );
        }
    }
    // Both branches meet.
    let [near, far] = [-24.999, -25.001].map(|mean| positive_quantile(mean, 1.0, 0.5));
    assert!((near / far - 1.0).abs() < 5e-3, "{near} {far}");
    assert!((positive_quantile(0.7, 0.0, 0.2) - 0.7).abs() < f64::EPSILON);
    assert!(positive_quantile(-0.7, 0.0, 0.2).abs() < f64::MIN_POSITIVE);
}

#[test]
fn draws_of_the_ratio_are_quantiles_of_its_posterior() {
    let prior = Prior {
        none: 0.3,
        deviation: 0.5,
        flat: 0.0,
    };
    let (eigenvalues, found, noise) = ([2.0, 1.0, 0.5], [0.9, 0.2, 0.4], 0.3);
    let draws = prior.ratios(&eigenvalues, &found, noise, 0.1);
    // Midpoint rule in the ratio itself; 0 apart.
    let likelihood = |ratio: f64| -> f64 {
        let terms = eigenvalues.iter().zip(&found).map(|(s, found)| {
            let variance = noise * noise + (0.5 * ratio * s).powi(2);
            (-0.5 * (found - ratio * s).powi(2) / variance).exp() / variance.sqrt()
        });
        terms.product()
    };
    let (step, mut mass, mut mean) = (1e-4, 0.0, 0.0);
    for i in 0..100_000 {
        let ratio = (f64::from(i) + 0.5) * step;
        // Of the greatest eigenvalue x = 2·ratio.
        let before = 0.7 * 2.0 / 0.1 * (1.0 + 2.0 * ratio / 0.1).powi(-2);
        let weight = before * likelihood(ratio) * step;
        mass += weight;
        mean += weight * ratio;
    }
    let none = 0.3 * likelihood(0.0);
    let zeros = draws.iter().filter(|c| **c < f64::MIN_POSITIVE).count();
    assert!((zeros as f64 / DRAWS as f64 - none / (none + mass)).abs() <= 1.0 / DRAWS as f64);
    let found = draws.iter().sum::<f64>() / DRAWS as f64;
    assert!((found / (mean / (none + mass)) - 1.0).abs() < 0.02, "{found}");
    assert!(draws.is_sorted());
}

#[test]
fn a_flat_direction_is_told_by_its_release() {
    let prior = Prior::of(true);
    // Nothing is released of it: what was expected before.
    assert!((prior.flat_given(0.1, 1.0, 1e6) - 0.2).abs() < 1e-6);
    // By hand: densities of 0 under variances 1 and 1 + 3².
    let (flat, other) = (0.2, 0.8 * (-0.45_f64).exp() / 10.0_f64.sqrt());
    assert!((prior.flat_given(0.0, 3.0, 1.0) - flat / (flat + other)).abs() < 1e-12);
    assert!(prior.flat_given(60.0, 3.0, 1.0) < f64::MIN_POSITIVE);
    assert!(Prior::of(false).flat_given(0.0, 3.0, 1.0) < f64::MIN_POSITIVE);
}

#[test]
fn a_posterior_needs_a_covariance_that_is_clearer() {
    let hessian = diagonal(&[0.06, 0.03]);
    let matrices = |gradient_cov, noise| NoisyMatrices {
        hessian: &hessian,
        gradient_cov,
        hessian_noise: Some(MatrixLaw::Gaussian { std_dev: noise }),
        gradient_cov_noise: MatrixLaw::Gaussian { std_dev: 1.0 },
        l2_strength: 0.02,
        strong_convexity: 0.02,
        n_samples: 100.0,
        perturbation: Perturbation::Objective,
        law: NoiseLaw::Gaussian { std_dev: 1.0 },
        is_likelihood: false,
        may_be_flat: false,
        gradients: None,
        levels: None,
    };
    let (clear, hidden) = (diagonal(&[5.0, 5.0]), diagonal(&[0.5, 0.5]));
    let seen = matrices(&clear, 0.04);
    let draws = MatrixDraws::new(2, seen.hessian_noise, seen.gradient_cov_noise).unwrap();
    assert!(Posterior::new(&seen, &draws).unwrap().is_some());
    let likelihood = NoisyMatrices {
        is_likelihood: true,
        ..seen.clone()
    };
    let exact = NoisyMatrices {
        hessian_noise: None,
        ..seen
    };
    for other in [likelihood, exact, matrices(&hidden, 0.04), matrices(&clear, 0.004)] {
        assert!(Posterior::new(&other, &draws).unwrap().is_none());
    }
}

#[test]
fn with_little_noise_the_posterior_is_the_released_matrix() {
    let hessian = [0.8, 0.3, 0.3, 0.4];
    let gradient_cov = [2.0, -0.5, -0.5, 1.0];
    let matrices = NoisyMatrices {
        hessian: &hessian,
        gradient_cov: &gradient_cov,
        hessian_noise: Some(MatrixLaw::Gaussian { std_dev: 1e-6 }),
        gradient_cov_noise: MatrixLaw::Gaussian { std_dev: 1e-8 },
        l2_strength: 0.02,
        strong_convexity: 0.02,
        n_samples: 100.0,
        perturbation: Perturbation::Objective,
        law: NoiseLaw::Gaussian { std_dev: 1.0 },
        is_likelihood: false,
        may_be_flat: true,
        gradients: None,
        levels: None,
    };
    let draws = MatrixDraws::new(2, matrices.hessian_noise, matrices.gradient_cov_noise).unwrap();
    let posterior = Posterior::new(&matrices, &draws).unwrap().unwrap();
    let found = posterior.matrices(&matrices);
    for (found, expected) in found.concat().iter().zip(hessian.iter().chain(&gradient_cov)) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
    let estimate = posterior.estimate(&matrices, &draws);
    let exact = ErrorLaw::plug_in(&hessian, &gradient_cov, 2, 100.0, Perturbation::Objective).unwrap();
    for (found, expected) in estimate.sampling.iter().zip(exact.sampling()) {
        assert!((found - expected).abs() < 1e-5 * expected.abs(), "{found} {expected}");
    }
    for (found, expected) in estimate.noise.iter().zip(exact.noise()) {
        assert!((found - expected).abs() < 1e-5 * expected.abs(), "{found} {expected}");
    }
}
