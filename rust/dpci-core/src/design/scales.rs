//! Factors that bring rows, or blocks of them, within their bounds, and the entries of the rows that they make.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::row_domain::Blocks;

/// Below this bound squares of entries could vanish in underflow and every row is measured with scaling.
pub(super) const LEAST_FAST_BOUND: f64 = 1e-140;

/// Longer rows are refused even when clipping: their products with parameters could overflow before they are scaled.
pub(super) const GREATEST_NORM: f64 = 1e150;

/// Relative room that [`OnViolation::Error`] leaves above the bound for rows that the caller normalised in floating point.
///
/// Such a row is not refused but scaled below the bound like a clipped one, so the bound that privacy uses holds strictly.
pub(super) const ROUNDING_ROOM: f64 = 1e-9;

/// Shares of rows beyond their bounds are not below this: products of smaller ones with a slope or a curvature could be subnormal, which
/// rounds them up by more than a part of themselves, and the row multiplies that by its length.
const LEAST_SHARE: f64 = f64::MIN_POSITIVE / f64::EPSILON;

/// Factors that bring the rows into their domain.
#[derive(Debug, Clone)]
pub(super) enum Scales {
    /// Nothing has to.
    None,
    /// A factor for every row.
    Rows(Vec<f64>),
    /// Factors of single blocks.
    Blocks(BlockScales),
}

impl Scales {
    /// The square of the least factor of each row, rounded down; 0 below [`LEAST_SHARE`].
    pub(super) fn squared(&self, n_rows: usize) -> Vec<f64> {
        let square = |scale: f64| match (scale * scale).next_down() {
            square if square >= LEAST_SHARE => square,
            _ => 0.0,
        };
        let mut squares = vec![1.0; n_rows];
        match self {
            Self::None => {}
            Self::Rows(scales) => {
                let pairs = squares.iter_mut().zip(scales).filter(|(_, s)| **s < 1.0);
                pairs.for_each(|(w, s)| *w = square(*s));
            }
            Self::Blocks(blocks) => {
                for (i, _, scale) in &blocks.scaled {
                    squares[*i] = squares[*i].min(square(*scale));
                }
            }
        }
        squares
    }
}

/// A block of a row, and the factor that brings it within its bound.
pub(super) type Scaled = (usize, usize, f64);

/// Blocks that are scaled, in order of their rows: row `i` stands for its entries times the factors of their blocks, rounded.
#[derive(Debug, Clone)]
pub(super) struct BlockScales {
    blocks: Arc<Blocks>,
    scaled: Vec<Scaled>,
}

impl BlockScales {
    /// `None` where nothing is scaled.
    pub(super) fn new(blocks: &Arc<Blocks>, scaled: Vec<Scaled>) -> Option<Self> {
        (!scaled.is_empty()).then(|| Self {
            blocks: Arc::clone(blocks),
            scaled,
        })
    }

    /// The scales of a range of rows.
    fn within(&self, range: &Range<usize>) -> &[Scaled] {
        let first = self.scaled.partition_point(|(i, ..)| *i < range.start);
        let rest = &self.scaled[first..];
        &rest[..rest.partition_point(|(i, ..)| *i < range.end)]
    }

    /// Contiguous rows as they are kept.
    pub(super) fn dense<'r>(&self, range: &Range<usize>, rows: Cow<'r, [f64]>) -> Cow<'r, [f64]> {
        let scaled = self.within(range);
        if scaled.is_empty() {
            return rows;
        }
        let mut rows = rows.into_owned();
        let members = self.blocks.members();
        for (i, block, scale) in scaled {
            let row = (i - range.start) * members.len();
            for (x, member) in rows[row..row + members.len()].iter_mut().zip(members) {
                if member == block {
                    *x *= scale;
                }
            }
        }
        Cow::Owned(rows)
    }

    /// Entries of sparse rows as they are kept; row `i` has those from `starts[i]` to `starts[i + 1]`, counted from `starts[0]`.
    pub(super) fn sparse<'r>(
        &self,
        range: &Range<usize>,
        entry: impl Fn(usize) -> usize,
        columns: &[i32],
        values: Cow<'r, [f64]>,
    ) -> Cow<'r, [f64]> {
        let scaled = self.within(range);
        if scaled.is_empty() {
            return values;
        }
        let mut values = values.into_owned();
        let members = self.blocks.members();
        let first = entry(range.start);
        for (i, block, scale) in scaled {
            for e in entry(*i) - first..entry(i + 1) - first {
                if members[column_index(columns[e])] == *block {
                    values[e] *= scale;
                }
            }
        }
        Cow::Owned(values)
    }
}

/// A factor `s` such that a row of at most this norm, its entries `s·v` rounded, is no longer than the bound: `s` has two roundings and
/// each entry one, or where it is subnormal an error below the least number.
pub(super) fn safe_scale(norm: f64, len: usize, bound: f64) -> f64 {
    // Above this the factor 1 - 4ε leaves more than the errors of subnormal entries.
    let room = if bound > LEAST_FAST_BOUND {
        bound
    } else {
        subnormal_room(len, bound)
    };
    let scale = room / norm * (1.0 - 4.0 * f64::EPSILON);
    // A subnormal factor has lost the digits on which the above rests.
    if scale < f64::MIN_POSITIVE { 0.0 } else { scale }
}

/// A bound less what subnormal entries can err by. Apart, because arithmetic with subnormal numbers is slow wherever it is not skipped.
#[cold]
fn subnormal_room(len: usize, bound: f64) -> f64 {
    (bound - len as f64 * f64::from_bits(1)).max(0.0)
}

/// A column as an index.
#[expect(clippy::cast_sign_loss, reason = "columns were checked to lie in 0..n_columns")]
pub(super) fn column_index(column: i32) -> usize {
    column as usize
}
