//! How far one record can move the coefficients of a quadratic loss polynomial, which the functional mechanism perturbs.
//!
//! Rows are in units of R and real targets in units of B, so the bounds depend on the number of parameters alone;
//! docs/baselines.md has the proofs.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::rounding::up;
use super::{Calibration, Neighbors};
use crate::loss::Targets;
use crate::{Error, Result};

/// A loss that is a quadratic polynomial in the parameters: `q·(xᵀθ)² - l·y·xᵀθ` and a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Polynomial {
    /// The squared loss `(xᵀθ - y)²`: q = 1, l = 2.
    Squared {
        /// Bound B on |y|.
        target_bound: f64,
    },
    /// The logistic loss to second order around θ = 0, y in {-1, 1}: q = 1/8, l = 1/2.
    Logistic,
}

impl Polynomial {
    /// The polynomial of the squared loss.
    pub fn squared(target_bound: f64) -> Result<Self> {
        super::check_positive("target_bound", target_bound)?;
        Ok(Self::Squared { target_bound })
    }

    /// (q, l).
    pub fn weights(self) -> (f64, f64) {
        match self {
            Self::Squared { .. } => (1.0, 2.0),
            Self::Logistic => (0.125, 0.5),
        }
    }

    /// Targets it accepts.
    pub fn targets(self) -> Targets {
        match self {
            Self::Squared { target_bound } => Targets::Interval {
                lower: -target_bound,
                upper: target_bound,
            },
            Self::Logistic => Targets::Signs,
        }
    }

    /// Bound on |y|.
    pub fn target_bound(self) -> f64 {
        match self {
            Self::Squared { target_bound } => target_bound,
            Self::Logistic => 1.0,
        }
    }

    /// L1 sensitivity of the coefficients `q Σxxᵀ` and `l Σyx` of a polynomial in `dim` parameters, for ‖x‖₂ ≤ 1 and |y| ≤ 1. It
    /// is the same for all d² entries as for the d(d+1)/2 monomials.
    ///
    /// Add/remove: `q·d + l·√d`, attained. Replace-one: with c the cosine between the rows,
    /// `max_c  q·d·√(2-2c²) + l·√d·√(2+2c)`, in closed form; `2l` for one parameter. Paper: `2(d+1)²` and `d²/4 + 3d` (Zhang et al. 2012),
    /// which are twice a bound on one record's coefficients, and half of that under add/remove.
    pub fn l1_sensitivity(self, dim: usize, neighbors: Neighbors, calibration: Calibration) -> f64 {
        let d = dim as f64;
        let (q, l) = self.weights();
        up(match (calibration, neighbors) {
            (Calibration::Paper, _) => {
                let one = match self {
                    Self::Squared { .. } => (d + 1.0).powi(2),
                    Self::Logistic => d * d / 8.0 + 1.5 * d,
                };
                neighbors.changed_records() * one
            }
            (Calibration::Tight, Neighbors::AddRemove) => q * d + l * d.sqrt(),
            (Calibration::Tight, Neighbors::ReplaceOne) if dim == 1 => 2.0 * l,
            (Calibration::Tight, Neighbors::ReplaceOne) => {
                // c = 1 - 2s²: the bound is √(1-s²)·(as + b).
                let (a, b) = (2.0 * SQRT_2 * q * d, 2.0 * l * d.sqrt());
                let s = ((b * b + 8.0 * a * a).sqrt() - b) / (4.0 * a);
                (1.0 - s * s).sqrt() * (a * s + b)
            }
        })
    }

    /// L2 sensitivity of `Σxxᵀ` in isometric coordinates stacked on `Σyx`, for ‖x‖₂ ≤ 1 and |y| ≤ 1, whatever the dimension:
    /// √2 under add/remove, `max_c √(4 + 2c - 2c²) = 3/√2` where a record is replaced, 2 there for one parameter.
    pub fn l2_sensitivity(dim: usize, neighbors: Neighbors, calibration: Calibration) -> Result<f64> {
        if calibration == Calibration::Paper {
            return Err(Error::Unsupported(
                "calibration=\"paper\" of the functional mechanism requires PureDP, because its noise is Laplace noise, got \
                another budget (use calibration=\"tight\")"
                    .into(),
            ));
        }
        Ok(up(match neighbors {
            Neighbors::AddRemove => SQRT_2,
            Neighbors::ReplaceOne if dim == 1 => 2.0,
            Neighbors::ReplaceOne => 3.0 * FRAC_1_SQRT_2,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_the_maximum_over_the_angle() {
        for polynomial in [Polynomial::squared(1.0).unwrap(), Polynomial::Logistic] {
            let (q, l) = polynomial.weights();
            for dim in [2_usize, 3, 14, 1000] {
                let d = dim as f64;
                let at = |c: f64| q * d * (2.0 - 2.0 * c * c).sqrt() + l * d.sqrt() * (2.0 + 2.0 * c).sqrt();
                let grid = (0..=200_000)
                    .map(|i| at(f64::from(i) / 100_000.0 - 1.0))
                    .fold(f64::NEG_INFINITY, f64::max);
                let closed = polynomial.l1_sensitivity(dim, Neighbors::ReplaceOne, Calibration::Tight);
                assert!(closed >= grid && closed < grid * (1.0 + 1e-8), "{dim}");
            }
        }
    }

    #[test]
    fn printed_constants_never_have_less_noise() {
        for polynomial in [Polynomial::squared(1.0).unwrap(), Polynomial::Logistic] {
            for neighbors in [Neighbors::ReplaceOne, Neighbors::AddRemove] {
                for dim in 1..2000 {
                    let of = |calibration| polynomial.l1_sensitivity(dim, neighbors, calibration);
                    assert!(of(Calibration::Paper) > of(Calibration::Tight), "{dim}");
                }
            }
        }
    }

    #[test]
    fn bad_bounds_and_printed_gaussians_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Polynomial::squared(bad).is_err());
        }
        assert!(Polynomial::l2_sensitivity(2, Neighbors::AddRemove, Calibration::Paper).is_err());
    }

    #[test]
    fn the_bound_on_targets_is_that_of_the_targets_it_accepts() {
        for polynomial in [Polynomial::squared(3.0).unwrap(), Polynomial::Logistic] {
            let [lower, upper] = polynomial.targets().ends();
            let greatest = upper.max(-lower);
            assert!((polynomial.target_bound() - greatest).abs() < f64::MIN_POSITIVE);
        }
    }
}
