//! The histogram baseline: noisy counts of the cells of a public grid, and a regression on the cells as post-processing.
//!
//! Lei 2011, "Differentially private M-estimators"; docs/baselines.md.

use super::costs::{Cost, Step};
use super::functional::noise_of;
use super::seal::{Seal, Sealed};
use super::sealing::share_seal;
use crate::design::{Design, Grid, OnViolation, RowBounds, Rows};
use crate::erm::minimize_risk;
use crate::exec::{Executor, check_room};
use crate::loss::Loss;
use crate::noise::{Gaussian, Laplace, NoiseGenerator};
use crate::objective::Objective;
use crate::privacy::{Budget, Neighbors, gaussian_mu};
use crate::solver::{Method, Options};
use crate::{Error, Result};

/// A grid with the noise on its counts. Holds no data.
#[derive(Debug, Clone)]
pub struct HistogramSpec {
    grid: Grid,
    step: Step,
    seal: Seal,
}

impl HistogramSpec {
    /// Calibrates the noise.
    ///
    /// # Privacy
    /// A replaced record moves one count up and one down, by 1 each: L1 sensitivity 2, L2 sensitivity √2. One that is added or removed
    /// moves one count: 1 and 1.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a budget whose noise has no finite scale.
    pub fn new(grid: Grid, budget: Budget, neighbors: Neighbors) -> Result<Self> {
        let changed = neighbors.changed_records();
        let (budget, seal) = budget.split_off_seal();
        let (cost, sensitivity) = match budget {
            Budget::Pure { epsilon } => (Cost::Epsilon(epsilon), changed),
            Budget::Zcdp { rho } => (Cost::Rho(rho), changed.sqrt()),
            Budget::Approx { epsilon, delta } => {
                let mu = gaussian_mu(epsilon, delta)?;
                (Cost::MuSquared(mu * mu), changed.sqrt())
            }
        };
        let (noise, scale) = noise_of(cost, sensitivity)?;
        let step = Step {
            name: "histogram",
            noise,
            cost,
            scale,
            hessian_scale: None,
            sensitivity,
        };
        let n_cells = grid.n_cells();
        let draw = match step.cost {
            Cost::Epsilon(_) => Laplace::new(n_cells, scale)?.error_bound(),
            _ => Gaussian::new(n_cells, scale)?.error_bound(),
        };
        // Counts are whole numbers and are added on the lattice, so only the noise errs.
        let seal = Seal::new("the histogram", n_cells, draw, share_seal(seal, 1))?;
        if seal.lattice() > 1.0 {
            return Err(Error::OutOfRange {
                name: "budget",
                rule: "such that the noise leaves the counts their digits",
                value: cost.value(),
            });
        }
        Ok(Self { grid, step, seal })
    }

    /// How the counts are sealed.
    #[must_use]
    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    /// The grid.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// What is spent.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }
}

/// Releases the noisy counts of all cells, the empty ones among them.
///
/// # Privacy
/// Spends the whole budget of `spec`: independent Laplace or Gaussian noise at the sensitivity of [`HistogramSpec::new`]. Every record
/// falls into exactly one cell, whatever its values, so nothing is assumed about the rows.
///
/// # Errors
/// [`Error::Length`] for rows of another width, [`Error::Interrupted`], [`Error::NonFiniteRelease`], [`Error::Resource`] for more cells than memory
/// holds; nothing is released then.
pub fn release_histogram(
    spec: &HistogramSpec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    let n_cells = spec.grid.n_cells();
    // What the fit to the cells will need, too: once the counts are released it is too late to find out.
    check_room(n_cells.saturating_mul(3 * spec.grid.n_columns() + 16))?;
    let scale = spec.step.scale;
    let noise = match spec.step.cost {
        Cost::Epsilon(_) => Laplace::new(n_cells, scale)?.sample_bounded(generator)?,
        _ => Gaussian::new(n_cells, scale)?.sample_bounded(generator)?,
    };
    let exact = spec.grid.counts(design, exec)?;
    spec.seal.release_sum(&noise, &exact, generator)
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
}

/// Post-processing: minimises the regularised risk of the centres of the cells, each as many times as its released count says, rounded to
/// a whole number and 0 where it is negative. All zero where no cell is left.
///
/// # Errors
/// As [`minimize_risk`].
pub fn fit_histogram(
    grid: &Grid,
    counts: &Sealed,
    regression: &CellRegression<'_>,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    if !(regression.l2_strength > 0.0 && regression.l2_strength.is_finite()) {
        return Err(Error::OutOfRange {
            name: "l2_strength",
            rule: "finite and > 0",
            value: regression.l2_strength,
        });
    }
    let n_columns = grid.n_columns();
    let n_params = n_columns + usize::from(regression.intercept.is_some());
    let (mut rows, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let mut row = vec![0.0; n_columns];
    for (cell, count) in counts.values().iter().enumerate() {
        let weight = whole(*count);
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
        row_norm: f64::MAX,
        targets: regression.loss.targets(),
        on_violation: OnViolation::Error,
    };
    let rows = Rows::dense(&rows, n_columns);
    let design = Design::new(rows, &targets, regression.intercept, &bounds, exec)?;
    let objective = Objective {
        records: &design,
        loss: regression.loss,
        weights: Some(&weights),
        l2_strength: regression.l2_strength,
        extra_convexity: 0.0,
        linear_term: None,
        n_samples: weights.iter().map(|w| f64::from(*w)).sum(),
        exec,
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
        for (count, expected) in [
            (-3.0, 0),
            (-0.2, 0),
            (0.49, 0),
            (0.5, 1),
            (7.2, 7),
            (1e30, u32::MAX),
        ] {
            assert_eq!(whole(count), expected);
        }
    }
}
