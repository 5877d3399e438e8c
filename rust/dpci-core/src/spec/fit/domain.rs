//! The domain of the parameters, and the bounds of the loss on it: what a bounded domain changes in a calibration.

use super::calibrate::shape;
use super::{Choices, Spec};
use crate::privacy::{Calibration, DataBounds, Neighbors, Perturbation};
use crate::{Error, Result};

/// Bounds of the loss over all records and all parameters of the domain.
#[derive(Debug, Clone, Copy)]
pub(in crate::spec) struct Domain {
    /// `L`.
    pub(super) slope_bound: f64,
    /// How far the gradient of the sum of losses moves between neighbours at parameters that the proofs compare: 2LR at most, LR under
    /// add/remove.
    pub(super) shift: f64,
    /// Longest shift of the noise at the corners of the slopes of two records, in units of LR: what Gaussian objective perturbation looks
    /// at; 2 at most.
    pub(super) pair: f64,
    /// `t`; infinite for a loss with a kink.
    pub(super) curvature_bound: f64,
    /// Bound on the trace of the curvature: `t`, and more for a loss of several linear predictors.
    pub(super) curvature_trace: f64,
    /// Strong convexity of the mean loss for every data set, beyond λ.
    pub(super) extra_convexity: f64,
}

/// Validated choices with the bounds that hold for them: what a calibration rests on.
#[derive(Debug, Clone, Copy)]
pub(in crate::spec) struct Bounded<'a> {
    pub(super) choices: &'a Choices,
    pub(super) bounds: &'a DataBounds,
    pub(super) domain: &'a Domain,
}

/// Relative room for rows that the caller normalised in floating point, as in the check of their norms.
pub(crate) const ROUNDING_ROOM: f64 = 1e-9;

impl Domain {
    /// The bounds for validated scalars.
    pub(super) fn new(c: &Choices, bounds: &DataBounds) -> Result<Self> {
        if c.terms.has_far_rows()
            && let Some(radius) = c.radius
        {
            return Err(Error::Unsupported(format!(
                "rows beyond their bounds can weigh less only without a radius, which bounds no predictor of theirs, got \
                radius={radius}"
            )));
        }
        let greatest = c.radius.map(|w| greatest_predictor(bounds, w));
        if let Some(declared) = c.loss.predictor_bound()
            && !greatest.is_some_and(|u| u <= declared * (1.0 + 16.0 * f64::EPSILON))
        {
            return Err(Error::Unsupported(format!(
                "a loss with predictor_bound={declared} requires a radius of at most {}, which is the bound divided by the \
                bound on the norm of a \
                 row (intercept included), got radius={}",
                declared / bounds.row_norm,
                c.radius.map_or_else(|| "None".into(), |w| w.to_string()),
            )));
        }
        let mut slope_bound = c.loss.slope_bound();
        let mut curvature_bound = c.loss.curvature_bound();
        if let Some(u) = greatest {
            // The published constants do not look at the domain where they can do without.
            if c.calibration == Calibration::Tight || !slope_bound.is_finite() {
                slope_bound = slope_bound.min(c.loss.sup_slope(u));
                curvature_bound = curvature_bound.min(c.loss.sup_curvature(u));
            }
        }
        if !slope_bound.is_finite() {
            let name = c.loss.name();
            return Err(Error::Unsupported(match c.radius {
                None => format!(
                    "the {name} loss requires radius, a public bound on the norm of the parameters, because its slope is \
                    bounded only on a bounded domain, got radius=None"
                ),
                Some(radius) => format!(
                    "the {name} loss requires a radius on which its slope is within the range of double precision, got \
                    radius={radius} with rows of norm up to {} (pass a smaller radius)",
                    bounds.row_norm
                ),
            }));
        }
        let mut shift = bounds.objective_shift(slope_bound);
        if (bounds.neighbors, c.calibration) == (Neighbors::ReplaceOne, Calibration::Tight) {
            let reach = if c.terms.has_far_rows() {
                f64::INFINITY
            } else {
                greatest.unwrap_or(f64::INFINITY).min(minimiser_reach(c, bounds))
            };
            if reach.is_finite() {
                shift = shift.min(c.loss.gradient_diameter(bounds.row_norm, reach));
            }
        }
        let pair = match (greatest, bounds.neighbors, c.calibration) {
            (Some(u), Neighbors::ReplaceOne, Calibration::Tight) if c.loss.one_signed() => {
                match shape(c)? {
                    None => c.loss.gradient_corner(1.0, u) / slope_bound * (1.0 + 2.0 * f64::EPSILON),
                    // In the metric C of blocks rows have norm 1 and parameters at most W times its greatest root, which is at least RW.
                    Some(blocks) => {
                        let greatest = blocks.metric().into_iter().fold(0.0, f64::max).sqrt();
                        let reach = c.radius.unwrap_or(f64::INFINITY) * greatest * (1.0 + 16.0 * f64::EPSILON);
                        // The slopes up to there may be greater, and are then corners of their own.
                        let corner = c.loss.gradient_corner(1.0, reach.max(u));
                        corner.max(c.loss.sup_slope(reach.max(u))) / slope_bound * (1.0 + 2.0 * f64::EPSILON)
                    }
                }
            }
            _ => 2.0,
        };
        // A subnormal number has lost digits, which no relative rounding covers.
        if !shift.is_normal() {
            return Err(Error::OutOfRange {
                name: "the bound on the change of the gradient",
                rule: "a normal number in double precision (the bounds on rows or targets, or the radius, are too great or too \
                small)",
                value: shift,
            });
        }
        Ok(Self {
            slope_bound,
            shift,
            pair,
            curvature_bound,
            // Several linear predictors have no ball, and their supremum is that of the trace.
            curvature_trace: if c.loss.n_predictors() == 1 {
                curvature_bound
            } else {
                c.loss.sup_curvature(f64::INFINITY)
            },
            extra_convexity: extra_convexity(c, bounds)?,
        })
    }
}

/// `R·W`, rounded up: no record's linear predictor is greater.
fn greatest_predictor(bounds: &DataBounds, radius: f64) -> f64 {
    bounds.row_norm * radius * (1.0 + 4.0 * f64::EPSILON)
}

/// Bound on the predictors of a minimiser, the one place where output perturbation compares gradients: it lies within `√(m/λ)` for
/// every data set of n records, m the greatest pull of one, with weights times its mass (docs/proofs/domains.md, "The ball of the
/// regulariser"). Objective perturbation
/// compares gradients wherever its unbounded noise leads.
fn minimiser_reach(c: &Choices, bounds: &DataBounds) -> f64 {
    match c.perturbation {
        Perturbation::Objective => f64::INFINITY,
        Perturbation::Output => {
            let pull = bounds.mass * c.loss.greatest_pull();
            greatest_predictor(bounds, (pull / c.l2_strength).sqrt())
        }
    }
}

/// Addend of λ from a declared `l'' ≥ m`: `m·x²` for one parameter whose rows all have size `x`. With two parameters or more a
/// function of the linear predictor is flat in some direction (docs/proofs/domains.md, "Strongly convex losses").
fn extra_convexity(c: &Choices, bounds: &DataBounds) -> Result<f64> {
    let floor = c.loss.curvature_floor();
    if floor == 0.0 {
        return Ok(0.0);
    }
    let refused = |rule: &str, value: String| {
        Err(Error::Unsupported(format!(
            "a loss with strong_convexity requires {rule}, got {value}"
        )))
    };
    if bounds.params > 1 {
        return refused(
            "one parameter, because a function of one linear predictor is not strongly convex in several",
            format!("{} parameters", bounds.params),
        );
    }
    if c.perturbation == Perturbation::Objective {
        return refused("mechanism=\"output\"", "mechanism=\"objective\"".into());
    }
    if bounds.neighbors == Neighbors::AddRemove {
        return refused(
            "neighbors=\"replace_one\", because its bounds depend on the number of rows",
            "neighbors=\"add_remove\"".into(),
        );
    }
    Ok(floor * least_row_norm(c).powi(2) * (1.0 - 4.0 * f64::EPSILON))
}

/// Least size of a row where strong convexity counts on it: the intercept alone, or `row_norm` up to rounding.
pub(crate) fn least_row_norm(c: &Choices) -> f64 {
    c.intercept.unwrap_or(c.rows.norm() * (1.0 - 2.0 * ROUNDING_ROOM))
}

impl Spec {
    /// The greatest margin at which moments can be taken.
    pub(crate) fn greatest_margin(&self) -> f64 {
        let radius = self.choices.radius;
        radius.map_or(f64::INFINITY, |w| greatest_predictor(&self.bounds, w))
    }
}
