//! The error of one contrast in standard units: how large it is, and how much of its variance is mixed.

use crate::noise::NoiseLaw;
use crate::{Error, Result};

/// The error `√(v + a²Ω)·Z`, Z standard normal, as `scale·√(fixed + mixed·W)·Z` with `E W = 1` and `fixed + mixed = 1`.
///
/// Spherical Laplace noise is a normal mixture, `b = √Ω·N(0, I)`, so W is Gamma((dim+1)/2) over its mean; Gaussian noise
/// mixes nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    /// Standard deviation of the error.
    pub(super) scale: f64,
    /// Share of the variance that does not depend on W.
    pub(super) fixed: f64,
    /// Share of the variance that is proportional to W.
    pub(super) mixed: f64,
}

impl Spread {
    /// From the sampling variance `v` and the multiplier `a` of the noise; `law` has been checked.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `v`, `a` and the resulting standard deviation are finite and at least 0.
    pub(super) fn new(v: f64, a: f64, law: &NoiseLaw) -> Result<Self> {
        let sampling = v.sqrt();
        let noise = a * law.coordinate_std_dev();
        let scale = sampling.hypot(noise);
        for (name, value) in [("v", v), ("a", a), ("standard error", scale)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::OutOfRange {
                    name,
                    rule: "finite and >= 0",
                    value,
                });
            }
        }
        let is_mixed = scale > 0.0 && matches!(law, NoiseLaw::SphericalLaplace { .. });
        let (fixed, mixed) = if is_mixed {
            ((sampling / scale).powi(2), (noise / scale).powi(2))
        } else {
            (1.0, 0.0)
        };
        Ok(Self {
            scale,
            fixed,
            mixed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_variances() {
        let law = NoiseLaw::SphericalLaplace { dim: 3, rate: 2.0 };
        let spread = Spread::new(3.0, 1.0, &law).unwrap();
        assert!((spread.scale - 2.0).abs() < 1e-15);
        assert!((spread.fixed - 0.75).abs() < 1e-15 && (spread.mixed - 0.25).abs() < 1e-15);
        let none = Spread::new(0.0, 0.0, &law).unwrap();
        assert!(none.scale.abs() < f64::MIN_POSITIVE && none.mixed.abs() < f64::MIN_POSITIVE);
    }

    #[test]
    fn bad_parts_are_refused() {
        let law = NoiseLaw::Gaussian { std_dev: 1e200 };
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Spread::new(bad, 1.0, &law).is_err());
            assert!(Spread::new(1.0, bad, &law).is_err());
        }
        assert!(Spread::new(0.0, 1e200, &law).is_err());
    }
}
