//! Intervals from any released values: an error, or widths and probabilities that are such.

use std::sync::atomic::AtomicBool;

use arbitrary::Arbitrary;
use dpci_core::interval::{Sandwich, half_widths, monte_carlo, tails};
use dpci_core::noise::{NoiseLaw, SimulationGenerator};
use dpci_core::privacy::Perturbation;

use crate::number::{Number, plain};

/// Released values, a law and a level.
#[derive(Debug, Arbitrary)]
pub struct Input {
    dim: u8,
    hessian: Vec<Number>,
    gradient_cov: Vec<Number>,
    contrast: Vec<Number>,
    n: Number,
    output: bool,
    law: (bool, u8, Number),
    variances: Vec<Number>,
    multipliers: Vec<Number>,
    statistics: Vec<Number>,
    level: Number,
    n_draws: u8,
}

/// Forms the sandwich, exact and simulated intervals, and tails.
///
/// # Panics
/// For a width that is negative or NaN, or a probability outside [0, 1].
pub fn run(input: Input) {
    let (normal, dim, scale) = input.law;
    let name = if normal {
        "gaussian"
    } else {
        "spherical_laplace"
    };
    let law = NoiseLaw::from_name(name, usize::from(dim), scale.0);
    let size = usize::from(input.dim % 5);
    let perturbation = if input.output {
        Perturbation::Output
    } else {
        Perturbation::Objective
    };
    let (hessian, gradient_cov) = (plain(&input.hessian), plain(&input.gradient_cov));
    if let Ok(sandwich) = Sandwich::new(&hessian, &gradient_cov, size, input.n.0, perturbation) {
        // Released matrices are finite; others give what they give, without a panic.
        let _ = sandwich.components(&plain(&input.contrast));
        if let Ok(law) = &law {
            let _ = sandwich.cov(law);
        }
    }
    let Ok(law) = law else {
        return;
    };
    let (variances, multipliers) = (plain(&input.variances), plain(&input.multipliers));
    if let Ok(widths) = half_widths(&variances, &multipliers, &law, input.level.0) {
        assert!(widths.iter().all(|w| *w >= 0.0), "{widths:?}");
    }
    if let Ok(found) = tails(&variances, &multipliers, &law, &plain(&input.statistics)) {
        assert!(found.iter().all(|p| (0.0..=1.0).contains(p)), "{found:?}");
    }
    let cancel = AtomicBool::new(false);
    let mut generator = SimulationGenerator::new(1, 0);
    let draws = usize::from(input.n_draws);
    if let Ok(found) = monte_carlo(
        &variances,
        &multipliers,
        &law,
        input.level.0,
        draws,
        &mut generator,
        &cancel,
    ) {
        assert!(
            found.iter().all(|(lower, upper)| lower <= upper),
            "{found:?}"
        );
    }
}
