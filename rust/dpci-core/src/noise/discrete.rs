//! Discrete Laplace and discrete Gaussian noise on the integers, exact: no floating-point number is involved.

use super::NoiseGenerator;
use super::integer::{bernoulli_exp, uniform_below};
use crate::Result;
use crate::error::check;

/// Greatest scale of the discrete Laplace law.
const MAX_SCALE: u64 = 1 << 60;
/// Greatest standard deviation of the discrete Gaussian law.
const MAX_STD_DEV: u64 = 1 << 40;

/// The law on the integers with `P(k) ∝ exp(-|k|/scale)`. Added to an integer query of L1 sensitivity Δ with scale Δ/ε it is
/// ε-DP (Ghosh, Roughgarden & Sundararajan 2009).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscreteLaplace {
    scale: u64,
}

impl DiscreteLaplace {
    /// The law of this scale.
    pub fn new(scale: u64) -> Result<Self> {
        check(
            (1..=MAX_SCALE).contains(&scale),
            "scale",
            "from 1 to 2^60",
            scale as f64,
        )?;
        Ok(Self { scale })
    }

    /// One draw, by Algorithm 2 of Canonne, Kamath & Steinke 2020: `|k| = u + scale·v` with independent
    /// `P(u) ∝ exp(-u/scale)` below the scale and geometric v, and a sign; zero keeps one sign only.
    pub fn sample(self, generator: &mut impl NoiseGenerator) -> i128 {
        loop {
            let (u, v) = self.magnitude(generator);
            let negative = uniform_below(2, generator) == 1;
            if let Some(draw) = signed(u + u128::from(self.scale) * v, negative) {
                return draw;
            }
        }
    }

    /// The parts u and v of a geometric variable `u + scale·v` with `P(k) ∝ exp(-k/scale)`, k ≥ 0.
    fn magnitude(self, generator: &mut impl NoiseGenerator) -> (u128, u128) {
        let scale = u128::from(self.scale);
        let u = loop {
            let u = uniform_below(scale, generator);
            if bernoulli_exp(u, scale, generator) {
                break u;
            }
        };
        let mut v = 0;
        while bernoulli_exp(1, 1, generator) {
            v += 1;
        }
        (u, v)
    }
}

/// The integer of this size and sign; none for minus zero, which must not make zero twice as likely.
fn signed(magnitude: u128, negative: bool) -> Option<i128> {
    let magnitude = magnitude.cast_signed();
    match negative {
        false => Some(magnitude),
        true if magnitude == 0 => None,
        true => Some(-magnitude),
    }
}

/// The law on the integers with `P(k) ∝ exp(-k²/(2σ²))`. Added to an integer vector query of L2 sensitivity Δ it is
/// `Δ²/(2σ²)`-zCDP (Canonne, Kamath & Steinke 2020, Theorem 14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscreteGaussian {
    std_dev: u64,
    proposal: DiscreteLaplace,
}

impl DiscreteGaussian {
    /// The law with σ = `std_dev`, which is nearly its standard deviation.
    pub fn new(std_dev: u64) -> Result<Self> {
        check(
            (1..=MAX_STD_DEV).contains(&std_dev),
            "std_dev",
            "from 1 to 2^40",
            std_dev as f64,
        )?;
        let proposal = DiscreteLaplace::new(std_dev)?;
        Ok(Self { std_dev, proposal })
    }

    /// One draw, by Algorithm 3 of Canonne, Kamath & Steinke 2020 with proposals of scale σ: a discrete Laplace variable y is
    /// kept with probability `exp(-(|y| - σ)²/(2σ²))`.
    pub fn sample(&self, generator: &mut impl NoiseGenerator) -> i128 {
        loop {
            let (u, v) = self.proposal.magnitude(generator);
            let negative = uniform_below(2, generator) == 1;
            if let Some(draw) = signed(u + u128::from(self.std_dev) * v, negative)
                && self.accepts(u, v, generator)
            {
                return draw;
            }
        }
    }

    /// True with probability `exp(-(u + σv - σ)²/(2σ²))`. The exponent is taken apart, `m²/2 + mr/σ + r²/(2σ²)` with
    /// `u + σv - σ = ±(σm + r)`, so that 128 bits hold every part.
    fn accepts(self, u: u128, v: u128, generator: &mut impl NoiseGenerator) -> bool {
        let sigma = u128::from(self.std_dev);
        let (m, r) = match v.checked_sub(1) {
            Some(m) => (m, u),
            None => (0, sigma - u),
        };
        bernoulli_exp(m * m, 2, generator)
            && bernoulli_exp(m * r, sigma, generator)
            && bernoulli_exp(r * r, 2 * sigma * sigma, generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::{assert_cdf, assert_counts, assert_mean, normal_cdf};

    /// Counts of -reach..=reach, the ends with all beyond them, against weights; then the mean square, which the ends hide.
    fn assert_law(draws: &[i128], reach: i128, weight: impl Fn(i128) -> f64) {
        let beyond = 60 * reach;
        let total: f64 = (-beyond..=beyond).map(&weight).sum();
        let tail: f64 = (reach..=beyond).map(|k| weight(k) / total).sum();
        let mut probabilities: Vec<f64> = (-reach..=reach).map(|k| weight(k) / total).collect();
        let last = probabilities.len() - 1;
        (probabilities[0], probabilities[last]) = (tail, tail);
        let mut counts = vec![0; probabilities.len()];
        for k in draws {
            counts[usize::try_from(k.clamp(&-reach, &reach) + reach).unwrap()] += 1;
        }
        assert_counts(&counts, &probabilities);
        let variance: f64 = (-beyond..=beyond).map(|k| weight(k) / total * (k * k) as f64).sum();
        let squares: Vec<f64> = draws.iter().map(|k| (k * k) as f64).collect();
        assert_mean(&squares, variance);
    }

    #[test]
    fn laplace_draws_have_the_exact_law() {
        for scale in [1, 2, 3, 10] {
            let law = DiscreteLaplace::new(scale).unwrap();
            let mut generator = SimulationGenerator::new(53, scale);
            let draws: Vec<_> = (0..100_000).map(|_| law.sample(&mut generator)).collect();
            assert_law(&draws, 5 * i128::from(scale), |k| {
                (-(k.abs() as f64) / scale as f64).exp()
            });
        }
    }

    #[test]
    fn gaussian_draws_have_the_exact_law() {
        for std_dev in [1, 2, 3, 10] {
            let law = DiscreteGaussian::new(std_dev).unwrap();
            let mut generator = SimulationGenerator::new(54, std_dev);
            let draws: Vec<_> = (0..100_000).map(|_| law.sample(&mut generator)).collect();
            assert_law(&draws, 3 * i128::from(std_dev), |k| {
                (-0.5 * (k as f64 / std_dev as f64).powi(2)).exp()
            });
        }
    }

    #[test]
    fn great_scales_approach_the_continuous_laws() {
        let mut generator = SimulationGenerator::new(55, 0);
        let law = DiscreteLaplace::new(MAX_SCALE).unwrap();
        let draws: Vec<_> = (0..20_000)
            .map(|_| law.sample(&mut generator) as f64 / MAX_SCALE as f64)
            .collect();
        assert_cdf(draws, |x| {
            let half_tail = 0.5 * (-x.abs()).exp();
            if x < 0.0 { half_tail } else { 1.0 - half_tail }
        });
        for std_dev in [1_000_003, MAX_STD_DEV - 1, MAX_STD_DEV] {
            let law = DiscreteGaussian::new(std_dev).unwrap();
            let draws: Vec<_> = (0..20_000).map(|_| law.sample(&mut generator)).collect();
            // The lowest bits are uniform at such a scale.
            let odd = draws.iter().filter(|k| *k & 1 == 1).count();
            assert_counts(&[draws.len() - odd, odd], &[0.5, 0.5]);
            let scaled = draws.iter().map(|k| *k as f64 / std_dev as f64).collect();
            assert_cdf(scaled, normal_cdf);
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [0, MAX_SCALE + 1, u64::MAX] {
            assert!(DiscreteLaplace::new(bad).is_err());
        }
        for bad in [0, MAX_STD_DEV + 1, u64::MAX] {
            assert!(DiscreteGaussian::new(bad).is_err());
        }
    }
}
