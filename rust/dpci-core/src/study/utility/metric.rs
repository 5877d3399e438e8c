//! Metrics of utility: the mean over the records of a function of (linear predictor, target).

use crate::Result;
use crate::loss::{Batch, Loss};

/// A function of (linear predictor, target) whose mean over the records is a utility.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// The loss that is fitted, without the regulariser.
    Loss,
    /// `1/(1 + e^{-z/width})` of the margin `z = yu`: the accuracy with its step made smooth.
    SmoothedAccuracy {
        /// Width of the step.
        width: f64,
    },
}

impl Metric {
    /// Evaluates a batch; all slices have the length of `u`.
    pub(super) fn evaluate(self, loss: &dyn Loss, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        match self {
            Self::Loss => loss.evaluate(u, y, out),
            Self::SmoothedAccuracy { width } => {
                evaluate_accuracy(width, u, y, out);
                Ok(())
            }
        }
    }
}

fn evaluate_accuracy(width: f64, u: &[f64], y: &[f64], out: Batch<'_>) {
    let sigmoid = |i: usize| 1.0 / (1.0 + (-y[i] * u[i] / width).exp());
    if let Some(total) = out.total {
        let weight = |i: usize| out.weights.map_or(1.0, |w| w[i]);
        *total = (0..u.len()).map(|i| weight(i) * sigmoid(i)).sum();
    }
    if let Some(slope) = out.slope {
        for (i, slope) in slope.iter_mut().enumerate() {
            let p = sigmoid(i);
            *slope = y[i] * p * (1.0 - p) / width;
        }
    }
    if let Some(curvature) = out.curvature {
        for (i, curvature) in curvature.iter_mut().enumerate() {
            let p = sigmoid(i);
            // One division after the other: zero over a square that underflows is no number.
            *curvature = p * (1.0 - p) * (1.0 - 2.0 * p) * y[i] / width * y[i] / width;
        }
    }
}
