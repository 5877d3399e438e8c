//! The choices of the histogram baseline: a public grid, and the noise on its counts.
//!
//! Lei 2011, "Differentially private M-estimators"; docs/baselines.md.

mod grid;

pub use grid::{Axis, Grid};

use super::fit::share_seal;
use super::functional::independent;
use super::moment_matrix::cost_of;
use super::{Part, Query, Seal, Step};
use crate::Result;
use crate::error::check;
use crate::noise::{AnyLaw, Law};
use crate::privacy::{Budget, Cost, Neighbors};
use crate::unit::{Unit, Weighting};

/// Shares are rounded down to multiples of this: sums of up to 2³¹ records are then exact in double precision.
const SHARE: f64 = 1.0 / (1_u64 << 22) as f64;

/// Most records whose shares add up exactly.
pub(crate) const MOST_RECORDS: usize = 1 << 31;

/// A grid with the noise on its counts. Holds no data.
#[derive(Debug, Clone)]
pub struct HistogramSpec {
    grid: Grid,
    step: Step,
    law: AnyLaw,
    seal: Seal,
    unit: Unit,
    weighting: Option<Weighting>,
}

impl HistogramSpec {
    /// Calibrates the noise.
    ///
    /// # Privacy
    /// A replaced record moves one count up and one down, by 1 each: L1 sensitivity 2, L2 sensitivity √2. One that is added or removed
    /// moves one count: 1 and 1. A person or a weighted record adds a convex combination of such changes and 0.
    pub fn new(grid: Grid, budget: Budget, neighbors: Neighbors) -> Result<Self> {
        let changed = neighbors.changed_records();
        let (budget, seal) = budget.split_off_seal();
        let (n_cells, cost) = (grid.n_cells(), cost_of(budget)?);
        let sensitivity = match cost {
            Cost::Epsilon(_) => changed,
            _ => changed.sqrt(),
        };
        let (law, step) = independent(Query::Histogram, cost, n_cells, sensitivity)?;
        // Counts are whole numbers and are added on the lattice, so only the noise errs.
        let seal = Seal::new(Part::Histogram, n_cells, law.error_bound(), share_seal(seal, 1))?;
        let rule = "such that the noisy counts are exact in double precision";
        check(seal.lattice() <= 1.0, "budget", rule, cost.value())?;
        Ok(Self {
            grid,
            step,
            law,
            seal,
            unit: Unit::Row,
            weighting: None,
        })
    }

    /// Histogram of such records, whose counts have the same sensitivity.
    pub fn of_records(mut self, unit: Unit, weighting: Option<Weighting>) -> Self {
        (self.unit, self.weighting) = (unit, weighting);
        self
    }

    getters! { self =>
        /// The noise on the counts.
        pub(crate) law: &AnyLaw = &self.law;
        /// How the counts are sealed.
        pub seal: &Seal = &self.seal;
        /// The grid.
        pub grid: &Grid = &self.grid;
        /// Step of the release, with its cost.
        pub step: &Step = &self.step;
        /// Whose privacy is protected, and what is public of the weights.
        pub records: (Unit, Option<Weighting>) = (self.unit, self.weighting);
        /// Unit of which the counts of persons and of weighted records are multiples: sums of them are exact, as are those on the lattice.
        pub(crate) resolution: f64 = self.seal.lattice().max(SHARE);
    }
}
