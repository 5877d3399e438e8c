//! A private logistic regression from Rust: public choices, checked rows, one release, intervals of released values only.
//!
//! `cargo run --release --package dpci-core --example fit`

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dpci_core::{
    Budget, Calibration, Choices, Design, ErrorLaw, ErrorShape, Executor, Logistic, Loss, Moments, Neighbors,
    OnViolation, Perturbation, Projection, ReleaseGenerator, Result, RowBounds, RowDomain, Rows, Spec, Terms, Values,
    Variant, half_width, release_fit,
};

const N: usize = 20_000;
const COLUMNS: usize = 2;
const LEVEL: f64 = 0.95;

fn main() -> Result<()> {
    // Everything about the noise is decided by public choices, before a row is looked at.
    let spec = Spec::new(Choices {
        terms: Terms::of_rows(N, Neighbors::ReplaceOne),
        n_columns: COLUMNS,
        intercept: Some(1.0),
        rows: RowDomain::Ball(1.0),
        loss: Arc::new(Logistic),
        l2_strength: 0.01,
        radius: None,
        budget: Budget::pure(1.0)?,
        perturbation: Perturbation::Objective,
        variant: Variant::Standard,
        project: false,
        noise: None,
        split: None,
        moments: Moments::Joint,
        reserve: 0.0,
        projection: Projection::Floor,
        calibration: Calibration::Tight,
    })?;

    // Rows are checked once against these choices: here a longer one would be scaled into the ball.
    let (rows, targets) = simulated();
    let bounds = RowBounds {
        rows: spec.choices().rows.clone(),
        targets: Logistic.targets(),
        on_violation: OnViolation::Clip,
    };
    let cancel = AtomicBool::new(false);
    let exec = Executor::new(None, rows.len(), &cancel)?;
    let design = Design::new(Rows::dense(&rows, COLUMNS), &targets, Some(1.0), &bounds, &exec)?;

    // The one call that spends the budget. Its noise is keyed by the operating system; a new generator for each release.
    let fit = release_fit(&spec, &design, &exec, &mut ReleaseGenerator::new()?)?;

    // From here on released values only.
    let [hessian, gradient_cov] = fit.matrices.as_ref().expect("released with joint moments");
    let dim = spec.n_params();
    let law = ErrorLaw::plug_in(hessian, gradient_cov, dim, N as f64, Perturbation::Objective)?;
    let shape = ErrorShape::plug_in(spec.law().clone());
    for (j, estimate) in fit.params.values().iter().enumerate() {
        let contrast: Vec<f64> = (0..dim).map(|k| f64::from(u8::from(k == j))).collect();
        let (sampling, noise) = law.components(&contrast)?;
        let half = half_width(sampling, noise, &shape, LEVEL)?;
        println!("parameter {j}: {estimate:.3} ± {half:.3}");
    }
    Ok(())
}

/// Rows in the unit square, and labels that the first column makes likelier.
fn simulated() -> (Vec<f64>, Vec<f64>) {
    let mut state = 7_u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let rows: Vec<f64> = (0..N * COLUMNS).map(|_| uniform() - 0.5).collect();
    let targets = rows
        .chunks(COLUMNS)
        .map(|row| {
            if uniform() < 1.0 / (1.0 + (-4.0 * row[0]).exp()) {
                1.0
            } else {
                -1.0
            }
        })
        .collect();
    (rows, targets)
}
