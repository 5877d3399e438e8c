//! The noise that a cost buys, given a sensitivity.

use super::rounding::{down, up};
use super::{DataBounds, check_non_negative, check_positive};
use crate::bugs::{self, Bug};
use crate::{Error, Result};

/// Rate `γ = ε/Δ` of a Laplace-type law, rounded down: spherical Laplace for an L2 sensitivity Δ, symmetric matrix Laplace
/// for a nuclear-norm sensitivity.
///
/// # Privacy
/// ε-DP (Chaudhuri, Monteleoni & Sarwate 2011; docs/proofs/mechanisms.md, "Noise", for matrices).
pub fn laplace_rate(sensitivity: f64, epsilon: f64) -> Result<f64> {
    check_positive("sensitivity", sensitivity)?;
    check_positive("epsilon", epsilon)?;
    let factor = bugs::factor(Bug::HalfNoise, 2.0);
    Ok(down(epsilon / sensitivity * factor))
}

/// Standard deviation `Δ/μ` of Gaussian noise for an L2 sensitivity Δ, rounded up.
///
/// # Privacy
/// `μ²/2`-zCDP (Bun & Steinke 2016); (ε, δ)-DP by the exact profile [`super::gaussian_delta`] (Balle & Wang 2018). Several
/// releases compose by adding μ².
pub fn gaussian_std_dev(sensitivity: f64, mu: f64) -> Result<f64> {
    check_positive("sensitivity", sensitivity)?;
    check_positive("mu", mu)?;
    let factor = bugs::factor(Bug::LostRootTwo, std::f64::consts::FRAC_1_SQRT_2);
    Ok(up(sensitivity / mu * factor))
}

/// Least λ (exclusive, rounded up) at which objective perturbation has noise to offer: `tR²/(n(e^ε₁ - 1))`, t the curvature
/// bound; for persons [`DataBounds::least_l2_strength`].
pub fn least_l2_strength(bounds: &DataBounds, curvature_bound: f64, epsilon: f64) -> f64 {
    bounds.least_l2_strength(curvature_bound, epsilon)
}

/// Rate γ of the spherical Laplace noise of objective perturbation (Chaudhuri, Monteleoni & Sarwate 2011; Wang, Kifer &
/// Lee, Algorithm 1), rounded down: `γ = (ε₁ - ln(1+κ))/Δ`, Δ the shift of the noise (2LR, or less) and κ = tR²/(nλ).
///
/// # Privacy
/// ε₁-DP for the exact minimiser: `ln(1+κ)` pays for the Jacobian of the map from the noise to the minimiser, which is rank
/// one away from its neighbour's, and γΔ for the shift of the noise. For persons [`DataBounds::log_determinant`] stands for `ln(1+κ)`.
pub fn objective_rate(
    bounds: &DataBounds,
    shift: f64,
    curvature_bound: f64,
    l2_strength: f64,
    epsilon: f64,
) -> Result<f64> {
    check_positive("shift", shift)?;
    check_positive("l2_strength", l2_strength)?;
    check_non_negative("curvature_bound", curvature_bound)?;
    check_positive("epsilon", epsilon)?;
    let least = least_l2_strength(bounds, curvature_bound, epsilon);
    let curvature = bounds.log_determinant(curvature_bound, l2_strength);
    let left = epsilon - curvature * bugs::factor(Bug::ForgottenCurvature, 0.0);
    if !(l2_strength > least && left > 0.0) {
        return Err(Error::RegularizationTooSmall {
            // Above the least by no more than rounding: the value given is itself too small.
            least: least.max(l2_strength),
            value: l2_strength,
            epsilon,
        });
    }
    laplace_rate(shift, left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Neighbors;

    fn bounds(neighbors: Neighbors) -> DataBounds {
        DataBounds::new(1000.0, 1.0, neighbors, 3).unwrap()
    }

    #[test]
    fn noise_is_never_below_the_exact_value() {
        for (sensitivity, budget) in [(0.1, 0.3), (1e-9, 7.0), (3.0, 1e-6)] {
            let exact = budget / sensitivity;
            let rate = laplace_rate(sensitivity, budget).unwrap();
            assert!(rate <= exact && rate > exact * (1.0 - 1e-14));
            let exact = sensitivity / budget;
            let std_dev = gaussian_std_dev(sensitivity, budget).unwrap();
            assert!(std_dev >= exact && std_dev < exact * (1.0 + 1e-14));
        }
    }

    #[test]
    fn objective_noise_follows_the_formula() {
        for (neighbors, records) in [(Neighbors::ReplaceOne, 2.0), (Neighbors::AddRemove, 1.0)] {
            let rate = objective_rate(
                &bounds(neighbors),
                bounds(neighbors).objective_shift(1.0),
                0.25,
                0.002,
                0.5,
            )
            .unwrap();
            let expected = (0.5 - (0.25_f64 / 2.0).ln_1p()) / records;
            assert!(
                rate <= expected && rate > expected * (1.0 - 1e-13),
                "{rate} against {expected}"
            );
        }
    }

    #[test]
    fn too_little_regularisation_names_the_least() {
        let bounds = bounds(Neighbors::ReplaceOne);
        let least = least_l2_strength(&bounds, 0.25, 0.5);
        assert!((least / (0.25 / (1000.0 * 0.5_f64.exp_m1())) - 1.0).abs() < 1e-14);
        assert!(objective_rate(&bounds, 2.0, 0.25, least * 1.0001, 0.5).is_ok());
        for l2_strength in [least, least / 2.0, 1e-320] {
            let error = objective_rate(&bounds, 2.0, 0.25, l2_strength, 0.5).unwrap_err();
            assert!(matches!(error, Error::RegularizationTooSmall { least: named, .. } if named >= least));
        }
        // A loss without curvature needs none.
        assert!(objective_rate(&bounds, 2.0, 0.0, 1e-12, 0.5).is_ok());
    }

    #[test]
    fn bad_arguments_are_refused() {
        let bounds = bounds(Neighbors::ReplaceOne);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(laplace_rate(bad, 1.0).is_err());
            assert!(laplace_rate(1.0, bad).is_err());
            assert!(gaussian_std_dev(bad, 1.0).is_err());
            assert!(gaussian_std_dev(1.0, bad).is_err());
            assert!(objective_rate(&bounds, bad, 0.25, 1.0, 1.0).is_err());
            assert!(objective_rate(&bounds, 2.0, 0.25, bad, 1.0).is_err());
            assert!(objective_rate(&bounds, 2.0, 0.25, 1.0, bad).is_err());
        }
        assert!(objective_rate(&bounds, 2.0, -1.0, 1.0, 1.0).is_err());
    }
}
