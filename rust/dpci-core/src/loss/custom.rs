//! A loss in the caller's code, with declared bounds that are checked on a fixed public grid and never at the data.

use std::sync::Arc;

use super::{Batch, Loss, Targets, weighted_sum};
use crate::error::{check, check_positive};
use crate::{Error, Result};

/// The caller's three functions of (linear predictor, target), elementwise.
pub trait Evaluate: Send + Sync + std::fmt::Debug {
    /// Writes `l(u; y)`.
    fn value(&self, u: &[f64], y: &[f64], out: &mut [f64]) -> Result<()>;

    /// Writes `l'(u; y)`.
    fn slope(&self, u: &[f64], y: &[f64], out: &mut [f64]) -> Result<()>;

    /// Writes `l''(u; y)`.
    fn curvature(&self, u: &[f64], y: &[f64], out: &mut [f64]) -> Result<()>;
}

/// Properties that the caller declares of a loss. Privacy rests on them.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Bound on |l'|.
    pub slope_bound: f64,
    /// Bound on l''.
    pub curvature_bound: f64,
    /// Lower bound on l'', 0 for none: strong convexity in the predictor.
    pub strong_convexity: f64,
    /// Whether, for a given target, l' never changes sign.
    pub one_signed: bool,
    /// Targets.
    pub targets: Targets,
    /// The bounds hold, and the functions are called, for |u| up to this alone; `None`: everywhere.
    pub predictor_bound: Option<f64>,
}

/// A caller's loss. Privacy rests on the declared bounds, which are used as they are.
#[derive(Debug, Clone)]
pub struct Custom {
    functions: Arc<dyn Evaluate>,
    declared: Declaration,
}

/// Relative slack of the grid checks, for rounding in the caller's functions.
const SLACK: f64 = 1e-6;

/// Relative room of a `predictor_bound`, for the rounding of norms and predictors that just reach it.
pub(crate) const PREDICTOR_ROOM: f64 = 1e-11;

impl Custom {
    /// A loss with declared bounds.
    pub fn new(functions: Arc<dyn Evaluate>, declared: Declaration) -> Result<Self> {
        for (name, value) in [
            ("slope_bound", declared.slope_bound),
            ("curvature_bound", declared.curvature_bound),
            ("predictor_bound", declared.predictor_bound.unwrap_or(1.0)),
        ] {
            check_positive(name, value)?;
        }
        let strong = declared.strong_convexity;
        check(
            strong >= 0.0 && strong <= declared.curvature_bound,
            "strong_convexity",
            ">= 0 and at most curvature_bound",
            strong,
        )?;
        if let Targets::Interval { lower, upper } = declared.targets {
            if !lower.is_finite() || !upper.is_finite() {
                let value = if lower.is_finite() { upper } else { lower };
                return Err(Error::OutOfRange {
                    name: "target_bounds",
                    rule: "finite",
                    value,
                });
            }
            check(lower < upper, "target_bounds[0]", "less than target_bounds[1]", lower)?;
        }
        let loss = Self { functions, declared };
        for y in loss.target_grid() {
            loss.check_declaration(y)?;
        }
        Ok(loss)
    }

    /// Keeps the functions from predictors at which nothing is declared.
    fn check_predictors(&self, u: &[f64]) -> Result<()> {
        let Some(bound) = self.declared.predictor_bound else {
            return Ok(());
        };
        let greatest = bound * (1.0 + PREDICTOR_ROOM);
        match u.iter().find(|u| !(u.abs() <= greatest)) {
            None => Ok(()),
            Some(u) => Err(Error::Unsupported(format!(
                "the absolute value of a linear predictor must be at most predictor_bound={bound} for this loss, got {u}"
            ))),
        }
    }

    /// `l(u; y)` by row.
    fn values(&self, u: &[f64], y: &[f64]) -> Result<Vec<f64>> {
        let mut values = vec![0.0; u.len()];
        finite("value", &mut values, u, y, |o| self.functions.value(u, y, o))?;
        Ok(values)
    }

    fn target_grid(&self) -> Vec<f64> {
        match self.declared.targets {
            Targets::Signs => vec![-1.0, 1.0],
            Targets::Classes { count } => (0..count).map(|class| class as f64).collect(),
            Targets::Interval { lower, upper } => (0..=16)
                .map(|i| lower + (upper - lower) * f64::from(i) / 16.0)
                .collect(),
        }
    }

    /// Checks the declaration for one target on a grid of predictors.
    fn check_declaration(&self, y: f64) -> Result<()> {
        let u = predictor_grid(self.declared.predictor_bound);
        let targets = vec![y; u.len()];
        let (mut slope, mut curvature) = (vec![0.0; u.len()], vec![0.0; u.len()]);
        let value = self.values(&u, &targets)?;
        let derivatives = Batch::derivatives(&mut slope, &mut curvature);
        self.evaluate(&u, &targets, derivatives)?;
        let broken = |what: &str, at: usize| {
            Err(Error::Loss(format!(
                "{what} at linear predictor {}, target {y} (checked on a public grid)",
                u[at]
            )))
        };
        for i in 0..u.len() {
            if slope[i].abs() > self.declared.slope_bound * (1.0 + SLACK) {
                return broken(
                    &format!(
                        "|slope|={} above slope_bound={}",
                        slope[i].abs(),
                        self.declared.slope_bound
                    ),
                    i,
                );
            }
            if curvature[i] > self.declared.curvature_bound * (1.0 + SLACK) {
                return broken(
                    &format!(
                        "curvature={} above curvature_bound={}",
                        curvature[i], self.declared.curvature_bound
                    ),
                    i,
                );
            }
            let least = self.declared.strong_convexity;
            if least > 0.0 && curvature[i] < least * (1.0 - SLACK) {
                return broken(&format!("curvature={} below strong_convexity={least}", curvature[i]), i);
            }
            if curvature[i] < -self.declared.curvature_bound * SLACK {
                return broken(
                    &format!("negative curvature={} (the loss must be convex)", curvature[i]),
                    i,
                );
            }
        }
        if self.declared.one_signed {
            let tiny = self.declared.slope_bound * SLACK;
            if slope.iter().any(|s| *s > tiny) && slope.iter().any(|s| *s < -tiny) {
                return broken("a slope of both signs although one_signed=True was declared", 0);
            }
        }
        for i in 1..u.len() {
            let step = u[i] - u[i - 1];
            // Convexity: slope(a)·step ≤ value(b) - value(a) ≤ slope(b)·step.
            let rise = value[i] - value[i - 1];
            let slack = SLACK * (self.declared.slope_bound * step + value[i].abs() + value[i - 1].abs()) + 1e-9;
            if rise < slope[i - 1] * step - slack || rise > slope[i] * step + slack {
                return broken("a slope that is not the derivative of a convex function", i);
            }
            // The mean curvature between two near points lies near the curvatures at its ends.
            let bend = slope[i] - slope[i - 1];
            let slack = SLACK * self.declared.slope_bound + 1e-2 * self.declared.curvature_bound * step;
            if bend > self.declared.curvature_bound * step * (1.0 + SLACK) + SLACK * self.declared.slope_bound {
                return broken("a slope that grows faster than curvature_bound", i);
            }
            let (low, high) = (curvature[i].min(curvature[i - 1]), curvature[i].max(curvature[i - 1]));
            let near = step <= 0.011 && (high - low) < 0.2 * self.declared.curvature_bound;
            if near && (bend < low * step - slack || bend > high * step + slack) {
                return broken("a curvature that is not the derivative of the slope", i);
            }
        }
        Ok(())
    }
}

/// The public grid: steps of 0.01 on [-12, 12], then logarithmic out to ±10⁴; shrunk to where the bounds hold.
fn predictor_grid(bound: Option<f64>) -> Vec<f64> {
    let Some(bound) = bound else {
        return whole_grid();
    };
    let scale = (bound / 12.0).min(1.0);
    let mut grid = whole_grid();
    for u in &mut grid {
        *u *= scale;
    }
    grid.retain(|u| u.abs() < bound);
    grid.insert(0, -bound);
    grid.push(bound);
    grid
}

fn whole_grid() -> Vec<f64> {
    let tail = (1..=60).map(|i| 12.0 * (1e4_f64 / 12.0).powf(f64::from(i) / 60.0));
    let mut grid: Vec<f64> = tail.clone().map(|u| -u).collect();
    grid.reverse();
    grid.extend((-1200..=1200).map(|i| f64::from(i) / 100.0));
    grid.extend(tail);
    grid
}

/// Runs one of the caller's functions and checks that it returned finite values.
fn finite(
    name: &str,
    out: &mut [f64],
    u: &[f64],
    y: &[f64],
    call: impl FnOnce(&mut [f64]) -> Result<()>,
) -> Result<()> {
    call(out)?;
    match out.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(i) => Err(Error::Loss(format!(
            "{name}={} at linear predictor {}, target {}",
            out[i], u[i], y[i]
        ))),
    }
}

impl Loss for Custom {
    getters! { self =>
        name: &'static str = "custom";
        may_be_flat: bool = true;
        targets: Targets = self.declared.targets;
        predictor_bound: Option<f64> = self.declared.predictor_bound;
        curvature_floor: f64 = self.declared.strong_convexity;
        slope_bound: f64 = self.declared.slope_bound;
        curvature_bound: f64 = self.declared.curvature_bound;
        one_signed: bool = self.declared.one_signed;
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        self.check_predictors(u)?;
        if let Some(total) = out.total {
            *total = weighted_sum(self.values(u, y)?, out.weights);
        }
        if let Some(slope) = out.slope {
            finite("slope", slope, u, y, |o| self.functions.slope(u, y, o))?;
        }
        if let Some(curvature) = out.curvature {
            finite("curvature", curvature, u, y, |o| self.functions.curvature(u, y, o))?;
        }
        Ok(())
    }

    /// Assumed: 64 units in the last place.
    fn slope_error(&self, _radius: f64) -> f64 {
        64.0 * f64::EPSILON * self.declared.slope_bound
    }

    fn sup_slope(&self, _radius: f64) -> f64 {
        self.declared.slope_bound
    }

    fn sup_curvature(&self, _radius: f64) -> f64 {
        self.declared.curvature_bound
    }

    fn sup_weighted_sum(&self, k: f64, _radius: f64) -> f64 {
        k * self.declared.curvature_bound + self.declared.slope_bound * self.declared.slope_bound
    }

    fn sup_joint_norm(&self, alpha: f64, _radius: f64) -> f64 {
        (alpha * self.declared.curvature_bound).hypot(self.declared.slope_bound * self.declared.slope_bound)
    }

    /// Infinite: the values are in the caller's code.
    fn value_range(&self, _radius: f64) -> f64 {
        f64::INFINITY
    }
}
