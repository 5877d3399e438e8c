//! The risk of a quadratic loss: one pass over the rows gives value, gradient and Hessian everywhere.
//!
//! `J(θ) = J(0) + ∇J(0)ᵀθ + ½θᵀHθ`. The gradient computed from these sums differs from the true one by their rounding, of which
//! `Quadratic::rounding` is a bound; it belongs to the certificate.

use super::risk::Risk;
use crate::Result;
use crate::linalg::vector;
use crate::loss::hessian_rounding;
use crate::objective::{HessianRows, Objective};
use crate::solver::{self, Attempt, Options, Problem};

/// Up to this size the pass for the Hessian costs less than the passes for gradients that it saves.
const MAX_DIM: usize = 400;

/// A quadratic function, and what is known about its rounding.
struct Quadratic {
    strong_convexity: f64,
    steepness: f64,
    /// Value, gradient and Hessian at 0.
    value: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
    /// Bounds on the errors of gradient (Euclidean) and Hessian (Frobenius).
    gradient_error: f64,
    hessian_error: f64,
}

/// The certified minimiser from one pass, or as near as the rounding of its sums allows.
pub(super) fn minimize(risk: &Risk<'_>, options: &Options) -> Result<Attempt> {
    let zero = vec![0.0; risk.dim()];
    solver::attempt(&Quadratic::new(risk, &zero)?, &zero, options)
}

/// Whether [`minimize`] serves this objective and these options.
pub(super) fn serves(objective: &Objective<'_>, options: &Options) -> bool {
    use solver::Method::{Auto, Ball, Newton};
    objective.loss.is_quadratic()
        && objective.records.n_params() <= MAX_DIM
        && matches!(options.method, Auto | Ball | Newton)
}

impl Quadratic {
    fn new(risk: &Risk<'_>, zero: &[f64]) -> Result<Self> {
        let objective = risk.objective;
        let at_zero = objective.evaluate(zero, HessianRows::All)?;
        let hessian = at_zero.hessian.unwrap_or_default();
        let diagonal = f64::EPSILON * vector::norm_bound(&hessian);
        Ok(Self {
            strong_convexity: risk.strong_convexity(),
            steepness: risk.steepness(),
            value: at_zero.value,
            gradient: at_zero.gradient,
            hessian,
            gradient_error: risk.rounding(zero),
            // And λ, added to the diagonal.
            hessian_error: hessian_rounding(objective.records.n_rows()) * risk.data_steepness() + diagonal,
        })
    }
}

impl Problem for Quadratic {
    fn dim(&self) -> usize {
        self.gradient.len()
    }

    fn strong_convexity(&self) -> f64 {
        self.strong_convexity
    }

    fn steepness(&self) -> f64 {
        self.steepness
    }

    /// The errors of the sums, and those of `Hθ + ∇J(0)`: `dim + 1` roundings of terms that are as long as Hessian and point at most.
    fn rounding(&self, point: &[f64]) -> f64 {
        let norm = vector::norm_bound(point);
        let product = vector::norm_bound(&self.hessian) * norm;
        let roundings = (point.len() as f64 + 2.0) * f64::EPSILON;
        let gradient = f64::EPSILON * vector::norm_bound(&self.gradient);
        let errors = self.gradient_error + self.hessian_error * norm;
        (errors + roundings * product + gradient) * (1.0 + 1e-9) + f64::MIN_POSITIVE
    }

    fn value_and_gradient(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let rows = self.hessian.chunks_exact(point.len()).zip(&self.gradient);
        let gradient: Vec<f64> = rows.map(|(h, g)| vector::dot(h, point) + g).collect();
        let ends = gradient.iter().zip(&self.gradient).zip(point);
        let change: f64 = ends.map(|((a, b), p)| 0.5 * (a + b) * p).sum();
        Ok((self.value + change, gradient))
    }

    fn with_hessian(&self, point: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let (value, gradient) = self.value_and_gradient(point)?;
        Ok((value, gradient, self.hessian.clone()))
    }
}
