//! Many independent simulated releases of one data set, for audits on neighbouring data sets.

use std::sync::atomic::AtomicBool;

use crate::Result;
use crate::design::Design;
use crate::exec::Executor;
use crate::mechanism::{Release, Spec, release};
use crate::noise::SimulationGenerator;

/// Runs of one chunk; a chunk is what one thread does at a time.
const RUNS_PER_CHUNK: usize = 256;

/// Numbers in one row of [`simulate_releases`].
#[must_use]
pub fn release_width(spec: &Spec) -> usize {
    let d = spec.n_params();
    let matrices = if spec.choices().moments == crate::mechanism::Moments::None {
        0
    } else {
        2
    };
    d + matrices * d * (d + 1) / 2
}

/// `n_runs` releases, one a row: parameters, then the lower triangles of the noisy Hessian and gradient covariance before
/// projection (zeros where a matrix is not released). Run `i` draws from stream `i` of `seed`.
///
/// # Errors
/// The first error of a run.
pub fn simulate_releases(
    spec: &Spec,
    design: &Design<'_>,
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    let n_chunks = n_runs.div_ceil(RUNS_PER_CHUNK);
    let chunks = exec.map(n_chunks, |c| {
        let runs = c * RUNS_PER_CHUNK..((c + 1) * RUNS_PER_CHUNK).min(n_runs);
        let inner: &AtomicBool = exec.cancel_flag();
        let single = Executor::sequential(inner);
        let mut rows = Vec::with_capacity(runs.len() * release_width(spec));
        for run in runs {
            let mut generator = SimulationGenerator::new(seed, run as u64);
            append_row(
                spec,
                &release(spec, design, &single, &mut generator)?,
                &mut rows,
            );
        }
        Ok(rows)
    })?;
    Ok(chunks.concat())
}

fn append_row(spec: &Spec, release: &Release, rows: &mut Vec<f64>) {
    let d = spec.n_params();
    rows.extend_from_slice(release.params.values());
    if let Some(gradient_cov) = &release.gradient_cov {
        for matrix in [release.hessian.as_ref(), Some(gradient_cov)] {
            for i in 0..d {
                for j in 0..=i {
                    rows.push(matrix.map_or(0.0, |m| m.values()[i * d + j]));
                }
            }
        }
    }
}
