//! Noise on symmetric matrices: isometric coordinates, in which the Euclidean norm is the Frobenius norm.
//!
//! A symmetric `dim`×`dim` matrix has `D = dim(dim+1)/2` isometric coordinates: the diagonal as it is, each off-diagonal
//! entry times √2. So a vector mechanism on `R^D` calibrated to a Frobenius sensitivity, mapped by [`from_isometric`], is
//! the mechanism on matrices.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use crate::bugs::{self, Bug};

/// Number `dim(dim+1)/2` of isometric coordinates of a symmetric `dim`×`dim` matrix.
pub fn isometric_dim(dim: usize) -> usize {
    dim * (dim + 1) / 2
}

/// The symmetric matrix, row-major, whose [`isometric_dim`] isometric coordinates (lower triangle, row by row) are given.
pub fn from_isometric(dim: usize, coordinates: &[f64]) -> Vec<f64> {
    let factor = bugs::factor(Bug::SquareDimension, SQRT_2);
    from_lower_triangle(dim, coordinates, FRAC_1_SQRT_2 * factor)
}

/// The lower triangle, row by row, of a row-major matrix.
pub fn lower_triangle(dim: usize, matrix: &[f64]) -> Vec<f64> {
    let rows = matrix.chunks_exact(dim.max(1)).enumerate();
    rows.flat_map(|(row, entries)| &entries[..=row]).copied().collect()
}

/// The symmetric matrix with these entries in its lower triangle, those off the diagonal times `factor`.
pub fn from_lower_triangle(dim: usize, coordinates: &[f64], factor: f64) -> Vec<f64> {
    debug_assert_eq!(coordinates.len(), isometric_dim(dim));
    let mut matrix = vec![0.0; dim * dim];
    let lower_triangle = (0..dim).flat_map(|row| (0..=row).map(move |column| (row, column)));
    for ((row, column), coordinate) in lower_triangle.zip(coordinates) {
        let entry = if row == column {
            *coordinate
        } else {
            coordinate * factor
        };
        matrix[row * dim + column] = entry;
        matrix[column * dim + row] = entry;
    }
    matrix
}

/// The symmetric matrix A, row-major, of a form `θᵀAθ` whose [`isometric_dim`] coefficients of θᵢθⱼ, j ≤ i, are given row by row: those off the
/// diagonal are twice the entry.
pub fn from_monomials(dim: usize, coefficients: &[f64]) -> Vec<f64> {
    from_lower_triangle(dim, coefficients, 0.5)
}

/// `(E + Eᵀ)/2` for a row-major matrix E.
pub fn from_entries(dim: usize, entries: &[f64]) -> Vec<f64> {
    let mut matrix = entries.to_vec();
    for row in 0..dim {
        for column in 0..row {
            let mean = 0.5 * (matrix[row * dim + column] + matrix[column * dim + row]);
            matrix[row * dim + column] = mean;
            matrix[column * dim + row] = mean;
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_isometric() {
        let coordinates = [1.0, -2.0, 3.0, 0.5, 4.0, -1.5];
        let matrix = from_isometric(3, &coordinates);
        let square = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>();
        assert!((square(&matrix) - square(&coordinates)).abs() < 1e-14);
        for (entry, expected) in [(0, 1.0_f64), (4, 3.0), (8, -1.5)] {
            assert_eq!(matrix[entry].to_bits(), expected.to_bits());
        }
        assert!((matrix[7] * std::f64::consts::SQRT_2 - 4.0).abs() < 1e-15);
        for (row, column) in [(0, 1), (0, 2), (1, 2)] {
            assert_eq!(matrix[row * 3 + column].to_bits(), matrix[column * 3 + row].to_bits());
        }
    }

    #[test]
    fn monomials_and_entries_are_coefficients_of_the_form() {
        let theta = [0.3, -1.2, 0.7];
        let form = |a: &[f64]| -> f64 { (0..9).map(|e| a[e] * theta[e / 3] * theta[e % 3]).sum() };
        let coefficients = [1.0, -2.0, 3.0, 0.5, 4.0, -1.5];
        let pairs = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)];
        let monomials = pairs.iter().zip(coefficients);
        let expected: f64 = monomials.map(|((i, j), c)| c * theta[*i] * theta[*j]).sum();
        assert!((form(&from_monomials(3, &coefficients)) - expected).abs() < 1e-14);
        let entries: Vec<f64> = (0..9).map(f64::from).collect();
        let matrix = from_entries(3, &entries);
        assert!((form(&matrix) - form(&entries)).abs() < 1e-13);
        assert_eq!(matrix[1].to_bits(), matrix[3].to_bits());
    }
}
