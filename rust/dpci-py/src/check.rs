//! The check of the rows by itself, for a caller who wants bad data refused before paying for a release.

use dpci_core::design::{Design, RowBounds};
use dpci_core::row_domain::RowDomain;
use dpci_core::unit::Weighting;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::data::{Data, Features, on_violation};
use crate::errors::to_python;
use crate::loss::Loss;
use crate::rows::Rows;
use crate::task;

#[pyfunction]
#[pyo3(signature = (x, y, *, loss, row_norm, intercept, clip, n_threads, weights=None, weight_bound=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "keyword-only: one per public bound"
)]
pub(crate) fn check_rows(
    py: Python<'_>,
    x: Features<'_>,
    y: PyReadonlyArray1<'_, f64>,
    loss: &Loss,
    row_norm: Rows<'_>,
    intercept: Option<f64>,
    clip: bool,
    n_threads: Option<usize>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    weight_bound: Option<f64>,
) -> PyResult<()> {
    let data = Data::new(&x, &y)?;
    let weights = weights.as_ref().map(|w| w.as_slice()).transpose()?;
    let rows = match row_norm.domain() {
        RowDomain::Ball(norm) => data
            .rows()
            .unit_blocks()
            .map_err(to_python)?
            .unwrap_or(RowDomain::Ball(norm)),
        blocks @ RowDomain::Blocks(_) => blocks,
    };
    let bounds = RowBounds {
        rows,
        targets: loss.inner.targets(),
        on_violation: on_violation(clip),
    };
    task::run_over(py, &data, n_threads, |exec| {
        let design = Design::new(data.rows(), data.targets(), intercept, &bounds, exec)?;
        match (weights, weight_bound) {
            // Of the two public values the bound alone decides which weights pass.
            (Some(weights), Some(bound)) => design
                .weighted(weights, Weighting::new(bound, bound)?)
                .map(|_| ()),
            _ => Ok(()),
        }
    })
}
