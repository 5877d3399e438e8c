//! Which instruction set the kernels are compiled for; tests can choose it.

use pulp::Arch;

/// The widest vectors of the processor at hand, or what a test has chosen on its thread.
#[inline(always)]
#[must_use]
pub fn arch() -> Arch {
    #[cfg(test)]
    if let Some(chosen) = CHOSEN.get() {
        return chosen;
    }
    Arch::new()
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
