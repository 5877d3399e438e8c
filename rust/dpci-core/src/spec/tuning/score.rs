//! The validation loss of a candidate: how far one record can move it, and the lattice of an exact choice.

use std::sync::Arc;

use crate::exec::sum_depth;
use crate::loss::Loss;
use crate::spec::seal::lattice_below;
use crate::unit::Unit;
use crate::{Error, Result};

/// Roundings of one loss from its linear predictor (an exponential, a logarithm, a few products), with room.
const LOSS_ROUNDINGS: f64 = 32.0;

/// More lattice steps overflow the integers of an exact choice.
pub(crate) const GREATEST_STEPS: f64 = (1_u64 << 62) as f64;

/// Rounding may add this much of the sensitivity to it; where it would add more, scores say nothing.
const GREATEST_ROUNDING: f64 = 0.01;

/// Least number of lattice steps in the sensitivity of a loss: rounding to the lattice costs one.
const SENSITIVITY_STEPS: f64 = (1_u64 << 26) as f64;

/// Mean validation loss at parameters in a public ball, where one record can move it by no more than its range over the number of
/// records, and the rounding of two means. A person counts by the mean loss of its rows, a weighted record by its share of the loss.
#[derive(Debug, Clone)]
pub(crate) struct Score {
    loss: Arc<dyn Loss>,
    range: f64,
    /// Greatest loss of a record, which the rounding of a mean is in proportion to.
    greatest: f64,
    /// Rounding of a linear predictor, in units of the loss.
    predictor_rounding: f64,
    unit: Unit,
}

impl Score {
    /// The mean of `loss` at predictors of `n_params` terms and size at most `row_norm · radius`.
    pub(crate) fn new(loss: Arc<dyn Loss>, row_norm: f64, radius: f64, n_params: usize) -> Result<Self> {
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
        let greatest = loss.greatest_value(predictor)?;
        let predictor_rounding = (n_params as f64 + 2.0) * f64::EPSILON * predictor * loss.sup_slope(predictor);
        Ok(Self {
            loss,
            range,
            greatest,
            predictor_rounding,
            unit: Unit::Row,
        })
    }

    /// Score of such records, weighted or not. One that counts by less than 1 in all, which its weights and with `max_rows` its number of
    /// rows decide, lies between no loss and the greatest.
    pub(crate) fn of_records(mut self, unit: Unit, is_weighted: bool) -> Self {
        if is_weighted || !unit.counts_one() {
            self.range = self.range.max(self.greatest);
        }
        self.unit = unit;
        self
    }

    /// The loss.
    pub(crate) fn loss(&self) -> &dyn Loss {
        &*self.loss
    }

    /// The greatest loss of a record.
    pub(crate) fn greatest(&self) -> f64 {
        self.greatest
    }

    /// How far replacing one of `n` records can move the mean *as it is computed*: range/n, and twice a bound on the rounding of a
    /// mean, which does not fall with n.
    pub(crate) fn sensitivity(&self, n: usize) -> Result<f64> {
        let exact = self.range / n as f64;
        // Each term is rounded by all additions that it passes; EPSILON is two unit roundoffs, which leaves room for second order.
        // The shares of a person's rows are rounded down and add up to 1 less a few of them, which the room is for as well.
        let roundings = sum_depth(self.unit.greatest_rows(n as f64)) as f64 + LOSS_ROUNDINGS;
        let rounding = roundings * f64::EPSILON * self.greatest + self.predictor_rounding;
        if !(2.0 * rounding <= GREATEST_ROUNDING * exact) {
            return Err(Error::Unsupported(format!(
                "the radius must be large enough that one of {n} records can change the mean validation loss by more than {:e}, \
                100 times its rounding error, got {exact:e}",
                2.0 * rounding / GREATEST_ROUNDING
            )));
        }
        Ok((exact + 2.0 * rounding) * (1.0 + 4.0 * f64::EPSILON))
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

/// The lattice of the losses, and what their steps are divided by in the exponent.
pub(crate) fn choice_lattice(epsilon: f64, sensitivity: f64) -> Result<(f64, u64)> {
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
pub(crate) fn whole(steps: f64) -> Result<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{Batch, Logistic, Squared};
    use crate::spec::testing::parabola;

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

    /// A loss that is steep on one side and for one target: `(2 - y)e⁻ᵘ`.
    #[derive(Debug)]
    struct Lopsided;

    impl Loss for Lopsided {
        fn name(&self) -> &'static str {
            "lopsided"
        }

        fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
            if let Some(total) = out.total {
                *total = u.iter().zip(y).map(|(u, y)| (2.0 - y) * (-u).exp()).sum();
            }
            Ok(())
        }

        fn slope_bound(&self) -> f64 {
            f64::INFINITY
        }

        fn curvature_bound(&self) -> f64 {
            f64::INFINITY
        }

        fn one_signed(&self) -> bool {
            true
        }

        fn sup_slope(&self, radius: f64) -> f64 {
            radius.exp()
        }

        fn sup_curvature(&self, radius: f64) -> f64 {
            radius.exp()
        }

        fn sup_weighted_sum(&self, _k: f64, _radius: f64) -> f64 {
            f64::NAN
        }

        fn sup_joint_norm(&self, _alpha: f64, _radius: f64) -> f64 {
            f64::NAN
        }

        fn value_range(&self, radius: f64) -> f64 {
            radius.exp() - (-radius).exp()
        }
    }

    #[test]
    fn the_parts_of_a_score() {
        let score = Score::new(Arc::new(Lopsided), 2.0, 1.5, 8).unwrap();
        let steep = 3.0 * 3.0_f64.exp();
        assert!((score.greatest() / steep - 1.0).abs() < 1e-7);
        // Up past the rounding of norms, once in the predictor and once in the range.
        let score = Score::new(Arc::new(Logistic), 2.0, 1.5, 8).unwrap();
        assert!(score.range > 3.0 * (1.0 + 1.9e-9) && score.range < 3.0 * (1.0 + 2.1e-9));
        assert!((score.greatest() / 3.0_f64.exp().ln_1p() - 1.0).abs() < 1e-7);
        // Eight products, their norm and its root: ten roundings of a predictor up to 3, at a slope of at most 1.
        let slope = 1.0 / (1.0 + (-3.0_f64).exp());
        let rounding = 10.0 * f64::EPSILON * 3.0 * slope;
        assert!((score.predictor_rounding / rounding - 1.0).abs() < 1e-8);
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Score::new(Arc::new(Logistic), 1.0, bad, 8).is_err());
        }
    }

    #[test]
    fn a_step_of_rounding_is_paid_for() {
        // Δ = 1 is 2²⁶ steps; the exponent divides by 2(2²⁶ + 1)/ε of them, rounded up.
        let (lattice, denominator) = choice_lattice(1e-6, 1.0).unwrap();
        assert!((lattice - 0.5_f64.powi(26)).abs() < f64::MIN_POSITIVE);
        let exact = 134_217_730_000_000;
        assert!((exact..=exact + 1000).contains(&denominator), "{denominator}");
        assert_eq!(whole(3.2).unwrap(), 4);
        assert_eq!(whole(0.0).unwrap(), 0);
        let most = 2.0_f64.powi(62);
        assert!(whole(most).is_ok() && whole(most.next_up()).is_err());
        for bad in [-1.0, f64::NAN, 1e19] {
            assert!(whole(bad).is_err());
        }
        assert!(choice_lattice(1e-13, 1.0).is_err());
    }

    #[test]
    fn rounding_adds_one_percent_at_most() {
        let score = Score::new(Arc::new(Logistic), 2.0, 1.5, 3).unwrap();
        let (mut allowed, mut refused) = (1_usize, 1 << 50);
        while refused - allowed > 1 {
            let middle = allowed.midpoint(refused);
            match score.sensitivity(middle) {
                Ok(_) => allowed = middle,
                Err(_) => refused = middle,
            }
        }
        let raised = score.sensitivity(allowed).unwrap() * allowed as f64 / score.range;
        assert!((raised - 1.01).abs() < 1e-6, "{raised}");
    }

    #[test]
    fn predictors_beyond_those_declared_are_refused_by_name() {
        let refused = |radius| {
            let refused = Score::new(parabola(0.0), 2.0, radius, 3).unwrap_err();
            refused.to_string().contains("predictor_bound=4")
        };
        // Of a caller's loss the range is not known, which is said of those within the bound.
        assert!(refused(2.1) && !refused(1.9));
    }
}
