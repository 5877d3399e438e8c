//! The audit of ε: an event chosen on one half of the runs, its probabilities bounded on the other.

use std::sync::Arc;

use dpci_core::loss::{HuberHinge, Logistic};
use dpci_core::privacy::{Budget, Perturbation};
use dpci_core::spec::Choices;

use super::Finding;
use super::setting::{choices, releases, with_moments};

const N_RUNS: usize = 40_000;
const SEED: u64 = 90;
const EPSILON: f64 = 1.0;
const DELTA: f64 = 0.1;
/// Error of each of the two bounds of an audit.
const ALPHA: f64 = 0.5e-6;

struct Audit {
    name: &'static str,
    choices: Choices,
    neighbors: [&'static [f64]; 2],
    delta: f64,
    /// Greater where the first data set is likelier.
    score: fn(&[f64]) -> f64,
}

pub(crate) fn findings() -> Vec<Finding> {
    audits().iter().filter_map(refuted).collect()
}

fn audits() -> [Audit; 4] {
    let pure = Budget::pure(EPSILON).unwrap();
    let approx = Budget::approx(EPSILON, DELTA).unwrap();
    let antipodal: [&[f64]; 2] = [&[1.0], &[-1.0]];
    // Nine tenths of ε pay for the curvature where the hinge sets in; see "objective_curvature" of dpci.audit.
    let curvature = (0.9 * EPSILON).exp_m1();
    let width = 0.25;
    [
        Audit {
            name: "output, pure",
            choices: choices(1, pure, Perturbation::Output),
            neighbors: antipodal,
            delta: 0.0,
            score: |row| row[0],
        },
        Audit {
            name: "objective, pure",
            choices: choices(1, pure, Perturbation::Objective),
            neighbors: antipodal,
            delta: 0.0,
            score: |row| row[0],
        },
        Audit {
            name: "moments, (ε, δ)",
            choices: with_moments(&choices(2, approx, Perturbation::Output), Arc::new(Logistic), 1e4),
            neighbors: [&[1.0, 0.0], &[0.0, 1.0]],
            delta: DELTA,
            // The lower triangles of the Hessian, a quarter of xxᵀ, and of the gradient covariance, another quarter.
            score: |row| row[2] - row[4] + row[5] - row[7],
        },
        Audit {
            name: "objective, pure, curvature",
            choices: Choices {
                loss: Arc::new(HuberHinge::new(width).unwrap()),
                l2_strength: 1.0 / (2.0 * width * curvature),
                ..choices(1, pure, Perturbation::Objective)
            },
            neighbors: antipodal,
            delta: 0.0,
            // The margin just above 1 - h: nearest to it on the steep side.
            score: |row| if row[0] >= 0.75 { -row[0] } else { -10.0 },
        },
    ]
}

fn refuted(audit: &Audit) -> Option<Finding> {
    let [first, second] = [0, 1].map(|k| {
        let rows = releases(&audit.choices, audit.neighbors[k], N_RUNS, SEED + k as u64);
        let scores = rows.iter().map(|row| (audit.score)(row));
        let (even, odd): (Vec<_>, Vec<_>) = scores.enumerate().partition(|(i, _)| i % 2 == 0);
        [even, odd].map(|half: Vec<(usize, f64)>| {
            let mut values: Vec<f64> = half.into_iter().map(|(_, score)| score).collect();
            values.sort_by(f64::total_cmp);
            values
        })
    });
    let bound = |half: usize, threshold: f64| {
        let share = |values: &[f64]| {
            let above = values.len() - values.partition_point(|v| *v < threshold);
            (above as f64 / values.len() as f64, values.len() as f64)
        };
        let (p, n) = share(&first[half]);
        let (q, _) = share(&second[half]);
        ((least(p, n) - audit.delta) / greatest(q, n)).ln()
    };
    let quantiles = (1..200).map(|k| first[0][k * first[0].len() / 200]);
    let best = quantiles.max_by(|a, b| bound(0, *a).total_cmp(&bound(0, *b)))?;
    let found = bound(1, best);
    (found > EPSILON).then(|| format!("{}: ε ≥ {found:.3}, claimed {EPSILON}", audit.name))
}

/// Chernoff: `n·KL(share, p) ≤ ln(1/α)` for all p at most the share; the least such p is a lower bound at error α.
fn least(share: f64, n: f64) -> f64 {
    bisect(0.0, share, |p| n * divergence(share, p) > -ALPHA.ln())
}

fn greatest(share: f64, n: f64) -> f64 {
    1.0 - least(1.0 - share, n)
}

/// The place where `below` turns false.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// KL between yes/no laws; a count of n is further from its expectation with probability at most `2·exp(-n·KL)`.
pub(crate) fn divergence(a: f64, b: f64) -> f64 {
    let part = |x: f64, y: f64| if x > 0.0 { x * (x / y).ln() } else { 0.0 };
    part(a, b) + part(1.0 - a, 1.0 - b)
}
