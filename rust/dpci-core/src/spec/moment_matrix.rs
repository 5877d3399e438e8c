//! The choices of a linear regression from one moment matrix: how its columns are weighted, its sensitivity, noise and seal.
//!
//! `docs/proofs/linear_regression.md` has the weights and the sensitivities.

use std::sync::Arc;

use super::distances::{greatest_excess, mean_rounding};
use super::matrix_budget::MatrixBudget;
use super::matrix_noise::{matrix_noise, sealed_std_dev, step_of};
use super::scales::check_size;
use super::{MatrixNoise, Part, Query, ResidualPlan, Seal, Step};
use crate::loss::{Loss, Squared, gradient_rounding, hessian_rounding};
use crate::noise::{Law, symmetric};
use crate::privacy::{Cost, DataBounds, Neighbors};
use crate::row_domain::{RowDomain, row_norm_bound};
use crate::{Error, Result};

/// More columns would make one eigendecomposition, which cannot be interrupted, take minutes.
const MAX_COLUMNS: usize = 4096;

/// Each is a pass over the records.
const MAX_PLANS: u32 = 1000;

/// What the target's share `c²` of the squared norm of a record leaves for the row is `(1 - c²)`; this is `c²/(1 - c²)` at `c² = 1/3`.
const TARGET_RATIO: f64 = 0.5;

/// The constant is this part of the greatest norm of a row that its columns, or its blocks, share evenly.
const INTERCEPT_RATIO: f64 = 0.5;

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
    /// The regressions whose residuals' moments are released, if any, with equal parts of [`Self::residual_share`].
    pub residuals: Vec<ResidualPlan>,
    /// Share of the budget for the residual moments of all of them.
    pub residual_share: f64,
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
    /// Of the residual moments of one regression.
    pub(super) residual_cost: Cost,
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
        let share = c.residual_share;
        if !(share > 0.0 && share < 1.0) {
            return out_of_range("the share of the residual moments", "> 0 and < 1", share);
        }
        if c.n_columns > MAX_COLUMNS {
            let name = "the number of columns of a moment matrix";
            return out_of_range(name, "at most 4096", c.n_columns as f64);
        }
        for plan in &c.residuals {
            plan.check(c.n_columns)?;
        }
        let parts = c.rows.shape().map_or(c.n_columns, |b| b.bounds().len());
        let intercept = INTERCEPT_RATIO * length / (parts as f64).sqrt();
        let row_norm = row_norm_bound(length, Some(intercept));
        let target_weight = TARGET_RATIO.sqrt() * row_norm / c.target_bound;
        // Products and roots above are rounded: the weighted target may exceed its share by a few units in the last place.
        let weighted_target = target_weight * c.target_bound * (1.0 + 4.0 * f64::EPSILON);
        let n_plans = u32::try_from(c.residuals.len()).unwrap_or(u32::MAX);
        if n_plans > MAX_PLANS {
            let name = "the number of regressions whose residuals' moments are released";
            return out_of_range(name, "at most 1000", f64::from(n_plans));
        }
        let (cost, seal_cost) = c.budget.split_off_seals(1 + n_plans)?;
        // Sums of so many rounded parts do not exceed the whole.
        let rounding = (f64::from(n_plans) + 4.0) * f64::EPSILON;
        let part = |share: f64| cost.with(cost.value() * share * (1.0 - rounding));
        let matrix_cost = if n_plans == 0 {
            cost
        } else {
            part(1.0 - share)
        };
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
        let residual_cost = part(share / f64::from(n_plans.max(1)));
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

    /// Standard deviation of an isometric coordinate of the noise, that of the seal included.
    #[must_use]
    pub fn noise_std_dev(&self) -> f64 {
        sealed_std_dev(self.noise.law, self.dim(), self.seal.std_dev())
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

fn out_of_range<T>(name: &'static str, rule: &'static str, value: f64) -> Result<T> {
    Err(Error::OutOfRange { name, rule, value })
}

#[cfg(test)]
mod tests {
    use super::super::matrix_budget::cost_of;
    use super::*;
    use crate::privacy::Budget;
    use crate::row_domain::Blocks;

    pub(super) fn choices(budget: Budget, neighbors: Neighbors) -> MomentMatrixChoices {
        MomentMatrixChoices {
            n_samples: 40,
            n_columns: 3,
            rows: RowDomain::Ball(2.0),
            target_bound: 5.0,
            residuals: vec![ResidualPlan::all(3)],
            residual_share: 0.1,
            budget: MatrixBudget::Of(budget),
            neighbors,
        }
    }

    #[test]
    fn a_third_of_the_squared_norm_is_the_target() {
        let spec =
            MomentMatrixSpec::new(choices(Budget::zcdp(0.5).unwrap(), Neighbors::ReplaceOne))
                .unwrap();
        let target = (spec.target_weight() * 5.0).powi(2);
        let row = spec.row_norm().powi(2);
        assert!((target / (target + row) - 1.0 / 3.0).abs() < 1e-12);
        assert!((row - 4.0 - 0.25 * 4.0 / 3.0).abs() < 1e-12);
        let expected = 2.0_f64.sqrt() * (target + row) / 40.0;
        assert!((spec.step().sensitivity / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn blocks_share_the_norm_evenly() {
        let blocks = Blocks::new(vec![1.0; 2], vec![0, 1, 1]).unwrap();
        let spec = MomentMatrixSpec::new(MomentMatrixChoices {
            rows: RowDomain::Blocks(Arc::new(blocks)),
            ..choices(Budget::zcdp(0.5).unwrap(), Neighbors::ReplaceOne)
        })
        .unwrap();
        // Of two blocks of length 1 and three columns.
        assert!((spec.intercept() - 0.5).abs() < 1e-12);
        assert!((spec.row_norm().powi(2) - 2.25).abs() < 1e-12);
    }

    #[test]
    fn costs_add_up_to_the_budget() {
        for budget in [
            Budget::pure(1.0).unwrap(),
            Budget::zcdp(0.5).unwrap(),
            Budget::approx(1.0, 1e-6).unwrap(),
        ] {
            let spec = MomentMatrixSpec::new(choices(budget, Neighbors::AddRemove)).unwrap();
            let residual = spec.residual_noise(&ResidualPlan::all(3), 3.0).unwrap();
            let (rest, seal) = budget.split_off_seal();
            let spent = spec.step().cost.value() + residual.step.cost.value();
            let whole = cost_of(rest).unwrap().value();
            assert!(
                spent <= whole && spent > whole * (1.0 - 1e-12),
                "{budget:?}"
            );
            let sealed = spec.seal().cost().value() + residual.seal.cost().value();
            assert!(sealed <= Cost::of(seal).value());
        }
    }

    #[test]
    fn bad_choices_are_refused() {
        let good = choices(Budget::pure(1.0).unwrap(), Neighbors::ReplaceOne);
        for bad in [
            MomentMatrixChoices {
                rows: RowDomain::Ball(0.0),
                ..good.clone()
            },
            MomentMatrixChoices {
                rows: RowDomain::Ball(1e-200),
                ..good.clone()
            },
            MomentMatrixChoices {
                rows: RowDomain::Ball(f64::NAN),
                ..good.clone()
            },
            MomentMatrixChoices {
                target_bound: 0.0,
                ..good.clone()
            },
            MomentMatrixChoices {
                n_samples: 0,
                ..good.clone()
            },
            MomentMatrixChoices {
                n_columns: 0,
                ..good.clone()
            },
            MomentMatrixChoices {
                n_columns: 5000,
                ..good.clone()
            },
            MomentMatrixChoices {
                residual_share: 1.0,
                ..good.clone()
            },
            MomentMatrixChoices {
                budget: MatrixBudget::Of(Budget::Pure { epsilon: 1e-300 }),
                ..good.clone()
            },
        ] {
            assert!(MomentMatrixSpec::new(bad.clone()).is_err(), "{bad:?}");
        }
    }
}
