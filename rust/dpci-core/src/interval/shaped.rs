//! Errors under noise in the shape of blocks: the law of each contrast, whose noise is a gamma number times a sum over blocks.
//!
//! The error of a contrast is a normal number and `r·Σ_j m_j u_j`, r ~ Gamma(D+1), u uniform in the unit ball of the blocks. Its cumulants are
//! exact ([`cumulants`]), and three of them give its quantiles ([`table`]; docs/proofs/intervals.md, "Intervals"): the size of an error is an increasing
//! function of that of a normal number. The law of the matrices is integrated over it.

use std::f64::consts::FRAC_1_SQRT_2;

use self::table::{COEFFICIENTS, DEGREE, RANGES, SCALES, SCORES};
use super::mixture::Mixture;
use super::spread::{ErrorShape, GREATEST_SHAPE};
use super::{check_lengths, check_level};
use crate::error::{check_length, check_non_negative};
use crate::linalg::vector;
use crate::row_domain::Blocks;
use crate::{Error, Result};

mod cumulants;
mod table;

/// Scores between which the slope of the logarithm of a tail is taken that continues it.
const LAST: [f64; 2] = [3.0, 4.0];

/// The half widths of several contrasts, to a relative accuracy of 1e-2 or better.
///
/// `a` holds the multipliers of the coordinates of the noise, contrast by contrast.
pub(super) fn half_widths(v: &[f64], a: &[f64], shape: &ErrorShape, blocks: &Blocks, level: f64) -> Result<Vec<f64>> {
    check_level(level)?;
    let matrices = Ratio::new(shape);
    Contrasts::new(v, a, shape, blocks)?.map(|_, error| error.scale * matrices.quantile(&error.law, 1.0 - level))
}

/// The tails of several contrasts, each at its own `x`.
pub(super) fn tails(v: &[f64], a: &[f64], shape: &ErrorShape, blocks: &Blocks, x: &[f64]) -> Result<Vec<f64>> {
    check_lengths("statistic", v, x)?;
    if let Some(&value) = x.iter().find(|x| x.is_nan()) {
        return Err(Error::OutOfRange {
            name: "statistic",
            rule: "a number",
            value,
        });
    }
    let matrices = Ratio::new(shape);
    Contrasts::new(v, a, shape, blocks)?.map(|i, error| {
        // An error that is surely 0 is at 0, and infinitely far from anything else.
        let unit = if x[i].abs() > 0.0 {
            x[i].abs() / error.scale
        } else {
            0.0
        };
        matrices.tail(&error.law, unit).min(1.0)
    })
}

/// Contrasts with what their laws come from.
struct Contrasts<'a> {
    v: &'a [f64],
    a: &'a [f64],
    blocks: &'a Blocks,
    /// Standard deviations of the coordinates of the noise.
    std_devs: Vec<f64>,
}

impl<'a> Contrasts<'a> {
    fn new(v: &'a [f64], a: &'a [f64], shape: &ErrorShape, blocks: &'a Blocks) -> Result<Self> {
        shape.check()?;
        let dim = blocks.dim();
        check_length("a", v.len() * dim, a.len())?;
        let size = dim as f64;
        let radius = ((size + 1.0) * (size + 2.0)).sqrt() * shape.law.scale();
        let variances = blocks.variances().into_iter();
        Ok(Self {
            v,
            a,
            blocks,
            std_devs: variances.map(|variance| radius * variance.sqrt()).collect(),
        })
    }

    fn map(&self, answer: impl Fn(usize, Standardised) -> f64) -> Result<Vec<f64>> {
        let rows = self.a.chunks_exact(self.std_devs.len());
        let errors = self.v.iter().zip(rows).enumerate();
        errors
            .map(|(i, (v, row))| Ok(answer(i, self.standardised(*v, row)?)))
            .collect()
    }

    /// The error of one contrast in units of its standard deviation.
    fn standardised(&self, v: f64, a: &[f64]) -> Result<Standardised> {
        let mut weights: Vec<f64> = a.iter().zip(&self.std_devs).map(|(a, s)| a * s).collect();
        let noise = vector::norm(&weights);
        let sampling = v.sqrt();
        let scale = sampling.hypot(noise);
        for (name, value) in [("v", v), ("a", noise), ("the standard error", scale)] {
            check_non_negative(name, value)?;
        }
        if noise <= 0.0 {
            return Ok(Standardised {
                scale,
                law: Quantiles::new([0.0; 3]),
            });
        }
        vector::divide(&mut weights, noise);
        let share = (noise / scale).powi(2);
        let [fourth, sixth, eighth] = cumulants::standardised(&weights, self.blocks);
        let law = Quantiles::new([fourth * share.powi(2), sixth * share.powi(3), eighth * share.powi(4)]);
        Ok(Standardised { scale, law })
    }
}

/// The error of a contrast over its standard deviation.
struct Standardised {
    scale: f64,
    law: Quantiles,
}

/// Quantiles of the size of an error at the scores of the table, from 0 on, with the slopes of the score there.
struct Quantiles {
    at: [f64; NODES],
    slopes: [f64; NODES],
}

/// Scores of the table, and 0.
const NODES: usize = SCORES.len() + 1;

/// The score of a node.
fn score(i: usize) -> f64 {
    if i == 0 { 0.0 } else { SCORES[i - 1] }
}

/// The logarithm of `P(|Z| ≥ z)`.
fn log_tail(z: f64) -> f64 {
    libm::erfc(z * FRAC_1_SQRT_2).ln()
}

impl Quantiles {
    /// Quantiles of a law of variance 1 with these cumulants of order 4, 6 and 8.
    fn new(cumulants: [f64; 3]) -> Self {
        let products = products(cumulants);
        let mut at = [0.0; NODES];
        for (i, coefficients) in COEFFICIENTS.iter().enumerate() {
            let quantile = SCORES[i] * vector::dot(coefficients, &products).exp();
            // A tail decreases whatever the polynomials say.
            at[i + 1] = quantile.max(at[i] * 1.001);
        }
        // Fritsch and Butland's slopes, between which a cubic is monotone.
        let secant = |i: usize| (score(i + 1) - score(i)) / (at[i + 1] - at[i]);
        let mut slopes = [secant(0); NODES];
        slopes[NODES - 1] = secant(NODES - 2);
        for i in 1..NODES - 1 {
            let (before, after) = (secant(i - 1), secant(i));
            let (short, long) = (at[i] - at[i - 1], at[i + 1] - at[i]);
            let weight = (short + 2.0 * long) / (3.0 * (short + long));
            slopes[i] = before * after / (weight * after + (1.0 - weight) * before);
        }
        Self { at, slopes }
    }

    /// `P(|X| ≥ q)`; beyond the last node a straight line in the logarithm, which is above a tail that is logarithmically concave.
    fn tail(&self, q: f64) -> f64 {
        let i = self.at.partition_point(|at| *at <= q);
        if i == NODES {
            let [from, to] = LAST.map(|z| (0..NODES).find(|i| score(*i) >= z).unwrap_or(0));
            let slope = (log_tail(LAST[1]) - log_tail(LAST[0])) / (self.at[to] - self.at[from]);
            return (log_tail(LAST[1]) + slope * (q - self.at[to])).exp();
        }
        // q is NaN for no caller: below the first node there is none.
        let left = i.max(1) - 1;
        let step = self.at[left + 1] - self.at[left];
        let t = (q - self.at[left]) / step;
        let rest = 1.0 - t;
        let value = |i: usize, t: f64, rest: f64, sign: f64| {
            rest * rest * ((1.0 + 2.0 * t) * score(i) + sign * t * step * self.slopes[i])
        };
        let z = value(left, t, rest, 1.0) + value(left + 1, rest, t, -1.0);
        libm::erfc(z * FRAC_1_SQRT_2)
    }
}

/// All products of one to [`DEGREE`] of the transformed cumulants, in the order of the table.
fn products(cumulants: [f64; 3]) -> [f64; COEFFICIENTS[0].len()] {
    let mut base = [0.0; 3];
    for (i, cumulant) in cumulants.into_iter().enumerate() {
        let [least, greatest] = RANGES[i];
        base[i] = (cumulant / SCALES[i]).asinh().clamp(least, greatest);
    }
    let mut found = [0.0; COEFFICIENTS[0].len()];
    let mut n = 0;
    // Of one degree those that begin with each factor: the product of it and those of the degree before that begin with it or a later one.
    let mut starts = [0, 0, 0];
    for degree in 1..=DEGREE {
        let end = n;
        for (first, start) in starts.iter_mut().enumerate() {
            let from = std::mem::replace(start, n);
            if degree == 1 {
                found[n] = base[first];
                n += 1;
                continue;
            }
            for other in from..end {
                found[n] = base[first] * found[other];
                n += 1;
            }
        }
    }
    found
}

/// The law of the true variance over the estimated one.
struct Ratio {
    nodes: Vec<(f64, f64)>,
}

impl Ratio {
    fn new(shape: &ErrorShape) -> Self {
        let nodes = if shape.matrices >= GREATEST_SHAPE {
            vec![(1.0, 1.0)]
        } else {
            Mixture::coarse(shape.matrices).nodes
        };
        let roots = nodes.into_iter().map(|(w, weight)| (w.sqrt(), weight));
        Self { nodes: roots.collect() }
    }

    fn tail(&self, law: &Quantiles, q: f64) -> f64 {
        let terms = self.nodes.iter();
        terms.map(|(root, weight)| weight * law.tail(q / root)).sum()
    }

    /// Where the tail is `probability`: regula falsi in the logarithm, with the weights of the Illinois rule.
    fn quantile(&self, law: &Quantiles, probability: f64) -> f64 {
        let goal = probability.ln();
        let excess = |q: f64| self.tail(law, q).ln() - goal;
        let (mut low, mut high) = ((0.0, -goal), (1.0, excess(1.0)));
        while high.1 > 0.0 {
            low = high;
            high = (2.0 * high.0, excess(2.0 * high.0));
        }
        let mut above = None;
        for _ in 0..60 {
            if high.0 - low.0 <= 1e-13 * high.0 {
                break;
            }
            let middle = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
            let found = (middle, excess(middle));
            if !(low.0 < middle && middle < high.0) || found.1.abs() < 1e-12 {
                return middle;
            }
            let again = above == Some(found.1 > 0.0);
            above = Some(found.1 > 0.0);
            let (end, other) = if found.1 > 0.0 {
                (&mut low, &mut high)
            } else {
                (&mut high, &mut low)
            };
            *end = found;
            if again {
                other.1 *= 0.5;
            }
        }
        f64::midpoint(low.0, high.0)
    }
}

#[cfg(test)]
mod tests;
