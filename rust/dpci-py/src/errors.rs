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

/// Attributes of an exception: fields of the variant by their names, and others with a value.
macro_rules! set {
    ($raised:ident: $($name:ident $(= $value:expr)?),*) => {{
        $($raised.setattr(stringify!($name), set!(@ $name $($value)?))?;)*
        Ok(())
    }};
    (@ $name:ident) => { $name };
    (@ $name:ident $value:expr) => { $value };
}

fn describe(raised: &Bound<'_, PyAny>, error: &Error) -> PyResult<()> {
    raised.setattr("code", error.code())?;
    match *error {
        Error::OutOfRange { name, rule, value } => set!(raised: name, rule, value),
        Error::Length { name, expected, got } => set!(raised: name, expected, value = got),
        Error::Empty { rows, params } => set!(raised: shape = (rows, params)),
        Error::NonFiniteRow { row, column, value } => {
            set!(raised: name = "X", row, column, value)
        }
        Error::Target { ref rule, row, value } => set!(raised: name = "y", rule, row, value),
        Error::Weight { row, value, bound } => set!(raised: name = "weights", row, value, bound),
        Error::RowNorm { row, norm, bound } => set!(raised: row, norm, bound),
        Error::RowBlock {
            row,
            column,
            size,
            sum,
            bound,
        } => set!(raised: row, column, size, norm = sum, bound),
        Error::RowTooLong { norm } | Error::RowTooShort { norm } => {
            set!(raised: name = "X", value = norm)
        }
        Error::TooManyRecords { n_public, n_records } => set!(raised: name = "n_public", value = n_public, n_records),
        Error::TooManyRows { greatest, got } => {
            set!(raised: name = "X", value = got, bound = greatest)
        }
        Error::RegularizationTooSmall { least, value, epsilon } => set!(raised: least, value, epsilon),
        Error::RidgeBelowNoise { least, value } | Error::IllConditioned { least, value } => {
            set!(raised: least, value)
        }
        Error::TooFewDigits {
            least,
            tolerance,
            value,
        } => set!(raised: value, tolerance, certificate = least),
        Error::NotConverged {
            tolerance,
            certificate,
            iterations,
            reason,
        } => set!(raised: tolerance, certificate, iterations, reason),
        Error::NotPositiveDefinite(name) => set!(raised: name),
        Error::NonFiniteRelease { name, value } => set!(raised: name, value),
        // What is left is told in words, or has no values.
        _ => Ok(()),
    }
}
