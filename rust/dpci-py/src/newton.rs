//! A fit by Newton steps with noisy gradients, on rows made round.

use std::sync::Arc;

use dpci_core::Result;
use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::interval;
use dpci_core::mechanism as core;
use dpci_core::spec;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use crate::cost::{Budget, Seal, Step, seals, steps};
use crate::errors::to_python;
use crate::intervals::ErrorLaw;
use crate::loss::Loss;
use crate::parts::{Read, Rules};
use crate::records::with_noise;
use crate::release::Kind;
use crate::rows::Rows;
use crate::terms::Terms;
use crate::values::{Floats, Matrix, Table, Vector};

/// Validated public choices of a fit by Newton steps; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct NewtonSpec {
    pub(crate) inner: spec::NewtonSpec,
    #[pyo3(get)]
    slope_bound: f64,
    /// Norm that no gradient of a record at 0 exceeds.
    #[pyo3(get)]
    gradient_at_0: f64,
    #[pyo3(get)]
    curvature_bound: f64,
    /// Radii to release, and points with bounds of their own.
    #[pyo3(get)]
    counts: (usize, usize),
    /// The target has no ridge.
    #[pyo3(get)]
    l2_strength: f64,
}

/// The attributes of released steps that decide where the last one ends.
#[derive(FromPyObject)]
struct Released<'py> {
    map: Table<'py>,
    round_map: Table<'py>,
    radii: Vec<f64>,
    bounds: Bounds,
    starts: Table<'py>,
    weights: Vec<f64>,
    params: Floats<'py>,
    edge: f64,
    ridge: f64,
}

/// Bounds on gradients and Hessians at each point, and the greatest stretch of round rows, as Python has them.
type Bounds = Vec<[f64; 3]>;

fn norm_bounds(bounds: Bounds) -> Vec<spec::NormBounds> {
    let of = |[gradient, hessian, stretch]: [f64; 3]| spec::NormBounds {
        gradient,
        hessian,
        stretch,
    };
    bounds.into_iter().map(of).collect()
}

#[pymethods]
impl NewtonSpec {
    #[new]
    #[pyo3(signature = (terms, *, n_columns, intercept, row_norm, loss, budget))]
    fn new(
        terms: &Terms,
        n_columns: usize,
        intercept: Option<f64>,
        row_norm: Rows<'_>,
        loss: &Loss,
        budget: &Budget,
    ) -> PyResult<Self> {
        let inner = spec::NewtonSpec::new(spec::NewtonChoices {
            n_columns,
            intercept,
            rows: row_norm.domain(),
            loss: Arc::clone(&loss.inner),
            budget: budget.inner,
            terms: terms.inner,
        });
        let inner = inner.map_err(to_python)?;
        Ok(Self {
            slope_bound: inner.choices().loss.slope_bound(),
            gradient_at_0: inner.gradient_at_0(),
            curvature_bound: inner.choices().loss.curvature_bound(),
            counts: (inner.rounds() + 1, inner.n_points()),
            l2_strength: 0.0,
            inner,
        })
    }

    /// Steps and seals, where the radii of each round and at last are these, and so at each point are the bounds on gradients and Hessians
    /// and the greatest stretch of round rows.
    fn planned(&self, radii: Vec<f64>, bounds: Bounds) -> PyResult<(Vec<Step>, Vec<Seal>)> {
        let planned = self.inner.planned(&radii, &norm_bounds(bounds));
        let (spent, sealed) = planned.map_err(to_python)?;
        Ok((steps(&spent), seals(&sealed)))
    }

    /// Scale of the noise in the sum of the last gradients, each with its weight; without weights the least.
    #[pyo3(signature = (radii, bounds, weights = None))]
    fn noise_scale(&self, radii: Vec<f64>, bounds: Bounds, weights: Option<Vec<f64>>) -> PyResult<f64> {
        let bounds = norm_bounds(bounds);
        let scale = || -> Result<f64> {
            let (steps, seals) = self.inner.planned(&radii, &bounds)?;
            let weights = match weights {
                Some(weights) => weights,
                None => self.inner.least_noise_weights(bounds[bounds.len() - 1])?,
            };
            Ok(self.inner.step_noise(&steps, &seals, &weights)?.0.scale())
        };
        scale().map_err(to_python)
    }

    /// Below it eigenvalues of a released Hessian are not told from its noise, where the bounds at the last point are these.
    fn edge(&self, bounds: [f64; 3], hessian: Table<'_>) -> PyResult<f64> {
        let at = norm_bounds(vec![bounds]);
        core::last_edge(&self.inner, at[0], hessian.as_slice()?).map_err(to_python)
    }

    /// The last step of a fit with these released values.
    fn last_step(&self, steps: Released<'_>, hessian: Table<'_>, gradient_cov: Table<'_>) -> PyResult<LastStep> {
        let c = self.inner.choices();
        let noise = self.step_noise(&steps.radii, steps.bounds, &steps.weights);
        let starts = steps.starts.as_slice()?;
        let starts = starts.chunks(steps.starts.shape()[1].max(1));
        let released = interval::Steps {
            map: steps.map.as_slice()?.to_vec(),
            round_map: steps.round_map.as_slice()?.to_vec(),
            starts: starts.map(<[f64]>::to_vec).collect(),
            noise: noise.map_err(to_python)?,
            weights: steps.weights,
            params: steps.params.as_slice()?.to_vec(),
            hessian: hessian.as_slice()?.to_vec(),
            gradient_cov: gradient_cov.as_slice()?.to_vec(),
            edge: steps.edge,
            ridge: steps.ridge,
            intercept: c.intercept,
            greatest_entries: self.inner.greatest_entries(),
            n_samples: c.terms.divisor(),
            loss: self.inner.step_loss(),
        };
        let inner = interval::LastStep::new(released).map_err(to_python)?;
        Ok(LastStep { inner })
    }

    /// The ridge whose perturbed minimiser is the start of the last step, under pure DP, where rows weigh less beyond this radius; 0 for
    /// other notions.
    fn ridge(&self, radius: f64) -> PyResult<f64> {
        if !self.inner.is_pure() {
            return Ok(0.0);
        }
        self.inner.ridge(radius).map_err(to_python)
    }

    /// Whether noise hides the rarer class under pure DP, by the predictor that its released share makes.
    fn hides_class(&self, predictor: f64) -> PyResult<bool> {
        self.inner.hides_class(predictor).map_err(to_python)
    }

    #[getter]
    fn divisor(&self) -> f64 {
        self.inner.choices().terms.divisor()
    }
}

/// The last step of a fit by Newton steps; see the core.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct LastStep {
    inner: interval::LastStep,
}

#[pymethods]
impl LastStep {
    /// The law of the errors of the parameters.
    fn law(&self) -> ErrorLaw {
        self.inner.law().into()
    }

    /// The released Hessian, its eigenvalues raised to the edge of its noise.
    #[getter]
    fn raised_hessian(&self) -> Matrix {
        Matrix::square(self.inner.raised_hessian())
    }

    /// Why the step may not end near the target, with the numbers that show it; None if it does.
    fn unfinished(&self) -> PyResult<Option<(&'static str, Vec<f64>)>> {
        let found = self.inner.unfinished().map_err(to_python)?;
        Ok(found.map(|found| (found.name(), found.numbers().to_vec())))
    }

    /// How far the step moves the predictor, times how large that is.
    fn leverage(&self) -> PyResult<f64> {
        self.inner.leverage().map_err(to_python)
    }

    /// By how much the predictor grows in the step.
    fn growth(&self) -> PyResult<f64> {
        self.inner.growth().map_err(to_python)
    }

    /// Whether each contrast is given: the noise does not hide in which direction it lies.
    fn shows(&self, contrasts: Table<'_>) -> PyResult<Vec<bool>> {
        let width = contrasts.shape()[1].max(1);
        let rows = contrasts.as_slice()?.chunks(width);
        let found: Result<Vec<bool>> = rows.map(|row| self.inner.shows(row)).collect();
        found.map_err(to_python)
    }
}

/// A fit by Newton steps as Python reads it.
#[derive(IntoPyObject)]
pub(crate) struct NewtonFit {
    map: Matrix,
    round_map: Matrix,
    radii: Vector,
    bounds: Vec<[f64; 3]>,
    starts: Vec<Vec<f64>>,
    gradients: Vec<Vec<f64>>,
    weights: Vec<f64>,
    noise_scale: f64,
    centre: Vector,
    ridge: f64,
    hessian: Matrix,
    gradient_cov: Matrix,
    moved_params: Vector,
    params: Vector,
    edge: f64,
    steps: Vec<Step>,
    seals: Vec<Seal>,
    private: bool,
}

impl Kind for NewtonSpec {
    type Values = NewtonFit;

    fn rules(&self, on_violation: OnViolation) -> Rules {
        let c = self.inner.choices();
        let (rows, targets) = (c.rows.clone(), c.loss.targets());
        Rules::new(rows, targets, c.intercept, &c.terms, on_violation)
    }

    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<NewtonFit> {
        let spec = &self.inner;
        let found = with_noise!(seed, 0, |g| core::release_newton(
            spec,
            read.records(),
            exec,
            &mut core::Sealing(g)
        ))?;
        let (perturbed, dim) = (found.perturbed.as_ref(), spec.n_params());
        let (law, _) = spec.step_noise(&found.steps, &found.seals, &found.weights)?;
        let numbers = |at: &spec::NormBounds| [at.gradient, at.hessian, at.stretch];
        Ok(NewtonFit {
            params: Vector(found.mapped_params()),
            map: Matrix::square(found.map()),
            radii: Vector(found.radii),
            bounds: found.bounds.iter().map(numbers).collect(),
            starts: found.starts,
            gradients: found.gradients,
            noise_scale: law.scale(),
            weights: found.weights,
            centre: Vector(perturbed.map_or_else(|| vec![0.0; dim], |found| found.centre.clone())),
            ridge: perturbed.map_or(0.0, |found| found.l2_strength),
            round_map: Matrix::square(found.round_map),
            hessian: Matrix::square(core::Values::into_values(found.hessian)),
            gradient_cov: Matrix::square(core::Values::into_values(found.gradient_cov)),
            moved_params: Vector(found.params),
            edge: found.edge,
            steps: steps(&found.steps),
            seals: seals(&found.seals),
            private: seed.is_none(),
        })
    }
}

impl NewtonSpec {
    fn step_noise(&self, radii: &[f64], bounds: Bounds, weights: &[f64]) -> Result<interval::StepNoise> {
        let (steps, seals) = self.inner.planned(radii, &norm_bounds(bounds))?;
        Ok(self.inner.step_noise(&steps, &seals, weights)?.1)
    }
}
