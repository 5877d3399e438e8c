//! Both precisions of a kernel that is written once.

use pulp::Simd;

use super::lanes::{self, LANES, Lane, LaneRows};
use super::packed_lanes::{SETS, Sums, add_pairs};

/// A number that fits registers: `f32` or `f64`.
pub(crate) trait Number: Copy + Default + Into<f64> + From<u8> {
    /// A register of them.
    type Vector<S: Simd>: Copy;

    /// The nearest to a value.
    fn of(value: f64) -> Self;

    /// How many of them a register holds.
    fn per_vector<S: Simd>() -> usize;

    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;

    /// The greater of `a` and `|b|`; of a NaN among them nothing is said.
    fn max_abs<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;

    /// `a · b`.
    fn multiply<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;

    /// `a · b + c`.
    fn multiply_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;

    /// Whole registers of a slice.
    fn vectors<S: Simd>(values: &[Self]) -> &[Self::Vector<S>];

    /// Whole registers of a slice.
    fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [Self::Vector<S>];

    /// [`add_pairs`] for a group of five or six, with as many sums at once as the registers of the processor hold.
    fn add_group<S: Simd, const W: usize>(
        simd: S,
        products: &[[Self; W]],
        from: usize,
        weights: [&[[Self; LANES]]; SETS],
        group: &mut [Sums],
    );

    /// [`lanes::predict`], likewise.
    fn predict<S: Simd>(
        simd: S,
        rows: LaneRows<'_, Self>,
        points: &[Lane<Self>],
        out: &mut [Lane<Self>],
    );

    /// [`lanes::accumulate`], likewise.
    fn accumulate<S: Simd>(
        simd: S,
        rows: LaneRows<'_, Self>,
        weights: &[Lane<Self>],
        out: &mut [Lane<Self>],
    );
}

/// The parts of both precisions that differ in names alone.
macro_rules! number {
    (
        $number:ty, $vector:ident, $splat:ident, $multiply:ident, $multiply_add:ident, $max:ident, $abs:ident,
        $vectors:ident, $vectors_mut:ident, $lanes:ident,
        [$($count:pat => $pairs:literal $sets:literal $registers:literal),*], [$($number_of:pat => $wide:literal $at_once:literal),*]
    ) => {
        impl Number for $number {
            type Vector<S: Simd> = S::$vector;

            #[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast, reason = "rounding is meant")]
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn per_vector<S: Simd>() -> usize {
                S::$lanes
            }

            #[inline(always)]
            fn max_abs<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$max(a, simd.$abs(b))
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
            fn vectors<S: Simd>(values: &[Self]) -> &[S::$vector] {
                S::$vectors(values).0
            }

            #[inline(always)]
            fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [S::$vector] {
                S::$vectors_mut(values).0
            }

            #[inline(always)]
            fn add_group<S: Simd, const W: usize>(
                simd: S,
                products: &[[Self; W]],
                from: usize,
                weights: [&[[Self; LANES]]; SETS],
                group: &mut [Sums],
            ) {
                match S::$lanes {
                    $($count => {
                        for (k, sums) in group.chunks_mut($pairs).enumerate() {
                            let from = from + k * $pairs;
                            if sums.len() == $pairs {
                                add_pairs::<S, Self, $pairs, $sets, $registers, W>(simd, products, from, weights, sums);
                            } else {
                                add_pairs::<S, Self, { $pairs - 1 }, $sets, $registers, W>(simd, products, from, weights, sums);
                            }
                        }
                    })*
                }
            }

            #[inline(always)]
            fn predict<S: Simd>(
                simd: S,
                rows: LaneRows<'_, Self>,
                points: &[Lane<Self>],
                out: &mut [Lane<Self>],
            ) {
                match S::$lanes {
                    $($number_of => lanes::predict::<S, Self, $wide, $at_once>(simd, rows, points, out),)*
                }
            }

            #[inline(always)]
            fn accumulate<S: Simd>(
                simd: S,
                rows: LaneRows<'_, Self>,
                weights: &[Lane<Self>],
                out: &mut [Lane<Self>],
            ) {
                match S::$lanes {
                    $($number_of => lanes::accumulate::<S, Self, $wide>(simd, rows, weights, out),)*
                }
            }
        }
    };
}

// First the pairs, sets and registers of a set's lanes whose sums are held at once; of a group of five or six pairs one may be missing. Then
// the registers of lanes, and the rows, whose sums are. Twelve registers of sums keep two multiply-add units busy; narrow machines have 16.
number!(
    f32, f32s, splat_f32s, mul_f32s, mul_add_f32s, max_f32s, abs_f32s,
    as_simd_f32s, as_mut_simd_f32s, F32_LANES,
    [16 => 6 2 1, 8 => 6 1 2, 4 => 3 1 4, _ => 1 1 16], [16 => 1 12, 8 => 2 6, 4 => 2 6, _ => 16 1]
);
number!(
    f64, f64s, splat_f64s, mul_f64s, mul_add_f64s, max_f64s, abs_f64s,
    as_simd_f64s, as_mut_simd_f64s, F64_LANES,
    [8 => 6 1 2, 4 => 3 1 4, 2 => 1 1 8, _ => 1 1 16], [8 => 2 6, 4 => 2 6, 2 => 2 6, _ => 16 1]
);
