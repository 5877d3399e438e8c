//! Shares a budget among the steps of a fit and calibrates the noise of the coefficients. Public numbers only.

use std::sync::Arc;

use super::Spec;
use super::choices::{Choices, Moments, NoiseKind, Variant};
use super::domain::Bounded;
use super::shares::shares;
use crate::noise::NoiseLaw;
use crate::privacy::{self, Budget, Calibration, Cost, ObjectiveProfile, Perturbation, Slopes};
use crate::row_domain::Blocks;
use crate::spec::step::check_scale;
use crate::{Error, Result};

/// Costs that the parts of a fit may spend.
pub(super) struct Costs {
    pub(super) coefficients: Cost,
    /// Hessian and gradient covariance.
    pub(super) moments: Option<[Cost; 2]>,
    /// Cost left for the caller's own releases at the released parameters.
    pub(super) reserved: Option<Cost>,
}

/// The costs of the steps; they add up to the budget.
pub(super) fn costs(of: Bounded<'_>) -> Result<Costs> {
    let c = of.choices;
    let split = (c.moments != Moments::None).then(|| shares(c));
    let share = split.map_or(1.0 - c.reserve, |s| s.coefficients);
    let total = match (c.budget, c.calibration, c.perturbation) {
        (Budget::Pure { epsilon }, ..) => Cost::Epsilon(epsilon),
        (Budget::Zcdp { rho }, ..) => Cost::Rho(rho),
        // Gaussians compose by adding (sensitivity/σ)²: exact, nothing is lost to a conversion.
        (Budget::Approx { epsilon, delta }, Calibration::Tight, Perturbation::Output) => {
            Cost::MuSquared(privacy::gaussian_mu(epsilon, delta)?.powi(2))
        }
        (Budget::Approx { epsilon, delta }, Calibration::Tight, Perturbation::Objective) => {
            let profile = objective_profile(of)?;
            if !(profile.remaining(epsilon) >= 0.0) {
                return Err(too_small(c, least_l2_strength(of, epsilon), epsilon));
            }
            Cost::MuSquared(profile.mu_squared(epsilon, delta, share)?)
        }
        (Budget::Approx { epsilon, delta }, Calibration::Paper, Perturbation::Output) => {
            Cost::Rho(privacy::approx_to_zcdp(epsilon, delta, Calibration::Paper)?)
        }
        (Budget::Approx { epsilon, delta }, Calibration::Paper, Perturbation::Objective) => {
            Cost::EpsilonDelta { epsilon, delta }
        }
    };
    let all = total.value();
    // Squares of the ratios over- or underflow at budgets that no one can want.
    check_scale(all.is_normal(), total)?;
    let Some(split) = split else {
        let reserved = all * c.reserve;
        return Ok(Costs {
            coefficients: total.with(all - reserved),
            moments: None,
            reserved: (reserved > 0.0).then(|| total.with(reserved)),
        });
    };
    let hessian = all * split.hessian;
    let gradient_cov = all * split.gradient_cov;
    // The remainder, so that rounding never spends more than the total.
    let coefficients = all - hessian - gradient_cov;
    Ok(Costs {
        coefficients: total.with(coefficients),
        moments: Some([total.with(hessian), total.with(gradient_cov)]),
        reserved: None,
    })
}

/// The cost of a step of a fit from its number in a record, in the unit of what `costs` shares.
pub fn step_cost(budget: Budget, calibration: Calibration, perturbation: Perturbation, value: f64) -> Cost {
    match (budget, calibration, perturbation) {
        (Budget::Pure { .. }, ..) => Cost::Epsilon(value),
        (Budget::Zcdp { .. }, ..) | (Budget::Approx { .. }, Calibration::Paper, Perturbation::Output) => {
            Cost::Rho(value)
        }
        (Budget::Approx { .. }, Calibration::Tight, _) => Cost::MuSquared(value),
        (Budget::Approx { .. }, Calibration::Paper, Perturbation::Objective) => Cost::of(budget).with(value),
    }
}

/// The noise of the coefficients.
pub(super) struct CoefficientNoise {
    pub(super) law: NoiseLaw,
    /// The sensitivity that it hides.
    pub(super) sensitivity: f64,
    /// The λ that it takes: that of the choices, or more with [`Variant::Cms11`].
    pub(super) l2_strength: f64,
}

/// The noise of the coefficients for this cost.
pub(super) fn coefficient_noise(of: Bounded<'_>, cost: Cost) -> Result<CoefficientNoise> {
    let Bounded {
        choices: c,
        bounds,
        domain,
    } = of;
    let mut l2_strength = c.l2_strength;
    let shape = shape(c)?;
    let laplace = |rate| match &shape {
        Some(blocks) => NoiseLaw::ShapedLaplace {
            blocks: Arc::clone(blocks),
            rate,
        },
        None => NoiseLaw::SphericalLaplace {
            dim: bounds.params,
            rate,
        },
    };
    let gaussian = |std_dev| match &shape {
        Some(blocks) => NoiseLaw::ShapedGaussian {
            blocks: Arc::clone(blocks),
            std_dev,
        },
        None => NoiseLaw::Gaussian { std_dev },
    };
    match c.perturbation {
        Perturbation::Objective => {
            // The laws of Gaussian noise look at the two records apart, so their shift is the longest of a corner.
            let shift = match (cost, &shape) {
                (Cost::Epsilon(_) | Cost::Rho(_), Some(_)) => bounds.shaped_shift(domain.slope_bound),
                (Cost::Epsilon(_) | Cost::Rho(_), None) => domain.shift,
                (Cost::MuSquared(_), shape) => {
                    let both = match shape {
                        Some(_) => bounds.shaped_shift(domain.slope_bound),
                        None => bounds.objective_shift(domain.slope_bound),
                    };
                    objective_profile(of)?.shift() / bounds.neighbors.changed_records() * both
                }
                (Cost::EpsilonDelta { .. }, _) => bounds.objective_shift(domain.slope_bound),
            };
            let calibration = c.calibration;
            let mut pure = |epsilon| {
                let t = domain.curvature_trace;
                if c.variant == Variant::Cms11 {
                    l2_strength = privacy::cms11_l2_strength(bounds, t, l2_strength, epsilon)?;
                    let rate = privacy::cms11_rate(bounds, shift, t, l2_strength, epsilon);
                    return rate.map(laplace);
                }
                if c.variant == Variant::Offset {
                    return offset_rate(of, shift, epsilon).map(laplace);
                }
                privacy::objective_rate(bounds, shift, t, l2_strength, epsilon).map(laplace)
            };
            let law = match cost {
                Cost::Epsilon(epsilon) => pure(epsilon)?,
                Cost::Rho(rho) => pure(privacy::zcdp_to_pure(rho, calibration)?)?,
                Cost::MuSquared(_) => gaussian(privacy::gaussian_std_dev(shift, cost.mu())?),
                Cost::EpsilonDelta { epsilon, delta } => {
                    let least = least_l2_strength(of, epsilon);
                    // Room for the rounding of a caller who computed the least λ: the noise is twice what is needed.
                    if !(c.l2_strength >= least * (1.0 - 1e-12)) {
                        return Err(too_small(c, least, epsilon));
                    }
                    gaussian(privacy::paper_objective_std_dev(shift, epsilon, delta)?)
                }
            };
            Ok(CoefficientNoise {
                law,
                sensitivity: shift,
                l2_strength,
            })
        }
        Perturbation::Output => {
            let convexity = c.l2_strength + domain.extra_convexity;
            let sensitivity = match (c.calibration, c.radius) {
                (Calibration::Paper, Some(radius)) => bounds.paper_ball_argmin(domain.slope_bound, convexity, radius),
                _ => bounds.argmin(domain.shift, convexity),
            };
            let law = if let Cost::Epsilon(epsilon) = cost {
                laplace(privacy::laplace_rate(sensitivity, epsilon)?)
            } else {
                gaussian(privacy::gaussian_std_dev(sensitivity, cost.mu())?)
            };
            Ok(CoefficientNoise {
                law,
                sensitivity,
                l2_strength,
            })
        }
    }
}

/// Rate of the noise where the shift alone pays for the Jacobian, too.
fn offset_rate(of: Bounded<'_>, shift: f64, epsilon: f64) -> Result<f64> {
    let (bounds, loss) = (of.bounds, &of.choices.loss);
    let least = bounds.offset_l2_strength(loss.slope_bound(), loss.curvature_slack(), epsilon);
    if !(of.choices.l2_strength >= least) {
        return Err(too_small(of.choices, least, epsilon));
    }
    privacy::laplace_rate(shift, epsilon)
}

/// The shape of the noise: the blocks of the rows and the intercept, or `None` for a ball. Objective perturbation takes it wherever the
/// rows have blocks: no ball gives all coordinates together less noise (docs/proofs/mechanisms.md, "Noise").
pub(super) fn shape(c: &Choices) -> Result<Option<Arc<Blocks>>> {
    let offered = c.perturbation == Perturbation::Objective && c.calibration == Calibration::Tight;
    match c.noise {
        None | Some(NoiseKind::ShapedLaplace | NoiseKind::ShapedGaussian) if offered => c.rows.blocks(c.intercept),
        _ => Ok(None),
    }
}

impl Spec {
    /// The λ that objective perturbation must exceed; 0 for output perturbation, which works at any.
    pub(super) fn least_l2_strength(&self) -> Result<f64> {
        let c = &self.choices;
        let epsilon = match (c.perturbation, self.coefficients.cost, c.budget) {
            (Perturbation::Output, ..) => return Ok(0.0),
            // More regularisation comes by itself.
            _ if c.variant == Variant::Cms11 => return Ok(0.0),
            (_, Cost::Epsilon(epsilon) | Cost::EpsilonDelta { epsilon, .. }, _)
            | (_, Cost::MuSquared(_), Budget::Approx { epsilon, .. }) => epsilon,
            (_, Cost::Rho(rho), _) => privacy::zcdp_to_pure(rho, c.calibration)?,
            // Squared ratios are shares of (ε, δ) budgets alone.
            (_, Cost::MuSquared(_), _) => return Ok(f64::INFINITY),
        };
        Ok(least_l2_strength(self.bounded(), epsilon))
    }

    /// How Gaussian objective perturbation composes with what follows; `None` for other mechanisms.
    pub fn objective_profile(&self) -> Option<ObjectiveProfile> {
        let gaussian = matches!(self.law, NoiseLaw::Gaussian { .. } | NoiseLaw::ShapedGaussian { .. });
        (gaussian && self.choices.perturbation == Perturbation::Objective)
            .then(|| objective_profile(self.bounded()).ok())
            .flatten()
    }
}

fn objective_profile(of: Bounded<'_>) -> Result<ObjectiveProfile> {
    let Bounded {
        choices: c,
        bounds,
        domain,
    } = of;
    let t = domain.curvature_trace;
    let profile = ObjectiveProfile::new(bounds, Slopes::of(&*c.loss), t, c.l2_strength)?;
    Ok(profile.with_pair(domain.pair))
}

/// The least λ at which objective perturbation has noise to offer for its ε.
fn least_l2_strength(of: Bounded<'_>, epsilon: f64) -> f64 {
    let Bounded {
        choices: c,
        bounds,
        domain,
    } = of;
    let t = domain.curvature_trace;
    match (c.budget, c.calibration) {
        (Budget::Approx { .. }, Calibration::Paper) => privacy::paper_least_l2_strength(bounds, t, epsilon),
        _ => privacy::least_l2_strength(bounds, t, epsilon),
    }
}

fn too_small(c: &Choices, least: f64, epsilon: f64) -> Error {
    Error::RegularizationTooSmall {
        // Above the least by no more than rounding: the value given is itself too small.
        least: least.max(c.l2_strength),
        value: c.l2_strength,
        epsilon,
    }
}
