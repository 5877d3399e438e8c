//! Which losses are likelihoods.

use super::*;

#[test]
fn likelihoods_are_the_losses_whose_exponential_is_a_density() {
    let names: Vec<&str> = examples()
        .iter()
        .filter(|loss| loss.is_likelihood())
        .filter_map(|loss| Some(loss.identity()?.0))
        .collect();
    let expected = [
        "logistic",
        "soft_logistic",
        "squared",
        "squared",
        "poisson",
        "poisson",
        "negative_binomial",
        "negative_binomial",
        "probit",
        "cloglog",
    ];
    assert_eq!(names, expected);
}
