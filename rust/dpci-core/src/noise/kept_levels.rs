//! Which levels of a column are kept, each with a probability of its count alone: optimal partition selection (Desfontaines, Voss, Gipson &
//! Mandayam 2022), exact.
//!
//! Probabilities are known between two fixed-point numbers with as many digits as it takes (docs/proofs/bounds.md).

use std::cmp::min;

use num_bigint::BigUint;

use super::NoiseGenerator;
use super::joint_choice::{FIRST_DIGITS, Rate, random};
use crate::{Error, Result};

/// Binary digits of the first attempt: of probabilities that differ by at least the δ of a release, and of the errors of many steps.
const DIGITS: u64 = 512;
/// Steps of the recursion between two questions whether to go on.
const STEPS: u64 = 1 << 12;

/// Whether each level is kept: independently, and exactly with probability `π(count)`, where `π(0) = 0` and
/// `π(n) = min(e^ε·π(n-1) + δ, 1 - e^{-ε}(1 - π(n-1) - δ), 1)`.
///
/// A record that joins or leaves one level changes its probability within (ε, δ)-DP, and no law of a count keeps more. `check` is asked
/// now and then whether to go on.
pub fn kept_levels(
    counts: &[u64],
    epsilon: f64,
    delta: f64,
    check: &dyn Fn() -> Result<()>,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<bool>> {
    let refuse = |name, rule, value| Err(Error::OutOfRange { name, rule, value });
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        return refuse("epsilon", "finite and > 0", epsilon);
    }
    if !(delta > 0.0 && delta <= 1.0) {
        return refuse("delta", "> 0 and <= 1", delta);
    }
    generator.refresh()?;
    let law = Law {
        rate: Rate::new(epsilon),
        delta,
    };
    let mut distinct = counts.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let known = law.probabilities(&distinct, DIGITS, check)?;
    let mut kept = Vec::with_capacity(counts.len());
    for count in counts {
        let at = distinct.partition_point(|n| n < count);
        kept.push(law.draw(*count, &known[at], check, generator)?);
    }
    Ok(kept)
}

/// A number between two fixed-point numbers.
type Between = (BigUint, BigUint);

struct Law {
    rate: Rate,
    delta: f64,
}

impl Law {
    /// True with probability `π(count)`, which is `known` to the first digits: more of them are computed where these do not decide.
    fn draw(
        &self,
        count: u64,
        known: &Between,
        check: &dyn Fn() -> Result<()>,
        generator: &mut impl NoiseGenerator,
    ) -> Result<bool> {
        let mut digits = DIGITS;
        let mut uniform = random(digits, generator);
        let mut known = known.clone();
        loop {
            // Whole numbers: below one is at most the one before.
            if uniform < known.0 {
                return Ok(true);
            }
            if uniform >= known.1 {
                return Ok(false);
            }
            uniform = (uniform << FIRST_DIGITS) + random(FIRST_DIGITS, generator);
            digits += FIRST_DIGITS;
            known = self.probabilities(&[count], digits, check)?.remove(0);
        }
    }

    /// `π(n)·2^digits` from below and from above, of each of the increasing `counts`.
    fn probabilities(&self, counts: &[u64], digits: u64, check: &dyn Fn() -> Result<()>) -> Result<Vec<Between>> {
        let one = BigUint::from(1_u32) << digits;
        // e^{-ε}, and δ.
        let (shrink, shrink_most) = self.rate.exponential(1, digits);
        let (least, most) = fixed(self.delta, digits);
        let mut now = (BigUint::ZERO, BigUint::ZERO);
        let (mut n, mut found) = (0, Vec::with_capacity(counts.len()));
        for count in counts {
            // Once it is 1 it stays.
            while n < *count && now.0 < one {
                if n % STEPS == 0 {
                    check()?;
                }
                let grown = (&now.0 << digits) / &shrink_most + &least;
                let grown_most = if now.1 == BigUint::ZERO {
                    most.clone()
                } else if shrink == BigUint::ZERO {
                    one.clone()
                } else {
                    (&now.1 << digits) / &shrink + 1_u32 + &most
                };
                let falling = &one - fall(&one, &now.0, &least, &shrink_most, digits, 1);
                let falling_most = &one - fall(&one, &now.1, &most, &shrink, digits, 0);
                now = (
                    min(grown, falling).min(one.clone()),
                    min(grown_most, falling_most).min(one.clone()),
                );
                n += 1;
            }
            found.push(now.clone());
        }
        Ok(found)
    }
}

/// `shrink·(1 - π - δ)`, of numbers as their digits, 0 where nothing is left; `up` is added for the rounding.
fn fall(one: &BigUint, now: &BigUint, delta: &BigUint, shrink: &BigUint, digits: u64, up: u32) -> BigUint {
    let taken = now + delta;
    if taken >= *one {
        return BigUint::ZERO;
    }
    min(((shrink * (one - taken)) >> digits) + up, one.clone())
}

/// A float above 0 and at most 1, as the number that it is, times `2^digits`, from below and from above.
fn fixed(value: f64, digits: u64) -> Between {
    let (fraction, power) = libm::frexp(value);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction below 1 times 2^53 is a whole number below 2^53"
    )]
    let numerator = BigUint::from((fraction * 2.0_f64.powi(53)) as u64);
    // value = numerator·2^(power - 53), and power is at most 1.
    let down = u64::from((53 - power).unsigned_abs());
    if let Some(up) = digits.checked_sub(down) {
        (&numerator << up, numerator << up)
    } else {
        let least = &numerator >> (down - digits);
        let most = &least + 1_u32;
        (least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::assert_counts;

    #[expect(clippy::unnecessary_wraps, reason = "what a draw asks now and then")]
    fn go_on() -> Result<()> {
        Ok(())
    }

    fn law(epsilon: f64, delta: f64) -> Law {
        Law {
            rate: Rate::new(epsilon),
            delta,
        }
    }

    /// The probability by its recursion in floats.
    fn float(epsilon: f64, delta: f64, count: u64) -> f64 {
        (0..count).fold(0.0, |p: f64, _| {
            let falling = 1.0 - (-epsilon).exp() * (1.0 - p - delta);
            // Of an infinite power and 0 the limit.
            let grown = if p > 0.0 { epsilon.exp() * p } else { 0.0 };
            (grown + delta).min(falling).min(1.0)
        })
    }

    fn as_float(value: &BigUint, digits: u64) -> f64 {
        let spare = value.bits().saturating_sub(60);
        let head = u64::try_from(value >> spare).unwrap() as f64;
        head * 2.0_f64.powi(i32::try_from(spare).unwrap() - i32::try_from(digits).unwrap())
    }

    #[test]
    fn probabilities_are_between_their_bounds() {
        for (epsilon, delta) in [
            (1.0, 1e-6),
            (0.1, 1e-6),
            (1e-3, 0.01),
            (30.0, 1e-9),
            (900.0, 0.5),
            (2.0, 1.0),
        ] {
            let counts: Vec<u64> = (0..400).chain([5_000]).collect();
            for digits in [DIGITS, 1088] {
                let found = law(epsilon, delta).probabilities(&counts, digits, &go_on).unwrap();
                for (count, (least, most)) in counts.iter().zip(&found) {
                    assert!(least <= most && most - least < BigUint::from(1_u32) << 150);
                    let expected = float(epsilon, delta, *count);
                    for value in [least, most] {
                        assert!((as_float(value, digits) - expected).abs() <= 1e-9 * expected.max(1e-12));
                    }
                }
            }
        }
    }

    #[test]
    fn no_neighbouring_count_is_told_apart_beyond_epsilon_and_delta() {
        for (epsilon, delta) in [(1.0, 1e-6), (0.2, 1e-4), (3.0, 0.1)] {
            let counts: Vec<u64> = (0..200).collect();
            let found = law(epsilon, delta).probabilities(&counts, DIGITS, &go_on).unwrap();
            let p: Vec<f64> = found.iter().map(|(least, _)| as_float(least, DIGITS)).collect();
            let mut tight = 0.0_f64;
            for pair in p.windows(2) {
                for (a, b) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                    // All events: kept, and not kept.
                    let excess = (a - epsilon.exp() * b).max(0.0) + ((1.0 - a) - epsilon.exp() * (1.0 - b)).max(0.0);
                    assert!(excess <= delta * (1.0 + 1e-9));
                    tight = tight.max(excess / delta);
                }
            }
            assert!(tight > 1.0 - 1e-9);
        }
    }

    #[test]
    fn levels_are_kept_with_their_probability() {
        let counts = [0, 1, 5, 8, 9, 30, 1000];
        let (epsilon, delta) = (0.7, 0.01);
        let mut generator = SimulationGenerator::new(91, 0);
        let mut found = vec![[0; 2]; counts.len()];
        for _ in 0..20_000 {
            let kept = kept_levels(&counts, epsilon, delta, &go_on, &mut generator).unwrap();
            for (tally, kept) in found.iter_mut().zip(kept) {
                tally[usize::from(kept)] += 1;
            }
        }
        assert_eq!((found[0][1], found[6][0]), (0, 0));
        for (tally, count) in found.iter().zip(counts) {
            let p = float(epsilon, delta, count);
            if p > 0.0 && p < 1.0 {
                assert_counts(tally, &[1.0 - p, p]);
            }
        }
    }

    #[test]
    fn digits_grow_until_they_decide() {
        // A probability of exactly 1/2, and a uniform number of 1/2 for as many digits as the first attempt has.
        let half = law(1.0, 0.5);
        let known = half.probabilities(&[1], DIGITS, &go_on).unwrap().remove(0);
        let mut words = vec![1_u64 << 63];
        words.extend([0; 7]);
        words.extend([1; 40]);
        let mut generator = crate::noise::generator::Scripted::new(words);
        assert!(!half.draw(1, &known, &go_on, &mut generator).unwrap());
        let vague = (&known.0 - 5_u32, &known.1 + 5_u32);
        let mut words = vec![u64::MAX >> 1];
        words.extend([u64::MAX; 40]);
        let mut generator = crate::noise::generator::Scripted::new(words);
        assert!(half.draw(1, &vague, &go_on, &mut generator).unwrap());
    }

    #[test]
    fn odd_choices_are_refused() {
        let mut generator = SimulationGenerator::new(92, 0);
        for (epsilon, delta) in [
            (0.0, 0.1),
            (f64::NAN, 0.1),
            (1.0, 0.0),
            (1.0, 1.5),
            (f64::INFINITY, 0.1),
        ] {
            assert!(kept_levels(&[1], epsilon, delta, &go_on, &mut generator).is_err());
        }
        let stop = || Err(Error::Interrupted);
        assert_eq!(
            kept_levels(&[3], 1.0, 0.1, &stop, &mut generator),
            Err(Error::Interrupted)
        );
        assert!(kept_levels(&[], 1.0, 0.1, &go_on, &mut generator).unwrap().is_empty());
        // The least numbers there are: nothing overflows, and little is kept.
        assert_eq!(
            kept_levels(&[1000], 5e-324, 5e-324, &go_on, &mut generator),
            Ok(vec![false])
        );
    }
}
