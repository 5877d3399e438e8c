//! Parallel and cancellable execution whose results do not depend on the number of threads.
//!
//! Work is cut into chunks by its size alone and partial results are combined in chunk order. The pool lives as long as one
//! call: a process-wide pool would hang in a forked child.
//!
//! Loops over rows look at the flag of cancellation at every block of 128 rows, Monte Carlo at every 4096 draws, and return
//! `Interrupted`. A single factorisation or eigendecomposition is not interrupted.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::check;
use crate::{Error, Result};

/// Rows handled at a time: a packed block of a hundred columns stays in a second-level cache.
pub const BLOCK: usize = 128;

/// At most this many partial results per pass; their sum is taken in order, whatever the number of threads.
const MAX_CHUNKS: usize = 16;

/// Chunks of `n` rows of `width` numbers whose partial sums are combined in order: a function of the size alone.
pub fn row_chunks(n: usize, width: usize) -> Vec<Range<usize>> {
    cut(n, n.saturating_mul(width) >> 16)
}

/// Chunks of `n` rows whose partial sums are `dim × dim` matrices: so few that the matrices stay small beside the rows.
pub fn matrix_chunks(n: usize, dim: usize) -> Vec<Range<usize>> {
    cut(n, (n.saturating_mul(dim) >> 16).min(n / (8 * dim.max(1))))
}

/// `n` rows in about `count` chunks of whole blocks, at most [`MAX_CHUNKS`].
fn cut(n: usize, count: usize) -> Vec<Range<usize>> {
    let size = n.div_ceil(count.clamp(1, MAX_CHUNKS)).next_multiple_of(BLOCK);
    (0..n.div_ceil(size))
        .map(|i| i * size..((i + 1) * size).min(n))
        .collect()
}

/// Most additions that one term of a sum over at most `n` rows passes through: in its block, over the blocks of its chunk and over the
/// chunks. It bounds the rounding of the sum. A chunk has at most 2¹⁷ rows or a sixteenth of them, and up to a block more.
pub fn sum_depth(n: usize) -> usize {
    let blocks = (n / (BLOCK * MAX_CHUNKS)).max((1 << 17) / BLOCK) + 1;
    n.min(BLOCK + blocks + MAX_CHUNKS)
}

/// Ranges of at most [`BLOCK`] rows that cover a chunk.
pub fn blocks(chunk: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = chunk.end;
    chunk.step_by(BLOCK).map(move |start| start..(start + BLOCK).min(end))
}

/// Below this many elements a second thread costs more than it saves.
const ELEMENTS_PER_THREAD: usize = 1 << 16;

/// Whether a pass over so many numbers, rows and sums, is done before a thread of its own has begun.
pub fn is_short(numbers: usize) -> bool {
    numbers < ELEMENTS_PER_THREAD
}

/// Memory of a pass whatever the number of rows, in numbers: blocks, packed panels, accumulators; 8 MB.
const SPARE_NUMBERS: usize = 1 << 20;

/// Runs chunks of work on a private thread pool and stops when the caller cancels.
pub struct Executor<'c> {
    pool: Option<ThreadPool>,
    cancel: &'c AtomicBool,
    look: Option<Look<'c>>,
    tell: Option<&'c (dyn Fn() + Sync)>,
}

/// Check that the thread of the work makes now and then itself, because no other thread watches for it.
struct Look<'c> {
    every: Duration,
    last: Mutex<Instant>,
    call: &'c (dyn Fn() + Sync),
}

impl Look<'_> {
    fn now_and_then(&self) {
        let due = self.last.lock().is_ok_and(|mut last| {
            let due = last.elapsed() >= self.every;
            if due {
                *last = Instant::now();
            }
            due
        });
        if due {
            (self.call)();
        }
    }
}

impl std::fmt::Debug for Executor<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let looks = self.look.is_some();
        write!(formatter, "Executor {{ pool: {:?}, looks: {looks} }}", self.pool)
    }
}

impl<'c> Executor<'c> {
    /// An executor for passes over `elements` numbers, on at most `n_threads` threads (`None`: all processors).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for zero threads, [`Error::Resource`] when the system starts no thread.
    pub fn new(n_threads: Option<usize>, elements: usize, cancel: &'c AtomicBool) -> Result<Self> {
        check(n_threads != Some(0), "n_threads", "at least 1", 0.0)?;
        let useful = elements.div_ceil(ELEMENTS_PER_THREAD);
        if useful <= 1 {
            return Ok(Self::sequential(cancel)); // the system reads files to count its processors
        }
        let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // More threads than processors only cost memory, whatever the caller asks for.
        let threads = n_threads.unwrap_or(available).min(useful).min(available.max(64));
        let pool = if threads > 1 {
            let built = ThreadPoolBuilder::new().num_threads(threads).build();
            Some(built.map_err(|e| Error::Resource(e.to_string()))?)
        } else {
            None
        };
        Ok(Self {
            pool,
            cancel,
            look: None,
            tell: None,
        })
    }

    /// A single-threaded executor.
    pub fn sequential(cancel: &'c AtomicBool) -> Self {
        Self {
            pool: None,
            cancel,
            look: None,
            tell: None,
        }
    }

    /// The same, where no other thread can set the flag meanwhile: checks call `look`, which may, at most once in `every`.
    pub fn looking(self, every: Duration, look: &'c (dyn Fn() + Sync)) -> Self {
        let last = Mutex::new(Instant::now());
        Self {
            look: Some(Look {
                every,
                last,
                call: look,
            }),
            ..self
        }
    }

    /// The same, which calls `tell` after each step of work that takes several.
    pub fn telling(self, tell: &'c (dyn Fn() + Sync)) -> Self {
        Self {
            tell: Some(tell),
            ..self
        }
    }

    /// Says that a step is done, to whoever shows progress. Nothing may depend on it.
    pub fn step_done(&self) {
        if let Some(tell) = self.tell {
            tell();
        }
    }

    /// The flag that cancels this executor.
    pub fn cancel_flag(&self) -> &'c AtomicBool {
        self.cancel
    }

    /// Fails with [`Error::Interrupted`] once the caller has cancelled. Cheap enough for every block of rows.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<()> {
        if let Some(look) = &self.look {
            look.now_and_then();
        }
        if self.cancel.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Threads that share the work. Results must not depend on it.
    pub fn n_threads(&self) -> usize {
        self.pool.as_ref().map_or(1, ThreadPool::current_num_threads)
    }

    /// Applies `work` to every chunk and its part of `out`, which the chunks cover in order.
    ///
    /// # Errors
    /// As [`Self::map`].
    ///
    /// # Panics
    /// Where `out` is shorter than the chunks are together.
    pub fn map_into<V: Send, T: Send>(
        &self,
        chunks: &[Range<usize>],
        mut out: &mut [V],
        work: impl Fn(usize, &mut [V]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let mut parts = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let (part, rest) = out.split_at_mut(chunk.len());
            parts.push(Mutex::new(part));
            out = rest;
        }
        // Each is locked once: a lock only says so to the compiler.
        self.map(chunks.len(), |c| {
            let mut part = parts[c].lock().unwrap_or_else(PoisonError::into_inner);
            work(c, &mut part)
        })
    }

    /// Applies `work` to the chunks `0..n_chunks`; results come in chunk order, the first error by chunk order wins.
    ///
    /// # Errors
    /// The error of a chunk, [`Error::Interrupted`], or [`Error::Resource`] for more outcomes than memory holds.
    pub fn map<T: Send>(&self, n_chunks: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        self.check()?;
        match &self.pool {
            Some(pool) if n_chunks > 1 => {
                let mut results: Vec<Result<T>> = reserved(n_chunks)?;
                pool.install(|| {
                    (0..n_chunks)
                        .into_par_iter()
                        .with_max_len(1)
                        .map(&work)
                        .collect_into_vec(&mut results);
                });
                results.into_iter().collect()
            }
            _ => {
                let mut values = reserved(n_chunks)?;
                for chunk in 0..n_chunks {
                    values.push(work(chunk)?);
                }
                Ok(values)
            }
        }
    }
}

/// An empty vector with room for `n` values. An allocation that fails elsewhere aborts the process.
pub(crate) fn reserved<T>(n: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(n)
        .map_err(|e| Error::Resource(e.to_string()))?;
    Ok(values)
}

/// Asks for room for `numbers` more numbers, and gives it back: better an error before the work than an abort during it.
pub(crate) fn check_room(numbers: usize) -> Result<()> {
    reserved::<f64>(numbers.saturating_add(SPARE_NUMBERS)).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn results_come_in_order_and_cancellation_stops() {
        let cancel = AtomicBool::new(false);
        let exec = Executor::new(Some(3), usize::MAX / 2, &cancel).unwrap();
        assert_eq!(exec.map(100, Ok).unwrap(), (0..100).collect::<Vec<_>>());
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(exec.map(2, Ok), Err(Error::Interrupted));
    }

    #[test]
    fn no_term_passes_more_additions_than_the_bound() {
        for n in [1, 127, 5000, 131_071, 131_072, 200_000, 1 << 21, 30_000_001] {
            for width in [1, 3, 100] {
                let chunks = row_chunks(n, width);
                let longest = chunks.iter().map(|c| c.len().div_ceil(BLOCK)).max().unwrap();
                assert!((BLOCK + longest + chunks.len()).min(n) <= sum_depth(n), "{n} {width}");
            }
        }
    }

    #[test]
    fn more_outcomes_than_memory_are_an_error() {
        let cancel = AtomicBool::new(false);
        for threads in [1, 2] {
            let exec = Executor::new(Some(threads), usize::MAX / 2, &cancel).unwrap();
            for n_chunks in [usize::MAX, usize::MAX / 2, 1 << 45] {
                assert!(matches!(exec.map(n_chunks, Ok), Err(Error::Resource(_))));
            }
        }
        assert!(matches!(check_room(usize::MAX), Err(Error::Resource(_))));
        check_room(1000).unwrap();
    }

    #[test]
    fn a_look_may_cancel_and_is_not_taken_at_every_check() {
        let cancel = AtomicBool::new(false);
        let looks = AtomicUsize::new(0);
        let count = || {
            looks.fetch_add(1, Ordering::Relaxed);
        };
        let rarely = Executor::sequential(&cancel).looking(Duration::from_secs(3600), &count);
        assert_eq!(rarely.map(1000, Ok).unwrap().len(), 1000);
        rarely.check().unwrap();
        assert_eq!(looks.load(Ordering::Relaxed), 0);
        let stop = || cancel.store(true, Ordering::Relaxed);
        let exec = Executor::sequential(&cancel).looking(Duration::ZERO, &stop);
        assert_eq!(exec.check(), Err(Error::Interrupted));
    }

    #[test]
    fn zero_threads_are_refused() {
        let cancel = AtomicBool::new(false);
        assert!(Executor::new(Some(0), 10, &cancel).is_err());
    }
}
