//! The only place where data meets noise: every release, and the seal that every released value passes.

mod bounds;
mod coefficients;
mod counts;
mod fit;
mod functional;
mod gate;
mod histogram;
mod levels;
mod moment_matrix;
mod moments;
mod newton;
mod projection;
mod report;
mod row_facts;
pub mod seal;
mod selection;
mod tuning;

pub use bounds::{ColumnCounts, CountedColumns, count_cells, release_bounds, release_counted_bounds};
pub use coefficients::release_coefficients;
pub(crate) use coefficients::{draw_coefficient_noise, linear_term, moment_point, release_minimum, solver_options};
pub use counts::release_counts;
pub(crate) use fit::release_from_coefficients;
pub use fit::{Fit, Release, project_release, release, release_fit};
pub use functional::release_functional_mechanism;
pub use gate::{Gate, Sealing, Simulated, Simulating};
pub use histogram::{CellRegression, fit_histogram, release_histogram};
pub use levels::{release_kept, release_levels};
pub use moment_matrix::{
    MomentMatrixRelease, PlannedGradient, ResidualGradient, ResidualMoments, planned_steps, release_moment_matrix,
};
pub(crate) use newton::check_newton_design;
pub use newton::{NewtonRelease, Perturbed, last_edge, release_newton};
pub use report::{ReportRelease, release_report};
pub(crate) use row_facts::check_design;
pub use seal::{Sealed, Values};
pub(crate) use selection::mean_loss;
pub(crate) use tuning::release_model;
pub use tuning::{Selected, release_tuning};

#[cfg(test)]
mod tests;
