//! Shares of the budget that the stages have.

use super::{EARLIER_STEPS, NewtonSpec, pure};

/// Shares of the budget, after the seals', of Gaussian noise: of both radii, the shape, the gradient at 0, in each earlier step the counts of
/// the norms of gradients and of Hessians, earlier Hessians and gradients, and both matrices at the last point. The last gradient has the rest. Those under pure DP are in `pure.rs`.
pub(super) const RADII: [f64; 2] = [0.005, 0.01];
pub(super) const SHAPE: f64 = 0.04;
const FIRST_GRADIENT: f64 = 0.01;
pub(super) const NORMS: [[f64; 2]; EARLIER_STEPS] = [[0.01, 0.01], [0.02, 0.01]];
pub(super) const EARLIER_HESSIANS: [f64; EARLIER_STEPS] = [0.06, 0.05];
const EARLIER_GRADIENTS: [f64; EARLIER_STEPS] = [0.05, 0.16];
/// Share for each parameter of the matrices at the last point, and within which theirs lies: the noise of a matrix is that of as many directions.
const MOMENTS: f64 = 0.01;
const MOMENTS_WITHIN: [f64; 2] = [0.11, 0.2];

/// The gradient of a Newton step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// Gradient of the first step.
    Zero,
    /// Gradient of an earlier step, counted from 0.
    Earlier(usize),
    /// Gradient of the last step.
    Last,
}

impl NewtonSpec {
    /// Share of a released gradient.
    pub(super) fn gradient_share(&self, at: At) -> f64 {
        match at {
            At::Zero => FIRST_GRADIENT,
            At::Earlier(step) => EARLIER_GRADIENTS[step],
            At::Last => {
                let rows = RADII.iter().sum::<f64>() + SHAPE;
                let steps = EARLIER_HESSIANS.iter().chain(&EARLIER_GRADIENTS);
                let earlier = steps.sum::<f64>() + NORMS.iter().flatten().sum::<f64>();
                1.0 - rows - FIRST_GRADIENT - earlier - self.moments_share()
            }
        }
    }

    /// Share of both matrices at the last point.
    pub(super) fn moments_share(&self) -> f64 {
        if self.is_pure() {
            return pure::MOMENTS;
        }
        let [least, most] = MOMENTS_WITHIN;
        (MOMENTS * self.n_params() as f64).clamp(least, most)
    }
}
