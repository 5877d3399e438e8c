//! How fast noise shrinks as a budget grows: derivatives of the calibrations in ε or ρ, for studies of utility.
//!
//! Unlike the calibrations themselves these are not rounded to a safe side: no guarantee rests on them.

use std::f64::consts::LN_2;

use super::corners::Corner;
use super::gaussian::mills;
use super::{Calibration, ObjectiveProfile};

/// `dμ/dε` of [`super::gaussian_mu`] at a fixed δ.
///
/// `∂δ/∂ε = -e^ε Φ(-x)` and `∂δ/∂μ = φ(x - μ) = e^ε φ(x)` with `x = ε/μ + μ/2`, so the ratio is the Mills ratio at x.
pub fn gaussian_mu_slope(epsilon: f64, mu: f64) -> f64 {
    mills(epsilon / mu + mu / 2.0)
}

/// `dε/dρ` of [`super::zcdp_to_pure`] where its value is `epsilon`.
pub fn zcdp_to_pure_slope(epsilon: f64, calibration: Calibration) -> f64 {
    let half = epsilon / 2.0;
    match calibration {
        Calibration::Tight => 1.0 / (half.tanh() + half / half.cosh().powi(2)),
        Calibration::Paper => 1.0 / epsilon,
    }
}

/// `dρ/dε` of [`super::approx_to_zcdp`] by the paper's conversion, `ρ = (√(l+ε) - √l)²` with `l = ln(1/δ)`.
pub fn approx_to_zcdp_paper_slope(epsilon: f64, delta: f64) -> f64 {
    let l = -delta.ln();
    // 1 - √(l/(l+ε)), without the difference.
    epsilon / ((l + epsilon) * (1.0 + (l / (l + epsilon)).sqrt()))
}

/// `d ln σ/dε` of [`super::paper_objective_std_dev`], `σ ∝ √(8q + 4ε)/ε` with `q = ln(2/δ)`: `-(4q + ε)/(2ε(2q + ε))`.
pub fn paper_objective_log_slope(epsilon: f64, delta: f64) -> f64 {
    let q = LN_2 - delta.ln();
    -(4.0 * q + epsilon) / (2.0 * epsilon * (2.0 * q + epsilon))
}

impl ObjectiveProfile {
    /// Addend of δ from a corner, which is the Gaussian mechanism with this ratio of shift and σ: its hockey-stick divergence,
    /// or for persons the mean excess of its loss, which is above that and convex in the loss.
    pub(super) fn corner(&self, epsilon: f64, mu: f64) -> f64 {
        if self.single {
            super::gaussian::delta(epsilon, mu)
        } else {
            super::gaussian::mean_excess(epsilon, mu)
        }
    }

    /// `dm/dε` of the root `m² = mu_squared` of [`Self::mu_squared`] at a fixed δ and share.
    ///
    /// The bound is `Σ wⱼ δ_G(ε̃; kⱼm)`. Differentiated implicitly, with `xⱼ = ε̃/(kⱼm) + kⱼm/2`, the slope is
    /// `Σ wⱼ φ(xⱼ) M(xⱼ) / Σ wⱼ kⱼ φ(xⱼ)`, M the Mills ratio. Of two sets of corners the greater one counts. With the mean excess of persons
    /// `xⱼ = ε̃/(kⱼm) - kⱼm/2`, and `φ + kⱼmφM` stands for φ in the denominator.
    pub fn mu_slope(&self, epsilon: f64, mu_squared: f64, share: f64) -> f64 {
        let left = self.remaining(epsilon).max(0.0);
        let m = mu_squared.sqrt();
        let shift = self.shift();
        let ratio = |square: f64| ((share * square).sqrt() / shift).hypot((1.0 - share).sqrt());
        let sum = |corners: &[Corner]| -> f64 {
            let terms = corners.iter();
            terms.map(|(w, square)| w * self.corner(left, ratio(*square) * m)).sum()
        };
        let corners = self.corners(sum).into_iter().map(|(w, square)| (w, ratio(square)));
        let points: Vec<(f64, f64, f64)> = corners
            .filter(|(_, k)| *k > 0.0)
            .map(|(w, k)| {
                let half = k * m / 2.0;
                (w, k, left / (k * m) + if self.single { half } else { -half })
            })
            .collect();
        // The densities relative to the greatest one, so that none underflows together with all others.
        let least = points.iter().fold(f64::INFINITY, |l, (.., x)| l.min(x.abs()));
        let (mut numerator, mut denominator) = (0.0, 0.0);
        for (w, k, x) in points {
            let density = w * (0.5 * (least * least - x * x)).exp();
            numerator += density * mills(x);
            let tail = if self.single { 0.0 } else { k * m * mills(x) };
            denominator += density * k * (1.0 + tail);
        }
        numerator / denominator
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        DataBounds, Neighbors, Slopes, approx_to_zcdp, gaussian_mu, paper_objective_std_dev, zcdp_to_pure,
    };
    use super::*;

    /// Central difference of `f` at `x`, with an error near 1e-8 of the value for smooth functions.
    fn difference(f: impl Fn(f64) -> f64, x: f64) -> f64 {
        let h = 1e-4 * x;
        let (near, far) = (f(x + h) - f(x - h), f(x + 2.0 * h) - f(x - 2.0 * h));
        (8.0 * near - far) / (12.0 * h)
    }

    fn assert_close(got: f64, expected: f64, what: &str) {
        assert!((got / expected - 1.0).abs() < 1e-7, "{what}: {got} against {expected}");
    }

    #[test]
    fn slopes_of_conversions_are_finite_differences() {
        for epsilon in [0.01, 0.3, 1.0, 4.0, 20.0] {
            for delta in [0.3, 1e-3, 1e-6, 1e-12] {
                let mu = |e| gaussian_mu(e, delta).unwrap();
                let what = format!("epsilon={epsilon} delta={delta}");
                let slope = gaussian_mu_slope(epsilon, mu(epsilon));
                assert_close(slope, difference(mu, epsilon), &what);
                let rho = |e| approx_to_zcdp(e, delta, Calibration::Paper).unwrap();
                let slope = approx_to_zcdp_paper_slope(epsilon, delta);
                assert_close(slope, difference(rho, epsilon), &what);
                let log = |e| paper_objective_std_dev(1.0, e, delta).unwrap().ln();
                let slope = paper_objective_log_slope(epsilon, delta);
                assert_close(slope, difference(log, epsilon), &what);
            }
        }
        for rho in [1e-6, 0.01, 0.5, 3.0, 40.0] {
            for calibration in [Calibration::Tight, Calibration::Paper] {
                let pure = |r| zcdp_to_pure(r, calibration).unwrap();
                let slope = zcdp_to_pure_slope(pure(rho), calibration);
                assert_close(slope, difference(pure, rho), &format!("rho={rho}"));
            }
        }
    }

    #[test]
    fn slope_of_the_composed_bound_is_a_finite_difference() {
        for neighbors in [Neighbors::ReplaceOne, Neighbors::AddRemove] {
            for slopes in [Slopes::OneSigned, Slopes::AnySign, Slopes::Classes(4)] {
                for kappa in [1e-9, 0.01, 0.3] {
                    let bounds = DataBounds::new(1.0, 1.0, neighbors, 3).unwrap();
                    let profile = ObjectiveProfile::new(&bounds, slopes, kappa, 1.0).unwrap();
                    for (epsilon, delta) in [(0.4, 1e-3), (1.0, 1e-6), (3.0, 1e-9), (12.0, 0.2)] {
                        for share in [1.0, 0.9, 0.2] {
                            let total = |e| profile.mu_squared(e, delta, share).unwrap();
                            let m = |e| total(e).sqrt();
                            let slope = profile.mu_slope(epsilon, total(epsilon), share);
                            let what = format!("{neighbors:?} {slopes:?} {kappa} {epsilon} {delta} {share}");
                            assert_close(slope, difference(m, epsilon), &what);
                        }
                    }
                }
            }
        }
    }
}
