//! Tests of the seal: lattice, scales, what leaves and what is refused.

use super::*;
use crate::mechanism::Simulated;
use crate::noise::SimulationGenerator;
use crate::noise::testing::assert_counts;
use crate::privacy::Cost;
use crate::spec::Part;

fn seal(cost: Cost) -> Seal {
    Seal::new(Part::Values, 3, 1e-9, cost).unwrap()
}

#[test]
fn lattice_and_scales_follow_the_lemma() {
    let pure = seal(Cost::Epsilon(1e-3));
    // 1e-9/√3 lies between 2⁻³¹ and 2⁻³⁰.
    assert_eq!(pure.lattice().to_bits(), (0.5_f64.powi(31)).to_bits());
    let apart = 2e-9 / pure.lattice();
    let expected = (3.0_f64.sqrt() * apart + 3.0) / 1e-3;
    assert!(pure.scale() as f64 >= expected && (pure.scale() as f64) < expected + 1.1);
    let zcdp = seal(Cost::Rho(5e-4));
    let expected = (apart + 3.0_f64.sqrt()) / 1e-3_f64.sqrt();
    assert!(zcdp.scale() as f64 >= expected && (zcdp.scale() as f64) < expected + 1.1);
    let approx = seal(Cost::EpsilonDelta {
        epsilon: 1e-3,
        delta: 1e-9,
    });
    assert_eq!(approx.family().name(), "discrete_gaussian");
    assert!(approx.scale() > 100 * zcdp.scale());
}

#[test]
fn the_lattice_is_no_wider_than_the_distance() {
    for distance in [0.5_f64.powi(10).next_down(), 0.5_f64.powi(10), 0.0011] {
        let seal = Seal::new(Part::Values, 1, distance, Cost::Epsilon(1.0)).unwrap();
        assert!(seal.lattice() <= distance && seal.lattice() >= 0.25 * distance);
    }
}

#[test]
fn the_noise_is_as_small_as_the_distance_was_chosen_for() {
    for cost in [Cost::Epsilon(1e-3), Cost::Rho(1e-4)] {
        for dim in [1, 7, 500] {
            let distance = Seal::distance_for(1e-5, dim, cost).unwrap();
            let seal = Seal::new(Part::Values, dim, distance, cost).unwrap();
            assert!(seal.std_dev() <= 1.001e-5 && seal.std_dev() > 4e-6, "{seal:?}");
        }
    }
}

#[test]
fn only_lattice_points_leave_and_they_lie_near() {
    let mut generator = SimulationGenerator::new(51, 0);
    for cost in [Cost::Epsilon(1e-3), Cost::Rho(5e-4)] {
        let seal = seal(cost);
        for value in [0.0, 0.1, -std::f64::consts::PI, 1e-300, 1e6] {
            let values = [value; 3];
            let sealed = seal.release(&values, &mut generator).unwrap();
            for released in sealed.values() {
                let steps = released / seal.lattice();
                assert!((steps - steps.round()).abs() < f64::MIN_POSITIVE);
                assert!((released - value).abs() < 60.0 * seal.std_dev());
            }
        }
    }
}

#[test]
fn released_values_have_the_exact_law() {
    // A scale of few steps, so that every cell of the law is seen: the value lies at lattice point 7.
    let seal = Seal::new(Part::Values, 1, 1.0, Cost::Epsilon(1.5)).unwrap();
    let scale = seal.scale() as f64;
    assert!(seal.lattice() <= 1.0 && scale < 8.0);
    let reach = 40_i32;
    let mut generator = SimulationGenerator::new(55, 0);
    let mut counts = [0; 81];
    for _ in 0..200_000 {
        let sealed = seal.release(&[7.0 * seal.lattice()], &mut generator).unwrap();
        let step = sealed.values()[0] / seal.lattice() - 7.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, small and not negative"
        )]
        let cell = (step.clamp(-f64::from(reach), f64::from(reach)) + f64::from(reach)) as usize;
        counts[cell] += 1;
    }
    let ratio = (-1.0 / scale).exp();
    let probabilities: Vec<f64> = (-reach..=reach)
        .map(|k| {
            let weight = ratio.powi(k.abs()) / (1.0 + ratio);
            // The last cells hold the tails.
            if k.abs() == reach {
                weight
            } else {
                weight * (1.0 - ratio)
            }
        })
        .collect();
    assert_counts(&counts, &probabilities);
}

#[test]
fn whole_parts_are_added_without_rounding() {
    // 2⁵³ + 1 is no float: rounded with the noise it would be lost.
    let seal = Seal::new(Part::Values, 1, 1e-6, Cost::Epsilon(10.0)).unwrap();
    let whole = (1_u64 << 53) as f64;
    let mut odd = 0;
    for run in 0..200 {
        let mut generators = [0, 0].map(|_| SimulationGenerator::new(52, run));
        let [a, b] = &mut generators;
        let far = seal.release_sum(&[1.0], &[whole], a).unwrap().values()[0];
        let near = seal.release_sum(&[1.0], &[0.0], b).unwrap().values()[0];
        odd += u32::from((far - whole - near).abs() <= 1.0);
    }
    assert_eq!(odd, 200);
}

#[test]
fn symmetric_matrices_stay_symmetric() {
    let seal = seal(Cost::Rho(5e-4));
    let sealed = seal
        .release_symmetric(&[1.0, 2.0, 2.0, 3.0], &mut SimulationGenerator::new(53, 0))
        .unwrap();
    let m = sealed.values();
    assert_eq!(m[1].to_bits(), m[2].to_bits());
    assert!((m[0] - 1.0).abs() < 1e-6 && (m[3] - 3.0).abs() < 1e-6);
}

#[test]
fn bad_values_and_extreme_scales_are_refused() {
    let mut generator = SimulationGenerator::new(54, 0);
    let seal = seal(Cost::Epsilon(1e-3));
    assert!(seal.release(&[1.0, 2.0], &mut generator).is_err());
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(seal.release(&[1.0, bad, 0.0], &mut generator).is_err());
        assert!(Simulated::new("x", vec![bad]).is_err());
    }
    for distance in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-320] {
        assert!(Seal::new(Part::Values, 3, distance, Cost::Epsilon(1e-3)).is_err());
    }
    assert!(Seal::new(Part::Values, 3, 1e-9, Cost::Epsilon(1e-30)).is_err());
    assert!(Seal::new(Part::Values, 0, 1e-9, Cost::Epsilon(1.0)).is_err());
    // Far values are clamped, not refused: no message tells how far.
    assert!(seal.release(&[1e300, 0.0, 0.0], &mut generator).is_ok());
}
