//! The record that each step of a release leaves: noise, cost and sensitivity.

use super::Seal;
use crate::Result;
use crate::error::check;
use crate::noise::Family;
use crate::privacy::Cost;

named! {
    /// Query of a step to the data.
    pub enum Query {
        /// The coefficients.
        Coefficients = "coefficients",
        /// The Hessian alone.
        Hessian = "hessian",
        /// The gradient covariance alone.
        GradientCov = "gradient_cov",
        /// Hessian and gradient covariance together.
        Moments = "moments",
        /// The gradient of a per-instance report.
        ReportGradient = "report_gradient",
        /// The Hessian of a per-instance report.
        ReportHessian = "report_hessian",
        /// The coefficients of the functional mechanism.
        Polynomial = "polynomial",
        /// The counts of a histogram.
        Histogram = "histogram",
        /// The bounds of columns.
        Bounds = "bounds",
        /// The levels of columns.
        Levels = "levels",
        /// The number of records beyond the bounds of their columns.
        RecordsBeyond = "records_beyond",
        /// The numbers of rows in the cells of columns.
        ColumnCounts = "column_counts",
        /// The radius that rows are shortened to.
        Radius = "radius",
        /// The bound on the gradient of one record.
        GradientNorms = "gradient_norms",
        /// The bound on the Hessian of one record.
        HessianNorms = "hessian_norms",
        /// The second moments by which rows are made round.
        Shape = "shape",
        /// The mean slope at the parameters 0.
        NullSlope = "null_slope",
        /// The gradient of a Newton step.
        NewtonGradient = "newton_gradient",
        /// The Hessian of a Newton step before the last one.
        NewtonHessian = "newton_hessian",
        /// The moment matrix of rows and target.
        MomentMatrix = "moment_matrix",
        /// The moments of rows weighted by squared residuals.
        ResidualMoments = "residual_moments",
        /// How many residuals have which size.
        ResidualLevels = "residual_levels",
        /// The rows weighted by capped residuals.
        ResidualGradient = "residual_gradient",
    }
}

/// One step of a release: its noise, cost and sensitivity. All public.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Query that it answers.
    pub query: Query,
    /// Family of the noise.
    pub noise: Family,
    /// Cost of the step.
    pub cost: Cost,
    /// 1/rate or standard deviation.
    pub scale: f64,
    /// The same for the Hessian's part of a joint release.
    pub hessian_scale: Option<f64>,
    /// The same for the level totals of one: 1/rate.
    pub levels_scale: Option<f64>,
    /// Sensitivity that the noise was calibrated to, in the norm of its family.
    pub sensitivity: f64,
}

impl Step {
    /// A step whose noise has one scale.
    pub(super) fn new(query: Query, noise: Family, cost: Cost, scale: f64, sensitivity: f64) -> Self {
        Self {
            query,
            noise,
            cost,
            scale,
            hessian_scale: None,
            levels_scale: None,
            sensitivity,
        }
    }
}

/// Noise of a released vector or matrix, with its step and seal.
#[derive(Debug, Clone)]
pub struct Planned<L> {
    /// Law of the noise.
    pub law: L,
    /// For the record.
    pub step: Step,
    /// How the values are sealed.
    pub seal: Seal,
}

/// Refuses a cost for which the noise has no scale, or other numbers that rest on it do not.
pub(super) fn check_scale(is_normal: bool, cost: Cost) -> Result<()> {
    let rule = "such that the noise has a finite scale in double precision";
    check(is_normal, "budget", rule, cost.value())
}
