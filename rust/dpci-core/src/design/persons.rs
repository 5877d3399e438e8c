//! Which rows are whose, and how much each counts: the rows of a person may be anywhere in the table.

use super::Design;
use crate::error::check_length;
use crate::linalg::vector;
use crate::unit::Unit;
use crate::{Error, Result};

/// Rows by person: a number a row, and two more a person.
#[derive(Debug, Clone)]
pub struct Persons {
    unit: Unit,
    /// The rows that count, person by person, in the order of the table.
    rows: Vec<usize>,
    /// Where each person's begin, and where the last one's end.
    starts: Vec<usize>,
    /// How much each row of the table counts; 0 for those beyond `max_rows`.
    shares: Vec<f64>,
}

impl Persons {
    /// From the person of each row, by numbers from 0 of which none may be left out.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a unit without persons, and for numbers that are no such ones; no message shows a number.
    pub fn new(persons: &[i64], unit: Unit) -> Result<Self> {
        if unit == Unit::Row {
            return Err(Error::Unsupported(
                "persons must be given only to a fit that protects persons, got persons for a fit that protects rows".into(),
            ));
        }
        let malformed = || {
            Error::Unsupported(
                "persons must be numbered 0, 1, 2 and so on without gaps, got other numbers".into(),
            )
        };
        let n_rows = persons.len();
        let mut counts: Vec<usize> = Vec::new();
        for person in persons {
            let person = usize::try_from(*person).map_err(|_| malformed())?;
            if person >= n_rows {
                return Err(malformed());
            }
            if person >= counts.len() {
                counts.resize(person + 1, 0);
            }
            counts[person] += 1;
        }
        if counts.contains(&0) {
            return Err(malformed());
        }
        let each: Vec<(f64, usize)> = counts.iter().map(|n| unit.share(*n)).collect();
        let mut starts = vec![0; counts.len() + 1];
        for (p, (_, kept)) in each.iter().enumerate() {
            starts[p + 1] = starts[p] + kept;
        }
        let mut rows = vec![0; starts[counts.len()]];
        let mut shares = vec![0.0; n_rows];
        // How many rows of each person were met.
        counts.fill(0);
        for (i, person) in persons.iter().enumerate() {
            let p = usize::try_from(*person).map_err(|_| malformed())?;
            let (share, kept) = each[p];
            if counts[p] < kept {
                rows[starts[p] + counts[p]] = i;
                shares[i] = share;
                counts[p] += 1;
            }
        }
        Ok(Self {
            unit,
            rows,
            starts,
            shares,
        })
    }

    /// Whose privacy counts, and by which rule rows do.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Number of persons.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of a person that count.
    #[must_use]
    pub fn rows_of(&self, person: usize) -> &[usize] {
        &self.rows[self.starts[person]..self.starts[person + 1]]
    }

    /// How much each row counts.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Some of the persons: their rows that count, person by person, and whose these are.
    pub(super) fn subset(&self, persons: &[usize]) -> (Vec<usize>, Self) {
        let (mut rows, mut starts) = (Vec::new(), vec![0]);
        for &person in persons {
            rows.extend_from_slice(self.rows_of(person));
            starts.push(rows.len());
        }
        let subset = Self {
            unit: self.unit,
            rows: (0..rows.len()).collect(),
            starts,
            shares: rows.iter().map(|&i| self.shares[i]).collect(),
        };
        (rows, subset)
    }

    /// Multiplies each row's share by one of at most 1, after which a person's still add up to at most 1.
    pub(super) fn scale(&mut self, shares: &[f64]) {
        vector::multiply(&mut self.shares, shares);
    }
}

impl Design<'_> {
    /// The same rows as those of persons, who are then the records.
    ///
    /// # Errors
    /// [`Error::Length`] for persons of another number of rows; [`Error::Unsupported`] where equal records were merged.
    pub fn of_persons(mut self, persons: Persons) -> Result<Self> {
        check_length("persons", self.n_rows(), persons.shares.len())?;
        if self.multiplicities.is_some() || self.weights.is_some() {
            return Err(Error::Unsupported(
                "persons must be set before rows are merged or weighted, got merged or weighted rows"
                    .into(),
            ));
        }
        self.n_records = persons.len();
        self.persons = Some(persons);
        Ok(self)
    }

    /// Whose the rows are; `None` where each is a record of its own.
    #[must_use]
    pub fn persons(&self) -> Option<&Persons> {
        self.persons.as_ref()
    }

    /// What is protected: the unit by which the records are counted.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.persons.as_ref().map_or(Unit::Row, Persons::unit)
    }

    /// Refuses persons and weights for a computation that takes every row for a record that counts once.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn check_rows_are_records(&self, what: &str) -> Result<()> {
        let got = match (&self.persons, &self.weights) {
            (None, None) => return Ok(()),
            (Some(_), _) => "persons with several rows",
            (None, Some(_)) => "weights",
        };
        Err(Error::Unsupported(format!("{what} does not support {got}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persons(of: &[i64], max_rows: Option<u32>) -> Result<Persons> {
        Persons::new(of, Unit::persons(max_rows)?)
    }

    #[test]
    fn rows_are_found_wherever_they_are() {
        let found = persons(&[2, 0, 2, 1, 0, 2], None).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found.rows_of(0), [1, 4]);
        assert_eq!(found.rows_of(1), [3]);
        assert_eq!(found.rows_of(2), [0, 2, 5]);
        let third = 1.0 / 3.0;
        assert_eq!(found.shares(), [third, 0.5, third, 1.0, 0.5, third]);
    }

    #[test]
    fn some_persons_keep_the_rows_that_count() {
        let found = persons(&[2, 0, 2, 1, 0, 2], Some(2)).unwrap();
        let (rows, some) = found.subset(&[2, 1]);
        assert_eq!(rows, [0, 2, 3]);
        assert_eq!(
            (some.len(), some.rows_of(0), some.rows_of(1)),
            (2, &[0, 1][..], &[2][..])
        );
        assert_eq!(some.shares(), [0.5; 3]);
    }

    #[test]
    fn rows_beyond_the_public_number_do_not_count() {
        let found = persons(&[2, 0, 2, 1, 0, 2], Some(2)).unwrap();
        assert_eq!(found.rows_of(2), [0, 2]);
        assert_eq!(found.shares(), [0.5, 0.5, 0.5, 0.5, 0.5, 0.0]);
    }

    #[test]
    fn other_numbers_are_refused_without_a_look_at_them() {
        for bad in [&[0, 2][..], &[-1, 0], &[0, i64::MAX], &[77, 77]] {
            let message = persons(bad, None).unwrap_err().to_string();
            assert!(message.ends_with("got other numbers"), "{message}");
        }
        assert!(Persons::new(&[0], Unit::Row).is_err());
        assert!(persons(&[0], Some(0)).is_err());
        assert!(persons(&[], None).unwrap().is_empty());
    }
}
