//! The probit loss `-log Φ(z)` of the margin `z = yu`.

use errorfunctions::RealErrorFunctions;
use statrs::function::erf::erfc_inv;

use super::sigmoid_family::up;
use super::{Batch, Constant, Loss, by_row, cells, constant_of_classes};
use crate::Result;

/// Probit loss: slope `m = φ(z)/Φ(z)`, which grows like -z, and curvature `m(m + z)`, at most 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Probit;

/// `φ(z)/Φ(z)`; 0 where it is less than any normal number.
fn inverse_mills(z: f64) -> f64 {
    let root = (2.0 * std::f64::consts::FRAC_1_PI).sqrt();
    root / (-z * std::f64::consts::FRAC_1_SQRT_2).erfcx()
}

fn curvature(z: f64) -> f64 {
    let m = inverse_mills(z);
    (m * (m + z)).clamp(0.0, 1.0)
}

/// `-log Φ(z)`.
fn value(z: f64) -> f64 {
    let x = z * std::f64::consts::FRAC_1_SQRT_2;
    if z > 0.0 {
        -(-0.5 * RealErrorFunctions::erfc(x)).ln_1p()
    } else {
        x * x - (0.5 * (-x).erfcx()).ln()
    }
}

/// Relative room past the error of a scaled error function, and that of its argument.
const ROOM: f64 = 1.0 + 256.0 * f64::EPSILON;

/// Margins beyond which squares are no longer exact enough for anything.
const GREATEST_PREDICTOR: f64 = 1e6;

impl Loss for Probit {
    getters! { self =>
        name: &'static str = "probit";
        is_likelihood: bool = true;
        identity: Option<(&'static str, Vec<f64>)> = Some((self.name(), vec![]));
        slope_bound: f64 = f64::INFINITY;
        curvature_bound: f64 = 1.0;
        /// Width of the logistic loss, whose predictors are 1.7 times as long.
        curvature_width: f64 = 0.6;
        /// Slope of a class of one record in a hundred.
        usual_slope: f64 = 2.7;
        one_signed: bool = true;
        greatest_pull: f64 = up(cells::greatest_pull(|z| self.greatest_push(z), 30.0));
    }

    fn evaluate(&self, u: &[f64], y: &[f64], out: Batch<'_>) -> Result<()> {
        by_row(
            [u, y],
            out,
            |u, y| value(u * y),
            |u, y| -y * inverse_mills(u * y),
            |u, y| curvature(u * y),
        );
        Ok(())
    }

    /// Error of a scaled error function (docs/certificates.md, "One record").
    fn slope_error(&self, radius: f64) -> f64 {
        32.0 * f64::EPSILON * self.sup_slope(radius)
    }

    /// Far below 0 m and -z cancel but for 1/|z|, and the curvature is their difference times m.
    fn tail_roundings(&self, radius: f64) -> f64 {
        64.0 * radius * radius
    }

    /// Beyond, a class has a probability of less than one in a million.
    fn continued_beyond(&self, y: f64) -> Option<[f64; 2]> {
        Some(if y < 0.0 {
            [f64::NEG_INFINITY, 5.0]
        } else {
            [-5.0, f64::INFINITY]
        })
    }

    fn best_constant(&self, slope: f64, least: f64) -> Option<Constant> {
        let quantile = |share: f64| -std::f64::consts::SQRT_2 * erfc_inv(2.0 * share);
        constant_of_classes(self, slope, least, quantile)
    }

    // Slope and curvature fall with the margin: all suprema are attained at -radius.

    fn sup_slope(&self, radius: f64) -> f64 {
        if radius <= GREATEST_PREDICTOR {
            ROOM * inverse_mills(-radius)
        } else {
            f64::INFINITY
        }
    }

    fn sup_curvature(&self, radius: f64) -> f64 {
        let rounding = 0.5 * f64::EPSILON * (256.0 + self.tail_roundings(radius));
        (curvature(-radius) + rounding).min(1.0)
    }

    fn sup_weighted_sum(&self, k: f64, radius: f64) -> f64 {
        up(k * self.sup_curvature(radius) + self.sup_slope(radius).powi(2))
    }

    fn sup_joint_norm(&self, alpha: f64, radius: f64) -> f64 {
        up((alpha * self.sup_curvature(radius)).hypot(self.sup_slope(radius).powi(2)))
    }

    /// The slope is convex in the margin, so at an end.
    fn sup_tilted_slope(&self, tilt: f64, radius: f64) -> f64 {
        let greatest = self.sup_slope(radius);
        let ends = [greatest - tilt * radius, self.greatest_push(radius) + tilt * radius];
        ends[0].max(ends[1]) + 16.0 * f64::EPSILON * (greatest + tilt * radius)
    }

    fn greatest_push(&self, margin: f64) -> f64 {
        ROOM * inverse_mills(margin - 4.0 * f64::EPSILON * margin.abs())
    }

    fn value_range(&self, radius: f64) -> f64 {
        super::margin_range(self, radius)
    }
}
