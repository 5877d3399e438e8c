//! Losses of (linear predictor, target): value, slope, curvature, and the public bounds that privacy rests on.
//!
//! A loss `l(u; y)` is convex and twice differentiable (almost everywhere) in the linear predictor `u = xᵀθ`. Margin losses
//! are `f(yu)` with `y` in {-1, 1}.

mod cells;
mod cloglog;
mod continued;
mod custom;
mod diameter;
#[cfg(test)]
mod examples;
mod hinge;
mod huber;
mod huber_hinge;
mod levels;
mod logistic;
mod multinomial;
mod negative_binomial;
mod normal_odds;
mod poisson;
mod probit;
mod quantile;
mod ranges;
mod rounding;
mod series;
mod sigmoid_family;
mod smooth_hinge;
mod soft_logistic;
mod squared;
mod targets;

pub use cloglog::CLogLog;
pub use continued::Continued;
pub(crate) use custom::PREDICTOR_ROOM;
pub use custom::{Custom, Declaration, Evaluate};
pub use hinge::Hinge;
pub use huber::Huber;
pub use huber_hinge::HuberHinge;
pub use levels::{LEVELS, level, levels_of};
pub use logistic::Logistic;
pub use multinomial::Multinomial;
pub(crate) use multinomial::pairs;
pub use negative_binomial::NegativeBinomial;
pub use normal_odds::NormalOdds;
pub use poisson::Poisson;
pub use probit::Probit;
pub use quantile::Quantile;
pub(crate) use rounding::{Extent, HINGE_MAX_DIM, always_converges, has_more_digits, hinge_floor};
pub use rounding::{gradient_rounding, hessian_rounding, moment_rounding, person_rounding, second_moment_rounding};
pub use series::{ROUGH_TERMS, SERIES_REACH, SERIES_ROWS, SERIES_TERMS, Series};
pub use smooth_hinge::SmoothHinge;
pub use soft_logistic::SoftLogistic;
pub use squared::Squared;
pub use targets::Targets;

use crate::Result;
use crate::linalg::Doubled;
#[cfg(test)]
use examples::examples;
use ranges::{deviance_range, margin_range, range_at_ends};
use sigmoid_family::up;

/// Where a batch evaluation writes; a field that is `None` is not wanted.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    /// `Σ w·l(u; y)` over the rows: the sum alone, because logarithms of many rows merge into one.
    pub total: Option<&'a mut f64>,
    /// The weights `w` of the total; `None`: all 1.
    pub weights: Option<&'a [f64]>,
    /// `l'(u; y)` by row.
    pub slope: Option<&'a mut [f64]>,
    /// `l''(u; y)` by row.
    pub curvature: Option<&'a mut [f64]>,
}

impl<'a> Batch<'a> {
    /// The total of all rows alone.
    pub fn of_total(total: &'a mut f64) -> Self {
        let total = Some(total);
        Self {
            total,
            ..Self::default()
        }
    }

    /// Slopes alone.
    pub fn slopes(slope: &'a mut [f64]) -> Self {
        let slope = Some(slope);
        Self {
            slope,
            ..Self::default()
        }
    }

    /// Slopes and curvatures.
    pub fn derivatives(slope: &'a mut [f64], curvature: &'a mut [f64]) -> Self {
        let curvature = Some(curvature);
        Self {
            curvature,
            ..Self::slopes(slope)
        }
    }
}

/// The same for a loss of several linear predictors: predictor k of row i stands at `k·n + i`, n the number of rows.
#[derive(Debug)]
pub struct SeveralBatch<'a> {
    /// `Σ w·l(u; y)` over the rows.
    pub total: &'a mut f64,
    /// The weights `w` of the total; `None`: all 1.
    pub weights: Option<&'a [f64]>,
    /// The derivative of l in each predictor.
    pub slopes: &'a mut [f64],
    /// The second derivatives in predictors j ≤ k: (0, 0), (0, 1), ..., (1, 1), ....
    pub curvatures: &'a mut Option<&'a mut [f64]>,
}

/// `Σ w·value`, with weights 1 where none are given.
fn weighted_sum(values: impl IntoIterator<Item = f64>, weights: Option<&[f64]>) -> f64 {
    match weights {
        None => values.into_iter().sum(),
        Some(weights) => values
            .into_iter()
            .zip(weights)
            .map(|(value, weight)| value * weight)
            .sum(),
    }
}

/// Evaluates a batch row by row: value, slope and curvature of (predictor, target).
fn by_row(
    [u, y]: [&[f64]; 2],
    out: Batch<'_>,
    value: impl Fn(f64, f64) -> f64,
    slope: impl Fn(f64, f64) -> f64,
    curvature: impl Fn(f64, f64) -> f64,
) {
    let rows = || u.iter().zip(y);
    if let Some(total) = out.total {
        *total = weighted_sum(rows().map(|(u, y)| value(*u, *y)), out.weights);
    }
    if let Some(slopes) = out.slope {
        for (o, (u, y)) in slopes.iter_mut().zip(rows()) {
            *o = slope(*u, *y);
        }
    }
    if let Some(curvatures) = out.curvature {
        for (o, (u, y)) in curvatures.iter_mut().zip(rows()) {
            *o = curvature(*u, *y);
        }
    }
}

/// `y·ln y`, 0 at 0: what a count adds to minus the logarithm of its own probability.
fn entropy(y: f64) -> f64 {
    if y == 0.0 { 0.0 } else { y * y.ln() }
}

/// The best constant predictor, and what the derivatives of a loss are there.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    /// Mean slope at the predictor 0 that makes it the best one.
    pub slope: f64,
    /// The predictor.
    pub predictor: f64,
    /// Mean curvature there.
    pub curvature: f64,
    /// The part by which slopes there differ from their mean, over that at 0.
    pub factor: f64,
}

/// The best constant predictor of a loss of two classes, by the predictor that a share of the positive one makes.
fn constant_of_classes(loss: &dyn Loss, slope: f64, least: f64, predictor: impl Fn(f64) -> f64) -> Option<Constant> {
    let at = |u: f64| {
        let (mut slopes, mut curvatures) = ([0.0; 2], [0.0; 2]);
        let out = Batch::derivatives(&mut slopes, &mut curvatures);
        loss.evaluate(&[u; 2], &[-1.0, 1.0], out).ok()?;
        Some((slopes, curvatures))
    };
    let ([negative, positive], _) = at(0.0)?;
    let range = negative - positive;
    let least = (least / range).min(0.5);
    let share = ((negative - slope) / range).clamp(least, 1.0 - least);
    let u = predictor(share);
    let (slopes, curvatures) = at(u)?;
    Some(Constant {
        slope: negative - share * range,
        predictor: u,
        curvature: (1.0 - share) * curvatures[0] + share * curvatures[1],
        factor: (slopes[0] - slopes[1]) / range,
    })
}

/// Roundings, each of `ε/2` of its supremum, by which a computed slope `l'(û)`, curvature `l''(û)` or squared slope can differ from the
/// exact one at the computed predictor û, wherever in a batch the row stands, beside [`Loss::tail_roundings`]. The losses of this module
/// need less (docs/certificates.md, "One record"); of a caller's slope and curvature 64 units in the last place are assumed.
pub const VALUE_ROUNDINGS: usize = 256;

/// A loss with its public bounds (docs/proofs/mechanisms.md, "Losses").
pub trait Loss: Send + Sync + std::fmt::Debug {
    /// Name in results.
    fn name(&self) -> &'static str;

    /// Name and parameter, by which two losses are known to be the same function; `None`: known to equal nothing.
    fn identity(&self) -> Option<(&'static str, Vec<f64>)> {
        None
    }

    /// Targets it accepts.
    fn targets(&self) -> Targets {
        Targets::Signs
    }

    /// Evaluates a batch; all slices have the length of `u`.
    ///
    /// # Errors
    /// [`crate::Error::Loss`] when caller's code fails or gives values that are not finite, [`crate::Error::Unsupported`] beyond
    /// [`Loss::predictor_bound`].
    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()>;

    /// Slopes and curvatures of which each depends on its own row alone: those of batches of one, bit by bit.
    ///
    /// # Errors
    /// Errors of [`Loss::evaluate`].
    fn evaluate_singly(&self, u: &[f64], y: &[f64], [slope, curvature]: [&mut [f64]; 2]) -> Result<()> {
        for k in 0..u.len() {
            let out = Batch::derivatives(&mut slope[k..=k], &mut curvature[k..=k]);
            self.evaluate(&u[k..=k], &y[k..=k], out)?;
        }
        Ok(())
    }

    /// Linear predictors of a record, each with a block of parameters of its own. Where there are several, the slope is a vector and the
    /// curvature a matrix; their bounds are then the Euclidean norm, and the greatest eigenvalue ([`Loss::curvature_bound`]) or the trace
    /// (the suprema under pure DP) or the Frobenius norm ([`Loss::sup_joint_norm`]).
    fn n_predictors(&self) -> usize {
        1
    }

    /// Evaluates a batch of a loss of several predictors.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for a loss of one.
    fn evaluate_several(&self, _u: &[f64], _y: &[f64], _out: SeveralBatch<'_>) -> Result<()> {
        Err(crate::Error::Unsupported(format!(
            "the {} loss must be given one linear predictor, got several",
            self.name()
        )))
    }

    /// The greatest loss at the origin over all targets, rounded up; infinite where it is not known.
    fn value_at_zero(&self) -> f64 {
        let value = |y: f64| {
            let mut total = f64::INFINITY;
            let out = Batch::of_total(&mut total);
            // A failure leaves infinity, the safe answer.
            let _ = self.evaluate(&[0.0], &[y], out);
            total * (1.0 + 1e-9)
        };
        let [lower, upper] = self.targets().ends();
        value(lower).max(value(upper))
    }

    /// Bound on the error of a computed slope at a given predictor of size at most the argument, wherever in a batch the row stands.
    ///
    /// The losses of this module err by less than 20 roundings of their slope bound (docs/certificates.md, "One record").
    fn slope_error(&self, _radius: f64) -> f64 {
        10.0 * f64::EPSILON * self.slope_bound()
    }

    /// Replaces each predictor by `l'(u; y)` within `8·DOUBLED_EPSILON` of the slope bound, or where that is infinite of the supremum over
    /// predictors of its size; `false`, and nothing is done, where the loss has no more digits than f64.
    fn doubled_slopes(&self, _u: &mut [Doubled], _y: &[f64]) -> bool {
        false
    }

    /// Roundings beyond [`VALUE_ROUNDINGS`] by which a curvature can err in units of its supremum over |u| ≤ `radius`, where that lies in a
    /// tail of the loss.
    fn tail_roundings(&self, _radius: f64) -> f64 {
        0.0
    }

    /// The series of the slope around the predictors of at most [`SERIES_ROWS`] rows, from the slopes there; `false`, and nothing is done,
    /// where there is none.
    fn slope_series(&self, _slopes: &[f64], _y: &[f64], _out: &mut Series) -> bool {
        false
    }

    /// Whether [`Loss::doubled_slopes`] has more digits than f64.
    fn has_doubled_slopes(&self) -> bool {
        self.doubled_slopes(&mut [], &[])
    }

    /// Whether l is a parabola `c/2·(u - y)²`: the whole risk is then known from one point.
    fn is_quadratic(&self) -> bool {
        false
    }

    /// Whether the loss is, up to a factor, the negative logarithm of a likelihood: the gradients' covariance is then a multiple of the
    /// Hessian's data part if the model holds (information equality).
    fn is_likelihood(&self) -> bool {
        false
    }

    /// Whether rows may have slopes but almost no curvature at predictors near 0: then the gradients' covariance says nothing of the Hessian's
    /// data part, which may vanish.
    fn may_be_flat(&self) -> bool {
        false
    }

    /// Whether l' jumps, so that l'' does not exist everywhere: then `curvature` is 0 and there is no Hessian to speak of.
    fn kinked(&self) -> bool {
        false
    }

    /// A loss whose bounds hold only for predictors up to this size; it is never evaluated beyond. `None`: they hold for all.
    fn predictor_bound(&self) -> Option<f64> {
        None
    }

    /// The predictor at which the mean slope is 0, and the curvature there, by the mean slope at the predictor 0, in (-1/2, 1/2): log-odds
    /// of a share. `None` where more than this slope decides it.
    fn null_predictor(&self, _slope: f64) -> Option<(f64, f64)> {
        None
    }

    /// The best constant predictor, by the mean slope at the predictor 0, of which less than `least` is not told from noise. `None` where more
    /// than this slope decides it.
    fn best_constant(&self, slope: f64, least: f64) -> Option<Constant> {
        // As far from a single class as the noise lets be told.
        let least = least.min(0.5);
        let slope = slope.clamp(least - 0.5, 0.5 - least);
        let (predictor, curvature) = self.null_predictor(slope)?;
        Some(Constant {
            slope,
            predictor,
            curvature,
            factor: 1.0,
        })
    }

    /// Public predictors beyond which no reasonable model puts a record of this target, one of them infinite: from there on a [`Continued`]
    /// loss is a straight line. `None` for losses that need none, because their slopes and curvatures are bounded.
    fn continued_beyond(&self, _y: f64) -> Option<[f64; 2]> {
        None
    }

    /// Whether it is [`Continued`].
    fn is_continued(&self) -> bool {
        false
    }

    /// Slope that many records of a rare class have, at most [`Loss::slope_bound`].
    fn usual_slope(&self) -> f64 {
        self.slope_bound()
    }

    /// Slope at the predictor 0 that few records exceed: to it the gradient is held that starts Newton steps.
    fn usual_slope_at_zero(&self) -> f64 {
        self.sup_slope(0.0)
    }

    /// Longest step of Newton's method, in standard deviations of the predictor over the rows, on the way to the last one.
    fn longest_step(&self) -> f64 {
        3.0
    }

    /// Roundings beyond [`VALUE_ROUNDINGS`] by which a curvature can err in units of its bound, whatever the predictor.
    fn bound_roundings(&self) -> f64 {
        0.0
    }

    /// A declared lower bound on l'', 0 where there is none.
    fn curvature_floor(&self) -> f64 {
        0.0
    }

    /// `L`: bound on |l'| over all predictors and targets; infinite where only a bounded domain gives one.
    fn slope_bound(&self) -> f64;

    /// `t`: bound on l'' over all predictors and targets.
    fn curvature_bound(&self) -> f64;

    /// A `c` with `|l'''| ≤ c·l''` everywhere, which bounds the steps of Newton's method; infinite where none is known.
    fn self_concordance(&self) -> f64 {
        f64::INFINITY
    }

    /// A `c` with `l'' ≤ c·(L - |l'|)` everywhere, L the slope bound: a record that pulls with all its might does not curve the risk.
    /// Infinite where none is known.
    fn curvature_slack(&self) -> f64 {
        f64::INFINITY
    }

    /// Over how far a predictor moves before the curvature changes: a quarter of the range of the slopes over the greatest curvature. For
    /// hinges and losses of targets this is the width of their rounding, or a half of it.
    fn curvature_width(&self) -> f64 {
        let range = self.slope_bound() * if self.one_signed() { 1.0 } else { 2.0 };
        range / (4.0 * self.curvature_bound())
    }

    /// Whether, for a given target, l' never changes sign.
    fn one_signed(&self) -> bool;

    /// sup |l'| over |u| ≤ `radius`.
    fn sup_slope(&self, radius: f64) -> f64;

    /// sup l'' over |u| ≤ `radius`.
    fn sup_curvature(&self, radius: f64) -> f64;

    /// sup of `k·l'' + l'²` over |u| ≤ `radius` (joint release under pure DP).
    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64;

    /// sup of √((α·l'')² + l'⁴) over |u| ≤ `radius` (joint release by Gaussian noise).
    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64;

    /// sup of `|l'| + tilt·z` over |z| ≤ `radius`, rounded up, where the margin z is the predictor with the sign with which the loss falls;
    /// infinite where it is not known.
    fn sup_tilted_slope(&self, _tilt: f64, _radius: f64) -> f64 {
        f64::INFINITY
    }

    /// Bound on the slope that pushes against a margin, of all records with it: it falls as the margin grows, because losses are convex.
    /// Infinite where it is not known.
    fn greatest_push(&self, _margin: f64) -> f64 {
        f64::INFINITY
    }

    /// `t` where it is finite, else sup l'' over |u| ≤ `radius`.
    fn curvature_within(&self, radius: f64) -> f64 {
        let bound = self.curvature_bound();
        if bound.is_finite() {
            bound
        } else {
            self.sup_curvature(radius)
        }
    }

    /// Greatest distance `‖l'(xᵀθ; y)x - l'(zᵀθ; v)z‖` between the gradients of two records with `‖x‖, ‖z‖ ≤ row_norm` at one θ with
    /// `‖θ‖·row_norm ≤ radius`, rounded up: twice the greatest gradient, less where [`Loss::sup_tilted_slope`] or
    /// [`Loss::greatest_push`] is known.
    fn gradient_diameter(&self, row_norm: f64, radius: f64) -> f64 {
        let sup = |tilt: f64| self.sup_tilted_slope(tilt, radius);
        let greatest = self.sup_slope(radius);
        let by_lines = up(diameter::least(greatest, radius, sup, diameter::below_line));
        let by_cells = cells::greatest_distance(|margin| self.greatest_push(margin), radius);
        row_norm * by_lines.min(by_cells)
    }

    /// Greatest length of `s·x - s'·z` over corners of a region that holds the slopes of the two records at every such θ, for a loss whose
    /// slope has one sign for each target: [`Loss::gradient_diameter`] or a little more.
    fn gradient_corner(&self, row_norm: f64, radius: f64) -> f64 {
        let sup = |tilt: f64| self.sup_tilted_slope(tilt, radius);
        let greatest = self.sup_slope(radius);
        let bound = |offset: f64, rise: f64| diameter::corner_below_line(greatest, offset, rise);
        row_norm * up(diameter::least(greatest, radius, sup, bound))
    }

    /// sup of `-l'(u; y)·u` over all predictors and targets, rounded up: the most that one record can hold against a shrinking of the
    /// parameters, which bounds the norm of a minimiser (docs/proofs/domains.md, "The ball of the regulariser"). Infinite where none is known.
    fn greatest_pull(&self) -> f64 {
        f64::INFINITY
    }

    /// sup minus inf of l over |u| ≤ `radius` and all targets, rounded up; infinite where it is not known.
    fn value_range(&self, radius: f64) -> f64;

    /// The greatest loss over |u| ≤ `radius` and all targets: losses are convex in the predictor and in the target, so it is at a corner.
    ///
    /// # Errors
    /// As [`Loss::evaluate`].
    fn greatest_value(&self, radius: f64) -> Result<f64> {
        let mut greatest = 0.0;
        for u in [-radius, radius] {
            for y in self.targets().ends() {
                let mut total = 0.0;
                let out = Batch::of_total(&mut total);
                self.evaluate(&[u], &[y], out)?;
                if !(total <= greatest) {
                    greatest = total;
                }
            }
        }
        Ok(greatest)
    }
}

#[cfg(test)]
mod likelihood_tests;
#[cfg(test)]
mod tail_tests;
#[cfg(test)]
mod tests;
