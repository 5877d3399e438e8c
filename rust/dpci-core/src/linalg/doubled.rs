//! Numbers with twice the digits of f64, as unevaluated sums of two: where rounding would decide a question.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// Bound on the relative error of one operation, with room to spare: sums err by 3·2⁻¹⁰⁶, products by 7·2⁻¹⁰⁶ (Joldes, Muller &
/// Popescu 2017).
pub const DOUBLED_EPSILON: f64 = f64::EPSILON * f64::EPSILON * 16.0;

/// `high + low`, where `high` is the sum rounded to nearest.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Doubled {
    high: f64,
    low: f64,
}

/// `a + b` rounded, and its error (Knuth).
#[inline(always)]
pub const fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// `a·b` rounded, and its error where no product of parts over- or underflows (Dekker).
#[inline(always)]
pub const fn two_product(a: f64, b: f64) -> (f64, f64) {
    // Not `mul_add`, which is a slow call where the target has no such instruction.
    let ((ah, al), (bh, bl)) = (upper_and_lower(a), upper_and_lower(b));
    let product = a * b;
    (product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)
}

/// The upper 26 bits of a number, and the rest (Veltkamp).
#[inline(always)]
const fn upper_and_lower(a: f64) -> (f64, f64) {
    let shifted = a * 134_217_729.0;
    let upper = shifted - (shifted - a);
    (upper, a - upper)
}

impl Doubled {
    /// The exact sum of two numbers.
    #[inline(always)]
    pub const fn sum(a: f64, b: f64) -> Self {
        let (high, low) = two_sum(a, b);
        Self { high, low }
    }

    /// The exact product of two numbers.
    #[inline(always)]
    pub fn product(a: f64, b: f64) -> Self {
        let (high, low) = two_product(a, b);
        Self { high, low }
    }

    /// The number whose [`Doubled::halves`] these are.
    #[inline(always)]
    pub(super) fn of_halves([high, low]: [f64; 2]) -> Self {
        Self { high, low }
    }

    /// The nearest f64 and the rest, whose [`Doubled::sum`] is this number.
    #[inline(always)]
    pub fn halves(self) -> [f64; 2] {
        [self.high, self.low]
    }

    /// The nearest f64.
    #[inline(always)]
    pub fn rounded(self) -> f64 {
        self.high
    }

    /// The product with an f64, where `fused` by an instruction that the target must have: in the same bits, but where parts of Dekker's
    /// product over- or underflow.
    #[inline(always)]
    pub(super) fn times(self, other: f64, fused: bool) -> Self {
        let (high, low) = if fused {
            let product = self.high * other;
            (product, self.high.mul_add(other, -product))
        } else {
            two_product(self.high, other)
        };
        Self::sum(high, low + self.low * other)
    }

    /// The product with a power of two, which is exact.
    #[inline(always)]
    pub(super) fn times_power_of_two(self, factor: f64) -> Self {
        Self {
            high: self.high * factor,
            low: self.low * factor,
        }
    }

    /// `self/divisor`, for constants: [`Div`] is not for them.
    pub(super) const fn divided(self, divisor: f64) -> Self {
        let rough = self.high / divisor;
        let (product, error) = two_product(rough, divisor);
        Self::sum(rough, (((self.high - product) - error) + self.low) / divisor)
    }

    /// This number, or `bound` where that is greater; NaN stays NaN.
    #[inline(always)]
    pub(super) fn or_if_below(self, bound: f64) -> Self {
        let below = self.high < bound;
        Self {
            high: if below { bound } else { self.high },
            low: if below { 0.0 } else { self.low },
        }
    }

    /// This number within 0 and `upper`.
    #[inline(always)]
    pub fn clamp(self, upper: f64) -> Self {
        if self.high < 0.0 {
            Self::default()
        } else if (self - Self::from(upper)).high > 0.0 {
            Self::from(upper)
        } else {
            self
        }
    }

    /// `1/√self` of a positive number: Newton's step from the f64 result doubles its digits.
    pub fn reciprocal_root(self) -> Self {
        let rough = 1.0 / self.high.sqrt();
        let rest = Self::from(1.0) - self * Self::product(rough, rough);
        Self::sum(rough, 0.5 * rough * rest.high)
    }

    /// `Σ row[j]·point[j]`.
    pub fn dot(row: &[f64], point: &[Self]) -> Self {
        let terms = row.iter().zip(point).filter(|(r, _)| **r != 0.0);
        terms.fold(Self::default(), |sum, (&r, &p)| sum + p * r)
    }

    /// `Σ point[j]²`.
    pub fn squared_norm(point: &[Self]) -> Self {
        point.iter().fold(Self::default(), |sum, &p| sum + p * p)
    }
}

impl From<f64> for Doubled {
    #[inline(always)]
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Add for Doubled {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (high, low) = two_sum(self.high, other.high);
        let (carry, rest) = two_sum(self.low, other.low);
        let first = Self::sum(high, low + carry);
        Self::sum(first.high, first.low + rest)
    }
}

impl Neg for Doubled {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self {
            high: -self.high,
            low: -self.low,
        }
    }
}

impl Sub for Doubled {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul<f64> for Doubled {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: f64) -> Self {
        self.times(other, false)
    }
}

impl Mul for Doubled {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (high, low) = two_product(self.high, other.high);
        Self::sum(high, low + (self.high * other.low + self.low * other.high))
    }
}

impl Div for Doubled {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let rough = self.high / other.high;
        let rest = self - other * rough;
        Self::sum(rough, rest.high / other.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_keep_what_f64_loses() {
        let third = Doubled::sum(1.0 / 3.0, f64::EPSILON / 12.0);
        // 1/3 in f64 is short of a third by ε/12, so three times the sum is 1 to 32 digits.
        let rest = third * 3.0 - Doubled::from(1.0);
        assert!(rest.rounded().abs() < 1e-32, "{rest:?}");
        let root = 2.0_f64.sqrt();
        let error = Doubled::from(2.0) - Doubled::product(root, root);
        let inverse = Doubled::from(2.0).reciprocal_root();
        let rest = inverse * inverse * 2.0 - Doubled::from(1.0);
        assert!(rest.rounded().abs() < 1e-31, "{rest:?}");
        let better = Doubled::sum(root, error.rounded() / (2.0 * root));
        let rest = Doubled::from(2.0) - better * better;
        assert!(rest.rounded().abs() < 1e-31, "{rest:?}");
        assert!(error.rounded().abs() > 1e-17);
        let quotient = Doubled::from(1.0) / Doubled::from(3.0) - third;
        assert!(quotient.rounded().abs() < 1e-32, "{quotient:?}");
        let tiny = Doubled::from(1.0) + Doubled::from(1e-25) - Doubled::from(1.0);
        assert!((tiny.rounded() - 1e-25).abs() < 1e-31, "{tiny:?}");
    }

    #[test]
    fn dots_and_clamps() {
        let point = [1.0, 1e-20, -1.0].map(Doubled::from);
        assert!((Doubled::dot(&[1.0, 2.0, 1.0], &point).rounded() - 2e-20).abs() < 1e-32);
        assert!((Doubled::squared_norm(&point).rounded() - 2.0).abs() < 1e-15);
        let above = Doubled::sum(2.0, 1e-20);
        assert_eq!(above.clamp(2.0), Doubled::from(2.0));
        assert_eq!(above.clamp(3.0), above);
        assert_eq!((-above).clamp(3.0), Doubled::default());
    }
}
