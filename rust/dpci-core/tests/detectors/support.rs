//! Tests of single numbers: which can be released at all, and whether two releases are the same.

use dpci_core::privacy::{Budget, Perturbation};
use dpci_core::spec::Spec;

use super::Finding;
use super::setting::{choices, private_release, releases};

const N_RUNS: usize = 2000;
const SEED: u64 = 92;

/// Released parameters whose minimiser is 1/λ or, for the neighbour, 0. No false alarm is possible: both findings are certain.
pub(crate) fn findings() -> Vec<Finding> {
    let choices = choices(1, Budget::pure(1.0).unwrap(), Perturbation::Output);
    let spec = Spec::new(choices.clone()).unwrap();
    let (lattice, minimum) = (spec.seal().lattice(), 1.0 / choices.l2_strength);
    let values: Vec<f64> = releases(&choices, &[0.0], N_RUNS, SEED)
        .iter()
        .map(|row| row[0])
        .collect();
    let off = values.iter().filter(|v| (*v / lattice).fract() != 0.0);
    let excluding = values.iter().filter(|v| excludes(**v, minimum));
    [
        (off.count(), "values off the public lattice"),
        (excluding.count(), "values that exclude the neighbour with certainty"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} of {N_RUNS} {what}"))
    .collect()
}

/// Whether no f64 noise added to `value` gives `output`: the sum of two numbers of which one nearly cancels the other is exact, so
/// nearer to zero than half the value it is a multiple of the last digit of a number of that size (Haney et al. 2022).
fn excludes(output: f64, value: f64) -> bool {
    let digit = (value.next_up() - value) / 2.0;
    2.0 * output.abs() < value && (output / digit).fract() != 0.0
}

/// Two releases of the same data by the generator of releases: noise and seal are both the same with a probability below 1e-6.
pub(crate) fn repeats() -> Vec<Finding> {
    let choices = choices(11, Budget::pure(1.0).unwrap(), Perturbation::Objective);
    let x: Vec<f64> = (0..11).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
    let [first, second] = [0, 1].map(|_| private_release(&choices, &x));
    let finding = format!("two releases begin with {}", first[0]);
    (first == second).then_some(finding).into_iter().collect()
}
