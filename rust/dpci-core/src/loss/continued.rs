//! A loss that goes on as a straight line beyond public predictors: its slope and its curvature are bounded everywhere.

use std::sync::Arc;

use super::sigmoid_family::up;
use super::{Batch, Constant, Loss, Targets};
use crate::Result;

/// Rows at once.
const BLOCK: usize = 128;

/// Slopes change no more beyond this predictor.
const FAR: f64 = 1e6;

/// A loss within its [`Loss::continued_beyond`], and its tangent beyond: convex, because slopes do not fall and curvatures there are 0.
#[derive(Debug, Clone)]
pub struct Continued {
    loss: Arc<dyn Loss>,
    /// Size that no predictor within the reach exceeds where slope or curvature have no bound.
    reach: f64,
    slope_bound: f64,
    curvature_bound: f64,
}

impl Continued {
    /// The continued loss; `None` for a loss that has no reach.
    pub fn new(loss: &Arc<dyn Loss>) -> Option<Self> {
        let ends = loss.targets().ends().map(|y| loss.continued_beyond(y));
        let [Some(of_lower), Some(of_upper)] = ends else {
            return None;
        };
        let finite = of_lower.into_iter().chain(of_upper);
        let reach = finite
            .filter(|end| end.is_finite())
            .fold(0.0, |a: f64, b| a.max(b.abs()));
        let mut found = Self {
            reach,
            slope_bound: 0.0,
            curvature_bound: loss.sup_curvature(reach).min(loss.curvature_bound()),
            loss: Arc::clone(loss),
        };
        found.slope_bound = loss.sup_slope(reach).max(found.at_ends(FAR, |slope, _| slope));
        Some(found)
    }

    /// The greatest of a function of (|slope|, curvature) at the predictors of this size.
    fn at_ends(&self, radius: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
        let ends = self.loss.targets().ends();
        let of = |u: f64, y: f64| {
            let (mut slope, mut curvature) = ([f64::INFINITY], [f64::INFINITY]);
            let out = Batch::derivatives(&mut slope, &mut curvature);
            // A failure leaves infinity, the safe answer.
            let _ = self.evaluate(&[u], &[y], out);
            f(slope[0].abs(), curvature[0])
        };
        let pairs = ends.into_iter().flat_map(|y| [(radius, y), (-radius, y)]);
        up(pairs.map(|(u, y)| of(u, y)).fold(0.0, f64::max))
    }

    /// The nearest predictor within the reach.
    fn within(&self, u: f64, y: f64) -> f64 {
        // A NaN stays one.
        match self.loss.continued_beyond(y) {
            Some([low, _]) if u < low => low,
            Some([_, high]) if u > high => high,
            _ => u,
        }
    }
}

impl Loss for Continued {
    getters! { self =>
        name: &'static str = self.loss.name();
        is_likelihood: bool = self.loss.is_likelihood();
        targets: Targets = self.loss.targets();
        bound_roundings: f64 = self.loss.tail_roundings(self.reach);
        slope_bound: f64 = self.slope_bound;
        is_continued: bool = true;
        usual_slope: f64 = self.loss.usual_slope().min(self.slope_bound);
        usual_slope_at_zero: f64 = self.loss.usual_slope_at_zero();
        /// Exponential curvatures: a step from below goes too far by a power of e.
        longest_step: f64 = 1.0;
        curvature_bound: f64 = self.curvature_bound;
        curvature_width: f64 = self.loss.curvature_width();
        one_signed: bool = self.loss.one_signed();
        /// Beyond the reach slopes point back to 0.
        greatest_pull: f64 = self.loss.greatest_pull();
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        let Batch {
            mut total,
            weights,
            mut slope,
            mut curvature,
        } = out;
        if let Some(total) = &mut total {
            **total = 0.0;
        }
        let (mut within, mut slopes) = ([0.0; BLOCK], [0.0; BLOCK]);
        for start in (0..u.len()).step_by(BLOCK) {
            let range = start..(start + BLOCK).min(u.len());
            let (u, y) = (&u[range.clone()], &y[range.clone()]);
            let (within, slopes) = (&mut within[..u.len()], &mut slopes[..u.len()]);
            for ((w, u), y) in within.iter_mut().zip(u).zip(y) {
                *w = self.within(*u, *y);
            }
            let weights = weights.map(|weights| &weights[range.clone()]);
            let mut sum = 0.0;
            self.loss.evaluate(
                within,
                y,
                Batch {
                    total: total.is_some().then_some(&mut sum),
                    weights,
                    slope: Some(slopes),
                    curvature: curvature.as_mut().map(|all| &mut all[range.clone()]),
                },
            )?;
            let beyond = u.iter().zip(&*within).map(|(u, w)| u - w);
            for (i, beyond) in beyond.enumerate().filter(|(_, beyond)| *beyond != 0.0) {
                sum += weights.map_or(1.0, |weights| weights[i]) * slopes[i] * beyond;
                if let Some(all) = &mut curvature {
                    all[start + i] = 0.0;
                }
            }
            if let Some(total) = &mut total {
                **total += sum;
            }
            if let Some(all) = &mut slope {
                all[range].copy_from_slice(slopes);
            }
        }
        Ok(())
    }

    fn slope_error(&self, _radius: f64) -> f64 {
        self.loss.slope_error(self.reach)
    }

    fn tail_roundings(&self, radius: f64) -> f64 {
        self.loss.tail_roundings(radius.min(self.reach))
    }

    fn best_constant(&self, slope: f64, least: f64) -> Option<Constant> {
        self.loss.best_constant(slope, least)
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        let within = self.loss.sup_slope(radius.min(self.reach));
        within.max(self.at_ends(radius.min(FAR), |slope, _| slope))
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        self.loss
            .sup_curvature(radius.min(self.reach))
            .min(self.curvature_bound)
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        let within = self.loss.sup_weighted_sum(k, radius.min(self.reach));
        within.max(self.at_ends(radius.min(FAR), |slope, curvature| k * curvature + slope * slope))
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        let within = self.loss.sup_joint_norm(alpha, radius.min(self.reach));
        within.max(self.at_ends(radius.min(FAR), |slope, curvature| {
            (alpha * curvature).hypot(slope * slope)
        }))
    }

    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        if radius <= self.reach {
            self.loss.sup_tilted_slope(tilt, radius)
        } else {
            f64::INFINITY
        }
    }

    fn greatest_push(&self, margin: f64) -> f64 {
        self.loss.greatest_push(margin).min(self.slope_bound)
    }

    fn value_range(&self, radius: f64) -> f64 {
        if self.one_signed() {
            super::range_at_ends(self, radius)
        } else {
            super::deviance_range(self, radius, self.targets().ends()[1])
        }
    }
}
