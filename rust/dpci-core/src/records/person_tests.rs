//! Sums over persons beside their definition, term by term in doubled precision.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::design::{Csr, OnViolation, Persons, Rows};
use crate::linalg::vector;
use crate::loss::{Batch, HuberHinge, Logistic, Targets, gradient_rounding, hessian_rounding, person_rounding};
use crate::row_domain::RowDomain;

const WIDTH: usize = 3;
const INTERCEPT: f64 = 0.5;
const DIM: usize = WIDTH + 1;
const PARAMS: [f64; DIM] = [0.7, -0.4, 1.1, 0.3];
/// Some slopes are beyond it.
const CAP: f64 = 0.4;

/// Rows, targets, and the person of each: person 0 has a third of the rows, the others are anywhere.
fn panel(n: usize) -> (Vec<f64>, Vec<f64>, Vec<i64>) {
    let x = (0..n * WIDTH).map(|i| 0.55 * (i as f64 * 0.731).sin());
    let y = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 });
    let others = i64::try_from(n / 7 + 1).unwrap();
    let person = (0..i64::try_from(n).unwrap()).map(|i| {
        if i % 3 == 1 {
            0
        } else {
            // 5 and most numbers of persons have no common factor: the order in the table is another one.
            (i * 5 + i / others) % others
        }
    });
    (x.collect(), y.collect(), person.collect())
}

fn sparse(x: &[f64]) -> Rows<'_> {
    let n = x.len() / WIDTH;
    let starts: Vec<i64> = (0..=n).map(|i| i64::try_from(i * WIDTH).unwrap()).collect();
    let columns: Vec<i32> = (0..n).flat_map(|_| 0..3).collect();
    Rows::Csr(Csr::new(starts, columns, x.to_vec(), WIDTH).unwrap())
}

/// Numbers that persons may have, without gaps.
fn numbered(ids: &[i64]) -> Vec<i64> {
    let mut known: Vec<i64> = ids.to_vec();
    known.sort_unstable();
    known.dedup();
    ids.iter()
        .map(|id| i64::try_from(known.binary_search(id).unwrap()).unwrap())
        .collect()
}

fn check(n: usize, max_rows: Option<u32>, loss: &dyn Loss) {
    let (x, y, ids) = panel(n);
    let ids = numbered(&ids);
    let mut in_order = ids.clone();
    in_order.sort_unstable();
    let unit = Unit::persons(max_rows).unwrap();
    let bounds = RowBounds {
        rows: RowDomain::Ball(1.0),
        targets: Targets::Signs,
        on_violation: OnViolation::Error,
    };
    let cancel = AtomicBool::new(false);
    for threads in [1, 2] {
        let exec = Executor::new(Some(threads), usize::MAX, &cancel).unwrap();
        for (rows, ids) in [
            (Rows::dense(&x, WIDTH), &ids),
            (Rows::dense(&x, WIDTH), &in_order),
            (sparse(&x), &ids),
            (sparse(&x), &in_order),
        ] {
            let design = Design::new(rows, &y, Some(INTERCEPT), &bounds, &exec).unwrap();
            let persons = Persons::new(ids, unit, &exec).unwrap();
            let design = design.of_persons(persons).unwrap();
            check_sums(&design, ids, max_rows, loss, &exec);
        }
    }
}

/// `Σ ggᵀ`.
fn squares(gradients: &[Doubled]) -> Vec<Doubled> {
    let mut sum = vec![Doubled::default(); DIM * DIM];
    for g in gradients.chunks_exact(DIM) {
        for j in 0..DIM {
            for k in 0..DIM {
                let entry = &mut sum[j * DIM + k];
                *entry = *entry + g[j] * g[k];
            }
        }
    }
    sum
}

/// The distance of computed numbers to exact ones.
fn distance(computed: &[f64], exact: &[Doubled]) -> f64 {
    let gaps = computed.iter().zip(exact);
    let gaps: Vec<f64> = gaps.map(|(&c, &e)| (e - c.into()).rounded()).collect();
    vector::norm_bound(&gaps)
}

/// Sums of a sample that has every person twice.
fn check_twice(design: &Design<'_>, loss: &dyn Loss, exec: &Executor<'_>, risk: &Sums, mass: f64) {
    let n = design.n_rows();
    let twice = design.sums(
        &Request::Risk {
            params: PARAMS.to_vec(),
            hessian: HessianRows::All,
        },
        loss,
        Some(&vec![2; n]),
        exec,
    );
    let twice = twice.unwrap();
    let gaps = twice.slopes.values().zip(risk.slopes.values());
    assert!(gaps.map(|(t, r)| (t - 2.0 * r).abs()).fold(0.0, f64::max) <= 1e-12 * mass);
}

/// The gradient at capped slopes against the persons' own, and the squares of these slopes.
fn check_capped_gradient(
    design: &Design<'_>,
    loss: &dyn Loss,
    exec: &Executor<'_>,
    (held, held_squares): (&[Doubled], f64),
    greatest: f64,
) {
    let n = design.n_rows();
    let request = Request::Capped {
        of: Capped::Gradient,
        params: PARAMS.to_vec(),
        cap: CAP,
        targets: true,
    };
    let found: Vec<f64> = design
        .sums(&request, loss, None, exec)
        .unwrap()
        .slopes
        .values()
        .collect();
    let mut total = vec![Doubled::default(); DIM];
    for g in held.chunks_exact(DIM) {
        total.iter_mut().zip(g).for_each(|(t, g)| *t = *t + *g);
    }
    assert!(distance(&found[..DIM], &total) <= gradient_rounding(n) * CAP * greatest);
    let gap = (found[DIM] - held_squares).abs();
    assert!(gap <= 1e-12 * CAP * CAP * greatest, "squares {gap:e}");
}

fn check_sums(design: &Design<'_>, ids: &[i64], max_rows: Option<u32>, loss: &dyn Loss, exec: &Executor<'_>) {
    let n = design.n_rows();
    let n_persons = design.n_records();
    let mut rows = vec![0.0; n * DIM];
    design.write_rows(0..n, &mut rows);
    let mut numbers = vec![0.0; 3 * n];
    let (u, rest) = numbers.split_at_mut(n);
    let (slope, curvature) = rest.split_at_mut(n);
    design.linear_predictor(0..n, &PARAMS, u);
    let out = Batch::derivatives(&mut *slope, &mut *curvature);
    loss.evaluate(u, design.targets(0..n), out).unwrap();
    let mut gradients = vec![Doubled::default(); n_persons * DIM];
    let mut held = gradients.clone();
    let mut hessian = vec![Doubled::default(); DIM * DIM];
    let mut met = vec![0; n_persons];
    let mut held_squares = 0.0;
    for i in 0..n {
        let p = usize::try_from(ids[i]).unwrap();
        let theirs = ids.iter().filter(|id| **id == ids[i]).count();
        let divisor = max_rows.map_or(theirs, |most| most as usize);
        met[p] += 1;
        if met[p] > divisor {
            continue;
        }
        let share = Doubled::from(1.0) / Doubled::from(divisor as f64);
        held_squares += slope[i].clamp(-CAP, CAP).powi(2) / divisor as f64;
        let row = &rows[i * DIM..(i + 1) * DIM];
        for j in 0..DIM {
            let gradient = &mut gradients[p * DIM + j];
            *gradient = *gradient + share * slope[i] * row[j];
            let gradient = &mut held[p * DIM + j];
            *gradient = *gradient + share * slope[i].clamp(-CAP, CAP) * row[j];
            for k in 0..DIM {
                let entry = &mut hessian[j * DIM + k];
                *entry = *entry + Doubled::product(row[j], row[k]) * curvature[i] * share;
            }
        }
    }
    let mut total = vec![Doubled::default(); DIM];
    for g in gradients.chunks_exact(DIM) {
        total.iter_mut().zip(g).for_each(|(t, g)| *t = *t + *g);
    }
    let covariance = squares(&gradients);
    let (mass, reach) = (n_persons as f64, 1.0_f64.hypot(INTERCEPT));
    let request = Request::Moments {
        params: PARAMS.to_vec(),
    };
    let moments = design.sums(&request, loss, None, exec).unwrap().grams;
    let greatest = mass * reach * reach;
    let gap = distance(&moments[0].clone().finish(1.0), &hessian);
    assert!(gap <= hessian_rounding(n) * greatest, "hessian {gap:e}");
    let params = PARAMS.to_vec();
    let alone = design.sums(&Request::Hessian { params }, loss, None, exec);
    let alone = alone.unwrap().grams;
    assert_eq!(alone.len(), 1);
    let gap = distance(&alone[0].clone().finish(1.0), &hessian);
    assert!(gap <= hessian_rounding(n) * greatest, "hessian {gap:e}");
    let gap = distance(&moments[1].clone().finish(1.0), &covariance);
    assert!(gap <= person_rounding(n) * greatest, "covariance {gap:e}");
    // Also by the rounding that is left: a share that were another one would be seen.
    assert!(gap <= 1e-12 * greatest);
    let request = Request::Risk {
        params: PARAMS.to_vec(),
        hessian: HessianRows::All,
    };
    let risk = design.sums(&request, loss, None, exec).unwrap();
    let gradient: Vec<f64> = risk.slopes.values().take(DIM).collect();
    let gap = distance(&gradient, &total);
    assert!(gap <= gradient_rounding(n) * mass * reach, "gradient {gap:e}");
    let gap = distance(&risk.grams[0].clone().finish(1.0), &hessian);
    assert!(gap <= hessian_rounding(n) * greatest, "hessian {gap:e}");
    let request = Request::DoubledGradient {
        point: PARAMS.iter().map(|p| Doubled::from(*p)).collect(),
    };
    let doubled = design.sums(&request, loss, None, exec).unwrap().doubled;
    let gap = doubled.iter().zip(&gradient).map(|(d, g)| (d.rounded() - g).abs());
    assert!(gap.fold(0.0, f64::max) <= 1e-12 * mass);
    let request = Request::Capped {
        of: Capped::Slopes,
        params: PARAMS.to_vec(),
        cap: CAP,
        targets: true,
    };
    let capped = design.sums(&request, loss, None, exec).unwrap().grams;
    let gap = distance(&capped[0].clone().finish(1.0), &squares(&held));
    assert!(gap <= person_rounding(n) * CAP * CAP * greatest, "residuals {gap:e}");
    check_capped_gradient(design, loss, exec, (&held, held_squares), mass * reach);
    check_twice(design, loss, exec, &risk, mass);
}

#[test]
fn sums_are_those_of_persons() {
    for n in [1, 40, 1000] {
        for max_rows in [None, Some(1), Some(3), Some(1000)] {
            check(n, max_rows, &Logistic);
        }
    }
    check(1000, None, &HuberHinge::new(0.5).unwrap());
}
