//! Losses as opaque Python objects, and caller's losses as core losses.

use std::sync::Arc;

use dpci_core::error::check_length;
use dpci_core::loss::{
    self as core, Batch, CLogLog, Continued, Declaration, Evaluate, Hinge, Huber, HuberHinge, Logistic, Multinomial,
    NegativeBinomial, Poisson, Probit, Quantile, SmoothHinge, SoftLogistic, Squared, Targets,
};
use dpci_core::{Error, Result};
use numpy::{AllowTypeChange, PyArray1, PyArrayLike1};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::{InvalidInput, to_python};
use crate::values::{Floats, Vector};

/// A loss with its public bounds; immutable.
#[pyclass(frozen, module = "dpci._core")]
#[expect(clippy::struct_excessive_bools, reason = "facts, as of the core's losses")]
pub(crate) struct Loss {
    pub(crate) inner: Arc<dyn core::Loss>,
    #[pyo3(get)]
    name: &'static str,
    #[pyo3(get)]
    slope_bound: f64,
    #[pyo3(get)]
    curvature_bound: f64,
    #[pyo3(get)]
    one_signed: bool,
    #[pyo3(get)]
    target_bounds: Option<(f64, f64)>,
    #[pyo3(get)]
    strong_convexity: f64,
    #[pyo3(get)]
    predictor_bound: Option<f64>,
    /// Whether Newton steps continue it as a straight line beyond public predictors.
    #[pyo3(get)]
    is_continued: bool,
    #[pyo3(get)]
    is_likelihood: bool,
    #[pyo3(get)]
    may_be_flat: bool,
    #[pyo3(get)]
    kinked: bool,
}

impl Loss {
    fn of(loss: Result<impl core::Loss + 'static>) -> PyResult<Self> {
        let inner: Arc<dyn core::Loss> = Arc::new(loss.map_err(to_python)?);
        Ok(Self {
            name: inner.name(),
            slope_bound: inner.slope_bound(),
            curvature_bound: inner.curvature_bound(),
            one_signed: inner.one_signed(),
            target_bounds: match inner.targets() {
                Targets::Signs => None,
                targets => Some(targets.ends().into()),
            },
            strong_convexity: inner.curvature_floor(),
            predictor_bound: inner.predictor_bound(),
            is_continued: Continued::new(&inner).is_some(),
            is_likelihood: inner.is_likelihood(),
            may_be_flat: inner.may_be_flat(),
            kinked: inner.kinked(),
            inner,
        })
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
    /// A loss of this name, whose parameters are in the order of its class in Python.
    #[new]
    #[pyo3(signature = (name, *parameters))]
    fn new(name: &str, parameters: Vec<f64>) -> PyResult<Self> {
        match (name, &parameters[..]) {
            ("logistic", []) => Self::of(Ok(Logistic)),
            ("huber_hinge", &[h]) => Self::of(HuberHinge::new(h)),
            ("smooth_hinge", &[s]) => Self::of(SmoothHinge::new(s)),
            ("soft_logistic", []) => Self::of(Ok(SoftLogistic)),
            ("squared", &[bound]) => Self::of(Squared::new(bound)),
            ("hinge", []) => Self::of(Ok(Hinge)),
            ("poisson", &[bound]) => Self::of(Poisson::new(bound)),
            ("negative_binomial", &[bound, dispersion]) => Self::of(NegativeBinomial::new(bound, dispersion)),
            ("probit", []) => Self::of(Ok(Probit)),
            ("cloglog", []) => Self::of(Ok(CLogLog)),
            ("huber", &[bound, k]) => Self::of(Huber::new(bound, k)),
            ("quantile", &[quantile, bound, s]) => Self::of(Quantile::new(quantile, bound, s)),
            _ => Err(InvalidInput::new_err(format!(
                "loss must be a name and its parameters, got {name:?} with {parameters:?}"
            ))),
        }
    }

    #[staticmethod]
    fn multinomial(n_classes: usize) -> PyResult<Self> {
        Self::of(Multinomial::new(n_classes))
    }

    /// A loss of the caller's, which is declared so.
    #[staticmethod]
    fn custom(loss: Declared) -> PyResult<Self> {
        let bounds = loss.target_bounds;
        let declared = Declaration {
            slope_bound: loss.slope_bound,
            curvature_bound: loss.curvature_bound,
            strong_convexity: loss.strong_convexity,
            one_signed: loss.one_signed,
            targets: bounds.map_or(Targets::Signs, |(lower, upper)| Targets::Interval { lower, upper }),
            predictor_bound: loss.predictor_bound,
        };
        let functions = Arc::new(Functions {
            value: loss.value,
            slope: loss.slope,
            curvature: loss.curvature,
        });
        Self::of(core::Custom::new(functions, declared))
    }

    /// Values, slopes and curvatures.
    fn evaluate(&self, u: Floats<'_>, y: Floats<'_>) -> PyResult<(Vector, Vector, Vector)> {
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
}

/// The attributes of a custom loss.
#[derive(FromPyObject)]
struct Declared {
    value: Py<PyAny>,
    slope: Py<PyAny>,
    curvature: Py<PyAny>,
    slope_bound: f64,
    curvature_bound: f64,
    strong_convexity: f64,
    one_signed: bool,
    target_bounds: Option<(f64, f64)>,
    predictor_bound: Option<f64>,
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
        let shape = || Error::Loss(format!("a result of {name} that is not an array of {n} floats"));
        let array: PyArrayLike1<'_, f64, AllowTypeChange> = returned.extract().map_err(|_| shape())?;
        let values = array.as_array();
        if values.len() != out.len() {
            return Err(shape());
        }
        out.iter_mut().zip(values).for_each(|(o, v)| *o = *v);
        Ok(())
    })
}
