//! One error enum: a variant per broken rule, carrying the values that broke it.

use thiserror::Error;

/// A number without hundreds of zeros.
fn readable(value: f64) -> String {
    let plain = value == 0.0 || !value.is_finite() || (1e-4..1e16).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// A part of a budget in six digits: the last ones of a float are those of its computation.
pub(crate) fn part(value: f64) -> String {
    readable(format!("{value:.5e}").parse().unwrap_or(value))
}

/// A computed value in four digits.
fn short(value: f64) -> String {
    readable(format!("{value:.3e}").parse().unwrap_or(value))
}

/// A least value in four digits, rounded up so that what is shown is enough.
pub(crate) fn rounded_up(least: f64) -> String {
    let near = format!("{least:.3e}");
    let Some((digits, exponent)) = near.split_once('e') else {
        return readable(least); // infinite
    };
    let digits: u32 = digits.replace('.', "").parse().unwrap_or(0);
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let enough = [digits, digits + 1]
        .iter()
        .filter_map(|digits| format!("{digits}e{}", exponent - 3).parse().ok())
        .find(|shown| *shown >= least);
    readable(enough.unwrap_or(least))
}

/// A value after its keyword; after a phrase such as "the number of parameters" the value alone.
fn named(name: &str, value: f64) -> String {
    if name.contains(' ') {
        readable(value)
    } else {
        format!("{name}={}", readable(value))
    }
}

/// Result of every fallible function of the core.
pub type Result<T> = std::result::Result<T, Error>;

/// Refuses a value that breaks its rule; `holds` is false where the value is NaN.
pub(crate) fn check(holds: bool, name: &'static str, rule: &'static str, value: f64) -> Result<()> {
    holds.then_some(()).ok_or(Error::OutOfRange { name, rule, value })
}

/// Refuses a value that is not finite and positive.
pub(crate) fn check_positive(name: &'static str, value: f64) -> Result<()> {
    let holds = value > 0.0 && value.is_finite();
    check(holds, name, "finite and > 0", value)
}

/// Refuses a value that is not finite and at least 0.
pub(crate) fn check_non_negative(name: &'static str, value: f64) -> Result<()> {
    let holds = value >= 0.0 && value.is_finite();
    check(holds, name, "finite and >= 0", value)
}

/// Broken rule, and the value that broke it. The message states the rule first.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A scalar argument lies outside its range.
    #[error("{name} must be {rule}, got {}", named(name, *value))]
    OutOfRange {
        /// The argument.
        name: &'static str,
        /// The rule it has to obey, as a phrase that follows "must be".
        rule: &'static str,
        /// The offending value.
        value: f64,
    },
    /// A length or shape differs from what the other arguments imply.
    #[error("{name} must have length {expected}, got {got}")]
    Length {
        /// The argument.
        name: &'static str,
        /// Implied length.
        expected: usize,
        /// Actual length.
        got: usize,
    },
    /// The data have no rows, or no columns.
    #[error("the data must have at least one row and one parameter, got {rows} rows and {params} parameters")]
    Empty {
        /// Rows given.
        rows: usize,
        /// Parameters, the intercept included.
        params: usize,
    },
    /// A row holds NaN or an infinite value.
    #[error("X must be finite, got {value} in row {row}, column {column}")]
    NonFiniteRow {
        /// Row index.
        row: usize,
        /// Column index.
        column: usize,
        /// Offending value.
        value: f64,
    },
    /// A target is not allowed for the loss.
    #[error("y must be {rule}, got {value} in row {row}")]
    Target {
        /// The rule, as a phrase that follows "must be".
        rule: String,
        /// Row index.
        row: usize,
        /// Offending value.
        value: f64,
    },
    /// A weight is none, or greater than the public bound.
    #[error(
        "weights must be finite, at least 0 and at most weight_bound={bound}, got {value} in row {row} (pass \
        rows=\"clip\" to lower greater weights to the bound)"
    )]
    Weight {
        /// Row index.
        row: usize,
        /// Offending value.
        value: f64,
        /// The public bound.
        bound: f64,
    },
    /// A row is longer than the public bound.
    #[error(
        "every row of X must have Euclidean norm at most row_norm={bound}, got {norm} in row {row} (scale the columns with public bounds, or pass rows=\"clip\" or rows=\"weight\")"
    )]
    RowNorm {
        /// Row index.
        row: usize,
        /// Its norm.
        norm: f64,
        /// The public bound.
        bound: f64,
    },
    /// A block of a row is greater than its public bound.
    #[error(
        "in every row of X, the absolute values of the block that begins with column {column} (size {size}) \
         must sum to at \
        most {bound}, got {sum} in row {row} (scale the columns with public bounds, or pass rows=\"clip\" or rows=\"weight\")"
    )]
    RowBlock {
        /// Row index.
        row: usize,
        /// The first column of the block.
        column: usize,
        /// Its number of columns.
        size: usize,
        /// The sum.
        sum: f64,
        /// The public bound.
        bound: f64,
    },
    /// A row is too long to be clipped: its products with parameters could overflow.
    #[error("every row of X must have Euclidean norm at most 1e150, even with rows=\"clip\" or rows=\"weight\", \
    got {} (scale the columns)", readable(*norm))]
    RowTooLong {
        /// Its norm.
        norm: f64,
    },
    /// A row is shorter than a declared strong convexity requires.
    #[error(
        "every row of X must have Euclidean norm row_norm for a loss with strong_convexity, got {} (scale every row to that \
        norm)", readable(*norm)
    )]
    RowTooShort {
        /// The least norm.
        norm: f64,
    },
    /// A source gave other rows in a later pass.
    #[error(
        "every pass over a source must find the same rows, got {0} (let the source return the same data each time)"
    )]
    RowsChanged(String),
    /// There are more records than the rounding of sums was bounded for (add/remove).
    #[error(
        "n_public must be at least a sixteenth of the number of records, got n_public={n_public} for {n_records} records (pass \
        a greater n_public)"
    )]
    TooManyRecords {
        /// The public number.
        n_public: f64,
        /// The private one.
        n_records: f64,
    },
    /// Persons have more rows together than the rounding of sums was bounded for.
    #[error("all persons together must have at most {greatest} rows, got {got} (keep fewer rows of each person)")]
    TooManyRows {
        /// The greatest number, which is public.
        greatest: usize,
        /// The number of rows.
        got: usize,
    },
    /// No noise distribution exists at this regularisation and budget (docs/proofs/mechanisms.md, objective perturbation).
    #[error(
        "l2_strength must be greater than {} for this loss, bound on the rows, n_samples and budget (epsilon={}), got l2_strength={}",
        rounded_up(*least), short(*epsilon), readable(*value)
    )]
    RegularizationTooSmall {
        /// The least value, exclusive.
        least: f64,
        /// The value given.
        value: f64,
        /// The ε that bounds the change of the Hessian's determinant: the coefficients' own, or all of (ε, δ).
        epsilon: f64,
    },
    /// The published bound of per-instance reports needs a greater ridge (`docs/per_instance.md`, "The Hessian").
    #[error(
        "n_public * l2_strength must be at least twice the greatest eigenvalue of the Hessian's noise for bound=\"paper\": \
         l2_strength must be at least {}, got l2_strength={} (bound=\"interpolated\" has no such limit)",
        rounded_up(*least), readable(*value)
    )]
    RidgeBelowNoise {
        /// The least value.
        least: f64,
        /// The value given.
        value: f64,
    },
    /// The Hessians of some data sets are too ill-conditioned for double precision.
    #[error(
        "l2_strength must be at least {} for this loss, row_norm and number of parameters, because the minimisers of \
         some data sets could not be certified in double precision, got l2_strength={} (increase l2_strength or decrease row_norm)",
        rounded_up(*least), readable(*value)
    )]
    IllConditioned {
        /// The least value.
        least: f64,
        /// The value given.
        value: f64,
    },
    /// The certificate cannot reach its tolerance for some data sets.
    #[error(
        "l2_strength must be large enough that the parameters can be certified to within {tolerance:e}, but rounding limits the \
        certificate to {least:e} for some data sets, got l2_strength={} (increase l2_strength, or decrease row_norm or the budget)",
        readable(*value)
    )]
    TooFewDigits {
        /// Distance that can be certified for every data set.
        least: f64,
        /// Distance that the seal needs.
        tolerance: f64,
        /// λ.
        value: f64,
    },
    /// The combination of notion, mechanism and options is not offered.
    #[error("{0}")]
    Unsupported(String),
    /// A solver stopped before its certificate reached the tolerance; nothing is released.
    #[error(
        "the minimiser must be certified to within {tolerance:e}, got {certificate:e} after {iterations} iterations ({reason}); \
        nothing was released (a greater l2_strength makes the problem easier)"
    )]
    NotConverged {
        /// Tolerance on the distance to the minimiser.
        tolerance: f64,
        /// Certificate reached, an upper bound on that distance.
        certificate: f64,
        /// Iterations made.
        iterations: usize,
        /// Why the solver stopped.
        reason: &'static str,
    },
    /// A loss returned a value that is not finite, or failed in the caller's code.
    #[error("a loss must return finite values that agree with its declared bounds, got {0}")]
    Loss(String),
    /// A matrix that must be positive definite is not.
    #[error("{0} must be positive definite, got a matrix that double precision cannot factor")]
    NotPositiveDefinite(&'static str),
    /// A mechanism produced a value that is not finite; nothing is released.
    #[error("every released value must be finite, got {value} in {name}; nothing was released")]
    NonFiniteRelease {
        /// Name of the value that was to be released.
        name: &'static str,
        /// Offending value.
        value: f64,
    },
    /// A draw of release noise beyond its public tail bound, whatever the data (docs/noise.md); the draw itself is not told.
    #[error(
        "release noise must lie within its tail bound, got a draw beyond it, which has probability below 2^-990; nothing was \
        released"
    )]
    NoiseTail,
    /// The operating system gave no entropy; nothing is released.
    #[error("the operating system must provide entropy for the release noise, got the error: {0}")]
    Entropy(String),
    /// The caller interrupted the computation; nothing is released.
    #[error("the computation was interrupted; nothing was released")]
    Interrupted,
    /// A thread pool or an allocation failed.
    #[error("the computation could not continue: {0}")]
    Resource(String),
}

/// Refuses an argument whose length differs from the implied one.
pub fn check_length(name: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        Ok(())
    } else {
        Err(Error::Length { name, expected, got })
    }
}

impl Error {
    /// A stable name of the broken rule, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::OutOfRange { .. } => "out_of_range",
            Self::Length { .. } => "wrong_length",
            Self::Empty { .. } => "no_data",
            Self::NonFiniteRow { .. } => "row_not_finite",
            Self::Target { .. } => "target_not_allowed",
            Self::RowNorm { .. } => "row_norm_exceeded",
            Self::RowBlock { .. } => "row_block_exceeded",
            Self::RowTooLong { .. } => "row_too_long",
            Self::RowTooShort { .. } => "row_too_short",
            Self::RowsChanged(_) => "rows_changed",
            Self::Weight { .. } => "weight_not_allowed",
            Self::TooManyRecords { .. } => "too_many_records",
            Self::RegularizationTooSmall { .. } => "regularization_too_small",
            Self::RidgeBelowNoise { .. } => "ridge_below_noise",
            Self::IllConditioned { .. } => "ill_conditioned",
            Self::TooFewDigits { .. } => "too_few_digits",
            Self::TooManyRows { .. } => "too_many_rows",
            Self::Unsupported(_) => "unsupported",
            Self::NotConverged { .. } => "not_converged",
            Self::Loss(_) => "invalid_loss",
            Self::NotPositiveDefinite(_) => "not_positive_definite",
            Self::NonFiniteRelease { .. } => "release_not_finite",
            Self::NoiseTail => "noise_tail",
            Self::Entropy(_) => "no_entropy",
            Self::Interrupted => "interrupted",
            Self::Resource(_) => "no_resources",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_least_value_as_shown_is_enough() {
        for least in [1.0004, 9.9994, 9.9996, 5.717_982_6e-5, 0.25, 3e-300, 7.0001e20] {
            let shown: f64 = rounded_up(least).parse().unwrap();
            assert!(shown >= least && shown <= 1.001_001 * least, "{shown} for {least}");
            assert!(rounded_up(least).len() <= 9, "{}", rounded_up(least));
        }
        assert_eq!(rounded_up(5.717_982_6e-5), "5.718e-5");
        assert_eq!(rounded_up(9.014_378_7e-5), "9.015e-5");
        assert_eq!(rounded_up(9.999_1e-5), "0.0001");
        assert_eq!(readable(0.000_2), "0.0002");
    }
}
