//! Choices of a release of levels: what one change of one level may cost, where a record or a person makes several (docs/proofs/bounds.md).

use super::{Query, Step};
use crate::error::part;
use crate::noise::Family;
use crate::privacy::{Budget, Cost, Neighbors};
use crate::unit::Unit;
use crate::{Error, Result};

/// Most columns of one release.
const MOST_COLUMNS: usize = 500;
/// Room for the roundings of a few operations.
const ROOM: f64 = 1e-12;

/// The law by which each level of a column is kept, and what it costs. Holds no data.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelsSpec {
    n_columns: usize,
    unit: Unit,
    epsilon: f64,
    delta: f64,
    step: Step,
}

impl LevelsSpec {
    /// Divides (ε, δ) among the changes of counts that one record or person makes: c columns, twice where it is replaced, and up to r rows.
    ///
    /// # Privacy
    /// Levels are kept independently. Of one level, k changes of its count cost `(k·ε₁, δ₁(1 + e^{ε₁} + … + e^{(k-1)ε₁}))`, and levels add
    /// up. A person with r rows makes the most of δ where all of them have one level, and those that replace them one level too.
    pub fn new(n_columns: usize, budget: Budget, unit: Unit, neighbors: Neighbors) -> Result<Self> {
        let Budget::Approx { epsilon, delta } = budget else {
            return Err(Error::Unsupported(
                "levels must be released under (epsilon, delta), because a level that one record alone has cannot be kept or left out \
                otherwise: give the public list of categories"
                    .into(),
            ));
        };
        if !(1..=MOST_COLUMNS).contains(&n_columns) {
            return Err(Error::Unsupported(format!(
                "levels must be released of 1 to {MOST_COLUMNS} columns, got {n_columns}"
            )));
        }
        let rows = unit.most_rows("levels")?;
        let sides = neighbors.changed_records() * n_columns as f64;
        let each = epsilon / (sides * rows) * (1.0 - ROOM);
        // 1 + e^ε₁ + … + e^{(r-1)ε₁}, rounded up.
        let growth = if rows > 1.0 {
            (rows * each).exp_m1() / each.exp_m1() * (1.0 + ROOM)
        } else {
            1.0
        };
        let rare = delta / (sides * growth) * (1.0 - ROOM);
        if !(rare > 0.0 && each > 0.0) {
            return Err(Error::Unsupported(format!(
                "the budget must leave a delta to each of {rows} rows, got epsilon={} and delta={}",
                part(epsilon),
                part(delta)
            )));
        }
        Ok(Self {
            n_columns,
            unit,
            epsilon: each,
            delta: rare,
            step: Step::new(Query::Levels, Family::Bernoulli, Cost::of(budget), 1.0 / each, 1.0),
        })
    }

    getters! { self =>
        /// Number of columns.
        pub n_columns: usize = self.n_columns;
        /// Whose privacy is protected.
        pub unit: Unit = self.unit;
        /// The one step of the release.
        pub step: &Step = &self.step;
        /// ε and δ of one change of the count of one level.
        pub(crate) each: (f64, f64) = (self.epsilon, self.delta);
    }

    /// Number of rows at which a level is kept in about half of the releases.
    pub fn half_count(&self) -> f64 {
        // π(n) = δ(e^{nε} - 1)/(e^ε - 1) up to about 1/2.
        let ratio = 0.5 * self.epsilon.exp_m1() / self.delta;
        (ratio.ln_1p() / self.epsilon).ceil()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget::Approx {
        epsilon: 1.0,
        delta: 1e-6,
    };

    fn spec(n_columns: usize, unit: Unit, neighbors: Neighbors) -> LevelsSpec {
        LevelsSpec::new(n_columns, BUDGET, unit, neighbors).unwrap()
    }

    #[test]
    fn a_record_changes_one_level_of_each_column_or_two() {
        let (epsilon, delta) = spec(1, Unit::Row, Neighbors::AddRemove).each();
        assert!((epsilon - 1.0).abs() < 1e-11 && epsilon < 1.0 && (delta - 1e-6).abs() < 1e-17);
        let (epsilon, delta) = spec(3, Unit::Row, Neighbors::ReplaceOne).each();
        assert!((6.0 * epsilon - 1.0).abs() < 1e-11 && (6.0 * delta - 1e-6).abs() < 1e-17);
        // As published: half of the releases at 14 records.
        let half = spec(1, Unit::Row, Neighbors::AddRemove).half_count();
        assert!((half - 14.0).abs() < 0.1);
    }

    #[test]
    fn rows_of_a_person_cost_group_privacy() {
        let unit = Unit::Person { max_rows: Some(4) };
        let (epsilon, delta) = spec(2, unit, Neighbors::ReplaceOne).each();
        assert!((16.0 * epsilon - 1.0).abs() < 1e-11);
        let growth: f64 = (0..4).map(|i| (f64::from(i) * epsilon).exp()).sum();
        assert!((4.0 * growth * delta / 1e-6 - 1.0).abs() < 1e-10);
    }

    #[test]
    fn other_budgets_are_refused() {
        let row = Unit::Row;
        let of = |columns, budget, unit| LevelsSpec::new(columns, budget, unit, Neighbors::ReplaceOne);
        assert!(of(1, Budget::Pure { epsilon: 1.0 }, row).is_err());
        assert!(of(1, Budget::Zcdp { rho: 1.0 }, row).is_err());
        assert!(of(0, BUDGET, row).is_err());
        assert!(of(1, BUDGET, Unit::Person { max_rows: None }).is_err());
        let many = Unit::Person {
            max_rows: Some(u32::MAX),
        };
        let large = Budget::Approx {
            epsilon: 3000.0,
            delta: 1e-300,
        };
        assert!(of(1, large, many).is_err());
    }
}
