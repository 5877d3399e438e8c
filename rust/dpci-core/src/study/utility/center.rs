//! The mean of a utility over the noise, by Gaussian smoothing at the minimiser without noise.
//!
//! To second order in the noise, a private minimiser is `θ₀ + δ + m` with `δ ~ N(0, C)`: for objective perturbation
//! `C = vH⁻²/n²`, v the variance of a coordinate of the noise, and `m = -½H⁻¹T`, `Tᵢ = Σ ∂³ᵢⱼₖJ Cⱼₖ`; for output perturbation
//! `C = vI` and m = 0. Row i sees its predictor move by a normal of variance `qᵢ = xᵢᵀCxᵢ`, so that
//! `½T ≈ (1/n) Σ (E l'(uᵢ + √qᵢ Z) - l'(uᵢ)) xᵢ` and `E F ≈ (1/n) Σ E f(uᵢ + xᵢᵀm + √qᵢ Z)`: no third derivative is needed, and
//! losses whose curvature jumps are smoothed over.

use std::ops::Range;

use super::{Metric, Utility};
use crate::error::{check_length, check_positive};
use crate::exec::{BLOCK, Executor, blocks, matrix_chunks};
use crate::linalg::{Cholesky, GramAccumulator, PackedBlock, add_diagonal, vector};
use crate::loss::Batch;
use crate::privacy::Perturbation;
use crate::{Error, Result};

/// The minimiser without noise, and how far unit noise moves each row's predictor.
#[derive(Debug)]
pub struct Center {
    params: Vec<f64>,
    /// Hessian of the regularised risk, and its factor.
    hessian: Vec<f64>,
    factor: Cholesky,
    /// `xᵢᵀθ₀` by row.
    predictor: Vec<f64>,
    /// `xᵢᵀCxᵢ` by row for unit variance.
    spread: Vec<f64>,
}

/// A metric averaged over Gaussian noise.
#[derive(Debug)]
pub struct Smoothed {
    /// Its mean over the records and the noise.
    pub value: f64,
    /// Mean gradient.
    pub gradient: Vec<f64>,
    /// Mean Hessian, row-major.
    pub hessian: Vec<f64>,
}

impl Center {
    /// The minimiser without noise.
    pub fn params(&self) -> &[f64] {
        &self.params
    }

    /// Hessian of the regularised risk there, row-major.
    pub fn hessian(&self) -> &[f64] {
        &self.hessian
    }

    /// Standard deviations of the moves of the predictors of a range of rows, for noise of a variance.
    fn std_devs(&self, range: Range<usize>, variance: f64, out: &mut [f64]) {
        for (out, spread) in out.iter_mut().zip(&self.spread[range]) {
            *out = (variance * spread).sqrt();
        }
    }
}

impl Utility {
    /// The minimiser without noise at a λ.
    pub fn center(&self, l2_strength: f64, start: Option<&[f64]>, exec: &Executor<'_>) -> Result<Center> {
        check_positive("l2_strength", l2_strength)?;
        let params = self.minimize(l2_strength, None, start, self.tolerance, exec)?;
        let (_, mut hessian) = self.risk_derivatives(&params, exec)?;
        let dim = params.len();
        add_diagonal(&mut hessian, dim, l2_strength);
        let factor = Cholesky::new(&hessian, dim, "the Hessian")?;
        let chunks = self.design.chunks();
        let parts = exec.map(chunks.len(), |c| {
            let mut predictor = vec![0.0; chunks[c].len()];
            let mut spread = vec![0.0; chunks[c].len()];
            let mut rows = vec![0.0; BLOCK * dim];
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                let at = range.start - chunks[c].start..range.end - chunks[c].start;
                self.design
                    .linear_predictor(range.clone(), &params, &mut predictor[at.clone()]);
                let rows = &mut rows[..range.len() * dim];
                self.design.write_rows(range, rows);
                if self.perturbation == Perturbation::Objective {
                    factor.solve_in_place(rows);
                    vector::divide(rows, self.n_samples);
                }
                for (s, row) in spread[at].iter_mut().zip(rows.chunks_exact(dim)) {
                    *s = vector::dot(row, row);
                }
            }
            Ok((predictor, spread))
        })?;
        let (mut predictor, mut spread) = (Vec::new(), Vec::new());
        for (p, s) in parts {
            predictor.extend(p);
            spread.extend(s);
        }
        Ok(Center {
            params,
            hessian,
            factor,
            predictor,
            spread,
        })
    }

    /// The shift m of the mean parameters under noise whose coordinates have this variance.
    pub fn mean_shift(&self, center: &Center, variance: f64, exec: &Executor<'_>) -> Result<Vec<f64>> {
        let dim = self.n_params();
        if self.perturbation == Perturbation::Output {
            return Ok(vec![0.0; dim]);
        }
        let chunks = self.design.chunks();
        let parts = exec.map(chunks.len(), |c| {
            let mut sums = vec![0.0; dim];
            let mut buffers = [[0.0; BLOCK]; 4];
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                let [std_devs, slope, change, weights] = buffers.each_mut();
                let [std_devs, slope, change] = [std_devs, slope, change].map(|b| &mut b[..range.len()]);
                let here = &center.predictor[range.clone()];
                let y = self.design.targets(range.clone());
                center.std_devs(range.clone(), variance, std_devs);
                let averaged = Batch::slopes(&mut *change);
                Metric::Loss.average(&*self.loss, here, std_devs, y, averaged)?;
                let out = Batch::slopes(&mut *slope);
                self.loss.evaluate(here, y, out)?;
                for (c, s) in change.iter_mut().zip(slope.iter()) {
                    *c -= s;
                }
                if let Some(counts) = self.counts(&range, weights) {
                    vector::multiply(change, counts);
                }
                self.design.add_weighted_rows(range, change, &mut sums);
            }
            Ok(sums)
        })?;
        let mut shift = vec![0.0; dim];
        for part in parts {
            for (s, p) in shift.iter_mut().zip(part) {
                *s -= p / self.n_samples;
            }
        }
        center.factor.solve_in_place(&mut shift);
        Ok(shift)
    }

    /// A metric averaged over noise whose coordinates have this variance, given [`Self::mean_shift`]: value, gradient and Hessian.
    ///
    /// The variance over the noise is `ḡᵀCḡ + ½tr((ḠC)²) + ...` with the averaged gradient ḡ and Hessian Ḡ: the expansion of a
    /// function of normals in Hermite polynomials, whose terms are all positive and end below the variance, unlike those at a
    /// point.
    pub fn smoothed(
        &self,
        center: &Center,
        metric: Metric,
        variance: f64,
        shift: &[f64],
        exec: &Executor<'_>,
    ) -> Result<Smoothed> {
        let dim = self.n_params();
        check_length("shift", dim, shift.len())?;
        let chunks = matrix_chunks(self.design.n_rows(), dim);
        let parts = exec.map(chunks.len(), |c| {
            let mut part = (0.0, vec![0.0; dim], [GramAccumulator::new(dim)]);
            let mut packed = PackedBlock::new(dim, BLOCK);
            let mut buffers = [[0.0; BLOCK]; 5];
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                let [u, std_devs, slopes, curvatures, weights] = buffers.each_mut();
                let [u, std_devs, slopes, curvatures] =
                    [u, std_devs, slopes, curvatures].map(|b| &mut b[..range.len()]);
                self.design.linear_predictor(range.clone(), shift, u);
                for (u, here) in u.iter_mut().zip(&center.predictor[range.clone()]) {
                    *u += here;
                }
                center.std_devs(range.clone(), variance, std_devs);
                let weights = self.counts(&range, weights);
                let mut total = 0.0;
                let out = Batch {
                    total: Some(&mut total),
                    weights,
                    slope: Some(&mut *slopes),
                    curvature: Some(&mut *curvatures),
                };
                let y = self.design.targets(range.clone());
                metric.average(&*self.loss, u, std_devs, y, out)?;
                part.0 += total;
                if let Some(weights) = weights {
                    vector::multiply(slopes, weights);
                    vector::multiply(curvatures, weights);
                }
                self.design
                    .add_grams(range.clone(), [&*curvatures], &mut part.2, &mut packed);
                self.design.add_weighted_rows(range, slopes, &mut part.1);
            }
            Ok(part)
        })?;
        let n = self.total;
        let (value, gradient, [gram]) = parts
            .into_iter()
            .reduce(|mut all, part| {
                all.0 += part.0;
                all.1.iter_mut().zip(&part.1).for_each(|(a, p)| *a += p);
                all.2[0].merge(&part.2[0]);
                all
            })
            .ok_or(Error::Empty { rows: 0, params: dim })?;
        Ok(Smoothed {
            value: value / n,
            gradient: gradient.iter().map(|g| g / n).collect(),
            hessian: gram.finish(n),
        })
    }
}
