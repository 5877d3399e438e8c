//! Projects released matrices to the cone that the true ones lie in. Post-processing: no data, no budget.

use crate::Result;
use crate::linalg::project_eigenvalues;

/// How the eigenvalues of the released Hessian are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projection {
    /// Those below λ become λ.
    Floor,
    /// Those below λ + `r_H` become λ: what noise alone can raise is not believed.
    Cautious,
    /// Floor while `r_H ≤ 6λ`, else cautious.
    Auto,
}

/// With more noise than this many λ the floor alone leaves the Hessian too large and intervals too short (measured on Adult
/// at d = 10, 50, 104; docs/method.md, "Projection").
const AUTO_RATIO: f64 = 6.0;

impl Projection {
    /// Decides [`Projection::Auto`] from public values.
    #[must_use]
    pub fn decide(self, spectral_radius: f64, l2_strength: f64) -> Self {
        match self {
            Self::Auto if spectral_radius <= AUTO_RATIO * l2_strength => Self::Floor,
            Self::Auto => Self::Cautious,
            decided => decided,
        }
    }

    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Cautious => "cautious",
            Self::Auto => "auto",
        }
    }
}

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
        Projection::Floor | Projection::Auto => l2_strength,
    };
    project_eigenvalues(hessian, dim, "the released Hessian", |v| {
        if v < believed { l2_strength } else { v }
    })
}

/// The gradient covariance with eigenvalues at least `floor`.
pub(super) fn project_gradient_cov(
    gradient_cov: &[f64],
    dim: usize,
    floor: f64,
) -> Result<Vec<f64>> {
    project_eigenvalues(gradient_cov, dim, "the released gradient covariance", |v| {
        v.max(floor)
    })
}
