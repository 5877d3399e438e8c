//! The functional mechanism and histograms: sensitivities, scales, and their answers with almost no noise.

use super::*;
use crate::spec::{Axis, FunctionalChoices, FunctionalSpec, Grid, HistogramSpec, Terms};

#[test]
fn the_functional_mechanism_has_the_sensitivities_of_its_polynomial() {
    let step = |choices| FunctionalSpec::new(choices).unwrap().step().clone();
    // q = 1, l = 2: q·d + l·√d.
    let sensitivity = 2.0 + 2.0 * 2.0_f64.sqrt();
    let pure_step = step(functional(pure(1.0)));
    assert_just_above(pure_step.sensitivity, sensitivity);
    assert_just_above(pure_step.scale, sensitivity / LEFT);
    assert_eq!(
        (pure_step.query.name(), pure_step.noise.name()),
        ("polynomial", "laplace")
    );
    // √2 for the two sums.
    let rho = step(functional(zcdp(0.5)));
    assert_just_above(rho.scale, 2.0_f64.sqrt() / LEFT.sqrt());
    assert_eq!(rho.noise.name(), "gaussian");
    let both = step(functional(approx(1.0, 1e-6)));
    assert_near(both.scale, 2.0_f64.sqrt() / 0.236_473_272_066_093_45, 1e-9);
    assert_near(both.cost.mu(), 0.236_473_272_066_093_45, 1e-9);
    // Replaced: 3/√2, or 2 for one parameter.
    let replaced = FunctionalChoices {
        terms: Terms::of_rows(4, Neighbors::ReplaceOne),
        ..functional(zcdp(0.5))
    };
    assert_just_above(step(replaced).sensitivity, 3.0 / 2.0_f64.sqrt());
    assert_just_above(
        step(FunctionalChoices {
            n_columns: 1,
            ..replaced
        })
        .sensitivity,
        2.0,
    );
    // 2(d+1)² and half of it, as printed.
    let paper = FunctionalChoices {
        calibration: Calibration::Paper,
        ..functional(pure(1.0))
    };
    assert_just_above(step(paper).sensitivity, 9.0);
    assert!(
        FunctionalSpec::new(FunctionalChoices {
            calibration: Calibration::Paper,
            ..functional(zcdp(1.0))
        })
        .is_err()
    );
}

#[test]
fn the_functional_mechanism_refuses_bad_choices() {
    let base = functional(pure(1.0));
    let said = |choices| FunctionalSpec::new(choices).unwrap_err().to_string();
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(said(FunctionalChoices { row_norm: bad, ..base }).starts_with("row_norm must be finite and > 0"));
        let intercept = FunctionalChoices {
            intercept: Some(bad),
            ..base
        };
        assert!(said(intercept).starts_with("intercept must be finite and > 0"));
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(
            said(FunctionalChoices {
                l2_strength: bad,
                ..base
            })
            .starts_with("l2_strength must be finite and >= 0")
        );
    }
    assert!(
        FunctionalSpec::new(FunctionalChoices {
            l2_strength: 0.0,
            ..base
        })
        .is_ok()
    );
    assert!(
        FunctionalSpec::new(FunctionalChoices {
            terms: Terms {
                n_samples: 0,
                ..base.terms
            },
            ..base
        })
        .is_err()
    );
    assert!(FunctionalSpec::new(FunctionalChoices { n_columns: 0, ..base }).is_err());
    let constant = FunctionalChoices {
        n_columns: 0,
        intercept: Some(1.0),
        ..base
    };
    assert!(FunctionalSpec::new(constant).is_ok());
    let wide = |n_columns| FunctionalChoices { n_columns, ..base };
    assert!(said(wide(4097)).contains("at most 4096"));
    let tall = FunctionalChoices {
        n_columns: 4096,
        intercept: Some(1.0),
        ..base
    };
    assert!(said(tall).contains("at most 4096"));
    // R² times the scale is subnormal, or beyond the greatest number.
    for row_norm in [1e-160, 1e160] {
        assert!(said(FunctionalChoices { row_norm, ..base }).starts_with("row_norm"));
    }
    assert!(FunctionalSpec::new(functional(pure(1e-308))).is_err());
}

#[test]
fn the_seals_of_a_polynomial() {
    for budget in [pure(1.0), zcdp(0.5), pure(1e9)] {
        let two = FunctionalSpec::new(FunctionalChoices {
            row_norm: 3.0,
            ..functional(budget)
        })
        .unwrap();
        let one = FunctionalSpec::new(functional(budget)).unwrap();
        let distances = |spec: &FunctionalSpec| [0, 1].map(|i| spec.seals()[i].distance());
        let ([quadratic, linear], [q, l]) = (distances(&two), distances(&one));
        // In units of R² and RB.
        assert_near(quadratic, 9.0 * q, 1e-12);
        assert_near(linear, 3.0 * l, 1e-12);
        assert_near(l, 2.0 * q, 1e-12);
        // Four records, of which there may be 64, each rounded at least once, and the noise.
        assert!(q >= 64.0 * f64::EPSILON + one.step().scale * f64::EPSILON);
        assert!(q < 1e-9 * (1.0 + one.step().scale));
        for seal in one.seals() {
            let (_, share) = budget.split_off_seal();
            let whole = crate::privacy::Cost::of(share).value();
            assert!(2.0 * seal.cost().value() <= whole && 2.0 * seal.cost().value() > whole * (1.0 - 1e-14));
        }
    }
}

/// Two levels of one column and two of the target.
fn grid() -> Grid {
    let axis = Axis {
        columns: vec![0],
        levels: vec![-1.0, 1.0],
    };
    Grid::new(vec![axis], 1, vec![-1.0, 1.0]).unwrap()
}

#[test]
fn histograms_have_the_sensitivity_of_their_relation() {
    let step = |budget, neighbors| HistogramSpec::new(grid(), budget, neighbors).unwrap().step().clone();
    for (neighbors, l1) in [(Neighbors::ReplaceOne, 2.0), (Neighbors::AddRemove, 1.0_f64)] {
        let found = step(pure(0.5), neighbors);
        assert_near(found.sensitivity, l1, 1e-14);
        assert_just_above(found.scale, l1 / (0.5 * LEFT));
        assert_eq!((found.query.name(), found.noise.name()), ("histogram", "laplace"));
        let found = step(zcdp(0.5), neighbors);
        assert_near(found.sensitivity, l1.sqrt(), 1e-14);
        assert_just_above(found.scale, l1.sqrt() / LEFT.sqrt());
        let found = step(approx(1.0, 1e-6), neighbors);
        assert_near(found.scale, l1.sqrt() / 0.236_473_272_066_093_45, 1e-9);
    }
    let spec = HistogramSpec::new(grid(), pure(0.5), Neighbors::AddRemove).unwrap();
    assert_near(spec.seal().cost().value(), 0.5e-3, 1e-12);
    assert!(spec.seal().lattice() <= 1.0 && spec.grid().n_cells() == 4);
    // Noise of 10¹⁷ leaves a count no digits.
    for budget in [pure(1e-17), zcdp(1e-34)] {
        assert!(
            HistogramSpec::new(grid(), budget, Neighbors::AddRemove).is_err(),
            "{budget:?}"
        );
    }
}

#[test]
fn the_functional_mechanism_takes_up_to_4096_parameters() {
    let wide = |n_columns| {
        FunctionalSpec::new(FunctionalChoices {
            n_columns,
            ..functional(pure(1.0))
        })
    };
    assert!(wide(4096).is_ok());
    assert!(wide(4097).is_err());
}
