//! Privacy: budgets and their conversions, sensitivities, and the noise that a budget buys. Numbers only, no data.
//!
//! Everything here errs on the side of more noise: costs and sensitivities are rounded up, budgets and rates down.

mod bounded_range;
mod budget;
mod calibration;
mod cms11;
mod conversion;
mod corners;
mod cost;
mod derivative;
mod epsilon;
mod gaussian;
mod objective_profile;
mod perturbation;
mod polynomial;
pub(crate) mod reach;
mod rounding;
mod run_count;
mod sensitivity;

pub use bounded_range::BoundedRange;
pub use budget::{Budget, Calibration, Neighbors, SEAL_SHARE, Split, unsealed};
pub use calibration::{gaussian_std_dev, laplace_rate, least_l2_strength, objective_rate};
pub use cms11::{cms11_l2_strength, cms11_raised, cms11_rate};
pub use conversion::{
    approx_to_zcdp, pure_rdp, pure_to_zcdp, zcdp_to_approx_delta, zcdp_to_approx_epsilon, zcdp_to_pure,
};
pub use corners::Slopes;
pub use cost::Cost;
pub use derivative::{approx_to_zcdp_paper_slope, gaussian_mu_slope, paper_objective_log_slope, zcdp_to_pure_slope};
pub use epsilon::{EpsilonTable, gaussian_epsilon};
pub use gaussian::{gaussian_delta, gaussian_mu};
pub use objective_profile::{ObjectiveProfile, paper_least_l2_strength, paper_objective_std_dev};
pub use perturbation::Perturbation;
pub use polynomial::Polynomial;
pub(crate) use rounding::least_where;
pub use run_count::{RunCount, exponential_epsilon, pure_epsilon};
pub use sensitivity::DataBounds;

use crate::Result;
use crate::error::{check, check_non_negative, check_positive};

/// Refuses a delta outside the open unit interval.
fn check_delta(delta: f64) -> Result<()> {
    check(delta > 0.0 && delta < 1.0, "delta", "> 0 and < 1", delta)
}

#[cfg(test)]
mod tests;
