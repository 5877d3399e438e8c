//! Releases the coefficients: objective perturbation and output perturbation.

use super::gate::Gate;
use super::seal::Values;
use crate::Result;
use crate::erm::{Unrounded, minimize_risk, minimize_unrounded};
use crate::error::check;
use crate::exec::Executor;
use crate::linalg::vector;
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
/// Through [`Sealing`](super::Sealing), relation and bounds as in `spec`: spends the cost of its step `coefficients`.
/// Objective perturbation: Wang, Kifer & Lee, Theorem 1, with `γ = (ε - log(1 + κ))/Δ`, Δ how far the gradient of the sum moves between neighbours (2LR at most), or
/// its variant of Chaudhuri, Monteleoni & Sarwate 2011; with Gaussian noise docs/proofs/mechanisms.md, "Gaussian objective
/// perturbation". Output perturbation: the argmin's sensitivity `Δ/(nλ)`. Over a ball all hold with the bounds of the loss on
/// it (docs/proofs/domains.md). They speak of the exact minimiser: the seal hides the certified distance to it, and a point that misses its
/// certificate is an error.
pub fn release_coefficients<G: Gate>(
    spec: &Spec,
    records: &dyn Records,
    exec: &Executor<'_>,
    gate: &mut G,
) -> Result<G::Value> {
    let noise = draw_coefficient_noise(spec, gate)?;
    let linear = linear_term(spec, &noise);
    let linear = (linear.as_deref(), 0.0);
    release_minimiser(spec, records, exec, gate, &noise, linear)
}

/// Releases the minimiser of a risk whose ridge has its centre at a public or released point, by objective perturbation.
///
/// # Privacy
/// The promise of [`release_coefficients`] holds: a centre that is no function of the data adds a known constant to the linear term.
pub(super) fn release_around<G: Gate>(
    spec: &Spec,
    centre: &[f64],
    records: &dyn Records,
    exec: &Executor<'_>,
    gate: &mut G,
) -> Result<G::Value> {
    let noise = draw_coefficient_noise(spec, gate)?;
    let linear = linear_term(spec, &noise).map(|linear| {
        let pairs = linear.iter().zip(centre);
        let around = pairs.map(|(b, c)| b - spec.l2_strength() * c);
        around.collect::<Vec<f64>>()
    });
    // The centre is what the rounded product is a multiple of; the difference is rounded once more.
    let rounding = 2.0 * f64::EPSILON * vector::norm_bound(centre);
    check(
        rounding < 0.5 * spec.tolerance(),
        "the centre of the ridge",
        "such that its rounding is a small part of the seal",
        vector::norm(centre),
    )?;
    let linear = (linear.as_deref(), rounding);
    release_minimiser(spec, records, exec, gate, &noise, linear)
}

/// Greatest norm of a centre: its rounding leaves half of the tolerance to the solver.
pub(super) fn greatest_centre(spec: &Spec) -> f64 {
    0.249 * spec.tolerance() / f64::EPSILON
}

/// Releases the minimiser with this linear term, which is within this distance times λ of the ideal one.
fn release_minimiser<G: Gate>(
    spec: &Spec,
    records: &dyn Records,
    exec: &Executor<'_>,
    gate: &mut G,
    noise: &[f64],
    (linear_term, rounding): (Option<&[f64]>, f64),
) -> Result<G::Value> {
    let objective = Objective {
        records,
        weights: None,
        loss: &*spec.choices().loss,
        l2_strength: spec.choices().l2_strength,
        extra_convexity: spec.extra_convexity(),
        linear_term,
        n_samples: spec.bounds().n,
        exec,
    };
    if G::SEALS {
        let options = solver_options(spec, spec.tolerance() - rounding);
        let Unrounded { minimum, rest } = minimize_unrounded(&objective, &options)?;
        release_minimum(spec, minimum, Some(&rest), noise, gate)
    } else {
        let options = solver_options(spec, spec.study_tolerance());
        let minimum = minimize_risk(&objective, None, &options)?;
        release_minimum(spec, minimum, None, noise, gate)
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

/// A draw of the noise `b`.
pub(crate) fn draw_coefficient_noise(spec: &Spec, gate: &mut impl Gate) -> Result<Vec<f64>> {
    gate.draw(&spec.law().on(spec.n_params())?)
}

/// The linear term `b/n` of objective perturbation; `None` for output perturbation.
pub(crate) fn linear_term(spec: &Spec, noise: &[f64]) -> Option<Vec<f64>> {
    let objective = spec.choices().perturbation == Perturbation::Objective;
    objective.then(|| noise.iter().map(|b| b / spec.bounds().n).collect())
}

/// Lets a certified minimiser out, with the noise of output perturbation, and moved into the domain where the caller asks for it.
pub(crate) fn release_minimum<G: Gate>(
    spec: &Spec,
    minimum: Minimum,
    rest: Option<&[f64]>,
    noise: &[f64],
    gate: &mut G,
) -> Result<G::Value> {
    let mut params = minimum.params;
    if spec.choices().perturbation == Perturbation::Output {
        params.iter_mut().zip(noise).for_each(|(p, b)| *p += b);
    }
    let params = gate.release(spec.seal(), params, rest)?;
    Ok(params.in_ball(spec.choices().radius.filter(|_| spec.choices().project)))
}

/// Where the moments are taken: the released parameters, moved into the domain. Post-processing.
pub(crate) fn moment_point<V: Values>(spec: &Spec, params: &V) -> V {
    params.in_ball(spec.radius())
}
