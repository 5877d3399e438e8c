//! Facts that a calibration assumes about the rows, and the refusal of other rows.

use crate::design::OnViolation;
use crate::error::check_length;
use crate::loss::Targets;
use crate::privacy::Neighbors;
use crate::records::Records;
use crate::row_domain::RowDomain;
use crate::spec::{Spec, Terms, check_excess, greatest_rows};
use crate::unit::Unit;
use crate::{Error, Result};

/// Refuses rows of another shape than the calibration assumes, or checked against other bounds.
pub(crate) fn check_design(spec: &Spec, records: &dyn Records) -> Result<()> {
    let choices = spec.choices();
    check_rows(
        records,
        &RowFacts {
            n_params: spec.n_params() / choices.loss.n_predictors(),
            terms: choices.terms,
            rows: choices.rows.clone(),
            targets: choices.loss.targets(),
            intercept: choices.intercept,
            weighs_rows: false,
        },
    )
}

/// Facts that a calibration assumes about the rows.
pub(super) struct RowFacts {
    pub(super) n_params: usize,
    pub(super) terms: Terms,
    pub(super) rows: RowDomain,
    pub(super) targets: Targets,
    pub(super) intercept: Option<f64>,
    /// Whether the mechanism itself weighs rows that are too long.
    pub(super) weighs_rows: bool,
}

/// Refuses rows for which the assumptions do not hold.
pub(super) fn check_rows(records: &dyn Records, facts: &RowFacts) -> Result<()> {
    check_length("each row of X", facts.n_params, records.n_params())?;
    let terms = &facts.terms;
    check_records(records, terms.unit, terms.weight_bound())?;
    let bounds = records.bounds();
    let same_intercept = facts.intercept.map(f64::to_bits) == records.intercept().map(f64::to_bits);
    if !facts.rows.contains(&bounds.rows) || bounds.targets != facts.targets || !same_intercept {
        return Err(Error::Unsupported(format!(
            "rows must be checked against the bounds of the mechanism, {}, got {}",
            describe_bounds(&facts.rows, facts.intercept, facts.targets),
            describe_bounds(&bounds.rows, records.intercept(), bounds.targets)
        )));
    }
    check_far_rows(bounds.on_violation, facts)?;
    let n = terms.n_samples as f64;
    check_excess(n, terms.neighbors, records.n_records() as f64)?;
    let greatest = greatest_rows(n, terms.neighbors, terms.unit);
    if terms.unit != Unit::Row && records.n_rows() > greatest {
        return Err(Error::TooManyRows {
            greatest,
            got: records.n_rows(),
        });
    }
    if terms.neighbors == Neighbors::ReplaceOne {
        check_length("X", terms.n_samples, records.n_records())?;
    }
    Ok(())
}

/// Refuses rows that may lie beyond their bounds, unless the mechanism counts on their weights, or weighs them itself.
fn check_far_rows(on_violation: OnViolation, facts: &RowFacts) -> Result<()> {
    let far = facts.terms.has_far_rows();
    let is_right = match on_violation {
        OnViolation::Error | OnViolation::Clip => !far,
        OnViolation::Weight => far,
        OnViolation::Keep => facts.weighs_rows,
    };
    if is_right {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "rows beyond their bounds must be treated as the mechanism expects, {}, got {on_violation:?}",
        if far { "Weight" } else { "Error or Clip" }
    )))
}

/// Refuses another unit of privacy than the calibration assumes, and weights with another bound.
pub(super) fn check_records(records: &dyn Records, unit: Unit, weight_bound: Option<f64>) -> Result<()> {
    if records.unit() != unit {
        return Err(Error::Unsupported(format!(
            "the data must have the unit of privacy of the mechanism, {unit}, got {}",
            records.unit()
        )));
    }
    if records.weight_bound().map(f64::to_bits) != weight_bound.map(f64::to_bits) {
        return Err(Error::Unsupported(format!(
            "the data must have the weights of the mechanism, {}, got {}",
            describe_weights(weight_bound),
            describe_weights(records.weight_bound())
        )));
    }
    Ok(())
}

/// A bound on weights in words.
fn describe_weights(bound: Option<f64>) -> String {
    bound.map_or("no weights".into(), |bound| format!("weight_bound={bound}"))
}

/// Bounds on rows and targets in words.
fn describe_bounds(rows: &RowDomain, intercept: Option<f64>, targets: Targets) -> String {
    let intercept = intercept.map_or("none".into(), |constant| constant.to_string());
    format!("row_norm={rows}, intercept {intercept} and targets {targets}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_told_apart_in_words() {
        let targets = Targets::Interval {
            lower: -2.0,
            upper: 2.0,
        };
        assert_eq!(
            describe_bounds(&RowDomain::Ball(1.0), Some(0.5), targets),
            "row_norm=1, intercept 0.5 and targets [-2, 2]"
        );
        assert_eq!(
            describe_bounds(&RowDomain::Ball(1.5), None, Targets::Signs),
            "row_norm=1.5, intercept none and targets two classes"
        );
    }
}
