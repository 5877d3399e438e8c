//! A whole private fit: coefficients, then moments at the released coefficients, then projection.

use super::coefficients::{moment_point, release_coefficients};
use super::gate::{Gate, Sealing};
use super::moments::release_moments;
use super::projection::{project_gradient_cov, project_hessian};
use super::row_facts::check_design;
use super::seal::{Sealed, Values};
use crate::exec::Executor;
use crate::linalg::{add_diagonal, vector};
use crate::moments::{DataMoments, data_moments};
use crate::noise::NoiseGenerator;
use crate::privacy::{Calibration, Neighbors};
use crate::records::{Records, Request};
use crate::spec::{MomentNoise, Projection, ROUNDING_ROOM, Seal, Spec, Step, least_row_norm};
use crate::{Error, Result};

/// Everything that left the mechanism, before post-processing; of a study, [`Simulated`](super::Simulated) values.
#[derive(Debug, Clone)]
pub struct Release<V = Sealed> {
    /// Parameters θ̃.
    pub params: V,
    /// Noisy data part of the Hessian; `None` where it is zero for every data set, or without moments.
    pub hessian: Option<V>,
    /// Noisy data part of the gradient covariance; `None` without moments.
    pub gradient_cov: Option<V>,
    /// The moments' noise; `None` without moments.
    pub noise: Option<MomentNoise>,
}

/// A private fit: released values only, or those of a study.
#[derive(Debug, Clone)]
pub struct Fit<V = Sealed> {
    /// Parameters, the intercept last.
    pub params: V,
    /// Hessian and gradient covariance (row-major), projected or as released; `None` without moments.
    pub matrices: Option<[Vec<f64>; 2]>,
    /// The noise in these matrices; `None` without moments.
    pub matrix_noise: Option<MomentNoise>,
    /// `r_H`, see [`MomentNoise::spectral_radius`]; 0 without moments.
    pub spectral_radius: f64,
    /// The projection that was used.
    pub projection: Projection,
    /// Steps of the release, each with its cost.
    pub steps: Vec<Step>,
    /// Seals of the values, each with its cost.
    pub seals: Vec<Seal>,
}

/// Releases coefficients and moments, or, through [`Simulating`](super::Simulating), makes what a study calls a release.
///
/// # Privacy
/// Through [`Sealing`] it spends the whole budget of `spec`: the steps compose adaptively (the moments see only the released
/// coefficients). Through [`Simulating`](super::Simulating) it protects nothing.
pub fn release<G: Gate>(
    spec: &Spec,
    records: &dyn Records,
    exec: &Executor<'_>,
    gate: &mut G,
) -> Result<Release<G::Value>> {
    check_design(spec, records)?;
    check_strong_convexity(spec, records, exec)?;
    let params = release_coefficients(spec, records, exec, gate)?;
    let (loss, n) = (&*spec.choices().loss, spec.bounds().n);
    let data = |point: &[f64]| data_moments(records, loss, point, n, exec);
    release_from_coefficients(spec, params, data, gate)
}

/// Releases the moments at released coefficients, given the data parts at a point: what follows the coefficients in [`release`].
///
/// # Privacy
/// Spends what `spec` has for the moments; see [`release_moments`].
pub(crate) fn release_from_coefficients<G: Gate>(
    spec: &Spec,
    params: G::Value,
    data: impl FnOnce(&[f64]) -> Result<DataMoments>,
    gate: &mut G,
) -> Result<Release<G::Value>> {
    let point = moment_point(spec, &params);
    let noise = spec.moment_noise(margin_radius(spec, &point))?;
    let (mut hessian, mut gradient_cov) = (None, None);
    if let Some(noise) = &noise {
        let (h, s) = release_moments(spec, data(point.values())?, noise, gate)?;
        (hessian, gradient_cov) = (h, Some(s));
    }
    Ok(Release {
        params,
        hessian,
        gradient_cov,
        noise,
    })
}

/// Refuses rows that are shorter than a declared strong convexity counts on.
pub(super) fn check_strong_convexity(spec: &Spec, records: &dyn Records, exec: &Executor<'_>) -> Result<()> {
    if spec.extra_convexity() == 0.0 {
        return Ok(());
    }
    let least = least_row_norm(spec.choices());
    let [shortest, _] = records
        .sums(&Request::Lengths, &*spec.choices().loss, None, exec)?
        .squares;
    if shortest >= least * least * (1.0 - ROUNDING_ROOM) {
        return Ok(());
    }
    Err(Error::RowTooShort { norm: shortest.sqrt() })
}

/// The greatest margin `R‖θ̃‖` that any row can have, rounded up past the rounding of the norm; infinite for rows beyond their bounds.
pub(crate) fn margin_radius(spec: &Spec, params: &impl Values) -> f64 {
    if spec.choices().terms.has_far_rows() {
        return f64::INFINITY;
    }
    let rounding = 1.0 + (spec.n_params() as f64 + 8.0) * f64::EPSILON;
    spec.row_norm() * vector::norm(params.values()) * rounding
}

/// Post-processing: adds the regulariser's parts and projects.
///
/// Under add/remove the square of the mean gradient stays in the gradient covariance: of it only the share `n/N` would have to go, with
/// the private number `N` of records, and nothing where `N` varies as a Poisson number does (docs/proofs/intervals.md, "The number of records").
pub fn project_release<V: Values>(spec: &Spec, release: &Release<V>) -> Result<Fit<V>> {
    let dim = spec.n_params();
    let lambda = spec.l2_strength();
    let least = spec.strong_convexity();
    let point = moment_point(spec, &release.params);
    let point = point.values();
    let mut steps = vec![spec.coefficients().clone()];
    let mut seals = vec![*spec.seal()];
    let spectral_radius = release.noise.as_ref().map_or(0.0, |n| n.spectral_radius(dim));
    let projection = spec.choices().projection.decided();
    let matrices = match &release.gradient_cov {
        None => None,
        Some(noisy) => {
            steps.extend(release.noise.iter().flat_map(|n| n.steps.iter().cloned()));
            seals.extend(release.noise.iter().flat_map(MomentNoise::seals));
            let mut hessian = release
                .hessian
                .as_ref()
                .map_or_else(|| vec![0.0; dim * dim], |h| h.values().to_vec());
            add_diagonal(&mut hessian, dim, lambda);
            let is_projected = projection != Projection::NoiseAware;
            let hessian = if is_projected && release.hessian.is_some() {
                project_hessian(&hessian, dim, least, spectral_radius, projection)?
            } else {
                hessian
            };
            let mut gradient_cov = noisy.values().to_vec();
            if spec.choices().terms.neighbors == Neighbors::ReplaceOne {
                // Of n records with weights the squared mean is the square of the sum over n, not over the divisor.
                let share = spec.bounds().n / spec.bounds().records;
                for (i, a) in point.iter().enumerate() {
                    for (j, b) in point.iter().enumerate() {
                        gradient_cov[i * dim + j] -= share * (lambda * a) * (lambda * b);
                    }
                }
            }
            // The paper's floor λ for Σ has no foundation, but is its method.
            let floor = if spec.choices().calibration == Calibration::Paper {
                least
            } else {
                0.0
            };
            if is_projected {
                gradient_cov = project_gradient_cov(&gradient_cov, dim, floor)?;
            }
            Some([hessian, gradient_cov])
        }
    };
    Ok(Fit {
        params: release.params.clone(),
        matrices,
        matrix_noise: release.noise.clone(),
        spectral_radius,
        projection,
        steps,
        seals,
    })
}

/// A private fit: [`release`], then [`project_release`].
///
/// # Privacy
/// As [`release`]; projection is post-processing.
///
/// # Errors
/// As [`release`].
pub fn release_fit(
    spec: &Spec,
    records: &dyn Records,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Fit> {
    project_release(spec, &release(spec, records, exec, &mut Sealing(generator))?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::loss::Logistic;
    use crate::mechanism::Simulated;
    use crate::privacy::{Budget, Perturbation};
    use crate::row_domain::RowDomain;
    use crate::spec::{Choices, Moments, Terms, Variant};

    /// The gradient covariance that is made of `2I`, released with the parameters (1, -2), at λ = 0.5.
    fn gradient_cov(neighbors: Neighbors, calibration: Calibration) -> Vec<f64> {
        let spec = Spec::new(Choices {
            terms: Terms::of_rows(1000, neighbors),
            n_columns: 2,
            intercept: None,
            rows: RowDomain::Ball(1.0),
            loss: Arc::new(Logistic),
            l2_strength: 0.5,
            radius: None,
            variant: Variant::Standard,
            project: false,
            budget: Budget::pure(1.0).unwrap(),
            perturbation: Perturbation::Output,
            noise: None,
            split: None,
            moments: if calibration == Calibration::Paper {
                Moments::Separate
            } else {
                Moments::Joint
            },
            reserve: 0.0,
            projection: Projection::Floor,
            calibration,
        })
        .unwrap();
        let release = Release {
            params: Simulated::new("params", vec![1.0, -2.0]).unwrap(),
            hessian: None,
            gradient_cov: Some(Simulated::new("gradient_cov", vec![2.0, 0.0, 0.0, 2.0]).unwrap()),
            noise: None,
        };
        let [_, cov] = project_release(&spec, &release).unwrap().matrices.unwrap();
        cov
    }

    #[test]
    fn the_mean_gradient_is_subtracted_where_the_number_of_records_is_public() {
        for calibration in [Calibration::Tight, Calibration::Paper] {
            for (neighbors, expected) in [
                (Neighbors::ReplaceOne, [1.75, 0.5, 0.5, 1.0]),
                (Neighbors::AddRemove, [2.0, 0.0, 0.0, 2.0]),
            ] {
                let found = gradient_cov(neighbors, calibration);
                let gaps = found.iter().zip(expected).map(|(f, e)| (f - e).abs());
                assert!(
                    gaps.fold(0.0, f64::max) < 1e-14,
                    "{neighbors:?} {calibration:?} {found:?}"
                );
            }
        }
    }
}
