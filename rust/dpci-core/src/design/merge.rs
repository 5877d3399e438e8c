//! Merges equal records (the same features and target, bit by bit) into one row with a multiplicity. Linear time, exact.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{Csr, Dense, Design, Rows};

impl Design<'_> {
    /// The same records with equal ones merged, in order of first appearance; owned, with clipping applied to the values.
    #[must_use]
    pub fn merged(&self) -> Design<'static> {
        let (firsts, multiplicities) = self.distinct(0..self.n_rows());
        let features = match &self.rows {
            Rows::Dense(dense) => {
                let rows = firsts
                    .iter()
                    .flat_map(|&i| dense.row(i).iter().map(move |v| dense.scale(i) * v));
                Rows::Dense(Dense::new(rows.collect::<Vec<f64>>(), dense.n_columns()))
            }
            Rows::Csr(csr) => Rows::Csr(csr.select(&firsts)),
        };
        let all_single = multiplicities.iter().all(|m| *m == 1);
        Design {
            rows: features,
            targets: Cow::Owned(firsts.iter().map(|&i| self.targets[i]).collect()),
            multiplicities: (!all_single).then_some(multiplicities),
            n_records: self.n_records,
            intercept: self.intercept,
        }
    }

    /// First row of each distinct record among `rows`, and how many records it stands for.
    fn distinct(&self, rows: impl Iterator<Item = usize>) -> (Vec<usize>, Vec<u32>) {
        let builder = DefaultHashBuilder::default();
        let mut table: HashTable<usize> = HashTable::new();
        let (mut firsts, mut multiplicities): (Vec<usize>, Vec<u32>) = (Vec::new(), Vec::new());
        for i in rows {
            let count = self.multiplicities.as_ref().map_or(1, |m| m[i]);
            let hash = self.hash(i, &builder);
            if let Some(&k) = table.find(hash, |&k| self.equal(firsts[k], i)) {
                multiplicities[k] += count;
            } else {
                table.insert_unique(hash, firsts.len(), |&k| self.hash(firsts[k], &builder));
                firsts.push(i);
                multiplicities.push(count);
            }
        }
        (firsts, multiplicities)
    }

    fn hash(&self, i: usize, builder: &DefaultHashBuilder) -> u64 {
        let mut hasher = builder.build_hasher();
        hasher.write_u64(self.targets[i].to_bits());
        let values = match &self.rows {
            Rows::Dense(dense) => dense.row(i),
            Rows::Csr(csr) => {
                csr.entries(i)
                    .columns
                    .iter()
                    .for_each(|c| hasher.write_i32(*c));
                csr.entries(i).values
            }
        };
        for value in values {
            hasher.write_u64(value.to_bits());
        }
        hasher.finish()
    }

    fn equal(&self, i: usize, j: usize) -> bool {
        let same = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        self.targets[i].to_bits() == self.targets[j].to_bits()
            && match &self.rows {
                Rows::Dense(dense) => same(dense.row(i), dense.row(j)),
                Rows::Csr(csr) => {
                    let (a, b) = (csr.entries(i), csr.entries(j));
                    a.columns == b.columns && same(a.values, b.values)
                }
            }
    }
}

impl Csr<'_> {
    /// The chosen rows, owned, scales applied.
    fn select(&self, rows: &[usize]) -> Csr<'static> {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for &i in rows {
            let entries = self.entries(i);
            columns.extend_from_slice(entries.columns);
            values.extend(entries.values.iter().map(|v| self.scale(i) * v));
            starts.push(i64::try_from(values.len()).unwrap_or(i64::MAX));
        }
        Csr::from_checked(starts, columns, values, self.n_columns())
    }
}
