//! The public choices of a private tuning, validated and calibrated before any data are seen.

use std::sync::Arc;

mod score;

#[cfg(not(test))]
use score::Score;
#[cfg(test)]
pub(crate) use score::Score;
pub(crate) use score::{GREATEST_STEPS, check_predictor, choice_lattice, whole};

use super::fit::share_seal;
use super::{Choices, Moments, NoiseKind, Part, Seal, Spec, Terms};
use crate::loss::Loss;
use crate::noise::{Family, NoiseLaw};
use crate::privacy::{
    Budget, Cost, Neighbors, Perturbation, RunCount, exponential_epsilon, gaussian_std_dev, laplace_rate, pure_epsilon,
};
use crate::row_domain::row_norm_bound;
use crate::unit::Weighting;
use crate::{Error, Result};

/// Share of a repeated run's cost that goes to its score; the rest goes to its coefficients.
const SCORE_SHARE: f64 = 0.25;

/// How a candidate is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TuningMethod {
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

/// Cost of scores, and how they are hidden. All public.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreStep {
    /// [`Family::Gumbel`] (the exponential mechanism), [`Family::Laplace`] or [`Family::Gaussian`].
    pub noise: Family,
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
    /// Radius of the ball that each candidate's model is moved into before it is scored.
    radii: Vec<f64>,
    pub(crate) score: Score,
    step: ScoreStep,
    pub(crate) procedure: Procedure,
    pub(crate) n_samples: usize,
}

/// How a choice is made.
#[derive(Debug, Clone)]
pub(crate) enum Procedure {
    /// Sizes of the parts, the validation part last, and ε of the exponential mechanism.
    Chunks { sizes: Vec<usize>, epsilon: f64 },
    /// The law of the number of runs, that of the noise of a score, and the seal of the noisy score.
    Repeat {
        count: RunCount,
        noise: NoiseLaw,
        seal: Seal,
    },
}

impl TuningSpec {
    /// Calibrates the models of the candidates and the choice among them; `loss` is the validation loss, and `validation_radius` stands
    /// for the radius of candidates without one when they are compared.
    pub fn new(
        candidates: &[Choices],
        loss: Arc<dyn Loss>,
        validation_radius: Option<f64>,
        budget: Budget,
        method: TuningMethod,
    ) -> Result<Self> {
        let Some(first) = candidates.first() else {
            return Err(Error::Unsupported(
                "candidates must hold at least one candidate, got none".into(),
            ));
        };
        check_common(candidates, &*loss)?;
        if first.terms.has_far_rows() {
            return Err(Error::Unsupported(
                "a tuning requires rows within their bounds, because the loss of rows beyond them has no bound, got \
                rows=\"weight\""
                    .into(),
            ));
        }
        let row_norm = row_norm_bound(first.rows.norm(), first.intercept);
        let radii = scoring_radii(candidates, validation_radius)?;
        let greatest = radii.iter().fold(0.0, |a: f64, b| if *b > a { *b } else { a });
        let n_params = first.n_params();
        let score = Score::new(loss, row_norm, greatest, n_params)?
            .of_records(first.terms.unit, first.terms.weighting.is_some());
        let n = first.terms.n_samples;
        let allotted = match method {
            TuningMethod::Chunks => allot_to_chunks(candidates.len(), n, budget, &score)?,
            TuningMethod::Repeat { shape, expected_runs } => {
                let count = RunCount::new(shape, expected_runs)?;
                allot_to_runs(candidates, count, budget, &score)?
            }
        };
        let specs = candidates.iter().enumerate().map(|(i, choices)| {
            let size = match &allotted.procedure {
                Procedure::Chunks { sizes, .. } => sizes[i],
                Procedure::Repeat { .. } => n,
            };
            // A part of the records has that part of the total of all.
            let weighting = choices.terms.weighting.map(|w| {
                let total = w.total * (size as f64 / n as f64);
                Weighting::new(w.bound, total)
            });
            Spec::new(Choices {
                terms: Terms {
                    n_samples: size,
                    weighting: weighting.transpose()?,
                    ..choices.terms
                },
                budget: allotted.model,
                split: None,
                moments: Moments::None,
                reserve: 0.0,
                ..choices.clone()
            })
        });
        Ok(Self {
            candidates: specs.collect::<Result<_>>()?,
            radii,
            score,
            step: allotted.step,
            procedure: allotted.procedure,
            n_samples: n,
        })
    }

    getters! { self =>
        /// The model of each candidate, on its part of the records or in one run.
        pub candidates: &[Spec] = &self.candidates;
        /// Radius of the ball in which each candidate is scored.
        pub radii: &[f64] = &self.radii;
        /// The scores.
        pub score_step: &ScoreStep = &self.step;
        /// Number of parameters, the intercept included.
        pub n_params: usize = self.candidates.first().map_or(0, Spec::n_params);
    }

    /// How a noisy score is sealed, which only [`TuningMethod::Repeat`] needs.
    pub fn score_seal(&self) -> Option<&Seal> {
        match &self.procedure {
            Procedure::Chunks { .. } => None,
            Procedure::Repeat { seal, .. } => Some(seal),
        }
    }

    /// Law of the number of runs, which only [`TuningMethod::Repeat`] has.
    pub fn run_count(&self) -> Option<&RunCount> {
        match &self.procedure {
            Procedure::Chunks { .. } => None,
            Procedure::Repeat { count, .. } => Some(count),
        }
    }

    /// Sizes of the parts, the validation part last, which only [`TuningMethod::Chunks`] has.
    pub fn chunk_sizes(&self) -> Option<&[usize]> {
        match &self.procedure {
            Procedure::Chunks { sizes, .. } => Some(sizes),
            Procedure::Repeat { .. } => None,
        }
    }
}

/// Division of the budget by a method.
struct Allotment {
    /// Budget of the model of a candidate.
    model: Budget,
    step: ScoreStep,
    procedure: Procedure,
}

/// Every part may spend everything, because a record is in one of them.
fn allot_to_chunks(n_candidates: usize, n: usize, budget: Budget, score: &Score) -> Result<Allotment> {
    let parts = n_candidates + 1;
    if n < parts {
        return Err(Error::Unsupported(format!(
            "n_samples must be at least {parts}, one record for each candidate and one to compare them, got {n}"
        )));
    }
    let sizes: Vec<usize> = (0..parts).map(|i| n / parts + usize::from(i < n % parts)).collect();
    let epsilon = exponential_epsilon(&budget)?;
    let sensitivity = score.sensitivity(n / parts)?;
    choice_lattice(epsilon, sensitivity)?;
    Ok(Allotment {
        model: budget,
        step: ScoreStep {
            noise: Family::Gumbel,
            scale: 2.0 * sensitivity / epsilon,
            sensitivity,
            budget,
        },
        procedure: Procedure::Chunks { sizes, epsilon },
    })
}

/// Pure runs; under (ε, δ) zCDP runs where all candidates add Gaussian noise to the minimiser, and it is less or asked for.
fn allot_to_runs(candidates: &[Choices], count: RunCount, budget: Budget, score: &Score) -> Result<Allotment> {
    let n = candidates[0].terms.n_samples;
    let epsilon = count.run_epsilon(pure_epsilon(&budget)?)?;
    let (model_epsilon, score_epsilon) = (epsilon - SCORE_SHARE * epsilon, SCORE_SHARE * epsilon);
    let sensitivity = score.sensitivity(n)?;
    if let Budget::Approx { epsilon: e, delta } = budget {
        // Room for the rounding of the shares; that of ε is in `run_epsilon`.
        let rho = count.run_rho(e, delta)? * (1.0 - 4.0 * f64::EPSILON);
        let (model, score_rho) = (rho - SCORE_SHARE * rho, SCORE_SHARE * rho);
        if prefers_gaussian(candidates, model_epsilon, model) {
            let (rest, seal) = Budget::zcdp(score_rho)?.split_off_seal();
            let std_dev = gaussian_std_dev(sensitivity, Cost::of(rest).mu())?;
            let noise = NoiseLaw::Gaussian { std_dev };
            return Ok(Allotment {
                model: Budget::zcdp(model)?,
                step: ScoreStep {
                    noise: Family::Gaussian,
                    scale: std_dev,
                    sensitivity,
                    budget: Budget::zcdp(score_rho)?,
                },
                procedure: Procedure::Repeat {
                    count,
                    seal: score_seal(&noise, score, share_seal(seal, 1))?,
                    noise,
                },
            });
        }
    }
    if asked(candidates, NoiseKind::Gaussian) {
        return Err(Error::Unsupported(
            "method=\"repeat\" takes noise=\"gaussian\" only under ApproxDP with output perturbation for every candidate, because its runs are \
             otherwise accounted as pure DP, got noise=\"gaussian\": leave noise=None, or use method=\"chunks\""
                .into(),
        ));
    }
    let (rest, seal) = Budget::pure(score_epsilon)?.split_off_seal();
    let rate = laplace_rate(sensitivity, Cost::of(rest).value())?;
    let noise = NoiseLaw::SphericalLaplace { dim: 1, rate };
    Ok(Allotment {
        model: Budget::pure(model_epsilon)?,
        step: ScoreStep {
            noise: Family::Laplace,
            scale: 1.0 / rate,
            sensitivity,
            budget: Budget::pure(score_epsilon)?,
        },
        procedure: Procedure::Repeat {
            count,
            seal: score_seal(&noise, score, share_seal(seal, 1))?,
            noise,
        },
    })
}

/// The seal of a noisy score. The sensitivity of a score holds as it is computed, so only the noise errs, and its sum with the score.
fn score_seal(noise: &NoiseLaw, score: &Score, cost: Cost) -> Result<Seal> {
    let distance = 2.0 * (noise.error_bound(1) + f64::EPSILON * score.greatest());
    Seal::new(Part::Score, 1, distance, cost)
}

fn asked(candidates: &[Choices], kind: NoiseKind) -> bool {
    candidates.iter().any(|c| c.noise == Some(kind))
}

/// Whether models get less noise from their ρ than from their ε, and all may.
fn prefers_gaussian(candidates: &[Choices], epsilon: f64, rho: f64) -> bool {
    let c = &candidates[0];
    let params = c.n_params();
    // Variance of a coordinate at sensitivity 1.
    let less = 1.0 / (2.0 * rho) < (params as f64 + 1.0) / (epsilon * epsilon);
    candidates.iter().all(|c| c.perturbation == Perturbation::Output)
        && !asked(candidates, NoiseKind::SphericalLaplace)
        && (less || asked(candidates, NoiseKind::Gaussian))
}

/// Candidates may differ in their models only: the rows are checked once, and all models are compared on them.
pub(crate) fn check_common<'a>(candidates: impl IntoIterator<Item = &'a Choices>, loss: &dyn Loss) -> Result<()> {
    let facts = |c: &Choices| {
        [
            ("n_samples", c.terms.n_samples.to_string()),
            ("n_columns", c.n_columns.to_string()),
            ("intercept", c.intercept.map_or("none".into(), |s| s.to_string())),
            ("row_norm", c.rows.to_string()),
            ("unit of privacy", c.terms.unit.to_string()),
            ("weights", c.terms.weighting.map_or("none".into(), |w| w.to_string())),
        ]
    };
    let mut first = None;
    for c in candidates {
        let common = first.get_or_insert_with(|| facts(c));
        for ((name, a), (_, b)) in common.iter().zip(facts(c)) {
            if *a != b {
                return Err(Error::Unsupported(format!(
                    "candidates must have the same {name}, got {a} and {b}"
                )));
            }
        }
        let (targets, validated) = (c.loss.targets(), loss.targets());
        if targets != validated {
            return Err(Error::Unsupported(format!(
                "the losses of all candidates and the validation loss must have the same targets, got {targets} for the {} loss and \
                 {validated} for validation",
                c.loss.name()
            )));
        }
        if c.terms.neighbors != Neighbors::ReplaceOne {
            return Err(Error::Unsupported(
                "private tuning requires neighbors=\"replace_one\", because the size of a part, or the divisor of a validation loss, would \
                 reveal the number of records, got neighbors=\"add_remove\""
                    .into(),
            ));
        }
    }
    Ok(())
}

/// The ball of each candidate, without which no bound on a validation loss exists.
fn scoring_radii(candidates: &[Choices], otherwise: Option<f64>) -> Result<Vec<f64>> {
    if let Some(radius) = otherwise
        && !(radius > 0.0 && radius.is_finite())
    {
        return Err(Error::OutOfRange {
            name: "validation_radius",
            rule: "finite and > 0",
            value: radius,
        });
    }
    let radii: Option<Vec<f64>> = candidates.iter().map(|c| c.radius.or(otherwise)).collect();
    radii.ok_or_else(|| {
        Error::Unsupported(
            "every candidate must have a radius, or validation_radius must be given (the latter with three or more classes), because \
            it bounds the validation loss, got a candidate without either".into(),
        )
    })
}
