//! Rows moved to the middle of bounds and scaled, and whether numbers are within a bound: plain loops over contiguous rows.

use pulp::{Simd, WithSimd};

wide_loop! {
    /// `(x - m) · f` of each column of contiguous rows.
    pub fn place_rows(placed: &'a mut [f64], rows: &'a [f64], middle: &'a [f64], factor: &'a [f64]) {
        let width = middle.len().max(1);
        for (out, row) in placed.chunks_exact_mut(width).zip(rows.chunks_exact(width)) {
            for (((o, x), m), f) in out.iter_mut().zip(row).zip(middle).zip(factor) {
                *o = (x - m) * f;
            }
        }
    }
}

wide_loop! {
    /// The same, held to ±1; NaN of what is not finite.
    pub fn clip_rows(placed: &'a mut [f64], rows: &'a [f64], middle: &'a [f64], factor: &'a [f64]) {
        let width = middle.len().max(1);
        for (out, row) in placed.chunks_exact_mut(width).zip(rows.chunks_exact(width)) {
            for (((o, x), m), f) in out.iter_mut().zip(row).zip(middle).zip(factor) {
                // The last term is 0 of finite numbers.
                *o = ((x - m) * f).clamp(-1.0, 1.0) + x * 0.0;
            }
        }
    }
}

/// Whether every number is at most this in size; not where one is NaN.
#[must_use]
pub fn all_within(numbers: &[f64], bound: f64) -> bool {
    let mut within = true;
    every_within(&mut within, numbers, bound);
    within
}

wide_loop! {
    fn every_within(within: &'a mut bool, numbers: &'a [f64], bound: f64) {
        *within = numbers.iter().fold(true, |all, v| all & (v.abs() <= bound));
    }
}
