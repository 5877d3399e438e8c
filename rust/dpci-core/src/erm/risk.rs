//! The empirical risk as a problem for a solver, with bounds on the rounding of its gradient (docs/certificates.md).

use super::longest_row;
use crate::Result;
use crate::design::row_norm_bound;
use crate::linalg::{DOUBLED_EPSILON, sum_rounding, vector};
use crate::loss::Loss;
use crate::objective::{GRADIENT_ROUNDINGS, HessianRows, Objective};
use crate::solver::Problem;

/// Rows that are checked against a greater bound than this are not bounded at all: they are measured.
const GREATEST_BOUND: f64 = 1e150;

/// Covers the roundings of the few operations of a bound.
const ROOM: f64 = 1.0 + 1e-9;

/// One rounding.
const UNIT: f64 = 0.5 * f64::EPSILON;

/// An objective, and the greatest length of its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Risk<'a> {
    pub(super) objective: &'a Objective<'a>,
    row_norm: f64,
}

impl<'a> Risk<'a> {
    /// A risk with a bound on its rows: the public one where there is one.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub(super) fn new(objective: &'a Objective<'a>) -> Result<Self> {
        let records = objective.records;
        let public = row_norm_bound(records.bounds().row_norm, records.intercept());
        let row_norm = if public <= GREATEST_BOUND {
            public
        } else {
            longest_row(objective)?
        };
        Ok(Self {
            objective,
            row_norm,
        })
    }

    /// `N/n`.
    fn mass(&self) -> f64 {
        self.objective.n_records() / self.objective.n_samples
    }

    /// What the rounding of its gradients depends on.
    fn extent(&self) -> Extent<'a> {
        let objective = self.objective;
        Extent {
            loss: objective.loss,
            n_params: objective.records.n_params(),
            n_rows: objective.records.n_rows(),
            mass: self.mass(),
            row_norm: self.row_norm,
            l2_strength: objective.l2_strength,
            linear: objective.linear_term.map_or(0.0, vector::norm_bound),
        }
    }

    /// Bound on the norm of the difference of the Hessians of the data parts of two points, and of either.
    pub(super) fn data_steepness(&self) -> f64 {
        self.mass() * self.objective.loss.curvature_bound() * self.row_norm * self.row_norm * ROOM
    }

    /// Certificate from which whole steps of Newton's method converge quadratically, 0 where none is known: half of `1/(cR)`.
    pub(super) fn newton_reach(&self) -> f64 {
        0.5 / (self.objective.loss.self_concordance() * self.row_norm * ROOM)
    }

    /// Bound on the distance of a gradient computed in doubled precision at a point of this norm to the exact one.
    pub(super) fn doubled_rounding(&self, params_norm: f64) -> f64 {
        self.extent().doubled_rounding(params_norm)
    }
}

/// What the rounding of a gradient depends on: the numbers of a data set, or public bounds on those of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent<'a> {
    /// Loss.
    pub(crate) loss: &'a dyn Loss,
    /// Number of parameters.
    pub(crate) n_params: usize,
    /// Number of terms in a sum.
    pub(crate) n_rows: usize,
    /// `N/n`.
    pub(crate) mass: f64,
    /// Bound on the rows.
    pub(crate) row_norm: f64,
    /// λ.
    pub(crate) l2_strength: f64,
    /// Norm of the linear term.
    pub(crate) linear: f64,
}

impl Extent<'_> {
    /// Bound on the distance of a gradient computed in doubled precision at a point of this norm to the exact one.
    pub(crate) fn doubled_rounding(&self, params_norm: f64) -> f64 {
        let loss = self.loss;
        let reach = self.row_norm * params_norm;
        // At most a product and a sum of each entry, with 10·2⁻¹⁰⁶ for the two.
        let predictor = (self.n_params as f64 + 4.0) * DOUBLED_EPSILON * reach;
        let bound = loss.slope_bound();
        let slope = if bound.is_finite() {
            bound
        } else {
            loss.sup_slope(reach)
        };
        let slope_error = 8.0 * DOUBLED_EPSILON * slope + loss.curvature_bound() * predictor;
        let sums = (self.n_rows as f64 + 32.0) * DOUBLED_EPSILON;
        let data = self.mass * self.row_norm * (slope_error + sums * (slope + slope_error));
        let ridge = self.l2_strength * params_norm;
        (data + 4.0 * DOUBLED_EPSILON * (ridge + self.linear)) * ROOM + f64::MIN_POSITIVE
    }

    /// Bound on the distance of the gradient of [`Objective::evaluate`] at a point of this norm to the exact one: the sum of what each
    /// step can add; the sizes are bounds that hold for all rows.
    pub(crate) fn rounding(&self, params_norm: f64) -> f64 {
        let (loss, dim) = (self.loss, self.n_params as f64);
        let reach = self.row_norm * params_norm;
        // A product and a sum of each entry, the scale, the intercept; underflow.
        let predictor = (dim + 5.0) * UNIT * reach * ROOM + f64::MIN_POSITIVE;
        let reach = reach + predictor;
        let slope_error = loss.slope_error(reach) + loss.curvature_bound() * predictor;
        let slope = loss.sup_slope(reach) + slope_error;
        let sums = sum_rounding(GRADIENT_ROUNDINGS, self.n_rows);
        let data = self.mass * self.row_norm * (slope_error + sums * slope);
        // λθ, its sum with the linear term, and that with the data part.
        let rest = UNIT * (3.0 * self.l2_strength * params_norm + 2.0 * self.linear);
        (data + rest) * ROOM + (1.0 + dim) * f64::MIN_POSITIVE
    }
}

impl Problem for Risk<'_> {
    fn dim(&self) -> usize {
        self.objective.records.n_params()
    }

    fn strong_convexity(&self) -> f64 {
        self.objective.strong_convexity()
    }

    fn steepness(&self) -> f64 {
        self.data_steepness() + self.objective.l2_strength * ROOM
    }

    fn rounding(&self, point: &[f64]) -> f64 {
        self.extent().rounding(vector::norm_bound(point))
    }

    fn value_and_gradient(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let e = self.objective.evaluate(point, HessianRows::None)?;
        Ok((e.value, e.gradient))
    }

    fn with_hessian(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let e = self.objective.evaluate(point, HessianRows::All)?;
        Ok((e.value, e.gradient, e.hessian.unwrap_or_default()))
    }

    fn with_preconditioner(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let e = self.objective.evaluate(point, HessianRows::Sample)?;
        Ok((e.value, e.gradient, e.hessian.unwrap_or_default()))
    }
}
