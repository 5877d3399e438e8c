//! The empirical risk as a problem for a solver, with bounds on the rounding of its gradient (docs/certificates.md).

use super::longest_row;
use crate::Result;
use crate::linalg::vector;
use crate::loss::Extent;
use crate::objective::{HessianRows, Objective};
use crate::row_domain::row_norm_bound;
use crate::solver::Problem;

/// Rows that are checked against a greater bound than this are not bounded at all: they are measured.
const GREATEST_BOUND: f64 = 1e150;

/// Size of the gradient, for rows of length 1 and slopes of at most 1, at which a sample has been minimised.
const SAMPLED_GRADIENT: f64 = 1e-4;

/// Covers the roundings of the few operations of a bound.
const ROOM: f64 = 1.0 + 1e-9;

/// An objective, and how long its rows are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Risk<'a> {
    pub(super) objective: &'a Objective<'a>,
    /// Bound R on the rows x of weight w: `w‖x‖ ≤ R` and `w‖x‖² ≤ R²`.
    row_norm: f64,
    /// Bound on the rows, whatever their weights.
    longest: f64,
    /// Bound on l'' wherever a solver looks.
    curvature: f64,
}

impl<'a> Risk<'a> {
    /// A risk with a bound on its rows: the public one where there is one.
    pub(super) fn new(objective: &'a Objective<'a>, radius: Option<f64>) -> Result<Self> {
        let records = objective.records;
        let public = row_norm_bound(records.bounds().rows.norm(), records.intercept());
        let longest = if public <= GREATEST_BOUND && !records.bounds().on_violation.keeps_rows() {
            public
        } else {
            longest_row(objective)?
        };
        Ok(Self {
            objective,
            row_norm: records.weighed_to().map_or(longest, |norm| norm.min(longest)),
            longest,
            curvature: objective
                .loss
                .curvature_within(longest * radius.unwrap_or(f64::INFINITY) * ROOM),
        })
    }

    /// `N/n`.
    fn mass(&self) -> f64 {
        self.objective.n_records() / self.objective.n_samples
    }

    /// Sizes on which the rounding of its gradients depends.
    fn extent(&self) -> Extent<'a> {
        let objective = self.objective;
        Extent {
            loss: objective.loss,
            n_params: objective.n_params(),
            n_rows: objective.records.n_rows(),
            mass: self.mass(),
            row_norm: self.row_norm,
            longest: self.longest,
            l2_strength: objective.l2_strength,
            linear: objective.linear_term.map_or(0.0, vector::norm_bound),
        }
    }

    /// Bound on the norm of the difference of the Hessians of the data parts of two points, and of either.
    pub(super) fn data_steepness(&self) -> f64 {
        self.mass() * self.curvature * self.row_norm * self.row_norm * ROOM
    }

    /// Certificate from which whole steps of Newton's method converge quadratically, 0 where none is known: half of `1/(cR)`.
    pub(super) fn newton_reach(&self) -> f64 {
        0.5 / (self.objective.loss.self_concordance() * self.longest * ROOM)
    }

    /// Value, gradient and the Hessian that is asked for, empty where it is none.
    fn evaluated(&self, point: &[f64], rows: HessianRows) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let e = self.objective.evaluate(point, rows)?;
        Ok((e.value, e.gradient, e.hessian.unwrap_or_default()))
    }

    /// Bound on the distance of a gradient computed in doubled precision at a point of this norm to the exact one.
    pub(super) fn doubled_rounding(&self, params_norm: f64) -> f64 {
        self.extent().doubled_rounding(params_norm)
    }
}

/// The risk of a sample of the rows, whose minimiser is where that of all rows is looked for.
pub(super) struct Sampled<'a>(pub(super) &'a Risk<'a>);

impl Sampled<'_> {
    /// Certificate that leaves the minimiser of the sample as near to that of all rows as it is.
    pub(super) fn tolerance(&self) -> f64 {
        SAMPLED_GRADIENT * self.0.row_norm / self.0.strong_convexity()
    }
}

impl Problem for Sampled<'_> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn strong_convexity(&self) -> f64 {
        self.0.strong_convexity()
    }

    fn steepness(&self) -> f64 {
        self.0.steepness()
    }

    fn rounding(&self, point: &[f64]) -> f64 {
        self.0.rounding(point)
    }

    fn value_and_gradient(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (value, gradient, _) = self.with_hessian(point)?;
        Ok((value, gradient))
    }

    fn with_hessian(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        self.0.evaluated(point, HessianRows::SampleAlone)
    }
}

impl Problem for Risk<'_> {
    fn dim(&self) -> usize {
        self.objective.n_params()
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
        let (value, gradient, _) = self.evaluated(point, HessianRows::None)?;
        Ok((value, gradient))
    }

    fn with_hessian(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        self.evaluated(point, HessianRows::All)
    }

    fn with_preconditioner(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        self.evaluated(point, HessianRows::Sample)
    }
}
