//! The private fit.

use dpci_core::Result;
use dpci_core::exec::Executor;
use dpci_core::mechanism::{Fit, Values, release_fit};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cost::{seals, steps};
use crate::parts::{Facts, FirstPass, with_parts};
use crate::records::{Arrays, Data, Records, with_noise};
use crate::spec::Spec;
use crate::task;

/// At least as many passes over its rows has a fit: what one pass of many groups counts for the number of threads.
const PASSES: usize = 8;

#[pyfunction]
#[pyo3(signature = (spec, records, *, clip, n_threads, seed))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    spec: &Bound<'py, Spec>,
    records: &Bound<'py, Records>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let arrays = records.get().arrays(py)?;
    let data = arrays.data()?;
    let spec = spec.get();
    let fit = task::run_over(py, &data, n_threads, |exec| {
        let design = spec.design(&data, clip, exec)?.compacted(exec)?;
        release(spec, &design, seed, 0, exec)
    })?;
    to_dict(py, spec, fit, seed.is_none())
}

/// One fit for each group, on one thread each, in the order of the groups. A seed gives each group a stream of its own.
#[pyfunction]
#[pyo3(signature = (specs, groups, *, clip, n_threads, seed))]
pub(crate) fn fit_many<'py>(
    py: Python<'py>,
    specs: Vec<Bound<'py, Spec>>,
    groups: Vec<Bound<'py, Records>>,
    clip: bool,
    n_threads: Option<usize>,
    seed: Option<u64>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let arrays = groups.iter().map(|records| records.get().arrays(py));
    let arrays: Vec<Arrays<'_>> = arrays.collect::<PyResult<_>>()?;
    let groups = specs.iter().zip(&arrays);
    let groups: Vec<(&Spec, Data<'_>)> = groups
        .map(|(spec, arrays)| Ok((spec.get(), arrays.data()?)))
        .collect::<PyResult<_>>()?;
    let fits = task::run(py, |cancel| {
        let elements = groups
            .iter()
            .map(|(_, data)| data.elements())
            .sum::<usize>();
        let exec = Executor::new(n_threads, elements.saturating_mul(PASSES), cancel)?;
        exec.map(groups.len(), |group| {
            let (spec, data) = &groups[group];
            let one = Executor::sequential(cancel);
            let design = spec.design(data, clip, &one)?.compacted(&one)?;
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
    records: &dyn dpci_core::records::Records,
    seed: Option<u64>,
    stream: u64,
    exec: &Executor<'_>,
) -> Result<Fit> {
    with_noise!(seed, stream, |generator| release_fit(
        &spec.inner,
        records,
        exec,
        generator
    ))
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
