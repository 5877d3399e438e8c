//! Solutions against least squares by hand, and one step of Newton's method.

use super::*;

/// Four records of (x₀, x₁, 1, y).
const RECORDS: [[f64; 4]; 5] = [
    [0.3, -0.5, 1.0, 0.2],
    [-0.7, 0.1, 1.0, 0.9],
    [0.2, 0.8, 1.0, -0.4],
    [0.9, 0.4, 1.0, -1.1],
    [-0.1, -0.6, 1.0, 0.5],
];

fn moments(weight: impl Fn(&[f64; 4]) -> f64, width: usize) -> Vec<f64> {
    let entry = |i: usize, j: usize| {
        let terms = RECORDS.iter().map(|r| weight(r) * r[i] * r[j]);
        terms.sum::<f64>() / 5.0
    };
    symmetric(width, entry)
}

/// Regressors x₀ + 2, x₁ and 1: the slopes are those on x₀ and x₁.
const FEATURES: [f64; 12] = [1.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];

fn solved(ridge: f64) -> MomentRegression {
    let matrix = moments(|_| 1.0, 4);
    let moments = moments(|r| r[3] * r[3], 3);
    let mut penalty = [0.0; 9];
    penalty[0] = ridge;
    moment_regression(&MomentEquations {
        matrix: &matrix,
        dim: 4,
        features: &FEATURES,
        response: &[0.0, 0.0, 0.0, 1.0],
        ridge: &penalty,
        residual_moments: Some(&moments),
        start: None,
    })
    .unwrap()
}

#[test]
fn the_normal_equations_hold_with_and_without_a_ridge() {
    for ridge in [0.0, 0.7] {
        let fit = solved(ridge);
        for j in 0..3 {
            let gradient: f64 = RECORDS
                .iter()
                .map(|r| {
                    let x = [r[0] + 2.0, r[1], 1.0];
                    (r[3] - dot(&x, &fit.params)) * x[j] / 5.0
                })
                .sum();
            let penalty = if j == 0 { ridge * fit.params[0] } else { 0.0 };
            assert!((gradient - penalty).abs() < 1e-13, "{ridge} {j} {gradient}");
        }
    }
}

#[test]
fn forms_of_the_error_are_its_derivatives_in_the_matrix() {
    let fit = solved(0.3);
    assert!((fit.degrees - 3.0).abs() > 0.01 && (solved(0.0).degrees - 3.0).abs() < 1e-12);
    // A change E of the matrix moves a coefficient by w'Ev: over all isometric directions the squares sum to
    // (‖w‖²‖v‖² + (w·v)²)/2.
    let step = 1e-5;
    let mut squares = [0.0; 3];
    for i in 0..4 {
        for j in 0..=i {
            let shifted = |step: f64| {
                let mut matrix = moments(|_| 1.0, 4);
                let step = if i == j { step } else { step / 2.0_f64.sqrt() };
                matrix[i * 4 + j] += step;
                if i != j {
                    matrix[j * 4 + i] += step;
                }
                let mut penalty = [0.0; 9];
                penalty[0] = 0.3;
                let equations = MomentEquations {
                    matrix: &matrix,
                    dim: 4,
                    features: &FEATURES,
                    response: &[0.0, 0.0, 0.0, 1.0],
                    ridge: &penalty,
                    residual_moments: None,
                    start: None,
                };
                moment_regression(&equations).unwrap().params
            };
            let (up, down) = (shifted(step), shifted(-step));
            for (s, (u, d)) in squares.iter_mut().zip(up.iter().zip(&down)) {
                *s += ((u - d) / (2.0 * step)).powi(2);
            }
        }
    }
    for (j, square) in squares.into_iter().enumerate() {
        let expected = 0.5 * (fit.gain[j * 3 + j] * fit.residual_norm2 + fit.cross[j].powi(2));
        assert!((square / expected - 1.0).abs() < 1e-6, "{square} {expected}");
    }
}

#[test]
fn directions_within_the_noise_name_their_regressors() {
    let mut matrix = moments(|_| 1.0, 4);
    // x₁ becomes -x₀ but for a little less than nothing.
    for i in 0..4 {
        matrix[i * 4 + 1] = -matrix[i * 4];
    }
    for j in 0..4 {
        matrix[4 + j] = -matrix[j];
    }
    matrix[5] -= 1e-3;
    let fit = moment_regression(&MomentEquations {
        matrix: &matrix,
        dim: 4,
        features: &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        response: &[0.0, 0.0, 0.0, 1.0],
        ridge: &[0.0; 9],
        residual_moments: None,
        start: None,
    })
    .unwrap();
    assert!(fit.least_eigenvalue < 0.0 && fit.params[0].is_nan());
    assert!(fit.direction[0] > 0.9 && fit.direction[1] > 0.9 && fit.direction[2] < 0.1);
}

#[test]
fn a_step_from_anywhere_ends_at_the_solution() {
    // Without noise the mean of the regressors times the residuals at θ₀ is F N (g - F'θ₀), and the step makes up for all of it.
    let matrix = moments(|_| 1.0, 4);
    let features = [1.0, 0.0, 0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0];
    let response = [0.0, 0.3, 0.0, 1.0];
    for strength in [0.0, 0.4] {
        let ridge: Vec<f64> = (0..9).map(|i| if i % 4 == 0 { strength } else { 0.0 }).collect();
        let equations = MomentEquations {
            matrix: &matrix,
            dim: 4,
            features: &features,
            response: &response,
            ridge: &ridge,
            residual_moments: None,
            start: None,
        };
        let solved = moment_regression(&equations).unwrap();
        let params = [0.7, -1.1, 0.4];
        let mut residual = response.to_vec();
        for (p, row) in params.iter().zip(features.chunks_exact(4)) {
            residual.iter_mut().zip(row).for_each(|(r, x)| *r -= p * x);
        }
        let times: Vec<f64> = matrix.chunks_exact(4).map(|m| dot(m, &residual)).collect();
        let gradient: Vec<f64> = features.chunks_exact(4).map(|f| dot(f, &times)).collect();
        let start = Start {
            params: &params,
            gradient: &gradient,
        };
        let stepped = moment_regression(&MomentEquations {
            start: Some(start),
            ..equations
        })
        .unwrap();
        for (a, b) in solved.params.iter().zip(&stepped.params) {
            assert!((a - b).abs() < 1e-12, "{strength} {a} {b}");
        }
        let square = dot(&residual, &times) - stepped.step_square;
        assert!((square - solved.residual_square).abs() < 1e-12);
        // The error's form is that of the distance between both as combinations of the columns.
        let mut moved = [0.0; 4];
        for ((a, p), row) in solved.params.iter().zip(&params).zip(features.chunks_exact(4)) {
            moved.iter_mut().zip(row).for_each(|(m, x)| *m += (a - p) * x);
        }
        assert!((dot(&moved, &moved) - stepped.error_norm2).abs() < 1e-12);
        assert!(
            solved
                .gain
                .iter()
                .zip(&stepped.gain)
                .all(|(a, b)| (a - b).abs() < 1e-12)
        );
    }
    for (params, gradient) in [(&[0.0; 2][..], &[0.0; 3][..]), (&[0.0; 3], &[0.0; 4])] {
        assert!(
            moment_regression(&MomentEquations {
                matrix: &matrix,
                dim: 4,
                features: &features,
                response: &response,
                ridge: &[0.0; 9],
                residual_moments: None,
                start: Some(Start { params, gradient }),
            })
            .is_err()
        );
    }
}
