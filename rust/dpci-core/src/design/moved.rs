//! Rows moved by a linear map that is public or released, and weighted by their length.
//!
//! A moved row is a function of its record alone, whatever its place and the processor: products are added one after another.

use std::borrow::Cow;

use super::weights::Weights;
use super::{Design, OnViolation, RowBounds, Rows};
use crate::error::check_length;
use crate::exec::{Executor, blocks, check_room};
use crate::linalg::{CompensatedSum, vector};
use crate::row_domain::RowDomain;
use crate::{Error, Result};

/// Moved rows, of any length.
#[derive(Debug)]
pub struct Moved<'d> {
    design: &'d Design<'d>,
    rows: Vec<f64>,
    norms: Vec<f64>,
}

impl Design<'_> {
    /// Rows `Mᵀx` of all rows x with their intercepts; M is square and row-major.
    ///
    /// # Errors
    /// [`Error::Length`] for a map of another size, [`Error::Unsupported`] for merged rows, [`Error::Resource`],
    /// [`Error::Interrupted`].
    pub fn moved(&self, map: &[f64], exec: &Executor<'_>) -> Result<Moved<'_>> {
        let dim = self.n_params();
        check_length("the map of the rows", dim * dim, map.len())?;
        if self.multiplicities.is_some() {
            return Err(Error::Unsupported(
                "rows must be moved before equal ones are merged, got merged rows".into(),
            ));
        }
        // Chunks, and all of them together.
        check_room(self.n_rows().saturating_mul(2 * dim))?;
        let chunks = self.chunks();
        let parts = exec.map(chunks.len(), |c| {
            let mut moved = vec![0.0; chunks[c].len() * dim];
            let mut norms = Vec::with_capacity(chunks[c].len());
            let mut row = vec![0.0; dim];
            let mut out = moved.chunks_exact_mut(dim);
            for range in blocks(chunks[c].clone()) {
                exec.check()?;
                for (i, out) in range.zip(&mut out) {
                    self.write_rows(i..i + 1, &mut row);
                    for (value, from) in row.iter().zip(map.chunks_exact(dim)) {
                        for (o, m) in out.iter_mut().zip(from) {
                            *o += value * m;
                        }
                    }
                    norms.push(vector::sparse_norm_bound(out, dim));
                }
            }
            Ok((moved, norms))
        })?;
        let (rows, norms): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok(Moved {
            design: self,
            rows: rows.concat(),
            norms: norms.concat(),
        })
    }
}

impl Moved<'_> {
    /// Records with a norm between each of the radii, which increase, and the next one, those beyond the last at the end: a row by its share
    /// of its record. Not private.
    #[must_use]
    pub fn counts(&self, radii: &[f64]) -> Vec<f64> {
        let shares = self.design.shares();
        let mut counts = CompensatedSum::default();
        let mut block = vec![0.0; radii.len()];
        for range in blocks(0..self.norms.len()) {
            block.fill(0.0);
            for i in range {
                let norm = self.norms[i];
                if let Some(place) = radii.partition_point(|r| *r < norm).checked_sub(1) {
                    block[place] += shares.map_or(1.0, |shares| shares[i]);
                }
            }
            counts.add(&block);
        }
        counts.values().collect()
    }

    /// The moved rows with weights: a row z beyond the radius R weighs `R²/‖z‖²`, so that neither `w‖z‖` is above R nor `w‖z‖²` above R².
    /// No row is longer than `longest`.
    #[must_use]
    pub fn within(self, radius: f64, longest: f64) -> Design<'static> {
        let design = self.design;
        // Norms are upper bounds; two quotients and a product are rounded.
        let room = 1.0 - 4.0 * f64::EPSILON;
        let weight = |norm: &f64| match radius / norm {
            ratio if ratio < 1.0 => ratio * ratio * room,
            _ => 1.0,
        };
        let shares: Vec<f64> = self.norms.iter().map(weight).collect();
        let mut moved = Design {
            rows: Rows::dense_owned(self.rows, design.n_params()),
            targets: Cow::Owned(design.targets.to_vec()),
            multiplicities: None,
            persons: design.persons.clone(),
            weights: design.weights.clone(),
            n_records: design.n_records,
            intercept: None,
            bounds: RowBounds {
                rows: RowDomain::Ball(longest),
                targets: design.bounds.targets,
                on_violation: OnViolation::Error,
            },
            extremes: None,
        };
        match (&mut moved.persons, &mut moved.weights) {
            (Some(persons), _) => persons.scale(&shares),
            (None, Some(weights)) => weights.scale(&shares),
            (None, weights) => *weights = Some(Weights::of_shares(shares)),
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::loss::Targets;

    const MAP: [f64; 9] = [2.0, 0.5, 0.0, -1.0, 3.0, 0.25, 0.0, 1.0, 4.0];

    fn with_design(test: impl FnOnce(&Design<'_>, &Executor<'_>)) {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let rows: Vec<f64> = (0..4000)
            .map(|i| 0.6 * (0.37 * f64::from(i)).sin())
            .collect();
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
            let counts = moved.counts(&radii);
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
