//! Finds a point near the minimiser of the hinge risk, with the rows split there.
//!
//! 1. *Few rows* need no approach: all of them are near.
//! 2. *Coordinate descent* until few rows move. Those nearest to their kinks are settled at once, which is right if no other row changes
//!    sides on the way.
//! 3. Where descent is slow, as for a small ridge, or leads out of the ball: the minimiser of a *sample* of the rows, then, while too
//!    many kinks are near, *Huber-smoothed risks* of decreasing width, each from the last one's minimum.
//!
//! Nothing here is trusted: the point is certified afterwards, and settled again where it is not near enough.

use super::descent::Descent;
use super::kink_split::{KinkSplit, sample, split};
use super::multipliers::{Multiplied, NearRisk};
use super::{SHARE_NEAR, distance};
use crate::erm::longest_row;
use crate::erm::risk::Risk;
use crate::linalg::vector;
use crate::loss::HuberHinge;
use crate::objective::Objective;
use crate::solver::{self, Method, Options};
use crate::{Error, Result};

/// Numbers of entries: at least `entries`, and those of so many rows for each parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) entries: usize,
    pub(super) rows: usize,
}

impl Limit {
    fn of(self, dim: usize) -> usize {
        self.entries.max(self.rows * dim * dim)
    }
}

/// How much the method of multipliers is given at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Rows that need no approach, those that are settled after coordinate descent, and those of a sample.
    pub(super) direct: Limit,
    /// Near rows that are not worth another, narrower approach.
    pub(super) near: Limit,
    /// Numbers of the rows that descent may copy: more take too much memory.
    pub(super) copied: usize,
}

pub(super) const LIMITS: Limits = Limits {
    direct: Limit {
        entries: 1 << 18,
        rows: 50,
    },
    near: Limit {
        entries: 1 << 20,
        rows: 100,
    },
    copied: 1 << 24,
};

/// Widths of the smoothed hinges.
const WIDTHS: [f64; 4] = [0.1, 0.02, 0.004, 0.0008];

/// Coordinate descent ends with so small a share of the rows that are settled at once, where it comes so far.
const MOVING_SHARE: usize = 32;

/// So many rows are settled for each that moves: the others are far from their kinks.
const NEAR_PER_MOVING: usize = 8;

/// Rounds of settling after descent; one, unless rows changed sides unforeseen.
const MAX_ROUNDS: usize = 3;

/// Stiffness, in terms of the ridge, to start with after descent: about what the multipliers are known by.
const WARM: f64 = 64.0;

/// A point near the minimiser with the rows split there.
pub(super) struct Near {
    pub(super) params: Vec<f64>,
    /// Kinks within this distance are near.
    pub(super) reach: f64,
    /// Rows whose slack is below this may be at their kink.
    pub(super) width: f64,
    /// `nλ`, or about what it takes to stay in the ball.
    pub(super) ridge: f64,
    /// Stiffness to settle the near rows with at first, in terms of the ridge.
    pub(super) stiffness: f64,
    pub(super) split: KinkSplit,
    pub(super) iterations: usize,
    /// Whether coordinate descent led here.
    pub(super) by_descent: bool,
}

impl Near {
    /// Moves to a better point. Moves shrink fast, so that all later ones together are hardly longer than this one.
    fn move_to(&mut self, params: Vec<f64>) {
        self.reach = distance(&params, &self.params);
        self.params = params;
    }

    /// Moves to the minimiser for a sample of the rows.
    fn move_to_minimum_of(&mut self, sample: &KinkSplit, objective: &Objective<'_>, radius: Option<f64>) -> Result<()> {
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

/// A point near the minimiser, with a guess of how near.
pub(super) fn approach(objective: &Objective<'_>, start: &[f64], options: &Options, limits: Limits) -> Result<Near> {
    let mut near = Near {
        params: start.to_vec(),
        reach: f64::INFINITY,
        width: 1.0,
        ridge: objective.n_samples * objective.strong_convexity(),
        stiffness: 1.0,
        split: KinkSplit::default(),
        iterations: 0,
        by_descent: false,
    };
    let n_entries = objective.records.n_rows() * start.len();
    let direct = limits.direct.of(start.len());
    if n_entries > direct {
        if let Some(near) = descended(objective, options, limits)? {
            return Ok(near);
        }
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

/// The point that coordinate descent leads to; `None` where it does not lead near the minimiser.
pub(super) fn descended(objective: &Objective<'_>, options: &Options, limits: Limits) -> Result<Option<Near>> {
    let Some(mut descent) = Descent::new(objective, limits.copied)? else {
        return Ok(None);
    };
    let dim = objective.records.n_params();
    let most = limits.direct.of(dim) / dim;
    let enough = most / MOVING_SHARE;
    let moving = descent.descend(enough, objective.exec)?;
    let n_near = NEAR_PER_MOVING * moving.max(enough);
    let outside = |radius| vector::norm(descent.params()) > radius;
    if n_near > most || options.radius.is_some_and(outside) {
        return Ok(None);
    }
    let ridge = objective.n_samples * objective.strong_convexity();
    for _ in 0..MAX_ROUNDS {
        let nearest = descent.nearest(n_near);
        // Many may be as near as the last one.
        if nearest.multipliers.len() > most {
            return Ok(None);
        }
        let risk = NearRisk::new(&nearest.split, objective.exec);
        let mut at = Multiplied {
            params: descent.params().to_vec(),
            multipliers: nearest.multipliers.clone(),
            ridge,
            stiffness: WARM * ridge,
            unrest: f64::INFINITY,
        };
        match risk.settle_within(&mut at, ridge, options.radius) {
            Ok(()) => {}
            Err(Error::NotPositiveDefinite(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        let reach = SHARE_NEAR * vector::norm(&at.params);
        if !descent.move_to(&at, &nearest, reach) {
            return Ok(Some(Near {
                split: descent.split(objective, reach)?,
                params: at.params,
                reach,
                width: reach.max(f64::MIN_POSITIVE),
                ridge: at.ridge,
                stiffness: at.stiffness / at.ridge,
                iterations: 0,
                by_descent: true,
            }));
        }
    }
    Ok(None)
}
