//! The record that each step of a release leaves: noise, cost and sensitivity.

use crate::privacy::Cost;

/// One step of a release: its noise, cost and sensitivity. All public.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// `coefficients`, `hessian`, `gradient_cov`, `moments`, `report_gradient`, `report_hessian`, `polynomial` or `histogram`.
    pub name: &'static str,
    /// Name of the noise family.
    pub noise: &'static str,
    /// What it spends.
    pub cost: Cost,
    /// 1/rate or standard deviation.
    pub scale: f64,
    /// The same for the Hessian's part of a joint release.
    pub hessian_scale: Option<f64>,
    /// Sensitivity that the noise was calibrated to, in the norm of its family.
    pub sensitivity: f64,
}
