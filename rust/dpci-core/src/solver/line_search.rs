//! When a step along a descent direction is accepted.

/// Sufficient decrease, the usual 10⁻⁴ of the predicted one.
const DECREASE: f64 = 1e-4;

/// Value and directional derivative at one point of the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) value: f64,
    pub(super) slope: f64,
}

/// Whether the step of length `step` from `start` to `end` is accepted.
///
/// Armijo's rule; where the values agree to rounding, its derivative form (Hager & Zhang 2005, approximate Wolfe): the
/// slope at the end may not exceed the start's in size. Function values alone could not reach certificates of 10⁻⁹. A slope
/// that is not yet positive at the end proves by convexity that the value fell: losses and a linear term that nearly cancel
/// leave a value whose size says nothing about its rounding.
pub(super) fn accepts(start: Sample, end: Sample, step: f64) -> bool {
    let falls = end.slope <= 0.0 && end.value.is_finite();
    if falls || end.value <= start.value + DECREASE * step * start.slope {
        return true;
    }
    let rounding = 64.0 * f64::EPSILON * (start.value.abs() + end.value.abs());
    end.value <= start.value + rounding && end.slope <= (2.0 * DECREASE - 1.0) * start.slope
}

/// The next step to try after `step` failed: the minimiser of the cubic-free quadratic model, kept in [0.1, 0.5]·step.
pub(super) fn shorten(start: Sample, end: Sample, step: f64) -> f64 {
    let model = if end.slope > start.slope {
        // Secant of the slopes: exact for a quadratic.
        step * -start.slope / (end.slope - start.slope)
    } else {
        f64::NAN
    };
    if model.is_finite() {
        model.clamp(0.1 * step, 0.5 * step)
    } else {
        0.25 * step
    }
}
