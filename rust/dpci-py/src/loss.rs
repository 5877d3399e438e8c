//! Losses as opaque Python objects, and caller's losses as core losses.

use std::sync::Arc;

use dpci_core::error::check_length;
use dpci_core::loss::{
    self as core, Batch, CLogLog, Declaration, Evaluate, Hinge, Huber, HuberHinge, Logistic,
    Multinomial, NegativeBinomial, Poisson, Probit, Quantile, SmoothHinge, SoftLogistic, Squared,
    Targets,
};
use dpci_core::{Error, Result};
use numpy::{AllowTypeChange, PyArray1, PyArrayLike1, PyReadonlyArray1};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::values::Vector;

/// A loss with its public bounds; immutable.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Loss {
    pub(crate) inner: Arc<dyn core::Loss>,
}

impl Loss {
    fn plain(loss: impl core::Loss + 'static) -> Self {
        let inner = Arc::new(loss);
        Self { inner }
    }

    fn of(loss: Result<impl core::Loss + 'static>) -> PyResult<Self> {
        loss.map(Self::plain).map_err(to_python)
    }

    /// The loss of one row.
    fn value(&self, u: &[f64], y: &[f64]) -> Result<f64> {
        let mut total = 0.0;
        let out = Batch {
            total: Some(&mut total),
            ..Batch::default()
        };
        self.inner.evaluate(u, y, out)?;
        Ok(total)
    }
}

#[pymethods]
impl Loss {
    #[staticmethod]
    fn logistic() -> Self {
        Self::plain(Logistic)
    }

    #[staticmethod]
    fn multinomial(n_classes: usize) -> PyResult<Self> {
        Self::of(Multinomial::new(n_classes))
    }

    #[staticmethod]
    fn huber_hinge(h: f64) -> PyResult<Self> {
        Self::of(HuberHinge::new(h))
    }

    #[staticmethod]
    fn smooth_hinge(s: f64) -> PyResult<Self> {
        Self::of(SmoothHinge::new(s))
    }

    #[staticmethod]
    fn soft_logistic() -> Self {
        Self::plain(SoftLogistic)
    }

    #[staticmethod]
    fn squared(target_bound: f64) -> PyResult<Self> {
        Self::of(Squared::new(target_bound))
    }

    #[staticmethod]
    fn hinge() -> Self {
        Self::plain(Hinge)
    }

    #[staticmethod]
    fn poisson(count_bound: f64) -> PyResult<Self> {
        Self::of(Poisson::new(count_bound))
    }

    #[staticmethod]
    fn negative_binomial(count_bound: f64, dispersion: f64) -> PyResult<Self> {
        Self::of(NegativeBinomial::new(count_bound, dispersion))
    }

    #[staticmethod]
    fn probit() -> Self {
        Self::plain(Probit)
    }

    #[staticmethod]
    fn cloglog() -> Self {
        Self::plain(CLogLog)
    }

    #[staticmethod]
    fn huber(target_bound: f64, k: f64) -> PyResult<Self> {
        Self::of(Huber::new(target_bound, k))
    }

    #[staticmethod]
    fn quantile(quantile: f64, target_bound: f64, s: f64) -> PyResult<Self> {
        Self::of(Quantile::new(quantile, target_bound, s))
    }

    #[staticmethod]
    fn custom(
        value: Py<PyAny>,
        slope: Py<PyAny>,
        curvature: Py<PyAny>,
        slope_bound: f64,
        curvature_bound: f64,
        strong_convexity: f64,
        one_signed: bool,
        target_bounds: Option<(f64, f64)>,
        predictor_bound: Option<f64>,
    ) -> PyResult<Self> {
        let functions = Arc::new(Functions {
            value,
            slope,
            curvature,
        });
        let targets = target_bounds.map_or(Targets::Signs, |(lower, upper)| Targets::Interval {
            lower,
            upper,
        });
        let declared = Declaration {
            slope_bound,
            curvature_bound,
            strong_convexity,
            one_signed,
            targets,
            predictor_bound,
        };
        Self::of(core::Custom::new(functions, declared))
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    #[getter]
    fn slope_bound(&self) -> f64 {
        self.inner.slope_bound()
    }

    #[getter]
    fn curvature_bound(&self) -> f64 {
        self.inner.curvature_bound()
    }

    #[getter]
    fn one_signed(&self) -> bool {
        self.inner.one_signed()
    }

    #[getter]
    fn target_bounds(&self) -> Option<(f64, f64)> {
        match self.inner.targets() {
            Targets::Signs => None,
            targets @ Targets::Classes { .. } => Some(targets.ends().into()),
            Targets::Interval { lower, upper } => Some((lower, upper)),
        }
    }

    /// Values, slopes and curvatures.
    fn evaluate(
        &self,
        u: PyReadonlyArray1<'_, f64>,
        y: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<(Vector, Vector, Vector)> {
        let (u, y) = (u.as_slice()?, y.as_slice()?);
        check_length("y", u.len(), y.len()).map_err(to_python)?;
        let (mut slope, mut curvature) = (vec![0.0; u.len()], vec![0.0; u.len()]);
        let derivatives = Batch {
            slope: Some(&mut slope),
            curvature: Some(&mut curvature),
            ..Batch::default()
        };
        self.inner.evaluate(u, y, derivatives).map_err(to_python)?;
        let rows = u.chunks(1).zip(y.chunks(1));
        let value: Result<Vec<f64>> = rows.map(|(u, y)| self.value(u, y)).collect();
        let value = value.map_err(to_python)?;
        Ok((Vector(value), Vector(slope), Vector(curvature)))
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        self.inner.sup_slope(radius)
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        self.inner.sup_curvature(radius)
    }

    #[getter]
    fn strong_convexity(&self) -> f64 {
        self.inner.curvature_floor()
    }

    #[getter]
    fn predictor_bound(&self) -> Option<f64> {
        self.inner.predictor_bound()
    }

    /// Whether Newton steps continue it as a straight line beyond public predictors.
    #[getter]
    fn is_continued(&self) -> bool {
        dpci_core::loss::Continued::new(&self.inner).is_some()
    }

    #[getter]
    fn is_likelihood(&self) -> bool {
        self.inner.is_likelihood()
    }

    #[getter]
    fn may_be_flat(&self) -> bool {
        self.inner.may_be_flat()
    }

    #[getter]
    fn kinked(&self) -> bool {
        self.inner.kinked()
    }
}

/// The caller's three vectorised functions.
#[derive(Debug)]
struct Functions {
    value: Py<PyAny>,
    slope: Py<PyAny>,
    curvature: Py<PyAny>,
}

impl Evaluate for Functions {
    fn value(&self, u: &[f64], y: &[f64], out: &mut [f64]) -> Result<()> {
        call("value", &self.value, u, y, out)
    }

    fn slope(&self, u: &[f64], y: &[f64], out: &mut [f64]) -> Result<()> {
        call("slope", &self.slope, u, y, out)
    }

    fn curvature(&self, u: &[f64], y: &[f64], out: &mut [f64]) -> Result<()> {
        call("curvature", &self.curvature, u, y, out)
    }
}

/// Calls one function on copies of the block, so that it can keep or change its arguments without harm.
fn call(name: &str, function: &Py<PyAny>, u: &[f64], y: &[f64], out: &mut [f64]) -> Result<()> {
    Python::attach(|py| {
        let failed = |e: PyErr| {
            let interrupted = e.is_instance_of::<PyKeyboardInterrupt>(py);
            if interrupted {
                Error::Interrupted
            } else {
                Error::Loss(format!("an exception from {name}: {e}"))
            }
        };
        let arguments = (PyArray1::from_slice(py, u), PyArray1::from_slice(py, y));
        let returned = function.bind(py).call1(arguments).map_err(failed)?;
        let n = u.len();
        let shape = || {
            Error::Loss(format!(
                "a result of {name} that is not an array of {n} floats"
            ))
        };
        let array: PyArrayLike1<'_, f64, AllowTypeChange> =
            returned.extract().map_err(|_| shape())?;
        let values = array.as_array();
        if values.len() != out.len() {
            return Err(shape());
        }
        out.iter_mut().zip(values).for_each(|(o, v)| *o = *v);
        Ok(())
    })
}
