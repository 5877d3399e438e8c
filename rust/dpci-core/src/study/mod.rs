//! Repeated simulated releases for studies and audits. Never private: the noise is seeded.

mod audit;
mod intervals;
mod lanes;
mod population;
mod replicates;
mod utility;
mod weights;

pub use audit::{release_width, simulate_releases};
pub use replicates::{GROUP, Outcome, Study};
pub use utility::{Anchor, Center, Metric, Smoothed, Utility};
pub use weights::Resampler;

#[cfg(test)]
mod tests;
