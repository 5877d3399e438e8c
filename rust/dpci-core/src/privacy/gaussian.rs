//! The exact (ε, δ) profile of Gaussian noise, and its inverse.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use errorfunctions::RealErrorFunctions;

use super::rounding::greatest_where;
use super::{check_delta, check_non_negative};
use crate::Result;

/// Bound on the relative error of [`delta`] over the range where it matters (δ ≥ 1e-30, ε ≤ 100), by which the inverse
/// stays on the safe side; the tests compare with 50-digit values.
pub(super) const DELTA_ERROR: f64 = 1e-12;

/// Nodes and weights of the Gauss-Legendre rule with 8 points on `[-1, 1]`, positive half.
const LEGENDRE: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// δ(ε) of Gaussian noise whose sensitivity is `mu` standard deviations:
/// `Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ)` (Balle & Wang 2018).
pub fn gaussian_delta(epsilon: f64, mu: f64) -> Result<f64> {
    check_non_negative("epsilon", epsilon)?;
    check_non_negative("mu", mu)?;
    Ok(delta(epsilon, mu))
}

/// Greatest `mu` whose δ(ε) is at most `delta`, rounded down: noise of standard deviation sensitivity/mu is (ε, δ)-DP, and
/// several Gaussian releases are together when their squared ratios sum to at most mu².
pub fn gaussian_mu(epsilon: f64, delta: f64) -> Result<f64> {
    check_non_negative("epsilon", epsilon)?;
    check_delta(delta)?;
    let target = delta * (1.0 - DELTA_ERROR);
    Ok(greatest_where(|mu| self::delta(epsilon, mu) <= target))
}

/// δ as `φ(x₁)·(m(x₁) - m(x₂))` with `x₁ = ε/μ - μ/2`, `x₂ = x₁ + μ` and m the Mills ratio, because `e^ε·φ(x₂) = φ(x₁)`:
/// nothing overflows, and no two nearly equal numbers are subtracted.
pub(super) fn delta(epsilon: f64, mu: f64) -> f64 {
    let x1 = epsilon / mu - mu / 2.0;
    let density = (-x1 * x1 / 2.0).exp() / (2.0 * PI).sqrt();
    // Also where mu = 0, and where ε/μ overflows.
    if mu <= 0.0 || (density <= 0.0 && x1 > 0.0) {
        return 0.0;
    }
    if mu < 1.0 {
        // The Mills ratios nearly agree: integrate -m' instead, which is positive and smooth.
        let (centre, half) = (epsilon / mu, mu / 2.0);
        let integral: f64 = LEGENDRE
            .iter()
            .map(|(node, weight)| weight * (mills_descent(centre - half * node) + mills_descent(centre + half * node)))
            .sum();
        density * half * integral
    } else if x1 > 0.0 {
        density * (mills(x1) - mills(x1 + mu))
    } else {
        // Here Φ(-x₁) is at least 1/2 and m(x₁) may overflow.
        libm::erfc(x1 * FRAC_1_SQRT_2) / 2.0 - density * mills(x1 + mu)
    }
}

/// `E(L - ε)₊` for the privacy loss `L ~ N(μ²/2, μ²)`: `μ(φ(x) - xΦ(-x))` with `x = ε/μ - μ/2`. Not below [`delta`], which is
/// `E(1 - e^(ε-L))₊`.
pub(super) fn mean_excess(epsilon: f64, mu: f64) -> f64 {
    let x = epsilon / mu - mu / 2.0;
    let density = (-x * x / 2.0).exp() / (2.0 * PI).sqrt();
    // Also where mu = 0, and where ε/μ overflows.
    if mu <= 0.0 || (density <= 0.0 && x > 0.0) {
        return 0.0;
    }
    if x > 0.0 {
        mu * density * mills_descent(x)
    } else {
        mu * (density - x * (libm::erfc(x * FRAC_1_SQRT_2) / 2.0))
    }
}

/// `-dδ/dε = e^ε·Φ(-x₂)`, as `φ(x₁)·m(x₂)`.
pub(super) fn delta_descent(epsilon: f64, mu: f64) -> f64 {
    let x1 = epsilon / mu - mu / 2.0;
    (-x1 * x1 / 2.0).exp() / (2.0 * PI).sqrt() * mills(x1 + mu)
}

/// Mills ratio `(1 - Φ(x))/φ(x)`.
pub(super) fn mills(x: f64) -> f64 {
    (PI / 2.0).sqrt() * (x * FRAC_1_SQRT_2).erfcx()
}

/// `-m'(x) = 1 - x·m(x)`.
fn mills_descent(x: f64) -> f64 {
    1.0 - x * mills(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (ε, μ, δ) with δ from mpmath at 50 digits: `ncdf(mu/2-eps/mu) - exp(eps)*ncdf(-mu/2-eps/mu)`.
    #[expect(clippy::unreadable_literal, reason = "printed by mpmath")]
    const REFERENCE: &[(f64, f64, f64)] = &[
        (0.0, 1e-12, 3.9894228040143267e-13),
        (0.0, 0.5, 0.19741265136584746),
        (0.0, 3.0, 0.8663855974622838),
        (1e-08, 1e-08, 8.331547100426366e-10),
        (1e-06, 0.001, 0.0003984426624712682),
        (0.1, 0.01, 7.857692771036772e-27),
        (0.1, 0.1, 0.008751768145809595),
        (0.1, 0.5, 0.15926050741399167),
        (0.1, 0.999, 0.35195685736230176),
        (1.0, 0.1, 1.2308359836427112e-25),
        (1.0, 0.25, 2.924272104856407e-06),
        (1.0, 0.999, 0.12658480436214806),
        (1.0, 1.0, 0.12693673750664394),
        (1.0, 2.0, 0.5098616600546702),
        (1.0, 5.0, 0.9798516780897752),
        (1.0, 20.0, 1.0),
        (5.0, 0.5, 4.4154434702996196e-24),
        (5.0, 1.0, 5.793721691919494e-07),
        (5.0, 3.0, 0.3193918799058881),
        (5.0, 4.0, 0.6877345382006199),
        (20.0, 2.0, 2.016028801306039e-20),
        (20.0, 6.0, 0.31124081361747247),
        (20.0, 7.0, 0.6899809719470053),
        (100.0, 8.5, 1.496029484984865e-14),
        (100.0, 12.0, 0.007994672298606885),
        (100.0, 30.0, 1.0),
    ];

    /// (ε, δ, greatest μ), by mpmath's `findroot` on the same expression.
    #[expect(clippy::unreadable_literal, reason = "printed by mpmath")]
    const REFERENCE_MU: &[(f64, f64, f64)] = &[
        (0.0, 0.5, 1.3489795003921634),
        (0.0, 0.001, 0.0025066289308651093),
        (0.0, 1e-06, 2.5066282746316567e-06),
        (0.0, 1e-12, 2.5066282746310003e-12),
        (0.0, 1e-30, 2.5066282746310008e-30),
        (0.01, 0.5, 1.3568202221153),
        (0.01, 0.001, 0.010648785811657761),
        (0.01, 1e-06, 0.003264236240068799),
        (0.01, 1e-12, 0.0017271220791801817),
        (0.01, 1e-30, 0.0009411950979527763),
        (0.1, 0.5, 1.4251620731584689),
        (0.1, 0.001, 0.05745674761333226),
        (0.1, 1e-06, 0.02754465024382762),
        (0.1, 1e-12, 0.01624984304793286),
        (0.1, 1e-30, 0.009226725449305537),
        (1.0, 0.5, 1.9721336276896817),
        (1.0, 0.001, 0.38840124830658446),
        (1.0, 1e-06, 0.23670438066343572),
        (1.0, 1e-12, 0.15248965124598127),
        (1.0, 1e-30, 0.09022743942771941),
        (4.0, 0.5, 3.153736604901212),
        (4.0, 0.001, 1.2149521459845534),
        (4.0, 1e-06, 0.837858757089998),
        (4.0, 1e-12, 0.5751697253933241),
        (4.0, 1e-30, 0.35293754808027655),
        (20.0, 0.5, 6.479588852624592),
        (20.0, 0.001, 4.053148163646912),
        (20.0, 1e-06, 3.2353593068946385),
        (20.0, 1e-12, 2.474937957571671),
        (20.0, 1e-30, 1.651641648816648),
    ];

    #[test]
    fn delta_matches_high_precision() {
        for &(epsilon, mu, expected) in REFERENCE {
            let got = gaussian_delta(epsilon, mu).unwrap();
            let error = (got / expected - 1.0).abs();
            assert!(
                error < DELTA_ERROR,
                "epsilon={epsilon} mu={mu}: {got} against {expected}, error {error}"
            );
        }
    }

    #[test]
    fn mu_matches_high_precision_and_is_rounded_down() {
        for &(epsilon, delta, expected) in REFERENCE_MU {
            let got = gaussian_mu(epsilon, delta).unwrap();
            assert!(
                got <= expected && got > expected * (1.0 - 2e-12),
                "epsilon={epsilon} delta={delta}: {got} against {expected}"
            );
            assert!(gaussian_delta(epsilon, got).unwrap() <= delta);
        }
    }

    #[test]
    fn delta_is_monotone_and_bounded() {
        let grid: Vec<f64> = (-40..=20).map(|i| 10.0_f64.powf(f64::from(i) / 8.0)).collect();
        for &epsilon in &[0.0, 1e-9, 0.1, 1.0, 10.0, 1e3] {
            let deltas: Vec<f64> = grid.iter().map(|&mu| delta(epsilon, mu)).collect();
            assert!(deltas.iter().all(|d| (0.0..=1.0).contains(d)), "{deltas:?}");
            assert!(deltas.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-12)));
        }
    }

    #[test]
    fn limits() {
        assert!(delta(1.0, 0.0).abs() < f64::MIN_POSITIVE);
        assert!(delta(1e300, 1e-300).abs() < f64::MIN_POSITIVE);
        assert!((delta(1.0, 1e200) - 1.0).abs() < 1e-15);
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(gaussian_delta(bad, 1.0).is_err());
            assert!(gaussian_delta(1.0, bad).is_err());
            assert!(gaussian_mu(bad, 0.1).is_err());
            assert!(gaussian_mu(1.0, bad).is_err());
        }
        assert!(gaussian_mu(1.0, 0.0).is_err());
        assert!(gaussian_mu(1.0, 1.0).is_err());
    }
}
