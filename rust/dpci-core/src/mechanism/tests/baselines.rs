//! The functional mechanism and histograms: sensitivities, scales, and their answers with almost no noise.

use super::*;
use crate::loss::Squared;
use crate::mechanism::{
    CellRegression, Sealed, Values, fit_histogram, release_functional_mechanism, release_histogram,
};
use crate::noise::SimulationGenerator;
use crate::privacy::{Cost, Polynomial};
use crate::spec::{Axis, FunctionalChoices, FunctionalSpec, Grid, HistogramSpec, Part, Seal};

const ROWS: [f64; 8] = [0.6, 0.0, 0.0, 0.8, -0.5, 0.5, 0.3, 0.9];
const TARGETS: [f64; 4] = [1.0, -2.0, 0.5, 1.5];

/// Minimiser of `(1/2)‖θ‖²·(nλ + 2·ridge) + Σ(u - y)²`.
fn ridge_regression(ridge: f64) -> [f64; 2] {
    let (mut a, mut c) = ([ridge + 0.5 * 4.0 * 0.1, 0.0, 0.0, ridge + 0.5 * 4.0 * 0.1], [0.0; 2]);
    for (x, y) in ROWS.chunks_exact(2).zip(TARGETS) {
        for entry in 0..4 {
            a[entry] += x[entry / 2] * x[entry % 2];
        }
        c[0] += x[0] * y;
        c[1] += x[1] * y;
    }
    let det = a[0] * a[3] - a[1] * a[2];
    [(c[0] * a[3] - c[1] * a[1]) / det, (a[0] * c[1] - a[2] * c[0]) / det]
}

#[test]
fn with_almost_no_noise_the_functional_mechanism_is_ridge_regression() {
    let bounds = row_bounds(1.5, Polynomial::squared(2.0).unwrap().targets());
    with_design(&ROWS, 2, &TARGETS, None, &bounds, |design, exec| {
        let released = |choices: FunctionalChoices| {
            let spec = FunctionalSpec::new(FunctionalChoices {
                row_norm: 1.5,
                ..choices
            })
            .unwrap();
            let mut generator = SimulationGenerator::new(91, 0);
            let params = release_functional_mechanism(&spec, design, exec, &mut generator);
            (params.unwrap().into_values(), spec.step().scale)
        };
        let paper = FunctionalChoices {
            calibration: Calibration::Paper,
            ..functional(pure(1e9))
        };
        for choices in [functional(pure(1e9)), functional(zcdp(1e18)), paper] {
            let (params, _) = released(choices);
            for (got, expected) in params.iter().zip(ridge_regression(0.0)) {
                assert!((got - expected).abs() < 1e-5, "{params:?}");
            }
        }
        // Four standard deviations of a diagonal entry, √2·scale or scale, in units of R²: large against the noise itself.
        for (choices, factor) in [(functional(pure(1e4)), 2.0_f64.sqrt()), (functional(zcdp(1e7)), 1.0)] {
            let (params, scale) = released(choices);
            let ridge = 4.0 * factor * scale * 2.25;
            let [plain, raised] = [ridge_regression(0.0), ridge_regression(ridge)];
            let gap = |to: [f64; 2]| (params[0] - to[0]).hypot(params[1] - to[1]);
            assert!(gap(raised) < gap(plain), "{params:?} {raised:?} {plain:?}");
        }
    });
    let other = row_bounds(2.0, Targets::Signs);
    with_design(&ROWS, 2, &[1.0; 4], None, &other, |design, exec| {
        let spec = FunctionalSpec::new(functional(pure(1.0))).unwrap();
        let mut generator = SimulationGenerator::new(91, 1);
        assert!(release_functional_mechanism(&spec, design, exec, &mut generator).is_err());
    });
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
fn counts_and_the_regression_on_them() {
    let rows = [0.9, 1.1, -0.8, 1.2, -1.4, 0.7];
    let targets = [1.0, 1.0, -1.0, -1.0, -1.0, 1.0];
    let bounds = row_bounds(2.0, Squared::new(1.0).unwrap().targets());
    with_design(&rows, 1, &targets, None, &bounds, |design, exec| {
        for budget in [pure(1e4), zcdp(1e7)] {
            let spec = HistogramSpec::new(grid(), budget, Neighbors::AddRemove).unwrap();
            let mut generator = SimulationGenerator::new(92, 0);
            let counts = release_histogram(&spec, design, exec, &mut generator).unwrap();
            // Cells by target, then by level.
            for (got, expected) in counts.values().iter().zip([2.0, 1.0, 0.0, 3.0]) {
                assert!((got - expected).abs() < 0.02, "{counts:?}");
            }
            let loss = Squared::new(1.0).unwrap();
            let fit = |l2_strength, intercept, counts: &Sealed| {
                let regression = CellRegression {
                    loss: &loss,
                    l2_strength,
                    intercept,
                    has_shares: false,
                };
                fit_histogram(spec.grid(), counts, &regression, exec)
            };
            // Σx² = 6 and Σxy = 4: (2·6/6 + λ)θ = 2·4/6.
            let theta = fit(0.5, None, &counts).unwrap();
            assert_near(theta[0], (8.0 / 6.0) / 2.5, 1e-9);
            // With a constant s = 2: [2+λ, 4/3·… ] by Cramer's rule on Σxs = 4, Σs² = 24, Σys = 0.
            let theta = fit(0.5, Some(2.0), &counts).unwrap();
            let (a, b, d, c) = (2.0 + 0.5, 2.0 * 4.0 / 6.0, 8.0 + 0.5, 8.0 / 6.0);
            let det = a * d - b * b;
            assert_near(theta[0], c * d / det, 1e-9);
            assert_near(theta[1], -b * c / det, 1e-9);
            for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                assert!(fit(bad, None, &counts).is_err());
            }
            // A gradient cannot be asked to be below its own rounding.
            let theta = fit(1e-25, None, &counts).unwrap();
            assert_near(theta[0], (8.0 / 6.0) / 2.0, 1e-9);
            let seal = Seal::new(Part::Values, 4, 1e-9, Cost::Rho(1e-3)).unwrap();
            let empty = seal.release(&[0.4, -3.0, 0.0, 0.1], &mut generator).unwrap();
            assert_eq!(fit(0.5, Some(2.0), &empty).unwrap(), [0.0, 0.0]);
        }
    });
}
