//! The law of the errors where level totals were released: the Hessian that they call for, and what else the released matrices tell of it
//! (docs/proofs/intervals.md, "Level totals").

use super::directions::{diagonal, rotate_back, sandwich};
use super::noise_aware::{Estimate, LEAST_SHARE, NoisyMatrices};
use super::rare_columns::Gradients;
use super::spectrum::{mean_of_positive, onto_simplex};
use crate::Result;
use crate::error::check_length;
use crate::linalg::{Cholesky, Eigen, add_diagonal, identity, product_transposed, vector};
use crate::noise::{Law, LevelTotals, SimulationGenerator, Totals};

/// Standard deviations of the Hessian around that of independent columns, as a share of it, and their prior probabilities: what noise
/// hides is taken for the last.
const DEPENDENCE: [(f64, f64); 5] = [
    (0.05, 0.0625),
    (0.1, 0.0625),
    (0.2, 0.0625),
    (0.35, 0.0625),
    (0.5, 0.75),
];

/// Least part of the Hessian of independent columns that is left along any direction.
const LEAST_PART: f64 = 0.25;

/// Least eigenvalue of that Hessian, and least variance of a number, over the mean one.
const LEAST_EIGENVALUE: f64 = 1e-6;
const LEAST_VARIANCE: f64 = 1e-4;

/// Standard deviations that the rest of a category is above 0, unless all of its levels have columns.
const SEEN: f64 = 2.0;

/// Share of the greatest squared gradients that the ridge shows, of a loss that is not a likelihood.
const ONE_SIDED: f64 = 0.5;

/// Simulated releases of the totals, and their public seed.
const DRAWS: u64 = 8;
const SEED: u64 = 0x6c65_7665;

/// Level totals, and what rows of independent columns with these would have.
pub(super) struct LevelLaw<'a> {
    levels: &'a LevelTotals,
    gradients: Gradients<'a>,
    dim: usize,
    /// Sums that the released totals call for.
    found: Independent,
    /// Σ over the Hessian's data part.
    multiple: f64,
}

/// Sums `Σ w x xᵀ` over independent columns.
struct Independent {
    /// `Σ w`.
    weight: f64,
    /// Cells of all blocks, none negative, those of each block with this sum.
    cells: Vec<f64>,
    /// `Σ w x` over the sum of the weights.
    means: Vec<f64>,
    second: Vec<f64>,
    /// Expected square of each column, given that it is not negative and what hidden levels sum to, less the one here.
    more: Vec<f64>,
}

impl<'a> LevelLaw<'a> {
    /// `None` without level totals.
    pub(super) fn new(matrices: &NoisyMatrices<'a>) -> Result<Option<Self>> {
        let (Some(levels), Some(gradients)) = (matrices.levels, matrices.gradients) else {
            return Ok(None);
        };
        let dim = gradients.params.len();
        check_length("rows with level totals", dim, levels.rows().dim())?;
        matrices.check(dim)?;
        let found = Independent::new(
            levels,
            &levels.read(&data_part(matrices, dim)),
            gradients.curvature_bound,
        );
        let mut law = Self {
            levels,
            gradients,
            dim,
            found,
            multiple: 1.0,
        };
        law.multiple = law.multiple(matrices, &law.found.second);
        Ok(Some(law))
    }

    pub(super) fn estimate(&self, matrices: &NoisyMatrices<'_>) -> Result<Estimate> {
        let n = matrices.n_samples;
        let posterior = self.posterior(matrices)?;
        let inverse = posterior.inverse(matrices.l2_strength)?;
        let variances: Vec<f64> = matrices
            .law
            .coordinate_variances(self.dim)
            .iter()
            .map(|v| v / (n * n))
            .collect();
        let (covariance, expected) = self.covariance(matrices, &posterior.mean)?;
        let scaled = |middle: &[f64], inverse: &[f64], scale: f64| {
            let mut out = sandwich(middle, inverse, self.dim);
            vector::scale(&mut out, scale);
            out
        };
        let mut sampling = scaled(&covariance, &inverse, n.recip());
        // What the Hessian leaves open, to second order, and what the totals do.
        for (entry, more) in sampling.iter_mut().zip(posterior.second_order(&inverse, &variances)) {
            *entry += more;
        }
        let left_open = self.left_open(matrices, &variances)?;
        for (entry, more) in sampling.iter_mut().step_by(self.dim + 1).zip(left_open) {
            *entry += more;
        }
        Ok(Estimate {
            sampling,
            least_sampling: scaled(&expected, &inverse, LEAST_SHARE / n),
            noise: inverse.iter().map(|v| v / n).collect(),
            factor: 1.0,
            shape: f64::INFINITY,
        })
    }

    /// Hessian and gradient covariance as they are estimated.
    pub(super) fn matrices(&self, matrices: &NoisyMatrices<'_>) -> Result<[Vec<f64>; 2]> {
        let mut hessian = self.posterior(matrices)?.mean;
        let (covariance, _) = self.covariance(matrices, &hessian)?;
        add_diagonal(&mut hessian, self.dim, matrices.strong_convexity);
        Ok([hessian, covariance])
    }

    /// The Hessian's data part given the released one: entry by entry in the directions of that of independent columns.
    fn posterior(&self, matrices: &NoisyMatrices<'_>) -> Result<Posterior> {
        let dim = self.dim;
        let mut axes = Eigen::new(&self.found.second, dim, "the Hessian of level totals")?;
        let trace: f64 = axes.values.iter().sum();
        for value in &mut axes.values {
            *value = value.max(LEAST_EIGENVALUE * trace / dim as f64);
        }
        let released = sandwich(&data_part(matrices, dim), &axes.vectors, dim);
        let noise = matrices
            .hessian_noise
            .map_or(0.0, |law| law.isometric_std_dev(dim).powi(2));
        let (mut relative, mut open) = (vec![0.0; dim * dim], vec![0.0; dim * dim]);
        let roots: Vec<f64> = axes.values.iter().map(|v| v.sqrt()).collect();
        let dependence = dependence(&axes.values, &released, noise);
        for i in 0..dim {
            for k in 0..dim {
                let entry = i * dim + k;
                let size = roots[i] * roots[k];
                let expected = if i == k { axes.values[i] } else { 0.0 };
                let prior = (dependence * size).powi(2);
                let weight = prior / (prior + noise);
                open[entry] = weight * noise;
                relative[entry] = (expected + weight * (released[entry] - expected)) / size;
            }
        }
        // No direction has less than a part of what is expected.
        let mut relative = Eigen::new(&relative, dim, "the released Hessian")?;
        for value in &mut relative.values {
            *value = value.max(LEAST_PART);
        }
        let mut mean = relative.recompose();
        for i in 0..dim {
            for k in 0..dim {
                mean[i * dim + k] *= roots[i] * roots[k];
            }
        }
        Ok(Posterior {
            mean: rotate_back(&mean, &axes.vectors, dim),
            open,
            vectors: axes.vectors,
        })
    }

    /// Σ over the Hessian's data part: 1 for a likelihood (the information equality), otherwise as the released Σ shows, at most what the
    /// greatest slope allows.
    fn multiple(&self, matrices: &NoisyMatrices<'_>, data_part: &[f64]) -> f64 {
        if matrices.is_likelihood {
            return 1.0;
        }
        let size = vector::norm(data_part);
        let along = vector::dot(matrices.gradient_cov, data_part) / size;
        let greatest = self.gradients.slope_bound.powi(2) / self.found.weight;
        (mean_of_positive(along, matrices.gradient_cov_std_dev(self.dim)) / size).min(greatest)
    }

    /// Adds to Σ what noise may hide of each level, and what the ridge shows.
    fn raise(&self, covariance: &mut [f64], matrices: &NoisyMatrices<'_>, of: &Independent) {
        let pull = self.pull(matrices, of);
        let entries = covariance.iter_mut().step_by(self.dim + 1);
        for (entry, (more, pull)) in entries.zip(of.more.iter().zip(pull)) {
            *entry += self.multiple * more + pull;
        }
    }

    /// Σ given the released one, and what is expected of it.
    fn covariance(&self, matrices: &NoisyMatrices<'_>, hessian: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let dim = self.dim;
        let mut expected = hessian.to_vec();
        vector::scale(&mut expected, self.multiple);
        self.raise(&mut expected, matrices, &self.found);
        let axes = Eigen::new(&expected, dim, "the expected gradient covariance")?;
        let released = sandwich(matrices.gradient_cov, &axes.vectors, dim);
        let sizes: Vec<f64> = axes.values.iter().map(|v| v.max(1e-12)).collect();
        let shrunk = matrices.shrink(&vec![1.0; dim], &sizes, &released);
        Ok((rotate_back(&shrunk, &axes.vectors, dim), expected))
    }

    /// Squared gradients of each column that the ridge shows.
    ///
    /// `(y - p)² = p(1 - p) + (p - y)(2p - 1)` for classes 0 and 1, and the ridge tells the sum of the second term over the records with a
    /// level but for its last factor, which is taken at the mean predictor. Of another loss gradients are at most the greatest slope.
    fn pull(&self, matrices: &NoisyMatrices<'_>, of: &Independent) -> Vec<f64> {
        let params = self.gradients.params;
        if !matrices.is_likelihood {
            let factor = ONE_SIDED * self.gradients.slope_bound * matrices.l2_strength;
            let pull = |(j, theta): (usize, &f64)| self.levels.reach(j) * factor * theta.abs();
            return params.iter().enumerate().map(pull).collect();
        }
        let predictor = vector::dot(&of.means, params);
        let spread = 1.0 - of.weight / self.gradients.curvature_bound;
        let factor = -predictor.signum() * spread.max(0.0).sqrt();
        let pull = |(j, theta): (usize, &f64)| self.levels.reach(j) * matrices.l2_strength * (factor * theta).max(0.0);
        params.iter().enumerate().map(pull).collect()
    }

    /// Variance of each parameter beyond that at the totals, in the mean over simulated releases of these.
    fn left_open(&self, matrices: &NoisyMatrices<'_>, variances: &[f64]) -> Result<Vec<f64>> {
        let of = |independent: &Independent| -> Result<[Vec<f64>; 2]> {
            let inverse = inverse_of(&independent.second, self.dim, matrices.l2_strength)?;
            let mut covariance = independent.second.clone();
            vector::scale(&mut covariance, self.multiple);
            self.raise(&mut covariance, matrices, independent);
            let half = product_transposed(&inverse, &covariance, self.dim);
            let rows = inverse.chunks_exact(self.dim);
            let halves = half.chunks_exact(self.dim);
            let sampling = rows
                .clone()
                .zip(halves)
                .map(|(row, half)| vector::dot(row, half) / matrices.n_samples);
            let noise = rows.map(|row| {
                let terms = row.iter().zip(variances);
                terms.map(|(a, v)| a * a * v).sum::<f64>()
            });
            Ok([sampling.collect(), noise.collect()])
        };
        let here = of(&self.found)?;
        let mut mean = [vec![0.0; self.dim], vec![0.0; self.dim]];
        let law = self.levels.law()?;
        for draw in 0..DRAWS {
            let mut cells = law.sample(&mut SimulationGenerator::new(SEED, draw));
            for (cell, found) in cells.iter_mut().zip(&self.found.cells) {
                *cell += found;
            }
            let totals = self.levels.totals(&cells);
            let simulated = Independent::new(self.levels, &totals, self.gradients.curvature_bound);
            for (mean, found) in mean.iter_mut().zip(of(&simulated)?) {
                for (mean, found) in mean.iter_mut().zip(found) {
                    *mean += found / DRAWS as f64;
                }
            }
        }
        let mut more = vec![0.0; self.dim];
        for (mean, here) in mean.iter().zip(&here) {
            for ((more, mean), here) in more.iter_mut().zip(mean).zip(here) {
                *more += (mean - here).max(0.0);
            }
        }
        Ok(more)
    }
}

/// One block's cells, and sums of its columns over their bounds.
struct Block {
    cells: Vec<f64>,
    means: Vec<f64>,
    squares: Vec<f64>,
    more: Vec<f64>,
}

impl Block {
    /// From a number u: sums of 1, u and u², and the noise of a cell.
    fn number(weight: f64, found: [f64; 3], std_dev: f64) -> Self {
        let [total, number, square] = found;
        let [low, high] = [-0.5 * number, 0.5 * number].map(|side| 0.25 * (total + square) + side);
        let cells = with_sum(&[low, 0.5 * (total - square), high], weight);
        let mean = cells[2] - cells[0];
        let of_mean = mean * mean / weight;
        // Noise makes a variance that cannot be negative greater.
        let variance = (weight - 2.0 * cells[1] - of_mean).max(0.0);
        let shrunk = variance * (variance / (variance + 3.0_f64.sqrt() * std_dev));
        Self {
            cells,
            means: vec![mean],
            squares: vec![of_mean + shrunk.max(LEAST_VARIANCE * weight)],
            more: vec![0.0],
        }
    }

    /// From the totals of levels, and the noise of a cell and of the sum of all weights.
    fn category(weight: f64, total: f64, levels: &[f64], [cell, all]: [f64; 2]) -> Self {
        let rest = total - levels.iter().sum::<f64>();
        let of_rest = (levels.len() as f64).sqrt() * cell;
        let mut cells = levels.to_vec();
        if rest > SEEN * of_rest.hypot(all) {
            cells.push(rest);
        }
        let mut cells = with_sum(&cells, weight);
        cells.resize(levels.len() + 1, 0.0);
        let squares = cells[..levels.len()].to_vec();
        let pull = cell * cell / mean_of_hidden(levels, cell);
        let more = levels.iter().zip(&squares).map(|(found, square)| {
            let expected = mean_of_positive(*found - pull, cell).min(weight);
            (expected - square).max(0.0)
        });
        Self {
            more: more.collect(),
            cells,
            means: squares.clone(),
            squares,
        }
    }
}

impl Independent {
    fn new(levels: &LevelTotals, totals: &Totals, curvature_bound: f64) -> Self {
        let dim = levels.rows().dim();
        let noise = levels.weight_std_dev();
        let weight = mean_of_positive(totals.weight, noise)
            .min(curvature_bound)
            .max(f64::MIN_POSITIVE);
        let scale = levels.reach(dim - 1);
        let (mut cells, mut means) = (Vec::with_capacity(levels.n_cells()), vec![scale; dim]);
        let (mut squares, mut more) = (vec![scale * scale * weight; dim], vec![0.0; dim]);
        for (b, columns) in levels.columns().iter().enumerate() {
            let std_dev = levels.std_dev(b);
            let block = if let [j] = columns[..] {
                let found = [totals.weight, totals.numbers[j], totals.squares[j]];
                Block::number(weight, found, std_dev)
            } else {
                let found: Vec<f64> = columns.iter().map(|j| totals.squares[*j]).collect();
                Block::category(weight, totals.weight, &found, [std_dev, noise])
            };
            for (i, j) in columns.iter().enumerate() {
                let bound = levels.reach(*j);
                means[*j] = bound * block.means[i] / weight;
                squares[*j] = bound * bound * block.squares[i];
                more[*j] = bound * bound * block.more[i];
            }
            cells.extend(block.cells);
        }
        let members = levels.rows().members();
        let mut second = vec![0.0; dim * dim];
        for i in 0..dim {
            for k in 0..dim {
                second[i * dim + k] = if i == k {
                    squares[i]
                } else if members[i] == members[k] {
                    0.0
                } else {
                    means[i] * means[k] * weight
                };
            }
        }
        Self {
            weight,
            cells,
            means,
            second,
            more,
        }
    }
}

/// The mean total of the levels that are not seen, one standard error above what they sum to: their totals have an exponential prior.
fn mean_of_hidden(levels: &[f64], cell: f64) -> f64 {
    let hidden: Vec<f64> = levels.iter().copied().filter(|found| *found < SEEN * cell).collect();
    let count = hidden.len().max(1) as f64;
    (hidden.iter().sum::<f64>().max(0.0) + count.sqrt() * cell) / count
}

/// The root of the posterior mean square of [`DEPENDENCE`], given the released Hessian in the directions of that of independent columns.
///
/// An entry off the diagonal is normal around 0 with the variance `½(τ²d_i d_k + noise)`.
fn dependence(values: &[f64], released: &[f64], noise: f64) -> f64 {
    let dim = values.len();
    let log_density = |(tau, prior): &(f64, f64)| {
        let mut sum = prior.ln();
        for i in 0..dim {
            for k in 0..i {
                let variance = tau * tau * values[i] * values[k] + noise;
                sum -= 0.5 * variance.ln() + released[i * dim + k].powi(2) / variance;
            }
        }
        sum
    };
    let densities = DEPENDENCE.map(|each| log_density(&each));
    let greatest = densities.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let weights = densities.map(|density| (density - greatest).exp());
    let squares = DEPENDENCE.iter().zip(&weights);
    let mean = squares.map(|((tau, _), w)| tau * tau * w).sum::<f64>() / weights.iter().sum::<f64>();
    mean.sqrt()
}

/// Posterior of the Hessian's data part.
struct Posterior {
    /// In the coordinates of the data.
    mean: Vec<f64>,
    /// Variance of each isometric coordinate in the directions of `vectors`.
    open: Vec<f64>,
    vectors: Vec<f64>,
}

impl Posterior {
    fn inverse(&self, l2_strength: f64) -> Result<Vec<f64>> {
        inverse_of(&self.mean, self.vectors.len().isqrt(), l2_strength)
    }

    /// `H⁻¹ E[E H⁻¹ C H⁻¹ E] H⁻¹` for the error E of the Hessian and the covariance C = diag(variances) of the noise.
    fn second_order(&self, inverse: &[f64], variances: &[f64]) -> Vec<f64> {
        let dim = variances.len();
        let noise = sandwich(&diagonal(variances), inverse, dim);
        let noise = sandwich(&noise, &self.vectors, dim);
        let mut middle = vec![0.0; dim * dim];
        for i in 0..dim {
            for k in 0..dim {
                // An entry off the diagonal has half the variance of its isometric coordinate.
                let variance = |i: usize, k: usize| self.open[i * dim + k] * if i == k { 1.0 } else { 0.5 };
                middle[i * dim + k] = if i == k {
                    (0..dim).map(|l| variance(i, l) * noise[l * dim + l]).sum()
                } else {
                    variance(i, k) * noise[k * dim + i]
                };
            }
        }
        let middle = rotate_back(&middle, &self.vectors, dim);
        sandwich(&middle, inverse, dim)
    }
}

/// The nearest values that are at least 0 and have this sum.
fn with_sum(values: &[f64], sum: f64) -> Vec<f64> {
    let shift = (sum - values.iter().sum::<f64>()) / values.len() as f64;
    let moved: Vec<f64> = values.iter().map(|v| v + shift).collect();
    onto_simplex(&moved)
}

fn inverse_of(data_part: &[f64], dim: usize, l2_strength: f64) -> Result<Vec<f64>> {
    let mut hessian = data_part.to_vec();
    add_diagonal(&mut hessian, dim, l2_strength);
    Ok(Cholesky::new(&hessian, dim, "the estimated Hessian")?.solve(&identity(dim)))
}

fn data_part(matrices: &NoisyMatrices<'_>, dim: usize) -> Vec<f64> {
    let mut data_part = matrices.hessian.to_vec();
    add_diagonal(&mut data_part, dim, -matrices.strong_convexity);
    data_part
}
