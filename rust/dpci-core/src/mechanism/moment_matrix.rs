//! Linear regression from one moment matrix: the noisy mean of `zzᵀ`, and where planned that of the squared residuals' moments.

use super::row_facts::{RowFacts, check_rows};
use super::seal::{Sealed, Values};
use crate::Result;
use crate::error::check_length;
use crate::exec::Executor;
use crate::linalg::{Eigen, vector};
use crate::noise::{AnyLaw, Law, NoiseGenerator, NoiseLaw};
use crate::records::{Capped, HessianRows, Records, Request};
use crate::spec::{LevelCap, MatrixNoise, MomentMatrixSpec, Planned, ResidualPlan, Seal, Step, clear_of_noise};

/// A released moment matrix.
#[derive(Debug, Clone)]
pub struct MomentMatrixRelease {
    /// The mean of `zzᵀ`, `z = (x, s, t·y)`, row-major.
    pub matrix: Sealed,
    /// Moments of residuals, one for each planned regression.
    pub residuals: Vec<ResidualMoments>,
    /// Levels and gradients, one for each refined regression.
    pub gradients: Vec<ResidualGradient>,
}

/// Released moments of the residuals of one regression.
#[derive(Debug, Clone)]
pub struct ResidualMoments {
    /// The coefficients of `(x, s)` that residuals are the response less; 0 but for regressors.
    pub point: Vec<f64>,
    /// The mean of `r² xxᵀ`, x the regressors.
    pub moments: Sealed,
    /// Its noise.
    pub noise: Planned<MatrixNoise>,
}

/// The released gradient of one regression at the coefficients that the matrix gives.
#[derive(Debug, Clone)]
pub struct ResidualGradient {
    /// Where it is taken, and the noise of both releases.
    pub planned: PlannedGradient,
    /// The share of the records at each level of the greatest residual.
    pub levels: Sealed,
    /// The mean of `(c x, ω c²/cap)`, x the regressors and c the residuals held to the cap.
    pub gradient: Sealed,
}

/// Where a gradient is taken, and the noise of its levels and of itself.
#[derive(Debug, Clone)]
pub struct PlannedGradient {
    /// The coefficients of `(x, s)` that residuals are the response less; 0 but for regressors.
    pub point: Vec<f64>,
    /// The greatest residual that counts.
    pub cap: f64,
    /// ω.
    pub square_weight: f64,
    /// The noise of the levels.
    pub level_noise: Planned<AnyLaw>,
    /// The noise of the gradient.
    pub noise: Planned<NoiseLaw>,
}

impl PlannedGradient {
    /// At a place, beside levels of the residuals there, which call for the cap.
    fn at(
        spec: &MomentMatrixSpec,
        plan: &ResidualPlan,
        place: Place,
        level_noise: Planned<AnyLaw>,
        levels: &[f64],
    ) -> Result<Self> {
        let step = &level_noise.step;
        let found = LevelCap::new(levels, step.noise.name(), step.scale)?;
        let cap = spec.greatest_residual(plan, place.norm) * found.cap;
        Ok(Self {
            point: place.point,
            cap,
            square_weight: spec.square_weight(plan),
            level_noise,
            noise: spec.gradient_noise(plan, cap)?,
        })
    }
}

impl MomentMatrixRelease {
    /// Steps of the release, each with its cost.
    pub fn steps(&self, spec: &MomentMatrixSpec) -> Vec<Step> {
        let residual = self.residuals.iter().map(|r| r.noise.step.clone());
        let levels = self.gradients.iter().map(|g| g.planned.level_noise.step.clone());
        let gradients = self.gradients.iter().map(|g| g.planned.noise.step.clone());
        std::iter::once(spec.step().clone())
            .chain(residual)
            .chain(levels)
            .chain(gradients)
            .collect()
    }

    /// How the values were sealed.
    pub fn seals(&self, spec: &MomentMatrixSpec) -> Vec<Seal> {
        let residual = self.residuals.iter().map(|r| r.noise.seal);
        let levels = self.gradients.iter().map(|g| g.planned.level_noise.seal);
        let gradients = self.gradients.iter().map(|g| g.planned.noise.seal);
        std::iter::once(*spec.seal())
            .chain(residual)
            .chain(levels)
            .chain(gradients)
            .collect()
    }
}

/// Releases the mean of `zzᵀ` over the records, then, for each planned regression, `(1/n) Σ r² xxᵀ` at the coefficients that it gives,
/// or the levels of the residuals there and a gradient.
///
/// # Privacy
/// Spends the whole budget of `spec`, for its relation and bounds. Every record, its targets weighted, obeys `‖z‖ ≤ R`, so two records' terms differ by at most
/// `√2·R²` in Frobenius and `2R²` in nuclear norm: Gaussian noise on isometric coordinates is ρ-zCDP or (ε, δ)-DP, the symmetric matrix
/// Laplace law ε-DP. Given the released matrix each other release is one of terms `r² xxᵀ` whose residuals the released coefficients
/// bound; they compose adaptively.
pub fn release_moment_matrix(
    spec: &MomentMatrixSpec,
    records: &dyn Records,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<MomentMatrixRelease> {
    let c = spec.choices();
    check_rows(
        records,
        &RowFacts {
            n_params: spec.n_params(),
            terms: c.terms,
            rows: c.rows.clone(),
            targets: spec.loss().targets(),
            intercept: Some(spec.intercept()),
            weighs_rows: false,
        },
    )?;
    let matrix = noisy(
        moment_sums(spec, records, exec)?,
        &spec.noise().law.on(spec.dim())?,
        generator,
    )?;
    let matrix = spec.seal().release_symmetric(&matrix, generator)?;
    let residuals = c
        .residuals
        .iter()
        .map(|plan| release_residual_moments(spec, plan, &matrix, records, exec, generator));
    let residuals = residuals.collect::<Result<_>>()?;
    let refined = c.refined.iter();
    let gradients = refined.map(|plan| release_gradient(spec, plan, &matrix, records, exec, generator));
    let gradients = gradients.collect::<Result<_>>()?;
    Ok(MomentMatrixRelease {
        matrix,
        residuals,
        gradients,
    })
}

/// Releases `(1/n) Σ r² xxᵀ`, `r` the residuals at coefficients that follow from the released matrix, held to a cap that does.
///
/// # Privacy
/// Spends what `spec` has for it: given the released matrix, a sum of positive semidefinite terms of rank one and norm at most `cap²‖x‖²`.
fn release_residual_moments(
    spec: &MomentMatrixSpec,
    plan: &ResidualPlan,
    matrix: &Sealed,
    records: &dyn Records,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<ResidualMoments> {
    let params = spec.n_params();
    let place = Place::of(spec, plan, matrix.values())?;
    let cap = place.cap(spec, plan);
    let noise = spec.residual_noise(plan, cap)?;
    let Place { point, predicted, .. } = place;
    // Slopes of the squared loss are twice the residuals.
    let request = Request::Capped {
        of: Capped::Slopes,
        params: predicted,
        cap: 2.0 * cap,
        targets: plan.with_target(),
    };
    let sums = records.sums(&request, &**spec.loss(), None, exec)?;
    let n = spec.choices().terms.divisor();
    let grams = sums.grams.into_iter();
    let whole: Vec<f64> = grams.flat_map(|gram| gram.finish(4.0 * n)).collect();
    let moments = principal(&whole, params, &plan.regressors);
    let moments = noisy(moments, &noise.law.law.on(plan.regressors.len())?, generator)?;
    let moments = noise.seal.release_symmetric(&moments, generator)?;
    Ok(ResidualMoments { point, moments, noise })
}

/// Releases the share of the records at each level of the residuals at coefficients that follow from the released matrix, then
/// `(1/n) Σ (c x, ω c²/cap)`, `c` these residuals held to a cap that follows from the released shares.
///
/// # Privacy
/// Spends what `spec` has for it: given the released matrix, a sum of shares that add up to at most 1 for each record; given these too,
/// a sum of terms of norm at most `cap·√(‖x‖² + ω²)`.
fn release_gradient(
    spec: &MomentMatrixSpec,
    plan: &ResidualPlan,
    matrix: &Sealed,
    records: &dyn Records,
    exec: &Executor<'_>,
    generator: &mut impl NoiseGenerator,
) -> Result<ResidualGradient> {
    let place = Place::of(spec, plan, matrix.values())?;
    let greatest = spec.greatest_residual(plan, place.norm);
    let n = spec.choices().terms.divisor();
    let level_noise = spec.level_noise()?;
    // Slopes of the squared loss are twice the predictions less the targets.
    let request = Request::Capped {
        of: Capped::Levels,
        params: place.predicted.clone(),
        cap: 2.0 * greatest,
        targets: plan.with_target(),
    };
    let sums = records.sums(&request, &**spec.loss(), None, exec)?;
    let levels = sums.slopes.values().map(|sum| sum / n).collect();
    let levels = noisy(levels, &level_noise.law, generator)?;
    let levels = level_noise.seal.release(&levels, generator)?;
    let params = place.predicted.clone();
    let planned = PlannedGradient::at(spec, plan, place, level_noise, levels.values())?;
    let request = Request::Capped {
        of: Capped::Gradient,
        params,
        cap: 2.0 * planned.cap,
        targets: plan.with_target(),
    };
    let sums = records.sums(&request, &**spec.loss(), None, exec)?;
    let whole: Vec<f64> = sums.slopes.values().collect();
    let regressors = plan.regressors.iter().map(|&j| -0.5 * whole[j] / n);
    let squares = 0.25 * whole[spec.n_params()] / n * (planned.square_weight / planned.cap);
    let gradient: Vec<f64> = regressors.chain([squares]).collect();
    let law = planned.noise.law.on(gradient.len())?;
    let gradient = noisy(gradient, &law, generator)?;
    let gradient = planned.noise.seal.release(&gradient, generator)?;
    Ok(ResidualGradient {
        planned,
        levels,
        gradient,
    })
}

/// Further sums that a release would add to this matrix, regression by regression.
#[derive(Debug, Clone)]
pub struct PlannedSteps {
    /// Where residuals would be taken, and the noise of their moments.
    pub residuals: Vec<(Vec<f64>, Planned<MatrixNoise>)>,
    /// Where gradients would be taken.
    pub gradients: Vec<PlannedGradient>,
}

/// Where residuals would be taken beside this matrix, and what noise would be added; beside the levels of each refined regression.
///
/// # Privacy
/// Post-processing of a released matrix; of any other, such as an assumed one, it is as private as that.
pub fn planned_steps(spec: &MomentMatrixSpec, matrix: &[f64], levels: &[Vec<f64>]) -> Result<PlannedSteps> {
    check_length("matrix", spec.dim() * spec.dim(), matrix.len())?;
    let c = spec.choices();
    check_length("levels", c.refined.len(), levels.len())?;
    let residuals = c.residuals.iter().map(|plan| {
        let place = Place::of(spec, plan, matrix)?;
        let noise = spec.residual_noise(plan, place.cap(spec, plan))?;
        Ok((place.point, noise))
    });
    let gradients = c.refined.iter().zip(levels);
    let gradients = gradients.map(|(plan, levels)| {
        let place = Place::of(spec, plan, matrix)?;
        PlannedGradient::at(spec, plan, place, spec.level_noise()?, levels)
    });
    Ok(PlannedSteps {
        residuals: residuals.collect::<Result<_>>()?,
        gradients: gradients.collect::<Result<_>>()?,
    })
}

/// Where the residuals of a regression are taken, from a released matrix.
struct Place {
    point: Vec<f64>,
    /// The residual is y, or nothing, less this combination of the columns.
    predicted: Vec<f64>,
    /// A bound on its norm.
    norm: f64,
    /// About the mean of the squared residuals.
    mean_square: f64,
}

impl Place {
    fn of(spec: &MomentMatrixSpec, plan: &ResidualPlan, matrix: &[f64]) -> Result<Self> {
        let (point, mean_square) = residual_point(spec, plan, matrix)?;
        let pairs = point.iter().zip(&plan.response);
        let predicted: Vec<f64> = pairs.map(|(p, r)| p - r).collect();
        // A few roundings are in the computed norm.
        let roundings = spec.n_params() as f64 + 8.0;
        let norm = vector::norm(&predicted) * (1.0 + roundings * f64::EPSILON);
        Ok(Self {
            point,
            predicted,
            norm,
            mean_square,
        })
    }

    fn cap(&self, spec: &MomentMatrixSpec, plan: &ResidualPlan) -> f64 {
        spec.residual_cap(plan, self.norm, self.mean_square)
    }
}

/// The rows and columns of a square matrix that are chosen.
fn principal(matrix: &[f64], dim: usize, chosen: &[usize]) -> Vec<f64> {
    let rows = chosen.iter().map(|&i| &matrix[i * dim..(i + 1) * dim]);
    rows.flat_map(|row| chosen.iter().map(|&j| row[j])).collect()
}

fn noisy(mut values: Vec<f64>, law: &impl Law, generator: &mut impl NoiseGenerator) -> Result<Vec<f64>> {
    let draw = law.sample_bounded(generator)?;
    values.iter_mut().zip(draw).for_each(|(v, n)| *v += n);
    Ok(values)
}

/// `(1/n) Σ zzᵀ` in one pass: the squared loss at 0 has the value `Σ y²`, the gradient `-2 Σ yx` and the Hessian `2 Σ xxᵀ`.
fn moment_sums(spec: &MomentMatrixSpec, records: &dyn Records, exec: &Executor<'_>) -> Result<Vec<f64>> {
    let (params, dim) = (spec.n_params(), spec.dim());
    let request = Request::Risk {
        params: vec![0.0; params],
        hessian: HessianRows::All,
    };
    let sums = records.sums(&request, &**spec.loss(), None, exec)?;
    let n = spec.choices().terms.divisor();
    let weight = spec.target_weight();
    let slopes: Vec<f64> = sums.slopes.values().collect();
    let mut matrix = vec![0.0; dim * dim];
    for gram in sums.grams {
        let rows = gram.finish(2.0 * n);
        for (out, row) in matrix.chunks_exact_mut(dim).zip(rows.chunks_exact(params)) {
            out[..params].copy_from_slice(row);
        }
    }
    for (j, slope) in slopes[..params].iter().enumerate() {
        let product = -0.5 * weight * (slope / n);
        matrix[j * dim + params] = product;
        matrix[params * dim + j] = product;
    }
    matrix[dim * dim - 1] = weight * weight * (slopes[params] / n);
    // Further targets; all other weights are 1.
    for (i, row) in matrix.chunks_exact_mut(dim).enumerate() {
        let own = weight_of(spec, i);
        for (j, value) in row.iter_mut().enumerate() {
            *value *= own * weight_of(spec, j);
        }
    }
    Ok(matrix)
}

/// By which column j of the record is multiplied; y is already.
fn weight_of(spec: &MomentMatrixSpec, j: usize) -> f64 {
    spec.weights().get(j).copied().unwrap_or(1.0)
}

/// The coefficients of a regression, of those directions of the released regressors that are clear of the noise, zeros for other columns,
/// and what its squared residuals have for a mean at most, but for two standard deviations of its noise: post-processing.
fn residual_point(spec: &MomentMatrixSpec, plan: &ResidualPlan, matrix: &[f64]) -> Result<(Vec<f64>, f64)> {
    let (params, dim) = (spec.n_params(), spec.dim());
    let rows = || matrix.chunks_exact(dim);
    // The response, and then the residual, as a combination of the columns of the matrix.
    let mut residual = plan.response.clone();
    residual[params] /= spec.target_weight();
    let columns = residual.iter_mut().zip(spec.weights());
    columns.for_each(|(value, weight)| *value /= weight);
    let products: Vec<f64> = rows().map(|row| vector::dot(row, &residual)).collect();
    let (chosen, k) = (&plan.regressors, plan.regressors.len());
    let mut gram = principal(matrix, dim, chosen);
    gram.iter_mut().zip(&plan.ridge).for_each(|(a, r)| *a += r);
    let cross: Vec<f64> = chosen.iter().map(|&j| products[j]).collect();
    let eigen = Eigen::new(&gram, k, "the released moment matrix")?;
    let std_dev = spec.noise().law.isometric_std_dev(dim);
    // Directions that are not clear of the noise are left out.
    let clear = clear_of_noise(std_dev, k);
    let mut point = vec![0.0; params];
    for (value, direction) in eigen.values.iter().zip(eigen.vectors.chunks_exact(k)) {
        if *value > clear {
            let coordinate = vector::dot(direction, &cross) / value;
            for (&j, v) in chosen.iter().zip(direction) {
                point[j] += coordinate * v;
            }
        }
    }
    residual.iter_mut().zip(&point).for_each(|(r, p)| *r -= p);
    let terms = rows().zip(&residual);
    let seen: f64 = terms.map(|(row, v)| v * vector::dot(row, &residual)).sum();
    let noise = std_dev * vector::dot(&residual, &residual);
    let mean_square = seen.max(0.0) + 2.0 * noise;
    let c = spec.choices();
    if c.terms.counts_one() {
        return Ok((point, mean_square));
    }
    // The mean is over all that the records count, which the matrix shows beside the square of the constant.
    let constant = spec.intercept().powi(2);
    let counted = matrix[(params - 1) * (dim + 1)].max(std_dev) / constant;
    Ok((point, mean_square / counted.min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Budget, Neighbors};
    use crate::row_domain::RowDomain;
    use crate::spec::{MatrixBudget, MomentMatrixChoices, Terms};
    use crate::unit::{Unit, Weighting};

    /// Columns of `(x, s, y)`, of which x has two.
    const DIM: usize = 4;

    fn spec(rho: f64, unit: Unit, weighting: Option<Weighting>) -> MomentMatrixSpec {
        let terms = Terms {
            unit,
            weighting,
            ..Terms::of_rows(40, Neighbors::ReplaceOne)
        };
        MomentMatrixSpec::new(MomentMatrixChoices {
            terms,
            n_columns: 2,
            further_targets: 0,
            rows: RowDomain::Ball(2.0),
            target_bound: 5.0,
            residuals: Vec::new(),
            residual_share: 0.1,
            refined: Vec::new(),
            refined_share: 0.6,
            budget: MatrixBudget::Of(Budget::zcdp(rho).unwrap()),
        })
        .unwrap()
    }

    fn std_dev(spec: &MomentMatrixSpec) -> f64 {
        spec.noise().law.isometric_std_dev(DIM)
    }

    /// A matrix of uncorrelated columns, the first of which the noise hides, beside a target of this second moment.
    fn matrix(spec: &MomentMatrixSpec, constant: f64, target: f64) -> Vec<f64> {
        let clear = clear_of_noise(std_dev(spec), DIM - 1);
        let mut matrix = vec![0.0; DIM * DIM];
        for (j, value) in [0.5 * clear, 2.0 * clear, constant, target].iter().enumerate() {
            matrix[j * (DIM + 1)] = *value;
        }
        for (j, value) in [(0, 0.3 * clear), (1, -clear)] {
            (matrix[j * DIM + 3], matrix[3 * DIM + j]) = (value, value);
        }
        matrix
    }

    #[test]
    fn without_noise_residuals_are_those_of_least_squares() {
        let spec = spec(1e14, Unit::Row, None);
        let mut mean = vec![0.0; DIM * DIM];
        for (a, b) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
            let y = 2.0 * a - b + 0.5 + 0.1 * a * b;
            let z = [a, b, spec.intercept(), spec.target_weight() * y];
            for (i, entry) in mean.iter_mut().enumerate() {
                *entry += 0.25 * z[i / DIM] * z[i % DIM];
            }
        }
        let (point, mean_square) = residual_point(&spec, &ResidualPlan::all(2), &mean).unwrap();
        for (found, expected) in point.iter().zip([2.0, -1.0, 0.5 / spec.intercept()]) {
            assert!((found - expected).abs() < 1e-9);
        }
        assert!((0.01 - 1e-12..0.01 + 1e-4).contains(&mean_square));
    }

    #[test]
    fn directions_in_the_noise_are_left_out() {
        let spec = spec(0.5, Unit::Row, None);
        let clear = clear_of_noise(std_dev(&spec), DIM - 1);
        let scale = spec.target_weight().recip();
        for (target, seen) in [(9.0 * clear, 8.5 * clear), (-clear, 0.0)] {
            let released = matrix(&spec, 3.0 * clear, target);
            let (point, mean_square) = residual_point(&spec, &ResidualPlan::all(2), &released).unwrap();
            assert!((point[1] + 0.5 * scale).abs() < 1e-12);
            assert!(point[0].abs().max(point[2].abs()) < 1e-12);
            let noise = std_dev(&spec) * 1.25;
            let expected = (seen + 2.0 * noise) * scale.powi(2);
            assert!((mean_square / expected - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn means_are_over_all_that_records_count() {
        let (most, weights) = (Some(3), Weighting::new(4.0, 40.0).unwrap());
        let person = Unit::Person { max_rows: most };
        for (unit, weighting) in [(person, None), (Unit::Row, Some(weights))] {
            let spec = spec(1e4, unit, weighting);
            let square = spec.intercept().powi(2);
            let of = |constant: f64| {
                let released = matrix(&spec, constant, 1.0);
                residual_point(&spec, &ResidualPlan::all(2), &released).unwrap().1
            };
            let whole = of(square);
            for (constant, share) in [
                (0.25 * square, 0.25),
                (4.0 * square, 1.0),
                (-1.0, std_dev(&spec) / square),
            ] {
                assert!((of(constant) * share / whole - 1.0).abs() < 1e-9);
            }
        }
    }
}
