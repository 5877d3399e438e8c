//! Dense linear algebra: the only place that names the linear-algebra crate.
//!
//! Symmetric matrices are full, row-major `dim × dim` slices; symmetry makes the storage order irrelevant.

#[macro_use]
mod wide_loop;

mod arch;
mod coded;
mod coded_gram;
mod compensated;
mod doubled;
mod doubled_cholesky;
mod doubled_exp;
mod doubled_rows;
mod gram;
mod lane_series;
mod lane_tiles;
mod lanes;
mod multi_gram;
mod number;
mod packed;
mod packed_lanes;
mod place;
mod predict;
mod single_lanes;
mod symmetric;
pub mod vector;

use crate::error::check;
pub use arch::{arch, instruction_set};
#[cfg(test)]
pub(crate) use arch::{architectures, with_arch};
pub use coded::{Category, Field, Layout};
pub use coded_gram::CodedBlock;
pub use compensated::{CompensatedSum, GRADIENT_ROUNDINGS, sum_rounding};
pub use doubled::{DOUBLED_EPSILON, Doubled, two_product, two_sum};
pub use doubled_cholesky::DoubledCholesky;
pub use doubled_exp::{doubled_exp, doubled_exp_ratio, doubled_sigmoid};
pub use doubled_rows::{doubled_accumulate, doubled_predict};
pub use gram::{GRAM_ROUNDINGS, GramAccumulator, weighted_gram};
pub use lane_series::{lanes_series, lanes_sigmoid_rates, single_series};
pub use lanes::{
    LANES, Lane, LaneRows, SparseRow, lanes_accumulate, lanes_of_bytes, lanes_outer, lanes_predict, lanes_product,
    lanes_scale, lanes_spread, lanes_weigh_moments,
};
pub use multi_gram::{MultiGram, Precision};
pub use packed::PackedBlock;
pub use place::{Run, clip_rows, one_entry, one_within, place_rows};
pub use predict::{rows_times_vector, scaled_rows_times_vector, sparse_times_vector};
pub use single_lanes::{SingleLane, single_accumulate, single_add, single_count, single_of, single_predict};
/// Largest dimension of a square matrix that is ever allocated: 2 GiB for one.
pub const MAX_MATRIX_DIM: usize = 1 << 14;

/// Refuses a matrix that could exhaust memory, which would end the process.
pub fn check_matrix_dim(dim: usize) -> crate::Result<()> {
    check(
        dim <= MAX_MATRIX_DIM,
        "the number of parameters of a matrix",
        "at most 16384 (moments=\"none\" releases no matrices)",
        dim as f64,
    )
}

pub use symmetric::{
    Cholesky, Eigen, add_diagonal, identity, product_transposed, project_eigenvalues, solve_positive_part,
    solve_square, times, transposed,
};
