//! The one place where core errors become Python exceptions.

use dpci_core::Error;
use pyo3::PyErr;
use pyo3::exceptions::PyKeyboardInterrupt;

// The classes live in Python so that each has its two bases there; they are looked up once.
pyo3::import_exception!(dpci.errors, DpciError);
pyo3::import_exception!(dpci.errors, InvalidInput);
pyo3::import_exception!(dpci.errors, RowNormViolation);
pyo3::import_exception!(dpci.errors, RegularizationTooSmall);
pyo3::import_exception!(dpci.errors, NotConverged);

/// The Python exception of a core error.
pub(crate) fn to_python(error: Error) -> PyErr {
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
