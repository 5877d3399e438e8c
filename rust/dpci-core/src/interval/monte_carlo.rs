//! Monte Carlo intervals: empirical quantiles of simulated errors (Wang, Kifer & Lee, Algorithms 3 and 5).

use std::sync::atomic::{AtomicBool, Ordering};

use rand::RngExt;
use rand_distr::{Distribution, Gamma, StandardNormal};

use super::spread::{ErrorShape, Spread};
use super::{check_lengths, check_level};
use crate::error::{check, check_length};
use crate::linalg::vector;
use crate::noise::{Law, NoiseGenerator, NoiseLaw};
use crate::{Error, Result};

/// Most draws that are accepted; their extremes have to fit in memory.
const MAX_DRAWS: usize = 100_000_000;

/// Draws between two looks at the cancel flag.
const CHUNK: usize = 4096;

/// For each contrast the empirical (α/2, 1-α/2) quantiles of `n_draws` simulated errors, `α = 1 - level`, interpolated
/// linearly between order statistics.
///
/// The draws (Ω, W, Z) are shared by the contrasts: contrast j has errors `√(W_i(v_j + a_j²Ω_i))·Z_i`. Each interval has the law that
/// its own draws would give it; the intervals together are dependent, as they are marginal anyway. As the number of draws
/// grows they converge to [`super::half_widths`].
///
/// Memory is that of the extreme draws, some 64·α·`n_draws` bytes.
pub fn monte_carlo(
    v: &[f64],
    a: &[f64],
    shape: &ErrorShape,
    level: f64,
    n_draws: usize,
    generator: &mut impl NoiseGenerator,
    cancel: &AtomicBool,
) -> Result<Vec<(f64, f64)>> {
    check_level(level)?;
    shape.check()?;
    check(
        (1..=MAX_DRAWS).contains(&n_draws),
        "n_draws",
        "between 1 and 100000000",
        n_draws as f64,
    )?;
    if shape.law.blocks().is_some() {
        return monte_carlo_of_blocks(v, a, shape, level, n_draws, generator, cancel);
    }
    check_lengths("a", v, a)?;
    let spreads = v
        .iter()
        .zip(a)
        .map(|(v, a)| Spread::of_noise(*v, *a, &shape.law))
        .collect::<Result<Vec<_>>>()?;
    let check_cancel = || {
        let stop = cancel.load(Ordering::Relaxed);
        (!stop).then_some(()).ok_or(Error::Interrupted)
    };

    let rank = Rank::new(level, n_draws);
    let by_mixed = |first: &&Spread, second: &&Spread| first.mixed.total_cmp(&second.mixed);
    let (Some(least), Some(most)) = (spreads.iter().min_by(by_mixed), spreads.iter().max_by(by_mixed)) else {
        return Ok(Vec::new());
    };
    let ends = [*least, *most];
    let mut upper = Extremes::new(ends, rank.needed);
    let mut lower = Extremes::new(ends, rank.needed);
    let mixing = Mixing::of_noise(&shape.law)?;
    let matrices = Mixing::gamma(shape.matrices)?;
    for start in (0..n_draws).step_by(CHUNK) {
        check_cancel()?;
        upper.reserve(CHUNK)?;
        lower.reserve(CHUNK)?;
        for _ in start..n_draws.min(start + CHUNK) {
            let z: f64 = generator.sample(StandardNormal);
            let square = z * z.abs() * matrices.sample(generator);
            let mixed = square * mixing.sample(generator);
            upper.offer([square, mixed]);
            lower.offer([-square, -mixed]);
        }
    }
    upper.prune();
    lower.prune();
    spreads
        .iter()
        .map(|spread| {
            check_cancel()?;
            // At a level next to 0 both are the median, and rounding may let them cross.
            let end = upper.quantile(spread, rank);
            Ok(((-lower.quantile(spread, rank)).min(end), end))
        })
        .collect()
}

/// Intervals under noise in the shape of blocks, where `a` has the multipliers of all coordinates, contrast by contrast.
/// Memory is that of all draws of all contrasts.
fn monte_carlo_of_blocks(
    v: &[f64],
    a: &[f64],
    shape: &ErrorShape,
    level: f64,
    n_draws: usize,
    generator: &mut impl NoiseGenerator,
    cancel: &AtomicBool,
) -> Result<Vec<(f64, f64)>> {
    let dim = shape.law.blocks().map_or(0, |blocks| blocks.dim());
    check_length("a", v.len() * dim, a.len())?;
    for (name, values) in [("v", v), ("a", a)] {
        let bad = |x: &&f64| !(x.is_finite() && (**x >= 0.0 || name == "a"));
        if let Some(&value) = values.iter().find(bad) {
            return Err(Error::OutOfRange {
                name,
                rule: "finite, and at least 0 for a variance",
                value,
            });
        }
    }
    let law = shape.law.on(dim)?;
    let matrices = Mixing::gamma(shape.matrices)?;
    let mut errors = vec![Vec::new(); v.len()];
    for draws in &mut errors {
        let reserved = draws.try_reserve_exact(n_draws);
        reserved.map_err(|error| Error::Resource(error.to_string()))?;
    }
    for i in 0..n_draws {
        if i % CHUNK == 0 && cancel.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let noise = law.sample(generator);
        let z: f64 = generator.sample(StandardNormal);
        let root = matrices.sample(generator).sqrt();
        let rows = v.iter().zip(a.chunks_exact(dim));
        for ((v, row), draws) in rows.zip(&mut errors) {
            draws.push(root * (v.sqrt() * z + vector::dot(row, &noise)));
        }
    }
    let rank = Rank::new(level, n_draws);
    let quantiles = errors.iter_mut().map(|draws| {
        let upper = rank.upper(draws);
        for error in draws.iter_mut() {
            *error = -*error;
        }
        ((-rank.upper(draws)).min(upper), upper)
    });
    Ok(quantiles.collect())
}

/// Where a quantile lies among the order statistics, counted from the outermost.
#[derive(Debug, Clone, Copy)]
struct Rank {
    /// How many of the outermost order statistics it needs.
    needed: usize,
    /// Weight of the innermost of these, the rest on the one before it.
    fraction: f64,
}

impl Rank {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position among the draws is non-negative and at most 1e8"
    )]
    fn new(level: f64, n_draws: usize) -> Self {
        let position = 0.5 * (1.0 - level) * (n_draws - 1) as f64;
        Self {
            // Below (n_draws - 1)/2, so only a single draw lacks the second one.
            needed: (position.floor() as usize + 2).min(n_draws),
            fraction: position.fract(),
        }
    }

    /// The upper quantile of values, which it leaves in no order.
    fn upper(self, values: &mut [f64]) -> f64 {
        let (outer, inner) = split_largest(values, self.needed);
        let least = outer.iter().copied().min_by(f64::total_cmp);
        let before = least.unwrap_or(inner);
        before + self.fraction * (inner - before)
    }
}

/// A mixing variable of mean 1, drawn.
enum Mixing {
    /// Always 1.
    None,
    /// Gamma with mean 1.
    Gamma(Gamma<f64>),
}

impl Mixing {
    /// Mixing variable of the noise, over its mean.
    fn of_noise(law: &NoiseLaw) -> Result<Self> {
        match *law {
            NoiseLaw::SphericalLaplace { dim, .. } => Self::gamma(f64::midpoint(dim as f64, 1.0)),
            // Gaussian, or no mixture of normal ones.
            _ => Ok(Self::None),
        }
    }

    /// Gamma of this shape; always 1 if it is infinite.
    fn gamma(shape: f64) -> Result<Self> {
        if shape.is_infinite() {
            return Ok(Self::None);
        }
        Gamma::new(shape, shape.recip())
            .map(Self::Gamma)
            .map_err(|_| Error::OutOfRange {
                name: "shape",
                rule: "large enough that its inverse is finite",
                value: shape,
            })
    }

    fn sample(&self, generator: &mut impl NoiseGenerator) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Gamma(gamma) => gamma.sample(generator),
        }
    }
}

/// The draws that can be among the largest errors of some contrast.
///
/// A draw is kept as `[s, s·W]` with `s = Z|Z|`: the signed square of a contrast's error is `fixed·s + mixed·sW` in its
/// variance units, and squaring keeps the order. In `mixed` this is linear, so over all contrasts it lies between its values at
/// the least and the greatest `mixed`. When k draws have their lesser end value at or above a threshold, every contrast's k-th
/// largest error is at or above it too, and a draw whose greater end value is below it is needed by none. So a few draws in a
/// hundred serve all contrasts, exactly.
struct Extremes {
    draws: Vec<[f64; 2]>,
    /// The contrasts with the least and the greatest mixed share.
    ends: [Spread; 2],
    /// k: how many of the largest errors a quantile needs.
    needed: usize,
    /// Draws whose greater end value is below it are needed by no contrast.
    threshold: f64,
    /// Number of draws at which to prune.
    limit: usize,
    /// Values to select from.
    values: Vec<f64>,
}

impl Extremes {
    fn new(ends: [Spread; 2], needed: usize) -> Self {
        Self {
            draws: Vec::new(),
            ends,
            needed,
            threshold: f64::NEG_INFINITY,
            limit: 1024.max(2 * needed),
            values: Vec::new(),
        }
    }

    fn reserve(&mut self, n_draws: usize) -> Result<()> {
        let reserve = self.draws.try_reserve(n_draws);
        reserve.map_err(|error| Error::Resource(error.to_string()))
    }

    fn offer(&mut self, draw: [f64; 2]) {
        let [first, second] = self.ends.map(|end| signed_square(&end, draw));
        if first.max(second) >= self.threshold {
            self.draws.push(draw);
            if self.draws.len() >= self.limit {
                self.prune();
                self.limit = self.limit.max(2 * self.draws.len());
            }
        }
    }

    /// Raises the threshold to what the draws so far allow, and drops the draws below it.
    fn prune(&mut self) {
        if self.draws.len() <= self.needed {
            return;
        }
        let ends = self.ends;
        let end_values = |draw: &[f64; 2]| ends.map(|end| signed_square(&end, *draw));
        self.values.clear();
        self.values.extend(self.draws.iter().map(|draw| {
            let [first, second] = end_values(draw);
            first.min(second)
        }));
        let (_, threshold) = split_largest(&mut self.values, self.needed);
        self.draws.retain(|draw| {
            let [first, second] = end_values(draw);
            first.max(second) >= threshold
        });
        self.threshold = threshold;
    }

    /// The upper quantile of a contrast's errors.
    fn quantile(&mut self, spread: &Spread, rank: Rank) -> f64 {
        self.values.clear();
        self.values
            .extend(self.draws.iter().map(|draw| signed_square(spread, *draw)));
        let (outer, inner) = split_largest(&mut self.values, rank.needed);
        let before = outer.iter().copied().min_by(f64::total_cmp).unwrap_or(inner);
        let [inner, before] = [inner, before].map(|square| square.abs().sqrt().copysign(square));
        spread.scale * (before + rank.fraction * (inner - before))
    }
}

/// The signed square of an error in the contrast's variance units.
fn signed_square(spread: &Spread, [square, mixed]: [f64; 2]) -> f64 {
    spread.fixed * square + spread.mixed * mixed
}

/// The k-th largest value, and the larger ones in no order.
fn split_largest(values: &mut [f64], k: usize) -> (&[f64], f64) {
    let (larger, value, _) = values.select_nth_unstable_by(k - 1, |first, second| second.total_cmp(first));
    (larger, *value)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::interval::{half_width, half_widths};
    use crate::noise::SimulationGenerator;
    use crate::row_domain::Blocks;

    static NEVER: AtomicBool = AtomicBool::new(false);
    const LAWS: [ErrorShape; 3] = [
        ErrorShape::plug_in(NoiseLaw::Gaussian { std_dev: 1.5 }),
        ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim: 1, rate: 2.0 }),
        ErrorShape {
            law: NoiseLaw::SphericalLaplace { dim: 30, rate: 2.0 },
            matrices: 3.0,
        },
    ];

    /// The same quantiles from all draws, sorted.
    fn brute_force(v: f64, a: f64, shape: &ErrorShape, level: f64, n_draws: usize, seed: u64) -> (f64, f64) {
        let mut generator = SimulationGenerator::new(seed, 0);
        let mixing = Mixing::of_noise(&shape.law).unwrap();
        let matrices = Mixing::gamma(shape.matrices).unwrap();
        let mut errors: Vec<f64> = (0..n_draws)
            .map(|_| {
                let z: f64 = generator.sample(StandardNormal);
                let ratio = matrices.sample(&mut generator);
                let w = mixing.sample(&mut generator);
                (ratio * (v + a * a * shape.law.coordinate_variance() * w)).sqrt() * z
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        let quantile = |p: f64| {
            let position = p * (n_draws - 1) as f64;
            let below = position.floor();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position")]
            let (i, fraction) = (below as usize, position - below);
            let next = errors[(i + 1).min(n_draws - 1)];
            errors[i] + fraction * (next - errors[i])
        };
        let alpha = 1.0 - level;
        (quantile(alpha / 2.0), quantile(1.0 - alpha / 2.0))
    }

    #[test]
    fn equals_sorting_all_draws() {
        let v = [1.0, 0.0, 2.0, 0.5, 3.0, 0.0];
        let a = [0.0, 1.0, 0.3, 2.0, 1.0, 0.0];
        for law in LAWS {
            for n_draws in [1, 2, 3, 50, 5000, 20_001] {
                for level in [1e-6, 0.5, 0.9, 0.95, 0.999, 1.0 - 1e-12] {
                    let mut generator = SimulationGenerator::new(5, 0);
                    let got = monte_carlo(&v, &a, &law, level, n_draws, &mut generator, &NEVER).unwrap();
                    for ((v, a), got) in v.iter().zip(a).zip(got) {
                        let expected = brute_force(*v, a, &law, level, n_draws, 5);
                        for (got, expected) in [(got.0, expected.0), (got.1, expected.1)] {
                            assert!(
                                (got - expected).abs() <= 1e-9 * (expected.abs() + 1e-3),
                                "{law:?} n={n_draws} level={level} v={v} a={a}: {got} against {expected}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn converges_to_the_exact_interval() {
        // The probability inside the interval has standard error √(level·α/m); 5 of them fail falsely with probability 6e-7.
        let (v, a, level, n_draws) = (0.5, 1.0, 0.95, 1_000_000);
        let slack = 5.0 * (level * (1.0 - level) / n_draws as f64).sqrt();
        for law in LAWS {
            let mut generator = SimulationGenerator::new(6, 1);
            let (lower, upper) = monte_carlo(&[v], &[a], &law, level, n_draws, &mut generator, &NEVER).unwrap()[0];
            let narrow = half_width(v, a, &law, level - slack).unwrap();
            let wide = half_width(v, a, &law, level + slack).unwrap();
            let half = 0.5 * (upper - lower);
            assert!(narrow < half && half < wide, "{law:?}: {half} outside {narrow}..{wide}");
        }
    }

    #[test]
    fn stops_when_cancelled() {
        let cancel = AtomicBool::new(true);
        let mut generator = SimulationGenerator::new(7, 0);
        let result = monte_carlo(&[1.0], &[1.0], &LAWS[0], 0.95, MAX_DRAWS, &mut generator, &cancel);
        assert_eq!(result, Err(Error::Interrupted));
    }

    #[test]
    fn bad_arguments_are_refused() {
        let mut generator = SimulationGenerator::new(8, 0);
        let mut run =
            |v: &[f64], a: &[f64], level, n_draws| monte_carlo(v, a, &LAWS[1], level, n_draws, &mut generator, &NEVER);
        assert!(run(&[1.0], &[1.0], 0.95, 0).is_err());
        assert!(run(&[1.0], &[1.0], 0.95, MAX_DRAWS + 1).is_err());
        assert!(run(&[1.0], &[1.0, 2.0], 0.95, 10).is_err());
        assert!(run(&[-1.0], &[1.0], 0.95, 10).is_err());
        assert!(run(&[1.0], &[f64::NAN], 0.95, 10).is_err());
        for level in [0.0, 1.0, f64::NAN] {
            assert!(run(&[1.0], &[1.0], level, 10).is_err());
        }
        assert_eq!(run(&[], &[], 0.95, 10), Ok(Vec::new()));
    }

    #[test]
    fn draws_give_the_exact_intervals() {
        let blocks = Arc::new(Blocks::new(vec![1.0, 2.0], vec![0, 1, 1]).unwrap());
        let law = NoiseLaw::ShapedLaplace { blocks, rate: 2.0 };
        let shape = ErrorShape { law, matrices: 6.0 };
        let (v, a) = ([0.3, 0.0], [1.0, 0.0, -2.0, 0.0, 1.0, 1.0]);
        let mut generator = SimulationGenerator::new(6, 1);
        let never = AtomicBool::new(false);
        let mut run = |a: &[f64], n| monte_carlo(&v, a, &shape, 0.9, n, &mut generator, &never);
        let exact = half_widths(&v, &a, &shape, 0.9).unwrap();
        for ((lower, upper), half) in run(&a, 200_000).unwrap().into_iter().zip(exact) {
            assert!((upper / half - 1.0).abs() < 0.02 && (lower / half + 1.0).abs() < 0.02);
        }
        assert!(run(&a[1..], 10).is_err() && run(&[f64::NAN; 6], 10).is_err());
        let stop = AtomicBool::new(true);
        let mut generator = SimulationGenerator::new(6, 1);
        assert!(monte_carlo(&v, &a, &shape, 0.9, 10, &mut generator, &stop).is_err());
    }
}
