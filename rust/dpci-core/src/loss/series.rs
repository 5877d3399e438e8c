//! Series of a slope around predictors where it is known, by which studies evaluate a loss of the sigmoid at predictors nearby.

use pulp::{Simd, WithSimd};

/// Coefficients of a series, for powers 0 to 10.
pub const SERIES_TERMS: usize = 11;

/// How far from its centre a series is good: the remainder is below a rounding of the greatest slope.
///
/// The sigmoid has its nearest poles at a distance of π at least, where its residue is 1 in size; its coefficient of power k is at most
/// about `2/π^(k+1)`, that of power 11 below 2.2·10⁻⁶, and `8^-11` of that 2.6·10⁻¹⁶.
pub const SERIES_REACH: f64 = 0.125;

/// Coefficients that are enough for single precision within the reach: that of power 6 is below 6.7·10⁻⁴, and `8^-5` of that 2.0·10⁻⁸,
/// beside a slope's derivative at its centre.
pub const ROUGH_TERMS: usize = 6;

/// Rows whose series are held at a time.
pub const SERIES_ROWS: usize = 32;

/// Series of some rows whose slopes are a sigmoid `p` less a label, so that the curvature `p - p²` follows from the slope.
#[derive(Debug, Clone)]
pub struct Series {
    /// Coefficients by power, then by row.
    pub terms: [[f64; SERIES_ROWS]; SERIES_TERMS],
    /// The label of each row.
    pub labels: [f64; SERIES_ROWS],
    /// Whether the first [`ROUGH_TERMS`] coefficients are enough; the others are then left as they are.
    pub is_rough: bool,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            terms: [[0.0; SERIES_ROWS]; SERIES_TERMS],
            labels: [0.0; SERIES_ROWS],
            is_rough: false,
        }
    }
}

/// The series of `p - label(y)` from its values, `p` the sigmoid of the predictor: `label` is that of a target.
pub(super) fn slopes_of_sigmoid(slopes: &[f64], y: &[f64], label: impl Fn(f64) -> f64, out: &mut Series) {
    for (held, y) in out.labels.iter_mut().zip(y) {
        *held = label(*y);
    }
    let values = out.terms[0].iter_mut().zip(slopes);
    for ((value, slope), label) in values.zip(&out.labels) {
        *value = slope + label;
    }
    if out.is_rough {
        crate::linalg::arch().dispatch(SigmoidSeries::<ROUGH_TERMS>(&mut out.terms));
    } else {
        crate::linalg::arch().dispatch(SigmoidSeries::<SERIES_TERMS>(&mut out.terms));
    }
    out.terms[0][..slopes.len()].copy_from_slice(slopes);
}

/// Series of sigmoids from their values: `p' = p - p²` gives each coefficient from those before. A type of its own because only its
/// `with_simd` is compiled for the wide instruction sets.
struct SigmoidSeries<'a, const K: usize>(&'a mut [[f64; SERIES_ROWS]; SERIES_TERMS]);

impl<const K: usize> WithSimd for SigmoidSeries<'_, K> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(terms) = self;
        for v in 0..SERIES_ROWS / S::F64_LANES {
            // In registers: each coefficient of a few rows is made of all before.
            let mut known = [simd.splat_f64s(0.0); K];
            known[0] = S::as_simd_f64s(&terms[0]).0[v];
            for k in 0..K - 1 {
                // The terms of the square come twice, but for one in the middle.
                let mut twice = simd.splat_f64s(0.0);
                for j in 0..k.div_ceil(2) {
                    twice = simd.mul_add_f64s(known[j], known[k - j], twice);
                }
                let mut rest = simd.negate_mul_add_f64s(simd.splat_f64s(2.0), twice, known[k]);
                if k % 2 == 0 {
                    rest = simd.negate_mul_add_f64s(known[k / 2], known[k / 2], rest);
                }
                known[k + 1] = simd.mul_f64s(rest, simd.splat_f64s(1.0 / (k + 1) as f64));
                S::as_mut_simd_f64s(&mut terms[k + 1]).0[v] = known[k + 1];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{Batch, Logistic, Loss, SoftLogistic};

    /// Slope and curvature of one record.
    fn at(loss: &dyn Loss, u: f64, y: f64) -> [f64; 2] {
        let (mut slope, mut curvature) = ([0.0], [0.0]);
        let out = Batch::derivatives(&mut slope, &mut curvature);
        loss.evaluate(&[u], &[y], out).unwrap();
        [slope[0], curvature[0]]
    }

    #[test]
    fn series_are_the_loss_within_their_reach() {
        let cases: [(&dyn Loss, [f64; 2]); 2] = [(&Logistic, [-1.0, 1.0]), (&SoftLogistic, [0.0, 0.7])];
        for (loss, targets) in cases {
            let centres: Vec<f64> = (-15..=15).map(f64::from).collect();
            for y in targets {
                let slopes: Vec<f64> = centres.iter().map(|u| at(loss, *u, y)[0]).collect();
                let mut series = Series::default();
                assert!(loss.slope_series(&slopes, &vec![y; centres.len()], &mut series));
                for (row, u) in centres.iter().enumerate() {
                    for part in [-1.0, -0.7, 0.1, 1.0] {
                        let z = part * SERIES_REACH;
                        let slope = series.terms.iter().rev().fold(0.0, |s, t| s * z + t[row]);
                        let p = slope + series.labels[row];
                        let curvature = p - p * p;
                        let [expected, derivative] = at(loss, u + z, y);
                        assert!((slope - expected).abs() < 1e-15, "{loss:?} {u} {z}");
                        assert!((curvature - derivative).abs() < 1e-15, "{loss:?} {u} {z}");
                    }
                }
            }
        }
    }
}
