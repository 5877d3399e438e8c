//! The seal at any distance, cost and values: what leaves lies on the public lattice, or nothing leaves.

use arbitrary::Arbitrary;
use dpci_core::mechanism::Values;
use dpci_core::noise::{DiscreteGaussian, DiscreteLaplace, SimulationGenerator};
use dpci_core::privacy::Cost;
use dpci_core::spec::{Part, Seal};

use crate::number::{Number, plain};

/// A seal and what passes it.
#[derive(Debug, Arbitrary)]
pub struct Input {
    dim: u8,
    distance: Number,
    pure: bool,
    cost: Number,
    values: Vec<Number>,
    scale: u64,
    seed: u64,
}

/// Seals, and draws integers of any scale.
///
/// # Panics
/// If a sealed value is no multiple of the lattice, or not finite.
pub fn run(input: Input) {
    let mut generator = SimulationGenerator::new(input.seed, 2);
    if let Ok(law) = DiscreteLaplace::new(input.scale) {
        let _ = law.sample(&mut generator);
    }
    if let Ok(law) = DiscreteGaussian::new(input.scale) {
        let _ = law.sample(&mut generator);
    }
    let cost = input.cost.0;
    // Costs are shares of a budget, which is finite and positive.
    if !(cost > 0.0 && cost.is_finite()) {
        return;
    }
    let cost = if input.pure {
        Cost::Epsilon(cost)
    } else {
        Cost::Rho(cost)
    };
    let Ok(seal) = Seal::new(Part::Values, usize::from(input.dim), input.distance.0, cost) else {
        return;
    };
    let Ok(sealed) = seal.release(&plain(&input.values), &mut generator) else {
        return;
    };
    assert_eq!(sealed.values().len(), usize::from(input.dim));
    for value in sealed.values() {
        let steps = value / seal.lattice();
        assert!(
            value.is_finite() && steps == steps.round(),
            "{value:e} on {:e}",
            seal.lattice()
        );
    }
}
