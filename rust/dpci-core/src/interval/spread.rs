//! The error of one contrast in standard units: how large it is, and how its variance is mixed.

use crate::Result;
use crate::error::{check, check_non_negative};
use crate::noise::NoiseLaw;

/// From this shape on a gamma law of mean 1 is a constant to 1e-6 of its size, and its quadrature would lose all digits later.
pub(super) const GREATEST_SHAPE: f64 = 1e12;

/// Mixing law of the variance of an error: the law of the noise, and how far the estimated variance can be from the true one.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorShape {
    /// Law of the noise of the coefficients.
    pub law: NoiseLaw,
    /// Shape of the gamma law of the true variance over the estimated one; infinite where they are taken as equal.
    pub matrices: f64,
}

impl ErrorShape {
    /// Shape for matrices that are taken as they are.
    pub const fn plug_in(law: NoiseLaw) -> Self {
        Self {
            law,
            matrices: f64::INFINITY,
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a law that [`NoiseLaw::check`] refuses, or a shape below 1.
    pub fn check(&self) -> Result<()> {
        self.law.check()?;
        check(self.matrices >= 1.0, "shape", "at least 1", self.matrices)
    }
}

/// The error `√(W(v + a²Ω))·Z`, Z standard normal, as `scale·√(fixed + mixed·V)·Z` with V gamma, `E V = 1` and
/// `fixed + mixed = 1`.
///
/// Spherical Laplace noise is a normal mixture, `b = √Ω·N(0, I)`, so `Ω/EΩ` is Gamma((dim+1)/2) over its mean; Gaussian noise
/// mixes nothing. W is the gamma law of [`ErrorShape::matrices`]. Where only one of the two mixes, V is it. Where both do,
/// `fixed + mixed·V` has the first three moments of their product (docs/proofs/intervals.md, "Intervals").
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    /// Standard deviation of the error.
    pub(super) scale: f64,
    /// Share of the variance that does not depend on V.
    pub(super) fixed: f64,
    /// Share of the variance that is proportional to V.
    pub(super) mixed: f64,
    /// Shape of V.
    pub(super) shape: f64,
}

impl Spread {
    /// From the sampling variance `v` and the multiplier `a` of the noise; `shape` has been checked.
    pub(super) fn new(v: f64, a: f64, shape: &ErrorShape) -> Result<Self> {
        let noise_only = Self::of_noise(v, a, &shape.law)?;
        if noise_only.scale > 0.0 && shape.matrices < GREATEST_SHAPE {
            Ok(noise_only.widened(shape.matrices))
        } else {
            Ok(noise_only)
        }
    }

    /// With Ω alone.
    pub(super) fn of_noise(v: f64, a: f64, law: &NoiseLaw) -> Result<Self> {
        let sampling = v.sqrt();
        let noise = a * law.coordinate_std_dev();
        let scale = sampling.hypot(noise);
        for (name, value) in [("v", v), ("a", a), ("the standard error", scale)] {
            check_non_negative(name, value)?;
        }
        let (fixed, mixed, shape) = match law {
            NoiseLaw::SphericalLaplace { dim, .. } if scale > 0.0 => (
                (sampling / scale).powi(2),
                (noise / scale).powi(2),
                f64::midpoint(*dim as f64, 1.0),
            ),
            _ => (1.0, 0.0, f64::INFINITY),
        };
        Ok(Self {
            scale,
            fixed,
            mixed,
            shape,
        })
    }

    /// Times W, a gamma variable of mean 1: with `a = 1/α`, `b = mixed²/k` and `e = 2·mixed³/k²` the product has variance
    /// `c = a + b + ab` and third central moment `2a² + 6ab + 6a²b + e(1 + 3a + 2a²)`; those of `fixed + mixed·V` are `mixed²/k`
    /// and `2·mixed³/k²`.
    fn widened(self, matrices: f64) -> Self {
        let a = matrices.recip();
        let b = self.mixed * self.mixed / self.shape;
        let e = 2.0 * b * self.mixed / self.shape;
        let variance = a + b + a * b;
        let third = 2.0 * a * a + 6.0 * a * b * (1.0 + a) + e * (1.0 + a * (3.0 + 2.0 * a));
        let mixed = (2.0 * variance * variance / third).min(1.0);
        Self {
            scale: self.scale,
            fixed: 1.0 - mixed,
            mixed,
            shape: mixed * mixed / variance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_variances() {
        let law = ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim: 3, rate: 2.0 });
        let spread = Spread::new(3.0, 1.0, &law).unwrap();
        assert!((spread.scale - 2.0).abs() < 1e-15);
        assert!((spread.fixed - 0.75).abs() < 1e-15 && (spread.mixed - 0.25).abs() < 1e-15);
        let none = Spread::new(0.0, 0.0, &law).unwrap();
        assert!(none.scale.abs() < f64::MIN_POSITIVE && none.mixed.abs() < f64::MIN_POSITIVE);
    }

    #[test]
    fn bad_parts_are_refused() {
        let law = ErrorShape::plug_in(NoiseLaw::Gaussian { std_dev: 1e200 });
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Spread::new(bad, 1.0, &law).is_err());
            assert!(Spread::new(1.0, bad, &law).is_err());
        }
        assert!(Spread::new(0.0, 1e200, &law).is_err());
    }
}
