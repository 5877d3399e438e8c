//! Releases a choice among public candidates, with the private model that it was chosen by (`docs/tuning.md`).

use std::sync::Arc;

use super::coefficients::release_coefficients;
use super::fit::check_design;
use super::seal::Sealed;
use super::selection::{Score, release_index, scalar_noise};
use super::spec::{Choices, Moments, NoiseKind, Spec};
use crate::design::{Design, row_norm_bound};
use crate::error::check_length;
use crate::exec::Executor;
use crate::interval::Perturbation;
use crate::loss::Loss;
use crate::noise::{NoiseGenerator, NoiseLaw, partition, uniform_index, weighted_index};
use crate::privacy::{
    Budget, Neighbors, RunCount, exponential_epsilon, gaussian_std_dev, laplace_rate, pure_epsilon,
};
use crate::{Error, Result};

/// Share of a repeated run's cost that goes to its score; the rest goes to its coefficients.
const SCORE_SHARE: f64 = 0.25;

/// How a candidate is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// One model per candidate on its own part of the records, and the exponential mechanism on the last part (Wu et al., Algorithm 5).
    Chunks,
    /// The best of a random number of runs of random candidates on all records (Liu & Talwar 2019; Papernot & Steinke 2022).
    Repeat {
        /// Shape η of the law of the number of runs.
        shape: f64,
        /// Its mean.
        expected_runs: f64,
    },
}

/// What scores cost and how they are hidden. All public.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreStep {
    /// `gumbel` (the exponential mechanism), `laplace` or `gaussian`.
    pub noise: &'static str,
    /// 1/rate or standard deviation, in units of the loss.
    pub scale: f64,
    /// How far one record can move a score.
    pub sensitivity: f64,
    /// The budget of one score, or of the exponential mechanism.
    pub budget: Budget,
}

/// Validated choices of a tuning. Holds no data.
#[derive(Debug, Clone)]
pub struct TuningSpec {
    candidates: Vec<Spec>,
    score: Score,
    step: ScoreStep,
    procedure: Procedure,
    n_samples: usize,
}

#[derive(Debug, Clone)]
enum Procedure {
    /// Sizes of the parts, the validation part last, and ε of the exponential mechanism.
    Chunks { sizes: Vec<usize>, epsilon: f64 },
    /// The law of the number of runs, and that of the noise of a score.
    Repeat { count: RunCount, noise: NoiseLaw },
}

/// What a tuning releases.
#[derive(Debug, Clone)]
pub struct Selected {
    /// Index of the candidate.
    pub index: usize,
    /// Parameters of its model, in its ball.
    pub params: Sealed,
}

impl TuningSpec {
    /// Calibrates the models of the candidates and the choice among them; `loss` is the validation loss.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for candidates without a radius, candidates that differ in what the rows are checked against, and a
    /// validation loss of unknown range; [`Error::Empty`] for fewer records than parts; as [`Spec::new`] and [`RunCount::new`].
    pub fn new(
        candidates: &[Choices],
        loss: Arc<dyn Loss>,
        budget: Budget,
        method: Method,
    ) -> Result<Self> {
        let Some(first) = candidates.first() else {
            return Err(Error::Unsupported(
                "candidates must hold at least one, got none".into(),
            ));
        };
        check_common(candidates, &*loss)?;
        let row_norm = row_norm_bound(first.row_norm, first.intercept);
        let score = Score::new(loss, row_norm, greatest_radius(candidates)?)?;
        let n = first.n_samples;
        let plan = match method {
            Method::Chunks => plan_chunks(candidates.len(), n, budget, &score)?,
            Method::Repeat {
                shape,
                expected_runs,
            } => {
                let count = RunCount::new(shape, expected_runs)?;
                plan_repeat(candidates, count, budget, &score)?
            }
        };
        let specs = candidates.iter().enumerate().map(|(i, choices)| {
            Spec::new(Choices {
                n_samples: match &plan.procedure {
                    Procedure::Chunks { sizes, .. } => sizes[i],
                    Procedure::Repeat { .. } => n,
                },
                budget: plan.model,
                split: None,
                moments: Moments::None,
                reserve: 0.0,
                ..choices.clone()
            })
        });
        Ok(Self {
            candidates: specs.collect::<Result<_>>()?,
            score,
            step: plan.step,
            procedure: plan.procedure,
            n_samples: n,
        })
    }

    /// The model of each candidate, on its part of the records or in one run.
    #[must_use]
    pub fn candidates(&self) -> &[Spec] {
        &self.candidates
    }

    /// Number of parameters, the intercept included.
    #[must_use]
    pub fn n_params(&self) -> usize {
        self.candidates.first().map_or(0, Spec::n_params)
    }

    /// The scores.
    #[must_use]
    pub fn score_step(&self) -> &ScoreStep {
        &self.step
    }

    /// Law of the number of runs, which only [`Method::Repeat`] has.
    #[must_use]
    pub fn run_count(&self) -> Option<&RunCount> {
        match &self.procedure {
            Procedure::Chunks { .. } => None,
            Procedure::Repeat { count, .. } => Some(count),
        }
    }

    /// Sizes of the parts, the validation part last, which only [`Method::Chunks`] has.
    #[must_use]
    pub fn chunk_sizes(&self) -> Option<&[usize]> {
        match &self.procedure {
            Procedure::Chunks { sizes, .. } => Some(sizes),
            Procedure::Repeat { .. } => None,
        }
    }
}

/// What a method makes of the budget.
struct Plan {
    /// Of the model of a candidate.
    model: Budget,
    step: ScoreStep,
    procedure: Procedure,
}

/// Every part may spend everything, because a record is in one of them.
fn plan_chunks(n_candidates: usize, n: usize, budget: Budget, score: &Score) -> Result<Plan> {
    let parts = n_candidates + 1;
    if n < parts {
        return Err(Error::Unsupported(format!(
            "n_samples must be at least {parts}, one record for each candidate and one to compare them, got {n}"
        )));
    }
    let sizes: Vec<usize> = (0..parts)
        .map(|i| n / parts + usize::from(i < n % parts))
        .collect();
    let epsilon = exponential_epsilon(&budget)?;
    let sensitivity = score.sensitivity(n / parts);
    Ok(Plan {
        model: budget,
        step: ScoreStep {
            noise: "gumbel",
            scale: 2.0 * sensitivity / epsilon,
            sensitivity,
            budget,
        },
        procedure: Procedure::Chunks { sizes, epsilon },
    })
}

/// Pure runs; under (ε, δ) zCDP runs where all candidates add Gaussian noise to the minimiser, and it is less or asked for.
fn plan_repeat(
    candidates: &[Choices],
    count: RunCount,
    budget: Budget,
    score: &Score,
) -> Result<Plan> {
    let n = candidates[0].n_samples;
    let epsilon = count.run_epsilon(pure_epsilon(&budget)?)?;
    let sensitivity = score.sensitivity(n);
    if let Budget::Approx { epsilon: e, delta } = budget {
        let rho = count.run_rho(e, delta)?;
        if prefers_gaussian(candidates, epsilon, rho) {
            let (model, score_rho) = (rho - SCORE_SHARE * rho, SCORE_SHARE * rho);
            let std_dev = gaussian_std_dev(sensitivity, (2.0 * score_rho).sqrt())?;
            return Ok(Plan {
                model: Budget::zcdp(model)?,
                step: ScoreStep {
                    noise: "gaussian",
                    scale: std_dev,
                    sensitivity,
                    budget: Budget::zcdp(score_rho)?,
                },
                procedure: Procedure::Repeat {
                    count,
                    noise: NoiseLaw::Gaussian { std_dev },
                },
            });
        }
    }
    let (model, score_epsilon) = (epsilon - SCORE_SHARE * epsilon, SCORE_SHARE * epsilon);
    let rate = laplace_rate(sensitivity, score_epsilon)?;
    Ok(Plan {
        model: Budget::pure(model)?,
        step: ScoreStep {
            noise: "laplace",
            scale: 1.0 / rate,
            sensitivity,
            budget: Budget::pure(score_epsilon)?,
        },
        procedure: Procedure::Repeat {
            count,
            noise: NoiseLaw::SphericalLaplace { dim: 1, rate },
        },
    })
}

fn prefers_gaussian(candidates: &[Choices], epsilon: f64, rho: f64) -> bool {
    let c = &candidates[0];
    let params = c.n_columns + usize::from(c.intercept.is_some());
    // Variance of a coordinate at sensitivity 1.
    let less = 1.0 / (2.0 * rho) < (params as f64 + 1.0) / (epsilon * epsilon);
    let asked = |kind| candidates.iter().any(|c| c.noise == Some(kind));
    candidates
        .iter()
        .all(|c| c.perturbation == Perturbation::Output)
        && !asked(NoiseKind::SphericalLaplace)
        && (less || asked(NoiseKind::Gaussian))
}

/// Candidates may differ in their models only: the rows are checked once, and all models are compared on them.
fn check_common(candidates: &[Choices], loss: &dyn Loss) -> Result<()> {
    let unsupported = |message: &str| Err(Error::Unsupported(message.into()));
    let first = &candidates[0];
    let shape = |c: &Choices| (c.n_samples, c.n_columns, c.intercept.map(f64::to_bits));
    for c in candidates {
        if shape(c) != shape(first)
            || c.row_norm.to_bits() != first.row_norm.to_bits()
            || c.loss.targets() != loss.targets()
        {
            return unsupported(
                "candidates must agree in n_samples, intercept, row_norm and the targets of their losses and of the validation loss",
            );
        }
        if c.neighbors != Neighbors::ReplaceOne {
            return unsupported(
                "private tuning takes neighbors=\"replace_one\": the size of a part, or the divisor of a validation loss, would tell the number \
                 of records, got neighbors=\"add_remove\"",
            );
        }
    }
    Ok(())
}

/// The greatest radius of the candidates, without which no bound on a validation loss exists.
fn greatest_radius(candidates: &[Choices]) -> Result<f64> {
    let radii: Option<Vec<f64>> = candidates.iter().map(|c| c.radius).collect();
    let Some(radii) = radii else {
        return Err(Error::Unsupported(
            "every candidate must have a radius, which bounds its validation loss, got one without"
                .into(),
        ));
    };
    Ok(radii
        .into_iter()
        .fold(0.0, |a, b| if b > a { b } else { a }))
}

/// Releases a choice among the candidates, with the parameters of the model that it was chosen by.
///
/// # Privacy
/// One record replaced; spends the budget that `spec` was made with.
///
/// Chunks: a partition drawn without looking at the data puts each record into one part. A record of a candidate's part changes the
/// law of that candidate's model alone, which has the budget; a record of the validation part changes the law of the choice alone,
/// the exponential mechanism within the budget, given all models (`docs/tuning.md`, "Parallel parts").
///
/// Repeat: a run draws a candidate, releases its coefficients, and adds noise to its mean validation loss on all records; the best of K
/// independent runs leaves. K is drawn without looking at the data (Papernot & Steinke 2022, Theorem 2 and its pure case; `docs/tuning.md`
/// for the bounded K). How long the call takes tells K, which is independent of the data, and how hard the problems were, which is not.
///
/// # Errors
/// As [`super::release`]; nothing is released then.
pub fn release_tuning(
    spec: &TuningSpec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Selected> {
    check_length("X", spec.n_samples, design.n_records())?;
    match &spec.procedure {
        Procedure::Chunks { sizes, epsilon } => {
            release_from_chunks(spec, sizes, *epsilon, design, exec, generator)
        }
        Procedure::Repeat { count, noise } => {
            release_from_runs(spec, count, *noise, design, exec, generator)
        }
    }
}

fn release_from_chunks(
    spec: &TuningSpec,
    sizes: &[usize],
    epsilon: f64,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Selected> {
    let mut parts = partition(sizes, generator);
    let validation = design.subset(&parts.pop().unwrap_or_default())?;
    let mut models = Vec::with_capacity(parts.len());
    for (candidate, part) in spec.candidates.iter().zip(&parts) {
        models.push(release_model(
            candidate,
            &design.subset(part)?,
            exec,
            generator,
        )?);
    }
    let losses: Result<Vec<f64>> = models
        .iter()
        .map(|model| spec.score.mean_loss(&validation, model.values(), exec))
        .collect();
    let index = release_index(&losses?, epsilon, spec.step.sensitivity, generator)?;
    Ok(Selected {
        index,
        params: models.swap_remove(index),
    })
}

fn release_from_runs(
    spec: &TuningSpec,
    count: &RunCount,
    noise: NoiseLaw,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Selected> {
    let design = design.clone().compacted(exec)?;
    let n_runs = 1 + weighted_index(&count.probabilities(), generator);
    let mut best: Option<(f64, Selected)> = None;
    for _ in 0..n_runs {
        let index = uniform_index(spec.candidates.len(), generator);
        let params = release_model(&spec.candidates[index], &design, exec, generator)?;
        let loss = spec.score.mean_loss(&design, params.values(), exec)?;
        let noisy = loss + scalar_noise(noise, generator)?;
        // NaN competes with nothing: the loss at finite parameters is finite, or an error.
        if best.as_ref().is_none_or(|(least, _)| noisy < *least) {
            best = Some((noisy, Selected { index, params }));
        }
    }
    best.map(|(_, selected)| selected).ok_or(Error::Unsupported(
        "candidates must hold at least one, got none".into(),
    ))
}

/// Releases the coefficients of a candidate, moved into its ball.
///
/// # Privacy
/// As [`release_coefficients`]; the move is post-processing.
pub(crate) fn release_model(
    candidate: &Spec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    check_design(candidate, design)?;
    candidate.check_strong_convexity(design, exec)?;
    let params = release_coefficients(candidate, design, exec, generator)?;
    Ok(params.in_ball(candidate.radius()))
}
