//! Which public parameters let the minimiser of every data set be certified: the others are refused before any data are seen.
//!
//! A fit that fails tells something about the data. What stands in the way of a certificate is rounding: that of the gradient, and that
//! of the systems of Newton's method. Both have bounds that hold for all data and noise (docs/certificates.md, "Every data set").

use super::Choices;
use super::distances::{greatest_mass, greatest_rows};
use super::domain::{Bounded, Domain};
use crate::linalg::{DOUBLED_EPSILON, MAX_MATRIX_DIM};
use crate::loss::{Extent, HINGE_MAX_DIM, always_converges, has_more_digits, hessian_rounding, hinge_floor};
use crate::noise::NoiseLaw;
use crate::privacy::Perturbation;
use crate::{Error, Result};

/// The certificate of a point at which rounding stops f64, in terms of the rounding bound: the gradient is below it, and it is added.
const STALLED: f64 = 2.0;

/// Least multiple of the rounding in doubled precision that the tolerance may be.
const ROOM: f64 = 8.0;

/// Share of one that the rounding of a system, relative to its least eigenvalue, may have.
const SHARE: f64 = 0.125;

/// Greatest ratio of a row's square to the ridge for the hinge, whose systems are doubled where they have to be. Found by trial: failures
/// begin a hundred thousand times higher.
const HINGE_CONDITION: f64 = 1e12;

/// The same ratio for a smooth loss with objective perturbation where `erm` has no way that always converges. Minimisers lie far out
/// where the noise pulls along a direction in which the rows hardly curve the risk. By trial: Newton's method alone missed none of 30 hard
/// minimisers there, and 1 of 30 at ten times that (`docs/evidence/far_minimisers.md`).
const PULLED_CONDITION: f64 = 1e8;

/// Facts on which the certificate of a solver rests, as bounds over all data sets and draws of the noise.
pub(super) struct Solvable<'a> {
    c: &'a Choices,
    domain: &'a Domain,
    excess: f64,
    n_params: usize,
    row_norm: f64,
    n_rows: usize,
    convexity: f64,
    /// Greatest norm of the linear term.
    linear: f64,
}

impl<'a> Solvable<'a> {
    pub(super) fn new(of: Bounded<'a>, law: &NoiseLaw) -> Self {
        let Bounded {
            choices: c,
            bounds,
            domain,
        } = of;
        let excess = greatest_mass(bounds);
        let linear = match c.perturbation {
            Perturbation::Objective => law.greatest_norm(bounds.params) / bounds.n,
            Perturbation::Output => 0.0,
        };
        Self {
            c,
            domain,
            excess,
            n_params: bounds.params,
            row_norm: bounds.row_norm,
            n_rows: greatest_rows(bounds.records, bounds.neighbors, bounds.unit),
            convexity: c.l2_strength + domain.extra_convexity,
            linear,
        }
    }

    /// Whether more digits than those of f64 are at hand.
    fn has_more_digits(&self) -> bool {
        has_more_digits(&*self.c.loss, self.n_params, self.c.radius)
    }

    /// Whether the solvers converge for all data in exact arithmetic; one Hessian gives a quadratic risk everywhere, however far out.
    fn always_converges(&self) -> bool {
        let loss = &*self.c.loss;
        loss.is_quadratic() || always_converges(loss, self.n_params, self.c.radius)
    }

    /// Greatest ratio of the eigenvalues of a Hessian; at a kink, of those of a row to the ridge.
    fn condition(&self) -> f64 {
        let curvature = if self.c.loss.kinked() {
            1.0
        } else {
            self.domain.curvature_bound
        };
        1.0 + self.excess * curvature * self.row_norm.powi(2) / self.convexity
    }

    /// No minimiser is longer: its objective is at most that of zero.
    fn greatest_norm(&self) -> f64 {
        let pulled = self.linear / self.convexity;
        let by_slope = pulled + self.excess * self.domain.slope_bound * self.row_norm / self.convexity;
        let by_value = pulled + (pulled * pulled + 2.0 * self.excess * self.value_at_zero() / self.convexity).sqrt();
        by_slope.min(by_value).min(self.c.radius.unwrap_or(f64::INFINITY))
    }

    /// The greatest loss at zero, where no loss is negative; else infinite, as for a caller's.
    fn value_at_zero(&self) -> f64 {
        let loss = &self.c.loss;
        if loss.identity().is_none() {
            return f64::INFINITY;
        }
        loss.value_at_zero()
    }

    fn extent(&self) -> Extent<'a> {
        Extent {
            loss: &*self.c.loss,
            n_params: self.n_params,
            n_rows: self.n_rows,
            mass: self.excess,
            row_norm: self.row_norm,
            longest: self.row_norm,
            l2_strength: self.convexity,
            linear: self.linear,
        }
    }

    /// The rounding of a gradient over λ, and where there is a ball that of the way to its sphere, in digits of this size.
    fn floor(&self, rounding: f64, epsilon: f64, roundings: f64) -> f64 {
        let sphere = self.c.radius.map_or(0.0, |radius| {
            // A sphere that no minimiser can reach is never on the way to one.
            let radius = radius.min(2.0 * self.greatest_norm());
            let gradient = self.excess * self.domain.slope_bound * self.row_norm + self.linear;
            (2.0 + self.condition()) * roundings * epsilon * radius + 16.0 * epsilon * gradient / self.convexity
        });
        rounding / self.convexity + sphere
    }

    /// The certificate that f64 reaches for every data set: where that is all there is, the seal's distance has to allow for it.
    pub(super) fn single_floor(&self) -> f64 {
        if self.c.loss.kinked() || self.has_more_digits() {
            return 0.0;
        }
        let rounding = self.extent().rounding(self.greatest_norm());
        STALLED * self.floor(rounding, f64::EPSILON, 32.0)
    }

    /// Refuses parameters at which some data set may have no certified minimiser.
    pub(super) fn check(&self, tolerance: f64) -> Result<()> {
        let kinked = self.c.loss.kinked();
        let (rule, greatest) = if kinked {
            ("at most 2048 (huber_hinge has no such limit)", HINGE_MAX_DIM)
        } else {
            ("at most 16384 with a radius", MAX_MATRIX_DIM)
        };
        if (kinked || self.c.radius.is_some()) && self.n_params > greatest {
            return Err(Error::OutOfRange {
                name: "the number of parameters",
                rule,
                value: self.n_params as f64,
            });
        }
        self.check_total()?;
        let greatest = match (kinked, self.c.perturbation) {
            (true, _) => HINGE_CONDITION,
            (false, Perturbation::Objective) if !self.always_converges() => {
                self.greatest_condition().min(PULLED_CONDITION)
            }
            (false, _) => self.greatest_condition(),
        };
        let condition = self.condition();
        if !(condition <= greatest) {
            return Err(Error::IllConditioned {
                least: self.convexity * (condition - 1.0) / (greatest - 1.0),
                value: self.c.l2_strength,
            });
        }
        if kinked {
            let floor = hinge_floor(&self.extent(), self.greatest_norm());
            return self.check_digits(floor, tolerance);
        }
        if self.has_more_digits() {
            let rounding = self.extent().doubled_rounding(self.greatest_norm());
            let roundings = self.n_params as f64 + 16.0;
            let floor = self.floor(rounding, DOUBLED_EPSILON, roundings);
            return self.check_digits(floor, tolerance);
        }
        Ok(())
    }

    /// Refuses losses whose sum over the records can overflow. What a caller's can be is not known.
    fn check_total(&self) -> Result<()> {
        let reach = self.domain.slope_bound * self.row_norm * self.greatest_norm();
        let total = self.n_rows as f64 * (self.value_at_zero() + reach);
        if self.c.loss.identity().is_some() && !total.is_finite() {
            return Err(Error::OutOfRange {
                name: "the greatest sum of losses",
                rule: "finite in double precision",
                value: total,
            });
        }
        Ok(())
    }

    fn check_digits(&self, floor: f64, tolerance: f64) -> Result<()> {
        let least = ROOM * floor;
        if least <= tolerance {
            return Ok(());
        }
        Err(Error::TooFewDigits {
            least,
            tolerance,
            value: self.c.l2_strength,
        })
    }

    /// The condition up to which a Hessian summed and factorised in f64 gives steps that shrink the error: Cholesky's method errs by less than
    /// `20d^{3/2}u‖H‖` (Higham 2002, Theorem 10.7), the sum by `hessian_rounding`.
    fn greatest_condition(&self) -> f64 {
        let factorised = 10.0 * (self.n_params as f64).powf(1.5) * f64::EPSILON;
        SHARE / (factorised + hessian_rounding(self.n_rows))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::Error;
    use crate::loss::{Hinge, HuberHinge, Logistic, Loss, Squared};
    use crate::privacy::Budget;
    use crate::row_domain::RowDomain;
    use crate::spec::{Choices, Spec, Terms, testing};

    use super::{Perturbation, Solvable};

    fn choices(loss: Arc<dyn Loss>, n_samples: usize, row_norm: f64, l2_strength: f64) -> Choices {
        Choices {
            terms: Terms {
                n_samples,
                ..testing::choices(Perturbation::Output, testing::zcdp(0.5)).terms
            },
            intercept: None,
            rows: RowDomain::Ball(row_norm),
            loss,
            l2_strength,
            ..testing::choices(Perturbation::Output, testing::zcdp(0.5))
        }
    }

    #[test]
    fn what_some_data_could_not_be_certified_for_is_refused() {
        let logistic = || Arc::new(Logistic) as Arc<dyn Loss>;
        let refused = Spec::new(choices(logistic(), 9, 6e4, 1.8e-6)).unwrap_err();
        let Error::IllConditioned { least, value } = refused else {
            panic!("{refused}");
        };
        assert!(value < least && least < 1e-2);
        Spec::new(choices(logistic(), 9, 6e4, least * 1.01)).unwrap();
        for (n, l2_strength) in [(100, 1.0), (1_000_000, 1e-6), (1_000_000_000, 1e-9)] {
            Spec::new(choices(logistic(), n, 1.0, l2_strength)).unwrap();
        }
        let hinge = || Arc::new(Hinge) as Arc<dyn Loss>;
        Spec::new(choices(hinge(), 1_000_000, 1.0, 1e-4)).unwrap();
        let refused = Spec::new(choices(hinge(), 9, 1e5, 1e-12)).unwrap_err();
        assert!(matches!(refused, Error::IllConditioned { .. }), "{refused}");
        let refused = Spec::new(choices(hinge(), 1_000_000_000_000_000, 1.0, 1e-11)).unwrap_err();
        assert!(matches!(refused, Error::TooFewDigits { .. }), "{refused}");
    }

    /// Ten records of length 1 at most, λ = 1.
    fn with_solvable(c: Choices, test: impl FnOnce(&Solvable<'_>)) {
        let spec = Spec::new(c).unwrap();
        test(&Solvable::new(spec.bounded(), &spec.law));
    }

    #[track_caller]
    fn assert_close(got: f64, expected: f64) {
        assert!((got / expected - 1.0).abs() < 1e-6, "{got} {expected}");
    }

    #[test]
    fn the_floor_counts_the_way_to_the_sphere() {
        for radius in [0.5_f64, 3.0] {
            let mut c = choices(Arc::new(Logistic), 10, 1.0, 1.0);
            c.radius = Some(radius);
            with_solvable(c, |solvable| {
                let slope = 1.0 / (1.0 + (-radius).exp());
                let longest = slope.min((2.0 * 2.0_f64.ln()).sqrt()).min(radius);
                assert_close(solvable.greatest_norm(), longest);
                // κ = 1 + 1/4; ten roundings of a thousandth on the way, which is at most twice as long as any minimiser.
                let way = (2.0 + 1.25) * 0.01 * radius.min(2.0 * longest);
                let expected = 7.0 + way + 0.016 * slope;
                assert_close(solvable.floor(7.0, 1e-3, 10.0) - 6.99, expected - 6.99);
            });
        }
        with_solvable(choices(Arc::new(Logistic), 10, 1.0, 1.0), |solvable| {
            assert_close(solvable.floor(7.0, 1e-3, 10.0), 7.0);
        });
    }

    #[test]
    fn the_loss_at_zero_bounds_every_minimiser() {
        with_solvable(choices(Arc::new(Logistic), 10, 1.0, 0.01), |solvable| {
            assert_close(solvable.value_at_zero(), 2.0_f64.ln());
            assert_close(solvable.greatest_norm(), (2.0 * 2.0_f64.ln() / 0.01).sqrt());
        });
        // (0 - y)² for |y| up to 3; a ball that does not bind.
        let mut squared = choices(Arc::new(Squared::new(3.0).unwrap()), 10, 1.0, 1.0);
        squared.radius = Some(100.0);
        with_solvable(squared, |solvable| {
            assert_close(solvable.value_at_zero(), 9.0);
            assert_close(solvable.greatest_norm(), 18.0_f64.sqrt());
        });
    }

    #[test]
    fn losses_whose_sum_overflows_are_refused() {
        // A loss is h/4 + 1/2 at zero.
        let spec = |h, n| {
            let loss = Arc::new(HuberHinge::new(h).unwrap());
            Spec::new(choices(loss, n, 1.0, 1.0))
        };
        spec(1e306, 100).unwrap();
        let refused = spec(1e306, 1000).unwrap_err();
        assert!(matches!(refused, Error::OutOfRange { .. }), "{refused}");
    }

    #[test]
    fn only_what_always_converges_may_be_pulled_far_out() {
        let pulled = |radius, l2_strength| {
            let mut c = choices(Arc::new(HuberHinge::new(0.5).unwrap()), 100, 1.0, l2_strength);
            (c.perturbation, c.radius) = (Perturbation::Objective, radius);
            c.budget = Budget::Zcdp { rho: 500.0 };
            Spec::new(c)
        };
        // κ is 10¹⁰.
        pulled(None, 1e-10).unwrap();
        let refused = pulled(Some(1e3), 1e-10).unwrap_err();
        assert!(matches!(refused, Error::IllConditioned { .. }), "{refused}");
        pulled(Some(1e3), 1.1e-8).unwrap();
    }

    #[test]
    fn the_least_ridge_that_is_named_is_the_least() {
        let spec = |l2_strength| {
            let loss = Arc::new(HuberHinge::new(0.5).unwrap());
            Spec::new(Choices {
                radius: Some(1e3),
                perturbation: Perturbation::Objective,
                budget: Budget::Zcdp { rho: 500.0 },
                ..choices(loss, 100, 1.0, l2_strength)
            })
        };
        let Err(Error::IllConditioned { least, .. }) = spec(1e-10) else {
            panic!("κ is 10¹⁰");
        };
        spec(least * (1.0 + 1e-12)).unwrap();
        assert!(spec(least * (1.0 - 1e-10)).is_err());
    }

    #[test]
    fn a_tolerance_is_eight_times_what_rounding_leaves() {
        with_solvable(choices(Arc::new(Logistic), 10, 1.0, 1.0), |solvable| {
            solvable.check_digits(1e-9, 8.0 * 1e-9).unwrap();
            let refused = solvable.check_digits(1e-9, 7.99 * 1e-9).unwrap_err();
            let Error::TooFewDigits { least, .. } = refused else {
                panic!("{refused}")
            };
            assert_close(least, 8e-9);
        });
    }
}
