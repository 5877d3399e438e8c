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
use crate::solver::{Method, Minimum, Options};

/// Iterations after which a solver gives up.
const MAX_ITERATIONS: usize = 2000;

/// Releases the coefficients.
///
/// # Privacy
/// Relation and bounds as in `spec`; spends the cost of its step `coefficients`. Objective perturbation: Wang, Kifer & Lee,
/// Theorem 1, with `γ = (ε - log(1 + κ))/Δ`, Δ how far the gradient of the sum moves between neighbours (2LR at most), or
/// its variant of Chaudhuri, Monteleoni & Sarwate 2011; with Gaussian noise docs/method.md, "Gaussian objective
/// perturbation". Output perturbation: the argmin's sensitivity `Δ/(nλ)`. Over a ball all hold with the bounds of the loss on
/// it (docs/domains.md). They speak of the exact minimiser, so a point that misses its certificate is an error.
///
/// # Errors
/// [`crate::Error::NotConverged`], [`crate::Error::Loss`], [`crate::Error::Interrupted`]; nothing is released then.
pub fn release_coefficients(
    spec: &Spec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    let noise = draw_coefficient_noise(spec, generator)?;
    let linear = linear_term(spec, &noise);
    let objective = Objective {
        design,
        weights: None,
        loss: &*spec.choices.loss,
        l2_strength: spec.choices.l2_strength,
        extra_convexity: spec.domain.extra_convexity,
        linear_term: linear.as_deref(),
        n_samples: spec.bounds.n,
        exec,
    };
    let minimum = minimize_risk(&objective, None, &solver_options(spec))?;
    finish_coefficients(spec, minimum, &noise)
}

/// How the minimiser has to be found.
pub(crate) fn solver_options(spec: &Spec) -> Options {
    Options {
        method: Method::Auto,
        tolerance: spec.tolerance(),
        max_iterations: MAX_ITERATIONS,
        radius: spec.choices.radius,
    }
}

/// A draw of the noise `b`.
pub(crate) fn draw_coefficient_noise(
    spec: &Spec,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<f64>> {
    Ok(match spec.law {
        NoiseLaw::SphericalLaplace { dim, rate } => {
            SphericalLaplace::new(dim, rate)?.sample(generator)
        }
        NoiseLaw::Gaussian { std_dev } => {
            Gaussian::new(spec.n_params(), std_dev)?.sample(generator)
        }
    })
}

/// The linear term `b/n` of objective perturbation; `None` for output perturbation.
pub(crate) fn linear_term(spec: &Spec, noise: &[f64]) -> Option<Vec<f64>> {
    let objective = spec.choices.perturbation == Perturbation::Objective;
    objective.then(|| noise.iter().map(|b| b / spec.bounds.n).collect())
}

/// The released parameters from a certified minimiser: with the noise of output perturbation, sealed.
pub(crate) fn finish_coefficients(spec: &Spec, minimum: Minimum, noise: &[f64]) -> Result<Sealed> {
    let mut params = minimum.params;
    if spec.choices.perturbation == Perturbation::Output {
        params.iter_mut().zip(noise).for_each(|(p, b)| *p += b);
    }
    let sealed = release_values("params", params, spec.n_params())?;
    let domain = spec.choices.radius.filter(|_| spec.choices.project);
    Ok(sealed.in_ball(domain))
}
