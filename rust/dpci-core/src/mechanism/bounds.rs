//! Releases bounds of columns: which cells of public points hold the ranks near the ends (docs/proofs/bounds.md).

use crate::design::{Persons, Rows};
use crate::error::check_length;
use crate::exec::{Executor, blocks, row_chunks};
use crate::noise::{Entry, NoiseGenerator, joint_index};
use crate::spec::{BoundsSpec, ColumnRange, PublicPoints, Stage, points_of};
use crate::unit::Unit;
use crate::{Error, Result};

/// Columns of the rows whose values are counted, and what is known of each, which decides its public points.
pub type CountedColumns = [(usize, ColumnRange)];

/// Columns of the rows, with their public points.
type Columns<'a> = [(usize, &'a PublicPoints)];

/// Values of one column at each point and in each cell, but for those that stand apart. Not private.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnCounts {
    /// Values at each point.
    pub at: Vec<u64>,
    /// Values between a point and the next.
    pub between: Vec<u64>,
}

/// Releases bounds of each column; the range where they are degenerate, and `None` where none is known, as of a column of zeros.
///
/// # Privacy
/// Spends the whole budget of `spec`. Each stage is the exponential mechanism on rank errors that a record moves by at most 1, in all
/// columns at once (docs/proofs/bounds.md), over all cells together or for each bound by itself. Errors are whole numbers and the choice
/// is exact, so that it needs no seal. Nothing is assumed about the values, infinite and missing ones included.
pub fn release_bounds(
    spec: &BoundsSpec,
    rows: &Rows<'_>,
    persons: Option<&Persons>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<Option<[f64; 2]>>> {
    let count = |columns: &CountedColumns| count_cells(columns, rows, persons, exec);
    kept_rows(spec.unit(), spec.n_columns(), rows, persons)?;
    release_counted_bounds(spec, &count, exec, generator)
}

/// The same, of rows that are counted elsewhere: `count` has the counts of [`count_cells`] over all records.
///
/// # Privacy
/// The promise of [`release_bounds`] holds if the counts are those of the same records each time, and of at most as many rows of each as
/// the unit allows.
pub fn release_counted_bounds(
    spec: &BoundsSpec,
    count: &dyn Fn(&CountedColumns) -> Result<Vec<ColumnCounts>>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<Option<[f64; 2]>>> {
    let mut known = spec.columns().to_vec();
    for stage in spec.stages() {
        let columns: Vec<_> = stage.columns().iter().map(|j| (*j, known[*j])).collect();
        let points = points(&columns)?;
        let counts = count(&columns)?;
        check_length("the counted columns", columns.len(), counts.len())?;
        for (points, counts) in points.iter().zip(&counts) {
            check_length("counts at points", points.n_cells() + 1, counts.at.len())?;
            check_length("counts between points", points.n_cells(), counts.between.len())?;
        }
        let cells = release_cells(stage, &points, &counts, exec, generator)?;
        for ((j, points), cells) in stage.columns().iter().zip(&points).zip(cells) {
            let known = &mut known[*j];
            if stage.is_of_sizes() {
                known.found = true;
                known.range = Some(points.sizes_up_to(cells[1]));
            } else {
                known.range = stage.bounds(points, cells, known.found).or(known.range);
            }
        }
    }
    let bounds = known.iter().map(|column| match column.range {
        // What stands apart is a value of the column, too.
        Some([lower, upper]) if column.zeros => Some([lower.min(0.0), upper.max(0.0)]),
        range => range,
    });
    Ok(bounds.collect())
}

fn points(columns: &CountedColumns) -> Result<Vec<PublicPoints>> {
    columns.iter().map(|(_, known)| points_of(*known)).collect()
}

/// Values of columns at their public points and between them, of the rows that count. Not private.
pub fn count_cells(
    columns: &CountedColumns,
    rows: &Rows<'_>,
    persons: Option<&Persons>,
    exec: &Executor<'_>,
) -> Result<Vec<ColumnCounts>> {
    let unit = persons.map_or(Unit::Row, Persons::unit);
    let n_columns = match rows {
        Rows::Dense(dense) => dense.n_columns(),
        Rows::Csr(_) | Rows::Coded(_) => 0,
    };
    let kept = kept_rows(unit, n_columns, rows, persons)?;
    if let Some((j, _)) = columns.iter().find(|(j, _)| *j >= n_columns) {
        return Err(Error::Unsupported(format!(
            "counted columns must be among the {n_columns} of the rows, got number {j}"
        )));
    }
    let points = points(columns)?;
    let columns: Vec<_> = columns.iter().map(|(j, _)| *j).zip(&points).collect();
    count(&columns, rows, kept.as_deref(), exec)
}

/// Rows that count, where not all do.
pub(super) fn kept_rows(
    calibrated_for: Unit,
    n_columns: usize,
    rows: &Rows<'_>,
    persons: Option<&Persons>,
) -> Result<Option<Vec<usize>>> {
    let unit = persons.map_or(Unit::Row, Persons::unit);
    if unit != calibrated_for {
        return Err(Error::Unsupported(format!(
            "a schema must be released for the unit that it was calibrated for, {calibrated_for}, got {unit}"
        )));
    }
    let Rows::Dense(dense) = rows else {
        let rule = "rows must be dense where a schema is released, got sparse or coded rows";
        return Err(Error::Unsupported(rule.into()));
    };
    check_length("each row of X", n_columns, dense.n_columns())?;
    let Some(persons) = persons else {
        return Ok(None);
    };
    check_length("persons", dense.n_rows(), persons.owners().len())?;
    let each = (0..persons.len()).flat_map(|person| persons.rows_of(person));
    Ok(Some(each.copied().collect()))
}

/// Counts of the values of the rows that count, all if none are named.
fn count(
    columns: &Columns<'_>,
    rows: &Rows<'_>,
    kept: Option<&[usize]>,
    exec: &Executor<'_>,
) -> Result<Vec<ColumnCounts>> {
    let Rows::Dense(rows) = rows else {
        return Ok(Vec::new());
    };
    let width = rows.n_columns();
    let n = kept.map_or(rows.n_rows(), <[usize]>::len);
    let chunks = row_chunks(n, width);
    let parts = exec.map(chunks.len(), |c| {
        let mut counts = empty(columns);
        let mut add = |rows: &[f64]| {
            for row in rows.chunks_exact(width) {
                for (counts, (j, public)) in counts.iter_mut().zip(columns) {
                    counts.add(public, row[*j]);
                }
            }
        };
        for range in blocks(chunks[c].clone()) {
            exec.check()?;
            match kept {
                None => add(&rows.rows(&range)),
                Some(kept) => kept[range].iter().for_each(|i| add(&rows.rows(&(*i..i + 1)))),
            }
        }
        Ok(counts)
    })?;
    let mut counts = empty(columns);
    for (total, part) in parts.iter().flat_map(|part| part.iter().enumerate()) {
        counts[total].merge(part);
    }
    Ok(counts)
}

fn empty(columns: &Columns<'_>) -> Vec<ColumnCounts> {
    let of = |(_, points): &(usize, &PublicPoints)| ColumnCounts {
        at: vec![0; points.n_cells() + 1],
        between: vec![0; points.n_cells()],
    };
    columns.iter().map(of).collect()
}

impl ColumnCounts {
    fn add(&mut self, public: &PublicPoints, value: f64) {
        if public.stands_apart(value) {
            return;
        }
        let points = public.points();
        let above = points.partition_point(|p| *p <= value);
        match above.checked_sub(1) {
            // Values beyond the ends count as the ends.
            None => self.at[0] += 1,
            Some(k) if points[k] >= value || above == points.len() => self.at[k] += 1,
            Some(k) => self.between[k] += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        let mine = self.at.iter_mut().chain(&mut self.between);
        for (a, b) in mine.zip(other.at.iter().chain(&other.between)) {
            *a += b;
        }
    }

    /// The counts of the sizes of these values, whose points lie alike on both sides of 0.
    fn of_sizes(&self) -> Self {
        let folded = |counts: &[u64], middle: usize| -> Vec<u64> {
            let (below, above) = counts.split_at(counts.len() / 2);
            let (zero, above) = above.split_at(middle);
            let pairs = below.iter().rev().zip(above).map(|(b, a)| b + a);
            zero.iter().copied().chain(pairs).collect()
        };
        Self {
            at: folded(&self.at, 1),
            between: folded(&self.between, 0),
        }
    }

    /// Rank errors of each cell as the one that holds the rank, from below and from above: how many ranks it misses it by.
    fn errors(&self, rank: impl Fn(u64) -> u64) -> [Vec<u64>; 2] {
        let counted = self.at.iter().chain(&self.between).sum();
        let rank = rank(counted);
        let misses = |least: u64, most: u64| least.saturating_sub(rank).max(rank.saturating_sub(most));
        let (last, mut below) = (self.between.len() - 1, 0);
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for (k, (at, between)) in self.at.iter().zip(&self.between).enumerate() {
            let next = below + at + between;
            // Values below the cell's first point, and below its last one; the last cell has those at its last point, too.
            lower.push(misses(below, if k == last { counted } else { next }));
            // Values above its last point, and above its first one; the first cell has those at its first point, too.
            let from = if k == 0 { 0 } else { below + at };
            upper.push(misses(counted - next - self.at[k + 1], counted - from));
            below = next;
        }
        [lower, upper]
    }
}

/// The cells of each column that hold the ranks of the stage, from below and from above or of the sizes; its whole cost.
fn release_cells(
    stage: &Stage,
    points: &[PublicPoints],
    counts: &[ColumnCounts],
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<[usize; 2]>> {
    let lists: Vec<Vec<Entry>> = if stage.is_of_sizes() {
        let sizes = counts.iter().map(ColumnCounts::of_sizes);
        let lists = points.iter().zip(sizes).map(|(points, sizes)| {
            let [_, upper] = sizes.errors(|counted| stage.rank(points, counted));
            preferred(stage, points, upper)
        });
        lists.collect()
    } else {
        let lists = points.iter().zip(counts).flat_map(|(points, counts)| {
            let [mut lower, upper] = counts.errors(|counted| stage.rank(points, counted));
            // The innermost cell of a lower bound is the last.
            lower.reverse();
            let mut lower = preferred(stage, points, lower);
            lower.reverse();
            [lower, preferred(stage, points, upper)]
        });
        lists.collect()
    };
    let (rate, together) = stage.rate();
    let check = || exec.check();
    let chosen = if together {
        joint_index(&lists, rate, &check, generator)?
    } else {
        let mut chosen = Vec::with_capacity(lists.len());
        for one in lists {
            chosen.extend(joint_index(&[one], rate, &check, generator)?);
        }
        chosen
    };
    if stage.is_of_sizes() {
        return Ok(chosen.into_iter().map(|cell| [cell; 2]).collect());
    }
    let pairs = chosen.chunks_exact(2);
    Ok(pairs.map(|pair| [pair[0], pair[1]]).collect())
}

/// Errors of cells, the innermost first, with what each cell counts as.
fn preferred(stage: &Stage, points: &PublicPoints, errors: Vec<u64>) -> Vec<Entry> {
    let counts = stage.preferences(points, errors.len());
    errors.into_iter().zip(counts).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::noise::testing::assert_counts;
    use crate::noise::{SimulationGenerator, uniform_index};
    use crate::privacy::Budget;
    use crate::spec::ColumnRange;

    fn columns(ranges: &[Option<[f64; 2]>]) -> Vec<ColumnRange> {
        let of = |range: &Option<[f64; 2]>| ColumnRange {
            range: *range,
            zeros: *range == Some([0.0, 100.0]),
            found: false,
        };
        ranges.iter().map(of).collect()
    }

    fn spec(ranges: &[Option<[f64; 2]>], n: usize, epsilon: f64) -> BoundsSpec {
        let budget = Budget::Pure { epsilon };
        BoundsSpec::new(columns(ranges), n, budget, Unit::Row).unwrap()
    }

    fn counts(public: &[PublicPoints], rows: &[f64]) -> Vec<ColumnCounts> {
        let cancel = AtomicBool::new(false);
        let columns: Vec<_> = public.iter().enumerate().collect();
        let rows = Rows::dense(rows, public.len());
        count(&columns, &rows, None, &Executor::sequential(&cancel)).unwrap()
    }

    fn errors(stage: &Stage, public: &[PublicPoints], rows: &[f64]) -> Vec<Vec<u64>> {
        let columns = counts(public, rows);
        let each = columns.iter().zip(public);
        let each = each.flat_map(|(counts, public)| counts.errors(|n| stage.rank(public, n)));
        each.collect()
    }

    #[test]
    fn values_fall_at_points_and_between_them() {
        let public = PublicPoints::new(vec![0.0, 1.0, 2.0, 4.0], vec![0.0]).unwrap();
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let values = [0.0, 0.5, 1.0, 1.0, 3.0, 4.0, 9.0, inf, -2.0, nan, -0.0];
        let found = &counts(&[public], &values)[0];
        assert_eq!(found.at, [1, 2, 0, 3]);
        assert_eq!(found.between, [1, 0, 1]);
    }

    #[test]
    fn counts_of_sizes_are_those_of_values_without_their_signs() {
        let values = [-9.0, -4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 16.0];
        let both = PublicPoints::new(vec![-4.0, -1.0, 0.0, 1.0, 4.0], vec![]).unwrap();
        let above = PublicPoints::new(vec![0.0, 1.0, 4.0], vec![]).unwrap();
        let found = counts(std::slice::from_ref(&both), &values)[0].of_sizes();
        assert_eq!(found, counts(&[above], &values.map(f64::abs))[0]);
        assert_eq!((found.at.len(), found.between.len()), (3, 2));
        assert_eq!([0, 1].map(|cell| both.sizes_up_to(cell)), [[-1.0, 1.0], [-4.0, 4.0]]);
    }

    #[test]
    fn one_record_moves_no_error_by_more_than_one() {
        let public = [PublicPoints::new(vec![-1.0, 0.0, 1.0, 2.0], vec![0.0, -1.0]).unwrap()];
        let values = [-5.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, f64::NAN];
        let mut generator = SimulationGenerator::new(81, 0);
        for n in [3, 4, 7, 12, 60] {
            let spec = spec(&[Some([-1.0, 2.0])], n, 400.0);
            let stage = &spec.stages()[0];
            for _ in 0..40 {
                let rows: Vec<f64> = (0..n)
                    .map(|_| values[uniform_index(values.len(), &mut generator)])
                    .collect();
                let before = errors(stage, &public, &rows);
                // Whatever the values are, some cell holds each rank.
                assert!(before.iter().all(|list| list.contains(&0)));
                let added = values.iter().map(|v| [&rows[..], &[*v]].concat());
                let mut neighbours: Vec<Vec<f64>> = added.collect();
                neighbours.push(rows[1..].to_vec());
                neighbours.extend(values.iter().map(|v| [&[*v], &rows[1..]].concat()));
                for neighbour in neighbours {
                    let after = errors(stage, &public, &neighbour);
                    let mut moved = before.iter().flatten().zip(after.iter().flatten());
                    assert!(moved.all(|(a, b)| a.abs_diff(*b) <= 1));
                }
            }
        }
    }

    #[test]
    fn bounds_hold_the_middle_of_each_column() {
        let n = 20_000_u16;
        let rows: Vec<f64> = (0..n)
            .flat_map(|i| {
                let u = (f64::from(i) + 0.5) / f64::from(n);
                // A narrow column in a wide range, an exponential one, and one that is 0 in nine of ten rows.
                let rare = if i % 10 == 0 { 5.0 * u } else { 0.0 };
                [30.0 + 20.0 * u, -u.ln(), rare]
            })
            .collect();
        let rows = Rows::dense(&rows, 3);
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let mut generator = SimulationGenerator::new(82, 0);
        let delta = 1e-6;
        for budget in [
            Budget::Pure { epsilon: 0.5 },
            Budget::Zcdp { rho: 0.02 },
            Budget::Approx { epsilon: 0.5, delta },
        ] {
            let ranges = columns(&[Some([0.0, 1000.0]), None, Some([0.0, 100.0])]);
            let spec = BoundsSpec::new(ranges, usize::from(n), budget, Unit::Row).unwrap();
            for _ in 0..20 {
                let bounds = release_bounds(&spec, &rows, None, &exec, &mut generator).unwrap();
                let near = |[lower, upper]: [f64; 2], from: [f64; 2], to: [f64; 2]| {
                    from[0] <= lower && lower <= from[1] && to[0] <= upper && upper <= to[1]
                };
                let [a, b, c] = [0, 1, 2].map(|j| bounds[j].unwrap());
                assert!(near(a, [20.0, 32.0], [48.0, 65.0]), "{a:?}");
                assert!(near(b, [-0.6, 0.1], [3.0, 6.0]), "{b:?}");
                assert!(near(c, [0.0, 0.0], [4.0, 7.0]), "{c:?}");
            }
        }
    }

    #[test]
    fn the_choice_has_the_law_of_its_errors() {
        let points = PublicPoints::new(vec![0.0, 1.0, 2.0, 3.0], vec![]).unwrap();
        let spec = spec(&[Some([0.0, 3.0]); 2], 800, 3.0);
        let stage = &spec.stages()[0];
        let rows: Vec<f64> = (0..24)
            .flat_map(|i| [f64::from(i) / 8.0, f64::from(i % 7) / 3.0])
            .collect();
        let public = [points.clone(), points];
        let counted = counts(&public, &rows);
        let errors = errors(stage, &public, &rows);
        let (rate, together) = stage.rate();
        let preferences = stage.preferences(&public[0], 3);
        assert!(together && preferences[0] > preferences[2]);
        let cells: Vec<[usize; 4]> = (0..81).map(|k| [k / 27, k / 9 % 3, k / 3 % 3, k % 3]).collect();
        let weight = |cell: &[usize; 4]| {
            let each = errors.iter().zip(cell).map(|(list, i)| list[*i]);
            // Lower bounds prefer the last cell, and upper ones the first.
            let counts = cell.iter().enumerate().map(|(list, i)| {
                let from_the_middle = if list % 2 == 0 { 2 - i } else { *i };
                u64::try_from(&preferences[from_the_middle]).unwrap() as f64
            });
            counts.product::<f64>() * (-rate * each.max().unwrap() as f64).exp()
        };
        let odds: Vec<f64> = cells.iter().map(weight).collect();
        let total: f64 = odds.iter().sum();
        let odds: Vec<f64> = odds.iter().map(|w| w / total).collect();
        let mut found = vec![0; 81];
        let mut generator = SimulationGenerator::new(83, 0);
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        for _ in 0..40_000 {
            let chosen = release_cells(stage, &public, &counted, &exec, &mut generator).unwrap();
            let at = chosen.iter().flatten().fold(0, |at, i| 3 * at + i);
            found[at] += 1;
        }
        assert_counts(&found, &odds);
    }

    #[test]
    fn other_rows_are_refused_and_rows_beyond_a_persons_most_do_not_count() {
        let one = spec(&[Some([0.0, 1.0])], 1000, 1.0);
        let two = spec(&[Some([0.0, 1.0]); 2], 1000, 1.0);
        let unit = Unit::Person { max_rows: Some(1) };
        let budget = Budget::Pure { epsilon: 1.0 };
        let of_persons = BoundsSpec::new(columns(&[Some([0.0, 1.0])]), 1000, budget, unit).unwrap();
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let values = [0.5; 4];
        let rows = Rows::dense(&values, 1);
        let persons = Persons::new(&[0, 1, 0, 1], unit, &exec).unwrap();
        let kept_rows =
            |spec: &BoundsSpec, rows: &Rows<'_>, persons| kept_rows(spec.unit(), spec.n_columns(), rows, persons);
        assert!(kept_rows(&two, &rows, None).is_err());
        assert!(kept_rows(&one, &rows, Some(&persons)).is_err());
        assert!(kept_rows(&of_persons, &rows, None).is_err());
        let shorter = Rows::dense(&values[..3], 1);
        assert!(kept_rows(&of_persons, &shorter, Some(&persons)).is_err());
        let kept = kept_rows(&of_persons, &rows, Some(&persons)).unwrap();
        assert_eq!(kept, Some(vec![0, 1]));
    }
}
