//! Where the usual way stalls: a continuation in λ, and behind it a method whose number of steps no data can raise.
//!
//! 1. Newton's method at `λ·4ᵏ` for k = K, ..., 0, each from the point of the last; loosely, but for the last. No proof: it is quick.
//! 2. The ellipsoid method from a ball that holds the minimiser. Every time it has made twice as many cuts, Newton's method tries again
//!    from its best centre; at the latest after [`greatest_cuts`] that centre is where Newton's method converges quadratically
//!    (docs/certificates.md, "Every data set").

use super::Unrounded;
use super::refine::{Progress, refine};
use super::risk::Risk;
use crate::linalg::vector;
use crate::objective::Objective;
use crate::solver::{self, Ellipsoid, Method, Options, Problem, greatest_cuts};
use crate::{Error, Result};

/// Ratio of one λ of the continuation to the next.
const RATIO: f64 = 4.0;

/// Certificates before the last λ, in terms of a bound on the minimiser.
const LOOSE: f64 = 1e-3;

/// Steps of Newton's method at one λ, and from one centre: from where it converges quadratically it needs fewer than twenty.
const STEPS: usize = 100;

/// The certified minimiser; `refused` where this finds none either.
pub(super) fn minimize(risk: &Risk<'_>, refused: Error, options: &Options, unrounded: bool) -> Result<Unrounded> {
    let newton = Options {
        method: Method::Newton,
        max_iterations: STEPS,
        ..*options
    };
    let search = Search {
        risk,
        options: newton,
        unrounded,
    };
    if !search.can_end()? {
        return Err(refused);
    }
    let start = search.continued()?;
    if let Some(found) = search.attempt(&start)? {
        return Ok(found);
    }
    search.by_cuts()?.ok_or(refused)
}

struct Search<'a> {
    risk: &'a Risk<'a>,
    options: Options,
    unrounded: bool,
}

impl Search<'_> {
    /// Whether rounding leaves room for the tolerance at every minimiser, and factors to the Hessians: no steps would help otherwise. Fits
    /// with other parameters are refused beforehand.
    fn can_end(&self) -> Result<bool> {
        let (risk, strength) = (self.risk, self.risk.strong_convexity());
        let norm = greatest_norm(risk)?;
        let rounded = if self.unrounded { 0.0 } else { norm };
        let floor = risk.doubled_rounding(norm) / strength + f64::EPSILON * rounded;
        let factorised = 10.0 * (risk.dim() as f64).powf(1.5) * f64::EPSILON;
        let condition = risk.steepness() / strength;
        Ok(2.0 * floor <= self.options.tolerance && factorised * condition <= 1.0)
    }

    /// Where the continuation ends.
    fn continued(&self) -> Result<Vec<f64>> {
        let objective = self.risk.objective;
        let mut params = vec![0.0; self.risk.dim()];
        let (mut strengths, mut strength) = (Vec::new(), objective.l2_strength);
        while strength < self.risk.steepness() {
            strength *= RATIO;
            strengths.push(strength);
        }
        for l2_strength in strengths.into_iter().rev() {
            let objective = Objective {
                l2_strength,
                ..*objective
            };
            let risk = Risk::new(&objective, None)?;
            let options = Options {
                tolerance: LOOSE * greatest_norm(&risk)?,
                ..self.options
            };
            params = match solver::attempt(&risk, &params, &options)? {
                Ok(minimum) => minimum.params,
                Err(stall) => stall.params,
            };
        }
        Ok(params)
    }

    /// Result of Newton's method from a point.
    fn attempt(&self, start: &[f64]) -> Result<Option<Unrounded>> {
        let stall = match solver::attempt(self.risk, start, &self.options)? {
            Ok(minimum) => return Ok(Some(Unrounded::whole(minimum))),
            Err(stall) => stall,
        };
        match refine(self.risk, stall, &self.options, self.unrounded, Progress::Energy) {
            Ok(found) => Ok(Some(found)),
            Err(Error::NotConverged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Result of the ellipsoid method.
    fn by_cuts(&self) -> Result<Option<Unrounded>> {
        let (risk, dim) = (self.risk, self.risk.dim());
        let radius = greatest_norm(risk)?;
        let target = risk.newton_reach().max(0.25 * self.options.tolerance);
        let condition = risk.steepness() / risk.strong_convexity();
        let greatest = greatest_cuts(dim, condition, radius, target).ceil();
        let mut ellipsoid = Ellipsoid::ball(dim, radius);
        let (mut best, mut least) = (ellipsoid.centre().to_vec(), f64::INFINITY);
        let (mut cuts, mut next) = (0.0, dim as f64);
        loop {
            let gradient = risk.value_and_gradient(ellipsoid.centre())?.1;
            let norm = vector::norm(&gradient);
            if norm < least {
                least = norm;
                best.copy_from_slice(ellipsoid.centre());
            }
            let last = cuts >= greatest || !(norm > 0.0);
            if last || cuts >= next {
                let found = self.attempt(&best)?;
                if found.is_some() || last {
                    return Ok(found);
                }
                next *= 2.0;
            }
            ellipsoid.cut(&gradient);
            cuts += 1.0;
        }
    }
}

/// No minimiser is longer: its objective is at most that of zero, and no loss with more digits is negative.
fn greatest_norm(risk: &Risk<'_>) -> Result<f64> {
    let strength = risk.strong_convexity();
    let pulled = risk.objective.linear_term.map_or(0.0, vector::norm_bound) / strength;
    let value = risk.value_and_gradient(&vec![0.0; risk.dim()])?.0;
    Ok((pulled + (pulled * pulled + 2.0 * value / strength).sqrt()) * (1.0 + 1e-9))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::design::{Design, OnViolation, RowBounds, Rows};
    use crate::erm::minimize_risk;
    use crate::exec::Executor;
    use crate::loss::{HuberHinge, Logistic, Loss, SmoothHinge, Targets};
    use crate::row_domain::RowDomain;

    /// A risk of twelve rows whose columns differ in size, pulled along both, and options.
    fn with_search(loss: &dyn Loss, test: impl FnOnce(&Search<'_>, &Objective<'_>, &Options)) {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let entry = |i: usize| (i as f64 * 0.73 + 1.0).sin() * [1.0, 1e-2][i % 2];
        let rows: Vec<f64> = (0..24).map(entry).collect();
        let targets: Vec<f64> = (0..12).map(|i| [1.0, -1.0, 1.0][i % 3]).collect();
        let bounds = RowBounds {
            rows: RowDomain::Ball(2.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Error,
        };
        let design = Design::new(Rows::dense(&rows, 2), &targets, None, &bounds, &exec).unwrap();
        let objective = Objective {
            records: &design,
            weights: None,
            loss,
            l2_strength: 1e-4,
            extra_convexity: 0.0,
            linear_term: Some(&[0.03, -0.05]),
            n_samples: 12.0,
            exec: &exec,
        };
        let options = Options {
            method: Method::Auto,
            tolerance: 1e-9,
            max_iterations: 200,
            radius: None,
        };
        let search = Search {
            risk: &Risk::new(&objective, None).unwrap(),
            options: Options {
                method: Method::Newton,
                max_iterations: STEPS,
                ..options
            },
            unrounded: false,
        };
        test(&search, &objective, &options);
    }

    fn losses() -> [Box<dyn Loss>; 3] {
        [
            Box::new(Logistic),
            Box::new(SmoothHinge::new(0.2).unwrap()),
            Box::new(HuberHinge::new(0.2).unwrap()),
        ]
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        let moved: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        vector::norm(&moved)
    }

    #[test]
    fn both_ways_end_where_the_usual_one_does() {
        for loss in losses() {
            with_search(&*loss, |search, objective, options| {
                let usual = minimize_risk(objective, None, options).unwrap().params;
                assert!(vector::norm(&usual) > 1.0);
                let cut = search.by_cuts().unwrap().unwrap().minimum;
                assert!(cut.certificate <= 1e-9 && distance(&usual, &cut.params) <= 2e-9);
                // The last λ but one is four times as great.
                let stronger = Objective {
                    l2_strength: RATIO * objective.l2_strength,
                    ..*objective
                };
                let expected = minimize_risk(&stronger, None, options).unwrap().params;
                let continued = search.continued().unwrap();
                let gap = distance(&expected, &continued);
                assert!(gap <= 0.01 * vector::norm(&expected), "{gap}");
                assert!(search.attempt(&continued).unwrap().is_some());
            });
        }
    }

    #[test]
    fn nothing_is_tried_where_rounding_decides() {
        with_search(&Logistic, |search, objective, _| {
            assert!(search.can_end().unwrap());
            let with = |options| Search { options, ..*search };
            let fine = with(Options {
                tolerance: 1e-14,
                ..search.options
            });
            assert!(!fine.can_end().unwrap());
            assert!(
                Search {
                    unrounded: true,
                    ..fine
                }
                .can_end()
                .unwrap()
            );
            let flat = Objective {
                l2_strength: 1e-16,
                ..*objective
            };
            let coarse = Options {
                tolerance: 1e30,
                ..search.options
            };
            let risk = &Risk::new(&flat, None).unwrap();
            assert!(!Search { risk, ..with(coarse) }.can_end().unwrap());
        });
    }

    #[test]
    fn cuts_alone_reach_where_newton_converges() {
        for loss in losses() {
            with_search(&*loss, |search, _, _| {
                let risk = search.risk;
                let (radius, target) = (greatest_norm(risk).unwrap(), risk.newton_reach().max(1e-6));
                let condition = risk.steepness() / risk.strong_convexity();
                let greatest = greatest_cuts(2, condition, radius, target);
                let mut ellipsoid = Ellipsoid::ball(2, radius);
                let mut cuts = 0.0;
                loop {
                    let gradient = risk.value_and_gradient(ellipsoid.centre()).unwrap().1;
                    if vector::norm(&gradient) <= risk.strong_convexity() * target {
                        break;
                    }
                    ellipsoid.cut(&gradient);
                    cuts += 1.0;
                    assert!(cuts <= greatest, "{greatest}");
                }
                // The bound is of the right size.
                assert!(20.0 * cuts > greatest, "{cuts} {greatest}");
            });
        }
    }

    #[test]
    fn from_half_its_reach_newton_squares_the_error() {
        for loss in [&losses()[0], &losses()[1]] {
            with_search(&**loss, |search, objective, options| {
                let reach = search.risk.newton_reach();
                assert!(reach > 0.0 && reach.is_finite());
                let mut start = minimize_risk(objective, None, options).unwrap().params;
                start[0] += 1e-3 * reach;
                let few = Search {
                    options: Options {
                        max_iterations: 8,
                        ..search.options
                    },
                    ..*search
                };
                assert!(few.attempt(&start).unwrap().is_some());
            });
        }
    }
}
