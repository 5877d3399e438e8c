//! The one check of the rows: finite, within the norm bound, targets legal; or clipping to the bounds.
//!
//! No row leaves it whose exact norm, scaled where it is scaled, is above the bound (docs/certificates.md, "Rows"): every computed norm
//! is an upper bound, and a scale leaves room for the rounding of the entries that it makes. Rows that weigh less stay as they are, and
//! their shares follow from these scales.

use std::borrow::Cow;
use std::ops::Range;

use super::blocks::{BlockCheck, of_dense, runs_of};
use super::scales::{BlockScales, GREATEST_NORM, LEAST_FAST_BOUND, ROUNDING_ROOM, Scales, safe_scale};
use super::{Design, OnViolation, RowBlock, RowBounds, Rows};
use crate::exec::{BLOCK, Executor, blocks};
use crate::linalg::{one_within, vector};
use crate::loss::Targets;
use crate::row_domain::{Blocks, RowDomain};
use crate::{Error, Result};

/// Factor from a computed norm of `len` entries to an upper bound on the exact one: `len` products and sums of nonnegative
/// terms and one root err by less than `len + 2` units in the last place.
pub(super) fn rounding_factor(len: usize) -> f64 {
    1.0 + (len as f64 + 4.0) * f64::EPSILON
}

/// Factor from a computed norm, whose last digits depend on the processor's vectors, to above what [`vector::norm_bound`] makes of the row:
/// a row that passes the quick test would pass the exact one.
fn quick_factor(len: usize) -> f64 {
    1.0 + (8.0 * len as f64 + 64.0) * f64::EPSILON
}

/// The squared lengths of the shortest and of the longest row, as [`vector::rows_squared_norms`] computes them.
pub(super) type Extremes = [f64; 2];

/// Rows and targets found within their bounds, or brought there: what [`Design::of_checked`] needs to hold them without another pass.
#[derive(Debug, Clone)]
pub struct Checked {
    pub(super) bounds: RowBounds,
    /// The targets, where clipping changed some.
    pub(super) targets: Option<Vec<f64>>,
    pub(super) scales: Scales,
    /// How much each row weighs, where rows beyond their bounds weigh less.
    pub(super) shares: Option<Vec<f64>>,
    /// How long the rows are, where they were measured and stay as they are.
    pub(super) extremes: Option<Extremes>,
}

impl Checked {
    /// Checks every target and every row.
    pub(super) fn new(rows: &Rows<'_>, targets: &[f64], bounds: &RowBounds, exec: &Executor<'_>) -> Result<Self> {
        let n_rows = targets.len();
        let targets = match checked_targets(targets, bounds)? {
            Cow::Borrowed(_) => None,
            Cow::Owned(clipped) => Some(clipped),
        };
        let (scales, extremes) = match &bounds.rows {
            RowDomain::Ball(norm) => match row_scales(rows, n_rows, (*norm, bounds.on_violation), exec)? {
                (None, extremes) => (Scales::None, Some(extremes)),
                (Some(scales), _) => (Scales::Rows(scales), None),
            },
            RowDomain::Blocks(blocks) => {
                let scaled = block_scales(rows, n_rows, blocks, bounds.on_violation, exec)?;
                let scales = BlockScales::new(blocks, scaled).map_or(Scales::None, Scales::Blocks);
                (scales, None)
            }
        };
        let mut checked = Self {
            bounds: bounds.clone(),
            targets,
            scales,
            shares: None,
            extremes,
        };
        if bounds.on_violation.keeps_rows() {
            let scales = std::mem::replace(&mut checked.scales, Scales::None);
            checked.extremes = None;
            checked.shares = (bounds.on_violation == OnViolation::Weight).then(|| scales.squared(n_rows));
        }
        Ok(checked)
    }

    /// The bounds.
    pub fn bounds(&self) -> &RowBounds {
        &self.bounds
    }
}

/// The blocks that have to be scaled, in order of their rows.
fn block_scales(
    rows: &Rows<'_>,
    n_rows: usize,
    blocks_of_rows: &Blocks,
    on_violation: OnViolation,
    exec: &Executor<'_>,
) -> Result<Vec<(usize, usize, f64)>> {
    let chunks = rows.chunks(n_rows);
    let runs = runs_of(blocks_of_rows);
    let apart = matches!(rows, Rows::Coded(coded) if coded.categories_within(blocks_of_rows));
    let found = exec.map(chunks.len(), |c| {
        let mut scaled = Vec::new();
        let mut check = BlockCheck::new(blocks_of_rows, on_violation);
        for range in blocks(chunks[c].clone()) {
            exec.check()?;
            match rows {
                Rows::Dense(dense) => {
                    let width = dense.n_columns();
                    let rows = dense.rows(&range);
                    // A sum of one term is that term: most rows of tables need no sums.
                    if runs.as_ref().is_some_and(|runs| one_within(&rows, width, runs)) {
                        continue;
                    }
                    for (i, row) in range.zip(rows.chunks_exact(width)) {
                        check.row(i, &of_dense(row), &mut scaled)?;
                    }
                }
                Rows::Csr(csr) => check.rows(&csr.block(range.clone()), range, &mut scaled)?,
                // A sum of one term, as above.
                Rows::Coded(coded) if apart && coded.numbers_within(&range, blocks_of_rows) => {}
                Rows::Coded(coded) => {
                    check.rows(&coded.block(range.clone()), range, &mut scaled)?;
                }
            }
        }
        Ok(scaled)
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// Extremes of no rows.
const NO_ROWS: Extremes = [f64::INFINITY, 0.0];

/// The scale of every row in a ball, `None` when all are 1; and the least and the greatest square that the rows had before.
fn row_scales(
    rows: &Rows<'_>,
    n_rows: usize,
    bounds: (f64, OnViolation),
    exec: &Executor<'_>,
) -> Result<(Option<Vec<f64>>, Extremes)> {
    let bound = bounds.0;
    let chunks = rows.chunks(n_rows);
    let found = exec.map(chunks.len(), |c| {
        let mut shrunk = Vec::new();
        let mut extremes = NO_ROWS;
        let mut squares = [0.0; BLOCK];
        let width = rows.n_columns();
        let factor = quick_factor(width);
        let of_codes = match rows {
            Rows::Coded(coded) => coded.squares(),
            Rows::Dense(_) | Rows::Csr(_) => Vec::new(),
        };
        for block in blocks(chunks[c].clone()) {
            exec.check()?;
            let squares = &mut squares[..block.len()];
            match rows {
                Rows::Dense(dense) => dense.squared_norms(block.clone(), squares),
                Rows::Csr(csr) => csr.squared_norms(block.clone(), squares),
                Rows::Coded(coded) => coded.squared_norms(block.clone(), &of_codes, squares),
            }
            for (i, &mut square) in block.zip(squares) {
                extremes = [extremes[0].min(square), extremes[1].max(square)];
                let within = square.sqrt() * factor <= bound;
                if within && bound > LEAST_FAST_BOUND {
                    continue;
                }
                let scale = match rows.block(i..i + 1) {
                    RowBlock::Dense(row) => row_scale(&row, None, (i, width), bounds)?,
                    RowBlock::Sparse(block) => {
                        let entries = block.entries(0);
                        row_scale(entries.values, Some(entries.columns), (i, width), bounds)?
                    }
                };
                if let Some(scale) = scale {
                    shrunk.push((i, scale));
                }
            }
        }
        Ok((shrunk, extremes))
    })?;
    let merge = |[a, b]: Extremes, (_, [c, d]): &(_, Extremes)| [a.min(*c), b.max(*d)];
    let extremes = found.iter().fold(NO_ROWS, merge);
    if found.iter().all(|(shrunk, _)| shrunk.is_empty()) {
        return Ok((None, extremes));
    }
    let mut scales = vec![1.0; n_rows];
    for (i, scale) in found.into_iter().flat_map(|(shrunk, _)| shrunk) {
        scales[i] = scale;
    }
    Ok((Some(scales), extremes))
}

/// The factor that brings a row within the bound; `None` when it is within.
///
/// `columns` are those of the values where not all `width` columns are stored. Plain sums only: the row that is kept is the same on every
/// machine and in every storage.
fn row_scale(
    row: &[f64],
    columns: Option<&[i32]>,
    (i, width): (usize, usize),
    (bound, on_violation): (f64, OnViolation),
) -> Result<Option<f64>> {
    let norm = vector::sparse_norm_bound(row, width);
    if norm <= bound {
        return Ok(None);
    }
    if !norm.is_finite()
        && let Some((at, &value)) = row.iter().enumerate().find(|(_, v)| !v.is_finite())
    {
        let column = columns.map_or(at, |c| usize::try_from(c[at]).unwrap_or(at));
        return Err(Error::NonFiniteRow { row: i, column, value });
    }
    if !(norm <= GREATEST_NORM) {
        return Err(Error::RowTooLong { norm });
    }
    let tolerated = bound * (1.0 + ROUNDING_ROOM);
    if on_violation == OnViolation::Error && !(norm <= tolerated) {
        return Err(Error::RowNorm { row: i, norm, bound });
    }
    Ok(Some(safe_scale(norm, width, bound)))
}

impl Design<'_> {
    /// Writes `‖xᵢ‖²`, the intercept included, for a range of rows, rounded up.
    pub fn squared_norms(&self, range: Range<usize>, out: &mut [f64]) {
        match &self.rows {
            Rows::Dense(dense) => dense.squared_norms(range.clone(), out),
            Rows::Csr(csr) => csr.squared_norms(range.clone(), out),
            Rows::Coded(coded) => coded.squared_norms(range.clone(), &coded.squares(), out),
        }
        for (i, square) in range.zip(out) {
            let scale = self.rows.scale(i);
            *square = self.whole_square(*square * scale * scale);
        }
    }

    /// `‖x‖²`, the intercept included, rounded up, from what the features give.
    fn whole_square(&self, square: f64) -> f64 {
        let constant = self.intercept.map_or(0.0, |s| s * s);
        (square + constant) * rounding_factor(self.n_params()).powi(2)
    }

    /// The least and the greatest of [`Design::squared_norms`], where the rows were measured when they were checked.
    pub fn extreme_squares(&self) -> Option<[f64; 2]> {
        Some(self.extremes?.map(|square| self.whole_square(square)))
    }
}

/// Whether all numbers pass a test: by blocks, whose loop has no way out, so that it is compiled for vectors.
fn all(numbers: &[f64], test: impl Fn(&f64) -> bool) -> bool {
    let passes = |block: &[f64]| block.iter().fold(true, |all, number| all & test(number));
    numbers.chunks(BLOCK).all(passes)
}

/// The targets, checked and where asked clipped; borrowed when nothing changes.
fn checked_targets<'a>(targets: &'a [f64], bounds: &RowBounds) -> Result<Cow<'a, [f64]>> {
    match bounds.targets {
        Targets::Signs if all(targets, |y| [-1.0, 1.0].contains(y)) => Ok(Cow::Borrowed(targets)),
        Targets::Interval { lower, upper } if all(targets, |y| *y >= lower && *y <= upper) => {
            Ok(Cow::Borrowed(targets))
        }
        Targets::Signs => match targets.iter().position(|y| ![-1.0, 1.0].contains(y)) {
            None => Ok(Cow::Borrowed(targets)),
            Some(row) => Err(Error::Target {
                rule: "-1 or 1".into(),
                row,
                value: targets[row],
            }),
        },
        Targets::Classes { count } => {
            let is_class = |y: &f64| *y >= 0.0 && *y < count as f64 && y.fract() == 0.0;
            match targets.iter().position(|y| !is_class(y)) {
                None => Ok(Cow::Borrowed(targets)),
                Some(row) => Err(Error::Target {
                    rule: format!("a whole number from 0 to {}", count - 1),
                    row,
                    value: targets[row],
                }),
            }
        }
        Targets::Interval { lower, upper } => {
            let inside = |y: &f64| *y >= lower && *y <= upper;
            let clips = bounds.on_violation.moves_targets();
            let refused = |y: &f64| if clips { y.is_nan() } else { !inside(y) };
            if let Some(row) = targets.iter().position(refused) {
                let value = targets[row];
                let rule = if value.is_nan() {
                    "a number".to_owned()
                } else {
                    format!("within target_bounds [{lower}, {upper}] unless rows=\"clip\"")
                };
                return Err(Error::Target { rule, row, value });
            }
            Ok(Cow::Owned(targets.iter().map(|y| y.clamp(lower, upper)).collect()))
        }
    }
}
