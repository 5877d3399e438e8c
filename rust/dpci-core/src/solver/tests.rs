//! Both solvers on functions with known minimisers, and their failures.

use std::sync::Arc;

use super::*;
use crate::linalg::{Cholesky, LANES, Lane};

/// `½ Σ aᵢ(xᵢ - cᵢ)² + Σ √(1 + xᵢ²)`: smooth, strongly convex, badly scaled.
struct Sample {
    weights: Vec<f64>,
    centre: Vec<f64>,
}

impl Sample {
    fn new(dim: usize) -> Self {
        let weights = (0..dim)
            .map(|i| 10f64.powf(-2.0 + 4.0 * i as f64 / dim as f64))
            .collect();
        Self {
            weights,
            centre: (0..dim).map(|i| (i as f64).sin() * 30.0).collect(),
        }
    }
}

impl Problem for Sample {
    fn dim(&self) -> usize {
        self.weights.len()
    }

    fn strong_convexity(&self) -> f64 {
        0.01
    }

    fn steepness(&self) -> f64 {
        101.0
    }

    fn rounding(&self, x: &[f64]) -> f64 {
        // A few roundings of each term.
        let sizes = x.iter().zip(&self.weights).zip(&self.centre);
        let sizes: Vec<f64> = sizes.map(|((x, a), c)| a * (x - c).abs() + 2.0).collect();
        4.0 * f64::EPSILON * vector::norm(&sizes)
    }

    fn value_and_gradient(&self, x: &[f64]) -> Result<(f64, Vec<f64>)> {
        let mut value = 0.0;
        let gradient = x
            .iter()
            .zip(&self.weights)
            .zip(&self.centre)
            .map(|((x, a), c)| {
                value += 0.5 * a * (x - c) * (x - c) + x.hypot(1.0);
                a * (x - c) + x / x.hypot(1.0)
            })
            .collect();
        Ok((value, gradient))
    }

    fn with_hessian(&self, x: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let (value, gradient) = self.value_and_gradient(x)?;
        let dim = x.len();
        let mut hessian = vec![0.0; dim * dim];
        for i in 0..dim {
            hessian[i * dim + i] = self.weights[i] + x[i].hypot(1.0).powi(-3);
        }
        Ok((value, gradient, hessian))
    }
}

fn options(method: Method) -> Options {
    Options {
        method,
        tolerance: 1e-10,
        max_iterations: 1000,
        radius: None,
    }
}

#[test]
fn newton_and_lbfgs_agree_and_certify() {
    for dim in [1, 2, 30, 200] {
        let problem = Sample::new(dim);
        let start = vec![0.0; dim];
        let newton = minimize(&problem, &start, &options(Method::Newton)).unwrap();
        let lbfgs = minimize(&problem, &start, &options(Method::Lbfgs)).unwrap();
        let preconditioned = minimize(&problem, &start, &options(Method::Preconditioned)).unwrap();
        for m in [&newton, &lbfgs, &preconditioned] {
            let (_, gradient) = problem.value_and_gradient(&m.params).unwrap();
            assert!(vector::norm(&gradient) / 0.01 <= 1e-10 && m.certificate <= 1e-10);
        }
        let distance: Vec<f64> = newton.params.iter().zip(&lbfgs.params).map(|(a, b)| a - b).collect();
        assert!(vector::norm(&distance) <= 2e-10);
        let warm = minimize(&problem, &newton.params, &options(Method::Lbfgs)).unwrap();
        assert_eq!(warm.iterations, 0);
    }
}

/// The sample less its minimum: near 0 the value has the rounding of its large terms.
struct Cancelling {
    sample: Sample,
    least: f64,
}

impl Problem for Cancelling {
    fn dim(&self) -> usize {
        self.sample.dim()
    }

    fn strong_convexity(&self) -> f64 {
        self.sample.strong_convexity()
    }

    fn steepness(&self) -> f64 {
        self.sample.steepness()
    }

    fn rounding(&self, x: &[f64]) -> f64 {
        self.sample.rounding(x)
    }

    fn value_and_gradient(&self, x: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (value, gradient) = self.sample.value_and_gradient(x)?;
        Ok((value - self.least, gradient))
    }

    fn with_hessian(&self, x: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let (value, gradient, hessian) = self.sample.with_hessian(x)?;
        Ok((value - self.least, gradient, hessian))
    }
}

#[test]
fn values_that_cancel_do_not_stall_the_line_search() {
    for dim in [30, 200, 1000] {
        let start = vec![0.0; dim];
        let sample = Sample::new(dim);
        let minimum = minimize(&sample, &start, &options(Method::Newton)).unwrap();
        let least = sample.value_and_gradient(&minimum.params).unwrap().0;
        let problem = Cancelling { sample, least };
        for method in [Method::Newton, Method::Lbfgs, Method::Preconditioned] {
            let found = minimize(&problem, &start, &options(method)).unwrap();
            assert!(found.certificate <= 1e-10);
        }
    }
}

#[test]
fn failures_are_errors() {
    struct Broken(f64);
    impl Problem for Broken {
        fn dim(&self) -> usize {
            1
        }
        fn strong_convexity(&self) -> f64 {
            1.0
        }
        fn steepness(&self) -> f64 {
            1.0
        }
        fn rounding(&self, _x: &[f64]) -> f64 {
            0.0
        }
        fn value_and_gradient(&self, x: &[f64]) -> Result<(f64, Vec<f64>)> {
            // The gradient has the wrong sign: no step along the direction decreases the value.
            Ok((x[0] * self.0, vec![-self.0]))
        }
        fn with_hessian(&self, x: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
            let (value, gradient) = self.value_and_gradient(x)?;
            Ok((value, gradient, vec![1.0]))
        }
    }
    for method in [Method::Newton, Method::Preconditioned, Method::Lbfgs] {
        for slope in [1.0, f64::NAN] {
            let failed = minimize(&Broken(slope), &[0.0], &options(method));
            assert!(
                matches!(failed, Err(Error::NotConverged { .. })),
                "{method:?} {slope} {failed:?}"
            );
        }
        let few = Options {
            max_iterations: 1,
            ..options(method)
        };
        assert!(matches!(
            minimize(&Sample::new(9), &[0.0; 9], &few),
            Err(Error::NotConverged { .. })
        ));
        assert!(minimize(&Sample::new(9), &[0.0; 8], &few).is_err());
        let endless = Options {
            tolerance: f64::NAN,
            ..options(method)
        };
        assert!(minimize(&Sample::new(9), &[0.0; 9], &endless).is_err());
    }
}

/// Lanes of [`Sample`] problems with shifted centres, of which one may have gradients that are not finite.
struct Lanes {
    samples: Vec<Sample>,
    broken: Option<usize>,
    /// Factor of the gradients of the first two passes.
    rough: Option<f64>,
}

impl Lanes {
    fn new(n: usize, broken: Option<usize>) -> Self {
        let shifted = |lane: usize| {
            let mut sample = Sample::new(5);
            sample.centre.iter_mut().for_each(|c| *c += 0.01 * lane as f64);
            sample
        };
        Self {
            samples: (0..n).map(shifted).collect(),
            broken,
            rough: None,
        }
    }

    fn start(&self) -> (Vec<f64>, Vec<Lane>) {
        let point = minimize(&Sample::new(5), &[0.0; 5], &options(Method::Newton))
            .unwrap()
            .params;
        let points: Vec<Lane> = point.iter().map(|x| [*x; LANES]).collect();
        let gradients = self.gradients(&points, Pass::Exact).unwrap();
        (point, gradients)
    }
}

impl LockstepProblem for Lanes {
    fn dim(&self) -> usize {
        5
    }

    fn strong_convexity(&self) -> f64 {
        0.01
    }

    fn n_rough(&self) -> usize {
        if self.rough.is_some() { 2 } else { 0 }
    }

    fn gradients(&self, points: &[Lane], pass: Pass) -> Result<Vec<Lane>> {
        let factor = match self.rough {
            Some(factor) if pass == Pass::Rough => factor,
            _ => 1.0,
        };
        let mut out = vec![[0.0; LANES]; 5];
        for (lane, sample) in self.samples.iter().enumerate() {
            let point: Vec<f64> = points.iter().map(|p| p[lane]).collect();
            let gradient = sample.value_and_gradient(&point)?.1;
            for (out, g) in out.iter_mut().zip(gradient) {
                out[lane] = if self.broken == Some(lane) {
                    f64::NAN
                } else {
                    factor * g
                };
            }
        }
        Ok(out)
    }
}

#[test]
fn lockstep_equals_single_solves() {
    let (_, _, hessian) = Sample::new(5).with_hessian(&Lanes::new(1, None).start().0).unwrap();
    let factor = Arc::new(Cholesky::new(&hessian, 5, "the Hessian").unwrap());
    // Rough gradients may be off, or even 0: they certify nothing.
    let cases = [
        (1, None),
        (3, None),
        (LANES, None),
        (3, Some(1.0 + 1e-6)),
        (3, Some(0.0)),
    ];
    for (n, rough) in cases {
        let mut lanes = Lanes::new(n, None);
        lanes.rough = rough;
        let (params, gradients) = lanes.start();
        let start = Start {
            params: &params,
            gradients: &gradients,
            factor: &factor,
        };
        let found = minimize_lockstep(&lanes, n, start, 1e-10).unwrap();
        assert_eq!(found.len(), n);
        for (lane, found) in found.into_iter().enumerate() {
            let Ok(found) = found else {
                assert_eq!(rough, Some(0.0), "handed back, as it may be");
                continue;
            };
            let alone = minimize(&lanes.samples[lane], &[0.0; 5], &options(Method::Newton)).unwrap();
            assert!(found.certificate <= 1e-10);
            let distance = found.params.iter().zip(&alone.params).map(|(a, b)| (a - b).abs());
            assert!(distance.fold(0.0, f64::max) <= 2e-10, "lane {lane} of {n}");
        }
    }
}

#[test]
fn a_lane_that_stalls_is_handed_back_and_disturbs_no_other() {
    let (point, _) = Lanes::new(1, None).start();
    let (_, _, hessian) = Sample::new(5).with_hessian(&point).unwrap();
    let good = Arc::new(Cholesky::new(&hessian, 5, "the Hessian").unwrap());
    let solve = |lanes: &Lanes, factor: &Arc<Cholesky>| {
        let (params, gradients) = lanes.start();
        let start = Start {
            params: &params,
            gradients: &gradients,
            factor,
        };
        minimize_lockstep(lanes, 4, start, 1e-10).unwrap()
    };
    // A lane without finite gradients: the others come out to the same bits, and it stays where it was.
    let (whole, broken) = (
        solve(&Lanes::new(4, None), &good),
        solve(&Lanes::new(4, Some(2)), &good),
    );
    for lane in [0, 1, 3] {
        let (a, b) = (whole[lane].as_ref().unwrap(), broken[lane].as_ref().unwrap());
        assert_eq!(a.params, b.params);
    }
    assert_eq!(broken[2].as_ref().unwrap_err(), &point);
    // Steps a million times too long: every lane that has to move stalls, at a finite point from which a line search gets home.
    let tiny: Vec<f64> = hessian.iter().map(|h| 1e-6 * h).collect();
    let bad = Arc::new(Cholesky::new(&tiny, 5, "the Hessian").unwrap());
    let lanes = Lanes::new(4, None);
    for (lane, found) in solve(&lanes, &bad).into_iter().enumerate().skip(1) {
        let stalled = found.unwrap_err();
        assert!(stalled.iter().all(|v| v.is_finite()));
        let home = minimize(&lanes.samples[lane], &stalled, &options(Method::Newton)).unwrap();
        assert!(home.certificate <= 1e-10);
    }
}
