//! Differentially private empirical risk minimisation that releases confidence intervals with its parameters.
//!
//! Read in this order: [`design`] holds the rows, [`loss`] the losses, [`records`] the sums over the rows, here or elsewhere, [`objective`] the (perturbed) empirical risk and
//! [`solver`] its minimisers; [`moments`] the Hessian and gradient covariance; [`noise`] the distributions, [`privacy`] the
//! budgets, sensitivities and calibrations; [`spec`] resolves public choices into laws and costs; [`mechanism`] is the only place where data meets noise; [`interval`] turns
//! released values into confidence intervals, [`per_instance`] into bounds on the privacy loss of a record. [`study`] repeats simulated releases and is never private.
//!
//! For other crates: `examples/fit.rs` goes from public choices to intervals, by [`privacy::Budget`], [`spec::Spec`], [`design::Design`],
//! [`mechanism::release_fit`] and [`interval`]. These names are meant to stay; all others may change with any version, and until 1.0 these
//! may too, with a line in the changelog. Every release needs a [`noise::ReleaseGenerator`] of its own: a
//! [`noise::SimulationGenerator`] has a seed, and what it makes is not private.

/// An enum whose variants have names, as records and messages write them.
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $Enum:ident {
            $($(#[$note:meta])* $Variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Enum {
            $($(#[$note])* $Variant,)*
        }

        impl $Enum {
            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

pub mod bugs;
pub mod design;
pub mod erm;
pub mod error;
pub mod exec;
pub mod interval;
pub mod linalg;
pub mod loss;
pub mod mechanism;
pub mod moments;
pub mod noise;
pub mod objective;
pub mod per_instance;
pub mod privacy;
pub mod records;
pub mod refusals;
pub mod row_domain;
pub mod solver;
pub mod spec;
pub mod study;
pub mod unit;

pub use error::{Error, Result};
