//! The seal that every released vector passes: rounding to a public lattice, and exact integer noise on it.
//!
//! [`Seal`] holds the lattice, the noise and the proof of what they cost.

use crate::bugs::{Bug, active};
use crate::error::check_length;
use crate::linalg::vector;
use crate::noise::{LevelTotals, NoiseGenerator, symmetric};
use crate::spec::{LatticeNoise, Seal};
use crate::{Error, Result};

/// Values are clamped to this many lattice steps, so that integers of 128 bits hold all sums. Clamping moves no two values apart, so it
/// costs nothing.
const GREATEST_STEP: f64 = (1_u128 << 120) as f64;

/// Numbers that came out of a mechanism, sealed or simulated.
pub trait Values: Clone {
    /// The numbers.
    fn values(&self) -> &[f64];

    /// The numbers, by value.
    fn into_values(self) -> Vec<f64>;

    /// The numbers moved to the nearest point of the ball of this radius, where there is one: post-processing.
    fn in_ball(&self, radius: Option<f64>) -> Self;
}

/// Values that passed the seal. Only the releases of [`Seal`] make one, and post-processing in this file:
///
/// ```compile_fail
/// let values = dpci_core::mechanism::Sealed(vec![1.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed(Vec<f64>);

impl Values for Sealed {
    fn values(&self) -> &[f64] {
        &self.0
    }

    fn into_values(self) -> Vec<f64> {
        self.0
    }

    fn in_ball(&self, radius: Option<f64>) -> Self {
        Self(moved_into_ball(&self.0, radius))
    }
}

impl Sealed {
    /// Parameters computed from released values alone: post-processing.
    pub(super) fn solved(&self, params: Vec<f64>) -> Result<Self> {
        check_length("params", self.0.len(), params.len())?;
        check_finite("params", &params)?;
        Ok(Self(params))
    }
}

impl Seal {
    /// Releases `values`.
    ///
    /// # Privacy
    /// Spends [`Self::cost`] on top of what the ideal values cost, provided that `values` lie within [`Self::distance`] of them: given
    /// the ideal ones, any two admissible inputs are hidden by the noise, so the output is an adaptive query on them, which are then
    /// discarded (docs/proofs/program.md, "The seal").
    pub fn release(&self, values: &[f64], generator: &mut impl NoiseGenerator) -> Result<Sealed> {
        let zero = vec![0.0; values.len()];
        self.release_sum(values, &zero, generator)
    }

    /// Releases `values + whole`, of which `whole` is exact and a multiple of the lattice (whole numbers on a lattice of at most 1), so
    /// that their sum is not rounded.
    ///
    /// # Privacy
    /// As [`Self::release`].
    pub fn release_sum(&self, values: &[f64], whole: &[f64], generator: &mut impl NoiseGenerator) -> Result<Sealed> {
        for part in [values, whole] {
            check_length(self.part().name(), self.dim(), part.len())?;
            check_finite(self.part().name(), part)?;
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
        check_finite(self.part().name(), &sealed)?;
        Ok(Sealed(sealed))
    }

    /// Releases `values + rest`, of which `rest` is what rounding took from the values. Whole steps of the lattice stay apart from it, so
    /// that no digit of a long vector is lost.
    ///
    /// # Privacy
    /// As [`Self::release`].
    pub(super) fn release_with_rest(
        &self,
        mut values: Vec<f64>,
        rest: &[f64],
        generator: &mut impl NoiseGenerator,
    ) -> Result<Sealed> {
        let whole: Vec<f64> = values.iter().map(|v| self.whole_steps(*v)).collect();
        for ((v, whole), rest) in values.iter_mut().zip(&whole).zip(rest) {
            *v = (*v - whole) + rest;
        }
        self.release_sum(&values, &whole, generator)
    }

    /// The part of a number that is a multiple of the lattice, towards zero; exact, as the lattice is a power of two.
    fn whole_steps(&self, value: f64) -> f64 {
        let steps = (value / self.lattice()).trunc();
        // From here on every number is a multiple of the lattice.
        if steps.abs() < 1.0 / f64::EPSILON {
            steps * self.lattice()
        } else {
            value
        }
    }

    /// The nearest lattice point, as a number of steps. Exact: the lattice is a power of two, and a clamped quotient fits the integer.
    #[expect(clippy::cast_possible_truncation, reason = "clamped and whole")]
    fn step(&self, value: f64) -> i128 {
        (value / self.lattice()).round().clamp(-GREATEST_STEP, GREATEST_STEP) as i128
    }

    /// Releases a symmetric matrix (row-major) through its lower triangle.
    ///
    /// # Privacy
    /// As [`Self::release`]; the distance is that of the triangles, at most that in Frobenius norm.
    pub fn release_symmetric(&self, matrix: &[f64], generator: &mut impl NoiseGenerator) -> Result<Sealed> {
        let rows = matrix.len().isqrt();
        let triangle = symmetric::lower_triangle(rows, matrix);
        let sealed = self.release(&triangle, generator)?;
        Ok(Sealed(symmetric::from_lower_triangle(rows, &sealed.0, 1.0)))
    }

    /// Releases a symmetric matrix whose level totals lie within 1/[`LevelTotals::FINER`] of the distance.
    ///
    /// # Privacy
    /// Same as [`Self::release_symmetric`], of the matrix with these entries multiplied: dividing them is post-processing, and exact.
    pub(super) fn release_with_levels(
        &self,
        mut matrix: Vec<f64>,
        levels: &LevelTotals,
        generator: &mut impl NoiseGenerator,
    ) -> Result<Sealed> {
        levels.scale_told(&mut matrix, LevelTotals::FINER);
        let mut sealed = self.release_symmetric(&matrix, generator)?;
        levels.scale_told(&mut sealed.0, LevelTotals::FINER.recip());
        Ok(sealed)
    }

    fn draw(&self, generator: &mut impl NoiseGenerator) -> i128 {
        match self.noise() {
            LatticeNoise::Laplace(law) => law.sample(generator),
            LatticeNoise::Gaussian(law) => law.sample(generator),
        }
    }
}

/// The nearest point of the ball of this radius, where there is one.
pub(super) fn moved_into_ball(values: &[f64], radius: Option<f64>) -> Vec<f64> {
    let norm = vector::norm(values);
    match radius {
        Some(radius) if norm > radius => {
            let scale = radius / norm;
            values.iter().map(|v| v * scale).collect()
        }
        _ => values.to_vec(),
    }
}

pub(super) fn check_finite(name: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().find(|v| !v.is_finite()) {
        None => Ok(()),
        Some(&value) => Err(Error::NonFiniteRelease { name, value }),
    }
}

#[cfg(test)]
mod tests;
