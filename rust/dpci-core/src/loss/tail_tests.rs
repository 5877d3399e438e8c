//! Roundings of slopes and curvatures over suprema, tails included, against doubled precision.

use super::*;
use crate::linalg::doubled_sigmoid;

/// The exact slope and curvature of `s·log(1 + e^{(m - yu)/s})`, to 30 digits.
fn exact(s: f64, m: f64, u: f64, y: f64) -> [Doubled; 2] {
    let t = (Doubled::from(m) - Doubled::from(u) * y) / Doubled::from(s);
    let mut p = [t, -t];
    doubled_sigmoid(&mut p);
    [p[0] * -y, p[0] * p[1] / Doubled::from(s)]
}

/// Greatest errors of squared slopes and of curvatures over |u| ≤ `radius`, in roundings of their suprema.
fn greatest_errors(loss: &dyn Loss, [s, m]: [f64; 2], radius: f64) -> [f64; 2] {
    let n = 4096;
    let u: Vec<f64> = (0..n)
        .map(|i| radius * (2.0 * f64::from(i) / f64::from(n - 1) - 1.0))
        .collect();
    let y: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
    let (mut slope, mut curvature) = (vec![0.0; u.len()], vec![0.0; u.len()]);
    let out = Batch::derivatives(&mut slope, &mut curvature);
    loss.evaluate(&u, &y, out).unwrap();
    let units = [loss.sup_slope(radius).powi(2), loss.sup_curvature(radius)];
    let mut errors = [0.0_f64; 2];
    for i in 0..u.len() {
        let [l1, l2] = exact(s, m, u[i], y[i]);
        let gaps = [
            Doubled::product(slope[i], slope[i]) - l1 * l1,
            Doubled::from(curvature[i]) - l2,
        ];
        for ((error, gap), unit) in errors.iter_mut().zip(gaps).zip(units) {
            *error = error.max(gap.rounded().abs() / unit / (0.5 * f64::EPSILON));
        }
    }
    errors
}

#[test]
fn values_err_by_what_the_seal_allows_for() {
    let mut beyond = 0;
    for radius in [0.0, 1e-3, 0.3, 0.7, 0.99, 1.0, 1.5, 30.0] {
        let [slope, curvature] = greatest_errors(&Logistic, [1.0, 0.0], radius);
        assert!(slope <= 80.0 && curvature <= 33.0, "{radius} {slope} {curvature}");
        for s in [3.0, 0.3, 0.05, 0.01, 0.003, 0.0017, 0.001_516] {
            let loss = SmoothHinge::new(s).unwrap();
            let [slope, curvature] = greatest_errors(&loss, [s, 1.0], radius);
            let t = ((1.0 - radius) / s).max(0.0);
            assert!(slope <= 80.0, "{s} {radius} {slope}");
            assert!(curvature <= 3.0 * t + 35.0, "{s} {radius} {curvature}");
            assert!(curvature <= VALUE_ROUNDINGS as f64 + loss.tail_roundings(radius));
            beyond += usize::from(curvature > VALUE_ROUNDINGS as f64);
        }
    }
    assert!(beyond > 3, "the tail is not reached");
}

/// Beyond the computed exponential's end nothing is promised but the supremum, which is a normal number that bounds both.
#[test]
fn suprema_do_not_vanish() {
    for s in [1.0 / 690.0, 1.0 / 730.0, 1e-3 / 0.9, 1e-6, 1e-300] {
        let loss = SmoothHinge::new(s).unwrap();
        for radius in [0.0, 0.01, 0.2] {
            let greatest = loss.sup_curvature(radius);
            assert!(greatest.is_normal(), "{s} {radius}");
            let [_, l2] = exact(s.max(1e-290), 1.0, radius, 1.0);
            assert!(l2.rounded() <= greatest || (1.0 - radius) / s > 708.0);
            if (1.0 - radius) / s > 660.0 {
                assert!(loss.tail_roundings(radius) * 0.5 * f64::EPSILON >= 1.0);
            }
        }
    }
}
