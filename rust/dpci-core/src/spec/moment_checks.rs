//! Whether moments can be released, and whether there is a Hessian to release: from public values alone.

use super::distances::greatest_excess;
use super::{Moments, Part, Spec};
use crate::Result;

impl Spec {
    /// Refuses public values for which the moments' noise, or its seals, have no scale in double precision, whatever parameters will be
    /// released: once they are, the budget is spent. All scales grow with the greatest margin.
    ///
    /// # Errors
    /// As [`Self::moment_noise`].
    pub(super) fn check_moment_noise(&self) -> Result<()> {
        for radius in [0.0, self.greatest_margin()] {
            self.moment_noise(radius)?;
        }
        if let (Some([cost, _]), Moments::Separate) = (self.moment_costs, self.choices.moments) {
            let least = self.least_curvature();
            let noise = self.separate_noise(least, cost)?;
            self.matrix_seal(Part::Hessian, noise, least, 0.0)?;
        }
        Ok(())
    }

    /// The curvature of which a Hessian is invisible beside λ: it is then released as λI, without noise, whatever the data.
    fn least_curvature(&self) -> f64 {
        let visible = 0.5 * f64::EPSILON * self.strong_convexity();
        visible / self.bounds.row_norm.powi(2) / greatest_excess(self.bounds.neighbors)
    }

    /// Whether the data can be seen in a Hessian of records with curvatures up to this one; NaN can.
    pub(super) fn has_hessian(&self, greatest: f64) -> bool {
        greatest != 0.0 && !(greatest <= self.least_curvature())
    }
}
