//! Python bindings: extract, release the interpreter, call the core, map the error, wrap.

mod audit;
mod baselines;
mod blocks;
mod bounds;
mod cost;
mod errors;
mod fit;
mod intervals;
mod levels;
mod loss;
mod newton;
mod parts;
mod per_instance;
mod privacy;
mod records;
mod regression;
mod release;
mod rows;
mod spec;
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
    #[pymodule_export]
    use super::audit::{moment_steps, simulate_seals};
    #[pymodule_export]
    use super::baselines::{FunctionalSpec, HistogramSpec};
    #[pymodule_export]
    use super::blocks::{
        checked_rows, erm_value_and_gradient, gaussian, hessian_and_gradient_cov, laplace,
        minimize_erm, spherical_laplace, symmetric_gaussian, symmetric_matrix_laplace,
        weighted_gram,
    };
    #[pymodule_export]
    use super::bounds::{BoundsSpec, count_cells, release_bounds, release_bounds_parts};
    #[pymodule_export]
    use super::cost::{Budget, Seal, Step};
    #[pymodule_export]
    use super::fit::fit_many;
    #[pymodule_export]
    use super::intervals::{
        ErrorLaw, NewtonStep, NoisyMatrices, error_components, exact_half_widths, exact_pvalues,
        monte_carlo_interval,
    };
    #[pymodule_export]
    use super::levels::{LevelsSpec, release_levels, release_levels_parts};
    #[pymodule_export]
    use super::loss::Loss;
    #[pymodule_export]
    use super::newton::{LastStep, NewtonSpec};
    #[pymodule_export]
    use super::parts::{Request, Sums, part_sums};
    #[pymodule_export]
    use super::per_instance::{RecordBounds, ReportSpec};
    #[pymodule_export]
    use super::privacy::{
        ObjectiveProfile, approx_to_zcdp, check_bounds, check_excess, check_shares, cms11_raised,
        cost_unit, gaussian_delta, gaussian_mu, joint_delta, joint_rest, pure_rdp, pure_to_zcdp,
        step_mu, unsealed, zcdp_to_approx_delta, zcdp_to_approx_epsilon, zcdp_to_pure,
    };
    #[pymodule_export]
    use super::records::Records;
    #[pymodule_export]
    use super::regression::{
        MomentMatrixSpec, clear_of_noise, level_cap, moment_regression, sealed_std_dev,
    };
    #[pymodule_export]
    use super::release::{release, simulate};
    #[pymodule_export]
    use super::rows::RowDomain;
    #[pymodule_export]
    use super::spec::Spec;
    #[pymodule_export]
    use super::study::Study;
    #[pymodule_export]
    use super::terms::Terms;
    #[cfg(feature = "testing")]
    #[pymodule_export]
    use super::testing::Testing;
    #[pymodule_export]
    use super::tuning::{TuningSpec, candidate_losses};
    #[pymodule_export]
    use super::utility::{Utility, UtilityAnchor, UtilityCenter};

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        // The first use looks up NumPy's C interface, and panics if Ctrl-C comes then: better now than after a release.
        numpy::dtype::<f64>(m.py());
        // Reads DPCI_SIMD while nothing else runs: later, another thread may be changing the environment.
        let _ = dpci_core::linalg::instruction_set();
        m.add("LANES", dpci_core::study::GROUP)?;
        m.add("LEVELS", dpci_core::loss::LEVELS)?;
        m.add("SEEN_CURVATURE", dpci_core::interval::SEEN_CURVATURE)?;
        m.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
