//! Merges equal records (the same features and target, bit by bit) into one row with a multiplicity. Linear time, exact.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{Design, Rows};
use crate::Result;
use crate::error::check_length;
use crate::exec::{Executor, blocks};

/// Rows that are looked at to guess whether merging pays.
const SAMPLE: usize = 4096;

impl Design<'_> {
    /// The same records, merged where that halves the rows or better, to judge by a sample of them. Those of a mapped file stay apart, and
    /// those of persons, of whom equal rows of two are no equal records, and weighted ones.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn compacted(self, exec: &Executor<'_>) -> Result<Self> {
        let n = self.n_rows();
        if self.multiplicities.is_some() || self.shares().is_some() || n < 4 * SAMPLE || self.rows.is_mapped() {
            return Ok(self);
        }
        let builder = DefaultHashBuilder::default();
        let sample = (0..SAMPLE).map(|k| k * (n / SAMPLE));
        let (firsts, _) = self.distinct(sample.map(|i| (i, self.hash(i, &builder))));
        // A guess, which only saves or costs time: rows seldom repeat less among all than among some.
        if firsts.len() < SAMPLE / 2 {
            self.merged(exec)
        } else {
            Ok(self)
        }
    }
}

impl Design<'_> {
    /// The same records with equal ones merged, in order of first appearance; owned, with clipping applied to the values. Persons and
    /// weighted rows stay apart, and the rows of a person that count follow each other.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn merged(&self, exec: &Executor<'_>) -> Result<Design<'static>> {
        if self.shares().is_some() {
            let all: Vec<usize> = (0..self.n_records).collect();
            return self.subset(&all);
        }
        let builder = DefaultHashBuilder::default();
        let chunks = self.chunks();
        let hashes = exec.map(chunks.len(), |c| {
            let mut hashes = Vec::with_capacity(chunks[c].len());
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                hashes.extend(range.map(|i| self.hash(i, &builder)));
            }
            Ok(hashes)
        })?;
        let hashes = hashes.iter().flatten().copied();
        let (firsts, multiplicities) = self.distinct(hashes.enumerate());
        let all_single = multiplicities.iter().all(|m| *m == 1);
        Ok(Design {
            extremes: self.extremes,
            ..self.selected(&firsts, (!all_single).then_some(multiplicities))
        })
    }

    /// The same rows, owned, with clipping applied to the values.
    pub fn owned(&self) -> Design<'static> {
        let all: Vec<usize> = (0..self.n_rows()).collect();
        let mut owned = self.selected(&all, self.multiplicities.clone());
        owned.persons.clone_from(&self.persons);
        owned.weights.clone_from(&self.weights);
        owned
    }

    /// Some of the records, by their numbers, owned, with clipping applied to the values: persons with the rows that count.
    ///
    /// # Errors
    /// [`crate::Error::Length`] if equal records were merged: a row is then no record.
    pub fn subset(&self, records: &[usize]) -> Result<Design<'static>> {
        let persons = self.persons.as_ref().map(|all| all.subset(records));
        let mut design = match &persons {
            None => {
                check_length("X", self.n_records, self.n_rows())?;
                self.selected(records, None)
            }
            Some((rows, _)) => self.selected(rows, None),
        };
        design.n_records = records.len();
        design.weights = self.weights.as_ref().map(|all| all.subset(records));
        design.persons = persons.map(|(_, persons)| persons);
        Ok(design)
    }

    /// A sample of the records with replacement, by how often it holds each row, or all rows of a person; owned.
    pub(crate) fn sampled(&self, counts: &[u32]) -> Result<Design<'static>> {
        check_length("counts", self.n_rows(), counts.len())?;
        let persons = self.persons.as_ref().map(|all| {
            let drawn = |person: &usize| counts[all.rows_of(*person)[0]] > 0;
            all.subset(&(0..all.len()).filter(drawn).collect::<Vec<_>>())
        });
        let (rows, persons) = match persons {
            Some((rows, persons)) => (rows, Some(persons)),
            None => ((0..counts.len()).filter(|&i| counts[i] > 0).collect(), None),
        };
        let multiplicities = rows.iter().map(|&i| counts[i]).collect();
        Ok(Design {
            persons,
            weights: self.weights.as_ref().map(|all| all.subset(&rows)),
            ..self.selected(&rows, Some(multiplicities))
        })
    }

    fn selected(&self, rows: &[usize], multiplicities: Option<Vec<u32>>) -> Design<'static> {
        let features = match &self.rows {
            Rows::Dense(dense) => Rows::Dense(dense.select(rows)),
            Rows::Csr(csr) => Rows::Csr(csr.select(rows)),
            Rows::Coded(coded) => Rows::Coded(coded.select(rows)),
        };
        Design {
            rows: features,
            targets: Cow::Owned(rows.iter().map(|&i| self.targets[i]).collect()),
            multiplicities,
            persons: None,
            weights: None,
            n_records: self.n_records,
            intercept: self.intercept,
            bounds: self.bounds.clone(),
            extremes: None,
            limits: self.limits.as_ref().map(|limits| limits.select(rows)),
        }
    }

    /// First row of each distinct record among numbered rows with their hashes, and how many records it stands for.
    fn distinct(&self, rows: impl Iterator<Item = (usize, u64)>) -> (Vec<usize>, Vec<u32>) {
        let mut table: HashTable<(usize, u64)> = HashTable::new();
        let (mut firsts, mut multiplicities): (Vec<usize>, Vec<u32>) = (Vec::new(), Vec::new());
        for (i, hash) in rows {
            let count = self.multiplicities.as_ref().map_or(1, |m| m[i]);
            let same = |&(k, other): &(usize, u64)| hash == other && self.equal(firsts[k], i);
            if let Some(&(k, _)) = table.find(hash, same) {
                multiplicities[k] += count;
            } else {
                table.insert_unique(hash, (firsts.len(), hash), |&(_, hash)| hash);
                firsts.push(i);
                multiplicities.push(count);
            }
        }
        (firsts, multiplicities)
    }

    fn hash(&self, i: usize, builder: &DefaultHashBuilder) -> u64 {
        let mut hasher = builder.build_hasher();
        hasher.write_u64(self.targets[i].to_bits());
        let block;
        let values = match &self.rows {
            Rows::Dense(dense) => dense.row(i),
            Rows::Csr(csr) => {
                block = csr.block(i..i + 1);
                let entries = block.entries(0);
                entries.columns.iter().for_each(|c| hasher.write_i32(*c));
                entries.values.into()
            }
            Rows::Coded(coded) => {
                coded.hash(i, &mut hasher);
                return hasher.finish();
            }
        };
        for value in &*values {
            hasher.write_u64(value.to_bits());
        }
        hasher.finish()
    }

    fn equal(&self, i: usize, j: usize) -> bool {
        let same =
            |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
        self.targets[i].to_bits() == self.targets[j].to_bits()
            && match &self.rows {
                Rows::Dense(dense) => same(&dense.row(i), &dense.row(j)),
                Rows::Csr(csr) => {
                    let (a, b) = (csr.block(i..i + 1), csr.block(j..j + 1));
                    let (a, b) = (a.entries(0), b.entries(0));
                    a.columns == b.columns && same(a.values, b.values)
                }
                Rows::Coded(coded) => coded.equal(i, j),
            }
    }
}
