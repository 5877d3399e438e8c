//! Differentially private empirical risk minimisation that releases confidence intervals with its parameters.
//!
//! Read in this order: [`design`] holds the rows, [`loss`] the losses, [`records`] the sums over the rows, here or elsewhere, [`objective`] the (perturbed) empirical risk and
//! [`solver`] its minimisers; [`moments`] the Hessian and gradient covariance; [`noise`] the distributions, [`privacy`] the
//! budgets, sensitivities and calibrations; [`spec`] resolves public choices into laws and costs; [`mechanism`] is the only place where data meets noise; [`interval`] turns
//! released values into confidence intervals, [`per_instance`] into bounds on the privacy loss of a record. [`study`] repeats simulated releases and is never private.
//!
//! For other crates: the names at the top of this crate are its public interface. `examples/fit.rs` goes with them from public choices
//! to intervals: a [`Budget`], [`Choices`] and a [`Spec`]; a [`Design`] of checked rows; [`release_fit`]; an [`ErrorLaw`] and [`half_width`]. Until 1.0 a
//! version may change them, with a line in the changelog. The modules are private; the feature `internals` opens them to the bindings,
//! benchmarks and fuzz targets of this repository, and nothing in them is meant to stay. Every release needs a [`ReleaseGenerator`] of its own.
#![cfg_attr(
    not(feature = "internals"),
    // What only the bindings ask for is unused here, and documented links into the modules lead nowhere.
    allow(dead_code, unreachable_pub, unused_imports, rustdoc::private_intra_doc_links)
)]

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

/// Methods that say one value each, as a table.
macro_rules! getters {
    ($self:ident => $($(#[$about:meta])* $vis:vis $name:ident: $Type:ty = $value:expr;)*) => {
        $(
            $(#[$about])*
            $vis fn $name(&$self) -> $Type {
                $value
            }
        )*
    };
}

// Each twice and not by a macro, through which rustfmt would not find the files.
#[cfg(not(feature = "internals"))]
mod bugs;
#[cfg(feature = "internals")]
pub mod bugs;
#[cfg(not(feature = "internals"))]
mod design;
#[cfg(feature = "internals")]
pub mod design;
#[cfg(not(feature = "internals"))]
mod erm;
#[cfg(feature = "internals")]
pub mod erm;
#[cfg(not(feature = "internals"))]
mod error;
#[cfg(feature = "internals")]
pub mod error;
#[cfg(not(feature = "internals"))]
mod exec;
#[cfg(feature = "internals")]
pub mod exec;
#[cfg(not(feature = "internals"))]
mod interval;
#[cfg(feature = "internals")]
pub mod interval;
#[cfg(not(feature = "internals"))]
mod linalg;
#[cfg(feature = "internals")]
pub mod linalg;
#[cfg(not(feature = "internals"))]
mod loss;
#[cfg(feature = "internals")]
pub mod loss;
#[cfg(not(feature = "internals"))]
mod mechanism;
#[cfg(feature = "internals")]
pub mod mechanism;
#[cfg(not(feature = "internals"))]
mod moments;
#[cfg(feature = "internals")]
pub mod moments;
#[cfg(not(feature = "internals"))]
mod noise;
#[cfg(feature = "internals")]
pub mod noise;
#[cfg(not(feature = "internals"))]
mod objective;
#[cfg(feature = "internals")]
pub mod objective;
#[cfg(not(feature = "internals"))]
mod per_instance;
#[cfg(feature = "internals")]
pub mod per_instance;
#[cfg(not(feature = "internals"))]
mod privacy;
#[cfg(feature = "internals")]
pub mod privacy;
#[cfg(not(feature = "internals"))]
mod records;
#[cfg(feature = "internals")]
pub mod records;
#[cfg(not(feature = "internals"))]
mod refusals;
#[cfg(feature = "internals")]
pub mod refusals;
#[cfg(not(feature = "internals"))]
mod row_domain;
#[cfg(feature = "internals")]
pub mod row_domain;
#[cfg(not(feature = "internals"))]
mod solver;
#[cfg(feature = "internals")]
pub mod solver;
#[cfg(not(feature = "internals"))]
mod spec;
#[cfg(feature = "internals")]
pub mod spec;
#[cfg(not(feature = "internals"))]
mod study;
#[cfg(feature = "internals")]
pub mod study;
#[cfg(not(feature = "internals"))]
mod unit;
#[cfg(feature = "internals")]
pub mod unit;

pub use design::{Design, OnViolation, RowBounds, Rows};
pub use error::{Error, Result};
pub use exec::Executor;
pub use interval::{ErrorLaw, ErrorShape, half_width};
pub use loss::{
    CLogLog, Huber, HuberHinge, Logistic, Loss, NegativeBinomial, Poisson, Probit, Quantile, SmoothHinge, SoftLogistic,
    Squared, Targets,
};
pub use mechanism::{Fit, Sealed, Values, release_fit};
pub use noise::ReleaseGenerator;
pub use privacy::{Budget, Calibration, Neighbors, Perturbation};
pub use row_domain::RowDomain;
pub use spec::{Choices, Moments, Projection, Spec, Terms, Variant};
pub use unit::Unit;
