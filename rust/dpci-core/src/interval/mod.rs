//! Confidence intervals from released values only: no data, no budget.
//!
//! [`ErrorLaw`] turns the released matrices into the two parts of an error, its sampling variance and the multiplier of the
//! noise; [`half_widths`], [`tails`] and [`monte_carlo()`] turn those into intervals and p-values.

mod curvature_prior;
mod directions;
mod error_law;
mod exact;
mod little_curvature;
mod matrix_draws;
mod mixture;
mod moment_regression;
mod monte_carlo;
mod newton_step;
mod noise_aware;
mod shaped;
mod spectrum;
mod spread;

pub use error_law::ErrorLaw;
pub use exact::{half_width, half_widths, tail, tails};
pub use matrix_draws::MatrixDraws;
pub use moment_regression::{MomentEquations, MomentRegression, Start, moment_regression};
pub use monte_carlo::monte_carlo;
pub use newton_step::{NewtonStep, Obstacle, Regularised};
pub use noise_aware::NoisyMatrices;
pub use spread::ErrorShape;

use crate::{Error, Result};

/// Refuses a confidence level outside the open unit interval.
fn check_level(level: f64) -> Result<()> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::OutOfRange {
            name: "level",
            rule: "> 0 and < 1",
            value: level,
        });
    }
    Ok(())
}

/// Refuses an argument that does not pair with the variances `v`.
fn check_lengths(name: &'static str, v: &[f64], argument: &[f64]) -> Result<()> {
    if v.len() != argument.len() {
        return Err(Error::Length {
            name,
            expected: v.len(),
            got: argument.len(),
        });
    }
    Ok(())
}
