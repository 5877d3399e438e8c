//! Rows moved by a linear map that is public or released, and weighted by their length.
//!
//! A moved row is a function of its record alone, whatever its place and the processor: products are added one after another.

use std::borrow::Cow;
use std::ops::Range;

use super::limits::Limits;
use super::weights::Weights;
use super::{Design, OnViolation, RowBounds, Rows};
use crate::error::check_length;
use crate::exec::{BLOCK, Executor, blocks, check_room};
use crate::linalg::{CompensatedSum, vector};
use crate::loss::Loss;
use crate::row_domain::RowDomain;
use crate::{Error, Result};

/// Moved rows, of any length.
#[derive(Debug)]
pub struct Moved<'d> {
    design: &'d Design<'d>,
    /// `None`: as they are.
    rows: Option<Vec<f64>>,
    norms: Vec<f64>,
}

impl Design<'_> {
    /// Rows `Mᵀx` of all rows x with their intercepts; M is square and row-major.
    ///
    /// # Errors
    /// [`Error::Length`] for a map of another size, [`Error::Resource`], [`Error::Interrupted`].
    pub fn moved(&self, map: &[f64], exec: &Executor<'_>) -> Result<Moved<'_>> {
        let (chunks, dim) = (self.chunks(), self.n_params());
        check_length("the map of the rows", dim * dim, map.len())?;
        let of_identity = |k: usize| f64::from(u8::from(k / dim == k % dim)).to_bits();
        let is_identity = (0..map.len()).all(|k| map[k].to_bits() == of_identity(k));
        let numbers = self.n_rows().saturating_mul(dim);
        check_room(numbers)?;
        let mut rows = None;
        let norms = if is_identity {
            let parts = exec.map(chunks.len(), |c| {
                let mut norms = vec![0.0; chunks[c].len()];
                let mut block = vec![0.0; BLOCK * dim];
                for (range, norms) in blocks(chunks[c].clone()).zip(norms.chunks_mut(BLOCK)) {
                    exec.check()?;
                    let block = &mut block[..range.len() * dim];
                    self.write_rows(range, block);
                    vector::rows_norm_bounds(block, dim, norms);
                }
                Ok(norms)
            })?;
            parts.concat()
        } else {
            let moved = rows.insert(vec![0.0; numbers]);
            move_rows(&chunks, moved, map, exec, |range, _, block| {
                self.write_rows(range, block);
            })?
        };
        Ok(Moved {
            design: self,
            rows,
            norms,
        })
    }
}

/// Replaces the rows of `out` by those moved by a map, of which `read` gets a block at a time, by their numbers and what `out` has there;
/// returns their norms, rounded up.
fn move_rows(
    chunks: &[Range<usize>],
    out: &mut [f64],
    map: &[f64],
    exec: &Executor<'_>,
    read: impl Fn(Range<usize>, &[f64], &mut [f64]) + Sync,
) -> Result<Vec<f64>> {
    let n_rows = chunks.last().map_or(0, |chunk| chunk.end);
    let dim = out.len() / n_rows.max(1);
    check_length("the map of the rows", dim * dim, map.len())?;
    let numbers: Vec<_> = chunks.iter().map(|c| c.start * dim..c.end * dim).collect();
    let norms = exec.map_into(&numbers, out, |c, out| {
        let mut norms = vec![0.0; chunks[c].len()];
        let mut rows = vec![0.0; BLOCK * dim];
        let places = out.chunks_mut(BLOCK * dim).zip(norms.chunks_mut(BLOCK));
        for (range, (out, norms)) in blocks(chunks[c].clone()).zip(places) {
            exec.check()?;
            let rows = &mut rows[..out.len()];
            read(range, out, rows);
            vector::move_rows(rows, dim, map, out);
            vector::rows_norm_bounds(out, dim, norms);
        }
        Ok(norms)
    })?;
    Ok(norms.concat())
}

impl<'d> Moved<'d> {
    /// Records with a norm between each of the radii, which increase, and the next one, those beyond the last at the end: a row by its share
    /// of its record, as often as it counts. Not private.
    pub fn counts(&self, radii: &[f64]) -> CompensatedSum {
        let mut counts = Counts::new(self.design, self.design.shares(), radii);
        for range in blocks(0..self.norms.len()) {
            counts.add(range.map(|i| (i, self.norms[i])));
        }
        counts.total
    }

    /// The moved rows with weights: a row z beyond the radius R weighs `R²/‖z‖²`, so that neither `w‖z‖` is above R nor `w‖z‖²` above R².
    /// No row is longer than `longest`.
    pub fn within(self, radius: f64, longest: f64) -> Design<'d> {
        // Norms are upper bounds; two quotients and a product are rounded.
        let room = 1.0 - 4.0 * f64::EPSILON;
        let weight = |norm: &f64| match radius / norm {
            ratio if ratio < 1.0 => ratio * ratio * room,
            _ => 1.0,
        };
        let design = self.design;
        let shares: Vec<f64> = self.norms.iter().map(weight).collect();
        let counted = design.shares();
        let limits = Limits::none(self.norms, shares.clone(), counted);
        let (rows, intercept) = match self.rows {
            Some(rows) => (Rows::dense_owned(rows, design.n_params()), None),
            None => (design.rows.clone(), design.intercept),
        };
        let mut moved = Design {
            rows,
            targets: Cow::Borrowed(&design.targets),
            multiplicities: design.multiplicities.clone(),
            persons: design.persons.clone(),
            weights: design.weights.clone(),
            n_records: design.n_records,
            intercept,
            bounds: RowBounds {
                rows: RowDomain::Ball(longest),
                targets: design.bounds.targets,
                on_violation: OnViolation::Error,
            },
            extremes: None,
            limits: Some(limits),
        };
        match (&mut moved.persons, &mut moved.weights) {
            (Some(persons), _) => persons.scale(&shares),
            (None, Some(weights)) => weights.scale(&shares),
            (None, weights) => *weights = Some(Weights::of_shares(shares)),
        }
        moved
    }
}

impl Design<'_> {
    /// Rows that have weights already, moved once more: they keep these weights, and have no limits yet.
    ///
    /// # Errors
    /// [`Error::Length`] for a map of another size, [`Error::Interrupted`], and [`Error::Unsupported`] for rows that were not moved before.
    pub fn moved_further(mut self, map: &[f64], exec: &Executor<'_>) -> Result<Self> {
        let chunks = self.chunks();
        let own = match &mut self.rows {
            Rows::Dense(rows) => rows.own_features(),
            Rows::Csr(_) | Rows::Coded(_) => None,
        };
        let (Some(limits), Some(rows)) = (&mut self.limits, own) else {
            return Err(Error::Unsupported(
                "rows must have been moved and weighted before they are moved further".into(),
            ));
        };
        let copy = |_, rows: &[f64], block: &mut [f64]| block.copy_from_slice(rows);
        limits.lift(move_rows(&chunks, rows, map, exec, copy)?);
        self.bounds.rows = RowDomain::Ball((self.bounds.rows.norm() * vector::norm(map)).min(f64::MAX));
        Ok(self)
    }
}

impl Design<'_> {
    /// Records with a gradient, and a Hessian, whose norm at a point is between each of the increasing bounds and the next one, those beyond
    /// the last at the end: a row by its share of its record, as often as it counts. For moved rows. Not private.
    ///
    /// # Errors
    /// [`Error::Loss`], [`Error::Interrupted`].
    pub fn counts_of_derivatives(
        &self,
        loss: &dyn Loss,
        params: &[f64],
        [gradients, hessians]: [&[f64]; 2],
        exec: &Executor<'_>,
    ) -> Result<[CompensatedSum; 2]> {
        let Some(limits) = &self.limits else {
            return Ok([CompensatedSum::default(), CompensatedSum::default()]);
        };
        let chunks = self.chunks();
        let parts = exec.map(chunks.len(), |c| {
            let shares = self.shares_of_records();
            let mut counts = [gradients, hessians].map(|bounds| Counts::new(self, shares, bounds));
            let mut buffers = [[0.0; BLOCK]; 3];
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                let [u, slope, curvature] = buffers.each_mut().map(|b| &mut b[..range.len()]);
                self.linear_predictor(range.clone(), params, u);
                // In a batch the last bits depend on the other rows, which a count must not.
                let targets = self.targets(range.clone());
                loss.evaluate_singly(u, targets, [&mut *slope, &mut *curvature])?;
                self.weigh(&range, loss, u, [&mut [], &mut *curvature])?;
                let gradients = range.clone().zip(&*slope);
                counts[0].add(gradients.map(|(i, s)| (i, s.abs() * limits.norms_of(i)[0])));
                let hessians = range.zip(&*curvature);
                counts[1].add(hessians.map(|(i, c)| (i, c * limits.norms_of(i)[1])));
            }
            Ok(counts.map(|counts| counts.total))
        })?;
        let mut totals = [CompensatedSum::default(), CompensatedSum::default()];
        for part in parts {
            totals.iter_mut().zip(&part).for_each(|(total, part)| total.merge(part));
        }
        Ok(totals)
    }
}

/// Records by norms, block by block.
struct Counts<'a> {
    multiplicities: Option<&'a [u32]>,
    shares: Option<&'a [f64]>,
    bounds: &'a [f64],
    total: CompensatedSum,
    block: Vec<f64>,
}

impl<'a> Counts<'a> {
    fn new(design: &'a Design<'_>, shares: Option<&'a [f64]>, bounds: &'a [f64]) -> Self {
        Self {
            multiplicities: design.multiplicities(),
            shares,
            bounds,
            total: CompensatedSum::default(),
            block: vec![0.0; bounds.len()],
        }
    }

    /// Adds a block of rows, by their numbers and norms.
    fn add(&mut self, norms: impl Iterator<Item = (usize, f64)>) {
        let Some(least) = self.bounds.first() else {
            return;
        };
        self.block.fill(0.0);
        for (i, norm) in norms.filter(|(_, norm)| norm > least) {
            if let Some(place) = self.bounds.partition_point(|b| *b < norm).checked_sub(1) {
                let share = self.shares.map_or(1.0, |shares| shares[i]);
                self.block[place] += self.multiplicities.map_or(share, |m| f64::from(m[i]) * share);
            }
        }
        self.total.add(&self.block);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::loss::{Logistic, Targets};

    const MAP: [f64; 9] = [2.0, 0.5, 0.0, -1.0, 3.0, 0.25, 0.0, 1.0, 4.0];

    fn with_design(test: impl FnOnce(&Design<'_>, &Executor<'_>)) {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let rows: Vec<f64> = (0..4000).map(|i| 0.6 * (0.37 * f64::from(i)).sin()).collect();
        let targets: Vec<f64> = (0..2000).map(|i| f64::from(2 * (i % 2) - 1)).collect();
        let bounds = RowBounds {
            rows: RowDomain::Ball(0.7),
            targets: Targets::Signs,
            on_violation: OnViolation::Clip,
        };
        let rows = Rows::dense(&rows, 2);
        let design = Design::new(rows, &targets, Some(0.5), &bounds, &exec).unwrap();
        test(&design, &exec);
    }

    #[test]
    fn weights_keep_limits_and_counts_tell_how_many() {
        with_design(|design, exec| {
            let point = [0.4, -0.3, 0.2];
            let mut round = design.moved(&MAP, exec).unwrap().within(99.0, 99.0);
            let mut rows = vec![0.0; 2000 * 3];
            round.write_rows(0..2000, &mut rows);
            let (mut gradients, mut hessians) = (Vec::new(), Vec::new());
            for (row, y) in rows.chunks_exact(3).zip(round.targets(0..2000)) {
                let positive = 1.0 / (1.0 + (-y * vector::dot(row, &point)).exp());
                gradients.push((1.0 - positive) * vector::norm(row));
                hessians.push(positive * (1.0 - positive) * vector::dot(row, row));
            }
            let bounds = [&gradients, &hessians].map(|norms| {
                let mut sorted = norms.clone();
                sorted.sort_by(f64::total_cmp);
                [500, 1000, 1500].map(|place| sorted[place] * (1.0 + 1e-9))
            });
            let found =
                round.counts_of_derivatives(&Logistic, &point, bounds.each_ref().map(<[f64; 3]>::as_slice), exec);
            for ((found, bounds), norms) in found.unwrap().iter().zip(bounds).zip([&gradients, &hessians]) {
                let found: Vec<f64> = found.values().collect();
                for (j, bound) in bounds.iter().enumerate() {
                    let beyond = norms.iter().filter(|norm| *norm > bound).count() as f64;
                    assert!((found[j..].iter().sum::<f64>() - beyond).abs() < 0.5);
                    assert!(beyond > 0.0 && beyond < 2000.0);
                }
            }
            let mut u = vec![0.0; 2000];
            round.linear_predictor(0..2000, &point, &mut u);
            let weigh = |round: &Design<'_>| {
                let (mut slopes, mut curvatures) = (vec![-0.9; 2000], vec![0.25; 2000]);
                let values = [slopes.as_mut_slice(), &mut curvatures];
                round.weigh(&(0..2000), &Logistic, &u, values).unwrap();
                (slopes, curvatures)
            };
            assert_eq!(weigh(&round), (vec![-0.9; 2000], vec![0.25; 2000]));
            let (gradient, hessian) = (
                0.6 * vector::norm(&rows[..3]),
                0.2 * vector::dot(&rows[..3], &rows[..3]),
            );
            round.limit(gradient, hessian);
            let (slopes, curvatures) = weigh(&round);
            let mut fewer = 0;
            for (i, row) in rows.chunks_exact(3).enumerate() {
                let norm = vector::norm_bound(row);
                assert!(slopes[i].abs() * norm <= gradient);
                assert!(curvatures[i] * norm * norm <= hessian);
                let positive = 1.0 / (1.0 + (-u[i]).exp());
                let steepest = positive.max(1.0 - positive) * norm;
                let curved = positive * (1.0 - positive) * norm * norm;
                // One weight for both, which the target has no part in.
                let weight = (gradient / steepest).min(hessian / curved).min(1.0);
                assert!((slopes[i] + 0.9 * weight).abs() < 1e-12 || slopes[i].abs() * norm > 0.999 * gradient);
                assert!((curvatures[i] - 0.25 * weight).abs() < 1e-12 || curvatures[i] * norm * norm > 0.999 * hessian);
                fewer += usize::from(weight < 1.0);
            }
            assert!(fewer > 500 && fewer < 1900);
        });
    }

    #[test]
    fn rows_are_moved_counted_and_weighted() {
        with_design(|design, exec| {
            let mut before = vec![0.0; 2000 * 3];
            design.write_rows(0..2000, &mut before);
            let expected: Vec<[f64; 3]> = before
                .chunks_exact(3)
                .map(|x| std::array::from_fn(|j| (0..3).map(|k| x[k] * MAP[3 * k + j]).sum()))
                .collect();
            let norms: Vec<f64> = expected.iter().map(|z| vector::norm(z)).collect();
            let radii = [0.5, 1.9, 2.3, 2.5, 99.0];
            let moved = design.moved(&MAP, exec).unwrap();
            let beyond = radii.map(|r| norms.iter().filter(|n| **n > r).count() as f64);
            let counts: Vec<f64> = moved.counts(&radii).values().collect();
            assert!((0..5).all(|j| (counts[j..].iter().sum::<f64>() - beyond[j]).abs() < 0.5));
            assert!(beyond[2] > 0.0 && beyond[2] < 2000.0);
            let short = moved.within(2.3, 99.0);
            let mut after = vec![0.0; 2000 * 3];
            short.write_rows(0..2000, &mut after);
            let shares = short.shares().unwrap();
            let rows = after.chunks_exact(3).zip(shares);
            for ((after, share), (before, norm)) in rows.zip(expected.iter().zip(norms)) {
                for (a, b) in after.iter().zip(before) {
                    assert!((a - b).abs() < 1e-12);
                }
                let norm_above = vector::norm_bound(after);
                assert!(share * norm_above <= 2.3 && share * norm_above * norm_above <= 2.3 * 2.3);
                assert!((share - (2.3 / norm).powi(2).min(1.0)).abs() < 1e-12);
            }
            assert_eq!((short.n_records(), short.intercept()), (2000, None));
            assert_eq!(short.targets(0..2000), design.targets(0..2000));
            assert!(design.moved(&MAP[..4], exec).is_err());
        });
    }
}
