//! How often the samples of a group hold each row: a byte a lane, so that passes over the rows wait less for memory.

use std::ops::Range;

use crate::linalg::{LANES, Lane, lanes_of_bytes};

/// The counts of a group of samples.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    /// By row: 0 for the rows of many records.
    pub(super) small: Vec<[u8; LANES]>,
    /// Rows of many records, in their order, which a byte may not hold.
    pub(super) large: Vec<(usize, [u32; LANES])>,
}

impl Counts {
    /// Counts of 0.
    pub(super) fn new(n_rows: usize, large_rows: impl Iterator<Item = usize>) -> Self {
        Self {
            small: vec![[0; LANES]; n_rows],
            large: large_rows.map(|row| (row, [0; LANES])).collect(),
        }
    }

    /// Sets all to 0.
    pub(super) fn clear(&mut self) {
        self.small.fill([0; LANES]);
        for (_, counts) in &mut self.large {
            *counts = [0; LANES];
        }
    }

    /// Writes the counts of some rows as numbers.
    pub(super) fn load(&self, rows: Range<usize>, out: &mut [Lane]) {
        lanes_of_bytes(&self.small[rows.clone()], out);
        let first = self.large.partition_point(|(row, _)| *row < rows.start);
        for (row, counts) in &self.large[first..] {
            if *row >= rows.end {
                break;
            }
            out[row - rows.start] = counts.map(f64::from);
        }
    }

    /// The counts of one sample.
    pub(super) fn of(&self, lane: usize) -> Vec<u32> {
        let mut counts: Vec<u32> = self.small.iter().map(|c| c[lane].into()).collect();
        for (row, large) in &self.large {
            counts[*row] = large[lane];
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_rows_are_loaded() {
        let mut counts = Counts::new(200, [3, 64, 127, 199].into_iter());
        for (row, c) in counts.small.iter_mut().enumerate() {
            *c = std::array::from_fn(|lane| u8::try_from((row + lane) % 256).unwrap());
        }
        for (row, c) in &mut counts.large {
            counts.small[*row] = [0; LANES];
            *c = std::array::from_fn(|lane| u32::try_from(1000 * *row + lane).unwrap());
        }
        for rows in [0..64, 64..128, 128..200, 4..5] {
            let mut out = vec![[f64::NAN; LANES]; rows.len()];
            counts.load(rows.clone(), &mut out);
            for lane in 0..LANES {
                let expected = &counts.of(lane)[rows.clone()];
                let found = out.iter().map(|c| c[lane]);
                assert!(found.eq(expected.iter().map(|c| f64::from(*c))));
            }
        }
        assert_eq!(counts.of(2)[64], 64_002);
        counts.clear();
        assert!(counts.of(5).iter().all(|c| *c == 0));
    }
}
