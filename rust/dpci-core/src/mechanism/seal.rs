//! The one gate through which every released value leaves: rounding to a public lattice, and exact integer noise on it.
//!
//! [`Seal`] holds the lattice, the noise and the proof of what they cost.

use crate::bugs::{Bug, active};
use crate::error::check_length;
use crate::linalg::vector;
use crate::noise::{NoiseGenerator, symmetric};
use crate::spec::{LatticeNoise, Seal};
use crate::{Error, Result};

/// Values are clamped to this many lattice steps, so that integers of 128 bits hold all sums. Clamping moves no two values apart, so it
/// costs nothing.
const GREATEST_STEP: f64 = (1_u128 << 120) as f64;

/// Values that passed the gate. Only [`Seal::release`] makes one, and studies, which release nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed(Vec<f64>);

impl Sealed {
    /// Simulated values, which skip the gate: studies repeat mechanisms on one data set and release nothing.
    ///
    /// # Errors
    /// [`Error::NonFiniteRelease`] for NaN or infinity.
    pub(crate) fn simulated(name: &'static str, values: Vec<f64>) -> Result<Self> {
        check_finite(name, &values)?;
        Ok(Self(values))
    }

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

    /// Parameters computed from released values alone: post-processing.
    ///
    /// # Errors
    /// [`Error::NonFiniteRelease`] for NaN or infinity.
    pub(super) fn solved(&self, params: Vec<f64>) -> Result<Self> {
        check_length("params", self.0.len(), params.len())?;
        check_finite("params", &params)?;
        Ok(Self(params))
    }

    /// The released values.
    #[must_use]
    pub fn into_values(self) -> Vec<f64> {
        self.0
    }
}

impl Seal {
    /// Releases `values`.
    ///
    /// # Privacy
    /// Spends [`Self::cost`] on top of what the ideal values cost, provided that `values` lie within [`Self::distance`] of them: given
    /// the ideal ones, any two admissible inputs are hidden by the noise, so the output is an adaptive query on them, which are then
    /// discarded (docs/privacy.md, "The seal").
    ///
    /// # Errors
    /// [`Error::Length`] for another length, [`Error::NonFiniteRelease`] for NaN or infinity; nothing is released then.
    pub fn release(&self, values: &[f64], generator: &mut impl NoiseGenerator) -> Result<Sealed> {
        let zero = vec![0.0; values.len()];
        self.release_sum(values, &zero, generator)
    }

    /// Releases `values + whole`, of which `whole` is exact and a multiple of the lattice (whole numbers on a lattice of at most 1), so
    /// that their sum is not rounded.
    ///
    /// # Privacy
    /// As [`Self::release`].
    ///
    /// # Errors
    /// As [`Self::release`].
    pub fn release_sum(
        &self,
        values: &[f64],
        whole: &[f64],
        generator: &mut impl NoiseGenerator,
    ) -> Result<Sealed> {
        for part in [values, whole] {
            check_length(self.name(), self.dim(), part.len())?;
            check_finite(self.name(), part)?;
        }
        if active(Bug::SkippedSeal) {
            let sums = values.iter().zip(whole).map(|(value, whole)| value + whole);
            return Ok(Sealed(sums.collect()));
        }
        let sealed = values.iter().zip(whole).map(|(value, whole)| {
            generator.refresh()?;
            let noisy = self.step(*value) + self.step(*whole) + self.draw(generator);
            Ok(noisy as f64 * self.lattice())
        });
        let sealed: Vec<f64> = sealed.collect::<Result<_>>()?;
        check_finite(self.name(), &sealed)?;
        Ok(Sealed(sealed))
    }

    /// The nearest lattice point, as a number of steps. Exact: the lattice is a power of two, and a clamped quotient fits the integer.
    #[expect(clippy::cast_possible_truncation, reason = "clamped and whole")]
    fn step(&self, value: f64) -> i128 {
        (value / self.lattice())
            .round()
            .clamp(-GREATEST_STEP, GREATEST_STEP) as i128
    }

    /// Releases a symmetric matrix (row-major) through its lower triangle.
    ///
    /// # Privacy
    /// As [`Self::release`]; the distance is that of the triangles, at most that in Frobenius norm.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub fn release_symmetric(
        &self,
        matrix: &[f64],
        generator: &mut impl NoiseGenerator,
    ) -> Result<Sealed> {
        let rows = matrix.len().isqrt();
        let triangle = symmetric::lower_triangle(rows, matrix);
        let sealed = self.release(&triangle, generator)?;
        Ok(Sealed(symmetric::from_lower_triangle(rows, &sealed.0, 1.0)))
    }

    fn draw(&self, generator: &mut impl NoiseGenerator) -> i128 {
        match self.noise() {
            LatticeNoise::Laplace(law) => law.sample(generator),
            LatticeNoise::Gaussian(law) => law.sample(generator),
        }
    }
}

fn check_finite(name: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().find(|v| !v.is_finite()) {
        None => Ok(()),
        Some(&value) => Err(Error::NonFiniteRelease { name, value }),
    }
}

#[cfg(test)]
mod tests;
