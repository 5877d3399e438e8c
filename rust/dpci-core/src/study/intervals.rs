//! From a replicate's data sums to the bounds of its intervals, by the functions that a fit uses.

use crate::interval::{ErrorLaw, ErrorShape, Gradients, MatrixDraws, NoisyMatrices, half_widths};
use crate::mechanism::{Fit, Simulated, Simulating, Values, project_release, release_from_coefficients};
use crate::moments::DataMoments;
use crate::noise::SimulationGenerator;
use crate::spec::{Projection, Spec};
use crate::{Error, Result};

/// Outcome of a replicate: parameters, and the bounds of its intervals where they were asked for.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Released parameters.
    pub params: Vec<f64>,
    /// Lower and upper bounds; empty without a level.
    pub bounds: [Vec<f64>; 2],
}

/// Releases the moments and forms the intervals of one replicate.
pub(super) fn intervals(
    spec: &Spec,
    params: Simulated,
    data: DataMoments,
    level: f64,
    draws: Option<&MatrixDraws>,
    generator: &mut SimulationGenerator,
) -> Result<Outcome> {
    let gate = &mut Simulating(generator);
    let release = release_from_coefficients(spec, params, |_| Ok(data), gate)?;
    let fit = project_release(spec, &release)?;
    let bounds = bounds(spec, &fit, level, draws)?;
    Ok(Outcome {
        params: fit.params.into_values(),
        bounds,
    })
}

/// The draws that the intervals of a configuration simulate releases with; `None` where they take the matrices as they are.
pub(super) fn matrix_draws(spec: &Spec) -> Result<Option<MatrixDraws>> {
    if spec.choices().projection.decided() != Projection::NoiseAware {
        return Ok(None);
    }
    // The margins decide the scale of the noise, not its law.
    let noise = spec.moment_noise(1.0)?;
    noise
        .map(|noise| {
            let hessian = noise.hessian.map(|noise| noise.law);
            MatrixDraws::new(spec.n_params(), hessian, noise.gradient_cov.law)
        })
        .transpose()
}

/// The law of the error of a fit, from its released values.
fn error_law(spec: &Spec, fit: &Fit<Simulated>, draws: Option<&MatrixDraws>) -> Result<ErrorLaw> {
    let [hessian, gradient_cov] = fit.matrices.as_ref().ok_or_else(no_moments)?;
    let choices = spec.choices();
    let n_samples = choices.terms.divisor();
    match (draws, &fit.matrix_noise) {
        (Some(draws), Some(noise)) => {
            let gradients = Gradients {
                params: fit.params.values(),
                slope_bound: spec.slope_bound(),
                curvature_bound: spec.curvature_bound(),
                rows: &choices.rows,
                intercept: choices.intercept,
            };
            let matrices = NoisyMatrices {
                hessian,
                gradient_cov,
                hessian_noise: noise.hessian.map(|noise| noise.law),
                gradient_cov_noise: noise.gradient_cov.law,
                l2_strength: spec.l2_strength(),
                strong_convexity: spec.strong_convexity(),
                n_samples,
                perturbation: choices.perturbation,
                law: spec.law().clone(),
                is_likelihood: choices.is_likelihood(),
                may_be_flat: choices.loss.may_be_flat(),
                gradients: (choices.loss.n_predictors() == 1).then_some(gradients),
                levels: noise.levels.as_ref(),
            };
            ErrorLaw::noise_aware(&matrices, draws)
        }
        (Some(_), None) => Err(no_moments()),
        (None, _) => ErrorLaw::plug_in(hessian, gradient_cov, spec.n_params(), n_samples, choices.perturbation),
    }
}

/// Lower and upper bounds of the exact interval of each parameter.
pub(super) fn bounds(
    spec: &Spec,
    fit: &Fit<Simulated>,
    level: f64,
    draws: Option<&MatrixDraws>,
) -> Result<[Vec<f64>; 2]> {
    let dim = spec.n_params();
    let law = error_law(spec, fit, draws)?;
    let mut unit = vec![0.0; dim];
    let (mut v, mut a) = (Vec::with_capacity(dim), Vec::with_capacity(dim));
    for j in 0..dim {
        unit[j] = 1.0;
        let (variance, multipliers) = law.multipliers(&unit, spec.law())?;
        v.push(variance);
        a.extend(multipliers);
        unit[j] = 0.0;
    }
    let shape = ErrorShape {
        law: spec.law().clone(),
        matrices: law.shape(),
    };
    let widths = half_widths(&v, &a, &shape, level)?;
    let params = fit.params.values();
    let lower = params.iter().zip(&widths).map(|(p, w)| p - w).collect();
    let upper = params.iter().zip(&widths).map(|(p, w)| p + w).collect();
    Ok([lower, upper])
}

fn no_moments() -> Error {
    Error::Unsupported("intervals require released moments, got moments=\"none\" (pass moments=\"joint\")".into())
}
