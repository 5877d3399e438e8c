//! Which refusals the data can cause: one entry for each, to which every error of the core belongs or not.
//!
//! The page docs/privacy.md lists them from here, and a test compares. An error that data can cause has a variant of its own; what
//! public values alone decide may share one.

use crate::Error;

/// A refusal that depends on data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Data that are refused.
    pub what: &'static str,
    /// `before` the fit computes anything, `during` it, or `any time`.
    pub when: &'static str,
    /// Part of the data that the message shows.
    pub shows: &'static str,
    /// Whether clipping, given classes and well-formed input leave it.
    pub remains: bool,
}

/// Declares the refusals and their list.
macro_rules! refusals {
    ($($name:ident: $what:literal, $when:literal, $shows:literal, $remains:literal;)*) => {
        $(const $name: Refusal = Refusal { what: $what, when: $when, shows: $shows, remains: $remains };)*

        /// All of them.
        pub const ALL: &[Refusal] = &[$($name),*];
    };
}

refusals! {
    NO_ROWS: "no rows (their number is private under add/remove)", "before", "that there are no rows", true;
    NOT_FINITE: "NaN or infinity in X", "before", "row, column, value", false;
    LONG_ROW: "a row above its bound, without `rows=\"clip\"`", "before", "row, norm", false;
    LONG_BLOCK: "a row outside a bound of `rows`, without `rows=\"clip\"`", "before", "row, column, sum", false;
    TOO_LONG_ROW: "a row whose norm is above 1e150", "before", "the norm", true;
    SHORT_ROW: "a row shorter than `row_norm`, with a loss that declares strong convexity", "before", "the least norm", true;
    TARGET: "a target outside its interval, without `rows=\"clip\"`, or NaN", "before", "row, value", false;
    WEIGHT: "a weight above `bound`, without `rows=\"clip\"`, below 0 or NaN", "before", "row, value", false;
    MANY_RECORDS: "more than 16 · `n_public` records under add/remove", "before", "their number", true;
    MANY_ROWS: "persons with more than 2³⁰ rows, and more than 64 each on average", "before", "the number of rows", true;
    OTHER_ROWS: "a later pass over rows in parts finds different rows", "during", "numbers of rows", true;
    NOT_CERTIFIED: "the minimiser cannot be certified", "during", "the certificate", true;
    LOSS: "a custom loss fails, is not finite, or violates its declaration at a record given to a report", "during",
        "a predictor, a target, a slope or a curvature", true;
    NOT_DEFINITE: "a matrix has no decomposition", "during", "nothing", true;
    NOT_FINITE_RELEASE: "a released value is not finite", "during", "the value", true;
    RESOURCE: "the system provides no more memory or threads", "any time", "nothing", true;
    INTERRUPTED: "Ctrl-C", "any time", "nothing", true;
}

/// The refusal that an error is; `None` where it depends on public values, on the noise or on the system alone.
pub fn of(error: &Error) -> Option<Refusal> {
    // Every variant by its name, so that a new one has to be put on a side.
    match error {
        Error::Empty { .. } => Some(NO_ROWS),
        Error::NonFiniteRow { .. } => Some(NOT_FINITE),
        Error::RowNorm { .. } => Some(LONG_ROW),
        Error::RowBlock { .. } => Some(LONG_BLOCK),
        Error::RowTooLong { .. } => Some(TOO_LONG_ROW),
        Error::RowTooShort { .. } => Some(SHORT_ROW),
        Error::Target { .. } => Some(TARGET),
        Error::Weight { .. } => Some(WEIGHT),
        Error::TooManyRecords { .. } => Some(MANY_RECORDS),
        Error::TooManyRows { .. } => Some(MANY_ROWS),
        Error::RowsChanged(_) => Some(OTHER_ROWS),
        Error::NotConverged { .. } => Some(NOT_CERTIFIED),
        Error::Loss(_) => Some(LOSS),
        Error::NotPositiveDefinite(_) => Some(NOT_DEFINITE),
        Error::NonFiniteRelease { .. } => Some(NOT_FINITE_RELEASE),
        Error::Resource(_) => Some(RESOURCE),
        Error::Interrupted => Some(INTERRUPTED),
        Error::OutOfRange { .. }
        | Error::Length { .. }
        | Error::RegularizationTooSmall { .. }
        | Error::RidgeBelowNoise { .. }
        | Error::IllConditioned { .. }
        | Error::TooFewDigits { .. }
        | Error::Unsupported(_)
        | Error::NoiseTail
        | Error::Entropy(_) => None,
    }
}

/// Whether an audit has to count a run that fails so: its outcome is one that an attacker sees, and the data may have caused it.
pub fn is_outcome(error: &Error) -> bool {
    of(error).is_some_and(|refusal| refusal != INTERRUPTED && refusal != RESOURCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_public_values_are_on_their_sides() {
        let failed = Error::NotConverged {
            tolerance: 1.0,
            certificate: 2.0,
            iterations: 3,
            reason: "of a test",
        };
        assert_eq!(of(&failed), Some(NOT_CERTIFIED));
        assert!(is_outcome(&failed) && !is_outcome(&Error::Interrupted));
        assert_eq!(of(&Error::NoiseTail), None);
        assert_eq!(of(&Error::Unsupported(String::new())), None);
        for (i, refusal) in ALL.iter().enumerate() {
            assert!(!ALL[..i].contains(refusal), "{refusal:?} twice");
        }
    }
}
