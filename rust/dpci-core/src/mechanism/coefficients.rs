//! Releases the coefficients: objective perturbation and output perturbation.

use super::seal::Sealed;
use crate::Result;
use crate::erm::{Unrounded, minimize_risk, minimize_unrounded};
use crate::exec::Executor;
use crate::noise::{Law, NoiseGenerator, SimulationGenerator};
use crate::objective::Objective;
use crate::privacy::Perturbation;
use crate::records::Records;
use crate::solver::{Method, Minimum, Options};
use crate::spec::Spec;

/// Iterations after which a solver gives up.
const MAX_ITERATIONS: usize = 2000;

/// Releases the coefficients.
///
/// # Privacy
/// Relation and bounds as in `spec`; spends the cost of its step `coefficients`. Objective perturbation: Wang, Kifer & Lee,
/// Theorem 1, with `γ = (ε - log(1 + κ))/Δ`, Δ how far the gradient of the sum moves between neighbours (2LR at most), or
/// its variant of Chaudhuri, Monteleoni & Sarwate 2011; with Gaussian noise docs/method.md, "Gaussian objective
/// perturbation". Output perturbation: the argmin's sensitivity `Δ/(nλ)`. Over a ball all hold with the bounds of the loss on
/// it (docs/domains.md). They speak of the exact minimiser: the seal hides the certified distance to it, and a point that misses its
/// certificate is an error.
///
/// # Errors
/// [`crate::Error::NotConverged`], [`crate::Error::Loss`], [`crate::Error::Interrupted`]; nothing is released then.
pub fn release_coefficients(
    spec: &Spec,
    records: &dyn Records,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    let noise = spec.law().on(spec.n_params())?.sample_bounded(generator)?;
    let objective = Linear::new(spec, &noise);
    let options = solver_options(spec, spec.tolerance());
    let Unrounded { minimum, rest } =
        minimize_unrounded(&objective.of(spec, records, exec), &options)?;
    let mut params = perturbed(spec, minimum, &noise);
    // Whole steps of the lattice apart from the rest, so that no digit of a long vector is lost.
    let lattice = spec.seal().lattice();
    let whole: Vec<f64> = params.iter().map(|p| whole_steps(*p, lattice)).collect();
    for ((p, whole), rest) in params.iter_mut().zip(&whole).zip(rest) {
        *p = (*p - whole) + rest;
    }
    let sealed = spec.seal().release_sum(&params, &whole, generator)?;
    Ok(in_domain(spec, &sealed))
}

/// The part of a number that is a multiple of the lattice, towards zero; exact, as the lattice is a power of two.
fn whole_steps(value: f64, lattice: f64) -> f64 {
    let steps = (value / lattice).trunc();
    // From here on every number is a multiple of the lattice.
    if steps.abs() < 1.0 / f64::EPSILON {
        steps * lattice
    } else {
        value
    }
}

/// The coefficients of a simulation: the samplers of studies, and no seal.
pub(super) fn simulate_coefficients_of(
    spec: &Spec,
    records: &dyn Records,
    exec: &Executor<'_>,
    generator: &mut SimulationGenerator,
) -> Result<Sealed> {
    let noise = simulate_coefficient_noise(spec, generator)?;
    let minimum = minimum(spec, records, &noise, spec.study_tolerance(), exec)?;
    simulate_coefficients(spec, minimum, &noise)
}

/// The certified minimiser under this noise.
fn minimum(
    spec: &Spec,
    records: &dyn Records,
    noise: &[f64],
    tolerance: f64,
    exec: &Executor<'_>,
) -> Result<Minimum> {
    let objective = Linear::new(spec, noise);
    let options = solver_options(spec, tolerance);
    minimize_risk(&objective.of(spec, records, exec), None, &options)
}

/// The linear term of an objective, which borrows it.
struct Linear(Option<Vec<f64>>);

impl Linear {
    fn new(spec: &Spec, noise: &[f64]) -> Self {
        Self(linear_term(spec, noise))
    }

    /// The objective of the coefficients.
    fn of<'a>(
        &'a self,
        spec: &'a Spec,
        records: &'a dyn Records,
        exec: &'a Executor<'a>,
    ) -> Objective<'a> {
        Objective {
            records,
            weights: None,
            loss: &*spec.choices().loss,
            l2_strength: spec.choices().l2_strength,
            extra_convexity: spec.extra_convexity(),
            linear_term: self.0.as_deref(),
            n_samples: spec.bounds().n,
            exec,
        }
    }
}

/// How the minimiser has to be found.
pub(crate) fn solver_options(spec: &Spec, tolerance: f64) -> Options {
    Options {
        method: Method::Auto,
        tolerance,
        max_iterations: MAX_ITERATIONS,
        radius: spec.choices().radius,
    }
}

/// A draw of the noise `b` by the samplers of simulations.
pub(crate) fn simulate_coefficient_noise(
    spec: &Spec,
    generator: &mut SimulationGenerator,
) -> Result<Vec<f64>> {
    Ok(spec.law().on(spec.n_params())?.sample(generator))
}

/// The linear term `b/n` of objective perturbation; `None` for output perturbation.
pub(crate) fn linear_term(spec: &Spec, noise: &[f64]) -> Option<Vec<f64>> {
    let objective = spec.choices().perturbation == Perturbation::Objective;
    objective.then(|| noise.iter().map(|b| b / spec.bounds().n).collect())
}

/// The parameters of a study from a certified minimiser: as released, but not sealed.
pub(crate) fn simulate_coefficients(
    spec: &Spec,
    minimum: Minimum,
    noise: &[f64],
) -> Result<Sealed> {
    let params = Sealed::simulated("params", perturbed(spec, minimum, noise))?;
    Ok(in_domain(spec, &params))
}

/// The minimiser, with the noise of output perturbation.
fn perturbed(spec: &Spec, minimum: Minimum, noise: &[f64]) -> Vec<f64> {
    let mut params = minimum.params;
    if spec.choices().perturbation == Perturbation::Output {
        params.iter_mut().zip(noise).for_each(|(p, b)| *p += b);
    }
    params
}

/// Post-processing: moved into the domain where the caller asks for it.
fn in_domain(spec: &Spec, params: &Sealed) -> Sealed {
    params.in_ball(spec.choices().radius.filter(|_| spec.choices().project))
}

/// Where the moments are taken: the released parameters, moved into the domain. Post-processing.
pub(crate) fn moment_point(spec: &Spec, params: &Sealed) -> Sealed {
    params.in_ball(spec.radius())
}
