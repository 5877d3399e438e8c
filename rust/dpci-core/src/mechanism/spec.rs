//! Every public choice of a fit, validated and resolved into laws and costs before any data are seen.

use std::sync::Arc;

use super::projection::Projection;
use crate::design::row_norm_bound;
use crate::interval::Perturbation;
use crate::linalg::check_matrix_dim;
use crate::loss::Loss;
use crate::noise::NoiseLaw;
use crate::privacy::{self, Budget, Calibration, DataBounds, Neighbors, Split};
use crate::{Error, Result};

/// Which moments are released for the intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// Hessian and gradient covariance as one query.
    Joint,
    /// Two queries.
    Separate,
    /// None: the whole budget goes to the coefficients, and there are no intervals.
    None,
}

/// A noise family that the caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseKind {
    /// Spherical Laplace.
    SphericalLaplace,
    /// Gaussian.
    Gaussian,
}

/// The part of a budget that one step spends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// Pure ε.
    Epsilon(f64),
    /// ρ of zCDP.
    Rho(f64),
    /// `(sensitivity/σ)²` of a Gaussian under (ε, δ).
    MuSquared(f64),
}

impl Cost {
    /// The number, whatever its unit.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Self::Epsilon(v) | Self::Rho(v) | Self::MuSquared(v) => v,
        }
    }

    /// Sensitivity over standard deviation that a Gaussian of this cost may have; 0 for pure DP, which has none.
    #[must_use]
    pub fn mu(self) -> f64 {
        match self {
            // Bun & Steinke 2016, Proposition 1.6: ρ = μ²/2.
            Self::Rho(rho) => (2.0 * rho).sqrt(),
            Self::MuSquared(mu2) => mu2.sqrt(),
            Self::Epsilon(_) => 0.0,
        }
    }

    /// The same unit with another number.
    #[must_use]
    pub fn with(self, value: f64) -> Self {
        match self {
            Self::Epsilon(_) => Self::Epsilon(value),
            Self::Rho(_) => Self::Rho(value),
            Self::MuSquared(_) => Self::MuSquared(value),
        }
    }
}

/// One step of a release: its noise, cost and sensitivity. All public.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// `coefficients`, `hessian`, `gradient_cov` or `moments`.
    pub name: &'static str,
    /// Name of the noise family.
    pub noise: &'static str,
    /// What it spends.
    pub cost: Cost,
    /// 1/rate or standard deviation.
    pub scale: f64,
    /// The same for the Hessian's part of a joint release.
    pub hessian_scale: Option<f64>,
    /// Sensitivity that the noise was calibrated to, in the norm of its family.
    pub sensitivity: f64,
}

/// What the caller chooses; [`Spec::new`] validates it.
#[derive(Debug, Clone)]
pub struct Choices {
    /// Public number of samples (the public `n₀` under add/remove).
    pub n_samples: usize,
    /// Columns of the data, without the intercept.
    pub n_columns: usize,
    /// The constant appended to each row.
    pub intercept: Option<f64>,
    /// Bound on the norm of a row, without the intercept.
    pub row_norm: f64,
    /// Loss.
    pub loss: Arc<dyn Loss>,
    /// λ.
    pub l2_strength: f64,
    /// Total budget.
    pub budget: Budget,
    /// Objective or output perturbation.
    pub perturbation: Perturbation,
    /// Noise of the coefficients; `None`: the one that fits the budget.
    pub noise: Option<NoiseKind>,
    /// Shares of the budget.
    pub split: Option<Split>,
    /// Moments.
    pub moments: Moments,
    /// Projection of the released moments.
    pub projection: Projection,
    /// Tight constants or the paper's.
    pub calibration: Calibration,
    /// Neighbouring relation.
    pub neighbors: Neighbors,
}

/// Validated choices with the laws and costs that follow from them. Holds no data.
#[derive(Debug, Clone)]
pub struct Spec {
    pub(super) choices: Choices,
    pub(super) bounds: DataBounds,
    pub(super) law: NoiseLaw,
    pub(super) coefficients: Step,
    /// Costs of the Hessian and of the gradient covariance.
    pub(super) moment_costs: Option<[Cost; 2]>,
}

impl Spec {
    /// Validates the choices and calibrates the coefficients.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`], [`Error::Unsupported`] for combinations that are not offered,
    /// [`Error::RegularizationTooSmall`].
    pub fn new(mut choices: Choices) -> Result<Self> {
        check_scalars(&choices)?;
        if choices.calibration == Calibration::Paper {
            apply_paper(&mut choices)?;
        }
        check_combination(&choices)?;
        let params = choices.n_columns + usize::from(choices.intercept.is_some());
        let row_norm = row_norm_bound(choices.row_norm, choices.intercept);
        let bounds = DataBounds::new(
            choices.n_samples as f64,
            row_norm,
            choices.neighbors,
            params,
        )?;
        let (cost, moment_costs) = costs(&choices)?;
        let (law, sensitivity) = coefficient_law(&choices, &bounds, cost)?;
        let coefficients = Step {
            name: "coefficients",
            noise: law.name(),
            cost,
            scale: law.scale(),
            hessian_scale: None,
            sensitivity,
        };
        let spec = Self {
            choices,
            bounds,
            law,
            coefficients,
            moment_costs,
        };
        // Extreme λ leave no representable scale for the solver or for the intervals.
        let scales = [spec.tolerance(), spec.noise_gain()[1]];
        if !scales.iter().all(|v| v.is_normal()) {
            return Err(Error::OutOfRange {
                name: "l2_strength",
                rule: "such that the noise has a finite scale in double precision",
                value: spec.choices.l2_strength,
            });
        }
        Ok(spec)
    }

    /// The validated choices.
    #[must_use]
    pub fn choices(&self) -> &Choices {
        &self.choices
    }

    /// Number of parameters, the intercept included.
    #[must_use]
    pub fn n_params(&self) -> usize {
        self.bounds.params
    }

    /// The law of the coefficients' noise.
    #[must_use]
    pub fn law(&self) -> NoiseLaw {
        self.law
    }

    /// The bound on a row with its intercept.
    #[must_use]
    pub fn row_norm(&self) -> f64 {
        self.bounds.row_norm
    }

    /// The certificate that the solver must reach: 10⁻⁶ of the least standard deviation that the noise can cause in a
    /// released coefficient; where that is below 10⁻⁹, 10⁻⁹ but at most 10⁻⁴ of it. A function of public values only.
    #[must_use]
    pub fn tolerance(&self) -> f64 {
        let noise = self.law.coordinate_variance().sqrt() * self.noise_gain()[0];
        (1e-6 * noise).max(1e-9_f64.min(1e-4 * noise))
    }

    /// Least and greatest factor from the noise to a coefficient's error, over all Hessians λI ≤ H ≤ (λ + tR²)I.
    pub(super) fn noise_gain(&self) -> [f64; 2] {
        let c = &self.choices;
        match c.perturbation {
            Perturbation::Output => [1.0, 1.0],
            Perturbation::Objective => {
                let steepest =
                    c.l2_strength + c.loss.curvature_bound() * self.bounds.row_norm.powi(2);
                [
                    1.0 / (self.bounds.n * steepest),
                    1.0 / (self.bounds.n * c.l2_strength),
                ]
            }
        }
    }
}

fn check_scalars(c: &Choices) -> Result<()> {
    let positive = [("row_norm", c.row_norm), ("l2_strength", c.l2_strength)];
    let scale = c.intercept.map(|s| ("intercept_scale", s));
    for (name, value) in positive.into_iter().chain(scale) {
        if !(value > 0.0) || !value.is_finite() {
            return Err(Error::OutOfRange {
                name,
                rule: "finite and > 0",
                value,
            });
        }
    }
    let params = c.n_columns + usize::from(c.intercept.is_some());
    if c.moments != Moments::None {
        check_matrix_dim(params)?;
    }
    if c.n_samples == 0 || params == 0 {
        return Err(Error::Empty {
            rows: c.n_samples,
            params,
        });
    }
    Ok(())
}

/// The paper's method: two matrices released apart, both projected at λ, shares (.5, .25, .25).
fn apply_paper(c: &mut Choices) -> Result<()> {
    if c.projection == Projection::Cautious {
        return Err(Error::Unsupported(
            "calibration=\"paper\" projects at the floor, got projection=\"cautious\" (use calibration=\"tight\")".into(),
        ));
    }
    c.projection = Projection::Floor;
    if c.moments == Moments::Joint {
        c.moments = Moments::Separate;
    }
    if c.split.is_none() && c.moments != Moments::None {
        c.split = Some(Split::PAPER);
    }
    Ok(())
}

fn check_combination(c: &Choices) -> Result<()> {
    let unsupported = |message: &str| Err(Error::Unsupported(message.into()));
    if c.moments == Moments::None && c.split.is_some() {
        return unsupported(
            "split must be None with moments=\"none\", which gives the whole budget to the coefficients",
        );
    }
    match (c.perturbation, c.budget, c.noise) {
        (Perturbation::Objective, Budget::Approx { .. }, _) => unsupported(
            "objective perturbation is offered under PureDP and ZCDP, got ApproxDP: use mechanism=\"output\", or a ZCDP budget",
        ),
        (Perturbation::Objective, _, Some(NoiseKind::Gaussian)) => unsupported(
            "objective perturbation under PureDP and ZCDP takes noise=\"spherical_laplace\", got noise=\"gaussian\"",
        ),
        (Perturbation::Output, Budget::Pure { .. }, Some(NoiseKind::Gaussian)) => unsupported(
            "output perturbation under PureDP takes noise=\"spherical_laplace\", got noise=\"gaussian\": use ZCDP or ApproxDP",
        ),
        (
            Perturbation::Output,
            Budget::Zcdp { .. } | Budget::Approx { .. },
            Some(NoiseKind::SphericalLaplace),
        ) => unsupported(
            "output perturbation under ZCDP and ApproxDP takes noise=\"gaussian\", got noise=\"spherical_laplace\": use PureDP",
        ),
        _ => Ok(()),
    }
}

/// What the coefficients cost, and what the two matrices cost.
fn costs(c: &Choices) -> Result<(Cost, Option<[Cost; 2]>)> {
    let total = match (c.budget, c.calibration) {
        (Budget::Pure { epsilon }, _) => Cost::Epsilon(epsilon),
        (Budget::Zcdp { rho }, _) => Cost::Rho(rho),
        // Gaussians compose by adding (sensitivity/σ)²: exact, nothing is lost to a conversion.
        (Budget::Approx { epsilon, delta }, Calibration::Tight) => {
            Cost::MuSquared(privacy::gaussian_mu(epsilon, delta)?.powi(2))
        }
        (Budget::Approx { epsilon, delta }, Calibration::Paper) => {
            Cost::Rho(privacy::approx_to_zcdp(epsilon, delta, Calibration::Paper)?)
        }
    };
    if c.moments == Moments::None {
        return Ok((total, None));
    }
    let split = c.split.unwrap_or_else(|| Split::default_for(&c.budget));
    let all = total.value();
    let hessian = all * split.hessian;
    let gradient_cov = all * split.gradient_cov;
    // The remainder, so that rounding never spends more than the total.
    let coefficients = all - hessian - gradient_cov;
    Ok((
        total.with(coefficients),
        Some([total.with(hessian), total.with(gradient_cov)]),
    ))
}

/// The law of the coefficients' noise, and the sensitivity that it hides.
fn coefficient_law(c: &Choices, bounds: &DataBounds, cost: Cost) -> Result<(NoiseLaw, f64)> {
    let slope_bound = c.loss.slope_bound();
    match c.perturbation {
        Perturbation::Objective => {
            let epsilon = match cost {
                Cost::Epsilon(epsilon) => epsilon,
                Cost::Rho(rho) => privacy::zcdp_to_pure(rho, c.calibration)?,
                Cost::MuSquared(_) => {
                    return Err(Error::Unsupported(
                        "objective perturbation needs a PureDP or ZCDP budget".into(),
                    ));
                }
            };
            let rate = privacy::objective_rate(
                bounds,
                slope_bound,
                c.loss.curvature_bound(),
                c.l2_strength,
                epsilon,
            )?;
            Ok((
                NoiseLaw::SphericalLaplace {
                    dim: bounds.params,
                    rate,
                },
                bounds.objective_shift(slope_bound),
            ))
        }
        Perturbation::Output => {
            let sensitivity = bounds.argmin(slope_bound, c.l2_strength);
            let law = if let Cost::Epsilon(epsilon) = cost {
                let rate = privacy::laplace_rate(sensitivity, epsilon)?;
                NoiseLaw::SphericalLaplace {
                    dim: bounds.params,
                    rate,
                }
            } else {
                NoiseLaw::Gaussian {
                    std_dev: privacy::gaussian_std_dev(sensitivity, cost.mu())?,
                }
            };
            Ok((law, sensitivity))
        }
    }
}
