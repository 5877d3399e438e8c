//! The multinomial logistic loss of K classes: `log Σ e^{u_k} - u_y` over one linear predictor for each class but the reference, whose
//! predictor is 0.
//!
//! Class 0 is the reference. With the probabilities p of the other classes the slope is the vector `r = p - e_y` and the curvature the
//! matrix `M = diag(p) - ppᵀ`: docs/proofs/multinomial.md has their bounds.

use std::f64::consts::{FRAC_PI_2, SQRT_2};

use super::sigmoid_family::up;
use super::{Batch, Loss, SeveralBatch, Targets};
use crate::{Error, Result};

/// Above this many classes the roundings of a curvature are more than `VALUE_ROUNDINGS` of its bound.
const MAX_CLASSES: usize = 20;

/// Cells of each angle over which the greatest loss in a ball is looked for.
const CELLS: usize = 64;

/// Multinomial logistic loss: slope bound √2, curvature bound 1/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multinomial {
    classes: usize,
}

impl Multinomial {
    /// The loss of so many classes, coded 0 (the reference), 1, ....
    pub fn new(classes: usize) -> Result<Self> {
        if (3..=MAX_CLASSES).contains(&classes) {
            return Ok(Self { classes });
        }
        Err(Error::OutOfRange {
            name: "the number of classes of the multinomial loss",
            rule: "from 3 to 20 (use the logistic loss for 2 classes)",
            value: classes as f64,
        })
    }

    /// `(K-2)/(K-1)`: bound on tr M, attained where the other classes are equally probable.
    fn greatest_trace(self) -> f64 {
        let others = self.classes as f64 - 1.0;
        up((others - 1.0) / others)
    }

    /// Bound on inf of the loss over `‖u‖ ≤ radius` and all classes: by Jensen's inequality.
    fn least_value(self, radius: f64) -> f64 {
        let others = self.classes as f64 - 1.0;
        let slope = (1.0 + (others - 1.0) / (others * others)).sqrt();
        (others * (-radius * slope).exp()).ln_1p()
    }
}

impl Loss for Multinomial {
    getters! { self =>
        name: &'static str = "multinomial";
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![self.classes as f64]));
        n_predictors: usize = self.classes - 1;
        value_at_zero: f64 = (self.classes as f64).ln() * (1.0 + 1e-9);
        slope_bound: f64 = up(SQRT_2);
        /// The greatest eigenvalue of M.
        curvature_bound: f64 = 0.5;
        one_signed: bool = false;
    }

    fn targets(&self) -> Targets {
        Targets::Classes { count: self.classes }
    }

    fn evaluate(&self, _: &[f64], _: &[f64], _: Batch<'_>) -> Result<()> {
        Err(Error::Unsupported(
            "this computation requires a loss with one linear predictor, got the multinomial loss, which has one for each class \
            except the reference"
                .into(),
        ))
    }

    fn evaluate_several(&self, u: &[f64], y: &[f64], out: SeveralBatch<'_>) -> Result<()> {
        let (n, others) = (y.len(), self.n_predictors());
        let mut total = 0.0;
        let mut p = [0.0; MAX_CLASSES];
        let p = &mut p[..others];
        for (i, &class) in y.iter().enumerate() {
            // Whole, as the targets were checked.
            let is_class = |k: usize| class.to_bits() == ((k + 1) as f64).to_bits();
            let greatest = (0..others).fold(0.0, |m: f64, k| m.max(u[k * n + i]));
            let mut sum = (-greatest).exp();
            for (k, p) in p.iter_mut().enumerate() {
                *p = (u[k * n + i] - greatest).exp();
                sum += *p;
            }
            for p in &mut *p {
                *p /= sum;
            }
            let of_class: f64 = (0..others).filter(|k| is_class(*k)).map(|k| u[k * n + i]).sum();
            let weight = out.weights.map_or(1.0, |w| w[i]);
            total += weight * (sum.ln() + (greatest - of_class));
            for (k, &pk) in p.iter().enumerate() {
                out.slopes[k * n + i] = if is_class(k) { pk - 1.0 } else { pk };
            }
            if let Some(curvatures) = &mut *out.curvatures {
                for (pair, (j, k)) in pairs(others).enumerate() {
                    let diagonal = if j == k { p[j] } else { 0.0 };
                    curvatures[pair * n + i] = diagonal - p[j] * p[k];
                }
            }
        }
        *out.total = total;
        Ok(())
    }

    /// Probabilities err by less than `(K + 9 + ln K)u` of themselves and `.37u`: docs/proofs/multinomial.md, "Rounding".
    fn slope_error(&self, _radius: f64) -> f64 {
        (self.classes as f64 + 8.0) * f64::EPSILON
    }

    fn self_concordance(&self) -> f64 {
        // For a function of several predictors no such step rule is proved here.
        f64::INFINITY
    }

    fn sup_slope(&self, _radius: f64) -> f64 {
        self.slope_bound()
    }

    /// sup tr M, which bounds the nuclear norm and with it the Frobenius norm.
    fn sup_curvature(&self, _radius: f64) -> f64 {
        self.greatest_trace()
    }

    /// sup of `k·tr M + ‖r‖²`: `3 - 1/(K-2)` at k = 2.
    fn sup_weighted_sum(&self, k: f64, _radius: f64) -> f64 {
        let at_two = 3.0 - 1.0 / (self.classes as f64 - 2.0);
        up(at_two + (k - 2.0).max(0.0) * self.greatest_trace())
    }

    /// sup of `√((α‖M‖_F)² + ‖r‖⁴)`, with `‖M‖_F ≤ 1/2` and `‖r‖² ≤ 2`.
    fn sup_joint_norm(&self, alpha: f64, _radius: f64) -> f64 {
        up((0.5 * alpha).hypot(2.0))
    }

    fn value_range(&self, radius: f64) -> f64 {
        let greatest = self.greatest_value(radius).unwrap_or(f64::INFINITY);
        up(greatest - self.least_value(radius)) + 16.0 * f64::EPSILON * greatest
    }

    /// Over `‖u‖ ≤ radius`, too great by `3e-4·radius` at most: docs/proofs/multinomial.md, "Validation". The class lies at `-radius·cos α`,
    /// one other at `radius·sin α·cos β`, and the rest, but the reference, share what is left of the sphere.
    fn greatest_value(&self, radius: f64) -> Result<f64> {
        let rest = self.classes as f64 - 3.0;
        let cell = FRAC_PI_2 / CELLS as f64;
        let mut greatest = 0.0_f64;
        for alpha in (0..=CELLS).map(|i| i as f64 * cell) {
            let (raised, others) = (radius * alpha.cos(), radius * alpha.sin());
            for beta in (0..=CELLS).map(|j| j as f64 * cell) {
                let one = others * beta.cos();
                let each = others * beta.sin() / rest.max(1.0).sqrt();
                // log(1 + e^raised·(1 + e^one + rest·e^each)), without overflow.
                let top = one.max(each);
                let sum = (-top).exp() + (one - top).exp() + rest * (each - top).exp();
                let sum = raised + top + sum.ln();
                greatest = greatest.max(sum + (-sum).exp().ln_1p());
            }
        }
        // The greatest value lies half a diagonal of a cell or less from a point of the grid, and the slope there is radial.
        Ok(up(greatest + 0.25 * SQRT_2 * radius * cell * cell))
    }
}

/// The pairs j ≤ k of so many predictors, in the order in which curvatures are written.
pub(crate) fn pairs(n_predictors: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n_predictors).flat_map(move |j| (j..n_predictors).map(move |k| (j, k)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Total, slopes and curvatures of one record.
    fn at(loss: Multinomial, u: &[f64], class: f64) -> (f64, Vec<f64>, Vec<f64>) {
        let mut total = 0.0;
        let mut slopes = vec![0.0; u.len()];
        let mut curvatures = vec![0.0; pairs(u.len()).count()];
        let out = SeveralBatch {
            total: &mut total,
            weights: None,
            slopes: &mut slopes,
            curvatures: &mut Some(&mut curvatures),
        };
        loss.evaluate_several(u, &[class], out).unwrap();
        (total, slopes, curvatures)
    }

    /// Predictors of many sizes, fixed.
    fn predictors(n: usize, draw: usize) -> Vec<f64> {
        let size = [0.1, 1.0, 5.0, 30.0][draw % 4];
        (0..n)
            .map(|k| size * (((draw * 31 + k * 17) as f64) * 0.737).sin())
            .collect()
    }

    #[test]
    fn derivatives_are_those_of_the_value() {
        let h = 1e-5;
        for classes in 3..=6 {
            let loss = Multinomial::new(classes).unwrap();
            for draw in 0..40 {
                let u = predictors(classes - 1, draw);
                let class = (draw % classes) as f64;
                let (_, slopes, curvatures) = at(loss, &u, class);
                for k in 0..classes - 1 {
                    let moved = |by: f64| {
                        let mut v = u.clone();
                        v[k] += by;
                        at(loss, &v, class)
                    };
                    let (up, down) = (moved(h), moved(-h));
                    assert!(((up.0 - down.0) / (2.0 * h) - slopes[k]).abs() < 1e-8);
                    for (pair, (i, j)) in pairs(classes - 1).enumerate() {
                        if j == k {
                            let slope = (up.1[i] - down.1[i]) / (2.0 * h);
                            assert!((slope - curvatures[pair]).abs() < 1e-8);
                        }
                    }
                }
            }
        }
    }

    /// With one class beside the reference the formulas are those of the logistic loss, whose bounds are its own: √2 and the rest take two.
    #[test]
    fn of_two_classes_the_loss_is_the_logistic_one() {
        let two = Multinomial { classes: 2 };
        for i in -40..=40 {
            let u = f64::from(i) * 0.7;
            for class in [0.0, 1.0] {
                let (total, slopes, curvatures) = at(two, &[u], class);
                let [mut value, mut slope, mut curvature] = [[0.0]; 3];
                let out = Batch {
                    total: Some(&mut value[0]),
                    slope: Some(&mut slope),
                    curvature: Some(&mut curvature),
                    ..Batch::default()
                };
                let logistic = super::super::Logistic;
                logistic.evaluate(&[u], &[2.0 * class - 1.0], out).unwrap();
                for (found, expected) in [(total, value[0]), (slopes[0], slope[0]), (curvatures[0], curvature[0])] {
                    assert!((found - expected).abs() <= 1e-15 * (1.0 + u.abs()), "{u} {class}");
                }
            }
        }
    }

    #[test]
    fn no_record_exceeds_a_bound_and_the_sharp_ones_are_attained() {
        for classes in 3..=6 {
            let loss = Multinomial::new(classes).unwrap();
            let [mut slope, mut frobenius, mut trace, mut sum, mut joint] = [0.0_f64; 5];
            let mut visit = |u: &[f64], class: usize| {
                let (_, r, c) = at(loss, u, class as f64);
                let square: f64 = r.iter().map(|r| r * r).sum();
                let (mut f, mut t) = (0.0, 0.0);
                for ((j, k), m) in pairs(classes - 1).zip(&c) {
                    f += if j == k { m * m } else { 2.0 * m * m };
                    t += if j == k { *m } else { 0.0 };
                }
                slope = slope.max(square.sqrt());
                frobenius = frobenius.max(f.sqrt());
                trace = trace.max(t);
                sum = sum.max(2.0 * t + square);
                joint = joint.max((4.0 * f.sqrt()).hypot(square));
                assert!(3.0 * t + square <= loss.sup_weighted_sum(3.0, 1.0));
                assert!(0.5 * t + square <= loss.sup_weighted_sum(0.5, 1.0));
            };
            for class in 0..classes {
                for draw in 0..2000 {
                    visit(&predictors(classes - 1, draw), class);
                }
                // Some classes are equally probable, the others impossible.
                for set in 1..1_usize << (classes - 1) {
                    let u: Vec<f64> = (0..classes - 1)
                        .map(|k| if set >> k & 1 == 1 { 50.0 } else { -50.0 })
                        .collect();
                    visit(&u, class);
                }
            }
            for (found, bound) in [
                (slope, loss.slope_bound()),
                (trace, loss.sup_curvature(1.0)),
                (sum, loss.sup_weighted_sum(2.0, 1.0)),
                (frobenius, 0.5),
            ] {
                assert!(
                    found <= bound && found > bound * (1.0 - 1e-9),
                    "{classes}: {found} {bound}"
                );
            }
            let bound = loss.sup_joint_norm(4.0, 1.0);
            assert!(joint <= bound && joint > 0.7 * bound, "{joint} {bound}");
        }
    }

    /// The same steps of a search from many places climb to the greatest and the least loss in the ball.
    #[test]
    fn the_range_in_a_ball_is_nearly_attained() {
        for classes in 3..=6 {
            let loss = Multinomial::new(classes).unwrap();
            for radius in [0.1, 1.0, 3.0, 9.0] {
                let in_ball = |u: Vec<f64>| -> Vec<f64> {
                    let norm = u.iter().map(|u| u * u).sum::<f64>().sqrt();
                    u.iter().map(|u| u * radius / norm).collect()
                };
                let (mut greatest, mut least) = (f64::MIN, f64::MAX);
                for draw in 0..60 {
                    let class = (draw % classes) as f64;
                    for direction in [1.0, -1.0] {
                        let mut u = in_ball(predictors(classes - 1, draw));
                        for _ in 0..300 {
                            let (value, slopes, _) = at(loss, &u, class);
                            greatest = greatest.max(value);
                            least = least.min(value);
                            let steepest = slopes.iter().map(|s| s * s).sum::<f64>().sqrt();
                            let moved = u
                                .iter()
                                .zip(&slopes)
                                .map(|(u, slope)| u + 0.2 * direction * radius * slope / (steepest + 1e-12));
                            u = in_ball(moved.collect());
                        }
                    }
                }
                let found = greatest - least;
                let claimed = loss.value_range(radius);
                assert!(
                    found <= claimed && found > 0.98 * claimed,
                    "{classes} {radius}: {found} {claimed}"
                );
                let bound = loss.greatest_value(radius).unwrap();
                assert!(greatest <= bound && bound < greatest + 3e-4 * radius);
            }
            assert!(loss.value_range(1e5).is_finite());
        }
    }

    #[test]
    fn extreme_predictors_have_finite_values() {
        let loss = Multinomial::new(3).unwrap();
        for u in [[800.0, -800.0], [-800.0, -800.0], [800.0, 800.0]] {
            for class in 0..3 {
                let (total, slopes, curvatures) = at(loss, &u, f64::from(class));
                assert!(total.is_finite() && total >= 0.0);
                assert!(slopes.iter().chain(&curvatures).all(|v| v.is_finite()));
            }
        }
    }

    #[test]
    fn other_numbers_of_classes_are_refused() {
        for classes in [0, 1, 2, 21] {
            assert!(Multinomial::new(classes).is_err());
        }
    }
}
