//! The hinge `max(0, 1 - z)` of the margin `z = yu`: Lipschitz, without a second derivative at 1.

use super::{Batch, Loss, weighted_sum};
use crate::Result;

/// The hinge: slope bound 1, a kink at margin 1. Its slope there is taken as 0, one of its subgradients.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hinge;

impl Loss for Hinge {
    getters! { self =>
        name: &'static str = "hinge";
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![]));
        kinked: bool = true;
        slope_bound: f64 = 1.0;
        /// Infinite: the slope jumps.
        curvature_bound: f64 = f64::INFINITY;
        one_signed: bool = true;
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        let margins = || u.iter().zip(y).map(|(u, y)| u * y);
        if let Some(total) = out.total {
            *total = weighted_sum(margins().map(|z| (1.0 - z).max(0.0)), out.weights);
        }
        if let Some(slope) = out.slope {
            for ((o, z), y) in slope.iter_mut().zip(margins()).zip(y) {
                *o = if z < 1.0 { -y } else { 0.0 };
            }
        }
        if let Some(curvature) = out.curvature {
            curvature.fill(0.0);
        }
        Ok(())
    }

    fn sup_slope(&self, _radius: f64) -> f64 {
        1.0
    }

    fn sup_curvature(&self, _radius: f64) -> f64 {
        f64::INFINITY
    }

    fn sup_weighted_sum(&self, _k: f64, _radius: f64) -> f64 {
        f64::INFINITY
    }

    fn sup_joint_norm(&self, _alpha: f64, _radius: f64) -> f64 {
        f64::INFINITY
    }

    fn value_range(&self, radius: f64) -> f64 {
        super::margin_range(self, radius)
    }
}
