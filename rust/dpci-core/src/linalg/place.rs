//! Rows moved to the middle of bounds and scaled, and whether they are surely within blocks: plain loops over contiguous rows.

use std::ops::Range;

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

/// Consecutive columns from the first number to the second, and a bound.
pub type Run = (usize, usize, f64);

/// Whether contiguous rows have at most one number that is not 0 in each run, and none beyond its bound in size; not where one is NaN.
pub fn one_within(rows: &[f64], width: usize, runs: &[Run]) -> bool {
    let mut within = true;
    every_one_within(&mut within, rows, &width, runs);
    within
}

wide_loop! {
    fn every_one_within(within: &'a mut bool, rows: &'a [f64], width: &'a usize, runs: &'a [Run]) {
        for row in rows.chunks_exact((*width).max(1)) {
            for (from, to, bound) in runs {
                let (mut inside, mut count) = (true, 0_u64);
                for x in &row[*from..*to] {
                    inside &= x.abs() <= *bound;
                    count += u64::from(*x != 0.0);
                }
                *within &= inside && count <= 1;
            }
        }
    }
}

/// Reads some columns of contiguous rows as a category: adds to the codes the place of each row's one entry, counted from 1, or 0, and
/// sets the bits of the entries where they are not known. Whether no row has two entries or another one.
pub fn one_entry(rows: &[f64], width: usize, columns: &Range<usize>, (codes, bits): (&mut Vec<u32>, &mut u64)) -> bool {
    let mut holds = true;
    add_codes(rows, &width, columns, codes, bits, &mut holds);
    holds
}

wide_loop! {
    fn add_codes(
        rows: &'a [f64], width: &'a usize, columns: &'a Range<usize>, codes: &'a mut Vec<u32>, bits: &'a mut u64,
        holds: &'a mut bool
    ) {
        for row in rows.chunks_exact((*width).max(1)) {
            let (mut count, mut place, mut entry) = (0_u64, 0_u64, 0_u64);
            for (number, x) in (1_u64..).zip(&row[columns.clone()]) {
                let is_entry = u64::from(x.to_bits() != 0);
                count += is_entry;
                place += is_entry * number;
                entry |= x.to_bits();
            }
            if *bits == 0 {
                *bits = entry;
            }
            *holds &= count == 0 || (count == 1 && entry == *bits);
            // A place is a number of a column, unless nothing holds.
            codes.push(u32::try_from(place).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_one_number_in_each_run() {
        let runs = [(0, 1, 0.5), (1, 4, 1.0)];
        let within = |row: [f64; 4]| {
            let rows = [[0.0; 4], row].concat();
            one_within(&rows, 4, &runs)
        };
        assert!(within([-0.5, 0.0, -1.0, -0.0]));
        for row in [
            [0.500_001, 0.0, 1.0, 0.0],
            [0.5, 0.0, 0.0, 1.000_001],
            [0.0, 0.25, 0.0, 0.25],
            [f64::NAN, 0.0, 0.0, 0.0],
            [0.0, 0.0, f64::NAN, 0.0],
            [0.0, f64::NEG_INFINITY, 0.0, 0.0],
        ] {
            assert!(!within(row), "{row:?}");
        }
        assert!(one_within(&[], 4, &runs));
    }
}
