//! Choices that follow from released values at the last point: which directions noise hides there, and how much an earlier gradient counts.
//!
//! Two gradients of the same rows have independent noise, so that the steps that they make are averaged (docs/proofs/newton.md, "Two
//! gradients").

use super::{At, EARLIER_STEPS, NewtonSpec, NormBounds};
use crate::Result;
use crate::linalg::{Eigen, product_transposed, transposed, vector};

/// Part of the square of a step that a further one may change, as in `interval/last_step.rs`.
const NEXT_STEP: f64 = 0.5;

/// The released Hessian at the last point, by which steps divide.
#[derive(Debug)]
pub(crate) struct LastPoint {
    eigen: Eigen,
    /// Eigenvalues, none below the edge.
    raised: Vec<f64>,
    /// Below it eigenvalues are not told from noise.
    pub(crate) edge: f64,
    /// Standard deviation of an isometric coordinate of the noise.
    std_dev: f64,
    /// Mean eigenvalue for round rows, for which a predictor has the size of its parameters.
    curvature: f64,
}

impl LastPoint {
    /// A released Hessian with noise of this deviation, of rows that the inverse of a map makes round.
    pub(crate) fn new(spec: &NewtonSpec, hessian: &[f64], std_dev: f64, inverse: &[f64]) -> Result<Self> {
        let dim = spec.n_params();
        let eigen = Eigen::new(hessian, dim, "a released Hessian")?;
        let edge = spec.seen_from(&eigen.values, std_dev);
        let raised: Vec<f64> = eigen.values.iter().map(|v| v.max(edge)).collect();
        // Vᵀ times the inverse, row by row.
        let turned = product_transposed(&eigen.vectors, &transposed(inverse, dim), dim);
        let of_round = turned.chunks_exact(dim).zip(&raised);
        let curvature = of_round.map(|(row, r)| r * vector::dot(row, row)).sum::<f64>() / dim as f64;
        Ok(Self {
            eigen,
            raised,
            edge,
            std_dev,
            curvature,
        })
    }

    /// Where a step ends that starts at a point with this gradient.
    pub(crate) fn end(&self, start: &[f64], gradient: &[f64]) -> Vec<f64> {
        let mut end = start.to_vec();
        let vectors = self.eigen.vectors.chunks_exact(start.len());
        for (v, raised) in vectors.zip(&self.raised) {
            let along = vector::dot(v, gradient) / raised;
            end.iter_mut().zip(v).for_each(|(e, v)| *e -= along * v);
        }
        end
    }

    /// A difference of points along the eigenvectors.
    fn along(&self, to: &[f64], from: &[f64]) -> Vec<f64> {
        let change: Vec<f64> = to.iter().zip(from).map(|(t, f)| t - f).collect();
        let vectors = self.eigen.vectors.chunks_exact(to.len());
        vectors.map(|v| vector::dot(v, &change)).collect()
    }

    fn product(&self, a: &[f64], b: &[f64]) -> f64 {
        let pairs = a.iter().zip(b).zip(&self.raised);
        pairs.map(|((a, b), r)| r * a * b).sum()
    }
}

impl NewtonSpec {
    /// The edge of what noise of this deviation hides of a Hessian with these eigenvalues, which do not decrease.
    ///
    /// Between k directions the spectrum of the noise ends at √(2k) standard deviations. So the k least eigenvalues are hidden where none of
    /// them is above this and one more; k is as great as it may be. Under pure DP, whose noise has heavier tails, the whole spectrum counts.
    /// Post-processing.
    pub(crate) fn seen_from(&self, values: &[f64], std_dev: f64) -> f64 {
        let end = |k: usize| (2.0 * k as f64).sqrt() * std_dev;
        if self.is_pure() {
            return end(values.len());
        }
        let hidden = (1..=values.len()).rev().find(|k| values[k - 1] <= end(*k) + std_dev);
        (end(hidden.unwrap_or(1)) + std_dev).min(end(values.len()))
    }

    /// The edge of a released Hessian at the last point, where these are the bounds.
    pub fn last_edge(&self, bounds: NormBounds, hessian: &[f64]) -> Result<f64> {
        let dim = self.n_params();
        let noise = self.moments(bounds)?.hessian;
        let values = Eigen::new(hessian, dim, "a released Hessian")?.values;
        Ok(self.seen_from(&values, noise.law.isometric_std_dev(dim)))
    }

    /// Standard deviations of the noise of the earlier and the last of two gradients, where those of records have these bounds.
    fn std_devs_of_two(&self, bounds: NormBounds) -> Result<[f64; 2]> {
        let of = |at| {
            let planned = self.gradient(bounds.gradient, bounds.stretch, at)?;
            Ok::<_, crate::Error>(planned.step.scale)
        };
        Ok([of(At::Earlier(EARLIER_STEPS - 1))?, of(At::Last)?])
    }

    /// Standard deviation of the noise of both gradients together, in units of their bound.
    pub(crate) fn combined_std_dev(&self) -> Result<f64> {
        let [earlier, last] = self.std_devs_of_two(self.bounds_within(1.0))?;
        Ok(earlier * last / earlier.hypot(last) / self.choices.loss.slope_bound())
    }

    /// How much the steps count whose gradients have this noise alone as their error. Post-processing.
    pub fn least_noise_weights(&self, bounds: NormBounds) -> Result<Vec<f64>> {
        if self.is_pure() {
            return Ok(vec![1.0]);
        }
        let [earlier, last] = self.std_devs_of_two(bounds)?.map(|s| s.powi(2));
        Ok([last, earlier].map(|other| other / (earlier + last)).to_vec())
    }

    /// How much the steps from these points count, of which the last ends there: 1 in all, with the least error of the noise of their gradients,
    /// of that of the Hessian, and of what further steps would change. Post-processing.
    pub(crate) fn step_weights(
        &self,
        last: &LastPoint,
        starts: &[Vec<f64>],
        end: &[f64],
        bounds: NormBounds,
    ) -> Result<Vec<f64>> {
        let [earlier, latest] = starts else {
            return Ok(vec![1.0]);
        };
        let steps = [earlier, latest].map(|start| last.along(end, start));
        let width = self.choices.loss.curvature_width();
        let next = [0, 1].map(|k| {
            let moved = last.product(&steps[k], &steps[k]) / last.curvature / width.powi(2);
            let part = (NEXT_STEP * moved).sqrt();
            steps[k].iter().map(|s| part * s).collect::<Vec<f64>>()
        });
        let difference = |[earlier, latest]: &[Vec<f64>; 2]| {
            let pairs = earlier.iter().zip(latest);
            pairs.map(|(e, l)| e - l).collect::<Vec<f64>>()
        };
        let (apart, next_apart) = (difference(&steps), difference(&next));
        let inverse = last.raised.iter().map(|r| r.recip()).sum::<f64>();
        let [of_earlier, of_last] = self.std_devs_of_two(bounds)?.map(|s| s.powi(2) * inverse);
        let of_hessian = 0.5 * last.std_dev.powi(2) * inverse;
        let gain = of_last - of_hessian * vector::dot(&steps[1], &apart) - last.product(&next[1], &next_apart);
        let price =
            of_earlier + of_last + of_hessian * vector::dot(&apart, &apart) + last.product(&next_apart, &next_apart);
        let weight = (gain / price).clamp(0.0, of_last / (of_earlier + of_last));
        Ok(vec![weight, 1.0 - weight])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::loss::Logistic;
    use crate::privacy::{Budget, Neighbors};
    use crate::row_domain::RowDomain;
    use crate::spec::Terms;
    use crate::spec::newton::{NewtonChoices, Quantile};

    const DIM: usize = 3;

    fn spec() -> NewtonSpec {
        NewtonSpec::new(NewtonChoices {
            terms: Terms::of_rows(5000, Neighbors::ReplaceOne),
            n_columns: DIM - 1,
            intercept: Some(1.0),
            rows: RowDomain::Ball(2.0),
            loss: Arc::new(Logistic),
            budget: Budget::zcdp(0.2).unwrap(),
        })
        .unwrap()
    }

    #[test]
    fn the_edge_is_that_of_the_noise_between_hidden_directions() {
        let end = |k: f64| (2.0 * k).sqrt() + 1.0;
        // Nothing is hidden, one direction is, two are; all are, where the whole spectrum ends.
        for (values, expected) in [
            ([3.0, 8.0, 9.0], end(1.0)),
            ([2.0, 8.0, 9.0], end(1.0)),
            ([-1.0, 2.9, 9.0], end(2.0)),
            ([2.8, 2.9, 3.4], 6.0f64.sqrt()),
        ] {
            let edge = spec().seen_from(&values.map(|v| 0.1 * v), 0.1);
            assert!(
                (edge - 0.1 * expected.min(6.0f64.sqrt())).abs() < 1e-15,
                "{values:?}: {edge}"
            );
        }
    }

    #[test]
    fn the_bound_on_gradients_follows_the_noise() {
        let (spec, dim) = (spec(), DIM as f64);
        let noise = spec.combined_std_dev().unwrap();
        let found = |norm: f64, farthest: f64, size: f64, typical: f64| {
            let norms = Quantile { norm, farthest, size };
            spec.gradient_bound(norms, typical).unwrap()
        };
        // The size of gradients whose sampling error is the noise of a bound of 1, over a part.
        let size = |part: f64| noise / part * (dim * 5000.0).sqrt();
        let cases = [
            // Little noise: towards the farthest records, up to half of the sampling error.
            (found(2.0, 9.0, size(0.05), 3.0), 10.0),
            (found(2.0, 3.0, size(0.05), 3.0), 1.75 * 3.0),
            // 1.75 times the quantile, and the steepest gradient of a typical row.
            (found(2.0, 2.0, size(0.3), 3.0), 3.5),
            (found(2.0, 2.0, size(0.3), 3.9), 3.9),
            // Where noise is the greater part: 1.2 times the sampling error, the quantile, half of a typical row.
            (found(2.0, 2.0, size(0.4), 9.0), 4.5),
            (found(2.0, 2.0, size(0.4), 5.0), 3.0),
            (found(2.9, 2.9, size(0.5), 5.0), 2.9),
            (found(2.0, 2.0, size(9.0), 5.0), 2.5),
        ];
        for (index, (found, expected)) in cases.into_iter().enumerate() {
            assert!((found / expected - 1.0).abs() < 1e-12, "{index}: {found}, {expected}");
        }
    }

    #[test]
    fn weights_have_the_least_error() {
        let spec = spec();
        let hessian = [0.9, 0.1, 0.0, 0.1, 1.1, 0.2, 0.0, 0.2, 0.8];
        let inverse = [0.3, 0.0, 0.1, 0.0, 0.4, 0.0, 0.1, 0.0, 0.3];
        let bounds = NormBounds {
            gradient: 8.0,
            hessian: 20.0,
            stretch: 1.0,
        };
        let [sa, sl] = spec.std_devs_of_two(bounds).unwrap();
        let end = vec![0.3, -0.2, 0.1];
        for (far, std_dev) in [(0.01, 1e-6), (0.3, 1e-6), (0.3, 0.2), (2.0, 0.05)] {
            let last = LastPoint::new(&spec, &hessian, std_dev, &inverse).unwrap();
            let starts = [vec![0.3 + far, -0.2, 0.1 - far], vec![0.3, -0.2 + 0.1 * far, 0.1]];
            let found = spec.step_weights(&last, &starts, &end, bounds).unwrap();
            // In the metric of the Hessian, by its entries: the errors of a step with a weight w of the earlier one.
            let form = |a: &[f64], b: &[f64]| {
                let rows = hessian.chunks_exact(DIM).zip(a);
                rows.map(|(row, a)| a * vector::dot(row, b)).sum::<f64>()
            };
            let columns = |j: usize| [inverse[j], inverse[j + DIM], inverse[j + 2 * DIM]];
            let of_round = (0..DIM).map(|j| form(&columns(j), &columns(j))).sum::<f64>() / 3.0;
            let steps = starts.each_ref().map(|start| {
                let pairs = end.iter().zip(start);
                pairs.map(|(e, s)| e - s).collect::<Vec<f64>>()
            });
            let cholesky = crate::linalg::Cholesky::new(&hessian, DIM, "").unwrap();
            let inverse = (0..DIM).map(|j| {
                let mut unit = vec![0.0; DIM];
                unit[j] = 1.0;
                cholesky.solve(&unit)[j]
            });
            let inverse = inverse.sum::<f64>();
            let error = |w: f64| {
                let pairs = steps[0].iter().zip(&steps[1]);
                let step: Vec<f64> = pairs.map(|(a, l)| w * a + (1.0 - w) * l).collect();
                let part = |s: &Vec<f64>| (0.5 * form(s, s) / of_round).sqrt();
                let parts = [w * part(&steps[0]), (1.0 - w) * part(&steps[1])];
                let pairs = steps[0].iter().zip(&steps[1]);
                let next: Vec<f64> = pairs.map(|(a, l)| parts[0] * a + parts[1] * l).collect();
                inverse * ((w * sa).powi(2) + ((1.0 - w) * sl).powi(2))
                    + 0.5 * std_dev.powi(2) * inverse * vector::dot(&step, &step)
                    + form(&next, &next)
            };
            let most = sl * sl / (sa * sa + sl * sl);
            let grid = (0..=2000).map(|i| most * f64::from(i) / 2000.0);
            let best = grid.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap();
            assert!((found[0] - best).abs() < 1e-3, "{far} {std_dev}: {found:?}, {best}");
            assert!((found[0] + found[1] - 1.0).abs() < 1e-15);
            if far < 0.1 {
                assert!((found[0] - most).abs() < 0.05 * most);
            }
        }
    }
}
