//! Half widths and tails under noise in the shape of blocks, against brute force and closed forms.

use std::sync::Arc;

use super::*;
use crate::noise::{Law, NoiseGenerator, NoiseLaw, SimulationGenerator};

/// Draws of brute force.
const COUNT: usize = 400_000;

/// Bounds and blocks.
fn shape(bounds: &[f64], members: &[usize]) -> Arc<Blocks> {
    Arc::new(Blocks::new(bounds.to_vec(), members.to_vec()).unwrap())
}

fn law(blocks: &Arc<Blocks>, matrices: f64) -> ErrorShape {
    ErrorShape {
        law: NoiseLaw::ShapedLaplace {
            blocks: Arc::clone(blocks),
            rate: 3.0,
        },
        matrices,
    }
}

/// Sizes of errors by brute force, sorted.
fn errors(v: f64, a: &[f64], shape: &ErrorShape, count: usize) -> Vec<f64> {
    use rand::RngExt;
    use rand_distr::{Distribution, Gamma, StandardNormal};
    let mut generator = SimulationGenerator::new(4, 0);
    let noise = shape.law.on(a.len()).unwrap();
    let draw = |generator: &mut SimulationGenerator| {
        generator.refresh().unwrap();
        let z: f64 = generator.sample(StandardNormal);
        let b = noise.sample(generator);
        let ratio = if shape.matrices.is_finite() {
            let gamma = Gamma::new(shape.matrices, shape.matrices.recip()).unwrap();
            gamma.sample(generator)
        } else {
            1.0
        };
        (ratio.sqrt() * (v.sqrt() * z + vector::dot(a, &b))).abs()
    };
    let mut errors: Vec<f64> = (0..count).map(|_| draw(&mut generator)).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

#[test]
fn half_widths_and_tails_are_those_of_brute_force() {
    let numbers: Vec<usize> = (0..40).collect();
    let group = [0, 1, 1, 1, 1, 1, 2];
    let one = |dim: usize, j: usize| -> Vec<f64> { (0..dim).map(|i| if i == j { 1.0 } else { 0.0 }).collect() };
    let cases = [
        (shape(&[2.0], &[0]), one(1, 0)),
        (shape(&[1.0, 2.0], &[0, 1]), one(2, 1)),
        (shape(&[1.0; 40], &numbers), one(40, 3)),
        (shape(&[0.3; 40], &numbers), (0..40).map(f64::from).collect()),
        (shape(&[1.0, 0.5, 2.0], &group), one(7, 2)),
        (
            shape(&[1.0, 2.0, 0.1], &group),
            vec![0.1, 1.0, -2.0, 0.3, 0.0, 0.0, 1.0],
        ),
        (shape(&[1.0], &[0; 12]), one(12, 5)),
    ];
    for (blocks, a) in cases {
        for (v, matrices) in [(0.0, f64::INFINITY), (0.5, f64::INFINITY), (0.2, 4.0)] {
            let law = law(&blocks, matrices);
            let errors = errors(v, &a, &law, COUNT);
            for level in [0.1, 0.5, 0.8, 0.95, 0.99] {
                let q = half_widths(&[v], &a, &law, &blocks, level).unwrap()[0];
                let within = errors.partition_point(|e| *e <= q) as f64 / COUNT as f64;
                // Four standard errors of brute force, and what 1% of the width moves the probability by; of small widths 5%.
                let noise = 4.0 * (level * (1.0 - level) / COUNT as f64).sqrt();
                let at = |q: f64| errors.partition_point(|e| *e <= q) as f64 / COUNT as f64;
                let share = if level < 0.5 { 0.05 } else { 0.01 };
                let slack = 0.5 * (at((1.0 + share) * q) - at((1.0 - share) * q));
                assert!(
                    (within - level).abs() < noise + slack,
                    "{blocks:?} {v} {matrices} {level}: {within}"
                );
                let p = tails(&[v], &a, &law, &blocks, &[-q]).unwrap()[0];
                assert!((p / (1.0 - level) - 1.0).abs() < 1e-3, "{level}: {p}");
            }
        }
    }
}

#[test]
fn one_coordinate_is_the_laplace_law_and_no_noise_the_normal_one() {
    let blocks = shape(&[2.0], &[0]);
    let law = law(&blocks, f64::INFINITY);
    for level in [0.3_f64, 0.9, 0.99, 0.999] {
        let q = half_widths(&[0.0], &[1.0], &law, &blocks, level).unwrap()[0];
        let expected = -(1.0 - level).ln() * 2.0 / 3.0;
        let share = if level < 0.5 { 0.05 } else { 0.01 };
        assert!((q / expected - 1.0).abs() < share, "{level}: {q} {expected}");
    }
    // Beyond the table a straight line.
    let p = tails(&[0.0], &[1.0], &law, &blocks, &[20.0]).unwrap()[0];
    assert!((p.ln() + 30.0).abs() < 1.0, "{p}");
    let q = half_widths(&[4.0], &[0.0], &law, &blocks, 0.95).unwrap()[0];
    assert!((q / 3.919_927_969 - 1.0).abs() < 1e-4, "{q}");
    assert!(half_widths(&[0.0], &[0.0], &law, &blocks, 0.95).unwrap()[0].abs() < 1e-300);
    let far = tails(&[0.0], &[0.0], &law, &blocks, &[1.0]).unwrap()[0];
    assert!(far.abs() < f64::MIN_POSITIVE);
}

#[test]
fn the_same_release_has_the_same_intervals() {
    let (first, second) = (shape(&[1.0, 2.0], &[0, 1]), shape(&[1.0], &[0, 0]));
    let widths = |blocks: &Arc<Blocks>| {
        let law = law(blocks, 5.0);
        half_widths(&[0.1], &[1.0, 0.2], &law, blocks, 0.95).unwrap()[0].to_bits()
    };
    let found = widths(&first);
    assert_ne!(found, widths(&second));
    assert_eq!(found, widths(&first));
}

#[test]
fn bad_arguments_are_refused() {
    let blocks = shape(&[1.0, 2.0], &[0, 1]);
    let law = law(&blocks, f64::INFINITY);
    let width = |v: &[f64], a: &[f64], level| half_widths(v, a, &law, &blocks, level);
    assert!(width(&[1.0], &[1.0], 0.95).is_err());
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(width(&[bad], &[1.0, 1.0], 0.95).is_err());
        assert!(width(&[1.0], &[1.0, bad], 0.95).is_err());
    }
    assert!(width(&[-1.0], &[1.0, 1.0], 0.95).is_err());
    assert!(width(&[1.0], &[1.0, 1.0], 1.0).is_err());
    assert!(tails(&[1.0], &[1.0, 1.0], &law, &blocks, &[f64::NAN]).is_err());
    assert!(width(&[], &[], 0.95).unwrap().is_empty());
}
