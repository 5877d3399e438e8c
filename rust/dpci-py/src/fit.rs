//! The private fit.

use dpci_core::Result;
use dpci_core::exec::Executor;
use dpci_core::mechanism::{Fit, Values, release_fit};
use dpci_core::noise::{ReleaseGenerator, SimulationGenerator};
use dpci_core::records::Records;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cost::{seals, steps};
use crate::data::{Counts, Data, Features};
use crate::parts::{Facts, FirstPass, with_parts};
use crate::spec::Spec;
use crate::task;

/// At least as many passes over its rows has a fit: what one pass of many groups counts for the number of threads.
const PASSES: usize = 8;

#[pyfunction]
#[pyo3(signature = (spec, x, y, *, clip, n_threads, seed, persons=None, weights=None))]
#[expect(clippy::too_many_arguments, reason = "keyword-only beside the data")]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    spec: &Bound<'py, Spec>,
    x: Features<'py>,
    y: PyReadonlyArray1<'py, f64>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
    persons: Option<PyReadonlyArray1<'py, i64>>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let data = Data::new(&x, &y)?;
    let counts = Counts::new(persons.as_ref(), weights.as_ref())?;
    let spec = spec.get();
    let fit = task::run_over(py, &data, n_threads, |exec| {
        let design = data.design(spec, clip, exec)?;
        let design = counts.on(design, spec.inner.choices(), exec)?;
        release(spec, &design, seed, 0, exec)
    })?;
    to_dict(py, spec, fit, seed.is_none())
}

/// One fit for each group, on one thread each, in the order of the groups. A seed gives each group a stream of its own.
#[pyfunction]
#[pyo3(signature = (specs, xs, ys, *, clip, n_threads, seed, persons=None, weights=None))]
#[expect(clippy::too_many_arguments, reason = "keyword-only beside the data")]
pub(crate) fn fit_many<'py>(
    py: Python<'py>,
    specs: Vec<Bound<'py, Spec>>,
    xs: Vec<Features<'py>>,
    ys: Vec<PyReadonlyArray1<'py, f64>>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
    persons: Option<Vec<PyReadonlyArray1<'py, i64>>>,
    weights: Option<Vec<PyReadonlyArray1<'py, f64>>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let groups: Vec<(&Spec, Data<'_>, Counts<'_>)> = specs
        .iter()
        .zip(xs.iter().zip(&ys))
        .enumerate()
        .map(|(group, (spec, (x, y)))| {
            let persons = persons.as_ref().and_then(|of| of.get(group));
            let weights = weights.as_ref().and_then(|of| of.get(group));
            Ok((spec.get(), Data::new(x, y)?, Counts::new(persons, weights)?))
        })
        .collect::<PyResult<_>>()?;
    let fits = task::run(py, |cancel| {
        let elements = groups
            .iter()
            .map(|(_, data, _)| data.elements())
            .sum::<usize>();
        let exec = Executor::new(n_threads, elements.saturating_mul(PASSES), cancel)?;
        exec.map(groups.len(), |group| {
            let (spec, data, counts) = &groups[group];
            let one = Executor::sequential(cancel);
            let design = data.design(spec, clip, &one)?;
            let design = counts.on(design, spec.inner.choices(), &one)?;
            release(spec, &design, seed, group as u64, &one)
        })
    })?;
    let named = specs.iter().zip(fits);
    named
        .map(|(spec, fit)| to_dict(py, spec.get(), fit, seed.is_none()))
        .collect()
}

#[pyfunction]
#[pyo3(signature = (spec, evaluate, *, first, clip, seed))]
pub(crate) fn fit_parts<'py>(
    py: Python<'py>,
    spec: &Bound<'py, Spec>,
    evaluate: Py<PyAny>,
    first: FirstPass,
    clip: bool,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = spec.get();
    let facts = Facts {
        first: &first,
        n_params: spec.inner.n_params() / spec.inner.choices().loss.n_predictors(),
        intercept: spec.inner.choices().intercept,
        bounds: spec.row_bounds(clip),
        unit: spec.inner.choices().unit,
        weight_bound: spec.inner.choices().weighting.map(|w| w.bound),
    };
    let fit = with_parts(py, evaluate, facts, |parts, exec| {
        release(spec, parts, seed, 0, exec)
    })?;
    to_dict(py, spec, fit, seed.is_none())
}

/// The release with noise of the operating system, or of a stream of a seed.
fn release(
    spec: &Spec,
    records: &dyn Records,
    seed: Option<u64>,
    stream: u64,
    exec: &Executor<'_>,
) -> Result<Fit> {
    match seed {
        None => release_fit(&spec.inner, records, exec, &mut ReleaseGenerator::new()?),
        Some(seed) => release_fit(
            &spec.inner,
            records,
            exec,
            &mut SimulationGenerator::new(seed, stream),
        ),
    }
}

fn to_dict<'py>(
    py: Python<'py>,
    spec: &Spec,
    fit: Fit,
    private: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let dim = spec.inner.n_params();
    let law = spec.inner.law();
    let dict = PyDict::new(py);
    let projection = fit
        .matrices
        .as_ref()
        .map_or("none", |_| fit.projection.name());
    dict.set_item("params", PyArray1::from_vec(py, fit.params.into_values()))?;
    let (hessian, gradient_cov) = fit
        .matrices
        .map_or((None, None), |[h, s]| (Some(h), Some(s)));
    for (name, matrix) in [("hessian", hessian), ("gradient_cov", gradient_cov)] {
        dict.set_item(
            name,
            matrix
                .map(|m| PyArray1::from_vec(py, m).reshape([dim, dim]))
                .transpose()?,
        )?;
    }
    dict.set_item("noise_law", law.name())?;
    dict.set_item("noise_scale", law.scale())?;
    dict.set_item("noise_spectral_radius", fit.spectral_radius)?;
    dict.set_item("projection", projection)?;
    dict.set_item("steps", steps(&fit.steps))?;
    dict.set_item("seals", seals(&fit.seals))?;
    dict.set_item("private", private)?;
    Ok(dict)
}
