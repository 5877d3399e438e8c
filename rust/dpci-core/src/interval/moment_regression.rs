//! Linear regressions from one released moment matrix: coefficients, and what their errors are made of.
//!
//! `docs/proofs/linear_regression.md` has the formulas: the error of a contrast is `c'A⁻¹X'r/n`, of the sample, plus `w'Ev`, of the noise E in
//! the matrix, where `w = F'A⁻¹c` and v is the residual as a combination of the columns.

use crate::error::check_length;
use crate::linalg::vector::{self, dot};
use crate::linalg::{Cholesky, Eigen, product_transposed, transposed};
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
    /// Ridge that is added to the second moments of the regressors, row-major.
    pub ridge: &'a [f64],
    /// Released moments of the first columns, each record weighted by its squared residual; row-major.
    pub residual_moments: Option<&'a [f64]>,
    /// Where one step of Newton's method starts that takes the place of the solution; `None`: the equations are solved.
    pub start: Option<Start<'a>>,
}

/// Coefficients of the regressors, and the released mean of these times their residuals.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The coefficients.
    pub params: &'a [f64],
    /// The mean of the regressors times the residuals.
    pub gradient: &'a [f64],
}

/// The solution, and the forms from which the variance of every contrast `c'θ` follows. Matrices are `params × params`, row-major.
#[derive(Debug, Clone)]
pub struct MomentRegression {
    /// Coefficients of the regressors.
    pub params: Vec<f64>,
    /// `‖w‖²` is `c'Gc`.
    pub gain: Vec<f64>,
    /// `w·u` is `c'p`: u is v, or after a step by which that moves the residual, as the error is `w'Eu`.
    pub cross: Vec<f64>,
    /// `‖u‖²`.
    pub error_norm2: f64,
    /// `‖v‖²`.
    pub residual_norm2: f64,
    /// `v'Nv`: the mean squared residual, with the noise in it.
    pub residual_square: f64,
    /// By how many variances of an isometric coordinate [`Self::residual_square`] is too small, as the noise in θ is fitted.
    pub fitted_noise: f64,
    /// By how much the mean squared residual at the start is above that after the step; 0 without.
    pub step_square: f64,
    /// `tr A⁻¹`, which times the variance of a coordinate of the gradient's noise is how much that step is too long.
    pub inverse_trace: f64,
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
pub fn moment_regression(equations: &MomentEquations<'_>) -> Result<MomentRegression> {
    let MomentEquations { matrix, dim, .. } = *equations;
    let f = equations.features.len() / dim;
    if let Some(start) = equations.start {
        check_length("the coefficients of a start", f, start.params.len())?;
        check_length("the gradient of a start", f, start.gradient.len())?;
    }
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
        plain.clone()
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
    let right: Vec<f64> = nq.chunks_exact(dim).map(|r| dot(r, equations.response)).collect();
    let step = equations.start.map(|start| {
        let orthonormal = (&q[..], &inverse[..]);
        Step::of(start, orthonormal, equations, (&half, &plain), &cholesky)
    });
    let phi = match &step {
        None => cholesky.solve(&right),
        Some(step) => step.params.clone(),
    };
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
    let fitted_noise = 0.5 * (trace * residual_norm2 + dot(&qv, &cholesky.solve(&qv)));
    let (moving, error_norm2, step_square) = match step {
        None => (qv.clone(), residual_norm2, 0.0),
        Some(Step { by, square, .. }) => (by.clone(), dot(&by, &by), square),
    };
    let robust = equations.residual_moments.map(|moments| {
        let p = moments.len().isqrt();
        let times: Vec<f64> = q
            .chunks_exact(dim)
            .flat_map(|q| moments.chunks_exact(p).map(|m| dot(m, &q[..p])))
            .collect();
        form(&symmetric(f, |i, j| dot(&row(&q, dim, i)[..p], row(&times, p, j))))
    });
    let columns_of = |i: usize| row(&columns, f, i);
    Ok(MomentRegression {
        params: (0..f)
            .map(|j| (0..f).map(|i| inverse[i * f + j] * phi[i]).sum())
            .collect(),
        gain: symmetric(f, |i, j| dot(columns_of(i), columns_of(j))),
        cross: (0..f).map(|j| dot(columns_of(j), &moving)).collect(),
        error_norm2,
        residual_norm2,
        residual_square: dot(&v, &times_matrix(&v)),
        fitted_noise,
        step_square,
        inverse_trace: trace,
        degrees: dot(&w, &varying),
        classical: form(&varying),
        robust,
        least_eigenvalue,
        direction,
    })
}

/// One step of Newton's method, in the coefficients of the orthonormal regressors.
struct Step {
    /// Where it ends.
    params: Vec<f64>,
    by: Vec<f64>,
    /// By how much it lowers the mean squared residual.
    square: f64,
}

impl Step {
    /// F = RQ: coefficients of F times R' are those of Q, and R⁻¹ times the mean of Fz is that of Qz. `half` is R⁻¹ times the ridge, `plain` the
    /// second moments of Qz.
    fn of(
        start: Start<'_>,
        (q, inverse): (&[f64], &[f64]),
        equations: &MomentEquations<'_>,
        (half, plain): (&[f64], &[f64]),
        cholesky: &Cholesky,
    ) -> Self {
        let f = start.params.len();
        let times = |matrix: &[f64], vector: &[f64]| -> Vec<f64> {
            matrix.chunks_exact(f).map(|row| dot(row, vector)).collect()
        };
        let at = coordinates(q, equations.features, start.params, equations.dim);
        let gradient = times(inverse, start.gradient);
        let ridges = times(&product(half, &transposed(inverse, f), f), &at);
        let slope: Vec<f64> = gradient.iter().zip(ridges).map(|(g, r)| g - r).collect();
        let by = cholesky.solve(&slope);
        Self {
            params: at.iter().zip(&by).map(|(a, s)| a + s).collect(),
            square: 2.0 * dot(&by, &gradient) - dot(&by, &times(plain, &by)),
            by,
        }
    }
}

/// The coefficients of the orthonormal combinations Q of the rows of F that have the same value as these of F: `Q F'θ`.
fn coordinates(q: &[f64], features: &[f64], params: &[f64], dim: usize) -> Vec<f64> {
    let mut whole = vec![0.0; dim];
    for (p, row) in params.iter().zip(features.chunks_exact(dim)) {
        whole.iter_mut().zip(row).for_each(|(w, x)| *w += p * x);
    }
    q.chunks_exact(dim).map(|row| dot(row, &whole)).collect()
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
        error_norm2: f64::NAN,
        residual_norm2: f64::NAN,
        residual_square: f64::NAN,
        fitted_noise: f64::NAN,
        step_square: f64::NAN,
        inverse_trace: f64::NAN,
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
                rest.iter_mut().zip(other).for_each(|(r, o)| *r -= along * o);
                let earlier = &inverse[j * f..(j + 1) * f];
                combination.iter_mut().zip(earlier).for_each(|(c, e)| *c -= along * e);
            }
        }
        let norm = dot(&rest, &rest).sqrt();
        if !(norm > 1e-9 * length) {
            return Err(Error::NotPositiveDefinite(NAME));
        }
        q.extend(rest.iter().map(|r| r / norm));
        vector::divide(&mut combination, norm);
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

/// `AB`.
fn product(a: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
    product_transposed(a, &transposed(b, dim), dim)
}

#[cfg(test)]
mod tests;
