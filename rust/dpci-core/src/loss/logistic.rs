//! The logistic loss `log(1 + e^{-z})` of the margin `z = yu`.

use super::series::{self, Series};
use super::sigmoid_family::{self, SlopeRange};
use super::{Batch, Loss};
use crate::Result;
use crate::linalg::{Doubled, doubled_sigmoid};

/// Logistic loss: slope bound 1, curvature bound 1/4.
#[derive(Debug, Clone, Copy, Default)]
pub struct Logistic;

impl Logistic {
    fn range(radius: f64) -> SlopeRange {
        SlopeRange::between(-radius, radius, 1.0)
    }
}

impl Loss for Logistic {
    getters! { self =>
        name: &'static str = "logistic";
        is_likelihood: bool = true;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![]));
        slope_bound: f64 = 1.0;
        curvature_bound: f64 = 0.25;
        self_concordance: f64 = 1.0;
        curvature_slack: f64 = 1.0;
        curvature_width: f64 = 1.0;
        one_signed: bool = true;
        greatest_pull: f64 = sigmoid_family::greatest_pull(1.0, 0.0);
    }

    fn null_predictor(&self, slope: f64) -> Option<(f64, f64)> {
        Some(sigmoid_family::null_predictor(slope))
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        sigmoid_family::evaluate(1.0, 0.0, u, y, out);
        Ok(())
    }

    fn evaluate_singly(&self, u: &[f64], y: &[f64], [slope, curvature]: [&mut [f64]; 2]) -> Result<()> {
        sigmoid_family::evaluate_singly(u, y, slope, curvature);
        Ok(())
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        for (u, y) in u.iter_mut().zip(y) {
            *u = *u * -y;
        }
        doubled_sigmoid(u);
        for (u, y) in u.iter_mut().zip(y) {
            *u = *u * -y;
        }
        true
    }

    fn slope_series(&self, slopes: &[f64], y: &[f64], out: &mut Series) -> bool {
        series::slopes_of_sigmoid(slopes, y, |y| 0.5 + 0.5 * y, out);
        true
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        Self::range(radius).sup_slope()
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        Self::range(radius).sup_curvature()
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        Self::range(radius).sup_weighted_sum(k)
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        Self::range(radius).sup_joint_norm(alpha)
    }

    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        sigmoid_family::sup_tilted_slope(1.0, 0.0, tilt, radius)
    }

    fn value_range(&self, radius: f64) -> f64 {
        super::margin_range(self, radius)
    }
}
