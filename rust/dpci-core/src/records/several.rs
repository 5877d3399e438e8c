//! Sums for losses of several linear predictors: each predictor has a block of parameters, each pair of predictors a block of a matrix.

use std::ops::Range;

use super::Sums;
use super::pass::Pass;
use super::person_moments::gradient_squares;
use crate::Result;
use crate::design::Persons;
use crate::error::check_length;
use crate::exec::{BLOCK, blocks};
use crate::linalg::{GramAccumulator, PackedBlock, vector};
use crate::loss::{SeveralBatch, pairs};

/// Matrices that [`Pass::several`] sums beside value and gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matrices {
    None,
    /// The Hessian.
    Hessian,
    /// The Hessian and the second moments of the gradients.
    Moments,
}

impl Pass<'_> {
    /// Value, gradient and matrices over a chunk. The gram of a pair of predictors sums `M_jk xxᵀ`, then come those of `r_j r_k xxᵀ`.
    pub(super) fn several(&self, chunk: Range<usize>, params: &[f64], matrices: Matrices) -> Result<Sums> {
        let n_predictors = self.loss.n_predictors();
        let width = self.design.n_params();
        let n_pairs = pairs(n_predictors).count();
        let n_grams = match matrices {
            Matrices::None => 0,
            Matrices::Hessian => n_pairs,
            Matrices::Moments => 2 * n_pairs,
        };
        let mut sums = Sums::default();
        let mut grams: Vec<[GramAccumulator; 1]> = (0..n_grams).map(|_| [GramAccumulator::new(width)]).collect();
        let mut packed = PackedBlock::new(width, if n_grams > 0 { BLOCK } else { 0 });
        let [mut u, mut slopes] = [(); 2].map(|()| vec![0.0; n_predictors * BLOCK]);
        let mut curvatures = vec![0.0; n_pairs * BLOCK];
        let (mut buffer, mut weighted) = ([0.0; BLOCK], [0.0; BLOCK]);
        let mut block_sums = vec![0.0; params.len() + 1];
        for range in blocks(chunk) {
            self.exec.check()?;
            let n = range.len();
            let (u, slopes) = (&mut u[..n_predictors * n], &mut slopes[..n_predictors * n]);
            let curvatures = &mut curvatures[..n_pairs * n];
            for (u, params) in u.chunks_exact_mut(n).zip(params.chunks_exact(width)) {
                self.design.linear_predictor(range.clone(), params, u);
            }
            let counts = self.weights.of(&range, &mut buffer);
            let mut value = 0.0;
            let out = SeveralBatch {
                total: &mut value,
                weights: counts,
                slopes,
                curvatures: &mut (n_grams > 0).then_some(&mut *curvatures),
            };
            self.loss.evaluate_several(u, self.design.targets(range.clone()), out)?;
            let mut add = |weights: &[f64], gram: &mut [GramAccumulator; 1]| {
                let weighted = &mut weighted[..n];
                weighted.copy_from_slice(weights);
                if let Some(counts) = counts {
                    vector::multiply(weighted, counts);
                }
                self.design.add_grams(range.clone(), [weighted], gram, &mut packed);
            };
            let (hessian, squares) = grams.split_at_mut(n_pairs.min(n_grams));
            for (gram, weights) in hessian.iter_mut().zip(curvatures.chunks_exact(n)) {
                add(weights, gram);
            }
            let mut product = [0.0; BLOCK];
            for (gram, (j, k)) in squares.iter_mut().zip(pairs(n_predictors)) {
                let product = &mut product[..n];
                product.copy_from_slice(&slopes[j * n..][..n]);
                vector::multiply(product, &slopes[k * n..][..n]);
                // The gradient of a weighted record is squared with its weight; equal records add up.
                if let Some(shares) = self.weights.shares_of(&range) {
                    vector::multiply(product, shares);
                }
                add(product, gram);
            }
            block_sums.fill(0.0);
            block_sums[params.len()] = value;
            let blocks_of_gradient = block_sums[..params.len()].chunks_exact_mut(width);
            for (slope, gradient) in slopes.chunks_exact_mut(n).zip(blocks_of_gradient) {
                if let Some(counts) = counts {
                    vector::multiply(slope, counts);
                }
                self.design.add_weighted_rows(range.clone(), slope, gradient);
            }
            if matrices != Matrices::Moments {
                sums.slopes.add(&block_sums);
            }
            if n_grams > 0 {
                sums.gram_rows += n;
            }
        }
        sums.grams = grams.into_iter().flatten().collect();
        Ok(sums)
    }

    /// The Hessian's blocks over the rows, and `Σ ḡḡᵀ` over the persons as one block of all parameters: the gradient `ḡ` of a person is no
    /// product with a single row.
    pub(super) fn several_moments_of_persons(
        &self,
        chunks: &[Range<usize>],
        params: &[f64],
        persons: &Persons,
    ) -> Result<Sums> {
        let parts = self.exec.map(chunks.len(), |c| {
            let chunk = chunks[c].clone();
            let slopes = self.several_slopes(chunk.clone(), params, persons.shares())?;
            Ok((self.several(chunk, params, Matrices::Hessian)?, slopes))
        })?;
        let mut grams: Vec<GramAccumulator> = Vec::new();
        let mut slopes = vec![Vec::new(); self.loss.n_predictors()];
        for (sums, of_chunk) in parts {
            if grams.is_empty() {
                grams = sums.grams;
            } else {
                for (gram, part) in grams.iter_mut().zip(&sums.grams) {
                    gram.merge(part);
                }
            }
            for (slopes, part) in slopes.iter_mut().zip(of_chunk) {
                slopes.extend(part);
            }
        }
        let counts = self.weights.counts;
        grams.push(gradient_squares(self.design, persons, &slopes, counts, self.exec)?);
        Ok(Sums {
            n_rows: self.design.n_rows(),
            grams,
            ..Sums::default()
        })
    }

    /// How much of its slopes each row of a chunk adds to its person, for one predictor after another.
    fn several_slopes(&self, chunk: Range<usize>, params: &[f64], shares: &[f64]) -> Result<Vec<Vec<f64>>> {
        let n_predictors = self.loss.n_predictors();
        let width = self.design.n_params();
        let mut kept = vec![Vec::with_capacity(chunk.len()); n_predictors];
        let [mut u, mut slopes] = [(); 2].map(|()| vec![0.0; n_predictors * BLOCK]);
        for range in blocks(chunk) {
            self.exec.check()?;
            let n = range.len();
            let (u, slopes) = (&mut u[..n_predictors * n], &mut slopes[..n_predictors * n]);
            for (u, params) in u.chunks_exact_mut(n).zip(params.chunks_exact(width)) {
                self.design.linear_predictor(range.clone(), params, u);
            }
            let out = SeveralBatch {
                total: &mut 0.0,
                weights: None,
                slopes,
                curvatures: &mut None,
            };
            self.loss.evaluate_several(u, self.design.targets(range.clone()), out)?;
            for (kept, slope) in kept.iter_mut().zip(slopes.chunks_exact_mut(n)) {
                vector::multiply(slope, &shares[range.clone()]);
                kept.extend_from_slice(slope);
            }
        }
        Ok(kept)
    }
}

/// The matrix of the blocks that were summed for the pairs of predictors, or of one block of all parameters, divided by `divisor`, row-major.
pub(crate) fn assembled(grams: Vec<GramAccumulator>, n_predictors: usize, divisor: f64) -> Result<Vec<f64>> {
    let grams = match <[GramAccumulator; 1]>::try_from(grams) {
        Ok([whole]) => return Ok(whole.finish(divisor)),
        Err(grams) => grams,
    };
    let expected = pairs(n_predictors).count();
    check_length("the blocks of a matrix", expected, grams.len())?;
    let width = grams.first().map_or(0, GramAccumulator::dim);
    let dim = n_predictors * width;
    let mut out = vec![0.0; dim * dim];
    for (gram, (j, k)) in grams.into_iter().zip(pairs(n_predictors)) {
        let block = gram.finish(divisor);
        for (a, row) in block.chunks_exact(width).enumerate() {
            for (at, b) in [(j, k), (k, j)] {
                out[(at * width + a) * dim + b * width..][..width].copy_from_slice(row);
            }
        }
    }
    Ok(out)
}
