//! Gradients and moments of several weighted samples of one design in one pass over its rows.

use std::cell::RefCell;
use std::ops::Range;

use crate::Result;
use crate::design::{Design, RowBlock, Rows};
use crate::exec::Executor;
use crate::linalg::{
    LANES, Lane, LaneRows, MultiGram, Precision, SparseRow, lanes_accumulate, lanes_outer, lanes_predict,
    lanes_product, lanes_scale, lanes_series, lanes_sigmoid_rates, lanes_spread, lanes_weigh_moments,
};
use crate::loss::{Batch, SERIES_REACH, SERIES_ROWS, Series};
use crate::moments::{DataMoments, sample_moments};
use crate::solver::{LockstepProblem, Pass};
use crate::spec::Spec;
use crate::study::counts::Counts;
use crate::study::population::{MANY_ROWS, Population};

/// Rows handled at a time: the numbers of all lanes stay in a first-level cache.
pub(super) const BLOCK: usize = SERIES_ROWS;

/// At most [`LANES`] samples, each with its own weights and linear term.
#[derive(Debug)]
pub(super) struct WeightedLanes<'a> {
    pub(super) design: &'a Design<'static>,
    pub(super) spec: &'a Spec,
    /// The full-data risk that the samples are near.
    pub(super) population: &'a Population,
    /// How often each sample holds each row.
    pub(super) counts: &'a Counts,
    pub(super) linear: &'a [Option<Vec<f64>>],
    /// Sums of each sample's slopes at the full-data minimiser, once they are known.
    pub(super) slope_sums: Vec<Lane>,
    /// Passes in single precision.
    pub(super) n_rough: usize,
    /// Whether moments will be wanted at the minimisers themselves.
    pub(super) moments_at_minima: bool,
    /// Moments that came along with gradients, and the points they belong to.
    pub(super) known: RefCell<Option<(Vec<Lane>, MultiGram)>>,
    pub(super) exec: &'a Executor<'a>,
}

/// Numbers of one block: one of each lane for each row.
struct Buffers {
    predictor: [Lane; BLOCK],
    target: [Lane; BLOCK],
    slope: [Lane; BLOCK],
    curvature: [Lane; BLOCK],
    /// Slopes of lanes beyond the reach of the series.
    far_slope: [Lane; BLOCK],
    far_curvature: [Lane; BLOCK],
    counts: [Lane; BLOCK],
    series: Series,
}

/// The rows of a block, and what each lane multiplies them with.
struct Block<'b> {
    rows: LaneRows<'b>,
    slope: &'b mut [Lane],
    curvature: &'b mut [Lane],
    counts: &'b [Lane],
}

/// Calls `work` for each block of a range of rows.
pub(super) fn for_each_block(
    design: &Design<'_>,
    all: Range<usize>,
    exec: &Executor<'_>,
    mut work: impl FnMut(Range<usize>, LaneRows<'_>) -> Result<()>,
) -> Result<()> {
    for start in all.clone().step_by(BLOCK) {
        exec.check()?;
        let range = start..(start + BLOCK).min(all.end);
        match design.rows().block(range.clone()) {
            RowBlock::Dense(rows) => work(range, LaneRows::Dense(&rows))?,
            RowBlock::Sparse(block) => {
                let mut sparse: [SparseRow<'_>; BLOCK] = [(&[], &[]); BLOCK];
                for (row, entries) in sparse.iter_mut().zip(block.rows()) {
                    *row = (entries.columns, entries.values);
                }
                let sparse = &sparse[..range.len()];
                work(range, LaneRows::Sparse(sparse))?;
            }
        }
    }
    Ok(())
}

/// `out[i][l] = xᵢᵀθₗ` for the points `θₗ`, of which `points[j]` holds entry `j` of each.
pub(super) fn predict_rows(rows: LaneRows<'_>, points: &[Lane], intercept: Option<f64>, out: &mut [Lane]) {
    let n_columns = points.len() - usize::from(intercept.is_some());
    let constant: Lane = match (intercept, points.last()) {
        (Some(scale), Some(last)) => last.map(|value| scale * value),
        _ => [0.0; LANES],
    };
    out.fill(constant);
    lanes_predict(rows, &points[..n_columns], out);
}

/// Adds `Σ slopes[i][l] xᵢ` to the sums of each lane.
pub(super) fn add_rows(rows: LaneRows<'_>, slopes: &[Lane], intercept: Option<f64>, sums: &mut [Lane]) {
    let n_columns = sums.len() - usize::from(intercept.is_some());
    lanes_accumulate(rows, slopes, &mut sums[..n_columns]);
    if let (Some(scale), Some(last)) = (intercept, sums.last_mut()) {
        for slopes in slopes {
            for (sum, slope) in last.iter_mut().zip(slopes) {
                *sum += scale * slope;
            }
        }
    }
}

/// `Σ wᵢ slopes[i] xᵢ` of each lane, for slopes that all lanes share: gradients at a common point, without a look at the loss.
pub(super) fn shared_slope_sums(
    design: &Design<'static>,
    slopes: &[f64],
    counts: &Counts,
    exec: &Executor<'_>,
) -> Result<Vec<Lane>> {
    let mut sums = vec![[0.0; LANES]; design.n_params()];
    let (mut held, mut weighted) = ([[0.0; LANES]; BLOCK], [[0.0; LANES]; BLOCK]);
    for_each_block(design, 0..design.n_rows(), exec, |range, rows| {
        let weighted = &mut weighted[..range.len()];
        let held = &mut held[..range.len()];
        counts.load(range.clone(), held);
        lanes_outer(&slopes[range.clone()], held, weighted);
        if let Some(shares) = design.shares() {
            lanes_scale(&shares[range], weighted);
        }
        add_rows(rows, weighted, design.intercept(), &mut sums);
        Ok(())
    })?;
    Ok(sums)
}

/// Copies some lanes.
fn copy_lanes(chosen: [bool; LANES], from: &[Lane], to: &mut [Lane]) {
    for lane in (0..LANES).filter(|lane| chosen[*lane]) {
        for (to, from) in to.iter_mut().zip(from) {
            to[lane] = from[lane];
        }
    }
}

impl WeightedLanes<'_> {
    /// Calls `work` for every block with its rows and its slopes (and curvatures) at the points, not yet weighted.
    ///
    /// Near the full-data minimiser they come from series around it, which cost a third of the loss itself. Each lane has the series or
    /// the loss by its own predictors in the block.
    fn evaluate(&self, points: &[Lane], with_curvature: bool, mut work: impl FnMut(Block<'_>)) -> Result<()> {
        let zero = [[0.0; LANES]; BLOCK];
        let mut buffers = Box::new(Buffers {
            predictor: zero,
            target: zero,
            slope: zero,
            curvature: zero,
            far_slope: zero,
            far_curvature: zero,
            counts: zero,
            series: Series::default(),
        });
        let offsets = self.population.is_near.then(|| self.offsets(points));
        let all = 0..self.design.n_rows();
        for_each_block(self.design, all, self.exec, |range, rows| {
            let n = range.len();
            let buffers = &mut *buffers;
            let numbers = [&mut buffers.predictor[..n], &mut buffers.target[..n]];
            let slope = &mut buffers.slope[..n];
            let curvature = &mut buffers.curvature[..n];
            if let Some(offsets) = &offsets {
                let predictor = &mut *numbers[0];
                predict_rows(rows, offsets, self.design.intercept(), predictor);
                self.expand(range.clone(), &mut buffers.series);
                let reached = lanes_series(predictor, &buffers.series.terms, slope);
                if with_curvature {
                    lanes_sigmoid_rates(slope, &buffers.series.labels, curvature);
                }
                let is_far = reached.map(|offset| offset > SERIES_REACH);
                if is_far.contains(&true) {
                    let far_slope = &mut buffers.far_slope[..n];
                    let far_curvature = &mut buffers.far_curvature[..n];
                    let wanted = with_curvature.then_some(&mut *far_curvature);
                    self.losses(range.clone(), rows, points, numbers, (far_slope, wanted))?;
                    copy_lanes(is_far, far_slope, slope);
                    copy_lanes(is_far, far_curvature, curvature);
                }
            } else {
                let wanted = with_curvature.then_some(&mut *curvature);
                self.losses(range.clone(), rows, points, numbers, (slope, wanted))?;
            }
            if let Some(shares) = self.design.shares() {
                lanes_scale(&shares[range.clone()], slope);
                lanes_scale(&shares[range.clone()], curvature);
            }
            let counts = &mut buffers.counts[..n];
            self.counts.load(range, counts);
            work(Block {
                rows,
                slope,
                curvature,
                counts,
            });
            Ok(())
        })
    }

    /// Where each lane stands from the full-data minimiser; 0 for lanes without a sample.
    pub(super) fn offsets(&self, points: &[Lane]) -> Vec<Lane> {
        let n_samples = self.linear.len();
        let pairs = points.iter().zip(&self.population.target);
        pairs
            .map(|(point, target)| {
                std::array::from_fn(|lane| if lane < n_samples { point[lane] - target } else { 0.0 })
            })
            .collect()
    }

    /// The series of a block's slopes around the full-data minimiser.
    pub(super) fn expand(&self, range: Range<usize>, out: &mut Series) {
        let slopes = &self.population.slopes[range.clone()];
        let loss = &self.spec.choices().loss;
        loss.slope_series(slopes, self.design.targets(range), out);
    }

    /// A block's slopes, and curvatures where they are wanted, by the loss itself.
    pub(super) fn losses(
        &self,
        range: Range<usize>,
        rows: LaneRows<'_>,
        points: &[Lane],
        [predictor, target]: [&mut [Lane]; 2],
        (slope, curvature): (&mut [Lane], Option<&mut [Lane]>),
    ) -> Result<()> {
        predict_rows(rows, points, self.design.intercept(), predictor);
        lanes_spread(self.design.targets(range), target);
        let out = Batch {
            slope: Some(slope.as_flattened_mut()),
            curvature: curvature.map(<[Lane]>::as_flattened_mut),
            ..Batch::default()
        };
        let loss = &*self.spec.choices().loss;
        loss.evaluate(predictor.as_flattened(), target.as_flattened(), out)
    }

    /// `∇J` of each sample at its point, from the sums of its weighted slopes.
    pub(super) fn finish_gradients(&self, mut sums: Vec<Lane>, points: &[Lane]) -> Vec<Lane> {
        let (n, l2_strength) = (self.spec.choices().terms.divisor(), self.spec.choices().l2_strength);
        for (j, (sum, point)) in sums.iter_mut().zip(points).enumerate() {
            for (lane, (sum, value)) in sum.iter_mut().zip(point).enumerate() {
                let linear = self.linear.get(lane).and_then(Option::as_ref).map_or(0.0, |a| a[j]);
                *sum = *sum / n + (l2_strength * value + linear);
            }
        }
        sums
    }

    /// For moments of rows like these: those of many are good to about 10⁻⁸ in single precision.
    fn new_gram(&self) -> MultiGram {
        let dim = self.design.n_params();
        match (self.design.rows(), self.design.multiplicities()) {
            _ if self.design.n_rows() < MANY_ROWS => MultiGram::new(dim, Precision::Double),
            (Rows::Dense(_), None) => MultiGram::of_samples(dim),
            _ => MultiGram::new(dim, Precision::Single),
        }
    }

    /// Adds a block's part of the moments; its slopes and curvatures are overwritten.
    fn add_moments(&self, block: &mut Block<'_>, gram: &mut MultiGram) {
        lanes_weigh_moments(block.curvature, block.slope, block.counts);
        let weights = [&*block.curvature, &*block.slope];
        match block.rows {
            LaneRows::Sparse(rows) => gram.add_sparse(rows, self.design.intercept(), weights),
            LaneRows::Dense(rows) => gram.add(rows, self.design.intercept(), weights),
        }
    }

    /// The moments' data sums of each sample at its own point.
    pub(super) fn moments(&self, points: &[&[f64]]) -> Result<Vec<DataMoments>> {
        if self.design.persons().is_some() {
            return self.moments_of_persons(points);
        }
        let dim = self.design.n_params();
        let mut interleaved = vec![[0.0; LANES]; dim];
        for (lane, point) in points.iter().enumerate() {
            for (i, value) in interleaved.iter_mut().zip(*point) {
                i[lane] = *value;
            }
        }
        let mut gram = match self.known.take() {
            Some((known, gram)) if known == interleaved => gram,
            _ => {
                let mut gram = self.new_gram();
                self.evaluate(&interleaved, true, |mut block| {
                    self.add_moments(&mut block, &mut gram);
                })?;
                gram
            }
        };
        let n_samples = self.spec.choices().terms.divisor();
        Ok((0..points.len())
            .map(|lane| DataMoments {
                curvature: gram.finish(0, lane, n_samples),
                squared_slope: gram.finish(1, lane, n_samples),
            })
            .collect())
    }

    /// The same one sample after the other: gradients of persons have no products that samples could share.
    fn moments_of_persons(&self, points: &[&[f64]]) -> Result<Vec<DataMoments>> {
        let choices = self.spec.choices();
        let (loss, n_samples) = (&*choices.loss, choices.terms.divisor());
        let of_sample = |(lane, point): (usize, &&[f64])| {
            let counts = self.counts.of(lane);
            sample_moments(self.design, Some(&counts), loss, point, n_samples, self.exec)
        };
        points.iter().enumerate().map(of_sample).collect()
    }
}

impl LockstepProblem for WeightedLanes<'_> {
    fn dim(&self) -> usize {
        self.design.n_params()
    }

    fn strong_convexity(&self) -> f64 {
        self.spec.strong_convexity()
    }

    fn n_rough(&self) -> usize {
        self.n_rough
    }

    fn gradients(&self, points: &[Lane], pass: Pass) -> Result<Vec<Lane>> {
        if pass == Pass::Rough {
            return Ok(self.finish_gradients(self.rough_sums(points)?, points));
        }
        let mut sums = vec![[0.0; LANES]; points.len()];
        let with_moments = pass == Pass::Last && self.moments_at_minima && self.design.persons().is_none();
        let mut gram = with_moments.then(|| self.new_gram());
        let mut weighted = [[0.0; LANES]; BLOCK];
        self.evaluate(points, gram.is_some(), |mut block| {
            let weighted = &mut weighted[..block.counts.len()];
            lanes_product(block.slope, block.counts, weighted);
            add_rows(block.rows, weighted, self.design.intercept(), &mut sums);
            if let Some(gram) = &mut gram {
                self.add_moments(&mut block, gram);
            }
        })?;
        self.known.replace(gram.map(|gram| (points.to_vec(), gram)));
        Ok(self.finish_gradients(sums, points))
    }
}
