//! A private fit from start to end: whatever the choices and the rows are, finite numbers of the right shape or an error.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arbitrary::Arbitrary;
use dpci_core::design::{Design, OnViolation, RowBounds, Rows};
use dpci_core::exec::Executor;
use dpci_core::interval::{ErrorLaw, ErrorShape, half_widths};
use dpci_core::loss::{Hinge, HuberHinge, Logistic, Loss, SmoothHinge, SoftLogistic, Squared};
use dpci_core::mechanism::{Values, release_fit};
use dpci_core::noise::{Family, SimulationGenerator};
use dpci_core::privacy::{Budget, Calibration, Neighbors, Perturbation, Split};
use dpci_core::row_domain::RowDomain;
use dpci_core::spec::{Choices, Moments, NoiseKind, Projection, Spec, Terms, Variant};

use crate::number::{Number, plain};

/// Every choice of a fit, and rows.
#[derive(Debug, Arbitrary)]
pub struct Input {
    n_public: Option<u32>,
    n_columns: u8,
    intercept: Option<Number>,
    row_norm: Number,
    loss: (u8, Number),
    l2_strength: Number,
    radius: Option<Number>,
    budget: (u8, Number, Number),
    output: bool,
    cms11: bool,
    project: bool,
    noise: Option<bool>,
    split: Option<(Number, Number, Number)>,
    moments: u8,
    projection: u8,
    paper: bool,
    add_remove: bool,
    clip: bool,
    seed: u64,
    values: Vec<Number>,
    targets: Vec<Number>,
}

fn loss(kind: u8, parameter: f64) -> Option<Arc<dyn Loss>> {
    Some(match kind % 6 {
        0 => Arc::new(Logistic),
        1 => Arc::new(HuberHinge::new(parameter).ok()?),
        2 => Arc::new(SmoothHinge::new(parameter).ok()?),
        3 => Arc::new(SoftLogistic),
        4 => Arc::new(Squared::new(parameter).ok()?),
        _ => Arc::new(Hinge),
    })
}

fn budget((kind, first, second): (u8, Number, Number)) -> Option<Budget> {
    match kind % 3 {
        0 => Budget::pure(first.0),
        1 => Budget::zcdp(first.0),
        _ => Budget::approx(first.0, second.0),
    }
    .ok()
}

/// Plans, fits, forms intervals.
///
/// # Panics
/// If a released value is not finite or has another shape.
pub fn run(input: Input) {
    let columns = usize::from(input.n_columns % 6);
    let (values, targets) = (plain(&input.values), plain(&input.targets));
    let (Some(loss), Some(budget)) = (loss(input.loss.0, input.loss.1.0), budget(input.budget))
    else {
        return;
    };
    let split = input.split.map(|(a, b, c)| Split::new(a.0, b.0, c.0));
    if matches!(split, Some(Err(_))) {
        return;
    }
    let choices = Choices {
        terms: Terms::of_rows(
            input.n_public.map_or(targets.len(), |n| n as usize),
            if input.add_remove {
                Neighbors::AddRemove
            } else {
                Neighbors::ReplaceOne
            },
        ),
        n_columns: columns,
        intercept: input.intercept.map(|scale| scale.0),
        rows: RowDomain::Ball(input.row_norm.0),
        loss: Arc::clone(&loss),
        l2_strength: input.l2_strength.0,
        radius: input.radius.map(|radius| radius.0),
        budget,
        perturbation: if input.output {
            Perturbation::Output
        } else {
            Perturbation::Objective
        },
        variant: if input.cms11 {
            Variant::Cms11
        } else {
            Variant::Standard
        },
        project: input.project,
        noise: input.noise.map(|normal| {
            if normal {
                NoiseKind::Gaussian
            } else {
                NoiseKind::SphericalLaplace
            }
        }),
        split: split.and_then(Result::ok),
        moments: [Moments::Joint, Moments::Separate, Moments::None][usize::from(input.moments % 3)],
        reserve: 0.0,
        projection: [Projection::Auto, Projection::Floor, Projection::Cautious]
            [usize::from(input.projection % 3)],
        calibration: if input.paper {
            Calibration::Paper
        } else {
            Calibration::Tight
        },
    };
    let Ok(spec) = Spec::new(choices) else {
        return;
    };
    if let Ok(plan) = spec.plan() {
        // A Hessian that is zero for all data needs no noise.
        let sound =
            |scale: f64, noise: Family| scale.is_finite() && (scale > 0.0 || noise == Family::None);
        assert!(plan.steps.iter().all(|step| sound(step.scale, step.noise)));
    }
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let bounds = RowBounds {
        rows: RowDomain::Ball(input.row_norm.0),
        targets: loss.targets(),
        on_violation: if input.clip {
            OnViolation::Clip
        } else {
            OnViolation::Error
        },
    };
    let intercept = spec.choices().intercept;
    let Ok(design) = Design::new(
        Rows::dense(&values, columns),
        &targets,
        intercept,
        &bounds,
        &exec,
    ) else {
        return;
    };
    let mut generator = SimulationGenerator::new(input.seed, 0);
    let Ok(fit) = release_fit(&spec, &design, &exec, &mut generator) else {
        return;
    };
    let dim = spec.n_params();
    let params = fit.params.values();
    assert_eq!(params.len(), dim);
    assert!(params.iter().all(|p| p.is_finite()));
    let Some([hessian, gradient_cov]) = &fit.matrices else {
        return;
    };
    for matrix in [hessian, gradient_cov] {
        assert_eq!(matrix.len(), dim * dim);
        assert!(matrix.iter().all(|entry| entry.is_finite()));
    }
    let n = spec.choices().terms.n_samples as f64;
    let perturbation = spec.choices().perturbation;
    let Ok(law) = ErrorLaw::plug_in(hessian, gradient_cov, dim, n, perturbation) else {
        return;
    };
    let shape = ErrorShape::plug_in(spec.law().clone());
    let mut contrast = vec![0.0; dim];
    contrast[0] = 1.0;
    if let Ok((variance, multiplier)) = law.components(&contrast)
        && let Ok(widths) = half_widths(&[variance], &[multiplier], &shape, 0.95)
    {
        assert!(widths[0] >= 0.0, "half width {}", widths[0]);
    }
}
