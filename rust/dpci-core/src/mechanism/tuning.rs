//! Releases a choice among public candidates, with the private model that it was chosen by (`docs/tuning.md`).

use super::coefficients::release_coefficients;
use super::fit::check_strong_convexity;
use super::gate::Sealing;
use super::row_facts::check_design;
use super::seal::{Sealed, Values};
use super::selection::{mean_loss, release_index, scalar_noise};
use crate::design::Design;
use crate::error::check_length;
use crate::exec::Executor;
use crate::noise::{NoiseGenerator, NoiseLaw, partition, uniform_index, weighted_index};
use crate::privacy::RunCount;
use crate::spec::{Procedure, Seal, Spec, TuningSpec};
use crate::{Error, Result};

/// Values that a tuning releases.
#[derive(Debug, Clone)]
pub struct Selected {
    /// Index of the candidate.
    pub index: usize,
    /// Parameters of its model, in the ball that it was scored in.
    pub params: Sealed,
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
pub fn release_tuning(
    spec: &TuningSpec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Selected> {
    check_length("X", spec.n_samples, design.n_records())?;
    match &spec.procedure {
        Procedure::Chunks { sizes, epsilon } => release_from_chunks(spec, sizes, *epsilon, design, exec, generator),
        Procedure::Repeat { count, noise, seal } => {
            let score = ScoreNoise {
                law: noise.clone(),
                seal,
            };
            release_from_runs(spec, count, &score, design, exec, generator)
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
    for ((candidate, radius), part) in spec.candidates().iter().zip(spec.radii()).zip(&parts) {
        models.push(release_model(
            candidate,
            Some(*radius),
            &design.subset(part)?,
            exec,
            generator,
        )?);
        exec.step_done();
    }
    let losses: Result<Vec<f64>> = models
        .iter()
        .map(|model| mean_loss(spec.score.loss(), &validation, model.values(), exec))
        .collect();
    let index = release_index(&losses?, epsilon, spec.score_step().sensitivity, generator)?;
    Ok(Selected {
        index,
        params: models.swap_remove(index),
    })
}

/// Noise that hides a score.
struct ScoreNoise<'a> {
    law: NoiseLaw,
    seal: &'a Seal,
}

fn release_from_runs(
    spec: &TuningSpec,
    count: &RunCount,
    score: &ScoreNoise<'_>,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Selected> {
    let design = design.clone().compacted(exec)?;
    let n_runs = 1 + weighted_index(&count.probabilities(), generator);
    let mut best: Option<(f64, Selected)> = None;
    for _ in 0..n_runs {
        let index = uniform_index(spec.candidates().len(), generator);
        let params = release_model(
            &spec.candidates()[index],
            Some(spec.radii()[index]),
            &design,
            exec,
            generator,
        )?;
        let loss = mean_loss(spec.score.loss(), &design, params.values(), exec)?;
        let noisy = loss + scalar_noise(&score.law, generator)?;
        let noisy = score.seal.release(&[noisy], generator)?.values()[0];
        if best.as_ref().is_none_or(|(least, _)| noisy < *least) {
            best = Some((noisy, Selected { index, params }));
        }
        exec.step_done();
    }
    best.map(|(_, selected)| selected).ok_or(Error::Unsupported(
        "candidates must hold at least one candidate, got none".into(),
    ))
}

/// Releases the coefficients of a candidate, moved into the ball of this radius.
///
/// # Privacy
/// As [`release_coefficients`]; the move is post-processing.
pub(crate) fn release_model(
    candidate: &Spec,
    radius: Option<f64>,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    check_design(candidate, design)?;
    check_strong_convexity(candidate, design, exec)?;
    let params = release_coefficients(candidate, design, exec, &mut Sealing(generator))?;
    Ok(params.in_ball(radius))
}
