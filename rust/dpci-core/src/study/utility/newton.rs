//! Predicts the parameters at other budgets from the measuring point, by Newton steps on their objectives.
//!
//! 1. The first step needs no data: gradient and Hessian at the measuring point are known, the noise and λ changed.
//! 2. Later steps work on sixteen budgets side by side: one pass gives gradients and curvatures at the points reached.
//! 3. Conjugate gradients, preconditioned by the Hessian at the measuring point, solve for the steps: one pass for each
//!    iteration, where exact Hessians would need sixteen Gram matrices.

use super::passes::{Slopes, interleave, lane};
use super::{Anchor, Level, Model, Utility, check_finite};
use crate::Result;
use crate::exec::Executor;
use crate::linalg::{Cholesky, LANES, Lane, vector};
use crate::spec::Spec;

/// Relative residual, in the norm of the inverse preconditioner, at which a step is solved for. Its error adds that share of a
/// later step, which is itself a small part of the first.
const STEP_TOLERANCE: f64 = 1e-3;

/// Iterations after which a step is taken as it is.
const MAX_ITERATIONS: usize = 60;

impl Utility {
    /// Parameters at the levels of noise and λ of other specs, the draw of the noise unchanged, after `n_steps` ≥ 1 Newton
    /// steps from the measuring point. Exact for output perturbation.
    pub fn predict(
        &self,
        anchor: &Anchor,
        specs: &[&Spec],
        n_steps: usize,
        exec: &Executor<'_>,
    ) -> Result<Vec<Vec<f64>>> {
        let levels: Vec<Level> = specs.iter().map(|spec| Level::of(spec)).collect();
        let Some(model) = &anchor.model else {
            let move_to = |level: &Level| {
                let change = level.scale - anchor.level.scale;
                let moved = anchor.params.iter().zip(&anchor.noise);
                moved.map(|(p, u)| p + change * u).collect()
            };
            return Ok(levels.iter().map(move_to).collect());
        };
        let mut points = Vec::with_capacity(levels.len());
        for levels in levels.chunks(LANES) {
            let group = Group {
                utility: self,
                anchor,
                model,
                levels,
                factors: self.factors(model, levels)?,
            };
            points.extend(group.predict(n_steps, exec)?);
        }
        Ok(points)
    }

    /// Factors of the Hessian at the measuring point, one for each λ and where it is used: most mechanisms have only one λ.
    fn factors(&self, model: &Model, levels: &[Level]) -> Result<(Vec<Cholesky>, Vec<usize>)> {
        let mut known: Vec<u64> = Vec::new();
        let mut factors = Vec::new();
        let mut used = Vec::with_capacity(levels.len());
        for level in levels {
            let bits = level.l2_strength.to_bits();
            let at = known.iter().position(|k| *k == bits);
            if at.is_none() {
                known.push(bits);
                factors.push(model.factor(level.l2_strength, self.n_params())?);
            }
            used.push(at.unwrap_or(known.len() - 1));
        }
        Ok((factors, used))
    }
}

/// At most [`LANES`] budgets.
struct Group<'g> {
    utility: &'g Utility,
    anchor: &'g Anchor,
    model: &'g Model,
    levels: &'g [Level],
    factors: (Vec<Cholesky>, Vec<usize>),
}

/// Conjugate gradients of one budget.
struct Descent {
    step: Vec<f64>,
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// Squared norm of the residual now, and that at which to stop.
    size: f64,
    goal: f64,
}

impl Group<'_> {
    fn factor(&self, l: usize) -> &Cholesky {
        &self.factors.0[self.factors.1[l]]
    }

    /// `-∇J` of one budget, less the residual of the measuring point.
    fn descent(&self, l: usize, params: &[f64], gradient: &[f64]) -> Vec<f64> {
        let own = self
            .utility
            .perturbed_gradient(self.anchor, self.levels[l], params, gradient);
        let residual = &self.model.residual;
        residual.iter().zip(own).map(|(r, g)| r - g).collect()
    }

    fn predict(&self, n_steps: usize, exec: &Executor<'_>) -> Result<Vec<Vec<f64>>> {
        let mut points: Vec<Vec<f64>> = (0..self.levels.len())
            .map(|l| {
                let params = &self.anchor.params;
                let mut point = self.descent(l, params, &self.model.gradient);
                self.factor(l).solve_in_place(&mut point);
                point.iter_mut().zip(params).for_each(|(p, t)| *p += t);
                point
            })
            .collect();
        for _ in 1..n_steps {
            for point in &points {
                check_finite("a predicted parameter", point)?;
            }
            let slopes = self.utility.slopes(&interleave(&points), exec)?;
            let steps = self.solve(&points, &slopes, exec)?;
            for (point, step) in points.iter_mut().zip(steps) {
                point.iter_mut().zip(step).for_each(|(p, s)| *p += s);
            }
        }
        Ok(points)
    }

    /// The Newton step of each budget at its point.
    fn solve(&self, points: &[Vec<f64>], slopes: &Slopes, exec: &Executor<'_>) -> Result<Vec<Vec<f64>>> {
        let mut descents: Vec<Descent> = points
            .iter()
            .enumerate()
            .map(|(l, point)| {
                let residual = self.descent(l, point, &lane(&slopes.gradients, l));
                Descent::new(residual, self.factor(l))
            })
            .collect();
        for _ in 0..MAX_ITERATIONS {
            if descents.iter().all(Descent::is_done) {
                break;
            }
            let directions: Vec<Vec<f64>> = descents.iter().map(|d| d.direction.clone()).collect();
            let directions: Vec<Lane> = interleave(&directions);
            let products = self.utility.hessian_products(slopes, &directions, exec)?;
            for (l, descent) in descents.iter_mut().enumerate() {
                let l2_strength = self.levels[l].l2_strength;
                let mut product = lane(&products, l);
                for (p, d) in product.iter_mut().zip(&descent.direction) {
                    *p += l2_strength * d;
                }
                descent.advance(&product, self.factor(l));
            }
        }
        Ok(descents.into_iter().map(|d| d.step).collect())
    }
}

impl Descent {
    fn new(residual: Vec<f64>, factor: &Cholesky) -> Self {
        let direction = factor.solve(&residual);
        let size = vector::dot(&residual, &direction);
        Self {
            step: vec![0.0; residual.len()],
            residual,
            direction,
            size,
            goal: size * STEP_TOLERANCE.powi(2),
        }
    }

    /// Also where a size is not a number, which no iteration would mend.
    fn is_done(&self) -> bool {
        !(self.size > self.goal)
    }

    /// One iteration, given the product of the Hessian with the direction; none once done.
    fn advance(&mut self, product: &[f64], factor: &Cholesky) {
        if self.is_done() {
            return;
        }
        let length = self.size / vector::dot(&self.direction, product);
        for (s, d) in self.step.iter_mut().zip(&self.direction) {
            *s += length * d;
        }
        for (r, p) in self.residual.iter_mut().zip(product) {
            *r -= length * p;
        }
        let next = factor.solve(&self.residual);
        let size = vector::dot(&self.residual, &next);
        let ratio = size / self.size;
        for (d, n) in self.direction.iter_mut().zip(&next) {
            *d = n + ratio * *d;
        }
        self.size = size;
    }
}
