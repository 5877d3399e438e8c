//! One pass over rows in memory: chunks on threads, blocks of rows in each, partial sums added in order.

use std::ops::Range;

use super::pass::{Pass, Weights};
use super::several::Matrices;
use super::{Capped, HessianRows, Request, Sums};
use crate::design::Design;
use crate::error::check_length;
use crate::exec::{BLOCK, Executor, blocks, matrix_chunks};
use crate::linalg::{Doubled, GramAccumulator, PackedBlock, doubled_accumulate, doubled_predict, vector};
use crate::loss::{Batch, Loss};
use crate::{Error, Result};

/// Rows for each parameter that make a sampled Hessian a good preconditioner: eigenvalues err by about 2/√200 = 14%.
const SAMPLED_ROWS_PER_PARAMETER: usize = 200;

/// Greatest share of the rows that a sample leaves out.
const GREATEST_STRIDE: usize = 8;

/// The same for a sample whose risk is minimised alone: some ten passes over it cost less than one over all rows.
const GREATEST_STRIDE_ALONE: usize = 32;

/// Sums as of [`super::Records::sums`], for rows in memory.
pub(super) fn sums(
    design: &Design<'_>,
    request: &Request,
    loss: &dyn Loss,
    weights: Option<&[u32]>,
    exec: &Executor<'_>,
) -> Result<Sums> {
    let n_predictors = loss.n_predictors();
    let dim = n_predictors * design.n_params();
    check_length("params", dim, request.n_params().unwrap_or(dim))?;
    if let (Request::Lengths, Some(squares)) = (request, design.extreme_squares()) {
        return Ok(Sums {
            n_rows: design.n_rows(),
            squares,
            ..Sums::default()
        });
    }
    match request {
        Request::Moved { rounding, of } => {
            return sums(&rounding.of(design, exec)?, of, loss, weights, exec);
        }
        Request::MovedCounts { map, radii } => {
            return Ok(Sums {
                n_rows: design.n_rows(),
                slopes: design.moved(map, exec)?.counts(radii),
                ..Sums::default()
            });
        }
        Request::DerivativeCounts {
            params,
            gradients,
            hessians,
        } => {
            let bounds = [gradients.as_slice(), hessians];
            let [mut slopes, of_hessians] = design.counts_of_derivatives(loss, params, bounds, exec)?;
            slopes.append(&of_hessians);
            return Ok(Sums {
                n_rows: design.n_rows(),
                slopes,
                ..Sums::default()
            });
        }
        _ => {}
    }
    let pass = Pass {
        design,
        loss,
        weights: Weights::new(design, weights),
        exec,
    };
    let chunks = match request {
        Request::Moments { .. }
        | Request::Hessian { .. }
        | Request::Capped { of: Capped::Slopes, .. }
        | Request::SecondMoments => matrix_chunks(design.n_rows(), dim),
        Request::Risk { hessian, .. } if *hessian != HessianRows::None => matrix_chunks(design.n_rows(), dim),
        _ => design.chunks(),
    };
    let limits = match request {
        Request::Moments { params } | Request::Hessian { params } if n_predictors == 1 => pass.suprema(params)?,
        _ => [0.0; 2],
    };
    match (request, design.persons()) {
        (Request::Moments { params }, Some(persons)) if n_predictors > 1 => {
            return pass.several_moments_of_persons(&chunks, params, persons);
        }
        (Request::Moments { params }, Some(persons)) => {
            return pass.moments_of_persons(&chunks, params, limits, persons);
        }
        (
            Request::Capped {
                of: Capped::Slopes,
                params,
                cap,
                targets,
            },
            Some(persons),
        ) if n_predictors == 1 => {
            return pass.capped_slopes_of_persons(&chunks, params, (*cap, *targets), persons);
        }
        _ => {}
    }
    let partials = exec.map(chunks.len(), |c| {
        let n_rows = chunks[c].len();
        let sums = pass.answer(request, chunks[c].clone(), limits)?;
        Ok(Sums { n_rows, ..sums })
    })?;
    let mut partials = partials.into_iter();
    let mut total = partials.next().ok_or(Error::Empty { rows: 0, params: dim })?;
    for part in partials {
        total.merge(&part)?;
    }
    Ok(total)
}

impl Pass<'_> {
    /// The sums over a chunk that are asked for; `limits` are the suprema of slope and curvature where they count.
    fn answer(&self, request: &Request, chunk: Range<usize>, limits: [f64; 2]) -> Result<Sums> {
        let n_predictors = self.loss.n_predictors();
        match request {
            Request::Lengths => self.lengths(chunk),
            Request::SecondMoments => self.second_moments(chunk),
            Request::Risk { params, hessian } if n_predictors > 1 => {
                let matrices = match hessian {
                    HessianRows::None => Matrices::None,
                    HessianRows::All | HessianRows::Sample | HessianRows::SampleAlone => Matrices::Hessian,
                };
                self.several(chunk, params, matrices)
            }
            Request::Moments { params } if n_predictors > 1 => self.several(chunk, params, Matrices::Moments),
            _ if n_predictors > 1 => Err(Error::Unsupported(format!(
                "these sums require a loss with one linear predictor, got the {} loss",
                self.loss.name()
            ))),
            Request::Risk { params, hessian } => self.risk(chunk, params, *hessian),
            Request::Moments { params } => self.moments(chunk, params, limits),
            Request::Hessian { params } => self.hessian(chunk, params, limits),
            Request::Capped {
                of,
                params,
                cap,
                targets,
            } => match of {
                Capped::Slopes => self.capped_slopes(chunk, params, (*cap, *targets)),
                Capped::Gradient => self.capped_gradient(chunk, params, (*cap, *targets)),
                Capped::Levels => self.slope_levels(chunk, params, (*cap, *targets)),
            },
            Request::DoubledGradient { point } => self.doubled_gradient(chunk, point),
            Request::Moved { .. } | Request::MovedCounts { .. } | Request::DerivativeCounts { .. } => Err(
                Error::Unsupported("moved rows must be counted before they are summed".into()),
            ),
        }
    }

    /// Value, gradient and Hessian over a chunk.
    fn risk(&self, chunk: Range<usize>, params: &[f64], hessian: HessianRows) -> Result<Sums> {
        let dim = params.len();
        let with_hessian = hessian != HessianRows::None;
        let stride = self.stride(hessian, dim);
        let at_zero = params.iter().all(|p| *p == 0.0);
        let mut sums = Sums::default();
        let mut gram = [GramAccumulator::new(if with_hessian { dim } else { 0 })];
        let mut packed = PackedBlock::new(dim, if with_hessian { BLOCK } else { 0 });
        let (mut buffers, mut block_sums) = ([[0.0; BLOCK]; 4], vec![0.0; dim + 1]);
        for range in blocks(chunk) {
            let sampled = (range.start / BLOCK).is_multiple_of(stride);
            if !sampled && hessian == HessianRows::SampleAlone {
                continue;
            }
            self.exec.check()?;
            let n = range.len();
            let [u, slope, curvature, multiplicity] = &mut buffers;
            let (u, slope, curvature) = (&mut u[..n], &mut slope[..n], &mut curvature[..n]);
            let multiplicity = self.weights.of(&range, multiplicity);
            let mut value = 0.0;
            if at_zero {
                u.fill(0.0);
            } else {
                self.design.linear_predictor(range.clone(), params, u);
            }
            let out = Batch {
                total: Some(&mut value),
                slope: Some(&mut *slope),
                curvature: with_hessian.then_some(&mut *curvature),
                weights: multiplicity,
            };
            let targets = self.design.targets(range.clone());
            self.loss.evaluate(u, targets, out)?;
            self.design
                .weigh(&range, self.loss, u, [&mut *slope, &mut *curvature])?;
            if let Some(multiplicity) = multiplicity {
                vector::multiply(slope, multiplicity);
                vector::multiply(curvature, multiplicity);
            }
            block_sums.fill(0.0);
            block_sums[dim] = value;
            let gradient = &mut block_sums[..dim];
            if with_hessian && sampled {
                sums.gram_rows += n;
                self.design
                    .add_rows_and_gram(range, (slope, gradient), curvature, &mut gram, &mut packed);
            } else {
                self.design.add_weighted_rows(range, slope, gradient);
            }
            sums.slopes.add(&block_sums);
        }
        if with_hessian {
            sums.grams = gram.into();
        }
        Ok(sums)
    }

    /// One of so many blocks is in the Hessian.
    fn stride(&self, hessian: HessianRows, dim: usize) -> usize {
        let greatest = match hessian {
            HessianRows::Sample if self.weights.counts.is_none() => GREATEST_STRIDE,
            HessianRows::SampleAlone => GREATEST_STRIDE_ALONE,
            _ => 1,
        };
        (self.design.n_rows() / (SAMPLED_ROWS_PER_PARAMETER * dim)).clamp(1, greatest)
    }

    /// Second moments of slopes, and curvatures, over a chunk.
    fn moments(&self, chunk: Range<usize>, params: &[f64], limits: [f64; 2]) -> Result<Sums> {
        let dim = params.len();
        let mut grams = [GramAccumulator::new(dim), GramAccumulator::new(dim)];
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut buffers = [[0.0; BLOCK]; 4];
        for range in blocks(chunk) {
            self.exec.check()?;
            let n = range.len();
            let [u, slope, curvature, multiplicity] = &mut buffers;
            let (u, slope, curvature) = (&mut u[..n], &mut slope[..n], &mut curvature[..n]);
            self.bounded_derivatives(&range, params, limits, [u, slope, curvature])?;
            // The gradient of a weighted record is squared with its weight; equal records add up.
            if let Some(shares) = self.weights.shares_of(&range) {
                vector::multiply(slope, shares);
                vector::multiply(curvature, shares);
            }
            for s in slope.iter_mut() {
                *s *= *s;
            }
            if let Some(counts) = self.weights.counts_of(&range, multiplicity) {
                vector::multiply(slope, counts);
                vector::multiply(curvature, counts);
            }
            self.design
                .add_grams(range, [curvature, slope], &mut grams, &mut packed);
        }
        Ok(Sums {
            grams: grams.into(),
            ..Sums::default()
        })
    }

    /// Second moments of curvatures over a chunk.
    fn hessian(&self, chunk: Range<usize>, params: &[f64], limits: [f64; 2]) -> Result<Sums> {
        let mut gram = [GramAccumulator::new(params.len())];
        let mut packed = PackedBlock::new(params.len(), BLOCK);
        let mut buffers = [[0.0; BLOCK]; 3];
        for range in blocks(chunk) {
            self.exec.check()?;
            let [u, slope, curvature] = buffers.each_mut().map(|b| &mut b[..range.len()]);
            self.bounded_derivatives(&range, params, limits, [u, slope, &mut *curvature])?;
            self.weights.multiply(&range, curvature);
            self.design.add_grams(range, [&*curvature], &mut gram, &mut packed);
        }
        Ok(Sums {
            grams: gram.into(),
            ..Sums::default()
        })
    }

    /// The gradient over a chunk in doubled precision.
    fn doubled_gradient(&self, chunk: Range<usize>, point: &[Doubled]) -> Result<Sums> {
        let dim = point.len();
        let mut sum = vec![Doubled::default(); dim];
        let mut rows = vec![0.0; BLOCK * dim];
        let mut slopes = [Doubled::default(); BLOCK];
        let mut buffer = [0.0; BLOCK];
        for range in blocks(chunk) {
            self.exec.check()?;
            let slopes = &mut slopes[..range.len()];
            let sparse = self.design.sparse_block(range.clone());
            let rows = &mut rows[..range.len() * dim];
            if let Some(sparse) = &sparse {
                for (predictor, row) in slopes.iter_mut().zip(sparse.rows()) {
                    *predictor = row.iter().fold(Doubled::default(), |u, &(j, x)| u + point[j] * x);
                }
            } else {
                self.design.write_rows(range.clone(), rows);
                doubled_predict(rows, point, slopes);
            }
            self.loss.doubled_slopes(slopes, self.design.targets(range.clone()));
            if let Some(weights) = self.weights.of(&range, &mut buffer) {
                for (slope, weight) in slopes.iter_mut().zip(weights) {
                    *slope = *slope * *weight;
                }
            }
            if let Some(sparse) = &sparse {
                for (row, &slope) in sparse.rows().zip(&*slopes) {
                    for &(j, x) in row {
                        sum[j] = sum[j] + slope * x;
                    }
                }
            } else {
                doubled_accumulate(rows, slopes, &mut sum);
            }
        }
        Ok(Sums {
            doubled: sum,
            ..Sums::default()
        })
    }

    /// Second moments of the rows of a chunk, each row by its share of its record, and their products with the targets.
    fn second_moments(&self, chunk: Range<usize>) -> Result<Sums> {
        let dim = self.design.n_params();
        let mut gram = [GramAccumulator::new(dim)];
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut sums = Sums::default();
        let mut block_sums = vec![0.0; dim];
        let (mut buffer, mut weighted) = ([0.0; BLOCK], [0.0; BLOCK]);
        let once = [1.0; BLOCK];
        for range in blocks(chunk) {
            self.exec.check()?;
            let counts = self.weights.of(&range, &mut buffer);
            let counts = counts.unwrap_or(&once[..range.len()]);
            let weighted = &mut weighted[..range.len()];
            weighted.copy_from_slice(self.design.targets(range.clone()));
            vector::multiply(weighted, counts);
            self.design.add_grams(range.clone(), [counts], &mut gram, &mut packed);
            block_sums.fill(0.0);
            self.design.add_weighted_rows(range, weighted, &mut block_sums);
            sums.slopes.add(&block_sums);
        }
        sums.grams = gram.into();
        Ok(sums)
    }

    /// The squared lengths of the shortest and of the longest row of a chunk, rounded up.
    fn lengths(&self, chunk: Range<usize>) -> Result<Sums> {
        let mut sums = Sums::default();
        let mut squares = [0.0; BLOCK];
        for range in blocks(chunk) {
            self.exec.check()?;
            let squares = &mut squares[..range.len()];
            self.design.squared_norms(range, squares);
            for square in squares {
                sums.squares = [sums.squares[0].min(*square), sums.squares[1].max(*square)];
            }
        }
        Ok(sums)
    }
}
