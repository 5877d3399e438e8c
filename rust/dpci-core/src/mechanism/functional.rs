//! The functional mechanism: noise on the coefficients of a quadratic loss polynomial, whose minimiser is post-processing.
//!
//! Zhang, Zhang, Xiao, Yang & Winslett 2012, "Functional mechanism: regression analysis under differential privacy";
//! docs/baselines.md has the sensitivities and what differs from the paper.

use super::costs::{Cost, Step};
use super::fit::{RowFacts, check_rows};
use super::seal::{Seal, Sealed};
use super::sealing::{mean_rounding, share_seal};
use crate::design::{Design, row_norm_bound};
use crate::exec::Executor;
use crate::linalg::{add_diagonal, solve_positive_part};
use crate::moments::{second_moment_rounding, second_moments};
use crate::noise::{Gaussian, Laplace, NoiseGenerator, symmetric};
use crate::privacy::{
    Budget, Calibration, Neighbors, Polynomial, gaussian_mu, gaussian_std_dev, laplace_rate,
};
use crate::{Error, Result};

/// More parameters would make one eigendecomposition, which cannot be interrupted, take minutes.
const MAX_PARAMS: usize = 4096;

/// The diagonal is raised by this many standard deviations of its noise (Zhang et al. 2012).
const RIDGE_STD_DEVS: f64 = 4.0;

/// What the caller chooses; [`FunctionalSpec::new`] validates it.
#[derive(Debug, Clone, Copy)]
pub struct FunctionalChoices {
    /// Public number of samples (the public `n₀` under add/remove).
    pub n_samples: usize,
    /// Columns of the data, without the intercept.
    pub n_columns: usize,
    /// The constant appended to each row.
    pub intercept: Option<f64>,
    /// Bound on the norm of a row, without the intercept.
    pub row_norm: f64,
    /// The polynomial.
    pub polynomial: Polynomial,
    /// λ ≥ 0 of `(λ/2)‖θ‖²` in the mean objective.
    pub l2_strength: f64,
    /// Budget.
    pub budget: Budget,
    /// Tight sensitivities or the printed ones.
    pub calibration: Calibration,
    /// Neighbouring relation.
    pub neighbors: Neighbors,
}

/// Validated choices, calibrated. Holds no data.
#[derive(Debug, Clone)]
pub struct FunctionalSpec {
    choices: FunctionalChoices,
    row_norm: f64,
    n_params: usize,
    step: Step,
    /// Of the quadratic and of the linear coefficients.
    seals: [Seal; 2],
}

/// Noise on the quadratic and on the linear coefficients, and the standard deviation of that on a squared parameter.
struct PolynomialNoise {
    quadratic: Vec<f64>,
    linear: Vec<f64>,
    diagonal_std_dev: f64,
}

impl FunctionalSpec {
    /// Calibrates the noise.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`], [`Error::Unsupported`] for combinations that are not offered.
    pub fn new(choices: FunctionalChoices) -> Result<Self> {
        let c = &choices;
        for (name, value) in [
            ("row_norm", c.row_norm),
            ("intercept_scale", c.intercept.unwrap_or(1.0)),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return out_of_range(name, "finite and > 0", value);
            }
        }
        if !(c.l2_strength >= 0.0 && c.l2_strength.is_finite()) {
            return out_of_range("l2_strength", "finite and >= 0", c.l2_strength);
        }
        let n_params = c.n_columns + usize::from(c.intercept.is_some());
        if c.n_samples == 0 || n_params == 0 {
            return Err(Error::Empty {
                rows: c.n_samples,
                params: n_params,
            });
        }
        if n_params > MAX_PARAMS {
            let name = "the number of parameters of the functional mechanism";
            return out_of_range(name, "at most 4096", n_params as f64);
        }
        let row_norm = row_norm_bound(c.row_norm, c.intercept);
        let (rest, seal) = c.budget.split_off_seal();
        let step = calibrated(c, rest, n_params)?;
        // Extreme bounds leave no representable scale.
        let units = units(c, row_norm);
        if !units.iter().all(|unit| (unit * step.scale).is_normal()) {
            let rule = "such that the noise has a finite scale in double precision";
            return out_of_range("row_norm", rule, c.row_norm);
        }
        let draw = match step.cost {
            Cost::Epsilon(_) => Laplace::new(n_noises(c, n_params), step.scale)?.error_bound(),
            _ => Gaussian::new(n_noises(c, n_params), step.scale)?.error_bound(),
        };
        let n = c.n_samples as f64;
        let sums = n * mean_rounding(second_moment_rounding, n, c.neighbors);
        // No weight of a sum or of its noise is above 1, and shaping the noise errs by less than the draw.
        let distance = |unit: f64| unit * (sums + 3.0 * draw);
        let cost = share_seal(seal, 2);
        let seals = [
            Seal::new(
                "polynomial",
                symmetric::isometric_dim(n_params),
                distance(units[0]),
                cost,
            )?,
            Seal::new("polynomial", n_params, distance(units[1]), cost)?,
        ];
        Ok(Self {
            choices,
            row_norm,
            n_params,
            step,
            seals,
        })
    }

    /// How the quadratic and the linear coefficients are sealed.
    #[must_use]
    pub fn seals(&self) -> &[Seal; 2] {
        &self.seals
    }

    /// The validated choices.
    #[must_use]
    pub fn choices(&self) -> &FunctionalChoices {
        &self.choices
    }

    /// What is spent.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// One draw of the noise, in units of R² and RB.
    fn draw(&self, generator: &mut impl NoiseGenerator) -> Result<PolynomialNoise> {
        let (dim, scale) = (self.n_params, self.step.scale);
        let isometric_dim = symmetric::isometric_dim(dim);
        if !matches!(self.choices.budget, Budget::Pure { .. }) {
            // On the sums Σxxᵀ and Σyx themselves, of which the coefficients are multiples.
            let draw = Gaussian::new(isometric_dim + dim, scale)?.sample_bounded(generator)?;
            let (q, l) = self.choices.polynomial.weights();
            let (matrix, vector) = draw.split_at(isometric_dim);
            let quadratic = symmetric::from_isometric(dim, matrix);
            return Ok(PolynomialNoise {
                quadratic: quadratic.into_iter().map(|v| q * v).collect(),
                linear: vector.iter().map(|v| l * v).collect(),
                diagonal_std_dev: q * scale,
            });
        }
        let count = n_noises(&self.choices, dim);
        let draw = Laplace::new(count, scale)?.sample_bounded(generator)?;
        let (form, linear) = draw.split_at(count - dim);
        let quadratic = if self.choices.calibration == Calibration::Tight {
            symmetric::from_monomials(dim, form)
        } else {
            symmetric::from_entries(dim, form)
        };
        Ok(PolynomialNoise {
            quadratic,
            linear: linear.to_vec(),
            diagonal_std_dev: std::f64::consts::SQRT_2 * scale,
        })
    }
}

/// R² and RB: what the coefficients of rows with norm at most 1 and targets within ±1 are multiplied by.
fn units(c: &FunctionalChoices, row_norm: f64) -> [f64; 2] {
    [row_norm.powi(2), row_norm * c.polynomial.target_bound()]
}

/// How many independent noises there are: one for each coefficient, or, as printed, for each entry of the matrix under pure DP.
fn n_noises(c: &FunctionalChoices, dim: usize) -> usize {
    let printed = matches!(c.budget, Budget::Pure { .. }) && c.calibration == Calibration::Paper;
    let quadratic = if printed {
        dim * dim
    } else {
        symmetric::isometric_dim(dim)
    };
    quadratic + dim
}

fn out_of_range<T>(name: &'static str, rule: &'static str, value: f64) -> Result<T> {
    Err(Error::OutOfRange { name, rule, value })
}

/// The noise of the whole budget: Laplace on the coefficients under pure DP, Gaussian on the sums otherwise.
fn calibrated(c: &FunctionalChoices, budget: Budget, n_params: usize) -> Result<Step> {
    let (cost, sensitivity) = match budget {
        Budget::Pure { epsilon } => {
            let sensitivity = c
                .polynomial
                .l1_sensitivity(n_params, c.neighbors, c.calibration);
            (Cost::Epsilon(epsilon), sensitivity)
        }
        Budget::Zcdp { rho } => {
            let sensitivity = Polynomial::l2_sensitivity(n_params, c.neighbors, c.calibration)?;
            (Cost::Rho(rho), sensitivity)
        }
        Budget::Approx { epsilon, delta } => {
            let sensitivity = Polynomial::l2_sensitivity(n_params, c.neighbors, c.calibration)?;
            let mu = gaussian_mu(epsilon, delta)?;
            (Cost::MuSquared(mu * mu), sensitivity)
        }
    };
    let (noise, scale) = noise_of(cost, sensitivity)?;
    Ok(Step {
        name: "polynomial",
        noise,
        cost,
        scale,
        hessian_scale: None,
        sensitivity,
    })
}

/// The family and the scale of independent noise of this cost: Laplace for an L1 sensitivity and pure DP, else Gaussian for an L2
/// sensitivity.
pub(super) fn noise_of(cost: Cost, sensitivity: f64) -> Result<(&'static str, f64)> {
    let (family, scale) = match cost {
        Cost::Epsilon(epsilon) => ("laplace", 1.0 / laplace_rate(sensitivity, epsilon)?),
        cost => ("gaussian", gaussian_std_dev(sensitivity, cost.mu())?),
    };
    if !scale.is_normal() {
        let rule = "such that the noise has a finite scale in double precision";
        return out_of_range("budget", rule, cost.value());
    }
    Ok((family, scale))
}

/// Releases the minimiser of the perturbed polynomial.
///
/// # Privacy
/// Spends the whole budget of `spec`, for its relation and bounds. The query is the pair `q Σxxᵀ`, `l Σyx` in units of R² and RB, with
/// the sensitivities of [`Polynomial`]: independent Laplace noise on the coefficients is ε-DP (Dwork et al. 2006), Gaussian noise on
/// isometric coordinates of the sums ρ-zCDP or (ε, δ)-DP (Bun & Steinke 2016; Balle & Wang 2018). The ridge (four standard deviations
/// of the noise on the diagonal, and the public λ), dropping the directions that are not positive, and solving are post-processing.
///
/// # Errors
/// [`Error::Length`] and [`Error::Unsupported`] for rows of another shape or checked against other bounds, [`Error::Interrupted`],
/// [`Error::NonFiniteRelease`]; nothing is released then.
pub fn release_functional_mechanism(
    spec: &FunctionalSpec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    let c = &spec.choices;
    check_rows(
        design,
        &RowFacts {
            n_params: spec.n_params,
            n_samples: c.n_samples,
            neighbors: c.neighbors,
            row_norm: c.row_norm,
            targets: c.polynomial.targets(),
            intercept: c.intercept,
        },
    )?;
    let (dim, [square_unit, cross_unit]) = (spec.n_params, units(c, spec.row_norm));
    let (q, l) = c.polynomial.weights();
    let noise = spec.draw(generator)?;
    let sums = second_moments(design, exec)?;
    // θᵀQθ - cᵀθ, whose minimiser solves Qθ = c/2.
    let mut quadratic = sums.gram;
    for (value, noise) in quadratic.iter_mut().zip(&noise.quadratic) {
        *value = q * *value + square_unit * noise;
    }
    let mut half_linear = sums.cross;
    for (value, noise) in half_linear.iter_mut().zip(&noise.linear) {
        *value = 0.5 * (l * *value + cross_unit * noise);
    }
    let [quadratic_seal, linear_seal] = &spec.seals;
    let mut quadratic = quadratic_seal
        .release_symmetric(&quadratic, generator)?
        .into_values();
    let half_linear = linear_seal.release(&half_linear, generator)?;
    let ridge = RIDGE_STD_DEVS * noise.diagonal_std_dev * square_unit;
    add_diagonal(
        &mut quadratic,
        dim,
        ridge + 0.5 * c.n_samples as f64 * c.l2_strength,
    );
    let solved = solve_positive_part(
        &quadratic,
        dim,
        "the noisy polynomial",
        half_linear.values(),
    );
    half_linear.solved(solved?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;

    /// Mean squares of 4000 draws: of a diagonal entry, one off the diagonal, and a linear coefficient; six standard errors of each are
    /// below a fifth.
    fn assert_variances(
        budget: Budget,
        calibration: Calibration,
        expected: impl Fn(f64) -> [f64; 4],
    ) {
        let spec = FunctionalSpec::new(FunctionalChoices {
            n_samples: 10,
            n_columns: 2,
            intercept: None,
            row_norm: 1.0,
            polynomial: Polynomial::Logistic,
            l2_strength: 0.0,
            budget,
            calibration,
            neighbors: Neighbors::ReplaceOne,
        })
        .unwrap();
        let mut generator = SimulationGenerator::new(98, 0);
        let mut sums = [0.0; 3];
        let mut diagonal = 0.0;
        for _ in 0..4000 {
            let noise = spec.draw(&mut generator).unwrap();
            for (sum, v) in
                sums.iter_mut()
                    .zip([noise.quadratic[3], noise.quadratic[1], noise.linear[1]])
            {
                *sum += v * v / 4000.0;
            }
            diagonal = noise.diagonal_std_dev.powi(2);
        }
        let [square, mixed, linear, said] = expected(spec.step.scale);
        for (got, expected) in sums.into_iter().zip([square, mixed, linear]) {
            assert!(
                (got / expected - 1.0).abs() < 0.2,
                "{budget:?} {sums:?} {expected}"
            );
        }
        assert!((diagonal / said - 1.0).abs() < 1e-12);
    }

    #[test]
    fn noise_of_coefficients_and_of_sums() {
        let (q, l) = Polynomial::Logistic.weights();
        // Laplace of variance 2s² on each coefficient, of which an entry off the diagonal is a half.
        let pure = Budget::Pure { epsilon: 1.0 };
        assert_variances(pure, Calibration::Tight, |s| {
            [2.0 * s * s, s * s / 2.0, 2.0 * s * s, 2.0 * s * s]
        });
        // As printed on each entry, of which two are averaged.
        assert_variances(pure, Calibration::Paper, |s| {
            [2.0 * s * s, s * s, 2.0 * s * s, 2.0 * s * s]
        });
        // Gaussian on the sums: an entry off the diagonal is 1/√2 of an isometric coordinate.
        assert_variances(Budget::Zcdp { rho: 0.5 }, Calibration::Tight, |s| {
            let square = q * q * s * s;
            [square, square / 2.0, l * l * s * s, square]
        });
    }
}
