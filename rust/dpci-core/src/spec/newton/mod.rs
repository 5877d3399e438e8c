//! The choices of a fit by Newton steps with noisy gradients on rows made round: budget, noise and seals of every stage.
//!
//! Given what earlier stages released, each is a query of its own, so that their costs add up (docs/proofs/newton.md).

use std::sync::Arc;

mod pure;

use super::fit::{
    check_size, gaussian_moments, joint_alpha, matrix_seal, share_seal, sum_rounding,
};
use super::functional::{independent, noise_of};
use super::moment_matrix::{cost_of, matrix_noise, step_of};
use super::{MatrixNoise, Part, Query, Seal, Step, Terms};
use crate::linalg::check_matrix_dim;
use crate::loss::{
    Loss, gradient_rounding, moment_rounding, person_rounding, second_moment_rounding,
};
use crate::noise::{AnyLaw, Law, NoiseLaw, symmetric};
use crate::privacy::{Budget, Cost, DataBounds, gaussian_std_dev};
use crate::row_domain::{RowDomain, row_norm_bound};
use crate::{Error, Result};

/// Rounds in which the rows are made round: the second sees directions that the noise of the first hides.
pub(crate) const ROUNDS: usize = 2;
/// Steps before the last one.
pub(crate) const EARLIER_STEPS: usize = 4;

/// Shares of the budget, after the seals', of Gaussian noise: of the radii, each shape, earlier gradients and Hessians, and of both matrices
/// at the last point. The last gradient has the rest. Those under pure DP are in `pure.rs`.
const RADII: [f64; ROUNDS + 1] = [0.005, 0.005, 0.02];
const SHAPE: f64 = 0.04;
const EARLIER_GRADIENTS: [f64; EARLIER_STEPS] = [0.01, 0.02, 0.05, 0.12];
const EARLIER_HESSIANS: [f64; EARLIER_STEPS] = [0.0, 0.02, 0.02, 0.04];
const MOMENTS: f64 = 0.135;

fn gradient_share(step: Option<usize>) -> f64 {
    let before: f64 = RADII
        .iter()
        .chain(&EARLIER_GRADIENTS)
        .chain(&EARLIER_HESSIANS)
        .sum();
    match step {
        Some(step) => EARLIER_GRADIENTS[step],
        None => 1.0 - before - ROUNDS as f64 * SHAPE - MOMENTS,
    }
}

/// Seals: radii, shapes, earlier gradients and Hessians, then gradient, Hessian and covariance of the last point.
const SEALS: u32 = 15;
const _: () = assert!(SEALS as usize == 2 * ROUNDS + 1 + 2 * EARLIER_STEPS - 1 + 3);

/// Share of the records whose rows weigh less, before each round and at last, under Gaussian noise. With more than .2% the coefficients of
/// tables with heavy tails differ from the ordinary ones (docs/evidence/newton.md).
const BEYOND: [f64; ROUNDS + 1] = [0.05, 0.05, 0.002];
/// Shares below this many standard deviations of their noise are not told from none.
const SEEN: f64 = 3.0;

/// Radii to choose from fall from the greatest one by this factor each.
const RADIUS_RATIO: f64 = 1.2;
/// Number of radii: the least is an eighteenth of the greatest.
const N_RADII: usize = 17;
/// Longer rows than this many times the square root of their dimension are beyond all radii once rows are round.
const GREATEST_RADIUS: f64 = 6.0;

/// Choices of the caller; [`NewtonSpec::new`] validates them.
#[derive(Debug, Clone)]
pub struct NewtonChoices {
    /// Terms that all releases of sums have.
    pub terms: Terms,
    /// Columns of the rows, without the constant.
    pub n_columns: usize,
    /// The constant appended to each row.
    pub intercept: Option<f64>,
    /// Public set that the rows lie in, without the constant.
    pub rows: RowDomain,
    /// The loss.
    pub loss: Arc<dyn Loss>,
    /// Budget.
    pub budget: Budget,
}

/// Validated choices. Holds no data.
#[derive(Debug, Clone)]
pub struct NewtonSpec {
    choices: NewtonChoices,
    row_norm: f64,
    cost: Cost,
    seal_cost: Cost,
}

/// Noise of a released vector, with its step and seal.
#[derive(Debug, Clone)]
pub struct Planned<L> {
    /// Law of the noise.
    pub law: L,
    /// For the record.
    pub step: Step,
    /// How the values are sealed.
    pub seal: Seal,
}

/// Noise of both matrices at the last point.
#[derive(Debug, Clone)]
pub struct PlannedMoments {
    /// Noise of the Hessian.
    pub hessian: MatrixNoise,
    /// Noise of the gradient covariance.
    pub gradient_cov: MatrixNoise,
    /// For the record.
    pub step: Step,
    /// How both are sealed.
    pub seals: [Seal; 2],
}

/// Counts of rows by their norms, which choose the radius that rows are shortened to.
#[derive(Debug, Clone)]
pub(crate) struct RadiusCounts {
    /// Radii, increasing.
    pub(crate) radii: Vec<f64>,
    /// Share of the records that shall be beyond the radius.
    beyond: f64,
    /// Noise of the shares of records between a radius and the next.
    pub(crate) noise: Planned<AnyLaw>,
}

impl RadiusCounts {
    /// Standard deviation of the noise of a share.
    fn std_dev(&self) -> f64 {
        match self.noise.step.cost {
            Cost::Epsilon(_) => std::f64::consts::SQRT_2 * self.noise.step.scale,
            _ => self.noise.step.scale,
        }
    }

    /// The radius beyond which the wanted share of the records is, by the released shares of which that beyond all radii is the last, or the
    /// least share that the noise does not hide: between two radii by the logarithm. Post-processing.
    pub(crate) fn radius(&self, shares: &[f64]) -> f64 {
        let (mut beyond, mut above): (f64, Option<f64>) = (0.0, None);
        for (counted, (radius, share)) in self.radii.iter().zip(shares).rev().enumerate() {
            let few = self
                .beyond
                .max(SEEN * self.std_dev() * ((counted + 1) as f64).sqrt());
            let next = beyond + share;
            if next > few {
                return match above {
                    // The share beyond grows from that beyond the greater radius to this one.
                    Some(above) => {
                        let part = (few - beyond).max(0.0) / (next - beyond);
                        above * (radius / above).powf(part.min(1.0))
                    }
                    None => *radius,
                };
            }
            (beyond, above) = (next, Some(*radius));
        }
        above.unwrap_or_default()
    }
}

impl NewtonSpec {
    /// Divides the budget among the stages.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for losses without bounded slope and curvature; [`Error::OutOfRange`], [`Error::Empty`].
    pub fn new(choices: NewtonChoices) -> Result<Self> {
        let c = &choices;
        if c.terms.n_samples == 0 || c.n_columns == 0 {
            return Err(Error::Empty {
                rows: c.terms.n_samples,
                params: c.n_columns,
            });
        }
        c.rows.check_columns(c.n_columns)?;
        let length = c.rows.norm();
        if !(length > 0.0 && length.is_finite()) {
            return Err(Error::OutOfRange {
                name: "row_norm",
                rule: "finite and > 0",
                value: length,
            });
        }
        check_size("row_norm", length)?;
        let loss = &c.loss;
        let bounded = loss.slope_bound().is_finite() && loss.curvature_bound().is_finite();
        if loss.n_predictors() > 1 || loss.kinked() || loss.predictor_bound().is_some() || !bounded
        {
            return Err(Error::Unsupported(format!(
                "mechanism=\"newton\" requires a loss of one predictor with bounded slope and curvature, got {}",
                loss.name()
            )));
        }
        let row_norm = row_norm_bound(length, c.intercept);
        let (rest, seal) = c.budget.split_off_seal();
        let mut spec = Self {
            row_norm,
            cost: cost_of(rest)?,
            seal_cost: share_seal(seal, SEALS),
            choices,
        };
        if spec.is_pure() {
            spec.seal_cost = share_seal(seal, spec.pure_seals());
        }
        check_matrix_dim(spec.n_params())?;
        // What public values rule out is refused before anything is paid.
        spec.radius(0, spec.row_norm)?;
        spec.shape(spec.row_norm)?;
        for radius in [
            spec.row_norm,
            GREATEST_RADIUS * (spec.n_params() as f64).sqrt(),
        ] {
            if spec.is_pure() {
                spec.perturbed(radius)?;
            } else {
                spec.gradient(radius, None)?;
            }
            spec.moments(radius)?;
        }
        Ok(spec)
    }

    /// The validated choices.
    #[must_use]
    pub fn choices(&self) -> &NewtonChoices {
        &self.choices
    }

    /// Number of parameters, the intercept included.
    #[must_use]
    pub fn n_params(&self) -> usize {
        self.choices.n_columns + usize::from(self.choices.intercept.is_some())
    }

    /// Bound on the norm of a row with its constant.
    #[must_use]
    pub fn row_norm(&self) -> f64 {
        self.row_norm
    }

    /// Divisor of the sums over the records.
    #[must_use]
    pub(crate) fn divisor(&self) -> f64 {
        self.choices.terms.divisor()
    }

    /// Whether the noise is that of pure DP: then one perturbed minimiser takes the place of the earlier steps (docs/proofs/newton.md).
    #[must_use]
    pub fn is_pure(&self) -> bool {
        matches!(self.cost, Cost::Epsilon(_))
    }

    /// Steps and seals of a release, where the radii before each round and at last are these.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where a noise or a seal has no scale in double precision.
    pub fn planned(&self, radii: [f64; ROUNDS + 1]) -> Result<(Vec<Step>, Vec<Seal>)> {
        let (mut steps, mut seals) = (Vec::new(), Vec::new());
        for (round, radius) in radii.into_iter().enumerate() {
            let counts = self.radius(round, self.row_norm)?.noise;
            steps.push(counts.step);
            seals.push(counts.seal);
            if round < ROUNDS {
                let shape = self.shape(radius)?;
                steps.push(shape.step);
                seals.push(shape.seal);
            }
        }
        let radius = radii[ROUNDS];
        if self.is_pure() {
            self.plan_pure(radius, &mut steps, &mut seals)?;
            return Ok((steps, seals));
        }
        for step in 0..EARLIER_STEPS {
            if step > 0 {
                let hessian = self.hessian(radius, step)?;
                steps.push(hessian.step);
                seals.push(hessian.seal);
            }
            let gradient = self.gradient(radius, Some(step))?;
            steps.push(gradient.step);
            seals.push(gradient.seal);
        }
        let moments = self.moments(radius)?;
        let gradient = self.gradient(radius, None)?;
        steps.extend([moments.step, gradient.step]);
        seals.extend(moments.seals.into_iter().chain([gradient.seal]));
        Ok((steps, seals))
    }

    fn share(&self, share: f64) -> Cost {
        // Sums of all rounded parts do not exceed the whole.
        self.cost
            .with(self.cost.value() * share * (1.0 - 32.0 * f64::EPSILON))
    }

    fn bounds(&self, radius: f64) -> Result<DataBounds> {
        self.choices.terms.bounds(radius, self.n_params())
    }

    /// The counts that choose a radius of rows that are at most so long, before a round or (`round` = [`ROUNDS`]) at last.
    ///
    /// # Privacy
    /// A record counts at most once, in parts that are not negative: one that is replaced moves the counts by at most √2 in the Euclidean
    /// norm, and by at most 2 in the sum of their sizes, which counts under pure DP.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where the noise or the seal have no scale in double precision.
    pub(crate) fn radius(&self, round: usize, longest: f64) -> Result<RadiusCounts> {
        let dim = self.n_params() as f64;
        let greatest = if round == 0 {
            longest
        } else {
            longest.min(GREATEST_RADIUS * dim.sqrt())
        };
        let mut radii: Vec<f64> = std::iter::successors(Some(greatest), |r| Some(r / RADIUS_RATIO))
            .take(N_RADII)
            .collect();
        radii.reverse();
        let (share, beyond) = if self.is_pure() {
            (pure::RADII[round], pure::BEYOND[round])
        } else {
            (RADII[round], BEYOND[round])
        };
        let (bounds, cost) = (self.choices.terms.bounds(1.0, N_RADII)?, self.share(share));
        let moved = bounds.objective_shift(1.0);
        let moved = if self.is_pure() { moved } else { moved.sqrt() };
        let sensitivity = bounds.argmin(moved, 1.0);
        let (family, scale) = noise_of(cost, sensitivity)?;
        let law = independent(cost, N_RADII, scale)?;
        let distance = 2.0 * sum_rounding(&bounds, gradient_rounding) + 2.0 * law.error_bound();
        Ok(RadiusCounts {
            radii,
            beyond,
            noise: Planned {
                step: Step {
                    query: Query::Radius,
                    noise: family,
                    cost,
                    scale,
                    hessian_scale: None,
                    sensitivity,
                },
                seal: Seal::new(Part::Radius, N_RADII, distance, self.seal_cost)?,
                law,
            },
        })
    }

    /// The noise of the second moments of rows of at most this norm.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where the noise or the seal have no scale in double precision.
    pub(crate) fn shape(&self, radius: f64) -> Result<Planned<MatrixNoise>> {
        let share = if self.is_pure() { pure::SHAPE } else { SHAPE };
        let (bounds, cost) = (self.bounds(radius)?, self.share(share));
        let noise = matrix_noise(&bounds, 1.0, cost)?;
        let data = 2.0 * sum_rounding(&bounds, second_moment_rounding) * radius.powi(2);
        Ok(Planned {
            law: noise,
            step: step_of(Query::Shape, cost, noise),
            seal: self.symmetric_seal(Part::Shape, data, noise)?,
        })
    }

    /// End of the spectrum of the noise, below which eigenvalues are not told from it: `√(2d)` standard deviations of an isometric
    /// coordinate.
    pub(crate) fn edge(&self, noise: MatrixNoise) -> f64 {
        let dim = self.n_params();
        (2.0 * dim as f64).sqrt() * noise.law.isometric_std_dev(dim)
    }

    /// The noise of the mean gradient over rows that weigh less beyond this radius, at an earlier step or the last one.
    ///
    /// # Privacy
    /// No record's weighted gradient is longer than the bound on the slope times the radius, whatever the point.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where the noise or the seal have no scale in double precision.
    pub(crate) fn gradient(&self, radius: f64, step: Option<usize>) -> Result<Planned<NoiseLaw>> {
        let (bounds, dim) = (self.bounds(radius)?, self.n_params());
        let cost = self.share(gradient_share(step));
        let slope = self.choices.loss.slope_bound();
        let sensitivity = bounds.argmin(bounds.objective_shift(slope), 1.0);
        let std_dev = gaussian_std_dev(sensitivity, cost.mu())?;
        let law = NoiseLaw::Gaussian { std_dev };
        let data = 2.0 * sum_rounding(&bounds, gradient_rounding) * slope * radius;
        let distance = data + 2.0 * law.on(dim)?.error_bound();
        Ok(Planned {
            step: Step {
                query: Query::NewtonGradient,
                noise: law.family(),
                cost,
                scale: std_dev,
                hessian_scale: None,
                sensitivity,
            },
            seal: Seal::new(Part::Gradient, dim, distance, self.seal_cost)?,
            law,
        })
    }

    /// The noise of the mean Hessian at an earlier point.
    ///
    /// # Errors
    /// As [`Self::gradient`].
    pub(crate) fn hessian(&self, radius: f64, step: usize) -> Result<Planned<MatrixNoise>> {
        let (bounds, cost) = (self.bounds(radius)?, self.share(EARLIER_HESSIANS[step]));
        let greatest = self.choices.loss.curvature_bound();
        let noise = matrix_noise(&bounds, greatest, cost)?;
        Ok(Planned {
            law: noise,
            step: step_of(Query::NewtonHessian, cost, noise),
            seal: self.moment_seal(Part::Hessian, &bounds, noise, greatest)?,
        })
    }

    /// The noise of Hessian and gradient covariance at the last point.
    ///
    /// # Privacy
    /// One vector: the weights of a record in both are bounded together, as in [`super::Spec::moment_noise`].
    ///
    /// # Errors
    /// As [`Self::gradient`].
    pub(crate) fn moments(&self, radius: f64) -> Result<PlannedMoments> {
        let share = if self.is_pure() {
            pure::MOMENTS
        } else {
            MOMENTS
        };
        let (bounds, cost) = (self.bounds(radius)?, self.share(share));
        let loss = &*self.choices.loss;
        let [hessian, gradient_cov] = if self.is_pure() {
            pure::moments(&bounds, loss, cost)?
        } else {
            let alpha = joint_alpha(|alpha| loss.sup_joint_norm(alpha, f64::INFINITY));
            gaussian_moments(&bounds, loss, f64::INFINITY, alpha, cost)?
        };
        Ok(PlannedMoments {
            step: Step {
                query: Query::Moments,
                noise: gradient_cov.law.family(),
                cost,
                scale: gradient_cov.law.scale(),
                hessian_scale: Some(hessian.law.scale()),
                sensitivity: gradient_cov.sensitivity,
            },
            seals: [
                self.moment_seal(Part::Hessian, &bounds, hessian, loss.curvature_bound())?,
                self.moment_seal(
                    Part::GradientCov,
                    &bounds,
                    gradient_cov,
                    loss.slope_bound().powi(2),
                )?,
            ],
            hessian,
            gradient_cov,
        })
    }

    fn moment_seal(
        &self,
        part: Part,
        bounds: &DataBounds,
        noise: MatrixNoise,
        greatest: f64,
    ) -> Result<Seal> {
        // As of other fits, the covariance of persons and of weighted rows has a factor more.
        let of_rows = match part {
            Part::GradientCov => person_rounding,
            _ => moment_rounding,
        };
        let roundings = [sum_rounding(bounds, of_rows), 0.0];
        matrix_seal(part, bounds, noise, greatest, roundings, self.seal_cost)
    }

    fn symmetric_seal(&self, part: Part, data: f64, noise: MatrixNoise) -> Result<Seal> {
        let dim = self.n_params();
        let distance = data + 2.0 * noise.law.on(dim)?.error_bound();
        let count = symmetric::isometric_dim(dim);
        Seal::new(part, count, distance, self.seal_cost)
    }
}
