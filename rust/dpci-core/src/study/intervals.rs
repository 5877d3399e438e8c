//! From a replicate's data sums to the bounds of its intervals, by the functions that a fit uses.

use crate::interval::{Sandwich, half_widths};
use crate::mechanism::{
    Fit, Simulated, Simulating, Values, project_release, release_from_coefficients,
};
use crate::moments::DataMoments;
use crate::noise::SimulationGenerator;
use crate::spec::Spec;
use crate::{Error, Result};

/// What a replicate leaves behind: parameters, and the bounds of its intervals where they were asked for.
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
    generator: &mut SimulationGenerator,
) -> Result<Outcome> {
    let gate = &mut Simulating(generator);
    let release = release_from_coefficients(spec, params, |_| Ok(data), gate)?;
    let fit = project_release(spec, &release)?;
    let bounds = bounds(spec, &fit, level)?;
    Ok(Outcome {
        params: fit.params.into_values(),
        bounds,
    })
}

/// Lower and upper bounds of the exact interval of each parameter.
pub(super) fn bounds(spec: &Spec, fit: &Fit<Simulated>, level: f64) -> Result<[Vec<f64>; 2]> {
    let [hessian, gradient_cov] = fit.matrices.as_ref().ok_or_else(no_moments)?;
    let dim = spec.n_params();
    let choices = spec.choices();
    let sandwich = Sandwich::new(
        hessian,
        gradient_cov,
        dim,
        choices.n_samples as f64,
        choices.perturbation,
    )?;
    let mut unit = vec![0.0; dim];
    let mut parts = Vec::with_capacity(dim);
    for j in 0..dim {
        unit[j] = 1.0;
        parts.push(sandwich.components(&unit)?);
        unit[j] = 0.0;
    }
    let (v, a): (Vec<f64>, Vec<f64>) = parts.into_iter().unzip();
    let widths = half_widths(&v, &a, &spec.law(), level)?;
    let params = fit.params.values();
    let lower = params.iter().zip(&widths).map(|(p, w)| p - w).collect();
    let upper = params.iter().zip(&widths).map(|(p, w)| p + w).collect();
    Ok([lower, upper])
}

fn no_moments() -> Error {
    Error::Unsupported("intervals need released moments, got moments=\"none\"".into())
}
