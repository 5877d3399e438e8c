//! Dense linear algebra: the only place that names the linear-algebra crate.
//!
//! Symmetric matrices are full, row-major `dim × dim` slices; symmetry makes the storage order irrelevant.

mod gram;
mod symmetric;
pub mod vector;

pub use gram::{GramAccumulator, PackedBlock, weighted_gram};
pub use symmetric::{Cholesky, Eigen, add_diagonal, project_eigenvalues};
