//! Ten mistakes that a test can switch on, to see that they are found; without the feature `seeded-bugs` there is no switch.
//!
//! Each has its detector in `tests/seeded_bugs.rs`. No wheel is built with the feature, and without it `active` is the
//! constant false: the compiler leaves nothing of the places that ask.

/// A mistake in the privacy of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Laplace-type noise of half the scale.
    HalfNoise,
    /// A gradient that is taken to move by one record where two change.
    WrongSensitivity,
    /// Gaussian noise short of √2.
    LostRootTwo,
    /// The whole ε for the noise of objective perturbation, nothing for the curvature.
    ForgottenCurvature,
    /// The radius of spherical Laplace noise of one dimension less.
    RadiusDimension,
    /// d² independent entries of a symmetric matrix in place of d(d+1)/2 isometric coordinates.
    SquareDimension,
    /// Normals cut off at three standard deviations.
    ClippedTail,
    /// The noise of one vector used again for the next.
    StaleDraw,
    /// Values that leave without lattice and integer noise.
    SkippedSeal,
    /// A release generator that starts in the same state each time.
    ReusedGenerator,
}

/// Whether this build has the switch. The bindings pass it on, so that a test can ask an extension.
pub const SEEDED: bool = cfg!(feature = "seeded-bugs");

/// Whether the mistake is switched on.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub(crate) const fn active(_bug: Bug) -> bool {
    false
}

/// Factor of a number: `mistaken` with the mistake, exactly 1 without.
#[inline(always)]
pub(crate) fn factor(bug: Bug, mistaken: f64) -> f64 {
    if active(bug) { mistaken } else { 1.0 }
}

/// A draw of noise, or with [`Bug::StaleDraw`] the last one of this length once more.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
pub(crate) fn stale(draw: Vec<f64>) -> Vec<f64> {
    draw
}

#[cfg(feature = "seeded-bugs")]
pub use switch::{MARK, with};

#[cfg(feature = "seeded-bugs")]
pub(crate) use switch::{active, stale};

#[cfg(feature = "seeded-bugs")]
mod switch {
    use std::cell::{Cell, RefCell};

    use super::Bug;

    /// Mark in every binary with the feature, for a test of those that must not have it.
    pub const MARK: &str = "this build of dpci has seeded bugs";

    thread_local! {
        static ACTIVE: Cell<Option<Bug>> = const { Cell::new(None) };
        static LAST: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
    }

    /// A draw of noise, or with [`Bug::StaleDraw`] the last one of this length once more.
    pub(crate) fn stale(draw: Vec<f64>) -> Vec<f64> {
        let last = LAST.replace(Vec::new());
        if active(Bug::StaleDraw) && last.len() == draw.len() {
            return last;
        }
        LAST.set(draw.clone());
        draw
    }

    /// Whether the mistake is switched on, on this thread.
    pub(crate) fn active(bug: Bug) -> bool {
        // Here, where every release asks, it is in each binary that can release; `with` is generic, and in tests alone.
        std::hint::black_box(MARK);
        ACTIVE.get() == Some(bug)
    }

    /// Runs `work` on this thread with at most one mistake switched on.
    ///
    /// # Panics
    /// Never by itself; a panic of `work` leaves nothing switched on.
    pub fn with<T>(bug: Option<Bug>, work: impl FnOnce() -> T) -> T {
        struct Off;
        impl Drop for Off {
            fn drop(&mut self) {
                ACTIVE.set(None);
            }
        }
        let _off = Off;
        ACTIVE.set(bug);
        work()
    }
}
