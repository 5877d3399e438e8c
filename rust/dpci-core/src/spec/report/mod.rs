//! The choices of a model with its report, validated and calibrated before any data are seen.
//!
//! Redberg & Wang 2021, "Privately publishable per-instance privacy", Algorithm 2 (`docs/per_instance.md`).

mod claim;

pub(crate) use claim::check_row_norm;
pub use claim::{Claim, HessianBound};

use super::fit::share_seal;
use super::{Choices, Moments, NoiseKind, Part, Query, Seal, Spec, Step};
use crate::error::check;
use crate::linalg::check_matrix_dim;
use crate::loss::{gradient_rounding, hessian_rounding};
use crate::noise::{Family, symmetric};
use crate::privacy::{Budget, Calibration, Cost, Neighbors, Perturbation, gaussian_mu, gaussian_std_dev};
use crate::{Error, Result};

/// Rounding in three shares of a caller may move their sum this far from 1.
const SHARE_ROUNDING: f64 = 1e-9;

/// Least share: a smaller one vanishes in the rounding of the others, and its noise in that of its matrix.
const LEAST_SHARE: f64 = 1e-12;

/// Halvings that find the least λ of the published bound.
const HALVINGS: usize = 60;

/// Validated choices of a model with its report. Holds no data.
#[derive(Debug, Clone)]
pub struct ReportSpec {
    fit: Spec,
    shares: Option<[f64; 3]>,
    /// Choices with the whole budget, of which `fit` has a part.
    choices: Choices,
    /// Steps of the gradient and the Hessian; the latter's scale is that of an isometric coordinate.
    extra: Option<[Step; 2]>,
}

impl ReportSpec {
    /// Calibrates the releases: coefficients, gradient and Hessian at these shares, or the coefficients alone.
    ///
    /// # Privacy
    /// Tight: the shares divide the squared ratios `(LR/σ)² : (LR/σ₂)² : (tR²)²/(2σ₃²)`, whose common scale is that of
    /// [`crate::privacy::ObjectiveProfile`]. Paper: each release at its share of ε and a third of δ, which add up.
    pub fn new(choices: &Choices, shares: Option<[f64; 3]>) -> Result<Self> {
        check_supported(choices)?;
        let mut part = choices.clone();
        // The bounds on the loss of one record are for noise that is the same in all directions.
        part.noise = part.noise.or(Some(NoiseKind::Gaussian));
        let Some(shares) = shares else {
            return Ok(Self {
                fit: Spec::new(part)?,
                shares,
                choices: choices.clone(),
                extra: None,
            });
        };
        let shares = check_shares(shares)?;
        let (rest, seal) = choices.budget.split_off_seal();
        let (epsilon, delta) = check_supported(&Choices {
            budget: rest,
            ..choices.clone()
        })?;
        part.budget = rest;
        match choices.calibration {
            Calibration::Tight => part.reserve = shares[1] + shares[2],
            Calibration::Paper => {
                part.budget = Budget::approx(shares[0] * epsilon, delta / 3.0)?;
            }
        }
        let fit = Spec::with_seal(part, choices.budget, share_seal(seal, 3))?;
        check_matrix_dim(fit.n_params())?;
        check_row_norm(fit.row_norm())?;
        // The last is the remainder, so that rounding never spends more.
        let costs = if let Some(rest) = fit.reserved() {
            let gradient = rest.value() * (shares[1] / (shares[1] + shares[2]));
            [gradient, rest.value() - gradient].map(Cost::MuSquared)
        } else {
            let gradient = shares[1] * epsilon;
            let hessian = epsilon - shares[0] * epsilon - gradient;
            [gradient, hessian].map(|epsilon| Cost::EpsilonDelta {
                epsilon,
                delta: delta / 3.0,
            })
        };
        let (bounds, loss) = (fit.bounds(), &choices.loss);
        let sensitivities = [
            bounds.objective_shift(loss.slope_bound()),
            bounds.sum_term(loss.curvature_bound()),
        ];
        let step = |i: usize, query| {
            let mu = match costs[i] {
                Cost::EpsilonDelta { epsilon, delta } => gaussian_mu(epsilon, delta)?,
                cost => cost.mu(),
            };
            Ok(Step::new(
                query,
                Family::Gaussian,
                costs[i],
                gaussian_std_dev(sensitivities[i], mu)?,
                sensitivities[i],
            ))
        };
        let extra = Some([step(0, Query::ReportGradient)?, step(1, Query::ReportHessian)?]);
        let spec = Self {
            fit,
            shares: Some(shares),
            choices: choices.clone(),
            extra,
        };
        // What public values rule out is refused before anything is paid.
        spec.derivative_seals(0.0, [0.0; 2])?;
        Ok(spec)
    }

    /// The coefficients' part.
    pub fn fit(&self) -> &Spec {
        &self.fit
    }

    /// All steps.
    pub fn steps(&self) -> Vec<Step> {
        let extra = self.extra.iter().flatten();
        std::iter::once(&self.fit.coefficients).chain(extra).cloned().collect()
    }

    /// Λ = n₀λ, the ridge of the sum objective.
    pub fn ridge(&self) -> f64 {
        self.fit.bounds().n * self.choices.l2_strength
    }

    /// Refuses the published bound on `xᵀH⁻¹x` where the ridge is below twice the radius of the Hessian's noise.
    pub fn check_claim(&self, claim: &Claim) -> Result<()> {
        let Some(radius) = self.radius(claim) else {
            return Ok(());
        };
        if claim.hessian_bound() != HessianBound::Paper || self.ridge() >= 2.0 * radius {
            return Ok(());
        }
        let value = self.choices.l2_strength;
        let holds = |l2_strength: f64| {
            let choices = Choices {
                l2_strength,
                ..self.choices.clone()
            };
            Self::new(&choices, self.shares)
                .is_ok_and(|spec| spec.radius(claim).is_some_and(|radius| spec.ridge() >= 2.0 * radius))
        };
        // Enough, because a greater ridge costs less and so makes the noise smaller.
        let mut least = 2.0 * radius / self.fit.bounds().n * (1.0 + 4.0 * f64::EPSILON);
        let mut below = value;
        for _ in 0..HALVINGS {
            let middle = 0.5 * (below + least);
            if holds(middle) {
                least = middle;
            } else {
                below = middle;
            }
        }
        Err(Error::RidgeBelowNoise { least, value })
    }

    /// Steps of the gradient and the Hessian; `None` for a report that needs no data.
    pub(crate) fn extra(&self) -> Option<&[Step; 2]> {
        self.extra.as_ref()
    }

    /// The seals of the gradient, whose public part n₀λθ̃ has norm `ridge`, and of the Hessian, whose noise errs by `errors`.
    pub(crate) fn derivative_seals(&self, ridge: f64, errors: [f64; 2]) -> Result<[Seal; 2]> {
        let (dim, bounds, loss) = (self.fit.n_params(), self.fit.bounds(), &self.choices.loss);
        let [of_gradient, of_hessian] =
            [gradient_rounding, hessian_rounding].map(|of_rows| bounds.n * self.fit.rounding(of_rows));
        let public = 4.0 * f64::EPSILON;
        let gradient = of_gradient * loss.slope_bound() * bounds.row_norm + public * ridge;
        let hessian =
            of_hessian * loss.curvature_bound() * bounds.row_norm.powi(2) + public * self.ridge() * (dim as f64).sqrt();
        let seal = |part, count, data: f64, error: f64| Seal::new(part, count, data + 2.0 * error, self.fit.seal_cost);
        Ok([
            seal(Part::Gradient, dim, gradient, errors[0])?,
            seal(Part::Hessian, symmetric::isometric_dim(dim), hessian, errors[1])?,
        ])
    }

    /// The radius of the Hessian's noise.
    fn radius(&self, claim: &Claim) -> Option<f64> {
        let [_, hessian] = self.extra.as_ref()?;
        Some(claim.hessian_radius(self.fit.n_params(), hessian.scale))
    }
}

/// (ε, δ) of choices that a report can have.
fn check_supported(c: &Choices) -> Result<(f64, f64)> {
    let objections = [
        (c.terms.neighbors == Neighbors::AddRemove, "neighbors=\"replace_one\""),
        (c.perturbation == Perturbation::Objective, "mechanism=\"output\""),
        (c.moments == Moments::None, "released moments"),
        (!c.terms.has_far_rows(), "rows=\"weight\""),
        (c.noise != Some(NoiseKind::ShapedGaussian), "noise=\"shaped_gaussian\""),
    ];
    let objection = objections.iter().find(|(holds, _)| !holds);
    let got = match (c.budget, objection) {
        (Budget::Approx { epsilon, delta }, None) => return Ok((epsilon, delta)),
        (Budget::Approx { .. }, Some((_, got))) => got,
        _ => "another budget",
    };
    Err(Error::Unsupported(format!(
        "a per-instance report requires ApproxDP, mechanism=\"objective\", neighbors=\"add_remove\", moments=\"none\" and \
         noise with the same spread in every direction, got {got}"
    )))
}

/// Shares of the coefficients, the gradient and the Hessian, scaled to the sum 1.
pub fn check_shares(shares: [f64; 3]) -> Result<[f64; 3]> {
    if !shares.iter().all(|share| *share >= LEAST_SHARE && share.is_finite()) {
        return Err(Error::Unsupported(format!(
            "each share must be finite and at least {LEAST_SHARE:e}, got shares={:?}",
            <(f64, f64, f64)>::from(shares)
        )));
    }
    let sum: f64 = shares.iter().sum();
    check((sum - 1.0).abs() <= SHARE_ROUNDING, "the sum of shares", "1", sum)?;
    Ok(shares.map(|share| share / sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(shares: [f64; 3]) -> String {
        check_shares(shares).unwrap_err().to_string()
    }

    #[test]
    fn shares_are_refused_by_their_name() {
        for share in [0.0, -0.5, 9e-13, f64::NAN, f64::INFINITY] {
            let message = refusal([0.5, 0.5, share]);
            assert!(
                message.starts_with("each share must be finite and at least 1e-12"),
                "{message}"
            );
        }
        assert!(refusal([0.5, 0.5, 0.5]).starts_with("the sum of shares must be 1, got"));
        let [a, b, c] = check_shares([1e-12, 0.5, 0.5]).unwrap();
        assert!(b + c < 1.0 && (a + b + c - 1.0).abs() < 1e-15);
    }
}
