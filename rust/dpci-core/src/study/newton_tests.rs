//! Replicates of Newton steps against fits of the samples, record by record.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::newton::bounds;
use super::tests::{BOUNDS, N, WIDTH};
use super::weights::Resampler;
use super::*;
use crate::design::{Csr, Design, Persons, Rows};
use crate::exec::Executor;
use crate::linalg::vector;
use crate::loss::{HuberHinge, Logistic, Loss};
use crate::mechanism::{Simulating, release_newton};
use crate::noise::SimulationGenerator;
use crate::privacy::{Budget, Neighbors};
use crate::row_domain::RowDomain;
use crate::spec::{NewtonChoices, NewtonSpec, Terms};
use crate::unit::{Unit, Weighting};

fn spec(loss: Arc<dyn Loss>, budget: Budget, terms: Terms) -> NewtonSpec {
    NewtonSpec::new(NewtonChoices {
        terms,
        n_columns: WIDTH,
        intercept: Some(0.5),
        rows: RowDomain::Ball(1.0),
        loss,
        budget,
    })
    .unwrap()
}

fn specs(terms: Terms) -> Vec<NewtonSpec> {
    vec![
        spec(Arc::new(Logistic), Budget::zcdp(4.0).unwrap(), terms),
        spec(Arc::new(Logistic), Budget::pure(20.0).unwrap(), terms),
        spec(
            Arc::new(HuberHinge::new(1.0).unwrap()),
            Budget::approx(6.0, 1e-6).unwrap(),
            terms,
        ),
    ]
}

/// Records of which many repeat, and classes that depend on them.
fn records() -> (Vec<f64>, Vec<f64>) {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..N {
        let k = (if i % 3 == 0 { i % 7 } else { i }) as f64;
        let row = [0.731, 1.913, 2.371, 3.117, 4.797].map(|wave| 0.4 * (wave * (k + 1.0)).sin());
        let u = 3.0 * row[0] - 2.0 * row[1] + row[4] + 0.3 + 1.5 * (5.237 * k).sin();
        x.extend(row);
        y.push(if u > 0.0 { 1.0 } else { -1.0 });
    }
    (x, y)
}

fn with_exec(test: impl FnOnce(&Executor<'_>)) {
    let cancel = AtomicBool::new(false);
    test(&Executor::sequential(&cancel));
}

/// The fit of each sample, made of copies of its records, with the noise of the replicate.
fn assert_replicates_equal_fits(design: &Design<'_>, terms: Terms, exec: &Executor<'_>) {
    let specs = specs(terms);
    let study = Study::new(design, &specs, exec).unwrap();
    let outcomes = study.run(3..9, 9, Some(0.95), exec).unwrap();
    let merged = design.merged(exec).unwrap();
    let resampler = Resampler::new(&merged).unwrap();
    for (replicate, outcome) in (3_u64..).zip(&outcomes) {
        let mut counts = resampler.no_counts();
        let generator = SimulationGenerator::new(9, replicate * 256);
        resampler.draw(&mut [generator], &mut counts).unwrap();
        let counts = counts.of(0);
        let copies = |i: usize| std::iter::repeat_n(i, counts[i] as usize);
        // Records of persons are the persons, in their order.
        let drawn: Vec<usize> = match merged.persons() {
            None => (0..counts.len()).flat_map(copies).collect(),
            Some(persons) => (0..persons.len())
                .flat_map(|p| copies(persons.rows_of(p)[0]).map(move |_| p))
                .collect(),
        };
        assert_eq!(drawn.len(), terms.n_samples);
        let single = unmerged(&merged, exec);
        let sample = single.subset(&drawn).unwrap();
        for ((c, spec), found) in (0_u64..).zip(&specs).zip(outcome) {
            let stream = || SimulationGenerator::new(9, replicate * 256 + 1 + c);
            let fit = release_newton(spec, &sample, exec, &mut Simulating(&mut stream())).unwrap();
            let gap = |a: &[f64], b: &[f64]| {
                let gaps = a.iter().zip(b).map(|(a, b)| (a - b).abs());
                gaps.fold(0.0, f64::max)
            };
            let size = vector::norm(&found.params);
            assert!(gap(&fit.mapped_params(), &found.params) <= 1e-9 * size);
            let expected = bounds(spec, &fit, &fit.mapped_params(), 0.95).unwrap();
            for (found, expected) in found.bounds.concat().iter().zip(expected.concat()) {
                let same = (found - expected).abs() <= 1e-8 * size;
                assert!(same || (found.is_nan() && expected.is_nan()));
            }
        }
    }
    let given = outcomes.iter().flatten();
    assert!(given.filter(|fit| fit.bounds[0][0].is_finite()).count() >= 6);
}

/// Distinct records, each of which stands for itself alone.
fn unmerged(merged: &Design<'static>, exec: &Executor<'_>) -> Design<'static> {
    if merged.multiplicities().is_none() {
        return merged.clone();
    }
    let mut rows = vec![0.0; merged.n_rows() * merged.n_params()];
    merged.write_rows(0..merged.n_rows(), &mut rows);
    let rows: Vec<f64> = rows
        .chunks_exact(merged.n_params())
        .flat_map(|row| row[..WIDTH].to_vec())
        .collect();
    let targets = merged.targets(0..merged.n_rows()).to_vec();
    let found = Design::new(Rows::dense(&rows, WIDTH), &targets, Some(0.5), &BOUNDS, exec);
    found.unwrap().owned()
}

#[test]
fn a_replicate_equals_a_fit_of_the_sample() {
    with_exec(|exec| {
        let (x, y) = records();
        let dense = Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), &BOUNDS, exec).unwrap();
        assert!(dense.merged(exec).unwrap().n_rows() < N);
        let starts: Vec<i64> = (0..=N).map(|i| i64::try_from(i * WIDTH).unwrap()).collect();
        let columns: Vec<i32> = (0..N).flat_map(|_| 0..5).collect();
        let csr = Csr::new(starts, columns, x.clone(), WIDTH).unwrap();
        let sparse = Design::new(Rows::Csr(csr), &y, Some(0.5), &BOUNDS, exec).unwrap();
        for design in [dense, sparse] {
            let terms = Terms::of_rows(N, Neighbors::ReplaceOne);
            assert_replicates_equal_fits(&design, terms, exec);
        }
    });
}

#[test]
fn a_replicate_of_persons_or_weights_equals_a_fit_of_the_sample() {
    with_exec(|exec| {
        let (x, y) = records();
        let design = || Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), &BOUNDS, exec).unwrap();
        // In no order, with one to three rows.
        let unit = Unit::persons(Some(2)).unwrap();
        let of: Vec<i64> = (0..N).map(|i| i64::try_from(i * 7 % 601).unwrap()).collect();
        let persons = design().of_persons(Persons::new(&of, unit, exec).unwrap()).unwrap();
        let terms = Terms {
            unit,
            ..Terms::of_rows(persons.n_records(), Neighbors::AddRemove)
        };
        assert_replicates_equal_fits(&persons, terms, exec);
        let weights: Vec<f64> = (0..N).map(|i| 0.25 * (1 + i % 4) as f64).collect();
        let weighting = Weighting::new(1.0, 0.6 * N as f64).unwrap();
        let weighted = design().weighted(&weights, weighting).unwrap();
        let terms = Terms {
            weighting: Some(weighting),
            ..Terms::of_rows(N, Neighbors::ReplaceOne)
        };
        assert_replicates_equal_fits(&weighted, terms, exec);
    });
}

#[test]
fn neither_threads_nor_the_cut_into_calls_change_a_bit() {
    let cancel = AtomicBool::new(false);
    let (one, three) = (
        Executor::sequential(&cancel),
        Executor::new(Some(3), 99, &cancel).unwrap(),
    );
    let (x, y) = records();
    let design = Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), &BOUNDS, &one).unwrap();
    let terms = Terms::of_rows(N, Neighbors::ReplaceOne);
    // Beside another mechanism, with which they share the samples.
    let ridge = super::tests::spec(
        Arc::new(Logistic),
        crate::privacy::Perturbation::Objective,
        Budget::pure(60.0).unwrap(),
    );
    let mut all: Vec<StudySpec> = specs(terms).into_iter().map(Into::into).collect();
    all.insert(1, ridge.clone().into());
    let study = Study::new(&design, &all, &one).unwrap();
    let bits = |outcomes: Vec<Vec<Outcome>>| -> Vec<u64> {
        let fits = outcomes.into_iter().flatten();
        fits.flat_map(|fit| [fit.params, fit.bounds.concat()].concat())
            .map(f64::to_bits)
            .collect()
    };
    let whole = bits(study.run(0..20, 4, Some(0.9), &one).unwrap());
    assert_eq!(bits(study.run(0..20, 4, Some(0.9), &three).unwrap()), whole);
    let parts = [0..7, 7..20].map(|part| study.run(part, 4, Some(0.9), &three).unwrap());
    assert_eq!(bits(parts.concat()), whole);
    let alone = study.run(0..20, 4, None, &three).unwrap();
    assert!(alone.iter().flatten().all(|fit| fit.bounds[0].is_empty()));
}

#[test]
fn the_target_is_the_ordinary_minimiser() {
    with_exec(|exec| {
        let (x, y) = records();
        let design = Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), &BOUNDS, exec).unwrap();
        let terms = Terms::of_rows(N, Neighbors::ReplaceOne);
        // At the margin 0 the hinge has no curvature.
        for loss in [
            Arc::new(Logistic) as Arc<dyn Loss>,
            Arc::new(HuberHinge::new(0.5).unwrap()),
        ] {
            let spec = spec(Arc::clone(&loss), Budget::zcdp(1.0).unwrap(), terms);
            let study = Study::new(&design, &[spec], exec).unwrap();
            let target = study.targets().next().unwrap().to_vec();
            let risk = crate::objective::Objective {
                records: &design,
                loss: &*loss,
                weights: None,
                l2_strength: 0.0,
                extra_convexity: 0.0,
                linear_term: None,
                n_samples: N as f64,
                exec,
            };
            let found = risk.evaluate(&target, crate::records::HessianRows::None).unwrap();
            assert!(vector::norm(&found.gradient) < 1e-10);
            let errors = study.std_errors().next().unwrap().unwrap().to_vec();
            assert!(errors.iter().all(|e| *e > 0.0 && e.is_finite()));
        }
        // Separable classes have none.
        let signs: Vec<f64> = x
            .chunks_exact(WIDTH)
            .map(|row| if row[0] > 0.1 { 1.0 } else { -1.0 })
            .collect();
        let design = Design::new(Rows::dense(&x, WIDTH), &signs, Some(0.5), &BOUNDS, exec).unwrap();
        let spec = spec(Arc::new(Logistic), Budget::zcdp(1.0).unwrap(), terms);
        assert!(Study::new(&design, &[spec], exec).is_err());
    });
}
