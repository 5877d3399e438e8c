//! The law test: noise of whole releases against the laws that the specification names.

use std::sync::Arc;

use dpci_core::loss::Logistic;
use dpci_core::noise::{MatrixLaw, NoiseLaw};
use dpci_core::privacy::{Budget, Perturbation};
use dpci_core::spec::Spec;
use libm::erfc;

use super::Finding;
use super::epsilon::divergence;
use super::setting::{choices, releases, with_moments};

const N_RUNS: usize = 40_000;
const SEED: u64 = 91;
/// P(√n·D > 2.9) = 2·exp(-2·2.9²) < 1.1e-7: with nine statements, 1e-6 together.
const KOLMOGOROV: f64 = 2.9;
/// Two-sided normal value at 1e-8: with 28 pairs, below 1e-6 together.
const NORMAL: f64 = 5.73;
/// 2·exp(-19) < 1.2e-8, for 8 tails.
const CHERNOFF: f64 = 19.0;
/// Where a tail is counted, in standard deviations: the noise of the seal, a hundredth, hardly reaches beyond a cut at 3.
const TAIL: f64 = 3.2;

pub(crate) fn findings() -> Vec<Finding> {
    [radius(), normals()].concat()
}

/// Output perturbation in the plane under pure DP: the distance from the minimiser is Gamma(2).
fn radius() -> Vec<Finding> {
    let choices = choices(2, Budget::pure(1.0).unwrap(), Perturbation::Output);
    let spec = Spec::new(choices.clone()).unwrap();
    let NoiseLaw::SphericalLaplace { rate, .. } = *spec.law() else {
        return vec!["noise is not spherical Laplace".into()];
    };
    // The minimiser of a line of slope -1 plus (λ/2)‖θ‖² is x/λ.
    let center = 1.0 / choices.l2_strength;
    let radii = releases(&choices, &[1.0, 0.0], N_RUNS, SEED)
        .iter()
        .map(|row| rate * (row[0] - center).hypot(row[1]))
        .collect();
    let gap = kolmogorov(radii, |r| 1.0 - (1.0 + r) * (-r).exp());
    deviation("radius of spherical Laplace noise", gap, KOLMOGOROV)
}

/// Output perturbation with separate moments under zCDP: every isometric coordinate of every vector is its own normal.
fn normals() -> Vec<Finding> {
    let choices = choices(2, Budget::zcdp(0.5).unwrap(), Perturbation::Output);
    let choices = with_moments(&choices, Arc::new(Logistic), 1e4);
    let spec = Spec::new(choices.clone()).unwrap();
    let noise = spec.moment_noise(0.0).unwrap().unwrap();
    let std_dev = |family| match family {
        MatrixLaw::Gaussian { std_dev } => std_dev,
        MatrixLaw::MatrixLaplace { rate } | MatrixLaw::SquareLaplace { rate } => 1.0 / rate,
    };
    let [hessian, gradient_cov] = [noise.hessian.unwrap(), noise.gradient_cov].map(|n| std_dev(n.law));
    let (off, coefficient) = (std::f64::consts::SQRT_2, spec.law().scale());
    // Params near zero: a quarter of xxᵀ is the Hessian and the gradient covariance, x/2λ the minimiser.
    let standardize = |row: &Vec<f64>| {
        vec![
            (row[0] - 0.5 / choices.l2_strength) / coefficient,
            row[1] / coefficient,
            (row[2] - 0.25) / hessian,
            row[3] * off / hessian,
            row[4] / hessian,
            (row[5] - 0.25) / gradient_cov,
            row[6] * off / gradient_cov,
            row[7] / gradient_cov,
        ]
    };
    let rows = releases(&choices, &[1.0, 0.0], N_RUNS, SEED + 1);
    let z: Vec<Vec<f64>> = rows.iter().map(standardize).collect();
    let column = |i: usize| z.iter().map(move |row| row[i]);
    let n = z.len() as f64;
    let mut found = Vec::new();
    for i in 0..8 {
        let gap = kolmogorov(column(i).collect(), |x| 0.5 * erfc(-x / off));
        found.extend(deviation(&format!("law of coordinate {i}"), gap, KOLMOGOROV));
        let tail = erfc(TAIL / off);
        let count = column(i).filter(|x| x.abs() > TAIL).count() as f64;
        let excess = n * divergence(count / n, tail);
        found.extend(deviation(&format!("tail of coordinate {i}"), excess, CHERNOFF));
        for j in 0..i {
            let product = column(i).zip(column(j)).map(|(a, b)| a * b).sum::<f64>() / n.sqrt();
            found.extend(deviation(&format!("coordinates {j} and {i} together"), product, NORMAL));
        }
    }
    found
}

fn deviation(name: &str, value: f64, most: f64) -> Vec<Finding> {
    let finding = format!("{name}: {value:.1}, at most {most} by chance");
    (!(value.abs() <= most)).then_some(finding).into_iter().collect()
}

/// √n times the greatest distance of the empirical distribution function.
fn kolmogorov(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let gaps = values.iter().enumerate().map(|(i, x)| {
        let exact = cdf(*x);
        (exact - i as f64 / n).max((i as f64 + 1.0) / n - exact)
    });
    gaps.max_by(f64::total_cmp).unwrap_or(0.0) * n.sqrt()
}
