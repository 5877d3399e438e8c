//! The refinement of one regression from a moment matrix: the levels of its residuals, and a gradient with the cap that they call for.

use super::moment_matrix::Place;
use super::seal::{Sealed, Values};
use crate::Result;
use crate::exec::Executor;
use crate::noise::{Law, NoiseGenerator};
use crate::records::{Records, Request};
use crate::spec::{GradientNoise, LevelCap, LevelNoise, MomentMatrixSpec, ResidualPlan};

/// The released gradient of one regression at the coefficients that the matrix gives.
#[derive(Debug, Clone)]
pub struct ResidualGradient {
    /// The coefficients of `(x, s)` that residuals are the response less; 0 but for regressors.
    pub point: Vec<f64>,
    /// The greatest residual there.
    pub greatest: f64,
    /// The share of the records at each level of it.
    pub levels: Sealed,
    /// Their noise.
    pub level_noise: LevelNoise,
    /// The mean of `(c x, ω c²/cap)`, x the regressors and c the residuals held to the cap.
    pub gradient: Sealed,
    /// The greatest residual that counts.
    pub cap: f64,
    /// ω.
    pub square_weight: f64,
    /// Its noise.
    pub noise: GradientNoise,
}

/// Releases the share of the records at each level of the residuals at coefficients that follow from the released matrix, then
/// `(1/n) Σ (c x, ω c²/cap)`, `c` these residuals held to a cap that follows from the released shares.
///
/// # Privacy
/// Spends what `spec` has for it: given the released matrix, a sum of shares that add up to at most 1 for each record; given these too,
/// a sum of terms of norm at most `cap·√(‖x‖² + ω²)`.
pub(super) fn release_gradient(
    spec: &MomentMatrixSpec,
    plan: &ResidualPlan,
    matrix: &Sealed,
    records: &dyn Records,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<ResidualGradient> {
    let place = Place::of(spec, plan, matrix.values())?;
    let greatest = spec.greatest_residual(plan, place.norm);
    let n = spec.divisor();
    let level_noise = spec.level_noise()?;
    // Slopes of the squared loss are twice the predictions less the targets.
    let request = Request::SlopeLevels {
        params: place.predicted.clone(),
        greatest: 2.0 * greatest,
        targets: plan.with_target(),
    };
    let sums = records.sums(&request, &**spec.loss(), None, exec)?;
    let mut levels: Vec<f64> = sums.slopes.values().map(|sum| sum / n).collect();
    let draw = level_noise.law.sample_bounded(generator)?;
    levels.iter_mut().zip(draw).for_each(|(h, b)| *h += b);
    let levels = level_noise.seal.release(&levels, generator)?;
    let cap = gradient_cap(greatest, levels.values(), &level_noise)?;
    let noise = spec.gradient_noise(plan, cap)?;
    let Place {
        point, predicted, ..
    } = place;
    let request = Request::CappedGradient {
        params: predicted,
        cap: 2.0 * cap,
        targets: plan.with_target(),
    };
    let sums = records.sums(&request, &**spec.loss(), None, exec)?;
    let whole: Vec<f64> = sums.slopes.values().collect();
    let square_weight = spec.square_weight(plan);
    let regressors = plan.regressors.iter().map(|&j| -0.5 * whole[j] / n);
    let squares = 0.25 * whole[spec.n_params()] / n * (square_weight / cap);
    let mut gradient: Vec<f64> = regressors.chain([squares]).collect();
    let draw = noise.law.on(gradient.len())?.sample_bounded(generator)?;
    gradient.iter_mut().zip(draw).for_each(|(g, b)| *g += b);
    let gradient = noise.seal.release(&gradient, generator)?;
    Ok(ResidualGradient {
        point,
        greatest,
        levels,
        level_noise,
        gradient,
        cap,
        square_weight,
        noise,
    })
}

/// Where a gradient would be taken.
#[derive(Debug, Clone)]
pub struct PlannedGradient {
    /// The coefficients.
    pub point: Vec<f64>,
    /// The cap.
    pub cap: f64,
    /// ω.
    pub square_weight: f64,
    /// The noise of the levels.
    pub level_noise: LevelNoise,
    /// The noise of the gradient.
    pub noise: GradientNoise,
}

/// The cap that released levels call for.
fn gradient_cap(greatest: f64, levels: &[f64], noise: &LevelNoise) -> Result<f64> {
    let found = LevelCap::new(levels, noise.step.noise.name(), noise.step.scale)?;
    Ok(greatest * found.cap)
}

/// Where the gradient of a regression would be taken beside this matrix and these levels.
pub(super) fn planned_gradient(
    spec: &MomentMatrixSpec,
    plan: &ResidualPlan,
    matrix: &[f64],
    levels: &[f64],
) -> Result<PlannedGradient> {
    let place = Place::of(spec, plan, matrix)?;
    let level_noise = spec.level_noise()?;
    let greatest = spec.greatest_residual(plan, place.norm);
    let cap = gradient_cap(greatest, levels, &level_noise)?;
    Ok(PlannedGradient {
        point: place.point,
        cap,
        square_weight: spec.square_weight(plan),
        level_noise,
        noise: spec.gradient_noise(plan, cap)?,
    })
}
