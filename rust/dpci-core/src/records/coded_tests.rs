//! Coded rows against the dense rows that they stand for: every sum, check and copy.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::design::{Coded, Codes, OnViolation, Persons, Rows};
use crate::linalg::{Category, Layout};
use crate::loss::{Logistic, Targets};
use crate::row_domain::{Blocks, RowDomain};
use crate::unit::{Unit, Weighting};

const INTERCEPT: f64 = 0.5;

/// Numbers and categories between each other, and codes of which some are 0 and most are 1.
struct Table {
    layout: Arc<Layout>,
    numbers: Vec<f64>,
    codes: Vec<u32>,
    dense: Vec<f64>,
    targets: Vec<f64>,
}

fn category(first: usize, levels: usize, value: f64) -> Category {
    Category { first, levels, value }
}

impl Table {
    /// A number behind each but the last category.
    fn new(n: usize, levels: &[usize]) -> Self {
        let (mut numbers, mut categories, mut at) = (Vec::new(), Vec::new(), 0);
        for (k, m) in levels.iter().enumerate() {
            categories.push(category(at, *m, 0.5 / (2 + k) as f64));
            at += m;
            if k + 1 < levels.len() {
                numbers.push(at);
                at += 1;
            }
        }
        let layout = Layout::new(numbers, categories).unwrap();
        let (p, k) = (layout.numbers().len(), levels.len());
        let values: Vec<f64> = (0..n * p).map(|i| 0.2 * (i as f64 * 0.731).sin()).collect();
        let mut codes = Vec::with_capacity(n * k);
        for i in 0..n {
            for (c, m) in levels.iter().enumerate() {
                let drawn = (i * (2 * c + 7) + i * i / 11) % (2 * m + 1);
                codes.push(u32::try_from(if drawn > *m { 1 } else { drawn }).unwrap());
            }
        }
        let mut dense = vec![0.0; n * layout.n_columns()];
        for (i, row) in dense.chunks_exact_mut(layout.n_columns()).enumerate() {
            for (j, value) in layout.numbers().iter().zip(&values[i * p..]) {
                row[*j] = *value;
            }
            for (category, code) in layout.categories().iter().zip(&codes[i * k..]) {
                if *code > 0 {
                    row[category.first + *code as usize - 1] = category.value;
                }
            }
        }
        let targets = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 });
        Self {
            layout: Arc::new(layout),
            numbers: values,
            codes,
            dense,
            targets: targets.collect(),
        }
    }

    fn dense(&self) -> Rows<'_> {
        Rows::dense(&self.dense, self.layout.n_columns())
    }

    fn coded(&self) -> Rows<'_> {
        self.part(0..self.targets.len())
    }

    fn part(&self, rows: std::ops::Range<usize>) -> Rows<'_> {
        let (p, k) = (self.layout.numbers().len(), self.layout.categories().len());
        let codes = &self.codes[rows.start * k..rows.end * k];
        let codes = match codes.iter().max() {
            Some(0..256) => Codes::Bytes(codes.iter().map(|c| u8::try_from(*c).unwrap()).collect()),
            Some(256..300) => Codes::Words(codes.iter().map(|c| u16::try_from(*c).unwrap()).collect()),
            _ => Codes::Longs(codes.into()),
        };
        let numbers = &self.numbers[rows.start * p..rows.end * p];
        Rows::Coded(Coded::new(numbers, codes, Arc::clone(&self.layout)).unwrap())
    }

    fn requests(&self) -> Vec<Request> {
        let dim = self.layout.n_columns() + 1;
        let params: Vec<f64> = (0..dim).map(|j| (j as f64 * 0.37).cos()).collect();
        let risk = |hessian| Request::Risk {
            params: params.clone(),
            hessian,
        };
        let (cap, targets) = (0.3, true);
        vec![
            risk(HessianRows::None),
            risk(HessianRows::All),
            Request::Moments { params: params.clone() },
            Request::Hessian { params: params.clone() },
            Request::Capped {
                of: Capped::Slopes,
                params: params.clone(),
                cap,
                targets,
            },
            Request::Capped {
                of: Capped::Gradient,
                params: params.clone(),
                cap,
                targets,
            },
            Request::DoubledGradient {
                point: params.iter().map(|p| Doubled::sum(*p, 1e-20)).collect(),
            },
            Request::Lengths,
            Request::SecondMoments,
        ]
    }
}

fn bounds_of(norm: f64) -> RowBounds {
    RowBounds {
        rows: RowDomain::Ball(norm),
        targets: Targets::Signs,
        on_violation: OnViolation::Clip,
    }
}

/// A few small categories, whose matrices are packed; more, with tables; and some with long tables, in wider codes.
const LEVELS: [&[usize]; 4] = [&[2, 1], &[1, 5, 7, 40], &[3, 16, 300], &[2, 9, 11, 31, 500]];

fn with_exec<T>(test: impl FnOnce(&Executor<'_>) -> T) -> T {
    let cancel = AtomicBool::new(false);
    test(&Executor::sequential(&cancel))
}

fn values(sums: &Sums) -> Vec<f64> {
    let grams = sums.grams.iter().flat_map(|g| g.clone().finish(1.0));
    let doubled = sums.doubled.iter().map(|d| d.rounded());
    let squares = sums.squares.iter().copied().filter(|s| s.is_finite());
    let slopes = sums.slopes.values();
    slopes.chain(grams).chain(doubled).chain(squares).collect()
}

fn assert_near(found: &Sums, expected: &Sums, what: &str) {
    let (found, expected) = (values(found), values(expected));
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        // Sums of thousands of terms of at most about 1.
        assert!((f - e).abs() <= 1e-12 * (1.0 + e.abs()), "{what}: {f} {e}");
    }
}

fn compare(table: &Table, designs: [&Design<'_>; 2], counts: Option<&[u32]>, what: &str) {
    with_exec(|exec| {
        for request in table.requests() {
            let [found, expected] = designs.map(|d| d.sums(&request, &Logistic, counts, exec).unwrap());
            assert_near(&found, &expected, &format!("{what}, {}", request.name()));
        }
    });
}

#[test]
fn every_sum_is_that_of_dense_rows() {
    for levels in LEVELS {
        let table = Table::new(3000, levels);
        let bounds = bounds_of(9.0);
        let ids: Vec<i64> = (0..3000).map(|i| i * 7 % 1000).collect();
        let weights: Vec<f64> = (0..3000).map(|i| f64::from(i % 5) / 2.0).collect();
        let twice: Vec<u32> = (0..3000).map(|i| i % 4).collect();
        with_exec(|exec| {
            let design = |rows| Design::new(rows, &table.targets, Some(INTERCEPT), &bounds, exec).unwrap();
            let both = [design(table.coded()), design(table.dense())];
            let what = format!("{levels:?}");
            compare(&table, both.each_ref(), None, &what);
            compare(&table, both.each_ref(), Some(&twice), &what);
            let persons = both.clone().map(|design| {
                let persons = Persons::new(&ids, Unit::persons(Some(2)).unwrap(), exec).unwrap();
                design.of_persons(persons).unwrap()
            });
            compare(&table, persons.each_ref(), None, &format!("{what} of persons"));
            let weighted = both
                .clone()
                .map(|design| design.weighted(&weights, Weighting::new(2.0, 2.0).unwrap()).unwrap());
            compare(&table, weighted.each_ref(), None, &format!("{what} with weights"));
            let subsets = both.clone().map(|design| design.subset(&[7, 0, 2999, 7]).unwrap());
            compare(&table, subsets.each_ref(), None, &format!("{what}, some rows"));
            let [mut coded, mut dense] = [(); 2].map(|()| vec![0.0; 3000 * both[0].n_params()]);
            both[0].write_rows(0..3000, &mut coded);
            both[1].write_rows(0..3000, &mut dense);
            assert_eq!(coded, dense);
            // A predictor is a function of its record alone, however the rows are stored.
            let params: Vec<f64> = (0..both[0].n_params()).map(|j| (j as f64).sin()).collect();
            let bits = both.each_ref().map(|design| {
                let mut predictor = vec![0.0; 3000];
                design.linear_predictor(0..3000, &params, &mut predictor);
                predictor.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            });
            assert_eq!(bits[0], bits[1]);
        });
    }
}

#[test]
fn public_groups_of_dense_columns_are_recognised() {
    let table = Table::new(3000, LEVELS[3]);
    let layout = &table.layout;
    let n_columns = layout.n_columns();
    let mut members = vec![0; n_columns];
    for (block, category) in layout.categories().iter().enumerate() {
        members[category.columns()].fill(block);
    }
    let numbers = layout.numbers();
    for (at, j) in numbers.iter().enumerate() {
        members[*j] = layout.categories().len() + at;
    }
    let blocks = Blocks::new(vec![0.5; layout.categories().len() + numbers.len()], members);
    let domain = RowDomain::Blocks(Arc::new(blocks.unwrap()));
    let found = |x: &[f64], domain: &RowDomain| {
        with_exec(|exec| {
            let rows = Rows::dense(x, n_columns).recognised(domain, exec).unwrap()?;
            let rows = Rows::Coded(rows);
            let design = Design::new(rows, &table.targets, None, &bounds_of(9.0), exec);
            let mut written = vec![0.0; x.len()];
            design.unwrap().write_rows(0..3000, &mut written);
            Some(written)
        })
    };
    assert_eq!(found(&table.dense, &domain).unwrap(), table.dense);
    assert!(found(&table.dense, &RowDomain::Ball(9.0)).is_none());
    // Another entry, two of them, and none that is a number: in the sample, where a group is left as numbers, and behind it.
    let last = layout.categories().last().unwrap().columns();
    for row in [3, 2000] {
        for (change, beside) in [(0.1, 0), (0.25, 1), (-0.25, 0), (f64::NAN, 0)] {
            let mut x = table.dense.clone();
            let group = &mut x[row * n_columns..][last.clone()];
            let at = group.iter().position(|v| *v != 0.0).unwrap_or_default();
            group[(at + beside) % last.len()] = change;
            assert!(found(&x, &domain).is_none(), "{row} {change}");
        }
    }
    let first = layout.categories()[0].columns();
    let mut x = table.dense.clone();
    x[5 * n_columns..][first].fill(0.1);
    assert_eq!(found(&x, &domain).unwrap(), x);
    // Values that no row has.
    let rare = layout.categories()[1].columns();
    x.chunks_exact_mut(n_columns)
        .for_each(|row| row[rare.clone()].fill(0.0));
    assert_eq!(found(&x, &domain).unwrap(), x);
}

#[test]
fn parts_of_either_storage_are_the_whole() {
    let table = Table::new(1000, LEVELS[2]);
    let width = table.layout.n_columns();
    let bounds = bounds_of(9.0);
    with_exec(|exec| {
        for request in table.requests() {
            let keyed = KeyedRequest {
                request,
                key: FingerprintKey::new(*b"a secret of the fit of this test"),
            };
            let sums = |rows, targets| {
                let part = Part::new(rows, targets);
                part_sums(&keyed, part, &Logistic, Some(INTERCEPT), &bounds, exec).unwrap()
            };
            let whole = sums(table.dense(), &table.targets);
            let mut total = Sums::default();
            for (k, ends) in [0, 1, 300, 700, 1000].windows(2).enumerate() {
                let range = ends[0]..ends[1];
                let dense = &table.dense[range.start * width..range.end * width];
                let rows = match k % 2 {
                    0 => table.part(range.clone()),
                    _ => Rows::dense(dense, width),
                };
                let part = sums(rows, &table.targets[range]);
                let travelled = Sums::from_numbers(part.n_rows(), part.n_records, part.fingerprint(), &part.numbers());
                total.merge(&travelled.unwrap()).unwrap();
            }
            assert_eq!(total.fingerprint(), whole.fingerprint());
            assert_near(&total, &whole, &keyed.request.name());
        }
    });
}

#[test]
fn rows_and_blocks_beyond_their_bounds_are_those_of_dense_rows() {
    let table = Table::new(500, LEVELS[1]);
    let (layout, k) = (&table.layout, table.layout.categories().len());
    let n_columns = layout.n_columns();
    // Each number and each category by itself; then all numbers in one block.
    let mut members = vec![0; n_columns];
    for (block, category) in layout.categories().iter().enumerate() {
        members[category.columns()].fill(block);
    }
    let mut apart = members.clone();
    let mut together = members;
    for (at, j) in layout.numbers().iter().enumerate() {
        apart[*j] = k + at;
        together[*j] = k;
    }
    let blocks = |members: &Vec<usize>, bound: f64| {
        let n_blocks = members.iter().max().unwrap() + 1;
        RowDomain::Blocks(Arc::new(Blocks::new(vec![bound; n_blocks], members.clone()).unwrap()))
    };
    let domains = [
        RowDomain::Ball(0.3),
        RowDomain::Ball(9.0),
        blocks(&apart, 0.5),
        blocks(&apart, 0.19),
        blocks(&together, 0.3),
    ];
    with_exec(|exec| {
        for rows in domains {
            for on_violation in [OnViolation::Clip, OnViolation::Error] {
                let bounds = RowBounds {
                    rows: rows.clone(),
                    targets: Targets::Signs,
                    on_violation,
                };
                let [found, expected] =
                    [table.coded(), table.dense()].map(|rows| Design::new(rows, &table.targets, None, &bounds, exec));
                match (found, expected) {
                    (Ok(found), Ok(expected)) => {
                        let [mut kept, mut dense] = [(); 2].map(|()| vec![0.0; 500 * n_columns]);
                        found.write_rows(0..500, &mut kept);
                        expected.write_rows(0..500, &mut dense);
                        assert_eq!(kept, dense, "{rows:?}");
                    }
                    (found, expected) => {
                        assert_eq!(found.unwrap_err(), expected.unwrap_err(), "{rows:?}");
                    }
                }
            }
        }
        let mut numbers = table.numbers.clone();
        numbers[5] = f64::NAN;
        for domain in [RowDomain::Ball(9.0), blocks(&apart, 0.5)] {
            let bounds = RowBounds {
                rows: domain,
                ..bounds_of(1.0)
            };
            let rows = Coded::new(
                &numbers[..],
                Codes::Longs((&table.codes[..]).into()),
                Arc::clone(layout),
            );
            let found = Design::new(Rows::Coded(rows.unwrap()), &table.targets, None, &bounds, exec);
            let column = layout.numbers()[2];
            assert!(
                matches!(found, Err(Error::NonFiniteRow { row: 1, column: c, .. }) if c == column),
                "{found:?}"
            );
        }
    });
}

#[test]
fn malformed_rows_are_refused() {
    let layout = |numbers, categories| Layout::new(numbers, categories);
    assert!(layout(vec![0], vec![category(1, 2, 1.0)]).is_ok());
    for (numbers, categories) in [
        (vec![1], vec![category(1, 2, 1.0)]),
        (vec![0], vec![category(2, 2, 1.0)]),
        (vec![0], vec![category(1, usize::MAX, 1.0)]),
        (vec![usize::MAX], vec![category(0, 2, 1.0)]),
        (vec![0], vec![category(1, 2, f64::NAN)]),
        (vec![0], vec![category(1, 2, f64::INFINITY)]),
    ] {
        assert!(layout(numbers, categories).is_err());
    }
    let table = Arc::new(layout(vec![0], vec![category(1, 2, 1.0), category(3, 1, 1.0)]).unwrap());
    let coded =
        |numbers: &'static [f64], codes: Vec<u8>| Coded::new(numbers, Codes::Bytes(codes.into()), Arc::clone(&table));
    assert!(coded(&[0.5], vec![2, 1]).is_ok());
    assert!(coded(&[0.5], vec![3, 1]).is_err());
    assert!(coded(&[0.5], vec![2, 2]).is_err());
    assert!(coded(&[0.5], vec![2]).is_err());
    assert!(coded(&[0.5, 0.5], vec![2, 1]).is_err());
    let numbers_alone = Arc::new(layout(vec![0], Vec::new()).unwrap());
    assert!(Coded::new(&[0.5][..], Codes::Bytes(vec![].into()), numbers_alone).is_err());
}
