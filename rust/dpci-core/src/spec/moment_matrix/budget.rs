//! Budgets of a moment matrix: those of all releases, and Gaussian differential privacy, which its noise has exactly.

use crate::Result;
use crate::error::check;
use crate::privacy::{Budget, Cost, SEAL_SHARE, gaussian_mu, unsealed};
use crate::spec::fit::share_seal;

/// The least part of μ that the ε of a pure mechanism may be for it to be μ-GDP, rounded down: by convexity of the normal hazard
/// `log(Φ(μ/2)/Φ(-μ/2)) ≥ μ·2φ(0)`, at which the trade-off functions of ε-DP and of μ-GDP meet.
const EPSILON_OF_MU: f64 = 0.797;

/// Budget of a moment matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MatrixBudget {
    /// A budget of any release.
    Of(Budget),
    /// μ-Gaussian differential privacy (Dong, Roth & Su 2022), for which the noise is Gaussian.
    Gaussian {
        /// μ.
        mu: f64,
    },
}

impl MatrixBudget {
    /// Costs of the matrices, and of their seals: each of so many seals costs an equal part of the latter.
    ///
    /// μ² adds up (Dong et al., corollary 3.3). A seal is a pure mechanism, and so μ-GDP too.
    pub(super) fn split_off_seals(self, seals: u32) -> Result<(Cost, Cost)> {
        match self {
            Self::Of(budget) => {
                let (rest, seal) = budget.split_off_seal();
                Ok((cost_of(rest)?, share_seal(seal, seals)))
            }
            Self::Gaussian { mu } => {
                check(GDP_BUDGETS.contains(&mu), "mu", "at least 1e-30 and at most 1e8", mu)?;
                let each = SEAL_SHARE * mu.powi(2) / f64::from(seals);
                let seal = Cost::Epsilon(EPSILON_OF_MU * each.sqrt());
                Ok((Cost::MuSquared(unsealed(mu.powi(2)) * (1.0 - 4.0 * f64::EPSILON)), seal))
            }
        }
    }
}

/// The caller's μ.
const GDP_BUDGETS: std::ops::RangeInclusive<f64> = 1e-30..=1e8;

/// The whole budget as a cost.
pub(in crate::spec) fn cost_of(budget: Budget) -> Result<Cost> {
    Ok(match budget {
        Budget::Pure { epsilon } => Cost::Epsilon(epsilon),
        Budget::Zcdp { rho } => Cost::Rho(rho),
        Budget::Approx { epsilon, delta } => Cost::MuSquared(gaussian_mu(epsilon, delta)?.powi(2)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Neighbors;
    use crate::row_domain::RowDomain;
    use crate::spec::{MomentMatrixChoices, MomentMatrixSpec, ResidualPlan, Terms};

    fn choices(mu: f64, n_plans: usize) -> MomentMatrixChoices {
        MomentMatrixChoices {
            terms: Terms::of_rows(40, Neighbors::ReplaceOne),
            n_columns: 3,
            further_targets: 0,
            rows: RowDomain::Ball(2.0),
            target_bound: 5.0,
            residuals: vec![ResidualPlan::all(3); n_plans],
            residual_share: 0.1,
            refined: Vec::new(),
            refined_share: 0.6,
            budget: MatrixBudget::Gaussian { mu },
        }
    }

    #[test]
    fn gaussian_budgets_are_mu() {
        for n_plans in 0..4 {
            let mu = 0.7;
            let spec = MomentMatrixSpec::new(choices(mu, n_plans)).unwrap();
            let residual = spec.residual_noise(&ResidualPlan::all(3), 3.0).unwrap();
            let plans = n_plans as f64;
            let matrices = spec.step().cost.value() + plans * residual.step.cost.value();
            // The ratio at which ε-DP is μ-GDP, by the normal distribution function near 1/2.
            let half = (spec.seal().cost().value() / 2.0).tanh() / 2.0;
            let seal_mu = 2.0 * half * (2.0 * std::f64::consts::PI).sqrt() * (1.0 + 5.0 * half.powi(2));
            let whole = matrices + (1.0 + plans) * seal_mu.powi(2);
            assert!(whole <= mu * mu && whole > 0.9999 * mu * mu, "{whole}");
            let ratio = spec.step().sensitivity / spec.step().scale;
            assert!((ratio.powi(2) / spec.step().cost.value() - 1.0).abs() < 1e-12);
        }
        for mu in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-40] {
            assert!(MomentMatrixSpec::new(choices(mu, 0)).is_err(), "{mu}");
        }
    }
}
