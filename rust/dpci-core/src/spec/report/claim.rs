//! Claims about bounds on the privacy losses of records.

use crate::Result;
use crate::error::check;
use crate::privacy::reach;

/// Quantiles are raised by this much for the noise of the seals, which has a hundredth of the standard deviation of the mechanism's at
/// most: together with it 10⁻⁴ more variance.
const SEAL_ROOM: f64 = 1.001;

/// How `xᵀH⁻¹x` is bounded from the released Hessian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HessianBound {
    /// By the best combination of the released Hessian, lowered by the radius of its noise, with the ridge.
    Interpolated,
    /// By 3/2 of the released Hessian's inverse (Redberg & Wang); needs a ridge of twice the radius.
    Paper,
}

/// Claim about the bounds, and how they are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    failure_probability: f64,
    simultaneous: bool,
    hessian_bound: HessianBound,
}

impl Claim {
    /// The bounds of one record fixed beforehand, or of all records `simultaneous`ly, fail with at most this probability.
    pub fn new(failure_probability: f64, simultaneous: bool, hessian_bound: HessianBound) -> Result<Self> {
        check(
            (1e-300..1.0).contains(&failure_probability),
            "failure_probability",
            "at least 1e-300 and < 1",
            failure_probability,
        )?;
        Ok(Self {
            failure_probability,
            simultaneous,
            hessian_bound,
        })
    }

    /// With what probability the bounds may fail.
    pub fn failure_probability(&self) -> f64 {
        self.failure_probability
    }

    /// How `xᵀH⁻¹x` is bounded.
    pub fn hessian_bound(&self) -> HessianBound {
        self.hessian_bound
    }

    /// r such that the noise of the Hessian has an eigenvalue above r with half of the failure probability at most; `std_dev` is that
    /// of an isometric coordinate. Holds for all records at once.
    pub fn hessian_radius(&self, dim: usize, std_dev: f64) -> f64 {
        SEAL_ROOM * reach::greatest_eigenvalue(dim, std_dev, 0.5 * self.failure_probability)
    }

    /// How many standard deviations a normal vector on `R^dim` reaches within one fixed space of dimension `rank`, or within all at once.
    pub(crate) fn reach(&self, rank: usize, dim: usize, p: f64) -> f64 {
        let quantile = match (self.simultaneous, rank) {
            (true, _) => reach::normal_norm(dim, p),
            (false, 1) => reach::normal(p),
            (false, _) => reach::normal_norm(rank, p),
        };
        SEAL_ROOM * quantile
    }
}

/// Refuses a bound on the rows whose square could vanish in underflow, which would hide a loss, or overflow.
pub(crate) fn check_row_norm(row_norm: f64) -> Result<()> {
    check(
        (1e-100..=1e100).contains(&row_norm),
        "row_norm of a per-instance report",
        "at least 1e-100 and at most 1e100",
        row_norm,
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_rows_stay_normal_numbers() {
        for row_norm in [1e-100_f64, 1e100] {
            check_row_norm(row_norm).unwrap();
            assert!((row_norm * row_norm).is_normal());
        }
        for row_norm in [0.9e-100, 1.1e100, f64::INFINITY, f64::NAN] {
            assert!(check_row_norm(row_norm).is_err(), "{row_norm}");
        }
    }

    #[test]
    fn the_least_failure_probability() {
        let claim = |p| Claim::new(p, false, HessianBound::Interpolated);
        for p in [1e-300, 0.5, 1.0_f64.next_down()] {
            claim(p).unwrap();
        }
        for p in [0.9e-300, 0.0, 1.0, f64::NAN] {
            assert!(claim(p).is_err(), "{p}");
        }
    }
}
