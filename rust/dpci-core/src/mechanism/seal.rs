//! The one gate through which every released value leaves.
//!
//! Today it checks shape and finiteness; rounding to a public lattice with exact integer noise belongs here and nowhere else.

use crate::linalg::vector;
use crate::{Error, Result};

/// Values that passed the gate. Only [`release_values`] makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed(Vec<f64>);

impl Sealed {
    /// The released values.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The values moved to the nearest point of the ball of this radius, where there is one: post-processing.
    #[must_use]
    pub(crate) fn in_ball(&self, radius: Option<f64>) -> Self {
        let norm = vector::norm(&self.0);
        match radius {
            Some(radius) if norm > radius => {
                let scale = radius / norm;
                Self(self.0.iter().map(|v| v * scale).collect())
            }
            _ => self.clone(),
        }
    }

    /// The released values.
    #[must_use]
    pub fn into_values(self) -> Vec<f64> {
        self.0
    }
}

/// Releases noisy values.
///
/// # Privacy
/// Post-processing of `values`, which must already carry the noise of their mechanism.
///
/// # Errors
/// [`Error::Length`] for another length, [`Error::NonFiniteRelease`] for NaN or infinity; nothing is released then.
pub fn release_values(name: &'static str, values: Vec<f64>, expected: usize) -> Result<Sealed> {
    if values.len() != expected {
        return Err(Error::Length {
            name,
            expected,
            got: values.len(),
        });
    }
    match values.iter().find(|v| !v.is_finite()) {
        None => Ok(Sealed(values)),
        Some(&value) => Err(Error::NonFiniteRelease { name, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_values_of_the_right_shape_leave() {
        assert_eq!(
            release_values("x", vec![1.0, 2.0], 2).unwrap().values(),
            [1.0, 2.0]
        );
        assert!(release_values("x", vec![1.0], 2).is_err());
        assert!(release_values("x", vec![f64::NAN], 1).is_err());
        assert!(release_values("x", vec![f64::INFINITY], 1).is_err());
    }
}
