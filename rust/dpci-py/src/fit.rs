//! The private fit.

use dpci_core::Result;
use dpci_core::exec::Executor;
use dpci_core::mechanism::release_fit;
use pyo3::prelude::*;

use crate::cost::{Seal, Step, seals, steps};
use crate::parts::{Read, Rules};
use crate::records::{Arrays, Data, Records, with_noise};
use crate::release::Kind;
use crate::spec::Spec;
use crate::task;
use crate::values::{Matrix, Vector};

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
    type Core = dpci_core::spec::Spec;
    type Values = Fit;

    fn core(&self) -> &Self::Core {
        &self.inner
    }

    fn rules(&self, clip: bool) -> Rules {
        let c = self.inner.choices();
        Rules::new(
            c.rows.clone(),
            c.loss.targets(),
            c.intercept,
            &c.terms,
            clip,
        )
    }

    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<Fit> {
        fit_of(self, read.compacted(exec)?.records(), seed, 0, exec)
    }
}

/// One fit for each group, on one thread each, in the order of the groups. A seed gives each group a stream of its own.
#[pyfunction]
#[pyo3(signature = (specs, groups, *, clip, n_threads, seed))]
pub(crate) fn fit_many(
    py: Python<'_>,
    specs: Vec<Bound<'_, Spec>>,
    groups: Vec<Bound<'_, Records>>,
    clip: bool,
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
            let design = data.design(&spec.rules(clip), &one)?.compacted(&one)?;
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
