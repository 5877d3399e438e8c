//! The moments of persons whose rows are anywhere in the table, and their gradient covariance from any slopes.
//!
//! One pass in the order of the table keeps the slope of every row; then the gradients of a group of persons are summed, again in the order of the
//! table. Beside the table this takes a number a row.

use std::ops::Range;

use super::Sums;
use super::pass::Pass;
use crate::Result;
use crate::design::{Design, Persons};
use crate::exec::{BLOCK, Executor, blocks, matrix_chunks};
use crate::linalg::{CompensatedSum, GramAccumulator, PackedBlock, vector};

impl Pass<'_> {
    /// The sums of [`Self::moments_of_persons`], whatever the order of the rows.
    pub(super) fn moments_of_scattered(
        &self,
        chunks: &[Range<usize>],
        params: &[f64],
        limits: [f64; 2],
        persons: &Persons,
    ) -> Result<Sums> {
        let mut slopes = vec![0.0; self.design.n_rows()];
        let grams = self.exec.map_into(chunks, &mut slopes, |c, slopes| {
            self.curvatures(chunks[c].clone(), params, limits, persons.shares(), slopes)
        })?;
        let mut curvature = GramAccumulator::new(params.len());
        for gram in grams {
            curvature.merge(&gram);
        }
        let covariance = gradient_squares(self.design, persons, &[slopes], self.weights.counts, self.exec)?;
        Ok(Sums {
            n_rows: self.design.n_rows(),
            grams: vec![curvature, covariance],
            ..Sums::default()
        })
    }

    /// The Hessian over a chunk of rows; writes how much of its slope each row adds to its person.
    fn curvatures(
        &self,
        chunk: Range<usize>,
        params: &[f64],
        limits: [f64; 2],
        shares: &[f64],
        slopes: &mut [f64],
    ) -> Result<GramAccumulator> {
        let dim = params.len();
        let mut gram = [GramAccumulator::new(dim)];
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut buffers = [[0.0; BLOCK]; 2];
        let first = chunk.start;
        for range in blocks(chunk) {
            self.exec.check()?;
            let n = range.len();
            let [u, curvature] = &mut buffers;
            let (u, curvature) = (&mut u[..n], &mut curvature[..n]);
            let slope = &mut slopes[range.start - first..][..n];
            self.bounded_derivatives(&range, params, limits, [u, slope, curvature])?;
            vector::multiply(slope, &shares[range.clone()]);
            self.weights.multiply(&range, curvature);
            self.design.add_grams(range, [curvature], &mut gram, &mut packed);
        }
        let [gram] = gram;
        Ok(gram)
    }
}

/// `Σ ḡḡᵀ` over the persons, from how much of its slope each row adds, for one predictor after another; each as often as `counts` says of its
/// first row.
pub(super) fn gradient_squares(
    design: &Design<'_>,
    persons: &Persons,
    slopes: &[Vec<f64>],
    counts: Option<&[u32]>,
    exec: &Executor<'_>,
) -> Result<GramAccumulator> {
    let dim = slopes.len() * design.n_params();
    let size = (GROUP_NUMBERS / dim).max(1).next_multiple_of(BLOCK);
    let mut total = GramAccumulator::new(dim);
    let mut gradients = vec![0.0; size.min(persons.len()) * dim];
    for start in (0..persons.len()).step_by(size) {
        let group = start..(start + size).min(persons.len());
        let gradients = &mut gradients[..group.len() * dim];
        // A gradient depends neither on the group nor on the task: each adds a person's rows in their order.
        let step = group.len().div_ceil(exec.n_threads());
        let tasks: Vec<_> = group.clone().step_by(step).collect();
        let places: Vec<_> = (0..gradients.len())
            .step_by(step * dim)
            .map(|first| first..(first + step * dim).min(gradients.len()))
            .collect();
        exec.map_into(&places, gradients, |task, gradients| {
            let some = tasks[task]..(tasks[task] + step).min(group.end);
            add_gradients(design, persons, some, slopes, gradients, exec)
        })?;
        let chunks = matrix_chunks(group.len(), dim);
        let parts = exec.map(chunks.len(), |c| {
            let mut gram = GramAccumulator::new(dim);
            let mut packed = PackedBlock::new(dim, BLOCK);
            let mut drawn = [1.0; BLOCK];
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                let n = range.len();
                if let Some(counts) = counts {
                    for (drawn, k) in drawn.iter_mut().zip(range.clone()) {
                        *drawn = f64::from(counts[persons.rows_of(group.start + k)[0]]);
                    }
                }
                let gradients = &gradients[range.start * dim..range.end * dim];
                packed.fill(n, gradients, None, None);
                gram.add(&packed, &drawn[..n]);
            }
            Ok(gram)
        })?;
        for part in parts {
            total.merge(&part);
        }
    }
    Ok(total)
}

/// Numbers of the gradients of a group: 16 MB. For the next group the table is read again.
const GROUP_NUMBERS: usize = 1 << 21;

/// Writes the gradients of some persons, one after the other. The table is read row after row, wherever the rows of a person are.
fn add_gradients(
    design: &Design<'_>,
    persons: &Persons,
    some: Range<usize>,
    slopes: &[Vec<f64>],
    gradients: &mut [f64],
    exec: &Executor<'_>,
) -> Result<()> {
    let width = design.n_params();
    let dim = slopes.len() * width;
    let mut places = [(0, 0); BLOCK];
    gradients.fill(0.0);
    for range in blocks(0..design.n_rows()) {
        exec.check()?;
        let mut found = 0;
        for (row, owner) in persons.owners()[range.clone()].iter().enumerate() {
            // Without a branch, which nobody could predict.
            let k = (*owner as usize).wrapping_sub(some.start);
            places[found] = (row, k.wrapping_mul(dim));
            found += usize::from(k < some.len());
        }
        let places = &mut places[..found];
        for slopes in slopes {
            design.scatter_weighted_rows(range.clone(), &slopes[range.clone()], places, gradients);
            for (_, place) in &mut *places {
                *place += width;
            }
        }
    }
    for (k, person) in some.enumerate() {
        if persons.kept()[person] > BLOCK {
            let blocks = gradients[k * dim..][..dim].chunks_exact_mut(width);
            for (slopes, gradient) in slopes.iter().zip(blocks) {
                compensate(design, persons.rows_of(person), slopes, gradient);
            }
        }
    }
    Ok(())
}

/// Writes `Σ sᵢxᵢ` over the rows of a person who has more than a block, in blocks whose sums are added with compensation.
fn compensate(design: &Design<'_>, rows: &[usize], slopes: &[f64], gradient: &mut [f64]) {
    let mut sum = CompensatedSum::default();
    let mut block_sum = vec![0.0; gradient.len()];
    for rows in rows.chunks(BLOCK) {
        block_sum.fill(0.0);
        add_block(design, rows, slopes, &mut block_sum);
        sum.add(&block_sum);
    }
    gradient.iter_mut().zip(sum.values()).for_each(|(g, value)| *g = value);
}

/// Adds `Σ sᵢxᵢ` over at most a block of rows; those that follow each other in the table are read at once.
fn add_block(design: &Design<'_>, rows: &[usize], slopes: &[f64], gradient: &mut [f64]) {
    let mut scratch = [0.0; BLOCK];
    for run in rows.chunk_by(|a, b| a + 1 == *b) {
        let range = run[0]..run[0] + run.len();
        let weights = &mut scratch[..run.len()];
        weights.copy_from_slice(&slopes[range.clone()]);
        design.add_weighted_rows(range, weights, gradient);
    }
}
