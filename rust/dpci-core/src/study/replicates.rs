//! Bootstrap replicates of a private fit: sixteen samples share every pass over the rows.
//!
//! 1. Draw the weights of each sample; sum the gradients at the full-data minimiser, whose slopes all samples share.
//! 2. Draw the noise; find the certified minimisers from there, side by side (output perturbation: once for all configurations
//!    with the same risk). Those that leave the ball, and all where it is known to be active, are found one by one.
//! 3. Moments at the released parameters, projection, intervals, by the same functions of the mechanism as in a fit.
//!
//! Fits by Newton steps, which move the rows of each sample in a way of its own, share the samples alone (`newton.rs`).
//!
//! Replicate `r` draws its weights and its noise from streams of its own, so results depend neither on threads nor on how
//! replicates are shared out among calls or machines.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::counts::Counts;
use super::intervals::{Outcome, intervals, matrix_draws};
use super::lane_sums::{WeightedLanes, shared_slope_sums};
use super::newton::NewtonFits;
use super::population::{Population, risk, same_risk};
use super::weights::Resampler;
use crate::design::Design;
use crate::erm::minimize_risk;
use crate::error::{check, check_length};
use crate::exec::Executor;
use crate::interval::MatrixDraws;
use crate::linalg::{LANES, Lane, vector};
use crate::mechanism::{
    Simulated, Simulating, Values, check_design, check_newton_design, draw_coefficient_noise, linear_term,
    moment_point, release_minimum, solver_options,
};
use crate::noise::SimulationGenerator;
use crate::privacy::Perturbation;
use crate::solver::{Minimum, Options, Start, minimize_lockstep};
use crate::spec::{NewtonSpec, Spec};
use crate::{Error, Result};

/// A thread holds the moments of a group at once, 32 matrices twice over: up to 1.6 GB at this size.
const MAX_PARAMS: usize = 2048;

/// Replicates that share each pass over the rows; ranges of whole groups waste nothing.
pub const GROUP: usize = LANES;

/// Streams of one replicate: the weights, then one for each configuration.
const STREAMS: u64 = 256;

/// A data set, its full-data minimisers, and what is to be repeated on samples from it.
#[derive(Debug)]
pub struct Study {
    design: Design<'static>,
    resampler: Resampler,
    pub(super) populations: Vec<Population>,
    configurations: Vec<Way>,
    /// Counts that are not in use, all 0: one for each thread that has run.
    spare: Mutex<Vec<Counts>>,
}

/// Public choices of one way to fit.
#[derive(Debug, Clone)]
pub enum StudySpec {
    /// Perturbation of the objective or the output.
    Minimum(Box<Spec>),
    /// Newton steps.
    Newton(Box<NewtonSpec>),
}

impl From<Spec> for StudySpec {
    fn from(spec: Spec) -> Self {
        Self::Minimum(Box::new(spec))
    }
}

impl From<NewtonSpec> for StudySpec {
    fn from(spec: NewtonSpec) -> Self {
        Self::Newton(Box::new(spec))
    }
}

/// One way to fit.
#[derive(Debug)]
enum Way {
    Minimum(Box<Configuration>),
    Newton(Box<NewtonFits>),
}

/// Perturbation of the objective or the output.
#[derive(Debug)]
struct Configuration {
    spec: Spec,
    population: usize,
    /// Certificate that its minimisers meet: the least of all configurations that share them.
    tolerance: f64,
    /// By which its intervals simulate releases.
    draws: Option<MatrixDraws>,
}

/// A group of replicates: their counts, and what configurations share.
struct Group<'g> {
    replicates: Range<u64>,
    level: Option<f64>,
    counts: &'g Counts,
    exec: &'g Executor<'g>,
    /// By population: sums of the weighted slopes at the target.
    slope_sums: Vec<Option<Vec<Lane>>>,
    /// By population: minimisers of the samples' risk without noise.
    minima: Vec<Option<Vec<Minimum>>>,
}

impl Study {
    /// Solves the full-data problems of every configuration.
    pub fn new(design: &Design<'_>, specs: &[impl Clone + Into<StudySpec>], exec: &Executor<'_>) -> Result<Self> {
        let specs: Vec<StudySpec> = specs.iter().cloned().map(Into::into).collect();
        if specs.len() as u64 >= STREAMS {
            return Err(Error::Unsupported(format!(
                "a study takes at most 255 configurations, got {}",
                specs.len()
            )));
        }
        check(
            design.n_params() <= MAX_PARAMS,
            "the number of parameters of a study",
            "at most 2048",
            design.n_params() as f64,
        )?;
        let design = design.merged(exec)?;
        let resampler = Resampler::new(&design)?;
        for spec in &specs {
            let terms = match spec {
                StudySpec::Minimum(spec) => {
                    check_design(spec, &design)?;
                    spec.choices().terms
                }
                StudySpec::Newton(spec) => {
                    check_newton_design(spec, &design)?;
                    spec.choices().terms
                }
            };
            check_length("X", terms.n_samples, design.n_records())?;
        }
        let minima = || {
            specs.iter().filter_map(|spec| match spec {
                StudySpec::Minimum(spec) => Some(&**spec),
                StudySpec::Newton(_) => None,
            })
        };
        let least_tolerance = |matches: &dyn Fn(&Spec) -> bool| {
            let tolerances = minima().filter(|s| matches(s)).map(Spec::tolerance);
            tolerances.fold(f64::INFINITY, f64::min)
        };
        let mut populations: Vec<Population> = Vec::new();
        let mut configurations: Vec<Way> = Vec::with_capacity(specs.len());
        for spec in &specs {
            let spec = match spec {
                StudySpec::Minimum(spec) => spec,
                StudySpec::Newton(spec) => {
                    let fits = NewtonFits::new(&design, spec, exec)?;
                    configurations.push(Way::Newton(Box::new(fits)));
                    continue;
                }
            };
            let known = configurations.iter().find_map(|way| match way {
                Way::Minimum(c) if same_risk(&c.spec, spec) => Some(c),
                _ => None,
            });
            let population = if let Some(known) = known {
                known.population
            } else {
                let tolerance = least_tolerance(&|s| same_risk(s, spec)).min(spec.study_tolerance());
                populations.push(Population::new(&design, spec, tolerance, exec)?);
                populations.len() - 1
            };
            let tolerance = if is_noise_free(spec) {
                least_tolerance(&|s| same_risk(s, spec) && is_noise_free(s)).min(spec.study_tolerance())
            } else {
                spec.study_tolerance()
            };
            configurations.push(Way::Minimum(Box::new(Configuration {
                spec: (**spec).clone(),
                population,
                tolerance,
                draws: matrix_draws(spec)?,
            })));
        }
        Ok(Self {
            design,
            resampler,
            populations,
            configurations,
            spare: Mutex::default(),
        })
    }

    /// The targets: the full-data minimiser of each configuration.
    pub fn targets(&self) -> impl Iterator<Item = &[f64]> {
        self.configurations.iter().map(|way| match way {
            Way::Minimum(c) => &self.populations[c.population].target[..],
            Way::Newton(fits) => &fits.target,
        })
    }

    /// Standard errors of each configuration's target without privacy; `None` but for Newton steps.
    pub fn std_errors(&self) -> impl Iterator<Item = Option<&[f64]>> {
        self.configurations.iter().map(|way| match way {
            Way::Minimum(_) => None,
            Way::Newton(fits) => Some(&fits.std_errors[..]),
        })
    }

    /// Number of distinct records, among which persons and weighted rows all count.
    pub fn n_distinct(&self) -> usize {
        self.design.n_rows().min(self.design.n_records())
    }

    /// Runs the replicates of a range: for each, the outcome of every configuration. With a level, moments are released and
    /// intervals computed; without, parameters alone.
    pub fn run(
        &self,
        range: Range<u64>,
        seed: u64,
        level: Option<f64>,
        exec: &Executor<'_>,
    ) -> Result<Vec<Vec<Outcome>>> {
        if range.end > u64::MAX / STREAMS {
            return Err(Error::Unsupported(format!(
                "replicates must be numbered below 2^56, got {}",
                range.end
            )));
        }
        if level.is_some() {
            self.check_slack()?;
        }
        let lanes = LANES as u64;
        let groups: Vec<Range<u64>> = (range.start / lanes..range.end.div_ceil(lanes))
            .map(|g| (g * lanes).max(range.start)..((g + 1) * lanes).min(range.end))
            .collect();
        let outcomes = exec.map(groups.len(), |g| self.run_group(groups[g].clone(), seed, level, exec))?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Refuses intervals where a target lies on the sphere around its domain.
    fn check_slack(&self) -> Result<()> {
        let mut configurations = self.configurations.iter();
        let binding = configurations.find_map(|way| match way {
            Way::Minimum(c) if self.populations[c.population].on_sphere => Some(c),
            _ => None,
        });
        match binding {
            None => Ok(()),
            Some(binding) => Err(Error::Unsupported(format!(
                "intervals require a radius that does not bind, because the gradient does not vanish on the sphere, got radius={}, \
                 at which the minimiser of the full data lies on the sphere",
                binding.spec.radius().unwrap_or(f64::INFINITY)
            ))),
        }
    }

    /// At most [`LANES`] replicates, side by side.
    fn run_group(
        &self,
        replicates: Range<u64>,
        seed: u64,
        level: Option<f64>,
        exec: &Executor<'_>,
    ) -> Result<Vec<Vec<Outcome>>> {
        let mut counts = self.take_counts();
        let mut generators: Vec<SimulationGenerator> = replicates
            .clone()
            .map(|replicate| SimulationGenerator::new(seed, replicate * STREAMS))
            .collect();
        self.resampler.draw(&mut generators, &mut counts)?;
        let single = Executor::sequential(exec.cancel_flag());
        let mut group = Group {
            replicates,
            level,
            counts: &counts,
            exec: &single,
            slope_sums: vec![None; self.populations.len()],
            minima: vec![None; self.populations.len()],
        };
        let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); group.n_lanes()];
        for (c, way) in (0..).zip(&self.configurations) {
            let streams = group.replicates.clone().map(|r| r * STREAMS + 1 + c);
            let mut generators: Vec<SimulationGenerator> =
                streams.map(|stream| SimulationGenerator::new(seed, stream)).collect();
            let fits = match way {
                Way::Minimum(configuration) => self.fit_group(configuration, &mut group, &mut generators)?,
                Way::Newton(fits) => self.fit_each(fits, &group, &mut generators)?,
            };
            for (all, fit) in outcomes.iter_mut().zip(fits) {
                all.push(fit);
            }
        }
        self.put_back(counts);
        Ok(outcomes)
    }

    /// Newton steps on every sample of a group.
    fn fit_each(
        &self,
        fits: &NewtonFits,
        group: &Group<'_>,
        generators: &mut [SimulationGenerator],
    ) -> Result<Vec<Outcome>> {
        let lanes = generators.iter_mut().enumerate();
        lanes
            .map(|(lane, generator)| {
                let sample = self.design.sampled(&group.counts.of(lane))?;
                fits.fit(&sample, group.level, generator, group.exec)
            })
            .collect()
    }

    /// One configuration on every sample of a group.
    fn fit_group(
        &self,
        configuration: &Configuration,
        group: &mut Group<'_>,
        generators: &mut [SimulationGenerator],
    ) -> Result<Vec<Outcome>> {
        let spec = &configuration.spec;
        let noises: Result<Vec<Vec<f64>>> = generators
            .iter_mut()
            .map(|g| draw_coefficient_noise(spec, &mut Simulating(g)))
            .collect();
        let noises = noises?;
        let linear: Vec<Option<Vec<f64>>> = noises.iter().map(|b| linear_term(spec, b)).collect();
        let population = &self.populations[configuration.population];
        let mut lanes = WeightedLanes {
            design: &self.design,
            spec,
            population,
            counts: group.counts,
            linear: &linear,
            slope_sums: Vec::new(),
            n_rough: population.n_rough(spec, configuration.tolerance),
            moments_at_minima: group.level.is_some() && !is_noise_free(&configuration.spec),
            known: RefCell::default(),
            exec: group.exec,
        };
        let minima = self.minima(configuration, &mut lanes, group)?;
        let params: Result<Vec<Simulated>> = minima
            .into_iter()
            .zip(&noises)
            .zip(&mut *generators)
            .map(|((minimum, noise), g)| release_minimum(spec, minimum, None, noise, &mut Simulating(g)))
            .collect();
        let params = params?;
        let Some(level) = group.level else {
            let alone = params.into_iter().map(|p| Outcome {
                params: p.into_values(),
                bounds: [Vec::new(), Vec::new()],
            });
            return Ok(alone.collect());
        };
        // Where a fit takes them.
        let points: Vec<Simulated> = params.iter().map(|p| moment_point(spec, p)).collect();
        let moments = lanes.moments(&points.iter().map(Simulated::values).collect::<Vec<_>>())?;
        let fits = params.into_iter().zip(moments).zip(generators);
        fits.map(|((params, data), generator)| {
            let draws = configuration.draws.as_ref();
            intervals(spec, params, data, level, draws, generator)
        })
        .collect()
    }

    /// The certified minimiser of each sample's risk.
    fn minima(
        &self,
        configuration: &Configuration,
        lanes: &mut WeightedLanes<'_>,
        group: &mut Group<'_>,
    ) -> Result<Vec<Minimum>> {
        let p = configuration.population;
        if is_noise_free(&configuration.spec)
            && let Some(minima) = &group.minima[p]
        {
            return Ok(minima.clone());
        }
        let population = &self.populations[p];
        if population.one_by_one {
            let lanes_alone =
                (0..group.n_lanes()).map(|lane| self.solve_alone(configuration, lanes, lane, &population.target));
            let minima: Result<Vec<Minimum>> = lanes_alone.collect();
            return Ok(group.keep(configuration, minima?));
        }
        lanes.slope_sums = match group.slope_sums[p].take() {
            Some(sums) => sums,
            None => shared_slope_sums(&self.design, &population.slopes, group.counts, group.exec)?,
        };
        group.slope_sums[p] = Some(lanes.slope_sums.clone());
        let points: Vec<Lane> = population.target.iter().map(|t| [*t; LANES]).collect();
        let start = Start {
            params: &population.target,
            gradients: &lanes.finish_gradients(lanes.slope_sums.clone(), &points),
            factor: &population.factor,
        };
        let solved = minimize_lockstep(&*lanes, group.n_lanes(), start, configuration.tolerance)?;
        let minima: Result<Vec<Minimum>> = solved
            .into_iter()
            .enumerate()
            .map(|(lane, solution)| match solution {
                Ok(minimum) if is_inside(&configuration.spec, &minimum.params) => Ok(minimum),
                Ok(Minimum { params, .. }) | Err(params) => self.solve_alone(configuration, lanes, lane, &params),
            })
            .collect();
        Ok(group.keep(configuration, minima?))
    }

    /// A lane that stalled or left the ball: a solver with a line search, or with the ball.
    fn solve_alone(
        &self,
        configuration: &Configuration,
        lanes: &WeightedLanes<'_>,
        lane: usize,
        start: &[f64],
    ) -> Result<Minimum> {
        let weights = lanes.counts.of(lane);
        let spec = &configuration.spec;
        let linear = lanes.linear[lane].as_deref();
        let options = Options {
            tolerance: configuration.tolerance,
            ..solver_options(spec, spec.study_tolerance())
        };
        let objective = risk(&self.design, spec, Some(&weights), linear, lanes.exec);
        minimize_risk(&objective, Some(start), &options)
    }

    /// Counts of 0 for every row.
    fn take_counts(&self) -> Counts {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| self.resampler.no_counts())
    }

    fn put_back(&self, mut counts: Counts) {
        counts.clear();
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(counts);
    }
}

/// Whether the risk that a configuration minimises holds no noise.
fn is_noise_free(spec: &Spec) -> bool {
    spec.choices().perturbation == Perturbation::Output
}

/// Whether a minimiser over all parameters is that over the domain.
fn is_inside(spec: &Spec, params: &[f64]) -> bool {
    spec.radius().is_none_or(|w| vector::norm(params) <= w)
}

impl Group<'_> {
    fn n_lanes(&self) -> usize {
        self.replicates.clone().count()
    }

    /// Keeps minimisers for the other configurations that share them.
    fn keep(&mut self, configuration: &Configuration, minima: Vec<Minimum>) -> Vec<Minimum> {
        if is_noise_free(&configuration.spec) {
            self.minima[configuration.population] = Some(minima.clone());
        }
        minima
    }
}
