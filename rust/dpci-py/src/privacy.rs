//! Accounting of budgets: no data.

use dpci_core::privacy as core;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::spec::calibration_of;

#[pyfunction]
pub(crate) fn gaussian_delta(epsilon: f64, mu: f64) -> PyResult<f64> {
    core::gaussian_delta(epsilon, mu).map_err(to_python)
}

#[pyfunction]
pub(crate) fn gaussian_mu(epsilon: f64, delta: f64) -> PyResult<f64> {
    core::gaussian_mu(epsilon, delta).map_err(to_python)
}

#[pyfunction]
pub(crate) fn pure_to_zcdp(epsilon: f64, calibration: &str) -> PyResult<f64> {
    core::pure_to_zcdp(epsilon, calibration_of(calibration)?).map_err(to_python)
}

#[pyfunction]
pub(crate) fn zcdp_to_pure(rho: f64, calibration: &str) -> PyResult<f64> {
    core::zcdp_to_pure(rho, calibration_of(calibration)?).map_err(to_python)
}

#[pyfunction]
pub(crate) fn zcdp_to_approx_epsilon(rho: f64, delta: f64, calibration: &str) -> PyResult<f64> {
    core::zcdp_to_approx_epsilon(rho, delta, calibration_of(calibration)?).map_err(to_python)
}

#[pyfunction]
pub(crate) fn zcdp_to_approx_delta(rho: f64, epsilon: f64) -> PyResult<f64> {
    core::zcdp_to_approx_delta(rho, epsilon).map_err(to_python)
}

#[pyfunction]
pub(crate) fn approx_to_zcdp(epsilon: f64, delta: f64, calibration: &str) -> PyResult<f64> {
    core::approx_to_zcdp(epsilon, delta, calibration_of(calibration)?).map_err(to_python)
}
