//! The one gate through which every released value leaves: rounding to a public lattice, and exact integer noise on it.
//!
//! A value computed in floating point differs from the real number that a proof speaks of, in low bits that depend on the
//! data (Mironov 2012). The seal hides that difference: docs/privacy.md, "The seal".

use super::costs::Cost;
use crate::bugs::{Bug, active};
use crate::error::check_length;
use crate::linalg::vector;
use crate::noise::{DiscreteGaussian, DiscreteLaplace, NoiseGenerator, symmetric};
use crate::privacy::{Calibration, approx_to_zcdp};
use crate::{Error, Result};

/// Values are clamped to this many lattice steps, so that integers of 128 bits hold all sums. Clamping moves no two values apart, so it
/// costs nothing.
const GREATEST_STEP: f64 = (1_u128 << 120) as f64;

/// Greatest scale of the noise, in lattice steps.
const GREATEST_SCALE: f64 = (1_u64 << 60) as f64;

/// Room for the few roundings in the formulas of the scales.
const MARGIN: f64 = 1.0 + 16.0 * f64::EPSILON;

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

/// Integer noise on the lattice.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LatticeNoise {
    Laplace(DiscreteLaplace),
    Gaussian(DiscreteGaussian),
}

/// How one vector is sealed: lattice, noise and cost. All public, fixed before any data are seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seal {
    name: &'static str,
    dim: usize,
    distance: f64,
    lattice: f64,
    scale: u64,
    noise: LatticeNoise,
    cost: Cost,
}

impl Seal {
    /// The seal of `dim` numbers that lie within `distance` τ (Euclidean) of the ideal ones, whatever the data.
    ///
    /// The lattice is `g = 2⁻ᵏ ≤ τ/√dim`. Two computations of one ideal vector lie at most 2τ apart; rounded to the lattice, at most
    /// `2√dim·τ/g + dim` steps in L1 and `2τ/g + √dim` in L2, which the noise hides: discrete Laplace for a pure cost, else discrete
    /// Gaussian (Canonne, Kamath & Steinke 2020).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where lattice or noise have no representable scale.
    pub fn new(name: &'static str, dim: usize, distance: f64, cost: Cost) -> Result<Self> {
        let d = dim as f64;
        let lattice = lattice_below(distance / d.sqrt() / MARGIN);
        if dim == 0 || !lattice.is_normal() || !cost.value().is_normal() {
            return Err(out_of_range("the distance to the ideal value", distance));
        }
        let apart = 2.0 * distance / lattice;
        let (scale, noise) = if let Cost::Epsilon(epsilon) = cost {
            let scale = steps((d.sqrt() * apart + d) / epsilon, cost)?;
            let law = DiscreteLaplace::new(scale).map_err(|_| extreme(cost))?;
            (scale, LatticeNoise::Laplace(law))
        } else {
            let std_dev = steps((apart + d.sqrt()) / (2.0 * rho(cost)?).sqrt(), cost)?;
            let law = DiscreteGaussian::new(std_dev).map_err(|_| extreme(cost))?;
            (std_dev, LatticeNoise::Gaussian(law))
        };
        Ok(Self {
            name,
            dim,
            distance,
            lattice,
            scale,
            noise,
            cost,
        })
    }

    /// The distance τ at which the noise of [`Self::new`] has at most this standard deviation in each coordinate.
    ///
    /// # Errors
    /// As [`approx_to_zcdp`].
    pub fn distance_for(std_dev: f64, dim: usize, cost: Cost) -> Result<f64> {
        // A scale of at most 3dim/ε, resp. 3√dim/√(2ρ), steps, rounded up to a whole one; a step is at most τ/√dim. A discrete Laplace
        // law has less variance than twice its squared scale.
        let root = (dim as f64).sqrt();
        Ok(match cost {
            Cost::Epsilon(epsilon) => {
                std_dev / (std::f64::consts::SQRT_2 * (3.0 * root / epsilon + 1.0 / root))
            }
            cost => std_dev / (3.0 / (2.0 * rho(cost)?).sqrt() + 1.0 / root),
        })
    }

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
            check_length(self.name, self.dim, part.len())?;
            check_finite(self.name, part)?;
        }
        if active(Bug::SkippedSeal) {
            let sums = values.iter().zip(whole).map(|(value, whole)| value + whole);
            return Ok(Sealed(sums.collect()));
        }
        let sealed = values.iter().zip(whole).map(|(value, whole)| {
            generator.refresh()?;
            let noisy = self.step(*value) + self.step(*whole) + self.noise(generator);
            Ok(noisy as f64 * self.lattice)
        });
        let sealed: Vec<f64> = sealed.collect::<Result<_>>()?;
        check_finite(self.name, &sealed)?;
        Ok(Sealed(sealed))
    }

    /// The nearest lattice point, as a number of steps. Exact: the lattice is a power of two, and a clamped quotient fits the integer.
    #[expect(clippy::cast_possible_truncation, reason = "clamped and whole")]
    fn step(&self, value: f64) -> i128 {
        (value / self.lattice)
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

    fn noise(&self, generator: &mut impl NoiseGenerator) -> i128 {
        match &self.noise {
            LatticeNoise::Laplace(law) => law.sample(generator),
            LatticeNoise::Gaussian(law) => law.sample(generator),
        }
    }

    /// What is sealed.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// τ, the greatest distance of computed to ideal values.
    #[must_use]
    pub fn distance(&self) -> f64 {
        self.distance
    }

    /// The lattice step g.
    #[must_use]
    pub fn lattice(&self) -> f64 {
        self.lattice
    }

    /// `discrete_laplace` or `discrete_gaussian`.
    #[must_use]
    pub fn noise_name(&self) -> &'static str {
        match self.noise {
            LatticeNoise::Laplace(_) => "discrete_laplace",
            LatticeNoise::Gaussian(_) => "discrete_gaussian",
        }
    }

    /// Scale of the noise, in lattice steps.
    #[must_use]
    pub fn scale(&self) -> u64 {
        self.scale
    }

    /// Standard deviation of the noise in one coordinate, rounded up.
    #[must_use]
    pub fn std_dev(&self) -> f64 {
        let scale = self.scale as f64 * self.lattice * MARGIN;
        match self.noise {
            LatticeNoise::Laplace(_) => std::f64::consts::SQRT_2 * scale,
            LatticeNoise::Gaussian(_) => scale,
        }
    }

    /// What it spends.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }
}

/// ρ of zCDP that a cost allows.
fn rho(cost: Cost) -> Result<f64> {
    match cost {
        Cost::EpsilonDelta { epsilon, delta } => approx_to_zcdp(epsilon, delta, Calibration::Tight),
        cost => Ok(0.5 * cost.mu().powi(2)),
    }
}

/// The greatest power of two that is at most `bound`; 0 where there is no normal one.
pub(super) fn lattice_below(bound: f64) -> f64 {
    if bound.is_normal() && bound > 0.0 {
        // The exponent without the digits.
        f64::from_bits(bound.to_bits() & !((1 << 52) - 1))
    } else {
        0.0
    }
}

/// A number of lattice steps, rounded up to a whole one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be within range"
)]
fn steps(scale: f64, cost: Cost) -> Result<u64> {
    let scale = (scale * MARGIN).ceil();
    if (1.0..=GREATEST_SCALE).contains(&scale) {
        Ok(scale as u64)
    } else {
        Err(extreme(cost))
    }
}

/// A cost whose noise has more lattice steps than an exact sampler takes.
fn extreme(cost: Cost) -> Error {
    Error::OutOfRange {
        name: "the budget of a seal",
        rule: "great enough for exact integer noise (a thousandth of the whole budget is divided among the seals)",
        value: cost.value(),
    }
}

fn out_of_range(name: &'static str, value: f64) -> Error {
    Error::OutOfRange {
        name,
        rule: "such that the seal has a lattice in double precision (the budget or the bounds are extreme)",
        value,
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
