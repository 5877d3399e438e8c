//! The moments of persons: the Hessian is a sum over rows, the gradient covariance one over persons, each with the gradient of its rows.
//!
//! One pass in the order of the table keeps the slope of every row; then the rows are gathered person by person. Beside the table this
//! takes a number a row.

use std::ops::Range;

use super::Sums;
use super::kernels::Pass;
use crate::Result;
use crate::design::{Design, Persons};
use crate::exec::{BLOCK, Executor, blocks, matrix_chunks};
use crate::linalg::{CompensatedSum, GramAccumulator, PackedBlock, vector};
use crate::loss::Batch;

impl Pass<'_> {
    /// `Σ ω l'' x xᵀ` over the rows and `Σ ḡḡᵀ` over the persons, `ḡ = Σ ω l' x` the mean gradient of one.
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
        let covariance = gradient_squares(self.design, persons, &slopes, self.exec)?;
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
            vector::multiply(curvature, &shares[range.clone()]);
            self.design
                .add_grams(range, [curvature], &mut gram, &mut packed);
        }
        let [gram] = gram;
        Ok((gram, slopes))
    }
}

/// `Σ ḡḡᵀ` over the persons, from how much of its slope each row adds.
pub(super) fn gradient_squares(
    design: &Design<'_>,
    persons: &Persons,
    slopes: &[f64],
    exec: &Executor<'_>,
) -> Result<GramAccumulator> {
    let dim = design.n_params();
    let chunks = matrix_chunks(persons.len(), dim);
    let parts = exec.map(chunks.len(), |c| {
        let mut gram = GramAccumulator::new(dim);
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut gradients = vec![0.0; BLOCK * dim];
        let ones = [1.0; BLOCK];
        for range in blocks(chunks[c].clone()) {
            exec.check()?;
            let n = range.len();
            let gradients = &mut gradients[..n * dim];
            gradients.fill(0.0);
            for (person, gradient) in range.zip(gradients.chunks_exact_mut(dim)) {
                add_gradient(design, persons.rows_of(person), slopes, gradient);
            }
            packed.fill(n, gradients, None, None);
            gram.add(&packed, &ones[..n]);
        }
        Ok(gram)
    })?;
    let mut total = GramAccumulator::new(dim);
    for part in parts {
        total.merge(&part);
    }
    Ok(total)
}

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
