//! Laplace noise in the shape of blocks: density proportional to `exp(-rate·‖b‖_K)`, `‖b‖_K = max over blocks of ‖b_block‖₁/a_block`.

use std::sync::Arc;

use rand::RngExt;
use rand_distr::{Distribution, Exp1, Gamma};

use super::bounded::{self, Sum, U};
use super::{Law, NoiseGenerator, check_positive};
use crate::row_domain::Blocks;
use crate::{Error, Result};

/// The law with density `∝ exp(-γ‖b‖_K)` on `R^D`: a Gamma(D+1, 1/γ) number times a uniform point of the unit ball of K.
///
/// The ball is a product of blocks, so the point is uniform in each: `a(±E₁, …, ±E_k)/(E₁ + … + E_{k+1})` with exponential E. Added to a
/// query whose values for neighbours differ by at most Δ in `‖·‖_K`, with `γ = ε/Δ`, it is ε-DP (Hardt & Talwar 2010).
#[derive(Debug, Clone)]
pub struct ShapedLaplace {
    blocks: Arc<Blocks>,
    rate: f64,
    radius: Gamma<f64>,
}

impl ShapedLaplace {
    /// The law of rate γ = `rate` in the shape of `blocks`.
    pub fn new(blocks: Arc<Blocks>, rate: f64) -> Result<Self> {
        check_positive("rate", rate)?;
        let shape = blocks.dim() as f64 + 1.0;
        // The unit law is drawn and divided by the rate, so that no rate can overflow a parameter of the sampler.
        let radius = Gamma::new(shape, 1.0).map_err(|_| Error::OutOfRange {
            name: "dim",
            rule: "finite in double precision",
            value: shape,
        })?;
        Ok(Self { blocks, rate, radius })
    }

    /// `radius · a/total` for each block.
    fn factors(&self, radius: f64, totals: impl Iterator<Item = f64>) -> Vec<f64> {
        let bounds = self.blocks.bounds().iter();
        let radius = radius / self.rate;
        bounds.zip(totals).map(|(a, total)| radius * (a / total)).collect()
    }
}

impl Law for ShapedLaplace {
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        let radius = self.radius.sample(generator);
        let mut totals: Vec<f64> = self.blocks.bounds().iter().map(|_| generator.sample(Exp1)).collect();
        let mut draw = vec![0.0; self.blocks.dim()];
        for (x, block) in draw.iter_mut().zip(self.blocks.members()) {
            let size: f64 = generator.sample(Exp1);
            totals[*block] += size;
            *x = if generator.random::<bool>() { size } else { -size };
        }
        let factors = self.factors(radius, totals.into_iter());
        for (x, block) in draw.iter_mut().zip(self.blocks.members()) {
            *x *= factors[*block];
        }
        draw
    }

    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        let dim = self.blocks.dim();
        let mut radius = Sum::default();
        for _ in 0..=dim {
            radius.add(bounded::exponential(generator)?);
        }
        bounded::check_tail(radius.value(), bounded::sum_tail(dim + 1))?;
        let mut totals = vec![Sum::default(); self.blocks.bounds().len()];
        for total in &mut totals {
            total.add(bounded::exponential(generator)?);
        }
        let mut draw = vec![0.0; dim];
        for (x, block) in draw.iter_mut().zip(self.blocks.members()) {
            let size = bounded::exponential(generator)?;
            totals[*block].add(size);
            *x = if bounded::coin(generator) { size } else { -size };
        }
        let factors = self.factors(radius.value(), totals.into_iter().map(Sum::value));
        for (x, block) in draw.iter_mut().zip(self.blocks.members()) {
            *x *= factors[*block];
        }
        Ok(draw)
    }

    /// Every coordinate errs by at most a share of itself: that of its exponential number, of its block's sum and of the radius, and four
    /// roundings.
    fn error_bound(&self) -> f64 {
        let dim = self.blocks.dim();
        let radius = bounded::EXPONENTIAL_ERROR + Sum::error(dim + 1);
        let total = bounded::EXPONENTIAL_ERROR + Sum::error(dim + 1);
        let relative = radius + total + bounded::EXPONENTIAL_ERROR + 4.1 * U;
        let tail = bounded::sum_tail(dim + 1);
        bounded::distance(relative, tail, self.blocks.norm() / self.rate, dim)
    }
}

#[cfg(test)]
mod tests {
    use statrs::function::beta::beta_reg;
    use statrs::function::gamma::gamma_lr;

    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::{assert_cdf, assert_mean};

    const RATE: f64 = 2.5;

    /// Numbers, a pair and a group: of each kind what fits into so many coordinates.
    fn shape(dim: usize) -> Arc<Blocks> {
        let (bounds, members) = match dim {
            1 => (vec![0.5], vec![0]),
            2 => (vec![0.5, 3.0], vec![1, 0]),
            _ => {
                let group = dim / 2;
                let mut members = vec![0; group];
                members.extend([1, 1]);
                members.extend((2..).take(dim - group - 2));
                let bounds = (0..dim - group).map(|b| 0.2 + b as f64 / 7.0).collect();
                (bounds, members)
            }
        };
        Arc::new(Blocks::new(bounds, members).unwrap())
    }

    fn draws(blocks: &Arc<Blocks>, count: usize, bounded: bool) -> Vec<Vec<f64>> {
        let law = ShapedLaplace::new(Arc::clone(blocks), RATE).unwrap();
        let mut generator = SimulationGenerator::new(81, blocks.dim() as u64);
        let draw = |_| {
            if bounded {
                law.sample_bounded(&mut generator).unwrap()
            } else {
                law.sample(&mut generator)
            }
        };
        (0..count).map(draw).collect()
    }

    fn cases() -> impl Iterator<Item = (Arc<Blocks>, bool, usize)> {
        let dims = [(1, 20_000), (2, 20_000), (8, 20_000), (66, 5_000), (500, 2_000)];
        dims.into_iter()
            .flat_map(|(dim, count)| [false, true].map(|bounded| (shape(dim), bounded, count)))
    }

    #[test]
    fn the_norm_is_gamma() {
        // The surface of a ball of radius r grows as r^(D-1).
        for (blocks, bounded, count) in cases() {
            let norms = draws(&blocks, count, bounded)
                .iter()
                .map(|b| blocks.norm_of(b))
                .collect();
            assert_cdf(norms, |r| gamma_lr(blocks.dim() as f64, RATE * r));
        }
    }

    #[test]
    fn each_block_is_uniform_in_its_ball() {
        // Over the norm of the others: those of the blocks are independent of the radius in law only jointly, so ratios of a coordinate to
        // its block's sum are compared, which are Beta(1, k-1) and independent of everything else.
        for (blocks, bounded, count) in cases() {
            let all = draws(&blocks, count, bounded);
            for (block, &size) in blocks.sizes().iter().enumerate().take(3) {
                let inside: Vec<usize> = (0..blocks.dim()).filter(|j| blocks.members()[*j] == block).collect();
                let first = inside[0];
                let signs: Vec<f64> = all.iter().map(|b| b[first].signum()).collect();
                assert_mean(&signs, 0.0);
                if size == 1 {
                    continue;
                }
                let shares = all.iter().map(|b| {
                    let sum: f64 = inside.iter().map(|j| b[*j].abs()).sum();
                    b[first].abs() / sum
                });
                assert_cdf(shares.collect(), |x| {
                    1.0 - (1.0 - x).powi(i32::try_from(size).unwrap() - 1)
                });
            }
        }
    }

    #[test]
    fn blocks_are_independent_given_the_scale() {
        // Of the sums of the blocks over their bounds, the greatest is the norm; with the block that has it left out, the ratio of
        // another's to it is t with probability t^k, k its size, whatever the others are.
        for (blocks, bounded, count) in cases().filter(|(blocks, ..)| blocks.bounds().len() > 1) {
            let all = draws(&blocks, count, bounded);
            let last = blocks.bounds().len() - 1;
            let size = blocks.sizes()[last] as f64;
            let ratio = |b: &Vec<f64>| {
                let mut sums = vec![0.0; last + 1];
                for (j, x) in b.iter().enumerate() {
                    sums[blocks.members()[j]] += x.abs();
                }
                let ratios = sums.iter().zip(blocks.bounds()).map(|(s, a)| s / a);
                let ratios: Vec<f64> = ratios.collect();
                let others = ratios[..last].iter().fold(0.0_f64, |a, b| a.max(*b));
                ratios[last] / others.max(ratios[last])
            };
            // Uniform in blocks of total size D: P(ratio ≤ t) = t^k·(D-k)/D for t < 1, and the rest at 1.
            let dim = blocks.dim() as f64;
            let inner: Vec<f64> = all.iter().map(ratio).filter(|t| *t < 1.0).collect();
            let share = inner.len() as f64 / count as f64;
            let expected = (dim - size) / dim;
            let error = (expected * (1.0 - expected) / count as f64).sqrt();
            assert!((share - expected).abs() < 5.0 * error, "{share} {expected}");
            assert_cdf(inner, |t| t.powf(size));
        }
    }

    #[test]
    fn variances_are_as_stated_and_coordinates_uncorrelated() {
        for (blocks, bounded, count) in cases() {
            let all = draws(&blocks, count, bounded);
            let dim = blocks.dim();
            let radius = (dim as f64 + 1.0) * (dim as f64 + 2.0) / RATE.powi(2);
            let variances = blocks.variances();
            for j in [0, dim / 2, dim - 1] {
                let variance = radius * variances[j];
                let squares: Vec<f64> = all.iter().map(|b| b[j] * b[j] / variance).collect();
                assert_mean(&squares, 1.0);
            }
            if dim > 1 {
                let products: Vec<f64> = all.iter().map(|b| b[0] * b[1]).collect();
                assert_mean(&products, 0.0);
            }
        }
    }

    #[test]
    fn a_number_of_a_box_is_a_gamma_times_a_uniform_one() {
        // P(|b| ≤ x) = P(r ≤ x) + E[x/r; r > x], r ~ Gamma(D+1): and E[1/r; r > x] is γ/D times the tail of Gamma(D).
        for (dim, bounded) in [(2, false), (2, true), (66, true)] {
            let bounds = (0..dim).map(|j| 1.0 + f64::from(j)).collect();
            let members = (0..usize::try_from(dim).unwrap()).collect();
            let blocks = Arc::new(Blocks::new(bounds, members).unwrap());
            let d = f64::from(dim);
            let all = draws(&blocks, 20_000, bounded);
            assert_cdf(all.iter().map(|b| b[0].abs()).collect(), |x| {
                let t = RATE * x;
                gamma_lr(d + 1.0, t) + t / d * (1.0 - gamma_lr(d, t))
            });
        }
    }

    #[test]
    fn one_block_is_uniform_in_the_cross_polytope() {
        // Of one block alone the sum of absolute values is Gamma(D), so coordinates are Laplace numbers.
        let blocks = Arc::new(Blocks::new(vec![2.0], vec![0; 7]).unwrap());
        for bounded in [false, true] {
            let all = draws(&blocks, 20_000, bounded);
            assert_cdf(all.iter().map(|b| b[3].abs()).collect(), |x| {
                -(-RATE * x / 2.0).exp_m1()
            });
            let shares = draws(&blocks, 20_000, bounded)
                .iter()
                .map(|b| b[3].abs() / b.iter().map(|x| x.abs()).sum::<f64>())
                .collect();
            assert_cdf(shares, |x| beta_reg(1.0, 6.0, x.clamp(0.0, 1.0)));
        }
    }

    #[test]
    fn bad_rates_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ShapedLaplace::new(shape(2), rate).is_err());
        }
    }
}
