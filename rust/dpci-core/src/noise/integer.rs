//! Exact draws in integer arithmetic: uniform integers and Bernoulli variables of probability `exp(-a/b)`.

use super::NoiseGenerator;

/// An integer below `n`, all equally likely; 0 where `n` is 0 or 1. As many random bits as `n - 1` has, drawn again until they
/// are below `n`: less than two draws on average, and no bias.
pub(super) fn uniform_below(n: u128, generator: &mut impl NoiseGenerator) -> u128 {
    let Some(last) = n.checked_sub(1) else {
        return 0;
    };
    let spare = last.leading_zeros();
    if spare == u128::BITS {
        return 0;
    }
    loop {
        let bits = if spare >= u64::BITS {
            u128::from(generator.next_u64() >> (spare - u64::BITS))
        } else {
            let high = u128::from(generator.next_u64()) << u64::BITS;
            (high | u128::from(generator.next_u64())) >> spare
        };
        if bits <= last {
            return bits;
        }
    }
}

/// True with probability exactly `exp(-a/b)`, for `b = 0` with its limit (Canonne, Kamath & Steinke 2020, Algorithm 1).
pub(super) fn bernoulli_exp(a: u128, b: u128, generator: &mut impl NoiseGenerator) -> bool {
    // Divisions of 128 bits are slow, and seldom needed.
    if a == 0 || a < b {
        return a == 0 || bernoulli_exp_fraction(a, b, generator);
    }
    let Some(mut whole) = a.checked_div(b) else {
        return false;
    };
    // The first failure settles it, so that the number of rounds has a mean below 2 for any a.
    while whole > 0 {
        if !bernoulli_exp_fraction(1, 1, generator) {
            return false;
        }
        whole -= 1;
    }
    bernoulli_exp_fraction(a % b, b, generator)
}

/// [`bernoulli_exp`] for `γ = a/b ≤ 1`: of independent events of probabilities γ/1, γ/2, .., the first k hold with probability
/// `γᵏ/k!`, so that the number that hold before the first failure is even with probability `Σ (-γ)ᵏ/k! = exp(-γ)`.
fn bernoulli_exp_fraction(a: u128, b: u128, generator: &mut impl NoiseGenerator) -> bool {
    let mut even = true;
    let mut k = 1;
    // γ/k as the product of 1/k and a/b: no number grows.
    while uniform_below(k, generator) == 0 && uniform_below(b, generator) < a {
        even = !even;
        k += 1;
    }
    even
}

/// True with probability exactly `p·2^-exponent`, for a finite p with `0 ≤ p < 2^exponent`.
pub(super) fn bernoulli(p: f64, exponent: i32, generator: &mut impl NoiseGenerator) -> bool {
    // Uniform bits after the binary point are below those of p: first the zeros of p, then its 53 digits, an integer.
    let (fraction, power) = libm::frexp(p);
    let mut zeros = exponent - power;
    while zeros > 0 {
        let taken = zeros.min(64);
        if generator.next_u64() >> (64 - taken) != 0 {
            return false;
        }
        zeros -= taken;
    }
    ((generator.next_u64() >> 11) as f64) < fraction * 2.0_f64.powi(53)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::generator::Scripted;
    use crate::noise::testing::assert_counts;

    #[test]
    fn integers_are_uniform() {
        let mut generator = SimulationGenerator::new(51, 0);
        for n in [2_u128, 3, 7, 10, 64] {
            let mut counts = vec![0; usize::try_from(n).unwrap()];
            for _ in 0..100_000 {
                counts[usize::try_from(uniform_below(n, &mut generator)).unwrap()] += 1;
            }
            assert_counts(&counts, &vec![1.0 / n as f64; counts.len()]);
        }
        // Thirds of ranges where a remainder of 64 or 128 bits would fall into the first third too often.
        for third in [1_u128 << 62, (1 << 64) + 1, 1 << 126] {
            let mut counts = [0; 3];
            for _ in 0..100_000 {
                let part = uniform_below(3 * third, &mut generator) / third;
                counts[usize::try_from(part).unwrap()] += 1;
            }
            assert_counts(&counts, &[1.0 / 3.0; 3]);
        }
        for n in [0, 1] {
            assert_eq!(uniform_below(n, &mut generator), 0);
        }
    }

    #[test]
    fn bernoulli_variables_have_their_probability() {
        let mut generator = SimulationGenerator::new(52, 0);
        let large = 1_u128 << 100;
        for (a, b) in [
            (0, 1),
            (1, 1000),
            (1, 3),
            (1, 1),
            (7, 3),
            (2 * large, 3 * large),
            (large + 1, large / 2),
        ] {
            let p = (-(a as f64) / b as f64).exp();
            let mut counts = [0; 2];
            for _ in 0..200_000 {
                counts[usize::from(bernoulli_exp(a, b, &mut generator))] += 1;
            }
            assert_counts(&counts, &[1.0 - p, p]);
        }
        assert!(!bernoulli_exp(u128::MAX, 1, &mut generator));
        assert!(!bernoulli_exp(1, 0, &mut generator) && bernoulli_exp(0, 0, &mut generator));
    }

    #[test]
    fn floats_are_probabilities_to_their_last_bit() {
        let mut generator = SimulationGenerator::new(53, 0);
        for (p, exponent) in [(0.75, 0), (0.3, 0), (5.0, 3), (0.4, 1), (1e20, 70)] {
            let probability = p / 2.0_f64.powi(exponent);
            let mut counts = [0; 2];
            for _ in 0..100_000 {
                counts[usize::from(bernoulli(p, exponent, &mut generator))] += 1;
            }
            assert_counts(&counts, &[1.0 - probability, probability]);
        }
        // 53 digits of the uniform number decide: all ones are below no float but one, all zeros below every positive one.
        let below_one = 1.0_f64.next_down();
        assert!(!bernoulli(below_one, 0, &mut Scripted::new(vec![u64::MAX])));
        assert!(bernoulli(below_one, 0, &mut Scripted::new(vec![u64::MAX - (1 << 11)])));
        assert!(bernoulli(f64::MIN_POSITIVE, 0, &mut Scripted::new(vec![0])));
        assert!(!bernoulli(0.0, 0, &mut Scripted::new(vec![0])));
    }
}
