//! One step of Newton's method from the coefficients that a released moment matrix gives: the noise of the gradient.

use super::{MomentMatrixSpec, ResidualPlan};
use crate::Result;
use crate::loss::gradient_rounding;
use crate::noise::{Law, NoiseLaw};
use crate::privacy::{Cost, gaussian_std_dev, laplace_rate};
use crate::row_domain::row_norm_bound;
use crate::spec::fit::sum_rounding;
use crate::spec::step::check_scale;
use crate::spec::{Part, Planned, Query, Seal, Step};

/// The squared residual of a record, over the cap, has this part of the greatest norm of its regressors: it lengthens the whole by 3%.
const SQUARE_RATIO: f64 = 0.25;

impl MomentMatrixSpec {
    /// ω, by which squared residuals over the cap are multiplied behind a gradient.
    pub fn square_weight(&self, plan: &ResidualPlan) -> f64 {
        SQUARE_RATIO * plan.norm(&self.choices().rows, self.intercept())
    }

    /// The noise of `(1/n) Σ (c x, ω c²/cap)`, c the residuals held to ±cap, x the regressors.
    ///
    /// # Privacy
    /// No record's term is longer than `cap·√(‖x‖² + ω²)`, of persons and weights neither, whose shares add up to at most 1. The cost does
    /// not depend on the cap, which is public or released.
    pub fn gradient_noise(&self, plan: &ResidualPlan, cap: f64) -> Result<Planned<NoiseLaw>> {
        let (c, cost, dim) = (self.choices(), self.gradient_cost, plan.regressors.len() + 1);
        let norm = plan.norm(&c.rows, self.intercept());
        let norm = row_norm_bound(norm, Some(self.square_weight(plan)));
        let bounds = c.terms.bounds(norm, dim)?;
        let greatest = cap * (1.0 + 8.0 * f64::EPSILON);
        let sensitivity = bounds.argmin(bounds.objective_shift(greatest), 1.0);
        let law = if let Cost::Epsilon(epsilon) = cost {
            let rate = laplace_rate(sensitivity, epsilon)?;
            NoiseLaw::SphericalLaplace { dim, rate }
        } else {
            let std_dev = gaussian_std_dev(sensitivity, cost.mu())?;
            NoiseLaw::Gaussian { std_dev }
        };
        check_scale(law.scale().is_normal(), cost)?;
        // Sums are those of whole rows, with their rounding.
        let reach = self.row_norm().max(norm);
        let data = 2.0 * sum_rounding(&bounds, gradient_rounding) * greatest * reach;
        let distance = data + 2.0 * law.on(dim)?.error_bound();
        Ok(Planned {
            step: Step::new(Query::ResidualGradient, law.family(), cost, law.scale(), sensitivity),
            seal: Seal::new(Part::ResidualGradient, dim, distance, self.seal_cost)?,
            law,
        })
    }
}
