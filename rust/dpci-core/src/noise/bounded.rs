//! Standard exponential and normal numbers with a sure relative error, and what the bounded laws need around them.
//!
//! The ideal number is the stated function, in real arithmetic, of uniform real numbers; the computed one differs from it by
//! at most the stated share, whatever the random bits (docs/noise.md, "Errors"). This rests on one assumption: `log`,
//! `log1p`, `sin` and `cos` of the crate libm, which is portable Rust, err by at most [`ELEMENTARY`], two units in the last
//! place, where they are called: on (0, 1/2], [-1/2, 0) and (0, π/4].

use std::f64::consts::FRAC_PI_4;

use super::NoiseGenerator;
use super::uniform::LongUniform;
use crate::bugs::{Bug, active};
use crate::{Error, Result};

/// Unit roundoff.
pub(super) const U: f64 = f64::EPSILON / 2.0;
/// Relative error of an elementary function.
const ELEMENTARY: f64 = 4.0 * U;
/// Relative error of [`exponential`]: the argument's rounding, times at most 1/ln 2, and the function's.
pub(super) const EXPONENTIAL_ERROR: f64 = 1.45 * U + ELEMENTARY + 0.05 * U;
/// Relative error of a coordinate of [`normal_pair`]: half of the exponential's and a square root; three roundings of the angle,
/// the function, and a product.
pub(super) const NORMAL_ERROR: f64 = (EXPONENTIAL_ERROR / 2.0 + U) + (3.0 * U + ELEMENTARY) + U + 0.05 * U;

/// `-log V` for a uniform V: exponential with mean 1, within a share [`EXPONENTIAL_ERROR`].
///
/// V is W or 1 - W, with equal probability, for W uniform below 1/2: so no digit is lost near V = 0 nor near V = 1.
pub(super) fn exponential(generator: &mut impl NoiseGenerator) -> Result<f64> {
    let near_one = coin(generator);
    let w = 0.5 * LongUniform::draw(generator)?.value();
    Ok(if near_one { -libm::log1p(-w) } else { -libm::log(w) })
}

/// Two independent standard normal numbers, each within a share [`NORMAL_ERROR`], and the exponential number that is half the
/// sum of their squares.
///
/// Box and Muller's `√(2E)·(cos φ, sin φ)`, the angle φ uniform by octants: below π/4 sine and cosine lose no digit.
pub(super) fn normal_pair(generator: &mut impl NoiseGenerator) -> Result<([f64; 2], f64)> {
    let half_square = exponential(generator)?;
    let radius = (2.0 * half_square).sqrt();
    let angle = FRAC_PI_4 * LongUniform::draw(generator)?.value();
    let (x, y) = (radius * libm::cos(angle), radius * libm::sin(angle));
    let x = if coin(generator) { -x } else { x };
    let y = if coin(generator) { -y } else { y };
    let pair = if coin(generator) { [x, y] } else { [y, x] };
    Ok((pair, half_square))
}

/// True with probability 1/2.
pub(super) fn coin(generator: &mut impl NoiseGenerator) -> bool {
    generator.next_u64() >> 63 == 1
}

/// `n` standard normal numbers, and half the sum of the squares of the `n + n % 2` that were drawn.
pub(super) fn normals(n: usize, generator: &mut impl NoiseGenerator) -> Result<(Vec<f64>, f64)> {
    let mut draw = Vec::with_capacity(n + 1);
    let mut half_squares = Sum::default();
    while draw.len() < n {
        let (pair, half_square) = normal_pair(generator)?;
        draw.extend(pair);
        half_squares.add(half_square);
    }
    draw.truncate(n);
    if active(Bug::ClippedTail) {
        for x in &mut draw {
            *x = x.clamp(-3.0, 3.0);
        }
    }
    Ok((draw, half_squares.value()))
}

/// A sum of non-negative numbers with the errors of its additions added up beside it (Ogita, Rump & Oishi 2005).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    total: f64,
    errors: f64,
}

impl Sum {
    pub(super) fn add(&mut self, value: f64) {
        let total = self.total + value;
        // Knuth's error of the addition, exact.
        let part = total - self.total;
        self.errors += (self.total - (total - part)) + (value - part);
        self.total = total;
    }

    pub(super) fn value(self) -> f64 {
        self.total + self.errors
    }

    /// Relative error of a sum of `n` exact terms: `u + γ²`, `γ = nu/(1 - nu)`.
    pub(super) fn error(n: usize) -> f64 {
        let nu = n as f64 * U;
        U + (nu / (1.0 - nu)).powi(2)
    }
}

/// Relative error of a map of [`super::symmetric`]: a constant and a product, or a mean of two.
const MAP_ERROR: f64 = 2.0 * U;

/// `-log` of the probability that any of the tails below is left: `e⁻⁶⁹⁴ < 2⁻¹⁰⁰¹`.
const TAIL: f64 = 694.0;
/// How much more than its tail bound a quantity may be as computed, and once more as it is: room for rounding.
const ROOM: f64 = 1.001;

/// A sum of `n` exponential numbers is above this with probability below `2⁻¹⁰⁰¹`: `n + √(2n·t) + t`, `t = 694` (Boucheron,
/// Lugosi & Massart 2013, Section 2.4).
pub(super) fn sum_tail(n: usize) -> f64 {
    let n = n as f64;
    n + (2.0 * n * TAIL).sqrt() + TAIL
}

/// The norm of `n` standard normal numbers is above this with probability below `2⁻¹⁰⁰¹`: `√n + √(2t)`, `t = 694` (the norm is
/// 1-Lipschitz: Boucheron, Lugosi & Massart 2013, Theorem 5.6).
pub(super) fn normal_tail(n: usize) -> f64 {
    (n as f64).sqrt() + (2.0 * TAIL).sqrt()
}

/// The norm of `n` exponential numbers is above this with probability below `2⁻¹⁰⁰¹`: the least of [`sum_tail`] and
/// `√n·log n + 2(t + 1)`, because what exceeds `c = log n` in them sums to S with `E exp(S/2) = (1 + e⁻ᶜ)ⁿ ≤ e`.
pub(super) fn exponential_tail(n: usize) -> f64 {
    let size = n as f64;
    sum_tail(n).min(size.sqrt() * size.ln() + 2.0 * (TAIL + 1.0))
}

/// Refuses a computed size beyond its tail bound; NaN too.
pub(super) fn check_tail(size: f64, tail: f64) -> Result<()> {
    if !(size <= ROOM * tail) {
        return Err(Error::NoiseTail);
    }
    Ok(())
}

/// Greatest distance of a draw of `n` numbers from the ideal one, if it is at most a share `relative` of a size that passed
/// [`check_tail`] before it was multiplied by `scale`. Covers one of the maps of [`super::symmetric`] after it.
pub(super) fn distance(relative: f64, tail: f64, scale: f64, n: usize) -> f64 {
    // ROOM for the rounding of the size that was checked, and ROOM for that of this product and for standard numbers that
    // underflow, which are far below one unit roundoff of a tail bound.
    let relative = relative + MAP_ERROR;
    ROOM * ROOM * (ROOM * tail) * relative * scale + n as f64 * f64::MIN_POSITIVE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::{assert_cdf, assert_mean, normal_cdf};

    #[test]
    fn exponentials_have_their_law_at_both_ends() {
        let mut generator = SimulationGenerator::new(62, 0);
        let draws: Vec<_> = (0..200_000).map(|_| exponential(&mut generator).unwrap()).collect();
        assert_cdf(draws.clone(), |x| -(-x).exp_m1());
        // The tails, on their own scale: each is exponential again, or uniform.
        let small = draws.iter().filter(|x| **x < 0.01).map(|x| x / 0.01);
        assert_cdf(small.collect(), |x| (-0.01 * x).exp_m1() / (-0.01_f64).exp_m1());
        let great = draws.iter().filter(|x| **x > 4.0).map(|x| x - 4.0);
        assert_cdf(great.collect(), |x| -(-x).exp_m1());
    }

    #[test]
    fn normals_have_their_law_and_are_uncorrelated() {
        let mut generator = SimulationGenerator::new(63, 0);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for _ in 0..100_000 {
            let ([x, y], half_square) = normal_pair(&mut generator).unwrap();
            assert!((0.5 * (x * x + y * y) / half_square - 1.0).abs() < 1e-14);
            first.push(x);
            second.push(y);
        }
        let products =
            |f: fn(f64, f64) -> f64| -> Vec<f64> { first.iter().zip(&second).map(|(x, y)| f(*x, *y)).collect() };
        assert_mean(&products(|x, y| x * y), 0.0);
        assert_mean(&products(|x, y| (x * x - 1.0) * (y * y - 1.0)), 0.0);
        let angles = products(|x, y| 0.5 + y.atan2(x) / std::f64::consts::TAU);
        assert_cdf(angles, |share| share);
        assert_cdf(first, normal_cdf);
        assert_cdf(second, normal_cdf);
    }

    #[test]
    fn sums_lose_nothing() {
        // Below half a unit roundoff each term would vanish from a plain sum.
        let mut sum = Sum::default();
        sum.add(1.0);
        (0..1 << 20).for_each(|_| sum.add(2.0_f64.powi(-60)));
        assert!((sum.value() - 1.0 - 2.0_f64.powi(-40)).abs() <= U);
        assert!(Sum::error(10_000_000) < 1.02 * U);
    }

    #[test]
    fn tails_are_where_they_are_said_to_be() {
        use statrs::function::gamma::{gamma_ur, ln_gamma};

        // A sum of n exponential numbers and half the squared norm of n normal ones are Gamma(n) and Gamma(n/2).
        for n in [1, 2, 11, 66, 4186] {
            let size = n as f64;
            for (shape, x) in [(size, sum_tail(n)), (0.5 * size, 0.5 * normal_tail(n).powi(2))] {
                // log Q(shape, x) ≤ (shape-1)·log x - x - log Γ(shape) - log(1 - (shape-1)/x) for x above shape.
                let log_tail = (shape - 1.0) * x.ln() - x - ln_gamma(shape) - (1.0 - (shape - 1.0).max(0.0) / x).ln();
                assert!(log_tail < -693.9 || shape < 1.0 && log_tail < -690.0, "{n} {log_tail}");
            }
        }
        // At a smaller t the same formula holds where the probability can be computed.
        for (n, t) in [(1.0_f64, 3.0_f64), (5.0, 7.0), (100.0, 2.0)] {
            assert!(gamma_ur(n, n + (2.0 * n * t).sqrt() + t) <= (-t).exp());
        }
        for (n, most) in [(1, 740.0), (100, 1170.0), (10_000_000, 53_000.0)] {
            assert!(exponential_tail(n) <= most);
        }
        assert!(check_tail(f64::NAN, 1.0).is_err() && check_tail(2.0, 1.0).is_err());
        assert!(check_tail(1.0005, 1.0).is_ok());
    }
}
