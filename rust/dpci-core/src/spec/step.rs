//! The record that each step of a release leaves: noise, cost and sensitivity.

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
