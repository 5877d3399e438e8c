//! Choices of a release of bounds: public points for each column, and the exponential mechanism that chooses among them
//! (docs/proofs/bounds.md).

mod points;
mod preference;

pub(crate) use points::PublicPoints;
pub(crate) use preference::Preference;

use num_bigint::BigUint;
use statrs::function::erf::erf_inv;

use super::{Query, Step};
use crate::error::{part, rounded_up};
use crate::noise::Family;
use crate::privacy::{Budget, Cost};
use crate::unit::Unit;
use crate::{Error, Result};

/// Share of the records that bounds leave out on either side, at least.
const LEAST_SHARE: f64 = 0.02;
/// The same of the values that are left where 0 stands apart: these are few, and the far ones of them so far that their rows would weigh less.
const LEAST_OF_FEW: f64 = 0.2;
/// Share beyond which bounds say nothing about a column.
const MOST_SHARE: f64 = 0.3;
/// Most columns of one release.
const MOST_COLUMNS: usize = 500;
/// Minus the logarithm of the share of releases in which a bound may err by more than the rank error: one in 1,000.
const RARELY: f64 = 6.9;
/// Share of the records that the innermost cells may have to outweigh what they count as more.
const OUTWEIGHED: f64 = 0.6;
/// Width that bounds of a normal column get, in standard deviations, where the share that they leave out makes them narrower.
const LEAST_WIDTH: f64 = 2.2;

/// Public facts of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnRange {
    /// Its range; `None` where none is known.
    pub range: Option<[f64; 2]>,
    /// Whether 0 stands apart: bounds are then those of the other values, and hold 0.
    pub zeros: bool,
    /// Whether the range is no public one, but was found by a first stage.
    pub found: bool,
}

/// Ranges of columns, and the stages that find bounds in them. Holds no data.
///
/// Where some ranges are not public, a first stage finds a power of 4 that the values of each such column do not exceed in size, and the
/// second treats it as a range. Where all are public, a second stage is finer than the first, if the budget allows two.
#[derive(Debug, Clone)]
pub struct BoundsSpec {
    columns: Vec<ColumnRange>,
    stages: Vec<Stage>,
    unit: Unit,
}

/// One choice of bounds for some of the columns. Holds no data.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// Indices of the columns.
    columns: Vec<usize>,
    /// Whether one bound is for the sizes of a column's values, in place of one on either side.
    of_sizes: bool,
    law: Law,
    preference: Preference,
    step: Step,
    rank_error: f64,
    n_samples: f64,
}

/// Cells that one bound is chosen among.
#[derive(Debug, Clone, Copy)]
struct Cells {
    n: usize,
    /// Whether values stand apart that the caller names, so that few others may be left to outweigh a preference.
    few: bool,
}

impl Cells {
    fn of(public: &PublicPoints, n: usize) -> Self {
        let few = public.has_atoms();
        Self { n, few }
    }

    fn preference(self, chosen: Preference) -> Preference {
        if self.few { Preference::NONE } else { chosen }
    }
}

/// How the cells of all columns are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Law {
    /// Together, by the greatest error, with this ε.
    Together(f64),
    /// Each by its own error, with this ε.
    Apart(f64),
}

impl BoundsSpec {
    /// Divides the budget among the stages, and takes for each the law that errs by fewer ranks: all bounds together, or each with its
    /// share. A range is `None` where none is public.
    ///
    /// # Privacy
    /// One record moves the rank error of a cell by at most 1, in all columns at once, and a person by at most as much as its rows do
    /// (docs/proofs/bounds.md).
    pub fn new(columns: Vec<ColumnRange>, n_samples: usize, budget: Budget, unit: Unit) -> Result<Self> {
        let found = Self::resolved(columns, n_samples, budget, unit)?;
        found.check(n_samples, budget)?;
        Ok(found)
    }

    /// The same, whether or not it finds bounds among so many records.
    fn resolved(columns: Vec<ColumnRange>, n_samples: usize, budget: Budget, unit: Unit) -> Result<Self> {
        if !(1..=MOST_COLUMNS).contains(&columns.len()) {
            return Err(Error::Unsupported(format!(
                "bounds must be released for 1 to {MOST_COLUMNS} columns, got {}",
                columns.len()
            )));
        }
        let mut points = Vec::with_capacity(columns.len());
        for column in &columns {
            points.push(points_of(*column)?);
        }
        let found = points_of(ColumnRange {
            range: Some([-1.0, 1.0]),
            zeros: false,
            found: true,
        })?;
        let all: Vec<usize> = (0..columns.len()).collect();
        let (unknown, known): (Vec<usize>, Vec<usize>) = all.iter().partition(|j| columns[**j].range.is_none());
        let stage = |columns: Vec<usize>, points: &[&PublicPoints], budget| {
            Stage::new(columns, points, n_samples, budget, unit)
        };
        let of_sizes = |columns: Vec<usize>, points: &[&PublicPoints], budget| {
            Stage::of_sizes(columns, points, n_samples, budget, unit)
        };
        let half = halved(budget);
        let second = || -> Result<Stage> {
            let points: Vec<_> = columns
                .iter()
                .zip(&points)
                .map(|(column, points)| column.range.map_or(&found, |_| points))
                .collect();
            stage(all.clone(), &points, half)
        };
        let stages = if unknown.is_empty() {
            let points: Vec<_> = points.iter().collect();
            let both = vec![stage(known.clone(), &points, half)?, second()?];
            // A finer grid between the bounds that are found first, where half of the budget finds them as well.
            if both
                .iter()
                .all(|stage| stage.rank_error <= LEAST_SHARE * stage.n_samples)
            {
                both
            } else {
                vec![stage(known, &points, budget)?]
            }
        } else {
            let first: Vec<_> = unknown.iter().map(|j| &points[*j]).collect();
            vec![of_sizes(unknown, &first, half)?, second()?]
        };
        Ok(Self { columns, stages, unit })
    }

    /// Refuses a budget that finds no bounds among so many records; the message says which one does, and how many records it needs.
    fn check(&self, n_samples: usize, budget: Budget) -> Result<()> {
        let lacking = self.rank_error() / (MOST_SHARE * n_samples as f64);
        if lacking <= 1.0 {
            return Ok(());
        }
        let finds = |n: usize, budget| {
            let found = Self::resolved(self.columns.clone(), n, budget, self.unit);
            found.is_ok_and(|found| found.rank_error() <= MOST_SHARE * n as f64)
        };
        // The rank error falls at least as the reciprocal of ε, or of √ρ, and does not grow with the number of records.
        let (name, given) = strength(budget);
        let enough = least_factor(lacking, |factor| finds(n_samples, stronger(budget, factor)));
        let (_, least) = strength(stronger(budget, enough));
        let most = self.rank_error() / MOST_SHARE;
        let most = least_records(n_samples, most, |n| finds(n, budget));
        let records = match self.unit {
            Unit::Row => "records",
            Unit::Person { .. } => "persons",
        };
        let unknown = self.columns.iter().any(|column| column.range.is_none());
        let ranges = if unknown {
            ", or public ranges, which need less"
        } else {
            ""
        };
        let columns = match self.columns.len() {
            1 => "a column".to_owned(),
            several => format!("{several} columns"),
        };
        let enough = if n_samples > 0 {
            format!("{name} must be at least {} ", rounded_up(least * (1.0 + 1e-9)))
        } else {
            format!("{name} must be greater ")
        };
        Err(Error::Unsupported(format!(
            "{enough}for bounds of {columns} among {n_samples} {records}, got {name}={} (or take at least {most} {records}{ranges})",
            part(given)
        )))
    }

    getters! { self =>
        /// Public facts of the columns.
        pub(crate) columns: &[ColumnRange] = &self.columns;
        /// Stages, in their order.
        pub(crate) stages: &[Stage] = &self.stages;
        /// Whose privacy is protected.
        pub unit: Unit = self.unit;
        /// Number of columns.
        pub n_columns: usize = self.columns.len();
    }

    /// Steps of the release, with their costs.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().map(|stage| &stage.step)
    }

    /// Ranks by which the worst bound errs, but for one release in 1,000.
    pub fn rank_error(&self) -> f64 {
        let errors = self.stages.iter().map(|stage| stage.rank_error);
        errors.fold(0.0, f64::max)
    }

    /// Share of the records that bounds leave out on either side: that of the rank error, but at least .02.
    pub fn share(&self) -> f64 {
        let shares = self.stages.iter().map(Stage::share);
        shares.fold(0.0, f64::max)
    }
}

impl Stage {
    /// A choice of both bounds of each column.
    fn new(
        columns: Vec<usize>,
        points: &[&PublicPoints],
        n_samples: usize,
        budget: Budget,
        unit: Unit,
    ) -> Result<Self> {
        let cells = points.iter().flat_map(|points| {
            let cells = Cells::of(points, points.n_cells());
            [cells; 2]
        });
        Self::among(columns, &cells.collect::<Vec<_>>(), n_samples, budget, unit)
    }

    /// A choice of one bound for the size of each column's values, whose points lie alike on both sides of 0.
    fn of_sizes(
        columns: Vec<usize>,
        points: &[&PublicPoints],
        n_samples: usize,
        budget: Budget,
        unit: Unit,
    ) -> Result<Self> {
        let cells = points.iter().map(|points| Cells::of(points, points.n_cells() / 2));
        let stage = Self::among(columns, &cells.collect::<Vec<_>>(), n_samples, budget, unit)?;
        Ok(Self {
            of_sizes: true,
            ..stage
        })
    }

    /// A choice among so many cells for each bound, by the law and the preference that err by the fewest ranks.
    fn among(columns: Vec<usize>, cells: &[Cells], n_samples: usize, budget: Budget, unit: Unit) -> Result<Self> {
        let sensitivity = unit.most_rows("bounds")?;
        let n_bounds = cells.len() as f64;
        let (together, apart) = match budget {
            Budget::Zcdp { rho } => ((8.0 * rho).sqrt(), (8.0 * rho / n_bounds).sqrt()),
            // Its δ stays unspent: what is gained by composing many small choices is less than what it costs to have them apart.
            Budget::Pure { epsilon } | Budget::Approx { epsilon, .. } => (epsilon, epsilon / n_bounds),
        };
        let down = 1.0 - 8.0 * f64::EPSILON;
        let laws = [Law::Together(together * down), Law::Apart(apart * down)];
        // Ranks by which a choice errs whose wrong cells count as this many times the right ones, as a logarithm. At least one combination
        // has no error, and all others together have a share of at most exp(-RARELY) beyond these.
        let ranks = |law: Law, of: &dyn Fn(usize, Preference) -> f64, preference: Preference| {
            let logs = cells.iter().map(|cells| of(cells.n, cells.preference(preference)));
            let (epsilon, log) = match law {
                Law::Together(epsilon) => (epsilon, logs.sum::<f64>()),
                Law::Apart(epsilon) => (epsilon, logs.fold(0.0, f64::max) + n_bounds.ln()),
            };
            2.0 * sensitivity / epsilon * (log + RARELY)
        };
        let most = OUTWEIGHED * n_samples as f64;
        let choices = laws.iter().flat_map(|law| {
            Preference::ALL
                .into_iter()
                .enumerate()
                .filter_map(move |(k, preference)| {
                    let inward = ranks(*law, &|n, preferred| preferred.inward(n), preference);
                    let outward = ranks(*law, &|n, preferred| preferred.outward(n), preference);
                    (k == 0 || inward <= most).then_some((outward, *law, preference))
                })
        });
        let least = choices.min_by(|a, b| a.0.total_cmp(&b.0));
        let (rank_error, law, preference) = least.unwrap_or((f64::INFINITY, laws[0], Preference::NONE));
        let (Law::Together(epsilon) | Law::Apart(epsilon)) = law;
        let step = Step::new(
            Query::Bounds,
            Family::Gumbel,
            Cost::of(budget),
            2.0 * sensitivity / epsilon,
            sensitivity,
        );
        Ok(Self {
            columns,
            of_sizes: false,
            law,
            preference,
            step,
            rank_error,
            n_samples: n_samples as f64,
        })
    }

    /// Indices of its columns.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Whether one bound is for the sizes of a column's values.
    pub(crate) fn is_of_sizes(&self) -> bool {
        self.of_sizes
    }

    /// Count of each of so many cells among these points, the innermost first.
    pub(crate) fn preferences(&self, public: &PublicPoints, n_cells: usize) -> Vec<BigUint> {
        let cells = Cells::of(public, n_cells);
        cells.preference(self.preference).counts(n_cells)
    }

    fn share(&self) -> f64 {
        (self.rank_error / self.n_samples).clamp(LEAST_SHARE, MOST_SHARE)
    }

    /// Rate of the law, and whether it draws all bounds together.
    pub(crate) fn rate(&self) -> (f64, bool) {
        let (epsilon, together) = match self.law {
            Law::Together(epsilon) => (epsilon, true),
            Law::Apart(epsilon) => (epsilon, false),
        };
        // Rounded down by one unit in the last place, whatever the divisions did.
        let rate = epsilon / (2.0 * self.step.sensitivity);
        (rate.next_down(), together)
    }

    /// Rank from either end that the bounds of a column shall have, where so many records do not stand apart.
    ///
    /// It grows by 0 or 1 with each of them, which the sensitivity rests on.
    pub(crate) fn rank(&self, public: &PublicPoints, counted: u64) -> u64 {
        let least = least_share(public) * counted as f64;
        let wanted = least.max(self.rank_error).max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of records"
        )]
        let wanted = wanted as u64;
        wanted.min(counted / 3)
    }

    /// Bounds from the released cells of one column: widened to ±2.2 standard deviations where a normal column would be cut further, within
    /// a public range. `None` where they are degenerate.
    pub(crate) fn bounds(&self, public: &PublicPoints, [first, last]: [usize; 2], found: bool) -> Option<[f64; 2]> {
        let points = public.points();
        let (mut lower, mut upper) = (*points.get(first)?, *points.get(last + 1)?);
        if first == last + 1 {
            // Nearly all values lie at one point: the cells on both sides of it.
            (lower, upper) = (points[last], points[first + 1]);
        }
        // Where 0 stands apart the others are nothing like a normal column.
        let stretch = if public.has_atoms() {
            1.0
        } else {
            LEAST_WIDTH / normal_quantile(1.0 - self.share())
        };
        let half = 0.5 * (upper - lower);
        let middle = lower + half;
        let (least, most) = if found {
            (f64::NEG_INFINITY, f64::INFINITY)
        } else {
            (points[0], points[points.len() - 1])
        };
        (half > 0.0).then(|| {
            [
                (middle - stretch * half).max(least),
                (middle + stretch * half).min(most),
            ]
        })
    }
}

/// Share of the values that count which bounds leave out on either side, at least.
fn least_share(public: &PublicPoints) -> f64 {
    if public.has_atoms() { LEAST_OF_FEW } else { LEAST_SHARE }
}

/// Public points of a range, or of all numbers.
pub(crate) fn points_of(column: ColumnRange) -> Result<PublicPoints> {
    let atoms = if column.zeros { vec![0.0] } else { Vec::new() };
    match column.range {
        Some([lower, upper]) if column.found => PublicPoints::of_found(lower, upper, atoms),
        Some([lower, upper]) => PublicPoints::of_range(lower, upper, atoms),
        None => PublicPoints::unbounded(atoms),
    }
}

/// The number of a budget that decides how much noise there is, and its name.
fn strength(budget: Budget) -> (&'static str, f64) {
    match budget {
        Budget::Zcdp { rho } => ("rho", rho),
        Budget::Pure { epsilon } | Budget::Approx { epsilon, .. } => ("epsilon", epsilon),
    }
}

/// The budget whose noise is smaller by this factor.
fn stronger(budget: Budget, factor: f64) -> Budget {
    match budget {
        Budget::Pure { epsilon } => Budget::Pure {
            epsilon: epsilon * factor,
        },
        Budget::Zcdp { rho } => Budget::Zcdp {
            rho: rho * factor.powi(2),
        },
        Budget::Approx { epsilon, delta } => Budget::Approx {
            epsilon: epsilon * factor,
            delta,
        },
    }
}

/// The least factor above 1 for which something holds that holds for `most` and all beyond it, but for a millionth.
fn least_factor(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut few, mut enough) = (1.0, most * (1.0 + 1e-9));
    while enough.is_finite() && enough > few * (1.0 + 1e-6) {
        let middle = 0.5 * (few + enough);
        let side = if holds(middle) { &mut enough } else { &mut few };
        *side = middle;
    }
    enough
}

/// The least number of records above `few` for which something holds that holds for `most` and all beyond it.
fn least_records(few: usize, most: f64, holds: impl Fn(usize) -> bool) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of records"
    )]
    let (mut few, mut enough) = (few, (most * (1.0 + 1e-9)).ceil() as usize);
    while enough > few + 1 {
        let middle = few + (enough - few) / 2;
        let side = if holds(middle) { &mut enough } else { &mut few };
        *side = middle;
    }
    enough
}

/// Half of a budget: two of them add up to no more than the whole.
fn halved(budget: Budget) -> Budget {
    match budget {
        Budget::Pure { epsilon } => Budget::Pure { epsilon: 0.5 * epsilon },
        Budget::Zcdp { rho } => Budget::Zcdp { rho: 0.5 * rho },
        Budget::Approx { epsilon, delta } => Budget::Approx {
            epsilon: 0.5 * epsilon,
            delta: 0.5 * delta,
        },
    }
}

/// Quantile of the standard normal law.
fn normal_quantile(p: f64) -> f64 {
    std::f64::consts::SQRT_2 * erf_inv(2.0 * p - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(n_columns: usize, n: usize, budget: Budget) -> Result<BoundsSpec> {
        BoundsSpec::new(vec![column(Some([0.0, 100.0])); n_columns], n, budget, Unit::Row)
    }

    fn column(range: Option<[f64; 2]>) -> ColumnRange {
        ColumnRange {
            range,
            zeros: false,
            found: false,
        }
    }

    fn only(spec: &BoundsSpec) -> &Stage {
        let [stage] = spec.stages() else { panic!("one stage") };
        stage
    }

    #[test]
    fn the_law_that_errs_less_is_taken() {
        let pure = spec(10, 50_000, Budget::Pure { epsilon: 0.02 }).unwrap();
        let (rate, together) = only(&pure).rate();
        assert!(together && rate < 0.01 && rate > 0.01 * (1.0 - 1e-14));
        assert!((pure.share() - pure.rank_error() / 5e4).abs() < 1e-12);
        let zcdp = spec(100, 50_000, Budget::Zcdp { rho: 0.5 }).unwrap();
        let [first, second] = zcdp.stages() else {
            panic!("a finer stage")
        };
        let (rate, together) = first.rate();
        assert_eq!(second.rate(), (rate, together));
        // A choice weighs a rank with half of its ε, and the scale is in ranks.
        let step = &first.step;
        assert!((step.scale * rate / step.sensitivity - 1.0).abs() < 1e-12);
        // 400 choices of ε²/8 each.
        assert!(!together && 400.0 * (2.0 * rate).powi(2) / 8.0 <= 0.5);
        assert!(rate > 0.999_999 * 0.5 * (8.0_f64 * 0.5 / 400.0).sqrt());
        let budget = Budget::Approx {
            epsilon: 0.02,
            delta: 1e-6,
        };
        let approx = spec(10, 50_000, budget).unwrap();
        assert_eq!(only(&approx).law, only(&pure).law);
    }

    #[test]
    fn unknown_ranges_are_found_first_for_half_of_the_budget() {
        let ranges = [Some([0.0, 1.0]), None, None].map(column).to_vec();
        let budget = Budget::Pure { epsilon: 0.5 };
        let found = BoundsSpec::new(ranges, 10_000, budget, Unit::Row).unwrap();
        let columns: Vec<_> = found.stages().iter().map(Stage::columns).collect();
        assert_eq!(columns, [&[1, 2][..], &[0, 1, 2]]);
        let costs: Vec<_> = found.steps().map(|step| step.cost).collect();
        assert_eq!(costs, [Cost::Epsilon(0.25); 2]);
        assert!(found.share() >= found.stages()[1].share());
    }

    #[test]
    fn persons_move_as_many_ranks_as_they_have_rows() {
        let of = |unit| {
            let budget = Budget::Pure { epsilon: 1.0 };
            BoundsSpec::new(vec![column(Some([0.0, 100.0]))], 1_000_000, budget, unit)
        };
        let row = of(Unit::Person { max_rows: Some(1) }).unwrap();
        let person = of(Unit::Person { max_rows: Some(5) }).unwrap();
        assert!((row.stages()[0].rate().0 / person.stages()[0].rate().0 - 5.0).abs() < 1e-12);
        assert!(of(Unit::Person { max_rows: None }).is_err());
    }

    #[test]
    fn ranks_grow_by_at_most_one_and_small_budgets_are_refused() {
        let found = spec(2, 3_000, Budget::Pure { epsilon: 0.1 }).unwrap();
        let public = points_of(column(Some([0.0, 100.0]))).unwrap();
        let rank = |m| only(&found).rank(&public, m);
        let ranks: Vec<u64> = (0..3_000).map(rank).collect();
        assert!(ranks.windows(2).all(|pair| pair[1] - pair[0] <= 1));
        assert_eq!((ranks[0], ranks[2], ranks[3]), (0, 0, 1));
        assert!((ranks[2_999] as f64 - found.rank_error()).abs() <= 1.0);
        assert!(spec(0, 100, Budget::Pure { epsilon: 0.5 }).is_err());
    }

    #[test]
    fn a_small_budget_is_refused_with_one_that_is_enough() {
        for (budget, name) in [
            (Budget::Pure { epsilon: 0.5 }, "epsilon"),
            (Budget::Zcdp { rho: 0.01 }, "rho"),
        ] {
            for ranges in [[Some([0.0, 9.0]); 2], [None, Some([0.0, 9.0])]] {
                let of = |n, budget| BoundsSpec::new(ranges.map(column).to_vec(), n, budget, Unit::Row);
                let message = of(60, budget).unwrap_err().to_string();
                let after = |text: &str| -> f64 {
                    let (_, rest) = message.split_once(text).unwrap();
                    rest.split_once(' ').unwrap().0.parse().unwrap()
                };
                let (enough, n) = (after("at least "), after("take at least "));
                let budget_of = |value| match name {
                    "rho" => Budget::Zcdp { rho: value },
                    _ => Budget::Pure { epsilon: value },
                };
                assert!(message.starts_with(name));
                assert!(of(60, budget_of(enough)).is_ok(), "{message}");
                assert!(of(60, budget_of(0.998 * enough)).is_err(), "{message}");
                let n: usize = n.to_string().parse().unwrap();
                assert!(of(n, budget).is_ok(), "{message}");
                assert!(of(n - 1, budget).is_err(), "{message}");
            }
        }
        assert!(spec(1, 0, Budget::Pure { epsilon: 0.5 }).is_err());
        // A part of a budget has no digits of its computation.
        let epsilon = 0.1 * 0.05;
        let message = spec(1, 60, Budget::Pure { epsilon }).unwrap_err().to_string();
        assert!(message.contains("got epsilon=0.005 "), "{message}");
    }

    #[test]
    fn bounds_are_widened_within_the_range() {
        let found = spec(1, 1_000, Budget::Pure { epsilon: 2.0 }).unwrap();
        let public = points_of(column(Some([0.0, 100.0]))).unwrap();
        let points = public.points();
        let at = |value: f64| {
            let here = |p: &f64| p.to_bits() == value.to_bits();
            points.iter().position(here).unwrap()
        };
        let stretch = 2.2 / 2.053_748_910_631_823;
        let bounds = |cells| found.stages()[0].bounds(&public, cells, false);
        let [lower, upper] = bounds([at(50.0), at(62.5) - 1]).unwrap();
        let expected = [56.25 - stretch * 6.25, 56.25 + stretch * 6.25];
        assert!((lower - expected[0]).abs() < 1e-9 && (upper - expected[1]).abs() < 1e-9);
        let wide = bounds([at(3.125), at(93.75) - 1]).unwrap();
        assert!(0.0 <= wide[0] && wide[0] < 3.125 && 93.75 < wide[1] && wide[1] <= 100.0);
        assert_eq!(bounds([9, 3]), None);
        assert_eq!(bounds([0, points.len()]), None);
    }
}
