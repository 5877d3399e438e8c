//! Many independent simulated releases of one data set, for audits on neighbouring data sets.

use std::ops::Range;

use crate::Result;
use crate::design::Design;
use crate::exec::Executor;
use crate::loss::LEVELS;
use crate::mechanism::{
    Sealed, Sealing, Values, release, release_functional_mechanism, release_histogram, release_moment_matrix,
    release_newton, release_report, release_tuning,
};
use crate::noise::SimulationGenerator;
use crate::refusals::is_outcome;
use crate::spec::{
    FunctionalSpec, HistogramSpec, MomentMatrixSpec, Moments, NewtonSpec, ReportSpec, Seal, Spec, TuningSpec,
};

/// Runs of one chunk; a chunk is what one thread does at a time.
const RUNS_PER_CHUNK: usize = 16;

/// Rows of many runs, one after another, of `width` numbers each. Run `i` draws from stream `i` of `seed`, on one thread.
///
/// A run that fails by what the data can cause is an outcome like any other, which an attacker sees: a row of NaN.
fn repeat(
    n_runs: usize,
    width: usize,
    seed: u64,
    exec: &Executor<'_>,
    run: impl Fn(&Executor<'_>, &mut SimulationGenerator) -> Result<Vec<f64>> + Sync,
) -> Result<Vec<f64>> {
    let single = Executor::sequential(exec.cancel_flag());
    let chunks = exec.map(n_runs.div_ceil(RUNS_PER_CHUNK), |c| {
        single.check()?;
        let runs: Range<usize> = c * RUNS_PER_CHUNK..((c + 1) * RUNS_PER_CHUNK).min(n_runs);
        let mut rows = Vec::new();
        for i in runs {
            let mut generator = SimulationGenerator::new(seed, i as u64);
            match run(&single, &mut generator) {
                Ok(row) => rows.extend(row),
                Err(error) if is_outcome(&error) => rows.resize(rows.len() + width, f64::NAN),
                Err(error) => return Err(error),
            }
        }
        Ok(rows)
    })?;
    Ok(chunks.concat())
}

/// One run of a release: its data set, and where its noise comes from.
pub struct Run<'a> {
    design: &'a Design<'a>,
    exec: &'a Executor<'a>,
    generator: &'a mut SimulationGenerator,
}

/// A release that audits repeat on one data set.
pub trait Repeated: Sync {
    /// Numbers in one row of [`simulate`].
    fn width(&self) -> usize;

    /// Releases once, and returns the numbers that came out.
    fn once(&self, run: Run<'_>) -> Result<Vec<f64>>;
}

/// `n_runs` releases, one a row.
pub fn simulate(
    spec: &impl Repeated,
    design: &Design<'_>,
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    repeat(n_runs, spec.width(), seed, exec, |exec, generator| {
        spec.once(Run {
            design,
            exec,
            generator,
        })
    })
}

/// Parameters, then the lower triangles of the noisy Hessian and gradient covariance before projection (zeros where a matrix is not
/// released).
impl Repeated for Spec {
    fn width(&self) -> usize {
        let d = self.n_params();
        let matrices = if self.choices().moments == Moments::None { 0 } else { 2 };
        d + matrices * d * (d + 1) / 2
    }

    fn once(&self, run: Run<'_>) -> Result<Vec<f64>> {
        let found = release(self, run.design, run.exec, &mut Sealing(run.generator))?;
        let mut row = found.params.values().to_vec();
        if let Some(gradient_cov) = &found.gradient_cov {
            for matrix in [found.hessian.as_ref(), Some(gradient_cov)] {
                append_triangle(matrix, self.n_params(), &mut row);
            }
        }
        Ok(row)
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

/// The lower triangle of the matrix, then, where they are released, for each planned regression its coefficients and the triangle of its residuals' moments,
/// and for each refined one its coefficients, the levels of its residuals and the gradient.
impl Repeated for MomentMatrixSpec {
    fn width(&self) -> usize {
        let triangle = |d: usize| d * (d + 1) / 2;
        let p = self.n_params();
        let plans = self.choices().residuals.iter();
        let residuals = plans.map(|plan| p + triangle(plan.regressors.len()));
        let refined = self.choices().refined.iter();
        let gradients = refined.map(|plan| p + LEVELS + plan.regressors.len() + 1);
        triangle(self.dim()) + residuals.sum::<usize>() + gradients.sum::<usize>()
    }

    fn once(&self, run: Run<'_>) -> Result<Vec<f64>> {
        let found = release_moment_matrix(self, run.design, run.exec, run.generator)?;
        let mut row = Vec::with_capacity(self.width());
        append_triangle(Some(&found.matrix), self.dim(), &mut row);
        for (plan, residual) in self.choices().residuals.iter().zip(&found.residuals) {
            row.extend_from_slice(&residual.point);
            append_triangle(Some(&residual.moments), plan.regressors.len(), &mut row);
        }
        for refined in &found.gradients {
            row.extend_from_slice(&refined.planned.point);
            row.extend_from_slice(refined.levels.values());
            row.extend_from_slice(refined.gradient.values());
        }
        Ok(row)
    }
}

/// Parameters, then, where they are released, the gradient and the lower triangle of the Hessian.
impl Repeated for ReportSpec {
    fn width(&self) -> usize {
        let d = self.fit().n_params();
        // The parameters' step comes first; the two others are there together or not at all.
        let extra = self.steps().len() - 1;
        d + extra / 2 * (d + d * (d + 1) / 2)
    }

    fn once(&self, run: Run<'_>) -> Result<Vec<f64>> {
        let found = release_report(self, run.design, run.exec, run.generator)?;
        let mut row = found.params.values().to_vec();
        if let Some([gradient, hessian]) = &found.derivatives {
            row.extend_from_slice(gradient.values());
            append_triangle(Some(hessian), self.fit().n_params(), &mut row);
        }
        Ok(row)
    }
}

/// Parameters, then gradients and the lower triangles of the matrices at the last point, and the last bound on gradients.
impl Repeated for NewtonSpec {
    fn width(&self) -> usize {
        let d = self.n_params();
        let gradients = if self.is_pure() { 1 } else { 2 };
        (1 + gradients) * d + d * (d + 1) + 1
    }

    fn once(&self, run: Run<'_>) -> Result<Vec<f64>> {
        let found = release_newton(self, run.design, run.exec, &mut Sealing(run.generator))?;
        let mut row = found.mapped_params();
        found.gradients.iter().for_each(|g| row.extend_from_slice(g));
        for matrix in [&found.hessian, &found.gradient_cov] {
            append_triangle(Some(matrix), self.n_params(), &mut row);
        }
        row.push(found.last_bounds().gradient);
        Ok(row)
    }
}

/// Parameters.
impl Repeated for FunctionalSpec {
    fn width(&self) -> usize {
        self.n_params()
    }

    fn once(&self, run: Run<'_>) -> Result<Vec<f64>> {
        let params = release_functional_mechanism(self, run.design, run.exec, run.generator)?;
        Ok(params.into_values())
    }
}

/// Noisy counts.
impl Repeated for HistogramSpec {
    fn width(&self) -> usize {
        self.grid().n_cells()
    }

    fn once(&self, run: Run<'_>) -> Result<Vec<f64>> {
        Ok(release_histogram(self, run.design, run.exec, run.generator)?.into_values())
    }
}

/// The index of the chosen candidate, and the parameters of its model.
impl Repeated for TuningSpec {
    fn width(&self) -> usize {
        1 + self.n_params()
    }

    fn once(&self, run: Run<'_>) -> Result<Vec<f64>> {
        let selected = release_tuning(self, run.design, run.exec, run.generator)?;
        let mut row = vec![selected.index as f64];
        row.extend_from_slice(selected.params.values());
        Ok(row)
    }
}

/// `n_runs` times the same values through a seal, one a row.
pub fn simulate_seals(seal: &Seal, values: &[f64], n_runs: usize, seed: u64, exec: &Executor<'_>) -> Result<Vec<f64>> {
    repeat(n_runs, values.len(), seed, exec, |_, generator| {
        Ok(seal.release(values, generator)?.into_values())
    })
}
