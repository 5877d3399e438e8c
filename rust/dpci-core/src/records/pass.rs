//! The rows of one pass with their weights, and the derivatives of the loss at a block of them.

use std::ops::Range;

use crate::design::Design;
use crate::exec::{BLOCK, Executor};
use crate::linalg::vector;
use crate::loss::{Batch, Loss};
use crate::row_domain::row_norm_bound;
use crate::{Error, Result};

/// The rows of one pass.
pub(super) struct Pass<'a> {
    pub(super) design: &'a Design<'a>,
    pub(super) loss: &'a dyn Loss,
    pub(super) weights: Weights<'a>,
    pub(super) exec: &'a Executor<'a>,
}

/// How much each row counts: the product of both, of which `None` is 1.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    /// Number of records for which it, or its person, stands.
    pub(super) counts: Option<&'a [u32]>,
    /// A share of its person, or of the greatest weight.
    shares: Option<&'a [f64]>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(design: &'a Design<'_>, counts: Option<&'a [u32]>) -> Self {
        Self {
            counts: counts.or(design.multiplicities()),
            shares: design.shares(),
        }
    }

    /// The counts of a block of rows.
    pub(super) fn counts_of<'b>(self, range: &Range<usize>, buffer: &'b mut [f64]) -> Option<&'b [f64]> {
        let counts = self.counts?;
        Some(vector::load(&counts[range.clone()], buffer))
    }

    /// The shares of a block of rows.
    pub(super) fn shares_of(self, range: &Range<usize>) -> Option<&'a [f64]> {
        self.shares.map(|shares| &shares[range.clone()])
    }

    /// The weights of a block of rows; `None`: one each.
    pub(super) fn of<'b>(self, range: &Range<usize>, buffer: &'b mut [f64]) -> Option<&'b [f64]>
    where
        'a: 'b,
    {
        match (self.counts, self.shares_of(range)) {
            (None, shares) => shares,
            (Some(counts), None) => Some(vector::load(&counts[range.clone()], buffer)),
            (Some(counts), Some(shares)) => {
                let weights = &mut buffer[..range.len()];
                let factors = counts[range.clone()].iter().zip(shares);
                for (weight, (count, share)) in weights.iter_mut().zip(factors) {
                    *weight = f64::from(*count) * share;
                }
                Some(weights)
            }
        }
    }

    /// Multiplies numbers of a block of rows by their weights.
    pub(super) fn multiply(self, range: &Range<usize>, values: &mut [f64]) {
        let mut buffer = [0.0; BLOCK];
        if let Some(weights) = self.of(range, &mut buffer) {
            vector::multiply(values, weights);
        }
    }
}

impl Pass<'_> {
    /// The greatest slope and curvature that a record can have at these parameters.
    pub(super) fn suprema(&self, params: &[f64]) -> Result<[f64; 2]> {
        if self.loss.kinked() {
            return Err(Error::Unsupported(format!(
                "moments require a loss with a second derivative, got the {} loss (use huber_hinge or smooth_hinge, which round \
                the kink)",
                self.loss.name()
            )));
        }
        let bounds = self.design.bounds();
        let reach = if bounds.on_violation.keeps_rows() {
            f64::INFINITY
        } else {
            row_norm_bound(bounds.rows.norm(), self.design.intercept())
                * vector::norm_bound(params)
                * (1.0 + (params.len() as f64 + 8.0) * f64::EPSILON)
        };
        Ok([self.loss.sup_slope(reach), self.loss.sup_curvature(reach)])
    }

    /// Predictors, slopes and curvatures of a block of rows, the last two within their suprema, whatever rounding did.
    pub(super) fn bounded_derivatives(
        &self,
        range: &Range<usize>,
        params: &[f64],
        [steepest, most_curved]: [f64; 2],
        [u, slope, curvature]: [&mut [f64]; 3],
    ) -> Result<()> {
        self.design.linear_predictor(range.clone(), params, u);
        let out = Batch::derivatives(&mut *slope, &mut *curvature);
        self.loss.evaluate(u, self.design.targets(range.clone()), out)?;
        vector::clamp(curvature, 0.0, most_curved);
        vector::clamp(slope, -steepest, steepest);
        self.design.weigh(range, self.loss, u, [slope, curvature])
    }
}
