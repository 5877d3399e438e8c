//! Many independent simulated releases of one data set, for audits on neighbouring data sets.

use std::ops::Range;

use crate::Result;
use crate::design::Design;
use crate::exec::Executor;
use crate::mechanism::{
    Release, Sealed, Sealing, Values, release, release_functional_mechanism, release_histogram,
    release_report,
};
use crate::noise::SimulationGenerator;
use crate::refusals::is_outcome;
use crate::spec::{FunctionalSpec, HistogramSpec, ReportSpec, Seal, Spec};

/// Runs of one chunk; a chunk is what one thread does at a time.
const RUNS_PER_CHUNK: usize = 16;

/// Rows of many runs, one after another, of `width` numbers each. Run `i` draws from stream `i` of `seed`, on one thread.
///
/// A run that fails by what the data can cause is an outcome like any other, which an attacker sees: a row of NaN.
pub(super) fn repeat(
    n_runs: usize,
    width: usize,
    seed: u64,
    exec: &Executor<'_>,
    run: impl Fn(&Executor<'_>, &mut SimulationGenerator, &mut Vec<f64>) -> Result<()> + Sync,
) -> Result<Vec<f64>> {
    let single = Executor::sequential(exec.cancel_flag());
    let chunks = exec.map(n_runs.div_ceil(RUNS_PER_CHUNK), |c| {
        single.check()?;
        let runs: Range<usize> = c * RUNS_PER_CHUNK..((c + 1) * RUNS_PER_CHUNK).min(n_runs);
        let mut rows = Vec::new();
        for i in runs {
            let mut generator = SimulationGenerator::new(seed, i as u64);
            let before = rows.len();
            if let Err(error) = run(&single, &mut generator, &mut rows) {
                if !is_outcome(&error) {
                    return Err(error);
                }
                rows.truncate(before);
                rows.resize(before + width, f64::NAN);
            }
        }
        Ok(rows)
    })?;
    Ok(chunks.concat())
}

/// Numbers in one row of [`simulate_releases`].
#[must_use]
pub fn release_width(spec: &Spec) -> usize {
    let d = spec.n_params();
    let matrices = if spec.choices().moments == crate::spec::Moments::None {
        0
    } else {
        2
    };
    d + matrices * d * (d + 1) / 2
}

/// `n_runs` releases, one a row: parameters, then the lower triangles of the noisy Hessian and gradient covariance before
/// projection (zeros where a matrix is not released).
///
/// # Errors
/// The first error of a run that no data can cause; other runs that fail are rows of NaN.
pub fn simulate_releases(
    spec: &Spec,
    design: &Design<'_>,
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    repeat(
        n_runs,
        release_width(spec),
        seed,
        exec,
        |exec, generator, row| {
            append_release(
                spec,
                &release(spec, design, exec, &mut Sealing(generator))?,
                row,
            );
            Ok(())
        },
    )
}

fn append_release(spec: &Spec, release: &Release, row: &mut Vec<f64>) {
    let d = spec.n_params();
    row.extend_from_slice(release.params.values());
    if let Some(gradient_cov) = &release.gradient_cov {
        for matrix in [release.hessian.as_ref(), Some(gradient_cov)] {
            append_triangle(matrix, d, row);
        }
    }
}

/// The lower triangle of a matrix, row by row; zeros where there is none.
fn append_triangle(matrix: Option<&Sealed>, dim: usize, row: &mut Vec<f64>) {
    for i in 0..dim {
        for j in 0..=i {
            row.push(matrix.map_or(0.0, |m| m.values()[i * dim + j]));
        }
    }
}

/// Numbers in one row of [`simulate_reports`].
#[must_use]
pub fn report_width(spec: &ReportSpec) -> usize {
    let d = spec.fit().n_params();
    // The parameters' step comes first; the two others are there together or not at all.
    let extra = spec.steps().len() - 1;
    d + extra / 2 * (d + d * (d + 1) / 2)
}

/// `n_runs` per-instance reports, one a row: parameters, then, where they are released, the gradient and the lower triangle
/// of the Hessian.
///
/// # Errors
/// The first error of a run that no data can cause; other runs that fail are rows of NaN.
pub fn simulate_reports(
    spec: &ReportSpec,
    design: &Design<'_>,
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    repeat(
        n_runs,
        report_width(spec),
        seed,
        exec,
        |exec, generator, row| {
            let found = release_report(spec, design, exec, generator)?;
            row.extend_from_slice(found.params.values());
            if let Some([gradient, hessian]) = &found.derivatives {
                row.extend_from_slice(gradient.values());
                append_triangle(Some(hessian), spec.fit().n_params(), row);
            }
            Ok(())
        },
    )
}

/// Numbers in one row of [`simulate_functional_mechanism`].
#[must_use]
pub fn functional_width(spec: &FunctionalSpec) -> usize {
    spec.choices().n_columns + usize::from(spec.choices().intercept.is_some())
}

/// Parameters of `n_runs` runs of the functional mechanism, one a row.
///
/// # Errors
/// The first error of a run that no data can cause; other runs that fail are rows of NaN.
pub fn simulate_functional_mechanism(
    spec: &FunctionalSpec,
    design: &Design<'_>,
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    repeat(
        n_runs,
        functional_width(spec),
        seed,
        exec,
        |exec, generator, row| {
            let params = release_functional_mechanism(spec, design, exec, generator)?;
            row.extend_from_slice(params.values());
            Ok(())
        },
    )
}

/// Noisy counts of `n_runs` histograms, one a row.
///
/// # Errors
/// The first error of a run that no data can cause; other runs that fail are rows of NaN.
pub fn simulate_histograms(
    spec: &HistogramSpec,
    design: &Design<'_>,
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    repeat(
        n_runs,
        spec.grid().n_cells(),
        seed,
        exec,
        |exec, generator, row| {
            row.extend_from_slice(release_histogram(spec, design, exec, generator)?.values());
            Ok(())
        },
    )
}

/// `n_runs` times the same values through a seal, one a row.
///
/// # Errors
/// The first error of a run that no data can cause; other runs that fail are rows of NaN.
pub fn simulate_seals(
    seal: &Seal,
    values: &[f64],
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    repeat(n_runs, values.len(), seed, exec, |_, generator, row| {
        row.extend_from_slice(seal.release(values, generator)?.values());
        Ok(())
    })
}
