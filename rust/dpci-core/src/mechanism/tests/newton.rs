//! Newton steps against the minimiser, and the sensitivities of their queries by brute force.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::design::{Design, OnViolation, Persons, RowBounds, Rows};
use crate::exec::Executor;
use crate::linalg::{CompensatedSum, vector};
use crate::loss::{CLogLog, Huber, Logistic, Loss, Poisson, Probit, Targets};
use crate::mechanism::{NewtonRelease, Sealed, Sealing, Values, release_newton};
use crate::moments::{data_moments, second_moments};
use crate::noise::SimulationGenerator;
use crate::privacy::{Budget, Cost, Neighbors};
use crate::records::{HessianRows, Records, Request};
use crate::row_domain::RowDomain;
use crate::spec::{At, NewtonChoices, NewtonSpec, NormBounds, Terms};
use crate::unit::{Unit, Weighting};

pub(super) const COLUMNS: usize = 3;

pub(super) fn choices(n: usize, budget: Budget) -> NewtonChoices {
    NewtonChoices {
        terms: Terms::of_rows(n, Neighbors::ReplaceOne),
        n_columns: COLUMNS,
        intercept: Some(0.5),
        rows: RowDomain::Ball(1.0),
        loss: Arc::new(Logistic),
        budget,
    }
}

fn spec(n: usize, rho: f64) -> NewtonSpec {
    NewtonSpec::new(choices(n, Budget::zcdp(rho).unwrap())).unwrap()
}

/// Rows in the unit ball, two columns of which nearly agree, and classes.
pub(super) fn data(n: usize) -> (Vec<f64>, Vec<f64>) {
    let wave = |i: usize, k: f64| (k * i as f64).sin();
    let row = |i| {
        let a = 0.5 * wave(i, 0.731);
        [a, a + 0.1 * wave(i, 1.913), 0.4 * wave(i, 2.371)]
    };
    let rows: Vec<f64> = (0..n).flat_map(row).collect();
    let targets = rows.chunks_exact(COLUMNS).enumerate().map(|(i, x)| {
        let u = 3.0 * x[0] - x[2] + 0.2 + 2.0 * wave(i, 4.177);
        if u > 0.0 { 1.0 } else { -1.0 }
    });
    let targets = targets.collect();
    (rows, targets)
}

pub(super) fn with_design<T>(
    (rows, targets): &(Vec<f64>, Vec<f64>),
    of: Targets,
    test: impl FnOnce(&Design<'_>, &Executor<'_>) -> T,
) -> T {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let bounds = RowBounds {
        rows: RowDomain::Ball(1.0),
        targets: of,
        on_violation: OnViolation::Keep,
    };
    let rows = Rows::dense(rows, COLUMNS);
    let design = Design::new(rows, targets, Some(0.5), &bounds, &exec).unwrap();
    test(&design, &exec)
}

pub(super) fn released(spec: &NewtonSpec, seed: u64) -> NewtonRelease<Sealed> {
    let data = data(spec.choices().terms.n_samples);
    with_design(&data, Targets::Signs, |design, exec| {
        let mut generator = SimulationGenerator::new(seed, 0);
        release_newton(spec, design, exec, &mut Sealing(&mut generator)).unwrap()
    })
}

pub(super) fn gradient(design: &Design<'_>, loss: &dyn Loss, point: &[f64], exec: &Executor<'_>) -> Vec<f64> {
    let request = Request::Risk {
        params: point.to_vec(),
        hessian: HessianRows::None,
    };
    let sums = design.sums(&request, loss, None, exec).unwrap();
    let n = design.n_records() as f64;
    sums.slopes.values().take(point.len()).map(|s| s / n).collect()
}

fn transposed(matrix: &[f64]) -> Vec<f64> {
    let dim = matrix.len().isqrt();
    (0..dim * dim).map(|k| matrix[k % dim * dim + k / dim]).collect()
}

#[test]
fn with_little_noise_the_steps_end_at_the_minimiser_of_the_held_gradients() {
    let found = released(&spec(3000, 1e12), 3);
    with_design(&data(3000), Targets::Signs, |design, exec| {
        let moved = design.moved(&found.round_map, exec).unwrap();
        let round = moved.within(found.radii[1], 99.0);
        let is_identity = |matrix: &[f64]| {
            for (i, m) in matrix.iter().enumerate() {
                let identity = f64::from(u8::from(i % 5 == 0));
                assert!((m - identity).abs() < 0.15, "{i} {m}");
            }
        };
        // The rows are round, and then the Hessian is.
        let gram = second_moments(&round, exec).unwrap().gram;
        is_identity(&gram.iter().map(|m| m / 3000.0).collect::<Vec<_>>());
        is_identity(found.hessian.values());
        let mut round = round.moved_further(&found.further, exec).unwrap();
        let at = found.last_bounds();
        round.limit(at.gradient, at.hessian);
        let slope = gradient(&round, &Logistic, &found.params, exec);
        assert!(vector::norm(&slope) < 1e-4, "{slope:?}");
        let bounds = [[at.gradient], [at.hessian]];
        let bounds = bounds.each_ref().map(<[f64; 1]>::as_slice);
        let beyond = round.counts_of_derivatives(&Logistic, &found.params, bounds, exec);
        let [gradients, hessians] = beyond.unwrap();
        let first = |counts: &CompensatedSum| counts.values().next().unwrap();
        // Noise this small hides no record.
        assert_eq!((first(&gradients), first(&hessians)), (0.0, 0.0));
        assert!(at.gradient < 30.0 && at.hessian < 40.0, "{at:?}");
    });
}

#[test]
fn the_steps_are_those_of_the_released_values() {
    let found = released(&spec(20_000, 0.5), 4);
    let dim = COLUMNS + 1;
    let [earlier, last] = [0, 1].map(|k| (&found.starts[k], &found.gradients[k], found.weights[k]));
    assert!(
        earlier.2 > 0.05 && (earlier.2 + last.2 - 1.0).abs() < 1e-15,
        "{}",
        earlier.2
    );
    for (row, i) in found.hessian.values().chunks_exact(dim).zip(0..) {
        let moved = |(start, gradient, weight): (&Vec<f64>, &Vec<f64>, f64)| {
            let change: Vec<f64> = start.iter().zip(&found.params).map(|(a, b)| a - b).collect();
            weight * (vector::dot(row, &change) - gradient[i])
        };
        assert!((moved(earlier) + moved(last)).abs() < 1e-12);
    }
    let params = found.mapped_params();
    for (found, expected) in params.iter().zip([3.0, 0.0, -1.0, 0.4]) {
        assert!((found - expected).abs() < 1.5, "{params:?}");
    }
}

#[test]
fn steps_end_where_columns_tell_much_of_log_odds() {
    // Log-odds with a standard deviation of 3.2, of which Newton's method alone leaves .3 to the last step.
    let (rows, _) = data(20_000);
    let wave = |i: usize| (0.5 * (1.0 + (4.177 * i as f64).sin())).clamp(1e-9, 1.0 - 1e-9);
    let targets = rows.chunks_exact(COLUMNS).enumerate().map(|(i, x)| {
        let odds = 9.0 * x[0] - 3.0 * x[2];
        // The arcsine law of the wave, as a uniform one.
        let uniform = 2.0 * wave(i).sqrt().asin() * std::f64::consts::FRAC_1_PI;
        if uniform < (1.0 + (-odds).exp()).recip() {
            1.0
        } else {
            -1.0
        }
    });
    let targets = targets.collect();
    with_design(&(rows, targets), Targets::Signs, |design, exec| {
        let mut generator = SimulationGenerator::new(7, 0);
        let gate = &mut Sealing(&mut generator);
        let found = release_newton(&spec(20_000, 1e3), design, exec, gate).unwrap();
        let length = |params: &[f64]| {
            let columns = transposed(&found.further);
            let round = columns.chunks_exact(COLUMNS + 1);
            let entries = (0..=COLUMNS).map(|i| {
                let row = round.clone().map(|column| column[i]);
                row.zip(params).map(|(m, p)| m * p).sum::<f64>()
            });
            vector::norm(&entries.collect::<Vec<_>>())
        };
        let end = length(&found.params);
        assert!((3.0..3.5).contains(&end), "{end}");
        for start in &found.starts {
            assert!((length(start) - end).abs() < 0.1, "{} {end}", length(start));
        }
    });
}

#[test]
fn stages_spend_the_budget_and_no_more() {
    for budget in [Budget::zcdp(0.3).unwrap(), Budget::approx(1.0, 1e-6).unwrap()] {
        let spec = NewtonSpec::new(choices(4000, budget)).unwrap();
        let found = released(&spec, 5);
        let (steps, seals) = spec.planned(&found.radii, &found.bounds).unwrap();
        assert_eq!((&found.steps, &found.seals), (&steps, &seals));
        let spent: f64 = steps.iter().map(|step| step.cost.value()).sum();
        let sealed: f64 = seals.iter().map(|seal| seal.cost().value()).sum();
        let (whole, of_seals) = match budget {
            Budget::Zcdp { rho } => (0.999 * rho, 0.001 * rho),
            Budget::Approx { epsilon, delta } => {
                let mu = crate::privacy::gaussian_mu(0.999 * epsilon, 0.999 * delta).unwrap();
                (mu * mu, 0.001 * epsilon)
            }
            Budget::Pure { .. } => unreachable!(),
        };
        assert!(spent <= whole && spent > whole * (1.0 - 1e-9), "{spent} {whole}");
        assert!(sealed <= of_seals && sealed > of_seals * (1.0 - 1e-9));
        for step in &steps {
            let ratio = (step.sensitivity / step.scale).powi(2);
            let cost = match step.cost {
                Cost::Rho(rho) => 2.0 * rho,
                cost => cost.value(),
            };
            assert!((ratio / cost - 1.0).abs() < 1e-9, "{step:?}");
        }
    }
}

/// All neighbours of a small table in its first record, and the change of every query, over its sensitivity.
#[test]
fn no_neighbour_moves_a_query_further_than_its_sensitivity() {
    let n = 6;
    let losses: [Arc<dyn Loss>; 5] = [
        Arc::new(Logistic),
        Arc::new(Huber::new(1.0, 0.3).unwrap()),
        Arc::new(Poisson::new(5.0).unwrap()),
        Arc::new(Probit),
        Arc::new(CLogLog),
    ];
    for loss in losses {
        let targets = loss.targets();
        let spec = NewtonSpec::new(NewtonChoices {
            loss,
            ..choices(n, Budget::zcdp(1.0).unwrap())
        })
        .unwrap();
        // Continued, where it has no bounds.
        let loss = &spec.choices().loss;
        let map: Vec<f64> = (0..16).map(|i| f64::from(i * i % 7 - 3)).collect();
        let further: Vec<f64> = (0..16).map(|i| f64::from(i % 5 - 2)).collect();
        let radius = 2.0;
        let bounds = NormBounds {
            gradient: 0.7,
            hessian: 0.4,
            stretch: 1.0,
        };
        let points = [[0.3, -0.2, 0.9, -1.4], [0.0; 4], [5.0, 5.0, -5.0, 5.0]];
        let planned = (
            spec.shape(radius).unwrap(),
            spec.gradient(bounds.gradient, 1.0, At::Last).unwrap(),
            spec.moments(bounds).unwrap(),
        );
        let alpha = planned.2.gradient_cov.law.scale() / planned.2.hessian.law.scale();
        let queries = |data: &(Vec<f64>, Vec<f64>)| {
            with_design(data, targets, |design, exec| {
                let round = design.moved(&map, exec).unwrap();
                let round = round.within(radius, f64::MAX);
                let gram = second_moments(&round, exec).unwrap().gram;
                let mut round = round.moved_further(&further, exec).unwrap();
                round.limit(bounds.gradient, bounds.hessian);
                let mut found = vec![gram.iter().map(|m| m / n as f64).collect::<Vec<_>>()];
                for point in points {
                    found.push(gradient(&round, &**loss, &point, exec));
                    let moments = data_moments(&round, &**loss, &point, n as f64, exec).unwrap();
                    let weighted = moments.curvature.iter().map(|h| alpha * h);
                    found.push(weighted.chain(moments.squared_slope).collect());
                }
                found
            })
        };
        let mut sensitivities = vec![planned.0.step.sensitivity];
        for _ in points {
            sensitivities.push(planned.1.step.sensitivity);
            sensitivities.push(planned.2.step.sensitivity);
        }
        let mut base = data(n);
        let [lower, upper] = targets.ends();
        for y in &mut base.1 {
            *y = if *y < 0.0 { lower } else { upper };
        }
        let with = |row: [f64; 3], target: f64| {
            let mut other = base.clone();
            other.0[..3].copy_from_slice(&row);
            other.1[0] = target;
            queries(&other)
        };
        let mut all = Vec::new();
        for code in 0..27 {
            let digit = |k: u32| f64::from(code / 3_i32.pow(k) % 3 - 1);
            // Within the unit ball, and as far beyond it as a row can be.
            for (target, length) in [lower, upper]
                .into_iter()
                .flat_map(|y| [(y, 0.57), (y, 3.0), (y, 1e100)])
            {
                all.push(with([0, 1, 2].map(|k| length * digit(k)), target));
            }
        }
        let mut greatest = vec![0.0_f64; sensitivities.len()];
        for a in &all {
            for b in &all {
                for ((worst, (a, b)), s) in greatest.iter_mut().zip(a.iter().zip(b)).zip(&sensitivities) {
                    let change: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
                    *worst = worst.max(vector::norm(&change) / s);
                }
            }
        }
        assert!(greatest.iter().all(|ratio| *ratio <= 1.0), "{greatest:?}");
        // Not far too great either.
        assert!(greatest.iter().all(|ratio| *ratio > 0.1), "{greatest:?}");
    }
}

/// Records of weight 0 beside as many others leave the first step and the start of the last one as they are, up to what radii change.
#[test]
fn steps_are_those_of_the_records_with_weight() {
    let n = 3000;
    let losses: [Arc<dyn Loss>; 4] = [
        Arc::new(Logistic),
        Arc::new(Huber::new(1.0, 0.3).unwrap()),
        Arc::new(Poisson::new(5.0).unwrap()),
        Arc::new(Probit),
    ];
    for loss in losses {
        let of = loss.targets();
        let given = |n| NewtonChoices {
            loss: Arc::clone(&loss),
            ..choices(n, Budget::zcdp(1e12).unwrap())
        };
        let released = |n_weightless: usize| {
            let (rows, mut targets) = data(n + n_weightless);
            if of != Targets::Signs {
                for y in &mut targets {
                    *y = 0.5 + 0.5 * *y;
                }
            }
            let mut given = given(n + n_weightless);
            if n_weightless > 0 {
                given.terms.weighting = Some(Weighting::new(1.0, (n + n_weightless) as f64).unwrap());
            }
            let spec = NewtonSpec::new(given).unwrap();
            with_design(&(rows, targets), of, |design, exec| {
                let mut design = design.clone();
                if let Some(weighting) = spec.choices().terms.weighting {
                    let mut weights = vec![1.0; n];
                    weights.resize(n + n_weightless, 0.0);
                    design = design.weighted(&weights, weighting).unwrap();
                }
                let mut generator = SimulationGenerator::new(5, 0);
                release_newton(&spec, &design, exec, &mut Sealing(&mut generator)).unwrap()
            })
        };
        let [alone, beside] = [0, n].map(released);
        let near = |a: f64, b: f64, part: f64| assert!((a / b - 1.0).abs() < part, "{loss:?} {a} {b}");
        near(beside.radii[1], alone.radii[1], 0.1);
        near(beside.bounds[0].hessian, alone.bounds[0].hessian, 0.2);
        let start = |found: &NewtonRelease<Sealed>| {
            let columns = transposed(&found.map());
            let pairs = columns.chunks_exact(COLUMNS + 1).zip(&found.starts[0]);
            pairs.fold(vec![0.0; COLUMNS + 1], |sum, (column, s)| {
                sum.iter().zip(column).map(|(sum, c)| sum + s * c).collect()
            })
        };
        for (a, b) in start(&beside).iter().zip(start(&alone)) {
            assert!((a - b).abs() < 0.1, "{loss:?} {a} {b}");
        }
    }
}

#[test]
fn the_norm_leaves_the_wanted_share_beyond_it() {
    let spec = spec(400, 1e12);
    let [counts, of_hessians] = spec.norms(2.0, 1).unwrap();
    let (radii, mut shares) = (counts.norms.clone(), vec![0.0; counts.norms.len()]);
    let last = radii.len() - 1;
    assert!(radii.windows(2).all(|pair| (pair[1] / pair[0] - 1.2).abs() < 1e-12));
    // Six times the typical norm, and the curvature of a quarter.
    assert_eq!((radii[last], of_hessians.norms[last]), (12.0, 36.0));
    // √2/n between neighbours, whichever counts they move.
    assert!((counts.noise.step.sensitivity * 400.0 - 2f64.sqrt()).abs() < 1e-12);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-5;
    assert!(near(counts.quantile(&shares).norm, radii[0]));
    // Nothing is hidden. Three quarters of the share lie beyond a quarter of the way up; of Hessians no share is wanted beyond.
    shares[9] = 0.02;
    assert!(near(counts.quantile(&shares).norm, radii[9] * 1.2_f64.powf(0.25)));
    assert!(near(of_hessians.quantile(&shares).norm, of_hessians.norms[10]));
    assert!(near(counts.quantile(&shares).size, radii[9] * 0.02_f64.sqrt()));
    shares[last] = 0.3;
    assert!(near(counts.quantile(&shares).norm, radii[last]));
    let of_rows = spec.radius(0, 12.0).unwrap();
    let (radii, mut shares) = (of_rows.norms.clone(), vec![0.0; of_rows.norms.len()]);
    shares[9] = 0.5;
    // .05 of .5 lies beyond a tenth of the way down.
    let found = of_rows.quantile(&shares);
    assert!(near(found.norm, radii[10] * 1.2_f64.powf(-0.1)));
    // Noise hides what is below 3.5 of its standard deviations.
    let [noisy, _] = self::spec(400, 0.01).norms(2.0, 1).unwrap();
    let mut shares = vec![0.0; noisy.norms.len()];
    shares[9] = 0.9 * 3.5 * 12f64.sqrt() * noisy.noise.step.scale;
    assert!(near(noisy.quantile(&shares).norm, noisy.norms[0]));
}

#[test]
fn counts_of_radii_and_norms_begin_where_no_record_is_beyond() {
    let spec = spec(400, 1.0);
    let last = |norms: &[f64]| norms[norms.len() - 1];
    // The first of the rows as they are; later ones of rows that are six times as long as usual ones, or less.
    let greatest = 6.0 * 2.0;
    for (round, longest, expected) in [(0, 50.0, 50.0), (1, 50.0, greatest), (1, 3.0, 3.0)] {
        let counts = spec.radius(round, longest).unwrap();
        assert!((last(&counts.norms) - expected).abs() < 1e-12 * expected);
    }
    // A continued loss has as many norms more as its greatest slope is above the usual one, and those of a hundredth of its curvature.
    let continued = NewtonChoices {
        loss: Arc::new(Probit),
        ..choices(400, Budget::zcdp(1.0).unwrap())
    };
    let continued = NewtonSpec::new(continued).unwrap();
    let [usual, of_continued] = [&spec, &continued].map(|s| s.norms(2.0, 1).unwrap());
    let more = of_continued[1].norms.len() - usual[1].norms.len();
    // 1.44¹² < 100 < 1.44¹³.
    assert_eq!(more, 13);
}

#[test]
fn a_class_is_hidden_under_pure_budgets_with_an_intercept_alone() {
    let of = |budget, intercept| {
        NewtonSpec::new(NewtonChoices {
            intercept,
            ..choices(40_000, budget)
        })
        .unwrap()
    };
    let pure = of(Budget::pure(1.0).unwrap(), Some(0.5));
    assert!(pure.hides_class(30.0).unwrap() && !pure.hides_class(0.0).unwrap());
    for spec in [
        of(Budget::pure(1.0).unwrap(), None),
        of(Budget::zcdp(1.0).unwrap(), Some(0.5)),
    ] {
        assert!(!spec.hides_class(30.0).unwrap());
    }
}

/// Neighbours in all rows of one person, who has three of nine, and in one weighted row.
#[test]
fn no_person_and_no_weighted_row_moves_a_query_further_than_its_sensitivity() {
    for weighted in [false, true] {
        let mut given = choices(9, Budget::zcdp(1.0).unwrap());
        if weighted {
            given.terms.weighting = Some(Weighting::new(2.0, 12.0).unwrap());
        } else {
            given.terms.unit = Unit::persons(None).unwrap();
            given.terms.n_samples = 7;
        }
        let spec = NewtonSpec::new(given).unwrap();
        let base = data(9);
        let mut all = Vec::new();
        for code in 0..27 {
            for (target, weight) in [(-1.0, 2.0), (1.0, 2.0), (1.0, 0.5)] {
                let mut other = base.clone();
                let changed: &[usize] = if weighted { &[0] } else { &[0, 3, 7] };
                for (k, row) in changed.iter().enumerate() {
                    for j in 0..COLUMNS {
                        let digit = (code / 3_usize.pow(u32::try_from(j).unwrap()) + k * code) % 3;
                        other.0[row * COLUMNS + j] = (digit as f64 - 1.0) * 0.57;
                    }
                    other.1[*row] = target;
                }
                all.push(counted_queries(&spec, &other, weighted.then_some(weight)));
            }
        }
        let mut greatest = [0.0_f64; 6];
        for (a, _) in &all {
            for (b, sensitivities) in &all {
                let pairs = a.iter().zip(b).zip(sensitivities);
                for (worst, ((a, b), s)) in greatest.iter_mut().zip(pairs) {
                    let change: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
                    *worst = worst.max(vector::norm(&change) / s);
                }
            }
        }
        let within = greatest.iter().all(|r| *r <= 1.0 && *r > 0.1);
        assert!(within, "{weighted} {greatest:?}");
    }
}

/// The counts by norm, the second moments, the gradient and both matrices of rows of persons, or of which the first has a weight; and their
/// sensitivities.
fn counted_queries(spec: &NewtonSpec, data: &(Vec<f64>, Vec<f64>), weight: Option<f64>) -> ([Vec<f64>; 6], [f64; 6]) {
    let (radius, point) = (2.0, vec![0.3, -0.2, 0.9, -1.4]);
    let bounds = NormBounds {
        gradient: 0.7,
        hessian: 0.4,
        stretch: 1.0,
    };
    let map: Vec<f64> = (0..16).map(|i| f64::from(i * i % 7 - 3)).collect();
    let further: Vec<f64> = (0..16).map(|i| f64::from(i % 5 - 2)).collect();
    let terms = spec.choices().terms;
    let n = terms.divisor();
    let moments = spec.moments(bounds).unwrap();
    let alpha = moments.gradient_cov.law.scale() / moments.hessian.law.scale();
    let norms = spec.norms(2.0, 1).unwrap();
    let sensitivities = [
        spec.radius(0, 9.0).unwrap().noise.step.sensitivity,
        norms[0].noise.step.sensitivity,
        norms[1].noise.step.sensitivity,
        spec.shape(radius).unwrap().step.sensitivity,
        spec.gradient(bounds.gradient, 1.0, At::Last).unwrap().step.sensitivity,
        moments.step.sensitivity,
    ];
    let found = with_design(data, Targets::Signs, |design, exec| {
        let design = if let (Some(weight), Some(weighting)) = (weight, terms.weighting) {
            let mut weights = vec![1.0; 9];
            weights[0] = weight;
            design.clone().weighted(&weights, weighting).unwrap()
        } else {
            let persons = Persons::new(&[0, 1, 2, 0, 3, 4, 5, 0, 6], terms.unit, exec);
            design.clone().of_persons(persons.unwrap()).unwrap()
        };
        let moved = design.moved(&map, exec).unwrap();
        let counts = moved.counts(&[0.5, 1.0, 2.0, 4.0]);
        let round = moved.within(radius, 99.0);
        let gram = second_moments(&round, exec).unwrap().gram;
        let mut round = round.moved_further(&further, exec).unwrap();
        let of_derivatives = [[0.2, 0.5, 1.0, 2.0], [0.05, 0.2, 0.5, 1.0]];
        let of_derivatives = of_derivatives.each_ref().map(<[f64; 4]>::as_slice);
        let [of_gradients, of_hessians] = round
            .counts_of_derivatives(&Logistic, &point, of_derivatives, exec)
            .unwrap();
        round.limit(bounds.gradient, bounds.hessian);
        let request = Request::Risk {
            params: point.clone(),
            hessian: HessianRows::None,
        };
        let slopes = round.sums(&request, &Logistic, None, exec).unwrap().slopes;
        let data = data_moments(&round, &Logistic, &point, n, exec).unwrap();
        let curvature = data.curvature.iter().map(|h| alpha * h);
        [
            counts.values().map(|c| c / n).collect(),
            of_gradients.values().map(|c| c / n).collect(),
            of_hessians.values().map(|c| c / n).collect(),
            gram.iter().map(|m| m / n).collect(),
            slopes.values().take(4).map(|s| s / n).collect(),
            curvature.chain(data.squared_slope).collect(),
        ]
    });
    (found, sensitivities)
}

#[test]
fn what_is_not_offered_is_refused() {
    let refused = |choices: NewtonChoices| NewtonSpec::new(choices).unwrap_err().to_string();
    let zcdp = || choices(100, Budget::zcdp(1.0).unwrap());
    let loss = Arc::new(crate::loss::Squared::new(1.0).unwrap());
    let squared = NewtonChoices { loss, ..zcdp() };
    assert!(refused(squared).contains("bounded slope"));
    let pure = NewtonChoices {
        loss: Arc::new(Probit),
        ..choices(100, Budget::pure(1.0).unwrap())
    };
    assert!(refused(pure).contains("requires ZCDP or ApproxDP with the probit loss"));
    let empty = NewtonChoices { n_columns: 0, ..zcdp() };
    assert!(refused(empty).contains("at least one row"));
    let spec = spec(3000, 1.0);
    with_design(&data(2999), Targets::Signs, |design, exec| {
        let mut generator = SimulationGenerator::new(1, 0);
        let found = release_newton(&spec, design, exec, &mut Sealing(&mut generator));
        assert!(found.is_err());
    });
}
