//! Residuals that are held to a cap: their second moments, of rows and of persons, whose rows add up first, their gradient, and how
//! many have which size.

use std::ops::Range;

use super::Sums;
use super::pass::Pass;
use super::person_moments::gradient_squares;
use crate::Result;
use crate::design::Persons;
use crate::exec::{BLOCK, blocks};
use crate::linalg::{GramAccumulator, PackedBlock, vector};
use crate::loss::{Batch, LEVELS, levels_of};

impl Pass<'_> {
    /// Second moments of slopes that are held to a cap, over a chunk.
    pub(super) fn capped_slopes(&self, chunk: Range<usize>, params: &[f64], held: (f64, bool)) -> Result<Sums> {
        let dim = params.len();
        let mut gram = [GramAccumulator::new(dim)];
        let mut packed = PackedBlock::new(dim, BLOCK);
        let mut buffers = [[0.0; BLOCK]; 2];
        for range in blocks(chunk) {
            self.exec.check()?;
            let [slope, multiplicity] = &mut buffers;
            let slope = &mut slope[..range.len()];
            self.held_slopes(&range, params, held, slope)?;
            // Equal records add up; the residual of a weighted one is squared with its weight.
            if let Some(shares) = self.weights.shares_of(&range) {
                vector::multiply(slope, shares);
            }
            for s in slope.iter_mut() {
                *s *= *s;
            }
            if let Some(counts) = self.weights.counts_of(&range, multiplicity) {
                vector::multiply(slope, counts);
            }
            self.design.add_grams(range, [slope], &mut gram, &mut packed);
        }
        Ok(Sums {
            grams: gram.into(),
            ..Sums::default()
        })
    }

    /// The sum of the rows times their slopes that are held to a cap, and that of these slopes' squares, over a chunk.
    pub(super) fn capped_gradient(&self, chunk: Range<usize>, params: &[f64], held: (f64, bool)) -> Result<Sums> {
        let mut sums = Sums::default();
        let mut buffers = [[0.0; BLOCK]; 2];
        let dim = params.len();
        let mut block_sums = vec![0.0; dim + 1];
        for range in blocks(chunk) {
            self.exec.check()?;
            let [slope, multiplicity] = &mut buffers;
            let slope = &mut slope[..range.len()];
            self.held_slopes(&range, params, held, slope)?;
            let mut plain = [0.0; BLOCK];
            let plain = &mut plain[..range.len()];
            plain.copy_from_slice(slope);
            if let Some(multiplicity) = self.weights.of(&range, multiplicity) {
                vector::multiply(slope, multiplicity);
            }
            block_sums.fill(0.0);
            block_sums[dim] = vector::dot(plain, slope);
            self.design.add_weighted_rows(range, slope, &mut block_sums[..dim]);
            sums.slopes.add(&block_sums);
        }
        Ok(sums)
    }

    /// How much the slopes of a chunk count at each level of the greatest.
    pub(super) fn slope_levels(
        &self,
        chunk: Range<usize>,
        params: &[f64],
        (greatest, with_targets): (f64, bool),
    ) -> Result<Sums> {
        let mut sums = Sums::default();
        let mut buffers = [[0.0; BLOCK]; 2];
        for range in blocks(chunk) {
            self.exec.check()?;
            let [slope, multiplicity] = &mut buffers;
            let slope = &mut slope[..range.len()];
            self.held_slopes(&range, params, (greatest, with_targets), slope)?;
            let weights = self.weights.of(&range, multiplicity);
            let mut block_sums = [0.0; LEVELS];
            for (i, s) in slope.iter().enumerate() {
                let weight = weights.map_or(1.0, |w| w[i]);
                let (upper, share) = levels_of(s.abs() / greatest);
                block_sums[upper] += weight * (1.0 - share);
                if share > 0.0 {
                    block_sums[upper + 1] += weight * share;
                }
            }
            sums.slopes.add(&block_sums);
        }
        Ok(sums)
    }

    /// The slopes of a block of rows, held to a cap, at the targets or at 0.
    fn held_slopes(
        &self,
        range: &Range<usize>,
        params: &[f64],
        (cap, with_targets): (f64, bool),
        slope: &mut [f64],
    ) -> Result<()> {
        let mut predictors = [0.0; BLOCK];
        let u = &mut predictors[..range.len()];
        self.design.linear_predictor(range.clone(), params, u);
        let targets = if with_targets {
            self.design.targets(range.clone())
        } else {
            &[0.0; BLOCK][..range.len()]
        };
        let out = Batch::slopes(&mut *slope);
        self.loss.evaluate(u, targets, out)?;
        vector::clamp(slope, -cap, cap);
        Ok(())
    }

    /// `Σ ggᵀ` over the persons, `g = Σ ω c x` with the slopes c held to a cap.
    pub(super) fn capped_slopes_of_persons(
        &self,
        chunks: &[Range<usize>],
        params: &[f64],
        held: (f64, bool),
        persons: &Persons,
    ) -> Result<Sums> {
        let mut slopes = vec![0.0; self.design.n_rows()];
        self.exec.map_into(chunks, &mut slopes, |c, slopes| {
            let chunk = chunks[c].clone();
            for range in blocks(chunk.clone()) {
                self.exec.check()?;
                let slope = &mut slopes[range.start - chunk.start..][..range.len()];
                self.held_slopes(&range, params, held, slope)?;
                vector::multiply(slope, &persons.shares()[range]);
            }
            Ok(())
        })?;
        let squares = gradient_squares(self.design, persons, &[slopes], None, self.exec)?;
        Ok(Sums {
            n_rows: self.design.n_rows(),
            grams: vec![squares],
            ..Sums::default()
        })
    }
}
