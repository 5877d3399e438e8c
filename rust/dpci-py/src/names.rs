//! Choices by their documented names.

use dpci_core::design::OnViolation;
use dpci_core::privacy::{Calibration, Neighbors, Perturbation};
use dpci_core::solver::Method;
use dpci_core::spec::{HessianBound, Moments, NoiseKind, Projection, Variant};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::errors::InvalidInput;

/// A choice of the core, which Python names.
pub(crate) struct Named<T>(pub(crate) T);

macro_rules! names {
    ($($class:ident, $what:literal: $($name:literal $variant:ident)*;)*) => {
        $(impl FromPyObject<'_, '_> for Named<$class> {
            type Error = PyErr;

            fn extract(name: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
                let name: PyBackedStr = name.extract()?;
                match &*name {
                    $($name => Ok(Self($class::$variant)),)*
                    _ => Err(unknown($what, &[$($name),*], &name)),
                }
            }
        })*
    };
}

names! {
    Calibration, "calibration": "tight" Tight "paper" Paper;
    HessianBound, "bound": "interpolated" Interpolated "paper" Paper;
    Method, "solver": "auto" Auto "newton" Newton "preconditioned" Preconditioned "lbfgs" Lbfgs "ball" Ball;
    Moments, "moments": "joint" Joint "levels" Levels "separate" Separate "none" None;
    Neighbors, "neighbors": "replace_one" ReplaceOne "add_remove" AddRemove;
    NoiseKind, "noise": "spherical_laplace" SphericalLaplace "shaped_laplace" ShapedLaplace
        "shaped_gaussian" ShapedGaussian "gaussian" Gaussian;
    OnViolation, "on_violation": "error" Error "clip" Clip "weight" Weight "keep" Keep;
    Perturbation, "mechanism": "objective" Objective "output" Output;
    Projection, "projection": "floor" Floor "cautious" Cautious "auto" Auto "noise_aware" NoiseAware;
    Variant, "variant": "standard" Standard "cms11" Cms11;
}

/// The refusal of a name that is none of these.
pub(crate) fn unknown(what: &str, names: &[&str], got: &str) -> PyErr {
    InvalidInput::new_err(format!(
        "{what} must be one of {}, got {what}={got:?}",
        names.join(", ")
    ))
}
