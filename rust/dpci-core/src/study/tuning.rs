//! The losses of simulated models of each candidate of a tuning. Never private.

use std::sync::Arc;

use crate::Result;
use crate::design::Design;
use crate::exec::Executor;
use crate::loss::Loss;
use crate::mechanism::{Values, mean_loss, release_model};
use crate::noise::SimulationGenerator;
use crate::spec::{Spec, check_common, check_predictor};

/// Mean of `loss` over the records at `n_runs` simulated models of each candidate, candidate by candidate.
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
        let params = release_model(candidate, candidate.radius(), design, &single, &mut generator)?;
        mean_loss(&**loss, design, params.values(), &single)
    })
}
