//! Releases the index of a candidate with a low loss: the exponential mechanism, and the noisy scores that compete in repeated runs.

use std::sync::Arc;

use crate::design::Design;
use crate::exec::Executor;
use crate::loss::Loss;
use crate::noise::{Gaussian, NoiseGenerator, NoiseLaw, SphericalLaplace, gumbel};
use crate::objective::{HessianRows, Objective};
use crate::{Error, Result};

/// Mean validation loss at parameters in a public ball, where one record can move it by no more than its range over the number of records.
#[derive(Debug, Clone)]
pub(crate) struct Score {
    loss: Arc<dyn Loss>,
    range: f64,
}

impl Score {
    /// The mean of `loss` at predictors of size at most `row_norm · radius`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a loss without a known range there.
    pub(crate) fn new(loss: Arc<dyn Loss>, row_norm: f64, radius: f64) -> Result<Self> {
        // Up past the rounding of norms, of the projection and of the predictors.
        let predictor = row_norm * radius * (1.0 + 1e-9);
        if loss
            .predictor_bound()
            .is_some_and(|bound| !(predictor <= bound * (1.0 + 1e-9)))
        {
            return Err(Error::Unsupported(format!(
                "the greatest radius times the bound on a row must be at most predictor_bound={} of the validation loss, got {predictor}",
                loss.predictor_bound().unwrap_or_default()
            )));
        }
        let range = loss.value_range(predictor) * (1.0 + 1e-9);
        if !(range > 0.0 && range.is_finite()) {
            return Err(Error::Unsupported(format!(
                "the validation loss must have a known, finite range over predictors up to {predictor}, got {range} for the {} loss",
                loss.name()
            )));
        }
        Ok(Self { loss, range })
    }

    /// How far replacing one of `n` records can move the mean: range/n, rounded up.
    pub(crate) fn sensitivity(&self, n: usize) -> f64 {
        self.range / n as f64 * (1.0 + 4.0 * f64::EPSILON)
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

/// The mean of a loss over the records at `params`. Not private.
pub(crate) fn mean_loss(
    loss: &dyn Loss,
    design: &Design<'_>,
    params: &[f64],
    exec: &Executor<'_>,
) -> Result<f64> {
    let risk = Objective {
        design,
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

/// Releases an index of `losses`, the lower the loss the likelier: i with probability proportional to `exp(-ε·lossᵢ/(2Δ))`.
///
/// # Privacy
/// Losses that one record moves by at most `sensitivity` Δ each: `epsilon`-DP (`McSherry` & Talwar 2007), and `ε²/8`-zCDP, because the
/// privacy loss takes values in an interval of length ε (Cesar & Rogers 2021). Sampled as the maximum of weights with Gumbel noise.
///
/// # Errors
/// [`Error::NonFiniteRelease`] for a loss that is not finite; nothing is released then.
pub(crate) fn release_index(
    losses: &[f64],
    epsilon: f64,
    sensitivity: f64,
    generator: &mut impl NoiseGenerator,
) -> Result<usize> {
    let rate = 0.5 * epsilon / sensitivity;
    let mut best = (0, f64::NEG_INFINITY);
    for (i, loss) in losses.iter().enumerate() {
        let noisy = gumbel(generator) - rate * loss;
        if !noisy.is_finite() {
            return Err(Error::NonFiniteRelease {
                name: "the validation losses",
                value: *loss,
            });
        }
        if noisy > best.1 {
            best = (i, noisy);
        }
    }
    Ok(best.0)
}

/// One draw of a scalar law.
pub(crate) fn scalar_noise(law: NoiseLaw, generator: &mut impl NoiseGenerator) -> Result<f64> {
    let draw = match law {
        NoiseLaw::SphericalLaplace { rate, .. } => {
            SphericalLaplace::new(1, rate)?.sample(generator)
        }
        NoiseLaw::Gaussian { std_dev } => Gaussian::new(1, std_dev)?.sample(generator),
    };
    Ok(draw[0])
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let score = Score::new(Arc::new(squared), 2.0, 1.5).unwrap();
        // (RW + B)² = 3.5², attained by (u - y)² from 0 to 3.5².
        assert!((score.sensitivity(10) / (3.5_f64.powi(2) / 10.0) - 1.0).abs() < 1e-7);
        let score = Score::new(Arc::new(Logistic), 2.0, 1.5).unwrap();
        // log(1+e³) - log(1+e⁻³) = 3.
        assert!((score.sensitivity(1) / 3.0 - 1.0).abs() < 1e-7);
        assert!(score.sensitivity(1) >= 3.0);
    }
}
