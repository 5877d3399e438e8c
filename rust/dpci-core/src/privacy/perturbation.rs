//! Where the noise of the coefficients is added.

/// How the noise of the coefficients enters the estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Perturbation {
    /// `bᵀθ/n` is added to the objective.
    Objective,
    /// `b` is added to the minimiser.
    Output,
}
