//! The public choices of a fit as a validated Python object.

use std::sync::Arc;

use dpci_core::privacy::{Calibration, Perturbation, Split};
use dpci_core::spec::{self as core, Choices, Moments, NoiseKind, Projection, Variant};
use dpci_core::study::{Reference, expected_lengths};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::cost::{Budget, Seal, Step, seals, steps};
use crate::errors::{InvalidInput, to_python};
use crate::loss::Loss;
use crate::rows::Rows;
use crate::terms::{Terms, neighbors_of};
use crate::values::Vector;

/// A release before data are seen.
#[derive(IntoPyObject)]
struct Plan {
    steps: Vec<Step>,
    least_l2_strength: f64,
    noise_spectral_radius: f64,
    noise_ratio: f64,
    projection: &'static str,
    privacy_length: (f64, f64),
    tolerance: f64,
    seals: Vec<Seal>,
    row_norm: f64,
    n_params: usize,
}

/// Validated public choices; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Spec {
    pub(crate) inner: core::Spec,
}

#[pymethods]
impl Spec {
    #[new]
    #[pyo3(signature = (terms, *, n_columns, intercept, row_norm, loss, l2_strength, radius, budget, mechanism, noise, variant, project, split, moments, projection, calibration))]
    fn new(
        terms: &Terms,
        n_columns: usize,
        intercept: Option<f64>,
        row_norm: Rows<'_>,
        loss: &Loss,
        l2_strength: f64,
        radius: Option<f64>,
        budget: &Budget,
        mechanism: &str,
        noise: Option<&str>,
        variant: &str,
        project: bool,
        split: Option<(f64, f64, f64)>,
        moments: &str,
        projection: &str,
        calibration: &str,
    ) -> PyResult<Self> {
        let choices = Choices {
            n_columns,
            intercept,
            rows: row_norm.domain(),
            loss: Arc::clone(&loss.inner),
            l2_strength,
            radius,
            budget: budget.inner,
            perturbation: perturbation(mechanism)?,
            noise: noise.map(noise_kind).transpose()?,
            variant: match variant {
                "standard" => Variant::Standard,
                "cms11" => Variant::Cms11,
                _ => return Err(unknown("variant", variant)),
            },
            project,
            split: split
                .map(|(a, b, c)| Split::new(a, b, c))
                .transpose()
                .map_err(to_python)?,
            moments: match moments {
                "joint" => Moments::Joint,
                "levels" => Moments::Levels,
                "separate" => Moments::Separate,
                "none" => Moments::None,
                _ => return Err(unknown("moments", moments)),
            },
            reserve: 0.0,
            projection: match projection {
                "floor" => Projection::Floor,
                "cautious" => Projection::Cautious,
                "auto" => Projection::Auto,
                "noise_aware" => Projection::NoiseAware,
                _ => return Err(unknown("projection", projection)),
            },
            calibration: calibration_of(calibration)?,
            terms: terms.inner,
        };
        Ok(Self {
            inner: core::Spec::new(choices).map_err(to_python)?,
        })
    }

    #[getter]
    fn noise_law(&self) -> &'static str {
        self.inner.law().name()
    }

    #[getter]
    fn noise_scale(&self) -> f64 {
        self.inner.law().scale()
    }

    #[getter]
    fn noise_scale_slope(&self) -> f64 {
        self.inner.scale_slope()
    }

    /// λ, with what the variant cms11 added to it.
    #[getter]
    fn l2_strength(&self) -> f64 {
        self.inner.l2_strength()
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
    fn strong_convexity(&self) -> f64 {
        self.inner.strong_convexity()
    }

    /// Divisor of the sums over the records.
    #[getter]
    fn divisor(&self) -> f64 {
        self.inner.bounds().n
    }

    fn plan(&self) -> PyResult<Plan> {
        let plan = self.inner.plan().map_err(to_python)?;
        Ok(Plan {
            steps: steps(&plan.steps),
            least_l2_strength: plan.least_l2_strength,
            noise_spectral_radius: plan.spectral_radius,
            noise_ratio: plan.spectral_radius / self.inner.strong_convexity(),
            projection: plan.projection.name(),
            privacy_length: plan.privacy_length.into(),
            tolerance: self.inner.tolerance(),
            seals: seals(&plan.seals),
            row_norm: self.inner.row_norm(),
            n_params: self.inner.n_params(),
        })
    }

    /// Mean lengths of intervals over simulated releases, from the matrices of an earlier fit; not private.
    fn expected_lengths(
        &self,
        py: Python<'_>,
        params: PyReadonlyArray1<'_, f64>,
        hessian: PyReadonlyArray2<'_, f64>,
        gradient_cov: PyReadonlyArray2<'_, f64>,
        l2_strength: f64,
        neighbors: &str,
        level: f64,
    ) -> PyResult<Vector> {
        let reference = Reference {
            params: params.as_slice()?,
            hessian: hessian.as_slice()?,
            gradient_cov: gradient_cov.as_slice()?,
            l2_strength,
            neighbors: neighbors_of(neighbors)?,
        };
        let lengths = py.detach(|| expected_lengths(&self.inner, &reference, level));
        Ok(Vector(lengths.map_err(to_python)?))
    }
}

pub(crate) fn perturbation(name: &str) -> PyResult<Perturbation> {
    match name {
        "objective" => Ok(Perturbation::Objective),
        "output" => Ok(Perturbation::Output),
        _ => Err(unknown("mechanism", name)),
    }
}

pub(crate) fn calibration_of(name: &str) -> PyResult<Calibration> {
    match name {
        "tight" => Ok(Calibration::Tight),
        "paper" => Ok(Calibration::Paper),
        _ => Err(unknown("calibration", name)),
    }
}

fn noise_kind(name: &str) -> PyResult<NoiseKind> {
    match name {
        "spherical_laplace" => Ok(NoiseKind::SphericalLaplace),
        "shaped_laplace" => Ok(NoiseKind::ShapedLaplace),
        "shaped_gaussian" => Ok(NoiseKind::ShapedGaussian),
        "gaussian" => Ok(NoiseKind::Gaussian),
        _ => Err(unknown("noise", name)),
    }
}

pub(crate) fn unknown(name: &str, value: &str) -> PyErr {
    InvalidInput::new_err(format!(
        "{name} must be one of the documented names, got {name}={value:?}"
    ))
}
