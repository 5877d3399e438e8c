//! Confidence intervals from released values only: no data, no budget.
//!
//! [`ErrorLaw`] turns the released matrices into the two parts of an error, its sampling variance and the multiplier of the
//! noise; [`half_widths`], [`tails`] and [`monte_carlo()`] turn those into intervals and p-values.
//!
//! The matrices are taken as they are, or with the noise in them counted (`noise_aware`): the spectrum is estimated, and releases are
//! simulated from a few draws that all fits share (`matrix_draws`). For losses that are not a likelihood, and for persons and weights, where
//! the noise can hide the curvature, a posterior around the covariance of the gradients takes their place (`little_curvature`). What noise
//! can hide of a rare column is counted in part (`rare_columns`). Noise in
//! the shape of blocks is not a normal mixture: `shaped` has the quantiles of each contrast from its exact cumulants, through a fitted table
//! (`benches/shaped_quantiles.py` makes it). `monte_carlo` shares its draws among the contrasts and keeps only those that can be
//! extreme for one of them. `newton_step` takes a target off its ridge; `last_step` is for fits by several Newton steps.

mod curvature_prior;
mod directions;
mod error_law;
mod exact;
mod last_step;
mod level_law;
mod little_curvature;
mod matrix_draws;
mod mixture;
mod moment_regression;
mod monte_carlo;
mod newton_step;
mod noise_aware;
mod rare_columns;
mod shaped;
mod spectrum;
mod spread;

pub use error_law::ErrorLaw;
pub use exact::{half_width, half_widths, tail, tails};
pub use last_step::{
    CovarianceSize, EXPECTED, EXPECTED_OF_COUNTS, LastStep, SEEN_CURVATURE, StepLoss, StepNoise, Steps, Unfinished,
};
pub use matrix_draws::MatrixDraws;
pub use moment_regression::{MomentEquations, MomentRegression, Start, moment_regression};
pub use monte_carlo::monte_carlo;
pub use newton_step::{NewtonStep, Obstacle, Regularised};
pub use noise_aware::NoisyMatrices;
pub use rare_columns::Gradients;
pub use spread::ErrorShape;

use crate::Result;
use crate::error::{check, check_length};

/// Refuses a confidence level outside the open unit interval.
fn check_level(level: f64) -> Result<()> {
    check(level > 0.0 && level < 1.0, "level", "> 0 and < 1", level)
}

/// Refuses an argument that does not pair with the variances `v`.
fn check_lengths(name: &'static str, v: &[f64], argument: &[f64]) -> Result<()> {
    check_length(name, v.len(), argument.len())?;
    Ok(())
}
