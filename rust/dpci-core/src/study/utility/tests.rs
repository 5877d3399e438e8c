//! Passes against plain sums, predictions against Newton steps with exact Hessians, smoothing against fine quadrature.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::passes::{interleave, lane};
use super::*;
use crate::design::{Csr, OnViolation, RowBounds, Rows};
use crate::linalg::vector;
use crate::loss::{Batch, HuberHinge, Logistic};
use crate::objective::HessianRows;
use crate::privacy::{Budget, Calibration, Neighbors};
use crate::row_domain::RowDomain;
use crate::spec::{Choices, Moments, Projection, Terms, Variant};

const N: usize = 700;
const WIDTH: usize = 5;
const INTERCEPT: f64 = 0.5;

static CANCEL: AtomicBool = AtomicBool::new(false);

fn exec() -> Executor<'static> {
    Executor::new(Some(2), 1 << 20, &CANCEL).unwrap()
}

/// Records of which many repeat, some zeros.
fn records() -> (Vec<f64>, Vec<f64>) {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..N {
        let k = if i % 3 == 0 { i % 7 } else { i };
        x.extend((0..WIDTH).map(|j| match (k + j) % 3 {
            0 => 0.0,
            _ => 0.4 * ((k * WIDTH + j) as f64).sin(),
        }));
        y.push(if (k * k) % 5 < 2 { 1.0 } else { -1.0 });
    }
    (x, y)
}

fn spec(loss: Arc<dyn Loss>, perturbation: Perturbation, epsilon: f64) -> Spec {
    Spec::new(Choices {
        terms: Terms::of_rows(N, Neighbors::ReplaceOne),
        n_columns: WIDTH,
        intercept: Some(INTERCEPT),
        rows: RowDomain::Ball(1.0),
        loss,
        l2_strength: 0.02,
        radius: None,
        variant: Variant::Standard,
        project: false,
        budget: Budget::approx(epsilon, 1e-6).unwrap(),
        perturbation,
        noise: None,
        split: None,
        moments: Moments::None,
        reserve: 0.0,
        projection: Projection::Floor,
        calibration: Calibration::Tight,
    })
    .unwrap()
}

fn logistic(epsilon: f64) -> Spec {
    spec(Arc::new(Logistic), Perturbation::Objective, epsilon)
}

fn bounds(spec: &Spec) -> RowBounds {
    RowBounds {
        rows: RowDomain::Ball(1.0),
        targets: spec.choices().loss.targets(),
        on_violation: OnViolation::Error,
    }
}

/// The same records dense, merged and sparse.
fn storages(spec: &Spec) -> [Utility; 3] {
    let (x, y) = records();
    let exec = exec();
    let design = |rows| Design::new(rows, &y, Some(INTERCEPT), &bounds(spec), &exec).unwrap();
    let (mut starts, mut columns, mut values) = (vec![0_i64], Vec::new(), Vec::new());
    for row in x.chunks(WIDTH) {
        for (j, v) in (0..).zip(row) {
            if *v != 0.0 {
                columns.push(j);
                values.push(*v);
            }
        }
        starts.push(i64::try_from(values.len()).unwrap());
    }
    let csr = Csr::new(starts, columns, values, WIDTH).unwrap();
    let dense = design(Rows::dense(&x, WIDTH));
    let merged = dense.merged(&exec).unwrap();
    assert!(merged.multiplicities().is_some());
    [
        Utility::new(&dense, spec).unwrap(),
        Utility::new(&merged, spec).unwrap(),
        Utility::new(&design(Rows::Csr(csr)), spec).unwrap(),
    ]
}

fn points(n: usize) -> Vec<Vec<f64>> {
    let entry = |p: usize, j: usize| ((p * 7 + j * 3) as f64 * 0.31).sin() * 2.0;
    (0..n).map(|p| (0..=WIDTH).map(|j| entry(p, j)).collect()).collect()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
}

/// Value, slope and curvature of one record.
fn of_record(utility: &Utility, metric: Metric, u: f64, y: f64) -> [f64; 3] {
    let (mut value, mut slope, mut curvature) = (0.0, [0.0], [0.0]);
    let out = Batch {
        total: Some(&mut value),
        slope: Some(&mut slope),
        curvature: Some(&mut curvature),
        ..Batch::default()
    };
    metric.evaluate(&*utility.loss, &[u], &[y], out).unwrap();
    [value, slope[0], curvature[0]]
}

#[test]
fn passes_equal_plain_sums() {
    let spec = logistic(1.0);
    let (x, y) = records();
    let exec = exec();
    let dim = WIDTH + 1;
    let row = |i: usize| {
        let mut row = x[i * WIDTH..(i + 1) * WIDTH].to_vec();
        row.push(INTERCEPT);
        row
    };
    for utility in storages(&spec) {
        let points = points(20);
        for metric in [Metric::Loss, Metric::SmoothedAccuracy { width: 0.3 }] {
            let means = utility.means(metric, &points, &exec).unwrap();
            for (point, mean) in points.iter().zip(means) {
                let (mut value, mut gradient) = (0.0, vec![0.0; dim]);
                let mut hessian = vec![0.0; dim * dim];
                for (i, y) in y.iter().enumerate() {
                    let row = row(i);
                    let [f, f1, f2] = of_record(&utility, metric, vector::dot(&row, point), *y);
                    value += f / N as f64;
                    for j in 0..dim {
                        gradient[j] += f1 * row[j] / N as f64;
                        for k in 0..dim {
                            hessian[j * dim + k] += f2 * row[j] * row[k] / N as f64;
                        }
                    }
                }
                let (g, h) = utility.mean_derivatives(metric, point, &exec).unwrap();
                assert!((mean - value).abs() < 1e-12);
                assert!(close(&g, &gradient, 1e-12) && close(&h, &hessian, 1e-12));
            }
        }
        let lanes = interleave(&points[..9]);
        let directions = interleave(&points[9..18]);
        let slopes = utility.slopes(&lanes, &exec).unwrap();
        let products = utility.hessian_products(&slopes, &directions, &exec).unwrap();
        for l in 0..9 {
            let (g, h) = utility.risk_derivatives(&points[l], &exec).unwrap();
            let product: Vec<f64> = h.chunks(dim).map(|r| vector::dot(r, &points[9 + l])).collect();
            assert!(close(&lane(&slopes.gradients, l), &g, 1e-12));
            assert!(close(&lane(&products, l), &product, 1e-12));
        }
    }
}

/// Newton steps from the anchor with exact Hessians of the whole objective.
fn exact_steps(utility: &Utility, anchor: &Anchor, spec: &Spec, n_steps: usize) -> Vec<f64> {
    let exec = exec();
    let at = |level: Level| -> Vec<f64> {
        let scale = level.scale / utility.n_samples;
        anchor.noise.iter().map(|u| scale * u).collect()
    };
    let objective = |level: Level, linear: &[f64], point: &[f64]| {
        Objective {
            records: &utility.design,
            loss: &*utility.loss,
            weights: None,
            l2_strength: level.l2_strength,
            extra_convexity: 0.0,
            linear_term: Some(linear),
            n_samples: utility.n_samples,
            exec: &exec,
        }
        .evaluate(point, HessianRows::All)
        .unwrap()
    };
    let residual = objective(anchor.level, &at(anchor.level), &anchor.params).gradient;
    let level = Level::of(spec);
    let mut point = anchor.params.clone();
    for _ in 0..n_steps {
        let here = objective(level, &at(level), &point);
        let gradient: Vec<f64> = here.gradient.iter().zip(&residual).map(|(g, r)| g - r).collect();
        let factor = Cholesky::new(&here.hessian.unwrap(), point.len(), "H").unwrap();
        for (p, s) in point.iter_mut().zip(factor.solve(&gradient)) {
            *p -= s;
        }
    }
    point
}

#[test]
fn predictions_are_newton_steps() {
    let exec = exec();
    for loss in [
        Arc::new(Logistic) as Arc<dyn Loss>,
        Arc::new(HuberHinge::new(0.5).unwrap()),
    ] {
        let measured = spec(Arc::clone(&loss), Perturbation::Objective, 2.0);
        let others: Vec<Spec> = (0..19)
            .map(|i| spec(Arc::clone(&loss), Perturbation::Objective, 1.0 + 0.3 * f64::from(i)))
            .collect();
        let others: Vec<&Spec> = others.iter().collect();
        for utility in storages(&measured) {
            let noise = Utility::draw_noise(&measured, 5, 0).unwrap();
            // Also parameters that minimise nothing.
            let odd = points(1).remove(0);
            for params in [None, Some(&odd[..])] {
                let anchor = utility.anchor(&measured, noise.clone(), params, None, &exec).unwrap();
                for n_steps in [1, 2, 3] {
                    let got = utility.predict(&anchor, &others, n_steps, &exec).unwrap();
                    for (got, spec) in got.iter().zip(&others) {
                        let expected = exact_steps(&utility, &anchor, spec, n_steps);
                        let moved: Vec<f64> = expected.iter().zip(&anchor.params).map(|(e, p)| e - p).collect();
                        let tolerance = if n_steps == 1 { 1e-11 } else { 2e-3 };
                        let tolerance = tolerance * vector::norm(&moved) + 1e-12;
                        assert!(close(got, &expected, tolerance), "{n_steps}: {got:?}");
                    }
                }
                let same = utility.predict(&anchor, &[&measured], 3, &exec).unwrap();
                assert!(close(&same[0], anchor.params(), 1e-13));
            }
        }
    }
}

#[test]
fn output_perturbation_moves_along_the_draw() {
    let exec = exec();
    let at = |epsilon| spec(Arc::new(Logistic), Perturbation::Output, epsilon);
    let (measured, other) = (at(1.0), at(0.5));
    let [utility, ..] = storages(&measured);
    let noise = Utility::draw_noise(&measured, 5, 0).unwrap();
    let anchor = utility.anchor(&measured, noise.clone(), None, None, &exec).unwrap();
    let center = utility.center(0.02, None, &exec).unwrap();
    let got = utility.predict(&anchor, &[&other], 1, &exec).unwrap();
    let expected: Vec<f64> = center
        .params()
        .iter()
        .zip(&noise)
        .map(|(c, u)| c + other.law().scale() * u)
        .collect();
    assert!(close(&got[0], &expected, 1e-10));
    assert!(close(&utility.mean_shift(&center, 1.0, &exec).unwrap(), &[0.0; 6], 0.0));
}

#[test]
fn smoothing_is_quadrature_over_every_row() {
    let exec = exec();
    let spec = logistic(1.0);
    let (x, y) = records();
    let dim = WIDTH + 1;
    for utility in storages(&spec) {
        let center = utility.center(0.02, None, &exec).unwrap();
        let factor = Cholesky::new(center.hessian(), dim, "H").unwrap();
        let variance = 300.0;
        // Midpoint rule over 12 standard deviations.
        let cells = 600;
        let grid = (0..cells).map(|i| -6.0 + 12.0 * (f64::from(i) + 0.5) / f64::from(cells));
        let rule: Vec<(f64, f64)> = grid
            .map(|z| {
                let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
                (z, density * 12.0 / f64::from(cells))
            })
            .collect();
        let rows: Vec<(Vec<f64>, f64, f64)> = (0..N)
            .map(|i| {
                let mut row = x[i * WIDTH..(i + 1) * WIDTH].to_vec();
                row.push(INTERCEPT);
                let u = vector::dot(&row, center.params());
                let seen = factor.solve(&row);
                let q = variance * vector::dot(&seen, &seen) / (N * N) as f64;
                (row, u, q.sqrt())
            })
            .collect();
        let mut shift = vec![0.0; dim];
        for ((row, u, sd), y) in rows.iter().zip(&y) {
            let slope = |u: f64| of_record(&utility, Metric::Loss, u, *y)[1];
            let mean: f64 = rule.iter().map(|(z, w)| w * slope(u + sd * z)).sum();
            for (s, v) in shift.iter_mut().zip(row) {
                *s -= (mean - slope(*u)) * v / N as f64;
            }
        }
        factor.solve_in_place(&mut shift);
        let got = utility.mean_shift(&center, variance, &exec).unwrap();
        let size = vector::norm(&shift);
        // What the seven nodes of the rule leave.
        assert!(size > 1e-4 && close(&got, &shift, 1e-3 * size), "{got:?} {shift:?}");
        for metric in [Metric::Loss, Metric::SmoothedAccuracy { width: 0.5 }] {
            let (mut value, mut gradient) = (0.0, vec![0.0; dim]);
            let mut hessian = vec![0.0; dim * dim];
            for ((row, u, sd), y) in rows.iter().zip(&y) {
                let moved = u + vector::dot(row, &shift);
                for (z, w) in &rule {
                    let [f, f1, f2] = of_record(&utility, metric, moved + sd * z, *y);
                    let w = w / N as f64;
                    value += w * f;
                    for j in 0..dim {
                        gradient[j] += w * f1 * row[j];
                        for k in 0..dim {
                            hessian[j * dim + k] += w * f2 * row[j] * row[k];
                        }
                    }
                }
            }
            let got = utility.smoothed(&center, metric, variance, &shift, &exec).unwrap();
            assert!((got.value / value - 1.0).abs() < 1e-3);
            assert!(close(&got.gradient, &gradient, 1e-3 * vector::norm(&gradient)));
            assert!(close(&got.hessian, &hessian, 3e-3 * vector::norm(&hessian)));
        }
    }
}

#[test]
fn bad_arguments_are_refused() {
    let exec = exec();
    let spec = logistic(1.0);
    let [utility, ..] = storages(&spec);
    let noise = Utility::draw_noise(&spec, 5, 0).unwrap();
    assert!(utility.anchor(&spec, vec![0.0; 2], None, None, &exec).is_err());
    assert!(utility.anchor(&spec, noise, Some(&[0.0]), None, &exec).is_err());
    assert!(utility.means(Metric::Loss, &[vec![0.0]], &exec).is_err());
    assert!(utility.mean_derivatives(Metric::Loss, &[0.0], &exec).is_err());
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(utility.center(bad, None, &exec).is_err());
    }
    let center = utility.center(0.02, None, &exec).unwrap();
    assert!(utility.smoothed(&center, Metric::Loss, 1.0, &[0.0], &exec).is_err());
}
