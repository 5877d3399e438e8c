//! Bootstrap replicates of a private fit: eight samples share every pass over the rows.
//!
//! A replicate draws weights, then does what a fit does, by the same functions of the mechanism: noise, the certified minimiser,
//! moments at the released parameters, projection, intervals. Replicate `r` draws its weights and its noise from streams of
//! its own, so results depend neither on threads nor on how replicates are shared out among calls or machines.

use std::ops::Range;
use std::sync::Arc;

use super::lanes::WeightedLanes;
use super::weights::Resampler;
use crate::design::Design;
use crate::erm::minimize_risk;
use crate::exec::Executor;
use crate::interval::{Sandwich, half_widths};
use crate::linalg::{Cholesky, LANES};
use crate::mechanism::seal::Sealed;
use crate::mechanism::{
    Release, Spec, add_moment_noise, draw_coefficient_noise, finish_coefficients, linear_term,
    margin_radius, project_release, solver_options,
};
use crate::moments::DataMoments;
use crate::noise::SimulationGenerator;
use crate::objective::{HessianRows, Objective};
use crate::solver::{Minimum, minimize_lockstep};
use crate::{Error, Result};

/// Sixteen matrices a thread are held at once; beyond this they would take gigabytes.
const MAX_PARAMS: usize = 2048;

/// Streams of one replicate: the weights, then one for each configuration.
const STREAMS: u64 = 256;

/// A data set, its full-data minimisers, and what is to be repeated on samples from it.
#[derive(Debug)]
pub struct Study {
    design: Design<'static>,
    resampler: Resampler,
    configurations: Vec<Configuration>,
}

/// One way to fit, with the full-data minimiser that is the target of its intervals.
#[derive(Debug)]
struct Configuration {
    spec: Spec,
    target: Vec<f64>,
    factor: Arc<Cholesky>,
}

/// What a replicate leaves behind: parameters, and the bounds of its intervals where they were asked for.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Released parameters.
    pub params: Vec<f64>,
    /// Lower and upper bounds; empty without a level.
    pub bounds: [Vec<f64>; 2],
}

impl Study {
    /// Solves the full-data problems of every configuration.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more than 255 configurations or one of another shape than the design, [`Error::NotConverged`].
    pub fn new(design: &Design<'_>, specs: Vec<Spec>, exec: &Executor<'_>) -> Result<Self> {
        if specs.len() as u64 >= STREAMS {
            return Err(Error::Unsupported(format!(
                "a study takes at most 255 configurations, got {}",
                specs.len()
            )));
        }
        if design.n_params() > MAX_PARAMS {
            return Err(Error::OutOfRange {
                name: "the number of parameters of a study",
                rule: "at most 2048",
                value: design.n_params() as f64,
            });
        }
        let design = design.merged();
        let resampler = Resampler::new(&design)?;
        let mut configurations: Vec<Configuration> = Vec::with_capacity(specs.len());
        for spec in specs {
            if spec.n_params() != design.n_params()
                || spec.choices().n_samples != design.n_records()
            {
                return Err(Error::Unsupported(
                    "every configuration must have the public n and the columns of the data".into(),
                ));
            }
            let objective = objective(&design, &spec, None, None, exec);
            let target = minimize_risk(&objective, None, &solver_options(&spec))?.params;
            let hessian = objective
                .evaluate(&target, HessianRows::All)?
                .hessian
                .unwrap_or_default();
            let factor = Arc::new(Cholesky::new(
                &hessian,
                spec.n_params(),
                "the full-data Hessian",
            )?);
            configurations.push(Configuration {
                spec,
                target,
                factor,
            });
        }
        Ok(Self {
            design,
            resampler,
            configurations,
        })
    }

    /// The targets: the full-data minimiser of each configuration.
    pub fn targets(&self) -> impl Iterator<Item = &[f64]> {
        self.configurations.iter().map(|c| &c.target[..])
    }

    /// Number of distinct records.
    #[must_use]
    pub fn n_distinct(&self) -> usize {
        self.design.n_rows()
    }

    /// Runs the replicates of a range: for each, the outcome of every configuration. With a level, moments are released and
    /// intervals computed; without, parameters alone.
    ///
    /// # Errors
    /// The first error of a replicate; [`Error::Interrupted`].
    pub fn run(
        &self,
        range: Range<u64>,
        seed: u64,
        level: Option<f64>,
        exec: &Executor<'_>,
    ) -> Result<Vec<Vec<Outcome>>> {
        let lanes = LANES as u64;
        let groups: Vec<Range<u64>> = (range.start / lanes..range.end.div_ceil(lanes))
            .map(|g| (g * lanes).max(range.start)..((g + 1) * lanes).min(range.end))
            .collect();
        let outcomes = exec.map(groups.len(), |g| {
            self.run_group(groups[g].clone(), seed, level, exec)
        })?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// At most [`LANES`] replicates, side by side.
    fn run_group(
        &self,
        replicates: Range<u64>,
        seed: u64,
        level: Option<f64>,
        exec: &Executor<'_>,
    ) -> Result<Vec<Vec<Outcome>>> {
        let single = Executor::sequential(exec.cancel_flag());
        let mut weights = Vec::with_capacity(LANES);
        for replicate in replicates.clone() {
            let mut drawn = Vec::new();
            self.resampler.draw(
                &mut SimulationGenerator::new(seed, replicate * STREAMS),
                &mut drawn,
            )?;
            weights.push(drawn);
        }
        let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); weights.len()];
        for (c, configuration) in self.configurations.iter().enumerate() {
            let streams = replicates.clone().map(|r| r * STREAMS + 1 + c as u64);
            let generators = streams
                .map(|stream| SimulationGenerator::new(seed, stream))
                .collect();
            let fits = self.fit_group(configuration, &weights, generators, level, &single)?;
            for (all, fit) in outcomes.iter_mut().zip(fits) {
                all.push(fit);
            }
        }
        Ok(outcomes)
    }

    /// One configuration on every sample of a group.
    fn fit_group(
        &self,
        configuration: &Configuration,
        weights: &[Vec<u32>],
        mut generators: Vec<SimulationGenerator>,
        level: Option<f64>,
        exec: &Executor<'_>,
    ) -> Result<Vec<Outcome>> {
        let spec = &configuration.spec;
        let noises: Result<Vec<Vec<f64>>> = generators
            .iter_mut()
            .map(|g| draw_coefficient_noise(spec, g))
            .collect();
        let noises = noises?;
        let linear: Vec<Option<Vec<f64>>> = noises.iter().map(|b| linear_term(spec, b)).collect();
        let lanes = WeightedLanes::new(&self.design, spec, weights, &linear, exec);
        let starts = vec![configuration.target.clone(); weights.len()];
        let solved = minimize_lockstep(&lanes, &starts, &configuration.factor, spec.tolerance())?;
        let mut params = Vec::with_capacity(weights.len());
        for (lane, solution) in solved.into_iter().enumerate() {
            let minimum = match solution {
                Ok(minimum) => minimum,
                Err(point) => {
                    self.solve_alone(spec, &weights[lane], linear[lane].as_deref(), &point, exec)?
                }
            };
            params.push(finish_coefficients(spec, minimum, &noises[lane])?);
        }
        let Some(level) = level else {
            let outcome = |p: Sealed| Outcome {
                params: p.into_values(),
                bounds: [Vec::new(), Vec::new()],
            };
            return Ok(params.into_iter().map(outcome).collect());
        };
        let points: Vec<&[f64]> = params.iter().map(Sealed::values).collect();
        let moments = lanes.moments(&points)?;
        let fits = params.into_iter().zip(moments).zip(&mut generators);
        fits.map(|((params, data), generator)| intervals(spec, params, data, level, generator))
            .collect()
    }

    /// The fall-back of a lane that stalled: a solver with a line search.
    fn solve_alone(
        &self,
        spec: &Spec,
        weights: &[u32],
        linear: Option<&[f64]>,
        start: &[f64],
        exec: &Executor<'_>,
    ) -> Result<Minimum> {
        minimize_risk(
            &objective(&self.design, spec, Some(weights), linear, exec),
            Some(start),
            &solver_options(spec),
        )
    }
}

/// The risk of a sample.
fn objective<'a>(
    design: &'a Design<'static>,
    spec: &'a Spec,
    weights: Option<&'a [u32]>,
    linear_term: Option<&'a [f64]>,
    exec: &'a Executor<'a>,
) -> Objective<'a> {
    Objective {
        design,
        loss: &*spec.choices().loss,
        weights,
        l2_strength: spec.choices().l2_strength,
        linear_term,
        n_samples: spec.choices().n_samples as f64,
        exec,
    }
}

/// Releases the moments and forms the intervals of one replicate.
fn intervals(
    spec: &Spec,
    params: Sealed,
    data: DataMoments,
    level: f64,
    generator: &mut SimulationGenerator,
) -> Result<Outcome> {
    let Some(noise) = spec.moment_noise(margin_radius(spec, &params))? else {
        return Err(Error::Unsupported(
            "intervals need released moments, got moments=\"none\"".into(),
        ));
    };
    let (hessian, gradient_cov) = add_moment_noise(spec, data, &noise, generator)?;
    let release = Release {
        params,
        hessian,
        gradient_cov: Some(gradient_cov),
        noise: Some(noise),
    };
    let fit = project_release(spec, &release)?;
    let [hessian, gradient_cov] = fit.matrices.unwrap_or_default();
    let dim = spec.n_params();
    let choices = spec.choices();
    let sandwich = Sandwich::new(
        &hessian,
        &gradient_cov,
        dim,
        choices.n_samples as f64,
        choices.perturbation,
    )?;
    let mut unit = vec![0.0; dim];
    let mut parts = Vec::with_capacity(dim);
    for j in 0..dim {
        unit[j] = 1.0;
        parts.push(sandwich.components(&unit)?);
        unit[j] = 0.0;
    }
    let (v, a): (Vec<f64>, Vec<f64>) = parts.into_iter().unzip();
    let widths = half_widths(&v, &a, &spec.law(), level)?;
    let lower = fit.params.iter().zip(&widths).map(|(p, w)| p - w).collect();
    let upper = fit.params.iter().zip(&widths).map(|(p, w)| p + w).collect();
    Ok(Outcome {
        params: fit.params,
        bounds: [lower, upper],
    })
}
