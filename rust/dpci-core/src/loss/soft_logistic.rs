//! The logistic loss of a soft label: `log(1 + e^u) - yu` for a target `y` in [0, 1].

use super::series::{self, Series};
use super::{Batch, Logistic, Loss, Targets, sigmoid_family};
use crate::Result;
use crate::linalg::{Doubled, doubled_sigmoid};

/// Soft-label logistic loss: slope `p - y` of either sign, at most 1 in size; curvature `p(1-p)`, at most 1/4.
///
/// All suprema are those of the logistic loss: at a given `p` the steepest target is 0 or 1, with slope `p` or `p - 1`, and the
/// range of `p` over `|u| ≤ radius` is symmetric.
#[derive(Debug, Clone, Copy, Default)]
pub struct SoftLogistic;

/// Rows handled at a time.
const GROUP: usize = 128;

impl Loss for SoftLogistic {
    getters! { self =>
        name: &'static str = "soft_logistic";
        is_likelihood: bool = true;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![]));
        slope_bound: f64 = Logistic.slope_bound();
        curvature_bound: f64 = Logistic.curvature_bound();
        self_concordance: f64 = Logistic.self_concordance();
        curvature_slack: f64 = Logistic.curvature_slack();
        curvature_width: f64 = 1.0;
        one_signed: bool = false;
        /// Linear in the label, so that of labels 0 and 1.
        greatest_pull: f64 = Logistic.greatest_pull();
    }

    fn null_predictor(&self, slope: f64) -> Option<(f64, f64)> {
        Some(sigmoid_family::null_predictor(slope))
    }

    fn targets(&self) -> Targets {
        Targets::Interval { lower: 0.0, upper: 1.0 }
    }

    fn evaluate(&self, u: &[f64], y: &[f64], mut out: Batch<'_>) -> Result<()> {
        // That of label 0, which is the logistic loss of class -1, and what the target changes.
        let negative = [-1.0; GROUP];
        let mut total = 0.0;
        for start in (0..u.len()).step_by(GROUP) {
            let rows = start..(start + GROUP).min(u.len());
            let (u, y) = (&u[rows.clone()], &y[rows.clone()]);
            let weights = out.weights.map(|w| &w[rows.clone()]);
            let mut part = 0.0;
            let batch = Batch {
                total: out.total.is_some().then_some(&mut part),
                weights,
                slope: out.slope.as_mut().map(|s| &mut s[rows.clone()]),
                curvature: out.curvature.as_mut().map(|c| &mut c[rows.clone()]),
            };
            sigmoid_family::evaluate(1.0, 0.0, u, &negative[..u.len()], batch);
            if let Some(slope) = &mut out.slope {
                for (slope, y) in slope[rows].iter_mut().zip(y) {
                    *slope -= y;
                }
            }
            if out.total.is_some() {
                let products = u.iter().zip(y).map(|(u, y)| u * y);
                total += part - super::weighted_sum(products, weights);
            }
        }
        if let Some(sum) = &mut out.total {
            **sum = total;
        }
        Ok(())
    }

    fn doubled_slopes(&self, u: &mut [Doubled], y: &[f64]) -> bool {
        doubled_sigmoid(u);
        for (u, y) in u.iter_mut().zip(y) {
            *u = *u - Doubled::from(*y);
        }
        true
    }

    fn slope_series(&self, slopes: &[f64], y: &[f64], out: &mut Series) -> bool {
        series::slopes_of_sigmoid(slopes, y, |y| y, out);
        true
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        Logistic.sup_slope(radius)
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        Logistic.sup_curvature(radius)
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        Logistic.sup_weighted_sum(k, radius)
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        Logistic.sup_joint_norm(alpha, radius)
    }

    /// Supremum of the logistic loss: a slope `p - y` is at most p in size if it is positive, and `1 - p` if it is negative.
    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        Logistic.sup_tilted_slope(tilt, radius)
    }

    fn value_range(&self, radius: f64) -> f64 {
        // Linear in the label, so the extremes are those of labels 0 and 1.
        Logistic.value_range(radius)
    }
}
