//! Approaches the minimiser of the hinge risk of many rows by coordinate descent in the dual, one row at a time.
//!
//! Each row `a = yx` has a share `s` in `[0, 1]` of its count, and `θ = (pull + Σ m·s·a)/ridge`. A step moves the share of one row to
//! where its slack `1 - aᵀθ` is zero, or to the nearest bound. Rows whose share is at a bound that their slack presses it to,
//! by more than any other row's slack pressed in the epoch before, rest (Hsieh, Chang, Lin, Keerthi & Sundararajan 2008). Zeros
//! of rows cost nothing.
//!
//! Once few rows move, the method of multipliers settles those nearest to their kinks. No point is trusted: all rows are split where it is,
//! and the caller certifies.

use std::hint::black_box;

use super::entries::{Entries, LANES};
use super::kink_split::{KinkSplit, Partial, Place, add_entry, joined, length, linear_pull, rows_of};
use super::multipliers::Multiplied;
use crate::Result;
use crate::exec::{BLOCK, Executor, blocks, check_room, row_chunks};
use crate::linalg::vector;
use crate::loss::HINGE_MAX_DIM;
use crate::objective::Objective;

/// Rows that are visited one after another, so that reading them is quick.
const NEIGHBOURS: usize = 32;

/// Rows visited in all, in terms of their number. If more are needed there is a better way to the minimiser.
const MAX_EPOCHS: usize = 24;

/// Seed of the orders in which rows are visited, a public constant.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A row that still moves, with all that a visit needs beside its entries: visits are in random order.
#[derive(Debug, Clone, Copy)]
struct Moving {
    row: usize,
    share: f64,
    /// `m/ridge`: how far the whole share moves the point along the row.
    weight: f64,
    /// How far a slack of 1 moves the share.
    gain: f64,
}

/// Rows `a = yx` with their shares and the point that follows from them.
#[derive(Debug)]
pub(super) struct Descent {
    dim: usize,
    entries: Entries,
    counts: Vec<f64>,
    lengths: Vec<f64>,
    shares: Vec<f64>,
    pull: Vec<f64>,
    ridge: f64,
    params: Box<[f64; HINGE_MAX_DIM]>,
}

/// The rows of one chunk.
struct Copied {
    entries: Entries,
    counts: Vec<f64>,
    lengths: Vec<f64>,
}

impl Descent {
    /// The rows of an objective, their shares zero; `None` where they are too many to copy.
    pub(super) fn new(objective: &Objective<'_>, most: usize) -> Result<Option<Self>> {
        let design = rows_of(objective)?;
        let copied = design.n_entries();
        if copied > most || check_room(2 * copied).is_err() {
            return Ok(None);
        }
        let dim = design.n_params();
        let weights = objective.weights.or(design.multiplicities());
        let chunks = design.chunks();
        let partials = objective.exec.map(chunks.len(), |c| {
            let mut part = Copied {
                entries: Entries::default(),
                counts: Vec::with_capacity(chunks[c].len()),
                lengths: Vec::with_capacity(chunks[c].len()),
            };
            let mut buffer = vec![0.0; BLOCK * dim];
            let mut squares = [0.0; BLOCK];
            for range in blocks(chunks[c].clone()) {
                objective.exec.check()?;
                let rows = &mut buffer[..range.len() * dim];
                design.write_rows(range.clone(), rows);
                let squares = &mut squares[..range.len()];
                vector::rows_squared_norms(rows, dim, squares);
                let targets = design.targets(range.clone());
                for (k, (row, &y)) in rows.chunks_exact(dim).zip(targets).enumerate() {
                    part.entries.push(row, y);
                    part.counts.push(weights.map_or(1.0, |w| f64::from(w[range.start + k])));
                    part.lengths.push(length(squares[k], row));
                }
            }
            Ok(part)
        })?;
        let mut whole = Self {
            dim,
            entries: Entries {
                starts: vec![0],
                ..Entries::default()
            },
            counts: Vec::with_capacity(design.n_rows()),
            lengths: Vec::with_capacity(design.n_rows()),
            shares: vec![0.0; design.n_rows()],
            pull: linear_pull(objective).iter().map(|p| p.rounded()).collect(),
            ridge: objective.n_samples * objective.strong_convexity(),
            params: Box::new([0.0; HINGE_MAX_DIM]),
        };
        for part in partials {
            let Entries {
                starts,
                columns,
                values,
            } = part.entries;
            let before = whole.entries.columns.len();
            let n_groups = starts.last().copied().unwrap_or_default();
            whole.entries.starts.extend(starts.iter().map(|s| before + s));
            whole.entries.columns.extend_from_slice(&columns[..n_groups]);
            whole.entries.values.extend_from_slice(&values[..n_groups]);
            whole.counts.extend(part.counts);
            whole.lengths.extend(part.lengths);
        }
        for (t, p) in whole.params.iter_mut().zip(&whole.pull) {
            *t = p / whole.ridge;
        }
        Ok(Some(whole))
    }

    /// Visits rows until the shares of at most `enough` of them still change, or so often as is worth it; how many still change.
    pub(super) fn descend(&mut self, enough: usize, exec: &Executor<'_>) -> Result<usize> {
        let all = (0..self.counts.len()).filter(|&i| self.has_kink(i));
        let mut moving: Vec<Moving> = all.map(|i| self.moving(i)).collect();
        let mut allowed = MAX_EPOCHS * moving.len();
        let mut n_changed = moving.len();
        let mut order = Order(SEED);
        // The greatest slacks that pressed shares up and down in the last epoch.
        let (mut up, mut down) = (f64::INFINITY, f64::INFINITY);
        while n_changed > enough {
            let Some(left) = allowed.checked_sub(moving.len()) else {
                break;
            };
            allowed = left;
            let mut groups: Vec<&mut [Moving]> = moving.chunks_mut(NEIGHBOURS).collect();
            order.shuffle(&mut groups);
            let mut kept = Vec::with_capacity(groups.len() * NEIGHBOURS);
            let (mut most_up, mut most_down) = (0.0_f64, 0.0_f64);
            n_changed = 0;
            for group in groups {
                exec.check()?;
                order.shuffle(group);
                // All are loaded before the first slack waits for its own: groups are anywhere.
                black_box(group.iter().fold(0, |sum, m| sum ^ self.entries.touch(m.row)));
                for moving in &*group {
                    let slack = self.slack(moving.row);
                    let share = moving.share;
                    if (share <= 0.0 && -slack > down) || (share >= 1.0 && slack > up) {
                        continue;
                    }
                    let next = (share + slack * moving.gain).clamp(0.0, 1.0);
                    kept.push(Moving { share: next, ..*moving });
                    if next > share {
                        most_up = most_up.max(slack);
                    } else if next < share {
                        most_down = most_down.max(-slack);
                    } else {
                        continue;
                    }
                    n_changed += 1;
                    self.shares[moving.row] = next;
                    let change = (next - share) * moving.weight;
                    self.entries.add_to(moving.row, change, &mut self.params);
                }
            }
            moving = kept;
            let or_all = |most| if most > 0.0 { most } else { f64::INFINITY };
            (up, down) = (or_all(most_up), or_all(most_down));
        }
        Ok(n_changed)
    }

    /// Splits the rows at the point: the `n_near` nearest to their kinks are near, and those that are as near as the last of them.
    pub(super) fn nearest(&self, n_near: usize) -> Nearest {
        let distances: Vec<(usize, f64)> = (0..self.counts.len())
            .filter(|&i| self.has_kink(i))
            .map(|i| (i, self.slack(i) / self.lengths[i]))
            .collect();
        let mut sizes: Vec<f64> = distances.iter().map(|(_, d)| d.abs()).collect();
        let reach = if sizes.len() > n_near {
            *sizes.select_nth_unstable_by(n_near, f64::total_cmp).1
        } else {
            f64::INFINITY
        };
        let mut nearest = Nearest {
            split: KinkSplit {
                dim: self.dim,
                ..KinkSplit::default()
            },
            multipliers: Vec::new(),
            rows: Vec::new(),
            sides: vec![0.0; self.counts.len()],
        };
        let split = &mut nearest.split;
        let mut pull = Box::new([0.0; HINGE_MAX_DIM]);
        pull[..self.dim].copy_from_slice(&self.pull);
        for (i, distance) in distances {
            if distance.abs() <= reach {
                let at = split.near.len();
                split.near.resize(at + self.dim, 0.0);
                self.entries.write(i, &mut split.near[at..]);
                split.counts.push(self.counts[i]);
                nearest.multipliers.push(self.shares[i] * self.counts[i]);
                nearest.rows.push(i);
            } else {
                nearest.sides[i] = distance;
                if distance > 0.0 {
                    self.entries.add_to(i, self.counts[i], &mut pull);
                }
            }
        }
        split.pull = pull[..self.dim].iter().map(|&p| p.into()).collect();
        nearest
    }

    /// Moves to the point to which the near rows were settled; whether any of the others is beyond its kink there, by more than `reach`.
    pub(super) fn move_to(&mut self, at: &Multiplied, nearest: &Nearest, reach: f64) -> bool {
        self.params[..self.dim].copy_from_slice(&at.params);
        for (&i, multiplier) in nearest.rows.iter().zip(&at.multipliers) {
            self.shares[i] = multiplier / self.counts[i];
        }
        let mut crossed = false;
        let settled = nearest.sides.iter().enumerate();
        for (i, &side) in settled.filter(|(_, side)| **side != 0.0) {
            self.shares[i] = f64::from(side > 0.0);
            let distance = self.slack(i) / self.lengths[i];
            crossed |= !(side.signum() * distance >= -reach);
        }
        crossed
    }

    /// The rows split at the point, near those within `reach` of their kinks, as `kink_split::split` does with all entries.
    pub(super) fn split(&self, objective: &Objective<'_>, reach: f64) -> Result<KinkSplit> {
        let place = Place {
            params_norm: vector::norm(self.params()),
            reach,
        };
        let width = LANES * self.entries.columns.len() / self.counts.len();
        let chunks = row_chunks(self.counts.len(), width);
        let partials = objective.exec.map(chunks.len(), |c| {
            let mut part = Partial::new(self.dim);
            for range in blocks(chunks[c].clone()) {
                objective.exec.check()?;
                for i in range.filter(|&i| self.has_kink(i)) {
                    let row = (self.slack(i), self.lengths[i], self.counts[i]);
                    let write = |out: &mut [f64]| self.entries.write(i, out);
                    let add = |high: &mut [f64], low: &mut [f64]| {
                        for (column, value) in self.entries.of(i) {
                            add_entry(self.counts[i], value, &mut high[column], &mut low[column]);
                        }
                    };
                    part.place(place, row, write, add);
                }
            }
            Ok(part)
        })?;
        Ok(joined(objective, self.dim, partials))
    }

    /// The point.
    pub(super) fn params(&self) -> &[f64] {
        &self.params[..self.dim]
    }

    /// The share of each row.
    #[cfg(test)]
    pub(super) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// `1 - aᵀθ`.
    #[inline(always)]
    fn slack(&self, i: usize) -> f64 {
        self.entries.slack(i, &self.params)
    }

    fn moving(&self, row: usize) -> Moving {
        let weight = self.counts[row] / self.ridge;
        Moving {
            row,
            share: self.shares[row],
            weight,
            gain: 1.0 / (weight * self.lengths[row] * self.lengths[row]),
        }
    }

    fn has_kink(&self, i: usize) -> bool {
        self.counts[i] > 0.0 && self.lengths[i] > 0.0
    }
}

/// Rows split by the distances of their kinks.
#[derive(Debug)]
pub(super) struct Nearest {
    pub(super) split: KinkSplit,
    /// Multipliers of the near rows.
    pub(super) multipliers: Vec<f64>,
    /// Which rows are near.
    rows: Vec<usize>,
    /// The slacks of the settled rows over their lengths; zero for the others.
    sides: Vec<f64>,
}

/// Orders of visits, by the generator xorshift64.
struct Order(u64);

impl Order {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // Lower bits would do as well.
        usize::try_from(self.0 >> 32).unwrap_or_default() % n
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}
