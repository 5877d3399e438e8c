//! The exponential function and the sigmoid in doubled precision, of many numbers at once.

use pulp::{Simd, WithSimd};

use super::doubled::Doubled;

/// Powers of the Taylor series: the next one is below `0.044¹⁶/16! < 2⁻¹¹⁶`.
const TERMS: usize = 15;
/// Powers whose coefficients have twice the digits; those above add less than `0.044⁸/9! < 2⁻⁵⁴` of the sum, for which f64 is enough.
const DOUBLED_TERMS: usize = 8;
/// `1/j!` for j from 1.
const INVERSE_FACTORIALS: [Doubled; TERMS] = inverse_factorials();
/// Numbers that go through a step together: their loop becomes vectors, which one long calculation for each number would not.
const GROUP: usize = 64;
/// The argument is divided by 2 to this power, and the result squared as often.
const SQUARINGS: u8 = 3;

const fn inverse_factorials() -> [Doubled; TERMS] {
    let mut inverses = [Doubled::sum(1.0, 0.0); TERMS];
    let (mut j, mut divisor) = (1, 2.0);
    while j < TERMS {
        inverses[j] = inverses[j - 1].divided(divisor);
        j += 1;
        divisor += 1.0;
    }
    inverses
}

wide_loop! {
    /// Replaces each `x ≤ 0` by `eˣ`, within [`super::DOUBLED_EPSILON`] relative, and by `e⁻⁷⁰⁸` below -708, less than 10⁻³⁰⁷ away; NaN
    /// stays NaN.
    ///
    /// `x = k·ln 2 + 8r`, `|8r| < 0.35`; then `p = eʳ - 1` by its series and three times `p ← p(p + 2)`, which squares `1 + p`.
    /// docs/certificates.md, "Refinement", bounds the error.
    fn exp_nonpositive(numbers: &'a mut [Doubled]) {
        // Adding 1.5·2⁵² rounds to an integer and leaves it in the low bits.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        // k times the first 32 bits of ln 2 is exact.
        const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
        const LN_2_LOW: Doubled = Doubled::sum(1.908_214_929_270_587_7e-10, 1.161_222_722_936_253_2e-26);
        let (one, two) = (Doubled::from(1.0), Doubled::from(2.0));
        let (doubled, single) = INVERSE_FACTORIALS.split_at(DOUBLED_TERMS);
        for x in numbers.chunks_mut(GROUP) {
            let (mut r, mut p, mut shifts) = ([one; GROUP], [one; GROUP], [0.0; GROUP]);
            let (r, p, shifts) = (&mut r[..x.len()], &mut p[..x.len()], &mut shifts[..x.len()]);
            for ((x, r), shift) in x.iter().zip(&mut *r).zip(&mut *shifts) {
                let x = x.or_if_below(-708.0);
                *shift = x.rounded() * std::f64::consts::LOG2_E + ROUND;
                let k = *shift - ROUND;
                let rest = x + Doubled::from(-k * LN_2_HIGH) - LN_2_LOW * k;
                *r = rest.times_power_of_two(1.0 / f64::from(1 << SQUARINGS));
            }
            for (p, r) in p.iter_mut().zip(&*r) {
                let mut tail = 0.0;
                for c in single.iter().rev() {
                    tail = tail * r.rounded() + c.rounded();
                }
                *p = Doubled::from(tail);
            }
            for c in doubled.iter().rev() {
                for (p, r) in p.iter_mut().zip(&*r) {
                    *p = *c + *r * *p;
                }
            }
            for (p, r) in p.iter_mut().zip(&*r) {
                *p = *r * *p;
            }
            for _ in 0..SQUARINGS {
                for p in p.iter_mut() {
                    *p = *p * (*p + two);
                }
            }
            for ((x, p), shift) in x.iter_mut().zip(&*p).zip(&*shifts) {
                let power = f64::from_bits(1.0_f64.to_bits().wrapping_add(shift.to_bits() << 52));
                *x = (*p + one).times_power_of_two(power);
            }
        }
    }
}

/// Replaces each number t by `eᵗ`, within `2·`[`super::DOUBLED_EPSILON`] relative where |t| is at most 700.
pub fn doubled_exp(numbers: &mut [Doubled]) {
    let rises: Vec<bool> = numbers.iter().map(|t| t.rounded() > 0.0).collect();
    for (t, rises) in numbers.iter_mut().zip(&rises) {
        if *rises {
            *t = -*t;
        }
    }
    exp_nonpositive(numbers);
    for (t, rises) in numbers.iter_mut().zip(&rises) {
        if *rises {
            *t = Doubled::from(1.0) / *t;
        }
    }
}

/// Up to this number the series of [`doubled_exp_ratio`] has all digits: the next term is below `0.0625¹⁵/16! < 2⁻¹⁰⁴`.
const LONGEST_SERIES: f64 = 0.0625;

/// Replaces each number `s ≥ 0` by `s/(eˢ - 1)`, within `8·`[`super::DOUBLED_EPSILON`] of one.
pub fn doubled_exp_ratio(numbers: &mut [Doubled]) {
    let one = Doubled::from(1.0);
    let mut falling: Vec<Doubled> = numbers.iter().map(|s| -*s).collect();
    exp_nonpositive(&mut falling);
    for (s, e) in numbers.iter_mut().zip(falling) {
        *s = if s.rounded() <= LONGEST_SERIES {
            let series = |sum, c: &Doubled| *c + *s * sum;
            one / INVERSE_FACTORIALS.iter().rev().fold(Doubled::default(), series)
        } else {
            *s * e / (one - e)
        };
    }
}

/// Replaces each number t by `1/(1 + e⁻ᵗ)`, within `2·`[`super::DOUBLED_EPSILON`] of one.
pub fn doubled_sigmoid(numbers: &mut [Doubled]) {
    for t in numbers.chunks_mut(GROUP) {
        let mut e = [Doubled::default(); GROUP];
        let e = &mut e[..t.len()];
        for (e, t) in e.iter_mut().zip(&*t) {
            *e = if t.rounded() < 0.0 { *t } else { -*t };
        }
        exp_nonpositive(e);
        divide(t, e);
    }
}

wide_loop! {
    /// `t ← (1 or e)/(1 + e)`, 1 where t is not negative.
    fn divide(t: &'a mut [Doubled], e: &'a [Doubled]) {
        let one = Doubled::from(1.0);
        for (t, e) in t.iter_mut().zip(e) {
            let numerator = if t.rounded() < 0.0 { *e } else { one };
            *t = numerator / (one + *e);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exp(x: Doubled) -> Doubled {
        let mut number = [x];
        exp_nonpositive(&mut number);
        number[0]
    }

    #[test]
    fn powers_multiply() {
        // e^(a + b) = e^a·e^b and e^(-ln 2) = 1/2, to 30 digits.
        for i in 0..2000 {
            let a = Doubled::sum(-0.173 * f64::from(i), 1e-18 * f64::from(i));
            let b = Doubled::from(-0.0917 * f64::from(i % 37));
            let product = exp(a) * exp(b);
            let error = (product - exp(a + b)) / product;
            // What rounding the sum a + b does to the exponent is no error of the function.
            let room = 1e-31 * (5.0 + (a + b).rounded().abs());
            assert!(error.rounded().abs() < room, "{i} {error:?}");
        }
        let half = Doubled::sum(-std::f64::consts::LN_2, -2.319_046_813_846_299_6e-17);
        let error = exp(half) - Doubled::from(0.5);
        assert!(error.rounded().abs() < 1e-31, "{error:?}");
        assert!(exp(Doubled::from(f64::NAN)).rounded().is_nan());
        assert!(exp(Doubled::from(f64::NEG_INFINITY)).rounded() < 1e-307);
    }

    #[test]
    fn sigmoids_of_many_numbers_mirror_and_are_those_of_each() {
        let numbers: Vec<Doubled> = (-700..700)
            .map(|i| Doubled::sum(0.173 * f64::from(i), 1e-18 * f64::from(i)))
            .collect();
        let (mut found, mut mirrored) = (numbers.clone(), numbers.clone());
        doubled_sigmoid(&mut found);
        for t in &mut mirrored {
            *t = -*t;
        }
        doubled_sigmoid(&mut mirrored);
        for ((t, found), mirrored) in numbers.iter().zip(&found).zip(&mirrored) {
            let mut alone = [*t];
            doubled_sigmoid(&mut alone);
            assert_eq!(alone[0], *found);
            let rest = *found + *mirrored - Doubled::from(1.0);
            assert!(rest.rounded().abs() < 1e-30, "{t:?}");
        }
        let mut ends = [f64::NEG_INFINITY, f64::INFINITY, f64::NAN].map(Doubled::from);
        doubled_sigmoid(&mut ends);
        assert!(ends[0].rounded() < 1e-307);
        assert!((ends[1].rounded() - 1.0).abs() < 1e-300);
        assert!(ends[2].rounded().is_nan());
    }
}
