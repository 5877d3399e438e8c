//! The noise of a moment matrix, its shares and its refusals.

use super::*;
use crate::row_domain::Blocks;

pub(super) fn choices(budget: Budget, neighbors: Neighbors) -> MomentMatrixChoices {
    MomentMatrixChoices {
        n_samples: 40,
        n_columns: 3,
        rows: RowDomain::Ball(2.0),
        target_bound: 5.0,
        robust_share: Some(0.1),
        budget: MatrixBudget::Of(budget),
        neighbors,
    }
}

#[test]
fn a_third_of_the_squared_norm_is_the_target() {
    let spec =
        MomentMatrixSpec::new(choices(Budget::zcdp(0.5).unwrap(), Neighbors::ReplaceOne)).unwrap();
    let target = (spec.target_weight() * 5.0).powi(2);
    let row = spec.row_norm().powi(2);
    assert!((target / (target + row) - 1.0 / 3.0).abs() < 1e-12);
    assert!((row - 4.0 - 0.25 * 4.0 / 3.0).abs() < 1e-12);
    let expected = 2.0_f64.sqrt() * (target + row) / 40.0;
    assert!((spec.step().sensitivity / expected - 1.0).abs() < 1e-12);
}

#[test]
fn blocks_share_the_norm_evenly() {
    let blocks = Blocks::new(vec![1.0; 2], vec![0, 1, 1]).unwrap();
    let spec = MomentMatrixSpec::new(MomentMatrixChoices {
        rows: RowDomain::Blocks(Arc::new(blocks)),
        ..choices(Budget::zcdp(0.5).unwrap(), Neighbors::ReplaceOne)
    })
    .unwrap();
    // Of two blocks of length 1 and three columns.
    assert!((spec.intercept() - 0.5).abs() < 1e-12);
    assert!((spec.row_norm().powi(2) - 2.25).abs() < 1e-12);
}

#[test]
fn costs_add_up_to_the_budget() {
    for budget in [
        Budget::pure(1.0).unwrap(),
        Budget::zcdp(0.5).unwrap(),
        Budget::approx(1.0, 1e-6).unwrap(),
    ] {
        let spec = MomentMatrixSpec::new(choices(budget, Neighbors::AddRemove)).unwrap();
        let residual = spec.residual_noise(3.0).unwrap().unwrap();
        let (rest, seal) = budget.split_off_seal();
        let spent = spec.step().cost.value() + residual.step.cost.value();
        let whole = cost_of(rest).unwrap().value();
        assert!(
            spent <= whole && spent > whole * (1.0 - 1e-12),
            "{budget:?}"
        );
        let sealed = spec.seal().cost().value() + residual.seal.cost().value();
        assert!(sealed <= Cost::of(seal).value());
    }
}

#[test]
fn gaussian_budgets_are_mu() {
    for (robust_share, parts) in [(None, 1.0), (Some(0.1), 2.0)] {
        let mu = 0.7;
        let spec = MomentMatrixSpec::new(MomentMatrixChoices {
            budget: MatrixBudget::Gaussian { mu },
            robust_share,
            ..choices(Budget::pure(1.0).unwrap(), Neighbors::ReplaceOne)
        })
        .unwrap();
        let residual = spec.residual_noise(3.0).unwrap();
        let matrices = spec.step().cost.value() + residual.map_or(0.0, |r| r.step.cost.value());
        // The ratio at which ε-DP is μ-GDP, by the normal distribution function near 1/2.
        let half = (spec.seal().cost().value() / 2.0).tanh() / 2.0;
        let seal_mu = 2.0 * half * (2.0 * std::f64::consts::PI).sqrt() * (1.0 + 5.0 * half.powi(2));
        let whole = matrices + parts * seal_mu.powi(2);
        assert!(whole <= mu * mu && whole > 0.9999 * mu * mu, "{whole}");
        let ratio = spec.step().sensitivity / spec.step().scale;
        assert!((ratio.powi(2) / spec.step().cost.value() - 1.0).abs() < 1e-12);
    }
    for mu in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-40] {
        let bad = MomentMatrixChoices {
            budget: MatrixBudget::Gaussian { mu },
            ..choices(Budget::pure(1.0).unwrap(), Neighbors::ReplaceOne)
        };
        assert!(MomentMatrixSpec::new(bad).is_err(), "{mu}");
    }
}

#[test]
fn bad_choices_are_refused() {
    let good = choices(Budget::pure(1.0).unwrap(), Neighbors::ReplaceOne);
    for bad in [
        MomentMatrixChoices {
            rows: RowDomain::Ball(0.0),
            ..good.clone()
        },
        MomentMatrixChoices {
            rows: RowDomain::Ball(1e-200),
            ..good.clone()
        },
        MomentMatrixChoices {
            rows: RowDomain::Ball(f64::NAN),
            ..good.clone()
        },
        MomentMatrixChoices {
            target_bound: 0.0,
            ..good.clone()
        },
        MomentMatrixChoices {
            n_samples: 0,
            ..good.clone()
        },
        MomentMatrixChoices {
            n_columns: 0,
            ..good.clone()
        },
        MomentMatrixChoices {
            n_columns: 5000,
            ..good.clone()
        },
        MomentMatrixChoices {
            robust_share: Some(1.0),
            ..good.clone()
        },
        MomentMatrixChoices {
            budget: MatrixBudget::Of(Budget::Pure { epsilon: 1e-300 }),
            ..good.clone()
        },
    ] {
        assert!(MomentMatrixSpec::new(bad.clone()).is_err(), "{bad:?}");
    }
}
