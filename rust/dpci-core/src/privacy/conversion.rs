//! Conversions between the three notions, each rounded to the safe side.

use super::rounding::{down, greatest_where, least_where, up};
use super::{Calibration, check_delta, check_non_negative, check_positive};
use crate::Result;

/// Bound on the relative error of [`log_delta`]'s exponential wherever the result is above 1e-300.
const DELTA_ERROR: f64 = 1e-11;

/// The ρ that ε-DP costs in zCDP, rounded up: `ε·tanh(ε/2)`, the least that holds for every ε-DP mechanism; `Paper` has
/// `ε²/2` (Bun & Steinke 2016).
pub fn pure_to_zcdp(epsilon: f64, calibration: Calibration) -> Result<f64> {
    check_positive("epsilon", epsilon)?;
    Ok(zcdp_cost(epsilon, calibration))
}

/// Greatest ε whose cost in zCDP is at most ρ: the inverse of [`pure_to_zcdp`].
pub fn zcdp_to_pure(rho: f64, calibration: Calibration) -> Result<f64> {
    check_positive("rho", rho)?;
    Ok(greatest_where(|epsilon| zcdp_cost(epsilon, calibration) <= rho))
}

/// A bound on the Rényi divergence of `order` α > 1 of an ε-DP mechanism, at most ε: that of randomised response (Mironov 2017,
/// Proposition 6), which no ε-DP mechanism exceeds.
///
/// With k = α - 1 it is `ln(cosh((k + 1/2)ε) / cosh(ε/2)) / k`. As `ln(cosh(a + b) / cosh(a))` is `ln(cosh(b) + tanh(a) sinh(b))`, nothing
/// cancels; the last factor covers the rounding.
pub fn pure_rdp(epsilon: f64, order: f64) -> f64 {
    let k = order - 1.0;
    let shift = k * epsilon;
    let slope = (0.5 * epsilon).tanh();
    let log_ratio = if shift < 1.0 {
        (2.0 * (0.5 * shift).sinh().powi(2) + slope * shift.sinh()).ln_1p()
    } else {
        let decay = (-2.0 * shift).exp();
        shift + (0.5 * (1.0 + decay + slope * (1.0 - decay))).ln()
    };
    epsilon.min(log_ratio / k * (1.0 + 8.0 * f64::EPSILON))
}

/// The δ that ρ-zCDP implies at ε, rounded up: the infimum over α > 1 of
/// `exp((α-1)(αρ-ε))·(1-1/α)^α/(α-1)` (Canonne, Kamath & Steinke 2020), at most 1.
pub fn zcdp_to_approx_delta(rho: f64, epsilon: f64) -> Result<f64> {
    check_positive("rho", rho)?;
    check_non_negative("epsilon", epsilon)?;
    let delta = log_delta(rho, epsilon).exp() * (1.0 + DELTA_ERROR);
    // An underflow to 0 would claim too much.
    Ok(delta.clamp(f64::MIN_POSITIVE, 1.0))
}

/// The ε that ρ-zCDP implies at δ, rounded up: the least that [`zcdp_to_approx_delta`] allows; `Paper` has
/// `ρ + 2√(ρ·ln(1/δ))` (Bun & Steinke 2016).
pub fn zcdp_to_approx_epsilon(rho: f64, delta: f64, calibration: Calibration) -> Result<f64> {
    check_positive("rho", rho)?;
    check_delta(delta)?;
    let target = log_target(delta);
    Ok(match calibration {
        Calibration::Tight => least_where(|epsilon| log_delta(rho, epsilon) <= target),
        Calibration::Paper => up(rho + 2.0 * (rho * -delta.ln()).sqrt()),
    })
}

/// Greatest ρ whose conversion stays within (ε, δ).
pub fn approx_to_zcdp(epsilon: f64, delta: f64, calibration: Calibration) -> Result<f64> {
    check_positive("epsilon", epsilon)?;
    check_delta(delta)?;
    let target = log_target(delta);
    Ok(match calibration {
        Calibration::Tight => greatest_where(|rho| rho <= 0.0 || log_delta(rho, epsilon) <= target),
        Calibration::Paper => {
            // The root of ρ + 2√(ρl) = ε, l = ln(1/δ), without the difference √(l+ε) - √l.
            let l = -delta.ln();
            down((epsilon / ((l + epsilon).sqrt() + l.sqrt())).powi(2))
        }
    })
}

fn zcdp_cost(epsilon: f64, calibration: Calibration) -> f64 {
    let cost = match calibration {
        Calibration::Tight => epsilon * (epsilon / 2.0).tanh(),
        Calibration::Paper => epsilon * epsilon / 2.0,
    };
    // Below the normal floats a relative margin is lost; there the error is less than a unit, and 0 would be free.
    up(cost).max(cost.next_up())
}

/// ln δ with the margin by which a computed ln δ may be too low.
fn log_target(delta: f64) -> f64 {
    delta.ln() - DELTA_ERROR
}

/// Infimum over α of ln δ, as a convex function of u = α - 1 > 0 whose derivative
/// `(2u+1)ρ - ε - ln(1+1/u)` rises from -∞ to ∞. Any u gives a valid δ, so an inexact root costs nothing but tightness.
fn log_delta(rho: f64, epsilon: f64) -> f64 {
    // ln(1+1/u), also where 1/u overflows.
    let log_ratio = |u: f64| {
        if u < 1.0 { u.ln_1p() - u.ln() } else { u.recip().ln_1p() }
    };
    let u = greatest_where(|u| (2.0 * u + 1.0) * rho - epsilon <= log_ratio(u));
    let value = u * ((1.0 + u) * rho - epsilon) - (1.0 + u) * log_ratio(u) - u.ln();
    // NaN where the root lies below the least float: the trivial bound δ ≤ 1.
    if value < 0.0 { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (ρ, ε, δ): the infimum over α by mpmath at 40 digits.
    #[expect(clippy::unreadable_literal, reason = "printed by mpmath")]
    const REFERENCE: &[(f64, f64, f64)] = &[
        (0.0001, 0.05, 2.8062773826311535e-06),
        (0.01, 0.5, 3.505878060052391e-05),
        (0.01, 1.0, 1.6641139773879955e-13),
        (0.05, 1.0, 0.0003857091637444123),
        (0.5, 0.0, 0.5588356393474346),
        (0.5, 1.0, 0.2468463307829445),
        (0.5, 5.0, 2.896122809384795e-06),
        (1.0, 8.0, 4.3453415166484504e-07),
        (3.0, 3.0, 0.6449011678420613),
        (10.0, 40.0, 3.125106522526497e-11),
        (40.0, 60.0, 0.0432357514482349),
        (0.001, 0.3, 4.767632028040217e-13),
    ];

    #[test]
    fn delta_matches_high_precision_from_above() {
        for &(rho, epsilon, expected) in REFERENCE {
            let got = zcdp_to_approx_delta(rho, epsilon).unwrap();
            assert!(
                got >= expected && got < expected * (1.0 + 3e-11),
                "{rho} {epsilon}: {got} against {expected}"
            );
        }
    }

    #[test]
    fn inverses_agree_and_stay_on_the_safe_side() {
        for calibration in [Calibration::Tight, Calibration::Paper] {
            for rho in [1e-6, 0.01, 0.5, 3.0, 40.0] {
                let epsilon = zcdp_to_pure(rho, calibration).unwrap();
                let cost = pure_to_zcdp(epsilon, calibration).unwrap();
                assert!(cost <= rho && cost > rho * (1.0 - 1e-14));
                for delta in [0.1, 1e-6, 1e-12] {
                    let epsilon = zcdp_to_approx_epsilon(rho, delta, calibration).unwrap();
                    if epsilon > 0.0 {
                        let back = approx_to_zcdp(epsilon, delta, calibration).unwrap();
                        assert!((back / rho - 1.0).abs() < 1e-9, "{rho} {delta}: {back}");
                    }
                    if calibration == Calibration::Tight {
                        assert!(zcdp_to_approx_delta(rho, epsilon).unwrap() <= delta * (1.0 + 1e-12));
                    }
                }
            }
        }
    }

    #[test]
    fn costs_below_the_normal_floats_are_rounded_up() {
        for calibration in [Calibration::Tight, Calibration::Paper] {
            for epsilon in [5e-324, 1e-200, 1e-162, 1e-160, 3e-158, 1e-155, 1e-154] {
                let cost = pure_to_zcdp(epsilon, calibration).unwrap();
                // Scaled by 2^1200 the numbers are normal; tanh(x) ≤ x differs from x by less than the margin.
                let (scaled, of_epsilon) = (2.0_f64.powi(600), epsilon * 2.0_f64.powi(600));
                let exact = of_epsilon * of_epsilon / 2.0;
                assert!(cost * scaled * scaled >= exact, "{epsilon}: {cost}");
                assert!(
                    cost <= 5e-324 || cost * scaled * scaled <= exact * 1.5,
                    "{epsilon}: {cost}"
                );
            }
        }
    }

    #[test]
    fn tight_is_never_worse_than_paper() {
        for x in [1e-3, 0.1, 1.0, 5.0, 30.0] {
            let cost = |calibration| pure_to_zcdp(x, calibration).unwrap();
            assert!(cost(Calibration::Tight) <= cost(Calibration::Paper));
            for delta in [0.1, 1e-6, 1e-12] {
                let epsilon = |calibration| zcdp_to_approx_epsilon(x, delta, calibration).unwrap();
                assert!(epsilon(Calibration::Tight) <= epsilon(Calibration::Paper));
            }
        }
        assert!((pure_to_zcdp(1.0, Calibration::Tight).unwrap() - 0.5_f64.tanh()).abs() < 1e-14);
    }

    /// Beside the definition, in which the order near 1 cancels: at orders where it does not.
    #[test]
    fn pure_rdp_is_that_of_randomised_response() {
        for epsilon in [0.01, 0.3, 1.0, 4.0, 20.0] {
            for order in [1.5, 2.0, 3.0, 7.0, 30.0] {
                let [p, q] = [-epsilon, epsilon].map(|e| 1.0 / (1.0 + f64::exp(e)));
                let sum: f64 = [(p, q), (q, p)]
                    .map(|(a, b)| a.powf(order) * b.powf(1.0 - order))
                    .iter()
                    .sum();
                let expected = sum.ln() / (order - 1.0);
                let got = pure_rdp(epsilon, order);
                assert!(
                    (got / expected - 1.0).abs() < 1e-9,
                    "{epsilon} {order}: {got} {expected}"
                );
                assert!(got <= epsilon);
            }
        }
    }

    #[test]
    fn limits_and_bad_arguments() {
        assert!(zcdp_to_approx_delta(1e-10, 10.0).unwrap() > 0.0);
        assert!(zcdp_to_approx_delta(1e300, 1.0).unwrap() <= 1.0);
        for rho in [800.0, 1e5, 1e300] {
            assert!(zcdp_to_approx_delta(rho, 1.0).unwrap() > 0.999);
        }
        assert!(zcdp_to_approx_epsilon(1e-12, 0.5, Calibration::Tight).unwrap() < 1e-300);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(pure_to_zcdp(bad, Calibration::Tight).is_err());
            assert!(zcdp_to_pure(bad, Calibration::Tight).is_err());
            assert!(zcdp_to_approx_delta(bad, 1.0).is_err());
            assert!(zcdp_to_approx_epsilon(bad, 0.1, Calibration::Tight).is_err());
            assert!(approx_to_zcdp(bad, 0.1, Calibration::Tight).is_err());
        }
        assert!(zcdp_to_approx_delta(1.0, -1.0).is_err());
        assert!(approx_to_zcdp(1.0, 1.0, Calibration::Tight).is_err());
    }
}
