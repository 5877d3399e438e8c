//! Repeated simulated releases for studies and audits, and exact privacy losses. Never private: seeded noise, or none.

mod audit;
mod ex_post;
mod intervals;
mod lanes;
mod population;
mod replicates;
mod tuning;
mod utility;
mod weights;

pub use audit::{
    functional_width, release_width, report_width, simulate_functional_mechanism,
    simulate_histograms, simulate_releases, simulate_reports, simulate_seals,
};
pub use ex_post::ex_post_losses;
pub use intervals::Outcome;
pub use replicates::{GROUP, Study};
pub use tuning::{simulate_losses, simulate_tunings};
pub use utility::{Anchor, Center, Metric, Smoothed, Utility};
pub use weights::Resampler;

#[cfg(test)]
mod tests;
