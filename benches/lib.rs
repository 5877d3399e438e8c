//! Criterion benchmarks of the core live in `core.rs`; Python benchmarks beside it.
