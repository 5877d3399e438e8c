//! Rows against a domain of blocks: sums of absolute values within their bounds, or blocks scaled into them one by one.

use std::ops::Range;

use super::scales::{GREATEST_NORM, ROUNDING_ROOM, Scaled, column_index, safe_scale};
use super::{CsrBlock, Entries, OnViolation};
use crate::linalg::Run;
use crate::row_domain::Blocks;
use crate::{Error, Result};

/// The columns of each block, where they are all consecutive.
pub(super) fn runs_of(blocks: &Blocks) -> Option<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::with_capacity(blocks.bounds().len());
    let mut first = 0;
    for members in blocks.members().chunk_by(|a, b| a == b) {
        runs.push((first, first + members.len(), blocks.bounds()[members[0]]));
        first += members.len();
    }
    (runs.len() == blocks.bounds().len()).then_some(runs)
}

/// Checks rows one after another, with room for the sums of their blocks.
pub(super) struct BlockCheck<'a> {
    blocks: &'a Blocks,
    on_violation: OnViolation,
    sums: Vec<f64>,
    /// How many entries of a block are not zero.
    counts: Vec<usize>,
}

impl<'a> BlockCheck<'a> {
    pub(super) fn new(blocks: &'a Blocks, on_violation: OnViolation) -> Self {
        let n_blocks = blocks.bounds().len();
        Self {
            blocks,
            on_violation,
            sums: vec![0.0; n_blocks],
            counts: vec![0; n_blocks],
        }
    }

    /// [`Self::row`] for the sparse rows of a range.
    pub(super) fn rows(&mut self, rows: &CsrBlock<'_>, range: Range<usize>, out: &mut Vec<Scaled>) -> Result<()> {
        let mut rows = range.zip(rows.rows());
        rows.try_for_each(|(i, entries)| self.row(i, &of_sparse(entries), out))
    }

    /// Adds the blocks of row `i` that have to be scaled. Sums go by columns, zeros change none: the row that is kept is the same in every
    /// storage.
    pub(super) fn row(
        &mut self,
        i: usize,
        entries: &(impl Iterator<Item = (usize, f64)> + Clone),
        out: &mut Vec<Scaled>,
    ) -> Result<()> {
        self.sums.fill(0.0);
        self.counts.fill(0);
        let members = self.blocks.members();
        for (column, value) in entries.clone() {
            let block = members[column];
            self.sums[block] += value.abs();
            self.counts[block] += usize::from(value != 0.0);
        }
        let bounds = self.blocks.bounds().iter();
        for (block, (bound, (sum, count))) in bounds.zip(self.sums.iter().zip(&self.counts)).enumerate() {
            // A sum of m terms has m - 1 roundings: one entry, such as an indicator, is compared as it is.
            let sum = sum * (1.0 + count.saturating_sub(1) as f64 * f64::EPSILON);
            if sum <= *bound {
                continue;
            }
            if let Some((column, value)) = entries.clone().find(|(_, v)| !v.is_finite()) {
                return Err(Error::NonFiniteRow { row: i, column, value });
            }
            if !(sum <= GREATEST_NORM) {
                return Err(Error::RowTooLong { norm: sum });
            }
            let tolerated = bound * (1.0 + ROUNDING_ROOM);
            if self.on_violation == OnViolation::Error && !(sum <= tolerated) {
                let column = members.iter().position(|member| *member == block);
                return Err(Error::RowBlock {
                    row: i,
                    column: column.unwrap_or_default(),
                    size: self.blocks.sizes()[block],
                    sum,
                    bound: *bound,
                });
            }
            out.push((i, block, safe_scale(sum, self.blocks.sizes()[block], *bound)));
        }
        Ok(())
    }
}

/// The entries of a dense row with their columns.
pub(super) fn of_dense(row: &[f64]) -> impl Iterator<Item = (usize, f64)> + Clone {
    row.iter().copied().enumerate()
}

/// The entries of a sparse row with their columns.
fn of_sparse(entries: Entries<'_>) -> impl Iterator<Item = (usize, f64)> + Clone {
    let values = entries.values.iter().copied();
    entries.columns.iter().map(|c| column_index(*c)).zip(values)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::design::{Csr, Design, RowBounds, Rows};
    use crate::exec::Executor;
    use crate::loss::Targets;
    use crate::row_domain::RowDomain;

    /// Columns 0, 2 and 3 sum to at most 1, column 1 is at most 0.5.
    fn bounds(on_violation: OnViolation) -> RowBounds {
        let blocks = Blocks::new(vec![1.0, 0.5], vec![0, 1, 0, 0]).unwrap();
        RowBounds {
            rows: RowDomain::Blocks(Arc::new(blocks)),
            targets: Targets::Signs,
            on_violation,
        }
    }

    fn sparse(rows: &[f64]) -> Rows<'static> {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows.chunks(4) {
            for (c, v) in (0..).zip(row) {
                if *v != 0.0 {
                    columns.push(c);
                    values.push(*v);
                }
            }
            starts.push(i64::try_from(columns.len()).unwrap());
        }
        Rows::Csr(Csr::new(starts, columns, values, 4).unwrap())
    }

    fn written(design: &Design<'_>) -> Vec<f64> {
        let mut out = vec![0.0; design.n_rows() * design.n_params()];
        design.write_rows(0..design.n_rows(), &mut out);
        out
    }

    /// Rows as they are kept, the same in every storage.
    fn kept(rows: &[f64], on_violation: OnViolation) -> Result<Vec<f64>> {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let targets = vec![1.0; rows.len() / 4];
        let bounds = bounds(on_violation);
        let of = |rows| Design::new(rows, &targets, Some(0.25), &bounds, &exec);
        let dense = of(Rows::dense(rows, 4));
        let others = of(sparse(rows));
        #[expect(clippy::cast_possible_truncation, reason = "only exact ones are compared")]
        let singles: Vec<f32> = rows.iter().map(|x| *x as f32).collect();
        let single = of(Rows::dense_single(&singles, 4));
        let is_exact = singles
            .iter()
            .zip(rows)
            .all(|(s, x)| f64::from(*s).to_bits() == x.to_bits());
        let (dense, others) = match (dense, others) {
            (Ok(dense), Ok(others)) => (dense, others),
            (Err(dense), Err(others)) => {
                assert_eq!(dense.to_string(), others.to_string());
                return Err(dense);
            }
            (dense, others) => panic!("{dense:?} {others:?}"),
        };
        let expected = written(&dense);
        for other in [&dense.owned(), &others.owned()] {
            assert_eq!(written(other), expected);
        }
        if is_exact {
            assert_eq!(written(&single.unwrap()), expected);
        }
        let same = written(&others);
        assert_eq!(same, expected);
        // Everything that reads rows reads the same ones.
        let (n, dim) = (dense.n_rows(), dense.n_params());
        for design in [&dense, &others, &dense.merged(&exec).unwrap()] {
            let params = [0.3, -1.7, 0.9, 2.1, 0.4];
            let mut predictor = vec![0.0; design.n_rows()];
            design.linear_predictor(0..design.n_rows(), &params, &mut predictor);
            let mut squares = vec![0.0; design.n_rows()];
            design.squared_norms(0..design.n_rows(), &mut squares);
            let own = written(design);
            for (i, row) in own.chunks(dim).enumerate() {
                let expected: f64 = row.iter().zip(params).map(|(x, p)| x * p).sum();
                assert!((predictor[i] - expected).abs() < 1e-14);
                let square: f64 = row.iter().map(|x| x * x).sum();
                assert!(squares[i] >= square && squares[i] < square + 1e-12);
            }
        }
        let mut sums = vec![0.0; dim];
        dense.add_weighted_rows(0..n, &mut vec![1.0; n], &mut sums);
        for (j, sum) in sums.iter().enumerate() {
            let expected: f64 = expected.iter().skip(j).step_by(dim).sum();
            assert!((sum - expected).abs() < 1e-12);
        }
        Ok(expected)
    }

    #[test]
    fn each_block_is_scaled_by_itself() {
        let rows = [
            [1.0, 0.5, 0.0, 0.0],
            [2.0, 0.25, -1.0, 1.0],
            [0.0, -3.0, 0.25, -0.25],
            [4.0, 1.0, 0.0, 0.0],
        ]
        .concat();
        let found = kept(&rows, OnViolation::Clip).unwrap();
        let expected = [
            [1.0, 0.5, 0.0, 0.0, 0.25],
            [0.5, 0.25, -0.25, 0.25, 0.25],
            [0.0, -0.5, 0.25, -0.25, 0.25],
            [1.0, 0.5, 0.0, 0.0, 0.25],
        ]
        .concat();
        for (f, e) in found.iter().zip(&expected) {
            assert!((f - e).abs() < 1e-14, "{found:?}");
        }
        // What is within its bound is kept bit by bit, and what is kept is within.
        assert_eq!(found[..5], expected[..5]);
        for row in found.chunks(5) {
            assert!(row[0].abs() + row[2].abs() + row[3].abs() <= 1.0 && row[1].abs() <= 0.5);
        }
        let Err(Error::RowBlock { row, sum, bound, .. }) = kept(&rows, OnViolation::Error) else {
            panic!("the second row is too great");
        };
        assert!(row == 1 && (sum - 4.0).abs() < 1e-12 && (bound - 1.0).abs() < 1e-15);
    }

    #[test]
    fn rounding_is_scaled_away_and_more_is_refused() {
        let third = 1.0 / 3.0;
        let row = [0.1 + third, 0.5 + 1e-10, third, third - 0.1];
        let found = kept(&row, OnViolation::Error).unwrap();
        assert!(found[0] + found[2] + found[3] <= 1.0 && found[1] <= 0.5 && found[1] > 0.5 - 1e-14);
        assert!(kept(&[0.0, 0.5 + 1e-8, 0.0, 0.0], OnViolation::Error).is_err());
        for bad in [f64::NAN, f64::INFINITY] {
            let refused = kept(&[0.0, 0.5, bad, 0.0], OnViolation::Clip).unwrap_err();
            assert!(matches!(refused, Error::NonFiniteRow { column: 2, .. }));
        }
        let refused = kept(&[1e151, 0.5, 0.0, 0.0], OnViolation::Clip).unwrap_err();
        assert!(matches!(refused, Error::RowTooLong { .. }));
    }

    #[test]
    fn clipped_rows_lie_in_their_domain_in_exact_arithmetic() {
        // Integers times a power of two: sums of their sizes are exact in u128.
        let mut state = 1_u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64 * 3.0 - 1.5
        };
        let rows: Vec<f64> = (0..4000).map(|_| number()).collect();
        let found = kept(&rows, OnViolation::Clip).unwrap();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number below 2¹²⁰"
        )]
        let exact = |x: f64| -> u128 {
            let scaled = x.abs() * 2.0_f64.powi(100);
            assert!(scaled < 2.0_f64.powi(120));
            scaled as u128
        };
        for row in found.chunks(5) {
            let sum = exact(row[0]) + exact(row[2]) + exact(row[3]);
            assert!(sum <= 1 << 100);
        }
    }
}
