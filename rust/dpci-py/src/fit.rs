//! A fit: its public choices as a validated Python object, and its release.

use std::sync::Arc;

use dpci_core::Result;
use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::mechanism::release_fit;
use dpci_core::privacy::{Calibration, Neighbors, Perturbation, Split};
use dpci_core::spec::{self as core, Choices, Moments, NoiseKind, Projection, Variant};
use dpci_core::study::{Reference, expected_lengths};
use pyo3::prelude::*;

use crate::cost::{Budget, Seal, Step, seals, steps};
use crate::errors::to_python;
use crate::loss::Loss;
use crate::names::Named;
use crate::parts::{Read, Rules};
use crate::records::{Arrays, Data, Records, with_noise};
use crate::release::Kind;
use crate::rows::Rows;
use crate::task;
use crate::terms::Terms;
use crate::values::{Floats, Matrix, Table, Vector};

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
    /// How the parameters are sealed.
    #[pyo3(get)]
    seal: Seal,
    #[pyo3(get)]
    sensitivity: f64,
    #[pyo3(get)]
    noise_law: &'static str,
    #[pyo3(get)]
    noise_scale: f64,
    /// λ, with what the variant cms11 added to it.
    #[pyo3(get)]
    l2_strength: f64,
    #[pyo3(get)]
    slope_bound: f64,
    #[pyo3(get)]
    curvature_bound: f64,
    #[pyo3(get)]
    strong_convexity: f64,
    /// Divisor of the sums over the records.
    #[pyo3(get)]
    divisor: f64,
}

impl From<core::Spec> for Spec {
    fn from(inner: core::Spec) -> Self {
        Self {
            seal: Seal::from(inner.seal()),
            sensitivity: inner.sensitivity(),
            noise_law: inner.law().name(),
            noise_scale: inner.law().scale(),
            l2_strength: inner.l2_strength(),
            slope_bound: inner.slope_bound(),
            curvature_bound: inner.curvature_bound(),
            strong_convexity: inner.strong_convexity(),
            divisor: inner.bounds().n,
            inner,
        }
    }
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
        core::Spec::new(choices).map(Self::from).map_err(to_python)
    }

    #[getter]
    fn noise_scale_slope(&self) -> f64 {
        self.inner.scale_slope()
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
        params: Floats<'_>,
        hessian: Table<'_>,
        gradient_cov: Table<'_>,
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

/// At least as many passes over its rows has a fit: what one pass of many groups counts for the number of threads.
const PASSES: usize = 8;

/// A fit as Python reads it.
#[derive(IntoPyObject)]
pub(crate) struct Fit {
    params: Vector,
    hessian: Option<Matrix>,
    gradient_cov: Option<Matrix>,
    noise_law: &'static str,
    noise_scale: f64,
    noise_spectral_radius: f64,
    projection: &'static str,
    steps: Vec<Step>,
    seals: Vec<Seal>,
    private: bool,
}

impl Kind for Spec {
    type Values = Fit;

    fn rules(&self, on_violation: OnViolation) -> Rules {
        let c = self.inner.choices();
        let (rows, targets) = (c.rows.clone(), c.loss.targets());
        Rules::new(rows, targets, c.intercept, &c.terms, on_violation)
    }

    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<Fit> {
        fit_of(self, read.compacted(exec)?.records(), seed, 0, exec)
    }
}

/// One fit for each group, on one thread each, in the order of the groups. A seed gives each group a stream of its own.
#[pyfunction]
#[pyo3(signature = (specs, groups, *, on_violation, n_threads, seed))]
pub(crate) fn fit_many(
    py: Python<'_>,
    specs: Vec<Bound<'_, Spec>>,
    groups: Vec<Bound<'_, Records>>,
    on_violation: Named<OnViolation>,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<Vec<Fit>> {
    let arrays = groups.iter().map(|records| records.get().arrays(py));
    let arrays: Vec<Arrays<'_>> = arrays.collect::<PyResult<_>>()?;
    let groups = specs.iter().zip(&arrays);
    let groups: Vec<(&Spec, Data<'_>)> = groups
        .map(|(spec, arrays)| Ok((spec.get(), arrays.data()?)))
        .collect::<PyResult<_>>()?;
    task::run(py, |cancel| {
        let elements = groups.iter().map(|(_, data)| data.elements());
        let elements = elements.sum::<usize>().saturating_mul(PASSES);
        let exec = Executor::new(n_threads, elements, cancel)?;
        exec.map(groups.len(), |group| {
            let (spec, data) = &groups[group];
            let one = Executor::sequential(cancel);
            let design = data.design(&spec.rules(on_violation.0), &one)?.compacted(&one)?;
            fit_of(spec, &design, seed, group as u64, &one)
        })
    })
}

fn fit_of(
    spec: &Spec,
    records: &dyn dpci_core::records::Records,
    seed: Option<u64>,
    stream: u64,
    exec: &Executor<'_>,
) -> Result<Fit> {
    let spec = &spec.inner;
    let fit = with_noise!(seed, stream, |g| release_fit(spec, records, exec, g))?;
    let matrices = fit.matrices.as_ref();
    let projection = matrices.map_or("none", |_| fit.projection.name());
    let (hessian, gradient_cov) = fit.matrices.map(|[h, s]| (h, s)).unzip();
    Ok(Fit {
        params: Vector::of(fit.params),
        hessian: hessian.map(Matrix::square),
        gradient_cov: gradient_cov.map(Matrix::square),
        noise_law: spec.law().name(),
        noise_scale: spec.law().scale(),
        noise_spectral_radius: fit.spectral_radius,
        projection,
        steps: steps(&fit.steps),
        seals: seals(&fit.seals),
        private: seed.is_none(),
    })
}
