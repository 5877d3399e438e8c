//! Sums along directions, and matrices in other coordinates.

use crate::linalg::{product_transposed, transposed};

/// `Σ_j overlaps_ij values_j` for every i.
pub(super) fn along(overlaps: &[f64], values: &[f64]) -> Vec<f64> {
    let rows = overlaps.chunks_exact(values.len());
    rows.map(|row| weighted(row, values)).collect()
}

pub(super) fn weighted(weights: &[f64], values: &[f64]) -> f64 {
    weights.iter().zip(values).map(|(w, v)| w * v).sum()
}

/// `U A Uᵀ` for a symmetric A, as for eigenvectors that are the rows of U.
pub(super) fn sandwich(matrix: &[f64], vectors: &[f64], dim: usize) -> Vec<f64> {
    product_transposed(&product_transposed(vectors, matrix, dim), vectors, dim)
}

/// `Uᵀ A U`.
pub(super) fn rotate_back(matrix: &[f64], vectors: &[f64], dim: usize) -> Vec<f64> {
    sandwich(matrix, &transposed(vectors, dim), dim)
}

/// `Uᵀ diag(values) U`.
pub(super) fn rotate_back_diagonal(values: &[f64], vectors: &[f64]) -> Vec<f64> {
    rotate_diagonal(values, &transposed(vectors, values.len()), values.len())
}

/// `U diag(values) Uᵀ`.
pub(super) fn rotate_diagonal(values: &[f64], vectors: &[f64], dim: usize) -> Vec<f64> {
    let scaled: Vec<f64> = vectors
        .chunks_exact(dim)
        .flat_map(|vector| vector.iter().zip(values).map(|(u, v)| u * v))
        .collect();
    product_transposed(&scaled, vectors, dim)
}

pub(super) fn diagonal_of(matrix: &[f64], dim: usize) -> Vec<f64> {
    matrix.iter().step_by(dim + 1).copied().collect()
}

pub(super) fn trace(matrix: &[f64], dim: usize) -> f64 {
    matrix.iter().step_by(dim + 1).sum()
}

pub(super) fn diagonal(values: &[f64]) -> Vec<f64> {
    let dim = values.len();
    let mut out = vec![0.0; dim * dim];
    for (entry, value) in out.iter_mut().step_by(dim + 1).zip(values) {
        *entry = *value;
    }
    out
}
