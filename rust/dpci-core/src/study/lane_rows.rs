//! Blocks of rows times the points of all lanes, and weighted sums of them, in either precision.

use std::ops::{AddAssign, Mul, Range};

use crate::Result;
use crate::design::{Design, Rows};
use crate::exec::Executor;
use crate::linalg::{
    LANES, Lane, LaneRows, Number, SparseRow, lanes_accumulate, lanes_predict, round,
};
use crate::loss::SERIES_ROWS;

/// Rows handled at a time: the numbers of all lanes stay in a first-level cache.
pub(super) const BLOCK: usize = SERIES_ROWS;

/// Calls `work` for each block of a range of rows.
pub(super) fn for_each_block(
    design: &Design<'_>,
    all: Range<usize>,
    exec: &Executor<'_>,
    mut work: impl FnMut(Range<usize>, LaneRows<'_>) -> Result<()>,
) -> Result<()> {
    for start in all.clone().step_by(BLOCK) {
        exec.check()?;
        let range = start..(start + BLOCK).min(all.end);
        match design.rows() {
            Rows::Dense(dense) => {
                let rows = dense.rows(&range);
                work(range, LaneRows::Dense(&rows))?;
            }
            Rows::Csr(csr) => {
                let block = csr.block(range.clone());
                let mut sparse: [SparseRow<'_>; BLOCK] = [(&[], &[]); BLOCK];
                for (row, entries) in sparse.iter_mut().zip(block.rows()) {
                    *row = (entries.columns, entries.values);
                }
                let sparse = &sparse[..range.len()];
                work(range, LaneRows::Sparse(sparse))?;
            }
        }
    }
    Ok(())
}

/// `out[i][l] = xᵢᵀθₗ` for the points `θₗ`, of which `points[j]` holds entry `j` of each.
pub(super) fn predict_rows<T: Number + Mul<Output = T>>(
    rows: LaneRows<'_, T>,
    points: &[Lane<T>],
    intercept: Option<f64>,
    out: &mut [Lane<T>],
) {
    let n_columns = points.len() - usize::from(intercept.is_some());
    let constant = match (intercept, points.last()) {
        (Some(scale), Some(last)) => last.map(|value| T::of(scale) * value),
        _ => [T::default(); LANES],
    };
    out.fill(constant);
    lanes_predict(rows, &points[..n_columns], out);
}

/// Adds `Σ slopes[i][l] xᵢ` to the sums of each lane.
pub(super) fn add_rows<T: Number + Mul<Output = T> + AddAssign>(
    rows: LaneRows<'_, T>,
    slopes: &[Lane<T>],
    intercept: Option<f64>,
    sums: &mut [Lane<T>],
) {
    let n_columns = sums.len() - usize::from(intercept.is_some());
    lanes_accumulate(rows, slopes, &mut sums[..n_columns]);
    if let (Some(scale), Some(last)) = (intercept, sums.last_mut()) {
        for slopes in slopes {
            for (sum, slope) in last.iter_mut().zip(slopes) {
                *sum += T::of(scale) * *slope;
            }
        }
    }
}

/// The rows of a block in single precision.
#[derive(Default)]
pub(super) struct RoundedRows {
    values: Vec<f32>,
}

impl RoundedRows {
    /// Calls `work` with rows rounded.
    pub(super) fn of(&mut self, rows: LaneRows<'_>, work: impl FnOnce(LaneRows<'_, f32>)) {
        self.values.clear();
        match rows {
            LaneRows::Dense(rows) => {
                self.values.resize(rows.len(), 0.0);
                round(rows, &mut self.values);
                work(LaneRows::Dense(&self.values));
            }
            LaneRows::Sparse(rows) => {
                let all = rows.iter().flat_map(|(_, values)| *values);
                self.values.extend(all.map(|value| f32::of(*value)));
                let mut rounded: [SparseRow<'_, f32>; BLOCK] = [(&[], &[]); BLOCK];
                let mut rest = &self.values[..];
                for (rounded, (columns, _)) in rounded.iter_mut().zip(rows) {
                    let (values, others) = rest.split_at(columns.len());
                    (*rounded, rest) = ((*columns, values), others);
                }
                work(LaneRows::Sparse(&rounded[..rows.len()]));
            }
        }
    }
}
