//! The certified minimiser of a risk with the hinge loss, whose kink leaves Newton's method without a second derivative.
//!
//! 1. *Approach*, where the rows are many: minimise the risk of a sample of them, then, while too many kinks are near,
//!    Huber-smoothed risks of decreasing width, each from the last one's minimum.
//! 2. *Split* the rows at the point: those whose kink is near are kept one by one, all others are settled on their side and
//!    enter as one sum.
//! 3. *Settle* the near rows by the method of multipliers, on the ball where there is one.
//! 4. *Polish* in doubled precision and certify.
//! 5. Where the point moved so far that a settled row may have changed sides, widen the reach and repeat from 2.
//!
//! The duality gap is *not* the stopping rule: it certifies the distance only up to its root, half of the digits.

#[cfg(test)]
mod certificate_tests;
mod certify;
mod kink_split;
mod multipliers;
mod polish;
mod smoothed;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use super::risk::Risk;
use super::{Unrounded, longest_row};
use crate::linalg::vector;
use crate::loss::{HINGE_MAX_DIM, HuberHinge};
use crate::objective::Objective;
use crate::solver::{self, Method, Minimum, Options};
use crate::{Error, Result};
use kink_split::{KinkSplit, sample, split};
use multipliers::NearRisk;
use polish::{Terms, polish};

/// Radii whose squares, and the second halves of those in doubled precision, neither over- nor underflow.
const RADII: RangeInclusive<f64> = 1e-60..=1e60;

/// Numbers of entries: at least `entries`, and those of so many rows for each parameter.
#[derive(Debug, Clone, Copy)]
struct Limit {
    entries: usize,
    rows: usize,
}

impl Limit {
    fn of(self, dim: usize) -> usize {
        self.entries.max(self.rows * dim * dim)
    }
}

/// How much the method of multipliers is given at once.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Rows that need no approach, and those of a sample.
    direct: Limit,
    /// Near rows that are not worth another, narrower approach.
    near: Limit,
}

const LIMITS: Limits = Limits {
    direct: Limit {
        entries: 1 << 18,
        rows: 50,
    },
    near: Limit {
        entries: 1 << 20,
        rows: 100,
    },
};

/// Widths of the smoothed hinges.
const WIDTHS: [f64; 4] = [0.1, 0.02, 0.004, 0.0008];

/// Rounds of splitting; each at least doubles the reach.
const MAX_ROUNDS: usize = 60;

/// A point near the minimiser with the rows split there.
struct Near {
    params: Vec<f64>,
    /// Kinks within this distance are near.
    reach: f64,
    /// Rows whose slack is below this may be at their kink.
    width: f64,
    /// `nλ`, or about what it takes to stay in the ball.
    ridge: f64,
    split: KinkSplit,
    iterations: usize,
}

impl Near {
    /// Moves to a better point. Moves shrink fast, so that all later ones together are hardly longer than this one.
    fn move_to(&mut self, params: Vec<f64>) {
        self.reach = distance(&params, &self.params);
        self.params = params;
    }

    /// Moves to the minimiser for a sample of the rows.
    fn move_to_minimum_of(
        &mut self,
        sample: &KinkSplit,
        objective: &Objective<'_>,
        radius: Option<f64>,
    ) -> Result<()> {
        let risk = NearRisk::new(sample, objective.exec);
        let mut at = risk.start(self.params.clone(), self.ridge, self.width);
        let least_ridge = objective.n_samples * objective.strong_convexity();
        match risk.settle_within(&mut at, least_ridge, radius) {
            Ok(()) => {
                self.ridge = at.ridge;
                self.move_to(at.params);
                Ok(())
            }
            // A sample only saves time.
            Err(Error::NotPositiveDefinite(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The certified minimiser of a risk whose loss is the hinge.
///
/// # Errors
/// [`Error::NotConverged`], [`Error::Interrupted`], [`Error::Length`], [`Error::OutOfRange`] for the options and for too many
/// parameters.
pub(super) fn minimize(
    objective: &Objective<'_>,
    start: &[f64],
    options: &Options,
    unrounded: bool,
) -> Result<Unrounded> {
    solver::check_options(objective.records.n_params(), start, options)?;
    if objective.records.n_params() > HINGE_MAX_DIM {
        return Err(Error::OutOfRange {
            name: "the number of parameters with the hinge",
            rule: "at most 2048 (huber_hinge has no such limit)",
            value: objective.records.n_params() as f64,
        });
    }
    if let Some(radius) = options.radius.filter(|w| !RADII.contains(w)) {
        return Err(Error::OutOfRange {
            name: "radius",
            rule: "between 1e-60 and 1e60 with the hinge",
            value: radius,
        });
    }
    settle(
        objective,
        options,
        approach(objective, start, options, LIMITS)?,
        unrounded,
    )
}

/// The certified minimiser, from a point near it.
///
/// # Errors
/// [`Error::NotConverged`], [`Error::Interrupted`].
fn settle(
    objective: &Objective<'_>,
    options: &Options,
    mut near: Near,
    unrounded: bool,
) -> Result<Unrounded> {
    let terms = Terms {
        n_samples: objective.n_samples,
        l2_strength: objective.strong_convexity(),
        radius: options.radius,
    };
    let least_ridge = terms.n_samples * terms.l2_strength;
    for _ in 0..MAX_ROUNDS {
        let risk = NearRisk::new(&near.split, objective.exec);
        let mut at = risk.start(near.params.clone(), near.ridge, near.width);
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
                let reason =
                    "some rows are too close to their kinks to tell on which side they lie";
                (certificate, reason)
            } else {
                (f64::INFINITY, "numbers left the range of double precision")
            };
            return Err(solver::not_converged(
                options,
                certificate,
                near.iterations,
                reason,
            ));
        }
        near.ridge = at.ridge;
        near.reach = 2.0 * near.reach.max(moved);
        near.params = polished.params;
        near.split = split(objective, &near.params, near.reach)?;
    }
    let reason = "the iteration limit was reached";
    Err(solver::not_converged(
        options,
        f64::INFINITY,
        near.iterations,
        reason,
    ))
}

/// A point near the minimiser, with a guess of how near.
///
/// # Errors
/// [`Error::Interrupted`].
fn approach(
    objective: &Objective<'_>,
    start: &[f64],
    options: &Options,
    limits: Limits,
) -> Result<Near> {
    let mut near = Near {
        params: start.to_vec(),
        reach: f64::INFINITY,
        width: 1.0,
        ridge: objective.n_samples * objective.strong_convexity(),
        split: KinkSplit::default(),
        iterations: 0,
    };
    let n_entries = objective.records.n_rows() * start.len();
    let direct = limits.direct.of(start.len());
    if n_entries > direct {
        for share in [4, 1] {
            let stride = share * n_entries.div_ceil(direct);
            near.move_to_minimum_of(&sample(objective, stride)?, objective, options.radius)?;
        }
        near.split = split(objective, &near.params, near.reach)?;
        let longest = longest_row(objective)?;
        for width in WIDTHS {
            if near.split.near.len() <= limits.near.of(start.len()) {
                break;
            }
            let loss = HuberHinge::new(width)?;
            let smooth = Objective {
                loss: &loss,
                ..*objective
            };
            let options = Options {
                method: Method::Auto,
                tolerance: 0.1 * width / longest,
                ..*options
            };
            let found = match solver::minimize(&Risk::new(&smooth, None)?, &near.params, &options) {
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                // A smoothed risk only saves time.
                Err(_) => break,
                Ok(found) => found,
            };
            near.move_to(found.params);
            near.width = width;
            near.iterations += found.iterations;
            near.split = split(objective, &near.params, near.reach)?;
        }
        return Ok(near);
    }
    near.split = split(objective, &near.params, near.reach)?;
    Ok(near)
}

/// The distance between two points, rounded up.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    vector::norm(&difference) * (1.0 + 1e-6)
}
