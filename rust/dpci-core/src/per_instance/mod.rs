//! Upper bounds on the privacy loss that a released model causes for a given record, from released values and that record alone.
//!
//! Redberg & Wang 2021, "Privately publishable per-instance privacy", Algorithm 2, with the corrections of
//! `docs/per_instance.md`. The function from records to bounds may be published; its values at private records are as private as
//! these.

mod leverage;
mod persons;
mod rows;

use std::sync::Arc;

use crate::Result;
use crate::design::Design;
use crate::error::{check, check_length, check_positive};
use crate::exec::Executor;
use crate::loss::Loss;
use crate::privacy::EpsilonTable;
use crate::spec::{Claim, HessianBound, check_row_norm};
use leverage::LeverageBound;
pub(crate) use persons::{PersonTerms, log_det_plus};
pub(crate) use rows::{slopes_and_curvatures, squared_coordinates};

/// Relative margin of the bounds that covers the rounding of their computation.
const ROUNDING: f64 = 1.0 + 1e-9;

/// The released model and the public constants of its noise.
#[derive(Debug, Clone)]
pub struct Model {
    /// Loss.
    pub loss: Arc<dyn Loss>,
    /// Released parameters θ̃.
    pub params: Vec<f64>,
    /// Λ = n₀λ: the ridge of the sum objective.
    pub ridge: f64,
    /// σ of the coefficients' noise.
    pub std_dev: f64,
    /// R: bound on the norm of a row, the intercept included.
    pub row_norm: f64,
}

/// The two releases about the objective at the released parameters.
#[derive(Debug, Clone)]
pub struct Derivatives {
    /// Noisy gradient of the sum objective without its noise term.
    pub gradient: Vec<f64>,
    /// Standard deviation of its noise.
    pub gradient_std_dev: f64,
    /// Noisy Hessian of the sum objective, row-major.
    pub hessian: Vec<f64>,
    /// Standard deviation of an isometric coordinate of its noise: of a diagonal entry, and √2 times an off-diagonal one's.
    pub hessian_std_dev: f64,
}

/// Bounds on the privacy losses of records.
#[derive(Debug, Clone)]
pub struct RecordBounds {
    model: Model,
    claim: Claim,
    /// The probability with which the bound on `|bᵀg|` may fail.
    failure: f64,
    extra: Option<Extra>,
}

/// Contribution of the two extra releases.
#[derive(Debug, Clone)]
struct Extra {
    released: Derivatives,
    /// Upper bound on the noise along g, over `σ₂‖g‖`.
    reach: f64,
    radius: f64,
    leverage: LeverageBound,
    /// ε of either release at half of δ.
    epsilons: EpsilonTable,
}

/// Bounds by record.
#[derive(Debug, Clone, Default)]
pub struct RecordEpsilons {
    /// Ex-post loss of the released parameters, as an absolute value.
    pub params: Vec<f64>,
    /// ε of the released gradient at half of δ.
    pub gradient: Vec<f64>,
    /// ε of the released Hessian at half of δ.
    pub hessian: Vec<f64>,
}

impl RecordBounds {
    /// The bounds that follow from a released model and, where they were released, its derivatives. `delta` is that of the two extra
    /// releases together.
    pub fn new(model: Model, derivatives: Option<Derivatives>, claim: &Claim, delta: f64) -> Result<Self> {
        let dim = model.params.len();
        check_positive("std_dev", model.std_dev)?;
        check_positive("n_public * l2_strength", model.ridge)?;
        check_row_norm(model.row_norm)?;
        let greatest_gradient = model.loss.slope_bound() * model.row_norm;
        let greatest_curvature = model.loss.curvature_bound() * model.row_norm.powi(2);
        let reached = greatest_curvature / model.ridge + 1.0 / model.ridge;
        check_reached("n_public * l2_strength", model.ridge, reached)?;
        let reached = (greatest_gradient / model.std_dev).powi(2);
        check_reached("std_dev", model.std_dev, reached)?;
        let phi = claim.failure_probability();
        let Some(released) = derivatives else {
            return Ok(Self {
                model,
                claim: *claim,
                failure: phi,
                extra: None,
            });
        };
        check_length("gradient", dim, released.gradient.len())?;
        check_length("hessian", dim * dim, released.hessian.len())?;
        check_positive("gradient_std_dev", released.gradient_std_dev)?;
        check_positive("hessian_std_dev", released.hessian_std_dev)?;
        // Half of the probability for the gradient, half of that for each of its two bounds.
        let failure = 0.25 * phi;
        let radius = claim.hessian_radius(dim, released.hessian_std_dev);
        let leverage = match claim.hessian_bound() {
            HessianBound::Interpolated => LeverageBound::interpolated(&released.hessian, dim, radius, model.ridge)?,
            HessianBound::Paper => LeverageBound::paper(&released.hessian, dim, model.ridge)?,
        };
        let slope = greatest_gradient / released.gradient_std_dev;
        let curvature = greatest_curvature / released.hessian_std_dev;
        let epsilons = EpsilonTable::new(slope.max(curvature), 0.5 * delta)?;
        // The greater of the two is the worse.
        let (name, value) = if slope > curvature {
            ("gradient_std_dev", released.gradient_std_dev)
        } else {
            ("hessian_std_dev", released.hessian_std_dev)
        };
        check_reached(name, value, epsilons.at(slope.max(curvature) * ROUNDING))?;
        Ok(Self {
            model,
            claim: *claim,
            failure,
            extra: Some(Extra {
                released,
                reach: claim.reach(1, dim, failure),
                radius,
                leverage,
                epsilons,
            }),
        })
    }

    /// The released model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Assumed upper bound on the greatest eigenvalue of the Hessian's noise; `None` where no Hessian was released.
    pub fn hessian_radius(&self) -> Option<f64> {
        self.extra.as_ref().map(|extra| extra.radius)
    }

    /// The bounds of each record of a design: of every row, or of every person.
    pub fn evaluate(&self, records: &Design<'_>, exec: &Executor<'_>) -> Result<RecordEpsilons> {
        check_length("each row of X", self.model.params.len(), records.n_params())?;
        let parts = match records.persons() {
            Some(persons) => self.of_persons(records, persons, exec)?,
            None => self.of_rows(records, exec)?,
        };
        let join = |field: fn(&RecordEpsilons) -> &[f64]| parts.iter().map(field).collect::<Vec<_>>().concat();
        Ok(RecordEpsilons {
            params: join(|p| &p.params),
            gradient: join(|p| &p.gradient),
            hessian: join(|p| &p.hessian),
        })
    }

    /// Upper bound on `|bᵀg|`, over `σ‖g‖`, for a record whose gradient lies in a space of this dimension, whatever the parameters.
    fn reach(&self, rank: usize) -> f64 {
        self.claim.reach(rank, self.model.params.len(), self.failure)
    }

    /// Appends the bounds that follow from the facts of a record.
    fn append(&self, facts: &RecordFacts, part: &mut RecordEpsilons) {
        let model = &self.model;
        let ratio = facts.gradient_norm / model.std_dev;
        let mut cross = ratio * facts.reach;
        let [mut gradient, mut hessian] = [0.0; 2];
        if let Some(extra) = &self.extra {
            let noise = extra.released.gradient_std_dev * facts.gradient_norm * extra.reach;
            let estimated = (facts.along + noise) / model.std_dev / model.std_dev;
            cross = cross.min(estimated);
            let slope = facts.gradient_norm / extra.released.gradient_std_dev;
            gradient = extra.epsilons.at(slope * ROUNDING);
            let curvature = facts.hessian_norm / extra.released.hessian_std_dev;
            hessian = extra.epsilons.at(curvature * ROUNDING);
        }
        part.gradient.push(gradient);
        part.hessian.push(hessian);
        part.params
            .push((facts.log_det + 0.5 * ratio * ratio + cross) * ROUNDING);
    }
}

/// Facts about one record on which a bound rests: its gradient g and its Hessian P at the released parameters.
struct RecordFacts {
    /// `‖g‖`.
    gradient_norm: f64,
    /// `|ĝᵀg|`, ĝ the released gradient; 0 without one.
    along: f64,
    /// `‖P‖_F`.
    hessian_norm: f64,
    /// How far the record moves the logarithm of the determinant, at most.
    log_det: f64,
    /// Upper bound on `|bᵀg|`, over `σ‖g‖`.
    reach: f64,
}

/// Refuses a constant so small that what it divides is not finite for the greatest record.
fn check_reached(name: &'static str, value: f64, reached: f64) -> Result<()> {
    check(
        reached.is_finite(),
        name,
        "large enough that the bounds are finite",
        value,
    )
}
