//! Passes over the rows: at sixteen points side by side, and with the Hessian at one point.

use super::{Metric, Utility};
use crate::Result;
use crate::error::check_length;
use crate::exec::{BLOCK, Executor, blocks, matrix_chunks};
use crate::linalg::{GramAccumulator, LANES, Lane, LaneRows, PackedBlock, lanes_spread, vector};
use crate::loss::Batch;
use crate::study::lane_sums::{BLOCK as LANE_BLOCK, add_rows, for_each_block, predict_rows};

/// Rows whose predictors are gathered before a metric looks at them: losses in the caller's code are slow to call.
const METRIC_BLOCK: usize = 512;

/// Slopes of the risk at several points: gradients, and the curvature of every row by chunk for products with the Hessian.
pub(super) struct Slopes {
    pub(super) gradients: Vec<Lane>,
    curvature: Vec<Vec<Lane>>,
}

/// At most [`LANES`] vectors, entry by entry; missing ones repeat the last.
pub(super) fn interleave(points: &[Vec<f64>]) -> Vec<Lane> {
    let dim = points.first().map_or(0, Vec::len);
    let entry = |j: usize| std::array::from_fn(|l| points[l.min(points.len() - 1)][j]);
    (0..dim).map(entry).collect()
}

/// One of the vectors of [`interleave`].
pub(super) fn lane(points: &[Lane], lane: usize) -> Vec<f64> {
    points.iter().map(|p| p[lane]).collect()
}

impl Utility {
    /// Applies `work` to chunks of rows, and adds up the sums of each lane.
    fn sum_lanes<T: Send>(
        &self,
        exec: &Executor<'_>,
        work: impl Fn(usize, std::ops::Range<usize>, &mut [Lane]) -> Result<T> + Sync,
    ) -> Result<(Vec<Lane>, Vec<T>)> {
        let chunks = self.design.chunks();
        let parts = exec.map(chunks.len(), |c| {
            let mut sums = vec![[0.0; LANES]; self.n_params()];
            let other = work(c, chunks[c].clone(), &mut sums)?;
            Ok((sums, other))
        })?;
        let mut totals = vec![[0.0; LANES]; self.n_params()];
        let mut others = Vec::with_capacity(parts.len());
        for (sums, other) in parts {
            for (total, sum) in totals.iter_mut().zip(&sums) {
                for (total, sum) in total.iter_mut().zip(sum) {
                    *total += sum / self.n_samples;
                }
            }
            others.push(other);
        }
        Ok((totals, others))
    }

    /// Gradients of the data's part of the risk, `(1/n) Σ l'(xᵢᵀθ) xᵢ`, and the curvatures.
    pub(super) fn slopes(&self, points: &[Lane], exec: &Executor<'_>) -> Result<Slopes> {
        let intercept = self.design.intercept();
        let (gradients, curvature) = self.sum_lanes(exec, |_, chunk, sums| {
            let mut curvatures = vec![[0.0; LANES]; chunk.len()];
            let block = || vec![[0.0; LANES]; LANE_BLOCK];
            let (mut u, mut y, mut slope) = (block(), block(), block());
            let mut buffer = [0.0; LANE_BLOCK];
            for_each_block(&self.design, chunk.clone(), exec, |range, rows| {
                let n = range.len();
                let (u, y, slope) = (&mut u[..n], &mut y[..n], &mut slope[..n]);
                let at = range.start - chunk.start;
                let curvature = &mut curvatures[at..at + n];
                predict_rows(rows, points, intercept, u);
                lanes_spread(self.design.targets(range.clone()), y);
                let out = Batch::derivatives(slope.as_flattened_mut(), curvature.as_flattened_mut());
                self.loss.evaluate(u.as_flattened(), y.as_flattened(), out)?;
                if let Some(counts) = self.counts(&range, &mut buffer) {
                    weigh(slope, counts);
                    weigh(curvature, counts);
                }
                add_rows(rows, slope, intercept, sums);
                Ok(())
            })?;
            Ok(curvatures)
        })?;
        Ok(Slopes { gradients, curvature })
    }

    /// Products of the data's part of each Hessian with a direction.
    pub(super) fn hessian_products(
        &self,
        slopes: &Slopes,
        directions: &[Lane],
        exec: &Executor<'_>,
    ) -> Result<Vec<Lane>> {
        let intercept = self.design.intercept();
        let (products, _) = self.sum_lanes(exec, |c, chunk, sums| {
            let curvatures = &slopes.curvature[c];
            let mut buffer = Box::new([[0.0; LANES]; LANE_BLOCK]);
            for_each_block(&self.design, chunk.clone(), exec, |range, rows| {
                let u = &mut buffer[..range.len()];
                predict_rows(rows, directions, intercept, u);
                let at = range.start - chunk.start;
                for (u, curvature) in u.iter_mut().zip(&curvatures[at..]) {
                    for (u, c) in u.iter_mut().zip(curvature) {
                        *u *= c;
                    }
                }
                add_rows(rows, u, intercept, sums);
                Ok(())
            })
        })?;
        Ok(products)
    }

    /// The mean of a metric over the records at each point.
    pub fn means(&self, metric: Metric, points: &[Vec<f64>], exec: &Executor<'_>) -> Result<Vec<f64>> {
        for point in points {
            check_length("params", self.n_params(), point.len())?;
        }
        let mut means = Vec::with_capacity(points.len());
        for group in points.chunks(LANES) {
            let totals = self.totals(metric, &interleave(group), group.len(), exec)?;
            means.extend(totals.iter().map(|t| t / self.total));
        }
        Ok(means)
    }

    /// Sums of a metric at the first `n_points` points.
    fn totals(&self, metric: Metric, points: &[Lane], n_points: usize, exec: &Executor<'_>) -> Result<Vec<f64>> {
        let chunks = self.design.chunks();
        let parts = exec.map(chunks.len(), |c| {
            let mut sums = vec![0.0; n_points];
            let mut predictors = vec![[0.0; METRIC_BLOCK]; n_points];
            let mut weights = [0.0; METRIC_BLOCK];
            for start in chunks[c].clone().step_by(METRIC_BLOCK) {
                let all = start..(start + METRIC_BLOCK).min(chunks[c].end);
                self.gather(points, all.clone(), &mut predictors, exec)?;
                let weights = self.counts(&all, &mut weights);
                for (u, sum) in predictors.iter().zip(&mut sums) {
                    let mut total = 0.0;
                    let out = Batch {
                        total: Some(&mut total),
                        weights,
                        ..Batch::default()
                    };
                    let y = self.design.targets(all.clone());
                    metric.evaluate(&*self.loss, &u[..all.len()], y, out)?;
                    *sum += total;
                }
            }
            Ok(sums)
        })?;
        let mut totals = vec![0.0; n_points];
        for part in parts {
            totals.iter_mut().zip(part).for_each(|(t, p)| *t += p);
        }
        Ok(totals)
    }

    /// Predictors of a range of rows, point by point.
    fn gather(
        &self,
        points: &[Lane],
        all: std::ops::Range<usize>,
        predictors: &mut [[f64; METRIC_BLOCK]],
        exec: &Executor<'_>,
    ) -> Result<()> {
        let mut buffer = [[0.0; LANES]; LANE_BLOCK];
        for_each_block(&self.design, all.clone(), exec, |range, rows: LaneRows<'_>| {
            let u = &mut buffer[..range.len()];
            predict_rows(rows, points, self.design.intercept(), u);
            let at = range.start - all.start;
            for (l, predictor) in predictors.iter_mut().enumerate() {
                for (p, u) in predictor[at..].iter_mut().zip(u.iter()) {
                    *p = u[l];
                }
            }
            Ok(())
        })
    }

    /// Gradient and Hessian of the data's part of the risk at a point, without the regulariser.
    pub(super) fn risk_derivatives(&self, params: &[f64], exec: &Executor<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        self.derivatives(Metric::Loss, params, self.n_samples, exec)
    }

    /// Gradient and Hessian of the mean of a metric over the records.
    pub fn mean_derivatives(
        &self,
        metric: Metric,
        params: &[f64],
        exec: &Executor<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        check_length("params", self.n_params(), params.len())?;
        self.derivatives(metric, params, self.total, exec)
    }

    fn derivatives(
        &self,
        metric: Metric,
        params: &[f64],
        divisor: f64,
        exec: &Executor<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let dim = params.len();
        let chunks = matrix_chunks(self.design.n_rows(), dim);
        let parts = exec.map(chunks.len(), |c| {
            let mut gradient = vec![0.0; dim];
            let mut gram = [GramAccumulator::new(dim)];
            let mut packed = PackedBlock::new(dim, BLOCK);
            let mut buffers = [[0.0; BLOCK]; 4];
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                let [u, slope, curvature, weights] = buffers.each_mut();
                let [u, slope, curvature] = [u, slope, curvature].map(|b| &mut b[..range.len()]);
                self.design.linear_predictor(range.clone(), params, u);
                let out = Batch::derivatives(&mut *slope, &mut *curvature);
                metric.evaluate(&*self.loss, u, self.design.targets(range.clone()), out)?;
                if let Some(counts) = self.counts(&range, weights) {
                    vector::multiply(slope, counts);
                    vector::multiply(curvature, counts);
                }
                self.design
                    .add_grams(range.clone(), [&*curvature], &mut gram, &mut packed);
                self.design.add_weighted_rows(range, slope, &mut gradient);
            }
            Ok((gradient, gram))
        })?;
        let (gradient, [gram]) = parts
            .into_iter()
            .reduce(|mut total, part| {
                total.0.iter_mut().zip(&part.0).for_each(|(t, p)| *t += p);
                total.1[0].merge(&part.1[0]);
                total
            })
            .ok_or(crate::Error::Empty { rows: 0, params: dim })?;
        let gradient = gradient.iter().map(|g| g / divisor).collect();
        Ok((gradient, gram.finish(divisor)))
    }
}

/// `values[i][l] *= counts[i]`.
fn weigh(values: &mut [Lane], counts: &[f64]) {
    for (values, count) in values.iter_mut().zip(counts) {
        for v in values {
            *v *= count;
        }
    }
}
