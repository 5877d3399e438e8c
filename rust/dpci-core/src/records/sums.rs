//! Sums over some of the records, which can be added to those over others and carried elsewhere without losing a digit.

use super::fingerprint;
use crate::error::check_length;
use crate::linalg::{CompensatedSum, Doubled, GramAccumulator};
use crate::{Error, Result};

/// Sums over records, unnormalised: those of one request; what was not asked for is empty.
#[derive(Debug, Clone)]
pub struct Sums {
    /// Number of rows.
    pub(super) n_rows: usize,
    /// Number of records in parts: of rows, or of the persons of each part.
    pub(super) n_records: usize,
    /// Tells other rows apart where they are read anew in each pass; that of no rows for those in memory.
    pub(super) fingerprint: u128,
    /// `Σ l' x`, then `Σ l`.
    pub(crate) slopes: CompensatedSum,
    /// Sums of `c x xᵀ`, and the number of rows in them.
    pub(crate) grams: Vec<GramAccumulator>,
    pub(crate) gram_rows: usize,
    /// `Σ l' x` in doubled precision.
    pub(crate) doubled: Vec<Doubled>,
    /// Squared lengths of the shortest and of the longest row.
    pub(crate) squares: [f64; 2],
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            n_rows: 0,
            n_records: 0,
            fingerprint: fingerprint::EMPTY,
            slopes: CompensatedSum::default(),
            grams: Vec::new(),
            gram_rows: 0,
            doubled: Vec::new(),
            squares: [f64::INFINITY, 0.0],
        }
    }
}

impl Sums {
    getters! { self =>
        /// Number of rows.
        pub n_rows: usize = self.n_rows;
        /// Number of records of parts: of rows, or of the persons of each part.
        pub n_records: usize = self.n_records;
        /// A number that all rows together and the key of their requests determine, in whatever parts and order.
        pub fingerprint: u128 = self.fingerprint;
    }

    /// Refuses sums over other rows than those of a first pass: their sensitivity is that of one set of records.
    pub fn check_same_rows(&self, first: &Self) -> Result<()> {
        if self.n_rows != first.n_rows {
            return Err(Error::RowsChanged(format!(
                "{} rows in this pass and {} in the first",
                self.n_rows, first.n_rows
            )));
        }
        // The fingerprint has whose each row is: of the same rows there are as many persons in the parts only if each is in one of them.
        if self.n_records != first.n_records {
            return Err(Error::RowsChanged(
                "different persons, or a person with rows in several parts".into(),
            ));
        }
        if self.fingerprint != first.fingerprint {
            return Err(Error::RowsChanged(
                "the same number of rows with different values".into(),
            ));
        }
        Ok(())
    }

    /// Adds the sums over other records. Nothing is lost: docs/certificates.md, "Rows in parts".
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if other.n_rows == 0 {
            return Ok(());
        }
        if self.n_rows == 0 {
            self.clone_from(other);
            return Ok(());
        }
        if self.shape() != other.shape() {
            return Err(Error::Unsupported(format!(
                "sums must answer the same request to be added, got shapes {:?} and {:?}",
                self.shape(),
                other.shape()
            )));
        }
        let n_rows = self.n_rows.checked_add(other.n_rows).ok_or_else(|| {
            Error::Unsupported(format!(
                "the rows of all parts must be fewer than 2⁶⁴, got {} and {}",
                self.n_rows, other.n_rows
            ))
        })?;
        self.n_rows = n_rows;
        // Never more than rows.
        self.n_records += other.n_records;
        self.fingerprint = fingerprint::merged(self.fingerprint, other.fingerprint);
        self.slopes.merge(&other.slopes);
        for (gram, part) in self.grams.iter_mut().zip(&other.grams) {
            gram.merge(part);
        }
        // Never more than all rows.
        self.gram_rows += other.gram_rows;
        for (sum, part) in self.doubled.iter_mut().zip(&other.doubled) {
            *sum = *sum + *part;
        }
        self.squares = [
            self.squares[0].min(other.squares[0]),
            self.squares[1].max(other.squares[1]),
        ];
        Ok(())
    }

    /// Lengths of the vectors, and dimensions of the matrices.
    pub(super) fn shape(&self) -> (usize, Vec<usize>, usize) {
        let dims = self.grams.iter().map(GramAccumulator::dim);
        (self.slopes.len(), dims.collect(), self.doubled.len())
    }

    /// All numbers, from which [`Sums::from_numbers`] makes the same sums.
    pub fn numbers(&self) -> Vec<f64> {
        let mut out = Vec::new();
        let mut write = |section: &[f64]| {
            out.push(section.len() as f64);
            out.extend_from_slice(section);
        };
        let [high, low] = self.slopes.halves();
        write(high);
        write(low);
        let doubled: Vec<f64> = self.doubled.iter().flat_map(|d| d.halves()).collect();
        write(&doubled);
        write(&self.squares);
        for gram in &self.grams {
            write(&[gram.dim() as f64]);
            let [high, low, pairs] = gram.numbers();
            write(&high);
            write(&low);
            write(&pairs);
        }
        out
    }

    /// The sums whose [`Sums::numbers`] these are.
    pub fn from_numbers(n_rows: usize, n_records: usize, fingerprint: u128, numbers: &[f64]) -> Result<Self> {
        let empty = Self::default();
        let is_empty = fingerprint == empty.fingerprint && numbers == empty.numbers();
        let is_count = n_records <= n_rows && (n_records == 0) == (n_rows == 0);
        if (n_rows == 0 && !is_empty) || !is_count || !fingerprint::is_valid(fingerprint) {
            return Err(malformed());
        }
        let mut sections = Sections(numbers);
        let slopes = CompensatedSum::from_halves(sections.next()?, sections.next()?);
        let doubled = sections.next()?;
        let squares = sections.next()?;
        let (pairs, rest) = doubled.as_chunks();
        check_length("the doubled sums", doubled.len() + rest.len(), doubled.len())?;
        let mut sums = Self {
            n_rows,
            n_records,
            fingerprint,
            slopes: slopes.ok_or_else(malformed)?,
            grams: Vec::new(),
            gram_rows: n_rows,
            doubled: pairs.iter().map(|&[h, l]| Doubled::sum(h, l)).collect(),
            squares: *squares.first_chunk().ok_or_else(malformed)?,
        };
        while !sections.0.is_empty() {
            let dim = count(sections.next()?)?;
            let halves = [sections.next()?, sections.next()?, sections.next()?];
            let gram = GramAccumulator::from_numbers(dim, halves);
            sums.grams.push(gram.ok_or_else(malformed)?);
        }
        Ok(sums)
    }
}

/// Numbers in sections, each behind its length.
struct Sections<'a>(&'a [f64]);

impl<'a> Sections<'a> {
    fn next(&mut self) -> Result<&'a [f64]> {
        let (length, rest) = self.0.split_at_checked(1).ok_or_else(malformed)?;
        let (section, rest) = rest.split_at_checked(count(length)?).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(section)
    }
}

/// A count that was written as a number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number below 2⁵³"
)]
pub(super) fn count(section: &[f64]) -> Result<usize> {
    match section {
        [n] if n.fract() == 0.0 && (0.0..9e15).contains(n) => Ok(*n as usize),
        _ => Err(malformed()),
    }
}

fn malformed() -> Error {
    Error::Unsupported("sums must be the numbers that dpci wrote, got others".into())
}
