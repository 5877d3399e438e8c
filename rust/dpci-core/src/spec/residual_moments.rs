//! The cap on residuals and the noise of their moments, from public values and a released moment matrix.

use super::distances::mean_rounding;
use super::moment_matrix::{matrix_noise, step_of};
use super::{MatrixNoise, MomentMatrixSpec, Part, Query, Seal, Step};
use crate::Result;
use crate::loss::moment_rounding;
use crate::privacy::DataBounds;

/// Residuals count up to this many of their standard deviations in the residual moments: all of normal ones with twice the standard
/// deviation of most, and nine tenths of the variance of those with three degrees of freedom.
const CAP: f64 = 8.0;

/// The least cap, as a share of the greatest residual.
const LEAST_CAP: f64 = 1e-6;

/// The noise of the residual moments at released coefficients.
#[derive(Debug, Clone)]
pub struct ResidualNoise {
    /// Law and sensitivity.
    pub noise: MatrixNoise,
    /// For the record.
    pub step: Step,
    /// How they are sealed.
    pub seal: Seal,
}

impl MomentMatrixSpec {
    /// The greatest residual that counts, at coefficients θ of at most this norm whose squared residuals have about this mean.
    ///
    /// # Privacy
    /// A function of public and of released values.
    #[must_use]
    pub fn residual_cap(&self, params_norm: f64, mean_square: f64) -> f64 {
        // The slope of the squared loss is twice a residual.
        let greatest = 0.5 * self.loss().sup_slope(self.row_norm() * params_norm);
        let typical = CAP * mean_square.max(0.0).sqrt();
        // Extreme data sets may have no residuals at all, and noise needs a scale.
        greatest.min(typical.max(LEAST_CAP * greatest))
    }

    /// The noise of `(1/n) Σ r² x xᵀ` over residuals `|r| ≤ cap`; `None` where it is not released.
    ///
    /// # Privacy
    /// The cost does not depend on the cap, which is public or released.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] where the noise or the seal have no scale in double precision.
    pub fn residual_noise(&self, cap: f64) -> Result<Option<ResidualNoise>> {
        let Some(cost) = self.residual_cost else {
            return Ok(None);
        };
        let c = self.choices();
        let dim = self.n_params();
        let n = c.n_samples as f64;
        let bounds = DataBounds::new(n, self.row_norm(), c.neighbors, dim)?;
        let greatest = cap.powi(2) * (1.0 + 4.0 * f64::EPSILON);
        let noise = matrix_noise(&bounds, greatest, cost)?;
        let relative = mean_rounding(moment_rounding, n, c.neighbors);
        let data = relative * greatest * bounds.row_norm.powi(2);
        Ok(Some(ResidualNoise {
            noise,
            step: step_of(Query::ResidualMoments, cost, noise),
            seal: self.seal_at(Part::ResidualMoments, data, noise, dim)?,
        }))
    }
}
