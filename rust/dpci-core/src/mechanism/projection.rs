//! Projects released matrices to the cone that the true ones lie in. Post-processing: no data, no budget.

use crate::Result;
use crate::linalg::project_eigenvalues;
use crate::spec::Projection;

/// The Hessian with eigenvalues at least λ.
pub(super) fn project_hessian(
    hessian: &[f64],
    dim: usize,
    l2_strength: f64,
    spectral_radius: f64,
    projection: Projection,
) -> Result<Vec<f64>> {
    let believed = match projection {
        Projection::Cautious => l2_strength + spectral_radius,
        _ => l2_strength,
    };
    project_eigenvalues(hessian, dim, "the released Hessian", |v| {
        if v < believed { l2_strength } else { v }
    })
}

/// The gradient covariance with eigenvalues at least `floor`.
pub(super) fn project_gradient_cov(gradient_cov: &[f64], dim: usize, floor: f64) -> Result<Vec<f64>> {
    project_eigenvalues(gradient_cov, dim, "the released gradient covariance", |v| v.max(floor))
}
