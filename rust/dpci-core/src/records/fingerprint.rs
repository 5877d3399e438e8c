//! A number that changes when rows do, whatever the parts they come in: to notice a source that gives other rows in another pass.

use crate::Result;
use crate::design::{Design, Rows};
use crate::exec::{Executor, blocks};

/// The sum over all rows of a hash of each one, its entries as the caller gave them and its checked target.
///
/// Against mistakes, not against an adversary, who could lie about the rows anyway.
///
/// # Errors
/// [`crate::Error::Interrupted`].
pub(super) fn of_rows(design: &Design<'_>, exec: &Executor<'_>) -> Result<u64> {
    let n_columns = design.n_params() - usize::from(design.intercept().is_some());
    let keys: Vec<u64> = match design.rows() {
        Rows::Dense(_) => (0..n_columns as u64).map(mixed).collect(),
        Rows::Csr(_) => Vec::new(),
    };
    let chunks = design.chunks();
    let parts = exec.map(chunks.len(), |c| {
        let mut sum = 0_u64;
        for range in blocks(chunks[c].clone()) {
            exec.check()?;
            for (i, target) in range.clone().zip(design.targets(range.clone())) {
                let entries = match design.rows() {
                    Rows::Dense(dense) => {
                        let row = dense.rows(&(i..i + 1));
                        row.iter().zip(&keys).fold(0, |hash: u64, (value, key)| {
                            hash.wrapping_add(value.to_bits().wrapping_mul(*key))
                        })
                    }
                    Rows::Csr(csr) => {
                        let block = csr.block(i..i + 1);
                        block
                            .entries(0)
                            .iter()
                            .fold(0, |hash: u64, (column, value)| {
                                hash.wrapping_add(
                                    value.to_bits().wrapping_mul(mixed(column as u64)),
                                )
                            })
                    }
                };
                sum = sum.wrapping_add(mixed(entries ^ mixed(target.to_bits())));
            }
        }
        Ok(sum)
    })?;
    Ok(parts.into_iter().fold(0, u64::wrapping_add))
}

/// Scrambles a number (Steele, Lea & Flood 2014); odd, to multiply by.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) | 1
}
