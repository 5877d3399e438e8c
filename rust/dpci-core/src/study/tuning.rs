//! Repeated simulated tunings, and the losses of simulated models of each candidate. Never private.

use std::sync::Arc;

use super::audit::repeat;
use crate::Result;
use crate::design::Design;
use crate::exec::Executor;
use crate::loss::Loss;
use crate::mechanism::{Values, mean_loss, release_model, release_tuning};
use crate::noise::SimulationGenerator;
use crate::spec::{Spec, TuningSpec, check_common, check_predictor};

/// Runs `n_runs` tunings with noise from `seed`: for each, the index and the parameters, one after the other.
///
/// # Errors
/// As [`release_tuning`].
pub fn simulate_tunings(
    spec: &TuningSpec,
    design: &Design<'_>,
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    repeat(
        n_runs,
        1 + spec.n_params(),
        seed,
        exec,
        |exec, generator, row| {
            let selected = release_tuning(spec, design, exec, generator)?;
            row.push(selected.index as f64);
            row.extend(selected.params.values());
            Ok(())
        },
    )
}

/// Mean of `loss` over the records at `n_runs` simulated models of each candidate, candidate by candidate.
///
/// # Errors
/// As [`crate::mechanism::release_coefficients`]; [`crate::Error::Unsupported`] for candidates that [`TuningSpec::new`] would not compare,
/// or a loss that is not declared for their predictors.
pub fn simulate_losses(
    candidates: &[Spec],
    loss: &Arc<dyn Loss>,
    design: &Design<'_>,
    n_runs: usize,
    seed: u64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    check_common(candidates.iter().map(Spec::choices), &**loss)?;
    for candidate in candidates {
        let radius = candidate.radius().unwrap_or(f64::INFINITY);
        check_predictor(&**loss, candidate.row_norm() * radius)?;
    }
    exec.map(candidates.len().saturating_mul(n_runs), |run| {
        let single = Executor::sequential(exec.cancel_flag());
        let mut generator = SimulationGenerator::new(seed, run as u64);
        let candidate = &candidates[run / n_runs];
        let params = release_model(
            candidate,
            candidate.radius(),
            design,
            &single,
            &mut generator,
        )?;
        mean_loss(&**loss, design, params.values(), &single)
    })
}
