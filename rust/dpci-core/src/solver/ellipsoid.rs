//! The ellipsoid method (Yudin & Nemirovski 1976; Shor 1977): slow, but its number of steps depends on no data.
//!
//! A gradient at the centre of an ellipsoid that holds the minimiser cuts it in half; the next ellipsoid is the least that holds the
//! half with the minimiser. Each has at most `exp(-1/(2(d+1)))` times the volume of the last.

use crate::linalg::vector;

/// `centre + B·z` over all `‖z‖ ≤ 1`.
pub(crate) struct Ellipsoid {
    centre: Vec<f64>,
    /// B, row-major: it keeps the digits that the long axes of `BBᵀ` would take from the short ones.
    shape: Vec<f64>,
}

impl Ellipsoid {
    /// The ball of this radius around zero.
    pub(crate) fn ball(dim: usize, radius: f64) -> Self {
        let mut shape = vec![0.0; dim * dim];
        for entry in shape.iter_mut().step_by(dim + 1) {
            *entry = radius;
        }
        Self {
            centre: vec![0.0; dim],
            shape,
        }
    }

    pub(crate) fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// The least ellipsoid that holds all points `x` of this one with `gradientᵀ(x - centre) ≤ 0`.
    pub(crate) fn cut(&mut self, gradient: &[f64]) {
        let dim = self.centre.len();
        let d = dim as f64;
        // Along u = Bᵀg/‖Bᵀg‖ it shrinks to d/(d+1), across by this much it grows; in one dimension there is no across.
        let across = if dim == 1 { 1.0 } else { d / (d * d - 1.0).sqrt() };
        let mut unit = vec![0.0; dim];
        for (row, g) in self.shape.chunks_exact(dim).zip(gradient) {
            for (u, b) in unit.iter_mut().zip(row) {
                *u += g * b;
            }
        }
        let norm = vector::norm(&unit);
        vector::divide(&mut unit, norm);
        for (row, c) in self.shape.chunks_exact_mut(dim).zip(&mut self.centre) {
            let step = vector::dot(row, &unit);
            *c -= step / (d + 1.0);
            let along = (d / (d + 1.0) - across) * step;
            for (b, u) in row.iter_mut().zip(&unit) {
                *b = across * *b + along * u;
            }
        }
    }
}

/// After so many cuts from a ball of radius `B` around 0, which holds the minimiser, some centre had a certificate `‖∇J‖/λ` of at most `target`, for every
/// smooth convex `J` of this condition, the ratio of the bounds on the eigenvalues of its Hessian: `4d(d+1)·ln(2κB/target)`.
pub(crate) fn greatest_cuts(dim: usize, condition: f64, radius: f64, target: f64) -> f64 {
    let d = dim as f64;
    4.0 * d * (d + 1.0) * (2.0 * condition * (radius / target)).ln().max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_keeps_the_half_and_shrinks() {
        for (dim, mut volume) in [(1, 3.0), (2, 9.0), (5, 243.0)] {
            let mut ellipsoid = Ellipsoid::ball(dim, 3.0);
            for round in 0..30 {
                let before = Ellipsoid {
                    centre: ellipsoid.centre.clone(),
                    shape: ellipsoid.shape.clone(),
                };
                let gradient: Vec<f64> = (0..dim).map(|j| ((7 * round + 3 * j + 1) as f64).sin()).collect();
                ellipsoid.cut(&gradient);
                for point in 0..40 {
                    let mut z: Vec<f64> = (0..dim).map(|j| ((13 * point + 5 * j) as f64).cos()).collect();
                    let norm = vector::norm(&z);
                    for z in &mut z {
                        *z /= norm;
                    }
                    let x = before.at(&z);
                    let moved: Vec<f64> = x.iter().zip(&before.centre).map(|(x, c)| x - c).collect();
                    if vector::dot(&gradient, &moved) <= 0.0 {
                        assert!(ellipsoid.relative(&x) <= 1.0 + 1e-9, "{dim} {round}");
                    }
                }
                let next = ellipsoid.volume();
                assert!(next <= volume * (-0.5 / (dim as f64 + 1.0)).exp() * (1.0 + 1e-9));
                volume = next;
            }
        }
    }

    impl Ellipsoid {
        fn at(&self, z: &[f64]) -> Vec<f64> {
            let rows = self.shape.chunks_exact(z.len()).zip(&self.centre);
            rows.map(|(row, c)| c + vector::dot(row, z)).collect()
        }

        /// The inverse of B times a vector, and the determinant, by elimination.
        fn solved(&self, mut rhs: Vec<f64>) -> (Vec<f64>, f64) {
            let dim = rhs.len();
            let mut rows: Vec<Vec<f64>> = self.shape.chunks_exact(dim).map(<[f64]>::to_vec).collect();
            let mut determinant = 1.0_f64;
            for k in 0..dim {
                let pivot = (k..dim)
                    .max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs()))
                    .unwrap();
                rows.swap(k, pivot);
                rhs.swap(k, pivot);
                determinant *= rows[k][k];
                let pivot_row = rows[k].clone();
                for i in 0..dim {
                    if i != k {
                        let share = rows[i][k] / rows[k][k];
                        for (entry, p) in rows[i].iter_mut().zip(&pivot_row) {
                            *entry -= share * p;
                        }
                        rhs[i] -= share * rhs[k];
                    }
                }
            }
            let solved = rhs.iter().enumerate().map(|(k, r)| r / rows[k][k]).collect();
            (solved, determinant.abs())
        }

        fn relative(&self, x: &[f64]) -> f64 {
            let moved = x.iter().zip(&self.centre).map(|(x, c)| x - c).collect();
            vector::norm(&self.solved(moved).0)
        }

        fn volume(&self) -> f64 {
            self.solved(self.centre.clone()).1
        }
    }
}
