//! Rounding to the safe side, and inversion of monotone functions to the last bit.

/// Relative margin that covers the handful of roundings in one formula of this module.
const MARGIN: f64 = 4.0 * f64::EPSILON;

/// A positive result of a few operations, rounded so that it is not below the exact value.
pub(super) fn up(x: f64) -> f64 {
    x * (1.0 + MARGIN)
}

/// A positive result of a few operations, rounded so that it is not above the exact value.
pub(super) fn down(x: f64) -> f64 {
    x * (1.0 - MARGIN)
}

/// Greatest finite `x ≥ 0` with `holds(x)`, for a predicate that is true below some point and false above it.
///
/// Bisects the bit patterns, which are ordered as the non-negative floats are: at most 63 evaluations for any range, and
/// the result satisfies the predicate as computed, even where rounding makes it waver in the last bits. 0 is taken for
/// granted.
pub(super) fn greatest_where(holds: impl Fn(f64) -> bool) -> f64 {
    bisect(holds).0
}

/// Least finite `x ≥ 0` with `holds(x)`, for a predicate that is false below some point and true above it; infinity if
/// there is none.
pub(crate) fn least_where(holds: impl Fn(f64) -> bool) -> f64 {
    if holds(0.0) { 0.0 } else { bisect(|x| !holds(x)).1 }
}

/// Neighbouring floats, the predicate true at the first and false at the second.
fn bisect(holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0, f64::INFINITY.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(f64::from_bits(middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (f64::from_bits(low), f64::from_bits(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversion_is_exact() {
        assert_eq!(greatest_where(|x| x <= 0.3).to_bits(), 0.3_f64.to_bits());
        assert_eq!(least_where(|x| x >= 1e-300).to_bits(), 1e-300_f64.to_bits());
        assert_eq!(greatest_where(|_| false).to_bits(), 0.0_f64.to_bits());
        assert_eq!(greatest_where(|_| true).to_bits(), f64::MAX.to_bits());
        assert_eq!(least_where(|_| true).to_bits(), 0.0_f64.to_bits());
        assert!(least_where(|_| false).is_infinite());
    }

    #[test]
    fn rounding_moves_outwards() {
        for x in [1.0, 0.1, 1e-300, 1e300] {
            assert!(down(x) < x && x < up(x));
        }
    }
}
