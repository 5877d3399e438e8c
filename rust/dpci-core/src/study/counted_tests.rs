//! Replicates of persons and of weighted records against fits of the samples, person by person.

use std::sync::atomic::AtomicBool;

use super::intervals::bounds as intervals_of;
use super::tests::{BOUNDS, N, WIDTH, records, spec, specs};
use super::weights::Resampler;
use super::*;
use crate::design::{Design, Persons, Rows};
use crate::exec::Executor;
use crate::loss::Logistic;
use crate::mechanism::{Simulating, Values, project_release, release};
use crate::noise::SimulationGenerator;
use crate::privacy::{Budget, Perturbation};
use crate::spec::{Choices, Spec, Terms};
use crate::unit::{Unit, Weighting};

const SEED: u64 = 9;
const LEVEL: f64 = 0.95;

/// How records count.
#[derive(Clone, Copy)]
struct Counting {
    unit: Unit,
    weighting: Option<Weighting>,
}

/// A sample of whole records, in an order of its own.
#[derive(Default)]
struct Sample {
    x: Vec<f64>,
    y: Vec<f64>,
    persons: Vec<i64>,
    weights: Vec<f64>,
}

impl Sample {
    fn design<'d>(&'d self, counting: Counting, exec: &Executor<'_>) -> Design<'d> {
        let rows = Rows::dense(&self.x, WIDTH);
        let mut design = Design::new(rows, &self.y, Some(0.5), &BOUNDS, exec).unwrap();
        if counting.unit != Unit::Row {
            let persons = Persons::new(&self.persons, counting.unit, exec).unwrap();
            design = design.of_persons(persons).unwrap();
        }
        match counting.weighting {
            Some(weighting) => design.weighted(&self.weights, weighting).unwrap(),
            None => design,
        }
    }
}

/// All rows, those of a person anywhere in the table; rows of one person each without persons.
fn table(counting: Counting) -> (Sample, usize) {
    let (x, y) = records();
    let n_records = if counting.unit == Unit::Row { N } else { N / 4 };
    let person = |i: usize| i64::try_from((i * 7 + i / n_records) % n_records).unwrap();
    let weights = (0..N).map(|i| 2.0 * (i as f64 * 0.377).sin().powi(2));
    let table = Sample {
        x,
        y,
        persons: (0..N).map(person).collect(),
        weights: weights.collect(),
    };
    (table, n_records)
}

/// Sample with all rows of each record, as often as the record was drawn.
fn expanded(table: &Sample, drawn: &[u32], unit: Unit) -> Sample {
    let mut sample = Sample::default();
    let mut number = 0;
    for (record, count) in (0_i64..).zip(drawn) {
        for _ in 0..*count {
            for i in 0..N {
                let theirs = match unit {
                    Unit::Row => i64::try_from(i).unwrap(),
                    Unit::Person { .. } => table.persons[i],
                };
                if theirs == record {
                    sample.x.extend_from_slice(&table.x[i * WIDTH..(i + 1) * WIDTH]);
                    sample.y.push(table.y[i]);
                    sample.weights.push(table.weights[i]);
                    sample.persons.push(number);
                }
            }
            number += 1;
        }
    }
    sample
}

fn counted(specs: &[Spec], n_samples: usize, counting: Counting) -> Vec<Spec> {
    let with = |spec: &Spec| {
        Spec::new(Choices {
            terms: Terms {
                n_samples,
                unit: counting.unit,
                weighting: counting.weighting,
                ..spec.choices().terms
            },
            ..spec.choices().clone()
        })
        .unwrap()
    };
    specs.iter().map(with).collect()
}

fn check(counting: Counting) {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (table, n_records) = table(counting);
    let specs = counted(&specs(), n_records, counting);
    let design = table.design(counting, &exec);
    let mut study = Study::new(&design, &specs, &exec).unwrap();
    assert_eq!(study.n_distinct(), n_records);
    let mut outcomes = study.run(3..6, SEED, Some(LEVEL), &exec).unwrap();
    // The replicates of the logistic loss once more, by its series.
    study.populations[0].is_near = true;
    outcomes.extend(study.run(3..6, SEED, Some(LEVEL), &exec).unwrap());
    // Records in the order of their numbers.
    let merged = design.merged(&exec).unwrap();
    let resampler = Resampler::new(&merged).unwrap();
    for (replicate, outcome) in (3_u64..6).cycle().zip(&outcomes) {
        let mut counts = resampler.no_counts();
        let generator = SimulationGenerator::new(SEED, replicate * 256);
        resampler.draw(&mut [generator], &mut counts).unwrap();
        let counts = counts.of(0);
        let drawn: Vec<u32> = (0..n_records)
            .map(|record| {
                let rows = merged.persons().map(|persons| persons.rows_of(record));
                let rows = rows.unwrap_or(std::slice::from_ref(&record));
                // The count of a person is that of each row.
                assert!(rows.iter().all(|row| counts[*row] == counts[rows[0]]));
                counts[rows[0]]
            })
            .collect();
        assert_eq!(drawn.iter().sum::<u32>() as usize, n_records);
        let sample = expanded(&table, &drawn, counting.unit);
        let sample = sample.design(counting, &exec);
        assert_eq!(sample.n_records(), n_records);
        for (c, (spec, outcome)) in specs.iter().zip(outcome).enumerate() {
            let mut generator = SimulationGenerator::new(SEED, replicate * 256 + 1 + c as u64);
            let fit = release(spec, &sample, &exec, &mut Simulating(&mut generator)).unwrap();
            let gap = |a: &[f64], b: &[f64]| {
                let gaps = a.iter().zip(b).map(|(a, b)| (a - b).abs());
                gaps.fold(0.0, f64::max)
            };
            assert!(2.0 * spec.study_tolerance() < 1e-7);
            assert!(gap(fit.params.values(), &outcome.params) < 1e-7);
            let projected = project_release(spec, &fit).unwrap();
            let expected = intervals_of(spec, &projected, LEVEL, None).unwrap();
            for (expected, found) in expected.iter().zip(&outcome.bounds) {
                assert!(gap(expected, found) < 1e-6, "configuration {c}");
            }
        }
    }
}

#[test]
fn a_replicate_equals_a_fit_of_the_drawn_records() {
    let weighting = Some(Weighting::new(2.0, 1.1 * N as f64).unwrap());
    let [all, some] = [None, Some(2)].map(|most| Unit::persons(most).unwrap());
    for (unit, weighting) in [(all, None), (some, None), (Unit::Row, weighting), (all, weighting)] {
        check(Counting { unit, weighting });
    }
}

#[test]
fn persons_of_one_row_are_drawn_as_rows_are() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (mut table, _) = table(Counting {
        unit: Unit::Row,
        weighting: None,
    });
    // No two alike, so that rows are not merged.
    table.x = (0..N * WIDTH).map(|i| 0.4 * (i as f64).sin()).collect();
    table.persons = (0..i64::try_from(N).unwrap()).collect();
    let specs = [spec(
        std::sync::Arc::new(Logistic),
        Perturbation::Output,
        Budget::zcdp(1.0).unwrap(),
    )];
    let params = [Unit::Row, Unit::persons(None).unwrap()].map(|unit| {
        let counting = Counting { unit, weighting: None };
        let study = Study::new(&table.design(counting, &exec), &counted(&specs, N, counting), &exec);
        let outcomes = study.unwrap().run(0..20, SEED, None, &exec).unwrap();
        outcomes
            .concat()
            .into_iter()
            .flat_map(|o| o.params)
            .collect::<Vec<f64>>()
    });
    let gaps = params[0].iter().zip(&params[1]).map(|(a, b)| (a - b).abs());
    assert!(gaps.fold(0.0, f64::max) < 1e-6);
}
