//! Releases levels of columns: which of the values that a table has are listed (docs/proofs/bounds.md).

use std::collections::BTreeMap;

use super::bounds::kept_rows;
use crate::design::{Persons, Rows};
use crate::exec::{Executor, blocks};
use crate::noise::{NoiseGenerator, kept_levels};
use crate::spec::LevelsSpec;
use crate::{Error, Result};

/// Releases the levels of each column that are kept, as the whole numbers that stand for them, increasing. What is not at least 0 is none.
///
/// # Privacy
/// Spends the whole budget of `spec`: each level is kept by itself, exactly with the probability of its count alone, so that none is kept
/// that no row has (docs/proofs/bounds.md).
pub fn release_levels(
    spec: &LevelsSpec,
    rows: &Rows<'_>,
    persons: Option<&Persons>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<Vec<u64>>> {
    let kept = kept_rows(spec.unit(), spec.n_columns(), rows, persons)?;
    let counts = count(spec.n_columns(), rows, kept.as_deref(), exec)?;
    counts
        .iter()
        .map(|column| {
            let each: Vec<u64> = column.values().copied().collect();
            let kept = release_kept(spec, &each, exec, generator)?;
            let levels = column.keys().zip(kept).filter(|(_, kept)| *kept);
            Ok(levels.map(|(level, _)| *level).collect())
        })
        .collect()
}

/// Releases which levels of one column are kept, of those that so many rows have.
///
/// # Privacy
/// The promise of [`release_levels`], whose whole budget the releases of all columns spend, holds if the counts are those of the
/// same records, and of at most as many rows of each as the unit allows.
pub fn release_kept(
    spec: &LevelsSpec,
    counts: &[u64],
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<bool>> {
    let (epsilon, delta) = spec.each();
    kept_levels(counts, epsilon, delta, &|| exec.check(), generator)
}

/// Rows of each level of each column, of those that count: all if none are named. Not private.
fn count(
    n_columns: usize,
    rows: &Rows<'_>,
    kept: Option<&[usize]>,
    exec: &Executor<'_>,
) -> Result<Vec<BTreeMap<u64, u64>>> {
    let Rows::Dense(rows) = rows else {
        return Err(Error::Unsupported(
            "rows must be dense where levels are released".into(),
        ));
    };
    let mut counts = vec![BTreeMap::new(); n_columns];
    let n = kept.map_or(rows.n_rows(), <[usize]>::len);
    for range in blocks(0..n) {
        exec.check()?;
        for at in range {
            let i = kept.map_or(at, |kept| kept[at]);
            for (counts, value) in counts.iter_mut().zip(rows.rows(&(i..i + 1)).iter()) {
                if *value >= 0.0 {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "a whole number of at least 0"
                    )]
                    let level = *value as u64;
                    *counts.entry(level).or_insert(0) += 1;
                }
            }
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::privacy::{Budget, Neighbors};
    use crate::unit::Unit;

    fn spec(n_columns: usize, unit: Unit) -> LevelsSpec {
        let budget = Budget::Approx {
            epsilon: 2.0,
            delta: 1e-3,
        };
        LevelsSpec::new(n_columns, budget, unit, Neighbors::ReplaceOne).unwrap()
    }

    #[test]
    fn frequent_levels_are_kept_and_no_other() {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let mut generator = SimulationGenerator::new(95, 0);
        // Of 1,000 rows: one level in all, one in a single row, one in half of them; missing values, which are NaN or below 0, in others.
        let values: Vec<f64> = (0..1000)
            .flat_map(|i| {
                let second = if i == 7 {
                    5.0
                } else if i % 2 == 0 {
                    2.0
                } else {
                    f64::NAN
                };
                [0.0, second, -1.0]
            })
            .collect();
        let rows = Rows::dense(&values, 3);
        let mut rare = 0;
        for _ in 0..200 {
            let found = release_levels(&spec(3, Unit::Row), &rows, None, &exec, &mut generator).unwrap();
            assert_eq!(found[0], [0]);
            assert!(found[1] == [2] || found[1] == [2, 5]);
            rare += found[1].len() - 1;
            assert!(found[2].is_empty());
        }
        // With probability δ/6 of each release.
        assert!(rare <= 4, "{rare}");
    }

    #[test]
    fn rows_beyond_a_persons_most_do_not_count() {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let unit = Unit::Person { max_rows: Some(1) };
        // Every person's second row has another level.
        let values: Vec<f64> = (0..400).map(|i| f64::from(i / 200)).collect();
        let ids: Vec<i64> = (0..400).map(|i| i % 200).collect();
        let rows = Rows::dense(&values, 1);
        let persons = Persons::new(&ids, unit, &exec).unwrap();
        let mut generator = SimulationGenerator::new(96, 0);
        let found = release_levels(&spec(1, unit), &rows, Some(&persons), &exec, &mut generator);
        assert_eq!(found.unwrap(), [vec![0]]);
        assert!(release_levels(&spec(1, Unit::Row), &rows, Some(&persons), &exec, &mut generator).is_err());
        assert!(release_levels(&spec(2, unit), &rows, Some(&persons), &exec, &mut generator).is_err());
    }
}
