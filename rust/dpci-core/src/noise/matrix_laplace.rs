//! Symmetric matrix Laplace noise: the difference of two Wishart matrices, for nuclear-norm sensitivities.

use rand::RngExt;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use super::bounded::{self, Sum, U};
use super::{Law, NoiseGenerator, check_dim, check_positive};
use crate::{Error, Result};

/// `N = P - Q` with P, Q independent Wishart matrices of `dim+1` degrees of freedom and scale `I/(2γ)`.
///
/// P has density `∝ exp(-γ tr P)` on the positive cone, so N has density
/// `g(N) = exp(γ tr N)·∫ exp(-2γ tr P) dP` over `P ⪰ 0, P ⪰ N`, and `g(N+Δ) ≥ exp(-γ‖Δ‖_*)·g(N)`: the domain for N+Δ
/// contains the domain for N shifted by the positive part of Δ. Added to a symmetric matrix of nuclear-norm sensitivity
/// `Δ_*` with `γ = ε/Δ_*` it is therefore ε-DP (docs/proofs/mechanisms.md, "Noise"). In one dimension it is the Laplace law. One
/// Wishart alone is not pure DP: neighbouring supports differ. Every isometric coordinate has standard deviation
/// `√(dim+1)/γ`.
#[derive(Debug, Clone)]
pub struct MatrixLaplace {
    dim: usize,
    rate: f64,
    /// Law of the squared diagonal of the Bartlett factor: chi-squared with dim+1, dim, .., 2 degrees of freedom.
    diagonal: Vec<ChiSquared<f64>>,
}

impl MatrixLaplace {
    /// The law on symmetric `dim`×`dim` matrices with rate γ = `rate`.
    pub fn new(dim: usize, rate: f64) -> Result<Self> {
        check_dim(dim)?;
        check_positive("rate", rate)?;
        let diagonal = (0..dim)
            .map(|i| ChiSquared::new((dim + 1 - i) as f64))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|_| Error::OutOfRange {
                name: "dim",
                rule: "finite in double precision",
                value: dim as f64,
            })?;
        Ok(Self { dim, rate, diagonal })
    }

    /// Standard deviation `√(dim+1)/rate` of every isometric coordinate; off-diagonal entries have 1/√2 of it.
    pub fn isometric_std_dev(&self) -> f64 {
        (self.dim as f64 + 1.0).sqrt() / self.rate
    }
}

impl Law for MatrixLaplace {
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        let d = self.dim;
        let mut matrix = vec![0.0; d * d];
        let mut column = vec![0.0; d];
        let scale = 0.5 / self.rate;
        for scale in [scale, -scale] {
            for (k, chi_squared) in self.diagonal.iter().enumerate() {
                column[k] = chi_squared.sample(generator).sqrt();
                column[k + 1..]
                    .iter_mut()
                    .for_each(|x| *x = generator.sample(StandardNormal));
                add_outer_product(scale, &column, k, &mut matrix);
            }
        }
        mirror(d, &mut matrix);
        matrix
    }

    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        let d = self.dim;
        let mut matrix = vec![0.0; d * d];
        let mut column = vec![0.0; d];
        let mut half_traces = Sum::default();
        let scale = 0.5 / self.rate;
        for scale in [scale, -scale] {
            for k in 0..d {
                half_traces.add(bounded_column(&mut column, k, generator)?);
                add_outer_product(scale, &column, k, &mut matrix);
            }
        }
        bounded::check_tail(half_traces.value(), bounded::sum_tail(d * (d + 1)))?;
        mirror(d, &mut matrix);
        Ok(matrix)
    }

    fn error_bound(&self) -> f64 {
        let d = self.dim;
        // An entry of a factor: on the diagonal the root of a sum of doubled exponentials and a squared normal number.
        let square = 2.0 * bounded::NORMAL_ERROR + 2.0 * U + Sum::error(d);
        let factor = 0.5 * square + U;
        // Products of two, thrice rounded, in sums of at most 2d; the Frobenius norm of |L||L|ᵀ is at most the trace of LLᵀ.
        let relative = 2.0 * factor + 3.1 * U + 2.0 * d as f64 * U * ROUNDING_ROOM;
        let tail = bounded::sum_tail(d * (d + 1));
        bounded::distance(relative, tail, 1.0 / self.rate, d * d)
    }
}

/// `γₙ = nu/(1 - nu)` is at most this times nu.
const ROUNDING_ROOM: f64 = 1.001;

/// Adds `scale`·`LLᵀ`, of which this is column k of L, to the lower triangle. L is the lower-triangular Bartlett factor of a standard
/// Wishart matrix with `dim+1` degrees of freedom: half the normals and a third of the products of `GᵀG`.
fn add_outer_product(scale: f64, column: &[f64], k: usize, matrix: &mut [f64]) {
    let d = column.len();
    for row in k..d {
        let factor = scale * column[row];
        let entries = &mut matrix[row * d + k..=row * d + row];
        for (entry, x) in entries.iter_mut().zip(&column[k..=row]) {
            *entry += factor * x;
        }
    }
}

/// Column k of a Bartlett factor, and half the sum of its squares. Chi-squared with n degrees of freedom is twice the sum of n/2
/// exponential numbers, and the square of a normal one if n is odd; then the numbers below it are odd in number too.
fn bounded_column(column: &mut [f64], k: usize, generator: &mut impl NoiseGenerator) -> Result<f64> {
    let d = column.len();
    let degrees = d + 1 - k;
    let mut half_square = Sum::default();
    for _ in 0..degrees / 2 {
        half_square.add(bounded::exponential(generator)?);
    }
    let (mut normals, half_squares) = bounded::normals(d - 1 - k + degrees % 2, generator)?;
    let half_trace = half_square.value() + half_squares;
    if degrees % 2 == 1
        && let Some(x) = normals.pop()
    {
        half_square.add(0.5 * x * x);
    }
    column[k] = (2.0 * half_square.value()).sqrt();
    column[k + 1..].copy_from_slice(&normals);
    Ok(half_trace)
}

/// Copies the lower triangle to the upper one.
fn mirror(d: usize, matrix: &mut [f64]) {
    for row in 1..d {
        for col in 0..row {
            matrix[col * d + row] = matrix[row * d + col];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::{assert_cdf, assert_mean, assert_same_law};

    const RATE: f64 = 1.5;

    /// Draws of a simulation, or as a release makes them.
    fn draws(dim: usize, count: usize, stream: u64, bounded: bool) -> Vec<Vec<f64>> {
        let law = MatrixLaplace::new(dim, RATE).unwrap();
        let mut generator = SimulationGenerator::new(23, stream);
        let draw = |_| {
            if bounded {
                law.sample_bounded(&mut generator).unwrap()
            } else {
                law.sample(&mut generator)
            }
        };
        (0..count).map(draw).collect()
    }

    #[test]
    fn one_dimension_is_the_laplace_law() {
        for bounded in [false, true] {
            let values = draws(1, 20_000, 0, bounded).iter().map(|m| m[0]).collect();
            assert_cdf(values, |x| {
                let half_tail = 0.5 * (-RATE * x.abs()).exp();
                if x < 0.0 { half_tail } else { 1.0 - half_tail }
            });
        }
    }

    #[test]
    fn entries_have_mean_zero_and_the_stated_variance() {
        for (dim, bounded) in [(2, false), (5, false), (11, false), (2, true), (5, true), (11, true)] {
            let draws = draws(dim, 20_000, 1, bounded);
            let std_dev = MatrixLaplace::new(dim, RATE).unwrap().isometric_std_dev();
            let last = dim * dim - 1;
            for (entry, variance) in [(0, 1.0), (last, 1.0), (1, 0.5), (last - 1, 0.5)] {
                assert_mean(&draws.iter().map(|m| m[entry] / std_dev).collect::<Vec<_>>(), 0.0);
                assert_mean(
                    &draws.iter().map(|m| (m[entry] / std_dev).powi(2)).collect::<Vec<_>>(),
                    variance,
                );
            }
            assert_mean(
                &draws
                    .iter()
                    .map(|m| m[0] * m[last] / std_dev.powi(2))
                    .collect::<Vec<_>>(),
                0.0,
            );
            assert_mean(
                &draws.iter().map(|m| m[0] * m[1] / std_dev.powi(2)).collect::<Vec<_>>(),
                0.0,
            );
        }
    }

    #[test]
    fn law_is_rotation_invariant_and_symmetric_about_zero() {
        // A unit vector u turned away from the axes: uᵀNu has the law of a diagonal entry, and N that of -N.
        let dim = 3;
        let u = [2.0 / 3.0, -1.0 / 3.0, 2.0 / 3.0];
        let form = |m: &Vec<f64>| {
            (0..dim)
                .flat_map(|i| (0..dim).map(move |j| (i, j)))
                .map(|(i, j)| u[i] * u[j] * m[i * dim + j])
                .sum::<f64>()
        };
        for bounded in [false, true] {
            let rotated: Vec<_> = draws(dim, 20_000, 2, bounded).iter().map(form).collect();
            let entry: Vec<_> = draws(dim, 20_000, 3, bounded).iter().map(|m| m[4]).collect();
            assert_same_law(entry.clone(), rotated.clone());
            assert_same_law(entry, rotated.iter().map(|x| -x).collect());
        }
    }

    #[test]
    fn both_samplers_have_one_law() {
        // Eigenvalues see the joint law of the entries: those of a 2x2 matrix, and the Frobenius norm in three dimensions.
        let greatest = |m: &Vec<f64>| f64::midpoint(m[0], m[3]) + (0.5 * (m[0] - m[3])).hypot(m[1]);
        let norm = |m: &Vec<f64>| m.iter().map(|x| x * x).sum::<f64>().sqrt();
        let of = |dim, bounded, f: &dyn Fn(&Vec<f64>) -> f64| {
            let stream = 5 + u64::from(bounded);
            draws(dim, 40_000, stream, bounded).iter().map(f).collect()
        };
        assert_same_law(of(2, false, &greatest), of(2, true, &greatest));
        assert_same_law(of(3, false, &norm), of(3, true, &norm));
    }

    #[test]
    fn draws_are_exactly_symmetric() {
        for bounded in [false, true] {
            let m = &draws(7, 1, 4, bounded)[0];
            for row in 0..7 {
                for column in 0..row {
                    assert_eq!(m[row * 7 + column].to_bits(), m[column * 7 + row].to_bits());
                }
            }
        }
    }

    #[test]
    fn the_error_bound_counts_every_degree_of_freedom() {
        // Two factors of d entries with d+1, ..., 2 degrees: d(d+1)/2 numbers each, of which the traces are sums.
        let law = MatrixLaplace::new(3, RATE).unwrap();
        let square = 2.0 * bounded::NORMAL_ERROR + 2.0 * U + Sum::error(3);
        let relative = square + 2.0 * U + 3.1 * U + 6.006 * U;
        let expected = bounded::distance(relative, bounded::sum_tail(12), 1.0 / RATE, 9);
        assert!((law.error_bound() / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert!(MatrixLaplace::new(0, 1.0).is_err());
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(MatrixLaplace::new(2, rate).is_err());
        }
    }
}
