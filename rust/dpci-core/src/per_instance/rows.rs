//! What bounds and exact losses read of the rows: the derivatives of the loss, held to its declaration, and coordinates.

use std::ops::Range;

use crate::design::Design;
use crate::exec::BLOCK;
use crate::loss::{Batch, Loss};
use crate::{Error, Result};

/// How far a slope or a curvature may leave its declared range by rounding, as a part of the declared bound.
const SLACK: f64 = 1e-6;

/// `l'` and `l''` of a range of rows at `params`.
///
/// # Errors
/// [`Error::Loss`] where they contradict the declaration of the loss, on which every bound rests: that of a caller's loss has been
/// checked on a grid only.
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
    let out = Batch {
        slope: Some(&mut *slope),
        curvature: Some(&mut *curvature),
        ..Batch::default()
    };
    loss.evaluate(predictor, records.targets(range), out)?;
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
    Ok(())
}

/// `(vⱼᵀx)²` for orthonormal vectors v, by vector, then by row of the range.
pub(crate) fn squared_coordinates(
    records: &Design<'_>,
    range: Range<usize>,
    vectors: &[f64],
    squares: &mut Vec<f64>,
) {
    let dim = records.n_params();
    squares.resize(dim * range.len(), 0.0);
    for (vector, out) in vectors
        .chunks_exact(dim)
        .zip(squares.chunks_exact_mut(range.len()))
    {
        records.linear_predictor(range.clone(), vector, out);
        for value in out {
            *value *= *value;
        }
    }
}
