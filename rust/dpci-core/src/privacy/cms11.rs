//! The objective perturbation of Chaudhuri, Monteleoni & Sarwate (2011), which regularises more where ε is too small for λ.

use super::rounding::{down, up};
use super::{DataBounds, check_non_negative, check_positive, laplace_rate};
use crate::Result;

/// λ with the extra regularisation Δ' of variant cms11: λ itself where `ε > 2 ln(1+κ)`, `tR²/(n(e^(ε/4) - 1))` otherwise, t the
/// curvature bound. A function of public values.
pub fn cms11_l2_strength(bounds: &DataBounds, curvature_bound: f64, l2_strength: f64, epsilon: f64) -> Result<f64> {
    check_positive("l2_strength", l2_strength)?;
    check_non_negative("curvature_bound", curvature_bound)?;
    check_positive("epsilon", epsilon)?;
    if left(bounds, curvature_bound, l2_strength, epsilon) > 0.0 {
        return Ok(l2_strength);
    }
    // κ at this strength is e^(ε/4) - 1, so that half of ε is left.
    let enough = bounds.kappa(curvature_bound, (epsilon / 4.0).exp_m1());
    check_positive("the l2_strength with the extra regularisation", enough)?;
    Ok(up(enough.max(l2_strength)))
}

/// Rate γ of the noise of variant cms11 at the λ of [`cms11_l2_strength`], rounded down: `(ε - 2 ln(1+κ))/Δ`, Δ the shift of the noise.
///
/// # Privacy
/// ε-DP for the exact minimiser: as [`super::objective_rate`], which pays `ln(1+κ)` once; so this wastes noise.
pub fn cms11_rate(
    bounds: &DataBounds,
    shift: f64,
    curvature_bound: f64,
    l2_strength: f64,
    epsilon: f64,
) -> Result<f64> {
    laplace_rate(shift, left(bounds, curvature_bound, l2_strength, epsilon))
}

/// Whether variant cms11 raised λ: exactly then half of the coefficients' ε is left for their noise, of this scale.
pub fn cms11_raised(epsilon: f64, sensitivity: f64, scale: f64) -> bool {
    (sensitivity / (0.5 * epsilon * scale) - 1.0).abs() <= 1e-9
}

/// Part of ε that the Jacobian leaves, rounded down.
fn left(bounds: &DataBounds, curvature_bound: f64, l2_strength: f64, epsilon: f64) -> f64 {
    down(epsilon - up(2.0 * bounds.kappa(curvature_bound, l2_strength).ln_1p()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Neighbors;

    /// Beside the formulas as printed (with the bracket of Δ' where it belongs).
    #[test]
    fn both_branches() {
        let bounds = DataBounds::new(1000.0, 1.0, Neighbors::ReplaceOne, 3).unwrap();
        let kappa = 0.25 / (1000.0 * 0.01);
        assert!((cms11_l2_strength(&bounds, 0.25, 0.01, 0.5).unwrap() - 0.01).abs() < 1e-15);
        let rate = cms11_rate(&bounds, 2.0, 0.25, 0.01, 0.5).unwrap();
        assert!((rate - (0.5 - 2.0 * f64::ln_1p(kappa)) / 2.0).abs() < 1e-12);
        assert!(!cms11_raised(0.5, 2.0, 1.0 / rate));

        let epsilon = 0.04;
        let strength = cms11_l2_strength(&bounds, 0.25, 0.01, epsilon).unwrap();
        let printed = 0.25 / (1000.0 * ((epsilon / 4.0_f64).exp() - 1.0));
        assert!((strength / printed - 1.0).abs() < 1e-12 && strength > 0.01);
        let rate = cms11_rate(&bounds, 2.0, 0.25, strength, epsilon).unwrap();
        assert!((rate / (epsilon / 4.0) - 1.0).abs() < 1e-9);
        assert!(cms11_raised(epsilon, 2.0, 1.0 / rate));
    }

    #[test]
    fn regularisation_is_added_where_nothing_is_left() {
        let bounds = DataBounds::new(1000.0, 1.0, Neighbors::ReplaceOne, 3).unwrap();
        let all = up(2.0 * bounds.kappa(0.25, 0.01).ln_1p());
        assert!(left(&bounds, 0.25, 0.01, all).abs() < f64::MIN_POSITIVE);
        let strength = cms11_l2_strength(&bounds, 0.25, 0.01, all).unwrap();
        assert!(strength > 0.01 && cms11_rate(&bounds, 2.0, 0.25, strength, all).is_ok());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(cms11_l2_strength(&bounds, 0.25, bad, 1.0).is_err());
            assert!(cms11_l2_strength(&bounds, 0.25, 0.01, bad).is_err());
        }
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(cms11_l2_strength(&bounds, bad, 0.01, 1.0).is_err());
        }
    }
}
