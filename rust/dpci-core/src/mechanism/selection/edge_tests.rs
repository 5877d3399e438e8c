//! The parts of a score and of an exact choice, by hand.

use super::*;
use crate::loss::Logistic;
use crate::noise::SimulationGenerator;

/// A loss that is steep on one side and for one target: `(2 - y)e⁻ᵘ`.
#[derive(Debug)]
struct Lopsided;

impl Loss for Lopsided {
    fn name(&self) -> &'static str {
        "lopsided"
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        if let Some(total) = out.total {
            *total = u.iter().zip(y).map(|(u, y)| (2.0 - y) * (-u).exp()).sum();
        }
        Ok(())
    }

    fn slope_bound(&self) -> f64 {
        f64::INFINITY
    }

    fn curvature_bound(&self) -> f64 {
        f64::INFINITY
    }

    fn one_signed(&self) -> bool {
        true
    }

    fn sup_slope(&self, radius: f64) -> f64 {
        radius.exp()
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        radius.exp()
    }

    fn sup_weighted_sum(&self, _k: f64, _radius: f64) -> f64 {
        f64::NAN
    }

    fn sup_joint_norm(&self, _alpha: f64, _radius: f64) -> f64 {
        f64::NAN
    }

    fn value_range(&self, radius: f64) -> f64 {
        radius.exp() - (-radius).exp()
    }
}

#[test]
fn the_parts_of_a_score() {
    let score = Score::new(Arc::new(Lopsided), 2.0, 1.5, 8).unwrap();
    let steep = 3.0 * 3.0_f64.exp();
    assert!((score.greatest() / steep - 1.0).abs() < 1e-7);
    // Up past the rounding of norms, once in the predictor and once in the range.
    let score = Score::new(Arc::new(Logistic), 2.0, 1.5, 8).unwrap();
    assert!(score.range > 3.0 * (1.0 + 1.9e-9) && score.range < 3.0 * (1.0 + 2.1e-9));
    assert!((score.greatest() / 3.0_f64.exp().ln_1p() - 1.0).abs() < 1e-7);
    // Eight products, their norm and its root: ten roundings of a predictor up to 3, at a slope of at most 1.
    let slope = 1.0 / (1.0 + (-3.0_f64).exp());
    let rounding = 10.0 * f64::EPSILON * 3.0 * slope;
    assert!((score.predictor_rounding / rounding - 1.0).abs() < 1e-8);
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(Score::new(Arc::new(Logistic), 1.0, bad, 8).is_err());
    }
}

#[test]
fn a_step_of_rounding_is_paid_for() {
    // Δ = 1 is 2²⁶ steps; the exponent divides by 2(2²⁶ + 1)/ε of them, rounded up.
    let (lattice, denominator) = choice_lattice(1e-6, 1.0).unwrap();
    assert!((lattice - 0.5_f64.powi(26)).abs() < f64::MIN_POSITIVE);
    let exact = 134_217_730_000_000;
    assert!(
        (exact..=exact + 1000).contains(&denominator),
        "{denominator}"
    );
    assert_eq!(whole(3.2).unwrap(), 4);
    assert_eq!(whole(0.0).unwrap(), 0);
    let most = 2.0_f64.powi(62);
    assert!(whole(most).is_ok() && whole(most.next_up()).is_err());
    for bad in [-1.0, f64::NAN, 1e19] {
        assert!(whole(bad).is_err());
    }
    assert!(choice_lattice(1e-13, 1.0).is_err());
    let mut generator = SimulationGenerator::new(42, 0);
    // Rounding may leave a mean of losses below 0: it counts as 0. One beyond the lattice counts as its end.
    let far_below = release_index(&[1.0, -1e-30], 1e6, 1.0, &mut generator).unwrap();
    assert_eq!(far_below, 1);
    let beyond = release_index(&[1e300, 0.0], 1e6, 1.0, &mut generator).unwrap();
    assert_eq!(beyond, 1);
    assert!(release_index(&[0.1, f64::NAN], 1.0, 1.0, &mut generator).is_err());
    assert!(release_index(&[0.1, f64::INFINITY], 1.0, 1.0, &mut generator).is_err());
}
