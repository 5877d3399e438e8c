//! The noise of the Hessian and of the gradient covariance at margins where the suprema are known.

use super::*;
use crate::loss::{HuberHinge, Squared, moment_rounding};
use crate::noise::{Law, LevelTotals, MatrixLaw};
use crate::privacy::Perturbation::Output;
use crate::privacy::Split;
use crate::row_domain::{Blocks, RowDomain};
use crate::spec::fit::matrix_seal;
use crate::spec::seal::Part;
use crate::spec::{MatrixNoise, MomentNoise, Terms};

/// R²/n of the base choices.
const TERM: f64 = 1.5625 / 1000.0;

fn noise(choices: Choices, radius: f64) -> MomentNoise {
    spec(choices).moment_noise(radius).unwrap().unwrap()
}

/// A fifth of ε, or a tenth of ρ, for the moments.
fn joint(budget: Budget) -> Choices {
    let each = match budget {
        Budget::Pure { .. } => 0.1,
        _ => 0.05,
    };
    Choices {
        moments: Moments::Joint,
        split: Some(Split::new(1.0 - 2.0 * each, each, each).unwrap()),
        ..choices(Output, budget)
    }
}

#[track_caller]
fn assert_matrix_laplace(noise: MatrixNoise, sensitivity: f64, scale: f64) {
    let MatrixLaw::MatrixLaplace { rate } = noise.law else {
        panic!("{noise:?}")
    };
    assert_just_above(noise.sensitivity, sensitivity);
    assert_near(1.0 / rate, scale, 1e-11);
}

#[track_caller]
fn assert_gaussian(noise: MatrixNoise, sensitivity: f64, expected: f64) {
    let MatrixLaw::Gaussian { std_dev } = noise.law else {
        panic!("{noise:?}")
    };
    assert_near(noise.sensitivity, sensitivity, 1e-7);
    assert_near(std_dev, expected, 1e-7);
}

#[test]
fn joint_noise_under_pure_dp() {
    // At margin 0 the logistic loss has l'' = l'² = 1/4, so 2l'' + l'² = .75; the moments have a fifth of ε.
    let base = joint(pure(1.0));
    for (neighbors, changed) in [(Neighbors::ReplaceOne, 2.0), (Neighbors::AddRemove, 1.0)] {
        let noise = noise(
            Choices {
                terms: Terms {
                    neighbors,
                    ..base.terms
                },
                ..base.clone()
            },
            0.0,
        );
        let sensitivity = changed * TERM * 0.75;
        let scale = sensitivity / (0.2 * LEFT);
        assert_matrix_laplace(noise.gradient_cov, sensitivity, scale);
        assert_matrix_laplace(noise.hessian.unwrap(), sensitivity, scale / 2.0);
        let [step] = &noise.steps[..] else { panic!("one query") };
        assert_eq!((step.query.name(), step.noise.name()), ("moments", "matrix_laplace"));
        assert_near(step.cost.value(), 0.2 * LEFT, 1e-13);
        assert_near(step.scale, scale, 1e-11);
        assert_near(step.hessian_scale.unwrap(), scale / 2.0, 1e-11);
        assert_just_above(step.sensitivity, sensitivity);
    }
    // The squared loss: k = L²/2t within [L²/2t, L²/t] with L = 2(R‖θ̃‖ + B) of the released parameters.
    let squared = Choices {
        loss: Arc::new(Squared::new(1.0).unwrap()),
        radius: Some(4.0),
        ..base
    };
    let noise = noise(squared, 2.0);
    // L = 6, k = 9: 9·2 + 36 = 54.
    let scale = 2.0 * TERM * 54.0 / (0.2 * LEFT);
    assert_matrix_laplace(noise.gradient_cov, 2.0 * TERM * 54.0, scale);
    assert_matrix_laplace(noise.hessian.unwrap(), 2.0 * TERM * 54.0, scale / 9.0);
}

#[test]
fn joint_noise_of_gaussians() {
    // M(α)²/α = α/16 + 1/(16α) is least at α = 1, where M = √2/4.
    let std_dev = |changed: f64, mu: f64| changed * TERM * 2.0_f64.sqrt() / 4.0 / mu;
    for (neighbors, changed) in [(Neighbors::ReplaceOne, 2.0_f64.sqrt()), (Neighbors::AddRemove, 1.0)] {
        let mu = (2.0 * 0.1 * 0.5 * LEFT).sqrt();
        let noise = noise(
            Choices {
                terms: Terms {
                    neighbors,
                    ..joint(zcdp(0.5)).terms
                },
                ..joint(zcdp(0.5))
            },
            0.0,
        );
        let sensitivity = std_dev(changed, 1.0);
        assert_gaussian(noise.gradient_cov, sensitivity, std_dev(changed, mu));
        assert_gaussian(noise.hessian.unwrap(), sensitivity, std_dev(changed, mu));
        assert_near(noise.steps[0].cost.value(), 0.1 * 0.5 * LEFT, 1e-13);
    }
    // A tenth of μ² at (ε, δ).
    let mu = 0.236_473_272_066_093_45 * 0.1_f64.sqrt();
    let noise = noise(joint(approx(1.0, 1e-6)), 0.0);
    assert_gaussian(
        noise.gradient_cov,
        std_dev(2.0_f64.sqrt(), 1.0),
        std_dev(2.0_f64.sqrt(), mu),
    );
}

#[test]
fn separate_noise() {
    let separate = |budget| Choices {
        moments: Moments::Separate,
        ..joint(budget)
    };
    // Nuclear norm 2R²/n·sup, at margin 0 with both suprema 1/4.
    let found = noise(separate(pure(1.0)), 0.0);
    let sensitivity = 2.0 * TERM / 4.0;
    for matrix in [found.hessian.unwrap(), found.gradient_cov] {
        assert_matrix_laplace(matrix, sensitivity, sensitivity / (0.1 * LEFT));
    }
    let names: Vec<_> = found.steps.iter().map(|s| (s.query.name(), s.noise.name())).collect();
    assert_eq!(
        names,
        [("hessian", "matrix_laplace"), ("gradient_cov", "matrix_laplace")]
    );
    for step in &found.steps {
        assert_near(step.cost.value(), 0.1 * LEFT, 1e-13);
        assert_eq!(step.hessian_scale, None);
    }
    // Anywhere: l'' ≤ 1/4, l'² ≤ 1.
    let found = noise(separate(zcdp(0.5)), f64::INFINITY);
    let mu = (2.0 * 0.05 * 0.5 * LEFT).sqrt();
    let frobenius = 2.0_f64.sqrt() * TERM;
    assert_gaussian(found.hessian.unwrap(), frobenius / 4.0, frobenius / 4.0 / mu);
    assert_gaussian(found.gradient_cov, frobenius, frobenius / mu);
    // The paper's: 2R²/n in Frobenius norm, spherical Laplace on all entries, a quarter of ε each.
    let paper = Choices {
        calibration: Calibration::Paper,
        split: None,
        ..joint(pure(1.0))
    };
    let found = noise(paper, f64::INFINITY);
    for (matrix, sup) in [(found.hessian.unwrap(), 0.25), (found.gradient_cov, 1.0)] {
        let MatrixLaw::SquareLaplace { rate } = matrix.law else {
            panic!("{matrix:?}")
        };
        assert_just_above(matrix.sensitivity, 2.0 * TERM * sup);
        assert_near(1.0 / rate, 2.0 * TERM * sup / (0.25 * LEFT), 1e-11);
    }
    assert_eq!(found.steps[0].noise.name(), "spherical_laplace");
}

#[test]
fn a_hessian_that_is_known_is_not_released() {
    let huber = |moments| Choices {
        loss: Arc::new(HuberHinge::new(0.5).unwrap()),
        moments,
        ..joint(pure(1.0))
    };
    for moments in [Moments::Joint, Moments::Separate] {
        // No margin comes nearer to 1 than .5.
        let flat = noise(huber(moments), 0.4);
        assert!(flat.hessian.is_none() && flat.hessian_seal.is_none());
        assert_near(flat.spectral_radius(3), 0.0, 0.0);
        assert_eq!(flat.seals().count(), 1);
        let curved = noise(huber(moments), 0.6);
        assert!(curved.hessian.is_some() && curved.hessian_seal.is_some());
        assert_eq!(curved.seals().count(), 2);
        // All of ε there is hides the gradient covariance.
        assert_eq!(flat.steps.last().unwrap().cost, curved.steps.last().unwrap().cost);
    }
    let separate = noise(huber(Moments::Separate), 0.4);
    assert_eq!(separate.steps[0].noise.name(), "none");
    assert_near(separate.steps[0].scale, 0.0, 0.0);
    assert_near(separate.steps[0].sensitivity, 0.0, 0.0);
    assert!(
        spec(Choices {
            split: None,
            ..huber(Moments::None)
        })
        .moment_noise(1.0)
        .unwrap()
        .is_none()
    );
    let gaussian = Choices {
        budget: zcdp(0.5),
        ..huber(Moments::Joint)
    };
    assert!(noise(gaussian, 0.4).hessian.is_none());
}

#[test]
fn the_spectral_radius_is_that_of_gaussian_entries() {
    let found = noise(joint(zcdp(0.5)), 0.0);
    let hessian = found.hessian.unwrap();
    assert_near(
        found.spectral_radius(9),
        2.0 * 3.0 * hessian.law.off_diagonal_std_dev(9),
        1e-14,
    );
}

#[test]
fn seals_hide_the_rounding_of_sums_and_of_noise() {
    for neighbors in [Neighbors::ReplaceOne, Neighbors::AddRemove] {
        for budget in [pure(1.0), pure(1e9), zcdp(0.5), zcdp(1e9)] {
            let spec = spec(Choices {
                terms: Terms {
                    neighbors,
                    ..joint(budget).terms
                },
                ..joint(budget)
            });
            let found = spec.moment_noise(0.0).unwrap().unwrap();
            // As many as sixteen times the public number may be added and removed.
            let times = if neighbors == Neighbors::AddRemove { 16.0 } else { 1.0 };
            let sums = 1.5625 * 0.25 * times * moment_rounding(1000 * if times > 1.0 { 16 } else { 1 });
            for (noise, seal, name) in [
                (found.hessian.unwrap(), found.hessian_seal.unwrap(), "hessian"),
                (found.gradient_cov, found.gradient_cov_seal, "gradient_cov"),
            ] {
                let error = noise.law.on(3).unwrap().error_bound();
                let most = 1.5 * (sums + 2.0 * error);
                assert!(
                    seal.distance() >= sums + error && seal.distance() <= most,
                    "{seal:?} {sums:e} {error:e}"
                );
                assert_eq!(seal.part().name(), name);
                assert_eq!(seal.cost(), spec.seal().cost());
            }
        }
    }
}

#[test]
fn the_seal_of_the_covariance_is_no_farther_than_roundings_reach() {
    // The sum over the records, one addition of the noise, and the noise twice: slopes have no tail in which they err more.
    let found = noise(joint(pure(1e9)), 0.0);
    let error = found.gradient_cov.law.on(3).unwrap().error_bound();
    let sums = 1.5625 * 0.25 * (moment_rounding(1000) + f64::EPSILON);
    assert_near(found.gradient_cov_seal.distance(), sums + 2.0 * error, 1e-6);
}

#[test]
fn joint_moments_spend_the_shares_of_both() {
    for shares in [[0.6, 0.3, 0.1], [0.6, 0.1, 0.3]] {
        let [coefficients, hessian, gradient_cov] = shares;
        let asked = Choices {
            split: Some(Split::new(coefficients, hessian, gradient_cov).unwrap()),
            ..joint(pure(1.0))
        };
        let [step] = &noise(asked, 0.0).steps[..] else {
            panic!("one query")
        };
        assert_near(step.cost.value(), 0.4 * LEFT, 1e-12);
    }
}

#[test]
fn a_hessian_below_half_a_unit_of_the_ridge_is_invisible() {
    for (neighbors, records) in [(Neighbors::ReplaceOne, 1.0), (Neighbors::AddRemove, 16.0)] {
        let spec = spec(Choices {
            terms: Terms {
                neighbors,
                ..joint(pure(1.0)).terms
            },
            ..joint(pure(1.0))
        });
        let least = 0.5 * f64::EPSILON * 0.01 / (1.5625 * records);
        assert!(!spec.has_hessian(0.0) && !spec.has_hessian(0.999 * least));
        assert!(spec.has_hessian(1.001 * least) && spec.has_hessian(f64::NAN));
    }
}

#[test]
fn a_plan_has_the_noise_of_any_margin() {
    let plan = spec(joint(pure(1.0))).plan().unwrap();
    let found = noise(joint(pure(1.0)), f64::INFINITY);
    assert_eq!(plan.steps[1..], found.steps);
    assert_eq!(plan.seals.len(), 3);
    assert_near(plan.spectral_radius, found.spectral_radius(3), 0.0);
    assert_eq!(plan.projection, Projection::NoiseAware);
}

#[test]
fn level_totals_have_seven_times_the_weight_of_the_hessian() {
    let blocks = Blocks::new(vec![0.6, 0.8], vec![0, 1]).unwrap();
    let noise = noise(
        Choices {
            rows: RowDomain::Blocks(Arc::new(blocks)),
            moments: Moments::Levels,
            ..choices(Perturbation::Objective, pure(1.0))
        },
        0.0,
    );
    let (hessian, levels) = (noise.hessian.unwrap(), noise.levels.unwrap());
    // Cells have weights, and entries of the Hessian squares of rows, at most .6² + .8² + .75².
    assert_near(hessian.law.scale() / levels.scale(), 7.0 * 1.5625, 1e-12);
}

#[test]
fn the_seal_of_the_hessian_hides_the_errors_of_draws_of_level_totals() {
    let blocks = Blocks::new(vec![0.6, 0.8], vec![0, 1]).unwrap();
    let spec = spec(Choices {
        rows: RowDomain::Blocks(Arc::new(blocks)),
        moments: Moments::Levels,
        ..choices(Perturbation::Objective, pure(1.0))
    });
    let noise = spec.moment_noise(0.0).unwrap().unwrap();
    let sealed = |further: f64| {
        let greatest = LevelTotals::FINER * 0.25;
        let roundings = [spec.rounding(moment_rounding), spec.choices.loss.tail_roundings(0.0)];
        let hessian = noise.hessian.unwrap();
        matrix_seal(
            Part::Hessian,
            &spec.bounds,
            hessian,
            greatest,
            roundings,
            further,
            spec.seal_cost,
        )
        .unwrap()
    };
    let error = LevelTotals::FINER * noise.levels.as_ref().unwrap().error_bound().unwrap();
    assert_near(noise.hessian_seal.unwrap().distance(), sealed(error).distance(), 1e-12);
    assert!(sealed(error).distance() > 1.01 * sealed(0.0).distance());
}
