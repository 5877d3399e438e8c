//! The ε of a Gaussian release as a function of its sensitivity, one at a time and from a table for many records.

use super::gaussian::{DELTA_ERROR, delta, delta_descent};
use super::{check_delta, check_non_negative};
use crate::Result;

/// Greatest relative step of the last Newton iteration.
const STEP: f64 = 1e-13;

/// Newton converges quadratically; more iterations than this are never needed, and stopping early is safe.
const MAX_ITERATIONS: usize = 100;

/// Least ε, rounded up, at which a Gaussian release whose sensitivity is `mu` standard deviations has δ(ε) at most `delta`.
pub fn gaussian_epsilon(mu: f64, delta: f64) -> Result<f64> {
    check_non_negative("mu", mu)?;
    check_delta(delta)?;
    Ok(epsilon(mu, delta))
}

/// Newton's method on `ln δ(ε)`, which is concave: `(1 - e^{ε-L})₊` is log-concave in ε - L and the loss L is normal. A tangent
/// lies above a concave function, so that an iterate that starts above the root stays there, and each is a valid ε.
fn epsilon(mu: f64, at_most: f64) -> f64 {
    let target = at_most * (1.0 - DELTA_ERROR);
    if delta(0.0, mu) <= target {
        return 0.0;
    }
    // δ(ε) ≤ Φ(μ/2 - ε/μ) ≤ e^{-(ε/μ-μ/2)²/2}.
    let mut epsilon = 0.5 * mu * mu + mu * (-2.0 * target.ln()).sqrt();
    for _ in 0..MAX_ITERATIONS {
        let (value, descent) = (delta(epsilon, mu), delta_descent(epsilon, mu));
        let step = (target.ln() - value.ln()) * value / descent;
        // Also where δ underflows, or a cancellation at huge μ makes the step absurd: the iterate is valid as it is.
        if !(step > STEP * epsilon && step < epsilon) {
            break;
        }
        epsilon -= step;
    }
    let mut margin = STEP;
    while !(delta(epsilon, mu) <= target) && epsilon.is_finite() {
        epsilon *= 1.0 + margin;
        margin *= 2.0;
    }
    epsilon
}

/// Knots of the table in each factor of two of μ.
const PER_OCTAVE: u32 = 32;

/// Factors of two below the greatest μ that have knots.
const OCTAVES: u64 = 12;

/// Bits of a float below those that number its knot.
const LOW_BITS: u32 = f64::MANTISSA_DIGITS - 1 - PER_OCTAVE.ilog2();

/// Upper bounds on the least ε at one δ for any μ up to a greatest one, within 10⁻⁴ of it but beside the μ where it leaves 0.
///
/// Between knots it is the chord, below them the chord to (0, 0): ε(μ) is convex. For `dε/dμ = 1/m(x)` with the Mills ratio m
/// at `x = ε/μ + μ/2`, and x grows with μ because `1/m(x) > x` (`docs/per_instance.md`, "The extra releases").
#[derive(Debug, Clone)]
pub struct EpsilonTable {
    delta: f64,
    /// Number of the first knot: the leading bits of its μ.
    first: u64,
    /// (μ, ε) of the knots.
    knots: Vec<(f64, f64)>,
}

impl EpsilonTable {
    /// A table for μ up to `greatest`.
    pub fn new(greatest: f64, delta: f64) -> Result<Self> {
        check_non_negative("mu", greatest)?;
        check_delta(delta)?;
        let last = (greatest.to_bits() >> LOW_BITS) + 1;
        let first = last
            .saturating_sub(OCTAVES * u64::from(PER_OCTAVE))
            .max(u64::from(PER_OCTAVE));
        let knots = (first..=last.max(first))
            .map(|number| f64::from_bits(number << LOW_BITS))
            .map(|mu| (mu, epsilon(mu, delta)))
            .collect();
        Ok(Self { delta, first, knots })
    }

    /// An ε at which a Gaussian release of this `mu` ≥ 0 has δ(ε) at most that of the table.
    pub fn at(&self, mu: f64) -> f64 {
        let number = mu.to_bits() >> LOW_BITS;
        let (left, right) = match number.checked_sub(self.first) {
            None => ((0.0, 0.0), self.knots[0]),
            Some(i) => match usize::try_from(i).ok().and_then(|i| self.knots.get(i..i + 2)) {
                Some(pair) => (pair[0], pair[1]),
                None => return epsilon(mu, self.delta),
            },
        };
        if right.1.is_infinite() {
            // Beyond the range of floats there is no chord.
            return f64::INFINITY;
        }
        let share = (mu - left.0) / (right.0 - left.0);
        (left.1 + share * (right.1 - left.1)) * (1.0 + 4.0 * f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{gaussian_delta, gaussian_mu};

    #[test]
    fn epsilon_inverts_the_profile_from_above() {
        for delta in [0.3, 1e-3, 1e-6, 5e-7, 1e-12, 1e-30] {
            for exponent in -40..=12 {
                let mu = 10.0_f64.powf(f64::from(exponent) / 8.0);
                let epsilon = gaussian_epsilon(mu, delta).unwrap();
                assert!(gaussian_delta(epsilon, mu).unwrap() <= delta);
                if epsilon > 0.0 {
                    let back = gaussian_mu(epsilon, delta).unwrap();
                    assert!(back >= mu * (1.0 - 1e-11) && back <= mu * (1.0 + 1e-11), "{mu} {back}");
                }
            }
        }
    }

    #[test]
    fn a_huge_ratio_has_a_huge_epsilon() {
        for delta in [0.9, 1e-6, 4.778e-299] {
            for exponent in 4..154 {
                let mu = 2.0 * 10.0_f64.powi(exponent);
                let epsilon = gaussian_epsilon(mu, delta).unwrap();
                assert!(epsilon >= 0.499 * mu * mu, "{mu} {epsilon}");
            }
        }
    }

    #[test]
    fn an_epsilon_beyond_the_floats_is_infinite() {
        let table = EpsilonTable::new(f64::MAX, 0.5).unwrap();
        for mu in [1e160, f64::MAX / 2.0, f64::MAX] {
            assert!(table.at(mu) == f64::INFINITY);
        }
    }

    #[test]
    fn the_table_lies_just_above_the_curve() {
        for delta in [0.3, 1e-3, 5e-7, 1e-15] {
            for greatest in [1e-3, 0.23, 1.0, 7.0] {
                let table = EpsilonTable::new(greatest, delta).unwrap();
                for i in 1..=4000 {
                    let mu = greatest * (f64::from(i) / 4000.0).powi(3);
                    let exact = gaussian_epsilon(mu, delta).unwrap();
                    let got = table.at(mu);
                    assert!(got >= exact, "{mu}: {got} below {exact}");
                    assert!(
                        got <= exact * (1.0 + 1e-4) + 4e-3 * greatest,
                        "{mu}: {got} above {exact}"
                    );
                }
                assert!(table.at(0.0).abs() < f64::MIN_POSITIVE);
                assert!(table.at(2.0 * greatest) >= gaussian_epsilon(2.0 * greatest, delta).unwrap());
            }
        }
    }

    #[test]
    fn extremes_do_not_hang() {
        for greatest in [0.0, 5e-324, 1e-300, 1e3, 1e150] {
            let table = EpsilonTable::new(greatest, 1e-6).unwrap();
            assert!(table.at(greatest) >= 0.0 && table.at(0.0) >= 0.0);
        }
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(gaussian_epsilon(bad, 0.1).is_err());
            assert!(EpsilonTable::new(bad, 0.1).is_err());
        }
        assert!(gaussian_epsilon(1.0, 0.0).is_err());
    }

    #[test]
    fn an_epsilon_just_above_zero_is_valid() {
        // δ(ε) is flat to its last digits there, so that rounding alone decides where the iteration ends.
        for delta in [0.3, 1e-3, 1e-6, 1e-12] {
            let zero = gaussian_mu(1e-300, delta).unwrap();
            for exponent in 0..45 {
                let mu = zero * (1.0 + 0.5_f64.powi(exponent));
                let epsilon = gaussian_epsilon(mu, delta).unwrap();
                assert!(gaussian_delta(epsilon, mu).unwrap() <= delta, "{mu}");
            }
        }
    }
}
