//! The (perturbed) empirical risk: value, gradient and Hessian in one pass over the rows.
//!
//! `J(θ) = (1/n) Σ mᵢ l(xᵢᵀθ; yᵢ) + (λ/2)‖θ‖² + aᵀθ`, where `mᵢ` is the number of records that row i
//! stands for, `a = b/n` the linear term of objective perturbation and `n` the
//! public number of samples (under add/remove it is not the number of rows).

use crate::design::Design;
use crate::error::check_length;
use crate::exec::{BLOCK, Executor, blocks, matrix_chunks};
use crate::linalg::{
    CompensatedSum, GRAM_ROUNDINGS, GramAccumulator, PackedBlock, add_diagonal, sum_rounding,
    vector,
};
use crate::loss::{Batch, Loss, VALUE_ROUNDINGS};
use crate::{Error, Result};

/// An empirical risk as a function of the parameters.
#[derive(Debug)]
pub struct Objective<'a> {
    /// Rows.
    pub design: &'a Design<'a>,
    /// Loss.
    pub loss: &'a dyn Loss,
    /// How many records each row stands for; `None`: as the design's multiplicities say.
    pub weights: Option<&'a [u32]>,
    /// λ.
    pub l2_strength: f64,
    /// Strong convexity that the loss declares, beyond λ.
    pub extra_convexity: f64,
    /// `a = b/n`, or nothing.
    pub linear_term: Option<&'a [f64]>,
    /// The public `n` that divides the sum.
    pub n_samples: f64,
    /// Threads and cancellation.
    pub exec: &'a Executor<'a>,
}

/// The objective and its derivatives at one point.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// `J(θ)`.
    pub value: f64,
    /// `∇J(θ)`.
    pub gradient: Vec<f64>,
    /// `∇²J(θ)`, row-major, where it was asked for.
    pub hessian: Option<Vec<f64>>,
}

/// Which Hessian an evaluation computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HessianRows {
    /// None.
    None,
    /// From all rows: exact.
    All,
    /// From every k-th block of rows, scaled up; exact unless there are many more rows than parameters. A preconditioner.
    Sample,
}

/// Rows for each parameter that make a sampled Hessian a good preconditioner: eigenvalues err by about 2/√200 = 14%.
const SAMPLED_ROWS_PER_PARAMETER: usize = 200;

/// Roundings that one term of a gradient passes through beside those of its slope: multiplicity, scale and product, the additions in
/// its block, compensated sum and quotient.
pub(crate) const GRADIENT_ROUNDINGS: usize = BLOCK + 8;

/// Bound on the Euclidean distance of the data part of a gradient of [`Objective::evaluate`] to `(1/n) Σ l'(ûᵢ) xᵢ` in real numbers, `ûᵢ`
/// the computed predictor of record i, in terms of `N/n·sup|l'|·R` for `N` records.
#[must_use]
pub fn gradient_rounding(n_rows: usize) -> f64 {
    sum_rounding(GRADIENT_ROUNDINGS + VALUE_ROUNDINGS, n_rows)
}

/// The same for the data part of its Hessian, Frobenius, in terms of `N/n·sup l''·R²`.
#[must_use]
pub fn hessian_rounding(n_rows: usize) -> f64 {
    sum_rounding(GRAM_ROUNDINGS + VALUE_ROUNDINGS, n_rows)
}

/// Sums over a chunk of rows.
struct Partial {
    value: f64,
    gradient: CompensatedSum,
    gram: Option<[GramAccumulator; 1]>,
    gram_rows: usize,
}

impl Objective<'_> {
    /// Strong convexity of the whole, rounded down.
    #[must_use]
    pub fn strong_convexity(&self) -> f64 {
        if self.extra_convexity == 0.0 {
            self.l2_strength
        } else {
            (self.l2_strength + self.extra_convexity) * (1.0 - f64::EPSILON)
        }
    }

    /// `N`, the number of records that the rows stand for.
    #[must_use]
    pub fn n_records(&self) -> f64 {
        let total = |counts: &[u32]| counts.iter().map(|c| u64::from(*c)).sum::<u64>() as f64;
        self.weights.map_or(self.design.n_records() as f64, total)
    }

    /// Value and gradient, and the Hessian from the rows that are asked for.
    ///
    /// # Errors
    /// [`Error::Loss`], [`Error::Interrupted`], [`Error::Length`] for parameters of another length.
    pub fn evaluate(&self, params: &[f64], hessian_rows: HessianRows) -> Result<Evaluation> {
        let dim = self.design.n_params();
        check_length("params", dim, params.len())?;
        let chunks = if hessian_rows == HessianRows::None {
            self.design.chunks()
        } else {
            matrix_chunks(self.design.n_rows(), dim)
        };
        let partials = self.exec.map(chunks.len(), |c| {
            self.sum_chunk(chunks[c].clone(), params, hessian_rows)
        })?;
        let mut partials = partials.into_iter();
        let Some(mut total) = partials.next() else {
            return Err(Error::Empty {
                rows: 0,
                params: dim,
            });
        };
        for part in partials {
            total.value += part.value;
            total.gradient.merge(&part.gradient);
            if let (Some([a]), Some([b])) = (&mut total.gram, &part.gram) {
                a.merge(b);
                total.gram_rows += part.gram_rows;
            }
        }
        let n = self.n_samples;
        let linear = |j: usize| self.linear_term.map_or(0.0, |a| a[j]);
        let sums = total.gradient.values().zip(params).enumerate();
        let gradient = sums.map(|(j, (sum, p))| sum / n + (self.l2_strength * p + linear(j)));
        let gradient: Vec<f64> = gradient.collect();
        let ridge = 0.5 * self.l2_strength * vector::dot(params, params);
        let value =
            total.value / n + ridge + self.linear_term.map_or(0.0, |a| vector::dot(a, params));
        let hessian = total.gram.map(|[gram]| {
            let share = total.gram_rows as f64 / self.design.n_rows() as f64;
            let mut hessian = gram.finish(n * share);
            add_diagonal(&mut hessian, dim, self.l2_strength);
            hessian
        });
        Ok(Evaluation {
            value,
            gradient,
            hessian,
        })
    }

    /// Unnormalised sums over a chunk.
    fn sum_chunk(
        &self,
        chunk: std::ops::Range<usize>,
        params: &[f64],
        hessian_rows: HessianRows,
    ) -> Result<Partial> {
        let dim = params.len();
        let with_hessian = hessian_rows != HessianRows::None;
        let stride = match hessian_rows {
            HessianRows::Sample if self.weights.or(self.design.multiplicities()).is_none() => {
                (self.design.n_rows() / (SAMPLED_ROWS_PER_PARAMETER * dim)).clamp(1, 8)
            }
            _ => 1,
        };
        let mut partial = Partial {
            value: 0.0,
            gradient: CompensatedSum::default(),
            gram: with_hessian.then(|| [GramAccumulator::new(dim)]),
            gram_rows: 0,
        };
        let mut packed = PackedBlock::new(dim, if with_hessian { BLOCK } else { 0 });
        let mut buffers = [[0.0; BLOCK]; 4];
        let mut block_gradient = vec![0.0; dim];
        let weights = self.weights.or(self.design.multiplicities());
        for range in blocks(chunk) {
            self.exec.check()?;
            let n = range.len();
            let [u, slope, curvature, multiplicity] = &mut buffers;
            let (u, slope, curvature) = (&mut u[..n], &mut slope[..n], &mut curvature[..n]);
            let multiplicity = weights.map(|w| vector::load(&w[range.clone()], multiplicity));
            let mut total = 0.0;
            self.design.linear_predictor(range.clone(), params, u);
            let out = Batch {
                total: Some(&mut total),
                slope: Some(&mut *slope),
                curvature: with_hessian.then_some(&mut *curvature),
                weights: multiplicity,
            };
            self.loss
                .evaluate(u, self.design.targets(range.clone()), out)?;
            partial.value += total;
            if let Some(multiplicity) = multiplicity {
                vector::multiply(slope, multiplicity);
                vector::multiply(curvature, multiplicity);
            }
            block_gradient.fill(0.0);
            self.design
                .add_weighted_rows(range.clone(), slope, &mut block_gradient);
            partial.gradient.add(&block_gradient);
            if let Some(gram) = &mut partial.gram
                && (range.start / BLOCK).is_multiple_of(stride)
            {
                partial.gram_rows += n;
                self.design.add_grams(range, [curvature], gram, &mut packed);
            }
        }
        Ok(partial)
    }
}
