//! Releases the coefficients: objective perturbation and output perturbation.

use super::seal::{Sealed, release_values};
use super::spec::Spec;
use crate::Result;
use crate::design::Design;
use crate::erm::minimize_risk;
use crate::exec::Executor;
use crate::interval::Perturbation;
use crate::noise::{Gaussian, NoiseGenerator, NoiseLaw, SphericalLaplace};
use crate::objective::Objective;
use crate::solver::{Method, Options};

/// Iterations after which a solver gives up.
const MAX_ITERATIONS: usize = 2000;

/// Releases the coefficients.
///
/// # Privacy
/// Relation and bounds as in `spec`; spends the cost of its step `coefficients`. Objective perturbation: Wang, Kifer & Lee,
/// Theorem 1, with `γ = (ε - log(1 + κ))/(2LR)`; output perturbation: Chaudhuri, Monteleoni & Sarwate 2011 with the argmin's
/// sensitivity `2LR/(nλ)`. Both speak of the exact minimiser, so a point that misses its certificate is an error.
///
/// # Errors
/// [`crate::Error::NotConverged`], [`crate::Error::Loss`], [`crate::Error::Interrupted`]; nothing is released then.
pub fn release_coefficients(
    spec: &Spec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    let dim = spec.n_params();
    let noise = match spec.law {
        NoiseLaw::SphericalLaplace { dim, rate } => {
            SphericalLaplace::new(dim, rate)?.sample(generator)
        }
        NoiseLaw::Gaussian { std_dev } => Gaussian::new(dim, std_dev)?.sample(generator),
    };
    let options = Options {
        method: Method::Auto,
        tolerance: spec.tolerance(),
        max_iterations: MAX_ITERATIONS,
    };
    let linear: Vec<f64> = noise.iter().map(|b| b / spec.bounds.n).collect();
    let objective = Objective {
        design,
        loss: &*spec.choices.loss,
        l2_strength: spec.choices.l2_strength,
        linear_term: (spec.choices.perturbation == Perturbation::Objective).then_some(&linear),
        n_samples: spec.bounds.n,
        exec,
    };
    let mut params = minimize_risk(&objective, None, &options)?.params;
    if spec.choices.perturbation == Perturbation::Output {
        params.iter_mut().zip(&noise).for_each(|(p, b)| *p += b);
    }
    release_values("params", params, dim)
}
