//! The choices of a linear regression from one moment matrix: how its columns are weighted, its sensitivity, noise and seal.
//!
//! `docs/proofs/linear_regression.md` has the weights and the sensitivities.

use std::sync::Arc;

mod budget;
mod noise;
mod refinement;
mod residual_levels;
mod residual_moments;

pub use budget::MatrixBudget;
pub(super) use budget::cost_of;
pub use noise::{clear_of_noise, sealed_std_dev};
pub use residual_levels::LevelCap;
pub use residual_moments::ResidualPlan;

pub(super) use noise::matrix_noise;

use super::fit::{check_size, greatest_mass, sum_rounding};
use super::{MatrixNoise, Part, Planned, Query, Seal, Step, Terms};
use crate::error::{check, check_positive};
use crate::loss::{Loss, Squared, gradient_rounding, hessian_rounding};
use crate::privacy::Cost;
use crate::row_domain::{RowDomain, row_norm_bound};
use crate::{Error, Result};

/// More columns would make one eigendecomposition, which cannot be interrupted, take minutes.
const MAX_COLUMNS: usize = 4096;

/// Each is a pass over the records.
const MAX_PLANS: u32 = 1000;

/// The square of each of m weighted targets over the squared norm of a row with its constant: the positive root of `2mr² + mr = 1`,
/// which is 1/2 for one.
fn target_ratio(n_targets: f64) -> f64 {
    // Without the difference of 1 and a root near it.
    2.0 / (n_targets * (1.0 + (1.0 + 8.0 / n_targets).sqrt()))
}

/// Part of the share of a refined regression that the levels of its residuals have. Under pure DP it is less, because there the noise of the
/// gradient grows faster as its budget falls.
const fn level_part(cost: Cost) -> f64 {
    match cost {
        Cost::Epsilon(_) => 0.45,
        _ => 0.6,
    }
}

/// The constant is this part of the greatest norm of a row that its columns, or its blocks, share evenly.
const INTERCEPT_RATIO: f64 = 0.5;

/// Choices of the caller; [`MomentMatrixSpec::new`] validates them.
#[derive(Debug, Clone)]
pub struct MomentMatrixChoices {
    /// Terms that all releases of sums have.
    pub terms: Terms,
    /// Columns of the rows, without the constant.
    pub n_columns: usize,
    /// The last of the columns that are targets besides y, each a block of its own.
    pub further_targets: usize,
    /// Public set that the rows lie in, without the constant.
    pub rows: RowDomain,
    /// Bound on the size of a target.
    pub target_bound: f64,
    /// The regressions whose residuals' moments are released, if any, with equal parts of [`Self::residual_share`].
    pub residuals: Vec<ResidualPlan>,
    /// Share of the budget for the residual moments of all of them.
    pub residual_share: f64,
    /// The regressions whose coefficients are refined by a gradient, if any, with equal parts of [`Self::refined_share`].
    pub refined: Vec<ResidualPlan>,
    /// Share of the budget for the levels and gradients of all of them.
    pub refined_share: f64,
    /// Budget.
    pub budget: MatrixBudget,
}

/// Validated choices, calibrated. Holds no data.
///
/// A record is `z = (x, s, t·y)`: the row, of which further targets are weighted like y, a constant and the weighted target, with `‖z‖ ≤ R`.
#[derive(Debug, Clone)]
pub struct MomentMatrixSpec {
    choices: MomentMatrixChoices,
    loss: Arc<dyn Loss>,
    intercept: f64,
    target_weight: f64,
    /// Weight of each column of a row with its constant.
    weights: Vec<f64>,
    row_norm: f64,
    matrix: Planned<MatrixNoise>,
    /// Cost of the residual moments of one regression.
    residual_cost: Cost,
    /// Cost of the levels of the residuals of one refined regression.
    level_cost: Cost,
    /// Cost of the gradient of one regression.
    gradient_cost: Cost,
    seal_cost: Cost,
}

impl MomentMatrixSpec {
    /// Calibrates the noise.
    pub fn new(choices: MomentMatrixChoices) -> Result<Self> {
        let c = &choices;
        c.terms.check_any(c.n_columns)?;
        c.rows.check_columns(c.n_columns)?;
        let length = c.rows.norm();
        check_positive("row_norm", length)?;
        let loss: Arc<dyn Loss> = Arc::new(Squared::new(c.target_bound)?);
        // The square of the target's weight, and every product of columns, is then a normal number.
        check_size("row_norm", length)?;
        check_size("target_bound", c.target_bound)?;
        let name = "the number of columns of a moment matrix";
        let few = c.n_columns <= MAX_COLUMNS;
        check(few, name, "at most 4096", c.n_columns as f64)?;
        for plan in c.residuals.iter().chain(&c.refined) {
            plan.check(c.n_columns, c.further_targets)?;
        }
        let features = Features::of(c)?;
        let intercept = INTERCEPT_RATIO * features.norm / (features.parts as f64).sqrt();
        let feature_norm = row_norm_bound(features.norm, Some(intercept));
        let n_targets = 1.0 + c.further_targets as f64;
        let target_size = target_ratio(n_targets).sqrt() * feature_norm;
        let target_weight = target_size / c.target_bound;
        let mut weights = vec![1.0; c.n_columns + 1];
        let first = c.n_columns - c.further_targets;
        for (weight, bound) in weights[first..c.n_columns].iter_mut().zip(&features.targets) {
            *weight = target_size / bound;
        }
        // Products and roots above are rounded: weighted targets may exceed their share by a few units in the last place.
        let weighted_targets = n_targets.sqrt() * target_size * (1.0 + 8.0 * f64::EPSILON);
        let costs = Costs::of(c)?;
        let norm = row_norm_bound(feature_norm, Some(weighted_targets));
        let bounds = c.terms.bounds(norm, c.n_columns + 2)?;
        let normal = weights.iter().all(|w| w.is_normal()) && target_weight.is_normal();
        let rule = "such that products of columns have a scale in double precision";
        let normal = bounds.row_norm.powi(2).is_normal() && normal;
        check(normal, "row_norm", rule, length)?;
        let noise = matrix_noise(&bounds, 1.0, costs.matrix)?;
        let row_norm = row_norm_bound(length, Some(intercept));
        // Each block of the matrix is below R² in its norm, so the whole errs by less than three times the worst of them; weighting the
        // targets takes four roundings more, and multiplies what the sums of the rows err by.
        let relative = sum_rounding(&bounds, hessian_rounding).max(sum_rounding(&bounds, gradient_rounding))
            + 4.0 * f64::EPSILON * greatest_mass(&bounds);
        let greatest = weights.iter().fold(1.0, |a: f64, w| a.max(*w));
        let data = 3.0 * relative * bounds.row_norm.max(greatest * row_norm).powi(2);
        let kind = (Query::MomentMatrix, Part::MomentMatrix);
        let dim = c.n_columns + 2;
        let matrix = noise.planned(kind, costs.matrix, dim, data, costs.seal)?;
        Ok(Self {
            choices,
            loss,
            intercept,
            target_weight,
            row_norm,
            weights,
            matrix,
            residual_cost: costs.residual,
            level_cost: costs.levels,
            gradient_cost: costs.gradient,
            seal_cost: costs.seal,
        })
    }

    getters! { self =>
        /// The validated choices.
        pub choices: &MomentMatrixChoices = &self.choices;
        /// `(xᵀθ - y)²`, whose sums at θ = 0 are the moments.
        pub loss: &Arc<dyn Loss> = &self.loss;
        /// s, the constant behind each row.
        pub intercept: f64 = self.intercept;
        /// t, by which targets are multiplied.
        pub target_weight: f64 = self.target_weight;
        /// By which the columns of a row with its constant are multiplied: 1 but for further targets.
        pub weights: &[f64] = &self.weights;
        /// Bound on the norm of a row with its constant, before columns are weighted.
        pub row_norm: f64 = self.row_norm;
        /// The noise of the matrix.
        pub noise: MatrixNoise = self.matrix.law;
        /// Step of the matrix, with its cost.
        pub step: &Step = &self.matrix.step;
        /// How the matrix is sealed.
        pub seal: &Seal = &self.matrix.seal;
        /// Columns of a row with its constant.
        pub n_params: usize = self.choices.n_columns + 1;
        /// Columns of the matrix: those of a row, the constant and the target.
        pub dim: usize = self.choices.n_columns + 2;
        /// Standard deviation of an isometric coordinate of the noise, that of the seal included.
        pub noise_std_dev: f64 = sealed_std_dev(self.noise().law, self.dim(), self.seal().std_dev());
    }
}

/// Costs of each release: the matrix, the residual moments, levels and gradient of one regression, and each seal.
struct Costs {
    matrix: Cost,
    residual: Cost,
    levels: Cost,
    gradient: Cost,
    seal: Cost,
}

impl Costs {
    fn of(c: &MomentMatrixChoices) -> Result<Self> {
        let [share, refined_share] = [c.residual_share, c.refined_share];
        for (name, value) in [
            ("the share of the residual moments", share),
            ("the share of the gradients", refined_share),
        ] {
            check(value > 0.0 && value < 1.0, name, "> 0 and < 1", value)?;
        }
        let count = |plans: &[ResidualPlan]| u32::try_from(plans.len()).unwrap_or(u32::MAX);
        let [moments, gradients] = [count(&c.residuals), count(&c.refined)];
        let n_plans = moments.saturating_add(gradients);
        let name = "the number of planned regressions";
        let few = n_plans <= MAX_PLANS;
        check(few, name, "at most 1000", f64::from(n_plans))?;
        // Levels and a gradient of each refined one.
        let n_parts = n_plans + gradients;
        let (cost, seal) = c.budget.split_off_seals(1 + n_parts)?;
        // Sums of so many rounded parts do not exceed the whole.
        let rounding = (f64::from(n_parts) + 6.0) * f64::EPSILON;
        let part = |share: f64| cost.with(cost.value() * share * (1.0 - rounding));
        let taken = [(moments, share), (gradients, refined_share)];
        let taken: f64 = taken.iter().filter(|(n, _)| *n > 0).map(|(_, s)| s).sum();
        let name = "the sum of the shares of residual moments and gradients";
        check(taken < 1.0, name, "< 1", taken)?;
        let matrix = if n_plans == 0 { cost } else { part(1.0 - taken) };
        let refined = refined_share / f64::from(gradients.max(1));
        let levels = level_part(cost);
        Ok(Self {
            matrix,
            residual: part(share / f64::from(moments.max(1))),
            levels: part(levels * refined),
            gradient: part((1.0 - levels) * refined),
            seal,
        })
    }
}

/// Bounds of the columns that are no targets, and of those that are.
struct Features {
    norm: f64,
    /// Columns of a ball, or blocks.
    parts: usize,
    targets: Vec<f64>,
}

impl Features {
    fn of(c: &MomentMatrixChoices) -> Result<Self> {
        let further = c.further_targets;
        let name = "the number of columns of a moment matrix";
        let rule = "greater than the number of its further targets";
        check(further < c.n_columns, name, rule, c.n_columns as f64)?;
        let Some(blocks) = c.rows.shape().filter(|_| further > 0) else {
            if further > 0 {
                return Err(Error::Unsupported(format!(
                    "several targets require a bound on each column, or blocks, got rows in a ball of norm {} (pass \
                    bounds=(lower, upper))",
                    c.rows.norm()
                )));
            }
            return Ok(Self {
                norm: c.rows.norm(),
                parts: c.rows.shape().map_or(c.n_columns, |b| b.bounds().len()),
                targets: Vec::new(),
            });
        };
        let own = &blocks.members()[c.n_columns - further..];
        if own.iter().any(|&b| blocks.sizes()[b] != 1) {
            let rule = "each of several targets must be a block of its own, got a block with other columns";
            return Err(Error::Unsupported(rule.into()));
        }
        let bounds = blocks.bounds().iter().enumerate();
        let rest = bounds.filter(|(b, _)| !own.contains(b));
        Ok(Self {
            norm: rest.fold(0.0, |sum, (_, a)| row_norm_bound(sum, Some(*a))),
            parts: blocks.bounds().len() - further,
            targets: own.iter().map(|&b| blocks.bounds()[b]).collect(),
        })
    }
}
