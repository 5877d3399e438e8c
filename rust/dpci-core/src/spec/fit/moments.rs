//! Calibrates the noise of the Hessian and the gradient covariance from public values and the released parameters' norm.

use std::sync::Arc;

use super::Spec;
use super::choices::Moments;
use super::distances::{greatest_excess, greatest_mass, sum_rounding};
use crate::Result;
use crate::loss::{moment_rounding, person_rounding};
use crate::noise::{Family, Law, LevelTotals, MatrixLaw, symmetric};
use crate::privacy::{Calibration, Cost, DataBounds, gaussian_std_dev, laplace_rate};
use crate::row_domain::Blocks;
use crate::spec::{Part, Planned, Query, Seal, Step};

/// Weight `k` of the Hessian in the joint release under pure DP: 2, the best of 1, 2, 4, 8 for the logistic loss by
/// measurement, kept within `[L²/2t, L²/t]` for losses of another scale. At `k = L²/t` neither matrix is noisier than
/// in separate releases of equal shares, at `L²/2t` the Hessian by at most a half (docs/proofs/intervals.md, "Moments").
fn joint_weight(slope_bound: f64, curvature_bound: f64) -> f64 {
    let greatest = slope_bound.powi(2) / curvature_bound;
    2.0_f64.max(0.5 * greatest).min(greatest)
}

/// Weight of the level totals over that of the Hessian: with 7 the worst coefficient of each table is covered .90 (docs/proofs/intervals.md,
/// "Level totals").
const LEVELS_WEIGHT: f64 = 7.0;

/// The noise of one matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixNoise {
    /// Law.
    pub law: MatrixLaw,
    /// Sensitivity in the law's norm.
    pub sensitivity: f64,
}

impl MatrixNoise {
    /// Matrix Laplace noise.
    pub(in crate::spec) fn laplace(sensitivity: f64, epsilon: f64) -> Result<Self> {
        let rate = laplace_rate(sensitivity, epsilon)?;
        let law = MatrixLaw::MatrixLaplace { rate };
        Ok(Self { law, sensitivity })
    }

    /// Gaussian noise.
    pub(in crate::spec) fn gaussian(sensitivity: f64, cost: Cost) -> Result<Self> {
        let std_dev = gaussian_std_dev(sensitivity, cost.mu())?;
        let law = MatrixLaw::Gaussian { std_dev };
        Ok(Self { law, sensitivity })
    }

    /// Gaussian noise on a vector `(αA, B)` of two matrices.
    pub(in crate::spec) fn gaussian_pair(alpha: f64, sensitivity: f64, cost: Cost) -> Result<[Self; 2]> {
        let std_dev = gaussian_std_dev(sensitivity, cost.mu())?;
        Ok([std_dev / alpha, std_dev].map(|std_dev| Self {
            law: MatrixLaw::Gaussian { std_dev },
            sensitivity,
        }))
    }

    /// The step of a query with this noise.
    pub(in crate::spec) fn step(self, query: Query, cost: Cost) -> Step {
        let Self { law, sensitivity } = self;
        Step::new(query, law.family(), cost, law.scale(), sensitivity)
    }

    /// The query of a symmetric matrix whose values are this far from ideal ones without the noise.
    pub(in crate::spec) fn planned(
        self,
        (query, part): (Query, Part),
        cost: Cost,
        dim: usize,
        data: f64,
        seal_cost: Cost,
    ) -> Result<Planned<Self>> {
        Ok(Planned {
            law: self,
            step: self.step(query, cost),
            seal: self.seal(part, dim, data, 0.0, seal_cost)?,
        })
    }

    /// The seal of a symmetric matrix whose values are this far from ideal ones without the noise, and those of other noise this far.
    fn seal(self, part: Part, dim: usize, data: f64, further: f64, cost: Cost) -> Result<Seal> {
        let distance = data + 2.0 * (self.law.on(dim)?.error_bound() + further);
        Seal::new(part, symmetric::isometric_dim(dim), distance, cost)
    }

    /// Where the spectrum ends if the entries are Gaussian.
    pub(super) fn spectral_radius(self, dim: usize) -> f64 {
        2.0 * (dim as f64).sqrt() * self.law.off_diagonal_std_dev(dim)
    }
}

/// The noise of both matrices.
#[derive(Debug, Clone, PartialEq)]
pub struct MomentNoise {
    /// Noise of the Hessian's data part; `None` when that part is zero for every data set.
    pub hessian: Option<MatrixNoise>,
    /// Noise of the gradient covariance's data part.
    pub gradient_cov: MatrixNoise,
    /// Noise of the level totals, which are entries of the Hessian.
    pub levels: Option<LevelTotals>,
    /// The seal of the Hessian's data part.
    pub hessian_seal: Option<Seal>,
    /// The seal of the gradient covariance's data part.
    pub gradient_cov_seal: Seal,
    /// The steps, for the record.
    pub steps: Vec<Step>,
}

/// Noise of the Hessian and of the gradient covariance, and the steps for the record.
type Matrices = (Option<MatrixNoise>, MatrixNoise, Option<LevelTotals>, Vec<Step>);

impl MomentNoise {
    /// The seals.
    pub(crate) fn seals(&self) -> impl Iterator<Item = Seal> {
        self.hessian_seal.into_iter().chain([self.gradient_cov_seal])
    }

    /// `r_H = 2√d·s`, `s` the standard deviation of an off-diagonal entry: where the spectrum of the Hessian's noise ends if
    /// its entries are Gaussian; that of the matrix Laplace law ends up to 1.18 times as far (docs/proofs/intervals.md, "Projection").
    pub fn spectral_radius(&self, dim: usize) -> f64 {
        self.hessian.map_or(0.0, |noise| noise.spectral_radius(dim))
    }
}

impl Spec {
    /// The moments' noise when all margins are at most `radius` in size; `None` without moments.
    ///
    /// # Privacy
    /// A function of public values and of the released `‖θ̃‖`; the costs do not depend on `radius`.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] when a sensitivity is not finite and positive.
    pub fn moment_noise(&self, radius: f64) -> Result<Option<MomentNoise>> {
        let Some(costs) = self.moment_costs else {
            return Ok(None);
        };
        let (hessian, gradient_cov, levels, steps) = match self.choices.moments {
            Moments::Joint | Moments::Levels => {
                self.joint(radius, costs[0].with(costs[0].value() + costs[1].value()))?
            }
            _ => self.separate(radius, costs)?,
        };
        let loss = &*self.choices.loss;
        let of_levels = levels.as_ref().map(LevelTotals::error_bound).transpose()?;
        let hessian_seal = hessian.map(|noise| {
            // The entries that cells tell are sealed on a finer lattice, as if they were greater.
            let finer = of_levels.map_or(1.0, |_| LevelTotals::FINER);
            self.matrix_seal(
                Part::Hessian,
                noise,
                finer * loss.sup_curvature(radius),
                loss.tail_roundings(radius),
                finer * of_levels.unwrap_or(0.0),
            )
        });
        let greatest = loss.sup_slope(radius).powi(2);
        Ok(Some(MomentNoise {
            hessian,
            gradient_cov,
            hessian_seal: hessian_seal.transpose()?,
            gradient_cov_seal: self.matrix_seal(Part::GradientCov, gradient_cov, greatest, 0.0, 0.0)?,
            levels,
            steps,
        }))
    }

    /// The curvature of which a Hessian is invisible beside λ: it is then released as λI, without noise, whatever the data.
    fn least_curvature(&self) -> f64 {
        let visible = 0.5 * f64::EPSILON * self.strong_convexity();
        visible / self.bounds.row_norm.powi(2) / greatest_excess(self.bounds.neighbors)
    }

    /// Whether the data can be seen in a Hessian of records with curvatures up to this one; NaN can.
    pub(in crate::spec) fn has_hessian(&self, greatest: f64) -> bool {
        greatest != 0.0 && !(greatest <= self.least_curvature())
    }

    /// Relative rounding of a mean over the records, from that of a sum over so many rows.
    pub(in crate::spec) fn rounding(&self, of_rows: fn(usize) -> f64) -> f64 {
        sum_rounding(&self.bounds, of_rows)
    }

    /// The seal of a matrix whose records' terms are at most `greatest·R²`: it hides the rounding of the terms and of their sum, of the noise
    /// and of adding the two.
    fn matrix_seal(
        &self,
        part: Part,
        noise: MatrixNoise,
        greatest: f64,
        tail_roundings: f64,
        error_of_levels: f64,
    ) -> Result<Seal> {
        // The covariance of persons is one of their gradients, each a sum itself, and that of weighted rows has one factor more.
        let is_plain = self.choices.terms.is_of_rows();
        let of_rows = match part {
            Part::GradientCov if !is_plain => person_rounding,
            _ => moment_rounding,
        };
        let roundings = [self.rounding(of_rows), tail_roundings];
        matrix_seal(
            part,
            &self.bounds,
            noise,
            greatest,
            roundings,
            error_of_levels,
            self.seal_cost,
        )
    }

    /// The rows whose level totals are released, with their constant.
    fn level_rows(&self) -> Result<Option<Arc<Blocks>>> {
        match self.choices.moments {
            Moments::Levels => self.choices.rows.blocks(self.choices.intercept),
            _ => Ok(None),
        }
    }

    /// One query: under pure DP `γ_H‖Δ_H‖_* + γ_Σ‖Δ_Σ‖_* + γ_T‖Δ_T‖_K ≤ ε`, T the level totals; with Gaussian noise one vector `(αH, Σ)`.
    fn joint(&self, radius: f64, cost: Cost) -> Result<Matrices> {
        let loss = &*self.choices.loss;
        let has_hessian = self.has_hessian(loss.sup_curvature(radius));
        let mut levels = None;
        let (hessian, gradient_cov) = if let Cost::Epsilon(epsilon) = cost {
            // Slopes that the domain alone bounds are bounded better by what the released parameters leave of it.
            let slope_bound = if loss.slope_bound().is_finite() {
                self.domain.slope_bound
            } else {
                loss.sup_slope(radius)
            };
            let weight = joint_weight(slope_bound, loss.curvature_within(radius));
            let of_levels = self.level_rows()?.map(|rows| (rows, LEVELS_WEIGHT * weight));
            let total = weight + of_levels.as_ref().map_or(0.0, |(_, weight)| *weight);
            let sensitivity = self.bounds.nuclear(loss.sup_weighted_sum(total, radius));
            let rate = laplace_rate(sensitivity, epsilon)?;
            levels = of_levels
                .map(|(rows, weight)| LevelTotals::new(rows, weight * self.bounds.row_norm.powi(2) * rate))
                .transpose()?;
            let with = |rate| MatrixNoise {
                law: MatrixLaw::MatrixLaplace { rate },
                sensitivity,
            };
            (with(weight * rate), with(rate))
        } else {
            let alpha = has_hessian.then(|| joint_alpha(|a| loss.sup_joint_norm(a, radius)));
            let alpha = alpha.unwrap_or(1.0);
            let sensitivity = self.bounds.joint_frobenius(loss.sup_joint_norm(alpha, radius));
            MatrixNoise::gaussian_pair(alpha, sensitivity, cost)?.into()
        };
        let hessian = has_hessian.then_some(hessian);
        let levels = levels.filter(|_| has_hessian);
        let step = Step {
            query: Query::Moments,
            noise: gradient_cov.law.family(),
            cost,
            scale: gradient_cov.law.scale(),
            hessian_scale: hessian.map(|noise| noise.law.scale()),
            levels_scale: levels.as_ref().map(LevelTotals::scale),
            sensitivity: gradient_cov.sensitivity,
        };
        Ok((hessian, gradient_cov, levels, vec![step]))
    }

    /// The noise of one matrix whose records' terms are at most `sup·R²`.
    fn separate_noise(&self, sup: f64, cost: Cost) -> Result<MatrixNoise> {
        Ok(match (cost, self.choices.calibration) {
            (Cost::Epsilon(epsilon), Calibration::Tight) => MatrixNoise::laplace(self.bounds.nuclear(sup), epsilon)?,
            (Cost::Epsilon(epsilon), calibration @ Calibration::Paper) => {
                let sensitivity = self.bounds.frobenius(sup, calibration);
                let rate = laplace_rate(sensitivity, epsilon)?;
                MatrixNoise {
                    law: MatrixLaw::SquareLaplace { rate },
                    sensitivity,
                }
            }
            (_, calibration) => MatrixNoise::gaussian(self.bounds.frobenius(sup, calibration), cost)?,
        })
    }

    /// Two queries, each with its own share.
    fn separate(&self, radius: f64, [hessian_cost, cov_cost]: [Cost; 2]) -> Result<Matrices> {
        let loss = &*self.choices.loss;
        let sup_curvature = loss.sup_curvature(radius);
        let sup_squared_slope = loss.sup_slope(radius).powi(2) * (1.0 + f64::EPSILON);
        let hessian = self
            .has_hessian(sup_curvature)
            .then(|| self.separate_noise(sup_curvature, hessian_cost))
            .transpose()?;
        let gradient_cov = self.separate_noise(sup_squared_slope, cov_cost)?;
        let step = hessian.map_or_else(
            || Step::new(Query::Hessian, Family::None, hessian_cost, 0.0, 0.0),
            |noise| noise.step(Query::Hessian, hessian_cost),
        );
        let steps = vec![step, gradient_cov.step(Query::GradientCov, cov_cost)];
        Ok((hessian, gradient_cov, None, steps))
    }
}

/// The seal of a mean over the records of matrices of norm at most `greatest·R²`; the roundings are those of the mean, relative, and of
/// each term in a tail of the loss; `further` is the error of other noise in the matrix.
pub(in crate::spec) fn matrix_seal(
    part: Part,
    bounds: &DataBounds,
    noise: MatrixNoise,
    greatest: f64,
    [of_mean, in_tail]: [f64; 2],
    further: f64,
    cost: Cost,
) -> Result<Seal> {
    let dim = bounds.params;
    let tail = greatest_mass(bounds) * in_tail * 0.5 * f64::EPSILON;
    let data = bounds.row_norm.powi(2) * greatest * (of_mean + tail * (1.0 + 1e-6));
    noise.seal(part, dim, data, further, cost)
}

/// The weight α of the Hessian that minimises M(α)²/α, `M` the joint supremum: golden section on log α.
///
/// `M(α)²/α = sup (α l''² + l'⁴/α)` is a supremum of functions convex in α, so it has one minimum. Any α is valid; this one
/// is never worse than separate releases at equal shares.
fn joint_alpha(sup: impl Fn(f64) -> f64) -> f64 {
    let cost = |log: f64| 2.0 * sup(log.exp()).ln() - log;
    let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut low, mut high) = (-30.0_f64, 30.0_f64);
    for _ in 0..100 {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        if cost(a) <= cost(b) {
            high = b;
        } else {
            low = a;
        }
    }
    (0.5 * (low + high)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{HuberHinge, Logistic, Loss};

    #[test]
    fn weight_is_two_for_the_logistic_loss_and_follows_the_scale() {
        let weight = |h: f64| joint_weight(1.0, HuberHinge::new(h).unwrap().curvature_bound());
        for (got, expected) in [
            (joint_weight(1.0, Logistic.curvature_bound()), 2.0),
            (weight(1.0), 2.0),
            (weight(0.05), 0.1),
            (weight(50.0), 50.0),
        ] {
            assert!((got - expected).abs() < 1e-12, "{got} {expected}");
        }
    }

    #[test]
    fn alpha_of_logistic_and_huber() {
        // Values for the logistic loss at margins up to .5, 2 and infinity, and 2h for the Huber hinge.
        for (radius, expected) in [(0.5, 1.65), (2.0, 3.2), (f64::INFINITY, 3.85)] {
            let alpha = joint_alpha(|a| Logistic.sup_joint_norm(a, radius));
            assert!((alpha - expected).abs() < 0.01 * expected, "{radius} {alpha}");
        }
        let huber = HuberHinge::new(0.7).unwrap();
        assert!((joint_alpha(|a| huber.sup_joint_norm(a, 9.0)) - 1.4).abs() < 1e-6);
    }
}
