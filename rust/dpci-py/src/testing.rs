//! Functions for tests alone: release samplers on a simulation generator and the words they drew, to compute the same draws with
//! more digits; words of the release generator; the elementary functions; the sums that releases add noise to; suprema of losses;
//! the law of the number of runs; an error of each kind.

use std::sync::Arc;

use dpci_core::design::OnViolation;
use dpci_core::linalg::{check_matrix_dim, instruction_set};
use dpci_core::moments::data_moments;
use dpci_core::noise::{
    AnyLaw, DiscreteGaussian, DiscreteLaplace, Law, ReleaseGenerator, ShapedGaussian, ShapedLaplace,
    SimulationGenerator, SquareLaplace,
};
use dpci_core::objective::{HessianRows, Objective};
use dpci_core::privacy;
use dpci_core::row_domain::Blocks;
use dpci_core::{Error, Result};
use numpy::PyArray1;
use pyo3::prelude::*;
use rand::Rng;

use crate::blocks::{draws, law_of};
use crate::errors::to_python;
use crate::fit::Spec;
use crate::loss::Loss;
use crate::privacy::ObjectiveProfile;
use crate::records::Records;
use crate::release::Kind as _;
use crate::rows::{RowDomain, blocks_of};
use crate::task;
use crate::values::{Floats, Matrix, Vector};

fn unknown(name: &str) -> Error {
    Error::Unsupported(format!("name must be that of a law or function, got {name:?}"))
}

/// The law of this name, and how many numbers a draw has.
fn law(name: &str, dim: usize, scale: f64, blocks: Option<&Arc<Blocks>>) -> Result<(AnyLaw, usize)> {
    Ok(match name {
        "shaped_laplace" => {
            let blocks = blocks.ok_or_else(|| unknown("shaped_laplace without rows"))?;
            (ShapedLaplace::new(Arc::clone(blocks), 1.0 / scale)?.into(), dim)
        }
        "shaped_gaussian" => {
            let blocks = blocks.ok_or_else(|| unknown("shaped_gaussian without rows"))?;
            (ShapedGaussian::new(blocks, scale)?.into(), dim)
        }
        "square_laplace" => {
            check_matrix_dim(dim)?;
            (SquareLaplace::new(dim, 1.0 / scale)?.into(), dim * dim)
        }
        other => return law_of(other, dim, scale),
    })
}

/// One error of each variant but the interrupt, as releases raise them.
fn samples() -> Vec<Error> {
    let (least, value, tolerance) = (0.5, 0.25, 1e-9);
    vec![
        Error::OutOfRange {
            name: "epsilon",
            rule: "finite and > 0",
            value: -1.0,
        },
        Error::Length {
            name: "weights",
            expected: 3,
            got: 2,
        },
        Error::Empty { rows: 0, params: 2 },
        Error::NonFiniteRow {
            row: 1,
            column: 2,
            value: f64::INFINITY,
        },
        Error::Target {
            rule: "-1 or 1".into(),
            row: 1,
            value: 3.0,
        },
        Error::Weight {
            row: 1,
            value: 3.0,
            bound: 2.0,
        },
        Error::RowNorm {
            row: 1,
            norm: 3.0,
            bound: 2.0,
        },
        Error::RowBlock {
            row: 1,
            column: 2,
            size: 4,
            sum: 3.0,
            bound: 2.0,
        },
        Error::RowTooLong { norm: 1e200 },
        Error::RowTooShort { norm: 0.5 },
        Error::RowsChanged("fewer".into()),
        Error::TooManyRecords {
            n_public: 10.0,
            n_records: 200.0,
        },
        Error::TooManyRows { greatest: 10, got: 11 },
        Error::RegularizationTooSmall {
            least,
            value,
            epsilon: 1.5,
        },
        Error::RidgeBelowNoise { least, value },
        Error::IllConditioned { least, value },
        Error::TooFewDigits {
            least: 1e-7,
            tolerance,
            value,
        },
        Error::Unsupported("the hinge has no second derivative".into()),
        Error::NotConverged {
            tolerance,
            certificate: 1e-7,
            iterations: 12,
            reason: "no progress",
        },
        Error::Loss("nan".into()),
        Error::NotPositiveDefinite("the Hessian"),
        Error::NonFiniteRelease {
            name: "params",
            value: f64::INFINITY,
        },
        Error::NoiseTail,
        Error::Entropy("no device".into()),
        Error::Resource("no thread".into()),
    ]
}

/// Functions for tests alone, in a build with the feature `testing`.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct Testing;

#[pymethods]
impl Testing {
    /// Whether mistakes can be switched on, for tests of the tests: in no build that is installed.
    #[classattr]
    const SEEDED_BUGS: bool = dpci_core::bugs::SEEDED;

    /// Refusals that the data can cause: what is refused, when, what the message shows, and whether clipping leaves it.
    #[staticmethod]
    fn refusals() -> Vec<(&'static str, &'static str, &'static str, bool)> {
        let all = dpci_core::refusals::ALL.iter();
        all.map(|r| (r.what, r.when, r.shows, r.remains)).collect()
    }

    /// `n` draws of a release from the words of a simulation generator, and their greatest distance from ideal ones.
    #[staticmethod]
    #[pyo3(signature = (name, n, dim, scale, seed, rows=None))]
    fn bounded_noise(
        py: Python<'_>,
        name: &str,
        n: usize,
        dim: usize,
        scale: f64,
        seed: u64,
        rows: Option<PyRef<'_, RowDomain>>,
    ) -> PyResult<(Matrix, f64)> {
        let blocks = blocks_of(rows.as_ref());
        let (law, width) = law(name, dim, scale, blocks).map_err(to_python)?;
        let mut generator = SimulationGenerator::new(seed, 0);
        let values = draws(py, n, width, || law.sample_bounded(&mut generator))?;
        Ok((Matrix::new(values, [n, width]), law.error_bound()))
    }

    /// Draws of a discrete law from those words.
    #[staticmethod]
    fn discrete_noise(py: Python<'_>, name: &str, n: usize, scale: u64, seed: u64) -> PyResult<Vec<i128>> {
        task::run(py, |_| {
            let mut generator = SimulationGenerator::new(seed, 0);
            let indexes = 0..n;
            Ok(match name {
                "laplace" => {
                    let law = DiscreteLaplace::new(scale)?;
                    indexes.map(|_| law.sample(&mut generator)).collect()
                }
                "gaussian" => {
                    let law = DiscreteGaussian::new(scale)?;
                    indexes.map(|_| law.sample(&mut generator)).collect()
                }
                other => return Err(unknown(other)),
            })
        })
    }

    /// The first words of the simulation generator of this seed.
    #[staticmethod]
    fn simulation_bits(py: Python<'_>, n: usize, seed: u64) -> Bound<'_, PyArray1<u64>> {
        let mut generator = SimulationGenerator::new(seed, 0);
        PyArray1::from_vec(py, (0..n).map(|_| generator.next_u64()).collect())
    }

    /// Instruction set of the kernels: `"scalar"`, `"v3"` or `"v4"` (`"native"` on other processors than x86-64).
    #[staticmethod]
    #[pyo3(name = "instruction_set")]
    fn level() -> &'static str {
        instruction_set()
    }

    /// An elementary function as the noise uses it.
    #[staticmethod]
    fn elementary(name: &str, x: Floats<'_>) -> PyResult<Vector> {
        let function = match name {
            "cos" => libm::cos,
            "log" => libm::log,
            "log1p" => libm::log1p,
            "sin" => libm::sin,
            other => return Err(to_python(unknown(other))),
        };
        Ok(Vector(x.as_slice()?.iter().map(|x| function(*x)).collect()))
    }

    /// `Σ g`, and the sums of Hessians and of squared gradients, over the records: neighbours' differences are sensitivities.
    #[staticmethod]
    #[pyo3(signature = (spec, records, params))]
    fn sums(
        py: Python<'_>,
        spec: &Bound<'_, Spec>,
        records: &Bound<'_, Records>,
        params: Vec<f64>,
    ) -> PyResult<[Vector; 3]> {
        let arrays = records.get().arrays(py)?;
        let data = arrays.data()?;
        let spec = spec.get();
        let found = task::run_over(py, &data, Some(1), |exec| {
            let choices = spec.inner.choices();
            let design = data.design(&spec.rules(OnViolation::Error), exec)?.compacted(exec)?;
            let objective = Objective {
                records: &design,
                loss: &*choices.loss,
                weights: None,
                l2_strength: 0.0,
                extra_convexity: 0.0,
                linear_term: None,
                n_samples: 1.0,
                exec,
            };
            let risk = objective.evaluate(&params, HessianRows::None)?;
            let moments = data_moments(&design, &*choices.loss, &params, 1.0, exec)?;
            Ok([risk.gradient, moments.curvature, moments.squared_slope])
        })?;
        Ok(found.map(Vector))
    }

    /// Greatest distance between the gradients of two records at one point with predictors up to `radius`.
    #[staticmethod]
    fn gradient_diameter(loss: &Loss, row_norm: f64, radius: f64) -> f64 {
        loss.inner.gradient_diameter(row_norm, radius)
    }

    /// `sup (k ℓ'' + ℓ'²)` over predictors up to `radius`.
    #[staticmethod]
    fn sup_weighted_sum(loss: &Loss, k: f64, radius: f64) -> f64 {
        loss.inner.sup_weighted_sum(k, radius)
    }

    /// `sup √((α ℓ'')² + ℓ'⁴)` over the same.
    #[staticmethod]
    fn sup_joint_norm(loss: &Loss, alpha: f64, radius: f64) -> f64 {
        loss.inner.sup_joint_norm(alpha, radius)
    }

    /// Bound on the logarithm of how far a unit changes the determinant: `r ln(1 + κ/r)`, rounded up.
    #[staticmethod]
    fn log_det(profile: &ObjectiveProfile) -> f64 {
        profile.inner.log_det
    }

    /// Law of the number of runs, and what releasing the best of them costs.
    #[staticmethod]
    fn run_count(shape: f64, mean: f64) -> PyResult<RunCount> {
        let inner = privacy::RunCount::new(shape, mean).map_err(to_python)?;
        Ok(RunCount { inner })
    }

    /// One exception of each variant, as it would be raised.
    #[staticmethod]
    fn errors(py: Python<'_>) -> Vec<Bound<'_, PyAny>> {
        let raised = samples().into_iter().map(to_python);
        raised.map(|e| e.into_value(py).into_bound(py).into_any()).collect()
    }

    /// Words of the release generator, to test its independence across forks and threads.
    #[staticmethod]
    fn release_bits(py: Python<'_>, n: usize) -> PyResult<Bound<'_, PyArray1<u64>>> {
        let mut generator = ReleaseGenerator::new().map_err(to_python)?;
        let words = (0..n).map(|_| generator.next_u64()).collect();
        Ok(PyArray1::from_vec(py, words))
    }
}

/// Law of the number of runs, and what releasing the best run costs.
#[pyclass(frozen, module = "dpci._core")]
pub(crate) struct RunCount {
    inner: privacy::RunCount,
}

#[pymethods]
impl RunCount {
    /// `P(K = k)` for k from 1 to the greatest number of runs.
    fn probabilities(&self) -> Vector {
        Vector(self.inner.probabilities())
    }

    fn run_epsilon(&self, epsilon: f64) -> PyResult<f64> {
        self.inner.run_epsilon(epsilon).map_err(to_python)
    }

    fn rdp(&self, order: f64, rho: f64) -> f64 {
        self.inner.rdp(order, rho)
    }

    fn delta(&self, epsilon: f64, rho: f64) -> PyResult<f64> {
        self.inner.delta(epsilon, rho).map_err(to_python)
    }

    fn run_rho(&self, epsilon: f64, delta: f64) -> PyResult<f64> {
        self.inner.run_rho(epsilon, delta).map_err(to_python)
    }
}
