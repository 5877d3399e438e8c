//! Monte Carlo intervals under noise in the shape of blocks.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::RngExt;
use rand_distr::StandardNormal;

use super::monte_carlo::{CHUNK, Mixing, Rank};
use super::spread::ErrorShape;
use crate::error::check_length;
use crate::linalg::vector;
use crate::noise::{Law, NoiseGenerator};
use crate::{Error, Result};

/// Counterpart of [`super::monte_carlo()`] for noise in the shape of blocks: `a` has the multipliers of all coordinates, contrast by
/// contrast. Memory is that of all draws of all contrasts.
pub(super) fn monte_carlo(
    v: &[f64],
    a: &[f64],
    shape: &ErrorShape,
    level: f64,
    n_draws: usize,
    generator: &mut impl NoiseGenerator,
    cancel: &AtomicBool,
) -> Result<Vec<(f64, f64)>> {
    let dim = shape.law.blocks().map_or(0, |blocks| blocks.dim());
    check_length("a", v.len() * dim, a.len())?;
    for (name, values) in [("v", v), ("a", a)] {
        let bad = |x: &&f64| !(x.is_finite() && (**x >= 0.0 || name == "a"));
        if let Some(&value) = values.iter().find(bad) {
            return Err(Error::OutOfRange {
                name,
                rule: "finite, and at least 0 for a variance",
                value,
            });
        }
    }
    let law = shape.law.on(dim)?;
    let matrices = Mixing::gamma(shape.matrices)?;
    let mut errors = vec![Vec::new(); v.len()];
    for draws in &mut errors {
        let reserved = draws.try_reserve_exact(n_draws);
        reserved.map_err(|error| Error::Resource(error.to_string()))?;
    }
    for i in 0..n_draws {
        if i % CHUNK == 0 && cancel.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let noise = law.sample(generator);
        let z: f64 = generator.sample(StandardNormal);
        let root = matrices.sample(generator).sqrt();
        let rows = v.iter().zip(a.chunks_exact(dim));
        for ((v, row), draws) in rows.zip(&mut errors) {
            draws.push(root * (v.sqrt() * z + vector::dot(row, &noise)));
        }
    }
    let rank = Rank::new(level, n_draws);
    let quantiles = errors.iter_mut().map(|draws| {
        let upper = rank.upper(draws);
        for error in draws.iter_mut() {
            *error = -*error;
        }
        ((-rank.upper(draws)).min(upper), upper)
    });
    Ok(quantiles.collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::interval::{ErrorShape, half_widths, monte_carlo};
    use crate::noise::{NoiseLaw, SimulationGenerator};
    use crate::row_domain::Blocks;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn draws_give_the_exact_intervals() {
        let blocks = Arc::new(Blocks::new(vec![1.0, 2.0], vec![0, 1, 1]).unwrap());
        let law = NoiseLaw::ShapedLaplace { blocks, rate: 2.0 };
        let shape = ErrorShape { law, matrices: 6.0 };
        let (v, a) = ([0.3, 0.0], [1.0, 0.0, -2.0, 0.0, 1.0, 1.0]);
        let mut generator = SimulationGenerator::new(6, 1);
        let never = AtomicBool::new(false);
        let mut run = |a: &[f64], n| monte_carlo(&v, a, &shape, 0.9, n, &mut generator, &never);
        let exact = half_widths(&v, &a, &shape, 0.9).unwrap();
        for ((lower, upper), half) in run(&a, 200_000).unwrap().into_iter().zip(exact) {
            assert!((upper / half - 1.0).abs() < 0.02 && (lower / half + 1.0).abs() < 0.02);
        }
        assert!(run(&a[1..], 10).is_err() && run(&[f64::NAN; 6], 10).is_err());
        let stop = AtomicBool::new(true);
        let mut generator = SimulationGenerator::new(6, 1);
        assert!(monte_carlo(&v, &a, &shape, 0.9, 10, &mut generator, &stop).is_err());
    }
}
