//! The choices of a linear regression from one moment matrix: how its columns are weighted, its sensitivity, noise and seal.
//!
//! `docs/linear_regression.md` has the weights and the sensitivities.

use std::sync::Arc;

use super::distances::{greatest_excess, mean_rounding, share_seal};
use super::scales::check_size;
use super::{MatrixNoise, Part, Query, Seal, Step};
use crate::loss::{Loss, Squared, gradient_rounding, hessian_rounding};
use crate::noise::{Law, MatrixLaw, symmetric};
use crate::privacy::{
    Budget, Calibration, Cost, DataBounds, Neighbors, SEAL_SHARE, gaussian_mu, gaussian_std_dev,
    laplace_rate, unsealed,
};
use crate::row_domain::{RowDomain, row_norm_bound};
use crate::{Error, Result};

/// More columns would make one eigendecomposition, which cannot be interrupted, take minutes.
const MAX_COLUMNS: usize = 4096;

/// What the target's share `c²` of the squared norm of a record leaves for the row is `(1 - c²)`; this is `c²/(1 - c²)` at `c² = 1/3`.
const TARGET_RATIO: f64 = 0.5;

/// The constant is this part of the greatest norm of a row that its columns, or its blocks, share evenly.
const INTERCEPT_RATIO: f64 = 0.5;

/// The least part of μ that the ε of a pure mechanism may be for it to be μ-GDP, rounded down: by convexity of the normal hazard
/// `log(Φ(μ/2)/Φ(-μ/2)) ≥ μ·2φ(0)`, at which the trade-off functions of ε-DP and of μ-GDP meet.
const EPSILON_OF_MU: f64 = 0.797;

/// What a moment matrix may spend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MatrixBudget {
    /// A budget of any release.
    Of(Budget),
    /// μ-Gaussian differential privacy (Dong, Roth & Su 2022), for which the noise is Gaussian.
    Gaussian {
        /// μ.
        mu: f64,
    },
}

impl MatrixBudget {
    /// What the matrices may cost, and what their seals may: each of so many seals costs an equal part of the latter.
    ///
    /// μ² adds up (Dong et al., corollary 3.3). A seal is a pure mechanism, and so μ-GDP too.
    fn split_off_seals(self, seals: u32) -> Result<(Cost, Cost)> {
        match self {
            Self::Of(budget) => {
                let (rest, seal) = budget.split_off_seal();
                Ok((cost_of(rest)?, share_seal(seal, seals)))
            }
            Self::Gaussian { mu } => {
                if !GDP_BUDGETS.contains(&mu) {
                    return out_of_range("mu", "at least 1e-30 and at most 1e8", mu);
                }
                let each = SEAL_SHARE * mu.powi(2) / f64::from(seals);
                let seal = Cost::Epsilon(EPSILON_OF_MU * each.sqrt());
                Ok((
                    Cost::MuSquared(unsealed(mu.powi(2)) * (1.0 - 4.0 * f64::EPSILON)),
                    seal,
                ))
            }
        }
    }
}

/// The caller's μ.
const GDP_BUDGETS: std::ops::RangeInclusive<f64> = 1e-30..=1e8;

/// What the caller chooses; [`MomentMatrixSpec::new`] validates it.
#[derive(Debug, Clone)]
pub struct MomentMatrixChoices {
    /// Public number of samples (the public `n₀` under add/remove).
    pub n_samples: usize,
    /// Columns of the rows, without the constant.
    pub n_columns: usize,
    /// Public set that the rows lie in, without the constant.
    pub rows: RowDomain,
    /// Bound on the size of a target.
    pub target_bound: f64,
    /// Share of the budget for the residual moments; `None`: they are not released.
    pub robust_share: Option<f64>,
    /// Budget.
    pub budget: MatrixBudget,
    /// Neighbouring relation.
    pub neighbors: Neighbors,
}

/// Validated choices, calibrated. Holds no data.
///
/// A record is `z = (x, s, t·y)`: the row, a constant and the weighted target, with `‖z‖ ≤ R`.
#[derive(Debug, Clone)]
pub struct MomentMatrixSpec {
    choices: MomentMatrixChoices,
    loss: Arc<dyn Loss>,
    intercept: f64,
    target_weight: f64,
    noise: MatrixNoise,
    step: Step,
    seal: Seal,
    /// `None`: residual moments are not released.
    pub(super) residual_cost: Option<Cost>,
    seal_cost: Cost,
}

impl MomentMatrixSpec {
    /// Calibrates the noise.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`].
    pub fn new(choices: MomentMatrixChoices) -> Result<Self> {
        let c = &choices;
        if c.n_samples == 0 || c.n_columns == 0 {
            return Err(Error::Empty {
                rows: c.n_samples,
                params: c.n_columns,
            });
        }
        c.rows.check_columns(c.n_columns)?;
        let length = c.rows.norm();
        if !(length > 0.0 && length.is_finite()) {
            return out_of_range("row_norm", "finite and > 0", length);
        }
        let loss: Arc<dyn Loss> = Arc::new(Squared::new(c.target_bound)?);
        // The square of the target's weight, and every product of columns, is then a normal number.
        check_size("row_norm", length)?;
        check_size("target_bound", c.target_bound)?;
        if let Some(share) = c.robust_share
            && !(share > 0.0 && share < 1.0)
        {
            return out_of_range("the share of the residual moments", "> 0 and < 1", share);
        }
        if c.n_columns > MAX_COLUMNS {
            let name = "the number of columns of a moment matrix";
            return out_of_range(name, "at most 4096", c.n_columns as f64);
        }
        let parts = c.rows.shape().map_or(c.n_columns, |b| b.bounds().len());
        let intercept = INTERCEPT_RATIO * length / (parts as f64).sqrt();
        let row_norm = row_norm_bound(length, Some(intercept));
        let target_weight = TARGET_RATIO.sqrt() * row_norm / c.target_bound;
        // Products and roots above are rounded: the weighted target may exceed its share by a few units in the last place.
        let weighted_target = target_weight * c.target_bound * (1.0 + 4.0 * f64::EPSILON);
        let (cost, seal_cost) =
            c.budget
                .split_off_seals(if c.robust_share.is_some() { 2 } else { 1 })?;
        let part = |share: f64| cost.with(cost.value() * share * (1.0 - 4.0 * f64::EPSILON));
        let matrix_cost = c.robust_share.map_or(cost, |share| part(1.0 - share));
        let bounds = DataBounds::new(
            c.n_samples as f64,
            row_norm_bound(row_norm, Some(weighted_target)),
            c.neighbors,
            c.n_columns + 2,
        )?;
        if !(bounds.row_norm.powi(2).is_normal() && target_weight.is_normal()) {
            let rule = "such that products of columns have a scale in double precision";
            return out_of_range("row_norm", rule, length);
        }
        let noise = matrix_noise(&bounds, 1.0, matrix_cost)?;
        let step = step_of(Query::MomentMatrix, matrix_cost, noise);
        let (n, neighbors) = (c.n_samples as f64, c.neighbors);
        let residual_cost = c.robust_share.map(part);
        let mut spec = Self {
            choices,
            loss,
            intercept,
            target_weight,
            noise,
            step,
            // Replaced below.
            seal: Seal::new(Part::MomentMatrix, 1, 1.0, seal_cost)?,
            residual_cost,
            seal_cost,
        };
        let dim = spec.dim();
        // Each block of the matrix is below R² in its norm, so the whole errs by less than three times the worst of them; weighting the
        // target takes four roundings more.
        let relative = mean_rounding(hessian_rounding, n, neighbors).max(mean_rounding(
            gradient_rounding,
            n,
            neighbors,
        )) + 4.0 * f64::EPSILON * greatest_excess(neighbors);
        spec.seal = spec.seal_at(
            Part::MomentMatrix,
            3.0 * relative * bounds.row_norm.powi(2),
            noise,
            dim,
        )?;
        Ok(spec)
    }

    pub(super) fn seal_at(
        &self,
        part: Part,
        data: f64,
        noise: MatrixNoise,
        dim: usize,
    ) -> Result<Seal> {
        let distance = data + 2.0 * noise.law.on(dim)?.error_bound();
        Seal::new(
            part,
            symmetric::isometric_dim(dim),
            distance,
            self.seal_cost,
        )
    }

    /// The validated choices.
    #[must_use]
    pub fn choices(&self) -> &MomentMatrixChoices {
        &self.choices
    }

    /// `(xᵀθ - y)²`, whose sums at θ = 0 are the moments.
    #[must_use]
    pub fn loss(&self) -> &Arc<dyn Loss> {
        &self.loss
    }

    /// s, the constant behind each row.
    #[must_use]
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// t, by which targets are multiplied.
    #[must_use]
    pub fn target_weight(&self) -> f64 {
        self.target_weight
    }

    /// Columns of a row with its constant.
    #[must_use]
    pub fn n_params(&self) -> usize {
        self.choices.n_columns + 1
    }

    /// Columns of the matrix: those of a row, the constant and the target.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.choices.n_columns + 2
    }

    /// Bound on the norm of a row with its constant.
    #[must_use]
    pub fn row_norm(&self) -> f64 {
        row_norm_bound(self.choices.rows.norm(), Some(self.intercept))
    }

    /// The noise of the matrix.
    #[must_use]
    pub fn noise(&self) -> MatrixNoise {
        self.noise
    }

    /// What the matrix spends.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// How the matrix is sealed.
    #[must_use]
    pub fn seal(&self) -> &Seal {
        &self.seal
    }
}

/// The whole budget as a cost.
fn cost_of(budget: Budget) -> Result<Cost> {
    Ok(match budget {
        Budget::Pure { epsilon } => Cost::Epsilon(epsilon),
        Budget::Zcdp { rho } => Cost::Rho(rho),
        Budget::Approx { epsilon, delta } => Cost::MuSquared(gaussian_mu(epsilon, delta)?.powi(2)),
    })
}

/// Noise on a mean of terms `w zzᵀ`, `0 ≤ w ≤ sup`.
pub(super) fn matrix_noise(bounds: &DataBounds, sup: f64, cost: Cost) -> Result<MatrixNoise> {
    let (law, sensitivity) = if let Cost::Epsilon(epsilon) = cost {
        let sensitivity = bounds.nuclear(sup);
        let rate = laplace_rate(sensitivity, epsilon)?;
        (MatrixLaw::MatrixLaplace { rate }, sensitivity)
    } else {
        let sensitivity = bounds.frobenius(sup, Calibration::Tight);
        let std_dev = gaussian_std_dev(sensitivity, cost.mu())?;
        (MatrixLaw::Gaussian { std_dev }, sensitivity)
    };
    if !law.scale().is_normal() {
        let rule = "such that the noise has a finite scale in double precision";
        return out_of_range("budget", rule, cost.value());
    }
    Ok(MatrixNoise { law, sensitivity })
}

pub(super) fn step_of(query: Query, cost: Cost, noise: MatrixNoise) -> Step {
    Step {
        query,
        noise: noise.law.family(),
        cost,
        scale: noise.law.scale(),
        hessian_scale: None,
        sensitivity: noise.sensitivity,
    }
}

fn out_of_range<T>(name: &'static str, rule: &'static str, value: f64) -> Result<T> {
    Err(Error::OutOfRange { name, rule, value })
}

#[cfg(test)]
mod tests;
