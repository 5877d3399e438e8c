//! Intervals and p-values from released values.

use std::sync::Arc;

use dpci_core::Result;
use dpci_core::interval::{self as core, MatrixDraws, Regularised};
use dpci_core::noise::{LevelTotals, MatrixLaw, NoiseLaw};
use dpci_core::privacy::Perturbation;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::names::Named;
use crate::records::with_noise;
use crate::rows::{RowDomain, blocks_of};
use crate::task;
use crate::values::{Floats, Matrix, Table, Vector};

#[pyfunction]
pub(crate) fn error_components(
    py: Python<'_>,
    hessian: Table<'_>,
    gradient_cov: Table<'_>,
    n_samples: f64,
    mechanism: Named<Perturbation>,
    contrast: Table<'_>,
) -> PyResult<(Vector, Vector)> {
    let (dim, width) = (hessian.shape()[0], contrast.shape()[1]);
    let (hessian, gradient_cov) = (hessian.as_slice()?, gradient_cov.as_slice()?);
    let (mut contrasts, mechanism) = (contrast.as_slice()?.chunks(width.max(1)), mechanism.0);
    let parts: Result<Vec<(f64, f64)>> = py.detach(|| {
        let law = core::ErrorLaw::plug_in(hessian, gradient_cov, dim, n_samples, mechanism)?;
        contrasts.by_ref().map(|c| law.components(c)).collect()
    });
    let (v, a): (Vec<f64>, Vec<f64>) = parts.map_err(to_python)?.into_iter().unzip();
    Ok((Vector(v), Vector(a)))
}

/// Released matrices, and the public values that say what noise is in them, by the keys of a dictionary; see the core.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct NoisyMatrices<'py> {
    hessian: Table<'py>,
    gradient_cov: Table<'py>,
    n_samples: f64,
    mechanism: Named<Perturbation>,
    noise_law: String,
    noise_scale: f64,
    l2_strength: f64,
    strong_convexity: f64,
    hessian_noise: Option<(String, f64)>,
    gradient_cov_noise: (String, f64),
    is_likelihood: bool,
    may_be_flat: bool,
    /// Rows with the intercept, for noise in their shape.
    rows: Option<PyRef<'py, RowDomain>>,
    gradients: Option<BoundsOfGradients<'py>>,
    levels_scale: Option<f64>,
}

/// Parameters, greatest slope and curvature of the loss, rows without the intercept, and the intercept.
type BoundsOfGradients<'py> = (Floats<'py>, (f64, f64), PyRef<'py, RowDomain>, Option<f64>);

/// Noise of a matrix by its name and scale.
fn matrix_law((name, scale): &(String, f64)) -> PyResult<MatrixLaw> {
    MatrixLaw::from_name(name, *scale).map_err(to_python)
}

impl NoisyMatrices<'_> {
    /// Computes with them, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(core::NoisyMatrices<'_>, MatrixDraws) -> Result<T> + Send,
    ) -> PyResult<T> {
        let dim = self.hessian.shape()[0];
        let blocks = blocks_of(self.rows.as_ref());
        let levels = blocks.zip(self.levels_scale);
        let levels = levels.map(|(rows, scale)| LevelTotals::new(Arc::clone(rows), scale.recip()));
        let levels = levels.transpose().map_err(to_python)?;
        let gradients = match &self.gradients {
            None => None,
            Some((params, bounds, rows, intercept)) => Some(core::Gradients {
                params: params.as_slice()?,
                slope_bound: bounds.0,
                curvature_bound: bounds.1,
                rows: &rows.inner,
                intercept: *intercept,
            }),
        };
        let law = NoiseLaw::from_name(&self.noise_law, dim, self.noise_scale, blocks);
        let matrices = core::NoisyMatrices {
            hessian: self.hessian.as_slice()?,
            gradient_cov: self.gradient_cov.as_slice()?,
            hessian_noise: self.hessian_noise.as_ref().map(matrix_law).transpose()?,
            gradient_cov_noise: matrix_law(&self.gradient_cov_noise)?,
            l2_strength: self.l2_strength,
            strong_convexity: self.strong_convexity,
            n_samples: self.n_samples,
            perturbation: self.mechanism.0,
            law: law.map_err(to_python)?,
            is_likelihood: self.is_likelihood,
            may_be_flat: self.may_be_flat,
            gradients,
            levels: levels.as_ref(),
        };
        let (hessian, gradient_cov) = (matrices.hessian_noise, matrices.gradient_cov_noise);
        py.detach(|| work(matrices, MatrixDraws::new(dim, hessian, gradient_cov)?))
            .map_err(to_python)
    }
}

/// Hessian and gradient covariance as they are estimated.
#[pyfunction]
pub(crate) fn estimated_matrices(py: Python<'_>, matrices: NoisyMatrices<'_>) -> PyResult<(Matrix, Matrix)> {
    let [hessian, gradient_cov] = matrices.with(py, |matrices, draws| matrices.estimated(&draws))?;
    Ok((Matrix::square(hessian), Matrix::square(gradient_cov)))
}

/// The law of the errors of a release; see the core.
#[pyclass(frozen, get_all, module = "dpci._core")]
pub(crate) struct ErrorLaw {
    /// Covariance of the sampling error.
    sampling: Matrix,
    /// Multiplier of the coefficients' noise: what each coordinate adds to each parameter, by rows.
    noise: Matrix,
    /// A covariance that the sampling error has at least along every contrast.
    least_sampling: Option<Matrix>,
    /// Factor by which simulated releases multiplied the variance.
    factor: f64,
    /// Shape of the gamma law of the true variance over the estimated one.
    shape: f64,
}

impl From<core::ErrorLaw> for ErrorLaw {
    fn from(law: core::ErrorLaw) -> Self {
        Self {
            sampling: Matrix::square(law.sampling()),
            noise: Matrix::square(law.noise()),
            least_sampling: law.least_sampling().map(Matrix::square),
            factor: law.factor(),
            shape: law.shape(),
        }
    }
}

#[pymethods]
impl ErrorLaw {
    /// Takes the released matrices as the true ones.
    #[staticmethod]
    fn plug_in(
        py: Python<'_>,
        hessian: Table<'_>,
        gradient_cov: Table<'_>,
        n_samples: f64,
        mechanism: Named<Perturbation>,
    ) -> PyResult<Self> {
        let dim = hessian.shape()[0];
        let (hessian, gradient_cov) = (hessian.as_slice()?, gradient_cov.as_slice()?);
        let mechanism = mechanism.0;
        let law = py.detach(|| core::ErrorLaw::plug_in(hessian, gradient_cov, dim, n_samples, mechanism));
        law.map(Self::from).map_err(to_python)
    }

    /// Counts the noise in the matrices.
    #[staticmethod]
    fn noise_aware(py: Python<'_>, matrices: NoisyMatrices<'_>) -> PyResult<Self> {
        let law = matrices.with(py, |given, draws| core::ErrorLaw::noise_aware(&given, &draws));
        law.map(Self::from)
    }
}

/// One Newton step off the ridge of a release; see the core.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct NewtonStep {
    inner: core::NewtonStep,
    /// From released parameters to unregularised ones.
    #[pyo3(get)]
    map: Matrix,
    /// From the sampling error of the released parameters to the greatest of the unregularised ones.
    #[pyo3(get)]
    sampling_map: Matrix,
    /// The same of the error that the noise of the coefficients makes.
    #[pyo3(get)]
    noise_map: Matrix,
    /// Covariance that stands for the noise of the Hessian in the step, and for the bounds on what the step leaves out.
    #[pyo3(get)]
    covariance: Matrix,
}

#[pymethods]
impl NewtonStep {
    #[new]
    #[pyo3(signature = (hessian, params, *, l2_strength, hessian_noise, curvature, longest_row, mechanism))]
    fn new(
        py: Python<'_>,
        hessian: Table<'_>,
        params: Floats<'_>,
        l2_strength: f64,
        hessian_noise: Option<(String, f64)>,
        curvature: Option<f64>,
        longest_row: f64,
        mechanism: Named<Perturbation>,
    ) -> PyResult<Self> {
        let fit = Regularised {
            hessian: hessian.as_slice()?,
            params: params.as_slice()?,
            l2_strength,
            noise: hessian_noise.as_ref().map(matrix_law).transpose()?,
            curvature,
            longest_row,
            perturbation: mechanism.0,
        };
        let inner = py.detach(|| core::NewtonStep::new(&fit)).map_err(to_python)?;
        Ok(Self {
            map: Matrix::square(inner.map()),
            sampling_map: Matrix::square(inner.sampling_map()),
            noise_map: Matrix::square(inner.noise_map()),
            covariance: Matrix::square(inner.covariance()),
            inner,
        })
    }

    /// Covariance that stands for the choice of fits by how far the ridge moved them.
    fn chance(&self, released: Table<'_>) -> PyResult<Matrix> {
        let found = self.inner.chance(released.as_slice()?);
        Ok(Matrix::square(found.map_err(to_python)?))
    }

    /// For each contrast why it is not given, or None.
    fn obstacles(&self, contrasts: Table<'_>, std_errors: Floats<'_>) -> PyResult<Vec<Option<&'static str>>> {
        let rows = contrasts.as_slice()?.chunks(contrasts.shape()[1].max(1));
        let found: Result<Vec<_>> = rows
            .zip(std_errors.as_slice()?)
            .map(|(contrast, error)| self.inner.obstacle(contrast, *error))
            .collect();
        let named = |obstacle: Option<core::Obstacle>| obstacle.map(core::Obstacle::name);
        Ok(found.map_err(to_python)?.into_iter().map(named).collect())
    }
}

/// Law of the noise of the coefficients, and shape of that of the variance of an error.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct ErrorShape {
    inner: core::ErrorShape,
}

#[pymethods]
impl ErrorShape {
    #[new]
    #[pyo3(signature = (noise_law, noise_scale, dim, shape=f64::INFINITY, rows=None))]
    fn new(
        noise_law: &str,
        noise_scale: f64,
        dim: usize,
        shape: f64,
        rows: Option<PyRef<'_, RowDomain>>,
    ) -> PyResult<Self> {
        let blocks = blocks_of(rows.as_ref());
        let law = NoiseLaw::from_name(noise_law, dim, noise_scale, blocks).map_err(to_python)?;
        let matrices = shape;
        let inner = core::ErrorShape { law, matrices };
        inner.check().map_err(to_python)?;
        Ok(Self { inner })
    }

    fn half_widths(&self, py: Python<'_>, v: Floats<'_>, a: Floats<'_>, level: f64) -> PyResult<Vector> {
        let (v, a) = (v.as_slice()?, a.as_slice()?);
        let widths = py.detach(|| core::half_widths(v, a, &self.inner, level));
        Ok(Vector(widths.map_err(to_python)?))
    }

    fn pvalues(&self, py: Python<'_>, v: Floats<'_>, a: Floats<'_>, statistic: Floats<'_>) -> PyResult<Vector> {
        let (v, a, statistic) = (v.as_slice()?, a.as_slice()?, statistic.as_slice()?);
        let tails = py.detach(|| core::tails(v, a, &self.inner, statistic));
        Ok(Vector(tails.map_err(to_python)?))
    }
}

#[pyfunction]
#[pyo3(signature = (shape, v, a, level, *, n_draws, seed))]
pub(crate) fn monte_carlo_interval(
    py: Python<'_>,
    shape: &Bound<'_, ErrorShape>,
    v: Floats<'_>,
    a: Floats<'_>,
    level: f64,
    n_draws: usize,
    seed: Option<u64>,
) -> PyResult<(Vector, Vector)> {
    let (shape, v, a) = (&shape.get().inner, v.as_slice()?, a.as_slice()?);
    let bounds = task::run(py, |cancel| {
        with_noise!(seed, 0, |g| core::monte_carlo(v, a, shape, level, n_draws, g, cancel))
    })?;
    let (lower, upper): (Vec<f64>, Vec<f64>) = bounds.into_iter().unzip();
    Ok((Vector(lower), Vector(upper)))
}
