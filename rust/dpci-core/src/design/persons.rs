//! Which rows are whose, and how much each counts: the rows of a person may be anywhere in the table.

use std::ops::Range;
use std::sync::OnceLock;

use super::{Design, Rows};
use crate::error::check_length;
use crate::exec::{Executor, row_chunks};
use crate::linalg::vector;
use crate::unit::Unit;
use crate::{Error, Result};

/// Rows by person: two numbers a row and two a person.
#[derive(Debug, Clone)]
pub struct Persons {
    unit: Unit,
    /// The person of each row of the table.
    owners: Vec<u32>,
    /// Whether all rows count and lie in the table person by person.
    in_order: bool,
    /// How many rows of each person count.
    kept: Vec<usize>,
    /// How much each row of the table counts; 0 for those beyond `max_rows`.
    shares: Vec<f64>,
    /// The rows that count, person by person, once somebody asks for them.
    grouped: OnceLock<Grouped>,
}

/// Rows person by person, in the order of the table, and where each person's begin and the last one's end.
#[derive(Debug, Clone)]
struct Grouped {
    rows: Vec<usize>,
    starts: Vec<usize>,
}

impl Persons {
    /// From the person of each row, by numbers from 0 of which none may be left out.
    pub fn new(persons: &[i64], unit: Unit, exec: &Executor<'_>) -> Result<Self> {
        if unit == Unit::Row {
            return Err(Error::Unsupported(
                "persons must be given only to a fit that protects persons, got persons for a fit that protects rows"
                    .into(),
            ));
        }
        let malformed =
            || Error::Unsupported("persons must be numbered 0, 1, 2 and so on without gaps, got other numbers".into());
        // The greatest number is below the number of rows, where none is left out.
        let bounds = persons.iter().fold((0, -1), |(least, greatest), &person| {
            (person.min(least), person.max(greatest))
        });
        let greatest = u32::try_from(bounds.1 + i64::from(bounds.1 < 0)).ok();
        let greatest = greatest.filter(|greatest| bounds.0 == 0 && (*greatest as usize) < persons.len().max(1));
        let greatest = greatest.ok_or_else(malformed)?;
        let chunks = if persons.is_empty() {
            Vec::new()
        } else {
            row_chunks(persons.len(), 1)
        };
        // Memory that is new is slow to write to: all threads do.
        let mut owners = vec![0; persons.len()];
        exec.map_into(&chunks, &mut owners, |c, owners| {
            for (owner, person) in owners.iter_mut().zip(&persons[chunks[c].clone()]) {
                *owner = u32::try_from(*person).unwrap_or_default();
            }
            Ok(())
        })?;
        let n_persons = if persons.is_empty() { 0 } else { greatest as usize + 1 };
        let mut counts = vec![0_usize; n_persons];
        for owner in &owners {
            counts[*owner as usize] += 1;
        }
        if counts.contains(&0) {
            return Err(malformed());
        }
        let mut each = Vec::with_capacity(counts.len());
        let mut kept = Vec::with_capacity(counts.len());
        // Where persons have equally many rows, a division for all.
        for counts in counts.chunk_by(|a, b| a == b) {
            let (share, n_kept) = unit.share(counts[0]);
            each.resize(each.len() + counts.len(), share);
            kept.resize(kept.len() + counts.len(), n_kept);
        }
        let mut shares = vec![0.0; persons.len()];
        let all_count = kept == counts;
        if all_count {
            exec.map_into(&chunks, &mut shares, |c, shares| {
                for (share, owner) in shares.iter_mut().zip(&owners[chunks[c].clone()]) {
                    *share = each[*owner as usize];
                }
                Ok(())
            })?;
        } else {
            let mut left = counts;
            left.copy_from_slice(&kept);
            for (share, owner) in shares.iter_mut().zip(&owners) {
                let left = &mut left[*owner as usize];
                if *left > 0 {
                    *left -= 1;
                    *share = each[*owner as usize];
                }
            }
        }
        Ok(Self {
            unit,
            in_order: all_count && owners.is_sorted(),
            owners,
            kept,
            shares,
            grouped: OnceLock::new(),
        })
    }

    getters! { self =>
        /// Whose privacy counts, and by which rule rows do.
        pub unit: Unit = self.unit;
        /// The person of each row of the table.
        pub owners: &[u32] = &self.owners;
        /// How many rows of each person count.
        pub kept: &[usize] = &self.kept;
        /// Whether all rows count and lie in the table person by person.
        pub in_order: bool = self.in_order;
        /// How much each row counts.
        pub shares: &[f64] = &self.shares;
        /// Number of persons.
        pub len: usize = self.kept.len();
        /// Whether there are none.
        pub is_empty: bool = self.len() == 0;
    }

    /// The rows of a person that count.
    pub fn rows_of(&self, person: usize) -> &[usize] {
        let Grouped { rows, starts } = self.grouped.get_or_init(|| self.group());
        &rows[starts[person]..starts[person + 1]]
    }

    fn group(&self) -> Grouped {
        let mut starts = Vec::with_capacity(self.len() + 1);
        starts.push(0);
        for kept in &self.kept {
            starts.push(starts[starts.len() - 1] + kept);
        }
        let mut rows = vec![0; starts[self.len()]];
        let mut next = starts.clone();
        for (row, owner) in self.owners.iter().enumerate() {
            let person = *owner as usize;
            if next[person] < starts[person + 1] {
                rows[next[person]] = row;
                next[person] += 1;
            }
        }
        Grouped { rows, starts }
    }

    /// Some of the persons: their rows that count, person by person, and whose these are.
    pub(super) fn subset(&self, persons: &[usize]) -> (Vec<usize>, Self) {
        let (mut rows, mut owners, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for (owner, &person) in (0_u32..).zip(persons) {
            let theirs = self.rows_of(person);
            rows.extend_from_slice(theirs);
            owners.extend(std::iter::repeat_n(owner, theirs.len()));
            kept.push(theirs.len());
        }
        let subset = Self {
            unit: self.unit,
            owners,
            in_order: true,
            kept,
            shares: rows.iter().map(|&i| self.shares[i]).collect(),
            grouped: OnceLock::new(),
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
    pub fn of_persons(mut self, mut persons: Persons) -> Result<Self> {
        check_length("persons", self.n_rows(), persons.shares.len())?;
        if self.multiplicities.is_some() || self.has_weights() {
            return Err(Error::Unsupported(
                "persons must be set before rows are merged or weighted, got merged or weighted rows".into(),
            ));
        }
        if let Some(own) = &mut self.weights {
            persons.scale(&own.take_shares());
        }
        self.n_records = persons.len();
        self.persons = Some(persons);
        Ok(self)
    }

    /// Whose the rows are; `None` where each is a record of its own.
    pub fn persons(&self) -> Option<&Persons> {
        self.persons.as_ref()
    }

    /// Adds `weights[i]·xᵢ` to the numbers at the place of the row: `places` are pairs (i, place) of the rows of a range that have one.
    pub fn scatter_weighted_rows(
        &self,
        range: Range<usize>,
        weights: &[f64],
        places: &[(usize, usize)],
        out: &mut [f64],
    ) {
        // The first and the last number of all places are loaded before the first sum waits for its own: they may be anywhere, and short ones
        // lie on two lines of the cache.
        let last = self.n_params() - 1;
        let loaded: f64 = places.iter().map(|&(_, place)| out[place] + out[place + last]).sum();
        std::hint::black_box(loaded);
        if let Some(scale) = self.intercept {
            let last = self.rows.n_columns();
            for &(i, place) in places {
                out[place + last] += scale * weights[i];
            }
        }
        match &self.rows {
            Rows::Dense(dense) => dense.scatter_weighted(range, weights, places, out),
            Rows::Csr(csr) => csr.scatter_weighted(range, weights, places, out),
            Rows::Coded(coded) => coded.scatter_weighted(range, weights, places, out),
        }
    }

    /// Protected unit, by which the records are counted.
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
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn persons(of: &[i64], max_rows: Option<u32>) -> Result<Persons> {
        let cancel = AtomicBool::new(false);
        Persons::new(of, Unit::persons(max_rows)?, &Executor::sequential(&cancel))
    }

    #[test]
    fn the_order_of_the_table_is_known() {
        let in_order = |of: &[i64], max_rows| persons(of, max_rows).unwrap().in_order();
        assert!(in_order(&[0, 0, 1, 2, 2, 2], None));
        assert!(!in_order(&[0, 1, 0, 2, 2, 2], None));
        // A row that does not count lies between those that do.
        assert!(!in_order(&[0, 0, 1, 2, 2, 2], Some(2)));
        assert!(persons(&[1, 0, 1, 0], None).unwrap().subset(&[1, 0]).1.in_order());
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
        let flag = AtomicBool::new(false);
        let exec = Executor::sequential(&flag);
        assert!(Persons::new(&[0], Unit::Row, &exec).is_err());
        assert!(persons(&[0], Some(0)).is_err());
        assert!(persons(&[], None).unwrap().is_empty());
    }
}
