//! Building blocks for other libraries and for tests: samplers and solvers. Not private by themselves.

use dpci_core::design::{Design, OnViolation, RowBounds};
use dpci_core::erm::minimize_risk;
use dpci_core::exec::Executor;
use dpci_core::linalg::{add_diagonal, check_matrix_dim, weighted_gram as gram};
use dpci_core::loss::Targets;
use dpci_core::moments::data_moments;
use dpci_core::noise::{
    AnyLaw, Gaussian, Laplace, Law, MatrixLaplace, SimulationGenerator, SphericalLaplace, SymmetricGaussian,
};
use dpci_core::objective::{HessianRows, Objective};
use dpci_core::records::Records as CoreRecords;
use dpci_core::solver::{Method, Options};
use dpci_core::{Error, Result};
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::loss::Loss;
use crate::names::Named;
use crate::parts::{Rules, Source};
use crate::records::Records;
use crate::rows::Rows;
use crate::task;
use crate::terms::Terms;
use crate::values::{Floats, Matrix, Table, Vector};

/// `n` samples of `width` numbers each, one after another.
pub(crate) fn draws(
    py: Python<'_>,
    n: usize,
    width: usize,
    mut sample: impl FnMut() -> Result<Vec<f64>> + Send,
) -> PyResult<Vec<f64>> {
    task::run(py, |cancel| {
        let exec = Executor::sequential(cancel);
        let mut out = Vec::new();
        let total = n
            .checked_mul(width)
            .ok_or(Error::Resource("memory cannot hold so many numbers".into()))?;
        out.try_reserve_exact(total)
            .map_err(|e| Error::Resource(e.to_string()))?;
        for _ in 0..n {
            exec.check()?;
            out.extend(sample()?);
        }
        Ok(out)
    })
}

/// `n` draws of a law from a seed, one a row.
#[pyfunction]
#[pyo3(signature = (law, *, n, dim, scale, seed))]
pub(crate) fn draw_noise(py: Python<'_>, law: &str, n: usize, dim: usize, scale: f64, seed: u64) -> PyResult<Matrix> {
    let mut generator = SimulationGenerator::new(seed, 0);
    let (law, width) = law_of(law, dim, scale).map_err(to_python)?;
    let values = draws(py, n, width, || Ok(law.sample(&mut generator)))?;
    Ok(Matrix::new(values, [n, width]))
}

/// The law of this name, and how many numbers a draw has.
pub(crate) fn law_of(name: &str, dim: usize, scale: f64) -> Result<(AnyLaw, usize)> {
    if let "symmetric_gaussian" | "matrix_laplace" = name {
        check_matrix_dim(dim)?;
    }
    Ok(match name {
        "gaussian" => (Gaussian::new(dim, scale)?.into(), dim),
        "laplace" => (Laplace::new(dim, scale)?.into(), dim),
        "spherical_laplace" => (SphericalLaplace::new(dim, 1.0 / scale)?.into(), dim),
        "symmetric_gaussian" => (SymmetricGaussian::new(dim, scale)?.into(), dim * dim),
        "matrix_laplace" => (MatrixLaplace::new(dim, 1.0 / scale)?.into(), dim * dim),
        _ => {
            return Err(Error::Unsupported(format!("name must be that of a law, got {name:?}")));
        }
    })
}

/// λ of an objective that need not be private.
fn check_l2_strength(value: f64) -> Result<f64> {
    let legal = value > 0.0 && value.is_finite();
    legal.then_some(value).ok_or(Error::OutOfRange {
        name: "l2_strength",
        rule: "finite and > 0",
        value,
    })
}

/// The regularised mean loss of these records.
fn objective<'a>(
    records: &'a dyn CoreRecords,
    loss: &'a Loss,
    l2_strength: f64,
    exec: &'a Executor<'a>,
) -> Result<Objective<'a>> {
    Ok(Objective {
        records,
        weights: None,
        loss: &*loss.inner,
        l2_strength: check_l2_strength(l2_strength)?,
        extra_convexity: 0.0,
        linear_term: None,
        n_samples: records.n_records() as f64,
        exec,
    })
}

#[pyfunction]
#[pyo3(signature = (records, *, loss, l2_strength, radius=None, intercept, linear_term, start, solver, tolerance, max_iterations, n_threads, terms=None))]
pub(crate) fn minimize_erm(
    py: Python<'_>,
    records: Source<'_>,
    loss: &Bound<'_, Loss>,
    l2_strength: f64,
    radius: Option<f64>,
    intercept: Option<f64>,
    linear_term: Option<Floats<'_>>,
    start: Option<Floats<'_>>,
    solver: Named<Method>,
    tolerance: f64,
    max_iterations: usize,
    n_threads: Option<usize>,
    terms: Option<&Terms>,
) -> PyResult<Found> {
    let linear_term = linear_term.as_ref().map(|a| a.as_slice()).transpose()?;
    let start = start.as_ref().map(|a| a.as_slice()).transpose()?;
    let loss = loss.get();
    let rules = Rules::unbounded(loss, intercept, terms.map(|terms| &terms.inner));
    let weighting = rules.weighting;
    let options = Options {
        method: solver.0,
        tolerance,
        max_iterations,
        radius,
    };
    let minimum = records.run(py, rules, n_threads, None, |read, exec| {
        let mut objective = objective(read.records(), loss, l2_strength, exec)?;
        objective.linear_term = linear_term;
        if let Some(weighting) = weighting {
            objective.n_samples = weighting.divisor();
        }
        minimize_risk(&objective, start, &options)
    })?;
    Ok(Found {
        params: Vector(minimum.params),
        certificate: minimum.certificate,
        n_iterations: minimum.iterations,
        solver: minimum.method.name(),
    })
}

/// A minimum as Python reads it.
#[derive(IntoPyObject)]
pub(crate) struct Found {
    params: Vector,
    certificate: f64,
    n_iterations: usize,
    solver: &'static str,
}

#[pyfunction]
#[pyo3(signature = (records, params, *, loss, l2_strength, intercept, n_threads))]
pub(crate) fn erm_value_and_gradient(
    py: Python<'_>,
    records: Source<'_>,
    params: Floats<'_>,
    loss: &Bound<'_, Loss>,
    l2_strength: f64,
    intercept: Option<f64>,
    n_threads: Option<usize>,
) -> PyResult<(f64, Vector)> {
    let (params, loss) = (params.as_slice()?, loss.get());
    let rules = Rules::unbounded(loss, intercept, None);
    let evaluation = records.run(py, rules, n_threads, None, |read, exec| {
        objective(read.records(), loss, l2_strength, exec)?.evaluate(params, HessianRows::None)
    })?;
    Ok((evaluation.value, Vector(evaluation.gradient)))
}

/// Hessian of the regularised mean objective and covariance of one record's gradient.
#[pyfunction]
#[pyo3(signature = (records, params, *, loss, l2_strength, intercept, n_threads))]
pub(crate) fn hessian_and_gradient_cov(
    py: Python<'_>,
    records: Source<'_>,
    params: Floats<'_>,
    loss: &Bound<'_, Loss>,
    l2_strength: f64,
    intercept: Option<f64>,
    n_threads: Option<usize>,
) -> PyResult<(Matrix, Matrix)> {
    let (params, loss) = (params.as_slice()?, loss.get());
    let dim = params.len();
    check_matrix_dim(dim).map_err(to_python)?;
    let rules = Rules::unbounded(loss, intercept, None);
    let moments = records.run(py, rules, n_threads, None, |read, exec| {
        let records = read.records();
        let n = records.n_records() as f64;
        let moments = data_moments(records, &*loss.inner, params, n, exec)?;
        check_l2_strength(l2_strength)?;
        Ok(moments)
    })?;
    let (mut hessian, mut gradient_cov) = (moments.curvature, moments.squared_slope);
    add_diagonal(&mut hessian, dim, l2_strength);
    for (e, value) in gradient_cov.iter_mut().enumerate() {
        *value -= (l2_strength * params[e / dim]) * (l2_strength * params[e % dim]);
    }
    Ok((Matrix::square(hessian), Matrix::square(gradient_cov)))
}

#[pyfunction]
#[pyo3(signature = (records, *, row_norm, on_violation, intercept, n_threads))]
pub(crate) fn checked_rows(
    py: Python<'_>,
    records: &Bound<'_, Records>,
    row_norm: Rows<'_>,
    on_violation: Named<OnViolation>,
    intercept: Option<f64>,
    n_threads: Option<usize>,
) -> PyResult<Matrix> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let bounds = RowBounds {
        rows: row_norm.domain(),
        targets: Targets::Signs,
        on_violation: on_violation.0,
    };
    let (rows, n, dim) = task::run_over(py, &data, n_threads, |exec| {
        let design = Design::new(data.rows(), data.targets(), intercept, &bounds, exec)?;
        let (n, dim) = (design.n_rows(), design.n_params());
        let mut rows = vec![0.0; n * dim];
        design.write_rows(0..n, &mut rows);
        Ok((rows, n, dim))
    })?;
    Ok(Matrix::new(rows, [n, dim]))
}

#[pyfunction]
#[pyo3(signature = (x, weights, *, n_threads))]
pub(crate) fn weighted_gram(
    py: Python<'_>,
    x: Table<'_>,
    weights: Floats<'_>,
    n_threads: Option<usize>,
) -> PyResult<Matrix> {
    let dim = x.shape()[1];
    let (rows, weights) = (x.as_slice()?, weights.as_slice()?);
    let matrix = task::run(py, |cancel| {
        let exec = Executor::new(n_threads, rows.len(), cancel)?;
        gram(rows, dim, weights, &exec)
    })?;
    Ok(Matrix::square(matrix))
}
