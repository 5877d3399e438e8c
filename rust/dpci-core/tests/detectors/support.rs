//! Tests of single numbers: which can be released at all, and whether two releases are the same.

use dpci_core::interval::Perturbation;
use dpci_core::privacy::Budget;

use super::Finding;
use super::setting::{choices, private_release};

pub(crate) fn findings() -> Vec<Finding> {
    Vec::new()
}

/// Two releases of the same data by the generator of releases: that noise comes twice has a probability below 2⁻⁵⁰.
pub(crate) fn repeats() -> Vec<Finding> {
    let choices = choices(1, Budget::pure(1.0).unwrap(), Perturbation::Objective);
    let [first, second] = [0, 1].map(|_| private_release(&choices, &[1.0]));
    let finding = format!("two releases of {first:?}");
    (first == second).then_some(finding).into_iter().collect()
}
