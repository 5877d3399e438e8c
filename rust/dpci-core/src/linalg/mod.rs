//! Dense linear algebra: the only place that names the linear-algebra crate.
//!
//! Symmetric matrices are full, row-major `dim × dim` slices; symmetry makes the storage order irrelevant.

mod gram;
mod lanes;
mod multi_gram;
mod symmetric;
pub mod vector;

pub use gram::{GramAccumulator, PackedBlock, weighted_gram};
pub use lanes::{LANES, Lane, LaneRows, SparseRow, lanes_accumulate, lanes_predict};
pub use multi_gram::{MultiGram, SETS};
pub use symmetric::{Cholesky, Eigen, add_diagonal, project_eigenvalues};
