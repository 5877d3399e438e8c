//! Private tuning: its specification, its accounting, its release, and simulated tunings.

use std::sync::Arc;

use dpci_core::Result;
use dpci_core::design::OnViolation;
use dpci_core::exec::Executor;
use dpci_core::mechanism::release_tuning;
use dpci_core::privacy::{self, Cost};
use dpci_core::spec::{TuningMethod, TuningSpec as CoreSpec};
use dpci_core::study;
use pyo3::prelude::*;

use crate::cost::{Budget, Parameters, Seal, seals};
use crate::errors::to_python;
use crate::fit::Spec;
use crate::loss::Loss;
use crate::names::Named;
use crate::names::unknown;
use crate::parts::{Read, Rules};
use crate::records::{Records, with_noise};
use crate::release::Kind;
use crate::task;
use crate::values::{Matrix, Vector};

/// The candidates of a tuning and how one is chosen; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct TuningSpec {
    pub(crate) inner: CoreSpec,
    /// Specification against which the rows are checked, the same for all candidates.
    first: Spec,
}

/// Public facts of a tuning.
#[derive(IntoPyObject)]
struct Facts {
    model_budget: Parameters,
    score_budget: Parameters,
    radii: Vec<f64>,
    score_noise: &'static str,
    score_scale: f64,
    score_sensitivity: f64,
    chunk_sizes: Option<Vec<usize>>,
    score_seal: Vec<Seal>,
    expected_runs: Option<f64>,
    greatest_runs: Option<usize>,
    shape: Option<f64>,
}

#[pymethods]
impl TuningSpec {
    #[new]
    #[pyo3(signature = (candidates, *, loss, validation_radius, method, shape, expected_runs, budget))]
    fn new(
        candidates: Vec<Bound<'_, Spec>>,
        loss: &Loss,
        validation_radius: Option<f64>,
        method: &str,
        shape: f64,
        expected_runs: f64,
        budget: &Budget,
    ) -> PyResult<Self> {
        let method = match method {
            "chunks" => TuningMethod::Chunks,
            "repeat" => TuningMethod::Repeat { shape, expected_runs },
            _ => return Err(unknown("method", &["chunks", "repeat"], method)),
        };
        let choices: Vec<_> = candidates.iter().map(|c| c.get().inner.asked_choices()).collect();
        let inner = CoreSpec::new(
            &choices,
            Arc::clone(&loss.inner),
            validation_radius,
            budget.inner,
            method,
        )
        .map_err(to_python)?;
        let first = Spec::from(inner.candidates()[0].clone());
        Ok(Self { inner, first })
    }

    fn facts(&self) -> Facts {
        let score = self.inner.score_step();
        let score_seal = self.inner.score_seal().map(std::slice::from_ref);
        let count = self.inner.run_count();
        Facts {
            model_budget: Parameters(Cost::of(self.first.inner.budget())),
            score_budget: Parameters(Cost::of(score.budget)),
            radii: self.inner.radii().to_vec(),
            score_noise: score.noise.name(),
            score_scale: score.scale,
            score_sensitivity: score.sensitivity,
            chunk_sizes: self.inner.chunk_sizes().map(<[usize]>::to_vec),
            score_seal: seals(score_seal.unwrap_or_default()),
            expected_runs: count.map(privacy::RunCount::mean),
            greatest_runs: count.map(privacy::RunCount::greatest),
            shape: count.map(privacy::RunCount::shape),
        }
    }

    /// One candidate as it is fitted in a run or on its part.
    fn model(&self, index: usize) -> Option<Spec> {
        self.inner.candidates().get(index).cloned().map(Spec::from)
    }
}

impl Kind for TuningSpec {
    /// (chosen candidate, its parameters, whether they are private).
    type Values = (usize, Vector, bool);

    fn rules(&self, on_violation: OnViolation) -> Rules {
        self.first.rules(on_violation)
    }

    fn release(&self, read: Read<'_>, seed: Option<u64>, exec: &Executor<'_>) -> Result<Self::Values> {
        let (spec, design) = (&self.inner, read.design()?);
        let selected = with_noise!(seed, 0, |g| release_tuning(spec, &design, exec, g))?;
        Ok((selected.index, Vector::of(selected.params), seed.is_none()))
    }
}

#[pyfunction]
#[pyo3(signature = (candidates, loss, records, *, on_violation, n_runs, seed, n_threads))]
pub(crate) fn candidate_losses(
    py: Python<'_>,
    candidates: Vec<Bound<'_, Spec>>,
    loss: &Bound<'_, Loss>,
    records: &Bound<'_, Records>,
    on_violation: Named<OnViolation>,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Matrix> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let specs: Vec<_> = candidates.iter().map(|c| c.get().inner.clone()).collect();
    let loss = &loss.get().inner;
    let first = candidates.first().map(Bound::get);
    let losses = task::run(py, |cancel| {
        let Some(first) = first else {
            return Ok(Vec::new());
        };
        let exec = Executor::new(n_threads, usize::MAX, cancel)?;
        let design = data.design(&first.rules(on_violation.0), &exec)?;
        let design = design.compacted(&exec)?;
        study::simulate_losses(&specs, loss, &design, n_runs, seed, &exec)
    })?;
    Ok(Matrix::new(losses, [specs.len(), n_runs]))
}
