//! The (ε, δ) and Rényi guarantees of Gaussian objective perturbation, together with the Gaussian releases that follow it.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

use super::corners::{Corner, Slopes};
use super::rounding::{down, greatest_where, up};
use super::{DataBounds, Neighbors, check_delta, check_non_negative, check_positive};
use crate::Result;
use crate::error::check;

/// Relative margin below δ that covers the error of the terms of a bound.
const DELTA_ERROR: f64 = 8e-12;

/// How the privacy loss of Gaussian objective perturbation splits: a log-determinant, and the loss of a Gaussian mechanism
/// at the worst of a few shifts of the noise (docs/proofs/mechanisms.md, "Gaussian objective perturbation").
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObjectiveProfile {
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// Which slopes a record can have.
    pub slopes: Slopes,
    /// [`DataBounds::log_determinant`]: bound on the log-ratio of the determinants, `ln(1 + κ)` for a row and one linear predictor.
    pub log_det: f64,
    /// Whether one row of a unit counts: else the mean excess of a corner's loss stands for its hockey-stick divergence
    /// (docs/proofs/persons.md, "Gaussian objective perturbation").
    pub single: bool,
    /// Longest shift that both of two records make, in units of LR: 2, and less on a ball ([`Self::with_pair`]).
    pub pair: f64,
}

impl ObjectiveProfile {
    /// The profile at a regularisation λ = `l2_strength`.
    pub fn new(bounds: &DataBounds, slopes: Slopes, curvature_trace: f64, l2_strength: f64) -> Result<Self> {
        check_positive("l2_strength", l2_strength)?;
        check_non_negative("curvature_bound", curvature_trace)?;
        Ok(Self {
            neighbors: bounds.neighbors,
            slopes,
            log_det: bounds.log_determinant(curvature_trace, l2_strength),
            single: bounds.unit.is_single(),
            pair: 2.0,
        })
    }

    /// The same with slopes of two records that are not both at most L but in a smaller region, whose two corners beside (L, 0) and (0, L)
    /// have shifts of at most `pair·LR`, `pair` at least 1 (docs/proofs/domains.md, "Corners of two slopes").
    pub fn with_pair(self, pair: f64) -> Self {
        // NaN is no smaller region.
        let pair = if pair < 2.0 { pair.max(1.0) } else { 2.0 };
        Self { pair, ..self }
    }

    /// The longest shift of the noise in units of LR.
    pub fn shift(&self) -> f64 {
        match self.neighbors {
            Neighbors::AddRemove => 1.0,
            Neighbors::ReplaceOne => self.pair,
        }
    }

    /// Part of ε that the log-determinant leaves, rounded down; negative where it leaves nothing.
    pub fn remaining(&self, epsilon: f64) -> f64 {
        (epsilon - self.log_det) - 4.0 * f64::EPSILON * epsilon
    }

    /// Bound on δ(ε) of the coefficients at `ratio` = LR/σ followed by Gaussian releases at `mu` = sensitivity/σ together.
    ///
    /// # Privacy
    /// The loss is at most `ln(1+κ)` plus the greatest loss of the corners, and the hockey-stick divergence of a maximum is
    /// at most the sum of theirs. 1 where `ln(1+κ)` exceeds ε.
    pub fn delta(&self, epsilon: f64, ratio: f64, mu: f64) -> f64 {
        let left = self.remaining(epsilon);
        if !(left >= 0.0) {
            return 1.0;
        }
        // δ_G at a shift of √square · LR, composed with mu.
        let corner = |square: f64| self.corner(left, (ratio * square.sqrt()).hypot(mu));
        let total = |corners: &[Corner]| -> f64 { corners.iter().map(|(count, square)| count * corner(*square)).sum() };
        let sum = total(&self.corners(total));
        if sum < 1.0 { sum } else { 1.0 }
    }

    /// Greatest total `m²`, rounded down, of which the coefficients take `share` as (shift of the noise/σ)², [`Self::shift`] times
    /// LR the shift, and later Gaussian releases the rest as (sensitivity/σ)².
    ///
    /// # Privacy
    /// [`Self::delta`] at the result is at most `delta`; the bound grows with `m`, so one root serves all releases.
    pub fn mu_squared(&self, epsilon: f64, delta: f64, share: f64) -> Result<f64> {
        check_positive("epsilon", epsilon)?;
        check_delta(delta)?;
        check(
            share > 0.0 && share <= 1.0,
            "the share of the coefficients",
            "> 0 and <= 1",
            share,
        )?;
        check(
            self.remaining(epsilon) >= 0.0,
            "epsilon",
            "greater than ln(1 + kappa), the cost of the change of the Hessian",
            epsilon,
        )?;
        let shift = self.shift();
        let target = delta * (1.0 - DELTA_ERROR);
        let root = greatest_where(|m| {
            let ratio = m * share.sqrt() / shift;
            let mu = m * (1.0 - share).sqrt();
            self.delta(epsilon, ratio, mu) <= target
        });
        Ok(down(root * root))
    }

    /// Bound on the Rényi divergence of order `order` > 1, in both directions, at the arguments of [`Self::delta`].
    ///
    /// # Privacy
    /// `ln(1+κ) + ln E[e^{(α-1) max L}]/(α-1) + αμ²/2`, the maximum over the corners' Gaussian losses. The expectation is exact for
    /// add/remove, and a sum over the corners that bounds it for replace-one.
    pub fn rdp(&self, order: f64, ratio: f64, mu: f64) -> Result<f64> {
        check(order > 1.0 && order.is_finite(), "order", "finite and > 1", order)?;
        check_non_negative("ratio", ratio)?;
        check_non_negative("mu", mu)?;
        let k = order - 1.0;
        // ln E[e^{kL}; L > 0] for the loss L ~ N(a²/2, a²) of a Gaussian shifted by a standard deviations.
        let positive = |a: f64| 0.5 * (k * a) * (order * a) + normal_cdf(a * (k + 0.5)).ln();
        let none_positive = normal_cdf(-0.5 * ratio).ln();
        let log_moment = match (self.neighbors, self.slopes) {
            (Neighbors::AddRemove, Slopes::OneSigned) => log_sum_exp(&[none_positive, positive(ratio)]),
            (Neighbors::AddRemove, Slopes::AnySign) => {
                LN_2 + 0.5 * (k * ratio) * (order * ratio) + normal_cdf(k * ratio).ln()
            }
            (Neighbors::ReplaceOne, Slopes::OneSigned) => {
                let one = positive(ratio);
                let (both, two) = (positive(2.0 * ratio), positive(self.pair * ratio) + LN_2);
                log_sum_exp(&[none_positive, one, one, if both < two { both } else { two }])
            }
            // e^{kα s²A²/2} is convex in s², so its sum over s² and 4 - s² is greatest at the ends.
            (Neighbors::ReplaceOne, Slopes::AnySign) => {
                let greatest = 2.0 * (k * ratio) * (order * ratio);
                LN_2 + normal_cdf(2.0 * k * ratio).ln() + log_sum_exp(&[0.0, greatest])
            }
            // 1 + Σ E(e^{kL} - 1)₊, without overflow: both parts of a term are moved out of the logarithm's argument.
            (_, Slopes::Classes(_)) => {
                let corners = self.corners(|_| 0.0).into_iter();
                let corners: Vec<Corner> = corners.filter(|(c, square)| c * square > 0.0).collect();
                let sizes = corners.iter().map(|(count, square)| (count, square.sqrt() * ratio));
                let terms: Vec<f64> = sizes.clone().map(|(c, a)| c.ln() + positive(a)).collect();
                let rest = 1.0 - sizes.map(|(c, a)| c * normal_cdf(0.5 * a)).sum::<f64>();
                let whole = log_sum_exp(&terms);
                let rounding = 4.0 * f64::EPSILON * corners.iter().map(|(c, _)| c).sum::<f64>();
                whole + (rest * (-whole).exp()).ln_1p() + rounding
            }
        };
        let bound = self.log_det + log_moment / k + 0.5 * order * mu * mu;
        // The cdf errs by a few units in the last place, and a small k divides that.
        Ok(up(bound) + 1e-15 / k)
    }
}

/// `σ = LR·√(8 ln(2/δ) + 4ε)/ε`, rounded up: Kifer, Smith & Thakurta's noise for objective perturbation.
///
/// # Privacy
/// (ε, δ)-DP for one record added or removed when `nλ ≥ 2tR²/ε` ([`paper_least_l2_strength`]). Not for one record replaced: there the
/// shift can be 2LR.
pub fn paper_objective_std_dev(shift: f64, epsilon: f64, delta: f64) -> Result<f64> {
    check_positive("sensitivity", shift)?;
    check_positive("epsilon", epsilon)?;
    check_delta(delta)?;
    let square = 8.0 * (LN_2 - delta.ln()) + 4.0 * epsilon;
    Ok(up(shift * square.sqrt() / epsilon))
}

/// Least λ for Kifer, Smith & Thakurta's noise: `2tR²/(nε)`, t the curvature bound.
pub fn paper_least_l2_strength(bounds: &DataBounds, curvature_bound: f64, epsilon: f64) -> f64 {
    bounds.kappa(curvature_bound, 0.5 * epsilon)
}

/// Φ.
fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

fn log_sum_exp(terms: &[f64]) -> f64 {
    let greatest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if greatest.is_infinite() {
        return greatest;
    }
    greatest + terms.iter().map(|t| (t - greatest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELATIONS: [(Neighbors, Slopes); 6] = [
        (Neighbors::ReplaceOne, Slopes::OneSigned),
        (Neighbors::ReplaceOne, Slopes::AnySign),
        (Neighbors::ReplaceOne, Slopes::Classes(5)),
        (Neighbors::AddRemove, Slopes::OneSigned),
        (Neighbors::AddRemove, Slopes::AnySign),
        (Neighbors::AddRemove, Slopes::Classes(5)),
    ];

    fn profile(neighbors: Neighbors, slopes: Slopes, kappa: f64) -> ObjectiveProfile {
        let bounds = DataBounds::new(1.0, 1.0, neighbors, 3).unwrap();
        ObjectiveProfile::new(&bounds, slopes, kappa, 1.0).unwrap()
    }

    /// σ/L at which the whole of (ε, δ) goes to the coefficients.
    fn noise(profile: &ObjectiveProfile, epsilon: f64, delta: f64) -> f64 {
        profile.neighbors.changed_records() / profile.mu_squared(epsilon, delta, 1.0).unwrap().sqrt()
    }

    #[test]
    fn noise_at_the_usual_budget() {
        // At ε = 1, δ = 1e-6, κ = .01; the Gaussian floor is 4.22.
        let one_signed = |neighbors| noise(&profile(neighbors, Slopes::OneSigned, 0.01), 1.0, 1e-6);
        assert!((one_signed(Neighbors::AddRemove) - 4.26).abs() < 0.01);
        assert!((one_signed(Neighbors::ReplaceOne) - 8.53).abs() < 0.01);
        let kifer = paper_objective_std_dev(1.0, 1.0, 1e-6).unwrap();
        assert!((kifer - 10.96).abs() < 0.01);
    }

    #[test]
    fn the_root_lies_just_below_delta() {
        for (neighbors, slopes) in RELATIONS {
            for (epsilon, delta, kappa) in [(1.0, 1e-6, 0.01), (0.1, 1e-3, 0.0), (8.0, 1e-12, 3.0)] {
                let profile = profile(neighbors, slopes, kappa);
                for share in [1.0, 0.9, 0.2, 1e-6] {
                    let total = profile.mu_squared(epsilon, delta, share).unwrap();
                    let at = |total: f64| {
                        let ratio = (share * total).sqrt() / neighbors.changed_records();
                        profile.delta(epsilon, ratio, ((1.0 - share) * total).sqrt())
                    };
                    assert!(at(total) <= delta && at(total * 1.001) > delta);
                }
            }
        }
    }

    /// δ(ε) at a pair of shifts with the squares `square` and `4 - square`, both signs of each.
    fn at_angle(profile: &ObjectiveProfile, square: f64, [epsilon, ratio, mu]: [f64; 3]) -> f64 {
        let left = profile.remaining(epsilon);
        let term = |square: f64| profile.corner(left, (ratio * square.sqrt()).hypot(mu));
        2.0 * (term(square) + term(4.0 - square))
    }

    #[test]
    fn no_angle_is_worse_than_the_bound() {
        // Against a fine grid of the square of the sum of two shifts, for rows and for persons.
        for single in [true, false] {
            let profile = ObjectiveProfile {
                single,
                ..profile(Neighbors::ReplaceOne, Slopes::AnySign, 0.0)
            };
            for epsilon in [0.0, 0.01, 0.1, 0.3, 0.49, 0.51, 1.0, 5.0] {
                for ratio in [1e-3, 0.01, 0.03, 0.1, 0.2, 0.4, 1.0, 3.0] {
                    for mu in [0.0, 0.05, 0.7] {
                        let point = [epsilon, ratio, mu];
                        let bound = profile.delta(epsilon, ratio, mu);
                        for i in 0..=1000 {
                            let sum = at_angle(&profile, f64::from(i) / 500.0, point);
                            assert!(bound >= sum.min(1.0) * (1.0 - 1e-10), "{single} {point:?} {i}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_bound_for_persons_is_that_of_the_worst_end() {
        // Attained where the mean excess is convex or concave over all shifts, and by at most 2% above in between.
        let profile = ObjectiveProfile {
            single: false,
            ..profile(Neighbors::ReplaceOne, Slopes::AnySign, 0.0)
        };
        let mut between = 0;
        for epsilon in [0.003, 0.01, 0.1, 0.3, 0.45, 0.5, 1.0, 5.0] {
            for step in 0..60 {
                let ratio = 1e-4 * 1.2_f64.powi(step);
                for mu in [0.0, 0.3 * ratio, 2.0 * ratio] {
                    let point = [epsilon, ratio, mu];
                    let bound = profile.delta(epsilon, ratio, mu);
                    let ends = [0.0, 2.0].map(|square| at_angle(&profile, square, point));
                    let greater = ends[0].max(ends[1]);
                    if bound >= 0.79 || bound == 0.0 {
                        continue;
                    }
                    assert!(
                        bound >= greater && bound <= 1.02 * greater,
                        "{point:?} {bound} {greater}"
                    );
                    // Convex up to a squared ratio q with ε + q/2 = √q.
                    let longest = (2.0 * ratio).hypot(mu);
                    if epsilon + 0.5 * longest * longest >= longest && longest <= 1.0 {
                        assert!(bound <= ends[0] * (1.0 + 1e-14), "{point:?}");
                    } else if bound > greater * (1.0 + 1e-12) {
                        between += 1;
                    }
                }
            }
        }
        assert!(between > 10, "the chord is never needed: {between}");
    }

    #[test]
    fn the_paper_has_more_noise_than_the_bound_asks_for() {
        // So its constants are private wherever it asks for them, also for slopes of either sign.
        for slopes in [Slopes::OneSigned, Slopes::AnySign] {
            for epsilon in (-30..=30).map(|i| 10.0_f64.powf(f64::from(i) / 10.0)) {
                for delta in [0.5, 1e-2, 1e-6, 1e-12, 1e-30] {
                    let profile = profile(Neighbors::AddRemove, slopes, epsilon / 2.0);
                    let ratio = 1.0 / paper_objective_std_dev(1.0, epsilon, delta).unwrap();
                    assert!(profile.delta(epsilon, ratio, 0.0) <= delta, "{epsilon} {delta}");
                }
            }
        }
        // Replacing a record is another matter: twice the shift.
        let bound = profile(Neighbors::ReplaceOne, Slopes::OneSigned, 0.5);
        let ratio = 1.0 / paper_objective_std_dev(1.0, 1.0, 1e-6).unwrap();
        assert!(bound.delta(1.0, ratio, 0.0) > 1e-6);
    }

    #[test]
    fn rdp_of_no_shift_is_the_log_determinant() {
        for (neighbors, slopes) in RELATIONS {
            let got = profile(neighbors, slopes, 0.5).rdp(1e6, 0.0, 0.0).unwrap();
            // The corners all have the same loss 0, of which a sum bounds the maximum.
            assert!(got >= 1.5_f64.ln() && got < 1.5_f64.ln() + 2e-6, "{got}");
        }
    }

    #[test]
    fn rdp_is_the_moment_of_the_greatest_loss() {
        // Under add/remove the greatest loss is max(0, L) or |X| + A²/2 with one normal, by the midpoint rule.
        for slopes in [Slopes::OneSigned, Slopes::AnySign] {
            let profile = profile(Neighbors::AddRemove, slopes, 0.0);
            for (order, ratio) in [(1.5, 0.3), (8.0, 0.2), (40.0, 0.1)] {
                let k = order - 1.0;
                let (cells, width) = (400_000, 24.0);
                let step = width / f64::from(cells);
                let moment: f64 = (0..cells)
                    .map(|i| {
                        let z = (f64::from(i) + 0.5).mul_add(step, -0.5 * width);
                        let x = ratio * z;
                        let loss = if slopes == Slopes::OneSigned {
                            (0.5 * ratio).mul_add(ratio, x).max(0.0)
                        } else {
                            (0.5 * ratio).mul_add(ratio, x.abs())
                        };
                        (k * loss - 0.5 * z * z).exp() * step / (2.0 * std::f64::consts::PI).sqrt()
                    })
                    .sum();
                let got = profile.rdp(order, ratio, 0.1).unwrap();
                let expected = moment.ln() / k + 0.005 * order;
                assert!(
                    (got - expected).abs() < 1e-8,
                    "{order} {ratio}: {got} against {expected}"
                );
            }
        }
    }

    #[test]
    fn bad_arguments_are_refused() {
        let bounds = DataBounds::new(10.0, 1.0, Neighbors::ReplaceOne, 2).unwrap();
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ObjectiveProfile::new(&bounds, Slopes::OneSigned, 0.25, bad).is_err());
            assert!(paper_objective_std_dev(bad, 1.0, 0.1).is_err());
            assert!(paper_objective_std_dev(1.0, bad, 0.1).is_err());
        }
        let profile = profile(Neighbors::ReplaceOne, Slopes::OneSigned, 1.0);
        assert!(profile.mu_squared(0.5, 0.1, 1.0).is_err());
        assert!((profile.delta(0.5, 0.0, 0.0) - 1.0).abs() < f64::EPSILON);
        for (delta, share) in [(0.0, 1.0), (1.0, 1.0), (0.1, 0.0), (0.1, 1.1), (0.1, f64::NAN)] {
            assert!(profile.mu_squared(1.0, delta, share).is_err());
        }
        for order in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert!(profile.rdp(order, 0.1, 0.1).is_err());
        }
        assert!(profile.rdp(2.0, f64::NAN, 0.1).is_err());
        assert!(profile.rdp(2.0, 0.1, -1.0).is_err());
        assert!(profile.rdp(1e300, 1e3, 0.1).unwrap().is_infinite());
        assert!(profile.rdp(1e200, 0.0, 0.0).unwrap().is_finite());
    }
}
