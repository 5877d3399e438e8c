//! How the noise of the coefficients changes with the budget: the derivative of its scale, for studies of utility.

use super::shares::{marginal_share, shares};
use super::{Moments, Spec};
use crate::noise::NoiseLaw;
use crate::privacy::{self, Budget, Calibration, Perturbation, SEAL_SHARE};

impl Spec {
    /// Share of the coefficients in the budget.
    pub fn coefficient_share(&self) -> f64 {
        let c = &self.choices;
        if c.moments == Moments::None {
            1.0 - c.reserve
        } else {
            shares(c).coefficients
        }
    }

    /// Derivative of the scale of the coefficients' noise in the first number of the budget (ε, or ρ), with δ and λ fixed.
    pub fn scale_slope(&self) -> f64 {
        // The noise gets what the seal leaves.
        (1.0 - SEAL_SHARE) * self.unsealed_scale_slope()
    }

    /// The same in the budget without the share of the seal.
    fn unsealed_scale_slope(&self) -> f64 {
        let c = &self.choices;
        let share = if c.moments == Moments::None {
            1.0 - c.reserve
        } else {
            marginal_share(c)
        };
        let (scale, cost) = (self.law.scale(), self.coefficients.cost.value());
        // Of ln ε₁ or ln σ in that number, ε₁ the pure budget of the coefficients.
        match (c.budget, &self.law) {
            (Budget::Approx { epsilon, delta }, _) => scale * self.approx_log_slope(epsilon, delta),
            (_, NoiseLaw::Gaussian { .. } | NoiseLaw::ShapedGaussian { .. }) => -scale * share / (2.0 * cost),
            (budget, NoiseLaw::SphericalLaplace { .. } | NoiseLaw::ShapedLaplace { .. }) => {
                let (epsilon, slope) = match budget {
                    Budget::Zcdp { .. } => {
                        let epsilon = privacy::zcdp_to_pure(cost, c.calibration).unwrap_or(f64::NAN);
                        let slope = privacy::zcdp_to_pure_slope(epsilon, c.calibration);
                        (epsilon, share * slope)
                    }
                    _ => (cost, share),
                };
                match c.perturbation {
                    Perturbation::Output => -scale * slope / epsilon,
                    // The scale is the shift over what the log-determinant leaves of ε₁.
                    Perturbation::Objective => -scale * scale / self.coefficients.sensitivity * slope,
                }
            }
        }
    }

    /// Derivative of ln σ in ε under an (ε, δ) budget.
    fn approx_log_slope(&self, epsilon: f64, delta: f64) -> f64 {
        let share = self.coefficient_share();
        let cost = self.coefficients.cost.value();
        match (self.choices.calibration, self.objective_profile()) {
            (Calibration::Tight, Some(profile)) => {
                let total = cost / share;
                -profile.mu_slope(epsilon, total, share) / total.sqrt()
            }
            (Calibration::Tight, None) => {
                let mu = (cost / share).sqrt();
                -privacy::gaussian_mu_slope(epsilon, mu) / mu
            }
            (Calibration::Paper, Some(_)) => share * privacy::paper_objective_log_slope(share * epsilon, share * delta),
            (Calibration::Paper, None) => {
                let slope = privacy::approx_to_zcdp_paper_slope(epsilon, delta);
                -share * slope / (2.0 * cost)
            }
        }
    }
}
