//! Limits on the derivatives of the loss at each row: rows whose gradient or Hessian may be longer than a bound weigh less.

use std::ops::Range;

use super::Design;
use crate::Result;
use crate::loss::{Batch, Loss};

/// Bounds on the norms of one row's gradient and Hessian.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// `‖x‖`, rounded up.
    norms: Vec<f64>,
    /// w: how much rows far out weigh less.
    weights: Vec<f64>,
    /// How much each row counts among the records, whatever its weight; `None`: one each.
    shares: Option<Vec<f64>>,
    gradient: f64,
    hessian: f64,
}

/// Quotients are rounded down by more than their roundings.
const ROOM: f64 = 1.0 - 4.0 * f64::EPSILON;

impl Limits {
    /// No limits yet, on rows of these norms and weights.
    pub(super) fn none(norms: Vec<f64>, weights: Vec<f64>, shares: Option<&[f64]>) -> Self {
        Self {
            norms,
            weights,
            shares: shares.map(<[f64]>::to_vec),
            gradient: f64::INFINITY,
            hessian: f64::INFINITY,
        }
    }

    /// No limits on the same rows, whose norms have changed.
    pub(super) fn lift(&mut self, norms: Vec<f64>) {
        self.norms = norms;
        (self.gradient, self.hessian) = (f64::INFINITY, f64::INFINITY);
    }

    /// Norms of the gradient and the Hessian of a row, over slope and curvature: `w‖x‖` and `w‖x‖²`.
    pub(super) fn norms_of(&self, i: usize) -> [f64; 2] {
        let (norm, weight) = (self.norms[i], self.weights[i]);
        [weight * norm, weight * norm * norm]
    }

    /// Limits of some rows.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        Self {
            norms: rows.iter().map(|&i| self.norms[i]).collect(),
            weights: rows.iter().map(|&i| self.weights[i]).collect(),
            shares: self
                .shares
                .as_ref()
                .map(|shares| rows.iter().map(|&i| shares[i]).collect()),
            gradient: self.gradient,
            hessian: self.hessian,
        }
    }
}

impl Design<'_> {
    /// Bounds the norms of one row's gradient and Hessian in risks and moments from here on, by weights; for moved rows.
    ///
    /// The greatest slope that a row can have at its predictor decides its weight, not its target: so weights do not move the minimiser
    /// where the model of the mean holds (docs/proofs/newton.md, "The target"). Only log-odds have weights. The slope and the curvature of
    /// other losses, which depend on the target, are held to the bounds each.
    pub fn limit(&mut self, gradient: f64, hessian: f64) {
        if let Some(limits) = &mut self.limits {
            (limits.gradient, limits.hessian) = (gradient, hessian);
        }
    }

    /// Shares of moved rows in their records, whatever their weights.
    pub(super) fn shares_of_records(&self) -> Option<&[f64]> {
        self.limits.as_ref()?.shares.as_deref()
    }

    /// Weighs slopes and curvatures of some rows at these predictors, so that they keep the limits; none, where a slice is empty.
    ///
    /// Row by row: in a batch the last bits of a curvature depend on the other rows, which a weight must not.
    pub(crate) fn weigh(
        &self,
        range: &Range<usize>,
        loss: &dyn Loss,
        predictors: &[f64],
        [slopes, curvatures]: [&mut [f64]; 2],
    ) -> Result<()> {
        let Some(limits) = &self.limits else {
            return Ok(());
        };
        if limits.gradient == f64::INFINITY && limits.hessian == f64::INFINITY {
            return Ok(());
        }
        // Slopes and curvatures of other losses are not those of their predictors alone.
        let of_odds = loss.null_predictor(0.0).is_some();
        let (steepest, most_curved) = (loss.slope_bound(), loss.curvature_bound());
        for (k, (i, u)) in range.clone().zip(predictors).enumerate() {
            let [gradient, hessian] = limits.norms_of(i);
            let mut weight = 1.0_f64;
            if of_odds && steepest * gradient > limits.gradient {
                weight = weight.min(limits.gradient / (gradient * loss.sup_slope(u.abs())));
            }
            if of_odds && most_curved * hessian > limits.hessian {
                let mut curvature = [0.0];
                let out = Batch {
                    curvature: Some(&mut curvature),
                    ..Batch::default()
                };
                loss.evaluate(std::slice::from_ref(u), self.targets(i..i + 1), out)?;
                weight = weight.min(limits.hessian / (hessian * curvature[0]));
            }
            // The bounds hold whatever rounding did.
            if let Some(slope) = slopes.get_mut(k) {
                let most = limits.gradient * ROOM / gradient;
                *slope = (*slope * weight).max(-most).min(most);
            }
            if let Some(curvature) = curvatures.get_mut(k) {
                *curvature = (*curvature * weight).min(limits.hessian * ROOM / hessian);
            }
        }
        Ok(())
    }
}
