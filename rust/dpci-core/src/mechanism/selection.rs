//! Releases the index of a candidate with a low loss: the exponential mechanism, and the noisy scores that compete in repeated runs.

use crate::design::Design;
use crate::exec::Executor;
use crate::loss::Loss;
use crate::noise::{Law, NoiseGenerator, NoiseLaw, exponential_index};
use crate::objective::{HessianRows, Objective};
use crate::spec::{GREATEST_STEPS, choice_lattice, whole};
use crate::{Error, Result};

/// The mean of a loss over the records at `params`. Not private.
pub(crate) fn mean_loss(loss: &dyn Loss, design: &Design<'_>, params: &[f64], exec: &Executor<'_>) -> Result<f64> {
    let risk = Objective::new(design, loss, 0.0, design.n_records() as f64, exec);
    Ok(risk.evaluate(params, HessianRows::None)?.value)
}

/// Releases an index of `losses`, the lower the loss the likelier: i with probability proportional to `exp(-ε·lossᵢ/(2Δ))`.
///
/// # Privacy
/// Losses that, as computed, one record moves by at most `sensitivity` Δ each: `epsilon`-DP (`McSherry` & Talwar 2007), and `ε²/8`-zCDP,
/// because the privacy loss takes values in an interval of length ε (Cesar & Rogers 2021). The losses are rounded to a public lattice,
/// which adds one step to their sensitivity, and the choice is drawn in integer arithmetic: it needs no seal.
pub(crate) fn release_index(
    losses: &[f64],
    epsilon: f64,
    sensitivity: f64,
    generator: &mut impl NoiseGenerator,
) -> Result<usize> {
    let (lattice, denominator) = choice_lattice(epsilon, sensitivity)?;
    let exponents: Result<Vec<u64>> = losses
        .iter()
        .map(|loss| {
            if loss.is_finite() {
                // No mean of losses is negative but by rounding, nor beyond the lattice: clamping moves no two apart.
                whole((loss / lattice).clamp(0.0, GREATEST_STEPS))
            } else {
                Err(Error::NonFiniteRelease {
                    name: "the validation losses",
                    value: *loss,
                })
            }
        })
        .collect();
    Ok(exponential_index(&exponents?, denominator, generator))
}

/// One draw of a scalar law for a release.
pub(crate) fn scalar_noise(law: &NoiseLaw, generator: &mut impl NoiseGenerator) -> Result<f64> {
    Ok(law.on(1)?.sample_bounded(generator)?[0])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::design::{OnViolation, RowBounds, Rows};
    use crate::loss::{Logistic, Targets};
    use crate::noise::SimulationGenerator;
    use crate::row_domain::RowDomain;
    use crate::spec::Score;

    #[test]
    fn indexes_have_the_odds_of_the_exponential_mechanism() {
        let losses = [0.3, 0.1, 0.2, 0.9];
        let (epsilon, sensitivity) = (1.2, 0.15);
        let weights = losses.map(|l: f64| (-0.5 * epsilon * l / sensitivity).exp());
        let total: f64 = weights.iter().sum();
        let n = 200_000;
        let mut generator = SimulationGenerator::new(41, 0);
        let mut counts = [0.0; 4];
        for _ in 0..n {
            counts[release_index(&losses, epsilon, sensitivity, &mut generator).unwrap()] += 1.0;
        }
        let chi_square: f64 = counts
            .iter()
            .zip(weights)
            .map(|(count, w)| {
                let expected = f64::from(n) * w / total;
                (count - expected).powi(2) / expected
            })
            .sum();
        // 1 - 1e-6 quantile of chi-square with 3 degrees of freedom.
        assert!(chi_square < 30.7, "{chi_square}");
        assert!(release_index(&[0.0, f64::NAN], 1.0, 1.0, &mut generator).is_err());
    }

    #[test]
    fn the_rounding_of_a_mean_is_part_of_its_sensitivity() {
        let loss: Arc<dyn Loss> = Arc::new(Logistic);
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        // n records x = 1 with targets 1, whose losses all are log(1+e⁻ʳ) at the parameter r.
        let error = |n: usize, radius: f64| {
            let x = vec![1.0; n];
            let bounds = RowBounds {
                rows: RowDomain::Ball(1.0),
                targets: Targets::Signs,
                on_violation: OnViolation::Error,
            };
            let design = Design::new(Rows::dense(&x, 1), &x, None, &bounds, &exec).unwrap();
            let mean = mean_loss(&*loss, &design, &[radius], &exec).unwrap();
            (mean - (-radius).exp().ln_1p()).abs()
        };
        let sizes = 2990..3010;
        for radius in [4e-25, 4e-16, 1e-13, 1e-6, 1.0, 100.0] {
            let score = Score::new(Arc::clone(&loss), 1.0, radius, 1).unwrap();
            let mut unprotected = false;
            for n in sizes.clone() {
                let exact = radius / n as f64;
                unprotected |= 2.0 * error(n, radius) > exact;
                match score.sensitivity(n) {
                    Ok(sensitivity) => assert!(exact + 2.0 * error(n, radius) <= sensitivity),
                    Err(_) => assert!(radius < 1e-6),
                }
            }
            // Where the range alone would not do, there is no score.
            assert_eq!(unprotected, radius <= 1e-13, "{radius}");
            assert_eq!(score.sensitivity(3000).is_err(), radius <= 1e-13);
        }
    }

    #[test]
    fn losses_beyond_the_lattice_count_as_its_ends() {
        let mut generator = SimulationGenerator::new(42, 0);
        // Rounding may leave a mean of losses below 0: it counts as 0. One beyond the lattice counts as its end.
        let far_below = release_index(&[1.0, -1e-30], 1e6, 1.0, &mut generator).unwrap();
        assert_eq!(far_below, 1);
        let beyond = release_index(&[1e300, 0.0], 1e6, 1.0, &mut generator).unwrap();
        assert_eq!(beyond, 1);
        assert!(release_index(&[0.1, f64::NAN], 1.0, 1.0, &mut generator).is_err());
        assert!(release_index(&[0.1, f64::INFINITY], 1.0, 1.0, &mut generator).is_err());
    }
}
