//! Which instruction set the kernels are compiled for; tests can choose it.
//!
//! The environment variable `DPCI_SIMD` limits it: `scalar`, `v3` (AVX2) or `v4` (AVX-512), on other processors than x86-64
//! `scalar` alone. It exists so that one machine can test the last bits of others. It is a limit, never a demand: a process
//! runs what its processor has, whatever the variable says, and no result is refused for it. Hence tests must compare
//! [`instruction_set`] with the level they asked for. It is read once, when the extension is loaded.
//!
//! It does not limit faer (factorisations and products of matrices), which chooses by itself; only an emulator such as
//! `qemu-x86_64 -cpu Nehalem` does. Which bits a seeded fit has may depend on the level, a guarantee never does: the certificate bounds
//! the rounding of every order of sums.

use std::sync::atomic::{AtomicU8, Ordering};

use pulp::Arch;

const UNREAD: u8 = u8::MAX;
const SCALAR: u8 = 0;
const V3: u8 = 1;
const WIDEST: u8 = 2;

/// The variable's value. An atomic number and not a lock, which a forked child could inherit while it is held.
static LIMIT: AtomicU8 = AtomicU8::new(UNREAD);

/// The widest vectors of the processor at hand, within the limit, or what a test has chosen on its thread.
#[inline(always)]
pub fn arch() -> Arch {
    #[cfg(test)]
    if let Some(chosen) = CHOSEN.get() {
        return chosen;
    }
    match LIMIT.load(Ordering::Relaxed) {
        WIDEST => Arch::new(),
        limit => limited(limit),
    }
}

#[cold]
fn limited(limit: u8) -> Arch {
    let limit = if limit == UNREAD { read() } else { limit };
    LIMIT.store(limit, Ordering::Relaxed);
    choice(limit)
}

fn choice(limit: u8) -> Arch {
    match limit {
        SCALAR => Arch::Scalar,
        #[cfg(target_arch = "x86_64")]
        V3 => pulp::x86::V3::try_new().map_or(Arch::Scalar, Arch::V3),
        _ => Arch::new(),
    }
}

fn read() -> u8 {
    match std::env::var("DPCI_SIMD").as_deref() {
        Ok("scalar") => SCALAR,
        Ok("v3") => V3,
        _ => WIDEST,
    }
}

/// The name of [`arch`], as `DPCI_SIMD` spells it.
///
/// The first call in a process reads the environment, which no other thread may change meanwhile.
pub fn instruction_set() -> &'static str {
    match arch() {
        Arch::Scalar => "scalar",
        #[cfg(target_arch = "x86_64")]
        Arch::V3(_) => "v3",
        #[cfg(target_arch = "x86_64")]
        Arch::V4(_) => "v4",
        _ => "native",
    }
}

#[cfg(test)]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Arch>> = const { std::cell::Cell::new(None) };
}

/// Runs `work`, on this thread, with the kernels of one instruction set.
#[cfg(test)]
pub(crate) fn with_arch<T>(arch: Arch, work: impl FnOnce() -> T) -> T {
    CHOSEN.set(Some(arch));
    let value = work();
    CHOSEN.set(None);
    value
}

/// The instruction sets that this processor has.
#[cfg(test)]
pub(crate) fn architectures() -> Vec<Arch> {
    let mut found = vec![Arch::Scalar];
    #[cfg(target_arch = "x86_64")]
    {
        found.extend(pulp::x86::V3::try_new().map(Arch::V3));
        found.extend(pulp::x86::V4::try_new().map(Arch::V4));
    }
    #[cfg(target_arch = "aarch64")]
    found.extend(pulp::aarch64::Neon::try_new().map(Arch::Neon));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_kept_and_never_exceeds_the_processor() {
        let names = [SCALAR, V3, WIDEST].map(|limit| {
            // Not through LIMIT, which the tests of other threads read.
            with_arch(choice(limit), instruction_set)
        });
        let has = architectures().len();
        let expected = if cfg!(target_arch = "x86_64") {
            let levels = ["scalar", "v3", "v4"];
            [0, 1, 2].map(|limit| levels[limit.min(has - 1)])
        } else {
            ["scalar", "native", "native"]
        };
        assert_eq!(names, expected);
    }

    /// The variable is read: a run at a level that the processor has is a run at that level.
    #[test]
    fn the_level_in_use_is_the_one_asked_for() {
        if let Ok(asked) = std::env::var("DPCI_SIMD") {
            assert_eq!(instruction_set(), asked, "no such level, or not of this processor");
        }
    }
}
