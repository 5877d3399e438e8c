//! Polynomials of one row each, at a point of every lane.

use pulp::{Simd, WithSimd};

use super::lanes::{LANES, Lane};

/// `slope[i][l] = Σ_k series[k][i]·offsets[i][l]^k` and its derivative where it is wanted, by Horner's scheme. Returns by lane the
/// greatest size of an offset; NaN does not count.
pub fn lanes_series<const K: usize, const N: usize>(
    offsets: &[Lane],
    series: &[[f64; N]; K],
    slope: &mut [Lane],
    curvature: Option<&mut [Lane]>,
) -> Lane {
    struct Op<'a, const K: usize, const N: usize>(
        &'a [Lane],
        &'a [[f64; N]; K],
        &'a mut [Lane],
        Option<&'a mut [Lane]>,
    );
    impl<const K: usize, const N: usize> WithSimd for Op<'_, K, N> {
        type Output = Lane;
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Lane {
            let Op(offsets, series, slope, curvature) = self;
            match S::F64_LANES {
                8 => horner::<S, K, N, 2>(simd, offsets, series, slope, curvature),
                4 => horner::<S, K, N, 4>(simd, offsets, series, slope, curvature),
                2 => horner::<S, K, N, 8>(simd, offsets, series, slope, curvature),
                _ => horner::<S, K, N, 16>(simd, offsets, series, slope, curvature),
            }
        }
    }
    crate::linalg::arch().dispatch(Op(offsets, series, slope, curvature))
}

#[inline(always)]
fn horner<S: Simd, const K: usize, const N: usize, const V: usize>(
    simd: S,
    offsets: &[Lane],
    series: &[[f64; N]; K],
    slope: &mut [Lane],
    mut curvature: Option<&mut [Lane]>,
) -> Lane {
    let zero = simd.splat_f64s(0.0);
    let mut reached = [zero; V];
    for (i, (offsets, slope)) in offsets.iter().zip(slope).enumerate() {
        let (offsets, _) = S::as_simd_f64s(offsets);
        let (slope, _) = S::as_mut_simd_f64s(slope);
        let (mut value, mut rate) = ([zero; V], [zero; V]);
        for terms in series.iter().rev() {
            let term = simd.splat_f64s(terms[i]);
            for v in 0..V {
                if curvature.is_some() {
                    rate[v] = simd.mul_add_f64s(rate[v], offsets[v], value[v]);
                }
                value[v] = simd.mul_add_f64s(value[v], offsets[v], term);
            }
        }
        for v in 0..V {
            reached[v] = simd.max_f64s(reached[v], simd.abs_f64s(offsets[v]));
        }
        slope.copy_from_slice(&value);
        if let Some(curvature) = &mut curvature {
            let (curvature, _) = S::as_mut_simd_f64s(&mut curvature[i]);
            curvature.copy_from_slice(&rate);
        }
    }
    let mut out = [0.0; LANES];
    let (vectors, _) = S::as_mut_simd_f64s(&mut out);
    vectors.copy_from_slice(&reached);
    out
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
        let (mut slope, mut rate) = (vec![[0.0; LANES]; 5], vec![[0.0; LANES]; 5]);
        let reached = lanes_series(&offsets, &series, &mut slope, Some(&mut rate));
        let mut alone = vec![[0.0; LANES]; 5];
        lanes_series(&offsets, &series, &mut alone, None);
        assert_eq!(slope, alone);
        for l in 0..LANES {
            for i in 0..5 {
                let (z, [a, b, c, d]) = (offsets[i][l], series.map(|terms| terms[i]));
                assert!((slope[i][l] - (a + z * (b + z * (c + z * d)))).abs() < 1e-14);
                assert!((rate[i][l] - (b + z * (2.0 * c + z * 3.0 * d))).abs() < 1e-14);
            }
            let greatest = offsets.iter().map(|z| z[l].abs()).fold(0.0, f64::max);
            assert!((reached[l] - greatest).abs() < 1e-15);
        }
    }
}
