//! Per-instance privacy reports: the release, the bounds of records, and the exact losses, which are not private.

use std::sync::Arc;

use dpci_core::Result;
use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::mechanism::{self as core, Values};
use dpci_core::per_instance::{self, Derivatives, Model};
use dpci_core::row_domain::row_norm_bound;
use dpci_core::spec::{self, Claim, HessianBound};
use dpci_core::study::ex_post_losses;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::cost::{Seal, Step, seals, steps};
use crate::errors::to_python;
use crate::fit::Spec;
use crate::loss::Loss;
use crate::names::Named;
use crate::parts::{Read, Rules, Source};
use crate::records::{Records, with_noise};
use crate::release::Kind;
use crate::rows::Rows;
use crate::task;
use crate::terms::Terms;
use crate::values::{Floats, Matrix, Table, Vector};

/// Validated public choices of a model with its report; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct ReportSpec {
    pub(crate) inner: spec::ReportSpec,
    fit: Spec,
    /// Steps of the coefficients and, where they are released, the gradient and the Hessian.
    #[pyo3(get)]
    steps: Vec<Step>,
    /// How the coefficients are sealed. The seals of the derivatives cost the same, and the released coefficients decide them.
    #[pyo3(get)]
    seal: Seal,
}

#[pymethods]
impl ReportSpec {
    #[new]
    #[pyo3(signature = (spec, *, shares, failure_probability, simultaneous, bound))]
    fn new(
        spec: &Spec,
        shares: Option<[f64; 3]>,
        failure_probability: f64,
        simultaneous: bool,
        bound: Named<HessianBound>,
    ) -> PyResult<Self> {
        let claim = Claim::new(failure_probability, simultaneous, bound.0).map_err(to_python)?;
        let inner = spec::ReportSpec::new(&spec.inner.asked_choices(), shares).map_err(to_python)?;
        inner.check_claim(&claim).map_err(to_python)?;
        Ok(Self {
            fit: Spec::from(inner.fit().clone()),
            steps: steps(&inner.steps()),
            seal: Seal::from(inner.fit().seal()),
            inner,
        })
    }
}

/// A model with its report as Python reads it.
#[derive(IntoPyObject)]
pub(crate) struct Report {
    params: Vector,
    gradient: Option<Vector>,
    hessian: Option<Matrix>,
    noise_scale: f64,
    steps: Vec<Step>,
    seals: Vec<Seal>,
    private: bool,
}

impl Kind for ReportSpec {
    type Values = Report;

    fn rules(&self, on_violation: OnViolation) -> Rules {
        self.fit.rules(on_violation)
    }

    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<Report> {
        let (spec, design) = (&self.inner, read.compacted(exec)?.design()?);
        let release = with_noise!(seed, 0, |g| core::release_report(spec, &design, exec, g))?;
        let (gradient, hessian) = release.derivatives.map(|[g, h]| (g, h)).unzip();
        Ok(Report {
            params: Vector::of(release.params),
            gradient: gradient.map(Vector::of),
            hessian: hessian.map(|h| Matrix::square(h.into_values())),
            noise_scale: spec.fit().law().scale(),
            steps: steps(&spec.steps()),
            seals: seals(&release.seals),
            private: seed.is_none(),
        })
    }
}

/// (gradient, its noise's standard deviation, Hessian, that of an isometric coordinate).
type Released<'py> = (Floats<'py>, f64, Table<'py>, f64);

/// Bounds on the privacy losses of records, from released values.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct RecordBounds {
    inner: per_instance::RecordBounds,
    /// Divisor of sums over the records.
    divisor: f64,
    rules: Rules,
}

#[pymethods]
impl RecordBounds {
    #[new]
    #[pyo3(signature = (terms, *, loss, params, l2_strength, std_dev, delta, row_norm, intercept, on_violation, derivatives,
        failure_probability, simultaneous, bound))]
    fn new(
        terms: &Terms,
        loss: &Loss,
        params: Floats<'_>,
        l2_strength: f64,
        std_dev: f64,
        delta: f64,
        row_norm: Rows<'_>,
        intercept: Option<f64>,
        on_violation: Named<OnViolation>,
        derivatives: Option<Released<'_>>,
        failure_probability: f64,
        simultaneous: bool,
        bound: Named<HessianBound>,
    ) -> PyResult<Self> {
        let divisor = terms.inner.divisor();
        let model = Model {
            loss: Arc::clone(&loss.inner),
            params: params.as_slice()?.to_vec(),
            ridge: divisor * l2_strength,
            std_dev,
            row_norm: row_norm_bound(row_norm.domain().norm(), intercept),
        };
        let derivatives = match &derivatives {
            None => None,
            Some((gradient, gradient_std_dev, hessian, hessian_std_dev)) => Some(Derivatives {
                gradient: gradient.as_slice()?.to_vec(),
                gradient_std_dev: *gradient_std_dev,
                hessian: hessian.as_slice()?.to_vec(),
                hessian_std_dev: *hessian_std_dev,
            }),
        };
        let targets = model.loss.targets();
        let rules = Rules::new(row_norm.domain(), targets, intercept, &terms.inner, on_violation.0);
        let claim = Claim::new(failure_probability, simultaneous, bound.0).map_err(to_python)?;
        let inner = per_instance::RecordBounds::new(model, derivatives, &claim, delta);
        Ok(Self {
            inner: inner.map_err(to_python)?,
            divisor,
            rules,
        })
    }

    #[getter]
    fn hessian_radius(&self) -> Option<f64> {
        self.inner.hessian_radius()
    }

    /// (eps1, eps2, eps3) by record: by row, or by person.
    #[pyo3(signature = (records, *, n_threads))]
    fn evaluate(
        &self,
        py: Python<'_>,
        records: Source<'_>,
        n_threads: Option<usize>,
    ) -> PyResult<(Vector, Vector, Vector)> {
        let found = records.run(py, self.rules.clone(), n_threads, None, |read, exec| {
            self.inner.evaluate(&read.design()?, exec)
        })?;
        let [params, gradient, hessian] = [found.params, found.gradient, found.hessian].map(Vector);
        Ok((params, gradient, hessian))
    }

    /// Exact signed losses by record; not private.
    #[pyo3(signature = (data, records, member, *, n_threads))]
    fn ex_post_losses_not_private(
        &self,
        py: Python<'_>,
        data: &Bound<'_, Records>,
        records: &Bound<'_, Records>,
        member: PyReadonlyArray1<'_, bool>,
        n_threads: Option<usize>,
    ) -> PyResult<Vector> {
        let (data, records) = (data.get().arrays(py)?, records.get().arrays(py)?);
        let (data, records) = (data.data()?, records.data()?);
        let member = member.as_slice()?;
        let losses = task::run_over(py, &data, n_threads, |exec| {
            let data = data.design(&self.rules, exec)?;
            let records = records.design(&self.rules, exec)?;
            let model = self.inner.model();
            ex_post_losses(model, self.divisor, &data, &records, member, exec)
        })?;
        Ok(Vector(losses))
    }
}
