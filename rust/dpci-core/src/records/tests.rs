//! Sums over parts against those over all rows, for every request, partition and storage.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::design::{Csr, OnViolation, Rows};
use crate::linalg::vector;
use crate::loss::{Hinge, Logistic, Targets};
use crate::row_domain::RowDomain;

const WIDTH: usize = 4;
const DIM: usize = WIDTH + 1;
const INTERCEPT: Option<f64> = Some(0.5);
const BOUNDS: RowBounds = RowBounds {
    rows: RowDomain::Ball(1.0),
    targets: Targets::Signs,
    on_violation: OnViolation::Clip,
};

/// Rows about as long as their bound, so that some are clipped.
fn rows(n: usize) -> (Vec<f64>, Vec<f64>) {
    let x = (0..n * WIDTH).map(|i| 0.7 * (i as f64 * 0.731).sin());
    let y = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 });
    (x.collect(), y.collect())
}

/// The same rows, stored sparsely.
fn sparse(x: &[f64]) -> Rows<'static> {
    let n = i64::try_from(x.len() / WIDTH).unwrap();
    let starts: Vec<i64> = (0..=n).map(|i| i * 4).collect();
    let columns: Vec<i32> = (0..n).flat_map(|_| 0..4).collect();
    Rows::Csr(Csr::new(starts, columns, x.to_vec(), WIDTH).unwrap())
}

fn requests() -> [Request; 16] {
    let params = vec![0.4, -0.3, 0.2, 0.1, -0.5];
    let risk = |hessian| Request::Risk {
        params: params.clone(),
        hessian,
    };
    let map: Vec<f64> = (0..DIM * DIM).map(|i| (i * i % 7) as f64 - 3.0).collect();
    let moved = |of| Request::Moved {
        rounding: Rounding {
            map: map.clone(),
            radius: 4.0,
            longest: 20.0,
            further: (0..DIM * DIM).map(|i| 0.2 * ((i % 5) as f64 - 1.5)).collect(),
            limits: [1.5, 4.0],
        },
        of: Box::new(of),
    };
    [
        risk(HessianRows::None),
        risk(HessianRows::All),
        Request::Moments { params: params.clone() },
        Request::Hessian { params: params.clone() },
        Request::Capped {
            of: Capped::Slopes,
            params: params.clone(),
            cap: 0.3,
            targets: true,
        },
        Request::Capped {
            of: Capped::Slopes,
            params: params.clone(),
            cap: 0.3,
            targets: false,
        },
        Request::Capped {
            of: Capped::Gradient,
            params: params.clone(),
            cap: 0.3,
            targets: false,
        },
        Request::Capped {
            of: Capped::Levels,
            params: params.clone(),
            cap: 2.0,
            targets: true,
        },
        Request::DoubledGradient {
            point: params.iter().map(|p| Doubled::sum(*p, 1e-20)).collect(),
        },
        Request::Lengths,
        Request::SecondMoments,
        Request::MovedCounts {
            map: map.clone(),
            radii: vec![1.0, 2.0, 4.0],
        },
        moved(Request::DerivativeCounts {
            params: params.clone(),
            gradients: vec![0.5, 1.0, 2.0],
            hessians: vec![0.1, 1.0],
        }),
        moved(Request::SecondMoments),
        moved(Request::Moments { params: params.clone() }),
        moved(Request::Hessian { params: params.clone() }),
    ]
}

fn with_exec<T>(test: impl FnOnce(&Executor<'_>) -> T) -> T {
    let cancel = AtomicBool::new(false);
    test(&Executor::sequential(&cancel))
}

fn keyed(request: &Request) -> KeyedRequest {
    KeyedRequest {
        request: request.clone(),
        key: FingerprintKey::new(*b"a secret of the fit of this test"),
    }
}

fn sums_of(request: &Request, rows: Rows<'_>, y: &[f64]) -> Sums {
    summed(request, Part::new(rows, y), &Logistic).unwrap()
}

fn summed(request: &Request, part: Part<'_>, loss: &dyn Loss) -> Result<Sums> {
    let keyed = keyed(request);
    with_exec(|exec| part_sums(&keyed, part, loss, INTERCEPT, &BOUNDS, exec))
}

/// Sums that came from elsewhere, of rows that are records of their own.
fn travelled(n_rows: usize, fingerprint: u128, numbers: &[f64]) -> Result<Sums> {
    Sums::from_numbers(n_rows, n_rows, fingerprint, numbers)
}

/// Every number of a sum, once its compensation is added.
fn values(sums: &Sums) -> Vec<f64> {
    let grams = sums.grams.iter().flat_map(|g| g.clone().finish(1.0));
    let doubled = sums.doubled.iter().map(|d| d.rounded());
    let slopes = sums.slopes.values();
    slopes.chain(grams).chain(doubled).collect()
}

fn in_parts(request: &Request, x: &[f64], y: &[f64], cuts: &[usize], travel: bool) -> Sums {
    let mut total = Sums::default();
    for (k, ends) in cuts.windows(2).enumerate() {
        let x = &x[ends[0] * WIDTH..ends[1] * WIDTH];
        // Every other part is sparse.
        let rows = if k % 2 == 0 { Rows::dense(x, WIDTH) } else { sparse(x) };
        let part = sums_of(request, rows, &y[ends[0]..ends[1]]);
        let part = if travel {
            travelled(part.n_rows(), part.fingerprint(), &part.numbers()).unwrap()
        } else {
            part
        };
        total.merge(&part).unwrap();
    }
    total
}

#[test]
fn parts_sum_to_the_whole() {
    let n = 5000;
    let (x, y) = rows(n);
    let partitions: [&[usize]; 4] = [
        &[0, n],
        &[0, 1, 130, 130, 4000, n],
        &[0, 0, 129, 128 * 33, n - 1, n, n],
        &[0, 2500, n],
    ];
    for request in requests() {
        let whole = sums_of(&request, Rows::dense(&x, WIDTH), &y);
        for cuts in partitions {
            for travel in [false, true] {
                let total = in_parts(&request, &x, &y, cuts, travel);
                assert_eq!(total.n_rows(), n);
                assert_eq!(total.fingerprint(), whole.fingerprint());
                for (a, b) in total.squares.iter().zip(whole.squares) {
                    // Infinite, and zero, where no lengths were asked for.
                    assert!(a.total_cmp(&b).is_eq() || (a - b).abs() <= 1e-14 * b);
                }
                let (ours, theirs) = (values(&total), values(&whole));
                assert_eq!(ours.len(), theirs.len());
                // The borders of blocks differ, and with them the plain sums in each: less than n terms of size 1 lose there.
                for (a, b) in ours.iter().zip(&theirs) {
                    assert!((a - b).abs() <= 16.0 * f64::EPSILON * 5000.0, "{request:?}");
                }
            }
        }
    }
}

#[test]
fn rounding_does_not_grow_with_the_number_of_parts() {
    // Terms of size 1 that add up to nothing: plain sums of partial sums would lose what is left.
    let n = 1 << 14;
    let mut sums = [Sums::default(), Sums::default()];
    for i in 0..n {
        let mut part = Sums {
            n_rows: 1,
            ..Sums::default()
        };
        let size = if i % 2 == 0 { 1e10 } else { -1e10 };
        part.slopes.add(&[size + 0.1]);
        part.slopes.add(&[0.1]);
        let travelled = travelled(1, 1, &part.numbers()).unwrap();
        sums[0].merge(&part).unwrap();
        sums[1].merge(&travelled).unwrap();
    }
    // As rounded: ±1e10 + 0.1 is a multiple of 2⁻¹⁹.
    let exact = f64::from(n) * (0.1 + 0.5 * ((1e10 + 0.1) + (-1e10 + 0.1)));
    for total in &sums {
        let [value] = values(total)[..] else { panic!() };
        assert!((value - exact).abs() <= 8.0 * f64::EPSILON * exact);
    }
}

#[test]
fn moved_rows_in_parts_are_those_in_memory() {
    let (x, y) = rows(600);
    let [.., of_rows, counts, derivatives, moments, curvatures, _] = requests();
    let Request::Moved { rounding, .. } = &moments else {
        panic!()
    };
    let evaluate = |request: &Request| Ok(in_parts(request, &x, &y, &[0, 1, 130, 400, 600], false));
    let first = evaluate(&Request::Lengths).unwrap();
    let parts = Parts::new(&first, DIM, INTERCEPT, BOUNDS, &evaluate).unwrap();
    with_exec(|exec| {
        let design = Design::new(Rows::dense(&x, WIDTH), &y, INTERCEPT, &BOUNDS, exec).unwrap();
        let of = |records| {
            let moved = Moved::new(records, &rounding.map, exec).unwrap();
            let beyond = moved.counts(&[1.0, 2.0, 4.0], &Logistic, exec).unwrap();
            let round = moved.within(rounding.radius, rounding.longest);
            let mut round = round.moved_further(&rounding.further, exec).unwrap();
            round.limit(rounding.limits[0], rounding.limits[1]);
            assert_eq!((round.n_params(), round.n_rows()), (DIM, 600));
            assert_eq!((round.n_records(), round.intercept()), (600, None));
            let longest = rounding.longest * vector::norm(&rounding.further);
            assert!((round.bounds().rows.norm() - longest).abs() < 1e-9);
            let weighed = rounding.radius * vector::norm(&rounding.further);
            assert_eq!(round.weighed_to(), Some(weighed));
            let Request::Moved { of, .. } = &curvatures else {
                panic!()
            };
            let sums = |request| values(&round.sums(request, &Logistic, None, exec).unwrap());
            let found = [sums(&Request::SecondMoments), sums(of)];
            let Request::Moved { of, .. } = &derivatives else {
                panic!()
            };
            let Request::DerivativeCounts {
                params,
                gradients,
                hessians,
            } = &**of
            else {
                panic!()
            };
            let bounds = [gradients.as_slice(), hessians];
            let norms = round.counts_of_derivatives(&Logistic, params, bounds, exec).unwrap();
            (beyond, found, round.design().is_some(), norms)
        };
        let (here, elsewhere) = (of(&design), of(&parts));
        assert_eq!((here.2, elsewhere.2), (true, false));
        // Whole rows are counted exactly.
        assert_eq!(here.0, elsewhere.0);
        assert_eq!(here.0, values(&evaluate(&counts).unwrap()));
        assert!(here.0.iter().all(|n| *n > 10.0));
        assert!(here.3.iter().all(|counts| counts[0] > 1.0));
        for (a, b) in here.3.iter().flatten().zip(elsewhere.3.iter().flatten()) {
            assert!((a - b).abs() < 1e-10);
        }
        for (a, b) in here.1.iter().flatten().zip(elsewhere.1.iter().flatten()) {
            assert!((a - b).abs() < 1e-10);
        }
        let plain = values(&evaluate(&of_rows).unwrap());
        assert!(here.1[0].iter().zip(&plain).any(|(a, b)| (a - b).abs() > 1.0));
    });
}

/// Change of a row.
type Change<'a> = &'a dyn Fn(&mut [f64]);

/// Fingerprint of rows with one target, whatever their lengths.
fn fingerprint(x: &[f64], y: &[f64]) -> u128 {
    let bounds = RowBounds {
        rows: RowDomain::Ball(100.0),
        ..BOUNDS
    };
    let rows = Rows::dense(x, x.len() / y.len());
    let lengths = keyed(&Request::Lengths);
    with_exec(|exec| part_sums(&lengths, Part::new(rows, y), &Logistic, None, &bounds, exec))
        .unwrap()
        .fingerprint()
}

#[test]
fn a_fingerprint_tells_rows_apart() {
    let (x, y) = rows(300);
    let whole = fingerprint(&x, &y);
    let row = |i: usize| i * WIDTH..(i + 1) * WIDTH;
    // Row 0 begins with a zero, whose sign is no matter.
    for i in [1, 150, 299] {
        let changes: [Change; 7] = [
            &|row| row[0] = -row[0],
            // Signs of two entries, of all: an even number of them cancels in sums of bits.
            &|row| [row[1], row[2]] = [-row[1], -row[2]],
            &|row| row.iter_mut().for_each(|v| *v = -*v),
            &|row| row.iter_mut().for_each(|v| *v *= 2.0),
            &|row| row.swap(0, 1),
            &|row| row.reverse(),
            &|row| row[3] = row[3].next_up(),
        ];
        for (k, change) in changes.iter().enumerate() {
            let mut other = x.clone();
            change(&mut other[row(i)]);
            assert_ne!(fingerprint(&other, &y), whole, "change {k} of row {i}");
        }
        // Of all rows at once, and an entry that moves from one row to another.
        let mut other = x.clone();
        other.swap(i * WIDTH, (7 * WIDTH + i * WIDTH) % x.len());
        assert_ne!(fingerprint(&other, &y), whole);
        let mut targets = y.clone();
        targets[i] = -targets[i];
        assert_ne!(fingerprint(&x, &targets), whole);
    }
    let flipped: Vec<f64> = x.iter().map(|v| -v).collect();
    assert_ne!(fingerprint(&flipped, &y), whole);
    // Targets of two rows swapped.
    let mut targets = y.clone();
    targets.swap(0, 1);
    assert_ne!(fingerprint(&x, &targets), whole);
    // The order of the rows is no matter, nor is the sign of zero.
    let backwards = |v: &[f64], width| v.chunks(width).rev().flatten().copied().collect::<Vec<_>>();
    assert_eq!(fingerprint(&backwards(&x, WIDTH), &backwards(&y, 1)), whole);
    let zeros = |zero| fingerprint(&[zero, 0.1, zero, 0.2], &[1.0, -1.0]);
    assert_eq!(zeros(0.0), zeros(-0.0));
}

#[test]
fn rows_of_few_values_have_their_own_fingerprints() {
    // Zeros and ones, and numbers of single precision with few digits: their bits differ in a few places only.
    let grids: [(&[f64], u32); 3] = [
        (&[0.0, 1.0], 14),
        (&[0.0, 0.25, 0.5, 1.0], 7),
        (&[-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0], 5),
    ];
    for (values, width) in grids {
        let n = values.len();
        let mut seen = std::collections::HashSet::new();
        for i in 0..n.pow(width) {
            let row: Vec<f64> = (0..width).map(|j| values[i / n.pow(j) % n]).collect();
            for target in [-1.0, 1.0] {
                assert!(seen.insert(fingerprint(&row, &[target])), "{row:?}");
            }
        }
    }
}

#[test]
fn keys_decide_fingerprints() {
    let (x, y) = rows(2);
    let mut seen = std::collections::HashSet::new();
    for byte in 0..32 {
        let mut key = [7; 32];
        key[byte] ^= 1;
        let keyed = KeyedRequest {
            request: Request::Lengths,
            key: FingerprintKey::new(key),
        };
        let rows = Rows::dense(&x, WIDTH);
        let sums = with_exec(|exec| part_sums(&keyed, Part::new(rows, &y), &Logistic, INTERCEPT, &BOUNDS, exec));
        assert!(seen.insert(sums.unwrap().fingerprint()), "byte {byte}");
    }
}

#[test]
fn passes_over_other_rows_are_refused() {
    let (x, y) = rows(300);
    let refusal = |change: &(dyn Fn(&mut Vec<f64>) + Sync)| {
        let first = sums_of(&Request::Lengths, Rows::dense(&x, WIDTH), &y);
        let evaluate = |request: &Request| {
            let mut x = x.clone();
            change(&mut x);
            Ok(sums_of(request, Rows::dense(&x, WIDTH), &y[..x.len() / WIDTH]))
        };
        let parts = Parts::new(&first, DIM, INTERCEPT, BOUNDS, &evaluate).unwrap();
        with_exec(|exec| {
            let sums = parts.sums(&requests()[1], &Logistic, None, exec);
            sums.map_err(|e| e.to_string())
        })
    };
    assert!(refusal(&|_| ()).is_ok());
    let message = refusal(&|x| x[5] += 0.01).unwrap_err();
    assert!(message.contains("different values"), "{message}");
    let message = refusal(&|x| x.truncate(299 * WIDTH)).unwrap_err();
    assert!(
        message.contains("got 299 rows in this pass and 300 in the first"),
        "{message}"
    );
}

#[test]
fn sums_that_nobody_wrote_are_refused() {
    let numbers = Sums::default().numbers();
    let sums = |n| travelled(n, 1, &numbers).unwrap();
    assert!(sums(usize::MAX).merge(&sums(1)).is_err());
    assert!(sums(usize::MAX - 1).merge(&sums(1)).is_ok());
    assert_eq!(sums(0).n_rows(), 0);
    // No rows with a fingerprint, or with sums; a number that is no fingerprint.
    assert!(travelled(0, 2, &numbers).is_err());
    let (x, y) = rows(5);
    for request in requests() {
        let some = sums_of(&request, Rows::dense(&x, WIDTH), &y).numbers();
        assert!(travelled(0, 1, &some).is_err(), "{request:?}");
        assert!(travelled(5, 1, &some).is_ok());
        assert!(travelled(5, u128::MAX, &some).is_err());
    }
}

#[test]
fn sums_of_another_request_are_refused() {
    let (x, y) = rows(300);
    let [risk, hessian, ..] = requests();
    let mut sums = sums_of(&risk, Rows::dense(&x, WIDTH), &y);
    let other = sums_of(&hessian, Rows::dense(&x, WIDTH), &y);
    assert!(sums.merge(&other).is_err());
    let evaluate = |_: &Request| Ok(other.clone());
    let parts = Parts::new(&sums, DIM, INTERCEPT, BOUNDS, &evaluate).unwrap();
    with_exec(|exec| {
        assert!(parts.sums(&risk, &Logistic, None, exec).is_err());
        assert!(parts.sums(&risk, &Logistic, Some(&[1; 300]), exec).is_err());
        assert!(parts.sums(&hessian, &Logistic, None, exec).is_ok());
    });
    assert!(rows_in_memory(&parts, "a grid").is_err());
}

#[test]
fn malformed_numbers_are_refused() {
    let (x, y) = rows(50);
    for request in requests() {
        assert_eq!(Request::new(&request.name(), request.point()).unwrap(), request);
        let sums = sums_of(&request, Rows::dense(&x, WIDTH), &y);
        let numbers = sums.numbers();
        for length in 0..numbers.len() {
            // A cut at the end of a section leaves fewer matrices, which the shape of the sums then tells.
            if let Ok(cut) = travelled(50, 1, &numbers[..length]) {
                assert_ne!(cut.shape(), sums.shape());
            }
        }
        for bad in [-1.0, 0.5, f64::NAN, 1e300] {
            let mut numbers = numbers.clone();
            numbers[0] = bad;
            assert!(travelled(50, 1, &numbers).is_err());
        }
    }
    assert!(Request::new("risks", vec![]).is_err());
    assert!(Request::new("doubled_gradient", vec![0.0; 3]).is_err());
    for (name, point) in [
        ("moved_risks", vec![1.0, 2.0, 3.0, 4.0]),
        ("moved_risk", vec![1.0, 2.0, 3.0]),
        ("moved_counts", vec![2.0, 1.0]),
        ("moved_counts", vec![0.5, 1.0]),
        ("moved_counts", vec![]),
        ("derivative_counts", vec![1.0, 0.5]),
    ] {
        assert!(Request::new(name, point).is_err(), "{name}");
    }
}

#[test]
fn no_rows_have_empty_sums() {
    let [risk, ..] = requests();
    for rows in [Rows::dense(&[], WIDTH), sparse(&[])] {
        assert_eq!(sums_of(&risk, rows, &[]).n_rows(), 0);
    }
    // Rows without targets are no empty part.
    let part = Part::new(Rows::dense(&[0.1; WIDTH], WIDTH), &[]);
    let refused = summed(&risk, part, &Logistic);
    assert!(refused.is_err());
    let evaluate = |_: &Request| Ok(Sums::default());
    let (x, y) = self::rows(3);
    let some = sums_of(&risk, Rows::dense(&x, WIDTH), &y);
    assert!(Parts::new(&Sums::default(), DIM, INTERCEPT, BOUNDS, &evaluate).is_err());
    assert!(Parts::new(&some, 0, INTERCEPT, BOUNDS, &evaluate).is_err());
    let part = Part::new(Rows::dense(&x, WIDTH), &y);
    let kinked = summed(&requests()[2], part, &Hinge);
    assert!(kinked.is_err());
}
