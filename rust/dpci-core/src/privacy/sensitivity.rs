//! How far one record can move what a fit computes, from public bounds alone.
//!
//! docs/proofs has the proofs; under add/remove the public record count stands for `n`
//! everywhere, because the true one is private.

use std::f64::consts::SQRT_2;

use super::rounding::up;
use super::{Calibration, Neighbors, check_positive};
use crate::Result;
use crate::bugs::{self, Bug};
use crate::error::check;
use crate::unit::{Unit, Weighting};

/// The public facts about the rows on which sensitivities rest. All results are rounded up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataBounds {
    /// Divisor of the sums over the records: their public number, and with weights the public total over the greatest weight.
    pub n: f64,
    /// Public number of records.
    pub records: f64,
    /// The public number of records over what divides their sums: 1 without weights.
    pub mass: f64,
    /// R: bound on the Euclidean norm of a row, the intercept column included.
    pub row_norm: f64,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// Number of parameters, the intercept included.
    pub params: usize,
    /// Number of linear predictors of the loss.
    pub predictors: usize,
    /// Whose privacy counts: `n` is their number.
    pub unit: Unit,
}

impl DataBounds {
    /// Checked bounds.
    pub fn new(n: f64, row_norm: f64, neighbors: Neighbors, params: usize) -> Result<Self> {
        check_positive("n_samples", n)?;
        check_positive("row_norm", row_norm)?;
        check(params > 0, "number of parameters", "at least 1", 0.0)?;
        Ok(Self {
            n,
            records: n,
            mass: 1.0,
            row_norm,
            neighbors,
            params,
            predictors: 1,
            unit: Unit::Row,
        })
    }

    /// The same for a loss of so many linear predictors, each with a block of the parameters.
    pub fn predicting(self, predictors: usize) -> Self {
        Self { predictors, ..self }
    }

    /// The same where neighbours differ in another unit than a row.
    pub fn of(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// The same where records have weights.
    pub fn weighted(self, weighting: Option<Weighting>) -> Self {
        let Some(weighting) = weighting else {
            return self;
        };
        let n = weighting.divisor();
        Self {
            n,
            mass: up(self.records / n),
            ..self
        }
    }

    /// `κ = tR²/(nλ)`: bound on the trace of one unit's Hessian over `nλ`, t the bound on the curvature (its trace, for several linear
    /// predictors) and λ the L2 strength; of a row, on the relative change of an eigenvalue when its rank-one term is added.
    pub fn kappa(&self, curvature_bound: f64, l2_strength: f64) -> f64 {
        up(curvature_bound * self.row_norm.powi(2) / (self.n * l2_strength))
    }

    /// `r·ln(1 + κ/r)`, rounded up, r the greatest rank of a unit's Hessian: bound on the logarithm by which its term changes the
    /// determinant (docs/proofs/persons.md, "The Jacobian"); `ln(1 + κ)` for a row and one linear predictor.
    pub fn log_determinant(&self, curvature_bound: f64, l2_strength: f64) -> f64 {
        let kappa = self.kappa(curvature_bound, l2_strength);
        match self.rank() {
            1 => up(kappa.ln_1p()),
            rank => up(rank as f64 * up((kappa / rank as f64).ln_1p())),
        }
    }

    /// Least λ (exclusive, rounded up) at which [`Self::log_determinant`] is at most ε: `tR²/(n·r·(e^(ε/r) - 1))`.
    pub fn least_l2_strength(&self, curvature_bound: f64, epsilon: f64) -> f64 {
        let rank = self.rank() as f64;
        up(self.kappa(curvature_bound, rank * (epsilon / rank).exp_m1()))
    }

    /// Least λ at which a loss with `l'' ≤ c(L - |l'|)` needs no ε for the Jacobian of objective perturbation, rounded up:
    /// `cR²/(nλ)` is then at most what a unit of slope takes of ε (`docs/proofs/newton_pure.md`).
    pub fn offset_l2_strength(&self, slope_bound: f64, slack: f64, epsilon: f64) -> f64 {
        let of_one = epsilon / (self.neighbors.changed_records() * slope_bound);
        up(self.kappa(slack, of_one))
    }

    /// The greatest rank of one unit's Hessian.
    fn rank(&self) -> usize {
        self.unit.rank(self.params, self.predictors)
    }

    /// L2 sensitivity of the noise `b` that objective perturbation needs to reach a given minimiser: 2LR, or LR under
    /// add/remove, L the slope bound.
    pub fn objective_shift(&self, slope_bound: f64) -> f64 {
        up(self.changed_records() * slope_bound * self.row_norm)
    }

    /// The same in the norm `‖·‖_K` of the blocks of the rows, in which no row is above 1: 2L, or L under add/remove.
    pub fn shaped_shift(&self, slope_bound: f64) -> f64 {
        up(self.changed_records() * slope_bound)
    }

    /// Records whose gradients differ between neighbours.
    fn changed_records(&self) -> f64 {
        self.neighbors.changed_records() * bugs::factor(Bug::WrongSensitivity, 0.5)
    }

    /// L2 sensitivity of the minimiser of a risk of strong convexity λ, also over a ball: the `shift` of the gradient's sum
    /// over `nλ`, so `2LR/(nλ)` at most, and `LR/(nλ)` under add/remove.
    pub fn argmin(&self, shift: f64, l2_strength: f64) -> f64 {
        up(shift / (self.n * l2_strength))
    }

    /// Wu et al.'s bound for the minimiser over a ball of radius W: `4(LR + λW)/(nλ)`, half of it under add/remove. More than
    /// twice [`Self::argmin`], which holds on the ball too (docs/proofs/domains.md).
    pub fn paper_ball_argmin(&self, slope_bound: f64, l2_strength: f64, radius: f64) -> f64 {
        let slope = slope_bound * self.row_norm + l2_strength * radius;
        up(2.0 * self.neighbors.changed_records() * slope / (self.n * l2_strength))
    }

    /// Frobenius sensitivity of `(1/n)·Σ w xxᵀ` with weights `0 ≤ w ≤ sup`.
    ///
    /// `√2·R²·sup/n`, since `‖a xxᵀ - b zzᵀ‖² ≤ a²‖x‖⁴ + b²‖z‖⁴` for positive semidefinite terms; without √2 for one
    /// parameter, where the terms are numbers of one sign; `2R²·sup/n` is what Wang, Kifer & Lee print. Under add/remove
    /// `R²·sup/n`.
    pub fn frobenius(&self, sup: f64, calibration: Calibration) -> f64 {
        let factor = match (self.neighbors, calibration) {
            (Neighbors::AddRemove, _) => 1.0,
            (Neighbors::ReplaceOne, Calibration::Paper) => 2.0,
            (Neighbors::ReplaceOne, Calibration::Tight) if self.params == 1 => 1.0,
            (Neighbors::ReplaceOne, Calibration::Tight) => SQRT_2,
        };
        up(factor * self.mean_term(sup))
    }

    /// L2 sensitivity of two such matrices stacked into one vector, `sup` bounding the norm of a record's two weights.
    ///
    /// As [`Self::frobenius`], but √2 stands for one parameter too: the two weights of neighbours may point along different
    /// axes.
    pub fn joint_frobenius(&self, sup: f64) -> f64 {
        let factor = match self.neighbors {
            Neighbors::AddRemove => 1.0,
            Neighbors::ReplaceOne => SQRT_2,
        };
        up(factor * self.mean_term(sup))
    }

    /// Nuclear-norm sensitivity of `(1/n)·Σ w xxᵀ` with weights `0 ≤ w ≤ sup`: `2R²·sup/n`, or `R²·sup/n` under add/remove.
    ///
    /// For two matrices with rates in proportion k : 1, `sup` bounds k times the one weight plus the other.
    pub fn nuclear(&self, sup: f64) -> f64 {
        up(self.neighbors.changed_records() * self.mean_term(sup))
    }

    /// `R²·sup`: the largest norm, Frobenius and nuclear, of one record's term of the sum `Σ w xxᵀ`; its sensitivity under add/remove.
    pub fn sum_term(&self, sup: f64) -> f64 {
        up(sup * self.row_norm.powi(2))
    }

    /// `R²·sup/n`: the largest norm of one record's term of the mean.
    fn mean_term(&self, sup: f64) -> f64 {
        sup * self.row_norm.powi(2) / self.n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_just_above(got: f64, exact: f64) {
        assert!(got >= exact && got < exact * (1.0 + 1e-14), "{got} against {exact}");
    }

    #[test]
    fn replace_one() {
        let bounds = DataBounds::new(1000.0, 1.5, Neighbors::ReplaceOne, 7).unwrap();
        assert_just_above(bounds.kappa(0.25, 0.01), 0.25 * 2.25 / 10.0);
        assert_just_above(bounds.objective_shift(2.0), 6.0);
        assert_just_above(bounds.argmin(6.0, 0.01), 0.6);
        assert_just_above(
            bounds.frobenius(0.25, Calibration::Tight),
            SQRT_2 * 2.25 * 0.25 / 1000.0,
        );
        assert_just_above(bounds.frobenius(0.25, Calibration::Paper), 2.0 * 2.25 * 0.25 / 1000.0);
        assert_just_above(bounds.joint_frobenius(0.25), SQRT_2 * 2.25 * 0.25 / 1000.0);
        assert_just_above(bounds.nuclear(0.25), 2.0 * 2.25 * 0.25 / 1000.0);
    }

    #[test]
    fn add_remove_changes_one_record() {
        let bounds = DataBounds::new(1000.0, 1.5, Neighbors::AddRemove, 7).unwrap();
        let term = 2.25 * 0.25 / 1000.0;
        assert_just_above(bounds.objective_shift(2.0), 3.0);
        assert_just_above(bounds.argmin(3.0, 0.01), 0.3);
        for calibration in [Calibration::Tight, Calibration::Paper] {
            assert_just_above(bounds.frobenius(0.25, calibration), term);
        }
        assert_just_above(bounds.joint_frobenius(0.25), term);
        assert_just_above(bounds.nuclear(0.25), term);
    }

    #[test]
    fn one_parameter() {
        let bounds = DataBounds::new(10.0, 1.0, Neighbors::ReplaceOne, 1).unwrap();
        assert_just_above(bounds.frobenius(1.0, Calibration::Tight), 0.1);
        assert_just_above(bounds.frobenius(1.0, Calibration::Paper), 0.2);
        assert_just_above(bounds.joint_frobenius(1.0), SQRT_2 / 10.0);
    }

    #[test]
    fn bad_bounds_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(DataBounds::new(bad, 1.0, Neighbors::ReplaceOne, 1).is_err());
            assert!(DataBounds::new(1.0, bad, Neighbors::ReplaceOne, 1).is_err());
        }
        assert!(DataBounds::new(1.0, 1.0, Neighbors::ReplaceOne, 0).is_err());
    }
}
