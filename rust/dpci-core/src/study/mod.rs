//! Repeated simulated releases for studies and audits, and exact privacy losses. Never private: seeded noise, or none.

mod audit;
mod counts;
mod ex_post;
mod expected;
mod intervals;
mod lane_sums;
mod newton;
mod population;
mod replicates;
mod rough_sums;
mod tuning;
mod utility;
mod weights;

pub use audit::{Repeated, Run, simulate, simulate_seals};
pub use ex_post::ex_post_losses;
pub use expected::{Reference, expected_lengths};
pub use intervals::Outcome;
pub use replicates::{GROUP, Study, StudySpec};
pub use tuning::simulate_losses;
pub use utility::{Anchor, Center, Metric, Smoothed, Utility};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod counted_tests;

#[cfg(test)]
mod newton_tests;

#[cfg(test)]
mod rough_tests;
