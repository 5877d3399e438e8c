//! The only place where data meets noise: every release, and the seal that every released value passes.

mod calibrate;
mod coefficients;
mod costs;
mod domain;
mod fit;
mod functional;
mod histogram;
mod moment_checks;
mod moment_noise;
mod moments;
mod per_instance;
mod plan;
mod projection;
mod scale_slope;
mod scales;
pub mod seal;
mod sealing;
mod selection;
mod solvable;
mod spec;
mod tuning;
mod tuning_spec;

pub use coefficients::release_coefficients;
pub(crate) use coefficients::{
    linear_term, simulate_coefficient_noise, simulate_coefficients, solver_options,
};
pub use costs::{Cost, Step};
pub use fit::{Fit, Release, project_release, release, release_fit, simulate_release};
pub(crate) use fit::{check_design, margin_radius};
pub use functional::{FunctionalChoices, FunctionalSpec, release_functional_mechanism};
pub use histogram::{CellRegression, HistogramSpec, fit_histogram, release_histogram};
pub use moment_noise::{MatrixNoise, MomentNoise, NoiseFamily};
pub use moments::release_moments;
pub(crate) use moments::simulate_moments;
pub use per_instance::{ReportRelease, ReportSpec, release_report};
pub use plan::Plan;
pub use projection::Projection;
pub(crate) use selection::{check_predictor, mean_loss};
pub use spec::{Choices, Moments, NoiseKind, Spec, Variant};
pub(crate) use tuning::release_model;
pub use tuning::{Selected, release_tuning};
pub(crate) use tuning_spec::check_common;
pub use tuning_spec::{Method, ScoreStep, TuningSpec};

#[cfg(test)]
mod tests;
