//! Public terms of a release, which every specification takes.

use dpci_core::privacy::Neighbors;
use dpci_core::spec;
use dpci_core::unit::{Unit, Weighting};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::names::Named;

/// How many records there are, in what neighbouring data sets differ, whose the rows are and how much they weigh.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Terms {
    pub(crate) inner: spec::Terms,
}

#[pymethods]
impl Terms {
    #[new]
    #[pyo3(signature = (n_samples, neighbors, *, persons=false, max_rows=None, weights=None, far_rows=false))]
    fn new(
        n_samples: usize,
        neighbors: Named<Neighbors>,
        persons: bool,
        max_rows: Option<u32>,
        weights: Option<(f64, Option<f64>)>,
        far_rows: bool,
    ) -> PyResult<Self> {
        // Rows beyond their bounds weigh at most 1.
        let weights = weights.or(far_rows.then_some((1.0, None)));
        let weighting = weights.map(|(bound, total)| {
            let weighting = Weighting::new(bound, total.unwrap_or(n_samples as f64))?;
            Ok(Weighting { far_rows, ..weighting })
        });
        let inner = spec::Terms {
            n_samples,
            neighbors: neighbors.0,
            unit: unit_of(persons, max_rows)?,
            weighting: weighting.transpose().map_err(to_python)?,
        };
        Ok(Self { inner })
    }
}

/// A person, of whose rows as many count, or a row.
pub(crate) fn unit_of(persons: bool, max_rows: Option<u32>) -> PyResult<Unit> {
    if persons {
        Unit::persons(max_rows).map_err(to_python)
    } else {
        Ok(Unit::Row)
    }
}
