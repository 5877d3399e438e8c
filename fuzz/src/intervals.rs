//! Intervals from any released values: an error, or widths and probabilities that are such.

use std::sync::atomic::AtomicBool;

use arbitrary::Arbitrary;
use dpci_core::interval::{
    ErrorLaw, ErrorShape, MatrixDraws, NoisyMatrices, half_widths, monte_carlo, tails,
};
use dpci_core::noise::{MatrixLaw, NoiseLaw, SimulationGenerator};
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
    matrix_noise: [Number; 2],
    matrices: Number,
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
    let law = NoiseLaw::from_name(name, usize::from(dim), scale.0, None);
    let size = usize::from(input.dim % 5);
    let perturbation = if input.output {
        Perturbation::Output
    } else {
        Perturbation::Objective
    };
    let (hessian, gradient_cov) = (plain(&input.hessian), plain(&input.gradient_cov));
    // Released matrices are finite; others give what they give, without a panic.
    let plug_in = ErrorLaw::plug_in(&hessian, &gradient_cov, size, input.n.0, perturbation);
    if let Ok(error_law) = plug_in {
        let _ = error_law.components(&plain(&input.contrast));
    }
    let Ok(law) = law else {
        return;
    };
    let noise = input
        .matrix_noise
        .map(|scale| MatrixLaw::from_name("gaussian", scale.0));
    if let [Ok(hessian_noise), Ok(gradient_cov_noise)] = noise
        && let Ok(draws) = MatrixDraws::new(size, Some(hessian_noise), gradient_cov_noise)
    {
        let matrices = NoisyMatrices {
            hessian: &hessian,
            gradient_cov: &gradient_cov,
            hessian_noise: Some(hessian_noise),
            gradient_cov_noise,
            l2_strength: 1e-3,
            strong_convexity: 1e-3,
            n_samples: input.n.0,
            perturbation,
            law,
            is_likelihood: input.output,
            may_be_flat: !input.output,
        };
        if let Ok(error_law) = ErrorLaw::noise_aware(&matrices, &draws) {
            let _ = error_law.components(&plain(&input.contrast));
        }
    }
    let law = ErrorShape {
        law,
        matrices: input.matrices.0,
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
