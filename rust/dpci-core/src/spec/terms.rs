//! Public terms of a release: how many records there are, and what neighbouring data sets differ in.

use crate::privacy::{DataBounds, Neighbors};
use crate::unit::{Unit, Weighting};
use crate::{Error, Result};

/// How many records there are, and what neighbouring data sets differ in.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Public number of records (the public `n₀` under add/remove).
    pub n_samples: usize,
    /// Neighbouring relation.
    pub neighbors: Neighbors,
    /// Whose privacy is protected; `n_samples` is their number.
    pub unit: Unit,
    /// Public bound and total of the weights of records; `None`: each counts once.
    pub weighting: Option<Weighting>,
}

impl Terms {
    /// Rows that count once each.
    pub fn of_rows(n_samples: usize, neighbors: Neighbors) -> Self {
        Self {
            n_samples,
            neighbors,
            unit: Unit::Row,
            weighting: None,
        }
    }

    /// Whether every record is a row that counts once.
    pub fn is_of_rows(&self) -> bool {
        self.unit == Unit::Row && self.weighting.is_none()
    }

    /// Whether every record counts 1 in all.
    pub fn counts_one(&self) -> bool {
        self.unit.counts_one() && self.weighting.is_none()
    }

    /// Divisor of the sums over the records.
    pub fn divisor(&self) -> f64 {
        self.weighting.map_or(self.n_samples as f64, Weighting::divisor)
    }

    /// Whether rows may lie beyond their bounds, and then weigh less.
    #[must_use]
    pub fn has_far_rows(&self) -> bool {
        self.weighting.is_some_and(|weighting| weighting.far_rows)
    }

    /// Bound on the weight of a record; `None`: each counts once.
    pub fn weight_bound(&self) -> Option<f64> {
        self.weighting.map(|weighting| weighting.bound)
    }

    /// Refuses a release of no record or no number.
    pub(in crate::spec) fn check_any(&self, params: usize) -> Result<()> {
        let rows = self.n_samples;
        if rows == 0 || params == 0 {
            return Err(Error::Empty { rows, params });
        }
        Ok(())
    }

    /// Bounds on the means over the records, whose rows have this norm at most.
    pub(in crate::spec) fn bounds(&self, row_norm: f64, n_params: usize) -> Result<DataBounds> {
        let bounds = DataBounds::new(self.n_samples as f64, row_norm, self.neighbors, n_params)?;
        Ok(bounds.of(self.unit).weighted(self.weighting))
    }
}
