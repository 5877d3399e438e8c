//! Releases the Hessian and the gradient covariance at released parameters.

use super::seal::Sealed;
use crate::Result;
use crate::exec::Executor;
use crate::moments::{DataMoments, data_moments};
use crate::noise::{Law, NoiseGenerator, SimulationGenerator};
use crate::records::Records;
use crate::spec::{MomentNoise, Spec};

/// Releases the data parts `(1/n) Σ l'' x xᵀ` and `(1/n) Σ l'² x xᵀ` at the released `params`.
///
/// # Privacy
/// Given `params` only the two sums depend on data. Their sensitivities hold for all margins up to `R‖params‖`, to which
/// `noise` was calibrated; spends the costs of its steps. Each loss value enters through one row, and the difference of two
/// positive semidefinite rank-one terms has Frobenius norm at most √(a² + b²), nuclear norm at most a + b.
/// The ideal sums are those of the records' terms as computed, each a function of its record and of `params`.
///
/// # Errors
/// [`crate::Error::Loss`], [`crate::Error::Interrupted`]; nothing is released then.
pub fn release_moments(
    spec: &Spec,
    records: &dyn Records,
    params: &Sealed,
    noise: &MomentNoise,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<(Option<Sealed>, Sealed)> {
    let data = data_moments(
        records,
        &*spec.choices().loss,
        params.values(),
        spec.bounds().n,
        exec,
    )?;
    let dim = spec.n_params();
    let hessian = match (noise.hessian, noise.hessian_seal) {
        (Some(noise), Some(seal)) => {
            let noisy = plus(
                data.curvature,
                &noise.law.on(dim)?.sample_bounded(generator)?,
            );
            Some(seal.release_symmetric(&noisy, generator)?)
        }
        _ => None,
    };
    let draw = noise.gradient_cov.law.on(dim)?.sample_bounded(generator)?;
    let noisy = plus(data.squared_slope, &draw);
    let gradient_cov = noise
        .gradient_cov_seal
        .release_symmetric(&noisy, generator)?;
    Ok((hessian, gradient_cov))
}

/// The noisy data parts of a study: as released, but by the samplers of simulations and not sealed.
pub(crate) fn simulate_moments(
    spec: &Spec,
    data: DataMoments,
    noise: &MomentNoise,
    generator: &mut SimulationGenerator,
) -> Result<(Option<Sealed>, Sealed)> {
    let dim = spec.n_params();
    let hessian = match noise.hessian {
        None => None,
        Some(noise) => {
            let noisy = plus(data.curvature, &noise.law.on(dim)?.sample(generator));
            Some(Sealed::simulated("hessian", noisy)?)
        }
    };
    let draw = noise.gradient_cov.law.on(dim)?.sample(generator);
    let noisy = plus(data.squared_slope, &draw);
    Ok((hessian, Sealed::simulated("gradient_cov", noisy)?))
}

fn plus(mut values: Vec<f64>, noise: &[f64]) -> Vec<f64> {
    values.iter_mut().zip(noise).for_each(|(v, n)| *v += n);
    values
}
