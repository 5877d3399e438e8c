//! Matrices that are sums over the data: Hessian and gradient covariance at a point, and second moments of the rows.

use crate::Result;
use crate::exec::Executor;
use crate::loss::{Logistic, Loss, pairs};
use crate::records::{Records, Request, assembled};

/// Data sums at `θ`, without the regulariser: `(1/n) Σ l'' x xᵀ` and `(1/n) Σ l'² x xᵀ`, row-major.
#[derive(Debug, Clone)]
pub struct DataMoments {
    /// `(1/n) Σ l''(uᵢ) xᵢ xᵢᵀ`.
    pub curvature: Vec<f64>,
    /// `(1/n) Σ l'(uᵢ)² xᵢ xᵢᵀ`.
    pub squared_slope: Vec<f64>,
}

/// Both sums in one pass; `n_samples` is the public `n` that divides them.
///
/// Slopes and curvatures are held to their suprema over `|u| ≤ R‖θ‖`, on which sensitivities rest, whatever their rounding or a caller's
/// code adds.
pub fn data_moments(
    records: &dyn Records,
    loss: &dyn Loss,
    params: &[f64],
    n_samples: f64,
    exec: &Executor<'_>,
) -> Result<DataMoments> {
    sample_moments(records, None, loss, params, n_samples, exec)
}

/// [`DataMoments::curvature`] alone, for a loss of one predictor.
pub fn data_hessian(
    records: &dyn Records,
    loss: &dyn Loss,
    params: &[f64],
    n_samples: f64,
    exec: &Executor<'_>,
) -> Result<Vec<f64>> {
    let params = params.to_vec();
    let sums = records.sums(&Request::Hessian { params }, loss, None, exec)?;
    assembled(sums.grams, 1, n_samples)
}

/// Moments of a sample, given by how often it holds each row of a design.
pub fn sample_moments(
    records: &dyn Records,
    counts: Option<&[u32]>,
    loss: &dyn Loss,
    params: &[f64],
    n_samples: f64,
    exec: &Executor<'_>,
) -> Result<DataMoments> {
    let request = Request::Moments {
        params: params.to_vec(),
    };
    let sums = records.sums(&request, loss, counts, exec)?;
    let n_predictors = loss.n_predictors();
    let mut curvature = sums.grams;
    let squared_slope = curvature.split_off(pairs(n_predictors).count());
    Ok(DataMoments {
        curvature: assembled(curvature, n_predictors, n_samples)?,
        squared_slope: assembled(squared_slope, n_predictors, n_samples)?,
    })
}

/// `Σ xᵢxᵢᵀ` (row-major) and `Σ yᵢxᵢ`, each row by its share of its record: all that a quadratic loss sees of the data.
#[derive(Debug, Clone)]
pub struct SecondMoments {
    /// `Σ xᵢ xᵢᵀ`.
    pub gram: Vec<f64>,
    /// `Σ yᵢ xᵢ`.
    pub cross: Vec<f64>,
}

/// Both sums in one pass.
pub fn second_moments(records: &dyn Records, exec: &Executor<'_>) -> Result<SecondMoments> {
    // No loss is looked at.
    let mut sums = records.sums(&Request::SecondMoments, &Logistic, None, exec)?;
    Ok(SecondMoments {
        gram: assembled(std::mem::take(&mut sums.grams), 1, 1.0)?,
        cross: sums.slopes.values().collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::design::{Csr, Design, OnViolation, RowBounds, Rows};
    use crate::linalg::{Doubled, architectures, vector, with_arch};
    use crate::loss::{
        Batch, Custom, Declaration, Evaluate, HuberHinge, Logistic, SmoothHinge, Targets, moment_rounding,
        second_moment_rounding,
    };
    use crate::row_domain::RowDomain;

    const DIM: usize = 3;

    /// Rows of norm at most 1 whose products have one sign, so that rounding adds up, and classes.
    fn data(n: usize) -> (Vec<f64>, Vec<f64>) {
        let rows = (0..n * DIM).map(|i| 0.3 + 0.2 * (i as f64 * 0.731).sin());
        let targets = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 });
        (rows.collect(), targets.collect())
    }

    fn check(rows: Rows<'_>, targets: &[f64], test: impl FnOnce(&Design<'_>, &Executor<'_>)) {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let bounds = RowBounds {
            rows: RowDomain::Ball(1.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Error,
        };
        let design = Design::new(rows, targets, None, &bounds, &exec).unwrap();
        test(&design, &exec);
    }

    /// `(1/n) Σ weight(i)·xᵢxᵢᵀ` in doubled precision.
    fn exact(rows: &[f64], weight: impl Fn(usize) -> f64) -> Vec<Doubled> {
        let n = (rows.len() / DIM) as f64;
        let mut sum = vec![Doubled::default(); DIM * DIM];
        for (i, row) in rows.chunks_exact(DIM).enumerate() {
            let weight = weight(i);
            for (entry, s) in sum.iter_mut().enumerate() {
                *s = *s + Doubled::product(row[entry / DIM], row[entry % DIM]) * weight;
            }
        }
        sum.into_iter().map(|s| s / Doubled::from(n)).collect()
    }

    fn distance(computed: &[f64], exact: &[Doubled]) -> f64 {
        let gaps = computed.iter().zip(exact);
        let gaps: Vec<f64> = gaps.map(|(&c, &e)| (e - c.into()).rounded()).collect();
        vector::norm_bound(&gaps)
    }

    #[test]
    fn sums_are_within_their_rounding_however_long() {
        let params = [0.4, -0.3, 0.9];
        let losses: [&dyn Loss; 3] = [
            &Logistic,
            &HuberHinge::new(0.5).unwrap(),
            &SmoothHinge::new(0.1).unwrap(),
        ];
        for n in [1, 100, 60_000] {
            let (rows, targets) = data(n);
            let starts: Vec<i64> = (0..=n).map(|i| i64::try_from(i * DIM).unwrap()).collect();
            let columns: Vec<i32> = (0..n).flat_map(|_| 0..3).collect();
            let csr = Csr::new(starts, columns, rows.clone(), DIM).unwrap();
            for stored in [Rows::dense(&rows, DIM), Rows::Csr(csr)] {
                check(stored, &targets, |design, exec| {
                    for loss in losses {
                        let found = data_moments(design, loss, &params, n as f64, exec).unwrap();
                        // Each record's own values, in another place of a batch.
                        let (mut slopes, mut curvatures) = (vec![0.0; n], vec![0.0; n]);
                        for i in 0..n {
                            let mut u = [0.0];
                            design.linear_predictor(i..i + 1, &params, &mut u);
                            let out = Batch::derivatives(&mut slopes[i..=i], &mut curvatures[i..=i]);
                            loss.evaluate(&u, &targets[i..=i], out).unwrap();
                        }
                        let norm = vector::norm_bound(&params);
                        let room = moment_rounding(n);
                        let gap = distance(&found.curvature, &exact(&rows, |i| curvatures[i]));
                        assert!(gap <= room * loss.sup_curvature(norm), "{loss:?} {n} {gap:e}");
                        let expected = exact(&rows, |i| slopes[i] * slopes[i]);
                        let gap = distance(&found.squared_slope, &expected);
                        assert!(gap <= room * loss.sup_slope(norm).powi(2), "{loss:?} {n} {gap:e}");
                    }
                    let mut found = second_moments(design, exec).unwrap().gram;
                    for v in &mut found {
                        *v /= n as f64;
                    }
                    assert!(distance(&found, &exact(&rows, |_| 1.0)) <= second_moment_rounding(n));
                });
            }
        }
    }

    #[test]
    fn a_scaled_row_has_the_predictor_of_the_row_that_it_stands_for() {
        let (mut rows, targets) = data(203);
        rows.iter_mut().step_by(5).for_each(|v| *v *= 7.0);
        let starts: Vec<i64> = (0..=203).map(|i| i * 3).collect();
        let columns: Vec<i32> = (0..203).flat_map(|_| 0..3).collect();
        let csr = Csr::new(starts, columns, rows.clone(), DIM).unwrap();
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let bounds = RowBounds {
            rows: RowDomain::Ball(1.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Clip,
        };
        for stored in [Rows::dense(&rows, DIM), Rows::Csr(csr)] {
            let design = Design::new(stored, &targets, Some(0.3), &bounds, &exec).unwrap();
            let predictors = [&design, &design.owned()].map(|design| {
                let mut u = vec![0.0; 203];
                design.linear_predictor(0..203, &[0.3, -1.7, 0.9, 2.1], &mut u);
                u.iter().map(|u| u.to_bits()).collect::<Vec<_>>()
            });
            assert_eq!(predictors[0], predictors[1]);
        }
    }

    /// Quantities that the proof takes as functions of a record: the rows that are kept, their predictors, and Huber's terms.
    fn ideal(rows: Rows<'_>, targets: &[f64], params: &[f64]) -> Vec<u64> {
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let bounds = RowBounds {
            rows: RowDomain::Ball(1.0),
            targets: Targets::Signs,
            on_violation: OnViolation::Clip,
        };
        let design = Design::new(rows, targets, Some(0.25), &bounds, &exec).unwrap();
        let (n, dim) = (design.n_rows(), design.n_params());
        let mut numbers = vec![0.0; n * (dim + 3)];
        let (kept, rest) = numbers.split_at_mut(n * dim);
        let (u, rest) = rest.split_at_mut(n);
        let (slope, curvature) = rest.split_at_mut(n);
        design.write_rows(0..n, kept);
        design.linear_predictor(0..n, params, u);
        let out = Batch::derivatives(slope, curvature);
        let huber = HuberHinge::new(0.5).unwrap();
        huber.evaluate(u, targets, out).unwrap();
        numbers.into_iter().map(|v| (v + 0.0).to_bits()).collect()
    }

    #[test]
    fn ideal_terms_are_the_same_on_every_machine_and_in_every_storage() {
        let (n, width) = (700, 19);
        // A third of the entries are zero; rows are normalised, so that rounding decides which are too long.
        let mut rows: Vec<f64> = (0..n * width)
            .map(|i| if i % 3 == 0 { 0.0 } else { (i as f64 * 0.731).sin() })
            .collect();
        for row in rows.chunks_exact_mut(width) {
            let norm = vector::dot(row, row).sqrt();
            for v in row {
                *v /= norm;
            }
        }
        let targets: Vec<f64> = (0..n).map(|i| if i % 5 == 0 { -1.0 } else { 1.0 }).collect();
        let params: Vec<f64> = (0..=width).map(|j| 2.0 * (j as f64 * 1.7).cos()).collect();
        let sparse = || {
            let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in rows.chunks_exact(width) {
                let entries = (0..).zip(row).filter(|(_, v)| **v != 0.0);
                for (column, value) in entries {
                    columns.push(column);
                    values.push(*value);
                }
                starts.push(i64::try_from(columns.len()).unwrap());
            }
            Rows::Csr(Csr::new(starts, columns, values, width).unwrap())
        };
        let expected = ideal(Rows::dense(&rows, width), &targets, &params);
        for arch in architectures() {
            let found = with_arch(arch, || {
                let whole = ideal(Rows::dense(&rows, width), &targets, &params);
                // One row at a time, as parts of one row would be.
                let single = (0..n).map(|i| {
                    let row = &rows[i * width..(i + 1) * width];
                    ideal(Rows::dense(row, width), &targets[i..=i], &params)[width + 1]
                });
                assert!(single.eq(whole[n * (width + 1)..][..n].iter().copied()));
                [whole, ideal(sparse(), &targets, &params)]
            });
            assert!(found.iter().all(|found| *found == expected), "{arch:?}");
        }
    }

    /// Values that exceed their declaration by less than its check tells.
    #[derive(Debug)]
    struct Beyond;

    impl Evaluate for Beyond {
        fn value(&self, u: &[f64], _y: &[f64], out: &mut [f64]) -> Result<()> {
            out.iter_mut().zip(u).for_each(|(o, u)| *o = u.hypot(1.0));
            Ok(())
        }

        fn slope(&self, u: &[f64], _y: &[f64], out: &mut [f64]) -> Result<()> {
            out.iter_mut()
                .zip(u)
                .for_each(|(o, u)| *o = u / u.hypot(1.0) * (1.0 + 5e-7));
            Ok(())
        }

        fn curvature(&self, u: &[f64], _y: &[f64], out: &mut [f64]) -> Result<()> {
            let curvature = |u: &f64| u.hypot(1.0).powi(-3) * (1.0 + 5e-7);
            out.iter_mut().zip(u).for_each(|(o, u)| *o = curvature(u));
            Ok(())
        }
    }

    #[test]
    fn values_beyond_their_declaration_are_held_to_it() {
        let declared = Declaration {
            slope_bound: 1.0,
            curvature_bound: 1.0,
            strong_convexity: 0.0,
            one_signed: false,
            targets: Targets::Signs,
            predictor_bound: None,
        };
        let loss = Custom::new(Arc::new(Beyond), declared).unwrap();
        let rows = vec![0.5; 4 * DIM];
        check(Rows::dense(&rows, DIM), &[1.0; 4], |design, exec| {
            let at = |params: [f64; 3]| data_moments(design, &loss, &params, 4.0, exec).unwrap();
            assert!(at([0.0; 3]).curvature.iter().all(|v| *v <= 0.25));
            assert!(at([1e9; 3]).squared_slope.iter().all(|v| *v <= 0.25));
        });
    }
}
