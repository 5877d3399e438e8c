//! The exponential mechanism over a product of lists, whose error is the greatest of its parts: exact, over any number of lists.
//!
//! The list of all combinations is too long to write down, but how many have a greatest error of at most s is a product. So the greatest
//! error is drawn first, in integers as long as they need be, and then a combination that has it (docs/proofs/bounds.md).

use std::cmp::Ordering;

use num_bigint::BigUint;

use super::NoiseGenerator;
use crate::error::check_non_negative;
use crate::{Error, Result};

/// Binary digits beyond the point that the first attempt takes, besides those of the counts.
pub(super) const FIRST_DIGITS: u64 = 128;
/// Digits that rounding may spoil on the way to an exponential.
const GUARD: u64 = 64;

/// An entry of a list: its error, and how many entries it counts as, which is public.
pub type Entry = (u64, BigUint);

/// An index into each list, together with probability exactly proportional to the product of how many each counts as and
/// `exp(-rate·max errors[j][index_j])`.
///
/// With errors that one record moves by at most 1 this is `2·rate`-DP (`McSherry` & Talwar 2007), and `rate²/2`-zCDP, because the privacy
/// loss takes values in an interval of length `2·rate` (Cesar & Rogers 2021). `check` is asked before each exponential whether to go on:
/// long lists take seconds.
pub fn joint_index(
    lists: &[Vec<Entry>],
    rate: f64,
    check: &dyn Fn() -> Result<()>,
    generator: &mut impl NoiseGenerator,
) -> Result<Vec<usize>> {
    check_non_negative("rate", rate)?;
    let counts_as_none = |list: &Vec<Entry>| list.iter().any(|entry| entry.1 == BigUint::ZERO);
    if lists.iter().any(|list| list.is_empty() || counts_as_none(list)) {
        return Err(Error::Unsupported(
            "every list must have at least one entry to choose from, and each must count, got one that does not".into(),
        ));
    }
    generator.refresh()?;
    let levels = Levels::new(lists);
    let Some(level) = levels.draw(&Rate::new(rate), check, generator)? else {
        return Ok(Vec::new());
    };
    Ok(reaching(lists, level, generator))
}

/// One of the combinations whose greatest error is a level that some have, with probability exactly proportional to what it counts as.
///
/// The first list with this error is drawn: those before it stay below, and those after it do not exceed it.
fn reaching(lists: &[Vec<Entry>], level: u64, generator: &mut impl NoiseGenerator) -> Vec<usize> {
    let parts = |of: &dyn Fn(u64) -> bool| -> Vec<Part> { lists.iter().map(|list| Part::new(list, of)).collect() };
    let below = parts(&|error| error < level);
    let at = parts(&|error| error == level);
    let within = parts(&|error| error <= level);
    let after = |j: usize| -> BigUint { within[j + 1..].iter().map(Part::count).product() };
    let mut before = BigUint::from(1_u32);
    let firsts = Part::of_counts((0..lists.len()).map(|j| {
        let count = &before * at[j].count() * after(j);
        before *= below[j].count();
        (j, count)
    }));
    let first = firsts.draw(generator);
    (0..lists.len())
        .map(|j| match j.cmp(&first) {
            Ordering::Less => below[j].draw(generator),
            Ordering::Equal => at[j].draw(generator),
            Ordering::Greater => within[j].draw(generator),
        })
        .collect()
}

/// Some entries of a list, by index, and the sums of how many they count as.
struct Part {
    indices: Vec<usize>,
    sums: Vec<BigUint>,
}

impl Part {
    fn new(list: &[Entry], of: &dyn Fn(u64) -> bool) -> Self {
        let chosen = list.iter().enumerate().filter(|(_, (error, _))| of(*error));
        Self::of_counts(chosen.map(|(i, (_, count))| (i, count.clone())))
    }

    fn of_counts(counts: impl Iterator<Item = (usize, BigUint)>) -> Self {
        let mut sum = BigUint::ZERO;
        let (indices, sums) = counts
            .map(|(i, count)| {
                sum += count;
                (i, sum.clone())
            })
            .unzip();
        Self { indices, sums }
    }

    fn count(&self) -> &BigUint {
        self.sums.last().unwrap_or(&BigUint::ZERO)
    }

    /// An index with probability exactly proportional to what it counts as; 0 where nothing counts.
    fn draw(&self, generator: &mut impl NoiseGenerator) -> usize {
        let digits = self.count().bits().next_multiple_of(64);
        let spare = digits - self.count().bits();
        while *self.count() > BigUint::ZERO {
            let uniform = random(digits, generator) >> spare;
            let at = self.sums.partition_point(|sum| *sum <= uniform);
            if let Some(index) = self.indices.get(at) {
                return *index;
            }
        }
        0
    }
}

/// The greatest errors that combinations can have, and how many combinations have each.
struct Levels {
    errors: Vec<u64>,
    counts: Vec<BigUint>,
}

impl Levels {
    fn new(lists: &[Vec<Entry>]) -> Self {
        // Errors of each list, increasing, with the number of entries up to each.
        let sorted: Vec<Vec<Entry>> = lists
            .iter()
            .map(|list| {
                let mut list = list.clone();
                list.sort_unstable();
                let mut sum = BigUint::ZERO;
                for entry in &mut list {
                    sum += &entry.1;
                    entry.1.clone_from(&sum);
                }
                list
            })
            .collect();
        let least = sorted.iter().map(|list| list[0].0).max();
        let mut errors: Vec<u64> = sorted.iter().flatten().map(|entry| entry.0).collect();
        errors.retain(|e| Some(*e) >= least);
        errors.sort_unstable();
        errors.dedup();
        let mut below = BigUint::ZERO;
        let counts = errors
            .iter()
            .map(|level| {
                let up_to: BigUint = sorted
                    .iter()
                    .map(|list| &list[list.partition_point(|entry| entry.0 <= *level) - 1].1)
                    .product();
                let count = &up_to - &below;
                below = up_to;
                count
            })
            .collect();
        Self { errors, counts }
    }

    /// A level with probability exactly proportional to its count times `exp(-rate·level)`; `None` without lists.
    ///
    /// A uniform number times the sum of all weights falls into the part of one level. Both are known to some digits; where these leave
    /// two levels, more digits of the same number and of the weights decide.
    fn draw(
        &self,
        rate: &Rate,
        check: &dyn Fn() -> Result<()>,
        generator: &mut impl NoiseGenerator,
    ) -> Result<Option<u64>> {
        let longest = self.counts.iter().map(BigUint::bits).max();
        let (Some(first), Some(last)) = (self.errors.first(), longest) else {
            return Ok(None);
        };
        let mut digits = last.next_multiple_of(64) + FIRST_DIGITS;
        let mut uniform = random(digits, generator);
        loop {
            // Sums of all weights up to each level, from below and from above.
            let (mut low, mut high) = (BigUint::ZERO, BigUint::ZERO);
            let mut sums = Vec::with_capacity(self.errors.len());
            for (error, count) in self.errors.iter().zip(&self.counts) {
                check()?;
                let (least, most) = rate.exponential(error - first, digits);
                low += count * least;
                high += count * most;
                sums.push((low.clone(), high.clone()));
            }
            let from = &uniform * &low;
            let to = (&uniform + 1_u32) * &high;
            let at = sums.partition_point(|(_, most)| (most << digits) <= from);
            if let Some((least, _)) = sums.get(at)
                && to <= (least << digits)
            {
                return Ok(Some(self.errors[at]));
            }
            uniform = (uniform << FIRST_DIGITS) + random(FIRST_DIGITS, generator);
            digits += FIRST_DIGITS;
        }
    }
}

/// Random binary digits, a multiple of 64 of them.
pub(super) fn random(digits: u64, generator: &mut impl NoiseGenerator) -> BigUint {
    (0..digits / 64).fold(BigUint::ZERO, |number, _| (number << 64) + generator.next_u64())
}

/// The rate as the fraction that its float is: `numerator·2^-exponent`.
pub(super) struct Rate {
    numerator: u64,
    exponent: u64,
    /// Power of two that a rate of 2⁵³ or more is a multiple of.
    power: u64,
}

impl Rate {
    pub(super) fn new(rate: f64) -> Self {
        let (fraction, power) = libm::frexp(rate);
        let shift = i64::from(power) - 53;
        Self {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a fraction below 1 times 2^53 is a whole number below 2^53"
            )]
            numerator: (fraction * 2.0_f64.powi(53)) as u64,
            exponent: (-shift).max(0).unsigned_abs(),
            power: shift.max(0).unsigned_abs(),
        }
    }

    /// `exp(-rate·steps)·2^digits` from below and from above.
    pub(super) fn exponential(&self, steps: u64, digits: u64) -> (BigUint, BigUint) {
        let precision = digits + GUARD;
        let one = BigUint::from(1_u32) << precision;
        let product = (BigUint::from(self.numerator) * steps) << self.power;
        if product == BigUint::ZERO {
            let exact = BigUint::from(1_u32) << digits;
            return (exact.clone(), exact);
        }
        // Beyond this the exponential is below the last digit.
        if product.bits() > self.exponent && (&product >> self.exponent) >= digits.into() {
            return (BigUint::ZERO, 1_u32.into());
        }
        // exp(-y) is the square of the square .. of exp(-y/2^halvings), with y/2^halvings below 1/2.
        let halvings = (product.bits() + 1).saturating_sub(self.exponent);
        let fraction = (product << precision) >> (self.exponent + halvings);
        let mut power = series(&fraction, &one, precision);
        for _ in 0..halvings {
            power = (&power * &power) >> precision;
        }
        // Fewer than 2^10 roundings of one last digit each, doubled at each of at most 2^5 squarings where digits are below 2^30.
        let room = BigUint::from(1_u32) << (GUARD - 8);
        let least = if power > room { &power - &room } else { BigUint::ZERO };
        (least >> GUARD, ((power + room) >> GUARD) + 1_u32)
    }
}

/// `exp(-x)` of a fixed-point number below 1/2, by its Taylor series.
fn series(x: &BigUint, one: &BigUint, precision: u64) -> BigUint {
    let (mut even, mut odd) = (one.clone(), BigUint::ZERO);
    let mut term = one.clone();
    for k in 1_u32.. {
        term = ((term * x) >> precision) / k;
        if term == BigUint::ZERO {
            break;
        }
        let side = if k % 2 == 0 { &mut even } else { &mut odd };
        *side += &term;
    }
    even - odd
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::noise::testing::assert_counts;

    #[expect(clippy::unnecessary_wraps, reason = "what the draw asks before each exponential")]
    fn go_on() -> Result<()> {
        Ok(())
    }

    /// Entries that count once each.
    fn once(errors: &[u64]) -> Vec<Entry> {
        errors.iter().map(|e| (*e, 1_u32.into())).collect()
    }

    #[test]
    fn a_draw_ends_where_it_is_told_to() {
        let mut generator = SimulationGenerator::new(74, 0);
        let lists = [once(&[0, 1, 2])];
        for most in [0, 2] {
            let asked = std::cell::Cell::new(0);
            let check = || {
                asked.set(asked.get() + 1);
                if asked.get() > most {
                    Err(Error::Interrupted)
                } else {
                    Ok(())
                }
            };
            let found = joint_index(&lists, 1.0, &check, &mut generator);
            assert_eq!(found, Err(Error::Interrupted));
        }
    }

    #[test]
    fn exponentials_are_between_their_bounds() {
        for (rate, steps) in [(0.3, 1), (0.5, 7), (1e-9, 3), (2.0, 100), (1e-300, 5), (700.0, 1)] {
            for digits in [128, 1088] {
                let (least, most) = Rate::new(rate).exponential(steps, digits);
                assert!(least < most && &most - &least < (1_u32 << 8).into());
                // The highest 60 digits of each against a float.
                let scaled = |n: &BigUint| {
                    let spare = n.bits().saturating_sub(60);
                    let head = u64::try_from(n >> spare).unwrap() as f64;
                    head.ln() + (spare as f64 - digits as f64) * std::f64::consts::LN_2
                };
                let exact = -rate * steps as f64;
                if exact > -(digits as f64) * std::f64::consts::LN_2 + 20.0 {
                    assert!((scaled(&least) - exact).abs() <= 1e-13 * exact.abs().max(1.0));
                    assert!((scaled(&most) - exact).abs() <= 1e-13 * exact.abs().max(1.0));
                }
            }
        }
        // exp(-a)·exp(-b) = exp(-a-b), to the last digits.
        let (rate, digits) = (Rate::new(0.7), 640);
        let [a, b, sum] = [13, 29, 42].map(|steps| rate.exponential(steps, digits));
        assert!((&a.0 * &b.0) >> digits <= sum.1 && sum.0 <= ((&a.1 * &b.1) >> digits) + 1_u32);
        let huge = Rate::new(1e15).exponential(u64::MAX, 128);
        assert_eq!(huge, (BigUint::ZERO, 1_u32.into()));
        assert_eq!(Rate::new(0.0).exponential(9, 64).0, BigUint::from(1_u32) << 64);
    }

    #[test]
    fn combinations_have_the_odds_of_the_exponential_mechanism() {
        let of = |list: &[(u64, u64)]| -> Vec<Entry> {
            list.iter().map(|(error, count)| (*error, (*count).into())).collect()
        };
        let plain: [&[(u64, u64)]; 3] = [
            &[(0, 1), (3, 7), (1, 2)],
            &[(2, 1), (0, 3)],
            &[(5, 1), (1, 1), (0, 1), (2, 4)],
        ];
        let lists = plain.map(of);
        for rate in [0.0, 0.4, 1.5] {
            let mut odds = Vec::new();
            for (a, i) in plain[0] {
                for (b, j) in plain[1] {
                    for (c, k) in plain[2] {
                        odds.push((i * j * k) as f64 * (-rate * *a.max(b).max(c) as f64).exp());
                    }
                }
            }
            let total: f64 = odds.iter().sum();
            let mut generator = SimulationGenerator::new(71, 0);
            let mut counts = vec![0; odds.len()];
            for _ in 0..60_000 {
                let chosen = joint_index(&lists, rate, &go_on, &mut generator).unwrap();
                counts[chosen[0] * 8 + chosen[1] * 4 + chosen[2]] += 1;
            }
            let odds: Vec<f64> = odds.iter().map(|w| w / total).collect();
            assert_counts(&counts, &odds);
        }
    }

    #[test]
    fn a_single_list_agrees_with_a_draw_by_rejection() {
        let errors = once(&[10, 12, 11, 30]);
        let weights = [0, 2, 1, 20].map(|e| (-0.25 * f64::from(e)).exp());
        let total: f64 = weights.iter().sum();
        let mut generator = SimulationGenerator::new(72, 0);
        let mut counts = [0; 4];
        for _ in 0..100_000 {
            counts[joint_index(std::slice::from_ref(&errors), 0.25, &go_on, &mut generator).unwrap()[0]] += 1;
        }
        assert_counts(&counts, &weights.map(|w| w / total));
    }

    #[test]
    fn many_long_lists_and_any_rate() {
        let list: Vec<u64> = (0..150).map(|k: u64| k.abs_diff(60) * 1_000_000).collect();
        let lists = vec![once(&list); 60];
        let mut generator = SimulationGenerator::new(73, 0);
        for rate in [5e-324, 1e-9, 1e-3, 1e15, f64::MAX] {
            let chosen = joint_index(&lists, rate, &go_on, &mut generator).unwrap();
            assert_eq!(chosen.len(), 60);
            if rate >= 1e-3 {
                assert!(chosen.iter().all(|i| *i == 60));
            }
        }
        assert!(joint_index(&[], 1.0, &go_on, &mut generator).unwrap().is_empty());
        for bad in [f64::NAN, -1.0, f64::INFINITY] {
            assert!(joint_index(&lists, bad, &go_on, &mut generator).is_err());
        }
        let none = vec![(1, BigUint::ZERO)];
        for bad in [vec![], none] {
            assert!(joint_index(&[bad], 1.0, &go_on, &mut generator).is_err());
        }
    }

    #[test]
    fn digits_grow_until_they_decide() {
        // A uniform number that is a multiple of the sum's half for as many digits as the script holds.
        let levels = Levels::new(&[once(&[0, 1])]);
        let rate = Rate::new(0.0);
        let mut words = vec![1_u64 << 63];
        words.extend([0; 40]);
        let mut generator = crate::noise::generator::Scripted::new(words);
        assert_eq!(levels.draw(&rate, &go_on, &mut generator).unwrap(), Some(1));
    }
}
