//! Gradients in single precision near the full-data minimiser, for steps that others follow.
//!
//! What is rounded are differences from the slopes at that minimiser, whose sums are exact. So the error is relative to the distance from
//! there, and averages out over the rows.

use crate::Result;
use crate::linalg::{
    LANES, Lane, LaneRows, SingleLane, lanes_product, single_accumulate, single_add, single_count, single_of,
    single_predict, single_series,
};
use crate::loss::{ROUGH_TERMS, SERIES_REACH, Series};
use crate::study::lane_sums::{BLOCK, WeightedLanes, add_rows, for_each_block};

/// Numbers of one block.
struct Buffers {
    offset: [SingleLane; BLOCK],
    change: [SingleLane; BLOCK],
    /// Coefficients of the slopes' changes: the first ones stay 0.
    terms: [[f32; BLOCK]; ROUGH_TERMS],
    series: Series,
    /// For blocks beyond the reach of the series.
    predictor: [Lane; BLOCK],
    target: [Lane; BLOCK],
    slope: [Lane; BLOCK],
    counts: [Lane; BLOCK],
}

impl WeightedLanes<'_> {
    /// The sums of each sample's weighted slopes at its point, for dense rows of which none stands for many records or has a weight.
    pub(super) fn rough_sums(&self, points: &[Lane]) -> Result<Vec<Lane>> {
        let dim = points.len();
        let (zero, single) = ([[0.0; LANES]; BLOCK], [[0.0; LANES]; BLOCK]);
        let mut buffers = Box::new(Buffers {
            offset: single,
            change: single,
            terms: [[0.0; BLOCK]; ROUGH_TERMS],
            series: Series {
                is_rough: true,
                ..Series::default()
            },
            predictor: zero,
            target: zero,
            slope: zero,
            counts: zero,
        });
        let mut offsets = vec![[0.0; LANES]; dim];
        single_of(self.offsets(points).as_flattened(), offsets.as_flattened_mut());
        let intercept = self.design.intercept();
        let mut sums = self.slope_sums.clone();
        let mut block_sums = vec![[0.0; LANES]; dim];
        let mut rounded = vec![0.0; BLOCK * dim];
        let all = 0..self.design.n_rows();
        for_each_block(self.design, all, self.exec, |range, rows| {
            let n = range.len();
            let LaneRows::Dense(entries) = rows else {
                return Ok(());
            };
            let rounded = &mut rounded[..n * dim];
            round_rows(entries, intercept, dim, rounded);
            let offset = &mut buffers.offset[..n];
            offset.fill([0.0; LANES]);
            single_predict(rounded, &offsets, offset);
            self.expand(range.clone(), &mut buffers.series);
            let terms = &mut buffers.terms[1..];
            let exact = &buffers.series.terms[1..ROUGH_TERMS];
            single_of(exact.as_flattened(), terms.as_flattened_mut());
            let change = &mut buffers.change[..n];
            let reached = single_series(offset, &buffers.terms, change);
            let is_far = reached.map(|z| f64::from(z) > SERIES_REACH);
            if is_far.contains(&true) {
                // The loss itself for these lanes alone: the others are summed as they would be without them.
                let slope = &mut buffers.slope[..n];
                let numbers = [&mut buffers.predictor[..n], &mut buffers.target[..n]];
                self.losses(range.clone(), rows, points, numbers, (slope, None))?;
                let starts = &self.population.slopes[range.clone()];
                for ((slope, change), start) in slope.iter_mut().zip(&mut *change).zip(starts) {
                    for lane in 0..LANES {
                        let far = slope[lane] - start;
                        slope[lane] = if is_far[lane] { far } else { 0.0 };
                        change[lane] = if is_far[lane] { 0.0 } else { change[lane] };
                    }
                }
                let counts = &mut buffers.counts[..n];
                self.counts.load(range.clone(), counts);
                let weighted = &mut buffers.predictor[..n];
                lanes_product(slope, counts, weighted);
                add_rows(rows, weighted, intercept, &mut sums);
            }
            single_count(&self.counts.small[range], change);
            block_sums.fill([0.0; LANES]);
            single_accumulate(rounded, change, &mut block_sums);
            single_add(&block_sums, &mut sums);
            Ok(())
        })?;
        Ok(sums)
    }
}

/// Rows in single precision, each followed by the intercept where there is one.
fn round_rows(entries: &[f64], intercept: Option<f64>, dim: usize, out: &mut [f32]) {
    let Some(last) = intercept else {
        return single_of(entries, out);
    };
    for (i, out) in out.chunks_exact_mut(dim).enumerate() {
        single_of(&entries[i * (dim - 1)..][..dim - 1], out);
        single_of(&[last], &mut out[dim - 1..]);
    }
}
