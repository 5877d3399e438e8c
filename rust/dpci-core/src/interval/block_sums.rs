//! The law of a weighted sum over the coordinates of a uniform point of blocks.
//!
//! Given the weights blocks are independent, so the characteristic function is a product: of `sin x/x` for a block of one coordinate,
//! and for all larger blocks together a mean over stratified draws, which all contrasts and fits share. Its cosine series gives the
//! density of the sum and a small normal number.

use std::f64::consts::PI;
use std::sync::{Arc, Mutex, PoisonError};

use crate::linalg::vector;
use crate::noise::{SimulationGenerator, uniform_index};
use crate::row_domain::Blocks;

/// Draws of the larger blocks.
const POINTS: usize = 16_384;

/// Seed of the draws: a public constant.
const SEED: u64 = 0x5eed;

/// The density is taken up to this many standard deviations, beyond which there is less than 1e-7 of any sum.
const REACH: usize = 12;

/// Points of the density for each of them.
const PER_UNIT: usize = 16;

/// Points of the density.
const CELLS: usize = REACH * PER_UNIT;

/// Standard deviation of the normal number.
const KERNEL: f64 = 0.05;

/// Size of a term of the series at which it ends; one of a product that oscillates may be small by chance, a normal factor not.
const LEAST_TERM: f64 = 1e-9;

/// Cells for the size of the draws of a contrast.
const DRAW_CELLS: usize = 256;

/// What the law of a sum comes from.
pub(super) struct BlockSums {
    members: Vec<usize>,
    /// Coordinates that are blocks by themselves, and the others.
    single: Vec<usize>,
    grouped: Vec<usize>,
    /// Coordinates of larger blocks, each of mean square 1, draw by draw.
    points: Vec<f64>,
    /// `cos(πn/2·CELLS)`.
    cosines: Vec<f64>,
}

/// The last one: it serves all contrasts and fits of one shape.
static LAST: Mutex<Option<Arc<BlockSums>>> = Mutex::new(None);

impl BlockSums {
    pub(super) fn of(blocks: &Blocks) -> Arc<Self> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(found) if found.members == blocks.members() => Arc::clone(found),
            _ => {
                let new = Arc::new(Self::new(blocks));
                *last = Some(Arc::clone(&new));
                new
            }
        }
    }

    fn new(blocks: &Blocks) -> Self {
        let members = blocks.members();
        let is_single = |j: &usize| blocks.sizes()[members[*j]] == 1;
        let (single, grouped): (Vec<usize>, Vec<usize>) = (0..blocks.dim()).partition(is_single);
        let period = 4 * CELLS;
        let cosine = |n: usize| (PI * n as f64 / (2 * CELLS) as f64).cos();
        Self {
            members: members.to_vec(),
            points: draw(blocks, &grouped),
            single,
            grouped,
            cosines: (0..period).map(cosine).collect(),
        }
    }

    /// Sizes of the sum with their probabilities, for weights of norm 1 of coordinates of variance 1; the normal number is in them.
    pub(super) fn sizes(&self, weights: &[f64]) -> Vec<(f64, f64)> {
        let draws = self.drawn(weights);
        // From the center to where a normal factor ends the series.
        let last = (-2.0 * LEAST_TERM.ln()).sqrt();
        let of_grouped: f64 = self.grouped.iter().map(|j| weights[*j].powi(2)).sum();
        let mut terms = Vec::new();
        let mut waves = Waves::new(&draws);
        for k in 1.. {
            let t = PI * f64::from(k) / REACH as f64;
            if t * KERNEL > last {
                break;
            }
            let kernel = (-0.5 * (KERNEL * t).powi(2)).exp();
            let mut product = kernel;
            // The greatest that the rest of the series can be: sin x/x is below exp(-x²/6) up to π and below 1/x beyond.
            let mut envelope = kernel;
            for j in &self.single {
                let x = 3.0_f64.sqrt() * weights[*j].abs() * t;
                if x > 0.0 {
                    product *= x.sin() / x;
                    envelope *= if x < PI {
                        (-x * x / 6.0).exp()
                    } else {
                        x.recip()
                    };
                }
            }
            if of_grouped > 0.0 {
                product *= waves.next_mean();
            }
            if envelope < LEAST_TERM {
                break;
            }
            terms.push(product);
        }
        let density = |cell: usize| {
            // (k + 1)(2·cell + 1) modulo the period, one step at a time.
            let (odd, period) = (2 * cell + 1, self.cosines.len());
            let mut at = 0;
            let mut series = 0.0;
            for term in &terms {
                at += odd;
                if at >= period {
                    at -= period;
                }
                series += term * self.cosines[at];
            }
            (0.5 + series).max(0.0)
        };
        let masses: Vec<f64> = (0..CELLS).map(density).collect();
        let total: f64 = masses.iter().sum();
        let size = |cell: usize| (cell as f64 + 0.5) / PER_UNIT as f64;
        let all = masses.into_iter().enumerate();
        all.filter(|(_, mass)| *mass > LEAST_TERM * total)
            .map(|(cell, mass)| (size(cell), mass / total))
            .collect()
    }

    /// Sizes of the part of the larger blocks, with their probabilities and the right mean square.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the number of cells"
    )]
    fn drawn(&self, weights: &[f64]) -> Vec<(f64, f64)> {
        let weights: Vec<f64> = self.grouped.iter().map(|j| weights[*j]).collect();
        let norm = vector::norm(&weights);
        if norm <= 0.0 {
            return Vec::new();
        }
        let rows = self.points.chunks_exact(weights.len());
        let sums: Vec<f64> = rows.map(|u| vector::dot(u, &weights).abs()).collect();
        let square: f64 = sums.iter().map(|sum| sum * sum).sum();
        let scale = norm * (POINTS as f64 / square).sqrt();
        let greatest = sums.iter().fold(f64::MIN_POSITIVE, |a, b| a.max(*b));
        let mut cells = vec![[0.0; 2]; DRAW_CELLS];
        for sum in sums {
            let cell = ((sum / greatest * DRAW_CELLS as f64) as usize).min(DRAW_CELLS - 1);
            cells[cell][0] += 1.0;
            cells[cell][1] += sum;
        }
        let full = cells.into_iter().filter(|[count, _]| *count > 0.0);
        full.map(|[count, sum]| (scale * sum / count, count / POINTS as f64))
            .collect()
    }
}

/// Means of `cos(kπy/REACH)` over draws y, for k = 1, 2, ...: by the recurrence of the cosines, which costs no cosine a term.
struct Waves {
    probability: Vec<f64>,
    twice: Vec<f64>,
    before: Vec<f64>,
    now: Vec<f64>,
}

impl Waves {
    fn new(draws: &[(f64, f64)]) -> Self {
        let now: Vec<f64> = draws
            .iter()
            .map(|(y, _)| (PI * y / REACH as f64).cos())
            .collect();
        Self {
            probability: draws.iter().map(|(_, p)| *p).collect(),
            twice: now.iter().map(|c| 2.0 * c).collect(),
            before: vec![1.0; draws.len()],
            now,
        }
    }

    fn next_mean(&mut self) -> f64 {
        let mean = vector::dot(&self.probability, &self.now);
        for ((now, before), twice) in self.now.iter_mut().zip(&mut self.before).zip(&self.twice) {
            let next = twice * *now - *before;
            *before = std::mem::replace(now, next);
        }
        mean
    }
}

/// Latin hypercubes of signed exponential numbers over the sum of their block, each column of mean square 1.
fn draw(blocks: &Blocks, grouped: &[usize]) -> Vec<f64> {
    let mut generator = SimulationGenerator::new(SEED, 0);
    let mut strata = || -> Vec<f64> {
        let mut order: Vec<usize> = (0..POINTS).collect();
        for i in (1..POINTS).rev() {
            order.swap(i, uniform_index(i + 1, &mut generator));
        }
        let middle = |i: usize| (i as f64 + 0.5) / POINTS as f64;
        order.into_iter().map(middle).collect()
    };
    let mut totals: Vec<Vec<f64>> = blocks
        .sizes()
        .iter()
        .map(|size| match size {
            1 => Vec::new(),
            _ => strata().iter().map(|u| -u.ln()).collect(),
        })
        .collect();
    let mut columns: Vec<Vec<f64>> = grouped
        .iter()
        .map(|j| {
            let total = &mut totals[blocks.members()[*j]];
            let signed = strata().into_iter().zip(total).map(|(u, total)| {
                let centred = 2.0 * u - 1.0;
                let size = -centred.abs().ln();
                *total += size;
                size.copysign(centred)
            });
            signed.collect()
        })
        .collect();
    let mut points = vec![0.0; POINTS * grouped.len()];
    for (at, (j, column)) in grouped.iter().zip(&mut columns).enumerate() {
        for (x, total) in column.iter_mut().zip(&totals[blocks.members()[*j]]) {
            *x /= total;
        }
        let square: f64 = column.iter().map(|x| x * x).sum();
        let scale = (POINTS as f64 / square).sqrt();
        for (row, x) in points.chunks_exact_mut(grouped.len()).zip(column) {
            row[at] = scale * *x;
        }
    }
    points
}
