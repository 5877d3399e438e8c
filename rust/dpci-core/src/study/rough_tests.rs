//! Steps in single precision against those in double precision.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::lane_sums::{WeightedLanes, shared_slope_sums};
use super::tests::{BOUNDS, N, WIDTH, spec, specs};
use super::weights::Resampler;
use super::*;
use crate::design::{Design, Rows};
use crate::exec::Executor;
use crate::linalg::{LANES, Lane};
use crate::loss::Logistic;
use crate::noise::SimulationGenerator;
use crate::privacy::{Budget, Perturbation};
use crate::solver::{LockstepProblem, Pass};
use crate::spec::Spec;

/// Records none of which repeat.
fn distinct() -> (Vec<f64>, Vec<f64>) {
    let x = (0..N * WIDTH).map(|i| 0.4 * ((i * i) as f64 * 0.37).sin());
    let y = (0..N).map(|i| if (i * i) % 5 < 2 { 1.0 } else { -1.0 });
    (x.collect(), y.collect())
}

/// A study whose first passes are in single precision, or are not.
fn study(design: &Design<'_>, spec: &Spec, is_rough: bool, exec: &Executor<'_>) -> Study {
    let mut study = Study::new(design, std::slice::from_ref(spec), exec).unwrap();
    for population in &mut study.populations {
        assert!(population.spread.is_none());
        population.is_near = true;
        population.spread = is_rough.then_some(1.0);
        let n_rough = population.n_rough(spec, 1e-12);
        assert_eq!((n_rough > 0, n_rough > 1), (is_rough, is_rough));
    }
    study
}

#[test]
#[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
fn sums_differ_in_the_last_digits_of_single_precision() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (x, y) = distinct();
    for intercept in [None, Some(0.5)] {
        let design = Design::new(Rows::dense(&x, WIDTH), &y, intercept, &BOUNDS, &exec).unwrap();
        let design = design.merged(&exec).unwrap();
        let mut choices = specs()[0].choices().clone();
        choices.intercept = intercept;
        let spec = Spec::new(choices).unwrap();
        let study = study(&design, &spec, true, &exec);
        let population = &study.populations[0];
        let resampler = Resampler::new(&design).unwrap();
        let mut counts = resampler.no_counts();
        let mut generators: Vec<SimulationGenerator> = (0..LANES as u64)
            .map(|lane| SimulationGenerator::new(3, lane))
            .collect();
        resampler.draw(&mut generators, &mut counts).unwrap();
        let lanes = WeightedLanes {
            design: &design,
            spec: &spec,
            population,
            counts: &counts,
            linear: &vec![None; LANES],
            slope_sums: shared_slope_sums(&design, &population.slopes, &counts, &exec).unwrap(),
            n_rough: 2,
            moments_at_minima: false,
            known: RefCell::default(),
            exec: &exec,
        };
        // The last lane is beyond the reach of the series where rows are long.
        let lengths: [f64; LANES] =
            std::array::from_fn(|lane| if lane == LANES - 1 { 0.7 } else { 0.005 * lane as f64 });
        for size in [1.0, 0.1] {
            let points: Vec<Lane> = (population.target.iter().enumerate())
                .map(|(j, target)| {
                    let direction = (j as f64).cos();
                    lengths.map(|length| target + f64::from((size * length * direction) as f32))
                })
                .collect();
            let start: Vec<Lane> = population.target.iter().map(|t| [*t; LANES]).collect();
            let [rough, exact] = [Pass::Rough, Pass::Exact].map(|pass| lanes.gradients(&points, pass).unwrap());
            let from = lanes.gradients(&start, Pass::Exact).unwrap();
            for lane in 1..LANES {
                let norm = |a: &[Lane], b: &[Lane]| {
                    let gaps = a.iter().zip(b).map(|(a, b)| (a[lane] - b[lane]).powi(2));
                    gaps.sum::<f64>().sqrt()
                };
                let (error, change) = (norm(&rough, &exact), norm(&exact, &from));
                assert!(error <= 1e-7 * change, "{lane}: {error} of {change}");
                assert!(error > 0.0);
            }
        }
    }
}

/// With little noise all lanes are within the reach of the series, with much noise some are not. Certificates are the same, and a
/// replicate does not depend on its company.
#[test]
fn rough_steps_lead_to_the_same_minimisers() {
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    let (x, y) = distinct();
    let design = Design::new(Rows::dense(&x, WIDTH), &y, Some(0.5), &BOUNDS, &exec).unwrap();
    let noisy = spec(Arc::new(Logistic), Perturbation::Objective, Budget::pure(0.1).unwrap());
    for (spec, room) in [(&specs()[0], 1e-8), (&specs()[1], 1e-8), (&noisy, 1e-4)] {
        let [rough, exact] = [true, false].map(|is_rough| study(&design, spec, is_rough, &exec));
        let run = |study: &Study, range| study.run(range, 9, Some(0.95), &exec).unwrap();
        let (together, expected) = (run(&rough, 0..40), run(&exact, 0..40));
        for (found, expected) in together.iter().flatten().zip(expected.iter().flatten()) {
            let values = |outcome: &Outcome| {
                let [lower, upper] = &outcome.bounds;
                [&outcome.params[..], lower, upper].concat()
            };
            for (found, expected) in values(found).into_iter().zip(values(expected)) {
                assert!((found - expected).abs() < 10.0 * room, "{found} {expected}");
            }
        }
        for (alone, among) in run(&rough, 5..18).iter().zip(&together[5..18]) {
            assert_eq!(alone[0].params, among[0].params);
            assert_eq!(alone[0].bounds, among[0].bounds);
        }
    }
}
