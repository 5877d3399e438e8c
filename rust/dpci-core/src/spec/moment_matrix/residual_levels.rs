//! How far the tail of the residuals reaches: the noise of the share of records near each level, and the cap that follows.

use super::{MomentMatrixSpec, ResidualPlan};
use crate::loss::{LEVELS, level};
use crate::noise::AnyLaw;
use crate::privacy::Cost;
use crate::spec::{Part, Planned, Query};
use crate::{Error, Result};
use std::f64::consts::SQRT_2;

/// Mean excess over the cap of tails that fall as fast as t^(-5/2), over the cap times the share at the level of the cap: .741, rounded up
/// (`docs/proofs/linear_regression.md`, "Refined coefficients").
const UNSEEN: f64 = 0.75;

/// Noise alone shows records at an empty level with this probability. The cap is then too large, which only adds noise.
const FALSELY_SEEN: f64 = 5e-4;

/// So many adjacent levels are also seen together: sizes within a factor of 2√2, and no record counts there more than once.
const TOGETHER: usize = 4;

/// Sums of four noises exceed this many scales with a probability of 1/100: of Laplace noise, where `e^{-t}(t³ + 9t² + 33t + 48)/96` is that,
/// and of normal noise.
const LAPLACE_TOGETHER: f64 = 7.013_578_791_341_908;
const NORMAL_TOGETHER: f64 = 4.652_695_748_081_682;

/// The cap that released levels call for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelCap {
    /// The cap, as a part of the greatest residual.
    pub cap: f64,
    /// A greater share of the records at one level is seen.
    pub threshold: f64,
    /// A greater share of the records at four adjacent levels is seen.
    pub threshold_together: f64,
    /// Share of errors cut off at the cap for which intervals account, each by the cap itself: three quarters of the greatest share at the
    /// levels where nothing is seen, with the variance of its noise. A tail that falls like `t^{-5/2}` or faster has no more
    /// (`docs/proofs/linear_regression.md`, "What the cap cuts off").
    pub unseen: f64,
}

impl LevelCap {
    /// The cap is the level above the highest that is seen: by its own share, or as the lowest of four levels whose shares together exceed
    /// their noise. Without any no residual is cut off.
    pub fn new(shares: &[f64], noise: &str, scale: f64) -> Result<Self> {
        // Quantiles of one law and of the sum of four.
        let (tail, tail_together, std_dev) = match noise {
            "laplace" => (-(2.0 * FALSELY_SEEN).ln(), LAPLACE_TOGETHER, SQRT_2 * scale),
            "gaussian" => (3.290_526_731_491_894, NORMAL_TOGETHER, scale),
            _ => {
                return Err(Error::Unsupported(format!(
                    "levels of residuals have Laplace or Gaussian noise, got {noise}"
                )));
            }
        };
        let (threshold, threshold_together) = (tail * scale, tail_together * scale);
        let alone = shares.iter().position(|share| *share > threshold);
        let mut windows = shares[..alone.unwrap_or_default()].windows(TOGETHER);
        let together = windows.position(|w| w.iter().sum::<f64>() > threshold_together);
        let seen = together.map_or(alone.unwrap_or_default(), |i| i + TOGETHER - 1);
        let cap = level(seen.saturating_sub(1));
        let unseen = if cap < 1.0 {
            let greatest = shares[..seen].iter().fold(0.0_f64, |a, b| a.max(*b));
            UNSEEN * greatest.hypot(std_dev)
        } else {
            0.0
        };
        Ok(Self {
            cap,
            threshold,
            threshold_together,
            unseen,
        })
    }
}

impl MomentMatrixSpec {
    /// The greatest residual at coefficients of at most this norm.
    pub fn greatest_residual(&self, plan: &ResidualPlan, norm: f64) -> f64 {
        self.cap_at(plan, norm, f64::INFINITY)
    }

    /// The noise of `(1/n) Σ h`, h the shares of a record at the levels of the greatest residual.
    ///
    /// # Privacy
    /// The shares of a record, of a person and of a weighted record are at least 0 and add up to at most 1. So two of them are at most 2
    /// apart in the L1 norm and √2 in the Euclidean one, and one is at most 1 from none.
    pub fn level_noise(&self) -> Result<Planned<AnyLaw>> {
        let (c, cost) = (self.choices(), self.level_cost);
        let bounds = c.terms.bounds(1.0, LEVELS)?;
        // A record's shares are rounded, each once or twice.
        let changed = bounds.objective_shift(1.0 + 8.0 * f64::EPSILON);
        let shift = match cost {
            Cost::Epsilon(_) => changed,
            _ => changed.sqrt(),
        };
        let sensitivity = bounds.argmin(shift, 1.0);
        let kind = (Query::ResidualLevels, Part::ResidualLevels);
        Planned::independent(kind, cost, &bounds, sensitivity, 2.0, self.seal_cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cap(shares: &[f64], noise: &str, scale: f64) -> LevelCap {
        LevelCap::new(shares, noise, scale).unwrap()
    }

    #[test]
    fn the_cap_is_the_level_above_the_highest_that_is_seen() {
        let mut shares = vec![0.0; LEVELS];
        let of = |shares: &[f64]| cap(shares, "gaussian", 0.01);
        assert_eq!((of(&shares).cap, of(&shares).unseen), (1.0, 0.0));
        shares[9] = 0.5;
        shares[5] = 0.033;
        shares[4] = 0.03;
        assert!((of(&shares).cap - 0.25).abs() < 1e-15);
        // ¾√(.03² + .01²), and where noise alone is there three quarters of that.
        assert!((of(&shares).unseen - 0.023_717_1).abs() < 1e-7);
        shares[4] = -0.004;
        assert!((of(&shares).unseen - 0.0075).abs() < 1e-15);
        shares[1] = 0.04;
        assert_eq!((of(&shares).cap, of(&shares).unseen), (1.0, 0.0));
        // P(X > t) = e^{-t}/2 for the Laplace law.
        let laplace = cap(&shares, "laplace", 1.0);
        assert!((0.5 * (-laplace.threshold).exp() - FALSELY_SEEN).abs() < 1e-15);
        let laplace = cap(&[0.0, 0.0, 0.0, 7.0], "laplace", 1.0);
        assert!((laplace.unseen - 0.75 * SQRT_2).abs() < 1e-15);
        assert!(LevelCap::new(&shares, "matrix_laplace", 1.0).is_err());
    }

    #[test]
    fn four_levels_are_seen_together_where_none_is_alone() {
        let mut shares = vec![0.0; LEVELS];
        shares[10] = 0.5;
        shares[4..8].copy_from_slice(&[0.014, 0.014, 0.014, 0.005]);
        let found = cap(&shares, "gaussian", 0.01);
        assert!((found.cap - level(6)).abs() < 1e-15);
        // The greatest share above the lowest of the four.
        assert!((found.unseen - 0.75 * 0.014_f64.hypot(0.01)).abs() < 1e-15);
        shares[7] = 0.004;
        assert!((cap(&shares, "gaussian", 0.01).cap - level(9)).abs() < 1e-15);
        // A level that is seen alone counts for itself.
        shares[7] = 0.5;
        assert!((cap(&shares, "gaussian", 0.01).cap - level(6)).abs() < 1e-15);
        // Four Laplace variables add up to more than t with this probability.
        let t = cap(&shares, "laplace", 1.0).threshold_together;
        let beyond = (-t).exp() * (((t + 9.0) * t + 33.0) * t + 48.0) / 96.0;
        assert!((beyond - 0.01).abs() < 1e-15);
    }
}
