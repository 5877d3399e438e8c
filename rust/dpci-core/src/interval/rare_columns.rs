//! The sampling error that a rare column can have where noise hides it (docs/proofs/intervals.md, "Rare columns").
//!
//! The estimates draw all directions towards each other. A column that is 0 in nearly all rows has little curvature and, if its
//! parameter is far from 0, gradients of one sign: its error is greater than that of the others. The ridge shows how great it can be:
//! it balances the mean gradient, and gradients of one sign with a given mean and greatest value have a greatest variance.

use super::directions::rotate_back_diagonal;
use super::noise_aware::{Along, NoisyMatrices};
use crate::linalg::vector;
use crate::row_domain::RowDomain;

/// Part of the greatest variance that every parameter's sampling error has at least: a standard error is then at most √3 times too small.
const LEAST_PART: f64 = 1.0 / 3.0;

/// Standard deviations of the noise that can hide a variance or a curvature.
const HIDING: f64 = 2.0;

/// Bounds on the gradients of single records.
#[derive(Debug, Clone, Copy)]
pub struct Gradients<'a> {
    /// Released parameters.
    pub params: &'a [f64],
    /// Greatest slope of the loss.
    pub slope_bound: f64,
    /// Greatest curvature of the loss.
    pub curvature_bound: f64,
    /// Where rows lie, without the intercept.
    pub rows: &'a RowDomain,
    /// The constant appended to each row.
    pub intercept: Option<f64>,
}

impl Gradients<'_> {
    /// The greatest entry of a row at this place.
    fn reach(&self, j: usize) -> f64 {
        match (self.intercept, self.rows) {
            (Some(scale), _) if j + 1 == self.params.len() => scale,
            (_, RowDomain::Ball(norm)) => *norm,
            (_, RowDomain::Blocks(blocks)) => blocks.bounds()[blocks.members()[j]],
        }
    }
}

/// By how much the sampling variance of each parameter falls short of the part of the greatest one that it has at least.
pub(super) fn shortfalls(matrices: &NoisyMatrices<'_>, along: &Along<'_>, sampling: &[f64]) -> Vec<f64> {
    let dim = along.mean.len();
    let Some(gradients) = matrices.gradients.filter(|g| g.params.len() == dim) else {
        return vec![0.0; dim];
    };
    let inverse = rotate_back_diagonal(&along.mean, along.vectors);
    let curvatures: Vec<f64> = along.mean.iter().map(|m| m.recip()).collect();
    let curvatures = rotate_back_diagonal(&curvatures, along.vectors);
    let noise = matrices.hessian_noise.map_or(0.0, |law| law.isometric_std_dev(dim));
    let cov_noise = matrices.gradient_cov_std_dev(dim);
    let convexity = matrices.strong_convexity;
    (0..dim)
        .map(|j| {
            let entry = j * dim + j;
            let seen = (matrices.hessian[entry] - convexity - HIDING * noise).max(0.0);
            let least = convexity + seen;
            let (mean, reach) = (
                matrices.l2_strength * gradients.params[j].abs() / least,
                gradients.reach(j),
            );
            // The least share of the records with the column, whose gradients are alike. Not so of a loss that is flat at many of them.
            let share = seen / (gradients.curvature_bound * reach * reach);
            let alike = if share > 0.0 && !matrices.may_be_flat {
                mean / share
            } else {
                f64::INFINITY
            };
            let greatest = (gradients.slope_bound * reach / least).min(alike);
            let of_one_sign = mean * (greatest - mean).max(0.0);
            // What Σ can be along the row of the inverse, where the curvature of the parameter is the least.
            let longer = (curvatures[entry] / least).max(1.0);
            let u: Vec<f64> = inverse[j * dim..(j + 1) * dim].iter().map(|a| longer * a).collect();
            let rows = matrices.gradient_cov.chunks_exact(dim).zip(&u);
            let released: f64 = rows.map(|(row, a)| a * vector::dot(row, &u)).sum();
            let hidden = released.max(0.0) + HIDING * cov_noise * vector::dot(&u, &u);
            (LEAST_PART * of_one_sign.min(hidden) / matrices.n_samples - sampling[entry]).max(0.0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::noise::{MatrixLaw, NoiseLaw};
    use crate::privacy::Perturbation;
    use crate::row_domain::Blocks;

    const HESSIAN: [f64; 4] = [0.05, 0.0, 0.0, 0.5];
    const COV: [f64; 4] = [0.001, 0.0, 0.0, 0.1];

    /// Shortfalls of a rare column and a constant, of variances of 0; `noise`: standard deviations of an isometric coordinate of H and Σ.
    fn found(noise: [f64; 2], params: &[f64], rows: &RowDomain, inverse: [f64; 2]) -> Vec<f64> {
        let [hessian, gradient_cov] = noise.map(|std_dev| MatrixLaw::Gaussian { std_dev });
        let matrices = NoisyMatrices {
            hessian: &HESSIAN,
            gradient_cov: &COV,
            hessian_noise: Some(hessian),
            gradient_cov_noise: gradient_cov,
            l2_strength: 0.04,
            strong_convexity: 0.04,
            n_samples: 100.0,
            perturbation: Perturbation::Output,
            law: NoiseLaw::Gaussian { std_dev: 0.1 },
            is_likelihood: true,
            may_be_flat: false,
            gradients: Some(Gradients {
                params,
                slope_bound: 2.0,
                curvature_bound: 1.0,
                rows,
                intercept: Some(1.0),
            }),
            levels: None,
        };
        let along = Along {
            vectors: &[1.0, 0.0, 0.0, 1.0],
            sampling: vec![0.0; 4],
            least: vec![0.0; 2],
            mean: inverse.to_vec(),
            square: inverse.map(|a| a * a).to_vec(),
            output: 1.0,
            factor: 1.0,
            shape: 1.0,
        };
        shortfalls(&matrices, &along, &[0.0; 4])
    }

    #[track_caller]
    fn assert_near(found: &[f64], expected: &[f64]) {
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-12 * e.abs().max(1e-3), "{found:?} {expected:?}");
        }
    }

    #[test]
    fn gradients_of_one_sign_bound_what_noise_can_hide() {
        let ball = RowDomain::Ball(0.7);
        let isometric = MatrixLaw::Gaussian { std_dev: 1.0 }.isometric_std_dev(2);
        let [wide, narrow] = [0.02 / isometric, 1e-3 / isometric];
        // The curvature can be λ where the released one is .05 - .04 above it with a noise of .02.
        let (mean, greatest) = (0.04 * 0.3, 2.0 * 0.7);
        let of_one_sign = mean * (greatest - mean) / 0.04_f64.powi(2) / 100.0;
        let noisy = found([wide, wide], &[0.3, 0.0], &ball, [1.0 / 0.08, 2.0]);
        assert_near(&noisy, &[of_one_sign / 3.0, 0.0]);
        // Σ is seen: no more than its entry and two standard deviations of the noise. The curvature is at least .048.
        let seen = (0.001 + 0.002) / 0.048_f64.powi(2) / 100.0;
        let narrow_at =
            |params: [f64; 2], rows: &RowDomain| found([narrow, narrow], &params, rows, [1.0 / 0.05, 2.0])[0];
        assert_near(&[narrow_at([0.3, 0.0], &ball)], &[seen / 3.0]);
        // A block of its own has the same bound here, and without a pull there is nothing.
        let blocks = RowDomain::Blocks(Arc::new(Blocks::new(vec![0.7], vec![0]).unwrap()));
        let of_blocks = found([wide, wide], &[0.3, 0.0], &blocks, [1.0 / 0.08, 2.0]);
        assert_near(&of_blocks, &noisy);
        assert_near(&[narrow_at([0.0, 5.0], &ball)], &[0.0]);
    }

    #[test]
    fn a_column_that_many_records_have_is_not_rare() {
        let ball = RowDomain::Ball(0.7);
        let narrow = 1e-3 / MatrixLaw::Gaussian { std_dev: 1.0 }.isometric_std_dev(2);
        // At least .46 of a bound of 1 on the curvature, so that each record with the constant has a gradient of .04·.5/.458 if all are alike.
        let (mean, share) = (0.04_f64 * 0.5, 0.5_f64 - 0.04 - 0.002);
        let of_one_sign = mean * (mean / share - mean) / (0.04 + share).powi(2) / 100.0;
        let found = found([narrow, narrow], &[0.0, 0.5], &ball, [20.0, 2.0]);
        assert_near(&found, &[0.0, of_one_sign / 3.0]);
    }

    #[test]
    fn without_noise_no_more_than_a_third_of_the_sandwich_is_counted() {
        let ball = RowDomain::Ball(0.7);
        let inverse = [1.0 / 0.05, 1.0 / 0.5];
        let exact = found([1e-12, 1e-12], &[0.3, -1.0], &ball, inverse);
        let sandwich = [0.001 / 0.05_f64.powi(2) / 300.0, 0.1 / 0.5_f64.powi(2) / 300.0];
        for (found, third) in exact.iter().zip(sandwich) {
            assert!(*found <= third * (1.0 + 1e-6), "{exact:?}");
        }
    }
}
