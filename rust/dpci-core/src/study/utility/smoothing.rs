//! A metric averaged over normal moves of every row's linear predictor.
//!
//! The loss is averaged by a Gauss-Hermite rule. Its nodes lie further apart than a narrow step is wide, so that the smoothed
//! accuracy has a form of its own: the logistic function is a mixture of normal distribution functions, and the mean of
//! `Φ(sz/width)` over a normal move of z is again one, exactly, down to the accuracy itself at width 0.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::Metric;
use crate::Result;
use crate::exec::BLOCK;
use crate::loss::{Batch, Loss};

/// Nodes and weights of the Gauss-Hermite rule with 7 points for the standard normal.
const HERMITE: [(f64, f64); 7] = [
    (-3.750_439_717_725_742, 0.000_548_268_855_972_217_8),
    (-2.366_759_410_734_541, 0.030_757_123_967_586_5),
    (-1.154_405_394_739_968, 0.240_123_178_605_012_7),
    (0.0, 0.457_142_857_142_857_15),
    (1.154_405_394_739_968, 0.240_123_178_605_012_7),
    (2.366_759_410_734_541, 0.030_757_123_967_586_5),
    (3.750_439_717_725_742, 0.000_548_268_855_972_217_8),
];

/// Weights p and scales s with `1/(1+e^{-z}) = Σ p Φ(sz)` to within 2.2e-9 (Monahan & Stefanski 1992, eight terms).
const LOGISTIC: [(f64, f64); 8] = [
    (0.003_246_343_272_134, 1.365_340_806_296_348),
    (0.051_517_477_033_972, 1.059_523_971_016_916),
    (0.195_077_912_673_858, 0.830_791_313_765_644),
    (0.315_569_823_632_818, 0.650_732_166_639_391),
    (0.274_149_576_158_423, 0.508_135_425_366_489),
    (0.131_076_880_695_47, 0.396_313_345_166_341),
    (0.027_912_418_727_972, 0.308_904_252_267_995),
    (0.001_449_567_805_354, 0.238_212_616_409_306),
];

impl Metric {
    /// Mean of [`Metric::evaluate`] for at most [`BLOCK`] rows, over normal moves of `u` by these standard deviations.
    pub(super) fn average(self, loss: &dyn Loss, u: &[f64], std_devs: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        match self {
            Self::Loss => average_loss(loss, u, std_devs, y, out),
            Self::SmoothedAccuracy { width } => {
                average_accuracy(width, u, std_devs, y, out);
                Ok(())
            }
        }
    }
}

fn average_loss(loss: &dyn Loss, u: &[f64], std_devs: &[f64], y: &[f64], mut out: Batch<'_>) -> Result<()> {
    let n = u.len();
    let mut buffers = [[0.0; BLOCK]; 3];
    let [moved, slope, curvature] = buffers.each_mut().map(|b| &mut b[..n]);
    if let Some(total) = out.total.as_deref_mut() {
        *total = 0.0;
    }
    for sums in [out.slope.as_deref_mut(), out.curvature.as_deref_mut()] {
        sums.unwrap_or_default().fill(0.0);
    }
    for (node, weight) in HERMITE {
        for ((moved, u), s) in moved.iter_mut().zip(u).zip(std_devs) {
            *moved = u + node * s;
        }
        let mut total = 0.0;
        let here = Batch {
            total: out.total.is_some().then_some(&mut total),
            weights: out.weights,
            slope: out.slope.is_some().then_some(&mut *slope),
            curvature: out.curvature.is_some().then_some(&mut *curvature),
        };
        loss.evaluate(moved, y, here)?;
        if let Some(sum) = out.total.as_deref_mut() {
            *sum += weight * total;
        }
        let found = [&*slope, &*curvature];
        for (sums, found) in [out.slope.as_deref_mut(), out.curvature.as_deref_mut()]
            .into_iter()
            .zip(found)
        {
            for (sum, f) in sums.unwrap_or_default().iter_mut().zip(found) {
                *sum += weight * f;
            }
        }
    }
    Ok(())
}

fn average_accuracy(width: f64, u: &[f64], std_devs: &[f64], y: &[f64], mut out: Batch<'_>) {
    let mut sum = 0.0;
    for (i, ((u, std_dev), y)) in u.iter().zip(std_devs).zip(y).enumerate() {
        let [value, slope, curvature] = smoothed_step(width, y * u, y.abs() * std_dev);
        sum += out.weights.map_or(1.0, |w| w[i]) * value;
        if let Some(out) = out.slope.as_deref_mut() {
            out[i] = y * slope;
        }
        if let Some(out) = out.curvature.as_deref_mut() {
            out[i] = y * y * curvature;
        }
    }
    if let Some(total) = out.total {
        *total = sum;
    }
}

/// Mean of `1/(1 + e^{-z/width})` and of its first two derivatives over `z ~ N(margin, std_dev²)`.
fn smoothed_step(width: f64, margin: f64, std_dev: f64) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for (weight, scale) in LOGISTIC {
        let spread = (width / scale).hypot(std_dev);
        let x = margin / spread;
        let density = (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
        sums[0] += weight * 0.5 * libm::erfc(-x * FRAC_1_SQRT_2);
        sums[1] += weight * density / spread;
        // Far from a narrow step the density is zero, and infinity times it is no number.
        if density > 0.0 {
            sums[2] -= weight * (x * density / spread) / spread;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Midpoint rule over 9 standard deviations of the move, a cell a ten-thousandth of one.
    fn by_quadrature(width: f64, margin: f64, std_dev: f64) -> [f64; 3] {
        let cell = 1e-4;
        let mut sums = [0.0; 3];
        for i in 0..180_000 {
            let z = -9.0 + cell * (f64::from(i) + 0.5);
            let weight = cell * (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
            let p = 1.0 / (1.0 + (-(margin + std_dev * z) / width).exp());
            let slope = p * (1.0 - p) / width;
            let values = [p, slope, slope * (1.0 - 2.0 * p) / width];
            sums.iter_mut().zip(values).for_each(|(s, v)| *s += weight * v);
        }
        sums
    }

    #[test]
    fn steps_are_smoothed_as_by_quadrature() {
        for width in [2.0, 0.3, 0.01] {
            for margin in [-1.3, -0.02, 0.0, 0.4] {
                for std_dev in [0.05, 1.0] {
                    let got = smoothed_step(width, margin, std_dev);
                    let expected = by_quadrature(width, margin, std_dev);
                    let size = width.hypot(std_dev);
                    for (k, (g, e)) in (0..).zip(got.into_iter().zip(expected)) {
                        let error = (g - e).abs() * size.powi(k);
                        assert!(error < 1e-7, "{width} {margin} {std_dev}: {g} {e}");
                    }
                }
            }
        }
    }

    #[test]
    fn narrow_steps_become_the_normal_law() {
        for width in [1e-6, 1e-100, f64::MIN_POSITIVE] {
            let [value, slope, curvature] = smoothed_step(width, 0.3, 0.5);
            let density = (-0.18_f64).exp() / (2.0 * PI).sqrt();
            assert!((value - 0.5 * libm::erfc(-0.6 * FRAC_1_SQRT_2)).abs() < 1e-9);
            assert!((slope - density / 0.5).abs() < 1e-8);
            assert!((curvature + 0.6 * density / 0.25).abs() < 1e-7);
            for (margin, std_dev) in [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (40.0, 0.1)] {
                let all = smoothed_step(width, margin, std_dev);
                assert!(all.iter().all(|v| v.is_finite()), "{width} {margin}: {all:?}");
            }
        }
    }
}
