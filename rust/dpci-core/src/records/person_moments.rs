//! The moments of persons: the Hessian is a sum over rows, the gradient covariance one over persons, each with the gradient of its rows.
//!
//! One pass in the order of the table keeps the slope of every row; then the gradients of a group of persons are summed from their rows, again in
//! the order of the table. Beside the table this takes a number a row.

use std::ops::Range;

use super::Sums;
use super::kernels::Pass;
use crate::Result;
use crate::design::{Design, Persons};
use crate::exec::{BLOCK, Executor, blocks, matrix_chunks};
use crate::linalg::{CompensatedSum, GramAccumulator, PackedBlock, vector};
use crate::loss::Batch;

impl Pass<'_> {
    /// `Σ ω l'' x xᵀ` over the rows and `Σ ḡḡᵀ` over the persons, `ḡ = Σ ω l' x` the mean gradient of one; each as often as it is drawn.
    pub(super) fn moments_of_persons(
        &self,
        chunks: &[Range<usize>],
        params: &[f64],
        limits: [f64; 2],
        persons: &Persons,
    ) -> Result<Sums> {
        let parts = self.exec.map(chunks.len(), |c| {
            self.curvatures(chunks[c].clone(), params, limits, persons.shares())
        })?;
        let mut curvature = GramAccumulator::new(params.len());
        let mut slopes = Vec::with_capacity(self.design.n_rows());
        for (gram, part) in parts {
            curvature.merge(&gram);
            slopes.extend(part);
        }
        let covariance = gradient_squares(
            self.design,
            persons,
            &[slopes],
            self.weights.counts,
            self.exec,
        )?;
        Ok(Sums {
            n_rows: self.design.n_rows(),
            grams: vec![curvature, covariance],
            ..Sums::default()
        })
    }

    /// The Hessian over a chunk of rows, and how much of its slope each row adds to its person.
    fn curvatures(
        &self,
        chunk: Range<usize>,
        params: &[f64],
        [steepest, most_curved]: [f64; 2],
        shares: &[f64],
    ) -> Result<(GramAccumulator, Vec<f64>)> {
        let dim = params.len();
        let mut gram = [GramAccumulator::new(dim)];
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut slopes = vec![0.0; chunk.len()];
        let mut buffers = [[0.0; BLOCK]; 2];
        let first = chunk.start;
        for range in blocks(chunk) {
            self.exec.check()?;
            let n = range.len();
            let [u, curvature] = &mut buffers;
            let (u, curvature) = (&mut u[..n], &mut curvature[..n]);
            let slope = &mut slopes[range.start - first..][..n];
            self.design.linear_predictor(range.clone(), params, u);
            let out = Batch {
                slope: Some(&mut *slope),
                curvature: Some(&mut *curvature),
                ..Batch::default()
            };
            self.loss
                .evaluate(u, self.design.targets(range.clone()), out)?;
            vector::clamp(curvature, 0.0, most_curved);
            vector::clamp(slope, -steepest, steepest);
            vector::multiply(slope, &shares[range.clone()]);
            self.weights.multiply(&range, curvature);
            self.design
                .add_grams(range, [curvature], &mut gram, &mut packed);
        }
        let [gram] = gram;
        Ok((gram, slopes))
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
    for start in (0..persons.len()).step_by(size) {
        let group = start..(start + size).min(persons.len());
        // A gradient depends neither on the group nor on the task: each adds a person's rows in their order.
        let step = group.len().div_ceil(TASKS);
        let gradients = exec.map(group.len().div_ceil(step), |task| {
            let first = group.start + task * step;
            gradients_of(
                design,
                persons,
                first..(first + step).min(group.end),
                slopes,
                exec,
            )
        })?;
        let gradients = gradients.concat();
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

/// The gradients of some persons, one after the other. Their rows are read in the order of the table, wherever they are.
fn gradients_of(
    design: &Design<'_>,
    persons: &Persons,
    some: Range<usize>,
    slopes: &[Vec<f64>],
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    let width = design.n_params();
    let dim = slopes.len() * width;
    let mut gradients = vec![0.0; some.len() * dim];
    // Rows and persons in one number: fewer persons than there are numbers in a group.
    let mut rows: Vec<u64> = Vec::new();
    for (k, person) in some.enumerate() {
        let theirs = persons.rows_of(person);
        if theirs.len() <= BLOCK {
            rows.extend(
                theirs
                    .iter()
                    .map(|row| ((*row as u64) << PERSON_BITS) | k as u64),
            );
        } else {
            let blocks = gradients[k * dim..][..dim].chunks_exact_mut(width);
            for (slopes, gradient) in slopes.iter().zip(blocks) {
                add_gradient(design, theirs, slopes, gradient);
            }
        }
    }
    if !rows.is_sorted() {
        rows.sort_unstable();
    }
    let mut scratch = [0.0; BLOCK];
    let runs = rows.chunk_by(|a, b| a + (1 << PERSON_BITS) == *b);
    for (number, run) in runs.enumerate() {
        if number % BLOCK == 0 {
            exec.check()?;
        }
        let (first, k) = (run[0] >> PERSON_BITS, run[0] & (GROUP_NUMBERS as u64 - 1));
        #[expect(clippy::cast_possible_truncation, reason = "both were indexes")]
        let (first, k) = (first as usize, k as usize);
        let weights = &mut scratch[..run.len()];
        let blocks = gradients[k * dim..][..dim].chunks_exact_mut(width);
        for (slopes, gradient) in slopes.iter().zip(blocks) {
            weights.copy_from_slice(&slopes[first..first + run.len()]);
            design.add_weighted_rows(first..first + run.len(), weights, gradient);
        }
    }
    Ok(gradients)
}

/// Bits of the number of a person in a group.
const PERSON_BITS: u32 = 21;

/// Numbers of the gradients of a group: 16 MB. In the next group the rows of other persons are read, from as far apart.
const GROUP_NUMBERS: usize = 1 << PERSON_BITS;

/// Tasks that share a group: few, so that each reads the table nearly row after row.
const TASKS: usize = 2;

/// Adds `Σ sᵢxᵢ` over a person's rows, in blocks whose sums are added with compensation.
fn add_gradient(design: &Design<'_>, rows: &[usize], slopes: &[f64], gradient: &mut [f64]) {
    if rows.len() <= BLOCK {
        return add_block(design, rows, slopes, gradient);
    }
    let mut sum = CompensatedSum::default();
    let mut block_sum = vec![0.0; gradient.len()];
    for rows in rows.chunks(BLOCK) {
        block_sum.fill(0.0);
        add_block(design, rows, slopes, &mut block_sum);
        sum.add(&block_sum);
    }
    gradient
        .iter_mut()
        .zip(sum.values())
        .for_each(|(g, value)| *g = value);
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
