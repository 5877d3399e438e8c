//! The mean lengths of intervals whose matrices would be released, for a plan that is given an earlier fit.

use super::intervals::{intervals, matrix_draws};
use crate::linalg::add_diagonal;
use crate::mechanism::Simulated;
use crate::moments::DataMoments;
use crate::noise::SimulationGenerator;
use crate::privacy::Neighbors;
use crate::spec::Spec;
use crate::{Error, Result};

/// Simulated releases: the lengths of ten parameters have a standard error of about 1%.
const RELEASES: u64 = 32;

/// Public, so that the same plan always has the same lengths.
const SEED: u64 = 0x6470_6369;

/// The matrices of an earlier fit, which stand for those of the fit to come.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// Parameters.
    pub params: &'a [f64],
    /// Hessian with the regulariser's part; row-major.
    pub hessian: &'a [f64],
    /// Covariance of the gradients.
    pub gradient_cov: &'a [f64],
    /// λ of that fit.
    pub l2_strength: f64,
    /// Its relation, which decides whether the square of the mean gradient was subtracted.
    pub neighbors: Neighbors,
}

impl Reference<'_> {
    /// The sums over records that become these matrices in a fit of the spec.
    fn data(&self, spec: &Spec) -> DataMoments {
        let dim = self.params.len();
        let mut curvature = self.hessian.to_vec();
        add_diagonal(&mut curvature, dim, -self.l2_strength);
        let mut squared_slope = self.gradient_cov.to_vec();
        if self.neighbors == Neighbors::ReplaceOne {
            // Of records with weights it is a share of the square, as in `project_release`.
            let share = spec.bounds().n / spec.bounds().records;
            for (i, a) in self.params.iter().enumerate() {
                for (j, b) in self.params.iter().enumerate() {
                    squared_slope[i * dim + j] += share * (self.l2_strength * a) * (self.l2_strength * b);
                }
            }
        }
        DataMoments {
            curvature,
            squared_slope,
        }
    }
}

/// The mean length of the interval of each parameter over simulated releases of the reference's moments at its parameters.
pub fn expected_lengths(spec: &Spec, reference: &Reference<'_>, level: f64) -> Result<Vec<f64>> {
    let dim = spec.n_params();
    for (name, values, expected) in [
        ("params", reference.params, dim),
        ("hessian", reference.hessian, dim * dim),
        ("gradient_cov", reference.gradient_cov, dim * dim),
    ] {
        if values.len() != expected {
            let got = values.len();
            return Err(Error::Length { name, expected, got });
        }
    }
    let draws = matrix_draws(spec)?;
    let data = reference.data(spec);
    let mut lengths = vec![0.0; dim];
    for release in 0..RELEASES {
        let generator = &mut SimulationGenerator::new(SEED, release);
        let params = Simulated::new("params", reference.params.to_vec())?;
        let outcome = intervals(spec, params, data.clone(), level, draws.as_ref(), generator)?;
        let [lower, upper] = &outcome.bounds;
        for (length, (low, high)) in lengths.iter_mut().zip(lower.iter().zip(upper)) {
            *length += (high - low) / RELEASES as f64;
        }
    }
    Ok(lengths)
}
