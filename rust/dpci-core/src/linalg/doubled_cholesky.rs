//! Cholesky factorisation in doubled precision, for systems whose condition is beyond f64.

use super::doubled::Doubled;
use crate::{Error, Result};

/// The factor `L` of a symmetric positive definite matrix `LLᵀ`.
#[derive(Debug)]
pub struct DoubledCholesky {
    dim: usize,
    /// Lower triangle, row-major.
    factor: Vec<Doubled>,
    /// Reciprocals of the diagonal.
    reciprocals: Vec<Doubled>,
}

impl DoubledCholesky {
    /// Factorises `shift·I + Σ weights[i]·rowᵢ rowᵢᵀ` for contiguous rows of `dim` entries.
    pub fn of_gram(rows: &[f64], dim: usize, weights: &[f64], shift: f64) -> Result<Self> {
        let mut factor = vec![Doubled::default(); dim * dim];
        for (row, &weight) in rows.chunks_exact(dim).zip(weights) {
            for (i, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                let scaled = Doubled::product(weight, x);
                for (f, &v) in factor[i * dim..=i * dim + i].iter_mut().zip(row) {
                    *f = *f + scaled * v;
                }
            }
        }
        let mut reciprocals: Vec<Doubled> = Vec::with_capacity(dim);
        for i in 0..dim {
            factor[i * dim + i] = factor[i * dim + i] + shift.into();
            let (above, below) = factor.split_at_mut(i * dim);
            for j in 0..i {
                let other = &above[j * dim..j * dim + j];
                let known = product(&below[..j], other);
                below[j] = (below[j] - known) * reciprocals[j];
            }
            let pivot = below[i] - product(&below[..i], &below[..i]);
            if !(pivot.rounded() > 0.0) || !pivot.rounded().is_finite() {
                return Err(Error::NotPositiveDefinite("a system in doubled precision"));
            }
            let reciprocal = pivot.reciprocal_root();
            below[i] = pivot * reciprocal;
            reciprocals.push(reciprocal);
        }
        Ok(Self {
            dim,
            factor,
            reciprocals,
        })
    }

    /// Replaces `rhs` by the solution.
    pub fn solve_in_place(&self, rhs: &mut [Doubled]) {
        let dim = self.dim;
        for i in 0..dim {
            let known = product(&self.factor[i * dim..i * dim + i], &rhs[..i]);
            rhs[i] = (rhs[i] - known) * self.reciprocals[i];
        }
        for i in (0..dim).rev() {
            let value = rhs[i] * self.reciprocals[i];
            rhs[i] = value;
            let row = &self.factor[i * dim..i * dim + i];
            for (r, &f) in rhs[..i].iter_mut().zip(row) {
                *r = *r - value * f;
            }
        }
    }
}

fn product(a: &[Doubled], b: &[Doubled]) -> Doubled {
    let terms = a.iter().zip(b);
    terms.fold(Doubled::default(), |sum, (&a, &b)| sum + a * b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_where_f64_sees_a_singular_matrix() {
        // Two rows that differ by 10⁻¹⁰, weighted so that the condition is 10²⁴.
        let rows = [1.0, 0.0, 1.0, 1e-10];
        let (weights, shift) = ([1e22, 1e22], 0.01);
        let solution = [3.0, -7.0].map(Doubled::from);
        let times = |x: &[Doubled]| -> Vec<Doubled> {
            let mut out: Vec<Doubled> = x.iter().map(|&v| v * shift).collect();
            for (row, &w) in rows.chunks_exact(2).zip(&weights) {
                let u = Doubled::dot(row, x) * w;
                for (o, &r) in out.iter_mut().zip(row) {
                    *o = *o + u * r;
                }
            }
            out
        };
        let factor = DoubledCholesky::of_gram(&rows, 2, &weights, shift).unwrap();
        let mut found = times(&solution);
        factor.solve_in_place(&mut found);
        for (f, s) in found.iter().zip(solution) {
            assert!((*f - s).rounded().abs() < 1e-5, "{found:?}");
        }
        assert!(DoubledCholesky::of_gram(&[1.0, 1.0], 2, &[1.0], 0.0).is_err());
        assert!(DoubledCholesky::of_gram(&[f64::NAN], 1, &[1.0], 0.0).is_err());
    }
}
