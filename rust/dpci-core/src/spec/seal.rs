//! How a released vector is sealed: the lattice, the integer noise on it, and its cost.
//!
//! A value computed in floating point differs from the real number that a proof speaks of, in low bits that depend on the
//! data (Mironov 2012). The seal hides that difference: docs/proofs/program.md, "The seal".

use crate::noise::{DiscreteGaussian, DiscreteLaplace, Family};
use crate::privacy::{Calibration, Cost, approx_to_zcdp};
use crate::{Error, Result};

/// Greatest scale of the noise, in lattice steps.
const GREATEST_SCALE: f64 = (1_u64 << 60) as f64;

/// Room for the few roundings in the formulas of the scales.
const MARGIN: f64 = 1.0 + 16.0 * f64::EPSILON;

named! {
    /// The part of a release that a seal is for.
    pub enum Part {
        /// Coefficients.
        Params = "params",
        /// A Hessian.
        Hessian = "hessian",
        /// A gradient covariance.
        GradientCov = "gradient_cov",
        /// A gradient.
        Gradient = "gradient",
        /// How many rows have which norm.
        Radius = "radius",
        /// How many records have a gradient of which norm.
        GradientNorms = "gradient_norms",
        /// How many records have a Hessian of which norm.
        HessianNorms = "hessian_norms",
        /// Second moments of rows.
        Shape = "shape",
        /// Quadratic or linear coefficients of the functional mechanism.
        Polynomial = "polynomial",
        /// Counts.
        Histogram = "the histogram",
        /// The moment matrix of rows and target.
        MomentMatrix = "moment_matrix",
        /// The moments of rows weighted by squared residuals.
        ResidualMoments = "residual_moments",
        /// How many residuals have which size.
        ResidualLevels = "residual_levels",
        /// The rows weighted by capped residuals.
        ResidualGradient = "residual_gradient",
        /// The noisy score of a candidate.
        Score = "score",
        /// Any vector: a building block, in audits and tests.
        Values = "values",
    }
}

/// Integer noise on the lattice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LatticeNoise {
    /// For pure costs.
    Laplace(DiscreteLaplace),
    /// For all others.
    Gaussian(DiscreteGaussian),
}

/// How one vector is sealed: lattice, noise and cost. All public, fixed before any data are seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seal {
    part: Part,
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
    pub fn new(part: Part, dim: usize, distance: f64, cost: Cost) -> Result<Self> {
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
            part,
            dim,
            distance,
            lattice,
            scale,
            noise,
            cost,
        })
    }

    /// The distance τ at which the noise of [`Self::new`] has at most this standard deviation in each coordinate.
    pub fn distance_for(std_dev: f64, dim: usize, cost: Cost) -> Result<f64> {
        // A scale of at most 3dim/ε, resp. 3√dim/√(2ρ), steps, rounded up to a whole one; a step is at most τ/√dim. A discrete Laplace
        // law has less variance than twice its squared scale.
        let root = (dim as f64).sqrt();
        Ok(match cost {
            Cost::Epsilon(epsilon) => std_dev / (std::f64::consts::SQRT_2 * (3.0 * root / epsilon + 1.0 / root)),
            cost => std_dev / (3.0 / (2.0 * rho(cost)?).sqrt() + 1.0 / root),
        })
    }

    getters! { self =>
        /// Part of the release that is sealed.
        pub part: Part = self.part;
        /// τ, the greatest distance of computed to ideal values.
        pub distance: f64 = self.distance;
        /// The lattice step g.
        pub lattice: f64 = self.lattice;
        /// Length of the vectors.
        pub dim: usize = self.dim;
        /// The integer noise.
        pub(crate) noise: &LatticeNoise = &self.noise;
        /// Scale of the noise, in lattice steps.
        pub scale: u64 = self.scale;
        /// Cost of the seal.
        pub cost: Cost = self.cost;
    }

    /// The family of the noise.
    pub fn family(&self) -> Family {
        match self.noise {
            LatticeNoise::Laplace(_) => Family::DiscreteLaplace,
            LatticeNoise::Gaussian(_) => Family::DiscreteGaussian,
        }
    }

    /// Standard deviation of the noise in one coordinate, rounded up.
    pub fn std_dev(&self) -> f64 {
        let scale = self.scale as f64 * self.lattice * MARGIN;
        match self.noise {
            LatticeNoise::Laplace(_) => std::f64::consts::SQRT_2 * scale,
            LatticeNoise::Gaussian(_) => scale,
        }
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
        rule: "large enough for exact integer noise (a thousandth of the whole budget is divided among the seals)",
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
