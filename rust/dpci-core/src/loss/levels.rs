//! Levels of the size of residuals: how many records are near each is what shows how far a tail reaches.

/// Number of levels, each √2 times below the last: the lowest is 2e-5 of the greatest residual.
pub const LEVELS: usize = 32;

/// Level i, as a part of the greatest: `2^{-i/2}`.
pub const fn level(i: usize) -> f64 {
    // A power of 2 has its exponent alone for bits.
    let whole = f64::from_bits(1023_u64.saturating_sub(i as u64 / 2) << 52);
    if i.is_multiple_of(2) {
        whole
    } else {
        whole * std::f64::consts::FRAC_1_SQRT_2
    }
}

/// The level at or below which a size is, as a part of the greatest, and the share of the next lower level: a linear function of the size
/// between two levels, so that no rounding moves a record by much.
pub fn levels_of(size: f64) -> (usize, f64) {
    let square = size * size;
    // 2^{-i-1} ≤ square < 2^{-i}; the bits of a positive number have its exponent.
    let exponent = 1022_u64.saturating_sub(square.to_bits() >> 52);
    let last = LEVELS - 1;
    let upper = usize::try_from(exponent).map_or(last, |i| i.min(last));
    if upper == last {
        return (last, 0.0);
    }
    let [high, low] = [level(upper), level(upper + 1)];
    (upper, ((high - size) / (high - low)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_lies_between_its_levels() {
        for i in 0..LEVELS {
            assert!((level(i) - (-0.5 * i as f64).exp2()).abs() < 1e-15);
        }
        for step in 0..=2000 {
            let size = (-0.01 * f64::from(step)).exp2();
            let (upper, share) = levels_of(size);
            if size < level(LEVELS - 1) {
                assert_eq!((upper, share), (LEVELS - 1, 0.0));
                continue;
            }
            let lower = (upper + 1).min(LEVELS - 1);
            let mean = (1.0 - share) * level(upper) + share * level(lower);
            assert!((mean / size - 1.0).abs() < 1e-12, "{size} {upper} {share}");
            assert!((0.0..=1.0).contains(&share));
        }
        for (size, expected) in [(1.0, (0, 0.0)), (0.0, (LEVELS - 1, 0.0)), (1.0 + 1e-15, (0, 0.0))] {
            assert_eq!(levels_of(size), expected);
        }
    }
}
