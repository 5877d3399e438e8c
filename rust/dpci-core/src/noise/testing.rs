//! Distributional tests for the samplers; seeds were fixed once, and each assertion fails falsely with probability 1e-6.

use libm::erfc;
use statrs::function::gamma::gamma_ur;

/// Critical value of the Kolmogorov distribution: P(√n·D > 2.694) = 2·exp(-2·2.694²) = 1e-6.
const KOLMOGOROV: f64 = 2.694;
/// Two-sided normal critical value at 1e-6.
const NORMAL: f64 = 4.892;

/// Φ(x).
pub(crate) fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Kolmogorov-Smirnov test of `values` against `cdf`, which is evaluated at every tenth order statistic (conservative).
pub(crate) fn assert_cdf(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    for (i, x) in values.iter().enumerate().step_by(10) {
        let gap = (cdf(*x) - (i as f64 + 0.5) / n).abs() - 0.5 / n;
        assert!(gap * n.sqrt() < KOLMOGOROV, "gap {gap} at {x}");
    }
}

/// Two-sample Kolmogorov-Smirnov test; the samples have the same size.
pub(crate) fn assert_same_law(mut first: Vec<f64>, mut second: Vec<f64>) {
    first.sort_by(f64::total_cmp);
    second.sort_by(f64::total_cmp);
    let n = first.len() as f64;
    for (i, x) in first.iter().enumerate() {
        let rank = second.partition_point(|y| y <= x) as f64;
        let gap = (rank - (i as f64 + 1.0)).abs() / n;
        assert!(gap * (n / 2.0).sqrt() < KOLMOGOROV, "gap {gap} at {x}");
    }
}

/// Test that the mean of `values` is `expected`, by the normal approximation with the empirical variance.
pub(crate) fn assert_mean(values: &[f64], expected: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let z = (mean - expected) / (variance / n).sqrt();
    assert!(z.abs() < NORMAL, "mean {mean}, expected {expected}, z = {z}");
}

/// Pearson's chi-square test of `counts` against `probabilities`, which sum to 1; a cell of probability 0 must stay empty.
pub(crate) fn assert_counts(counts: &[usize], probabilities: &[f64]) {
    assert_eq!(counts.len(), probabilities.len());
    let n = counts.iter().sum::<usize>() as f64;
    let (mut chi_square, mut n_cells) = (0.0, 0.0);
    for (count, p) in counts.iter().zip(probabilities) {
        if *p > 0.0 {
            chi_square += (*count as f64 - n * p).powi(2) / (n * p);
            n_cells += 1.0;
        } else {
            assert_eq!(*count, 0);
        }
    }
    if n_cells > 1.0 {
        let p_value = gamma_ur(0.5 * (n_cells - 1.0), 0.5 * chi_square);
        assert!(p_value > 1e-6, "chi-square {chi_square}, p-value {p_value}");
    }
}
