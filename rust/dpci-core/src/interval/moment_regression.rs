//! Linear regressions from one released moment matrix: coefficients, and what their errors are made of.
//!
//! `docs/proofs/linear_regression.md` has the formulas: the error of a contrast is `c'A⁻¹X'r/n`, of the sample, plus `w'Ev`, of the noise E in
//! the matrix, where `w = F'A⁻¹c` and v is the residual as a combination of the columns.

use crate::linalg::vector::dot;
use crate::linalg::{Cholesky, Eigen};
use crate::{Error, Result};

const NAME: &str = "the released moments of the columns";

/// A regression among the columns of a moment matrix `(1/n) Σ zzᵀ`.
#[derive(Debug, Clone, Copy)]
pub struct MomentEquations<'a> {
    /// The released matrix, row-major.
    pub matrix: &'a [f64],
    /// Its number of rows.
    pub dim: usize,
    /// The regressors as combinations of the columns, `dim` numbers each.
    pub features: &'a [f64],
    /// The response as a combination of the columns.
    pub response: &'a [f64],
    /// What is added to the second moments of the regressors, row-major: the ridge.
    pub ridge: &'a [f64],
    /// Released moments of the first columns, each record weighted by its squared residual; row-major.
    pub residual_moments: Option<&'a [f64]>,
}

/// The solution, and the forms from which the variance of every contrast `c'θ` follows. Matrices are `params × params`, row-major.
#[derive(Debug, Clone)]
pub struct MomentRegression {
    /// Coefficients of the regressors.
    pub params: Vec<f64>,
    /// `‖w‖²` is `c'Gc`.
    pub gain: Vec<f64>,
    /// `w·v` is `c'p`.
    pub cross: Vec<f64>,
    /// `‖v‖²`.
    pub residual_norm2: f64,
    /// `v'Nv`: the mean squared residual, with the noise in it.
    pub residual_square: f64,
    /// By how many variances of an isometric coordinate [`Self::residual_square`] is too small, as the noise in θ is fitted.
    pub fitted_noise: f64,
    /// Effective number of parameters: `tr A⁻¹(A - ridge)`.
    pub degrees: f64,
    /// `A⁻¹(A - ridge)A⁻¹`, A - ridge without negative eigenvalues: times σ²/n the sampling variance.
    pub classical: Vec<f64>,
    /// `A⁻¹ΣA⁻¹`: over n the robust sampling variance.
    pub robust: Option<Vec<f64>>,
    /// Least eigenvalue of the second moments of orthonormal regressors: to be compared with the noise.
    pub least_eigenvalue: f64,
    /// Share of each regressor in its direction, at most 1.
    pub direction: Vec<f64>,
}

/// Solves the equations.
///
/// The regressors are first made orthonormal as combinations of the columns, in which the noise is isotropic.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] where the matrix of the regressors is not positive definite, or they are combinations of each other.
pub fn moment_regression(equations: &MomentEquations<'_>) -> Result<MomentRegression> {
    let MomentEquations { matrix, dim, .. } = *equations;
    let f = equations.features.len() / dim;
    let (q, inverse) = orthonormal(equations.features, dim)?;
    let times_matrix = |vector: &[f64]| -> Vec<f64> {
        let rows = matrix.chunks_exact(dim);
        rows.map(|row| dot(row, vector)).collect()
    };
    let nq: Vec<f64> = q.chunks_exact(dim).flat_map(times_matrix).collect();
    let plain = symmetric(f, |i, j| dot(row(&q, dim, i), row(&nq, dim, j)));
    // R⁻¹ ridge R⁻ᵀ
    let half = product(&inverse, equations.ridge, f);
    let mut a = symmetric(f, |i, j| dot(row(&half, f, i), row(&inverse, f, j)));
    a.iter_mut().zip(&plain).for_each(|(a, p)| *a += p);
    let varying = if equations.ridge.iter().all(|r| *r == 0.0) {
        plain
    } else {
        positive_part(&plain, f)?
    };

    let eigen = Eigen::new(&a, f, NAME)?;
    let least_eigenvalue = eigen.values.first().copied().unwrap_or_default();
    let direction = shares(&eigen.vectors[..f], &inverse, equations.features, dim);
    let cholesky = Cholesky::new(&a, f, NAME);
    let Ok(cholesky) = cholesky else {
        return Ok(unsolved(f, least_eigenvalue, direction));
    };
    let right: Vec<f64> = nq
        .chunks_exact(dim)
        .map(|r| dot(r, equations.response))
        .collect();
    let phi = cholesky.solve(&right);
    let mut v = equations.response.to_vec();
    for (p, q) in phi.iter().zip(q.chunks_exact(dim)) {
        v.iter_mut().zip(q).for_each(|(v, q)| *v -= p * q);
    }
    let mut w = vec![0.0; f * f];
    (0..f).for_each(|i| w[i * f + i] = 1.0);
    cholesky.solve_in_place(&mut w);
    // A⁻¹R⁻¹: a contrast c of θ is the contrast R⁻¹c of the orthonormal regressors' coefficients.
    let w_inverse = product(&w, &inverse, f);
    let columns = transposed(&w_inverse, f);
    let form = |middle: &[f64]| {
        let right = product(middle, &w_inverse, f);
        let right = transposed(&right, f);
        symmetric(f, |i, j| dot(row(&columns, f, i), row(&right, f, j)))
    };
    let qv: Vec<f64> = q.chunks_exact(dim).map(|q| dot(q, &v)).collect();
    let residual_norm2 = dot(&v, &v);
    let trace: f64 = (0..f).map(|i| w[i * f + i]).sum();
    let robust = equations.residual_moments.map(|moments| {
        let p = moments.len().isqrt();
        let times: Vec<f64> = q
            .chunks_exact(dim)
            .flat_map(|q| moments.chunks_exact(p).map(|m| dot(m, &q[..p])))
            .collect();
        form(&symmetric(f, |i, j| {
            dot(&row(&q, dim, i)[..p], row(&times, p, j))
        }))
    });
    let columns_of = |i: usize| row(&columns, f, i);
    Ok(MomentRegression {
        params: (0..f)
            .map(|j| (0..f).map(|i| inverse[i * f + j] * phi[i]).sum())
            .collect(),
        gain: symmetric(f, |i, j| dot(columns_of(i), columns_of(j))),
        cross: (0..f).map(|j| dot(columns_of(j), &qv)).collect(),
        residual_norm2,
        residual_square: dot(&v, &times_matrix(&v)),
        fitted_noise: 0.5 * (trace * residual_norm2 + dot(&qv, &cholesky.solve(&qv))),
        degrees: dot(&w, &varying),
        classical: form(&varying),
        robust,
        least_eigenvalue,
        direction,
    })
}

/// The matrix without its negative eigenvalues: second moments have none, and a ridge can hide those that noise makes.
fn positive_part(matrix: &[f64], dim: usize) -> Result<Vec<f64>> {
    let eigen = Eigen::new(matrix, dim, NAME)?;
    let pairs = || eigen.values.iter().zip(eigen.vectors.chunks_exact(dim));
    Ok(symmetric(dim, |i, j| {
        pairs().map(|(l, v)| l.max(0.0) * v[i] * v[j]).sum()
    }))
}

/// The answer where there is no solution: what is said about it, and numbers that are none.
fn unsolved(f: usize, least_eigenvalue: f64, direction: Vec<f64>) -> MomentRegression {
    MomentRegression {
        params: vec![f64::NAN; f],
        gain: vec![f64::NAN; f * f],
        cross: vec![f64::NAN; f],
        residual_norm2: f64::NAN,
        residual_square: f64::NAN,
        fitted_noise: f64::NAN,
        degrees: f64::NAN,
        classical: vec![f64::NAN; f * f],
        robust: None,
        least_eigenvalue: least_eigenvalue.min(0.0),
        direction,
    }
}

/// Orthonormal combinations Q of the rows of F = RQ, and R⁻¹, lower triangular, row-major.
fn orthonormal(rows: &[f64], dim: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let f = rows.len() / dim;
    let (mut q, mut inverse) = (Vec::with_capacity(rows.len()), vec![0.0; f * f]);
    for (i, features) in rows.chunks_exact(dim).enumerate() {
        let length = dot(features, features).sqrt();
        let mut rest = features.to_vec();
        let mut combination = vec![0.0; f];
        combination[i] = 1.0;
        // Once more for what rounding left of the other directions.
        for _ in 0..2 {
            for (j, other) in q.chunks_exact(dim).enumerate() {
                let along = dot(&rest, other);
                rest.iter_mut()
                    .zip(other)
                    .for_each(|(r, o)| *r -= along * o);
                let earlier = &inverse[j * f..(j + 1) * f];
                combination
                    .iter_mut()
                    .zip(earlier)
                    .for_each(|(c, e)| *c -= along * e);
            }
        }
        let norm = dot(&rest, &rest).sqrt();
        if !(norm > 1e-9 * length) {
            return Err(Error::NotPositiveDefinite(NAME));
        }
        q.extend(rest.iter().map(|r| r / norm));
        for c in &mut combination {
            *c /= norm;
        }
        inverse[i * f..(i + 1) * f].copy_from_slice(&combination);
    }
    Ok((q, inverse))
}

/// How much of each regressor, in units of its length, is in a direction of the orthonormal ones, the greatest being 1.
fn shares(direction: &[f64], inverse: &[f64], features: &[f64], dim: usize) -> Vec<f64> {
    let f = direction.len();
    let in_regressors = (0..f).map(|j| {
        let coefficient: f64 = (0..f).map(|i| inverse[i * f + j] * direction[i]).sum();
        let regressor = row(features, dim, j);
        coefficient.abs() * dot(regressor, regressor).sqrt()
    });
    let sizes: Vec<f64> = in_regressors.collect();
    let greatest = sizes.iter().fold(f64::MIN_POSITIVE, |a, b| a.max(*b));
    sizes.into_iter().map(|s| s / greatest).collect()
}

fn row(matrix: &[f64], width: usize, i: usize) -> &[f64] {
    &matrix[i * width..(i + 1) * width]
}

fn symmetric(dim: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut out = vec![0.0; dim * dim];
    for i in 0..dim {
        for j in 0..=i {
            let value = entry(i, j);
            out[i * dim + j] = value;
            out[j * dim + i] = value;
        }
    }
    out
}

fn transposed(matrix: &[f64], dim: usize) -> Vec<f64> {
    (0..dim)
        .flat_map(|j| (0..dim).map(move |i| matrix[i * dim + j]))
        .collect()
}

/// `AB`.
fn product(a: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
    crate::linalg::product_transposed(a, &transposed(b, dim), dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four records of (x₀, x₁, 1, y).
    const RECORDS: [[f64; 4]; 5] = [
        [0.3, -0.5, 1.0, 0.2],
        [-0.7, 0.1, 1.0, 0.9],
        [0.2, 0.8, 1.0, -0.4],
        [0.9, 0.4, 1.0, -1.1],
        [-0.1, -0.6, 1.0, 0.5],
    ];

    fn moments(weight: impl Fn(&[f64; 4]) -> f64, width: usize) -> Vec<f64> {
        let entry = |i: usize, j: usize| {
            let terms = RECORDS.iter().map(|r| weight(r) * r[i] * r[j]);
            terms.sum::<f64>() / 5.0
        };
        symmetric(width, entry)
    }

    /// Regressors x₀ + 2, x₁ and 1: the slopes are those on x₀ and x₁.
    const FEATURES: [f64; 12] = [1.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];

    fn solved(ridge: f64) -> MomentRegression {
        let matrix = moments(|_| 1.0, 4);
        let moments = moments(|r| r[3] * r[3], 3);
        let mut penalty = [0.0; 9];
        penalty[0] = ridge;
        moment_regression(&MomentEquations {
            matrix: &matrix,
            dim: 4,
            features: &FEATURES,
            response: &[0.0, 0.0, 0.0, 1.0],
            ridge: &penalty,
            residual_moments: Some(&moments),
        })
        .unwrap()
    }

    #[test]
    fn the_normal_equations_hold_with_and_without_a_ridge() {
        for ridge in [0.0, 0.7] {
            let fit = solved(ridge);
            for j in 0..3 {
                let gradient: f64 = RECORDS
                    .iter()
                    .map(|r| {
                        let x = [r[0] + 2.0, r[1], 1.0];
                        (r[3] - dot(&x, &fit.params)) * x[j] / 5.0
                    })
                    .sum();
                let penalty = if j == 0 { ridge * fit.params[0] } else { 0.0 };
                assert!((gradient - penalty).abs() < 1e-13, "{ridge} {j} {gradient}");
            }
        }
    }

    #[test]
    fn forms_of_the_error_are_its_derivatives_in_the_matrix() {
        let fit = solved(0.3);
        assert!((fit.degrees - 3.0).abs() > 0.01 && (solved(0.0).degrees - 3.0).abs() < 1e-12);
        // A change E of the matrix moves a coefficient by w'Ev: over all isometric directions the squares sum to
        // (‖w‖²‖v‖² + (w·v)²)/2.
        let step = 1e-5;
        let mut squares = [0.0; 3];
        for i in 0..4 {
            for j in 0..=i {
                let shifted = |step: f64| {
                    let mut matrix = moments(|_| 1.0, 4);
                    let step = if i == j { step } else { step / 2.0_f64.sqrt() };
                    matrix[i * 4 + j] += step;
                    if i != j {
                        matrix[j * 4 + i] += step;
                    }
                    let mut penalty = [0.0; 9];
                    penalty[0] = 0.3;
                    let equations = MomentEquations {
                        matrix: &matrix,
                        dim: 4,
                        features: &FEATURES,
                        response: &[0.0, 0.0, 0.0, 1.0],
                        ridge: &penalty,
                        residual_moments: None,
                    };
                    moment_regression(&equations).unwrap().params
                };
                let (up, down) = (shifted(step), shifted(-step));
                for (s, (u, d)) in squares.iter_mut().zip(up.iter().zip(&down)) {
                    *s += ((u - d) / (2.0 * step)).powi(2);
                }
            }
        }
        for (j, square) in squares.into_iter().enumerate() {
            let expected = 0.5 * (fit.gain[j * 3 + j] * fit.residual_norm2 + fit.cross[j].powi(2));
            assert!(
                (square / expected - 1.0).abs() < 1e-6,
                "{square} {expected}"
            );
        }
    }

    #[test]
    fn directions_within_the_noise_name_their_regressors() {
        let mut matrix = moments(|_| 1.0, 4);
        // x₁ becomes -x₀ but for a little less than nothing.
        for i in 0..4 {
            matrix[i * 4 + 1] = -matrix[i * 4];
        }
        for j in 0..4 {
            matrix[4 + j] = -matrix[j];
        }
        matrix[5] -= 1e-3;
        let fit = moment_regression(&MomentEquations {
            matrix: &matrix,
            dim: 4,
            features: &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
            response: &[0.0, 0.0, 0.0, 1.0],
            ridge: &[0.0; 9],
            residual_moments: None,
        })
        .unwrap();
        assert!(fit.least_eigenvalue < 0.0 && fit.params[0].is_nan());
        assert!(fit.direction[0] > 0.9 && fit.direction[1] > 0.9 && fit.direction[2] < 0.1);
    }
}
