//! How far Gaussian vectors and matrices reach: bounds that fail with a stated probability, rounded up.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use statrs::function::gamma::checked_gamma_ur;

use super::least_where;

/// Relative margin that covers the error of the two tail functions.
const TAIL_ERROR: f64 = 1e-9;

/// q with `P(|Z| > q) ≤ p` for a standard normal Z.
pub(crate) fn normal(p: f64) -> f64 {
    least_where(|q| libm::erfc(q * FRAC_1_SQRT_2) * (1.0 + TAIL_ERROR) <= p)
}

/// q with `P(‖Z‖ > q) ≤ p` for a standard normal Z on `R^dim`: the root of a χ² quantile.
pub(crate) fn normal_norm(dim: usize, p: f64) -> f64 {
    let shape = 0.5 * dim as f64;
    least_where(|q| {
        // Refused arguments are 0, where the tail is 1, and a square that overflows, where it is 0.
        let tail = checked_gamma_ur(shape, 0.5 * q * q).unwrap_or(f64::from(u8::from(q < 1.0)));
        tail * (1.0 + TAIL_ERROR) <= p
    })
}

/// r with `P(λ₁(N) > r) ≤ p` for the greatest eigenvalue of symmetric noise N whose isometric coordinates have standard deviation
/// `std_dev`: `√2·std_dev·(√d + √ln(1/p))`.
///
/// The mean is at most `√2·std_dev·√d` by Sudakov-Fernique, and `λ₁` is a Lipschitz function of the coordinates with constant 1
/// (`docs/per_instance.md`, "The Hessian").
pub(crate) fn greatest_eigenvalue(dim: usize, std_dev: f64, p: f64) -> f64 {
    SQRT_2 * std_dev * ((dim as f64).sqrt() + (-p.ln()).sqrt()) * (1.0 + 8.0 * f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::unreadable_literal, reason = "printed by SciPy")]
    fn quantiles_match_scipy_from_above() {
        // scipy.stats.norm.isf(p / 2) and scipy.stats.chi.isf(p, dim).
        let cases = [
            (normal(0.1), 1.6448536269514729),
            (normal(5e-7), 5.026312836056685),
            (normal(1e-30), 11.523883577380248),
            (normal_norm(1, 0.1), 1.6448536269514729),
            (normal_norm(2, 1e-6), 5.256521769756932),
            (normal_norm(21, 2.5e-7), 8.421421561163854),
            (normal_norm(300, 0.5), 17.30125999311085),
        ];
        for (got, exact) in cases {
            assert!(got >= exact && got <= exact * (1.0 + 1e-8), "{got} against {exact}");
        }
    }

    #[test]
    fn the_eigenvalue_of_one_number_is_bounded_as_a_normal() {
        for p in [0.5, 1e-3, 1e-9] {
            assert!(greatest_eigenvalue(1, 1.0, p) >= normal(2.0 * p));
        }
    }

    #[test]
    fn the_eigenvalue_is_rounded_up_from_its_closed_form() {
        // √2·s·(√d + √ln(1/p)) in 60 digits.
        let cases = [
            (1, 1.0, 0.5, 2.591_623_584_888_57),
            (3, 0.7, 1e-9, 6.221_171_475_155_853),
            (21, 130.0, 2.5e-7, 1_559.309_380_981_144),
            (300, 1e-3, 1e-30, 0.036_248_837_430_215_78),
        ];
        for (dim, std_dev, p, exact) in cases {
            let got = greatest_eigenvalue(dim, std_dev, p);
            assert!(got >= exact && got <= exact * (1.0 + 1e-14), "{got} against {exact}");
        }
    }
}
