//! Limits on the derivatives of the loss at each row, so that no row's gradient or Hessian is longer than a bound.

use std::ops::Range;

use super::Design;

/// Bounds on the norms of one row's gradient and Hessian, and those of rows with slope and curvature 1.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// `w‖x‖` and `w‖x‖²`, the norms rounded up.
    gradients: Vec<f64>,
    hessians: Vec<f64>,
    /// w: how much rows far out weigh less.
    pub(super) weights: Vec<f64>,
    /// How much each row counts among the records, whatever its weight; `None`: one each.
    shares: Option<Vec<f64>>,
    gradient: f64,
    hessian: f64,
}

/// Quotients are rounded down by more than their roundings.
const ROOM: f64 = 1.0 - 4.0 * f64::EPSILON;

impl Limits {
    /// No limits yet, on rows of these norms and weights.
    pub(super) fn none(norms: &[f64], weights: &[f64], shares: Option<&[f64]>) -> Self {
        let pairs = || norms.iter().zip(weights);
        Self {
            gradients: pairs().map(|(norm, w)| w * norm).collect(),
            hessians: pairs().map(|(norm, w)| w * norm * norm).collect(),
            weights: weights.to_vec(),
            shares: shares.map(<[f64]>::to_vec),
            gradient: f64::INFINITY,
            hessian: f64::INFINITY,
        }
    }

    /// Limits of some rows.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        Self {
            gradients: rows.iter().map(|&i| self.gradients[i]).collect(),
            hessians: rows.iter().map(|&i| self.hessians[i]).collect(),
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
    /// Holds the slope at each row x of weight w to `gradient/(w‖x‖)` and the curvature to `hessian/(w‖x‖²)`, in risks and
    /// moments from here on; for moved rows.
    ///
    /// A slope that is held so is that of a convex loss as well, which is linear beyond.
    pub fn limit(&mut self, gradient: f64, hessian: f64) {
        if let Some(limits) = &mut self.limits {
            (limits.gradient, limits.hessian) = (gradient, hessian);
        }
    }

    /// Norms of the gradients and Hessians of moved rows, over slope and curvature.
    pub(super) fn norms(&self) -> Option<[&[f64]; 2]> {
        let limits = self.limits.as_ref()?;
        Some([&limits.gradients, &limits.hessians])
    }

    /// Shares of moved rows in their records, whatever their weights.
    pub(super) fn shares_of_records(&self) -> Option<&[f64]> {
        self.limits.as_ref()?.shares.as_deref()
    }

    /// Applies the limits to slopes and curvatures of some rows; to none, where a slice is empty.
    pub(crate) fn hold(&self, range: &Range<usize>, slopes: &mut [f64], curvatures: &mut [f64]) {
        let Some(limits) = &self.limits else {
            return;
        };
        if limits.gradient.is_finite() {
            for (slope, norm) in slopes.iter_mut().zip(&limits.gradients[range.clone()]) {
                let most = limits.gradient * ROOM / norm;
                *slope = slope.max(-most).min(most);
            }
        }
        if limits.hessian.is_finite() {
            for (curvature, norm) in curvatures.iter_mut().zip(&limits.hessians[range.clone()]) {
                *curvature = curvature.min(limits.hessian * ROOM / norm);
            }
        }
    }
}
