//! The choices of the functional mechanism and the sensitivities of its polynomial's coefficients.
//!
//! Zhang, Zhang, Xiao, Yang & Winslett 2012, "Functional mechanism: regression analysis under differential privacy";
//! docs/baselines.md has the sensitivities and what differs from the paper.

use super::fit::{share_seal, unit_mean_rounding};
use super::{Part, Query, Seal, Step, Terms};
use crate::loss::{hessian_rounding, second_moment_rounding};
use crate::noise::{AnyLaw, Family, Gaussian, Laplace, Law, symmetric};
use crate::privacy::{
    Budget, Calibration, Cost, Polynomial, gaussian_mu, gaussian_std_dev, laplace_rate,
};
use crate::row_domain::row_norm_bound;
use crate::{Error, Result};

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
        for (name, value) in [
            ("row_norm", c.row_norm),
            ("intercept", c.intercept.unwrap_or(1.0)),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return out_of_range(name, "finite and > 0", value);
            }
        }
        if !(c.l2_strength >= 0.0 && c.l2_strength.is_finite()) {
            return out_of_range("l2_strength", "finite and >= 0", c.l2_strength);
        }
        let n_params = c.n_columns + usize::from(c.intercept.is_some());
        if c.terms.n_samples == 0 || n_params == 0 {
            return Err(Error::Empty {
                rows: c.terms.n_samples,
                params: n_params,
            });
        }
        if n_params > MAX_PARAMS {
            let name = "the number of parameters of the functional mechanism";
            return out_of_range(name, "at most 4096", n_params as f64);
        }
        let row_norm = row_norm_bound(c.row_norm, c.intercept);
        let (rest, seal) = c.budget.split_off_seal();
        let step = calibrated(c, rest, n_params)?;
        // Extreme bounds leave no representable scale.
        let units = units(c, row_norm);
        if !units.iter().all(|unit| (unit * step.scale).is_normal()) {
            let rule = "such that the noise has a finite scale in double precision";
            return out_of_range("row_norm", rule, c.row_norm);
        }
        let law = independent(step.cost, n_noises(c, n_params), step.scale)?;
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

    /// How the quadratic and the linear coefficients are sealed.
    pub fn seals(&self) -> &[Seal; 2] {
        &self.seals
    }

    /// The validated choices.
    pub fn choices(&self) -> &FunctionalChoices {
        &self.choices
    }

    /// Step of the release, with its cost.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Number of parameters, the intercept included.
    pub fn n_params(&self) -> usize {
        self.n_params
    }

    /// R² and RB: what the coefficients of rows with norm at most 1 and targets within ±1 are multiplied by.
    pub(crate) fn units(&self) -> [f64; 2] {
        self.units
    }

    /// The noise: on one coefficient after another, or, where it is Gaussian, on the isometric coordinates and entries of the sums.
    pub(crate) fn law(&self) -> &AnyLaw {
        &self.law
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

fn out_of_range<T>(name: &'static str, rule: &'static str, value: f64) -> Result<T> {
    Err(Error::OutOfRange { name, rule, value })
}

/// The noise of the whole budget: Laplace on the coefficients under pure DP, Gaussian on the sums otherwise.
fn calibrated(c: &FunctionalChoices, budget: Budget, n_params: usize) -> Result<Step> {
    let (cost, sensitivity) = match budget {
        Budget::Pure { epsilon } => {
            let sensitivity =
                c.polynomial
                    .l1_sensitivity(n_params, c.terms.neighbors, c.calibration);
            (Cost::Epsilon(epsilon), sensitivity)
        }
        Budget::Zcdp { rho } => {
            let sensitivity =
                Polynomial::l2_sensitivity(n_params, c.terms.neighbors, c.calibration)?;
            (Cost::Rho(rho), sensitivity)
        }
        Budget::Approx { epsilon, delta } => {
            let sensitivity =
                Polynomial::l2_sensitivity(n_params, c.terms.neighbors, c.calibration)?;
            let mu = gaussian_mu(epsilon, delta)?;
            (Cost::MuSquared(mu * mu), sensitivity)
        }
    };
    let (noise, scale) = noise_of(cost, sensitivity)?;
    Ok(Step {
        query: Query::Polynomial,
        noise,
        cost,
        scale,
        hessian_scale: None,
        levels_scale: None,
        sensitivity,
    })
}

/// Independent noise of this cost and scale: see [`noise_of`].
pub(super) fn independent(cost: Cost, dim: usize, scale: f64) -> Result<AnyLaw> {
    Ok(match cost {
        Cost::Epsilon(_) => Laplace::new(dim, scale)?.into(),
        _ => Gaussian::new(dim, scale)?.into(),
    })
}

/// The family and the scale of independent noise of this cost: Laplace for an L1 sensitivity and pure DP, else Gaussian for an L2
/// sensitivity.
pub(super) fn noise_of(cost: Cost, sensitivity: f64) -> Result<(Family, f64)> {
    let (family, scale) = match cost {
        Cost::Epsilon(epsilon) => (Family::Laplace, 1.0 / laplace_rate(sensitivity, epsilon)?),
        cost => (Family::Gaussian, gaussian_std_dev(sensitivity, cost.mu())?),
    };
    if !scale.is_normal() {
        let rule = "such that the noise has a finite scale in double precision";
        return out_of_range("budget", rule, cost.value());
    }
    Ok((family, scale))
}
