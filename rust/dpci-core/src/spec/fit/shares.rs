//! How a fit divides its budget where the caller does not say.

use super::choices::{Choices, Moments};
use crate::privacy::{Budget, Neighbors, Split};

/// Share of both moments with Gaussian noise, and least share under pure DP: near the shortest intervals from 10 to 104 parameters
/// (docs/proofs/mechanisms.md, "Accounting").
const GAUSSIAN: f64 = 0.05;
const PURE: f64 = 0.1;

/// How much greater the share under pure DP may become, times the number of parameters.
const ROOM: f64 = 0.5;

/// The noise in the Hessian that few parameters should have at most, as a share of the greatest Hessian.
const NOISE: f64 = 0.06;

/// The noise in level totals that a fit should have at most, over the number of parameters, and the greatest share for it.
const LEVELS_NOISE: f64 = 0.2;
const LEVELS: f64 = 0.12;

/// The shares of the choices, or the default ones.
///
/// Under pure DP the noise of the Hessian has the spectral radius `√(2d(d+1))·Δ/(½mεn)` in units of its greatest possible eigenvalue,
/// where m is the share of both moments and Δ is 2 or, under add/remove, 1. With few parameters and few records it can hide the Hessian
/// altogether, and the intervals then have to allow for H = λI. There m grows until the radius is [`NOISE`].
pub(super) fn shares(c: &Choices) -> Split {
    if let Some(split) = c.split {
        return split;
    }
    let moments = match c.budget {
        Budget::Pure { epsilon } => pure(c, epsilon).0,
        Budget::Zcdp { .. } | Budget::Approx { .. } => GAUSSIAN,
    };
    Split {
        coefficients: 1.0 - moments,
        hessian: 0.5 * moments,
        gradient_cov: 0.5 * moments,
    }
}

/// Derivative of what the coefficients get in the first number of the budget: their share, but where the share of the moments falls as
/// 1/ε they get the whole of any increase.
pub(super) fn marginal_share(c: &Choices) -> f64 {
    if let (None, Budget::Pure { epsilon }) = (c.split, c.budget)
        && pure(c, epsilon).1
    {
        return 1.0;
    }
    shares(c).coefficients
}

/// The share under pure DP, and whether it falls as 1/ε.
fn pure(c: &Choices, epsilon: f64) -> (f64, bool) {
    let [least, greatest] = range(c);
    let of_matrices = (wanted(c, epsilon), greatest);
    let of_levels = match c.moments {
        Moments::Levels => (wanted_for_levels(c, epsilon), LEVELS),
        _ => (least, least),
    };
    let limited = |(wanted, greatest): (f64, f64)| wanted.clamp(least, greatest);
    let (wanted, greatest) = if limited(of_levels) > limited(of_matrices) {
        of_levels
    } else {
        of_matrices
    };
    let falls = least < wanted && wanted < greatest;
    (limited((wanted, greatest)), falls)
}

/// The share under pure DP with which the noise is [`NOISE`].
fn wanted(c: &Choices, epsilon: f64) -> f64 {
    let dim = dim(c);
    let radius = (2.0 * dim * (dim + 1.0)).sqrt() * changed(c) / (0.5 * epsilon * c.terms.divisor());
    radius / NOISE
}

/// The share with which the noise in level totals is [`LEVELS_NOISE`].
fn wanted_for_levels(c: &Choices, epsilon: f64) -> f64 {
    dim(c) * changed(c) / (epsilon * c.terms.divisor()) / LEVELS_NOISE
}

/// Records in which neighbours differ.
fn changed(c: &Choices) -> f64 {
    match c.terms.neighbors {
        Neighbors::ReplaceOne => 2.0,
        Neighbors::AddRemove => 1.0,
    }
}

/// The least and the greatest share under pure DP.
fn range(c: &Choices) -> [f64; 2] {
    [PURE, PURE + ROOM / dim(c).max(2.0)]
}

fn dim(c: &Choices) -> f64 {
    c.n_params() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Perturbation;
    use crate::spec::Terms;
    use crate::spec::testing::{choices, pure, zcdp};

    #[track_caller]
    fn assert_moments(choices: &Choices, expected: f64) {
        let found = shares(choices);
        assert!((found.moments() - expected).abs() < 1e-15, "{found:?}");
        assert!((found.coefficients + found.moments() - 1.0).abs() <= f64::EPSILON);
        assert!((found.hessian - found.gradient_cov).abs() < f64::MIN_POSITIVE);
    }

    #[test]
    fn the_shares_follow_from_public_numbers() {
        let with = |n_samples, n_columns, epsilon| Choices {
            terms: Terms::of_rows(n_samples, Neighbors::ReplaceOne),
            n_columns,
            intercept: None,
            ..choices(Perturbation::Objective, pure(epsilon))
        };
        for (n, d, epsilon) in [(30_000, 10, 1.0), (30_000, 104, 100.0), (10_000, 2, 1.0)] {
            assert_moments(&with(n, d, epsilon), 0.1);
        }
        // √(2·2·3)·2/(½·1000) over .06.
        assert_moments(&with(1_000, 2, 1.0), 12.0_f64.sqrt() * 0.004 / 0.06);
        let added = Choices {
            terms: Terms {
                neighbors: Neighbors::AddRemove,
                ..with(1_000, 2, 0.5).terms
            },
            ..with(1_000, 2, 0.5)
        };
        assert_moments(&added, 12.0_f64.sqrt() * 0.004 / 0.06);
        for (d, greatest) in [(1, 0.35), (2, 0.35), (10, 0.15), (50, 0.11)] {
            assert_moments(&with(10, d, 0.01), greatest);
        }
        // 2·50/(5000·.5·.2) is above the greatest share for level totals, 2·50/(5000·.9·.2) within, and that of few parameters is greater.
        for (n, d, epsilon, expected) in [
            (5_000, 50, 0.5, 0.12),
            (5_000, 50, 0.9, 1.0 / 9.0),
            (50_000, 50, 1.0, 0.1),
            (1_000, 2, 1.0, 12.0_f64.sqrt() * 0.004 / 0.06),
        ] {
            let levels = Choices {
                moments: Moments::Levels,
                ..with(n, d, epsilon)
            };
            assert_moments(&levels, expected);
            let falls = d == 2 || epsilon > 0.8 && n == 5_000;
            assert_eq!(marginal_share(&levels) > 0.95, falls);
        }
        let gaussian = Choices {
            budget: zcdp(0.5),
            ..with(10, 2, 1.0)
        };
        assert_moments(&gaussian, 0.05);
        let own = Choices {
            split: Some(Split::PAPER),
            ..gaussian
        };
        assert_eq!(shares(&own), Split::PAPER);
    }
}
