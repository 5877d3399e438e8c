//! Dense rows whose groups of columns hold at most one entry each, always the same, as coded rows.
//!
//! The groups are public, and coded rows have the same entries: no value tells whether they were recognised.

use std::ops::Range;
use std::sync::Arc;

use super::blocks::runs_of;
use super::coded::{Coded, Codes};
use super::{Dense, Rows};
use crate::Result;
use crate::exec::{Executor, blocks, row_chunks};
use crate::linalg::{Category, Layout, one_entry};
use crate::row_domain::RowDomain;

/// Rows that are looked at before all are.
const SAMPLE: usize = 256;

impl Rows<'_> {
    /// The rows as codes, where they are dense and in memory, blocks of several columns are categories, and codes take at most half the memory.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub fn recognised(&self, domain: &RowDomain, exec: &Executor<'_>) -> Result<Option<Coded<'static>>> {
        let (Self::Dense(dense), RowDomain::Blocks(blocks)) = (self, domain) else {
            return Ok(None);
        };
        let is_plain = !dense.is_mapped && dense.placement.is_none() && dense.n_rows() > 0;
        if !is_plain || blocks.dim() != dense.n_columns() {
            return Ok(None);
        }
        let runs = runs_of(blocks).unwrap_or_default();
        let groups = runs.iter().map(|(first, end, _)| *first..*end);
        let groups: Vec<_> = groups.filter(|columns| columns.len() > 1).collect();
        coded(dense, groups, exec)
    }
}

/// The codes of the groups in a range of rows, and the bits of their entries, 0 before the first; `None` where a group is no category.
type Found = Vec<Option<(Vec<u32>, u64)>>;

fn find(dense: &Dense<'_>, groups: &[Range<usize>], rows: Range<usize>, exec: &Executor<'_>) -> Result<Found> {
    let mut found: Found = groups.iter().map(|_| Some((Vec::new(), 0))).collect();
    for range in blocks(rows) {
        exec.check()?;
        let rows = dense.rows(&range);
        for (columns, found) in groups.iter().zip(&mut found) {
            if let Some((codes, bits)) = found
                && !one_entry(&rows, dense.n_columns(), columns, (codes, bits))
            {
                *found = None;
            }
        }
    }
    Ok(found)
}

/// The codes of each group in a chunk, and its numbers.
type Part = (Found, Vec<f64>);

fn coded(dense: &Dense<'_>, mut groups: Vec<Range<usize>>, exec: &Executor<'_>) -> Result<Option<Coded<'static>>> {
    let (n, n_columns) = (dense.n_rows(), dense.n_columns());
    let mut sampled = find(dense, &groups, 0..n.min(SAMPLE), exec)?.into_iter();
    groups.retain(|_| sampled.next().flatten().is_some());
    // Coded rows are fastest with the categories of few levels first.
    groups.sort_by_key(|columns| (columns.len(), columns.start));
    let most = groups.last().map_or(0, Range::len);
    let n_levels: usize = groups.iter().map(Range::len).sum();
    let n_bytes = 8 * (n_columns - n_levels) + Codes::width(most) * groups.len();
    // At most half the memory of dense rows.
    if groups.is_empty() || 2 * n_bytes > 8 * n_columns {
        return Ok(None);
    }
    let mut is_number = vec![true; n_columns];
    for columns in &groups {
        is_number[columns.clone()].fill(false);
    }
    let numbers: Vec<usize> = (0..n_columns).filter(|j| is_number[*j]).collect();
    let chunks = row_chunks(n, n_columns);
    let parts = exec.map(chunks.len(), |c| {
        let found = find(dense, &groups, chunks[c].clone(), exec)?;
        let mut kept = Vec::with_capacity(chunks[c].len() * numbers.len());
        for range in blocks(chunks[c].clone()) {
            for row in dense.rows(&range).chunks_exact(n_columns) {
                kept.extend(numbers.iter().map(|j| row[*j]));
            }
        }
        Ok((found, kept))
    })?;
    let Some(Ok(layout)) = agreed(&groups, &parts).map(|all| Layout::new(numbers, all)) else {
        return Ok(None);
    };
    let (kept, codes) = joined(parts, n * groups.len());
    let codes = Codes::narrowest(codes, most);
    Ok(Some(Coded::new(kept, codes, Arc::new(layout))?))
}

/// Categories whose entry is the same in all parts; `None` where a group is no category.
fn agreed(groups: &[Range<usize>], parts: &[Part]) -> Option<Vec<Category>> {
    let category = |(g, columns): (usize, &Range<usize>)| {
        let mut entry = 0;
        for (found, _) in parts {
            match &found[g] {
                Some((_, bits)) if entry == 0 || *bits == 0 || entry == *bits => entry |= bits,
                _ => return None,
            }
        }
        Some(Category {
            first: columns.start,
            levels: columns.len(),
            // Of a group without an entry anything is true.
            value: if entry == 0 { 1.0 } else { f64::from_bits(entry) },
        })
    };
    groups.iter().enumerate().map(category).collect()
}

/// Numbers and codes of all parts, row by row.
fn joined(parts: Vec<Part>, n_codes: usize) -> (Vec<f64>, Vec<u32>) {
    let (mut numbers, mut codes) = (Vec::new(), Vec::with_capacity(n_codes));
    for (found, kept) in parts {
        let found = found.into_iter().flatten();
        let columns: Vec<Vec<u32>> = found.map(|(codes, _)| codes).collect();
        for i in 0..columns[0].len() {
            codes.extend(columns.iter().map(|column| column[i]));
        }
        numbers.extend(kept);
    }
    (numbers, codes)
}
