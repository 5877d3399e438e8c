//! The full-data risk that a study's replicates start from: its minimiser, and what they share there.

use std::sync::Arc;

use crate::Result;
use crate::design::Design;
use crate::erm::minimize_risk;
use crate::exec::{BLOCK, Executor, blocks};
use crate::linalg::{Cholesky, vector};
use crate::loss::{Batch, Loss, SERIES_REACH, Series};
use crate::mechanism::solver_options;
use crate::objective::{HessianRows, Objective};
use crate::spec::Spec;

/// The full-data risk of one loss and λ, at its minimiser.
#[derive(Debug)]
pub(super) struct Population {
    /// The minimiser: the target of the intervals, and where every replicate starts.
    pub(super) target: Vec<f64>,
    /// Slopes of the loss there, by row.
    pub(super) slopes: Vec<f64>,
    /// Whether the predictors of most records are near those of the samples' minimisers, so that series around them serve.
    pub(super) is_near: bool,
    /// Factor of the Hessian there.
    pub(super) factor: Arc<Cholesky>,
    /// Whether the target lies on the sphere around the domain, as the minimisers of most samples then do.
    pub(super) on_sphere: bool,
    /// Whether the minimisers of samples are found one by one: so too where the loss has a kink, may not be evaluated
    /// everywhere, or has no bounded curvature beyond the ball.
    pub(super) one_by_one: bool,
}

impl Population {
    /// That of a configuration, whose minimiser meets a certificate of `tolerance`.
    pub(super) fn new(
        design: &Design<'static>,
        spec: &Spec,
        tolerance: f64,
        exec: &Executor<'_>,
    ) -> Result<Self> {
        let objective = risk(design, spec, None, None, exec);
        let options = solver_options(spec, tolerance);
        let target = minimize_risk(&objective, None, &options)?.params;
        let hessian = objective
            .evaluate(&target, HessianRows::All)?
            .hessian
            .unwrap_or_default();
        let factor = Cholesky::new(&hessian, spec.n_params(), "the full-data Hessian")?;
        let loss = objective.loss;
        let on_sphere = spec
            .radius()
            .is_some_and(|w| vector::norm(&target) >= w * (1.0 - 1e-9));
        // A predictor's standard deviation is of the order of 2√(dim/n), which a quarter of the reach or less serves at all records.
        let room = SERIES_REACH * SERIES_REACH / 64.0;
        let is_near = loss.slope_series(&[], &[], &mut Series::default())
            && spec.n_params() as f64 <= room * design.n_records() as f64;
        Ok(Self {
            on_sphere,
            is_near,
            one_by_one: loss.kinked()
                || loss.predictor_bound().is_some()
                || loss.curvature_bound().is_infinite()
                || on_sphere,
            slopes: slopes(design, loss, &target)?,
            target,
            factor: Arc::new(factor),
        })
    }
}

/// Whether two configurations minimise the same full-data risk.
pub(super) fn same_risk(a: &Spec, b: &Spec) -> bool {
    let (a, b) = (a.choices(), b.choices());
    let identity = a.loss.identity();
    let same_strength = a.l2_strength.to_bits() == b.l2_strength.to_bits();
    let same_domain = a.radius.map(f64::to_bits) == b.radius.map(f64::to_bits);
    identity.is_some() && identity == b.loss.identity() && same_strength && same_domain
}

/// The risk of a sample (`weights`) or of the full data, with the linear term of objective perturbation where it is given.
pub(super) fn risk<'a>(
    design: &'a Design<'static>,
    spec: &'a Spec,
    weights: Option<&'a [u32]>,
    linear_term: Option<&'a [f64]>,
    exec: &'a Executor<'a>,
) -> Objective<'a> {
    Objective {
        records: design,
        loss: &*spec.choices().loss,
        weights,
        l2_strength: spec.choices().l2_strength,
        extra_convexity: spec.strong_convexity() - spec.choices().l2_strength,
        linear_term,
        n_samples: spec.choices().divisor(),
        exec,
    }
}

/// Slopes of the loss at a point, by row.
fn slopes(design: &Design<'_>, loss: &dyn Loss, params: &[f64]) -> Result<Vec<f64>> {
    let mut slopes = vec![0.0; design.n_rows()];
    let mut predictor = [0.0; BLOCK];
    for range in blocks(0..design.n_rows()) {
        let u = &mut predictor[..range.len()];
        design.linear_predictor(range.clone(), params, u);
        let out = Batch {
            slope: Some(&mut slopes[range.clone()]),
            ..Batch::default()
        };
        loss.evaluate(u, design.targets(range), out)?;
    }
    Ok(slopes)
}
