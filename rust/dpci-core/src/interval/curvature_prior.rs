//! The prior of the curvature of the data, before its release (docs/proofs/intervals.md, "Little curvature").

use super::directions::weighted;
use super::noise_aware::DEVIATION;

/// Points at which the density of the greatest eigenvalue is computed.
const NODES: usize = 200;

/// Draws from the posterior.
pub(super) const DRAWS: usize = 64;

/// The density of the greatest eigenvalue of cΣ at x falls as `(κ + x)^-POWER`, κ the strong convexity.
const POWER: f64 = 2.0;

/// The prior of D: it is about cΣ.
pub(super) struct Prior {
    /// Probability that no row has curvature.
    pub(super) none: f64,
    /// Standard deviation of D around cΣ, as a share of that.
    pub(super) deviation: f64,
    /// Probability that a direction has no curvature where others have some.
    pub(super) flat: f64,
}

impl Prior {
    /// The prior of a loss that may be flat, whose rows with curvature, if there are any, are others than those with slopes.
    pub(super) fn of(may_be_flat: bool) -> Self {
        let [none, deviation, flat] = if may_be_flat {
            [0.5, 1.0, 0.2]
        } else {
            [0.3, DEVIATION, 0.0]
        };
        Self { none, deviation, flat }
    }

    /// Probability that a direction has no curvature, given what is released of it and c times Σ there.
    pub(super) fn flat_given(&self, found: f64, expected: f64, noise: f64) -> f64 {
        let density = |mean: f64, variance: f64| (-0.5 * (found - mean).powi(2) / variance).exp() / variance.sqrt();
        let flat = self.flat * density(0.0, noise * noise);
        let other = (1.0 - self.flat) * density(expected, noise * noise + (self.deviation * expected).powi(2));
        // Where both densities vanish the direction is far from flat.
        if flat > 0.0 { flat / (flat + other) } else { 0.0 }
    }

    /// Draws of c given the released diagonal, 0 where there is no curvature: quantiles of its posterior, in ascending order.
    ///
    /// Given c the diagonal is normal around c times the eigenvalues of Σ.
    pub(super) fn ratios(&self, eigenvalues: &[f64], found: &[f64], noise: f64, convexity: f64) -> Vec<f64> {
        let greatest = eigenvalues.iter().copied().fold(0.0, f64::max);
        let square = weighted(eigenvalues, eigenvalues);
        let likely = (weighted(eigenvalues, found) / square).max(0.0) * greatest;
        let last = 3.0 * likely + 10.0 * noise * greatest / square.sqrt() + 10.0 * convexity;
        let first = 1e-3 * convexity.min(last);
        let step = (last / first).ln() / (NODES as f64 - 1.0);
        let log_density = |ratio: f64| -> f64 {
            let terms = eigenvalues.iter().zip(found).map(|(s, found)| {
                let mean = ratio * s;
                let variance = noise * noise + (self.deviation * mean).powi(2);
                (found - mean).powi(2) / variance + variance.ln()
            });
            -0.5 * terms.sum::<f64>()
        };
        let nodes: Vec<f64> = (0..NODES).map(|i| first * (step * i as f64).exp()).collect();
        // The density of log x, times the step.
        let mut logs: Vec<f64> = nodes
            .iter()
            .map(|x| {
                let scaled = x / convexity;
                let before = (POWER - 1.0) * scaled * (1.0 + scaled).powf(-POWER);
                log_density(x / greatest) + ((1.0 - self.none) * before * step).ln()
            })
            .collect();
        logs.push(log_density(0.0) + self.none.ln());
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let masses: Vec<f64> = logs.iter().map(|l| (l - top).exp()).collect();
        let total: f64 = masses.iter().sum();
        let (mut below, mut node) = (masses[NODES], 0);
        let ratios = (0..DRAWS).map(|draw| {
            let level = (draw as f64 + 0.5) / DRAWS as f64 * total;
            if level <= masses[NODES] {
                return 0.0;
            }
            while node + 1 < NODES && below + masses[node] < level {
                below += masses[node];
                node += 1;
            }
            let share = ((level - below) / masses[node]).clamp(0.0, 1.0);
            nodes[node] * (step * (share - 0.5)).exp() / greatest
        });
        ratios.collect()
    }
}
