//! Releases a model together with what bounds its privacy loss for each record: the gradient and the Hessian at its parameters.
//!
//! Redberg & Wang 2021, "Privately publishable per-instance privacy", Algorithm 2 (`docs/per_instance.md`).

use super::coefficients::release_coefficients;
use super::gate::Sealing;
use super::row_facts::check_design;
use super::seal::{Sealed, Values};
use crate::design::Design;
use crate::exec::Executor;
use crate::linalg::vector;
use crate::noise::{Gaussian, Law, NoiseGenerator, SymmetricGaussian};
use crate::objective::{HessianRows, Objective};
use crate::spec::{ReportSpec, Seal};
use crate::{Error, Result};

/// Everything that left the mechanism.
#[derive(Debug, Clone)]
pub struct ReportRelease {
    /// Parameters θ̃.
    pub params: Sealed,
    /// Noisy gradient and Hessian (row-major) at θ̃ of the sum objective without its noise term; `None` for a report that needs no data.
    pub derivatives: Option<[Sealed; 2]>,
    /// How the values were sealed.
    pub seals: Vec<Seal>,
}

/// Releases the coefficients and, where the shares say so, the gradient and the Hessian of the sum objective at them.
///
/// # Privacy
/// One record added or removed; spends the whole budget of `spec`. Given the released parameters only `Σ l'x` and `Σ l''xxᵀ` depend
/// on data: one record moves the gradient by at most LR in Euclidean norm and the Hessian by at most tR² in Frobenius norm, because
/// the ridge n₀λ is public. Gaussian noise in isometric coordinates of the Hessian (Balle & Wang 2018), composed with the
/// coefficients as [`ReportSpec::new`] says.
pub fn release_report(
    spec: &ReportSpec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<ReportRelease> {
    let fit = spec.fit();
    check_design(fit, design)?;
    let params = release_coefficients(fit, design, exec, &mut Sealing(generator))?;
    let Some([gradient_step, hessian_step]) = spec.extra() else {
        return Ok(ReportRelease {
            params,
            derivatives: None,
            seals: vec![*fit.seal()],
        });
    };
    let (dim, n) = (fit.n_params(), fit.bounds().n);
    let objective = Objective::new(design, &*fit.choices().loss, fit.l2_strength(), n, exec);
    let at = objective.evaluate(params.values(), HessianRows::All)?;
    let hessian = at.hessian.ok_or(Error::NotPositiveDefinite("the Hessian"))?;
    let gradient_noise = Gaussian::new(dim, gradient_step.scale)?;
    let matrix_noise = SymmetricGaussian::new(dim, hessian_step.scale)?;
    let ridge = spec.ridge() * vector::norm(params.values());
    let errors = [gradient_noise.error_bound(), matrix_noise.error_bound()];
    let seals = spec.derivative_seals(ridge, errors)?;
    let gradient = sum_plus_noise(at.gradient, n, &gradient_noise.sample_bounded(generator)?);
    let hessian = sum_plus_noise(hessian, n, &matrix_noise.sample_bounded(generator)?);
    Ok(ReportRelease {
        params,
        derivatives: Some([
            seals[0].release(&gradient, generator)?,
            seals[1].release_symmetric(&hessian, generator)?,
        ]),
        seals: std::iter::once(*fit.seal()).chain(seals).collect(),
    })
}

/// The sum whose mean is given, with noise.
fn sum_plus_noise(mut mean: Vec<f64>, n: f64, noise: &[f64]) -> Vec<f64> {
    for (value, noise) in mean.iter_mut().zip(noise) {
        *value = *value * n + noise;
    }
    mean
}
