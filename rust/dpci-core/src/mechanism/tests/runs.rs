//! How many runs compete for a choice.

use super::*;
use crate::mechanism::release_tuning;
use crate::noise::SimulationGenerator;
use crate::privacy::Perturbation::Output;
use crate::spec::{Terms, TuningMethod, TuningSpec};

#[test]
fn the_worse_candidate_wins_where_all_runs_drew_it() {
    // With almost no noise: a probability of E[2⁻ᴷ], (γ/2)/(1 - (1-γ)/2) = 2/5 for geometric K of mean 3/2.
    let n = 20;
    let x: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 0.9 } else { -0.9 }).collect();
    let y: Vec<f64> = x.iter().map(|x| x.signum()).collect();
    let candidates = [10.0, 0.01].map(|l2_strength| Choices {
        terms: Terms::of_rows(n, Neighbors::ReplaceOne),
        n_columns: 1,
        intercept: None,
        l2_strength,
        radius: Some(2.0),
        ..choices(Output, pure(1.0))
    });
    let method = TuningMethod::Repeat {
        shape: 1.0,
        expected_runs: 1.5,
    };
    let spec = TuningSpec::new(&candidates, Arc::new(Logistic), None, pure(1e6), method).unwrap();
    let bounds = row_bounds(1.0, Targets::Signs);
    with_design(&x, 1, &y, None, &bounds, |design, exec| {
        let worse = (0..400).filter(|stream| {
            let mut generator = SimulationGenerator::new(99, *stream);
            release_tuning(&spec, design, exec, &mut generator).unwrap().index == 0
        });
        // 160 are expected; 5 standard deviations are 49.
        let worse = worse.count();
        assert!((111..=209).contains(&worse), "{worse}");
    });
}
