//! The choices of a fit by Newton steps with noisy gradients on rows made round: budget, noise and seals of every stage.
//!
//! Given what earlier stages released, each is a query of its own, so that their costs add up (docs/proofs/newton.md).

use std::sync::Arc;

mod combined;
mod pure;
mod shares;

pub(crate) use combined::LastPoint;
pub(crate) use shares::At;
use shares::{EARLIER_HESSIANS, NORMS, RADII, SHAPE};

use super::fit::{check_budget, check_size, matrix_seal, share_seal, sum_rounding};
use super::moment_matrix::{cost_of, matrix_noise, sealed_std_dev};
use super::{MatrixNoise, Part, Planned, Query, Seal, Step, Terms};
use crate::error::{check_length, check_positive};
use crate::interval::{CovarianceSize, EXPECTED, EXPECTED_OF_COUNTS, StepLoss, StepNoise};
use crate::linalg::check_matrix_dim;
use crate::loss::{
    Continued, Loss, Targets, gradient_rounding, moment_rounding, person_rounding, second_moment_rounding,
};
use crate::noise::{AnyLaw, Law, MatrixLaw, NoiseLaw};
use crate::privacy::{Budget, Cost, DataBounds, gaussian_std_dev};
use crate::row_domain::{RowDomain, row_norm_bound};
use crate::{Error, Result};

/// Steps between the first one, from 0, and the last one. Each begins with a Hessian, by which the rows are made round anew.
pub(crate) const EARLIER_STEPS: usize = 2;

/// Seals: radii and shape, the gradient at 0, four of each earlier step, then gradient, Hessian and covariance of the last point.
const SEALS: u32 = 15;
const _: () = assert!(SEALS as usize == 3 + 1 + 4 * EARLIER_STEPS + 3);

/// Share of the records whose rows weigh less while the shape is released; at last, the least that noise does not hide.
const BEYOND_RADIUS: [f64; 2] = [0.05, 0.0];
/// Share of the records with a longer gradient than the norm that decides the bound, of log-odds.
const BEYOND_GRADIENT: f64 = 0.015;
/// Both bounds over these norms. With less, the coefficients of tables with heavy tails differ from the ordinary ones
/// (docs/evidence/newton.md).
const REACH: [f64; 2] = [1.75, 1.5];
/// The bound on gradients grows towards that of the farthest records while the standard deviation of the noise stays below this part of the
/// sampling error: that costs an eighth of the length at most.
const CHEAP: f64 = 0.5;
/// Log-odds: above this part the bound falls, for noise is then the greater part of the error and shorter intervals are worth that rows weigh
/// less; but not below the norm that decides the bound, nor below this part of the steepest gradient of a typical row.
const DEAR: f64 = 1.2;
const LEAST_TYPICAL: f64 = 0.5;
/// The bound on Hessians keeps the edge of the noise at the last point below this: moved rows have Hessians near I, and chance in the counts
/// must not hide them.
const MOST_EDGE: f64 = 0.35;
/// Shares below this many standard deviations of their noise are not told from none. Counts of Gaussian noise are many, and one of them that
/// chance takes for records far out lengthens every interval: three deviations do in one of 150 fits, these in one of a thousand.
const SEEN: f64 = 3.5;

/// Norms of rows and gradients to choose from fall from the greatest one by this factor each, those of Hessians by its square.
const NORM_RATIO: f64 = 1.2;
/// Number of radii, and of other norms: the least is an eighteenth of the greatest, or a thirty-eighth.
const N_RADII: usize = 17;
const N_NORMS: usize = 21;
/// Once rows are round, no radius is longer than this many times their root mean square norm.
const GREATEST_RADIUS: f64 = 6.0;
/// At 0 a gradient has a bound as if its row were no longer than this many times the root of the dimension: it only starts the steps.
const FIRST_RADIUS: f64 = 2.0;
/// Root of the share of the Hessian in the sensitivity of both matrices, over that of the covariance: the first has four fifths.
const HESSIAN_PART: f64 = 2.0;

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
    /// The loss; of a specification, continued where its slope or curvature has no bound.
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

/// Bounds that released counts choose: records with a gradient or a Hessian of a greater norm count with this one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormBounds {
    /// On the norm of one record's gradient.
    pub gradient: f64,
    /// On the norm of one record's Hessian.
    pub hessian: f64,
    /// By how much the map that makes rows round anew stretches one at most: its Frobenius norm, or 1 without.
    pub stretch: f64,
}

/// A norm beyond which a share of the records is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantile {
    pub(crate) norm: f64,
    /// The same for the least share that the noise does not hide.
    pub(crate) farthest: f64,
    /// Root mean square of the norms, at least: of the shares that noise does not hide.
    pub(crate) size: f64,
}

/// Counts of records by a norm: of rows, gradients or Hessians.
#[derive(Debug, Clone)]
pub(crate) struct NormCounts {
    /// Norms, increasing.
    pub(crate) norms: Vec<f64>,
    /// Share of the records that shall be beyond the norm, of all that counts.
    beyond: f64,
    /// Whether every record counts 1, so that shares of all add up to it.
    counts_one: bool,
    /// Shares below this many standard deviations of their noise are not told from none.
    seen: f64,
    /// Noise of the shares of records between a norm and the next.
    pub(crate) noise: Planned<AnyLaw>,
}

impl NormCounts {
    /// Standard deviation of the noise of a share.
    fn std_dev(&self) -> f64 {
        match self.noise.step.cost {
            Cost::Epsilon(_) => std::f64::consts::SQRT_2 * self.noise.step.scale,
            _ => self.noise.step.scale,
        }
    }

    /// The norm beyond which the wanted share of the records is, by the released shares of which that beyond all norms is the last, or the
    /// least share that the noise does not hide: between two norms by the logarithm. Post-processing.
    pub(crate) fn quantile(&self, shares: &[f64]) -> Quantile {
        let pairs = self.norms.iter().zip(shares);
        let seen = pairs.filter(|(_, share)| **share > self.seen * self.std_dev());
        let size = seen.map(|(norm, share)| share * norm * norm).sum::<f64>();
        let whole = if self.counts_one {
            1.0
        } else {
            shares.iter().sum::<f64>().max(0.0)
        };
        Quantile {
            norm: self.norm_beyond(shares, self.beyond * whole),
            farthest: self.norm_beyond(shares, 0.0),
            size: size.sqrt(),
        }
    }

    fn norm_beyond(&self, shares: &[f64], wanted: f64) -> f64 {
        let (mut beyond, mut above): (f64, Option<f64>) = (0.0, None);
        for (counted, (norm, share)) in self.norms.iter().zip(shares).rev().enumerate() {
            let hidden = self.seen * self.std_dev() * ((counted + 1) as f64).sqrt();
            let few = wanted.max(hidden);
            let next = beyond + share;
            if next > few {
                return match above {
                    // The share beyond grows from that beyond the greater norm to this one.
                    Some(above) => {
                        let part = (few - beyond).max(0.0) / (next - beyond);
                        above * (norm / above).powf(part.min(1.0))
                    }
                    None => *norm,
                };
            }
            (beyond, above) = (next, Some(*norm));
        }
        above.unwrap_or_default()
    }
}

impl NewtonSpec {
    /// Divides the budget among the stages.
    pub fn new(mut choices: NewtonChoices) -> Result<Self> {
        let continued = Continued::new(&choices.loss);
        let is_continued = continued.is_some();
        if let Some(loss) = continued {
            choices.loss = Arc::new(loss);
        }
        let c = &choices;
        c.terms.check_any(c.n_columns)?;
        c.rows.check_columns(c.n_columns)?;
        let length = c.rows.norm();
        check_positive("row_norm", length)?;
        check_size("row_norm", length)?;
        check_budget(c.budget)?;
        let loss = &c.loss;
        let bounded = loss.slope_bound().is_finite() && loss.curvature_bound().is_finite();
        if loss.n_predictors() > 1 || loss.kinked() || loss.predictor_bound().is_some() || !bounded {
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
            if is_continued {
                return Err(Error::Unsupported(format!(
                    "mechanism=\"newton\" requires ZCDP or ApproxDP with the {} loss, whose slope has no bound that the noise of pure DP \
                     could use, got PureDP (pass l2_strength and radius, for objective perturbation)",
                    spec.choices.loss.name()
                )));
            }
            spec.seal_cost = share_seal(seal, spec.pure_seals());
        }
        check_matrix_dim(spec.n_params())?;
        // What public values rule out is refused before anything is paid.
        let greatest = spec.greatest_radius();
        let mut radii = vec![greatest; spec.rounds() + 1];
        radii[0] = spec.row_norm;
        spec.planned(&radii, &vec![spec.bounds_within(greatest); spec.n_points()])?;
        if spec.is_pure() {
            spec.perturbed(spec.row_norm)?;
        }
        Ok(spec)
    }

    getters! { self =>
        /// The validated choices.
        pub choices: &NewtonChoices = &self.choices;
        /// Number of parameters, the intercept included.
        pub n_params: usize = self.choices.n_columns + usize::from(self.choices.intercept.is_some());
        /// Bound on the norm of a row with its constant.
        pub row_norm: f64 = self.row_norm;
        /// Divisor of the sums over the records.
        pub(crate) divisor: f64 = self.choices.terms.divisor();
        /// Whether the noise is that of pure DP: then one perturbed minimiser takes the place of the earlier steps (docs/proofs/newton.md).
        pub is_pure: bool = matches!(self.cost, Cost::Epsilon(_));
        /// Rounds in which the rows are made round by their second moments. But under pure DP, Hessians do it after the first.
        pub rounds: usize = if self.is_pure() { pure::ROUNDS } else { 1 };
        /// Points at which gradients and Hessians have bounds of their own, the first step among them.
        pub n_points: usize = if self.is_pure() { 1 } else { 1 + EARLIER_STEPS };
        /// No radius is greater, once rows are round.
        pub(crate) greatest_radius: f64 = GREATEST_RADIUS * (self.n_params() as f64).sqrt();
    }

    /// Norms that no gradient and no Hessian exceeds where rows weigh less beyond this radius.
    pub(crate) fn bounds_within(&self, radius: f64) -> NormBounds {
        let loss = &self.choices.loss;
        NormBounds {
            gradient: loss.slope_bound() * radius,
            hessian: loss.curvature_bound() * radius.powi(2),
            stretch: 1.0,
        }
    }

    /// Norm that no record's gradient at 0 exceeds.
    pub fn gradient_at_0(&self) -> f64 {
        self.choices.loss.usual_slope_at_zero() * FIRST_RADIUS * (self.n_params() as f64).sqrt()
    }

    /// The norm of a typical row where Hessians are about I, by the mean curvature as far as noise of this size lets it be told.
    /// Post-processing.
    pub(crate) fn typical_norm(&self, curvature: f64, noise: f64) -> f64 {
        let most = self.choices.loss.curvature_bound();
        (self.n_params() as f64 / curvature.max(noise).min(most)).sqrt()
    }

    /// The bound on gradients that a released quantile of their norms chooses, of rows of this typical norm. Post-processing.
    ///
    /// A row of this norm weighs less, however steep its slope, only where the noise would be the greater part of the error.
    pub(crate) fn gradient_bound(&self, norms: Quantile, typical: f64) -> Result<f64> {
        let loss = &self.choices.loss;
        let steepest = loss.usual_slope() * typical;
        let std_dev = self.combined_std_dev()?;
        // Of the mean gradient along one direction.
        let sampling = norms.size / (self.n_params() as f64 * self.divisor()).sqrt();
        let with_noise = |part: f64| part * sampling / std_dev;
        let cheap = with_noise(CHEAP).min(REACH[0] * norms.farthest);
        let bound = (REACH[0] * norms.norm).max(steepest).max(cheap);
        // Other losses hold slopes in place of weighing rows, which moves coefficients further.
        if loss.null_predictor(0.0).is_none() {
            return Ok(bound);
        }
        let least = norms.norm.max(LEAST_TYPICAL * steepest);
        Ok(bound.min(with_noise(DEAR).max(least)))
    }

    /// The bound on Hessians that a released quantile of their norms chooses. Post-processing.
    pub(crate) fn hessian_bound(&self, norms: Quantile) -> Result<f64> {
        let unit = NormBounds {
            gradient: 1.0,
            hessian: 1.0,
            stretch: 1.0,
        };
        let most = MOST_EDGE / self.edge(self.moments(unit)?.hessian);
        Ok((REACH[1] * norms.norm).min(most))
    }

    /// Steps and seals of a release, where the radii of each round and at last, and the bounds on gradients and Hessians at each point, are
    /// these.
    pub fn planned(&self, radii: &[f64], bounds: &[NormBounds]) -> Result<(Vec<Step>, Vec<Seal>)> {
        check_length("radii", self.rounds() + 1, radii.len())?;
        check_length("bounds", self.n_points(), bounds.len())?;
        let (mut steps, mut seals) = (Vec::new(), Vec::new());
        for (round, radius) in radii.iter().enumerate() {
            let counts = self.radius(round, self.row_norm)?.noise;
            steps.push(counts.step);
            seals.push(counts.seal);
            if round < self.rounds() {
                let shape = self.shape(*radius)?;
                steps.push(shape.step);
                seals.push(shape.seal);
            }
        }
        if self.is_pure() {
            self.plan_pure(bounds[0], &mut steps, &mut seals)?;
            return Ok((steps, seals));
        }
        let mut add = |planned: (Step, Seal)| {
            steps.push(planned.0);
            seals.push(planned.1);
        };
        let mut last = bounds[0];
        let first = self.gradient(last.gradient, 1.0, At::Zero)?;
        add((first.step, first.seal));
        for (step, at) in bounds[1..].iter().enumerate() {
            let hessian = self.hessian(last, step)?;
            add((hessian.step, hessian.seal));
            // The noise of counts is the same for all norms.
            for counts in self.norms(1.0, step)? {
                add((counts.noise.step, counts.noise.seal));
            }
            let gradient = self.gradient(at.gradient, at.stretch, At::Earlier(step))?;
            add((gradient.step, gradient.seal));
            last = *at;
        }
        let moments = self.moments(last)?;
        let gradient = self.gradient(last.gradient, last.stretch, At::Last)?;
        steps.extend([moments.step, gradient.step]);
        seals.extend(moments.seals.into_iter().chain([gradient.seal]));
        Ok((steps, seals))
    }

    /// The loss, as the error of the last step depends on it.
    pub fn step_loss(&self) -> StepLoss {
        let c = &self.choices;
        StepLoss {
            is_log_odds: c.loss.null_predictor(0.0).is_some(),
            is_of_classes: c.loss.is_likelihood() && matches!(c.loss.targets(), Targets::Signs),
            is_continued: c.loss.is_continued(),
            covariance: self.covariance_size(),
            width: c.loss.curvature_width(),
        }
    }

    /// Counts in other units than one event have a covariance of another size.
    fn covariance_size(&self) -> CovarianceSize {
        let c = &self.choices;
        let is_of_counts = c.loss.is_continued() && !matches!(c.loss.targets(), Targets::Signs);
        if !c.loss.is_likelihood() || is_of_counts && c.loss.targets().ends()[1] <= 1.0 {
            CovarianceSize::Released
        } else if is_of_counts {
            CovarianceSize::Around(EXPECTED_OF_COUNTS)
        } else if c.loss.null_predictor(0.0).is_some() && c.terms.is_of_rows() {
            CovarianceSize::Of(EXPECTED)
        } else {
            CovarianceSize::Around(EXPECTED)
        }
    }

    /// Greatest absolute value of each entry of a row, with its constant.
    pub fn greatest_entries(&self) -> Vec<f64> {
        let c = &self.choices;
        let mut entries = c.rows.greatest_entries(c.n_columns);
        entries.extend(c.intercept);
        entries
    }

    /// The law of the noise in the sum of the last gradients, of which each has this weight, and all noise behind the last step, by the
    /// steps and seals of a release.
    pub fn step_noise(&self, steps: &[Step], seals: &[Seal], weights: &[f64]) -> Result<(NoiseLaw, StepNoise)> {
        let dim = self.n_params();
        let other = || Error::Unsupported("the steps must be those of Newton steps".into());
        let step = |query: Query| {
            let found = steps.iter().rev().find(|step| step.query == query);
            found.ok_or_else(other)
        };
        let seal = |part: Part| {
            let found = seals.iter().rev().find(|seal| seal.part() == part);
            found.map(Seal::std_dev).ok_or_else(other)
        };
        // Weights are in the order of the release.
        let weighted = |std_devs: &mut dyn Iterator<Item = f64>| {
            let pairs = weights.iter().rev().zip(std_devs);
            pairs.map(|(w, s)| (w * s).powi(2)).sum::<f64>().sqrt()
        };
        let moments = step(Query::Moments)?;
        let matrix = |scale: f64, part: Part| {
            let law = MatrixLaw::from_name(moments.noise.name(), scale)?;
            Ok::<_, Error>(sealed_std_dev(law, dim, seal(part)?))
        };
        let (law, gradient, of_seal) = if self.is_pure() {
            let scale = step(Query::Coefficients)?.scale;
            let law = NoiseLaw::SphericalLaplace {
                dim,
                rate: scale.recip(),
            };
            (law, scale * (dim as f64 + 1.0).sqrt(), seal(Part::Params)?)
        } else {
            step(Query::NewtonGradient)?;
            let gradients = steps.iter().rev().filter(|s| s.query == Query::NewtonGradient);
            let sealed = seals.iter().rev().filter(|s| s.part() == Part::Gradient);
            let std_dev = weighted(&mut gradients.map(|s| s.scale)) * self.divisor();
            let of_seal = weighted(&mut sealed.map(Seal::std_dev));
            (NoiseLaw::Gaussian { std_dev }, std_dev, of_seal)
        };
        let noise = StepNoise {
            hessian: matrix(moments.hessian_scale.unwrap_or_default(), Part::Hessian)?,
            gradient_cov: matrix(moments.scale, Part::GradientCov)?,
            gradient,
            earlier: self.earlier_noise(steps),
            seal: of_seal,
        };
        Ok((law, noise))
    }

    /// Standard deviation of the noise of the gradient before the last one.
    fn earlier_noise(&self, steps: &[Step]) -> f64 {
        let mut gradients = steps.iter().rev().filter(|s| s.query == Query::NewtonGradient);
        let earlier = if self.is_pure() { None } else { gradients.nth(1) };
        earlier.map_or(0.0, |step| step.scale)
    }

    fn share(&self, share: f64) -> Cost {
        // Sums of all rounded parts do not exceed the whole.
        self.cost.with(self.cost.value() * share * (1.0 - 32.0 * f64::EPSILON))
    }

    fn bounds(&self, radius: f64) -> Result<DataBounds> {
        self.choices.terms.bounds(radius, self.n_params())
    }

    /// The counts that choose the radius of a round, or (`round` = [`Self::rounds`]) the last one, of rows that are at most so long.
    pub(crate) fn radius(&self, round: usize, longest: f64) -> Result<NormCounts> {
        let greatest = if round == 0 {
            longest
        } else {
            longest.min(self.greatest_radius())
        };
        let (share, beyond) = if self.is_pure() {
            (pure::RADII[round], self.beyond(round)?)
        } else {
            (RADII[round], BEYOND_RADIUS[round])
        };
        let norms = falling(greatest, NORM_RATIO, N_RADII);
        self.counts((Query::Radius, Part::Radius), norms, beyond, share)
    }

    /// The counts that choose the bounds on gradients and on Hessians, of rows of this typical norm.
    pub(crate) fn norms(&self, typical: f64, step: usize) -> Result<[NormCounts; 2]> {
        let greatest = self.bounds_within(GREATEST_RADIUS * typical);
        // As far down from the usual slope, and from a hundredth of the greatest curvature, as those of other losses from the greatest ones.
        let loss = &self.choices.loss;
        let more = |times: f64, ratio: f64| {
            let powers = std::iter::successors(Some(times), |rest| Some(rest / ratio));
            powers.take_while(|rest| *rest > 1.0).count()
        };
        let (slopes, curvatures) = if loss.is_continued() {
            (loss.slope_bound() / loss.usual_slope(), 100.0)
        } else {
            (1.0, 1.0)
        };
        let of_slopes = more(slopes, NORM_RATIO);
        let of_curvatures = more(curvatures, NORM_RATIO.powi(2));
        let gradients = falling(greatest.gradient, NORM_RATIO, N_NORMS + of_slopes);
        let hessians = falling(greatest.hessian, NORM_RATIO.powi(2), N_NORMS + of_curvatures);
        let of = (Query::GradientNorms, Part::GradientNorms);
        let of_hessians = (Query::HessianNorms, Part::HessianNorms);
        // Where slopes are held, as of other losses than those of odds, they are as few as noise lets be seen.
        let of_odds = loss.null_predictor(0.0).is_some();
        let beyond = if of_odds { BEYOND_GRADIENT } else { 0.0 };
        Ok([
            self.counts(of, gradients, beyond, NORMS[step][0])?,
            self.counts(of_hessians, hessians, 0.0, NORMS[step][1])?,
        ])
    }

    /// Counts of records by increasing norms, of which this share shall be beyond the one that is chosen.
    ///
    /// # Privacy
    /// A record counts at most once, in parts that are not negative: one that is replaced moves the counts by at most √2 in the Euclidean
    /// norm, and by at most 2 in the sum of their sizes, which counts under pure DP.
    fn counts(&self, kind: (Query, Part), norms: Vec<f64>, beyond: f64, share: f64) -> Result<NormCounts> {
        let (number, cost) = (norms.len(), self.share(share));
        let bounds = self.choices.terms.bounds(1.0, number)?;
        let moved = bounds.objective_shift(1.0);
        let moved = if self.is_pure() { moved } else { moved.sqrt() };
        let sensitivity = bounds.argmin(moved, 1.0);
        Ok(NormCounts {
            norms,
            beyond,
            counts_one: self.choices.terms.counts_one(),
            seen: if self.is_pure() { pure::SEEN } else { SEEN },
            noise: Planned::independent(kind, cost, &bounds, sensitivity, 2.0, self.seal_cost)?,
        })
    }

    /// The noise of the second moments of rows of at most this norm.
    pub(crate) fn shape(&self, radius: f64) -> Result<Planned<MatrixNoise>> {
        let share = if self.is_pure() { pure::SHAPE } else { SHAPE };
        let (bounds, cost) = (self.bounds(radius)?, self.share(share));
        let noise = matrix_noise(&bounds, 1.0, cost)?;
        let data = 2.0 * sum_rounding(&bounds, second_moment_rounding) * radius.powi(2);
        let kind = (Query::Shape, Part::Shape);
        noise.planned(kind, cost, self.n_params(), data, self.seal_cost)
    }

    /// End of the spectrum of the noise, below which eigenvalues are not told from it: `√(2d)` standard deviations of an isometric
    /// coordinate.
    pub(crate) fn edge(&self, noise: MatrixNoise) -> f64 {
        let dim = self.n_params();
        (2.0 * dim as f64).sqrt() * noise.law.isometric_std_dev(dim)
    }

    /// The noise of the mean gradient, of which each record's is at most so long, at an earlier step or the last one. Round rows have been
    /// stretched by this at most.
    pub(crate) fn gradient(&self, greatest: f64, stretch: f64, at: At) -> Result<Planned<NoiseLaw>> {
        let (bounds, dim) = (self.bounds(1.0)?, self.n_params());
        let cost = self.share(self.gradient_share(at));
        let sensitivity = bounds.argmin(bounds.objective_shift(greatest), 1.0);
        let std_dev = gaussian_std_dev(sensitivity, cost.mu())?;
        let law = NoiseLaw::Gaussian { std_dev };
        // Slopes err by a part of their bound, whatever the limit on them.
        let longest = self.bounds_within(self.greatest_radius() * stretch);
        let data = 2.0 * sum_rounding(&bounds, gradient_rounding) * longest.gradient;
        let distance = data + 2.0 * law.on(dim)?.error_bound();
        Ok(Planned {
            step: Step::new(Query::NewtonGradient, law.family(), cost, std_dev, sensitivity),
            seal: Seal::new(Part::Gradient, dim, distance, self.seal_cost)?,
            law,
        })
    }

    /// The noise of the mean Hessian at an earlier point, where those of records have these bounds.
    pub(crate) fn hessian(&self, bounds: NormBounds, step: usize) -> Result<Planned<MatrixNoise>> {
        let cost = self.share(EARLIER_HESSIANS[step]);
        let noise = matrix_noise(&self.bounds(1.0)?, bounds.hessian, cost)?;
        Ok(Planned {
            law: noise,
            step: noise.step(Query::NewtonHessian, cost),
            seal: self.moment_seal(Part::Hessian, noise, bounds.stretch)?,
        })
    }

    /// Gaussian noise on the vector (αH, Σ).
    fn gaussian_moments(&self, greatest: NormBounds) -> Result<[MatrixNoise; 2]> {
        let (bounds, cost) = (self.bounds(1.0)?, self.share(self.moments_share()));
        let square = greatest.gradient.powi(2);
        let alpha = HESSIAN_PART * square / greatest.hessian;
        let sensitivity = bounds.joint_frobenius((alpha * greatest.hessian).hypot(square));
        MatrixNoise::gaussian_pair(alpha, sensitivity, cost)
    }

    /// The noise of Hessian and gradient covariance at the last point.
    ///
    /// # Privacy
    /// One vector (αH, Σ): a record's part of it is at most `√((α·hessian)² + gradient⁴)` long.
    pub(crate) fn moments(&self, greatest: NormBounds) -> Result<PlannedMoments> {
        let [hessian, gradient_cov] = if self.is_pure() {
            self.pure_moments(greatest)?
        } else {
            self.gaussian_moments(greatest)?
        };
        let cost = self.share(self.moments_share());
        Ok(PlannedMoments {
            step: Step {
                query: Query::Moments,
                noise: gradient_cov.law.family(),
                cost,
                scale: gradient_cov.law.scale(),
                hessian_scale: Some(hessian.law.scale()),
                levels_scale: None,
                sensitivity: gradient_cov.sensitivity,
            },
            seals: [
                self.moment_seal(Part::Hessian, hessian, greatest.stretch)?,
                self.moment_seal(Part::GradientCov, gradient_cov, greatest.stretch)?,
            ],
            hessian,
            gradient_cov,
        })
    }

    fn moment_seal(&self, part: Part, noise: MatrixNoise, stretch: f64) -> Result<Seal> {
        let longest = self.greatest_radius() * stretch;
        let (bounds, loss) = (self.bounds(longest)?, &self.choices.loss);
        // As of other fits, the covariance of persons and of weighted rows has a factor more.
        let (of_rows, greatest): (fn(usize) -> f64, f64) = match part {
            Part::GradientCov => (person_rounding, loss.slope_bound().powi(2)),
            _ => (moment_rounding, loss.curvature_bound()),
        };
        let of_curvature = match part {
            Part::GradientCov => 0.0,
            _ => loss.bound_roundings(),
        };
        let roundings = [sum_rounding(&bounds, of_rows), of_curvature];
        matrix_seal(part, &bounds, noise, greatest, roundings, 0.0, self.seal_cost)
    }
}

/// Numbers that fall from the greatest one by a ratio, increasing.
fn falling(greatest: f64, ratio: f64, number: usize) -> Vec<f64> {
    let next = |norm: &f64| Some(norm / ratio);
    let mut norms: Vec<f64> = std::iter::successors(Some(greatest), next).take(number).collect();
    norms.reverse();
    norms
}
