//! The moments of persons: the Hessian is a sum over rows, the gradient covariance one over persons, each with the gradient of its rows.
//!
//! Where the table has the rows person by person, one pass adds up both and keeps no number for a row or a person: writing to new memory
//! would take longer than the sums.

use std::ops::Range;

use super::Sums;
use super::pass::Pass;
use crate::Result;
use crate::design::Persons;
use crate::exec::{BLOCK, blocks};
use crate::linalg::{CompensatedSum, GramAccumulator, PackedBlock, vector};

impl Pass<'_> {
    /// `Σ ω l'' x xᵀ` over the rows and `Σ ḡḡᵀ` over the persons, `ḡ = Σ ω l' x` the mean gradient of one; each as often as it is drawn.
    pub(super) fn moments_of_persons(
        &self,
        chunks: &[Range<usize>],
        params: &[f64],
        limits: [f64; 2],
        persons: &Persons,
    ) -> Result<Sums> {
        if !persons.in_order() {
            return self.moments_of_scattered(chunks, params, limits, persons);
        }
        let chunks = whole_persons(chunks, persons.owners());
        let parts = self.exec.map(chunks.len(), |c| {
            let mut moments = PersonMoments::new(params.len());
            for range in blocks(chunks[c].clone()) {
                self.add_persons(range, persons, params, limits, &mut moments)?;
            }
            Ok(moments.finish())
        })?;
        let mut grams = [(); 2].map(|()| GramAccumulator::new(params.len()));
        for part in parts {
            grams.iter_mut().zip(&part).for_each(|(g, p)| g.merge(p));
        }
        Ok(Sums {
            n_rows: self.design.n_rows(),
            grams: grams.into(),
            ..Sums::default()
        })
    }

    /// Adds a block of rows.
    fn add_persons(
        &self,
        range: Range<usize>,
        persons: &Persons,
        params: &[f64],
        limits: [f64; 2],
        moments: &mut PersonMoments,
    ) -> Result<()> {
        self.exec.check()?;
        let n = range.len();
        let mut buffers = [[0.0; BLOCK]; 3];
        let [u, slope, curvature] = &mut buffers;
        let (u, slope, curvature) = (&mut u[..n], &mut slope[..n], &mut curvature[..n]);
        self.bounded_derivatives(&range, params, limits, [u, slope, curvature])?;
        vector::multiply(slope, &persons.shares()[range.clone()]);
        self.weights.multiply(&range, curvature);
        let mut places = [(0, 0); BLOCK];
        moments.begin_block();
        for (i, (place, row)) in places.iter_mut().zip(range.clone()).enumerate() {
            let drawn = self.weights.counts.map_or(1, |counts| counts[row]);
            *place = (i, moments.place_of(persons.owners()[row], drawn));
        }
        let (places, gradients) = (&places[..n], &mut moments.gradients);
        self.design
            .scatter_weighted_rows(range.clone(), slope, places, gradients);
        moments.end_block();
        let (hessian, packed) = (&mut moments.hessian, &mut moments.packed);
        self.design.add_grams(range, [curvature], hessian, packed);
        Ok(())
    }
}

/// The chunks with their ends moved to those of persons.
fn whole_persons(chunks: &[Range<usize>], owners: &[u32]) -> Vec<Range<usize>> {
    let mut whole: Vec<Range<usize>> = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let start = whole.last().map_or(0, |last| last.end);
        let mut end = chunk.end.max(start);
        while end > start && end < owners.len() && owners[end] == owners[end - 1] {
            end += 1;
        }
        if end > start {
            whole.push(start..end);
        }
    }
    whole
}

/// Both sums over some persons, and the gradients that are not yet in them.
struct PersonMoments {
    dim: usize,
    hessian: [GramAccumulator; 1],
    covariance: GramAccumulator,
    packed: PackedBlock,
    /// One after another; the last one's person may have more rows.
    gradients: Vec<f64>,
    /// How often each of these persons counts.
    drawn: Vec<f64>,
    /// The person of the last gradient.
    person: Option<u32>,
    /// The gradient that was the last one when the block began, and what earlier blocks of rows have added to it.
    carried: usize,
    earlier: Option<CompensatedSum>,
}

impl PersonMoments {
    fn new(dim: usize) -> Self {
        Self {
            dim,
            hessian: [GramAccumulator::new(dim)],
            covariance: GramAccumulator::new(dim),
            packed: PackedBlock::new(dim, BLOCK),
            gradients: vec![0.0; 2 * BLOCK * dim],
            drawn: Vec::with_capacity(2 * BLOCK),
            person: None,
            carried: 0,
            earlier: None,
        }
    }

    /// Sums of a block of rows are plain, those over the blocks of a person compensated.
    fn begin_block(&mut self) {
        let Some(last) = self.drawn.len().checked_sub(1) else {
            return;
        };
        self.carried = last;
        let gradient = &mut self.gradients[last * self.dim..][..self.dim];
        self.earlier.get_or_insert_default().add(gradient);
        gradient.fill(0.0);
    }

    /// Where the gradient of the person of the next row begins.
    fn place_of(&mut self, person: u32, drawn: u32) -> usize {
        if self.person != Some(person) {
            self.person = Some(person);
            self.drawn.push(f64::from(drawn));
        }
        (self.drawn.len() - 1) * self.dim
    }

    fn end_block(&mut self) {
        if self.carried + 1 < self.drawn.len() {
            self.complete();
        }
        if self.drawn.len() > BLOCK {
            self.square(BLOCK);
        }
    }

    /// Adds what earlier blocks of rows have of the carried gradient.
    fn complete(&mut self) {
        if let Some(mut sum) = self.earlier.take() {
            let gradient = &mut self.gradients[self.carried * self.dim..][..self.dim];
            sum.add(gradient);
            gradient.iter_mut().zip(sum.values()).for_each(|(g, v)| *g = v);
        }
    }

    /// Adds the squares of the first `n` gradients, at most a block.
    fn square(&mut self, n: usize) {
        let (first, end) = (n * self.dim, self.drawn.len() * self.dim);
        self.packed.fill(n, &self.gradients[..first], None, None);
        self.covariance.add(&self.packed, &self.drawn[..n]);
        self.drawn.drain(..n);
        self.gradients.copy_within(first..end, 0);
        self.gradients[end - first..end].fill(0.0);
    }

    fn finish(mut self) -> [GramAccumulator; 2] {
        self.complete();
        while !self.drawn.is_empty() {
            self.square(self.drawn.len().min(BLOCK));
        }
        let [hessian] = self.hessian;
        [hessian, self.covariance]
    }
}
