//! The certified minimiser of a risk with the hinge loss, whose kink leaves Newton's method without a second derivative.
//!
//! 1. *Approach*, where the rows are many: coordinate descent in the dual, or samples and smoothed risks.
//! 2. *Split* the rows at the point: those whose kink is near are kept one by one, all others are settled on their side and
//!    enter as one sum.
//! 3. *Settle* the near rows by the method of multipliers, on the ball where there is one.
//! 4. *Polish* in doubled precision and certify.
//! 5. Where the point moved so far that a settled row may have changed sides, widen the reach and repeat from 2.
//!
//! The duality gap is *not* the stopping rule: it certifies the distance only up to its root, half of the digits.

mod approach;
#[cfg(test)]
mod certificate_tests;
mod descent;
#[cfg(test)]
mod descent_tests;
mod entries;
mod kink_split;
mod multipliers;
mod polish;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use super::Unrounded;
use crate::error::check;
use crate::linalg::vector;
use crate::loss::HINGE_MAX_DIM;
use crate::objective::Objective;
use crate::solver::{self, Method, Minimum, Options};
use crate::{Error, Result};
use approach::{LIMITS, Limits, Near, approach};
use kink_split::split;
use multipliers::NearRisk;
use polish::{SHARE_NEAR, Terms, polish};

/// Radii whose squares, and the second halves of those in doubled precision, neither over- nor underflow.
const RADII: RangeInclusive<f64> = 1e-60..=1e60;

/// Rounds of splitting; each at least doubles the reach.
const MAX_ROUNDS: usize = 60;

/// The certified minimiser of a risk whose loss is the hinge.
pub(super) fn minimize(
    objective: &Objective<'_>,
    start: &[f64],
    options: &Options,
    unrounded: bool,
) -> Result<Unrounded> {
    solver::check_options(objective.records.n_params(), start, options)?;
    check(
        objective.records.n_params() <= HINGE_MAX_DIM,
        "the number of parameters with the hinge",
        "at most 2048 (huber_hinge has no such limit)",
        objective.records.n_params() as f64,
    )?;
    if let Some(radius) = options.radius.filter(|w| !RADII.contains(w)) {
        return Err(Error::OutOfRange {
            name: "radius",
            rule: "between 1e-60 and 1e60 with the hinge",
            value: radius,
        });
    }
    let near = approach(objective, start, options, LIMITS)?;
    let by_descent = near.by_descent;
    match settle(objective, options, near, unrounded) {
        // Descent only saves time.
        Err(Error::NotConverged { .. }) if by_descent => {
            let limits = Limits { copied: 0, ..LIMITS };
            let near = approach(objective, start, options, limits)?;
            settle(objective, options, near, unrounded)
        }
        settled => settled,
    }
}

/// The certified minimiser, from a point near it.
fn settle(objective: &Objective<'_>, options: &Options, mut near: Near, unrounded: bool) -> Result<Unrounded> {
    let terms = Terms {
        n_samples: objective.n_samples,
        l2_strength: objective.strong_convexity(),
        radius: options.radius,
    };
    let least_ridge = terms.n_samples * terms.l2_strength;
    for _ in 0..MAX_ROUNDS {
        let risk = NearRisk::new(&near.split, objective.exec);
        let mut at = risk.start(near.params.clone(), near.ridge, near.width);
        at.stiffness *= near.stiffness;
        let polished = risk
            .settle_within(&mut at, least_ridge, terms.radius)
            .and_then(|()| polish(&near.split, &at, terms, objective.exec))
            .map_err(|e| match e {
                Error::NotPositiveDefinite(_) => {
                    let reason = "a system of equations could not be solved";
                    solver::not_converged(options, f64::INFINITY, near.iterations, reason)
                }
                other => other,
            })?;
        near.iterations += 1;
        let moved = distance(&polished.params, &near.params) + polished.lost;
        if moved < near.split.clearance {
            let rounded = if unrounded { 0.0 } else { polished.lost };
            let certificate = (polished.certificate + rounded) * (1.0 + f64::EPSILON);
            if certificate <= options.tolerance {
                let minimum = Minimum {
                    params: polished.params,
                    certificate,
                    iterations: near.iterations,
                    method: Method::Multipliers,
                };
                return Ok(Unrounded {
                    minimum,
                    rest: polished.rest,
                });
            }
            let (certificate, reason) = if certificate.is_finite() {
                let reason = "some rows are too close to their kinks to tell on which side they lie";
                (certificate, reason)
            } else {
                (f64::INFINITY, "numbers left the range of double precision")
            };
            return Err(solver::not_converged(options, certificate, near.iterations, reason));
        }
        near.ridge = at.ridge;
        near.stiffness = 1.0;
        near.reach = 2.0 * near.reach.max(moved);
        near.params = polished.params;
        near.split = split(objective, &near.params, near.reach)?;
    }
    let reason = "the iteration limit was reached";
    Err(solver::not_converged(options, f64::INFINITY, near.iterations, reason))
}

/// The distance between two points, rounded up.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    vector::norm(&difference) * (1.0 + 1e-6)
}
