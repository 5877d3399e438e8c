//! Bootstrap weights: multinomial draws (to double precision) over rows that stand for many records each, in linear time.

use rand::{Rng, RngExt};
use rand_distr::{Binomial, Distribution};

use super::counts::Counts;
use crate::design::Design;
use crate::linalg::LANES;
use crate::noise::NoiseGenerator;
use crate::{Error, Result};

/// Rows of more records than this get a binomial draw each; the others share index draws.
pub(super) const LARGE: u32 = 32;

/// Bits of an index into a block of records. What a block counts into stays in a cache.
const INDEX_BITS: u32 = 9;

/// Records of a whole block.
const BLOCK: usize = 1 << INDEX_BITS;

/// Draws how often each row appears in a sample of the design's records with replacement.
#[derive(Debug)]
pub(super) struct Resampler {
    n_records: u64,
    n_rows: usize,
    /// Rows of many records.
    large: Vec<(usize, u32)>,
    /// Every record of the other rows, by the number of its row.
    small: Vec<u32>,
    /// For each row the first one of its person, by which it is drawn; empty where rows are records of their own.
    firsts: Vec<u32>,
}

impl Resampler {
    /// For the records of a design.
    pub(super) fn new(design: &Design<'_>) -> Result<Self> {
        let n_rows =
            u32::try_from(design.n_rows()).map_err(|_| Error::Resource("a study takes at most 2^32 rows".into()))?;
        let Some(persons) = design.persons() else {
            return Ok(Self::from_multiplicities(
                (0..n_rows).map(|row| design.multiplicities().map_or(1, |m| m[row as usize])),
            ));
        };
        let mut firsts: Vec<u32> = (0..n_rows).collect();
        for rows in (0..persons.len()).map(|person| persons.rows_of(person)) {
            let first = firsts[rows[0]];
            for &row in rows {
                firsts[row] = first;
            }
        }
        let drawn = (0..n_rows).zip(&firsts);
        let units = Self::from_multiplicities(drawn.map(|(row, first)| u32::from(row == *first)));
        Ok(Self { firsts, ..units })
    }

    fn from_multiplicities(multiplicities: impl Iterator<Item = u32>) -> Self {
        let (mut n_records, mut n_rows, mut large, mut small) = (0, 0, Vec::new(), Vec::new());
        for (row, multiplicity) in (0_u32..).zip(multiplicities) {
            n_records += u64::from(multiplicity);
            n_rows += 1;
            if multiplicity > LARGE {
                large.push((row as usize, multiplicity));
            } else {
                small.extend(std::iter::repeat_n(row, multiplicity as usize));
            }
        }
        Self {
            n_records,
            n_rows,
            large,
            small,
            firsts: Vec::new(),
        }
    }

    /// Counts of 0 for every row.
    pub(super) fn no_counts(&self) -> Counts {
        Counts::new(self.n_rows, self.large.iter().map(|(row, _)| *row))
    }

    /// Adds Multinomial(n, mᵢ/n) counts, those of a person to each of the rows, to one lane for each generator: a binomial for each large row and each block of small
    /// ones, given what the earlier ones took, then an index for each record of a block. A lane depends on its generator alone.
    /// # Panics
    /// For more generators than lanes, and for counts that are not those of [`Self::no_counts`].
    pub(super) fn draw(&self, generators: &mut [impl NoiseGenerator], counts: &mut Counts) -> Result<()> {
        let mut rests = [Rest {
            draws: self.n_records,
            records: self.n_records,
        }; LANES];
        for ((_, multiplicity), (_, counts)) in self.large.iter().zip(&mut counts.large) {
            for ((rest, generator), count) in rests.iter_mut().zip(&mut *generators).zip(counts) {
                let taken = rest.take(u64::from(*multiplicity), generator)?;
                *count += u32::try_from(taken).map_err(|e| Error::Resource(e.to_string()))?;
            }
        }
        for block in self.small.chunks(BLOCK) {
            // Few enough that random increments stay in a first-level cache.
            let first = block[0];
            let n_rows = (block[block.len() - 1] + 1 - first) as usize;
            let counts = &mut counts.small[first as usize..][..n_rows];
            for (lane, generator) in generators.iter_mut().enumerate() {
                let taken = rests[lane].take(block.len() as u64, generator)?;
                let mut is_full = false;
                if let Ok(counts) = <&mut [_; BLOCK]>::try_from(&mut *counts)
                    && block.len() == BLOCK
                {
                    // Every record is a row of its own.
                    for_each_of_block(taken, generator, |i| {
                        is_full |= add_one(&mut counts[i][lane]);
                    });
                } else {
                    for_each_index(block.len(), taken, generator, |i| {
                        is_full |= add_one(&mut counts[(block[i] - first) as usize][lane]);
                    });
                }
                if is_full {
                    return Err(Error::Resource("a row was drawn more than 255 times".into()));
                }
            }
        }
        for (row, &first) in self.firsts.iter().enumerate() {
            // Each person stands for one record, so that none of the rows is one of many records.
            counts.small[row] = counts.small[first as usize];
        }
        Ok(())
    }
}

/// Weight that is left to be drawn, and from how many records.
#[derive(Clone, Copy)]
struct Rest {
    draws: u64,
    records: u64,
}

impl Rest {
    /// How many of the draws fall on the next `records` records.
    fn take(&mut self, records: u64, generator: &mut impl NoiseGenerator) -> Result<u64> {
        let share = (records as f64 / self.records as f64).min(1.0);
        let law = Binomial::new(self.draws, share).map_err(|e| Error::Resource(e.to_string()))?;
        let taken = law.sample(generator);
        self.draws -= taken;
        self.records -= records;
        Ok(taken)
    }
}

/// Adds 1 and says whether there was no room for it.
fn add_one(count: &mut u8) -> bool {
    let is_full = *count == u8::MAX;
    *count = count.wrapping_add(1);
    is_full
}

/// Calls `visit` with `count` independent uniform indexes below `n ≤ BLOCK`.
fn for_each_index(n: usize, count: u64, generator: &mut impl Rng, mut visit: impl FnMut(usize)) {
    if n == BLOCK {
        return for_each_of_block(count, generator, visit);
    }
    for _ in 0..count {
        visit(generator.random_range(0..n));
    }
}

/// The same below `BLOCK`, a power of two: several indexes from the bits of one word, none rejected.
#[expect(clippy::cast_possible_truncation, reason = "an index is below BLOCK")]
fn for_each_of_block(count: u64, generator: &mut impl Rng, mut visit: impl FnMut(usize)) {
    const PER_WORD: u64 = (u64::BITS / INDEX_BITS) as u64;
    let mut visit_some = |n: u64| {
        let mut word = generator.next_u64();
        for _ in 0..n {
            visit((word % BLOCK as u64) as usize);
            word >>= INDEX_BITS;
        }
    };
    for _ in 0..count / PER_WORD {
        visit_some(PER_WORD);
    }
    if !count.is_multiple_of(PER_WORD) {
        visit_some(count % PER_WORD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;

    /// Counts of one sample.
    fn sample(resampler: &Resampler, generator: &mut SimulationGenerator) -> Vec<u32> {
        let mut counts = resampler.no_counts();
        resampler.draw(std::slice::from_mut(generator), &mut counts).unwrap();
        assert!((1..LANES).all(|lane| counts.of(lane).iter().all(|c| *c == 0)));
        counts.of(0)
    }

    /// Chi-square over many draws against Multinomial(n, mᵢ/n); false-positive rate 1e-6.
    #[test]
    fn weights_follow_the_multinomial_law() {
        let multiplicities = [1_u32, 1, 3, 40, 100, 5, 33, 2];
        let n: u32 = multiplicities.iter().sum();
        let resampler = Resampler::from_multiplicities(multiplicities.into_iter());
        let mut generator = SimulationGenerator::new(11, 0);
        let draws = 20_000;
        let (mut sums, mut squares, mut cross) = ([0.0; 8], [0.0; 8], 0.0);
        for _ in 0..draws {
            let weights = sample(&resampler, &mut generator);
            assert_eq!(weights.iter().sum::<u32>(), n);
            for i in 0..8 {
                sums[i] += f64::from(weights[i]);
                squares[i] += f64::from(weights[i]).powi(2);
            }
            cross += f64::from(weights[3]) * f64::from(weights[4]);
        }
        // Counts over all draws are one multinomial of draws·n: chi-square with 7 degrees of freedom, quantile 1-1e-6 is 40.5.
        let chi: f64 = (0..8)
            .map(|i| {
                let expected = f64::from(draws) * f64::from(multiplicities[i]);
                (sums[i] - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 40.5, "{chi}");
        // Variances mᵢ(1 - mᵢ/n), relative error √(2/draws)·4.9.
        for i in 0..8 {
            let (mean, p) = (
                f64::from(multiplicities[i]),
                f64::from(multiplicities[i]) / f64::from(n),
            );
            let variance = squares[i] / f64::from(draws) - (sums[i] / f64::from(draws)).powi(2);
            let kurtosis = 2.0 + 1.0 / (mean * (1.0 - p));
            assert!((variance / (mean * (1.0 - p)) - 1.0).abs() < 4.9 * (kurtosis / f64::from(draws)).sqrt());
        }
        // Covariance -m₃m₄/n between two large rows.
        let covariance = cross / f64::from(draws) - sums[3] * sums[4] / f64::from(draws).powi(2);
        let spread = (40.0_f64 * 0.8 * 100.0 * 0.5).sqrt();
        assert!((covariance + 4000.0 / f64::from(n)).abs() < 5.5 * spread / f64::from(draws).sqrt());
    }
    /// The same for rows that fill whole blocks of records: 9,000 singles, the last block not whole, and one large row.
    #[test]
    fn whole_blocks_follow_the_multinomial_law() {
        let n_rows = 9_001;
        let resampler = Resampler::from_multiplicities((0..n_rows).map(|i| if i == 5 { 900 } else { 1 }));
        let mut generator = SimulationGenerator::new(12, 0);
        let draws = 300;
        let mut sums = vec![0.0; n_rows];
        let (mut halves, n) = (Vec::new(), 9_900.0);
        for _ in 0..draws {
            let weights = sample(&resampler, &mut generator);
            assert_eq!(weights.iter().sum::<u32>(), 9_900);
            for (sum, weight) in sums.iter_mut().zip(&weights) {
                *sum += f64::from(*weight);
            }
            halves.push(f64::from(weights[6..4506].iter().sum::<u32>()));
        }
        let chi: f64 = sums
            .iter()
            .enumerate()
            .map(|(i, sum)| {
                let expected = f64::from(draws) * if i == 5 { 900.0 } else { 1.0 };
                (sum - expected).powi(2) / expected
            })
            .sum();
        // Chi-square with 9,000 degrees of freedom is near normal: two-sided quantile 4.9 for 1e-6.
        assert!((chi - 9_000.0).abs() < 4.9 * (2.0_f64 * 9_000.0).sqrt(), "{chi}");
        // The count of 4,500 records varies as a binomial: chi-square with 300 degrees of freedom.
        let p: f64 = 4_500.0 / n;
        let spread: f64 = halves.iter().map(|h| (h - n * p).powi(2)).sum::<f64>() / (n * p * (1.0 - p));
        assert!((spread - 300.0).abs() < 4.9 * (2.0_f64 * 300.0).sqrt(), "{spread}");
    }
}
