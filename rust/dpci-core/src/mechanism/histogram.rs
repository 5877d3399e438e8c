//! The histogram baseline: noisy counts of the cells of a public grid, and a regression on the cells as post-processing.
//!
//! Lei 2011, "Differentially private M-estimators"; docs/baselines.md.

use super::row_facts::check_records;
use super::seal::{Sealed, Values};
use crate::design::{Design, OnViolation, RowBounds, Rows};
use crate::erm::minimize_risk;
use crate::error::{check_length, check_positive};
use crate::exec::{BLOCK, Executor, blocks, check_room};
use crate::loss::Loss;
use crate::noise::{Law, NoiseGenerator};
use crate::objective::Objective;
use crate::row_domain::RowDomain;
use crate::solver::{Method, Options};
use crate::spec::{Grid, HistogramSpec, MOST_RECORDS};
use crate::{Error, Result};

/// Shares are weighed by multiples of its reciprocal.
const FINEST: f64 = 1024.0;

/// Releases the noisy counts of all cells, the empty ones among them.
///
/// # Privacy
/// Spends the whole budget of `spec`: independent Laplace or Gaussian noise at the sensitivity of [`HistogramSpec::new`]. Every row
/// falls into exactly one cell, whatever its values, so nothing is assumed about the rows; the rows of a record count at most 1 together.
pub fn release_histogram(
    spec: &HistogramSpec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    let n_cells = spec.grid().n_cells();
    // What the fit to the cells will need, too: once the counts are released it is too late to find out.
    check_room(n_cells.saturating_mul(3 * spec.grid().n_columns() + 16))?;
    let noise = spec.law().sample_bounded(generator)?;
    let exact = counts(spec, design, exec)?;
    spec.seal().release_sum(&noise, &exact, generator)
}

/// How many records each cell has; of persons and weighted records the sum of their rows' shares, exact multiples of the resolution.
fn counts(spec: &HistogramSpec, design: &Design<'_>, exec: &Executor<'_>) -> Result<Vec<f64>> {
    let grid = spec.grid();
    let (unit, weighting) = spec.records();
    let bound = weighting.map(|w| w.bound);
    check_records(design, unit, bound)?;
    if design.shares().is_some() && design.n_records() > MOST_RECORDS {
        return Err(Error::TooManyRows {
            greatest: MOST_RECORDS,
            got: design.n_records(),
        });
    }
    let width = design.n_params();
    let n_columns = width - usize::from(design.intercept().is_some());
    check_length("each row of X", grid.n_columns(), n_columns)?;
    let chunks = design.chunks();
    let cells = exec.map(chunks.len(), |c| {
        let mut rows = vec![0.0; BLOCK * width];
        let mut cells = Vec::with_capacity(chunks[c].len());
        for range in blocks(chunks[c].clone()) {
            exec.check()?;
            design.write_rows(range.clone(), &mut rows);
            let records = rows.chunks_exact(width).zip(design.targets(range));
            cells.extend(records.map(|(row, target)| grid.cell(row, *target)));
        }
        Ok(cells)
    })?;
    let mut counts = vec![0.0; grid.n_cells()];
    let (multiplicities, shares, step) = (design.multiplicities(), design.shares(), spec.resolution());
    for (i, cell) in cells.into_iter().flatten().enumerate() {
        counts[cell] += match shares {
            // Quotients by a power of two are exact.
            Some(shares) => (shares[i] / step).floor() * step,
            None => multiplicities.map_or(1.0, |m| f64::from(m[i])),
        };
    }
    Ok(counts)
}

/// A regression that is fitted to the cells.
#[derive(Debug)]
pub struct CellRegression<'a> {
    /// Loss.
    pub loss: &'a dyn Loss,
    /// λ > 0 of the mean objective.
    pub l2_strength: f64,
    /// The constant appended to each row.
    pub intercept: Option<f64>,
    /// Whether counts are sums of shares, so that small ones matter.
    pub has_shares: bool,
}

/// Post-processing: minimises the regularised risk of the centres of the cells, each as many times as its released count says, rounded to
/// a whole number, or of shares to 1/1024 or what 32 bits hold, and 0 where it is negative. All zero where no cell is left.
pub fn fit_histogram(
    grid: &Grid,
    counts: &Sealed,
    regression: &CellRegression<'_>,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    check_positive("l2_strength", regression.l2_strength)?;
    let n_columns = grid.n_columns();
    let n_params = n_columns + usize::from(regression.intercept.is_some());
    let (mut rows, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let mut row = vec![0.0; n_columns];
    let greatest = counts.values().iter().fold(0.0, |a: f64, count| a.max(*count));
    let mut scale = 1.0;
    while regression.has_shares && scale < FINEST && 2.0 * scale * greatest < f64::from(u32::MAX) {
        scale *= 2.0;
    }
    for (cell, count) in counts.values().iter().enumerate() {
        let weight = whole(scale * count);
        if weight > 0 {
            targets.push(grid.center(cell, &mut row));
            rows.extend_from_slice(&row);
            weights.push(weight);
        }
    }
    if weights.is_empty() {
        return Ok(vec![0.0; n_params]);
    }
    let bounds = RowBounds {
        rows: RowDomain::Ball(f64::MAX),
        targets: regression.loss.targets(),
        on_violation: OnViolation::Error,
    };
    let rows = Rows::dense(&rows, n_columns);
    let design = Design::new(rows, &targets, regression.intercept, &bounds, exec)?;
    let n = weights.iter().map(|w| f64::from(*w)).sum();
    let objective = Objective {
        weights: Some(&weights),
        ..Objective::new(&design, regression.loss, regression.l2_strength, n, exec)
    };
    // Nothing private rests on this certificate; a small λ may ask for a gradient below its own rounding.
    let options = Options {
        method: Method::Auto,
        tolerance: (1e-11 / regression.l2_strength).max(1e-9),
        max_iterations: 2000,
        radius: None,
    };
    Ok(minimize_risk(&objective, None, &options)?.params)
}

/// The nearest whole number from 0 to 2³² - 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast to an integer saturates, which is what is wanted"
)]
fn whole(count: f64) -> u32 {
    count.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_whole_records() {
        for (count, expected) in [(-3.0, 0), (-0.2, 0), (0.49, 0), (0.5, 1), (7.2, 7), (1e30, u32::MAX)] {
            assert_eq!(whole(count), expected);
        }
    }
}
