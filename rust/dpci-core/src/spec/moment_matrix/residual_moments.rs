//! The regressions whose residuals' moments are released, the cap on residuals and the noise, from public values and a released matrix.

use super::MomentMatrixSpec;
use super::noise::matrix_noise;
use crate::loss::{moment_rounding, person_rounding};
use crate::row_domain::{RowDomain, row_norm_bound};
use crate::spec::fit::sum_rounding;
use crate::spec::{MatrixNoise, Part, Planned, Query};
use crate::{Error, Result};

/// Residuals count up to this many of their standard deviations in the residual moments: all of normal ones with twice the standard
/// deviation of most, and nine tenths of the variance of those with three degrees of freedom.
const CAP: f64 = 8.0;

/// The least cap, as a share of the greatest residual.
const LEAST_CAP: f64 = 1e-6;

/// A regression with an intercept whose residuals' moments are released, in terms of the record `(x, s, y)`.
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualPlan {
    /// The regressors among the columns of `(x, s)`, in increasing order; the constant is the last of them.
    pub regressors: Vec<usize>,
    /// Ridge that is added to the second moments of the regressors, row-major; 0 without.
    pub ridge: Vec<f64>,
    /// The response, a combination of `(x, s, y)`, in which y counts 0 or 1.
    pub response: Vec<f64>,
}

impl ResidualPlan {
    /// Least squares of y on so many columns, which are all.
    pub fn all(n_columns: usize) -> Self {
        let params = n_columns + 1;
        let mut response = vec![0.0; params + 1];
        response[params] = 1.0;
        Self {
            regressors: (0..params).collect(),
            ridge: vec![0.0; params * params],
            response,
        }
    }

    /// Whether residuals have y in them.
    pub fn with_target(&self) -> bool {
        self.response.last() == Some(&1.0)
    }

    pub(super) fn check(&self, n_columns: usize, further_targets: usize) -> Result<()> {
        let k = self.regressors.len();
        let targets = n_columns.saturating_sub(further_targets)..n_columns;
        let increasing = self.regressors.is_sorted_by(|a, b| a < b);
        let numbers = [&self.ridge, &self.response];
        let fits = increasing
            && self.regressors.last() == Some(&n_columns)
            && !self.regressors.iter().any(|j| targets.contains(j))
            && self.ridge.len() == k * k
            && self.response.len() == n_columns + 2
            && [0.0, 1.0].contains(&self.response[n_columns + 1])
            && numbers.into_iter().flatten().all(|value| value.is_finite());
        if fits {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "a plan for the moments of residuals must list its regressors in increasing order, without targets and with the \
            constant ({n_columns}) last, and hold finite numbers, got {self:?}"
        )))
    }

    /// A bound on the norm of the regressors of a record, rounded up: blocks without any do not count.
    pub(super) fn norm(&self, rows: &RowDomain, intercept: f64) -> f64 {
        let length = match rows {
            RowDomain::Ball(norm) => *norm,
            RowDomain::Blocks(blocks) => {
                let columns = self.regressors.iter().filter(|&&j| j < blocks.dim());
                let mut used: Vec<usize> = columns.map(|&j| blocks.members()[j]).collect();
                used.sort_unstable();
                used.dedup();
                used.iter()
                    .fold(0.0, |sum, &b| row_norm_bound(sum, Some(blocks.bounds()[b])))
            }
        };
        row_norm_bound(length, Some(intercept))
    }
}

impl MomentMatrixSpec {
    /// The greatest residual `vᵀ(x, s) + y`, or without y, that counts, at coefficients v of at most this norm where squared residuals have
    /// about this mean: `CAP` of their standard deviations.
    ///
    /// # Privacy
    /// A function of public and of released values.
    pub fn residual_cap(&self, plan: &ResidualPlan, norm: f64, mean_square: f64) -> f64 {
        self.cap_at(plan, norm, CAP * mean_square.max(0.0).sqrt())
    }

    pub(super) fn cap_at(&self, plan: &ResidualPlan, norm: f64, typical: f64) -> f64 {
        let predicted = self.row_norm() * norm;
        let greatest = if plan.with_target() {
            // The slope of the squared loss is twice a residual.
            0.5 * self.loss().sup_slope(predicted)
        } else {
            predicted * (1.0 + 2.0 * f64::EPSILON)
        };
        // Extreme data sets may have no residuals at all, and noise needs a scale.
        let cap = greatest.min(typical.max(LEAST_CAP * greatest));
        if cap > 0.0 { cap } else { self.row_norm() }
    }

    /// The noise of `(1/n) Σ r² x xᵀ` over residuals `|r| ≤ cap`, x the regressors; of persons that of `(1/n) Σ ggᵀ`, `g = Σ ω r x`.
    ///
    /// # Privacy
    /// The cost does not depend on the cap, which is public or released.
    pub fn residual_noise(&self, plan: &ResidualPlan, cap: f64) -> Result<Planned<MatrixNoise>> {
        let (c, cost) = (self.choices(), self.residual_cost);
        let dim = plan.regressors.len();
        let norm = plan.norm(&c.rows, self.intercept());
        let bounds = c.terms.bounds(norm, dim)?;
        let greatest = cap.powi(2) * (1.0 + 4.0 * f64::EPSILON);
        let noise = matrix_noise(&bounds, greatest, cost)?;
        let is_plain = c.terms.is_of_rows();
        let of_rows = if is_plain { moment_rounding } else { person_rounding };
        let relative = sum_rounding(&bounds, of_rows);
        // Sums are those of whole rows, with their rounding.
        let data = relative * greatest * self.row_norm().powi(2);
        let kind = (Query::ResidualMoments, Part::ResidualMoments);
        noise.planned(kind, cost, dim, data, self.seal_cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_domain::Blocks;
    use std::sync::Arc;

    #[test]
    fn blocks_without_a_regressor_do_not_count() {
        let blocks = Blocks::new(vec![3.0, 12.0, 4.0], vec![0, 1, 1, 2]).unwrap();
        let rows = RowDomain::Blocks(Arc::new(blocks));
        let plan = |regressors: Vec<usize>| ResidualPlan {
            ridge: vec![0.0; regressors.len().pow(2)],
            regressors,
            ..ResidualPlan::all(4)
        };
        for (regressors, expected) in [
            (vec![4], 1.0_f64),
            (vec![0, 3, 4], 26.0),
            (vec![1, 4], 145.0),
            (vec![1, 2, 4], 145.0),
            (vec![0, 1, 2, 3, 4], 170.0),
        ] {
            let found = plan(regressors).norm(&rows, 1.0).powi(2);
            assert!((expected..expected * (1.0 + 1e-13)).contains(&found), "{found}");
        }
        assert!((plan(vec![0, 4]).norm(&RowDomain::Ball(2.0), 1.0).powi(2) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn bad_plans_are_refused() {
        assert!(ResidualPlan::all(2).check(2, 0).is_ok());
        assert!(ResidualPlan::all(2).check(2, 1).is_err());
        let good = ResidualPlan::all(2);
        for bad in [
            ResidualPlan {
                regressors: vec![0, 1],
                ..good.clone()
            },
            ResidualPlan {
                regressors: vec![1, 0, 2],
                ..good.clone()
            },
            ResidualPlan {
                regressors: vec![0, 0, 2],
                ..good.clone()
            },
            ResidualPlan {
                regressors: vec![0, 2],
                ..good.clone()
            },
            ResidualPlan {
                ridge: vec![f64::NAN; 9],
                ..good.clone()
            },
            ResidualPlan {
                response: vec![0.0, 0.0, 0.0, 0.5],
                ..good.clone()
            },
            ResidualPlan {
                response: vec![0.0; 3],
                ..good.clone()
            },
        ] {
            assert!(bad.check(2, 0).is_err(), "{bad:?}");
        }
    }
}
