//! Matrices that are sums over the data: Hessian and gradient covariance at a point, and second moments of the rows.

use crate::design::{Design, row_norm_bound};
use crate::error::check_length;
use crate::exec::{BLOCK, Executor, blocks, matrix_chunks};
use crate::linalg::{
    CompensatedSum, GRAM_ROUNDINGS, GramAccumulator, PackedBlock, sum_rounding, vector,
};
use crate::loss::{Batch, Loss, VALUE_ROUNDINGS};
use crate::{Error, Result};

/// Data sums at `θ`, without the regulariser: `(1/n) Σ l'' x xᵀ` and `(1/n) Σ l'² x xᵀ`, row-major.
#[derive(Debug, Clone)]
pub struct DataMoments {
    /// `(1/n) Σ l''(uᵢ) xᵢ xᵢᵀ`.
    pub curvature: Vec<f64>,
    /// `(1/n) Σ l'(uᵢ)² xᵢ xᵢᵀ`.
    pub squared_slope: Vec<f64>,
}

/// Bound on the Frobenius distance of a matrix of [`data_moments`] to `(1/n) Σ cᵢ xᵢxᵢᵀ` in real numbers, in terms of `N/n·sup c·R²` for
/// `N` records: `cᵢ` is l'' or l'² at the predictor of record i, a function of that record and the parameters alone; `sup c` its supremum
/// over `|u| ≤ R‖θ‖`, `R` the bound on the rows with their intercept.
#[must_use]
pub fn moment_rounding(n_rows: usize) -> f64 {
    sum_rounding(GRAM_ROUNDINGS + VALUE_ROUNDINGS, n_rows)
}

/// The same for [`second_moments`]: its `gram` in terms of `N·R²`, its `cross` of `N·R·B`, `B` the bound on targets (Euclidean).
#[must_use]
pub fn second_moment_rounding(n_rows: usize) -> f64 {
    sum_rounding(GRAM_ROUNDINGS, n_rows)
}

/// Both sums in one pass; `n_samples` is the public `n` that divides them.
///
/// Slopes and curvatures are held to their suprema over `|u| ≤ R‖θ‖`, on which sensitivities rest, whatever their rounding or a caller's
/// code adds.
///
/// # Errors
/// [`Error::Unsupported`] for a loss with a kink, [`Error::Loss`], [`Error::Interrupted`], [`Error::Length`].
pub fn data_moments(
    design: &Design<'_>,
    loss: &dyn Loss,
    params: &[f64],
    n_samples: f64,
    exec: &Executor<'_>,
) -> Result<DataMoments> {
    let dim = design.n_params();
    check_length("params", dim, params.len())?;
    if loss.kinked() {
        return Err(Error::Unsupported(format!(
            "moments need a loss with a second derivative, got the {} loss (huber_hinge and smooth_hinge round the kink)",
            loss.name()
        )));
    }
    let reach = row_norm_bound(design.bounds().row_norm, design.intercept())
        * vector::norm_bound(params)
        * (1.0 + (dim as f64 + 8.0) * f64::EPSILON);
    let (steepest, most_curved) = (loss.sup_slope(reach), loss.sup_curvature(reach));
    let chunks = matrix_chunks(design.n_rows(), dim);
    let partials = exec.map(chunks.len(), |c| {
        let mut sums = [GramAccumulator::new(dim), GramAccumulator::new(dim)];
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut buffers = [[0.0; BLOCK]; 4];
        for range in blocks(chunks[c].clone()) {
            exec.check()?;
            let n = range.len();
            let [u, slope, curvature, multiplicity] = &mut buffers;
            let (u, slope, curvature) = (&mut u[..n], &mut slope[..n], &mut curvature[..n]);
            design.linear_predictor(range.clone(), params, u);
            let out = Batch {
                slope: Some(&mut *slope),
                curvature: Some(&mut *curvature),
                ..Batch::default()
            };
            loss.evaluate(u, design.targets(range.clone()), out)?;
            vector::clamp(curvature, 0.0, most_curved);
            vector::clamp(slope, -steepest, steepest);
            for s in slope.iter_mut() {
                *s *= *s;
            }
            if let Some(weights) = design.multiplicities() {
                let multiplicity = vector::load(&weights[range.clone()], multiplicity);
                vector::multiply(slope, multiplicity);
                vector::multiply(curvature, multiplicity);
            }
            design.add_grams(range, [curvature, slope], &mut sums, &mut packed);
        }
        Ok(sums)
    })?;
    let [curvature, squared_slope] = partials
        .into_iter()
        .reduce(|mut total, part| {
            total[0].merge(&part[0]);
            total[1].merge(&part[1]);
            total
        })
        .ok_or(Error::Empty {
            rows: 0,
            params: dim,
        })?;
    Ok(DataMoments {
        curvature: curvature.finish(n_samples),
        squared_slope: squared_slope.finish(n_samples),
    })
}

/// `Σ xᵢxᵢᵀ` (row-major) and `Σ yᵢxᵢ`: all that a quadratic loss sees of the data.
#[derive(Debug, Clone)]
pub struct SecondMoments {
    /// `Σ xᵢ xᵢᵀ`.
    pub gram: Vec<f64>,
    /// `Σ yᵢ xᵢ`.
    pub cross: Vec<f64>,
}

/// Both sums in one pass.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn second_moments(design: &Design<'_>, exec: &Executor<'_>) -> Result<SecondMoments> {
    let dim = design.n_params();
    let chunks = matrix_chunks(design.n_rows(), dim);
    let partials = exec.map(chunks.len(), |c| {
        let mut gram = [GramAccumulator::new(dim)];
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut cross = CompensatedSum::default();
        let mut block_cross = vec![0.0; dim];
        let mut buffers = [[0.0; BLOCK]; 2];
        for range in blocks(chunks[c].clone()) {
            exec.check()?;
            let [buffer, weighted] = &mut buffers;
            let counts = if let Some(multiplicities) = design.multiplicities() {
                vector::load(&multiplicities[range.clone()], buffer)
            } else {
                buffer.fill(1.0);
                &buffer[..range.len()]
            };
            let weighted = &mut weighted[..range.len()];
            weighted.copy_from_slice(design.targets(range.clone()));
            vector::multiply(weighted, counts);
            design.add_grams(range.clone(), [counts], &mut gram, &mut packed);
            block_cross.fill(0.0);
            design.add_weighted_rows(range, weighted, &mut block_cross);
            cross.add(&block_cross);
        }
        Ok((gram, cross))
    })?;
    let ([gram], cross) = partials
        .into_iter()
        .reduce(|mut total, (gram, cross)| {
            total.0[0].merge(&gram[0]);
            total.1.merge(&cross);
            total
        })
        .ok_or(Error::Empty {
            rows: 0,
            params: dim,
        })?;
    Ok(SecondMoments {
        gram: gram.finish(1.0),
        cross: cross.values().collect(),
    })
}
