//! Splits the rows of a hinge risk at a point: those near their kink one by one, all others as one sum.

use std::cmp::Ordering;
use std::ops::Range;

use crate::Result;
use crate::design::Design;
use crate::exec::{BLOCK, blocks};
use crate::linalg::{DOUBLED_EPSILON, Doubled, rows_times_vector, two_product, two_sum, vector};
use crate::objective::Objective;
use crate::records::rows_in_memory;

/// Rows `a = yx` of a hinge risk around a point. The kink of a row is the hyperplane `aᵀθ = 1`.
#[derive(Debug, Default)]
pub(super) struct KinkSplit {
    /// Number of parameters.
    pub(super) dim: usize,
    /// Rows whose kink is near the point, one after another; equal ones merged.
    pub(super) near: Vec<f64>,
    /// How many records each of them stands for.
    pub(super) counts: Vec<f64>,
    /// `Σ m·a` over the settled rows on the sloping side, minus `n` times the linear term.
    pub(super) pull: Vec<Doubled>,
    /// Bound on the error of `pull`, Euclidean.
    pub(super) pull_error: f64,
    /// A shorter move of the point carries no settled row over its kink.
    pub(super) clearance: f64,
}

/// Contribution of some rows to a split.
pub(super) struct Partial {
    near: Vec<f64>,
    counts: Vec<f64>,
    high: Vec<f64>,
    low: Vec<f64>,
    mass: f64,
    clearance: f64,
}

/// Where rows are split.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) params_norm: f64,
    pub(super) reach: f64,
}

impl Partial {
    pub(super) fn new(dim: usize) -> Self {
        Self {
            near: Vec::new(),
            counts: Vec::new(),
            high: vec![0.0; dim],
            low: vec![0.0; dim],
            mass: 0.0,
            clearance: f64::INFINITY,
        }
    }

    /// Keeps a row with a kink that may be near, which `write` puts into zeros, or settles it on its side. On the sloping one `add` adds it
    /// to two halves of a sum.
    #[inline(always)]
    pub(super) fn place(
        &mut self,
        place: Place,
        (slack, length, count): (f64, f64, f64),
        write: impl FnOnce(&mut [f64]),
        add: impl FnOnce(&mut [f64], &mut [f64]),
    ) {
        let dim = self.high.len();
        let distance = (slack.abs() - slack_error(dim, length, place.params_norm)) / length;
        // A distance that is not a number is near: the solver then fails, and no row is settled wrongly.
        if !(distance > place.reach) {
            let at = self.near.len();
            self.near.resize(at + dim, 0.0);
            write(&mut self.near[at..]);
            self.counts.push(count);
            return;
        }
        self.clearance = self.clearance.min(distance);
        if slack > 0.0 {
            self.mass += count * length;
            add(&mut self.high, &mut self.low);
        }
    }
}

/// Bound on the error of a computed slack `1 - aᵀθ` of `dim` products, for a row and a point of these lengths.
pub(super) fn slack_error(dim: usize, length: f64, params_norm: f64) -> f64 {
    (dim as f64 + 8.0) * f64::EPSILON * (1.0 + length * params_norm)
}

/// Splits the rows at `params`: near are those whose kink may pass within `reach` of it.
pub(super) fn split(objective: &Objective<'_>, params: &[f64], reach: f64) -> Result<KinkSplit> {
    let dim = params.len();
    let design = rows_of(objective)?;
    let chunks = design.chunks();
    let partials = objective.exec.map(chunks.len(), |c| {
        split_chunk(objective, design, params, reach, chunks[c].clone())
    })?;
    Ok(joined(objective, dim, partials))
}

/// The split of which these are the parts, in the order of the rows.
pub(super) fn joined(objective: &Objective<'_>, dim: usize, partials: Vec<Partial>) -> KinkSplit {
    let mut pull = linear_pull(objective);
    let linear_norm = objective.linear_term.map_or(0.0, vector::norm) * objective.n_samples;
    let (mut near, mut counts) = (Vec::new(), Vec::new());
    let (mut mass, mut clearance) = (0.0, f64::INFINITY);
    for part in partials {
        near.extend(part.near);
        counts.extend(part.counts);
        for (j, p) in pull.iter_mut().enumerate() {
            *p = *p + Doubled::sum(part.high[j], part.low[j]);
        }
        mass += part.mass;
        clearance = part.clearance.min(clearance);
    }
    let (near, counts) = merge_equal(&near, &counts, dim);
    // Compensated summation: (number of terms · ε)² of the sum of sizes, then few operations on doubled numbers.
    let terms = 2.0 * objective.records.n_rows() as f64 * f64::EPSILON;
    let pull_error = terms * terms * mass + 32.0 * DOUBLED_EPSILON * (mass + linear_norm);
    KinkSplit {
        dim,
        near,
        counts,
        pull,
        pull_error,
        clearance,
    }
}

/// The problem of every `stride`-th row, each standing for `stride` as many records: all of them near.
pub(super) fn sample(objective: &Objective<'_>, stride: usize) -> Result<KinkSplit> {
    let design = rows_of(objective)?;
    let dim = design.n_params();
    let weights = objective.weights.or(design.multiplicities());
    let (mut near, mut counts) = (Vec::new(), Vec::new());
    for i in (0..design.n_rows()).step_by(stride) {
        let at = near.len();
        near.resize(at + dim, 0.0);
        design.write_rows(i..i + 1, &mut near[at..]);
        let y = design.targets(i..i + 1)[0];
        for x in &mut near[at..] {
            *x *= y;
        }
        let count = weights.map_or(1.0, |w| f64::from(w[i]));
        if count > 0.0 && vector::norm(&near[at..]) > 0.0 {
            counts.push(count * stride as f64);
        } else {
            near.truncate(at);
        }
    }
    objective.exec.check()?;
    let (near, counts) = merge_equal(&near, &counts, dim);
    Ok(KinkSplit {
        dim,
        near,
        counts,
        pull: linear_pull(objective),
        pull_error: 0.0,
        clearance: 0.0,
    })
}

/// `-n` times the linear term.
pub(super) fn linear_pull(objective: &Objective<'_>) -> Vec<Doubled> {
    (0..objective.records.n_params())
        .map(|j| {
            let linear = objective.linear_term.map_or(0.0, |a| a[j]);
            -Doubled::product(objective.n_samples, linear)
        })
        .collect()
}

/// The rows at whose kinks the hinge is polished.
pub(super) fn rows_of<'a>(objective: &Objective<'a>) -> Result<&'a Design<'a>> {
    let design = rows_in_memory(
        objective.records,
        "the hinge loss (unlike huber_hinge and smooth_hinge, which round its kink)",
    )?;
    design.check_rows_are_records("the hinge loss")?;
    Ok(design)
}

fn split_chunk(
    objective: &Objective<'_>,
    design: &Design<'_>,
    params: &[f64],
    reach: f64,
    chunk: Range<usize>,
) -> Result<Partial> {
    let dim = params.len();
    let weights = objective.weights.or(design.multiplicities());
    let place = Place {
        params_norm: vector::norm(params),
        reach,
    };
    let mut part = Partial::new(dim);
    let mut rows = vec![0.0; BLOCK * dim];
    let mut buffers = [[0.0; BLOCK]; 3];
    for range in blocks(chunk) {
        objective.exec.check()?;
        let n = range.len();
        let [u, squares, multiplicity] = &mut buffers;
        let rows = &mut rows[..n * dim];
        design.write_rows(range.clone(), rows);
        rows_times_vector(rows, params, &mut u[..n]);
        vector::rows_squared_norms(rows, dim, &mut squares[..n]);
        let multiplicity = weights.map(|w| vector::load(&w[range.clone()], multiplicity));
        for (i, (row, &y)) in rows.chunks_exact(dim).zip(design.targets(range)).enumerate() {
            let length = length(squares[i], row);
            let count = multiplicity.map_or(1.0, |m| m[i]);
            if !(length > 0.0 || length.is_nan()) || count <= 0.0 {
                continue;
            }
            let write = |out: &mut [f64]| out.iter_mut().zip(row).for_each(|(o, x)| *o = y * x);
            let add = |high: &mut [f64], low: &mut [f64]| add_row(row, y * count, high, low);
            part.place(place, (1.0 - y * u[i], length, count), write, add);
        }
    }
    Ok(part)
}

/// The length of a row from the computed sum of squares, where that neither over- nor underflowed.
pub(super) fn length(square: f64, row: &[f64]) -> f64 {
    if (1e-280..1e280).contains(&square) {
        square.sqrt()
    } else {
        vector::norm(row)
    }
}

/// `high + low += weight·row`.
fn add_row(row: &[f64], weight: f64, high: &mut [f64], low: &mut [f64]) {
    for ((x, high), low) in row.iter().zip(high).zip(low) {
        add_entry(weight, *x, high, low);
    }
}

/// `high + low += weight·x` with the rounding errors of the sum kept in `low`.
#[inline(always)]
pub(super) fn add_entry(weight: f64, x: f64, high: &mut f64, low: &mut f64) {
    let (term, lost) = two_product(weight, x);
    let (sum, error) = two_sum(*high, term);
    *high = sum;
    *low += error + lost;
}

/// Equal rows merged, their counts added; in lexicographic order.
fn merge_equal(rows: &[f64], counts: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let row = |i: usize| &rows[i * dim..(i + 1) * dim];
    let compare = |&i: &usize, &j: &usize| {
        let entries = row(i).iter().zip(row(j));
        let mut orders = entries.map(|(a, b)| a.total_cmp(b));
        orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..counts.len()).collect();
    // Stable, so that the sums of counts do not depend on how the sort works.
    order.sort_by(compare);
    let (mut merged, mut sums) = (Vec::new(), Vec::<f64>::new());
    for (k, &i) in order.iter().enumerate() {
        match sums.last_mut() {
            Some(sum) if compare(&order[k - 1], &i).is_eq() => *sum += counts[i],
            _ => {
                merged.extend_from_slice(row(i));
                sums.push(counts[i]);
            }
        }
    }
    (merged, sums)
}
