//! Releases the index of a candidate with a low loss: the exponential mechanism, and the noisy scores that compete in repeated runs.

use std::sync::Arc;

use super::seal::lattice_below;
use crate::design::Design;
use crate::exec::{Executor, sum_depth};
use crate::loss::{Batch, Loss, Targets};
use crate::noise::{Gaussian, NoiseGenerator, NoiseLaw, SphericalLaplace, exponential_index};
use crate::objective::{HessianRows, Objective};
use crate::{Error, Result};

/// Roundings of one loss from its linear predictor (an exponential, a logarithm, a few products), with room.
const LOSS_ROUNDINGS: f64 = 32.0;

/// More lattice steps overflow the integers of an exact choice.
const GREATEST_STEPS: f64 = (1_u64 << 62) as f64;

/// Rounding may add this much of the sensitivity to it; where it would add more, scores say nothing.
const GREATEST_ROUNDING: f64 = 0.01;

/// Mean validation loss at parameters in a public ball, where one record can move it by no more than its range over the number of
/// records, and the rounding of two means.
#[derive(Debug, Clone)]
pub(crate) struct Score {
    loss: Arc<dyn Loss>,
    range: f64,
    /// Greatest loss of a record, which the rounding of a mean is in proportion to.
    greatest: f64,
    /// Rounding of a linear predictor, in units of the loss.
    predictor_rounding: f64,
}

impl Score {
    /// The mean of `loss` at predictors of `n_params` terms and size at most `row_norm · radius`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a loss without a known range there.
    pub(crate) fn new(
        loss: Arc<dyn Loss>,
        row_norm: f64,
        radius: f64,
        n_params: usize,
    ) -> Result<Self> {
        // Up past the rounding of norms, of the projection and of the predictors.
        let predictor = row_norm * radius * (1.0 + 1e-9);
        check_predictor(&*loss, predictor)?;
        let range = loss.value_range(predictor) * (1.0 + 1e-9);
        if !(range > 0.0 && range.is_finite()) {
            return Err(Error::Unsupported(format!(
                "the validation loss must have a known, finite range over predictors up to {predictor}, got {range} for the {} loss",
                loss.name()
            )));
        }
        let greatest = greatest_value(&*loss, predictor)?;
        let predictor_rounding =
            (n_params as f64 + 2.0) * f64::EPSILON * predictor * loss.sup_slope(predictor);
        Ok(Self {
            loss,
            range,
            greatest,
            predictor_rounding,
        })
    }

    /// The greatest loss of a record.
    pub(crate) fn greatest(&self) -> f64 {
        self.greatest
    }

    /// How far replacing one of `n` records can move the mean *as it is computed*: range/n, and twice a bound on the rounding of a
    /// mean, which does not fall with n.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the rounding would be a share of it that matters.
    pub(crate) fn sensitivity(&self, n: usize) -> Result<f64> {
        let exact = self.range / n as f64;
        // Each term is rounded by all additions that it passes; EPSILON is two unit roundoffs, which leaves room for second order.
        let roundings = sum_depth(n) as f64 + LOSS_ROUNDINGS;
        let rounding = roundings * f64::EPSILON * self.greatest + self.predictor_rounding;
        if !(2.0 * rounding <= GREATEST_ROUNDING * exact) {
            return Err(Error::Unsupported(format!(
                "the radius must let one of {n} records move the mean validation loss by more than {:e}, 100 times its rounding, got {exact:e}",
                2.0 * rounding / GREATEST_ROUNDING
            )));
        }
        Ok((exact + 2.0 * rounding) * (1.0 + 4.0 * f64::EPSILON))
    }

    /// The mean loss of the records at `params`. Not private.
    pub(crate) fn mean_loss(
        &self,
        design: &Design<'_>,
        params: &[f64],
        exec: &Executor<'_>,
    ) -> Result<f64> {
        mean_loss(&*self.loss, design, params, exec)
    }
}

/// Refuses predictors beyond those that a loss is declared for.
pub(crate) fn check_predictor(loss: &dyn Loss, predictor: f64) -> Result<()> {
    match loss.predictor_bound() {
        Some(bound) if !(predictor <= bound * (1.0 + 2e-9)) => Err(Error::Unsupported(format!(
            "the greatest radius times the bound on a row must be at most predictor_bound={bound} of the validation loss, got {predictor}"
        ))),
        _ => Ok(()),
    }
}

/// The greatest loss over predictors of at most this size: losses are convex in the predictor and in the target, so it is at a corner.
fn greatest_value(loss: &dyn Loss, predictor: f64) -> Result<f64> {
    let (lower, upper) = match loss.targets() {
        Targets::Signs => (-1.0, 1.0),
        Targets::Interval { lower, upper } => (lower, upper),
    };
    let mut greatest = 0.0;
    for u in [-predictor, predictor] {
        for y in [lower, upper] {
            let mut total = 0.0;
            let out = Batch {
                total: Some(&mut total),
                ..Batch::default()
            };
            loss.evaluate(&[u], &[y], out)?;
            if !(total <= greatest) {
                greatest = total;
            }
        }
    }
    Ok(greatest)
}

/// The mean of a loss over the records at `params`. Not private.
pub(crate) fn mean_loss(
    loss: &dyn Loss,
    design: &Design<'_>,
    params: &[f64],
    exec: &Executor<'_>,
) -> Result<f64> {
    let risk = Objective {
        records: design,
        weights: None,
        loss,
        l2_strength: 0.0,
        extra_convexity: 0.0,
        linear_term: None,
        n_samples: design.n_records() as f64,
        exec,
    };
    Ok(risk.evaluate(params, HessianRows::None)?.value)
}

/// Least number of lattice steps in the sensitivity of a loss: rounding to the lattice costs one.
const SENSITIVITY_STEPS: f64 = (1_u64 << 26) as f64;

/// Releases an index of `losses`, the lower the loss the likelier: i with probability proportional to `exp(-ε·lossᵢ/(2Δ))`.
///
/// # Privacy
/// Losses that, as computed, one record moves by at most `sensitivity` Δ each: `epsilon`-DP (`McSherry` & Talwar 2007), and `ε²/8`-zCDP,
/// because the privacy loss takes values in an interval of length ε (Cesar & Rogers 2021). The losses are rounded to a public lattice,
/// which adds one step to their sensitivity, and the choice is drawn in integer arithmetic: it needs no seal.
///
/// # Errors
/// [`Error::NonFiniteRelease`] for a loss that is not finite, [`Error::OutOfRange`] for an ε beyond the lattice; nothing is released then.
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

/// The lattice of the losses, and what their steps are divided by in the exponent.
///
/// # Errors
/// [`Error::OutOfRange`] for an ε beyond the lattice.
pub(super) fn choice_lattice(epsilon: f64, sensitivity: f64) -> Result<(f64, u64)> {
    let lattice = lattice_below(sensitivity / SENSITIVITY_STEPS);
    // One step for the rounding of a loss and of its neighbour; quotients by a power of two are exact.
    let denominator = whole(2.0 * (sensitivity / lattice + 1.0) / epsilon * (1.0 + 1e-12))?;
    Ok((lattice, denominator))
}

/// A number of steps, rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be within range"
)]
fn whole(steps: f64) -> Result<u64> {
    let steps = steps.ceil();
    if (0.0..=GREATEST_STEPS).contains(&steps) {
        Ok(steps as u64)
    } else {
        Err(Error::OutOfRange {
            name: "the lattice of the validation losses",
            rule: "within 2^62 steps (the budget or the radius is extreme)",
            value: steps,
        })
    }
}

/// One draw of a scalar law for a release.
pub(crate) fn scalar_noise(law: NoiseLaw, generator: &mut impl NoiseGenerator) -> Result<f64> {
    let draw = match law {
        NoiseLaw::SphericalLaplace { rate, .. } => {
            SphericalLaplace::new(1, rate)?.sample_bounded(generator)?
        }
        NoiseLaw::Gaussian { std_dev } => Gaussian::new(1, std_dev)?.sample_bounded(generator)?,
    };
    Ok(draw[0])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::design::{OnViolation, RowBounds, Rows};
    use crate::loss::{Logistic, Squared};
    use crate::noise::SimulationGenerator;

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
    fn the_sensitivity_is_the_range_of_the_loss_on_the_ball() {
        let squared = Squared::new(0.5).unwrap();
        let score = Score::new(Arc::new(squared), 2.0, 1.5, 3).unwrap();
        // (RW + B)² = 3.5², attained by (u - y)² from 0 to 3.5².
        assert!((score.sensitivity(10).unwrap() / (3.5_f64.powi(2) / 10.0) - 1.0).abs() < 1e-7);
        let score = Score::new(Arc::new(Logistic), 2.0, 1.5, 3).unwrap();
        // log(1+e³) - log(1+e⁻³) = 3.
        let sensitivity = score.sensitivity(1).unwrap();
        assert!((sensitivity / 3.0 - 1.0).abs() < 1e-7 && sensitivity >= 3.0);
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
                row_norm: 1.0,
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
}

#[cfg(test)]
mod edge_tests;
