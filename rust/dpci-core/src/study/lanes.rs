//! Gradients and moments of several weighted samples of one design in one pass over its rows.

use crate::Result;
use crate::design::{Design, Rows};
use crate::exec::{BLOCK, Executor, blocks};
use crate::linalg::{
    LANES, Lane, LaneRows, MultiGram, PackedBlock, SETS, SparseRow, lanes_accumulate, lanes_predict,
};
use crate::loss::Batch;
use crate::mechanism::Spec;
use crate::moments::DataMoments;
use crate::solver::LockstepProblem;

/// At most [`LANES`] samples, each with its own weights and linear term.
#[derive(Debug)]
pub(super) struct WeightedLanes<'a> {
    design: &'a Design<'static>,
    spec: &'a Spec,
    weights: &'a [Vec<u32>],
    linear: &'a [Option<Vec<f64>>],
    exec: &'a Executor<'a>,
}

/// Buffers of one block: a number of each lane for each row.
struct Buffers {
    predictor: [Lane; BLOCK],
    target: [Lane; BLOCK],
    weight: [Lane; BLOCK],
    slope: [Lane; BLOCK],
    curvature: [Lane; BLOCK],
}

impl Buffers {
    fn new() -> Box<Self> {
        let zero = [[0.0; LANES]; BLOCK];
        Box::new(Self {
            predictor: zero,
            target: zero,
            weight: zero,
            slope: zero,
            curvature: zero,
        })
    }
}

impl<'a> WeightedLanes<'a> {
    pub(super) fn new(
        design: &'a Design<'static>,
        spec: &'a Spec,
        weights: &'a [Vec<u32>],
        linear: &'a [Option<Vec<f64>>],
        exec: &'a Executor<'a>,
    ) -> Self {
        Self {
            design,
            spec,
            weights,
            linear,
            exec,
        }
    }

    /// Calls `work` for every block with its rows and its weighted slopes (and curvatures) at the points.
    fn for_each_block(
        &self,
        points: &[Lane],
        with_curvature: bool,
        mut work: impl FnMut(&LaneRows<'_>, std::ops::Range<usize>, &mut Buffers),
    ) -> Result<()> {
        let loss = &*self.spec.choices().loss;
        let mut buffers = Buffers::new();
        let intercept = self.design.intercept();
        let n_columns = points.len() - usize::from(intercept.is_some());
        let mut sparse: Vec<SparseRow<'_>> = Vec::with_capacity(BLOCK);
        for range in blocks(0..self.design.n_rows()) {
            self.exec.check()?;
            let n = range.len();
            let constant: Lane = match (intercept, points.last()) {
                (Some(scale), Some(last)) => last.map(|value| scale * value),
                _ => [0.0; LANES],
            };
            buffers.predictor[..n].fill(constant);
            for (target, y) in buffers
                .target
                .iter_mut()
                .zip(self.design.targets(range.clone()))
            {
                *target = [*y; LANES];
            }
            for (lane, weights) in self.weights.iter().enumerate() {
                for (weight, w) in buffers.weight.iter_mut().zip(&weights[range.clone()]) {
                    weight[lane] = f64::from(*w);
                }
            }
            let rows = match self.design.rows() {
                Rows::Dense(dense) => LaneRows::Dense(dense.rows(&range)),
                Rows::Csr(csr) => {
                    sparse.clear();
                    sparse.extend(
                        range
                            .clone()
                            .map(|i| (csr.entries(i).columns, csr.entries(i).values)),
                    );
                    LaneRows::Sparse(&sparse)
                }
            };
            lanes_predict(rows, &points[..n_columns], &mut buffers.predictor[..n]);
            let Buffers {
                predictor,
                target,
                slope,
                curvature,
                weight,
            } = &mut *buffers;
            let out = Batch {
                slope: Some(slope[..n].as_flattened_mut()),
                curvature: with_curvature.then_some(curvature[..n].as_flattened_mut()),
                ..Batch::default()
            };
            loss.evaluate(
                predictor[..n].as_flattened(),
                target[..n].as_flattened(),
                out,
            )?;
            if with_curvature {
                for ((c, s), w) in curvature[..n]
                    .iter_mut()
                    .zip(&mut slope[..n])
                    .zip(&weight[..n])
                {
                    for ((c, s), w) in c.iter_mut().zip(s).zip(w) {
                        *c *= w;
                        *s = *s * *s * w;
                    }
                }
            } else {
                for (s, w) in slope[..n].iter_mut().zip(&weight[..n]) {
                    for (s, w) in s.iter_mut().zip(w) {
                        *s *= w;
                    }
                }
            }
            work(&rows, range, &mut buffers);
        }
        Ok(())
    }

    /// The moments' data sums of each sample at its own point.
    pub(super) fn moments(&self, points: &[&[f64]]) -> Result<Vec<DataMoments>> {
        let dim = self.design.n_params();
        let mut interleaved = vec![[0.0; LANES]; dim];
        for (lane, point) in points.iter().enumerate() {
            for (i, value) in interleaved.iter_mut().zip(*point) {
                i[lane] = *value;
            }
        }
        let mut gram = MultiGram::new(dim);
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut both = vec![[0.0; SETS]; BLOCK];
        self.for_each_block(&interleaved, true, |rows, range, buffers| {
            let n = range.len();
            for ((both, c), s) in both
                .iter_mut()
                .zip(&buffers.curvature[..n])
                .zip(&buffers.slope[..n])
            {
                both[..LANES].copy_from_slice(c);
                both[LANES..].copy_from_slice(s);
            }
            match rows {
                LaneRows::Sparse(rows) => {
                    gram.add_sparse(rows, self.design.intercept(), &both[..n]);
                }
                LaneRows::Dense(rows) => {
                    packed.fill(n, rows, None, self.design.intercept());
                    gram.add(&packed, &both[..n]);
                }
            }
        })?;
        let n_samples = self.spec.choices().n_samples as f64;
        Ok((0..points.len())
            .map(|lane| DataMoments {
                curvature: gram.finish(lane, n_samples),
                squared_slope: gram.finish(LANES + lane, n_samples),
            })
            .collect())
    }
}

impl LockstepProblem for WeightedLanes<'_> {
    fn dim(&self) -> usize {
        self.design.n_params()
    }

    fn strong_convexity(&self) -> f64 {
        self.spec.choices().l2_strength
    }

    fn gradients(&self, points: &[Lane]) -> Result<Vec<Lane>> {
        let mut sums = vec![[0.0; LANES]; points.len()];
        let intercept = self.design.intercept();
        let n_columns = points.len() - usize::from(intercept.is_some());
        self.for_each_block(points, false, |rows, range, buffers| {
            let slopes = &buffers.slope[..range.len()];
            lanes_accumulate(*rows, slopes, &mut sums[..n_columns]);
            if let (Some(scale), Some(last)) = (intercept, sums.last_mut()) {
                for slopes in slopes {
                    for (sum, slope) in last.iter_mut().zip(slopes) {
                        *sum += scale * slope;
                    }
                }
            }
        })?;
        let (n, l2_strength) = (
            self.spec.choices().n_samples as f64,
            self.strong_convexity(),
        );
        for (j, (sum, point)) in sums.iter_mut().zip(points).enumerate() {
            for (lane, (sum, value)) in sum.iter_mut().zip(point).enumerate() {
                let linear = self
                    .linear
                    .get(lane)
                    .and_then(Option::as_ref)
                    .map_or(0.0, |a| a[j]);
                *sum = *sum / n + (l2_strength * value + linear);
            }
        }
        Ok(sums)
    }
}
