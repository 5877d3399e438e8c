//! Both solvers on functions with known minimisers, and their failures.

use super::*;

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
        let distance: Vec<f64> = newton
            .params
            .iter()
            .zip(&lbfgs.params)
            .map(|(a, b)| a - b)
            .collect();
        assert!(vector::norm(&distance) <= 2e-10);
        let warm = minimize(&problem, &newton.params, &options(Method::Lbfgs)).unwrap();
        assert_eq!(warm.iterations, 0);
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
