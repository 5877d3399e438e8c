//! Releases how many rows lie in the cells of columns, with discrete noise (docs/proofs/bounds.md).

use crate::Result;
use crate::exec::Executor;
use crate::noise::NoiseGenerator;
use crate::spec::{CountLaw, CountsSpec};

/// Counts between two questions whether to go on.
const BLOCK: usize = 1 << 10;

/// Releases counts, each with noise of its own; what 64 bits do not hold is moved to their ends.
///
/// # Privacy
/// Spends the whole budget of `spec` if the counts are those of disjoint cells of its columns, or its one number of records, over the
/// same records, cells of at most as many rows of each as the unit allows. Counts and noise are whole numbers and the draw is exact, so that it
/// needs no seal.
pub fn release_counts(
    spec: &CountsSpec,
    counts: &[u64],
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<i64>> {
    generator.refresh()?;
    let mut released = Vec::with_capacity(counts.len());
    for block in counts.chunks(BLOCK) {
        exec.check()?;
        released.extend(block.iter().map(|count| {
            let noise = match spec.law() {
                CountLaw::Laplace(law) => law.sample(generator),
                CountLaw::Gaussian(law) => law.sample(generator),
            };
            let found = i128::from(*count) + noise;
            i64::try_from(found).unwrap_or(if found < 0 { i64::MIN } else { i64::MAX })
        }));
    }
    Ok(released)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::privacy::{Budget, Neighbors};
    use crate::spec::Counted;
    use crate::unit::Unit;

    #[test]
    fn counts_have_the_noise_of_their_law() {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        for (budget, variance) in [
            // Scales 20, and 11, the whole number above 10.
            (Budget::Pure { epsilon: 0.1 }, 2.0 * 400.0),
            (Budget::Zcdp { rho: 0.01 }, 121.0),
        ] {
            let neighbors = Neighbors::ReplaceOne;
            let spec = CountsSpec::new(Counted::Columns(1), budget, Unit::Row, neighbors).unwrap();
            let mut generator = SimulationGenerator::new(96, 0);
            let counts = vec![1000; 40_000];
            let found = release_counts(&spec, &counts, &exec, &mut generator).unwrap();
            let errors: Vec<f64> = found.iter().map(|c| (*c - 1000) as f64).collect();
            let n = errors.len() as f64;
            let mean = errors.iter().sum::<f64>() / n;
            let square = errors.iter().map(|e| e * e).sum::<f64>() / n;
            // Five standard errors: false in one of a million.
            assert!(mean.abs() < 5.0 * (variance / n).sqrt(), "{mean}");
            assert!((square / variance - 1.0).abs() < 5.0 * (5.0 / n).sqrt(), "{square}");
        }
    }
}
