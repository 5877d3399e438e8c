//! Costs of the steps of a release.

use super::{Budget, Calibration, approx_to_zcdp};

/// The part of a budget that one step spends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// Pure ε.
    Epsilon(f64),
    /// ρ of zCDP.
    Rho(f64),
    /// `(sensitivity/σ)²` of a Gaussian under (ε, δ).
    MuSquared(f64),
    /// (ε, δ) of its own, which add up.
    EpsilonDelta {
        /// ε.
        epsilon: f64,
        /// δ, in the proportion of ε.
        delta: f64,
    },
}

impl Cost {
    /// A whole budget as a cost.
    pub fn of(budget: Budget) -> Self {
        match budget {
            Budget::Pure { epsilon } => Self::Epsilon(epsilon),
            Budget::Zcdp { rho } => Self::Rho(rho),
            Budget::Approx { epsilon, delta } => Self::EpsilonDelta { epsilon, delta },
        }
    }

    /// The unit of the number in records: `"epsilon"`, `"rho"` or `"mu_squared"`.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Epsilon(_) | Self::EpsilonDelta { .. } => "epsilon",
            Self::Rho(_) => "rho",
            Self::MuSquared(_) => "mu_squared",
        }
    }

    /// The number, whatever its unit; ε where there are two.
    pub fn value(self) -> f64 {
        match self {
            Self::Epsilon(v) | Self::Rho(v) | Self::MuSquared(v) => v,
            Self::EpsilonDelta { epsilon, .. } => epsilon,
        }
    }

    /// Sensitivity over standard deviation that a Gaussian of this cost may have; 0 for pure DP, which has none.
    pub fn mu(self) -> f64 {
        let of_rho = |rho: f64| (2.0 * rho).sqrt();
        match self {
            // Bun & Steinke 2016, Proposition 1.6: ρ = μ²/2.
            Self::Rho(rho) => of_rho(rho),
            Self::MuSquared(mu2) => mu2.sqrt(),
            Self::Epsilon(_) => 0.0,
            Self::EpsilonDelta { epsilon, delta } => {
                approx_to_zcdp(epsilon, delta, Calibration::Paper).map_or(0.0, of_rho)
            }
        }
    }

    /// The same unit with another number; a δ keeps its proportion.
    pub fn with(self, value: f64) -> Self {
        match self {
            Self::Epsilon(_) => Self::Epsilon(value),
            Self::Rho(_) => Self::Rho(value),
            Self::MuSquared(_) => Self::MuSquared(value),
            Self::EpsilonDelta { epsilon, delta } => Self::EpsilonDelta {
                epsilon: value,
                // Down, so that shares never add up to more.
                delta: delta * (value / epsilon) * (1.0 - 4.0 * f64::EPSILON),
            },
        }
    }
}
