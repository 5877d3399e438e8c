//! Whose privacy a release protects: a row, or a person with several rows, and how much records may weigh; numbers only.

use std::fmt;

use crate::error::check;
use crate::{Error, Result};

/// The unit of privacy: what neighbouring data sets differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Every row is a record of its own.
    #[default]
    Row,
    /// A person with one row or more, whose rows count at most 1 together (docs/persons.md).
    Person {
        /// Number of its rows that count, `1/max_rows` each; `None`: all, each by the reciprocal of their number.
        max_rows: Option<u32>,
    },
}

/// Number of rows that there may be, whatever the number of persons: the rounding of sums is bounded up to it.
const LEAST_CAP: f64 = (1_u64 << 30) as f64;

/// Number of rows a person that there may be beyond that, on average.
const ROWS_A_PERSON: f64 = 64.0;

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row => f.write_str("a row"),
            Self::Person { max_rows: None } => f.write_str("a person"),
            Self::Person { max_rows: Some(most) } => write!(f, "a person with max_rows={most}"),
        }
    }
}

impl Unit {
    /// The unit that a caller names.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for persons without rows.
    pub fn persons(max_rows: Option<u32>) -> Result<Self> {
        check(max_rows != Some(0), "max_rows", "at least 1", 0.0)?;
        Ok(Self::Person { max_rows })
    }

    /// How much each row of a unit of so many rows counts, and how many of them do: rounded down, so that together they count at most 1.
    pub fn share(self, n_rows: usize) -> (f64, usize) {
        let (kept, divisor) = match self {
            Self::Row => (n_rows, 1),
            Self::Person { max_rows: None } => (n_rows, n_rows),
            Self::Person { max_rows: Some(most) } => (n_rows.min(most as usize), most as usize),
        };
        let quotient = 1.0 / divisor as f64;
        // `1 - q·m` in one rounding tells on which side of 1/m the quotient q is.
        let is_above = (-quotient).mul_add(divisor as f64, 1.0) < 0.0;
        let share = if is_above { quotient.next_down() } else { quotient };
        (share, kept)
    }

    /// The greatest number of rows of a unit that count, which `what` of persons needs.
    pub(crate) fn most_rows(self, what: &str) -> Result<f64> {
        match self {
            Self::Row => Ok(1.0),
            Self::Person { max_rows } => max_rows.map(f64::from).ok_or_else(|| {
                Error::Unsupported(format!(
                    "{what} for persons need the greatest number of rows that count: give max_rows"
                ))
            }),
        }
    }

    /// Whether one row of a unit counts: its gradients lie along one line, whatever the parameters, or between fixed vectors where the loss
    /// has several linear predictors.
    pub fn is_single(self) -> bool {
        matches!(self, Self::Row | Self::Person { max_rows: Some(1) })
    }

    /// Whether what the rows of a unit count together is 1, however many there are.
    pub fn counts_one(self) -> bool {
        matches!(self, Self::Row | Self::Person { max_rows: None })
    }

    /// The greatest rank of one unit's Hessian, to which each row adds as many dimensions as the loss has linear predictors.
    pub fn rank(self, n_params: usize, n_predictors: usize) -> usize {
        let rows = match self {
            Self::Row => 1,
            Self::Person { max_rows } => max_rows.map_or(usize::MAX, |most| most as usize),
        };
        n_params.min(rows.saturating_mul(n_predictors))
    }

    /// Greatest number of rows that may be summed over, for so many units.
    pub fn greatest_rows(self, n_units: f64) -> usize {
        let rows = match self {
            Self::Row => n_units,
            Self::Person { .. } => LEAST_CAP.max(ROWS_A_PERSON * n_units),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast to an integer saturates, which is what is wanted"
        )]
        let rows = rows as usize;
        rows
    }
}

/// Public bounds of the weights of records: the greatest one W, and the total N that divides weighted sums (docs/weights.md).
///
/// A weight over W is a share: at most 1, as the shares of a person's rows are. The sums of the shares over N/W are those of the weights over N.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighting {
    /// W.
    pub bound: f64,
    /// N.
    pub total: f64,
    /// Whether rows may lie beyond their bounds, and then weigh less.
    pub far_rows: bool,
}

impl fmt::Display for Weighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, total, .. } = self;
        write!(f, "weight_bound={bound}, weight_total={total}")
    }
}

impl Weighting {
    /// Checked public values.
    pub fn new(bound: f64, total: f64) -> Result<Self> {
        let refused = |name, rule, value| Err(Error::OutOfRange { name, rule, value });
        for (name, value) in [("weight_bound", bound), ("weight_total", total)] {
            if !(value > 0.0 && value.is_finite()) {
                return refused(name, "finite and > 0", value);
            }
        }
        let weighting = Self {
            bound,
            total,
            far_rows: false,
        };
        if weighting.divisor() < 1.0 {
            let rule = "at most weight_total, which is the number of records unless you pass it";
            return refused("weight_bound", rule, bound);
        }
        if !weighting.divisor().is_finite() {
            let rule = "large enough that weight_total / weight_bound is finite";
            return refused("weight_bound", rule, bound);
        }
        Ok(weighting)
    }

    /// Weights of rows that may lie beyond their bounds, and then weigh less.
    #[must_use]
    pub fn of_far_rows(self) -> Self {
        Self { far_rows: true, ..self }
    }

    /// N/W: what divides sums over records that weigh at most 1.
    pub fn divisor(self) -> f64 {
        self.total / self.bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `m·q ≤ 1` exactly, by whole numbers: q is `mantissa·2^exponent`.
    fn together_at_most_one(share: f64, n: usize) -> bool {
        let bits = share.to_bits();
        let exponent = i64::try_from(bits >> 52).unwrap() - 1075;
        let mantissa = u128::from((bits & ((1 << 52) - 1)) | (1 << 52));
        mantissa * (n as u128) <= 1_u128 << -exponent
    }

    #[test]
    fn shares_add_up_to_one_at_most_and_nearly() {
        let mean = Unit::persons(None).unwrap();
        for n in (1..5000).chain([1 << 20, (1 << 31) - 1, 999_999_937]) {
            let (share, kept) = mean.share(n);
            assert_eq!(kept, n);
            assert!(together_at_most_one(share, n), "{n}");
            assert!(share * n as f64 >= 1.0 - 2.0 * f64::EPSILON);
        }
        assert_eq!(Unit::Row.share(7), (1.0, 7));
    }

    #[test]
    fn a_public_number_of_rows_divides() {
        let most = Unit::persons(Some(3)).unwrap();
        assert_eq!(most.share(1), (1.0 / 3.0, 1));
        assert_eq!(most.share(9), (1.0 / 3.0, 3));
        assert!(together_at_most_one(most.share(9).0, 3));
        assert!(Unit::persons(Some(0)).is_err());
    }

    #[test]
    fn weights_have_a_public_bound_and_total() {
        let weighting = Weighting::new(4.0, 1000.0).unwrap();
        assert_eq!(weighting.divisor().to_bits(), 250.0_f64.to_bits());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Weighting::new(bad, 10.0).is_err());
            assert!(Weighting::new(1.0, bad).is_err());
        }
        assert!(Weighting::new(10.0, 9.99).is_err());
        assert!(Weighting::new(1e-300, 1e300).is_err());
    }

    #[test]
    fn ranks() {
        let persons = |most| Unit::persons(most).unwrap();
        for (unit, rank, single) in [
            (Unit::Row, 1, true),
            (persons(Some(1)), 1, true),
            (persons(Some(4)), 4, false),
            (persons(None), 9, false),
        ] {
            assert_eq!((unit.rank(9, 1), unit.is_single()), (rank, single));
        }
        assert_eq!(persons(Some(4)).rank(2, 1), 2);
        assert_eq!(Unit::Row.rank(12, 3), 3);
        assert_eq!(persons(Some(2)).rank(12, 3), 6);
        assert_eq!(persons(Some(u32::MAX)).rank(12, 3), 12);
        assert_eq!(persons(None).rank(12, 3), 12);
        assert!(Unit::Row.counts_one() && persons(None).counts_one());
        assert!(!persons(Some(4)).counts_one());
        assert_eq!(Unit::Row.greatest_rows(10.0), 10);
        assert_eq!(persons(None).greatest_rows(10.0), 1 << 30);
        assert_eq!(persons(None).greatest_rows(1e9), 64_000_000_000);
    }
}
