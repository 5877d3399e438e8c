//! The noise of released second moments: its calibration, its size with the seal, and what must vary more than it.

use crate::Result;
use crate::noise::MatrixLaw;
use crate::privacy::{Calibration, Cost, DataBounds};
use crate::spec::MatrixNoise;
use crate::spec::step::check_scale;

/// Every direction of the regressors must vary this many times more than the noise reaches.
const CLEAR: f64 = 2.0;

/// Standard deviation of an isometric coordinate of a released matrix: of its noise, and of its seal, whose noise is in the entries, where
/// those off the diagonal count √2 times.
pub fn sealed_std_dev(law: MatrixLaw, dim: usize, seal: f64) -> f64 {
    law.isometric_std_dev(dim).hypot(std::f64::consts::SQRT_2 * seal)
}

/// Above this the least eigenvalue of the second moments of so many regressors must be: the norm of their noise, of this standard deviation
/// in each isometric coordinate, is near `std_dev √(2k)`.
pub fn clear_of_noise(std_dev: f64, n_regressors: usize) -> f64 {
    CLEAR * std_dev * (2.0 * n_regressors as f64).sqrt()
}

/// Noise on a mean of terms `w zzᵀ`, `0 ≤ w ≤ sup`.
pub(in crate::spec) fn matrix_noise(bounds: &DataBounds, sup: f64, cost: Cost) -> Result<MatrixNoise> {
    let noise = match cost {
        Cost::Epsilon(epsilon) => MatrixNoise::laplace(bounds.nuclear(sup), epsilon)?,
        _ => MatrixNoise::gaussian(bounds.frobenius(sup, Calibration::Tight), cost)?,
    };
    check_scale(noise.law.scale().is_normal(), cost)?;
    Ok(noise)
}
