//! Choices of a release of counts: the discrete noise on the numbers of rows in the cells of columns (docs/proofs/bounds.md).

use super::{Query, Step};
use crate::error::check;
use crate::noise::{DiscreteGaussian, DiscreteLaplace, Family};
use crate::privacy::{Budget, Cost, Neighbors};
use crate::unit::Unit;
use crate::{Error, Result};

/// Most columns of one release.
const MOST_COLUMNS: usize = 500;
/// Room for the roundings of a few operations.
const ROOM: f64 = 1e-14;

/// Which counts are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// One number: the records, or persons, with some property.
    Records,
    /// The rows in the disjoint cells of so many columns.
    Columns(usize),
}

/// The noise on each count, a whole number, and its cost. Holds no data.
#[derive(Debug, Clone)]
pub struct CountsSpec {
    counted: Counted,
    law: CountLaw,
    step: Step,
}

/// The law of the noise on each count.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CountLaw {
    Laplace(DiscreteLaplace),
    Gaussian(DiscreteGaussian),
}

impl CountsSpec {
    /// Calibrates the noise, whose scale is rounded up to a whole number.
    ///
    /// # Privacy
    /// One row that joins or leaves changes one count of each column by 1; one that is replaced changes two of them. With c columns and up
    /// to r rows of a person the L1 sensitivity is `s·c·r` and that in L2 is at most `√(s·c)·r`, where s is 2 if records are replaced and 1 if
    /// they are added or removed. The one number of records or persons changes by at most 1.
    pub fn new(counted: Counted, budget: Budget, unit: Unit, neighbors: Neighbors) -> Result<Self> {
        // Cells of a column that change, all columns together, and by how much.
        let (cells, rows, query) = match counted {
            Counted::Records => (1.0, 1.0, Query::RecordsBeyond),
            Counted::Columns(n_columns) => {
                if !(1..=MOST_COLUMNS).contains(&n_columns) {
                    return Err(Error::Unsupported(format!(
                        "counts must be released of 1 to {MOST_COLUMNS} columns, got {n_columns}"
                    )));
                }
                (
                    neighbors.changed_records() * n_columns as f64,
                    unit.most_rows("counts")?,
                    Query::ColumnCounts,
                )
            }
        };
        let (family, sensitivity, scale) = match budget {
            Budget::Pure { epsilon } => {
                let sensitivity = cells * rows;
                let scale = (sensitivity / epsilon).ceil();
                // Whole numbers: the sign of what is left of the cost is exact.
                let lacks = scale.mul_add(epsilon, -sensitivity) < 0.0;
                (
                    Family::DiscreteLaplace,
                    sensitivity,
                    if lacks { scale + 1.0 } else { scale },
                )
            }
            Budget::Zcdp { rho } => {
                let sensitivity = cells.sqrt() * rows;
                let scale = sensitivity / (2.0 * rho).sqrt() * (1.0 + ROOM);
                (Family::DiscreteGaussian, sensitivity, scale)
            }
            Budget::Approx { .. } => {
                return Err(Error::Unsupported(
                    "counts must be released under pure or zero-concentrated DP, got a budget with delta".into(),
                ));
            }
        };
        let scale = scale.ceil();
        let rule = "such that the noise on counts has a scale up to 2^40";
        let greatest = 2.0_f64.powi(40);
        check(scale <= greatest, "budget", rule, Cost::of(budget).value())?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 1 to 2^40"
        )]
        let whole = scale as u64;
        let law = match family {
            Family::DiscreteGaussian => CountLaw::Gaussian(DiscreteGaussian::new(whole)?),
            _ => CountLaw::Laplace(DiscreteLaplace::new(whole)?),
        };
        let step = Step::new(query, family, Cost::of(budget), scale, sensitivity);
        Ok(Self { counted, law, step })
    }

    getters! { self =>
        /// Which counts are released.
        pub counted: Counted = self.counted;
        /// The one step of the release.
        pub step: &Step = &self.step;
        /// The law of the noise on each count.
        pub(crate) law: CountLaw = self.law;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Unit = Unit::Row;
    const PERSON: Unit = Unit::Person { max_rows: Some(3) };

    fn scale(counted: Counted, budget: Budget, unit: Unit, neighbors: Neighbors) -> f64 {
        let spec = CountsSpec::new(counted, budget, unit, neighbors).unwrap();
        spec.step().scale
    }

    #[test]
    fn scales_are_sensitivities_over_budgets_rounded_up() {
        use Neighbors::{AddRemove, ReplaceOne};
        let pure = Budget::Pure { epsilon: 0.3 };
        for (counted, unit, neighbors, sensitivity) in [
            (Counted::Records, ROW, ReplaceOne, 1.0),
            (Counted::Records, PERSON, AddRemove, 1.0),
            (Counted::Columns(5), ROW, AddRemove, 5.0),
            (Counted::Columns(5), ROW, ReplaceOne, 10.0),
            (Counted::Columns(5), PERSON, ReplaceOne, 30.0),
        ] {
            let found = scale(counted, pure, unit, neighbors);
            // A float just below .3 lacks its last digit where the quotient is whole.
            let exact = (sensitivity / 0.3_f64).round();
            assert!((-0.5..1.5).contains(&(found - exact)));
            assert!(found.mul_add(0.3, -sensitivity) >= 0.0);
        }
        let zcdp = Budget::Zcdp { rho: 0.003 };
        // √(2·5)·3 in L2.
        let found = scale(Counted::Columns(5), zcdp, PERSON, ReplaceOne);
        assert!(90.0 / (2.0 * found * found) <= 0.003);
        assert!(90.0 / (2.0 * (found - 1.0).powi(2)) > 0.003);
    }

    #[test]
    fn other_budgets_and_numbers_of_columns_are_refused() {
        let of = |counted, budget, unit| CountsSpec::new(counted, budget, unit, Neighbors::ReplaceOne).is_err();
        let pure = Budget::Pure { epsilon: 1.0 };
        let approx = Budget::Approx {
            epsilon: 1.0,
            delta: 1e-6,
        };
        assert!(of(Counted::Records, approx, ROW));
        assert!(of(Counted::Records, Budget::Pure { epsilon: 1e-13 }, ROW));
        assert!(of(Counted::Columns(1), pure, Unit::Person { max_rows: None }));
        assert!(of(Counted::Columns(0), pure, ROW));
        assert!(of(Counted::Columns(501), pure, ROW));
    }
}
