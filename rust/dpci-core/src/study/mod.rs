//! Repeated simulated releases for studies and audits. Never private: the noise is seeded.

mod audit;

pub use audit::{release_width, simulate_releases};
