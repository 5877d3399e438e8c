//! Budgets, who counts as a neighbour, and how a budget is shared among the steps of a fit.

use super::{check_delta, check_positive};
use crate::Result;
use crate::error::check;

/// A privacy budget in one of three notions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// ε-differential privacy.
    Pure {
        /// ε.
        epsilon: f64,
    },
    /// ρ-zero-concentrated differential privacy (Bun & Steinke 2016).
    Zcdp {
        /// ρ.
        rho: f64,
    },
    /// (ε, δ)-differential privacy.
    Approx {
        /// ε.
        epsilon: f64,
        /// δ.
        delta: f64,
    },
}

impl Budget {
    /// ε-DP.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `epsilon` is finite and positive.
    pub fn pure(epsilon: f64) -> Result<Self> {
        check_positive("epsilon", epsilon)?;
        Ok(Self::Pure { epsilon })
    }

    /// ρ-zCDP.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `rho` is finite and positive.
    pub fn zcdp(rho: f64) -> Result<Self> {
        check_positive("rho", rho)?;
        Ok(Self::Zcdp { rho })
    }

    /// (ε, δ)-DP.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `epsilon` is finite and positive and `0 < delta < 1`.
    pub fn approx(epsilon: f64, delta: f64) -> Result<Self> {
        check_positive("epsilon", epsilon)?;
        check_delta(delta)?;
        Ok(Self::Approx { epsilon, delta })
    }

    /// Budget of the mechanism, and the [`SEAL_SHARE`] of the seal; together at most this budget.
    ///
    /// ε and ρ add up (Dwork et al. 2006; Bun & Steinke 2016), and so do ε and δ of an (ε, δ)-DP release that is interleaved with others.
    pub fn split_off_seal(self) -> (Self, Self) {
        let parts = |whole: f64| (unsealed(whole), (whole * SEAL_SHARE).next_down());
        match self {
            Self::Pure { epsilon } => {
                let (rest, seal) = parts(epsilon);
                (Self::Pure { epsilon: rest }, Self::Pure { epsilon: seal })
            }
            Self::Zcdp { rho } => {
                let (rest, seal) = parts(rho);
                (Self::Zcdp { rho: rest }, Self::Zcdp { rho: seal })
            }
            Self::Approx { epsilon, delta } => {
                let ((epsilon, seal_epsilon), (delta, seal_delta)) = (parts(epsilon), parts(delta));
                let seal = Self::Approx {
                    epsilon: seal_epsilon,
                    delta: seal_delta,
                };
                (Self::Approx { epsilon, delta }, seal)
            }
        }
    }
}

/// Share of every budget that pays for the seal of the released values, before any other share (docs/proofs/program.md, "The seal").
///
/// A thousandth: the noise that hides the data grows by as much, and intervals by less.
pub const SEAL_SHARE: f64 = 1e-3;

/// Part of a number of a budget that the seal leaves.
pub fn unsealed(whole: f64) -> f64 {
    (whole - whole * SEAL_SHARE).next_down()
}

/// Which pairs of data sets must be hard to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Neighbors {
    /// One record replaced by another; the number of records is public.
    ReplaceOne,
    /// One record added or removed; the number of records is private and a public constant stands for it.
    AddRemove,
}

impl Neighbors {
    /// `"replace_one"` or `"add_remove"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReplaceOne => "replace_one",
            Self::AddRemove => "add_remove",
        }
    }

    /// How many records differ between neighbours that have most in common: 2 or 1.
    pub fn changed_records(self) -> f64 {
        match self {
            Self::ReplaceOne => 2.0,
            Self::AddRemove => 1.0,
        }
    }
}

/// Whose constants calibrate the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Calibration {
    /// The least that the proofs in docs/proofs allow.
    Tight,
    /// The printed constants of Wang, Kifer & Lee: private, but with more noise than needed.
    Paper,
}

/// Shares of a budget that go to the coefficients, the Hessian and the gradient covariance; they sum to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Share of the coefficients.
    pub coefficients: f64,
    /// Share of the Hessian.
    pub hessian: f64,
    /// Share of the gradient covariance.
    pub gradient_cov: f64,
}

impl Split {
    /// The shares of Wang, Kifer & Lee.
    pub const PAPER: Self = Self {
        coefficients: 0.5,
        hessian: 0.25,
        gradient_cov: 0.25,
    };

    /// Three shares, scaled so that rounding in the caller's numbers cannot make them exceed the budget.
    pub fn new(coefficients: f64, hessian: f64, gradient_cov: f64) -> Result<Self> {
        for share in [coefficients, hessian, gradient_cov] {
            check(
                share > 0.0 && share.is_finite(),
                "split",
                "three finite numbers > 0",
                share,
            )?;
        }
        let sum = coefficients + hessian + gradient_cov;
        check((sum - 1.0).abs() <= 1e-9, "the sum of split", "1", sum)?;
        Ok(Self {
            coefficients: coefficients / sum,
            hessian: hessian / sum,
            gradient_cov: gradient_cov / sum,
        })
    }

    /// Share of both moments together.
    pub fn moments(&self) -> f64 {
        self.hessian + self.gradient_cov
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_validated() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Budget::pure(bad).is_err());
            assert!(Budget::zcdp(bad).is_err());
            assert!(Budget::approx(bad, 1e-6).is_err());
        }
        for bad in [0.0, 1.0, -0.1, 1.5, f64::NAN] {
            assert!(Budget::approx(1.0, bad).is_err());
        }
        let error = Budget::pure(-1.0).unwrap_err().to_string();
        assert_eq!(error, "epsilon must be finite and > 0, got epsilon=-1");
    }

    #[test]
    fn splits_are_validated_and_scaled_to_one() {
        assert!(Split::new(0.5, 0.25, 0.2).is_err());
        assert!(Split::new(1.0, 0.0, 0.0).is_err());
        assert!(Split::new(f64::NAN, 0.5, 0.5).is_err());
        assert!(Split::new(f64::INFINITY, 0.5, 0.5).is_err());
        for split in [
            Split::new(0.5 + 9e-10, 0.25, 0.25).unwrap(),
            Split::new(1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0).unwrap(),
            Split::PAPER,
        ] {
            let sum = split.coefficients + split.hessian + split.gradient_cov;
            assert!((sum - 1.0).abs() <= f64::EPSILON, "{sum}");
        }
    }

    #[test]
    fn a_seal_takes_a_thousandth_and_no_more() {
        for i in 1..2000 {
            let whole = f64::from(i) * 0.000_73;
            let budgets = [
                Budget::pure(whole),
                Budget::zcdp(whole),
                Budget::approx(whole, 0.4 * whole / 2.0),
            ];
            for (rest, seal) in budgets.map(|b| b.unwrap().split_off_seal()) {
                let numbers = |b: Budget| match b {
                    Budget::Pure { epsilon } => vec![(epsilon, whole)],
                    Budget::Zcdp { rho } => vec![(rho, whole)],
                    Budget::Approx { epsilon, delta } => {
                        vec![(epsilon, whole), (delta, 0.4 * whole / 2.0)]
                    }
                };
                for ((rest, all), (seal, _)) in numbers(rest).into_iter().zip(numbers(seal)) {
                    // In units of the whole, exact: what is left and what is taken stay below it.
                    assert!((all - rest) - seal > 0.0, "{all}");
                    assert!(seal < all * 1e-3 && seal > all * 1e-3 * (1.0 - 1e-15));
                    assert!(rest > all * 0.999 * (1.0 - 1e-15));
                }
            }
        }
    }
}
