//! Private choices among candidates: how parts and budgets are shared, and what is refused.

use super::*;
use crate::loss::HuberHinge;
use crate::mechanism::{Values, mean_loss, release_tuning};
use crate::noise::SimulationGenerator;
use crate::spec::{Terms, TuningMethod};

#[test]
fn the_better_candidate_wins_where_noise_is_small() {
    // Targets follow the sign of x; a λ of 10 keeps the model near 0, where the loss is ln 2.
    let n = 200;
    let x: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 0.9 } else { -0.9 }).collect();
    let y: Vec<f64> = x.iter().map(|x| x.signum()).collect();
    let at = |l2_strength| Choices {
        terms: Terms::of_rows(n, Neighbors::ReplaceOne),
        n_columns: 1,
        intercept: None,
        ..candidate(l2_strength)
    };
    let bounds = row_bounds(1.0, Targets::Signs);
    with_design(&x, 1, &y, None, &bounds, |design, exec| {
        let ln2 = mean_loss(&Logistic, design, &[0.0], exec).unwrap();
        assert_near(ln2, 2.0_f64.ln(), 1e-14);
        let steep = mean_loss(&HuberHinge::new(0.5).unwrap(), design, &[1.0], exec).unwrap();
        // (1 + h - z)²/4h at z = .9.
        assert_near(steep, 0.36 / 2.0, 1e-12);
        for method in [TuningMethod::Chunks, REPEAT] {
            for candidates in [[at(10.0), at(0.01)], [at(0.01), at(10.0)]] {
                let best = usize::from(candidates[1].l2_strength < 1.0);
                let spec = tuned(&candidates, None, pure(5e4), method).unwrap();
                for stream in 0..20 {
                    let mut generator = SimulationGenerator::new(97, stream);
                    let selected = release_tuning(&spec, design, exec, &mut generator).unwrap();
                    let theta = selected.params.values()[0];
                    assert!(theta.abs() <= 2.0 * (1.0 + 1e-14));
                    // With several runs the worse one wins only where it alone was drawn.
                    if matches!(method, TuningMethod::Chunks) {
                        assert_eq!(selected.index, best);
                    }
                    assert_eq!(selected.index == best, theta > 0.5, "{theta}");
                }
            }
        }
        let other = [at(0.1), at(0.2)].map(|c| Choices {
            terms: Terms {
                n_samples: n + 1,
                ..c.terms
            },
            ..c
        });
        let spec = tuned(&other, None, pure(1.0), REPEAT).unwrap();
        let mut generator = SimulationGenerator::new(97, 99);
        assert!(release_tuning(&spec, design, exec, &mut generator).is_err());
    });
}
