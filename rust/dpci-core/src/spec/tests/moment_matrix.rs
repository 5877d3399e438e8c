//! The weights of a moment matrix, its costs, and what is refused.

use std::sync::Arc;

use crate::privacy::Budget;
use crate::privacy::Cost;
use crate::privacy::Neighbors;
use crate::row_domain::Blocks;
use crate::row_domain::RowDomain;
use crate::spec::moment_matrix::cost_of;
use crate::spec::{MatrixBudget, MomentMatrixChoices, MomentMatrixSpec, ResidualPlan, Terms};

fn choices(budget: Budget, neighbors: Neighbors) -> MomentMatrixChoices {
    MomentMatrixChoices {
        terms: Terms::of_rows(40, neighbors),
        n_columns: 3,
        further_targets: 0,
        rows: RowDomain::Ball(2.0),
        target_bound: 5.0,
        residuals: vec![ResidualPlan::all(3)],
        residual_share: 0.1,
        refined: Vec::new(),
        refined_share: 0.6,
        budget: MatrixBudget::Of(budget),
    }
}

#[test]
fn a_third_of_the_squared_norm_is_the_target() {
    let spec = MomentMatrixSpec::new(choices(Budget::zcdp(0.5).unwrap(), Neighbors::ReplaceOne)).unwrap();
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
fn several_targets_have_equal_and_the_best_parts_of_the_norm() {
    let spec = |further_targets: usize| {
        let columns = 3 + further_targets;
        let mut bounds = vec![1.0; 2];
        bounds.extend((0..further_targets).map(|i| 2.0 + i as f64));
        let members = (0..columns).map(|j| j.saturating_sub(1)).collect();
        let blocks = Blocks::new(bounds, members).unwrap();
        MomentMatrixSpec::new(MomentMatrixChoices {
            n_columns: columns,
            further_targets,
            rows: RowDomain::Blocks(Arc::new(blocks)),
            residuals: Vec::new(),
            ..choices(Budget::zcdp(0.5).unwrap(), Neighbors::ReplaceOne)
        })
        .unwrap()
    };
    for further in [0, 1, 4] {
        let spec = spec(further);
        let m = 1.0 + further as f64;
        assert!((spec.intercept() - 0.5).abs() < 1e-12);
        let size = spec.target_weight() * 5.0;
        for (i, weight) in spec.weights()[3..3 + further].iter().enumerate() {
            assert!((weight * (2.0 + i as f64) / size - 1.0).abs() < 1e-12);
        }
        let expected = 2.0_f64.sqrt() * (2.25 + m * size.powi(2)) / 40.0;
        assert!((spec.step().sensitivity / expected - 1.0).abs() < 1e-12);
        // The variance of a slope of the appendix, at this ratio and near it.
        let variance = |r: f64| (1.0 + m * r).powi(2) * (1.0 + r) / r;
        let ratio = size.powi(2) / 2.25;
        assert!(variance(ratio) < variance(1.01 * ratio).min(variance(0.99 * ratio)));
    }
}

#[test]
fn several_targets_need_blocks_of_their_own() {
    let good = choices(Budget::zcdp(0.5).unwrap(), Neighbors::ReplaceOne);
    let blocks = |members| {
        let blocks = Blocks::new(vec![1.0; 2], members).unwrap();
        RowDomain::Blocks(Arc::new(blocks))
    };
    for (rows, further_targets) in [
        (RowDomain::Ball(1.0), 1),
        (blocks(vec![0, 1, 1]), 1),
        (blocks(vec![0, 1, 0]), 1),
        (blocks(vec![0, 0, 1]), 3),
    ] {
        let bad = MomentMatrixChoices {
            rows,
            further_targets,
            residuals: Vec::new(),
            ..good.clone()
        };
        assert!(MomentMatrixSpec::new(bad.clone()).is_err(), "{bad:?}");
    }
}

#[test]
fn costs_add_up_to_the_budget() {
    for budget in [
        Budget::pure(1.0).unwrap(),
        Budget::zcdp(0.5).unwrap(),
        Budget::approx(1.0, 1e-6).unwrap(),
    ] {
        let spec = MomentMatrixSpec::new(choices(budget, Neighbors::AddRemove)).unwrap();
        let residual = spec.residual_noise(&ResidualPlan::all(3), 3.0).unwrap();
        let (rest, seal) = budget.split_off_seal();
        let spent = spec.step().cost.value() + residual.step.cost.value();
        let whole = cost_of(rest).unwrap().value();
        assert!(spent <= whole && spent > whole * (1.0 - 1e-12), "{budget:?}");
        let sealed = spec.seal().cost().value() + residual.seal.cost().value();
        assert!(sealed <= Cost::of(seal).value());
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
            terms: Terms {
                n_samples: 0,
                ..good.terms
            },
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
            residual_share: 1.0,
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

#[test]
fn a_gradient_costs_its_share_and_moves_as_far_as_two_capped_records() {
    for (budget, kind) in [
        (Budget::pure(1.0).unwrap(), "pure"),
        (Budget::zcdp(0.5).unwrap(), "zcdp"),
    ] {
        let spec = MomentMatrixSpec::new(MomentMatrixChoices {
            refined: vec![ResidualPlan::all(3); 2],
            ..choices(budget, Neighbors::ReplaceOne)
        })
        .unwrap();
        let plan = ResidualPlan::all(3);
        let noise = spec.gradient_noise(&plan, 1.5).unwrap();
        let whole = cost_of(budget.split_off_seal().0).unwrap().value();
        // Of .6 each has half, of which the levels have .45 under pure DP and .6 otherwise.
        let part = if kind == "pure" { 0.45 } else { 0.6 };
        assert!((noise.step.cost.value() / whole / (0.3 * (1.0 - part)) - 1.0).abs() < 1e-9);
        let levels = spec.level_noise().unwrap();
        assert!((levels.step.cost.value() / whole / (0.3 * part) - 1.0).abs() < 1e-9);
        let changed = if kind == "pure" { 2.0 } else { 2.0_f64.sqrt() };
        assert!((levels.step.sensitivity / (changed / 40.0) - 1.0).abs() < 1e-12);
        assert_eq!(levels.seal.dim(), crate::loss::LEVELS);
        assert!((spec.step().cost.value() / whole / 0.3 - 1.0).abs() < 1e-9);
        // 2·cap·√(‖x‖² + ω²)/n, ω a quarter of the norm of the row with its constant.
        let norm = spec.row_norm() * 17.0_f64.sqrt() / 4.0;
        assert!((noise.step.sensitivity / (2.0 * 1.5 * norm / 40.0) - 1.0).abs() < 1e-12);
        assert!((spec.square_weight(&plan) / spec.row_norm() - 0.25).abs() < 1e-12);
        assert_eq!(noise.seal.dim(), 5);
        for step in [&noise.step, &levels.step] {
            let scale = match kind {
                "pure" => step.sensitivity / step.cost.value(),
                _ => step.sensitivity / (2.0 * step.cost.value()).sqrt(),
            };
            assert!((step.scale / scale - 1.0).abs() < 1e-9, "{kind}");
        }
        let alone = MomentMatrixSpec::new(MomentMatrixChoices {
            refined: vec![ResidualPlan::all(3); 2],
            ..choices(budget, Neighbors::AddRemove)
        });
        let alone = alone.unwrap();
        assert!((alone.level_noise().unwrap().step.sensitivity * 40.0 - 1.0).abs() < 1e-12);
        let alone = alone.gradient_noise(&plan, 1.5).unwrap();
        assert!((alone.step.sensitivity / noise.step.sensitivity - 0.5).abs() < 1e-12);
    }
}

#[test]
fn shares_leave_something_for_the_matrix() {
    let budget = Budget::pure(1.0).unwrap();
    for (share, refined_share) in [(0.1, 0.9), (0.5, 0.6), (0.1, 0.0), (0.1, f64::NAN)] {
        assert!(
            MomentMatrixSpec::new(MomentMatrixChoices {
                residual_share: share,
                refined_share,
                refined: vec![ResidualPlan::all(3)],
                ..choices(budget, Neighbors::ReplaceOne)
            })
            .is_err()
        );
    }
}
