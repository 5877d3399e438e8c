//! Releases the Hessian and the gradient covariance at released parameters.

use super::gate::Gate;
use crate::Result;
use crate::moments::DataMoments;
use crate::spec::{MomentNoise, Spec};

/// Releases the data parts `(1/n) Σ l'' x xᵀ` and `(1/n) Σ l'² x xᵀ` at released parameters.
///
/// # Privacy
/// Through [`Sealing`](super::Sealing) it spends the costs of the steps of `noise`. Given the parameters only the two sums depend on
/// data. Their sensitivities hold for all margins up to `R‖θ̃‖`, to which `noise` was calibrated. Each loss value enters through one row, and the difference of two
/// positive semidefinite rank-one terms has Frobenius norm at most √(a² + b²), nuclear norm at most a + b.
/// Level totals are linear functions of the curvature's sum, and the entries that they tell have their noise alone.
/// The ideal sums are those of the records' terms as computed, each a function of its record and of the parameters.
pub(super) fn release_moments<G: Gate>(
    spec: &Spec,
    data: DataMoments,
    noise: &MomentNoise,
    gate: &mut G,
) -> Result<(Option<G::Value>, G::Value)> {
    let dim = spec.n_params();
    let levels = noise.levels.as_ref();
    let hessian = match (noise.hessian, &noise.hessian_seal) {
        (Some(noise), Some(seal)) => {
            let mut draw = gate.draw(&noise.law.on(dim)?)?;
            if let Some(levels) = levels {
                levels.put(&gate.draw(&levels.law()?)?, &mut draw);
            }
            let noisy = plus(data.curvature, &draw);
            Some(match levels {
                Some(levels) => gate.release_with_levels(seal, noisy, levels)?,
                None => gate.release_symmetric(seal, noisy)?,
            })
        }
        _ => None,
    };
    let draw = gate.draw(&noise.gradient_cov.law.on(dim)?)?;
    let noisy = plus(data.squared_slope, &draw);
    let gradient_cov = gate.release_symmetric(&noise.gradient_cov_seal, noisy)?;
    Ok((hessian, gradient_cov))
}

fn plus(mut values: Vec<f64>, noise: &[f64]) -> Vec<f64> {
    values.iter_mut().zip(noise).for_each(|(v, n)| *v += n);
    values
}
