//! A fit by Newton steps with noisy gradients, on rows that released second moments make round (docs/proofs/newton.md).

use super::coefficients::{greatest_centre, release_around};
use super::gate::Gate;
use super::row_facts::{RowFacts, check_rows};
use super::seal::{Sealed, Values};
use crate::Result;
use crate::exec::Executor;
use crate::linalg::{Eigen, identity, product_transposed, times, transposed, vector};
use crate::loss::{Loss, NormalOdds};
use crate::moments::{data_hessian, data_moments, second_moments};
use crate::records::{HessianRows, Moved, Records, Request, Round};
use crate::spec::{
    At, EARLIER_STEPS, LastPoint, MatrixNoise, NewtonSpec, NormBounds, NormCounts, Quantile, Seal, Step,
};

/// Where a matrix makes rows round, its eigenvalues are raised by this part of the edge of their noise.
const RAISED: f64 = 0.5;

/// No direction of the rows is stretched further than this over the root of their second moments: where a column is a sum of others, only
/// rounding is left there, and the error of its coefficient would round those of others away.
const LONGEST_STRETCH: f64 = 1e5;

/// Round rows are stretched only as far as the seal of a Hessian stays below this part of its noise.
const SEALED: f64 = 0.1;

/// Eigenvalues of the last Hessian below this part of its norm are rounding.
const ROUNDING: f64 = 1e-9;

/// Curvatures of a continued loss at the end of the first step are held to this many times that at the best constant.
const GREATEST_CURVATURE: f64 = 4.0;

/// Standard deviation of log-odds above which Newton's first step is too short for the others to make up for it.
const FAR: f64 = 2.0;

/// The mean weight of records is not below this many standard deviations of its noise.
const SEEN_WEIGHT: f64 = 2.0;

/// A first step that is made longer ends this short of the standard deviation that it expects of log-odds: the next one reaches it from there, and not from
/// beyond it, where the curvature is too small.
const SHORT: f64 = 0.2;

/// Everything that left the mechanism.
#[derive(Debug, Clone)]
pub struct NewtonRelease<V = Sealed> {
    /// R, row-major, computed from the released shapes: rows `Rᵀx` are round, and their norms decide their weights.
    pub round_map: Vec<f64>,
    /// M, row-major, computed from the released Hessians: it moves round rows further, to `z = MᵀRᵀx`, so that `θ = RM·params`.
    pub further: Vec<f64>,
    /// Radii beyond which rows weigh less: in each round, and at last.
    pub radii: Vec<f64>,
    /// Norms that the gradient and the Hessian of no record exceed: in the first step the gradient at 0 and the Hessian at its end, then at
    /// each point.
    pub bounds: Vec<NormBounds>,
    /// Points with a gradient at which steps to the parameters start: of an earlier step and of the last one, or of the last one alone.
    pub starts: Vec<Vec<f64>>,
    /// The noisy mean gradients there: released, or what the ridge of a perturbed minimiser balances.
    pub gradients: Vec<Vec<f64>>,
    /// How much each step counts, 1 in all.
    pub weights: Vec<f64>,
    /// The minimiser at which the steps start under pure DP, and its ridge; `None` for other notions.
    pub perturbed: Option<Perturbed<V>>,
    /// Mean Hessian at the last start.
    pub hessian: V,
    /// Mean of the squared gradients there.
    pub gradient_cov: V,
    /// End of the last step: the weighted mean of `start - H⁻¹g`, all eigenvalues of H raised to the edge.
    pub params: Vec<f64>,
    /// Below it eigenvalues of the Hessian are not told from its noise.
    pub edge: f64,
    /// The steps, each with its cost.
    pub steps: Vec<Step>,
    /// The seals, each with its cost.
    pub seals: Vec<Seal>,
}

/// A minimiser of the perturbed risk of round rows, with a ridge around the best constant predictor.
#[derive(Debug, Clone)]
pub struct Perturbed<V = Sealed> {
    /// The minimiser.
    pub params: V,
    /// λ.
    pub l2_strength: f64,
    /// Centre of the ridge, computed from released values.
    pub centre: Vec<f64>,
}

impl<V> NewtonRelease<V> {
    /// RM, row-major.
    pub fn map(&self) -> Vec<f64> {
        let dim = self.params.len();
        let columns = transposed(&self.further, dim);
        product_transposed(&self.round_map, &columns, dim)
    }

    /// Parameters of the rows before they are moved: `RM·params`.
    pub fn mapped_params(&self) -> Vec<f64> {
        times(&self.map(), &self.params)
    }

    /// The bounds at the last point.
    pub fn last_bounds(&self) -> NormBounds {
        self.bounds[self.bounds.len() - 1]
    }
}

/// Releases the shape of the rows, then Newton steps on rows that are round by it.
///
/// # Privacy
/// Through [`Sealing`](super::Sealing) it spends the whole budget of `spec`: given the values that earlier stages released, each stage is
/// a query of public sensitivity with noise, or under pure DP objective perturbation. The map, the radii and the bounds on norms are functions
/// of released values, and a row's weight by them is a function of its record alone. So every record's gradient and Hessian are bounded,
/// whatever the record (docs/proofs/newton.md).
pub fn release_newton<G: Gate>(
    spec: &NewtonSpec,
    records: &dyn Records,
    exec: &Executor<'_>,
    gate: &mut G,
) -> Result<NewtonRelease<G::Value>> {
    check_newton_design(spec, records)?;
    let mut stages = Stages {
        spec,
        exec,
        gate,
        steps: Vec::new(),
        seals: Vec::new(),
    };
    let (rounding, round) = stages.release_round(records)?;
    let (path, perturbed) = if spec.is_pure() {
        let perturbed = stages.release_perturbed(records, &rounding, &round)?;
        let start = perturbed.params.values().to_vec();
        (Path::at(start, &rounding, round, spec), Some(perturbed))
    } else {
        (stages.release_earlier(&rounding, round)?, None)
    };
    let at = path.bounds[path.bounds.len() - 1];
    let ([hessian, gradient_cov], noise) = stages.release_moments(&path.round, &path.point, at)?;
    let gradient = match &perturbed {
        Some(perturbed) => perturbed.gradient(),
        None => stages
            .release_gradient(&path.round, &path.point, at, At::Last)?
            .into_values(),
    };
    let (mut starts, mut gradients): (Vec<_>, Vec<_>) = path.earlier.into_iter().unzip();
    starts.push(path.point);
    gradients.push(gradient);
    let last = LastPoint::new(spec, hessian.values(), noise, &path.back)?;
    let pairs = starts.iter().zip(&gradients);
    let ends: Vec<Vec<f64>> = pairs.map(|(s, g)| last.end(s, g)).collect();
    let weights = spec.step_weights(&last, &starts, &ends[ends.len() - 1], at)?;
    let mut params = vec![0.0; spec.n_params()];
    for (weight, end) in weights.iter().zip(&ends) {
        params.iter_mut().zip(end).for_each(|(p, e)| *p += weight * e);
    }
    Ok(NewtonRelease {
        round_map: rounding.map,
        further: path.further,
        radii: rounding.radii,
        bounds: path.bounds,
        params,
        starts,
        gradients,
        weights,
        perturbed,
        hessian,
        gradient_cov,
        edge: last.edge,
        steps: stages.steps,
        seals: stages.seals,
    })
}

/// Below it eigenvalues of a released Hessian at the last point, where these are the bounds, are not told from its noise, or at enormous budgets
/// from rounding: there nothing else is left of a column that is a sum of others. Post-processing.
pub fn last_edge(spec: &NewtonSpec, bounds: NormBounds, hessian: &[f64]) -> Result<f64> {
    let of_noise = spec.last_edge(bounds, hessian)?;
    let values = Eigen::new(hessian, spec.n_params(), "a released Hessian")?.values;
    Ok(of_noise.max(spec.seen_from(&values, rounding_of(hessian))))
}

/// Standard deviation for which the rounding of a matrix counts.
fn rounding_of(matrix: &[f64]) -> f64 {
    ROUNDING * vector::norm(matrix)
}

/// Refuses records other than those that the calibration assumes.
pub(crate) fn check_newton_design(spec: &NewtonSpec, records: &dyn Records) -> Result<()> {
    let c = spec.choices();
    check_rows(
        records,
        &RowFacts {
            n_params: spec.n_params(),
            terms: c.terms,
            rows: c.rows.clone(),
            targets: c.loss.targets(),
            intercept: c.intercept,
            weighs_rows: true,
        },
    )
}

/// Map and radii that make rows round: released values, and functions of them.
struct Rounding {
    /// Row-major.
    map: Vec<f64>,
    radii: Vec<f64>,
    /// v with `zᵀv = 1` for each moved row, where rows have a constant.
    constant: Option<Vec<f64>>,
    /// The mean weight of records.
    mean_weight: MeanWeight,
    /// Edge of the noise of the last shape.
    edge: f64,
    /// How far rows may be stretched.
    longest: f64,
}

impl Rounding {
    /// The last radius.
    fn radius(&self) -> f64 {
        self.radii.last().copied().unwrap_or_default()
    }
}

/// The mean weight of records, which divides a sum over them to give a weighted mean: 1 where each counts once.
#[derive(Debug, Clone, Copy)]
struct MeanWeight {
    /// The mean, as far as its noise lets be told.
    value: f64,
    /// Standard deviation of its noise.
    std_dev: f64,
}

impl MeanWeight {
    /// Where each record counts once.
    const ONE: Self = Self {
        value: 1.0,
        std_dev: 0.0,
    };
}

/// Where the earlier steps end.
struct Path<'r> {
    point: Vec<f64>,
    /// Where the last of the earlier steps started, and its gradient there.
    earlier: Option<(Vec<f64>, Vec<f64>)>,
    /// The rows, which M has moved.
    round: Round<'r>,
    further: Vec<f64>,
    /// The inverse of M.
    back: Vec<f64>,
    /// Bounds at each point.
    bounds: Vec<NormBounds>,
}

impl<'r> Path<'r> {
    /// A point of round rows, without bounds.
    fn at(point: Vec<f64>, rounding: &Rounding, round: Round<'r>, spec: &NewtonSpec) -> Self {
        let identity = identity(point.len());
        Self {
            point,
            earlier: None,
            round,
            further: identity.clone(),
            back: identity,
            bounds: vec![spec.bounds_within(rounding.radius())],
        }
    }
}

/// The stages of one release, with the steps and seals of those that are done.
struct Stages<'a, G> {
    spec: &'a NewtonSpec,
    exec: &'a Executor<'a>,
    gate: &'a mut G,
    steps: Vec<Step>,
    seals: Vec<Seal>,
}

impl<G: Gate> Stages<'_, G> {
    /// Releases what makes the rows round: the map and the radii. Returns the round rows as well.
    fn release_round<'r>(&mut self, records: &'r dyn Records) -> Result<(Rounding, Round<'r>)> {
        let dim = self.spec.n_params();
        let mut map = identity(dim);
        let mut radii = Vec::new();
        let (mut edge, mut longest, mut mean_weight) = (0.0, f64::INFINITY, MeanWeight::ONE);
        let mut constant = self.spec.choices().intercept.map(|intercept| {
            let mut last = vec![0.0; dim];
            last[dim - 1] = intercept.recip();
            last
        });
        for round in 0..self.spec.rounds() {
            let (moved, radius) = self.release_weighted(records, &map, round)?;
            radii.push(radius);
            let planned = self.spec.shape(radius)?;
            let mut moments = second_moments(&moved, self.exec)?.gram;
            let n = self.spec.divisor();
            vector::divide(&mut moments, n);
            let shape = self.release_matrix(moments, planned.law, planned.seal)?;
            self.steps.push(planned.step);
            mean_weight = self.mean_weight(shape.values(), planned.law, constant.as_deref());
            // The weighted mean of zzᵀ: rows are round by it, whatever their weights.
            let mut shape = shape.into_values();
            vector::divide(&mut shape, mean_weight.value);
            edge = self.spec.edge(planned.law) / mean_weight.value;
            if round == 0 {
                longest = LONGEST_STRETCH / vector::norm(&shape).sqrt();
            }
            let rounder = Rounder::new(&shape, edge, &[(&map, longest)])?;
            map = product_transposed(&map, &rounder.map(), dim);
            if let Some(v) = &mut constant {
                *v = times(&rounder.inverse(), v);
            }
        }
        let (round, last) = self.release_weighted(records, &map, self.spec.rounds())?;
        radii.push(last);
        let rounding = Rounding {
            map,
            radii,
            constant,
            mean_weight,
            edge,
            longest,
        };
        Ok((rounding, round))
    }

    /// The mean weight of records by a released shape, whose form at v with `zᵀv = 1` it is. Not below two standard deviations of its noise, nor
    /// above the greatest mean of public numbers. Post-processing.
    fn mean_weight(&self, shape: &[f64], noise: MatrixNoise, constant: Option<&[f64]>) -> MeanWeight {
        let terms = &self.spec.choices().terms;
        let Some(v) = constant.filter(|_| !terms.counts_one()) else {
            return MeanWeight::ONE;
        };
        let std_dev = noise.law.isometric_std_dev(v.len()) * vector::dot(v, v);
        let greatest = terms.n_samples as f64 / terms.divisor();
        let least = (SEEN_WEIGHT * std_dev).min(1.0).min(greatest);
        MeanWeight {
            value: vector::dot(v, &times(shape, v)).clamp(least, greatest),
            std_dev,
        }
    }

    /// Takes the earlier steps. After the first one each begins with a Hessian, by which the rows are made round anew: then gradients and
    /// Hessians have about the same spread in every direction, and rows weigh less where they could be longer than a bound.
    fn release_earlier<'r>(&mut self, rounding: &Rounding, mut round: Round<'r>) -> Result<Path<'r>> {
        let (dim, spec) = (self.spec.n_params(), self.spec);
        let zero = vec![0.0; dim];
        let mut at = NormBounds {
            gradient: spec.gradient_at_0(),
            ..spec.bounds_within(rounding.radius())
        };
        round.limit(at.gradient, at.hessian);
        let gradient = self.release_gradient(&round, &zero, at, At::Zero)?;
        let (mut point, curvature) = self.first_point(rounding, gradient.values())?;
        at.hessian = curvature * rounding.radius().powi(2);
        round.limit(at.gradient, at.hessian);
        let mut bounds = vec![at];
        let (mut further, mut back, mut earlier) = (identity(dim), identity(dim), None);
        for step in 0..EARLIER_STEPS {
            let (hessian, edge, longest) = self.release_hessian(&round, &point, at, step)?;
            let whole = product_transposed(&rounding.map, &transposed(&further, dim), dim);
            let limits = [(&further, longest), (&whole, rounding.longest)];
            let rounder = Rounder::new(hessian.values(), edge, &limits)?;
            // Of round rows, whose squares have the mean I, the Hessian has the mean curvature as its mean eigenvalue.
            let of_round = |matrix: &[f64]| {
                let half = product_transposed(matrix, &transposed(&back, dim), dim);
                half.iter().zip(&back).map(|(h, b)| h * b).sum::<f64>() / dim as f64
            };
            let (curvature, noise) = (of_round(hessian.values()), edge * of_round(&identity(dim)));
            let typical = spec.typical_norm(curvature, noise);
            let map = rounder.map();
            round = round.moved_further(&map, self.exec)?;
            further = product_transposed(&further, &map, dim);
            let inverse = rounder.inverse();
            point = times(&inverse, &point);
            back = product_transposed(&inverse, &transposed(&back, dim), dim);
            at = NormBounds {
                stretch: vector::norm(&further),
                ..self.release_limits(&mut round, &point, typical, step)?
            };
            let gradient = self.release_gradient(&round, &point, at, At::Earlier(step))?;
            let change = times(&rounder.inverse_hessian(), gradient.values());
            let longest = spec.choices().loss.longest_step();
            let change = shortened(change, longest, |change| vector::norm(&times(&further, change)));
            let start = point.clone();
            point.iter_mut().zip(change).for_each(|(p, v)| *p -= v);
            earlier = Some((start, gradient.into_values()));
            bounds.push(at);
        }
        Ok(Path {
            point,
            earlier,
            round,
            further,
            back,
            bounds,
        })
    }

    /// Releases the minimiser of the perturbed risk, whose ridge is around the best constant predictor where that is known.
    fn release_perturbed(
        &mut self,
        records: &dyn Records,
        rounding: &Rounding,
        round: &Round<'_>,
    ) -> Result<Perturbed<G::Value>> {
        let centre = match &rounding.constant {
            Some(v) if self.spec.has_null_slope() => {
                let predictor = self.release_null(records, rounding.mean_weight.value)?;
                v.iter().map(|v| predictor * v).collect()
            }
            _ => vec![0.0; self.spec.n_params()],
        };
        let spec = self.spec.perturbed(rounding.radius())?;
        let centre = shortened(centre, greatest_centre(&spec), vector::norm_bound);
        let params = release_around(&spec, &centre, round, self.exec, self.gate)?;
        self.steps.push(spec.coefficients().clone());
        self.seals.push(*spec.seal());
        Ok(Perturbed {
            params,
            l2_strength: spec.l2_strength(),
            centre,
        })
    }

    /// Releases the mean slope at 0 of records of this mean weight; the best constant predictor by it.
    fn release_null(&mut self, records: &dyn Records, weight: f64) -> Result<f64> {
        let planned = self.spec.null_slope()?;
        let loss = &*self.spec.choices().loss;
        let noise = self.gate.draw(&planned.law)?[0];
        let slope = sum_at_zero(records, loss, self.exec)? / self.spec.divisor() + noise;
        let slope = self.gate.release(&planned.seal, vec![slope], None)?;
        // As far from a single class as the noise lets be told.
        let least = NewtonSpec::least_share(planned.step.scale);
        // The noise of a mean slope is that of the sum over the weight. Shares that it hides count as the least one, by which they are known.
        let slope = slope.values()[0] / weight;
        let seen = (0.5 - least / weight.min(1.0)).max(0.0);
        let slope = match slope.abs() {
            size if size <= seen => slope,
            _ if seen > 0.0 => (0.5 - least).copysign(slope),
            _ => 0.0,
        };
        self.steps.push(planned.step);
        self.seals.push(planned.seal);
        Ok(loss.null_predictor(slope).map_or(0.0, |(predictor, _)| predictor))
    }

    /// The end of the first step, by the gradient at 0; and the curvature to which those of records are held there. Post-processing.
    ///
    /// Round rows have second moments near the identity, so that the curvature is its bound; but where a class is rare it is far smaller:
    /// where the loss allows it, the step starts at the best constant predictor (docs/proofs/newton.md).
    fn first_point(&self, rounding: &Rounding, gradient: &[f64]) -> Result<(Vec<f64>, f64)> {
        let loss = &self.spec.choices().loss;
        let step = |curvature: f64, gradient: &[f64]| {
            let change = gradient.iter().map(|g| g / curvature).collect();
            shortened(change, loss.longest_step(), vector::norm)
        };
        let at_0 = self.spec.gradient(self.spec.gradient_at_0(), 1.0, At::Zero)?;
        let MeanWeight { value: weight, std_dev } = rounding.mean_weight;
        let gradient = &gradient.iter().map(|g| g / weight).collect::<Vec<_>>();
        let noise = at_0.step.scale / weight;
        let null = rounding.constant.as_ref().and_then(|v| {
            let slope = vector::dot(v, gradient);
            let least = (noise * vector::norm(v)).hypot(slope * std_dev / weight);
            Some((v, loss.best_constant(slope, least)?))
        });
        // Of a continued loss the bound is far above the curvature of most records.
        let bound = loss.curvature_bound();
        let held_near = |curvature: f64| {
            if loss.is_continued() {
                bound.min(GREATEST_CURVATURE * curvature)
            } else {
                bound
            }
        };
        let Some((v, null)) = null else {
            let at_0 = if loss.is_continued() {
                loss.sup_curvature(0.0)
            } else {
                bound
            };
            let change = step(at_0, gradient);
            let point = change.iter().map(|c| -c).collect();
            return Ok((point, held_near(at_0)));
        };
        // The rows have mean v/‖v‖², and slopes grow in proportion and by the same.
        let mean = null.slope / vector::dot(v, v);
        let pairs = gradient.iter().zip(v);
        let at_null: Vec<f64> = pairs.map(|(g, v)| null.factor * (g - mean * v)).collect();
        // A step of its noise alone is at most 1 long.
        let of_gradient = null.factor * noise * (v.len() as f64).sqrt();
        let of_shape = null.factor * null.slope * 0.5 * rounding.edge;
        let change = step(null.curvature.max(of_gradient.hypot(of_shape)), &at_null);
        let (predictor, change) = self
            .far_step(null.slope, &at_null, of_gradient)
            .unwrap_or((null.predictor, change));
        let point = v.iter().zip(change).map(|(v, c)| predictor * v - c);
        Ok((point.collect(), held_near(null.curvature)))
    }

    /// A longer first step, and the mean log-odds at its end, where the columns tell so much that curvature falls far on the way; `None` where
    /// they do not. By the mean slope at 0 and the gradient at the best constant, whose noise is so long, as far as log-odds have a normal law
    /// over the records. Post-processing.
    fn far_step(&self, slope: f64, gradient: &[f64], noise: f64) -> Option<(f64, Vec<f64>)> {
        let loss = &self.spec.choices().loss;
        loss.null_predictor(0.0)?;
        let share = 0.5 - slope;
        let product = vector::norm(gradient).powi(2) - noise.powi(2);
        let greatest = loss.longest_step() + SHORT;
        let target = NormalOdds::of_product(share, product.max(0.0).sqrt(), greatest);
        if target.std_dev < FAR {
            return None;
        }
        let end = NormalOdds::with_share(share, target.std_dev - SHORT);
        let [_, curvature] = target.means();
        let part = end.std_dev / target.std_dev / curvature;
        Some((end.mean, gradient.iter().map(|g| part * g).collect()))
    }

    /// Releases the radius of moved rows, and weighs those beyond it.
    fn release_weighted<'r>(
        &mut self,
        records: &'r dyn Records,
        map: &[f64],
        round: usize,
    ) -> Result<(Round<'r>, f64)> {
        let loss = &*self.spec.choices().loss;
        let moved = Moved::new(records, map, self.exec)?;
        let longest = self.spec.row_norm() * if round == 0 { 1.0 } else { vector::norm(map) };
        let planned = self.spec.radius(round, longest)?;
        let counts = moved.counts(&planned.norms, loss, self.exec)?;
        let radius = self.release_quantile(&planned, counts)?.norm;
        let longest = if records.bounds().on_violation.keeps_rows() {
            f64::MAX
        } else {
            longest
        };
        Ok((moved.within(radius, longest), radius))
    }

    /// Limits the norms of one record's gradient, and then of its Hessian, by released counts at a point, of rows of this typical norm.
    fn release_limits(
        &mut self,
        round: &mut Round<'_>,
        point: &[f64],
        typical: f64,
        step: usize,
    ) -> Result<NormBounds> {
        let spec = self.spec;
        let [of_gradients, of_hessians] = spec.norms(typical, step)?;
        let loss = &*spec.choices().loss;
        let norms = [of_gradients.norms.as_slice(), &[]];
        let [counts, _] = round.counts_of_derivatives(loss, point, norms, self.exec)?;
        let quantile = self.release_quantile(&of_gradients, counts)?;
        let gradient = spec.gradient_bound(quantile, typical)?;
        round.limit(gradient, f64::INFINITY);
        let norms = [&[], of_hessians.norms.as_slice()];
        let [_, counts] = round.counts_of_derivatives(loss, point, norms, self.exec)?;
        let quantile = self.release_quantile(&of_hessians, counts)?;
        let hessian = spec.hessian_bound(quantile)?;
        round.limit(gradient, hessian);
        Ok(NormBounds {
            gradient,
            hessian,
            stretch: 1.0,
        })
    }

    /// Releases the norm beyond which few of the counted records are.
    fn release_quantile(&mut self, planned: &NormCounts, counts: Vec<f64>) -> Result<Quantile> {
        let n = self.spec.divisor();
        let noise = self.gate.draw(&planned.noise.law)?;
        let pairs = counts.into_iter().zip(noise);
        let noisy = pairs.map(|(count, noise)| count / n + noise).collect();
        let shares = self.gate.release(&planned.noise.seal, noisy, None)?;
        self.steps.push(planned.noise.step.clone());
        self.seals.push(planned.noise.seal);
        Ok(planned.quantile(shares.values()))
    }

    /// Releases the mean gradient at a point, where those of records have these bounds.
    fn release_gradient(&mut self, round: &Round<'_>, point: &[f64], bounds: NormBounds, at: At) -> Result<G::Value> {
        let planned = self.spec.gradient(bounds.gradient, bounds.stretch, at)?;
        let request = Request::Risk {
            params: point.to_vec(),
            hessian: HessianRows::None,
        };
        let loss = &*self.spec.choices().loss;
        let sums = round.sums(&request, loss, None, self.exec)?;
        let noise = self.gate.draw(&planned.law.on(point.len())?)?;
        let n = self.spec.divisor();
        let pairs = sums.slopes.values().zip(noise);
        let gradient = pairs.map(|(sum, noise)| sum / n + noise).collect();
        self.steps.push(planned.step);
        self.seals.push(planned.seal);
        self.gate.release(&planned.seal, gradient, None)
    }

    /// Releases the Hessian at an earlier point, where those of records have these bounds; the edge of its noise; and how far round rows may be
    /// stretched, so that seals stay below the noise: they grow with the square of this.
    fn release_hessian(
        &mut self,
        round: &Round<'_>,
        point: &[f64],
        bounds: NormBounds,
        step: usize,
    ) -> Result<(G::Value, f64, f64)> {
        let planned = self.spec.hessian(bounds, step)?;
        let (loss, n) = (&*self.spec.choices().loss, self.spec.divisor());
        let hessian = data_hessian(round, loss, point, n, self.exec)?;
        let hessian = self.release_matrix(hessian, planned.law, planned.seal)?;
        self.steps.push(planned.step);
        let noise = planned.law.law.isometric_std_dev(self.spec.n_params());
        let longest = bounds.stretch * (SEALED * noise / planned.seal.std_dev()).sqrt();
        Ok((hessian, self.spec.edge(planned.law), longest))
    }

    /// Releases Hessian and gradient covariance at the last point; and the standard deviation of the noise of the first, or its rounding.
    fn release_moments(
        &mut self,
        round: &Round<'_>,
        point: &[f64],
        bounds: NormBounds,
    ) -> Result<([G::Value; 2], f64)> {
        let planned = self.spec.moments(bounds)?;
        let (loss, n) = (&*self.spec.choices().loss, self.spec.divisor());
        let data = data_moments(round, loss, point, n, self.exec)?;
        let [of_hessian, of_cov] = planned.seals;
        let hessian = self.release_matrix(data.curvature, planned.hessian, of_hessian)?;
        let cov = self.release_matrix(data.squared_slope, planned.gradient_cov, of_cov)?;
        self.steps.push(planned.step);
        let noise = planned.hessian.law.isometric_std_dev(self.spec.n_params());
        let std_dev = noise.max(rounding_of(hessian.values()));
        Ok(([hessian, cov], std_dev))
    }

    fn release_matrix(&mut self, mut matrix: Vec<f64>, noise: MatrixNoise, seal: Seal) -> Result<G::Value> {
        let draw = self.gate.draw(&noise.law.on(self.spec.n_params())?)?;
        matrix.iter_mut().zip(draw).for_each(|(m, n)| *m += n);
        self.seals.push(seal);
        self.gate.release_symmetric(&seal, matrix)
    }
}

impl<V: Values> Perturbed<V> {
    /// The mean gradient at the minimiser with its noise, `-λ(θ - c)`: all that the perturbed risk balances there.
    fn gradient(&self) -> Vec<f64> {
        let pairs = self.params.values().iter().zip(&self.centre);
        pairs.map(|(p, c)| self.l2_strength * (c - p)).collect()
    }
}

/// The sum of the slopes at the predictor 0, each row by its share of its record: that of the gradient along the constant.
pub(super) fn sum_at_zero(records: &dyn Records, loss: &dyn Loss, exec: &Executor<'_>) -> Result<f64> {
    let dim = records.n_params();
    let request = Request::Risk {
        params: vec![0.0; dim],
        hessian: HessianRows::None,
    };
    let sums = records.sums(&request, loss, None, exec)?;
    let along = sums.slopes.values().nth(dim - 1).unwrap_or_default();
    Ok(along / records.intercept().unwrap_or(1.0))
}

/// A released mean of `zzᵀ`, with weights, that makes the rows round: each eigenvalue counts with a part of the edge of its noise more.
struct Rounder {
    eigen: Eigen,
    /// Eigenvalues as they count: not below what noise and rounding may have made.
    counted: Vec<f64>,
    edge: f64,
}

impl Rounder {
    /// Eigenvalues of a matrix of this edge. Maps T have moved rows to `Tᵀx`, and none shall stretch them further than its limit.
    fn new(matrix: &[f64], edge: f64, limits: &[(&Vec<f64>, f64)]) -> Result<Self> {
        let dim = matrix.len().isqrt();
        let eigen = Eigen::new(matrix, dim, "a released matrix")?;
        let pairs = eigen.values.iter().zip(eigen.vectors.chunks_exact(dim));
        let counted = pairs.map(|(value, v)| {
            let least = |(map, longest): &(&Vec<f64>, f64)| vector::norm(&times(map, v)) / longest;
            let least = limits.iter().map(least).fold(0.0, f64::max);
            (value.max(0.0) + RAISED * edge).max(least * least)
        });
        Ok(Self {
            counted: counted.collect(),
            eigen,
            edge,
        })
    }

    /// The symmetric matrix with the same eigenvectors, whose eigenvalues are made of those of the released one and what these count as.
    fn with(&self, of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let pairs = self.eigen.values.iter().zip(&self.counted);
        Eigen {
            values: pairs.map(|(value, counted)| of(*value, *counted)).collect(),
            vectors: self.eigen.vectors.clone(),
        }
        .recompose()
    }

    /// The map M, symmetric, of which the rows become `Mz`.
    fn map(&self) -> Vec<f64> {
        self.with(|_, counted| counted.sqrt().recip())
    }

    /// Its inverse, by which parameters move.
    fn inverse(&self) -> Vec<f64> {
        self.with(|_, counted| counted.sqrt())
    }

    /// The inverse of the Hessian of rows that are moved by M, of which no eigenvalue is below the edge.
    fn inverse_hessian(&self) -> Vec<f64> {
        self.with(|value, counted| counted / value.max(self.edge))
    }
}

/// A vector whose length is not above the longest one.
fn shortened(mut vector: Vec<f64>, longest: f64, length: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let length = length(&vector);
    if length > longest {
        vector::scale(&mut vector, longest / length);
    }
    vector
}
