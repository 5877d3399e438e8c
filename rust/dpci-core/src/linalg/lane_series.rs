//! Polynomials of one row each, at a point of every lane.

use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lane};

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
                8 => horner::<S, K, N, 2>(simd, offsets, series, out),
                4 => horner::<S, K, N, 4>(simd, offsets, series, out),
                2 => horner::<S, K, N, 8>(simd, offsets, series, out),
                _ => horner::<S, K, N, 16>(simd, offsets, series, out),
            }
        }
    }
    crate::linalg::arch().dispatch(Op(offsets, series, out))
}

#[inline(always)]
fn horner<S: Simd, const K: usize, const N: usize, const V: usize>(
    simd: S,
    offsets: &[Lane],
    series: &[[f64; N]; K],
    out: &mut [Lane],
) -> Lane {
    let zero = simd.splat_f64s(0.0);
    let mut reached = [zero; V];
    for (i, (offsets, out)) in offsets.iter().zip(out).enumerate() {
        let (offsets, _) = S::as_simd_f64s(offsets);
        let (out, _) = S::as_mut_simd_f64s(out);
        let mut value = [zero; V];
        for terms in series.iter().rev() {
            let term = simd.splat_f64s(terms[i]);
            for v in 0..V {
                value[v] = simd.mul_add_f64s(value[v], offsets[v], term);
            }
        }
        for v in 0..V {
            reached[v] = simd.max_f64s(reached[v], simd.abs_f64s(offsets[v]));
        }
        out.copy_from_slice(&value);
    }
    let mut greatest = [0.0; LANES];
    let (vectors, _) = S::as_mut_simd_f64s(&mut greatest);
    vectors.copy_from_slice(&reached);
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
