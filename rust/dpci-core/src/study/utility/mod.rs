//! How the utility of a private model moves with its budget, at one fixed draw of the noise. Never private.
//!
//! Li, Liu, Li, Wang & Liu, "Towards Practical Differential Privacy in Data Analysis: Understanding the Effect of Epsilon on
//! Utility in Private ERM", with the corrections of docs/utility.md. The minimiser at a budget ε with the noise `s(ε)u` solves
//! `∇J(θ) + s(ε)u/n = 0`; from a measured one ([`Anchor`]) others follow by Newton steps (`newton`), and the mean over `u` by a
//! Gaussian smoothing at the minimiser without noise ([`Center`]).

mod center;
mod metric;
mod newton;
mod passes;
mod smoothing;

pub use center::{Center, Smoothed};
pub use metric::Metric;

use std::ops::Range;
use std::sync::Arc;

use crate::design::Design;
use crate::erm::minimize_risk;
use crate::error::{check, check_length};
use crate::exec::Executor;
use crate::linalg::{Cholesky, add_diagonal, check_matrix_dim, vector};
use crate::loss::Loss;
use crate::mechanism::check_design;
use crate::noise::{Law, SimulationGenerator};
use crate::objective::Objective;
use crate::privacy::Perturbation;
use crate::solver::{Method, Options};
use crate::spec::Spec;
use crate::{Error, Result};

/// Iterations after which a solver gives up.
const MAX_ITERATIONS: usize = 2000;

/// A data set with the loss that is fitted to it.
#[derive(Debug)]
pub struct Utility {
    design: Design<'static>,
    loss: Arc<dyn Loss>,
    /// The public number that divides the noise and the sum of the losses: `n`, or the total of weights over their bound.
    n_samples: f64,
    /// Total count of the rows; means of metrics are over it.
    total: f64,
    perturbation: Perturbation,
    /// Certificate of the minimiser without noise.
    tolerance: f64,
}

/// How much noise a budget means, and the regularisation that goes with it.
#[derive(Debug, Clone, Copy)]
struct Level {
    scale: f64,
    l2_strength: f64,
}

impl Level {
    fn of(spec: &Spec) -> Self {
        Self {
            scale: spec.law().scale(),
            l2_strength: spec.choices().l2_strength,
        }
    }
}

/// The measuring point: parameters at one budget and one draw of the noise, with what predictions start from.
#[derive(Debug)]
pub struct Anchor {
    params: Vec<f64>,
    /// The draw at scale 1.
    noise: Vec<f64>,
    level: Level,
    /// Model of the objective; `None` for output perturbation, where the noise is added to a minimiser that does not move.
    model: Option<Model>,
}

/// The data's part of the objective at the measuring point, to second order.
#[derive(Debug)]
struct Model {
    gradient: Vec<f64>,
    hessian: Vec<f64>,
    /// Gradient of the perturbed objective there: zero at a minimiser. It is taken off everywhere, so that parameters that
    /// are no minimiser become that of a convex model around them (section 5.1 of the paper).
    residual: Vec<f64>,
}

impl Utility {
    /// Takes the rows over.
    pub fn new(design: &Design<'_>, spec: &Spec) -> Result<Self> {
        check_design(spec, design)?;
        check_matrix_dim(spec.n_params())?;
        let total = design
            .shares()
            .map_or(design.n_records() as f64, |shares| shares.iter().sum());
        check(total > 0.0, "the sum of weights", "> 0", total)?;
        Ok(Self {
            design: design.owned(),
            loss: Arc::clone(&spec.choices().loss),
            n_samples: spec.choices().terms.divisor(),
            total,
            perturbation: spec.choices().perturbation,
            tolerance: spec.study_tolerance(),
        })
    }

    /// Number of parameters, the intercept included.
    pub fn n_params(&self) -> usize {
        self.design.n_params()
    }

    /// Total count of the rows: their number, that of the persons, or the sum of the weights over their bound.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// How much each row of a range counts; `None`: one each. Rows with shares are never merged.
    fn counts<'b>(&'b self, range: &Range<usize>, buffer: &'b mut [f64]) -> Option<&'b [f64]> {
        if let Some(shares) = self.design.shares() {
            return Some(&shares[range.clone()]);
        }
        let multiplicities = self.design.multiplicities()?;
        Some(vector::load(&multiplicities[range.clone()], buffer))
    }

    /// A draw of the coefficients' noise at scale 1: times the scale it is the noise of a fit with that seed (stream 0).
    pub fn draw_noise(spec: &Spec, seed: u64, stream: u64) -> Result<Vec<f64>> {
        let dim = spec.n_params();
        let unit = spec.law().with_scale(1.0).on(dim)?;
        Ok(unit.sample(&mut SimulationGenerator::new(seed, stream)))
    }

    /// The minimiser of the risk at a λ with a linear term, certified to within a tolerance.
    fn minimize(
        &self,
        l2_strength: f64,
        linear_term: Option<&[f64]>,
        start: Option<&[f64]>,
        tolerance: f64,
        exec: &Executor<'_>,
    ) -> Result<Vec<f64>> {
        let (design, n) = (&self.design, self.n_samples);
        let objective = Objective {
            linear_term,
            ..Objective::new(design, &*self.loss, l2_strength, n, exec)
        };
        let options = Options {
            method: Method::Auto,
            tolerance,
            max_iterations: MAX_ITERATIONS,
            radius: None,
        };
        Ok(minimize_risk(&objective, start, &options)?.params)
    }

    /// The measuring point at the spec's budget: the private parameters at this draw of the noise, or `params` in their place.
    pub fn anchor(
        &self,
        spec: &Spec,
        noise: Vec<f64>,
        params: Option<&[f64]>,
        start: Option<&[f64]>,
        exec: &Executor<'_>,
    ) -> Result<Anchor> {
        let level = Level::of(spec);
        check_length("noise", self.n_params(), noise.len())?;
        if let Some(params) = params {
            check_length("params", self.n_params(), params.len())?;
        }
        let given = params.map(<[f64]>::to_vec);
        if self.perturbation == Perturbation::Output {
            let params = if let Some(params) = given {
                params
            } else {
                let center = self.minimize(level.l2_strength, None, start, spec.study_tolerance(), exec)?;
                let shift = noise.iter().map(|u| level.scale * u);
                center.iter().zip(shift).map(|(c, b)| c + b).collect()
            };
            return Ok(Anchor {
                params,
                noise,
                level,
                model: None,
            });
        }
        let params = if let Some(params) = given {
            params
        } else {
            let linear: Vec<f64> = noise.iter().map(|u| level.scale * u / self.n_samples).collect();
            let (linear, tolerance) = (Some(&linear[..]), spec.study_tolerance());
            self.minimize(level.l2_strength, linear, start, tolerance, exec)?
        };
        let (gradient, hessian) = self.risk_derivatives(&params, exec)?;
        let mut anchor = Anchor {
            params,
            noise,
            level,
            model: None,
        };
        let residual = self.perturbed_gradient(&anchor, level, &anchor.params, &gradient);
        anchor.model = Some(Model {
            gradient,
            hessian,
            residual,
        });
        Ok(anchor)
    }

    /// `dθ/dε` at the measuring point, given the derivatives of the noise scale and of λ:
    /// `-K⁻¹(s'u/n + λ'θ)` for objective perturbation, `s'u` for output perturbation.
    pub fn derivative(&self, anchor: &Anchor, scale_slope: f64, l2_slope: f64) -> Result<Vec<f64>> {
        let Some(model) = &anchor.model else {
            return Ok(anchor.noise.iter().map(|u| scale_slope * u).collect());
        };
        let factor = model.factor(anchor.level.l2_strength, self.n_params())?;
        let moved = anchor.noise.iter().zip(&anchor.params);
        let mut derivative: Vec<f64> = moved
            .map(|(u, t)| -(scale_slope * u / self.n_samples + l2_slope * t))
            .collect();
        factor.solve_in_place(&mut derivative);
        Ok(derivative)
    }

    /// Gradient of the objective perturbed by the anchor's noise at another level, from that of the data's part; the residual
    /// is not yet taken off.
    fn perturbed_gradient(&self, anchor: &Anchor, level: Level, params: &[f64], gradient: &[f64]) -> Vec<f64> {
        let own = |j: usize| {
            let noise = level.scale * anchor.noise[j] / self.n_samples;
            gradient[j] + level.l2_strength * params[j] + noise
        };
        (0..params.len()).map(own).collect()
    }
}

impl Anchor {
    /// The parameters.
    pub fn params(&self) -> &[f64] {
        &self.params
    }
}

impl Model {
    /// Factor of the Hessian at a λ.
    fn factor(&self, l2_strength: f64, dim: usize) -> Result<Cholesky> {
        let mut hessian = self.hessian.clone();
        add_diagonal(&mut hessian, dim, l2_strength);
        Cholesky::new(&hessian, dim, "the Hessian at the measuring point")
    }
}

/// Refuses values that a prediction must not start from.
fn check_finite(name: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().find(|v| !v.is_finite()) {
        Some(value) => Err(Error::OutOfRange {
            name,
            rule: "finite",
            value: *value,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
