//! The ball solver against bisection, its certificate against the truth, and its failures.

use super::*;
use crate::Error;
use crate::solver::minimize as solve;

/// `½ Σ aᵢ(xᵢ - cᵢ)² + Σ √(1 + xᵢ²)` on a ball, outside which evaluating it fails.
struct Fenced {
    weights: Vec<f64>,
    centre: Vec<f64>,
    radius: f64,
}

impl Fenced {
    fn new(dim: usize, radius: f64) -> Self {
        Self {
            weights: (0..dim)
                .map(|i| 10f64.powf(-2.0 + 4.0 * i as f64 / dim as f64))
                .collect(),
            centre: (0..dim).map(|i| (i as f64 + 1.0).sin() * 30.0).collect(),
            radius,
        }
    }

    /// The root of an increasing function.
    fn root(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if f(middle) < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }

    /// The minimiser by bisection for each coordinate and for the multiplier.
    fn bisected(&self) -> Vec<f64> {
        let point = |multiplier: f64| -> Vec<f64> {
            let terms = self.weights.iter().zip(&self.centre);
            let slope = |x: f64, a: f64, c: f64| a * (x - c) + x / x.hypot(1.0) + multiplier * x;
            terms
                .map(|(a, c)| Self::root(|x| slope(x, *a, *c), -40.0, 40.0))
                .collect()
        };
        if vector::norm(&point(0.0)) <= self.radius {
            return point(0.0);
        }
        let excess = |nu: f64| self.radius - vector::norm(&point(nu));
        point(Self::root(excess, 0.0, 1e5 / self.radius))
    }
}

impl Problem for Fenced {
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
        if vector::norm(x) > self.radius {
            return Err(Error::Loss("a point outside the ball".into()));
        }
        let terms = || x.iter().zip(&self.weights).zip(&self.centre);
        let value = terms().map(|((x, a), c)| 0.5 * a * (x - c) * (x - c) + x.hypot(1.0));
        let gradient = terms().map(|((x, a), c)| a * (x - c) + x / x.hypot(1.0));
        Ok((value.sum(), gradient.collect()))
    }

    fn with_hessian(&self, x: &[f64]) -> Result<(f64, Vec<f64>, Vec<f64>)> {
        let (value, gradient) = self.value_and_gradient(x)?;
        let mut hessian = vec![0.0; x.len() * x.len()];
        let diagonal = hessian.iter_mut().step_by(x.len() + 1);
        for ((h, a), x) in diagonal.zip(&self.weights).zip(x) {
            *h = a + x.hypot(1.0).powi(-3);
        }
        Ok((value, gradient, hessian))
    }
}

fn options(radius: f64, tolerance: f64) -> Options {
    Options {
        method: Method::Auto,
        tolerance,
        max_iterations: 100,
        radius: Some(radius),
    }
}

#[test]
fn equals_bisection_for_every_radius_and_stays_inside() {
    for dim in [1, 2, 30, 120] {
        for radius in [1e-6, 1e-3, 0.5, 3.0, 20.0, 100.0, 1e6] {
            let problem = Fenced::new(dim, radius);
            let exact = problem.bisected();
            let tolerance = 1e-9 * radius.clamp(1e-3, 100.0);
            for start in [0.0, 5.0] {
                let start = vec![start; dim];
                let found = solve(&problem, &start, &options(radius, tolerance)).unwrap();
                let difference = exact.iter().zip(&found.params).map(|(a, b)| a - b);
                let distance = vector::norm(&difference.collect::<Vec<_>>());
                let bisected = 1e-12 * radius.min(100.0);
                assert!(distance <= found.certificate + bisected, "{dim} {radius} {distance:e}");
                assert!(vector::norm(&found.params) <= radius);
                assert_eq!(found.method, Method::Ball);
                assert!(found.iterations <= 20, "{dim} {radius} {}", found.iterations);
            }
        }
    }
}

#[test]
fn certificates_of_early_points_hold() {
    for radius in [0.1, 3.0, 20.0] {
        let problem = Fenced::new(12, radius);
        let exact = problem.bisected();
        for tolerance in [1e3, 10.0, 1.0, 0.1, 1e-2, 1e-4] {
            let found = minimize(&problem, &[1.0; 12], radius, &options(radius, tolerance))
                .unwrap()
                .unwrap();
            let difference = exact.iter().zip(&found.params).map(|(a, b)| a - b);
            let distance = vector::norm(&difference.collect::<Vec<_>>());
            assert!(distance <= found.certificate && found.certificate <= tolerance);
        }
    }
}

#[test]
fn failures_are_errors() {
    let problem = Fenced::new(9, 1.0);
    let run = |options: Options| solve(&problem, &[0.0; 9], &options);
    for radius in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = run(options(radius, 1e-9));
        assert!(matches!(refused, Err(Error::OutOfRange { name: "radius", .. })));
    }
    for (method, radius) in [(Method::Lbfgs, Some(1.0)), (Method::Ball, None)] {
        let refused = run(Options {
            method,
            radius,
            ..options(1.0, 1e-9)
        });
        assert!(matches!(refused, Err(Error::Unsupported(_))));
    }
    for (tolerance, max_iterations) in [(1e-9, 1), (1e-25, 100)] {
        let missed = run(Options {
            max_iterations,
            ..options(1.0, tolerance)
        });
        // Neither runs on for long.
        assert!(matches!(missed, Err(Error::NotConverged { iterations: ..=60, .. })));
    }
}
