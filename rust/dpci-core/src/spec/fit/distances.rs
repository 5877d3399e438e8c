//! How far the coefficients and moments may be from their ideal values, from public numbers alone: the distances that the seal hides.

use super::domain::Bounded;
use super::solvable::Solvable;
use crate::noise::NoiseLaw;
use crate::privacy::{Budget, Cost, DataBounds, Neighbors, Perturbation};
use crate::spec::{Part, Seal};
use crate::unit::Unit;
use crate::{Error, Result};

/// The seal's noise in a coefficient, as a share of the least standard deviation that the mechanism's noise causes there. It lengthens an
/// interval by at most half its square.
const SEAL_NOISE: f64 = 0.01;

/// Greatest multiple of the public number of records that there may be under add/remove.
const GREATEST_EXCESS: f64 = 16.0;

/// Least distance, relative to the parameters: below it the digits of an f64 end.
const LEAST_DISTANCE: f64 = 16.0 * f64::EPSILON;

/// Linear predictors beyond which, in size, no more digits are asked for.
const GREATEST_PREDICTOR: f64 = 4.0;

/// Cost of sealing one of `vectors` vectors.
pub(in crate::spec) fn share_seal(seal: Budget, vectors: u32) -> Cost {
    let cost = Cost::of(seal);
    cost.with(cost.value() / f64::from(vectors) * (1.0 - 4.0 * f64::EPSILON))
}

/// Least and greatest factor from the noise to a coefficient's error, over all Hessians λI ≤ H ≤ (λ + tR²)I.
pub(super) fn noise_gain(of: Bounded<'_>) -> [f64; 2] {
    let Bounded {
        choices: c,
        bounds,
        domain,
    } = of;
    match c.perturbation {
        Perturbation::Output => [1.0, 1.0],
        Perturbation::Objective => {
            let steepest = c.l2_strength + domain.curvature_bound * bounds.row_norm.powi(2);
            [1.0 / (bounds.n * steepest), 1.0 / (bounds.n * c.l2_strength)]
        }
    }
}

/// The seal of the coefficients: its distance leaves half of itself to the solver, and its noise is a small part of the mechanism's.
pub(super) fn coefficient_seal(of: Bounded<'_>, law: &NoiseLaw, least_gain: f64, cost: Cost) -> Result<Seal> {
    let bounds = of.bounds;
    let wanted = SEAL_NOISE * law.std_dev_range()[0] * least_gain;
    let parameters = greatest_minimiser(of).min(GREATEST_PREDICTOR / bounds.row_norm);
    let distance = Seal::distance_for(wanted, bounds.params, cost)?
        .max(2.0 * noise_rounding(of, law))
        .max(2.0 * Solvable::new(of, law).single_floor())
        .max(LEAST_DISTANCE * parameters);
    Seal::new(Part::Params, bounds.params, distance, cost)
}

/// `(N/n)·LR/λ` for the greatest number N of records, each weighing at most 1, or W: no minimiser without noise has a greater norm.
pub(super) fn greatest_minimiser(of: Bounded<'_>) -> f64 {
    let Bounded {
        choices: c,
        bounds,
        domain,
    } = of;
    let convexity = c.l2_strength + domain.extra_convexity;
    let greatest = greatest_mass(bounds) * domain.slope_bound * bounds.row_norm / convexity;
    greatest.min(c.radius.unwrap_or(f64::INFINITY))
}

/// Distance to the ideal coefficients that the arithmetic of the noise alone may cause.
///
/// Objective perturbation: noise that errs by e moves the minimiser by at most `e/(nλ)`; the division by n errs by less than the draw
/// itself. Output perturbation: the draw's error, and that of adding it to coefficients of norm at most LR/λ or W.
pub(in crate::spec) fn noise_rounding(of: Bounded<'_>, law: &NoiseLaw) -> f64 {
    let Bounded { choices: c, bounds, .. } = of;
    let draw = 2.0 * law.error_bound(bounds.params);
    match c.perturbation {
        Perturbation::Objective => draw / (bounds.n * c.l2_strength),
        Perturbation::Output => draw + 2.0 * f64::EPSILON * greatest_minimiser(of),
    }
}

/// Records for each public one that a release lets pass.
pub(crate) fn greatest_excess(neighbors: Neighbors) -> f64 {
    match neighbors {
        Neighbors::ReplaceOne => 1.0,
        Neighbors::AddRemove => GREATEST_EXCESS,
    }
}

/// The greatest number of records that a release lets pass, over what divides their sums.
pub(crate) fn greatest_mass(bounds: &DataBounds) -> f64 {
    greatest_excess(bounds.neighbors) * bounds.mass
}

/// Refuses more records under add/remove than the rounding of sums was bounded for.
pub fn check_excess(n_public: f64, neighbors: Neighbors, n_records: f64) -> Result<()> {
    if neighbors == Neighbors::AddRemove && !(n_records <= greatest_excess(neighbors) * n_public) {
        return Err(Error::TooManyRecords { n_public, n_records });
    }
    Ok(())
}

/// Relative rounding of a mean of the records' terms plus noise, in units of the greatest term; `of_rows` is that of a sum over so many
/// rows.
///
/// Under add/remove the number of records is private, and so is that of the rows of persons: the bound holds for as many as a release
/// lets pass.
pub(in crate::spec) fn unit_mean_rounding(
    of_rows: fn(usize) -> f64,
    n_samples: f64,
    neighbors: Neighbors,
    unit: Unit,
) -> f64 {
    let times = greatest_excess(neighbors);
    // One rounding more is that of adding the noise.
    times * (of_rows(greatest_rows(n_samples, neighbors, unit)) + f64::EPSILON)
}

/// The same by public bounds, weights included.
pub(in crate::spec) fn sum_rounding(bounds: &DataBounds, of_rows: fn(usize) -> f64) -> f64 {
    bounds.mass * unit_mean_rounding(of_rows, bounds.records, bounds.neighbors, bounds.unit)
}

/// Greatest number of rows that a release lets pass.
pub(crate) fn greatest_rows(n_samples: f64, neighbors: Neighbors, unit: Unit) -> usize {
    unit.greatest_rows(n_samples * greatest_excess(neighbors))
}
