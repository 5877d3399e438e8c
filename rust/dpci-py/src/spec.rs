//! The public choices of a fit as a validated Python object.

use std::sync::Arc;

use dpci_core::privacy::{Calibration, Neighbors, Perturbation, Split};
use dpci_core::spec::{self as core, Choices, Moments, NoiseKind, Projection, Variant};
use dpci_core::study::{Reference, expected_lengths};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::cost::{Budget, Seal, Step, seals, steps};
use crate::errors::to_python;
use crate::loss::Loss;
use crate::names::Named;
use crate::rows::Rows;
use crate::terms::Terms;
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
        mechanism: Named<Perturbation>,
        noise: Option<Named<NoiseKind>>,
        variant: Named<Variant>,
        project: bool,
        split: Option<(f64, f64, f64)>,
        moments: Named<Moments>,
        projection: Named<Projection>,
        calibration: Named<Calibration>,
    ) -> PyResult<Self> {
        let choices = Choices {
            n_columns,
            intercept,
            rows: row_norm.domain(),
            loss: Arc::clone(&loss.inner),
            l2_strength,
            radius,
            budget: budget.inner,
            perturbation: mechanism.0,
            noise: noise.map(|noise| noise.0),
            variant: variant.0,
            project,
            split: split
                .map(|(a, b, c)| Split::new(a, b, c))
                .transpose()
                .map_err(to_python)?,
            moments: moments.0,
            reserve: 0.0,
            projection: projection.0,
            calibration: calibration.0,
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
        neighbors: Named<Neighbors>,
        level: f64,
    ) -> PyResult<Vector> {
        let reference = Reference {
            params: params.as_slice()?,
            hessian: hessian.as_slice()?,
            gradient_cov: gradient_cov.as_slice()?,
            l2_strength,
            neighbors: neighbors.0,
        };
        let lengths = py.detach(|| expected_lengths(&self.inner, &reference, level));
        Ok(Vector(lengths.map_err(to_python)?))
    }
}
