//! Small fits with public choices, and many simulated releases of them on the thread of the caller.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dpci_core::design::{Design, OnViolation, RowBounds, Rows};
use dpci_core::exec::Executor;
use dpci_core::loss::{HuberHinge, Loss};
use dpci_core::mechanism::{Values, release_fit};
use dpci_core::noise::ReleaseGenerator;
use dpci_core::privacy::{Budget, Calibration, Neighbors, Perturbation, Split};
use dpci_core::row_domain::RowDomain;
use dpci_core::spec::{Choices, Moments, Projection, Spec, Terms, Variant};
use dpci_core::study::{Repeated, simulate};

/// A fit of one record with label 1; its params stay where the Huber hinge is a line, so that all is known exactly.
pub(crate) fn choices(dim: usize, budget: Budget, perturbation: Perturbation) -> Choices {
    Choices {
        terms: Terms::of_rows(1, Neighbors::ReplaceOne),
        n_columns: dim,
        intercept: None,
        rows: RowDomain::Ball(1.0),
        loss: Arc::new(HuberHinge::new(0.5).unwrap()),
        l2_strength: 50.0,
        radius: None,
        budget,
        perturbation,
        variant: Variant::Standard,
        project: false,
        noise: None,
        split: None,
        moments: Moments::None,
        reserve: 0.0,
        projection: Projection::Auto,
        calibration: Calibration::Tight,
    }
}

/// Choices with separate moments that get nearly all of the budget, for another loss and λ.
pub(crate) fn with_moments(choices: &Choices, loss: Arc<dyn Loss>, l2_strength: f64) -> Choices {
    let shares = Split {
        coefficients: 0.02,
        hessian: 0.49,
        gradient_cov: 0.49,
    };
    Choices {
        loss,
        l2_strength,
        split: Some(shares),
        moments: Moments::Separate,
        ..choices.clone()
    }
}

/// Released rows of `n_runs` fits to the one record `x`; see [`simulate`].
pub(crate) fn releases(choices: &Choices, x: &[f64], n_runs: usize, seed: u64) -> Vec<Vec<f64>> {
    let spec = Spec::new(choices.clone()).unwrap();
    on_record(choices, x, |design, exec| {
        let rows = simulate(&spec, design, n_runs, seed, exec).unwrap();
        rows.chunks(spec.width()).map(<[f64]>::to_vec).collect()
    })
}

/// Parameters of one release with noise from the operating system.
pub(crate) fn private_release(choices: &Choices, x: &[f64]) -> Vec<f64> {
    let spec = Spec::new(choices.clone()).unwrap();
    on_record(choices, x, |design, exec| {
        let mut generator = ReleaseGenerator::new().unwrap();
        let fit = release_fit(&spec, design, exec, &mut generator).unwrap();
        fit.params.into_values()
    })
}

fn on_record<T>(choices: &Choices, x: &[f64], work: impl Fn(&Design<'_>, &Executor<'_>) -> T) -> T {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let bounds = RowBounds {
        rows: choices.rows.clone(),
        targets: choices.loss.targets(),
        on_violation: OnViolation::Error,
    };
    let design = Design::new(Rows::dense(x, x.len()), &[1.0], None, &bounds, &exec).unwrap();
    work(&design, &exec)
}
