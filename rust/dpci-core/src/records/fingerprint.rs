//! A number that changes when rows do, whatever the parts they come in: to notice a source that gives other rows in another pass.
//!
//! Universal hashing with two secrets (docs/certificates.md, "Rows in parts"): a row is a polynomial in one of them, whose coefficients
//! are the bits of its entries; all rows are a polynomial in the other, whose roots are theirs. Products merge in any order.

use std::iter::successors;

use crate::design::{Design, RowBlock};
use crate::exec::{Executor, blocks};
use crate::{Error, Result};

/// The field: a Mersenne prime above the bits of every f64.
const MODULUS: u128 = (1 << 127) - 1;

/// The fingerprint of no rows.
pub(super) const EMPTY: u128 = 1;

/// The secrets of one fit. Without them nobody can make other rows with the same fingerprint, but by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintKey {
    base: u128,
    point: u128,
}

impl FingerprintKey {
    /// The key that random bytes make.
    pub fn new(bytes: [u8; 32]) -> Self {
        let (base, point) = bytes.split_at(16);
        let element = |half: &[u8]| half.iter().fold(0, |number, byte| (number << 8) | u128::from(*byte)) & MODULUS;
        Self {
            base: reduced(element(base)),
            point: reduced(element(point)),
        }
    }

    /// Fingerprint of the rows: their entries as the caller gave them, each with its checked target, with how much it counts and with the
    /// two numbers that stand for its person, if `tags` has them for each row.
    pub(super) fn of_rows(&self, design: &Design<'_>, tags: Option<&[[u64; 2]]>, exec: &Executor<'_>) -> Result<u128> {
        let n_columns = design.n_params() - usize::from(design.intercept().is_some());
        let powers = Powers::new(self.base, n_columns + 4)?;
        let chunks = design.chunks();
        let parts = exec.map(chunks.len(), |c| {
            let mut product = EMPTY;
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                let targets = design.targets(range.clone());
                let mut add = |i: usize, mut row: Products| {
                    row.add(targets[i], powers.at(n_columns));
                    if let Some(shares) = design.shares() {
                        row.add(shares[range.start + i], powers.at(n_columns + 1));
                    }
                    if let Some(tags) = tags {
                        let [first, second] = tags[range.start + i];
                        row.add_bits(first, powers.at(n_columns + 2));
                        row.add_bits(second, powers.at(n_columns + 3));
                    }
                    product = times(product, reduced(MODULUS - row.total() + self.point));
                };
                match design.rows().block(range.clone()) {
                    RowBlock::Dense(rows) => {
                        for i in 0..range.len() {
                            add(i, powers.products(&rows[i * n_columns..(i + 1) * n_columns]));
                        }
                    }
                    RowBlock::Sparse(block) => {
                        for (i, entries) in block.rows().enumerate() {
                            let mut row = Products::default();
                            for (column, value) in entries.iter() {
                                row.add(value, powers.at(column));
                            }
                            add(i, row);
                        }
                    }
                }
            }
            Ok(product)
        })?;
        Ok(parts.into_iter().fold(EMPTY, merged))
    }
}

/// Fingerprint of the rows of both.
pub(super) fn merged(a: u128, b: u128) -> u128 {
    times(a, b)
}

/// Whether a number can be one.
pub(super) fn is_valid(number: u128) -> bool {
    number < MODULUS
}

/// `k, k², ...`, as many as there are columns; of more than a table holds, products of two.
struct Powers {
    low: Vec<u128>,
    high: Vec<u128>,
}

impl Powers {
    /// A megabyte: sparse rows may have 2³¹ columns.
    const TABLE: usize = 1 << 16;

    fn new(base: u128, n: usize) -> Result<Self> {
        let table = |first, ratio, n: usize| {
            let powers = successors(Some(first), |power| Some(times(*power, ratio)));
            powers.take(n).collect::<Vec<_>>()
        };
        let low = table(base, base, n.min(Self::TABLE));
        let last = *low.last().ok_or(Error::Empty { rows: 0, params: 0 })?;
        Ok(Self {
            high: table(1, last, n.div_ceil(Self::TABLE)),
            low,
        })
    }

    fn at(&self, column: usize) -> u128 {
        match column / Self::TABLE {
            0 => self.low[column],
            group => times(self.high[group], self.low[column % Self::TABLE]),
        }
    }

    fn products(&self, row: &[f64]) -> Products {
        let mut sum = Products::default();
        for (value, power) in row.iter().zip(&self.low) {
            sum.add(*value, *power);
        }
        for (column, value) in row.iter().enumerate().skip(Self::TABLE) {
            sum.add(*value, self.at(column));
        }
        sum
    }
}

/// A sum of products of 64-bit numbers with elements of the field: `low + 2⁶⁴ middle + 2¹²⁸ high`, in which nothing overflows.
#[derive(Default)]
struct Products {
    low: u128,
    middle: u128,
    high: u128,
}

impl Products {
    /// Adds the bits of a value; zeros of either sign add nothing, so that sparse rows need not have them.
    #[inline]
    fn add(&mut self, value: f64, power: u128) {
        self.add_bits((value + 0.0).to_bits(), power);
    }

    /// Adds a number.
    #[inline]
    fn add_bits(&mut self, bits: u64, power: u128) {
        let bits = u128::from(bits);
        let [below, above] = [bits * (power & LOW), bits * (power >> 64)];
        self.low += below & LOW;
        self.middle += (below >> 64) + (above & LOW);
        self.high += above >> 64;
    }

    fn total(&self) -> u128 {
        // In the field 2¹²⁷ is 1: a shift by 64 bits moves the upper ones to the lower end.
        let middle = reduced(self.middle);
        let shifted = (middle >> 63) + ((middle << 64) & MODULUS);
        reduced(reduced(self.low + 2 * self.high) + reduced(shifted))
    }
}

const LOW: u128 = u64::MAX as u128;

/// The remainder of any number.
#[inline]
fn reduced(number: u128) -> u128 {
    let folded = (number & MODULUS) + (number >> 127);
    if folded >= MODULUS { folded - MODULUS } else { folded }
}

/// The product of two remainders.
#[inline]
fn times(a: u128, b: u128) -> u128 {
    let ([a0, a1], [b0, b1]) = ([a & LOW, a >> 64], [b & LOW, b >> 64]);
    let middle = a0 * b1 + a1 * b0;
    let (low, carry) = (a0 * b0).overflowing_add(middle << 64);
    let high = a1 * b1 + (middle >> 64) + u128::from(carry);
    reduced(reduced(low) + 2 * high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the schoolbook's doubling and adding.
    fn slow_times(a: u128, b: u128) -> u128 {
        (0..127).rev().fold(0, |sum, bit| {
            let sum = reduced(2 * sum);
            reduced(sum + if (b >> bit) & 1 == 1 { a } else { 0 })
        })
    }

    #[test]
    fn arithmetic_in_the_field() {
        let elements = successors(Some(3_u128), |n| {
            Some(n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) % MODULUS)
        });
        let mut elements: Vec<u128> = elements.take(60).collect();
        elements.extend([0, 1, 2, LOW, LOW + 1, MODULUS / 2, MODULUS - 2, MODULUS - 1]);
        for &a in &elements {
            for &b in &elements {
                assert_eq!(times(a, b), slow_times(a, b), "{a} {b}");
            }
        }
        for number in [0, MODULUS - 1, MODULUS, MODULUS + 1, 2 * MODULUS, u128::MAX] {
            assert_eq!(reduced(number), number % MODULUS);
        }
    }

    #[test]
    fn sums_of_products_and_powers() {
        // The greatest numbers.
        let (value, power) = (f64::MIN, MODULUS - 1);
        let bits = reduced(u128::from((value + 0.0).to_bits()));
        let mut sum = Products::default();
        for n in 1..=1000 {
            sum.add(value, power);
            assert_eq!(sum.total(), times(times(bits, power), n));
        }
        let powers = Powers::new(5, 3 * Powers::TABLE).unwrap();
        let mut power = 1;
        for column in 0..3 * Powers::TABLE {
            power = times(power, 5);
            assert_eq!(powers.at(column), power);
        }
    }
}
