//! Approaches the minimiser of the hinge risk of many rows by coordinate descent in the dual, one row at a time.
//!
//! Each row `a = yx` has a share `s` in `[0, 1]` of its count, and `θ = (pull + Σ m·s·a)/ridge`. A step moves the share of one row to
//! where its slack `1 - aᵀθ` is zero, or to the nearest bound. Rows whose share is at a bound that their slack presses it to,
//! by more than any other row's slack pressed in the epoch before, rest (Hsieh, Chang, Lin, Keerthi & Sundararajan 2008). Zeros
//! of rows cost nothing.
//!
//! Once few rows move, the method of multipliers settles those nearest to their kinks. Nothing here is trusted: the caller splits
//! all rows at the point and certifies.

use super::kink_split::{KinkSplit, length, linear_pull, rows_of};
use super::multipliers::Multiplied;
use crate::Result;
use crate::exec::{BLOCK, Executor, blocks, check_room};
use crate::linalg::vector;
use crate::loss::HINGE_MAX_DIM;
use crate::objective::Objective;

/// Entries of a row are kept in groups of so many, the last one filled up with zeros: sums of as many lanes.
const LANES: usize = 4;

/// Rows that are visited one after another, so that reading them is quick.
const NEIGHBOURS: usize = 32;

/// Rows visited in all, in terms of their number. If more are needed there is a better way to the minimiser.
const MAX_EPOCHS: usize = 24;

/// Seed of the orders in which rows are visited, a public constant.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Rows without their zeros.
#[derive(Debug, Default)]
struct Entries {
    /// Groups of entries: row `i` has `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
    columns: Vec<[u16; LANES]>,
    values: Vec<[f64; LANES]>,
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

impl Entries {
    fn push(&mut self, row: &[f64], factor: f64) {
        let mut group = ([0; LANES], [0.0; LANES]);
        let mut filled = 0;
        for (column, &value) in (0..).zip(row) {
            group.0[filled] = column;
            group.1[filled] = value * factor;
            filled += usize::from(value != 0.0);
            if filled == LANES {
                self.columns.push(group.0);
                self.values.push(group.1);
                filled = 0;
            }
        }
        if filled > 0 {
            group.0[filled..].fill(0);
            group.1[filled..].fill(0.0);
            self.columns.push(group.0);
            self.values.push(group.1);
        }
        self.starts.push(self.columns.len());
    }

    fn row(&self, i: usize) -> (&[[u16; LANES]], &[[f64; LANES]]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// `1 - aᵀθ`.
    #[inline(always)]
    fn slack(&self, i: usize, params: &[f64; HINGE_MAX_DIM]) -> f64 {
        let (columns, values) = self.row(i);
        let mut sums = [0.0; LANES];
        for (columns, values) in columns.iter().zip(values) {
            for lane in 0..LANES {
                sums[lane] += values[lane] * params[usize::from(columns[lane]) % HINGE_MAX_DIM];
            }
        }
        1.0 - ((sums[0] + sums[1]) + (sums[2] + sums[3]))
    }

    /// Writes a row into zeros.
    fn write(&self, i: usize, out: &mut [f64]) {
        let (columns, values) = self.row(i);
        for (&column, &value) in columns.as_flattened().iter().zip(values.as_flattened()) {
            if value != 0.0 {
                out[usize::from(column)] = value;
            }
        }
    }

    /// `out += factor·a`.
    #[inline(always)]
    fn add_to(&self, i: usize, factor: f64, out: &mut [f64; HINGE_MAX_DIM]) {
        let (columns, values) = self.row(i);
        for (columns, values) in columns.iter().zip(values) {
            for lane in 0..LANES {
                out[usize::from(columns[lane]) % HINGE_MAX_DIM] += factor * values[lane];
            }
        }
    }
}

/// What one chunk of rows contributes.
struct Partial {
    entries: Entries,
    counts: Vec<f64>,
    lengths: Vec<f64>,
}

impl Descent {
    /// The rows of an objective, their shares zero; `None` where they are too many to copy.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`], [`crate::Error::Unsupported`] for rows in parts.
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
            let mut part = Partial {
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
                    part.counts
                        .push(weights.map_or(1.0, |w| f64::from(w[range.start + k])));
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
            let before = whole.entries.columns.len();
            let starts = part.entries.starts.iter().map(|s| before + s);
            whole.entries.starts.extend(starts);
            whole.entries.columns.extend(part.entries.columns);
            whole.entries.values.extend(part.entries.values);
            whole.counts.extend(part.counts);
            whole.lengths.extend(part.lengths);
        }
        for (t, p) in whole.params.iter_mut().zip(&whole.pull) {
            *t = p / whole.ridge;
        }
        Ok(Some(whole))
    }

    /// Visits rows until the shares of at most `enough` of them still change, or so often as is worth it; how many still change.
    ///
    /// # Errors
    /// [`crate::Error::Interrupted`].
    pub(super) fn descend(&mut self, enough: usize, exec: &Executor<'_>) -> Result<usize> {
        let all = 0..self.counts.len();
        let mut moving: Vec<usize> = all.filter(|&i| self.has_kink(i)).collect();
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
            let mut groups: Vec<&mut [usize]> = moving.chunks_mut(NEIGHBOURS).collect();
            order.shuffle(&mut groups);
            let mut kept = Vec::with_capacity(groups.len() * NEIGHBOURS);
            let (mut most_up, mut most_down) = (0.0_f64, 0.0_f64);
            n_changed = 0;
            for group in groups {
                exec.check()?;
                order.shuffle(group);
                for &i in &*group {
                    let slack = self.entries.slack(i, &self.params);
                    let share = self.shares[i];
                    if (share <= 0.0 && -slack > down) || (share >= 1.0 && slack > up) {
                        continue;
                    }
                    kept.push(i);
                    let weight = self.counts[i] / self.ridge;
                    let next = share + slack / (weight * self.lengths[i] * self.lengths[i]);
                    let next = next.clamp(0.0, 1.0);
                    if next > share {
                        most_up = most_up.max(slack);
                    } else if next < share {
                        most_down = most_down.max(-slack);
                    } else {
                        continue;
                    }
                    n_changed += 1;
                    self.shares[i] = next;
                    let change = (next - share) * weight;
                    self.entries.add_to(i, change, &mut self.params);
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
        let slack = |i: usize| self.entries.slack(i, &self.params);
        let distances: Vec<(usize, f64)> = (0..self.counts.len())
            .filter(|&i| self.has_kink(i))
            .map(|i| (i, slack(i) / self.lengths[i]))
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
            let distance = self.entries.slack(i, &self.params) / self.lengths[i];
            crossed |= !(side.signum() * distance >= -reach);
        }
        crossed
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_the_rows_but_for_their_zeros() {
        let params: [f64; HINGE_MAX_DIM] = std::array::from_fn(|j| 1.0 + j as f64);
        for width in 1..=13 {
            let rows: Vec<Vec<f64>> = (0..8)
                .map(|i| {
                    let entry = |j| f64::from((i * j + i) % (2 + i % 3)) / (1.0 + f64::from(j));
                    (0..width).map(entry).collect()
                })
                .collect();
            let mut entries = Entries {
                starts: vec![0],
                ..Entries::default()
            };
            for row in &rows {
                entries.push(row, -1.0);
            }
            for (i, row) in rows.iter().enumerate() {
                let n_stored = entries.row(i).0.len() * LANES;
                let n_entries = row.iter().filter(|x| **x != 0.0).count();
                assert!(n_stored < n_entries + LANES);
                let mut written = vec![0.0; row.len()];
                entries.write(i, &mut written);
                let mut sum = Box::new([0.0; HINGE_MAX_DIM]);
                entries.add_to(i, -2.0, &mut sum);
                for ((x, w), s) in row.iter().zip(&written).zip(&*sum) {
                    assert!(*w + x == 0.0 && s - 2.0 * x == 0.0);
                }
                let slack = 1.0 + vector::dot(row, &params[..row.len()]);
                assert!((entries.slack(i, &params) - slack).abs() < 1e-12);
            }
        }
    }
}
