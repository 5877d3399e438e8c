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

fn describe(raised: &Bound<'_, PyAny>, error: &Error) -> PyResult<()> {
    let number = |name: &str, value: f64| raised.setattr(name, value);
    let count = |name: &str, value: usize| raised.setattr(name, value);
    raised.setattr("code", error.code())?;
    match *error {
        Error::OutOfRange { name, rule, value } => {
            raised.setattr("name", name)?;
            raised.setattr("rule", rule)?;
            number("value", value)
        }
        Error::Length {
            name,
            expected,
            got,
        } => {
            raised.setattr("name", name)?;
            count("expected", expected)?;
            count("value", got)
        }
        Error::NonFiniteRow { row, column, value } => {
            count("row", row)?;
            count("column", column)?;
            number("value", value)
        }
        Error::Target {
            ref rule,
            row,
            value,
        } => {
            raised.setattr("rule", rule)?;
            count("row", row)?;
            number("value", value)
        }
        Error::Weight { row, value, bound } => {
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
            sum,
            bound,
            ..
        } => {
            count("row", row)?;
            count("column", column)?;
            number("norm", sum)?;
            number("bound", bound)
        }
        Error::RegularizationTooSmall { least, value, .. }
        | Error::RidgeBelowNoise { least, value }
        | Error::IllConditioned { least, value } => {
            number("least", least)?;
            number("value", value)
        }
        Error::TooFewDigits { value, .. } => number("value", value),
        Error::NotConverged {
            tolerance,
            certificate,
            iterations,
            ..
        } => {
            number("tolerance", tolerance)?;
            number("certificate", certificate)?;
            count("iterations", iterations)
        }
        _ => Ok(()),
    }
}
