//! Every public choice, validated and resolved into noise laws, costs and seals before any data are seen: numbers only.

mod calibrate;
mod choices;
mod claim;
mod distances;
mod domain;
mod fit;
mod functional;
mod grid;
mod histogram;
mod matrix_budget;
mod matrix_noise;
mod moment_checks;
mod moment_matrix;
mod moments;
mod plan;
mod refinement;
mod report;
mod residual_levels;
mod residual_moments;
mod scales;
mod score;
mod seal;
mod shares;
mod slope;
mod solvable;
mod step;
#[cfg(test)]
pub(crate) mod testing;
mod tuning;

pub use calibrate::step_cost;
pub use choices::{Choices, Moments, NoiseKind, Projection, Variant};
pub(crate) use claim::check_row_norm;
pub use claim::{Claim, HessianBound};
pub use distances::check_excess;
pub(crate) use distances::greatest_rows;
pub(crate) use domain::{ROUNDING_ROOM, least_row_norm};
pub use fit::Spec;
pub use functional::{FunctionalChoices, FunctionalSpec};
pub use grid::{Axis, Grid};
pub use histogram::HistogramSpec;
pub(crate) use histogram::MOST_RECORDS;
pub use matrix_budget::MatrixBudget;
pub use matrix_noise::{clear_of_noise, sealed_std_dev};
pub use moment_matrix::{MomentMatrixChoices, MomentMatrixSpec};
pub use moments::{MatrixNoise, MomentNoise};
pub use plan::Plan;
pub use refinement::GradientNoise;
pub use report::{ReportSpec, check_shares};
pub use residual_levels::{LevelCap, LevelNoise};
pub use residual_moments::{ResidualNoise, ResidualPlan};
pub use scales::check_bounds;
#[cfg(test)]
pub(crate) use score::Score;
pub(crate) use score::{GREATEST_STEPS, check_predictor, choice_lattice, whole};
pub(crate) use seal::LatticeNoise;
pub use seal::{Part, Seal};
pub use step::{Query, Step};
pub(crate) use tuning::{Procedure, check_common};
pub use tuning::{ScoreStep, TuningMethod, TuningSpec};

#[cfg(test)]
mod tests;
