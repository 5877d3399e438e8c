//! Models with per-instance reports: what each of the three releases spends, and what leaves.

use super::*;
use crate::loss::{gradient_rounding, hessian_rounding};
use crate::mechanism::{Values, release_report};
use crate::noise::SimulationGenerator;
use crate::privacy::Perturbation::Objective;
use crate::spec::{ReportSpec, Terms};

const SHARES: [f64; 3] = [0.6, 0.2, 0.2];

fn report() -> Choices {
    Choices {
        terms: Terms::of_rows(1000, Neighbors::AddRemove),
        ..choices(Objective, approx(1.0, 1e-6))
    }
}

#[test]
fn what_a_report_releases() {
    // Records x = 1, three of four with target 1: gradient 4(σ(θ) - 3/4) + 4λθ, Hessian 4σ(1-σ) + 4λ.
    let one = Choices {
        terms: Terms::of_rows(4, Neighbors::AddRemove),
        n_columns: 1,
        intercept: None,
        l2_strength: 0.3,
        budget: approx(1e5, 0.1),
        ..report()
    };
    let bounds = row_bounds(1.0, Targets::Signs);
    with_design(&[1.0; 4], 1, &[1.0, 1.0, 1.0, -1.0], None, &bounds, |design, exec| {
        let mut generator = SimulationGenerator::new(95, 0);
        let spec = ReportSpec::new(&one, Some([0.2, 0.4, 0.4])).unwrap();
        let noise = spec.steps().iter().map(|s| s.scale).fold(0.0, f64::max);
        assert!(noise < 0.02, "{noise}");
        let released = release_report(&spec, design, exec, &mut generator).unwrap();
        let theta = released.params.values()[0];
        let sigma = 1.0 / (1.0 + (-theta).exp());
        let [gradient, hessian] = released.derivatives.unwrap().map(|v| v.values()[0]);
        assert!(
            (gradient - (4.0 * (sigma - 0.75) + 1.2 * theta)).abs() < 6.0 * noise,
            "{gradient}"
        );
        assert!(
            (hessian - (4.0 * sigma * (1.0 - sigma) + 1.2)).abs() < 6.0 * noise,
            "{hessian}"
        );
        assert_eq!(released.seals.len(), 3);
        let names: Vec<_> = released.seals.iter().map(|s| s.part().name()).collect();
        assert_eq!(names, ["params", "gradient", "hessian"]);
        for seal in &released.seals[1..] {
            // Wide enough for the rounding of the sums, narrow against the noise.
            assert!(seal.distance() > 64.0 * f64::EPSILON && seal.distance() < 1e-9);
        }
        let spec = ReportSpec::new(&one, None).unwrap();
        let released = release_report(&spec, design, exec, &mut generator).unwrap();
        assert!(released.derivatives.is_none() && released.seals.len() == 1);
    });
    with_design(&[1.0; 4], 1, &[1.0; 4], Some(0.5), &bounds, |design, exec| {
        let mut generator = SimulationGenerator::new(95, 1);
        let spec = ReportSpec::new(&one, None).unwrap();
        assert!(release_report(&spec, design, exec, &mut generator).is_err());
    });
}

#[test]
fn the_seals_of_a_report_hide_the_rounding_of_sums() {
    // u²/4 with slopes up to 2 and curvature 1/2, at parameters of norm at most 3; sixteen times the rows may be there.
    let custom = Choices {
        loss: parabola(0.0),
        radius: Some(3.0),
        budget: approx(1e9, 0.1),
        ..report()
    };
    let bounds = row_bounds(1.0, Targets::Signs);
    let choices = Choices {
        terms: Terms {
            n_samples: 10,
            ..custom.terms
        },
        ..custom
    };
    let rows = [0.5; 20];
    with_design(&rows, 2, &[1.0; 10], Some(0.75), &bounds, |design, exec| {
        let mut generator = SimulationGenerator::new(96, 0);
        let spec = ReportSpec::new(&choices, Some(SHARES)).unwrap();
        let released = release_report(&spec, design, exec, &mut generator).unwrap();
        let steps = spec.steps();
        let gradient = 160.0 * gradient_rounding(160) * 2.0 * 1.25;
        let hessian = 160.0 * hessian_rounding(160) * 0.5 * 1.5625;
        for ((seal, data), step) in released.seals[1..].iter().zip([gradient, hessian]).zip(&steps[1..]) {
            // Noise errs by a part in 10¹² of itself at most.
            let most = 1.1 * data + 1e-12 * step.scale;
            assert!(seal.distance() >= data && seal.distance() <= most, "{seal:?} {data:e}");
        }
    });
}
