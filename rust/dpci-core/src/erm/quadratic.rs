//! The risk of a quadratic loss: one pass over the rows gives value, gradient and Hessian everywhere.
//!
//! `J(θ) = J(0) + ∇J(0)ᵀθ + ½θᵀHθ`. The gradient computed from these sums differs from the true one by their rounding, of which
//! [`Quadratic::rounding`] is a bound; it belongs to the certificate.

use crate::Result;
use crate::design::Rows;
use crate::exec::{BLOCK, matrix_chunks};
use crate::linalg::vector;
use crate::objective::{HessianRows, Objective};
use crate::solver::{self, Minimum, Options, Problem};

/// Up to this size the pass for the Hessian costs less than the passes for gradients that it saves.
const MAX_DIM: usize = 400;

/// A quadratic function, and what is known about its rounding.
struct Quadratic {
    strong_convexity: f64,
    /// Value, gradient and Hessian at 0.
    value: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
    /// Bound on the relative rounding of a sum over the rows of terms that are all positive.
    unit: f64,
}

/// The certified minimiser from one pass; where rounding spoils the certificate, the point found, to start from.
pub(super) fn minimize(
    objective: &Objective<'_>,
    options: &Options,
) -> Result<std::result::Result<Minimum, Vec<f64>>> {
    let zero = vec![0.0; objective.design.n_params()];
    let problem = Quadratic::new(objective, &zero)?;
    // One half for what the solver leaves, one for rounding.
    let half = Options {
        tolerance: 0.5 * options.tolerance,
        ..*options
    };
    let Ok(mut minimum) = solver::minimize(&problem, &zero, &half) else {
        return Ok(Err(zero));
    };
    minimum.certificate += problem.rounding(&minimum.params) / problem.strong_convexity;
    Ok(if minimum.certificate <= options.tolerance {
        Ok(minimum)
    } else {
        Err(minimum.params)
    })
}

/// Whether [`minimize`] serves this objective and these options.
pub(super) fn serves(objective: &Objective<'_>, options: &Options) -> bool {
    use solver::Method::{Auto, Ball, Newton};
    objective.loss.is_quadratic()
        && objective.design.n_params() <= MAX_DIM
        && matches!(options.method, Auto | Ball | Newton)
}

impl Quadratic {
    fn new(objective: &Objective<'_>, zero: &[f64]) -> Result<Self> {
        let at_zero = objective.evaluate(zero, HessianRows::All)?;
        let (design, dim) = (objective.design, zero.len());
        let terms = match design.rows() {
            // Sums of blocks, then of chunks.
            Rows::Dense(_) => {
                let chunks = matrix_chunks(design.n_rows(), dim);
                BLOCK + chunks.first().map_or(0, |c| c.len() / BLOCK) + chunks.len()
            }
            // Some products are added entry by entry, so that a chunk is one sum.
            Rows::Csr(_) => design.n_rows(),
        };
        Ok(Self {
            strong_convexity: objective.strong_convexity(),
            value: at_zero.value,
            gradient: at_zero.gradient,
            hessian: at_zero.hessian.unwrap_or_default(),
            // Beside the additions: products with scale, multiplicity and slope, and here with the point.
            unit: (terms + dim + 16) as f64 * 0.5 * f64::EPSILON,
        })
    }

    /// Bound on the error of a computed gradient at a point.
    ///
    /// Sums of products of rows are off by at most `unit` times the sum of their absolute values: for `Hθ` at most `tr(H)‖θ‖`;
    /// for `∇J(0)`, by Cauchy & Schwarz and as `l'² = 2l''·l` for a parabola, at most `√(2·J(0)·tr H)`.
    fn rounding(&self, point: &[f64]) -> f64 {
        let trace: f64 = self.hessian.iter().step_by(point.len() + 1).sum();
        let data = trace * vector::norm(point) + (2.0 * self.value * trace).sqrt();
        self.unit * (data + vector::norm(&self.gradient))
    }
}

impl Problem for Quadratic {
    fn dim(&self) -> usize {
        self.gradient.len()
    }

    fn strong_convexity(&self) -> f64 {
        self.strong_convexity
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
