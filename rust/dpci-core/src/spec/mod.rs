//! Every public choice, validated and resolved into noise laws, costs and seals before any data are seen: numbers only.

mod bounds;
mod counts;
mod fit;
mod functional;
mod histogram;
mod levels;
mod moment_matrix;
mod newton;
mod report;
mod seal;
mod step;
mod terms;
#[cfg(test)]
pub(crate) mod testing;
mod tuning;

pub use bounds::{BoundsSpec, ColumnRange};
pub(crate) use bounds::{PublicPoints, Stage, points_of};
pub(crate) use counts::CountLaw;
pub use counts::{Counted, CountsSpec};
pub use fit::{
    Choices, MatrixNoise, MomentNoise, Moments, NoiseKind, Plan, Projection, Spec, Variant, check_bounds, check_excess,
    step_cost,
};
pub(crate) use fit::{ROUNDING_ROOM, greatest_rows, least_row_norm};
pub use functional::{FunctionalChoices, FunctionalSpec};
pub(crate) use histogram::MOST_RECORDS;
pub use histogram::{Axis, Grid, HistogramSpec};
pub use levels::LevelsSpec;
pub use moment_matrix::{
    LevelCap, MatrixBudget, MomentMatrixChoices, MomentMatrixSpec, ResidualPlan, clear_of_noise, sealed_std_dev,
};
pub(crate) use newton::{At, EARLIER_STEPS, LastPoint, NormCounts, Quantile};
pub use newton::{NewtonChoices, NewtonSpec, NormBounds, PlannedMoments};
pub(crate) use report::check_row_norm;
pub use report::{Claim, HessianBound, ReportSpec, check_shares};
pub(crate) use seal::LatticeNoise;
pub use seal::{Part, Seal};
pub use step::{Planned, Query, Step};
pub use terms::Terms;
#[cfg(test)]
pub(crate) use tuning::Score;
pub(crate) use tuning::{GREATEST_STEPS, Procedure, check_common, check_predictor, choice_lattice, whole};
pub use tuning::{ScoreStep, TuningMethod, TuningSpec};

#[cfg(test)]
mod tests;
