//! Which mutant is active, or which of them are reached; copied into the scratch copy of the core by benches/mutants.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// States beyond the numbers of mutants.
const UNREAD: u32 = u32::MAX;
const RECORDING: u32 = u32::MAX - 1;
const NONE: u32 = u32::MAX - 2;

const MUTANTS: usize = 1 << 16;

static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicBool; MUTANTS] = [const { AtomicBool::new(false) }; MUTANTS];

/// Whether mutant `k` is the active one.
#[inline(always)]
pub fn is(k: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    active == k || (active >= RECORDING && slow(k))
}

/// Reads the environment once, or notes that `k` was reached.
#[cold]
fn slow(k: u32) -> bool {
    if ACTIVE.load(Relaxed) == UNREAD {
        let state = match std::env::var("DPCI_MUTANT") {
            Ok(number) => number.parse().unwrap(),
            Err(_) if std::env::var_os("DPCI_MUTANTS_REACHED").is_some() => RECORDING,
            Err(_) => NONE,
        };
        ACTIVE.store(state, Relaxed);
        return is(k);
    }
    if !REACHED[k as usize].swap(true, Relaxed) {
        let path = std::env::var_os("DPCI_MUTANTS_REACHED").unwrap();
        // A test may forbid its process to open files.
        if let Ok(mut file) = std::fs::File::options().append(true).create(true).open(path) {
            file.write_all(format!("{k}\n").as_bytes()).unwrap();
        }
    }
    false
}
