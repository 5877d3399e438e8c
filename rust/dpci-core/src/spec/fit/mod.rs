//! Every public choice of a fit, validated and resolved into laws and costs before any data are seen.

mod calibrate;
mod choices;
mod distances;
mod domain;
mod moments;
mod plan;
mod scales;
mod shares;
mod slope;
mod solvable;

pub use calibrate::step_cost;
pub use choices::{Choices, Moments, NoiseKind, Projection, Variant};
pub use distances::check_excess;
#[cfg(test)]
pub(super) use distances::noise_rounding;
pub(crate) use distances::{greatest_mass, greatest_rows};
pub(super) use distances::{share_seal, sum_rounding, unit_mean_rounding};
pub(crate) use domain::{ROUNDING_ROOM, least_row_norm};
pub(super) use moments::matrix_seal;
pub use moments::{MatrixNoise, MomentNoise};
pub use plan::Plan;
pub use scales::check_bounds;
pub(super) use scales::{check_budget, check_size};

use calibrate::{CoefficientNoise, coefficient_noise, costs};
use choices::{apply_paper, check_combination, check_scalars};
#[cfg(not(test))]
use distances::noise_rounding;
use distances::{coefficient_seal, noise_gain};
use domain::{Bounded, Domain};
use scales::check_sizes;
use solvable::Solvable;

use super::{Query, Seal, Step};
use crate::error::check;
use crate::noise::NoiseLaw;
use crate::privacy::{Budget, Calibration, Cost, DataBounds};
use crate::row_domain::row_norm_bound;
use crate::{Error, Result};

/// Validated choices with the laws and costs that follow from them. Holds no data.
#[derive(Debug, Clone)]
pub struct Spec {
    pub(in crate::spec) choices: Choices,
    /// λ before [`Variant::Cms11`] raised it.
    asked_l2_strength: f64,
    /// The budget with the share of the seal; that of `choices` is without.
    asked_budget: Budget,
    /// Cost of sealing one vector.
    pub(in crate::spec) seal_cost: Cost,
    pub(in crate::spec) seal: Seal,
    pub(in crate::spec) bounds: DataBounds,
    domain: Domain,
    pub(in crate::spec) law: NoiseLaw,
    pub(in crate::spec) coefficients: Step,
    /// Costs of the Hessian and of the gradient covariance.
    pub(in crate::spec) moment_costs: Option<[Cost; 2]>,
    pub(in crate::spec) reserved: Option<Cost>,
}

impl Spec {
    /// Validates the choices and calibrates the coefficients.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`], [`Error::Unsupported`] for combinations that are not offered,
    /// [`Error::RegularizationTooSmall`].
    pub fn new(mut choices: Choices) -> Result<Self> {
        let asked = choices.budget;
        let (rest, seal) = asked.split_off_seal();
        choices.budget = rest;
        let vectors = if choices.moments == Moments::None { 1 } else { 3 };
        let whole = choices.moments == Moments::None && choices.reserve == 0.0;
        Self::with_seal(choices, asked, share_seal(seal, vectors)).map_err(|error| asked_epsilon(error, asked, whole))
    }

    /// The choices with the budget that the seal left of `asked_budget`, and what sealing one vector may spend.
    pub(in crate::spec) fn with_seal(mut choices: Choices, asked_budget: Budget, seal_cost: Cost) -> Result<Self> {
        check_scalars(&choices)?;
        check_sizes(&choices, asked_budget)?;
        if choices.calibration == Calibration::Paper {
            apply_paper(&mut choices)?;
        }
        check_combination(&choices)?;
        let params = choices.n_params();
        let row_norm = row_norm_bound(choices.rows.norm(), choices.intercept);
        let bounds = choices.terms.bounds(row_norm, params)?;
        let bounds = bounds.predicting(choices.loss.n_predictors());
        let domain = Domain::new(&choices, &bounds)?;
        let of = Bounded {
            choices: &choices,
            bounds: &bounds,
            domain: &domain,
        };
        let costs = costs(of)?;
        let cost = costs.coefficients;
        let CoefficientNoise {
            law,
            sensitivity,
            l2_strength,
        } = coefficient_noise(of, cost)?;
        let asked_l2_strength = choices.l2_strength;
        choices.l2_strength = l2_strength;
        let of = Bounded {
            choices: &choices,
            bounds: &bounds,
            domain: &domain,
        };
        let coefficients = Step::new(Query::Coefficients, law.family(), cost, law.scale(), sensitivity);
        let gain = noise_gain(of);
        let seal = coefficient_seal(of, &law, gain[0], seal_cost)?;
        let spec = Self {
            choices,
            asked_l2_strength,
            asked_budget,
            seal_cost,
            seal,
            bounds,
            domain,
            law,
            coefficients,
            moment_costs: costs.moments,
            reserved: costs.reserved,
        };
        // Extreme λ leave no representable scale for the solver or for the intervals; subnormal numbers have lost digits.
        let scales = [
            spec.tolerance(),
            spec.noise_gain()[1],
            spec.coefficients.sensitivity,
            spec.coefficients.scale,
        ];
        check(
            scales.iter().all(|v| v.is_normal()),
            "l2_strength",
            "such that the noise has a finite scale in double precision",
            spec.choices.l2_strength,
        )?;
        // What public values rule out is refused before anything is paid.
        Solvable::new(spec.bounded(), &spec.law).check(spec.tolerance())?;
        spec.check_scales()?;
        Ok(spec)
    }

    getters! { self =>
        /// The validated choices; the budget is without the share of the seal.
        pub choices: &Choices = &self.choices;
        /// Number of parameters, the intercept included.
        pub n_params: usize = self.bounds.params;
        /// The law of the coefficients' noise.
        pub law: &NoiseLaw = &self.law;
        /// The release of the coefficients.
        pub(crate) coefficients: &Step = &self.coefficients;
        /// The sensitivity that the coefficients' noise hides, in the norm of its family.
        pub sensitivity: f64 = self.coefficients.sensitivity;
        /// The bounds on which the sensitivities rest.
        pub bounds: &DataBounds = &self.bounds;
        /// Cost that [`Choices::reserve`] leaves for other releases at the released parameters.
        pub reserved: Option<Cost> = self.reserved;
        /// The bound on a row with its intercept.
        pub row_norm: f64 = self.bounds.row_norm;
        /// The whole budget, with the share of the seal, which [`Self::choices`] leaves out.
        pub budget: Budget = self.asked_budget;
        /// The seal of the coefficients.
        pub seal: &Seal = &self.seal;
        /// λ, with what [`Variant::Cms11`] added to it.
        pub l2_strength: f64 = self.choices.l2_strength;
        /// The radius W of the domain of the parameters.
        pub radius: Option<f64> = self.choices.radius;
        /// `L` on the domain.
        pub slope_bound: f64 = self.domain.slope_bound;
        /// `t` on the domain.
        pub curvature_bound: f64 = self.domain.curvature_bound;
        /// Strong convexity of the mean loss for every data set, beyond λ.
        pub(crate) extra_convexity: f64 = self.domain.extra_convexity;
        /// Strong convexity of the objective for every data set: λ, and what the loss declares.
        pub strong_convexity: f64 = self.choices.l2_strength + self.domain.extra_convexity;
        /// Least and greatest factor from the noise to a coefficient's error, over all Hessians λI ≤ H ≤ (λ + tR²)I.
        pub(in crate::spec) noise_gain: [f64; 2] = noise_gain(self.bounded());
    }

    /// The choices with the λ and the budget that were asked for: to calibrate for another budget or number of records.
    pub fn asked_choices(&self) -> Choices {
        Choices {
            l2_strength: self.asked_l2_strength,
            budget: self.asked_budget,
            ..self.choices.clone()
        }
    }

    /// The certificate that the solver must reach before anything is released: what the seal's distance leaves beside the error of the
    /// noise. A function of public values only.
    pub fn tolerance(&self) -> f64 {
        let rounding = noise_rounding(self.bounded(), &self.law);
        (self.seal.distance() - rounding) * (1.0 - 4.0 * f64::EPSILON)
    }

    /// The certificate of a replicate in a study, which releases nothing and is not sealed: 10⁻⁶ of the least standard deviation that
    /// the noise can cause in a coefficient; where that is below 10⁻⁹, 10⁻⁹ but at most 10⁻⁴ of it.
    pub fn study_tolerance(&self) -> f64 {
        let noise = self.law.std_dev_range()[0] * self.noise_gain()[0];
        (1e-6 * noise).max(1e-9_f64.min(1e-4 * noise))
    }

    /// Choices and bounds on which the calibrations rest.
    pub(in crate::spec) fn bounded(&self) -> Bounded<'_> {
        Bounded {
            choices: &self.choices,
            bounds: &self.bounds,
            domain: &self.domain,
        }
    }
}

/// A refusal that names ε as it was asked for, not what the seal leaves of it, where it names a whole budget: always under (ε, δ), and
/// under pure DP where all of it goes to the coefficients.
fn asked_epsilon(error: Error, asked: Budget, whole: bool) -> Error {
    match (error, asked) {
        (Error::RegularizationTooSmall { least, value, .. }, Budget::Approx { epsilon, .. }) => {
            Error::RegularizationTooSmall { least, value, epsilon }
        }
        (Error::RegularizationTooSmall { least, value, .. }, Budget::Pure { epsilon }) if whole => {
            Error::RegularizationTooSmall { least, value, epsilon }
        }
        (error, _) => error,
    }
}
