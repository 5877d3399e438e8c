//! Series of a slope around predictors where it is known, by which studies evaluate a loss at predictors nearby.

use pulp::{Simd, WithSimd};

/// Coefficients of a series, for powers 0 to 10.
pub const SERIES_TERMS: usize = 11;

/// How far from its centre a series is good: the remainder is below a rounding of the greatest slope.
///
/// The sigmoid has its nearest poles at a distance of π at least, where its residue is 1 in size; its coefficient of power k is at most
/// about `2/π^(k+1)`, that of power 11 below 2.2·10⁻⁶, and `8^-11` of that 2.6·10⁻¹⁶. The first derivative is good to 3·10⁻¹⁴.
pub const SERIES_REACH: f64 = 0.125;

/// Rows whose series are held at a time.
pub const SERIES_ROWS: usize = 64;

/// Coefficients of the series of some rows: by power, then by row.
pub type Series = [[f64; SERIES_ROWS]; SERIES_TERMS];

/// The series of `p - label(y)` from its values, `p` the sigmoid of the predictor: `label` is that of a target.
pub(super) fn slopes_of_sigmoid(
    slopes: &[f64],
    y: &[f64],
    label: impl Fn(f64) -> f64,
    out: &mut Series,
) {
    for ((value, slope), y) in out[0].iter_mut().zip(slopes).zip(y) {
        *value = slope + label(*y);
    }
    crate::linalg::arch().dispatch(SigmoidSeries(out));
    out[0][..slopes.len()].copy_from_slice(slopes);
}

/// Series of sigmoids from their values: `p' = p - p²` gives each coefficient from those before. A type of its own because only its
/// `with_simd` is compiled for the wide instruction sets.
struct SigmoidSeries<'a>(&'a mut Series);

impl WithSimd for SigmoidSeries<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self(terms) = self;
        for k in 0..SERIES_TERMS - 1 {
            let (known, next) = terms.split_at_mut(k + 1);
            let next = &mut next[0];
            // Half the terms of the square, each of which comes twice but for one in the middle.
            next.copy_from_slice(&known[k]);
            for j in 0..k.div_ceil(2) {
                for ((next, left), right) in next.iter_mut().zip(&known[j]).zip(&known[k - j]) {
                    *next = (-2.0 * left).mul_add(*right, *next);
                }
            }
            if k % 2 == 0 {
                for (next, middle) in next.iter_mut().zip(&known[k / 2]) {
                    *next = (-middle).mul_add(*middle, *next);
                }
            }
            let share = 1.0 / (k + 1) as f64;
            for next in next.iter_mut() {
                *next *= share;
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
        let out = Batch {
            slope: Some(&mut slope),
            curvature: Some(&mut curvature),
            ..Batch::default()
        };
        loss.evaluate(&[u], &[y], out).unwrap();
        [slope[0], curvature[0]]
    }

    #[test]
    fn series_are_the_loss_within_their_reach() {
        let cases: [(&dyn Loss, [f64; 2]); 2] =
            [(&Logistic, [-1.0, 1.0]), (&SoftLogistic, [0.0, 0.7])];
        for (loss, targets) in cases {
            let centres: Vec<f64> = (-30..=30).map(|i| f64::from(i) * 0.5).collect();
            for y in targets {
                let slopes: Vec<f64> = centres.iter().map(|u| at(loss, *u, y)[0]).collect();
                let mut series = [[0.0; SERIES_ROWS]; SERIES_TERMS];
                assert!(loss.slope_series(&slopes, &vec![y; centres.len()], &mut series));
                for (row, u) in centres.iter().enumerate() {
                    for part in [-1.0, -0.7, 0.1, 1.0] {
                        let z = part * SERIES_REACH;
                        let (mut slope, mut curvature) = (0.0, 0.0);
                        for terms in series.iter().rev() {
                            curvature = curvature * z + slope;
                            slope = slope * z + terms[row];
                        }
                        let [expected, derivative] = at(loss, u + z, y);
                        assert!((slope - expected).abs() < 1e-15, "{loss:?} {u} {z}");
                        assert!((curvature - derivative).abs() < 1e-13, "{loss:?} {u} {z}");
                    }
                }
            }
        }
    }
}
