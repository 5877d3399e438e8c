//! Linear regression from one moment matrix: its release, and the equations of each regression.

use dpci_core::Result;
use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::interval::{self, MomentEquations};
use dpci_core::mechanism::{self as core, Values};
use dpci_core::spec::{self, LevelCap, MatrixBudget, MomentMatrixChoices, ResidualPlan};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use crate::cost::{Budget, Seal, Step, seals, steps};
use crate::errors::{InvalidInput, to_python};
use crate::parts::{Read, Rules};
use crate::records::with_noise;
use crate::release::Kind;
use crate::rows::Rows;
use crate::terms::Terms;
use crate::values::{Floats, Matrix, Table, Vector};

/// Validated public choices of a moment matrix; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct MomentMatrixSpec {
    pub(crate) inner: spec::MomentMatrixSpec,
    /// The constant behind each row.
    #[pyo3(get)]
    intercept: f64,
    /// By which the columns of a row are multiplied: 1 but for further targets.
    #[pyo3(get)]
    weights: Vector,
    /// By which targets are multiplied.
    #[pyo3(get)]
    target_weight: f64,
    /// Standard deviation of an isometric coordinate of the noise in the matrix, the seal's included.
    #[pyo3(get)]
    noise_std_dev: f64,
}

/// A release of a matrix before data are seen.
#[derive(IntoPyObject)]
struct Planned {
    steps: Vec<Step>,
    seals: Vec<Seal>,
    points: Vec<Vector>,
    refined: Vec<(Vector, f64, f64)>,
}

#[pymethods]
impl MomentMatrixSpec {
    #[new]
    #[pyo3(signature = (terms, *, n_columns, further_targets = 0, row_norm, target_bound, residuals, residual_share, refined = Vec::new(), refined_share = 0.5, budget = None, mu = None))]
    fn new(
        terms: &Terms,
        n_columns: usize,
        further_targets: usize,
        row_norm: Rows<'_>,
        target_bound: f64,
        residuals: Vec<(Vec<usize>, Vec<f64>, Vec<f64>)>,
        residual_share: f64,
        refined: Vec<(Vec<usize>, Vec<f64>, Vec<f64>)>,
        refined_share: f64,
        budget: Option<&Budget>,
        mu: Option<f64>,
    ) -> PyResult<Self> {
        let budget = match (budget, mu) {
            (Some(budget), None) => MatrixBudget::Of(budget.inner),
            (None, Some(mu)) => MatrixBudget::Gaussian { mu },
            _ => {
                return Err(InvalidInput::new_err(
                    "exactly one of budget and mu must be given, got both or neither",
                ));
            }
        };
        let inner = spec::MomentMatrixSpec::new(MomentMatrixChoices {
            n_columns,
            further_targets,
            rows: row_norm.domain(),
            target_bound,
            residuals: residuals.into_iter().map(plan).collect(),
            residual_share,
            refined: refined.into_iter().map(plan).collect(),
            refined_share,
            budget,
            terms: terms.inner,
        });
        let inner = inner.map_err(to_python)?;
        Ok(Self {
            intercept: inner.intercept(),
            weights: inner.weights()[..inner.choices().n_columns].into(),
            target_weight: inner.target_weight(),
            noise_std_dev: inner.noise_std_dev(),
            inner,
        })
    }

    /// Steps and seals of a release whose matrix and levels of refined regressions are these, and the points of residuals.
    #[pyo3(signature = (matrix, levels = Vec::new()))]
    fn planned(&self, matrix: Table<'_>, levels: Vec<Vec<f64>>) -> PyResult<Planned> {
        let matrix = matrix.as_slice()?;
        let planned = core::planned_steps(&self.inner, matrix, &levels).map_err(to_python)?;
        let (mut spent, mut sealed) = (vec![self.inner.step().clone()], vec![*self.inner.seal()]);
        let mut points = Vec::new();
        for (point, noise) in planned.residuals {
            spent.push(noise.step);
            sealed.push(noise.seal);
            points.push(Vector(point));
        }
        for gradient in &planned.gradients {
            spent.push(gradient.level_noise.step.clone());
            sealed.push(gradient.level_noise.seal);
        }
        let mut refined = Vec::new();
        for gradient in planned.gradients {
            spent.push(gradient.noise.step);
            sealed.push(gradient.noise.seal);
            let point = Vector(gradient.point);
            refined.push((point, gradient.cap, gradient.square_weight));
        }
        Ok(Planned {
            steps: steps(&spent),
            seals: seals(&sealed),
            points,
            refined,
        })
    }
}

/// A matrix and what else was released as Python reads it.
#[derive(IntoPyObject)]
pub(crate) struct Released {
    steps: Vec<Step>,
    seals: Vec<Seal>,
    private: bool,
    matrix: Matrix,
    residuals: Vec<(Vector, Matrix)>,
    refined: Vec<(Vector, Vector, Vector, f64, f64)>,
}

impl Kind for MomentMatrixSpec {
    type Values = Released;

    fn rules(&self, on_violation: OnViolation) -> Rules {
        let (c, targets) = (self.inner.choices(), self.inner.loss().targets());
        let intercept = Some(self.inner.intercept());
        Rules::new(c.rows.clone(), targets, intercept, &c.terms, on_violation)
    }

    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<Released> {
        let spec = &self.inner;
        let release = with_noise!(seed, 0, |g| core::release_moment_matrix(spec, read.records(), exec, g))?;
        Ok(Released {
            steps: steps(&release.steps(spec)),
            seals: seals(&release.seals(spec)),
            private: seed.is_none(),
            matrix: Matrix::square(release.matrix.into_values()),
            residuals: release
                .residuals
                .into_iter()
                .map(|r| (Vector(r.point), Matrix::square(r.moments.into_values())))
                .collect(),
            refined: release
                .gradients
                .into_iter()
                .map(|g| {
                    let (levels, gradient) = (Vector::of(g.levels), Vector::of(g.gradient));
                    let planned = g.planned;
                    let point = Vector(planned.point);
                    (point, levels, gradient, planned.cap, planned.square_weight)
                })
                .collect(),
        })
    }
}

fn plan((regressors, ridge, response): (Vec<usize>, Vec<f64>, Vec<f64>)) -> ResidualPlan {
    ResidualPlan {
        regressors,
        ridge,
        response,
    }
}

/// The cap that the released levels of residuals call for, as a part of the greatest residual, the shares above which a level and
/// four adjacent ones are seen, and the share beyond the cap for which intervals account.
#[pyfunction]
#[pyo3(signature = (levels, *, noise, scale))]
pub(crate) fn level_cap(levels: Floats<'_>, noise: &str, scale: f64) -> PyResult<(f64, f64, f64, f64)> {
    let found = LevelCap::new(levels.as_slice()?, noise, scale).map_err(to_python)?;
    Ok((found.cap, found.threshold, found.threshold_together, found.unseen))
}

/// A regression of a released matrix as Python reads it.
#[derive(IntoPyObject)]
pub(crate) struct Regression {
    params: Vector,
    cross: Vector,
    direction: Vector,
    gain: Matrix,
    classical: Matrix,
    robust: Option<Matrix>,
    error_norm2: f64,
    residual_norm2: f64,
    residual_square: f64,
    fitted_noise: f64,
    step_square: f64,
    inverse_trace: f64,
    degrees: f64,
    least_eigenvalue: f64,
}

#[pyfunction]
#[pyo3(signature = (matrix, features, response, *, ridge, residual_moments, start = None))]
pub(crate) fn moment_regression(
    py: Python<'_>,
    matrix: Table<'_>,
    features: Table<'_>,
    response: Floats<'_>,
    ridge: Table<'_>,
    residual_moments: Option<Table<'_>>,
    start: Option<(Floats<'_>, Floats<'_>)>,
) -> PyResult<Regression> {
    let start = match &start {
        None => None,
        Some((params, gradient)) => Some(interval::Start {
            params: params.as_slice()?,
            gradient: gradient.as_slice()?,
        }),
    };
    let residual_moments = residual_moments.as_ref().map(|m| m.as_slice()).transpose()?;
    let equations = MomentEquations {
        matrix: matrix.as_slice()?,
        dim: matrix.shape()[0],
        features: features.as_slice()?,
        response: response.as_slice()?,
        ridge: ridge.as_slice()?,
        residual_moments,
        start,
    };
    let found = py
        .detach(|| interval::moment_regression(&equations))
        .map_err(to_python)?;
    Ok(Regression {
        params: Vector(found.params),
        cross: Vector(found.cross),
        direction: Vector(found.direction),
        gain: Matrix::square(found.gain),
        classical: Matrix::square(found.classical),
        robust: found.robust.map(Matrix::square),
        error_norm2: found.error_norm2,
        residual_norm2: found.residual_norm2,
        residual_square: found.residual_square,
        fitted_noise: found.fitted_noise,
        step_square: found.step_square,
        inverse_trace: found.inverse_trace,
        degrees: found.degrees,
        least_eigenvalue: found.least_eigenvalue,
    })
}
