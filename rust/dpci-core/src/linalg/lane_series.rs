//! Polynomials of one row each, at a point of every lane.

use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lane};
use super::number::Number;
use super::single_lanes::SingleLane;

/// `out[i][l] = Σ_k series[k][i]·offsets[i][l]^k` by Horner's scheme. Returns by lane the greatest size of an offset; NaN does not count.
pub fn lanes_series<const K: usize, const N: usize>(
    offsets: &[Lane],
    series: &[[f64; N]; K],
    out: &mut [Lane],
) -> Lane {
    struct Op<'a, const K: usize, const N: usize>(&'a [Lane], &'a [[f64; N]; K], &'a mut [Lane]);
    impl<const K: usize, const N: usize> WithSimd for Op<'_, K, N> {
        type Output = Lane;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Lane {
            let Op(offsets, series, out) = self;
            match S::F64_LANES {
                8 => horner::<S, f64, K, N, 2>(simd, offsets, series, out),
                4 => horner::<S, f64, K, N, 4>(simd, offsets, series, out),
                2 => horner::<S, f64, K, N, 8>(simd, offsets, series, out),
                _ => horner::<S, f64, K, N, 16>(simd, offsets, series, out),
            }
        }
    }
    crate::linalg::arch().dispatch(Op(offsets, series, out))
}

/// The same in single precision.
pub fn single_series<const K: usize, const N: usize>(
    offsets: &[SingleLane],
    series: &[[f32; N]; K],
    out: &mut [SingleLane],
) -> SingleLane {
    struct Op<'a, const K: usize, const N: usize>(&'a [SingleLane], &'a [[f32; N]; K], &'a mut [SingleLane]);
    impl<const K: usize, const N: usize> WithSimd for Op<'_, K, N> {
        type Output = SingleLane;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> SingleLane {
            let Op(offsets, series, out) = self;
            match S::F32_LANES {
                16 => horner::<S, f32, K, N, 1>(simd, offsets, series, out),
                8 => horner::<S, f32, K, N, 2>(simd, offsets, series, out),
                4 => horner::<S, f32, K, N, 4>(simd, offsets, series, out),
                _ => horner::<S, f32, K, N, 16>(simd, offsets, series, out),
            }
        }
    }
    crate::linalg::arch().dispatch(Op(offsets, series, out))
}

#[inline(always)]
fn horner<S: Simd, T: Number, const K: usize, const N: usize, const V: usize>(
    simd: S,
    offsets: &[[T; LANES]],
    series: &[[T; N]; K],
    out: &mut [[T; LANES]],
) -> [T; LANES] {
    let zero = T::splat(simd, T::default());
    let mut reached = [zero; V];
    for (i, (offsets, out)) in offsets.iter().zip(out).enumerate() {
        let offsets = T::vectors::<S>(offsets);
        let mut value = [zero; V];
        for terms in series.iter().rev() {
            let term = T::splat(simd, terms[i]);
            for v in 0..V {
                value[v] = T::multiply_add(simd, value[v], offsets[v], term);
            }
        }
        for v in 0..V {
            reached[v] = T::greater_size(simd, reached[v], offsets[v]);
        }
        T::vectors_mut::<S>(out).copy_from_slice(&value);
    }
    let mut greatest = [T::default(); LANES];
    T::vectors_mut::<S>(&mut greatest).copy_from_slice(&reached);
    greatest
}

/// `out[i][l] = p - p²` for `p = slopes[i][l] + labels[i]`: the derivative of a sigmoid from its value.
pub fn lanes_sigmoid_rates(slopes: &[Lane], labels: &[f64], out: &mut [Lane]) {
    struct Op<'a>(&'a [Lane], &'a [f64], &'a mut [Lane]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Op(slopes, labels, out) = self;
            for ((out, slopes), label) in out.iter_mut().zip(slopes).zip(labels) {
                let label = simd.splat_f64s(*label);
                let (out, _) = S::as_mut_simd_f64s(out);
                let (slopes, _) = S::as_simd_f64s(slopes);
                for (out, slope) in out.iter_mut().zip(slopes) {
                    let p = simd.add_f64s(*slope, label);
                    *out = simd.negate_mul_add_f64s(p, p, p);
                }
            }
        }
    }
    crate::linalg::arch().dispatch(Op(slopes, labels, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_equal_plain_loops() {
        let offsets: Vec<Lane> = (0..5)
            .map(|i| std::array::from_fn(|l| ((i * LANES + l) as f64).sin()))
            .collect();
        let series = [[1.0; 5], [0.0, 1.0, 2.0, 3.0, 4.0], [-0.5; 5], [0.25; 5]];
        let (mut values, mut rates) = (vec![[0.0; LANES]; 5], vec![[0.0; LANES]; 5]);
        let reached = lanes_series(&offsets, &series, &mut values);
        lanes_sigmoid_rates(&values, &[0.0, 1.0, 0.5, -1.0, 2.0], &mut rates);
        for l in 0..LANES {
            for (i, label) in [0.0, 1.0, 0.5, -1.0, 2.0].into_iter().enumerate() {
                let (z, [a, b, c, d]) = (offsets[i][l], series.map(|terms| terms[i]));
                let expected = a + z * (b + z * (c + z * d));
                assert!((values[i][l] - expected).abs() < 1e-14);
                let p = expected + label;
                assert!((rates[i][l] - p * (1.0 - p)).abs() < 1e-13);
            }
            let greatest = offsets.iter().map(|z| z[l].abs()).fold(0.0, f64::max);
            assert!((reached[l] - greatest).abs() < 1e-15);
        }
    }
}
