//! Limits on the derivatives of the loss at each row, so that no row's gradient or Hessian is longer than a bound.

use std::ops::Range;

use super::Design;

/// Bounds on the norms of one row's gradient and Hessian, and the norms of the rows.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// Rounded up.
    norms: Vec<f64>,
    gradient: f64,
    hessian: f64,
}

/// Quotients are rounded down by more than their roundings.
const ROOM: f64 = 1.0 - 4.0 * f64::EPSILON;

impl Limits {
    /// No limits yet, on rows of these norms.
    pub(super) fn none(norms: Vec<f64>) -> Self {
        Self {
            norms,
            gradient: f64::INFINITY,
            hessian: f64::INFINITY,
        }
    }

    /// Limits of some rows.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        Self {
            norms: rows.iter().map(|&i| self.norms[i]).collect(),
            ..*self
        }
    }
}

impl Design<'_> {
    /// Holds the slope at each row x to `gradient/‖x‖` and the curvature to `hessian/‖x‖²`, in risks and
    /// moments from here on; for moved rows.
    ///
    /// A slope that is held so is that of a convex loss as well, which is linear beyond.
    pub fn limit(&mut self, gradient: f64, hessian: f64) {
        if let Some(limits) = &mut self.limits {
            (limits.gradient, limits.hessian) = (gradient, hessian);
        }
    }

    /// Norms of moved rows, rounded up.
    pub(super) fn norms(&self) -> Option<&[f64]> {
        self.limits.as_ref().map(|limits| limits.norms.as_slice())
    }

    /// Applies the limits to slopes and curvatures of some rows; to none, where a slice is empty.
    pub(crate) fn hold(&self, range: &Range<usize>, slopes: &mut [f64], curvatures: &mut [f64]) {
        let Some(limits) = &self.limits else {
            return;
        };
        let norms = &limits.norms[range.clone()];
        if limits.gradient.is_finite() {
            for (slope, norm) in slopes.iter_mut().zip(norms) {
                let most = limits.gradient * ROOM / norm;
                *slope = slope.max(-most).min(most);
            }
        }
        if limits.hessian.is_finite() {
            for (curvature, norm) in curvatures.iter_mut().zip(norms) {
                *curvature = curvature.min(limits.hessian * ROOM / norm / norm);
            }
        }
    }
}
