//! The full-data risk that a study's replicates start from: its minimiser, and what they share there.

use std::sync::Arc;

use crate::Result;
use crate::design::{Design, Rows};
use crate::erm::minimize_risk;
use crate::exec::{BLOCK, Executor, blocks};
use crate::linalg::{Cholesky, vector};
use crate::loss::{Batch, Loss, SERIES_REACH, Series};
use crate::mechanism::solver_options;
use crate::objective::{HessianRows, Objective};
use crate::spec::Spec;
use crate::study::weights::LARGE;

/// Rows from which passes may be in single precision: roundings of this many are far below every noise of a study.
pub(super) const MANY_ROWS: usize = 1 << 15;

/// Most passes in single precision.
const MAX_ROUGH: i32 = 4;

/// Error of a gradient in single precision, times √n, as a share of a sample's gradient at the full-data minimiser: some
/// roundings of 2⁻²⁴, which average out over the rows as the gradient does.
const ROUGH_ERROR: f64 = 1e-6;

/// The full-data risk of one loss and λ, at its minimiser.
#[derive(Debug)]
pub(super) struct Population {
    /// The minimiser: the target of the intervals, and where every replicate starts.
    pub(super) target: Vec<f64>,
    /// Slopes of the loss there, by row.
    pub(super) slopes: Vec<f64>,
    /// Whether the predictors of most records are near those of the samples' minimisers, so that series around them serve.
    pub(super) is_near: bool,
    /// Where the first passes may be in single precision: about how far the gradient of a sample is from 0 there.
    pub(super) spread: Option<f64>,
    /// Factor of the Hessian there.
    pub(super) factor: Arc<Cholesky>,
    /// Whether the target lies on the sphere around the domain, as the minimisers of most samples then do.
    pub(super) on_sphere: bool,
    /// Whether the minimisers of samples are found one by one: so too where the loss has a kink, may not be evaluated
    /// everywhere, or has no bounded curvature beyond the ball.
    pub(super) one_by_one: bool,
}

impl Population {
    /// Population of a configuration, whose minimiser meets a certificate of `tolerance`.
    pub(super) fn new(design: &Design<'static>, spec: &Spec, tolerance: f64, exec: &Executor<'_>) -> Result<Self> {
        let objective = risk(design, spec, None, None, exec);
        let options = solver_options(spec, tolerance);
        let target = minimize_risk(&objective, None, &options)?.params;
        let hessian = objective
            .evaluate(&target, HessianRows::All)?
            .hessian
            .unwrap_or_default();
        let factor = Cholesky::new(&hessian, spec.n_params(), "the full-data Hessian")?;
        let loss = objective.loss;
        let on_sphere = spec.radius().is_some_and(|w| vector::norm(&target) >= w * (1.0 - 1e-9));
        // A predictor's standard deviation is of the order of 2√(dim/n), which a quarter of the reach or less serves at all records.
        let room = SERIES_REACH * SERIES_REACH / 64.0;
        let is_near = loss.slope_series(&[], &[], &mut Series::default())
            && spec.n_params() as f64 <= room * design.n_records() as f64;
        let slopes = slopes(design, loss, &target)?;
        let rounds = is_near
            && design.n_rows() >= MANY_ROWS
            && matches!(design.rows(), Rows::Dense(_))
            && design.shares().is_none()
            && (design.multiplicities()).is_none_or(|m| m.iter().all(|m| *m <= LARGE));
        Ok(Self {
            on_sphere,
            is_near,
            spread: rounds.then(|| spread(design, &slopes)),
            one_by_one: loss.kinked()
                || loss.predictor_bound().is_some()
                || loss.curvature_bound().is_infinite()
                || on_sphere,
            slopes,
            target,
            factor: Arc::new(factor),
        })
    }

    /// Passes in single precision of a configuration whose minimisers meet a certificate of `tolerance`. Certificates shrink by about
    /// `√(dim/n)` or less with each step. A pass may be rough if its error spoils neither what is left after the next step nor the
    /// certificate, and if it cannot be the last.
    pub(super) fn n_rough(&self, spec: &Spec, tolerance: f64) -> usize {
        let n = spec.choices().terms.n_samples as f64;
        let start = self.spread.unwrap_or(0.0) / spec.strong_convexity();
        let error = start * ROUGH_ERROR / n.sqrt();
        let rate = (spec.n_params() as f64 / n).sqrt();
        let left = |steps: i32| start * rate.powi(steps);
        let serves = |pass: &i32| error <= 0.25 * tolerance.max(left(pass + 1)) && left(*pass) > 100.0 * tolerance;
        (1..=MAX_ROUGH).take_while(serves).count()
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
        n_samples: spec.choices().terms.divisor(),
        exec,
    }
}

/// Root of the mean square of a sample's gradient where that of the full data is 0, from the slopes there.
fn spread(design: &Design<'_>, slopes: &[f64]) -> f64 {
    let mut norms = vec![0.0; slopes.len()];
    design.squared_norms(0..slopes.len(), &mut norms);
    let squares: f64 = slopes.iter().zip(&norms).map(|(s, norm)| s * s * norm).sum();
    squares.sqrt() / slopes.len() as f64
}

/// Slopes of the loss at a point, by row.
fn slopes(design: &Design<'_>, loss: &dyn Loss, params: &[f64]) -> Result<Vec<f64>> {
    let mut slopes = vec![0.0; design.n_rows()];
    let mut predictor = [0.0; BLOCK];
    for range in blocks(0..design.n_rows()) {
        let u = &mut predictor[..range.len()];
        design.linear_predictor(range.clone(), params, u);
        let out = Batch::slopes(&mut slopes[range.clone()]);
        loss.evaluate(u, design.targets(range), out)?;
    }
    Ok(slopes)
}
