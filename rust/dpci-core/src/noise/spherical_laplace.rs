//! Spherical Laplace noise: density proportional to `exp(-rate·‖b‖₂)` on `R^dim`.

use rand::RngExt;
use rand_distr::{Distribution, Gamma, StandardNormal};

use super::bounded::{self, Sum, U};
use super::{Law, NoiseGenerator, check_dim, check_positive};
use crate::bugs::{Bug, active};
use crate::{Error, Result};

/// The law with density `∝ exp(-γ‖b‖₂)` on `R^D`: a Gamma(D, 1/γ) radius times a uniform direction.
///
/// The same law is `√Ω·N(0, I)` with `Ω ~ Gamma((D+1)/2, rate γ²/2)`, on which the exact intervals rest (docs/proofs/mechanisms.md,
/// "Noise"). Added to a query of L2 sensitivity Δ with `γ = ε/Δ` it is ε-DP (Chaudhuri, Monteleoni & Sarwate 2011).
#[derive(Debug, Clone, Copy)]
pub struct SphericalLaplace {
    dim: usize,
    rate: f64,
    radius: Gamma<f64>,
}

impl SphericalLaplace {
    /// The law on `R^dim` with rate γ = `rate`.
    pub fn new(dim: usize, rate: f64) -> Result<Self> {
        check_dim(dim)?;
        check_positive("rate", rate)?;
        // The unit law is drawn and divided by the rate, so that no rate can overflow a parameter of the sampler.
        let radius = Gamma::new(dim as f64, 1.0).map_err(|_| Error::OutOfRange {
            name: "dim",
            rule: "finite in double precision",
            value: dim as f64,
        })?;
        Ok(Self { dim, rate, radius })
    }
}

impl Law for SphericalLaplace {
    fn sample(&self, generator: &mut impl NoiseGenerator) -> Vec<f64> {
        let mut draw = vec![0.0; self.dim];
        // Normals that are all zero have no direction; they come once in a very long while and are drawn again.
        let norm = loop {
            for x in &mut draw {
                *x = generator.sample(StandardNormal);
            }
            let norm = draw.iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm > 0.0 {
                break norm;
            }
        };
        let factor = self.radius.sample(generator) / self.rate / norm;
        for x in &mut draw {
            *x *= factor;
        }
        draw
    }

    /// A sum of `dim` exponential numbers, which is Gamma, times the direction of normal ones.
    fn sample_bounded(&self, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
        let mut radius = Sum::default();
        for _ in usize::from(active(Bug::RadiusDimension))..self.dim {
            radius.add(bounded::exponential(generator)?);
        }
        bounded::check_tail(radius.value(), bounded::sum_tail(self.dim))?;
        let mut draw = direction(self.dim, generator)?;
        let mut square = Sum::default();
        for x in &draw {
            square.add(x * x);
        }
        let factor = radius.value() / self.rate / square.value().sqrt();
        for x in &mut draw {
            *x *= factor;
        }
        Ok(draw)
    }

    fn error_bound(&self) -> f64 {
        let sum = Sum::error(self.dim);
        let radius = bounded::EXPONENTIAL_ERROR + sum;
        // Two vectors apart by a share of their length are apart by no more when scaled to length one.
        let direction = bounded::NORMAL_ERROR + U;
        let norm = 0.5 * (U + sum) + U;
        let relative = radius + direction + norm + 3.1 * U;
        let tail = bounded::sum_tail(self.dim);
        bounded::distance(relative, tail, 1.0 / self.rate, self.dim)
    }
}

/// A vector of uniform direction whose greatest coordinate is ±1.
fn direction(dim: usize, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
    if dim == 1 {
        // A single normal number may underflow, and with it its sign.
        return Ok(vec![if bounded::coin(generator) { 1.0 } else { -1.0 }]);
    }
    let (mut draw, _) = bounded::normals(dim, generator)?;
    let sizes = draw.iter().map(|x| x.abs());
    let greatest = sizes.max_by(f64::total_cmp).unwrap_or(1.0);
    for x in &mut draw {
        *x /= greatest;
    }
    Ok(draw)
}

#[cfg(test)]
mod tests {
    use statrs::function::gamma::{gamma_lr, ln_gamma};

    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::{assert_cdf, assert_mean, normal_cdf};

    const RATE: f64 = 2.5;

    /// Draws of a simulation, or as a release makes them.
    fn draws(dim: usize, count: usize, bounded: bool) -> Vec<Vec<f64>> {
        let law = SphericalLaplace::new(dim, RATE).unwrap();
        let mut generator = SimulationGenerator::new(20, dim as u64);
        let draw = |_| {
            if bounded {
                law.sample_bounded(&mut generator).unwrap()
            } else {
                law.sample(&mut generator)
            }
        };
        (0..count).map(draw).collect()
    }

    /// Each dimension with each sampler.
    fn cases(dims: &[usize]) -> impl Iterator<Item = (usize, bool)> {
        dims.iter().flat_map(|dim| [(*dim, false), (*dim, true)])
    }

    /// P(X ≤ x) for one coordinate, by trapezoids in log Ω of the normal mixture: the variance-gamma law.
    fn variance_gamma_cdf(dim: usize, x: f64) -> f64 {
        let shape = f64::midpoint(dim as f64, 1.0);
        let step = 0.02 / shape.sqrt();
        (-2500..2500_i32)
            .map(|i| {
                let t = f64::from(i) * step;
                let log_density = shape * shape.ln() - ln_gamma(shape) + shape * (t - t.exp());
                let omega = t.exp() * (dim as f64 + 1.0) / RATE.powi(2);
                step * log_density.exp() * normal_cdf(x / omega.sqrt())
            })
            .sum()
    }

    #[test]
    fn radius_is_gamma() {
        for (dim, bounded) in cases(&[1, 2, 11, 66, 4186]) {
            let count = if dim > 1000 { 1000 } else { 20_000 };
            let radii = draws(dim, count, bounded)
                .iter()
                .map(|b| b.iter().map(|x| x * x).sum::<f64>().sqrt())
                .collect();
            assert_cdf(radii, |r| gamma_lr(dim as f64, RATE * r));
        }
    }

    #[test]
    fn coordinate_is_variance_gamma() {
        for (dim, bounded) in cases(&[1, 2, 11, 66]) {
            let last = draws(dim, 20_000, bounded)
                .iter()
                .map(|b| b[dim - 1])
                .collect::<Vec<_>>();
            let std_dev = (dim as f64 + 1.0).sqrt() / RATE;
            assert_mean(&last.iter().map(|x| x / std_dev).collect::<Vec<_>>(), 0.0);
            assert_mean(&last.iter().map(|x| (x / std_dev).powi(2)).collect::<Vec<_>>(), 1.0);
            assert_cdf(last, |x| variance_gamma_cdf(dim, x));
        }
    }

    #[test]
    fn one_dimension_is_the_laplace_law() {
        for bounded in [false, true] {
            let values = draws(1, 20_000, bounded).iter().map(|b| b[0]).collect();
            assert_cdf(values, |x| {
                let half_tail = 0.5 * (-RATE * x.abs()).exp();
                if x < 0.0 { half_tail } else { 1.0 - half_tail }
            });
        }
    }

    #[test]
    fn direction_is_uniform() {
        // In the plane the angle is uniform; in any dimension the square of a direction's coordinate is Beta(1/2, (D-1)/2),
        // whose mean is 1/D.
        for bounded in [false, true] {
            let plane = draws(2, 20_000, bounded);
            let angles = plane.iter().map(|b| b[1].atan2(b[0])).collect();
            assert_cdf(angles, |angle| 0.5 + angle / std::f64::consts::TAU);
            let squares: Vec<_> = draws(11, 20_000, bounded)
                .iter()
                .map(|b| b[3].powi(2) / b.iter().map(|x| x * x).sum::<f64>())
                .collect();
            assert_mean(&squares, 1.0 / 11.0);
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert!(SphericalLaplace::new(0, 1.0).is_err());
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(SphericalLaplace::new(2, rate).is_err());
        }
    }
}
