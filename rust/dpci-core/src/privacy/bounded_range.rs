//! Joint (ε, δ) profile of Gaussian noise and exponential mechanisms, whose privacy losses have a bounded range (docs/proofs/bounds.md).

use super::gaussian::{DELTA_ERROR, delta, gaussian_mu};
use super::rounding::greatest_where;
use super::{Budget, check_non_negative, check_positive};
use crate::error::check;
use crate::{Error, Result};

/// Cells of the range of a loss, in each of which the worst pair is bounded.
const CELLS: u32 = 64;

/// Most mechanisms one after another.
const MOST_STAGES: u32 = 8;

/// Adaptive sequence of mechanisms whose privacy losses lie in intervals of one length, as those of exponential mechanisms do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedRange {
    /// Length of the interval of each: its ε.
    epsilon: f64,
    /// Number of the mechanisms.
    stages: u32,
}

impl BoundedRange {
    /// So many mechanisms, each with losses in an interval of length `epsilon`.
    pub fn new(epsilon: f64, stages: u32) -> Result<Self> {
        check_positive("epsilon", epsilon)?;
        let counted = (1..=MOST_STAGES).contains(&stages);
        check(counted, "stages", ">= 1 and <= 8", stages.into())?;
        Ok(Self { epsilon, stages })
    }

    /// Upper bound on δ(ε) of all of them and then Gaussian releases that compose to `mu`, each chosen by the results before it. A mechanism
    /// of this kind after a Gaussian release may be worse.
    pub fn delta(&self, epsilon: f64, mu: f64) -> Result<f64> {
        check_non_negative("epsilon", epsilon)?;
        check_non_negative("mu", mu)?;
        Ok(self.profile(epsilon, mu))
    }

    /// Rest of an (ε, δ) for a Gaussian mechanism with a seal: the greatest ε, at the whole δ, such that the Gaussian noise that
    /// this budget buys without its seal spends together with these mechanisms no more than the whole without the seal.
    pub fn rest(&self, whole: Budget) -> Result<Budget> {
        let Budget::Approx { epsilon, delta } = whole else {
            let rule = "only a budget of (epsilon, delta) is shared by joint accounting";
            return Err(Error::Unsupported(rule.into()));
        };
        Budget::approx(
            greatest_where(|own| own < epsilon && self.leaves(own, epsilon, delta)),
            delta,
        )
    }

    /// Whether a Gaussian mechanism may have (`own`, `delta`) of a whole (`epsilon`, `delta`).
    fn leaves(&self, own: f64, epsilon: f64, delta: f64) -> bool {
        let Ok(own) = Budget::approx(own, delta) else {
            return false;
        };
        let (
            Budget::Approx {
                epsilon: own_epsilon,
                delta: own_delta,
            },
            Budget::Approx {
                epsilon: seal_epsilon,
                delta: seal_delta,
            },
        ) = own.split_off_seal()
        else {
            return false;
        };
        let (left, at_most) = ((epsilon - seal_epsilon).next_down(), (delta - seal_delta).next_down());
        gaussian_mu(own_epsilon, own_delta).is_ok_and(|mu| self.profile(left, mu) <= at_most * (1.0 - DELTA_ERROR))
    }

    fn profile(&self, epsilon: f64, mu: f64) -> f64 {
        let worst = Worst::new(self.epsilon);
        // Profiles at ε + k·h for k from -reach to reach, of which each stage needs as many on either side as there are cells.
        let reach = self.stages * CELLS;
        let mut values: Vec<f64> = (0..=2 * reach)
            .map(|k| signed_delta(epsilon + (f64::from(k) - f64::from(reach)) * worst.width, mu))
            .collect();
        for _ in 0..self.stages {
            let windows = values.windows(2 * CELLS as usize + 1);
            values = windows.map(|window| worst.bound(window)).collect();
        }
        (values[0] * (1.0 + 4.0 * DELTA_ERROR)).min(1.0)
    }
}

/// δ of Gaussian noise at an ε that may be negative: there it is that of the pair in the other order.
fn signed_delta(epsilon: f64, mu: f64) -> f64 {
    if epsilon >= 0.0 {
        delta(epsilon, mu)
    } else {
        -epsilon.exp_m1() + epsilon.exp() * delta(-epsilon, mu)
    }
}

/// The worst pair of a mechanism with losses in an interval `[t - ε, t]`: two outcomes at its ends, for t on a grid over `[0, ε]`.
struct Worst {
    /// Distance h of neighbouring t.
    width: f64,
    /// Probability of the loss t, for each t.
    probabilities: Vec<f64>,
    /// How far that probability is above a chord, at most, for each cell.
    above: Vec<f64>,
}

impl Worst {
    fn new(epsilon: f64) -> Self {
        let width = epsilon / f64::from(CELLS);
        let at = |i: u32| f64::from(i) * width;
        let whole = (-epsilon).exp_m1();
        Self {
            width,
            probabilities: (0..=CELLS)
                .map(|i| ((at(i) - epsilon).exp_m1() / whole).clamp(0.0, 1.0))
                .collect(),
            above: (0..CELLS)
                .map(|i| {
                    let half = 0.5 * (at(i + 1) - epsilon);
                    // Neither an overflow nor its product with 0: the second is the greater.
                    let root = if width < 300.0 {
                        width.exp_m1() * half.exp()
                    } else {
                        (width + half).exp()
                    };
                    // Probabilities differ by 1 at most.
                    (0.25 * root * root / -whole).min(1.0)
                })
                .collect(),
        }
    }

    /// Bound on `max over t of p(t)·H(ε' - t) + (1 - p(t))·H(ε' - t + ε)`, from upper bounds on H at `ε' - ε, ε' - ε + h, .., ε' + ε`.
    ///
    /// H is convex in `exp(ε')` and does not rise. In `s = exp(-t)` both terms are therefore below their chords in each cell, and p is
    /// above its own by at most `above`: what is left is a quadratic function with the values at the ends of the cell.
    fn bound(&self, window: &[f64]) -> f64 {
        let (low, high) = window.split_at(CELLS as usize);
        // At the i-th t: H(ε' - t), H(ε' - t + ε), and p.
        let ends = |i: usize| {
            let first = if i == 0 { high[0] } else { low[CELLS as usize - i] };
            (first, high[CELLS as usize - i], self.probabilities[i])
        };
        let mut greatest = 0.0_f64;
        let (mut first, mut second, mut p) = ends(0);
        for (i, above) in self.above.iter().enumerate() {
            let (next_first, next_second, next_p) = ends(i + 1);
            let (gap, next_gap) = (first - second, next_first - next_second);
            let value = (p * first + (1.0 - p) * second).max(next_p * next_first + (1.0 - next_p) * next_second);
            let bend = 0.25 * ((next_p - p) * (next_gap - gap)).abs();
            let cell = value + above * gap.abs().max(next_gap.abs()) + bend;
            // A NaN tells nothing, and a maximum would leave it out.
            greatest = greatest.max(if cell.is_nan() { 1.0 } else { cell });
            (first, second, p) = (next_first, next_second, next_p);
        }
        // No pair is worse than a loss of ε for sure.
        greatest.min(low[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::gaussian_delta;

    /// The maximum over a fine grid of t, from below.
    fn fine(epsilon: f64, range: f64, stages: u32, mu: f64, steps: u32) -> f64 {
        if stages == 0 {
            return signed_delta(epsilon, mu);
        }
        let next = |at: f64| fine(at, range, stages - 1, mu, steps);
        (0..=steps)
            .map(|i| {
                let t = range * f64::from(i) / f64::from(steps);
                let p = (t - range).exp_m1() / (-range).exp_m1();
                p * next(epsilon - t) + (1.0 - p) * next(epsilon - t + range)
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn profiles_are_above_the_worst_pair_and_near_it() {
        for (epsilon, range, stages, mu) in [
            (1.0, 0.2, 1, 0.24),
            (1.0, 0.1, 2, 0.24),
            (3.0, 0.3, 2, 0.6),
            (0.1, 0.01, 2, 0.02),
            (0.0, 0.2, 1, 0.3),
            (0.05, 0.2, 2, 0.1),
            (5.0, 4.5, 1, 1.0),
            (1.0, 1e-9, 2, 0.3),
        ] {
            let bound = BoundedRange::new(range, stages).unwrap();
            let bound = bound.delta(epsilon, mu).unwrap();
            let steps = if stages == 1 { 20_000 } else { 300 };
            let exact = fine(epsilon, range, stages, mu, steps);
            assert!(bound >= exact, "{epsilon} {range} {stages} {mu}");
            let room = if range > 1.0 { 0.03 } else { 2e-3 };
            assert!(bound <= exact * (1.0 + room), "{bound} {exact}");
            // Between Gaussian noise alone and basic composition.
            let sum = signed_delta(epsilon - range * f64::from(stages), mu);
            assert!(bound >= gaussian_delta(epsilon, mu).unwrap());
            assert!(bound <= sum * (1.0 + 1e-11));
        }
    }

    #[test]
    fn probabilities_are_above_their_chords_by_what_is_said() {
        for epsilon in [0.1, 1.0, 3.0] {
            let worst = Worst::new(epsilon);
            for (i, &above) in (0..CELLS).zip(&worst.above) {
                let [low, high] = [i, i + 1].map(|k| f64::from(k) * worst.width);
                let p = |t: f64| (t - epsilon).exp_m1() / (-epsilon).exp_m1();
                // The chord is straight in exp(-t).
                let over = |k: u32| {
                    let share = f64::from(k) / 200.0;
                    let s = (1.0 - share) * (-low).exp() + share * (-high).exp();
                    p(-s.ln()) - ((1.0 - share) * p(low) + share * p(high))
                };
                let most = (0..=200).map(over).fold(0.0, f64::max);
                assert!(most <= above && above <= 1.2 * most, "{epsilon} {i} {most:e} {above:e}");
            }
        }
    }

    #[test]
    fn profiles_are_monotone() {
        let of = |range, epsilon, mu| {
            let bound = BoundedRange::new(range, 2).unwrap();
            bound.delta(epsilon, mu).unwrap()
        };
        for i in 0..40 {
            let x = 0.05 * f64::from(i);
            assert!(of(0.1, x, 0.25) >= of(0.1, x + 0.05, 0.25));
            assert!(of(0.1, 1.0, 0.1 + x) <= of(0.1, 1.0, 0.15 + x));
            assert!(of(0.01 + x, 1.0, 0.25) <= of(0.06 + x, 1.0, 0.25));
        }
    }

    #[test]
    fn the_rest_spends_the_whole_together_with_the_ranges() {
        for (epsilon, delta) in [(1.0, 1e-6), (3.0, 1e-6), (0.1, 1e-12), (10.0, 1e-3)] {
            for (share, stages) in [(0.2, 1), (0.1, 2), (0.45, 2), (0.99, 1)] {
                let ranges = BoundedRange::new(share * epsilon, stages).unwrap();
                let whole = Budget::approx(epsilon, delta).unwrap();
                let rest = ranges.rest(whole).unwrap();
                let Budget::Approx { epsilon: own, .. } = rest else {
                    panic!("of its notion")
                };
                let basic = epsilon * (1.0 - share * f64::from(stages));
                assert!(own < epsilon && own > basic * (1.0 - 1e-9));
                assert!(ranges.leaves(own, epsilon, delta));
                assert!(!ranges.leaves(own * (1.0 + 1e-9), epsilon, delta));
                let mu = gaussian_mu(0.999 * own, 0.999 * delta).unwrap();
                let spent = ranges.delta(epsilon - 0.001 * own, mu).unwrap();
                assert!(spent <= 0.999 * delta && spent > 0.998_999 * delta);
            }
        }
        let ranges = BoundedRange::new(0.1, 2).unwrap();
        assert!(ranges.rest(Budget::pure(1.0).unwrap()).is_err());
        let small = Budget::approx(0.2, 1e-300).unwrap();
        assert!(ranges.rest(small).is_err() || matches!(ranges.rest(small), Ok(Budget::Approx { .. })));
    }

    #[test]
    fn numbers_are_checked_and_great_ones_do_not_overflow() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(BoundedRange::new(bad, 1).is_err());
        }
        assert!(BoundedRange::new(1.0, 0).is_err() && BoundedRange::new(1.0, 9).is_err());
        assert!(BoundedRange::new(1.0, 1).is_ok() && BoundedRange::new(1.0, 8).is_ok());
        for range in [1e-300, 1e-17, 1.0, 800.0, 1e300] {
            let ranges = BoundedRange::new(range, 2).unwrap();
            for (epsilon, mu) in [(0.0, 0.0), (1.0, 0.3), (1e300, 1.0), (0.5, 1e200)] {
                let found = ranges.delta(epsilon, mu).unwrap();
                assert!((0.0..=1.0).contains(&found), "{range} {epsilon} {mu}: {found}");
                assert!(found >= gaussian_delta(epsilon, mu).unwrap() * (1.0 - 1e-9));
            }
            assert!(ranges.delta(-1.0, 1.0).is_err() && ranges.delta(1.0, f64::NAN).is_err());
        }
        // Two stages of these ranges leave what basic composition leaves, and next to nothing more.
        for (epsilon, range) in [(2e5, 2.5e4), (1e8, 2.5e6), (1e6, 1e5), (1e5, 355.0 * 64.0)] {
            for stages in [1, 2] {
                let ranges = BoundedRange::new(range, stages).unwrap();
                let own = ranges.rest(Budget::approx(epsilon, 1e-6).unwrap()).unwrap();
                let Budget::Approx { epsilon: own, .. } = own else {
                    panic!("the rest has the notion of the whole")
                };
                let basic = epsilon - f64::from(stages) * range;
                assert!(own > basic * (1.0 - 1e-3) && own < basic + 0.1 * range, "{own} {basic}");
            }
        }
        for (epsilon, mu, range) in [(0.5, 1e200, 2.3e4), (1.5e5, 558.57, 3e4)] {
            let found = BoundedRange::new(range, 1).unwrap().delta(epsilon, mu);
            assert!(found.unwrap() > 0.999);
        }
    }
}
