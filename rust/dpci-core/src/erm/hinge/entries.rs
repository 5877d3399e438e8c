//! Rows without their zeros, as coordinate descent reads them: one at a time, in any order.

use crate::loss::HINGE_MAX_DIM;

/// Entries of a row are kept in groups of so many, the last one filled up with zeros: sums of as many lanes.
pub(super) const LANES: usize = 4;

/// Rows without their zeros.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Groups of entries: row `i` has `starts[i]..starts[i + 1]`.
    pub(super) starts: Vec<usize>,
    pub(super) columns: Vec<[u16; LANES]>,
    pub(super) values: Vec<[f64; LANES]>,
}

impl Entries {
    /// Adds `factor·row`.
    pub(super) fn push(&mut self, row: &[f64], factor: f64) {
        let first = self.starts.last().copied().unwrap_or_default();
        // What lies behind the last row is overwritten.
        let most = (first + row.len().div_ceil(LANES)).max(self.columns.len());
        self.columns.resize(most, [0; LANES]);
        self.values.resize(most, [0.0; LANES]);
        let columns = self.columns[first..].as_flattened_mut();
        let values = self.values[first..].as_flattened_mut();
        let mut n = 0;
        for (column, &value) in (0..).zip(row) {
            // Without a branch, which nobody could predict.
            columns[n] = column;
            values[n] = value * factor;
            n += usize::from(value != 0.0);
        }
        let filled = n.next_multiple_of(LANES);
        columns[n..filled].fill(0);
        values[n..filled].fill(0.0);
        self.starts.push(first + filled / LANES);
    }

    /// Columns and values of a row; some zeros may be among them.
    pub(super) fn of(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let (columns, values) = self.row(i);
        let columns = columns.as_flattened().iter().map(|c| usize::from(*c));
        columns.zip(values.as_flattened().iter().copied())
    }

    fn row(&self, i: usize) -> (&[[u16; LANES]], &[[f64; LANES]]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// `1 - aᵀθ`.
    #[inline(always)]
    pub(super) fn slack(&self, i: usize, params: &[f64; HINGE_MAX_DIM]) -> f64 {
        let (columns, values) = self.row(i);
        let mut sums = [0.0; LANES];
        for (columns, values) in columns.iter().zip(values) {
            for lane in 0..LANES {
                sums[lane] += values[lane] * params[usize::from(columns[lane]) % HINGE_MAX_DIM];
            }
        }
        1.0 - ((sums[0] + sums[1]) + (sums[2] + sums[3]))
    }

    /// Loads a row.
    pub(super) fn touch(&self, i: usize) -> u64 {
        let (columns, values) = self.row(i);
        let loaded = values.iter().fold(0, |sum, group| sum ^ group[0].to_bits());
        loaded ^ columns.first().map_or(0, |group| u64::from(group[0]))
    }

    /// Writes a row into zeros.
    pub(super) fn write(&self, i: usize, out: &mut [f64]) {
        for (column, value) in self.of(i).filter(|(_, value)| *value != 0.0) {
            out[column] = value;
        }
    }

    /// `out += factor·a`.
    #[inline(always)]
    pub(super) fn add_to(&self, i: usize, factor: f64, out: &mut [f64; HINGE_MAX_DIM]) {
        let (columns, values) = self.row(i);
        for (columns, values) in columns.iter().zip(values) {
            for lane in 0..LANES {
                out[usize::from(columns[lane]) % HINGE_MAX_DIM] += factor * values[lane];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::vector;

    #[test]
    fn entries_are_the_rows_but_for_their_zeros() {
        let params: [f64; HINGE_MAX_DIM] = std::array::from_fn(|j| 1.0 + j as f64);
        for width in 1..=13 {
            let rows: Vec<Vec<f64>> = (0..8)
                .map(|i| {
                    let entry = |j| f64::from((i * j + i) % (2 + i % 3)) / (1.0 + f64::from(j));
                    (0..width).map(entry).collect()
                })
                .collect();
            let mut entries = Entries {
                starts: vec![0],
                ..Entries::default()
            };
            for row in &rows {
                entries.push(row, -1.0);
            }
            for (i, row) in rows.iter().enumerate() {
                let n_stored = entries.row(i).0.len() * LANES;
                let n_entries = row.iter().filter(|x| **x != 0.0).count();
                assert!(n_stored < n_entries + LANES);
                let mut written = vec![0.0; row.len()];
                entries.write(i, &mut written);
                let mut sum = Box::new([0.0; HINGE_MAX_DIM]);
                entries.add_to(i, -2.0, &mut sum);
                for ((x, w), s) in row.iter().zip(&written).zip(&*sum) {
                    assert!(*w + x == 0.0 && s - 2.0 * x == 0.0);
                }
                let slack = 1.0 + vector::dot(row, &params[..row.len()]);
                assert!((entries.slack(i, &params) - slack).abs() < 1e-12);
            }
        }
    }
}
