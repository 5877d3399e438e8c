//! The error bounds of all laws against the roundings that docs/noise.md counts, and the edges of small helpers.

use super::bounded::{self, Sum, U};
use super::generator::Scripted;
use super::symmetric::{from_lower_triangle, isometric_dim, lower_triangle};
use super::testing::assert_counts;
use super::{
    Gaussian, Laplace, Law, MatrixLaplace, NoiseLaw, ShapedLaplace, SimulationGenerator, SphericalLaplace,
    SquareLaplace, SymmetricGaussian, weighted_index,
};
use std::sync::Arc;

use crate::Error;
use crate::row_domain::Blocks;

/// `√n + √(2·694)` and `n + √(2n·694) + 694`.
fn tails(n: usize) -> (f64, f64) {
    let n = n as f64;
    (n.sqrt() + 1388.0_f64.sqrt(), n + (1388.0 * n).sqrt() + 694.0)
}

/// `roundings` units of a tail bound, each thrice rounded up by a thousandth, and two more for a map of matrices.
#[track_caller]
fn assert_units(bound: f64, tail: f64, scale: f64, roundings: f64) {
    let units = bound / (U * tail * scale) / 1.001_f64.powi(3);
    assert!(
        (units / (roundings + 2.0) - 1.0).abs() < 1e-3,
        "{units} against {roundings} + 2"
    );
}

#[test]
fn error_bounds_are_the_roundings_of_a_draw() {
    for dim in [1, 2, 20, 1000] {
        let even = if dim == 1 { 2 } else { dim };
        let (normal, _) = tails(even);
        assert_units(Gaussian::new(dim, 3.0).unwrap().error_bound(), normal, 3.0, 12.8);
        let (_, sum) = tails(dim);
        assert_units(SphericalLaplace::new(dim, 0.5).unwrap().error_bound(), sum, 2.0, 24.4);
        assert_units(
            SquareLaplace::new(dim, 0.5).unwrap().error_bound(),
            tails(dim * dim).1,
            2.0,
            24.4,
        );
        let exponential = sum.min((dim as f64).sqrt() * (dim as f64).ln() + 1390.0);
        assert_units(Laplace::new(dim, 3.0).unwrap().error_bound(), exponential, 3.0, 6.5);
        // In isometric coordinates the Frobenius norm is the Euclidean norm.
        assert_units(
            SymmetricGaussian::new(dim, 3.0).unwrap().error_bound(),
            tails(isometric_dim(dim).next_multiple_of(2)).0,
            3.0,
            12.8,
        );
        let (_, traces) = tails(dim * (dim + 1));
        let roundings = 31.7 + 2.002 * dim as f64;
        assert_units(
            MatrixLaplace::new(dim, 0.5).unwrap().error_bound(),
            traces,
            2.0,
            roundings,
        );
    }
    let wide = Arc::new(Blocks::new(vec![3.0, 4.0], vec![0, 1, 1, 1, 1]).unwrap());
    let law = ShapedLaplace::new(wide, 0.5).unwrap();
    assert_units(law.error_bound(), tails(6).1, 10.0, 22.6);
    // Where numbers underflow each is off by the least normal number.
    let tiny = Gaussian::new(1000, 1e-300).unwrap().error_bound() / f64::MIN_POSITIVE;
    assert!((1000.0..1001.0).contains(&tiny), "{tiny}");
    // The law of a release knows the same bounds.
    let law = NoiseLaw::Gaussian { std_dev: 3.0 };
    assert_units(law.error_bound(20), tails(20).0, 3.0, 12.8);
    let law = NoiseLaw::SphericalLaplace { dim: 20, rate: 0.5 };
    assert_units(law.error_bound(20), tails(20).1, 2.0, 24.4);
    assert!(NoiseLaw::Gaussian { std_dev: 0.0 }.error_bound(3).is_infinite());
}

#[test]
fn standard_numbers_err_by_what_is_stated() {
    assert!((bounded::EXPONENTIAL_ERROR / U - 5.5).abs() < 1e-9);
    assert!((bounded::NORMAL_ERROR / U - 11.8).abs() < 1e-9);
    // u + (nu/(1 - nu))², where nu = 1/8 and where it is 2⁻³³.
    assert!((Sum::error(1 << 50) - 1.0 / 49.0).abs() < 1e-12);
    assert!(Sum::error(1 << 20) > U + 0.5_f64.powi(66) * 0.999);
    assert!(Sum::error(1 << 20) < U + 0.5_f64.powi(66) * 1.001);
}

#[test]
fn a_size_is_refused_just_beyond_its_tail() {
    assert!(bounded::check_tail(1.001 * 8.0, 8.0).is_ok());
    assert!(bounded::check_tail((1.001_f64 * 8.0).next_up(), 8.0).is_err());
}

#[test]
fn triangles_of_matrices() {
    assert_eq!(lower_triangle(0, &[]), [0.0; 0]);
    assert_eq!(lower_triangle(1, &[2.0]), [2.0]);
    let matrix = [1.0, 9.0, 9.0, 2.0, 3.0, 9.0, 4.0, 5.0, 6.0];
    assert_eq!(lower_triangle(3, &matrix), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let full = from_lower_triangle(3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.5);
    assert_eq!(full, [1.0, 1.0, 2.0, 1.0, 3.0, 2.5, 2.0, 2.5, 6.0]);
    assert_eq!([0, 1, 2, 3, 10].map(isometric_dim), [0, 1, 3, 6, 55]);
}

#[test]
fn draws_beyond_their_tail_are_refused() {
    // Fifteen words of zeros before each one: every exponential number is 488 or more, far from anything that a seed gives.
    let zeros = || {
        let mut words = vec![0; 18];
        words[15] = 1 << 63;
        Scripted::new(words)
    };
    // Sums near their mean are not, however many they add.
    let wide = MatrixLaplace::new(40, 1.0).unwrap();
    assert!(wide.sample_bounded(&mut SimulationGenerator::new(65, 0)).is_ok());
    // One such number is within the tail of its law, and several are not.
    assert!(Laplace::new(1, 1.0).unwrap().sample_bounded(&mut zeros()).is_ok());
    assert!(
        SphericalLaplace::new(1, 1.0)
            .unwrap()
            .sample_bounded(&mut zeros())
            .is_ok()
    );
    assert!(Gaussian::new(2, 1.0).unwrap().sample_bounded(&mut zeros()).is_ok());
    for refused in [
        Laplace::new(4, 1.0).unwrap().sample_bounded(&mut zeros()),
        SphericalLaplace::new(4, 1.0).unwrap().sample_bounded(&mut zeros()),
        SquareLaplace::new(2, 1.0).unwrap().sample_bounded(&mut zeros()),
        MatrixLaplace::new(2, 1.0).unwrap().sample_bounded(&mut zeros()),
        Gaussian::new(8, 1.0).unwrap().sample_bounded(&mut zeros()),
    ] {
        assert_eq!(refused, Err(Error::NoiseTail));
    }
}

#[test]
fn the_greatest_weight_may_stand_anywhere() {
    for shift in 0..3 {
        let mut weights = [0.9, 0.06, 0.04];
        weights.rotate_right(shift);
        let mut generator = SimulationGenerator::new(64, shift as u64);
        let mut counts = [0; 3];
        for _ in 0..20_000 {
            counts[weighted_index(&weights, &mut generator)] += 1;
        }
        assert_counts(&counts, &weights);
    }
}

#[test]
fn logarithms_are_taken_below_one_half() {
    // The greatest uniform number stands for 1/2, whichever end it is counted from: no digit is lost near 1.
    for coin in [0, 1 << 63] {
        let mut ones = Scripted::new(vec![coin, u64::MAX, u64::MAX, u64::MAX]);
        let found = bounded::exponential(&mut ones).unwrap();
        assert!((found / std::f64::consts::LN_2 - 1.0).abs() < 1e-15, "{found}");
    }
}

#[test]
fn a_law_by_its_name_has_the_scale_that_it_was_given() {
    let blocks = Arc::new(Blocks::new(vec![1.0, 2.0], vec![0, 1, 1]).unwrap());
    for name in ["gaussian", "spherical_laplace", "shaped_laplace", "shaped_gaussian"] {
        let law = NoiseLaw::from_name(name, 3, 4.0, Some(&blocks)).unwrap();
        assert_eq!(law.name(), name);
        assert!((law.scale() - 4.0).abs() < 1e-15, "{name}");
        assert!((law.with_scale(2.0).scale() - 2.0).abs() < 1e-15 && law.with_scale(4.0) == law);
    }
    assert!(NoiseLaw::from_name("shaped_laplace", 3, 4.0, None).is_err());
    assert!(NoiseLaw::from_name("shaped_laplace", 2, 4.0, Some(&blocks)).is_err());
}

#[test]
fn a_law_lives_where_it_was_made_for() {
    assert!(SymmetricGaussian::new(0, 1.0).is_err());
    let law = NoiseLaw::SphericalLaplace { dim: 2, rate: 1.0 };
    assert!(law.on(2).is_ok() && law.on(3).is_err());
    assert!(law.error_bound(3).is_infinite());
}
