//! Intervals and p-values from released values.

use std::sync::Arc;

use dpci_core::Result;
use dpci_core::interval::{self as core, ErrorShape, MatrixDraws, Regularised};
use dpci_core::noise::{LevelTotals, MatrixLaw, NoiseLaw};
use dpci_core::privacy::Perturbation;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::rows::{RowDomain, blocks_of};
use crate::spec::perturbation;
use crate::task;
use crate::values::{Matrix, Vector};

#[pyfunction]
pub(crate) fn error_components(
    py: Python<'_>,
    hessian: PyReadonlyArray2<'_, f64>,
    gradient_cov: PyReadonlyArray2<'_, f64>,
    n_samples: f64,
    mechanism: &str,
    contrast: PyReadonlyArray2<'_, f64>,
) -> PyResult<(Vector, Vector)> {
    let (dim, width) = (hessian.shape()[0], contrast.shape()[1]);
    let (hessian, gradient_cov, contrast) = (
        hessian.as_slice()?,
        gradient_cov.as_slice()?,
        contrast.as_slice()?,
    );
    let mechanism = perturbation(mechanism)?;
    let parts: Result<Vec<(f64, f64)>> = py.detach(|| {
        let law = core::ErrorLaw::plug_in(hessian, gradient_cov, dim, n_samples, mechanism)?;
        contrast
            .chunks(width.max(1))
            .map(|c| law.components(c))
            .collect()
    });
    let (v, a): (Vec<f64>, Vec<f64>) = parts.map_err(to_python)?.into_iter().unzip();
    Ok((Vector(v), Vector(a)))
}

/// Released matrices, and the public values that say what noise is in them; see the core.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct NoisyMatrices {
    hessian: Vec<f64>,
    gradient_cov: Vec<f64>,
    dim: usize,
    n_samples: f64,
    perturbation: Perturbation,
    law: NoiseLaw,
    l2_strength: f64,
    strong_convexity: f64,
    hessian_noise: Option<MatrixLaw>,
    gradient_cov_noise: MatrixLaw,
    is_likelihood: bool,
    may_be_flat: bool,
    gradients: Option<Gradients>,
    levels: Option<LevelTotals>,
}

/// Bounds on the gradients of single records; see the core.
struct Gradients {
    params: Vec<f64>,
    bounds: (f64, f64),
    rows: dpci_core::row_domain::RowDomain,
    intercept: Option<f64>,
}

/// Parameters, greatest slope and curvature of the loss, rows without the intercept, and the intercept.
type BoundsOfGradients<'py> = (
    PyReadonlyArray1<'py, f64>,
    (f64, f64),
    PyRef<'py, RowDomain>,
    Option<f64>,
);

#[pymethods]
impl NoisyMatrices {
    /// `rows` are those with the intercept, for noise in their shape.
    #[new]
    #[pyo3(signature = (hessian, gradient_cov, n_samples, mechanism, noise_law, noise_scale, l2_strength, strong_convexity, hessian_noise,
        gradient_cov_noise, is_likelihood, may_be_flat, rows=None, gradients=None, levels_scale=None))]
    fn new(
        hessian: PyReadonlyArray2<'_, f64>,
        gradient_cov: PyReadonlyArray2<'_, f64>,
        n_samples: f64,
        mechanism: &str,
        noise_law: &str,
        noise_scale: f64,
        l2_strength: f64,
        strong_convexity: f64,
        hessian_noise: Option<(String, f64)>,
        gradient_cov_noise: (String, f64),
        is_likelihood: bool,
        may_be_flat: bool,
        rows: Option<PyRef<'_, RowDomain>>,
        gradients: Option<BoundsOfGradients<'_>>,
        levels_scale: Option<f64>,
    ) -> PyResult<Self> {
        let dim = hessian.shape()[0];
        let blocks = blocks_of(rows.as_ref());
        let of_levels = blocks.zip(levels_scale);
        let levels =
            of_levels.map(|(rows, scale)| LevelTotals::new(Arc::clone(rows), scale.recip()));
        let of_matrix = |(name, scale): (String, f64)| MatrixLaw::from_name(&name, scale);
        Ok(Self {
            hessian: hessian.as_slice()?.to_vec(),
            gradient_cov: gradient_cov.as_slice()?.to_vec(),
            dim,
            n_samples,
            perturbation: perturbation(mechanism)?,
            law: NoiseLaw::from_name(noise_law, dim, noise_scale, blocks).map_err(to_python)?,
            l2_strength,
            strong_convexity,
            hessian_noise: hessian_noise
                .map(of_matrix)
                .transpose()
                .map_err(to_python)?,
            gradient_cov_noise: of_matrix(gradient_cov_noise).map_err(to_python)?,
            is_likelihood,
            may_be_flat,
            gradients: gradients
                .map(|(params, bounds, rows, intercept)| -> PyResult<_> {
                    Ok(Gradients {
                        params: params.as_slice()?.to_vec(),
                        bounds,
                        rows: rows.inner.clone(),
                        intercept,
                    })
                })
                .transpose()?,
            levels: levels.transpose().map_err(to_python)?,
        })
    }

    /// The law of the errors, with the noise in the matrices counted.
    fn law(&self, py: Python<'_>) -> PyResult<ErrorLaw> {
        let inner = py
            .detach(|| core::ErrorLaw::noise_aware(&self.matrices(), &self.draws()?))
            .map_err(to_python)?;
        Ok(ErrorLaw { inner })
    }

    /// Hessian and gradient covariance as they are estimated.
    fn estimated(&self, py: Python<'_>) -> PyResult<(Matrix, Matrix)> {
        let [hessian, gradient_cov] = py
            .detach(|| self.matrices().estimated(&self.draws()?))
            .map_err(to_python)?;
        Ok((Matrix::square(hessian), Matrix::square(gradient_cov)))
    }
}

impl NoisyMatrices {
    fn matrices(&self) -> core::NoisyMatrices<'_> {
        core::NoisyMatrices {
            hessian: &self.hessian,
            gradient_cov: &self.gradient_cov,
            hessian_noise: self.hessian_noise,
            gradient_cov_noise: self.gradient_cov_noise,
            l2_strength: self.l2_strength,
            strong_convexity: self.strong_convexity,
            n_samples: self.n_samples,
            perturbation: self.perturbation,
            law: self.law.clone(),
            is_likelihood: self.is_likelihood,
            may_be_flat: self.may_be_flat,
            gradients: self.gradients.as_ref().map(|given| core::Gradients {
                params: &given.params,
                slope_bound: given.bounds.0,
                curvature_bound: given.bounds.1,
                rows: &given.rows,
                intercept: given.intercept,
            }),
            levels: self.levels.as_ref(),
        }
    }

    fn draws(&self) -> Result<MatrixDraws> {
        MatrixDraws::new(self.dim, self.hessian_noise, self.gradient_cov_noise)
    }
}

/// The law of the errors of a release; see the core.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct ErrorLaw {
    inner: core::ErrorLaw,
}

impl ErrorLaw {
    pub(crate) fn of(inner: core::ErrorLaw) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl ErrorLaw {
    /// Takes the released matrices as the true ones.
    #[staticmethod]
    fn plug_in(
        py: Python<'_>,
        hessian: PyReadonlyArray2<'_, f64>,
        gradient_cov: PyReadonlyArray2<'_, f64>,
        n_samples: f64,
        mechanism: &str,
    ) -> PyResult<Self> {
        let dim = hessian.shape()[0];
        let (hessian, gradient_cov) = (hessian.as_slice()?, gradient_cov.as_slice()?);
        let mechanism = perturbation(mechanism)?;
        let inner = py
            .detach(|| core::ErrorLaw::plug_in(hessian, gradient_cov, dim, n_samples, mechanism))
            .map_err(to_python)?;
        Ok(Self { inner })
    }

    /// Covariance of the sampling error.
    #[getter]
    fn sampling(&self) -> Matrix {
        Matrix::square(self.inner.sampling())
    }

    /// Multiplier of the coefficients' noise: what each coordinate adds to each parameter, by rows.
    #[getter]
    fn noise(&self) -> Matrix {
        Matrix::square(self.inner.noise())
    }

    /// A covariance that the sampling error has at least along every contrast.
    #[getter]
    fn least_sampling(&self) -> Option<Matrix> {
        self.inner.least_sampling().map(Matrix::square)
    }

    /// Factor by which simulated releases multiplied the variance.
    #[getter]
    fn factor(&self) -> f64 {
        self.inner.factor()
    }

    /// Shape of the gamma law of the true variance over the estimated one.
    #[getter]
    fn shape(&self) -> f64 {
        self.inner.shape()
    }
}

/// One Newton step off the ridge of a release; see the core.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct NewtonStep {
    inner: core::NewtonStep,
    dim: usize,
}

#[pymethods]
impl NewtonStep {
    #[new]
    #[pyo3(signature = (hessian, params, *, l2_strength, hessian_noise, curvature, longest_row, mechanism))]
    fn new(
        py: Python<'_>,
        hessian: PyReadonlyArray2<'_, f64>,
        params: PyReadonlyArray1<'_, f64>,
        l2_strength: f64,
        hessian_noise: Option<(String, f64)>,
        curvature: Option<f64>,
        longest_row: f64,
        mechanism: &str,
    ) -> PyResult<Self> {
        let dim = params.len();
        let noise = hessian_noise
            .map(|(name, scale)| MatrixLaw::from_name(&name, scale))
            .transpose()
            .map_err(to_python)?;
        let fit = Regularised {
            hessian: hessian.as_slice()?,
            params: params.as_slice()?,
            l2_strength,
            noise,
            curvature,
            longest_row,
            perturbation: perturbation(mechanism)?,
        };
        let inner = py
            .detach(|| core::NewtonStep::new(&fit))
            .map_err(to_python)?;
        Ok(Self { inner, dim })
    }

    /// From released parameters to unregularised ones.
    #[getter]
    fn map(&self) -> Matrix {
        Matrix::square(self.inner.map())
    }

    /// From the sampling error of the released parameters to the greatest of the unregularised ones.
    #[getter]
    fn sampling_map(&self) -> Matrix {
        Matrix::square(self.inner.sampling_map())
    }

    /// The same of the error that the noise of the coefficients makes.
    #[getter]
    fn noise_map(&self) -> Matrix {
        Matrix::square(self.inner.noise_map())
    }

    /// Covariance that stands for the noise of the Hessian in the step, and for the bounds on what the step leaves out.
    #[getter]
    fn covariance(&self) -> Matrix {
        Matrix::square(self.inner.covariance())
    }

    /// Covariance that stands for the choice of fits by how far the ridge moved them.
    fn chance(&self, released: PyReadonlyArray2<'_, f64>) -> PyResult<Matrix> {
        let found = self.inner.chance(released.as_slice()?);
        Ok(Matrix::square(found.map_err(to_python)?))
    }

    /// For each contrast why it is not given, or None.
    fn obstacles(
        &self,
        contrasts: PyReadonlyArray2<'_, f64>,
        std_errors: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Vec<Option<&'static str>>> {
        let rows = contrasts.as_slice()?.chunks(self.dim.max(1));
        let found: Result<Vec<_>> = rows
            .zip(std_errors.as_slice()?)
            .map(|(contrast, error)| self.inner.obstacle(contrast, *error))
            .collect();
        let named = |obstacle: Option<core::Obstacle>| obstacle.map(core::Obstacle::name);
        Ok(found.map_err(to_python)?.into_iter().map(named).collect())
    }
}

/// Mixing law of the variance of an error.
fn error_shape(
    noise_law: &str,
    dim: usize,
    noise_scale: f64,
    matrices: f64,
    rows: Option<&PyRef<'_, RowDomain>>,
) -> PyResult<ErrorShape> {
    let blocks = blocks_of(rows);
    let law = NoiseLaw::from_name(noise_law, dim, noise_scale, blocks).map_err(to_python)?;
    let shape = ErrorShape { law, matrices };
    shape.check().map_err(to_python)?;
    Ok(shape)
}

#[pyfunction]
#[pyo3(signature = (v, a, noise_law, noise_scale, dim, level, shape=f64::INFINITY, rows=None))]
pub(crate) fn exact_half_widths(
    py: Python<'_>,
    v: PyReadonlyArray1<'_, f64>,
    a: PyReadonlyArray1<'_, f64>,
    noise_law: &str,
    noise_scale: f64,
    dim: usize,
    level: f64,
    shape: f64,
    rows: Option<PyRef<'_, RowDomain>>,
) -> PyResult<Vector> {
    let shape = error_shape(noise_law, dim, noise_scale, shape, rows.as_ref())?;
    let (v, a) = (v.as_slice()?, a.as_slice()?);
    let widths = py
        .detach(|| core::half_widths(v, a, &shape, level))
        .map_err(to_python)?;
    Ok(Vector(widths))
}

#[pyfunction]
#[pyo3(signature = (v, a, noise_law, noise_scale, dim, statistic, shape=f64::INFINITY, rows=None))]
pub(crate) fn exact_pvalues(
    py: Python<'_>,
    v: PyReadonlyArray1<'_, f64>,
    a: PyReadonlyArray1<'_, f64>,
    noise_law: &str,
    noise_scale: f64,
    dim: usize,
    statistic: PyReadonlyArray1<'_, f64>,
    shape: f64,
    rows: Option<PyRef<'_, RowDomain>>,
) -> PyResult<Vector> {
    let shape = error_shape(noise_law, dim, noise_scale, shape, rows.as_ref())?;
    let (v, a, statistic) = (v.as_slice()?, a.as_slice()?, statistic.as_slice()?);
    let tails = py.detach(|| core::tails(v, a, &shape, statistic));
    Ok(Vector(tails.map_err(to_python)?))
}

#[pyfunction]
#[pyo3(signature = (v, a, noise_law, noise_scale, dim, level, n_draws, seed, shape=f64::INFINITY, rows=None))]
pub(crate) fn monte_carlo_interval(
    py: Python<'_>,
    v: PyReadonlyArray1<'_, f64>,
    a: PyReadonlyArray1<'_, f64>,
    noise_law: &str,
    noise_scale: f64,
    dim: usize,
    level: f64,
    n_draws: usize,
    seed: Option<u64>,
    shape: f64,
    rows: Option<PyRef<'_, RowDomain>>,
) -> PyResult<(Vector, Vector)> {
    let shape = error_shape(noise_law, dim, noise_scale, shape, rows.as_ref())?;
    let (v, a) = (v.as_slice()?, a.as_slice()?);
    let bounds = task::run(py, |cancel| match seed {
        None => core::monte_carlo(
            v,
            a,
            &shape,
            level,
            n_draws,
            &mut dpci_core::noise::ReleaseGenerator::new()?,
            cancel,
        ),
        Some(seed) => {
            let mut generator = dpci_core::noise::SimulationGenerator::new(seed, 0);
            core::monte_carlo(v, a, &shape, level, n_draws, &mut generator, cancel)
        }
    })?;
    let (lower, upper): (Vec<f64>, Vec<f64>) = bounds.into_iter().unzip();
    Ok((Vector(lower), Vector(upper)))
}
