//! Long uniform numbers: 128 significant bits at any distance from zero, so that what is computed from them has a sure relative error.

use super::NoiseGenerator;
use crate::{Error, Result};

/// Zeros before the first one, at most: a uniform number below `2⁻¹⁰²¹` comes once in `2¹⁰²¹`, and is an error.
const MAX_EXPONENT: u32 = 1020;

/// The first 128 significant bits of a uniform real number in (0, 1): `significand · 2^-(128 + exponent)`.
///
/// The bits after them, which nobody looks at, complete a real number; it is above this one by less than `2⁻¹²⁷` of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LongUniform {
    /// Zeros before the first one.
    exponent: u32,
    /// The first one and the 127 bits after it.
    significand: u128,
}

impl LongUniform {
    /// A draw: three words, more where the first are zero.
    pub(super) fn draw(generator: &mut impl NoiseGenerator) -> Result<Self> {
        generator.refresh()?;
        let mut exponent = 0;
        loop {
            let word = generator.next_u64();
            exponent += word.leading_zeros();
            if exponent > MAX_EXPONENT {
                return Err(Error::NoiseTail);
            }
            if word != 0 {
                break;
            }
        }
        let bits = u128::from(generator.next_u64()) << u64::BITS | u128::from(generator.next_u64());
        Ok(Self {
            exponent,
            significand: bits | 1 << 127,
        })
    }

    /// The nearest f64, at most one: within a share `2⁻⁵³ + 2⁻¹²⁷` of the real number.
    pub(super) fn value(self) -> f64 {
        // The power of two is a normal number, and so is the product, which is exact.
        let power = f64::from_bits(u64::from(1023 - self.exponent) << 52);
        (self.significand as f64 * 2.0_f64.powi(-128)) * power
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::generator::Scripted;
    use crate::noise::testing::{assert_cdf, assert_counts};

    #[test]
    fn draws_are_uniform_to_their_last_bits() {
        let mut generator = SimulationGenerator::new(61, 0);
        let draws: Vec<_> = (0..100_000)
            .map(|_| LongUniform::draw(&mut generator).unwrap())
            .collect();
        assert_cdf(draws.iter().map(|u| u.value()).collect(), |x| x);
        for bit in [0, 1, 63, 64, 126] {
            let ones = draws.iter().filter(|u| u.significand >> bit & 1 == 1);
            let ones = ones.count();
            assert_counts(&[draws.len() - ones, ones], &[0.5; 2]);
        }
        assert!(draws.iter().all(|u| u.significand >> 127 == 1));
    }

    #[test]
    fn values_keep_their_precision_down_to_the_last_exponent() {
        let significand = (1 << 127) | (1 << 80);
        for exponent in [0, 1, 64, MAX_EXPONENT] {
            let value = LongUniform { exponent, significand }.value();
            let expected = 0.5 + 2.0_f64.powi(-48);
            let scaled = value * 2.0_f64.powi(510) * 2.0_f64.powi(exponent.cast_signed() - 510);
            assert_eq!(scaled.to_bits(), expected.to_bits());
            assert!(value.is_normal());
        }
        let greatest = LongUniform {
            exponent: 0,
            significand: u128::MAX,
        };
        assert_eq!(greatest.value().to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn numbers_below_the_normal_range_are_refused() {
        // Fifteen words of zeros, and some more before the first one.
        let with_zeros = |last: u32| {
            let mut words = vec![0; 16];
            words[15] = 1 << (63 - last);
            words.extend([0, 0]);
            LongUniform::draw(&mut Scripted::new(words))
        };
        let least = with_zeros(MAX_EXPONENT - 15 * u64::BITS).unwrap();
        assert_eq!(least.exponent, MAX_EXPONENT);
        assert!(least.value().is_normal());
        let beyond = with_zeros(MAX_EXPONENT - 15 * u64::BITS + 1);
        assert_eq!(beyond, Err(Error::NoiseTail));
        let endless = LongUniform::draw(&mut Scripted::new(vec![0]));
        assert_eq!(endless, Err(Error::NoiseTail));
    }
}
