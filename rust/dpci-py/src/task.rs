//! Runs core work without the interpreter lock, so that Ctrl-C and other Python threads stay responsive.
//!
//! The calling thread waits in steps of 50 ms, looks for signals, and sets the flag of cancellation. With fewer than 2¹⁶ numbers it
//! does the work itself, because starting a thread would take as long, and looks for signals at its own checks of the flag. Requests to
//! rows in parts are answered on the calling thread: exceptions come out unchanged, and contexts and thread-local things work.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use dpci_core::exec::{Executor, is_short};
use dpci_core::{Error, Result};
use pyo3::prelude::*;

use crate::errors::to_python;
use crate::records::Data;

/// Time between two looks for a pending signal.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

/// Messages of the thread of the work to the calling one.
enum Message<Q, A> {
    Question(Q, Sender<Result<A>>),
    Done,
}

/// Runs `work` on a thread of its own. The calling thread waits without the lock, looks for signals, and cancels on one.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> Result<T> + Send) -> PyResult<T> {
    let no_answer = |_: Python<'_>, question: Infallible| match question {};
    run_asking(
        py,
        |cancel, _: &(dyn Fn(Infallible) -> Result<()> + Sync)| work(cancel),
        no_answer,
    )
}

/// The same for work over the rows of `data`. Few rows stay on the calling thread, which looks for signals itself: a thread costs as
/// much as a small fit.
pub(crate) fn run_over<T: Send>(
    py: Python<'_>,
    data: &Data<'_>,
    n_threads: Option<usize>,
    work: impl FnOnce(&Executor<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let numbers = data.elements().saturating_add(data.width().saturating_pow(2));
    if is_short(numbers) {
        return run_here(py, n_threads, work);
    }
    run(py, |cancel| work(&Executor::new(n_threads, data.elements(), cancel)?))
}

#[allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the method alone is not general enough in its lifetime"
)]
fn run_here<T: Send>(
    py: Python<'_>,
    n_threads: Option<usize>,
    work: impl FnOnce(&Executor<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let cancel = AtomicBool::new(false);
    let raised = Mutex::new(None);
    let look = || {
        let Err(signal) = Python::attach(|py| py.check_signals()) else {
            return;
        };
        cancel.store(true, Ordering::Relaxed);
        if let Ok(mut raised) = raised.lock() {
            *raised = Some(signal);
        }
    };
    let outcome = py.detach(|| {
        std::panic::catch_unwind(AssertUnwindSafe(|| {
            work(&Executor::new(n_threads, 0, &cancel)?.looking(SIGNAL_POLL, &look))
        }))
    });
    match raised.into_inner() {
        Ok(Some(raised)) => Err(raised),
        _ => outcome.unwrap_or_else(|_| Err(panicked())).map_err(to_python),
    }
}

fn panicked() -> Error {
    Error::Resource("dpci met an internal error, please report it; nothing was released".into())
}

/// The same for `work` with questions that Python answers: on the calling thread, as any code of the caller, so that Ctrl-C, contexts
/// and thread-local things are what they are there. An exception ends the work and comes out as it is.
#[allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the method alone is not general enough in its lifetime"
)]
pub(crate) fn run_asking<Q: Send, A: Send, T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool, &(dyn Fn(Q) -> Result<A> + Sync)) -> Result<T> + Send,
    mut answer: impl FnMut(Python<'_>, Q) -> PyResult<A> + Send,
) -> PyResult<T> {
    let cancel = AtomicBool::new(false);
    let mut raised = None;
    let outcome = py.detach(|| {
        thread::scope(|scope| {
            let (tell, heard) = mpsc::channel();
            let cancel = &cancel;
            let worker = thread::Builder::new().name("dpci".into()).spawn_scoped(scope, move || {
                // Where the calling thread panics nobody answers.
                let ask = |question: Q| {
                    let (reply, replied) = mpsc::channel();
                    let sent = tell.send(Message::Question(question, reply));
                    sent.map_err(|_| Error::Interrupted)?;
                    replied.recv().unwrap_or(Err(Error::Interrupted))
                };
                let result = std::panic::catch_unwind(AssertUnwindSafe(|| work(cancel, &ask)));
                // The receiver outlives the worker; a failed send has nobody to tell.
                let _ = tell.send(Message::Done);
                result
            });
            let worker = worker.map_err(|e| Error::Resource(e.to_string()))?;
            loop {
                let (outcome, reply) = match heard.recv_timeout(SIGNAL_POLL) {
                    Ok(Message::Done) | Err(RecvTimeoutError::Disconnected) => break,
                    Ok(Message::Question(question, reply)) => {
                        let answered = Python::attach(|py| answer(py, question));
                        (answered.map(Some), Some(reply))
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        let signal = Python::attach(|py| py.check_signals());
                        (signal.map(|()| None), None)
                    }
                };
                let answered = outcome.unwrap_or_else(|error| {
                    raised = Some(error);
                    cancel.store(true, Ordering::Relaxed);
                    None
                });
                if let Some(reply) = reply {
                    let _ = reply.send(answered.ok_or(Error::Interrupted));
                }
            }
            worker
                .join()
                .and_then(|caught| caught)
                .unwrap_or_else(|_| Err(panicked()))
        })
    });
    match (raised, outcome) {
        (Some(raised), _) => Err(raised),
        (None, outcome) => outcome.map_err(to_python),
    }
}
