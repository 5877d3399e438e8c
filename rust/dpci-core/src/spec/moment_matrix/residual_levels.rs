//! How far the tail of the residuals reaches: the noise of the share of records near each level, and the cap that follows.

use super::{MomentMatrixSpec, ResidualPlan};
use crate::loss::{LEVELS, gradient_rounding, level};
use crate::noise::{AnyLaw, Law};
use crate::privacy::Cost;
use crate::spec::fit::sum_rounding;
use crate::spec::functional::{independent, noise_of};
use crate::spec::{Part, Query, Seal, Step};
use crate::{Error, Result};
use std::f64::consts::SQRT_2;

/// Residuals count up to this many times the highest level at which records are seen.
const MARGIN: f64 = 2.0;

/// Mean excess over the cap of tails that fall as fast as t^(-5/2), over the cap times the share at the level above the highest that is
/// seen: .31, and some room (`docs/proofs/linear_regression.md`, "Refined coefficients").
const UNSEEN: f64 = 1.0 / 3.0;

/// Noise alone shows records at an empty level with this probability. The cap is then too large, which only adds noise.
const FALSELY_SEEN: f64 = 2e-3;

/// The noise of the shares at the levels.
#[derive(Debug, Clone)]
pub struct LevelNoise {
    /// Its law.
    pub law: AnyLaw,
    /// For the record.
    pub step: Step,
    /// How they are sealed.
    pub seal: Seal,
}

/// The cap that released levels call for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelCap {
    /// The cap, as a part of the greatest residual.
    pub cap: f64,
    /// A greater share of the records is seen.
    pub threshold: f64,
    /// Share of errors cut off at the cap for which intervals account, each by the cap itself: a third of the greatest share at the levels
    /// where nothing is seen, with the variance of its noise. A tail that falls like `t^{-5/2}` or faster has no more
    /// (`docs/proofs/linear_regression.md`, "What the cap cuts off").
    pub unseen: f64,
}

impl LevelCap {
    /// The cap is twice the highest level whose share exceeds the noise; without any no residual is cut off.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for noise of another family than [`MomentMatrixSpec::level_noise`] adds.
    pub fn new(shares: &[f64], noise: &str, scale: f64) -> Result<Self> {
        let (tail, std_dev) = match noise {
            "laplace" => (-(2.0 * FALSELY_SEEN).ln(), SQRT_2 * scale),
            // The normal quantile.
            "gaussian" => (2.878_161_739_095_483, scale),
            _ => {
                return Err(Error::Unsupported(format!(
                    "levels of residuals have Laplace or Gaussian noise, got {noise}"
                )));
            }
        };
        let threshold = tail * scale;
        let seen = shares.iter().position(|share| *share > threshold);
        let cap = seen.map_or(1.0, |i| (MARGIN * level(i)).min(1.0));
        let unseen = if cap < 1.0 {
            let above = &shares[..seen.unwrap_or_default()];
            let greatest = above.iter().fold(0.0_f64, |a, b| a.max(*b));
            UNSEEN * greatest.hypot(std_dev)
        } else {
            0.0
        };
        Ok(Self {
            cap,
            threshold,
            unseen,
        })
    }
}

impl MomentMatrixSpec {
    /// The greatest residual at coefficients of at most this norm.
    #[must_use]
    pub fn greatest_residual(&self, plan: &ResidualPlan, norm: f64) -> f64 {
        self.cap_at(plan, norm, f64::INFINITY)
    }

    /// The noise of `(1/n) Σ h`, h the shares of a record at the levels of the greatest residual.
    ///
    /// # Privacy
    /// The shares of a record, of a person and of a weighted record are at least 0 and add up to at most 1. So two of them are at most 2
    /// apart in the L1 norm and √2 in the Euclidean one, and one is at most 1 from none.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where the noise or the seal have no scale in double precision.
    pub fn level_noise(&self) -> Result<LevelNoise> {
        let (c, cost) = (self.choices(), self.level_cost);
        let bounds = c.terms.bounds(1.0, LEVELS)?;
        // A record's shares are rounded, each once or twice.
        let changed = bounds.objective_shift(1.0 + 8.0 * f64::EPSILON);
        let shift = match cost {
            Cost::Epsilon(_) => changed,
            _ => changed.sqrt(),
        };
        let sensitivity = bounds.argmin(shift, 1.0);
        let (noise, scale) = noise_of(cost, sensitivity)?;
        let law = independent(cost, LEVELS, scale)?;
        let data = 2.0 * sum_rounding(&bounds, gradient_rounding);
        let distance = data + 2.0 * law.error_bound();
        Ok(LevelNoise {
            step: Step {
                query: Query::ResidualLevels,
                noise,
                cost,
                scale,
                hessian_scale: None,
                sensitivity,
            },
            seal: Seal::new(Part::ResidualLevels, LEVELS, distance, self.seal_cost)?,
            law,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_is_twice_the_highest_level_that_is_seen() {
        let mut shares = vec![0.0; LEVELS];
        let cap = |shares: &[f64]| LevelCap::new(shares, "gaussian", 0.01).unwrap();
        assert_eq!((cap(&shares).cap, cap(&shares).unseen), (1.0, 0.0));
        shares[9] = 0.5;
        shares[6] = 0.029;
        shares[5] = 0.028;
        assert!((cap(&shares).cap - 0.25).abs() < 1e-15);
        // √(.028² + .01²)/3, and where noise alone is there a third of that.
        assert!((cap(&shares).unseen - 0.009_910_7).abs() < 1e-7);
        shares[5] = -0.004;
        let unseen = cap(&shares).unseen;
        assert!((unseen - 0.01 / 3.0).abs() < 1e-15);
        shares[1] = 0.04;
        assert_eq!((cap(&shares).cap, cap(&shares).unseen), (1.0, 0.0));
        // P(X > t) = e^{-t}/2 for the Laplace law.
        let laplace = LevelCap::new(&shares, "laplace", 1.0).unwrap();
        assert!((0.5 * (-laplace.threshold).exp() - FALSELY_SEEN).abs() < 1e-15);
        let laplace = LevelCap::new(&[0.0, 0.0, 0.0, 7.0], "laplace", 1.0).unwrap();
        assert!((laplace.unseen - SQRT_2 / 3.0).abs() < 1e-15);
        assert!(LevelCap::new(&shares, "matrix_laplace", 1.0).is_err());
    }
}
