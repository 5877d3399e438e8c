//! Runs core work without the interpreter lock, so that Ctrl-C and other Python threads stay responsive.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use dpci_core::{Error, Result};
use pyo3::prelude::*;

use crate::errors::to_python;

/// Time between two looks for a pending signal.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own. The calling thread waits without the lock, looks for signals, and cancels on one.
#[allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the method alone is not general enough in its lifetime"
)]
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T> + Send,
) -> PyResult<T> {
    let cancel = AtomicBool::new(false);
    let mut signal = None;
    let outcome = py.detach(|| {
        thread::scope(|scope| {
            let (done, finished) = mpsc::channel();
            let cancel = &cancel;
            let worker =
                thread::Builder::new()
                    .name("dpci".into())
                    .spawn_scoped(scope, move || {
                        let result = std::panic::catch_unwind(AssertUnwindSafe(|| work(cancel)));
                        // The receiver outlives the worker; a failed send has nobody to tell.
                        let _ = done.send(());
                        result
                    });
            let worker = worker.map_err(|e| Error::Resource(e.to_string()))?;
            while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(SIGNAL_POLL) {
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    signal = Some(error);
                    cancel.store(true, Ordering::Relaxed);
                }
            }
            worker.join().and_then(|caught| caught).unwrap_or_else(|_| {
                Err(Error::Resource(
                    "an internal error stopped the computation; nothing was released".into(),
                ))
            })
        })
    });
    match (signal, outcome) {
        (Some(signal), _) => Err(signal),
        (None, outcome) => outcome.map_err(to_python),
    }
}
