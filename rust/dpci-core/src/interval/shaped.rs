//! Errors under noise in the shape of blocks: the law of each contrast, whose noise is a gamma number times a sum over blocks.
//!
//! The noise of a contrast is `r·Σ_j m_j u_j`, r ~ Gamma(D+1) and u uniform in the unit ball of the blocks (docs/proofs/intervals.md, "Intervals"). The
//! law of the sum comes from its characteristic function ([`super::block_sums`]); the gamma number, the normal part and the law of the
//! matrices are integrated over it.

use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::sync::Arc;

use super::block_sums::BlockSums;
use super::mixture::Mixture;
use super::spread::{ErrorShape, GREATEST_SHAPE};
use super::{check_lengths, check_level};
use crate::error::check_length;
use crate::linalg::vector;
use crate::row_domain::Blocks;
use crate::{Error, Result};

/// Cells for the size of the noise: this many for a standard deviation up to [`FINE`], each greater by a twentieth beyond.
const CELLS_PER_UNIT: f64 = 16.0;
const FINE: f64 = 6.0;
const GROWTH: f64 = 1.05;

/// Mass of a cell that is left out; all of them together are far below the accuracy.
const LEAST_MASS: f64 = 1e-10;

/// Step of the table of a tail, in standard deviations, and the tail where it ends: the density is logarithmically concave, so that beyond
/// its end a straight line in the logarithm is above the tail.
const STEP: f64 = 0.2;
const LEAST_TAIL: f64 = 1e-6;

/// The half widths of several contrasts, to a relative accuracy of 1e-2 or better.
///
/// `a` holds the multipliers of the coordinates of the noise, contrast by contrast.
///
/// # Errors
/// [`Error::OutOfRange`], [`Error::Length`].
pub(super) fn half_widths(
    v: &[f64],
    a: &[f64],
    shape: &ErrorShape,
    blocks: &Blocks,
    level: f64,
) -> Result<Vec<f64>> {
    check_level(level)?;
    let matrices = Ratio::new(shape, level > 0.5);
    Contrasts::new(v, a, shape, blocks)?.map(|_, error| {
        let unit = matrices.quantile(&Tail::new(&error), 1.0 - level);
        error.scale * unit
    })
}

/// The tails of several contrasts, each at its own `x`.
///
/// # Errors
/// As [`half_widths`], and [`Error::OutOfRange`] for an `x` that is NaN.
pub(super) fn tails(
    v: &[f64],
    a: &[f64],
    shape: &ErrorShape,
    blocks: &Blocks,
    x: &[f64],
) -> Result<Vec<f64>> {
    check_lengths("statistic", v, x)?;
    if let Some(&value) = x.iter().find(|x| x.is_nan()) {
        return Err(Error::OutOfRange {
            name: "statistic",
            rule: "a number",
            value,
        });
    }
    let matrices = Ratio::new(shape, true);
    Contrasts::new(v, a, shape, blocks)?.map(|i, error| {
        // An error that is surely 0 is at 0, and infinitely far from anything else.
        let unit = if x[i].abs() > 0.0 {
            x[i].abs() / error.scale
        } else {
            0.0
        };
        matrices.tail(&Tail::new(&error), unit).min(1.0)
    })
}

/// Contrasts with what their laws come from.
struct Contrasts<'a> {
    v: &'a [f64],
    a: &'a [f64],
    sums: Arc<BlockSums>,
    /// Standard deviations of the coordinates of the noise.
    std_devs: Vec<f64>,
    /// The gamma number over its root mean square, with its weights.
    radius: Vec<(f64, f64)>,
}

impl<'a> Contrasts<'a> {
    fn new(v: &'a [f64], a: &'a [f64], shape: &ErrorShape, blocks: &Blocks) -> Result<Self> {
        shape.check()?;
        let dim = blocks.dim();
        check_length("a", v.len() * dim, a.len())?;
        let size = dim as f64;
        let radius = ((size + 1.0) * (size + 2.0)).sqrt() * shape.law.scale();
        let variances = blocks.variances().into_iter();
        let std_devs = variances.map(|variance| radius * variance.sqrt());
        let mean = ((size + 1.0) / (size + 2.0)).sqrt();
        let nodes = Mixture::for_tail(size + 1.0).nodes.into_iter();
        Ok(Self {
            v,
            a,
            sums: BlockSums::of(blocks),
            std_devs: std_devs.collect(),
            radius: nodes.map(|(w, weight)| (mean * w, weight)).collect(),
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
        for (name, value) in [("v", v), ("a", noise), ("standard error", scale)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::OutOfRange {
                    name,
                    rule: "finite and >= 0",
                    value,
                });
            }
        }
        if noise > 0.0 {
            for weight in &mut weights {
                *weight /= noise;
            }
        }
        let shares = if scale > 0.0 {
            [sampling / scale, noise / scale]
        } else {
            [1.0, 0.0]
        };
        let parts = if noise > 0.0 {
            self.parts(&weights, shares)
        } else {
            vec![Part {
                size: 0.0,
                probability: 1.0,
                std_dev: shares[0],
            }]
        };
        Ok(Standardised { scale, parts })
    }

    /// The error with these shares of the standard deviation: that of the normal part, and that of noise with weights of norm 1.
    fn parts(&self, weights: &[f64], [normal, noise]: [f64; 2]) -> Vec<Part> {
        let mut cells = Cells::default();
        for (sum, share) in self.sums.sizes(weights) {
            for (radius, weight) in &self.radius {
                cells.add(sum * radius, share * weight);
            }
        }
        let mut parts = cells.into_parts(normal, noise);
        let square = |part: &Part| part.probability * (part.size.powi(2) + part.std_dev.powi(2));
        let scale = parts.iter().map(square).sum::<f64>().sqrt().recip();
        for part in &mut parts {
            part.size *= scale;
            part.std_dev *= scale;
        }
        parts
    }
}

/// The error of a contrast over its standard deviation, as a mixture.
struct Standardised {
    scale: f64,
    parts: Vec<Part>,
}

/// Noise of one size and a random sign, and a normal number.
struct Part {
    size: f64,
    probability: f64,
    std_dev: f64,
}

/// Sizes of noise in cells, each with its mass and its centre.
#[derive(Default)]
struct Cells {
    cells: Vec<[f64; 2]>,
}

impl Cells {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size is non-negative, and a gamma number of weight is below 1e3 standard deviations"
    )]
    fn add(&mut self, size: f64, probability: f64) {
        let cell = if size < FINE {
            size * CELLS_PER_UNIT
        } else {
            FINE * CELLS_PER_UNIT + (size / FINE).ln() / GROWTH.ln()
        } as usize;
        if cell >= self.cells.len() {
            self.cells.resize(cell + 1, [0.0; 2]);
        }
        self.cells[cell][0] += probability;
        self.cells[cell][1] += probability * size;
    }

    /// Parts of noise and a normal number of these standard deviations; where the normal one does not fill a cell, a kernel of its width
    /// does.
    fn into_parts(self, normal: f64, noise: f64) -> Vec<Part> {
        let full = self
            .cells
            .into_iter()
            .filter(|[mass, _]| *mass > LEAST_MASS);
        full.map(|[mass, moment]| {
            let size = moment / mass;
            let width = if size < FINE {
                CELLS_PER_UNIT.recip()
            } else {
                size * GROWTH.ln()
            };
            Part {
                size: noise * size,
                probability: mass,
                std_dev: normal.max(noise * width),
            }
        })
        .collect()
    }
}

/// The logarithm of the tail of an error in a table, with its slope.
struct Tail {
    nodes: Vec<[f64; 2]>,
}

impl Tail {
    fn new(error: &Standardised) -> Self {
        let mut nodes = Vec::new();
        loop {
            let q = nodes.len() as f64 * STEP;
            let [tail, density] = tail_and_density(error, q);
            nodes.push([tail.ln(), -density / tail]);
            // An error of standard deviation 1 has this tail at 20 at the latest.
            if tail <= LEAST_TAIL || nodes.len() > 200 {
                return Self { nodes };
            }
        }
    }

    /// The logarithm of `P(|X| ≥ q)`: cubic between two nodes, beyond the last one a straight line.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast to an integer saturates, and the last node is taken"
    )]
    fn log(&self, q: f64) -> f64 {
        let at = q / STEP;
        let (i, last) = (at as usize, self.nodes.len() - 1);
        if i >= last {
            let [value, slope] = self.nodes[last];
            return value + slope * (q - last as f64 * STEP);
        }
        let ([y, dy], [z, dz]) = (self.nodes[i], self.nodes[i + 1]);
        let t = at - i as f64;
        let (rest, step) = (1.0 - t, STEP);
        rest * rest * ((1.0 + 2.0 * t) * y + t * step * dy)
            + t * t * ((1.0 + 2.0 * rest) * z - rest * step * dz)
    }
}

/// `P(|X| ≥ q)` and the density of |X| there.
fn tail_and_density(error: &Standardised, q: f64) -> [f64; 2] {
    let (mut tail, mut density) = (0.0, 0.0);
    for part in &error.parts {
        for size in [part.size, -part.size] {
            let x = (q - size) / part.std_dev * FRAC_1_SQRT_2;
            tail += 0.5 * part.probability * libm::erfc(x);
            density += part.probability * (-x * x).exp() / part.std_dev;
        }
    }
    [tail, density / (2.0 * PI).sqrt()]
}

/// The law of the true variance over the estimated one.
struct Ratio {
    nodes: Vec<(f64, f64)>,
}

impl Ratio {
    fn new(shape: &ErrorShape, of_tail: bool) -> Self {
        let nodes = if shape.matrices >= GREATEST_SHAPE {
            vec![(1.0, 1.0)]
        } else if of_tail {
            Mixture::for_tail(shape.matrices).nodes
        } else {
            Mixture::for_centre(shape.matrices).nodes
        };
        let roots = nodes.into_iter().map(|(w, weight)| (w.sqrt(), weight));
        Self {
            nodes: roots.collect(),
        }
    }

    fn tail(&self, tail: &Tail, q: f64) -> f64 {
        let terms = self.nodes.iter();
        terms
            .map(|(root, weight)| weight * tail.log(q / root).exp())
            .sum()
    }

    /// Where the tail is `probability`, by bisection.
    fn quantile(&self, tail: &Tail, probability: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        while self.tail(tail, high) > probability {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.tail(tail, middle) > probability {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests;
