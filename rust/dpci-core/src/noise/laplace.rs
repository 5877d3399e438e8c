//! Laplace noise: independent coordinates with density proportional to `exp(-|x|/scale)`.

use rand::RngExt;
use rand_distr::Exp1;

use super::{Law, NoiseGenerator, bounded, check_dim, check_positive};
use crate::Result;

/// Independent Laplace coordinates on `R^dim`. Added to a query of L1 sensitivity Δ with scale Δ/ε it is ε-DP (Dwork et al.
/// 2006).
#[derive(Debug, Clone, Copy)]
pub struct Laplace {
    dim: usize,
    scale: f64,
}

impl Laplace {
    /// The law on `R^dim`; a coordinate has standard deviation √2·`scale`.
    pub fn new(dim: usize, scale: f64) -> Result<Self> {
        check_dim(dim)?;
        check_positive("scale", scale)?;
        Ok(Self { dim, scale })
    }
}

impl Law for Laplace {
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        // The difference of two exponentials has the law, without a logarithm of a number that may round to 0 or 1.
        (0..self.dim)
            .map(|_| {
                let [a, b]: [f64; 2] = std::array::from_fn(|_| generator.sample(Exp1));
                self.scale * (a - b)
            })
            .collect()
    }

    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        let mut draw = Vec::with_capacity(self.dim);
        let mut square = bounded::Sum::default();
        for _ in 0..self.dim {
            let size = bounded::exponential(generator)?;
            square.add(size * size);
            let negative = bounded::coin(generator);
            draw.push(self.scale * if negative { -size } else { size });
        }
        bounded::check_tail(square.value().sqrt(), bounded::exponential_tail(self.dim))?;
        Ok(draw)
    }

    fn error_bound(&self) -> f64 {
        let relative = bounded::EXPONENTIAL_ERROR + bounded::U;
        let tail = bounded::exponential_tail(self.dim);
        bounded::distance(relative, tail, self.scale, self.dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::{assert_cdf, assert_mean};

    #[test]
    fn coordinates_are_laplace_and_uncorrelated() {
        let law = Laplace::new(3, 2.5).unwrap();
        let mut generator = SimulationGenerator::new(31, 0);
        let draws: Vec<_> = (0..20_000).map(|_| law.sample(&mut generator)).collect();
        let bounded: Vec<_> = (0..20_000)
            .map(|_| law.sample_bounded(&mut generator).unwrap())
            .collect();
        for draws in [draws, bounded] {
            for coordinate in [0, 2] {
                assert_cdf(draws.iter().map(|b| b[coordinate]).collect(), |x| {
                    let half_tail = 0.5 * (-x.abs() / 2.5).exp();
                    if x < 0.0 { half_tail } else { 1.0 - half_tail }
                });
            }
            assert_mean(&draws.iter().map(|b| b[0] * b[1]).collect::<Vec<_>>(), 0.0);
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert!(Laplace::new(0, 1.0).is_err());
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Laplace::new(2, scale).is_err());
        }
    }
}
