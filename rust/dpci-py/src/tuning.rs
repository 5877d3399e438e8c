//! Private tuning: its specification, its accounting, its release, and simulated tunings.

use std::sync::Arc;

use dpci_core::exec::Executor;
use dpci_core::mechanism::{Values, release_tuning as release};
use dpci_core::privacy::{self, Cost};
use dpci_core::spec::{TuningMethod, TuningSpec as CoreSpec};
use dpci_core::study;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cost::{Budget, Seal, parameters, seals};
use crate::errors::to_python;
use crate::loss::Loss;
use crate::records::{Records, with_noise};
use crate::spec::{Spec, unknown};
use crate::task;

/// The candidates of a tuning and how one is chosen; holds no data.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct TuningSpec {
    pub(crate) inner: CoreSpec,
    /// Specification against which the rows are checked, the same for all candidates.
    pub(crate) first: Spec,
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
            "repeat" => TuningMethod::Repeat {
                shape,
                expected_runs,
            },
            _ => return Err(unknown("method", method)),
        };
        let choices: Vec<_> = candidates
            .iter()
            .map(|c| c.get().inner.asked_choices())
            .collect();
        let inner = CoreSpec::new(
            &choices,
            Arc::clone(&loss.inner),
            validation_radius,
            budget.inner,
            method,
        )
        .map_err(to_python)?;
        let first = Spec {
            inner: inner.candidates()[0].clone(),
        };
        Ok(Self { inner, first })
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let score = self.inner.score_step();
        dict.set_item(
            "model_budget",
            parameters(py, Cost::of(self.first.inner.budget()))?,
        )?;
        dict.set_item("score_budget", parameters(py, Cost::of(score.budget))?)?;
        dict.set_item("radii", self.inner.radii().to_vec())?;
        dict.set_item("score_noise", score.noise.name())?;
        dict.set_item("score_scale", score.scale)?;
        dict.set_item("score_sensitivity", score.sensitivity)?;
        dict.set_item(
            "chunk_sizes",
            self.inner.chunk_sizes().map(<[usize]>::to_vec),
        )?;
        let score_seal = self.inner.score_seal().map(std::slice::from_ref);
        dict.set_item("score_seal", seals(score_seal.unwrap_or_default()))?;
        let count = self.inner.run_count();
        dict.set_item("expected_runs", count.map(privacy::RunCount::mean))?;
        dict.set_item("greatest_runs", count.map(privacy::RunCount::greatest))?;
        dict.set_item("shape", count.map(privacy::RunCount::shape))?;
        Ok(dict)
    }

    /// One candidate as it is fitted in a run or on its part.
    fn model(&self, index: usize) -> Option<Spec> {
        let inner = self.inner.candidates().get(index)?.clone();
        Some(Spec { inner })
    }

    /// How the parameters of one candidate's model are sealed: a list of one.
    fn model_seals(&self, index: usize) -> Vec<Seal> {
        let spec = self.inner.candidates().get(index);
        seals(
            spec.map(|s| std::slice::from_ref(s.seal()))
                .unwrap_or_default(),
        )
    }

    /// Law and scale of the noise of one candidate's model.
    fn model_noise(&self, index: usize) -> Option<(&'static str, f64, f64)> {
        let spec = self.inner.candidates().get(index)?;
        Some((spec.law().name(), spec.law().scale(), spec.sensitivity()))
    }
}

#[pyfunction]
#[pyo3(signature = (spec, records, *, clip, n_threads, seed))]
pub(crate) fn release_tuning<'py>(
    py: Python<'py>,
    spec: &Bound<'py, TuningSpec>,
    records: &Bound<'py, Records>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<(usize, Bound<'py, PyArray1<f64>>, bool)> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let spec = spec.get();
    let selected = task::run_over(py, &data, n_threads, |exec| {
        let design = spec.first.design(&data, clip, exec)?;
        with_noise!(seed, 0, |generator| release(
            &spec.inner,
            &design,
            exec,
            generator
        ))
    })?;
    let params = PyArray1::from_vec(py, selected.params.into_values());
    Ok((selected.index, params, seed.is_none()))
}

#[pyfunction]
#[pyo3(signature = (candidates, loss, records, *, clip, n_runs, seed, n_threads))]
#[expect(clippy::too_many_arguments, reason = "keyword-only beside the data")]
pub(crate) fn candidate_losses<'py>(
    py: Python<'py>,
    candidates: Vec<Bound<'py, Spec>>,
    loss: &Bound<'py, Loss>,
    records: &Bound<'py, Records>,
    clip: bool,
    n_runs: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
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
        let design = first.design(&data, clip, &exec)?.compacted(&exec)?;
        study::simulate_losses(&specs, loss, &design, n_runs, seed, &exec)
    })?;
    PyArray1::from_vec(py, losses).reshape([specs.len(), n_runs])
}

/// Law of the number of runs, and what releasing the best run costs.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct RunCount {
    inner: privacy::RunCount,
}

#[pymethods]
impl RunCount {
    #[new]
    fn new(shape: f64, mean: f64) -> PyResult<Self> {
        let inner = privacy::RunCount::new(shape, mean).map_err(to_python)?;
        Ok(Self { inner })
    }

    #[getter]
    fn gamma(&self) -> f64 {
        self.inner.gamma()
    }

    fn probabilities<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.inner.probabilities())
    }

    fn run_epsilon(&self, epsilon: f64) -> PyResult<f64> {
        self.inner.run_epsilon(epsilon).map_err(to_python)
    }

    fn rdp(&self, order: f64, rho: f64) -> f64 {
        self.inner.rdp(order, rho)
    }

    fn delta(&self, epsilon: f64, rho: f64) -> PyResult<f64> {
        self.inner.delta(epsilon, rho).map_err(to_python)
    }

    fn run_rho(&self, epsilon: f64, delta: f64) -> PyResult<f64> {
        self.inner.run_rho(epsilon, delta).map_err(to_python)
    }
}
