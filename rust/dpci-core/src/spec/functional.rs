//! The choices of the functional mechanism and the sensitivities of its polynomial's coefficients.
//!
//! Zhang, Zhang, Xiao, Yang & Winslett 2012, "Functional mechanism: regression analysis under differential privacy";
//! docs/baselines.md has the sensitivities and what differs from the paper.

use super::fit::{share_seal, sum_rounding, unit_mean_rounding};
use super::moment_matrix::cost_of;
use super::step::check_scale;
use super::{Part, Planned, Query, Seal, Step, Terms};
use crate::Result;
use crate::error::{check, check_non_negative, check_positive};
use crate::loss::{gradient_rounding, hessian_rounding, second_moment_rounding};
use crate::noise::{AnyLaw, Family, Gaussian, Laplace, Law, symmetric};
use crate::privacy::{Budget, Calibration, Cost, DataBounds, Polynomial, gaussian_std_dev, laplace_rate};
use crate::row_domain::row_norm_bound;

/// More parameters would make one eigendecomposition, which cannot be interrupted, take minutes.
const MAX_PARAMS: usize = 4096;

/// Choices of the caller; [`FunctionalSpec::new`] validates them.
#[derive(Debug, Clone, Copy)]
pub struct FunctionalChoices {
    /// Terms that all releases of sums have.
    pub terms: Terms,
    /// Columns of the data, without the intercept.
    pub n_columns: usize,
    /// The constant appended to each row.
    pub intercept: Option<f64>,
    /// Bound on the norm of a row, without the intercept.
    pub row_norm: f64,
    /// The polynomial.
    pub polynomial: Polynomial,
    /// λ ≥ 0 of `(λ/2)‖θ‖²` in the mean objective.
    pub l2_strength: f64,
    /// Budget.
    pub budget: Budget,
    /// Tight sensitivities or the printed ones.
    pub calibration: Calibration,
}

/// Validated choices, calibrated. Holds no data.
#[derive(Debug, Clone)]
pub struct FunctionalSpec {
    choices: FunctionalChoices,
    units: [f64; 2],
    n_params: usize,
    step: Step,
    law: AnyLaw,
    /// Seals of the quadratic and of the linear coefficients.
    seals: [Seal; 2],
}

impl FunctionalSpec {
    /// Calibrates the noise.
    pub fn new(choices: FunctionalChoices) -> Result<Self> {
        let c = &choices;
        check_positive("row_norm", c.row_norm)?;
        check_positive("intercept", c.intercept.unwrap_or(1.0))?;
        check_non_negative("l2_strength", c.l2_strength)?;
        let n_params = c.n_columns + usize::from(c.intercept.is_some());
        c.terms.check_any(n_params)?;
        let name = "the number of parameters of the functional mechanism";
        check(n_params <= MAX_PARAMS, name, "at most 4096", n_params as f64)?;
        let row_norm = row_norm_bound(c.row_norm, c.intercept);
        let (rest, seal) = c.budget.split_off_seal();
        let (law, step) = calibrated(c, rest, n_params)?;
        // Extreme bounds leave no representable scale.
        let units = units(c, row_norm);
        let normal = units.iter().all(|unit| (unit * step.scale).is_normal());
        let rule = "such that the noise has a finite scale in double precision";
        check(normal, "row_norm", rule, c.row_norm)?;
        let draw = law.error_bound();
        let n = c.terms.n_samples as f64;
        // A share of a record is rounded and multiplies its terms, for which the sums of Hessians have room.
        let of_rows = if c.terms.is_of_rows() {
            second_moment_rounding
        } else {
            hessian_rounding
        };
        let sums = n * unit_mean_rounding(of_rows, n, c.terms.neighbors, c.terms.unit);
        // No weight of a sum or of its noise is above 1, and shaping the noise errs by less than the draw.
        let distance = |unit: f64| unit * (sums + 3.0 * draw);
        let cost = share_seal(seal, 2);
        let seals = [
            Seal::new(
                Part::Polynomial,
                symmetric::isometric_dim(n_params),
                distance(units[0]),
                cost,
            )?,
            Seal::new(Part::Polynomial, n_params, distance(units[1]), cost)?,
        ];
        Ok(Self {
            choices,
            units,
            n_params,
            step,
            law,
            seals,
        })
    }

    getters! { self =>
        /// How the quadratic and the linear coefficients are sealed.
        pub seals: &[Seal; 2] = &self.seals;
        /// The validated choices.
        pub choices: &FunctionalChoices = &self.choices;
        /// Step of the release, with its cost.
        pub step: &Step = &self.step;
        /// Number of parameters, the intercept included.
        pub n_params: usize = self.n_params;
        /// R² and RB: what the coefficients of rows with norm at most 1 and targets within ±1 are multiplied by.
        pub(crate) units: [f64; 2] = self.units;
        /// The noise: on one coefficient after another, or, where it is Gaussian, on the isometric coordinates and entries of the sums.
        pub(crate) law: &AnyLaw = &self.law;
    }
}

/// R² and RB: what the coefficients of rows with norm at most 1 and targets within ±1 are multiplied by.
fn units(c: &FunctionalChoices, row_norm: f64) -> [f64; 2] {
    [row_norm.powi(2), row_norm * c.polynomial.target_bound()]
}

/// How many independent noises there are: one for each coefficient, or, as printed, for each entry of the matrix under pure DP.
fn n_noises(c: &FunctionalChoices, dim: usize) -> usize {
    let printed = matches!(c.budget, Budget::Pure { .. }) && c.calibration == Calibration::Paper;
    let quadratic = if printed {
        dim * dim
    } else {
        symmetric::isometric_dim(dim)
    };
    quadratic + dim
}

/// The noise of the whole budget: Laplace on the coefficients under pure DP, Gaussian on the sums otherwise.
fn calibrated(c: &FunctionalChoices, budget: Budget, n_params: usize) -> Result<(AnyLaw, Step)> {
    let (neighbors, calibration) = (c.terms.neighbors, c.calibration);
    let sensitivity = match budget {
        Budget::Pure { .. } => c.polynomial.l1_sensitivity(n_params, neighbors, calibration),
        _ => Polynomial::l2_sensitivity(n_params, neighbors, calibration)?,
    };
    let (n_noises, cost) = (n_noises(c, n_params), cost_of(budget)?);
    independent(Query::Polynomial, cost, n_noises, sensitivity)
}

/// Independent noise of this cost: Laplace for an L1 sensitivity and pure DP, else Gaussian for an L2 sensitivity.
pub(super) fn independent(query: Query, cost: Cost, dim: usize, sensitivity: f64) -> Result<(AnyLaw, Step)> {
    let (family, scale) = match cost {
        Cost::Epsilon(epsilon) => (Family::Laplace, 1.0 / laplace_rate(sensitivity, epsilon)?),
        cost => (Family::Gaussian, gaussian_std_dev(sensitivity, cost.mu())?),
    };
    check_scale(scale.is_normal(), cost)?;
    let law = match cost {
        Cost::Epsilon(_) => Laplace::new(dim, scale)?.into(),
        _ => Gaussian::new(dim, scale)?.into(),
    };
    Ok((law, Step::new(query, family, cost, scale, sensitivity)))
}

impl Planned<AnyLaw> {
    /// Independent noise on a mean of vectors, which errs by so many times the rounding of a mean of gradients.
    pub(super) fn independent(
        (query, part): (Query, Part),
        cost: Cost,
        bounds: &DataBounds,
        sensitivity: f64,
        roundings: f64,
        seal_cost: Cost,
    ) -> Result<Self> {
        let (law, step) = independent(query, cost, bounds.params, sensitivity)?;
        let data = roundings * sum_rounding(bounds, gradient_rounding);
        let distance = data + 2.0 * law.error_bound();
        let seal = Seal::new(part, bounds.params, distance, seal_cost)?;
        Ok(Self { law, step, seal })
    }
}
