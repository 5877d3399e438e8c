//! Vectors and matrices of the core as Python's arrays. A value of several fields is a struct, whose dictionary is derived.

use std::convert::Infallible;

use dpci_core::mechanism::Values;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

/// Numbers of a contiguous array.
pub(crate) type Floats<'py> = PyReadonlyArray1<'py, f64>;

/// Numbers of a contiguous matrix.
pub(crate) type Table<'py> = PyReadonlyArray2<'py, f64>;

/// A vector, as an array.
#[derive(Clone)]
pub(crate) struct Vector(pub(crate) Vec<f64>);

impl Vector {
    /// Released values.
    pub(crate) fn of(values: impl Values) -> Self {
        Self(values.into_values())
    }
}

impl From<&[f64]> for Vector {
    fn from(values: &[f64]) -> Self {
        Self(values.to_vec())
    }
}

impl<'py> IntoPyObject<'py> for Vector {
    type Target = PyArray1<f64>;
    type Output = Bound<'py, Self::Target>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(PyArray1::from_vec(py, self.0))
    }
}

/// A row-major matrix, as an array.
#[derive(Clone)]
pub(crate) struct Matrix {
    values: Vec<f64>,
    shape: [usize; 2],
}

impl Matrix {
    pub(crate) fn new(values: Vec<f64>, shape: [usize; 2]) -> Self {
        Self { values, shape }
    }

    pub(crate) fn square(values: impl Into<Vec<f64>>) -> Self {
        let values = values.into();
        let dim = values.len().isqrt();
        Self::new(values, [dim, dim])
    }

    /// Rows of one length.
    pub(crate) fn rows(values: Vec<f64>, n: usize) -> Self {
        let width = values.len().checked_div(n).unwrap_or(0);
        Self::new(values, [n, width])
    }
}

impl<'py> IntoPyObject<'py> for Matrix {
    type Target = PyArray2<f64>;
    type Output = Bound<'py, Self::Target>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyArray1::from_vec(py, self.values).reshape(self.shape)
    }
}
