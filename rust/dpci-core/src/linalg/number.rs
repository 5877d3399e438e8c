//! Both precisions of a kernel that is written once.

use pulp::Simd;

use super::lanes::LANES;
use super::packed_lanes::{BLOCK, Pair, SETS, add_pairs};

/// A number that fits registers: `f32` or `f64`.
pub(super) trait Number: Copy + Default + Into<f64> {
    /// A register of them.
    type Vector<S: Simd>: Copy;

    /// The nearest to a value.
    fn of(value: f64) -> Self;

    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;

    /// `a · b`.
    fn multiply<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;

    /// `a · b + c`.
    fn multiply_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;

    /// The greater one of `a` and `|b|`; `a` where `b` is NaN.
    fn greater_size<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;

    /// Whole registers of a slice.
    fn vectors<S: Simd>(values: &[Self]) -> &[Self::Vector<S>];

    /// Whole registers of a slice.
    fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [Self::Vector<S>];

    /// [`add_pairs`] with as many sums as the registers of the processor hold.
    fn add_pairs<S: Simd>(simd: S, columns: &[[Self; BLOCK]], weights: [&[[Self; LANES]]; SETS], pairs: &mut [Pair]);
}

/// The parts of both precisions that differ in names alone.
macro_rules! number {
    (
        $number:ty, $vector:ident, $splat:ident, $multiply:ident, $multiply_add:ident, $max:ident, $abs:ident, $vectors:ident, $vectors_mut:ident,
        $lanes:ident, [$($count:pat => $pairs:literal $registers:literal),*]
    ) => {
        impl Number for $number {
            type Vector<S: Simd> = S::$vector;

            #[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast, reason = "rounding is meant")]
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }

            #[inline(always)]
            fn multiply<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$multiply(a, b)
            }

            #[inline(always)]
            fn multiply_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$multiply_add(a, b, c)
            }

            #[inline(always)]
            fn greater_size<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$max(a, simd.$abs(b))
            }

            #[inline(always)]
            fn vectors<S: Simd>(values: &[Self]) -> &[S::$vector] {
                S::$vectors(values).0
            }

            #[inline(always)]
            fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [S::$vector] {
                S::$vectors_mut(values).0
            }

            #[inline(always)]
            fn add_pairs<S: Simd>(
                simd: S,
                columns: &[[Self; BLOCK]],
                weights: [&[[Self; LANES]]; SETS],
                pairs: &mut [Pair],
            ) {
                match S::$lanes {
                    $($count => add_pairs::<S, Self, $pairs, $registers>(simd, columns, weights, pairs),)*
                }
            }
        }
    };
}

number!(
    f32, f32s, splat_f32s, mul_f32s, mul_add_f32s, max_f32s, abs_f32s, as_simd_f32s, as_mut_simd_f32s,
    F32_LANES, [16 => 10 1, 8 => 5 2, 4 => 2 4, _ => 1 16]
);
number!(
    f64, f64s, splat_f64s, mul_f64s, mul_add_f64s, max_f64s, abs_f64s, as_simd_f64s, as_mut_simd_f64s,
    F64_LANES, [8 => 5 2, 4 => 2 4, 2 => 1 8, _ => 1 16]
);
