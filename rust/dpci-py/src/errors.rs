//! The one place where core errors become Python exceptions.

use dpci_core::Error;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

// The classes live in Python so that each has its two bases there; they are looked up once.
pyo3::import_exception!(dpci.errors, DpciError);
pyo3::import_exception!(dpci.errors, InvalidInput);
pyo3::import_exception!(dpci.errors, RowNormViolation);
pyo3::import_exception!(dpci.errors, RegularizationTooSmall);
pyo3::import_exception!(dpci.errors, NotConverged);

/// The Python exception of a core error, with its code and the values that broke the rule as attributes.
pub(crate) fn to_python(error: Error) -> PyErr {
    let raised = exception(&error);
    if !matches!(error, Error::Interrupted) {
        // Without its attributes the exception still says everything in its message.
        Python::attach(|py| describe(raised.value(py).as_any(), &error)).ok();
    }
    raised
}

fn exception(error: &Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::RowNorm { .. } | Error::RowBlock { .. } => RowNormViolation::new_err(message),
        Error::RegularizationTooSmall { .. }
        | Error::RidgeBelowNoise { .. }
        | Error::IllConditioned { .. }
        | Error::TooFewDigits { .. } => RegularizationTooSmall::new_err(message),
        Error::NotConverged { .. } => NotConverged::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(message),
        Error::NonFiniteRelease { .. }
        | Error::NotPositiveDefinite(_)
        | Error::NoiseTail
        | Error::Entropy(_)
        | Error::Resource(_) => DpciError::new_err(message),
        // The enum may grow; what is not named above is a broken rule on the input.
        _ => InvalidInput::new_err(message),
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each rule of the core")]
fn describe(raised: &Bound<'_, PyAny>, error: &Error) -> PyResult<()> {
    let number = |name: &str, value: f64| raised.setattr(name, value);
    let count = |name: &str, value: usize| raised.setattr(name, value);
    let text = |name: &str, value: &str| raised.setattr(name, value);
    text("code", error.code())?;
    match *error {
        Error::OutOfRange { name, rule, value } => {
            text("name", name)?;
            text("rule", rule)?;
            number("value", value)
        }
        Error::Length {
            name,
            expected,
            got,
        } => {
            text("name", name)?;
            count("expected", expected)?;
            count("value", got)
        }
        Error::Empty { rows, params } => raised.setattr("shape", (rows, params)),
        Error::NonFiniteRow { row, column, value } => {
            text("name", "X")?;
            count("row", row)?;
            count("column", column)?;
            number("value", value)
        }
        Error::Target {
            ref rule,
            row,
            value,
        } => {
            text("name", "y")?;
            text("rule", rule)?;
            count("row", row)?;
            number("value", value)
        }
        Error::Weight { row, value, bound } => {
            text("name", "weights")?;
            count("row", row)?;
            number("value", value)?;
            number("bound", bound)
        }
        Error::RowNorm { row, norm, bound } => {
            count("row", row)?;
            number("norm", norm)?;
            number("bound", bound)
        }
        Error::RowBlock {
            row,
            column,
            size,
            sum,
            bound,
        } => {
            count("row", row)?;
            count("column", column)?;
            count("size", size)?;
            number("norm", sum)?;
            number("bound", bound)
        }
        Error::RowTooLong { norm } | Error::RowTooShort { norm } => {
            text("name", "X")?;
            number("value", norm)
        }
        Error::TooManyRecords {
            n_public,
            n_records,
        } => {
            text("name", "n_public")?;
            number("value", n_public)?;
            number("n_records", n_records)
        }
        Error::TooManyRows { greatest, got } => {
            text("name", "X")?;
            count("value", got)?;
            count("bound", greatest)
        }
        Error::RegularizationTooSmall {
            least,
            value,
            epsilon,
        } => {
            number("least", least)?;
            number("value", value)?;
            number("epsilon", epsilon)
        }
        Error::RidgeBelowNoise { least, value } | Error::IllConditioned { least, value } => {
            number("least", least)?;
            number("value", value)
        }
        Error::TooFewDigits {
            least,
            tolerance,
            value,
        } => {
            number("value", value)?;
            number("tolerance", tolerance)?;
            number("certificate", least)
        }
        Error::NotConverged {
            tolerance,
            certificate,
            iterations,
            reason,
        } => {
            number("tolerance", tolerance)?;
            number("certificate", certificate)?;
            count("iterations", iterations)?;
            text("reason", reason)
        }
        Error::NotPositiveDefinite(name) => text("name", name),
        Error::NonFiniteRelease { name, value } => {
            text("name", name)?;
            number("value", value)
        }
        // What is left is told in words, or has no values.
        _ => Ok(()),
    }
}
