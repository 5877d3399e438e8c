//! Reads of the rows for bounds and exact losses: the derivatives of the loss, held to its declaration, and coordinates.

use std::ops::Range;

use super::{RecordBounds, RecordEpsilons, RecordFacts};
use crate::design::Design;
use crate::exec::{BLOCK, Executor, blocks};
use crate::linalg::vector;
use crate::loss::{Batch, Loss};
use crate::{Error, Result};

/// How far a slope or a curvature may leave its declared range by rounding, as a part of the declared bound.
const SLACK: f64 = 1e-6;

impl RecordBounds {
    /// The bounds of rows that are records of their own.
    pub(super) fn of_rows(&self, records: &Design<'_>, exec: &Executor<'_>) -> Result<Vec<RecordEpsilons>> {
        let (chunks, reach) = (records.chunks(), self.reach(1));
        exec.map(chunks.len(), |c| {
            let mut part = RecordEpsilons::default();
            let mut squares = Vec::new();
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                self.append_block(records, range, reach, &mut squares, &mut part)?;
            }
            Ok(part)
        })
    }

    fn append_block(
        &self,
        records: &Design<'_>,
        range: Range<usize>,
        reach: f64,
        squares: &mut Vec<f64>,
        part: &mut RecordEpsilons,
    ) -> Result<()> {
        let n = range.len();
        let model = &self.model;
        let mut buffers = [[0.0; BLOCK]; 6];
        let [slope, curvature, norm, leverage, along, at] = &mut buffers;
        let (slope, curvature) = (&mut slope[..n], &mut curvature[..n]);
        slopes_and_curvatures(records, &*model.loss, &model.params, range.clone(), slope, curvature)?;
        let (norm, leverage, along) = (&mut norm[..n], &mut leverage[..n], &mut along[..n]);
        records.squared_norms(range.clone(), norm);
        if let Some(extra) = &self.extra {
            squared_coordinates(records, range.clone(), &extra.leverage.vectors, squares);
            extra.leverage.fill(squares, leverage, &mut at[..n]);
            records.linear_predictor(range, &extra.released.gradient, along);
        } else {
            for (leverage, square) in leverage.iter_mut().zip(&*norm) {
                *leverage = square / model.ridge;
            }
        }
        for i in 0..n {
            let (slope, square) = (slope[i].abs(), norm[i]);
            let ridge_term = curvature[i] * square;
            // -ln(1 - l''m) covers a record of the data and, being greater than ln(1 + l''m), any other. The ridge alone
            // bounds both by ln(1 + l''‖x‖²/Λ): the Hessian of data that hold the record is at least ΛI + l''xxᵀ.
            let leveraged = (curvature[i] * leverage[i]).min(1.0);
            let facts = RecordFacts {
                gradient_norm: slope * square.sqrt(),
                along: (slope * along[i]).abs(),
                hessian_norm: ridge_term,
                log_det: (-(-leveraged).ln_1p()).min((ridge_term / model.ridge).ln_1p()),
                reach,
            };
            self.append(&facts, part);
        }
        Ok(())
    }
}

/// `ω l'` and `ω l''` of a range of rows at `params`, ω how much a row counts.
pub(crate) fn slopes_and_curvatures(
    records: &Design<'_>,
    loss: &dyn Loss,
    params: &[f64],
    range: Range<usize>,
    slope: &mut [f64],
    curvature: &mut [f64],
) -> Result<()> {
    let mut predictor = [0.0; BLOCK];
    let predictor = &mut predictor[..range.len()];
    records.linear_predictor(range.clone(), params, predictor);
    let out = Batch::derivatives(&mut *slope, &mut *curvature);
    loss.evaluate(predictor, records.targets(range.clone()), out)?;
    let greatest_slope = loss.slope_bound() * (1.0 + SLACK);
    let greatest_curvature = loss.curvature_bound() * (1.0 + SLACK);
    let least_curvature = -loss.curvature_bound() * SLACK;
    for (slope, curvature) in slope.iter().zip(&*curvature) {
        if !(slope.abs() <= greatest_slope) {
            return Err(Error::Loss(format!(
                "|slope|={} above slope_bound={} at a record",
                slope.abs(),
                loss.slope_bound()
            )));
        }
        if !(*curvature <= greatest_curvature) {
            return Err(Error::Loss(format!(
                "curvature={curvature} above curvature_bound={} at a record",
                loss.curvature_bound()
            )));
        }
        if !(*curvature >= least_curvature) {
            return Err(Error::Loss(format!(
                "negative curvature={curvature} at a record (the loss must be convex)"
            )));
        }
    }
    for curvature in &mut *curvature {
        // A declared curvature may round below 0.
        *curvature = curvature.max(0.0);
    }
    if let Some(shares) = records.shares() {
        vector::multiply(slope, &shares[range.clone()]);
        vector::multiply(curvature, &shares[range]);
    }
    Ok(())
}

/// `(vⱼᵀx)²` for orthonormal vectors v, by vector, then by row of the range.
pub(crate) fn squared_coordinates(records: &Design<'_>, range: Range<usize>, vectors: &[f64], squares: &mut Vec<f64>) {
    let dim = records.n_params();
    squares.resize(dim * range.len(), 0.0);
    for (vector, out) in vectors.chunks_exact(dim).zip(squares.chunks_exact_mut(range.len())) {
        records.linear_predictor(range.clone(), vector, out);
        for value in out {
            *value *= *value;
        }
    }
}
