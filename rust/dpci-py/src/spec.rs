//! The public choices of a fit as a validated Python object.

use std::sync::Arc;

use dpci_core::design::RowBounds;
use dpci_core::privacy::{Calibration, Neighbors, Perturbation, Split};
use dpci_core::spec::{self as core, Choices, Moments, NoiseKind, Projection, Terms, Variant};
use dpci_core::study::{Reference, expected_lengths};
use dpci_core::unit::{Unit, Weighting};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::cost::{Budget, Seal, Step, seals, steps};
use crate::errors::{InvalidInput, to_python};
use crate::loss::Loss;
use crate::records::on_violation;
use crate::rows::Rows;
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

impl Spec {
    /// The bounds that rows have to obey.
    pub(crate) fn row_bounds(&self, clip: bool) -> RowBounds {
        let choices = self.inner.choices();
        RowBounds {
            rows: choices.rows.clone(),
            targets: choices.loss.targets(),
            on_violation: on_violation(clip),
        }
    }
}

#[pymethods]
impl Spec {
    #[new]
    #[pyo3(signature = (*, n_samples, n_columns, intercept, row_norm, loss, l2_strength, radius, budget, mechanism, noise, variant, project, split, moments, projection, calibration, neighbors, persons=false, max_rows=None, weight_bound=None, weight_total=None))]
    fn new(
        n_samples: usize,
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
        neighbors: &str,
        persons: bool,
        max_rows: Option<u32>,
        weight_bound: Option<f64>,
        weight_total: Option<f64>,
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
            terms: terms_of(
                n_samples,
                neighbors,
                persons,
                max_rows,
                weight_bound,
                weight_total,
            )?,
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

pub(crate) fn neighbors_of(name: &str) -> PyResult<Neighbors> {
    match name {
        "replace_one" => Ok(Neighbors::ReplaceOne),
        "add_remove" => Ok(Neighbors::AddRemove),
        _ => Err(unknown("neighbors", name)),
    }
}

pub(crate) fn calibration_of(name: &str) -> PyResult<Calibration> {
    match name {
        "tight" => Ok(Calibration::Tight),
        "paper" => Ok(Calibration::Paper),
        _ => Err(unknown("calibration", name)),
    }
}

/// Terms of a release by their keywords.
pub(crate) fn terms_of(
    n_samples: usize,
    neighbors: &str,
    persons: bool,
    max_rows: Option<u32>,
    weight_bound: Option<f64>,
    weight_total: Option<f64>,
) -> PyResult<Terms> {
    Ok(Terms {
        n_samples,
        neighbors: neighbors_of(neighbors)?,
        unit: unit_of(persons, max_rows)?,
        weighting: weighting_of(weight_bound, weight_total, n_samples)?,
    })
}

/// A person, of whose rows as many count, or a row.
pub(crate) fn unit_of(persons: bool, max_rows: Option<u32>) -> PyResult<Unit> {
    if persons {
        Unit::persons(max_rows).map_err(to_python)
    } else {
        Ok(Unit::Row)
    }
}

/// Public bound and total of weights; the total is the number of records where none is given.
pub(crate) fn weighting_of(
    bound: Option<f64>,
    total: Option<f64>,
    n_samples: usize,
) -> PyResult<Option<Weighting>> {
    if bound.is_none() && total.is_some() {
        return Err(InvalidInput::new_err(
            "weight_bound must be given with weight_total, got weight_bound=None",
        ));
    }
    bound
        .map(|bound| Weighting::new(bound, total.unwrap_or(n_samples as f64)))
        .transpose()
        .map_err(to_python)
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
