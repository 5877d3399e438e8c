//! Releases the Hessian and the gradient covariance at released parameters.

use super::moment_noise::MomentNoise;
use super::seal::{Sealed, release_values};
use super::spec::Spec;
use crate::Result;
use crate::design::Design;
use crate::exec::Executor;
use crate::moments::{DataMoments, data_moments};
use crate::noise::NoiseGenerator;

/// Releases the data parts `(1/n) Σ l'' x xᵀ` and `(1/n) Σ l'² x xᵀ` at the released `params`.
///
/// # Privacy
/// Given `params` only the two sums depend on data. Their sensitivities hold for all margins up to `R‖params‖`, to which
/// `noise` was calibrated; spends the costs of its steps. Each loss value enters through one row, and the difference of two
/// positive semidefinite rank-one terms has Frobenius norm at most √(a² + b²), nuclear norm at most a + b.
///
/// # Errors
/// [`crate::Error::Loss`], [`crate::Error::Interrupted`]; nothing is released then.
pub fn release_moments(
    spec: &Spec,
    design: &Design<'_>,
    params: &Sealed,
    noise: &MomentNoise,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<(Option<Sealed>, Sealed)> {
    let data = data_moments(
        design,
        &*spec.choices.loss,
        params.values(),
        spec.bounds.n,
        exec,
    )?;
    add_moment_noise(spec, data, noise, generator)
}

/// The noisy data parts, sealed: `None` for a Hessian whose data part is zero for every data set.
pub(crate) fn add_moment_noise(
    spec: &Spec,
    data: DataMoments,
    noise: &MomentNoise,
    generator: &mut impl NoiseGenerator,
) -> Result<(Option<Sealed>, Sealed)> {
    let dim = spec.n_params();
    let hessian = match noise.hessian {
        None => None,
        Some(law) => {
            let noisy = plus(data.curvature, &law.sample(dim, generator)?);
            Some(release_values("hessian", noisy, dim * dim)?)
        }
    };
    let noisy = plus(
        data.squared_slope,
        &noise.gradient_cov.sample(dim, generator)?,
    );
    Ok((hessian, release_values("gradient_cov", noisy, dim * dim)?))
}

fn plus(mut values: Vec<f64>, noise: &[f64]) -> Vec<f64> {
    values.iter_mut().zip(noise).for_each(|(v, n)| *v += n);
    values
}
