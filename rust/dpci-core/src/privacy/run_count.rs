//! Accounting of private selection: the best of a random number of private runs, and the exponential mechanism.
//!
//! Papernot & Steinke 2022, "Hyperparameter tuning with Rényi differential privacy"; Cesar & Rogers 2021 (docs/tuning.md has the
//! proofs, that of the bounded number of runs among them).

use super::rounding::{down, greatest_where, up};
use super::{Budget, Calibration, approx_to_zcdp, check_delta, check_positive, zcdp_to_approx_delta, zcdp_to_pure};
use crate::Result;
use crate::error::check;

/// At most this many times the expected number of runs are ever made. Drawing again beyond it costs no privacy.
const GREATEST_OVER_MEAN: f64 = 20.0;

/// Greatest expected number of runs.
const GREATEST_MEAN: f64 = 1e6;

/// Law of the number of runs: a truncated negative binomial on 1, 2, ..., conditioned on a public greatest number.
///
/// Before conditioning, `P(K = k) ∝ (1-γ)ᵏ Γ(k+η)/k!`: geometric at shape η = 1, logarithmic at η = 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunCount {
    shape: f64,
    gamma: f64,
    greatest: usize,
}

impl RunCount {
    /// The law of this shape whose mean, before conditioning, is `mean`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "1 < 20·mean ≤ 2·10⁷"
    )]
    pub fn new(shape: f64, mean: f64) -> Result<Self> {
        check((0.0..=10.0).contains(&shape), "shape", ">= 0 and <= 10", shape)?;
        check(
            mean > 1.0 && mean <= GREATEST_MEAN,
            "expected_runs",
            "> 1 and <= 1e6",
            mean,
        )?;
        // The mean falls as γ rises; rounding the other way would only change the law, not what is claimed of it.
        let gamma = greatest_where(|gamma| gamma < 1.0 && mean_runs(shape, gamma) >= mean);
        Ok(Self {
            shape,
            gamma,
            greatest: (GREATEST_OVER_MEAN * mean).ceil() as usize,
        })
    }

    getters! { self =>
        /// η.
        pub shape: f64 = self.shape;
        /// γ.
        pub gamma: f64 = self.gamma;
        /// The greatest number of runs.
        pub greatest: usize = self.greatest;
        /// Mean before conditioning, which is never below the mean after it.
        pub mean: f64 = mean_runs(self.shape, self.gamma);
    }

    /// `P(K = k)` for k = 1, 2, ..., up to the greatest number of runs.
    pub fn probabilities(&self) -> Vec<f64> {
        let mut weight = 1.0;
        let mut weights = Vec::with_capacity(self.greatest);
        for k in 1..=self.greatest {
            weights.push(weight);
            let k = k as f64;
            weight *= (1.0 - self.gamma) * (k + self.shape) / (k + 1.0);
        }
        let total: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= total;
        }
        weights
    }

    /// Pure ε of one run, its score included, so that releasing the best run is `epsilon`-DP: `epsilon/(2+η)`, rounded down.
    pub fn run_epsilon(&self, epsilon: f64) -> Result<f64> {
        check_positive("epsilon", epsilon)?;
        Ok(down(epsilon / (2.0 + self.shape)))
    }

    /// Bound on the Rényi divergence of order `order` of the best run, where one run is `rho`-zCDP: Papernot & Steinke, Theorem 2,
    /// at the best second order, `αρ + (1+η)(2√(ρ·ln 1/γ) - ρ) + ln E[K]/(α-1)`.
    pub fn rdp(&self, order: f64, rho: f64) -> f64 {
        order * rho + self.offset(rho) + self.mean().ln() / (order - 1.0)
    }

    /// δ at which releasing the best run is (`epsilon`, δ)-DP, where one run is `rho`-zCDP, rounded up.
    ///
    /// As [`RunCount::rdp`] is that of zCDP with a constant and with `ln E[K]/(α-1)`, this is `E[K]` times the δ of ρ-zCDP at `epsilon` less
    /// the constant.
    pub fn delta(&self, epsilon: f64, rho: f64) -> Result<f64> {
        let rest = down(epsilon - self.offset(rho));
        if !(rest > 0.0) {
            check_positive("rho", rho)?;
            return Ok(1.0);
        }
        Ok(up(self.mean() * zcdp_to_approx_delta(rho, rest)?).min(1.0))
    }

    /// Greatest ρ of one run, its score included, so that releasing the best run is (`epsilon`, `delta`)-DP.
    pub fn run_rho(&self, epsilon: f64, delta: f64) -> Result<f64> {
        check_positive("epsilon", epsilon)?;
        check_delta(delta)?;
        Ok(greatest_where(|rho| self.delta(epsilon, rho).is_ok_and(|d| d <= delta)))
    }

    /// `(1+η)·inf over α̂ > 1 of ρ(α̂-1) + ln(1/γ)/α̂`, rounded up.
    fn offset(&self, rho: f64) -> f64 {
        let log = -self.gamma.ln();
        let least = if rho < log { 2.0 * (rho * log).sqrt() - rho } else { log };
        up(up((1.0 + self.shape) * least))
    }
}

/// Mean of the truncated negative binomial.
fn mean_runs(shape: f64, gamma: f64) -> f64 {
    // 1 - γ^η = -expm1(η·ln γ), whose limit at η = 0, divided by η, is -ln γ.
    let log = gamma.ln();
    let below = if shape == 0.0 {
        -log
    } else {
        -(shape * log).exp_m1() / shape
    };
    (1.0 - gamma) / (gamma * below)
}

/// Greatest ε of an exponential mechanism with weights `exp(-ε·score/(2Δ))` within a budget.
///
/// It is ε-DP and, because its privacy loss takes values in an interval of length ε, ε²/8-zCDP (Cesar & Rogers 2021).
pub fn exponential_epsilon(budget: &Budget) -> Result<f64> {
    let of_rho = |rho: f64| down((8.0 * rho).sqrt());
    Ok(match *budget {
        Budget::Pure { epsilon } => epsilon,
        Budget::Zcdp { rho } => of_rho(rho),
        Budget::Approx { epsilon, delta } => of_rho(approx_to_zcdp(epsilon, delta, Calibration::Tight)?).max(epsilon),
    })
}

/// Greatest ε of a pure mechanism within a budget; under (ε, δ) its own ε.
pub fn pure_epsilon(budget: &Budget) -> Result<f64> {
    match *budget {
        Budget::Pure { epsilon } | Budget::Approx { epsilon, .. } => Ok(epsilon),
        Budget::Zcdp { rho } => zcdp_to_pure(rho, Calibration::Tight),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_have_their_mean_and_known_members() {
        for shape in [0.0, 0.5, 1.0, 3.0] {
            for mean in [1.5, 7.0, 200.0] {
                let law = RunCount::new(shape, mean).unwrap();
                let p = law.probabilities();
                let total: f64 = p.iter().sum();
                let computed: f64 = p.iter().zip(1..).map(|(p, k)| p * f64::from(k)).sum();
                assert!((total - 1.0).abs() < 1e-12);
                assert!((law.mean() / mean - 1.0).abs() < 1e-12);
                // Conditioning lowers the mean, most where the tail is heaviest.
                assert!(computed <= mean * (1.0 + 1e-9) && computed > 0.9 * mean);
            }
        }
        let geometric = RunCount::new(1.0, 5.0).unwrap();
        assert!((geometric.gamma() - 0.2).abs() < 1e-14);
        let p = geometric.probabilities();
        assert!((p[3] / p[2] - 0.8).abs() < 1e-14);
    }

    /// Output laws of the best of K runs over `q.len()` outputs, worst first: `f(q₁+...+qᵢ) - f(q₁+...+qᵢ₋₁)`.
    fn best_of(law: &RunCount, q: &[f64]) -> Vec<f64> {
        let p = law.probabilities();
        let generating = |x: f64| p.iter().rev().fold(0.0, |sum, p| (sum + p) * x);
        let mut below = 0.0;
        q.iter()
            .map(|q| {
                let before = generating(below);
                below += q;
                generating(below) - before
            })
            .collect()
    }

    #[test]
    fn the_pure_bound_holds_for_exact_output_laws_and_is_nearly_attained() {
        let epsilon = 0.5_f64;
        for shape in [0.0, 1.0, 2.0] {
            let mut worst: f64 = 0.0;
            for mean in [1.2, 4.0, 60.0, 4000.0] {
                let law = RunCount::new(shape, mean).unwrap();
                // Neighbours of three outputs: the best one, one in the middle and the worst.
                for best in [1e-7, 1e-4, 0.01, 0.2, 0.5] {
                    for middle in [1e-5, 1e-3, 0.1, 0.3] {
                        for signs in [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]] {
                            let (b, m) = (best * (signs[0] * epsilon).exp(), middle * (signs[1] * epsilon).exp());
                            let (q, q2) = ([1.0 - best - middle, middle, best], [1.0 - b - m, m, b]);
                            if !((q2[0] / q[0]).ln().abs() <= epsilon) {
                                continue;
                            }
                            for (a, b) in best_of(&law, &q).into_iter().zip(best_of(&law, &q2)) {
                                worst = worst.max((a / b).ln().abs());
                            }
                        }
                    }
                }
            }
            let claim = (2.0 + shape) * epsilon;
            assert!(worst <= claim * (1.0 + 1e-9), "{shape}: {worst} above {claim}");
            assert!(worst > 0.9 * claim, "{shape}: {worst} far below {claim}");
        }
    }

    #[test]
    fn the_renyi_bound_holds_for_exact_output_laws() {
        // Randomised response on a grid of outputs; ε²/8-zCDP would not do, ε·tanh(ε/2) does.
        let epsilon = 0.3_f64;
        let rho = epsilon * (epsilon / 2.0).tanh();
        for shape in [0.0, 1.0] {
            let law = RunCount::new(shape, 10.0).unwrap();
            for best in [0.01, 0.1, 0.4] {
                let other = best * epsilon.exp();
                let (q, q2) = ([1.0 - best, best], [1.0 - other, other]);
                let (a, b) = (best_of(&law, &q), best_of(&law, &q2));
                for order in [1.5, 3.0, 20.0] {
                    for (a, b) in [(&a, &b), (&b, &a)] {
                        let sum: f64 = a
                            .iter()
                            .zip(b.iter())
                            .map(|(a, b)| a.powf(order) * b.powf(1.0 - order))
                            .sum();
                        assert!(sum.ln() / (order - 1.0) <= law.rdp(order, rho));
                    }
                }
            }
        }
    }

    #[test]
    fn budgets_of_runs_invert_their_bounds() {
        let law = RunCount::new(1.0, 30.0).unwrap();
        assert!((law.run_epsilon(3.0).unwrap() - 1.0).abs() < 1e-14);
        for (epsilon, delta) in [(0.3, 1e-6), (2.0, 1e-8), (20.0, 1e-3)] {
            let rho = law.run_rho(epsilon, delta).unwrap();
            assert!(rho > 0.0 && law.delta(epsilon, rho).unwrap() <= delta);
            assert!(law.delta(epsilon, rho * (1.0 + 1e-9)).unwrap() > delta);
            // No order of the Rényi curve gives less than the closed form.
            let by_order = |k: i32| {
                let u = 1.01_f64.powi(k);
                let order = 1.0 + u;
                u * (law.rdp(order, rho) - epsilon) + order * (u / order).ln() - u.ln()
            };
            let best = (-800..1200).map(by_order).fold(f64::INFINITY, f64::min);
            assert!(best >= delta.ln() - 1e-9 && best < delta.ln() + 1e-3, "{best}");
        }
    }

    #[test]
    fn the_exponential_mechanism_costs_an_eighth_of_its_square() {
        let rho = 0.02;
        let epsilon = exponential_epsilon(&Budget::Zcdp { rho }).unwrap();
        assert!((epsilon * epsilon / 8.0 / rho - 1.0).abs() < 1e-12);
        // Two outputs of opposite scores: the exact divergence is below, and near at small ε.
        let p = 1.0 / (1.0 + (-epsilon / 2.0).exp());
        let divergence = |order: f64| {
            let sum = p.powf(order) * (1.0 - p).powf(1.0 - order) + (1.0 - p).powf(order) * p.powf(1.0 - order);
            sum.ln() / (order - 1.0)
        };
        for order in [1.01, 2.0, 10.0] {
            assert!(divergence(order) <= order * rho);
        }
        assert!(divergence(1.01) > 0.98 * 1.01 * rho);
        let approx = Budget::Approx {
            epsilon: 1.0,
            delta: 1e-6,
        };
        assert!(exponential_epsilon(&approx).unwrap() >= 1.0);
    }

    #[test]
    fn bad_arguments_are_refused() {
        for (shape, mean) in [
            (-0.1, 5.0),
            (11.0, 5.0),
            (f64::NAN, 5.0),
            (1.0, 1.0),
            (1.0, 2e6),
            (1.0, f64::NAN),
            (1.0, f64::INFINITY),
        ] {
            assert!(RunCount::new(shape, mean).is_err());
        }
        let law = RunCount::new(1.0, 5.0).unwrap();
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(law.run_epsilon(bad).is_err());
            assert!(law.run_rho(bad, 1e-6).is_err());
        }
        assert!(law.run_rho(1.0, 0.0).is_err());
    }

    #[test]
    fn nothing_is_claimed_where_the_constant_takes_all_of_epsilon() {
        let law = RunCount::new(1.0, 10.0).unwrap();
        for part in [0.5, 1.0] {
            let epsilon = part * law.offset(0.01);
            assert!((law.delta(epsilon, 0.01).unwrap() - 1.0).abs() < f64::MIN_POSITIVE);
        }
        assert!(law.delta(1.0, f64::NAN).is_err());
    }
}
