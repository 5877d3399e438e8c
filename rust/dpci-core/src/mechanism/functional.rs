//! The functional mechanism: noise on the coefficients of a quadratic loss polynomial, whose minimiser is post-processing.
//!
//! Zhang, Zhang, Xiao, Yang & Winslett 2012, "Functional mechanism: regression analysis under differential privacy";
//! docs/baselines.md has what differs from the paper.

use super::row_facts::{RowFacts, check_rows};
use super::seal::{Sealed, Values};
use crate::Result;
use crate::design::Design;
use crate::exec::Executor;
use crate::linalg::{add_diagonal, solve_positive_part};
use crate::moments::second_moments;
use crate::noise::{Law, NoiseGenerator, symmetric};
use crate::privacy::{Budget, Calibration};
use crate::row_domain::RowDomain;
use crate::spec::FunctionalSpec;

/// The diagonal is raised by this many standard deviations of its noise (Zhang et al. 2012).
const RIDGE_STD_DEVS: f64 = 4.0;

/// Noise on the quadratic and on the linear coefficients, and the standard deviation of that on a squared parameter.
struct PolynomialNoise {
    quadratic: Vec<f64>,
    linear: Vec<f64>,
    diagonal_std_dev: f64,
}

/// One draw of the noise, in units of R² and RB.
fn draw(spec: &FunctionalSpec, generator: &mut impl NoiseGenerator) -> Result<PolynomialNoise> {
    let (dim, scale) = (spec.n_params(), spec.step().scale);
    let draw = spec.law().sample_bounded(generator)?;
    let (form, linear) = draw.split_at(draw.len() - dim);
    if !matches!(spec.choices().budget, Budget::Pure { .. }) {
        // On the sums Σxxᵀ and Σyx themselves, of which the coefficients are multiples.
        let (q, l) = spec.choices().polynomial.weights();
        let quadratic = symmetric::from_isometric(dim, form);
        return Ok(PolynomialNoise {
            quadratic: quadratic.into_iter().map(|v| q * v).collect(),
            linear: linear.iter().map(|v| l * v).collect(),
            diagonal_std_dev: q * scale,
        });
    }
    let quadratic = if spec.choices().calibration == Calibration::Tight {
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

/// Releases the minimiser of the perturbed polynomial.
///
/// # Privacy
/// Spends the whole budget of `spec`, for its relation and bounds. The query is the pair `q Σxxᵀ`, `l Σyx` in units of R² and RB, with
/// the sensitivities of [`crate::privacy::Polynomial`], also for persons and weighted records, whose terms are convex combinations of
/// those of single rows and 0: independent Laplace noise on the coefficients is ε-DP (Dwork et al. 2006), Gaussian noise on
/// isometric coordinates of the sums ρ-zCDP or (ε, δ)-DP (Bun & Steinke 2016; Balle & Wang 2018). The ridge (four standard deviations
/// of the noise on the diagonal, and the public λ), dropping the directions that are not positive, and solving are post-processing.
pub fn release_functional_mechanism(
    spec: &FunctionalSpec,
    design: &Design<'_>,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<Sealed> {
    let c = spec.choices();
    check_rows(
        design,
        &RowFacts {
            n_params: spec.n_params(),
            terms: c.terms,
            rows: RowDomain::Ball(c.row_norm),
            targets: c.polynomial.targets(),
            intercept: c.intercept,
            weighs_rows: false,
        },
    )?;
    let (dim, [square_unit, cross_unit]) = (spec.n_params(), spec.units());
    let (q, l) = c.polynomial.weights();
    let noise = draw(spec, generator)?;
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
    let [quadratic_seal, linear_seal] = spec.seals();
    let mut quadratic = quadratic_seal.release_symmetric(&quadratic, generator)?.into_values();
    let half_linear = linear_seal.release(&half_linear, generator)?;
    let ridge = RIDGE_STD_DEVS * noise.diagonal_std_dev * square_unit;
    add_diagonal(&mut quadratic, dim, ridge + 0.5 * c.terms.divisor() * c.l2_strength);
    let solved = solve_positive_part(&quadratic, dim, "the noisy polynomial", half_linear.values());
    half_linear.solved(solved?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::SimulationGenerator;
    use crate::privacy::{Neighbors, Polynomial};
    use crate::spec::{FunctionalChoices, Terms};

    /// Mean squares of 4000 draws: of a diagonal entry, one off the diagonal, and a linear coefficient; six standard errors of each are
    /// below a fifth.
    fn assert_variances(budget: Budget, calibration: Calibration, expected: impl Fn(f64) -> [f64; 4]) {
        let spec = FunctionalSpec::new(FunctionalChoices {
            terms: Terms::of_rows(10, Neighbors::ReplaceOne),
            n_columns: 2,
            intercept: None,
            row_norm: 1.0,
            polynomial: Polynomial::Logistic,
            l2_strength: 0.0,
            budget,
            calibration,
        })
        .unwrap();
        let mut generator = SimulationGenerator::new(98, 0);
        let mut sums = [0.0; 3];
        let mut diagonal = 0.0;
        for _ in 0..4000 {
            let noise = draw(&spec, &mut generator).unwrap();
            for (sum, v) in sums
                .iter_mut()
                .zip([noise.quadratic[3], noise.quadratic[1], noise.linear[1]])
            {
                *sum += v * v / 4000.0;
            }
            diagonal = noise.diagonal_std_dev.powi(2);
        }
        let [square, mixed, linear, said] = expected(spec.step().scale);
        for (got, expected) in sums.into_iter().zip([square, mixed, linear]) {
            assert!((got / expected - 1.0).abs() < 0.2, "{budget:?} {sums:?} {expected}");
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
