//! Intervals and p-values from released values.

use dpci_core::Result;
use dpci_core::interval::{self as core, Sandwich};
use dpci_core::noise::NoiseLaw;
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::spec::perturbation;
use crate::task;

/// Two arrays of one length.
type Pair<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

#[pyfunction]
pub(crate) fn error_components<'py>(
    py: Python<'py>,
    hessian: PyReadonlyArray2<'py, f64>,
    gradient_cov: PyReadonlyArray2<'py, f64>,
    n_samples: usize,
    mechanism: &str,
    contrast: PyReadonlyArray2<'py, f64>,
) -> PyResult<Pair<'py>> {
    let (dim, width) = (hessian.shape()[0], contrast.shape()[1]);
    let (hessian, gradient_cov, contrast) = (
        hessian.as_slice()?,
        gradient_cov.as_slice()?,
        contrast.as_slice()?,
    );
    let mechanism = perturbation(mechanism)?;
    let parts: Result<Vec<(f64, f64)>> = py.detach(|| {
        let sandwich = Sandwich::new(hessian, gradient_cov, dim, n_samples as f64, mechanism)?;
        contrast
            .chunks(width.max(1))
            .map(|c| sandwich.components(c))
            .collect()
    });
    let (v, a): (Vec<f64>, Vec<f64>) = parts.map_err(to_python)?.into_iter().unzip();
    Ok((PyArray1::from_vec(py, v), PyArray1::from_vec(py, a)))
}

#[pyfunction]
pub(crate) fn error_cov<'py>(
    py: Python<'py>,
    hessian: PyReadonlyArray2<'py, f64>,
    gradient_cov: PyReadonlyArray2<'py, f64>,
    n_samples: usize,
    mechanism: &str,
    noise_law: &str,
    noise_scale: f64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let dim = hessian.shape()[0];
    let law = NoiseLaw::from_name(noise_law, dim, noise_scale).map_err(to_python)?;
    let (hessian, gradient_cov) = (hessian.as_slice()?, gradient_cov.as_slice()?);
    let mechanism = perturbation(mechanism)?;
    let cov: Result<Vec<f64>> = py.detach(|| {
        Ok(Sandwich::new(hessian, gradient_cov, dim, n_samples as f64, mechanism)?.cov(&law))
    });
    PyArray1::from_vec(py, cov.map_err(to_python)?).reshape([dim, dim])
}

#[pyfunction]
pub(crate) fn exact_half_widths<'py>(
    py: Python<'py>,
    v: PyReadonlyArray1<'py, f64>,
    a: PyReadonlyArray1<'py, f64>,
    noise_law: &str,
    noise_scale: f64,
    dim: usize,
    level: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let law = NoiseLaw::from_name(noise_law, dim, noise_scale).map_err(to_python)?;
    let (v, a) = (v.as_slice()?, a.as_slice()?);
    let widths = py
        .detach(|| core::half_widths(v, a, &law, level))
        .map_err(to_python)?;
    Ok(PyArray1::from_vec(py, widths))
}

#[pyfunction]
pub(crate) fn exact_pvalues<'py>(
    py: Python<'py>,
    v: PyReadonlyArray1<'py, f64>,
    a: PyReadonlyArray1<'py, f64>,
    noise_law: &str,
    noise_scale: f64,
    dim: usize,
    statistic: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let law = NoiseLaw::from_name(noise_law, dim, noise_scale).map_err(to_python)?;
    let (v, a, statistic) = (v.as_slice()?, a.as_slice()?, statistic.as_slice()?);
    let tails = py.detach(|| core::tails(v, a, &law, statistic));
    Ok(PyArray1::from_vec(py, tails.map_err(to_python)?))
}

#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "the law, the draws and where they come from"
)]
pub(crate) fn monte_carlo_interval<'py>(
    py: Python<'py>,
    v: PyReadonlyArray1<'py, f64>,
    a: PyReadonlyArray1<'py, f64>,
    noise_law: &str,
    noise_scale: f64,
    dim: usize,
    level: f64,
    n_draws: usize,
    seed: Option<u64>,
) -> PyResult<Pair<'py>> {
    let law = NoiseLaw::from_name(noise_law, dim, noise_scale).map_err(to_python)?;
    let (v, a) = (v.as_slice()?, a.as_slice()?);
    let bounds = task::run(py, |cancel| match seed {
        None => core::monte_carlo(
            v,
            a,
            &law,
            level,
            n_draws,
            &mut dpci_core::noise::ReleaseGenerator::new()?,
            cancel,
        ),
        Some(seed) => {
            let mut generator = dpci_core::noise::SimulationGenerator::new(seed, 0);
            core::monte_carlo(v, a, &law, level, n_draws, &mut generator, cancel)
        }
    })?;
    let (lower, upper): (Vec<f64>, Vec<f64>) = bounds.into_iter().unzip();
    Ok((PyArray1::from_vec(py, lower), PyArray1::from_vec(py, upper)))
}
