//! Cholesky factorisation, symmetric eigendecomposition and the projections made from it.

use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{Llt, PartialPivLu, Solve};
use faer::{Accum, MatMut, MatRef, Par, Side};

use crate::{Error, Result};

/// Cholesky factorisation of a symmetric positive definite matrix.
#[derive(Debug)]
pub struct Cholesky {
    dim: usize,
    factor: Llt<f64>,
}

impl Cholesky {
    /// Factorises `matrix` (row-major, `dim × dim`); `name` is used in the error.
    pub fn new(matrix: &[f64], dim: usize, name: &'static str) -> Result<Self> {
        if dim == 0 || !matrix.iter().all(|v| v.is_finite()) {
            return Err(Error::NotPositiveDefinite(name));
        }
        let view = MatRef::from_row_major_slice(matrix, dim, dim);
        let factor = Llt::new(view, Side::Lower).map_err(|_| Error::NotPositiveDefinite(name))?;
        Ok(Self { dim, factor })
    }

    /// Replaces `rhs` by the solution of `matrix · x = rhs`. `rhs` holds one or more vectors of length `dim`, one after another.
    ///
    /// # Panics
    /// If the length of `rhs` is not a multiple of `dim`.
    pub fn solve_in_place(&self, rhs: &mut [f64]) {
        assert!(
            rhs.len().is_multiple_of(self.dim),
            "right-hand sides must have the factor's dimension"
        );
        let count = rhs.len() / self.dim;
        self.factor
            .solve_in_place(MatMut::from_column_major_slice_mut(rhs, self.dim, count));
    }

    /// Solves for one or more right-hand sides, see [`Cholesky::solve_in_place`].
    pub fn solve(&self, rhs: &[f64]) -> Vec<f64> {
        let mut x = rhs.to_vec();
        self.solve_in_place(&mut x);
        x
    }
}

/// Eigendecomposition `V diag(values) Vᵀ` of a symmetric matrix.
#[derive(Debug)]
pub struct Eigen {
    /// Eigenvalues in nondecreasing order.
    pub values: Vec<f64>,
    /// Eigenvectors one after another, each of length `dim`.
    pub vectors: Vec<f64>,
}

impl Eigen {
    /// Decomposes `matrix` (row-major, `dim × dim`).
    pub fn new(matrix: &[f64], dim: usize, name: &'static str) -> Result<Self> {
        if !matrix.iter().all(|v| v.is_finite()) {
            return Err(Error::NotPositiveDefinite(name));
        }
        let view = MatRef::from_row_major_slice(matrix, dim, dim);
        let eigen = view
            .self_adjoint_eigen(Side::Lower)
            .map_err(|_| Error::NotPositiveDefinite(name))?;
        let values = eigen.S().column_vector().iter().copied().collect();
        let vectors = (0..dim)
            .flat_map(|j| (0..dim).map(move |i| (i, j)))
            .map(|(i, j)| eigen.U()[(i, j)])
            .collect();
        Ok(Self { values, vectors })
    }

    /// `V diag(values) Vᵀ`, exactly symmetric.
    pub fn recompose(&self) -> Vec<f64> {
        let dim = self.values.len();
        let mut out = vec![0.0; dim * dim];
        for (value, vector) in self.values.iter().zip(self.vectors.chunks_exact(dim)) {
            for (i, row) in out.chunks_exact_mut(dim).enumerate() {
                let scaled = value * vector[i];
                for (o, v) in row[..=i].iter_mut().zip(vector) {
                    *o += scaled * v;
                }
            }
        }
        mirror_lower(&mut out, dim);
        out
    }
}

/// The minimiser of `xᵀAx - 2bᵀx` over the span of the eigenvectors of `matrix` = A whose eigenvalues are positive beyond rounding; 0 if
/// there are none.
pub fn solve_positive_part(matrix: &[f64], dim: usize, name: &'static str, rhs: &[f64]) -> Result<Vec<f64>> {
    let eigen = Eigen::new(matrix, dim, name)?;
    let greatest = eigen.values.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
    let rounding = dim as f64 * f64::EPSILON * greatest;
    let mut solution = vec![0.0; dim];
    for (value, vector) in eigen.values.iter().zip(eigen.vectors.chunks_exact(dim)) {
        if *value > rounding {
            let coordinate = super::vector::dot(vector, rhs) / value;
            for (s, v) in solution.iter_mut().zip(vector) {
                *s += coordinate * v;
            }
        }
    }
    Ok(solution)
}

/// Replaces every eigenvalue by `map(eigenvalue)`; the result is exactly symmetric.
pub fn project_eigenvalues(
    matrix: &[f64],
    dim: usize,
    name: &'static str,
    map: impl Fn(f64) -> f64,
) -> Result<Vec<f64>> {
    let mut eigen = Eigen::new(matrix, dim, name)?;
    for value in &mut eigen.values {
        *value = map(*value);
    }
    Ok(eigen.recompose())
}

/// `ABᵀ` of two row-major `dim × dim` matrices.
///
/// # Panics
/// If a length is not `dim²`.
pub fn product_transposed(a: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; dim * dim];
    matmul(
        MatMut::from_row_major_slice_mut(&mut out, dim, dim),
        Accum::Replace,
        MatRef::from_row_major_slice(a, dim, dim),
        MatRef::from_row_major_slice(b, dim, dim).transpose(),
        1.0,
        Par::Seq,
    );
    out
}

/// A square matrix with its rows as columns.
pub fn transposed(matrix: &[f64], dim: usize) -> Vec<f64> {
    let entry = |k: usize| matrix[k % dim * dim + k / dim];
    (0..dim * dim).map(entry).collect()
}

/// The product of a row-major matrix and a vector.
pub fn times(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    let rows = matrix.chunks_exact(vector.len());
    rows.map(|row| super::vector::dot(row, vector)).collect()
}

/// The unit matrix.
pub fn identity(dim: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; dim * dim];
    add_diagonal(&mut matrix, dim, 1.0);
    matrix
}

/// Solves `matrix · x = rhs` for a square row-major matrix and one or more vectors `rhs`, one after another; `name` is used in the error.
pub fn solve_square(matrix: &[f64], rhs: &[f64], dim: usize, name: &'static str) -> Result<Vec<f64>> {
    let mut solution = rhs.to_vec();
    let factor = PartialPivLu::new(MatRef::from_row_major_slice(matrix, dim, dim));
    let count = rhs.len() / dim.max(1);
    factor.solve_in_place(MatMut::from_column_major_slice_mut(&mut solution, dim, count));
    if solution.iter().all(|v| v.is_finite()) {
        Ok(solution)
    } else {
        Err(Error::NotPositiveDefinite(name))
    }
}

/// Adds `shift` to the diagonal.
pub fn add_diagonal(matrix: &mut [f64], dim: usize, shift: f64) {
    for value in matrix.iter_mut().step_by(dim + 1) {
        *value += shift;
    }
}

/// Copies the lower triangle to the upper one.
pub(crate) fn mirror_lower(matrix: &mut [f64], dim: usize) {
    for i in 0..dim {
        for j in 0..i {
            matrix[j * dim + i] = matrix[i * dim + j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_system_is_solved_and_a_singular_one_refused() {
        let matrix = [0.0, 2.0, 1.0, -3.0, 0.5, 0.0, 1.0, 1.0, 4.0];
        let expected = [1.0, -2.0, 0.5, 3.0, 0.0, -1.0];
        let product = |x: &[f64]| -> Vec<f64> {
            let rows = matrix.chunks_exact(3);
            rows.map(|row| super::super::vector::dot(row, x)).collect()
        };
        let rhs: Vec<f64> = expected.chunks_exact(3).flat_map(product).collect();
        let found = solve_square(&matrix, &rhs, 3, "it").unwrap();
        assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-14));
        assert!(solve_square(&[1.0, 2.0, 2.0, 4.0], &[1.0, 0.0], 2, "it").is_err());
        assert!(solve_square(&[f64::NAN; 4], &[1.0, 0.0], 2, "it").is_err());
    }

    fn example() -> Vec<f64> {
        vec![4.0, 1.0, -0.5, 1.0, 3.0, 0.25, -0.5, 0.25, 2.0]
    }

    #[test]
    fn cholesky_solves_and_refuses_indefinite_matrices() {
        let a = example();
        let x = Cholesky::new(&a, 3, "a").unwrap().solve(&[1.0, 2.0, 3.0]);
        for (row, b) in a.chunks(3).zip([1.0, 2.0, 3.0]) {
            let ax: f64 = row.iter().zip(&x).map(|(r, x)| r * x).sum();
            assert!((ax - b).abs() < 1e-14);
        }
        assert!(Cholesky::new(&[1.0, 2.0, 2.0, 1.0], 2, "a").is_err());
        assert!(Cholesky::new(&[f64::NAN], 1, "a").is_err());
        assert!(Cholesky::new(&[], 0, "a").is_err());
    }

    #[test]
    fn products_are_those_of_the_definition() {
        let product = product_transposed(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 2);
        for (p, expected) in product.iter().zip([17.0, 23.0, 39.0, 53.0]) {
            assert!((p - expected).abs() < 1e-13);
        }
    }

    #[test]
    fn directions_that_are_not_positive_are_dropped() {
        // Eigenvalues 3 and -1 along (1, 1) and (1, -1).
        let x = solve_positive_part(&[1.0, 2.0, 2.0, 1.0], 2, "a", &[3.0, 1.0]).unwrap();
        assert!(x.iter().all(|v| (v - 2.0 / 3.0).abs() < 1e-14));
        for nothing in [[-1.0, 0.0, 0.0, -2.0], [0.0; 4]] {
            let x = solve_positive_part(&nothing, 2, "a", &[1.0, 1.0]).unwrap();
            assert!(x.iter().all(|v| v.abs() < f64::MIN_POSITIVE));
        }
        let a = example();
        let exact = Cholesky::new(&a, 3, "a").unwrap().solve(&[1.0, 2.0, 3.0]);
        let x = solve_positive_part(&a, 3, "a", &[1.0, 2.0, 3.0]).unwrap();
        assert!(x.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-14));
        assert!(solve_positive_part(&[f64::NAN], 1, "a", &[1.0]).is_err());
    }

    #[test]
    fn eigenvalues_are_mapped_and_the_identity_map_recomposes() {
        let a = example();
        let same = project_eigenvalues(&a, 3, "a", |v| v).unwrap();
        assert!(a.iter().zip(&same).all(|(x, y)| (x - y).abs() < 1e-14));
        let clamped = project_eigenvalues(&[1.0, 2.0, 2.0, 1.0], 2, "a", |v| v.max(0.0)).unwrap();
        assert!(clamped.iter().all(|v| (v - 1.5).abs() < 1e-14));
    }
}
