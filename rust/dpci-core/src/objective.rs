//! The (perturbed) empirical risk: value, gradient and Hessian in one pass over the rows.
//!
//! `J(θ) = (1/n) Σ mᵢ l(xᵢᵀθ; yᵢ) + (λ/2)‖θ‖² + aᵀθ`, where `mᵢ` is the number of records that row i
//! stands for, `a = b/n` the linear term of objective perturbation and `n` the
//! public number of samples (under add/remove it is not the number of rows).

use crate::Result;
use crate::exec::Executor;
use crate::linalg::{add_diagonal, vector};
use crate::loss::Loss;
use crate::records::{Records, Request, assembled};

pub use crate::records::HessianRows;

/// An empirical risk as a function of the parameters.
#[derive(Debug)]
pub struct Objective<'a> {
    /// Records.
    pub records: &'a dyn Records,
    /// Loss.
    pub loss: &'a dyn Loss,
    /// How many records each row in memory stands for; `None`: as its multiplicity says.
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

impl<'a> Objective<'a> {
    /// The risk of all records with a ridge.
    pub fn new(
        records: &'a dyn Records,
        loss: &'a dyn Loss,
        l2_strength: f64,
        n_samples: f64,
        exec: &'a Executor<'a>,
    ) -> Self {
        Self {
            records,
            loss,
            weights: None,
            l2_strength,
            extra_convexity: 0.0,
            linear_term: None,
            n_samples,
            exec,
        }
    }

    /// Strong convexity of the whole, rounded down.
    pub fn strong_convexity(&self) -> f64 {
        if self.extra_convexity == 0.0 {
            self.l2_strength
        } else {
            (self.l2_strength + self.extra_convexity) * (1.0 - f64::EPSILON)
        }
    }

    /// `N`, the number of records that the rows stand for.
    pub fn n_records(&self) -> f64 {
        let total = |counts: &[u32]| counts.iter().map(|c| u64::from(*c)).sum::<u64>() as f64;
        self.weights.map_or(self.records.n_records() as f64, total)
    }

    /// Number of parameters: as many for each linear predictor of the loss as a row has.
    pub fn n_params(&self) -> usize {
        self.loss.n_predictors() * self.records.n_params()
    }

    /// Value and gradient, and the Hessian from the rows that are asked for.
    pub fn evaluate(&self, params: &[f64], hessian_rows: HessianRows) -> Result<Evaluation> {
        let request = Request::Risk {
            params: params.to_vec(),
            hessian: hessian_rows,
        };
        let sums = self.records.sums(&request, self.loss, self.weights, self.exec)?;
        let share = sums.gram_rows as f64 / self.records.n_rows() as f64;
        let n = match hessian_rows {
            HessianRows::SampleAlone => self.n_samples * share,
            _ => self.n_samples,
        };
        let linear = |j: usize| self.linear_term.map_or(0.0, |a| a[j]);
        let mut slopes: Vec<f64> = sums.slopes.values().collect();
        let total = slopes.pop().unwrap_or_default();
        let terms = slopes.into_iter().zip(params).enumerate();
        let gradient = terms.map(|(j, (sum, p))| sum / n + (self.l2_strength * p + linear(j)));
        let gradient: Vec<f64> = gradient.collect();
        let ridge = 0.5 * self.l2_strength * vector::dot(params, params);
        let value = total / n + ridge + self.linear_term.map_or(0.0, |a| vector::dot(a, params));
        let hessian = if sums.grams.is_empty() {
            None
        } else {
            let mut hessian = assembled(sums.grams, self.loss.n_predictors(), self.n_samples * share)?;
            add_diagonal(&mut hessian, params.len(), self.l2_strength);
            Some(hessian)
        };
        Ok(Evaluation {
            value,
            gradient,
            hessian,
        })
    }
}
