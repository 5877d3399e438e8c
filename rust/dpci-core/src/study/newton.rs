//! Replicates of fits by Newton steps: each sample by itself, because released values move its rows in a way of their own.

use super::intervals::Outcome;
use crate::design::Design;
use crate::exec::Executor;
use crate::interval::{ErrorLaw, ErrorShape, LastStep, Steps, half_widths};
use crate::linalg::{Cholesky, vector};
use crate::mechanism::{NewtonRelease, Simulated, Simulating, Values, release_newton};
use crate::moments::{data_moments, second_moments};
use crate::noise::SimulationGenerator;
use crate::objective::{Evaluation, HessianRows, Objective};
use crate::privacy::Perturbation;
use crate::spec::NewtonSpec;
use crate::{Error, Result};

/// Steps to the ordinary coefficients of the full data, at most.
const MAX_STEPS: usize = 200;

/// They end this far from the minimiser, in squared standard errors.
const TOLERANCE: f64 = 1e-16;

/// Curvature over its bound, and risk, that are taken for 0.
const VANISHED: f64 = 1e-7;

/// Parts of a step of Newton's method that are tried.
const PARTS: [f64; 5] = [1.0, 0.5, 0.25, 0.1, 0.01];

/// A fit by Newton steps, with the ordinary coefficients of the full data.
#[derive(Debug)]
pub(super) struct NewtonFits {
    pub(super) spec: NewtonSpec,
    /// Minimiser of the full-data risk, without a ridge.
    pub(super) target: Vec<f64>,
    /// Standard errors that its estimates have without privacy.
    pub(super) std_errors: Vec<f64>,
}

impl NewtonFits {
    /// Solves the full-data problem.
    pub(super) fn new(design: &Design<'static>, spec: &NewtonSpec, exec: &Executor<'_>) -> Result<Self> {
        let target = ordinary_coefficients(design, spec, exec)?;
        let c = spec.choices();
        let (n, dim) = (c.terms.divisor(), spec.n_params());
        let data = data_moments(design, &*c.loss, &target, n, exec)?;
        let law = ErrorLaw::plug_in(&data.curvature, &data.squared_slope, dim, n, Perturbation::Output)?;
        let variances = law.sampling().iter().step_by(dim + 1);
        Ok(Self {
            std_errors: variances.map(|v| v.sqrt()).collect(),
            spec: spec.clone(),
            target,
        })
    }

    /// One fit of a sample; its intervals at a level are NaN where a fit gives none.
    pub(super) fn fit(
        &self,
        sample: &Design<'static>,
        level: Option<f64>,
        generator: &mut SimulationGenerator,
        exec: &Executor<'_>,
    ) -> Result<Outcome> {
        let release = release_newton(&self.spec, sample, exec, &mut Simulating(generator))?;
        let params = release.mapped_params();
        let bounds = match level {
            None => [Vec::new(), Vec::new()],
            Some(level) => bounds(&self.spec, &release, &params, level)?,
        };
        Ok(Outcome { params, bounds })
    }
}

/// Lower and upper bounds of the exact interval of each parameter, by the rules of a fit; NaN where it has none.
pub(super) fn bounds(
    spec: &NewtonSpec,
    release: &NewtonRelease<Simulated>,
    params: &[f64],
    level: f64,
) -> Result<[Vec<f64>; 2]> {
    let dim = params.len();
    let (law, noise) = spec.step_noise(&release.steps, &release.seals, &release.weights)?;
    let step = LastStep::new(Steps {
        map: release.map(),
        round_map: release.round_map.clone(),
        starts: release.starts.clone(),
        weights: release.weights.clone(),
        params: release.params.clone(),
        hessian: release.hessian.values().to_vec(),
        gradient_cov: release.gradient_cov.values().to_vec(),
        edge: release.edge,
        ridge: release.perturbed.as_ref().map_or(0.0, |p| p.l2_strength),
        intercept: spec.choices().intercept,
        greatest_entries: spec.greatest_entries(),
        n_samples: spec.choices().terms.divisor(),
        noise,
        loss: spec.step_loss(),
    })?;
    let mut bounds = [vec![f64::NAN; dim], vec![f64::NAN; dim]];
    if step.unfinished()?.is_some() {
        return Ok(bounds);
    }
    let errors = step.law();
    let shape = ErrorShape::plug_in(law);
    let mut unit = vec![0.0; dim];
    for j in 0..dim {
        unit[j] = 1.0;
        if step.shows(&unit)? {
            let (v, a) = errors.components(&unit)?;
            let width = half_widths(&[v], &[a], &shape, level)?[0];
            bounds[0][j] = params[j] - width;
            bounds[1][j] = params[j] + width;
        }
        unit[j] = 0.0;
    }
    Ok(bounds)
}

/// The minimiser of the full-data risk without a ridge.
fn ordinary_coefficients(design: &Design<'static>, spec: &NewtonSpec, exec: &Executor<'_>) -> Result<Vec<f64>> {
    const NAME: &str = "the full-data Hessian";
    let c = spec.choices();
    let (n, dim) = (c.terms.divisor(), spec.n_params());
    let risk = Objective::new(design, &*c.loss, 0.0, n, exec);
    let mut most = second_moments(design, exec)?.gram;
    vector::scale(&mut most, c.loss.curvature_bound() / n);
    let trace = |matrix: &[f64]| matrix.iter().step_by(dim + 1).sum::<f64>();
    let mut params = vec![0.0; dim];
    let mut here = risk.evaluate(&params, HessianRows::All)?;
    for _ in 0..MAX_STEPS {
        let after = |step: &[f64], part: f64| -> Result<(Vec<f64>, Evaluation)> {
            let pairs = params.iter().zip(step);
            let point: Vec<f64> = pairs.map(|(p, s)| p - part * s).collect();
            let there = risk.evaluate(&point, HessianRows::All)?;
            Ok((point, there))
        };
        let hessian = here.hessian.as_deref().unwrap_or_default();
        if !(trace(hessian) > VANISHED * trace(&most)) && here.value < VANISHED {
            // Classes that can be separated: the risk falls to 0 without end.
            break;
        }
        let mut next = None;
        if let Ok(factor) = Cholesky::new(hessian, dim, NAME) {
            let step = factor.solve(&here.gradient);
            let decrement = vector::dot(&step, &here.gradient);
            if decrement * n <= TOLERANCE {
                return Ok(params);
            }
            for part in PARTS {
                let (point, there) = after(&step, part)?;
                // Values tell no more of the last steps, which are whole.
                let falls = there.value <= here.value - 0.25 * part * decrement;
                if falls || decrement * n <= 1e-4 {
                    next = Some((point, there));
                    break;
                }
            }
        }
        (params, here) = if let Some(next) = next {
            next
        } else {
            // Where the risk hardly curves: divided by the greatest curvature, a step always leads downwards.
            let step = Cholesky::new(&most, dim, NAME)?.solve(&here.gradient);
            after(&step, 1.0)?
        };
    }
    Err(no_coefficients())
}

fn no_coefficients() -> Error {
    Error::Unsupported(format!(
        "a study of mechanism=\"newton\" requires data that have ordinary coefficients, got none in {MAX_STEPS} steps (the classes may be \
         separable; l2_strength gives others)"
    ))
}
