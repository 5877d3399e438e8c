//! Distances and costs of seals, and what they say where there is none.

use super::*;
use crate::mechanism::{Simulated, Values};
use crate::noise::SimulationGenerator;
use crate::privacy::Cost;
use crate::spec::{Part, Seal, check_excess};

#[test]
fn far_values_are_clamped_to_the_lattice() {
    let seal = Seal::new(Part::Values, 1, 1.0, Cost::Epsilon(10.0)).unwrap();
    let end = 2.0_f64.powi(120) * seal.lattice();
    let mut generator = SimulationGenerator::new(71, 0);
    for (value, expected) in [(1e300, end), (-1e300, -end), (f64::MAX, end)] {
        let got = seal.release(&[value], &mut generator).unwrap().values()[0];
        assert_near(got, expected, 1e-15);
    }
}

#[test]
fn sealed_values_stay_in_balls_and_are_finite() {
    let simulated = Simulated::new("x", vec![3.0, 4.0]).unwrap();
    // On a lattice of 2⁻³⁰ with next to no noise.
    let seal = Seal::new(Part::Values, 2, 2e-9, Cost::Rho(1e3)).unwrap();
    let sealed = seal.release(&[3.0, 4.0], &mut SimulationGenerator::new(73, 0)).unwrap();
    for (radius, factor) in [(None, 1.0), (Some(5.0), 1.0), (Some(6.0), 1.0), (Some(2.5), 0.5)] {
        let moved = simulated.in_ball(radius);
        assert_near(moved.values()[0], 3.0 * factor, 1e-15);
        assert_near(moved.values()[1], 4.0 * factor, 1e-15);
        if radius != Some(5.0) {
            let moved = sealed.in_ball(radius);
            assert_near(moved.values()[0], 3.0 * factor, 1e-8);
            assert_near(moved.values()[1], 4.0 * factor, 1e-8);
        }
    }
    assert_eq!(sealed.solved(vec![1.0, 2.0]).unwrap().into_values(), [1.0, 2.0]);
    assert!(sealed.solved(vec![1.0]).is_err());
    assert!(sealed.solved(vec![1.0, f64::NAN]).is_err());
}

#[test]
fn records_beyond_sixteen_times_the_public_number_are_refused() {
    let rows = vec![0.5; 33];
    for (n, refused) in [(32, false), (33, true), (1, false)] {
        let bounds = row_bounds(1.0, Targets::Signs);
        with_design(&rows[..n], 1, &vec![1.0; n], None, &bounds, |design, _| {
            assert_eq!(
                check_excess(2.0, Neighbors::AddRemove, design.n_records() as f64).is_err(),
                refused
            );
            assert!(check_excess(2.0, Neighbors::ReplaceOne, design.n_records() as f64).is_ok());
        });
    }
}

#[test]
fn sums_beyond_double_precision_do_not_leave() {
    // 10¹² steps of noise on a lattice of 10³⁰⁰ are more than a float can hold.
    let seal = Seal::new(Part::Values, 1, 1e300, Cost::Epsilon(1e-12)).unwrap();
    let mut generator = SimulationGenerator::new(72, 0);
    assert!(seal.release(&[0.0], &mut generator).is_err());
}
