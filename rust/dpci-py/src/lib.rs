//! Python bindings: extract, release the interpreter, call the core, map the error, wrap.

mod baselines;
mod blocks;
mod bounds;
mod cost;
mod errors;
mod fit;
mod intervals;
mod loss;
mod names;
mod newton;
mod parts;
mod per_instance;
mod privacy;
mod records;
mod regression;
mod release;
mod rows;
mod study;
mod task;
mod terms;
#[cfg(feature = "testing")]
mod testing;
mod tuning;
mod utility;
mod values;

use pyo3::prelude::*;

// Every class is frozen, and nothing that can change is shared between calls: no call needs the interpreter's lock.
#[pymodule(gil_used = false)]
mod _core {
    #[cfg(feature = "testing")]
    #[pymodule_export]
    use super::testing::Testing;
    #[pymodule_export]
    use super::{
        baselines::{FunctionalSpec, HistogramSpec},
        blocks::{
            checked_rows, draw_noise, erm_value_and_gradient, hessian_and_gradient_cov, minimize_erm, weighted_gram,
        },
        bounds::{BoundsSpec, CountsSpec, LevelsSpec, count_cells, release_bounds, release_counts, release_levels},
        cost::{Budget, Seal, Step},
        fit::{Spec, fit_many},
        intervals::{ErrorLaw, ErrorShape, NewtonStep, error_components, estimated_matrices, monte_carlo_interval},
        loss::Loss,
        newton::{LastStep, NewtonSpec},
        parts::{Request, Sums, part_sums},
        per_instance::{RecordBounds, ReportSpec},
        privacy::{
            ObjectiveProfile, approx_to_zcdp, check_bounds, check_excess, check_shares, clear_of_noise, cms11_raised,
            cost_unit, gaussian_delta, gaussian_mu, joint_delta, joint_rest, pure_rdp, pure_to_zcdp, sealed_std_dev,
            step_mu, unsealed, zcdp_to_approx_delta, zcdp_to_approx_epsilon, zcdp_to_pure,
        },
        records::Records,
        regression::{MomentMatrixSpec, level_cap, moment_regression},
        release::{moment_steps, release, simulate, simulate_seals},
        rows::RowDomain,
        study::Study,
        terms::Terms,
        tuning::{TuningSpec, candidate_losses},
        utility::{Utility, UtilityAnchor, UtilityCenter},
    };

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        // The first use looks up NumPy's C interface, and panics if Ctrl-C comes then: better now than after a release.
        numpy::dtype::<f64>(m.py());
        // Reads DPCI_SIMD while nothing else runs: later, another thread may be changing the environment.
        let _ = dpci_core::linalg::instruction_set();
        m.add("LANES", dpci_core::study::GROUP)?;
        m.add("LEVELS", dpci_core::loss::LEVELS)?;
        m.add("FINER_LEVELS", dpci_core::noise::LevelTotals::FINER)?;
        m.add("SEEN_CURVATURE", dpci_core::interval::SEEN_CURVATURE)?;
        m.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
