//! Where rows lie: a ball, or blocks of columns.

use std::sync::Arc;

use dpci_core::row_domain::{self as core, Blocks};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::to_python;
use crate::values::Vector;

/// A set that rows lie in; immutable and picklable.
#[pyclass(frozen, eq, module = "dpci._core")]
#[derive(PartialEq)]
pub(crate) struct RowDomain {
    pub(crate) inner: core::RowDomain,
}

#[pymethods]
impl RowDomain {
    /// Rows of at most this Euclidean norm.
    #[staticmethod]
    fn ball(norm: f64) -> Self {
        Self {
            inner: core::RowDomain::Ball(norm),
        }
    }

    /// Rows whose absolute values sum to at most `bounds[b]` over the columns j with `members[j] == b`.
    #[staticmethod]
    fn blocks(bounds: Vec<f64>, members: Vec<usize>) -> PyResult<Self> {
        let blocks = Blocks::new(bounds, members).map_err(to_python)?;
        Ok(Self {
            inner: core::RowDomain::Blocks(Arc::new(blocks)),
        })
    }

    /// The same with a constant appended to every row: a block of its own.
    fn with_constant(&self, scale: f64) -> PyResult<Self> {
        let inner = self.inner.with_constant(scale).map_err(to_python)?;
        Ok(Self { inner })
    }

    /// Bound on the Euclidean norm of a row.
    #[getter]
    fn norm(&self) -> f64 {
        self.inner.norm()
    }

    /// Bounds of the blocks; empty for a ball.
    #[getter]
    fn bounds(&self) -> Vec<f64> {
        self.shape().map_or(Vec::new(), |b| b.bounds().to_vec())
    }

    /// The block of each column; empty for a ball.
    #[getter]
    fn members(&self) -> Vec<usize> {
        self.shape().map_or(Vec::new(), |b| b.members().to_vec())
    }

    /// Variances of the coordinates of a uniform point of the blocks; empty for a ball.
    fn variances(&self) -> Vector {
        Vector(self.shape().map_or(Vec::new(), |b| b.variances()))
    }

    /// Squares of the metric in which no row is longer than 1; empty for a ball.
    fn metric(&self) -> Vector {
        Vector(self.shape().map_or(Vec::new(), |b| b.metric()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let class = py.get_type::<Self>();
        Ok(match &self.inner {
            core::RowDomain::Ball(norm) => (class.getattr("ball")?, (*norm,).into_pyobject(py)?),
            core::RowDomain::Blocks(b) => (
                class.getattr("blocks")?,
                (b.bounds().to_vec(), b.members().to_vec()).into_pyobject(py)?,
            ),
        })
    }
}

impl RowDomain {
    fn shape(&self) -> Option<&Arc<Blocks>> {
        self.inner.shape()
    }
}

/// A domain, or the norm of a ball.
#[derive(FromPyObject)]
pub(crate) enum Rows<'py> {
    Norm(f64),
    Domain(PyRef<'py, RowDomain>),
}

impl Rows<'_> {
    pub(crate) fn domain(&self) -> core::RowDomain {
        match self {
            Self::Norm(norm) => core::RowDomain::Ball(*norm),
            Self::Domain(domain) => domain.inner.clone(),
        }
    }
}

/// The blocks of a noise law in their shape.
pub(crate) fn blocks_of<'a>(rows: Option<&'a PyRef<'_, RowDomain>>) -> Option<&'a Arc<Blocks>> {
    rows.and_then(|rows| rows.inner.shape())
}
