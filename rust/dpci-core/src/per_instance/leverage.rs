//! Upper bounds on `xᵀH⁻¹x` for many rows from a noisy Hessian, after one eigendecomposition.

use std::f64::consts::LN_2;

use crate::exec::BLOCK;
use crate::linalg::Eigen;
use crate::{Error, Result};

/// Rows start at the shares of odds `4ᵏ`, |k| at most this, of the greatest share.
const GRID: i32 = 6;

/// Newton steps for each row, at most from one share of the grid to the next.
const REFINEMENTS: usize = 4;

/// Distance of neighbouring shares of the grid in log-odds.
const LN_4: f64 = 2.0 * LN_2;

/// Least eigenvalue of a combination, as a part of the ridge: keeps the inverse well conditioned and costs a part of 10⁻⁶.
const MARGIN: f64 = 1e-6;

/// A bound `xᵀH⁻¹x ≤ Σ wⱼ·(vⱼᵀx)²` for every row of weights w that it knows, v the eigenvectors.
#[derive(Debug, Clone)]
pub(super) struct LeverageBound {
    /// Eigenvectors, one after another.
    pub(super) vectors: Vec<f64>,
    ridge: f64,
    /// Eigenvalues that bound H below, less the ridge.
    gaps: Vec<f64>,
    /// Shares s and their weights `1/(ridge + s·gap)`; the first is s = 0, the ridge alone.
    grid: Vec<(f64, Vec<f64>)>,
    refine: bool,
}

impl LeverageBound {
    /// `H ≥ ridge·I` and `H ≥ noisy - radius·I`, hence every combination with shares 1 - s and s where that is positive definite.
    pub(super) fn interpolated(noisy: &[f64], dim: usize, radius: f64, ridge: f64) -> Result<Self> {
        let eigen = decomposed(noisy, dim)?;
        let slack = decomposition_error(&eigen);
        let gaps: Vec<f64> = eigen.values.iter().map(|v| v - radius - slack - ridge).collect();
        // ridge + s·gap stays at least MARGIN·ridge for the least gap.
        let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
        let floor = (MARGIN - 1.0) * ridge;
        let greatest_share = floor / least.min(floor);
        let shares = std::iter::once(0.0)
            .chain((-GRID..=GRID).map(|k| greatest_share / (1.0 + 4.0_f64.powi(-k))))
            .chain(std::iter::once(greatest_share));
        let grid = shares
            .map(|s| (s, gaps.iter().map(|gap| 1.0 / (ridge + s * gap)).collect()))
            .collect();
        Ok(Self {
            vectors: eigen.vectors,
            ridge,
            gaps,
            grid,
            refine: true,
        })
    }

    /// `(3/2)·xᵀnoisy⁻¹x`, which holds where twice the greatest eigenvalue of the noise is at most the ridge: then
    /// `noisy ≤ H + ridge/2·I ≤ (3/2)H`. A `noisy` that is not positive definite leaves the ridge alone.
    pub(super) fn paper(noisy: &[f64], dim: usize, ridge: f64) -> Result<Self> {
        let eigen = decomposed(noisy, dim)?;
        let slack = decomposition_error(&eigen);
        let mut grid = vec![(0.0, vec![1.0 / ridge; dim])];
        if eigen.values.iter().all(|v| v - slack > 0.0) {
            grid.push((1.0, eigen.values.iter().map(|v| 1.5 / (v - slack)).collect()));
        }
        Ok(Self {
            vectors: eigen.vectors,
            ridge,
            gaps: vec![0.0; dim],
            grid,
            refine: false,
        })
    }

    /// Writes the bound of each row of a block, and the share at which it holds. `squares` holds `(vⱼᵀx)²` by eigenvector, then by row.
    pub(super) fn fill(&self, squares: &[f64], out: &mut [f64], shares: &mut [f64]) {
        let n = out.len();
        let mut nearest = [0_usize; BLOCK];
        out.fill(f64::INFINITY);
        for (k, (_, weights)) in self.grid.iter().enumerate() {
            let mut sums = [0.0; BLOCK];
            for (weight, squares) in weights.iter().zip(squares.chunks_exact(n)) {
                for (sum, q) in sums.iter_mut().zip(squares) {
                    *sum += weight * q;
                }
            }
            for ((least, nearest), sum) in out.iter_mut().zip(&mut nearest).zip(sums) {
                if sum < *least {
                    (*least, *nearest) = (sum, k);
                }
            }
        }
        for (share, k) in shares.iter_mut().zip(nearest) {
            *share = self.grid[k].0;
        }
        if self.refine {
            self.refine(squares, &nearest[..n], out, shares);
        }
    }

    /// The weights w of a share that [`Self::fill`] wrote.
    pub(super) fn weights(&self, share: f64) -> Vec<f64> {
        let known = self.grid.iter().find(|(known, _)| known.to_bits() == share.to_bits());
        let between = |gap: &f64| 1.0 / (self.ridge + share * gap);
        known.map_or_else(
            || self.gaps.iter().map(between).collect(),
            |(_, weights)| weights.clone(),
        )
    }

    /// Newton's method from the best share of the grid on `Σ qⱼ/(ridge + s·gapⱼ)`, in the logarithm of the odds of s, in which the
    /// poles beyond the ends become exponentials. Every share that it visits gives a bound.
    fn refine(&self, squares: &[f64], nearest: &[usize], out: &mut [f64], best: &mut [f64]) {
        let n = out.len();
        let last = self.grid.len() - 1;
        let end = self.grid[last].0;
        let mut shares = [0.0; BLOCK];
        for (share, k) in shares.iter_mut().zip(nearest) {
            *share = self.grid[*k.clamp(&1, &(last - 1))].0;
        }
        for _ in 0..=REFINEMENTS {
            let (mut values, mut slopes, mut curvatures) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
            for (gap, squares) in self.gaps.iter().zip(squares.chunks_exact(n)) {
                for i in 0..n {
                    let inverse = 1.0 / (self.ridge + shares[i] * gap);
                    let value = squares[i] * inverse;
                    let ratio = gap * inverse;
                    values[i] += value;
                    slopes[i] -= value * ratio;
                    curvatures[i] += 2.0 * value * ratio * ratio;
                }
            }
            for i in 0..n {
                if values[i] < out[i] {
                    (out[i], best[i]) = (values[i], shares[i]);
                }
                let part = shares[i] / end;
                // The derivative of s in the log-odds is s(1 - s/end), and its own has the factor 1 - 2s/end.
                let curvature = curvatures[i] * shares[i] * (1.0 - part) + slopes[i] * (1.0 - 2.0 * part);
                // Where the value is not convex in the log-odds: downhill.
                let step = if curvature > 0.0 {
                    -slopes[i] / curvature
                } else {
                    -slopes[i].signum()
                };
                let odds = part / (1.0 - part) * step.clamp(-LN_4, LN_4).exp();
                shares[i] = end * (odds / (1.0 + odds));
            }
        }
    }
}

/// The eigendecomposition of a released matrix, which fails only where entries are so great that it overflows.
fn decomposed(noisy: &[f64], dim: usize) -> Result<Eigen> {
    let eigen = Eigen::new(noisy, dim, "the released Hessian").ok();
    let finite = eigen.filter(|e| e.values.iter().chain(&e.vectors).all(|v| v.is_finite()));
    finite.ok_or_else(|| Error::OutOfRange {
        name: "the greatest entry of the released Hessian",
        rule: "small enough for an eigendecomposition",
        value: noisy.iter().map(|v| v.abs()).reduce(f64::max).unwrap_or(f64::NAN),
    })
}

/// Generous bound on the error of the computed eigenvalues.
pub(super) fn decomposition_error(eigen: &Eigen) -> f64 {
    let greatest = eigen.values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    16.0 * eigen.values.len() as f64 * f64::EPSILON * greatest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds of rows given as coordinates in the eigenbasis of a diagonal matrix.
    fn bounds(bound: &LeverageBound, rows: &[[f64; 2]]) -> Vec<f64> {
        let squares: Vec<f64> = (0..2)
            .flat_map(|j| {
                rows.iter().map(move |row| {
                    let coordinate = row[0] * bound.vectors[2 * j] + row[1] * bound.vectors[2 * j + 1];
                    coordinate * coordinate
                })
            })
            .collect();
        let mut out = vec![0.0; rows.len()];
        let mut shares = vec![0.0; rows.len()];
        bound.fill(&squares, &mut out, &mut shares);
        for (i, (found, share)) in out.iter().zip(shares).enumerate() {
            let terms = squares.chunks(rows.len()).zip(bound.weights(share));
            let at_share: f64 = terms.map(|(squares, weight)| weight * squares[i]).sum();
            assert!((at_share - found).abs() <= 1e-14 * found);
        }
        out
    }

    #[test]
    fn the_best_share_is_found_where_the_matrix_is_indefinite() {
        // Lower bounds diag(9, -3) and I: weights 1/(1 + 8s) and 1/(1 - 4s).
        let bound = LeverageBound::interpolated(&[10.0, 0.0, 0.0, -2.0], 2, 1.0, 1.0).unwrap();
        for row in [[1.0, 0.0], [0.0, 1.0], [0.6, 0.1], [0.3, 0.3], [0.0, 0.0]] {
            let value = |s: f64| row[0] * row[0] / (1.0 + 8.0 * s) + row[1] * row[1] / (1.0 - 4.0 * s);
            let best = (0..=1_000_000)
                .map(|i| value(f64::from(i) * 0.25e-6))
                .fold(f64::INFINITY, f64::min);
            let got = bounds(&bound, &[row, row])[1];
            assert!(
                got >= best * (1.0 - 1e-9) && got <= best * (1.0 + 1e-5),
                "{row:?}: {got} {best}"
            );
        }
    }

    #[test]
    fn the_ridge_and_the_matrix_alone_are_the_ends() {
        let above = LeverageBound::interpolated(&[5.0, 0.0, 0.0, 9.0], 2, 1.0, 1.0).unwrap();
        assert!((bounds(&above, &[[1.0, 0.0]])[0] - 0.25).abs() < 1e-12);
        let below = LeverageBound::interpolated(&[0.5, 0.0, 0.0, 0.5], 2, 1.0, 1.0).unwrap();
        assert!((bounds(&below, &[[1.0, 0.0]])[0] - 1.0).abs() < 1e-12);
        let paper = LeverageBound::paper(&[6.0, 0.0, 0.0, 3.0], 2, 1.0).unwrap();
        assert!((bounds(&paper, &[[1.0, 0.0]])[0] - 0.25).abs() < 1e-12);
        let indefinite = LeverageBound::paper(&[6.0, 0.0, 0.0, -3.0], 2, 2.0).unwrap();
        assert!((bounds(&indefinite, &[[1.0, 0.0]])[0] - 0.5).abs() < 1e-12);
    }
}
