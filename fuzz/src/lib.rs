//! Targets of fuzzing: whatever the bytes say, the core answers with a sound value or an error.

pub mod fit;
pub mod intervals;
pub mod number;
pub mod privacy;
pub mod rows;
pub mod samplers;
pub mod seal;
