//! The exponential function and the sigmoid in doubled precision.

use super::doubled::Doubled;

/// Terms of the Taylor series: the next one is below `0.35²⁷/27! < 2⁻¹³²`.
const TERMS: u8 = 26;

impl Doubled {
    /// `eˣ` for `x ≤ 0`, within [`super::DOUBLED_EPSILON`] relative, and `e⁻⁷⁰⁸` below -708, less than 10⁻³⁰⁷ away; NaN stays NaN.
    ///
    /// `x = k·ln 2 + r`, `|r| < 0.35`. `k` times the first 32 bits of ln 2 is exact, and what is left of it comes in doubled precision,
    /// so `r` is within 2⁻¹⁰⁵. In Horner's scheme `s ← 1 + rs/j` the errors of a step (a product, a quotient, a sum: 7, 15 and 3
    /// times 2⁻¹⁰⁶, Joldes, Muller & Popescu 2017) shrink by `|r|/j` in the next one: less than `16·2⁻¹⁰⁶` are left.
    #[must_use]
    pub fn exp_nonpositive(self) -> Self {
        // Adding 1.5·2⁵² rounds to an integer and leaves it in the low bits.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
        const LN_2_LOW: (f64, f64) = (1.908_214_929_270_587_7e-10, 1.161_222_722_936_253_2e-26);
        let x = if self.rounded() < -708.0 {
            Self::from(-708.0)
        } else {
            self
        };
        let shifted = x.rounded().mul_add(std::f64::consts::LOG2_E, ROUND);
        let k = shifted - ROUND;
        let low = Self::sum(LN_2_LOW.0, LN_2_LOW.1);
        let r = x + Self::from(-k * LN_2_HIGH) - low * k;
        let one = Self::from(1.0);
        let sum = (1..=TERMS)
            .rev()
            .fold(one, |sum, j| one + r * sum / Self::from(f64::from(j)));
        sum * f64::from_bits(1.0_f64.to_bits().wrapping_add(shifted.to_bits() << 52))
    }

    /// `1/(1 + e⁻ᵗ)`, within `2·`[`super::DOUBLED_EPSILON`] of one.
    #[must_use]
    pub fn sigmoid(self) -> Self {
        let positive = self.rounded() >= 0.0;
        let e = if positive { -self } else { self }.exp_nonpositive();
        let one = Self::from(1.0);
        let numerator = if positive { one } else { e };
        numerator / (one + e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_multiply() {
        // e^(a + b) = e^a·e^b and e^(-ln 2) = 1/2, to 30 digits.
        for i in 0..2000 {
            let a = Doubled::sum(-0.173 * f64::from(i), 1e-18 * f64::from(i));
            let b = Doubled::from(-0.0917 * f64::from(i % 37));
            let product = a.exp_nonpositive() * b.exp_nonpositive();
            let error = (product - (a + b).exp_nonpositive()) / product;
            // What rounding the sum a + b does to the exponent is no error of the function.
            let room = 1e-31 * (5.0 + (a + b).rounded().abs());
            assert!(error.rounded().abs() < room, "{i} {error:?}");
            let mirrored = (-a).sigmoid() + a.sigmoid() - Doubled::from(1.0);
            assert!(mirrored.rounded().abs() < 1e-30);
        }
        let half = Doubled::sum(-std::f64::consts::LN_2, -2.319_046_813_846_299_6e-17);
        let error = half.exp_nonpositive() - Doubled::from(0.5);
        assert!(error.rounded().abs() < 1e-31, "{error:?}");
        assert!(Doubled::from(f64::NAN).exp_nonpositive().rounded().is_nan());
        assert!(Doubled::from(f64::NEG_INFINITY).exp_nonpositive().rounded() < 1e-307);
        assert!(Doubled::from(f64::NEG_INFINITY).sigmoid().rounded() < 1e-307);
    }
}
