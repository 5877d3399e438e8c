//! The error of the last of several Newton steps, from released values alone, and whether the steps have ended (docs/proofs/newton.md).
//!
//! Added to the errors of sampling and of the gradient's noise are those of the step: the noise of the Hessian by which it divides, what a
//! further step would change, and directions that the Hessian does not show.

use std::f64::consts::{FRAC_1_PI, FRAC_1_SQRT_2};

use errorfunctions::RealErrorFunctions;

use super::ErrorLaw;
use super::directions::{sandwich, trace};
use crate::Result;
use crate::error::check_length;
use crate::linalg::{Eigen, product_transposed, solve_square, times, transposed, vector};

/// Standard deviation of the gradients' covariance around the Hessian, as a share of it: for the likelihoods of odds, and for other losses,
/// of which only the size of the covariance is known beforehand.
const DEVIATIONS: [f64; 2] = [0.3, 0.5];
/// Expected covariance of the gradients of a likelihood, as a multiple of the Hessian: 1 where the model holds, up to 1.5 on tables
/// (docs/evidence/newton.md).
pub const EXPECTED: f64 = 1.2;
/// The same of counts, whose variances are greater than their means.
pub const EXPECTED_OF_COUNTS: f64 = 1.6;
/// Standard deviation around both where the released trace counts, over them.
const EXPECTED_DEVIATION: f64 = 0.35;
/// Root mean square change of log-odds over round rows that the error along a hidden direction makes, at most: of a category with one record
/// in a hundred its coefficient would be 10 off.
const MOST_HIDDEN: f64 = 1.0;
/// Least variance of a contrast, as a share of that where the covariance is the Hessian.
const LEAST_SHARE: f64 = 0.6;
/// Parameters from which on the inverse of a Hessian with noise is great enough on average to make up for its spread.
const ENOUGH: usize = 3;
/// How much more than its mean the variance of an interval of 95% must be for each unit of its relative variance of the inverse Hessian.
const SPREAD: f64 = 2.8;
/// Part of the square of the last step that a further one may change.
const NEXT_STEP: f64 = 0.5;
/// Greatest share of the variance of a contrast that may lie in directions of which noise hides the Hessian: in these a step goes only a
/// part of the way, which intervals count.
const HIDDEN_SHARE: f64 = 0.75;

/// Share of the directions that noise may hide of the Hessian of classes: what a predictor has along these changes all other coefficients.
const MOST_HIDDEN_DIRECTIONS: f64 = 0.5;
/// Least mean eigenvalue of the Hessian over the edge of its noise, with which a fit has intervals.
pub const SEEN_CURVATURE: f64 = 1.5;
/// Root mean square change of the predictor in the last step, over the width of the loss, beyond which steps have not ended: of log-odds, of
/// which [`MOST_GROWTH`] tells noise from a minimiser that is far, and of other losses.
const LONGEST: [f64; 2] = [1.0, 0.6];
/// Root mean square of the predictor over round rows beyond which almost every record is told by its columns, or by the constant alone, as
/// where one class has less than two in a hundred records; of log-odds, its standard deviation.
const FARTHEST: f64 = 4.0;
/// How much the standard deviation of the predictor of classes, or its root mean square, in units of the width, may grow in the last step:
/// it grows by 2.5 to 3 where the classes are separable; of log-odds by .9 where it is 8 at the target, and by .1 at 5; of other classes by
/// 1 where it is 5, and by a quarter at 3.
const MOST_GROWTH: f64 = 0.5;
/// Greatest change of the predictor of classes in the last step times its root mean square: of a single class, whose constant has no end, it is
/// 2.8 to 7. A step off a ridge, under pure DP, shows less of the way that is left.
const MOST_LEVERAGE: [f64; 2] = [2.5, 1.0];
/// Variance of the predictor over rows, over that over rows weighted by their curvature, at most.
const FEW: f64 = 10.0;

/// Released values of Newton steps on moved rows, and the public values behind their noise. Matrices are square and row-major.
#[derive(Debug, Clone)]
pub struct Steps {
    /// T, which moves rows x to `z = Tᵀx`, so that `θ = T·params`.
    pub map: Vec<f64>,
    /// R, which makes rows round before Hessians move them further.
    pub round_map: Vec<f64>,
    /// Points with a released gradient, of which each makes a step; the matrices are those of the last one.
    pub starts: Vec<Vec<f64>>,
    /// How much each step counts, 1 in all.
    pub weights: Vec<f64>,
    /// Where the steps end, weighted.
    pub params: Vec<f64>,
    /// Mean Hessian at the last start.
    pub hessian: Vec<f64>,
    /// Mean of the squared gradients there.
    pub gradient_cov: Vec<f64>,
    /// Below it eigenvalues of the Hessian are not told from its noise.
    pub edge: f64,
    /// The ridge whose perturbed minimiser is the start; 0 for the start of a Newton step.
    pub ridge: f64,
    /// The constant of each row.
    pub intercept: Option<f64>,
    /// Greatest absolute value of each entry of a row, with its constant.
    pub greatest_entries: Vec<f64>,
    /// Public number of records.
    pub n_samples: f64,
    /// Noise in the values.
    pub noise: StepNoise,
    /// The loss.
    pub loss: StepLoss,
}

/// Standard deviations of the noise in what the last step is made of.
#[derive(Debug, Clone, Copy)]
pub struct StepNoise {
    /// Deviation of an isometric coordinate of the Hessian, its seal included.
    pub hessian: f64,
    /// The same of the gradients' covariance.
    pub gradient_cov: f64,
    /// Deviation of a coordinate of the weighted sum of the gradients.
    pub gradient: f64,
    /// Deviation of a coordinate of the earlier mean gradient, 0 where there is none.
    pub earlier: f64,
    /// Deviation of the seals of the weighted mean gradient, or of that of the minimiser.
    pub seal: f64,
}

/// Size of the covariance of the gradients, as a multiple of the Hessian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CovarianceSize {
    /// A known one, of odds of whole records.
    Of(f64),
    /// One near this, as far as the released trace leaves open, of other likelihoods.
    Around(f64),
    /// The released trace alone tells it.
    Released,
}

/// Facts of a loss on which the error of a step depends.
#[derive(Debug, Clone, Copy)]
pub struct StepLoss {
    /// Whether the predictor is the logarithm of odds.
    pub is_log_odds: bool,
    /// Whether it tells the probability of a class, and grows without end where the columns separate the classes.
    pub is_of_classes: bool,
    /// Whether its slope has no bound but where it goes on as a straight line.
    pub is_continued: bool,
    /// Size of the covariance of its gradients.
    pub covariance: CovarianceSize,
    /// Over how far a predictor moves before the curvature changes.
    pub width: f64,
}

/// Why the last step may not end near the target, with the numbers that show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unfinished {
    /// The noise hides the Hessian: its mean eigenvalue, and where the noise ends.
    Hidden([f64; 2]),
    /// The noise hides half of the directions of the Hessian, or more: how many, and how many there are.
    HalfHidden([f64; 2]),
    /// The predictor separates the classes: its root mean square, and its standard deviation.
    Separated([f64; 2]),
    /// The predictor is steep and moves: the change of the predictor in the last step times its root mean square, and the most that is allowed.
    Steep([f64; 2]),
    /// The predictor grows: by how much its standard deviation or its root mean square does in the last step, and the most that is allowed.
    Growing([f64; 2]),
    /// The change of the predictor in the last step, and the most that is allowed.
    Moving([f64; 2]),
}

impl Unfinished {
    /// `"hidden"`, `"half_hidden"`, `"separated"`, `"steep"`, `"growing"` or `"moving"`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hidden(_) => "hidden",
            Self::HalfHidden(_) => "half_hidden",
            Self::Separated(_) => "separated",
            Self::Steep(_) => "steep",
            Self::Growing(_) => "growing",
            Self::Moving(_) => "moving",
        }
    }

    /// The numbers that show it.
    pub fn numbers(&self) -> &[f64] {
        match self {
            Self::Hidden(numbers)
            | Self::HalfHidden(numbers)
            | Self::Separated(numbers)
            | Self::Steep(numbers)
            | Self::Growing(numbers)
            | Self::Moving(numbers) => numbers,
        }
    }
}

/// The last step, in the directions of the released Hessian.
#[derive(Debug)]
pub struct LastStep {
    steps: Steps,
    dim: usize,
    eigen: Eigen,
    /// Eigenvalues, none below the edge.
    raised: Vec<f64>,
    /// `TV`, row-major: from parameters in the directions of the Hessian to those of the rows x.
    back: Vec<f64>,
    /// `R⁻¹TV`, by columns: its directions as round rows have them, whose squares have the mean I.
    directions: Vec<f64>,
    /// Mean eigenvalue of the raised Hessian for round rows.
    curvature: f64,
    /// The Hessian for round rows: along directions that second moments hide, rows hardly vary, and nor does it.
    of_round: Eigen,
    /// Square of the length for z of each of its directions: how much of the noise of the Hessian lies in it.
    reach: Vec<f64>,
    /// The steps from each start.
    steps_from: Vec<Vec<f64>>,
    /// Their weighted sum.
    step: Vec<f64>,
}

impl LastStep {
    /// The step of these values.
    pub fn new(steps: Steps) -> Result<Self> {
        let dim = steps.params.len();
        check_length("weights", steps.starts.len(), steps.weights.len())?;
        check_length("greatest_entries", dim, steps.greatest_entries.len())?;
        for start in &steps.starts {
            check_length("start", dim, start.len())?;
        }
        for (name, found, expected) in [
            ("map", &steps.map, dim * dim),
            ("round_map", &steps.round_map, dim * dim),
            ("hessian", &steps.hessian, dim * dim),
            ("gradient_cov", &steps.gradient_cov, dim * dim),
        ] {
            check_length(name, expected, found.len())?;
        }
        let eigen = Eigen::new(&steps.hessian, dim, "the released Hessian")?;
        let raised: Vec<f64> = eigen.values.iter().map(|v| v.max(steps.edge)).collect();
        // Eigenvectors one after another are the rows of Vᵀ.
        let back = product_transposed(&steps.map, &eigen.vectors, dim);
        // M⁻¹ = T⁻¹R, by columns.
        let inverse = solve_square(&steps.map, &transposed(&steps.round_map, dim), dim, MAPS)?;
        let along = eigen.vectors.chunks_exact(dim).zip(&raised);
        let parts = along.map(|(v, value)| {
            let columns = inverse.chunks_exact(dim);
            value * columns.map(|c| vector::dot(v, c).powi(2)).sum::<f64>()
        });
        let curvature = parts.sum::<f64>() / dim as f64;
        let hessian = sandwich(&steps.hessian, &inverse, dim);
        let of_round = Eigen::new(&hessian, dim, "the released Hessian")?;
        let columns = transposed(&inverse, dim);
        let reach = of_round.vectors.chunks_exact(dim).map(|w| {
            let rows = columns.chunks_exact(dim);
            rows.map(|row| vector::dot(row, w).powi(2)).sum()
        });
        let reach = reach.collect();
        let directions = solve_square(&steps.round_map, &transposed(&back, dim), dim, MAPS)?;
        let from = |start: &Vec<f64>| coordinates(&eigen, &difference(&steps.params, start));
        let steps_from: Vec<Vec<f64>> = steps.starts.iter().map(from).collect();
        let mut step = vec![0.0; dim];
        for (weight, from) in steps.weights.iter().zip(&steps_from) {
            step.iter_mut().zip(from).for_each(|(s, f)| *s += weight * f);
        }
        Ok(Self {
            steps,
            dim,
            eigen,
            raised,
            back,
            directions,
            curvature,
            of_round,
            reach,
            steps_from,
            step,
        })
    }

    /// The released Hessian, its eigenvalues raised to the edge of its noise.
    pub fn raised_hessian(&self) -> Vec<f64> {
        Eigen {
            values: self.raised.clone(),
            vectors: self.eigen.vectors.clone(),
        }
        .recompose()
    }

    fn is_hidden(&self, direction: usize) -> bool {
        self.eigen.values[direction] <= self.steps.edge
    }

    fn n_hidden(&self) -> usize {
        (0..self.dim).filter(|j| self.is_hidden(*j)).count()
    }

    /// Whether contrasts of the parameters of the rows are given: the noise does not hide in which direction they lie.
    pub fn shows(&self, contrast: &[f64]) -> Result<bool> {
        check_length("contrast", self.dim, contrast.len())?;
        let (mut hidden, mut whole) = (0.0, 0.0);
        for j in 0..self.dim {
            let rows = self.back.chunks_exact(self.dim).zip(contrast);
            let weight = rows.map(|(row, c)| c * row[j]).sum::<f64>().powi(2) / self.raised[j];
            whole += weight;
            if self.is_hidden(j) {
                hidden += weight;
            }
        }
        Ok(!(hidden > HIDDEN_SHARE * whole))
    }

    /// The law of the errors of the parameters of the rows.
    pub fn law(&self) -> ErrorLaw {
        let (s, dim, n) = (&self.steps, self.dim, self.steps.n_samples);
        let (size, is_of_odds) = match s.loss.covariance {
            CovarianceSize::Of(size) => (size, true),
            _ => (self.covariance_size(), false),
        };
        let mut sampling = sandwich(&s.gradient_cov, &self.eigen.vectors, dim);
        self.shrink(&mut sampling, size, DEVIATIONS[usize::from(!is_of_odds)]);
        let divided = self.divisors();
        let of_inverse = self.excess_of_inverse();
        for (i, row) in sampling.chunks_exact_mut(dim).enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                *entry = *entry * of_inverse[i] * of_inverse[j] / (divided[i] * divided[j]) / n;
            }
        }
        let added = self.errors_of_step(&self.start_errors(&sampling, &divided));
        let mut least = added.clone();
        for (j, raised) in self.raised.iter().enumerate() {
            least[j * dim + j] += LEAST_SHARE * size / raised / n;
        }
        for (entry, more) in sampling.iter_mut().zip(&added) {
            *entry += more;
        }
        let of_rows = |matrix: &[f64]| sandwich(matrix, &self.back, dim);
        let (mut sampling, mut least) = (of_rows(&sampling), of_rows(&least));
        for (j, error) in self.entrywise_errors().into_iter().enumerate() {
            sampling[j * dim + j] += error;
            least[j * dim + j] += error;
        }
        let mut multipliers = transposed(&self.back, dim);
        for (row, divided) in multipliers.chunks_exact_mut(dim).zip(&divided) {
            for m in row {
                *m = *m / divided / n;
            }
        }
        ErrorLaw::of_parts(sampling, least, multipliers)
    }

    /// The posterior mean of the covariance of the gradients, as a multiple of the Hessian, by its released trace: a multiple is not negative, and
    /// noise may leave nothing else of it.
    fn covariance_size(&self) -> f64 {
        let (s, dim) = (&self.steps, self.dim);
        let whole = self.raised.iter().sum::<f64>();
        let released = trace(&s.gradient_cov, dim) / whole;
        let noise = (dim as f64).sqrt() * s.noise.gradient_cov / whole;
        let (mut mean, mut deviation) = (released, noise);
        if let CovarianceSize::Around(expected) = s.loss.covariance {
            let around = EXPECTED_DEVIATION * expected;
            let weight = noise.powi(2) / (noise.powi(2) + around.powi(2));
            mean += weight * (expected - released);
            deviation = weight.sqrt() * around;
        }
        // The mean of a normal variable that is not negative.
        let below = -mean / deviation.max(f64::MIN_POSITIVE) * FRAC_1_SQRT_2;
        mean + deviation * (2.0 * FRAC_1_PI).sqrt() / below.erfcx()
    }

    fn is_perturbed(&self) -> bool {
        self.steps.ridge > 0.0
    }

    /// A hidden eigenvalue, as far as noise lets it be seen: at least one standard deviation of the noise.
    fn seen(&self, direction: usize) -> f64 {
        let floor = self.steps.noise.hessian.min(self.steps.edge);
        self.eigen.values[direction].clamp(floor, self.steps.edge)
    }

    /// The error along a hidden direction: the step went a part of the way, which it tells, over the edge.
    fn unseen(&self, direction: usize) -> f64 {
        let error = (self.step[direction] * self.steps.edge / self.seen(direction)).abs();
        if !self.steps.loss.is_log_odds {
            return error;
        }
        let columns = self.directions.chunks_exact(self.dim);
        let length = columns.map(vector::norm).nth(direction);
        error.min(MOST_HIDDEN / length.unwrap_or_default())
    }

    /// Squared root mean square change of the predictor in a step, in units of the width of the loss.
    fn moved(&self, step: &[f64]) -> f64 {
        let pairs = self.raised.iter().zip(step);
        let size = pairs.map(|(r, s)| r * s * s).sum::<f64>();
        size / self.curvature / self.steps.loss.width.powi(2)
    }

    /// The sum of what a further step would change of each step.
    fn next_steps(&self) -> Vec<f64> {
        let mut next = vec![0.0; self.dim];
        for (weight, step) in self.steps.weights.iter().zip(&self.steps_from) {
            let part = weight * (NEXT_STEP * self.moved(step)).sqrt();
            next.iter_mut().zip(step).for_each(|(n, s)| *n += part * s);
        }
        next
    }

    /// By how much the square of what a further step would change of each parameter of the rows may be greater, of a continued loss, where few
    /// rows have all of an entry.
    ///
    /// The predictors of these rows change by up to the step of the parameter times the greatest entry. A further step changes them by half the
    /// square of this where the curvature is an exponential, and is no longer than this one.
    fn entrywise_errors(&self) -> Vec<f64> {
        let (s, dim) = (&self.steps, self.dim);
        if !s.loss.is_continued {
            return vec![0.0; dim];
        }
        let of_rows = |along: &[f64]| times(&self.back, along);
        let mut further = vec![0.0; dim];
        for (weight, step) in s.weights.iter().zip(&self.steps_from) {
            let steps = of_rows(step).into_iter().zip(&s.greatest_entries);
            for (f, (step, greatest)) in further.iter_mut().zip(steps) {
                let size = step.abs();
                *f += weight * size * (0.5 * size * greatest / s.loss.width).min(1.0);
            }
        }
        let counted = of_rows(&self.next_steps());
        let pairs = further.iter().zip(&counted);
        pairs.map(|(f, c)| (f * f - c * c).max(0.0)).collect()
    }

    /// Divisor of sampling and of the gradient's noise. A perturbed minimiser has their whole error in it, where the step hardly moves, too.
    fn divisors(&self) -> Vec<f64> {
        let of = |j: usize| {
            if self.is_perturbed() && self.is_hidden(j) {
                self.seen(j) + self.steps.ridge
            } else {
                self.raised[j]
            }
        };
        (0..self.dim).map(of).collect()
    }

    /// The square of how far the starts are from the minimiser of the records, which the noise of the Hessian makes an error of.
    ///
    /// Sampling and noise in a perturbed minimiser are divided by the released Hessian in place of the true one. On average noise makes that
    /// inverse too great, by as much as its spread needs where there are three parameters or more (`docs/proofs/newton_pure.md`).
    fn start_errors(&self, sampling: &[f64], divided: &[f64]) -> Vec<f64> {
        let products = self.step.iter().flat_map(|a| self.step.iter().map(move |b| a * b));
        let mut start: Vec<f64> = products.collect();
        if !self.is_perturbed() {
            let part = self.part_of_start();
            vector::scale(&mut start, part);
        } else if self.dim < ENOUGH {
            for (entry, error) in start.iter_mut().zip(sampling) {
                *entry += error;
            }
            let omega = (self.steps.noise.gradient / self.steps.n_samples).powi(2);
            for (j, divided) in divided.iter().enumerate() {
                start[j * self.dim + j] += omega / divided.powi(2);
            }
        }
        start
    }

    /// Factors of the sampling errors along each direction: on average noise makes the inverse of a Hessian too great, by more than the spread of
    /// their variance needs (`docs/proofs/newton.md`, "Intervals").
    fn excess_of_inverse(&self) -> Vec<f64> {
        if self.is_perturbed() {
            return vec![1.0; self.dim];
        }
        let noise = self.steps.noise.hessian.powi(2);
        let whole = self.raised.iter().map(|r| r.recip()).sum::<f64>();
        let of = |raised: &f64| {
            let own = noise / raised.powi(2);
            let excess = 1.5 * (own + noise * whole / raised);
            ((1.0 + SPREAD * own) / (1.0 + excess)).min(1.0).sqrt()
        };
        self.raised.iter().map(of).collect()
    }

    /// The square of how far the starts are from the minimiser of the records, as far as the noise of the Hessian makes an error of it, over that
    /// of the step (`docs/proofs/newton.md`, "Intervals").
    fn part_of_start(&self) -> f64 {
        let s = &self.steps;
        let inverse = self.raised.iter().map(|r| r.recip().powi(2)).sum::<f64>();
        let length = self.step.iter().map(|step| step * step).sum::<f64>();
        let last = s.weights.last().copied().unwrap_or(1.0);
        let of_earlier = s.noise.earlier.powi(2) * inverse;
        let end = (s.noise.gradient / s.n_samples).powi(2) * inverse;
        // Start and end have noise of the earlier gradient in common.
        let both = last * (1.0 - last) * of_earlier;
        let start = (length - end + 2.0 * both).max(last * last * of_earlier);
        let slope = (start - both) / (start + end - 2.0 * both);
        let found = slope * slope * length + start - slope * (start - both) - 4.0 * both;
        if length > 0.0 && found.is_finite() {
            found.max(0.0) / length
        } else {
            1.0
        }
    }

    /// Covariance of the errors that the step makes, from a start with these errors.
    fn errors_of_step(&self, start: &[f64]) -> Vec<f64> {
        let (s, dim, raised) = (&self.steps, self.dim, &self.raised);
        let next = self.next_steps();
        let (whole, of_hessian) = (trace(start, dim), 0.5 * s.noise.hessian.powi(2));
        let mut added = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..dim {
                added[i * dim + j] = of_hessian * start[i * dim + j] / (raised[i] * raised[j]) + next[i] * next[j];
            }
            let seal = if self.is_perturbed() {
                s.noise.seal
            } else {
                s.noise.seal / raised[i]
            };
            let unseen = if self.is_hidden(i) { self.unseen(i) } else { 0.0 };
            added[i * dim + i] += seal.powi(2) + of_hessian * whole / raised[i].powi(2) + unseen.powi(2);
        }
        added
    }

    /// Takes the posterior mean of a covariance with noise, entry by entry, around the multiple of the Hessian that is expected.
    ///
    /// The isometric coordinates of the noise have one standard deviation, so that entries off the diagonal have less.
    fn shrink(&self, cov: &mut [f64], size: f64, deviation: f64) {
        let noise = self.steps.noise.gradient_cov.powi(2);
        for (i, row) in cov.chunks_exact_mut(self.dim).enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                let of_entry = if i == j { 1.0 } else { 0.5 };
                let expected = size * self.raised[i] * (size * self.raised[j]);
                let prior = deviation.powi(2) * expected * of_entry;
                let centre = if i == j { size * self.raised[i] } else { 0.0 };
                *entry = centre + prior / (prior + noise * of_entry) * (*entry - centre);
            }
        }
    }

    /// Why the last step may not end near the target; `None` if it does.
    pub fn unfinished(&self) -> Result<Option<Unfinished>> {
        let (mean, noise) = (self.raised.iter().sum::<f64>() / self.dim as f64, self.edge());
        // Written so that a NaN is a refusal, here and below.
        let (loss, longest) = (self.steps.loss, self.longest());
        if !(mean >= SEEN_CURVATURE * noise) {
            return Ok(Some(Unfinished::Hidden([mean, noise])));
        }
        let [hidden, all] = [self.n_hidden(), self.dim].map(|k| k as f64);
        if loss.is_of_classes && hidden >= MOST_HIDDEN_DIRECTIONS * all {
            return Ok(Some(Unfinished::HalfHidden([hidden, all])));
        }
        let [far, spread] = self.predictor(&self.steps.params, 0.0)?.map(|size| size / self.unit());
        // A perturbed minimiser has a ridge, off which its step leads.
        let grows = loss.is_of_classes && !self.is_perturbed();
        let tells_all = !grows && !(far <= FARTHEST) && spread.powi(2) > mean / noise;
        if !(spread <= FARTHEST) || tells_all {
            return Ok(Some(Unfinished::Separated([far, spread])));
        }
        let most = MOST_LEVERAGE[usize::from(self.is_perturbed())];
        let leverage = self.leverage()?;
        if loss.is_of_classes && !(leverage <= most) {
            return Ok(Some(Unfinished::Steep([leverage, most])));
        }
        let growth = self.growth()?;
        if grows && !(growth <= MOST_GROWTH) {
            return Ok(Some(Unfinished::Growing([growth, MOST_GROWTH])));
        }
        let moved = self.last_change();
        let numbers = [moved, longest].map(|change| change * loss.width);
        Ok((!(moved <= longest)).then_some(Unfinished::Moving(numbers)))
    }

    /// The longest last step, in units of the width.
    fn longest(&self) -> f64 {
        LONGEST[usize::from(!self.steps.loss.is_log_odds || self.is_perturbed())]
    }

    /// Root mean square change of the predictor in the last step, in units of the width of the loss.
    fn last_change(&self) -> f64 {
        let last = self.steps_from.last();
        last.map_or(0.0, |step| self.moved(step).sqrt())
    }

    /// Change of the predictor in the last step, in units of the width of the loss, times its root mean square.
    ///
    /// Both tell how much the step leaves undone: of classes that predictors of this size tell, curvatures fall by a multiple in a step.
    /// Rows may vary as much as the noise allows along directions that it hides: there the columns tell most records, and none is curved.
    pub fn leverage(&self) -> Result<f64> {
        let [far, _] = self.predictor(&self.steps.params, self.edge())?;
        Ok(self.last_change() * far)
    }

    /// By how much the standard deviation of the predictor grows in the last step, or its root mean square: of a single class the constant does,
    /// and nothing else. For classes in units of the width.
    pub fn growth(&self) -> Result<f64> {
        let end = &self.steps.params;
        let [far, spread] = self.predictor(end, 0.0)?;
        let [before, spread_before] = self.predictor(self.steps.starts.last().unwrap_or(end), 0.0)?;
        Ok((spread - spread_before).max(far - before) / self.unit())
    }

    /// Probabilities of classes change over the width.
    fn unit(&self) -> f64 {
        let loss = self.steps.loss;
        if loss.is_of_classes { loss.width } else { 1.0 }
    }

    /// Where the spectrum of the noise of the whole Hessian ends.
    fn edge(&self) -> f64 {
        (2.0 * self.dim as f64).sqrt() * self.steps.noise.hessian
    }

    /// Root mean square and standard deviation over round rows, whose squares have the mean I, of the predictor of parameters.
    ///
    /// Along directions that second moments hide rows hardly vary, and noise moves the parameters far: there the Hessian tells the variance, as
    /// ten times its part of the mean curvature, or as this noise of it, for it may be that of few rows. Rows have the mean `v/‖v‖²` where
    /// `zᵀv = 1` for each.
    fn predictor(&self, at: &[f64], noise: f64) -> Result<[f64; 2]> {
        let (s, dim) = (&self.steps, self.dim);
        let mut whole = vec![0.0; dim];
        let along = coordinates(&self.eigen, at);
        for (along, direction) in along.iter().zip(self.directions.chunks_exact(dim)) {
            for (w, d) in whole.iter_mut().zip(direction) {
                *w += along * d;
            }
        }
        let mut params = vec![0.0; dim];
        let along = coordinates(&self.of_round, &whole);
        for (k, direction) in self.of_round.vectors.chunks_exact(dim).enumerate() {
            let least = noise * self.reach[k];
            let variance = FEW * self.of_round.values[k].max(least) / self.curvature;
            let part = variance.sqrt().min(1.0) * along[k];
            for (p, d) in params.iter_mut().zip(direction) {
                *p += part * d;
            }
        }
        let far = vector::norm(&params);
        let Some(intercept) = s.intercept else {
            return Ok([far, far]);
        };
        let mut last = vec![0.0; dim];
        last[dim - 1] = intercept.recip();
        let v = solve_square(&s.round_map, &last, dim, MAPS)?;
        let part = vector::dot(&v, &params) / vector::dot(&v, &v);
        let rest: Vec<f64> = params.iter().zip(&v).map(|(p, v)| p - part * v).collect();
        Ok([far, vector::norm(&rest)])
    }
}

/// The maps of the rows, in errors.
const MAPS: &str = "a map of the rows";

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn coordinates(eigen: &Eigen, vector: &[f64]) -> Vec<f64> {
    let rows = eigen.vectors.chunks_exact(vector.len().max(1));
    rows.map(|v| vector::dot(v, vector)).collect()
}

#[cfg(test)]
mod tests;
