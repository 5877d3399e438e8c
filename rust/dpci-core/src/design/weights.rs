//! Weights of rows, held to their public bound and divided by it: shares of at most 1, as the rows of a person have.

use super::{Design, OnViolation};
use crate::error::check_length;
use crate::unit::Weighting;
use crate::{Error, Result};

/// How much each row counts.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    /// The public bound.
    bound: f64,
    /// The weights over it; those of persons' rows are among the shares of persons.
    shares: Vec<f64>,
}

impl Weights {
    /// Weights of at most 1 each.
    pub(super) fn of_shares(shares: Vec<f64>) -> Self {
        Self { bound: 1.0, shares }
    }

    /// Multiplies the weights of rows.
    pub(super) fn scale(&mut self, factors: &[f64]) {
        for (share, factor) in self.shares.iter_mut().zip(factors) {
            *share *= factor;
        }
    }

    /// The weights, which from here on are among the shares of persons.
    pub(super) fn take_shares(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.shares)
    }

    /// Weights of some rows; the shares of persons are with the persons.
    pub(super) fn subset(&self, rows: &[usize]) -> Self {
        let shares = if self.shares.is_empty() {
            Vec::new()
        } else {
            rows.iter().map(|&i| self.shares[i]).collect()
        };
        Self {
            bound: self.bound,
            shares,
        }
    }
}

impl Design<'_> {
    /// The same rows with weights, one for each, which the public bound divides. The share of a person's row is multiplied by it. With
    /// [`OnViolation::Clip`] greater weights are lowered to the bound.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Weight`] for a weight that is negative, NaN or above the bound; [`Error::Unsupported`] where equal
    /// records were merged or rows have weights already.
    pub fn weighted(mut self, weights: &[f64], weighting: Weighting) -> Result<Self> {
        check_length("weights", self.n_rows(), weights.len())?;
        if self.multiplicities.is_some() || self.has_weights() {
            return Err(Error::Unsupported(
                "weights must be set before rows are merged or weighted, got merged or weighted rows".into(),
            ));
        }
        let bound = weighting.bound;
        let clips = self.bounds.on_violation.moves_targets();
        let share = |(row, &value): (usize, &f64)| {
            let is_weight = (0.0..f64::INFINITY).contains(&value);
            if !is_weight || (value > bound && !clips) {
                return Err(Error::Weight { row, value, bound });
            }
            // A quotient of numbers in order is at most 1, however it is rounded.
            Ok(value.min(bound) / bound)
        };
        let mut shares: Vec<f64> = weights.iter().enumerate().map(share).collect::<Result<_>>()?;
        // Of rows beyond their bounds.
        if let Some(own) = self.weights.take() {
            own.shares
                .iter()
                .zip(&mut shares)
                .for_each(|(own, share)| *share *= own);
        }
        self.weights = Some(if let Some(persons) = &mut self.persons {
            persons.scale(&shares);
            Weights {
                bound,
                shares: Vec::new(),
            }
        } else {
            Weights { bound, shares }
        });
        Ok(self)
    }

    /// Whether a caller has set weights.
    pub(super) fn has_weights(&self) -> bool {
        self.weights.is_some() && self.bounds.on_violation != OnViolation::Weight
    }

    /// The bound by which the weights were divided; `None` without weights.
    pub fn weight_bound(&self) -> Option<f64> {
        self.weights.as_ref().map(|weights| weights.bound)
    }

    /// How much each row counts, at most 1, and those of a person together; `None`: one each, or as its multiplicity says.
    pub fn shares(&self) -> Option<&[f64]> {
        match (&self.persons, &self.weights) {
            (Some(persons), _) => Some(persons.shares()),
            (None, Some(weights)) => Some(&weights.shares),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::design::{Persons, RowBounds, Rows};
    use crate::exec::Executor;
    use crate::loss::Targets;
    use crate::row_domain::RowDomain;
    use crate::unit::Unit;

    const ROWS: [f64; 4] = [0.1, 0.2, 0.3, 0.4];

    fn design(on_violation: OnViolation) -> Design<'static> {
        let cancel = AtomicBool::new(false);
        let bounds = RowBounds {
            rows: RowDomain::Ball(1.0),
            targets: Targets::Signs,
            on_violation,
        };
        let exec = Executor::sequential(&cancel);
        Design::new(Rows::dense(&ROWS, 1), &[1.0; 4], None, &bounds, &exec).unwrap()
    }

    fn weighting(bound: f64) -> Weighting {
        Weighting::new(bound, 100.0).unwrap()
    }

    #[test]
    fn weights_are_shares_of_their_bound() {
        let found = design(OnViolation::Error).weighted(&[0.0, 1.0, 3.0, 4.0], weighting(4.0));
        let found = found.unwrap();
        assert_eq!(found.shares(), Some(&[0.0, 0.25, 0.75, 1.0][..]));
        assert_eq!(found.weight_bound(), Some(4.0));
        assert!(found.clone().weighted(&[1.0; 4], weighting(4.0)).is_err());
        assert!(found.check_rows_are_records("this").is_err());
    }

    #[test]
    fn no_share_exceeds_one_however_it_is_rounded() {
        for k in 1..2000 {
            let bound = 1.0 + f64::from(k) * 1e-3;
            let below = bound.next_down();
            let found = design(OnViolation::Clip)
                .weighted(&[bound, below, 2.0 * bound, f64::MAX], weighting(bound))
                .unwrap();
            assert!(found.shares().unwrap().iter().all(|share| *share <= 1.0));
        }
    }

    #[test]
    fn what_is_no_weight_is_refused() {
        for (bad, clip_serves) in [(5.0, true), (-1e-300, false), (f64::NAN, false), (f64::INFINITY, false)] {
            for (rule, serves) in [(OnViolation::Error, false), (OnViolation::Clip, clip_serves)] {
                let found = design(rule).weighted(&[1.0, bad, 1.0, 1.0], weighting(4.0));
                assert_eq!(found.is_ok(), serves, "{bad} {rule:?}");
            }
        }
        let refused = design(OnViolation::Error).weighted(&[1.0; 3], weighting(4.0));
        assert!(matches!(refused, Err(Error::Length { .. })));
    }

    #[test]
    fn rows_of_persons_weigh_less_by_their_weights() {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let persons = Persons::new(&[1, 0, 1, 1], Unit::persons(None).unwrap(), &exec).unwrap();
        let found = design(OnViolation::Error).of_persons(persons).unwrap();
        let found = found.weighted(&[4.0, 2.0, 1.0, 0.0], weighting(4.0)).unwrap();
        let third = 1.0 / 3.0;
        assert_eq!(found.shares(), Some(&[third, 0.5, 0.25 * third, 0.0][..]));
        assert_eq!(found.owned().shares(), found.shares());
        assert_eq!(found.owned().weight_bound(), Some(4.0));
    }
}
