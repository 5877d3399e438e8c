//! Members of every built-in loss, on which the tests of losses run.

use super::*;

fn continued(loss: impl Loss + 'static) -> Box<dyn Loss> {
    let loss: std::sync::Arc<dyn Loss> = std::sync::Arc::new(loss);
    Box::new(Continued::new(&loss).unwrap())
}

/// At least one of every loss but those of several predictors.
pub(super) fn examples() -> Vec<Box<dyn Loss>> {
    vec![
        Box::new(Logistic),
        Box::new(HuberHinge::new(0.5).unwrap()),
        Box::new(HuberHinge::new(2.0).unwrap()),
        Box::new(SmoothHinge::new(0.1).unwrap()),
        Box::new(SmoothHinge::new(2.0).unwrap()),
        Box::new(SoftLogistic),
        Box::new(Squared::new(1.0).unwrap()),
        Box::new(Squared::new(0.2).unwrap()),
        Box::new(Hinge),
        Box::new(Poisson::new(4.0).unwrap()),
        Box::new(Poisson::new(100.0).unwrap()),
        Box::new(NegativeBinomial::new(4.0, 0.5).unwrap()),
        Box::new(NegativeBinomial::new(30.0, 0.01).unwrap()),
        Box::new(Probit),
        Box::new(CLogLog),
        Box::new(Huber::new(1.0, 0.25).unwrap()),
        Box::new(Huber::new(0.5, 2.0).unwrap()),
        Box::new(Quantile::new(0.9, 1.0, 0.1).unwrap()),
        Box::new(Quantile::new(0.5, 1.0, 1.0).unwrap()),
        // Grids of the tests have a point just within the reach.
        continued(Poisson::new(1.387_000_1_f64.exp()).unwrap()),
        continued(Poisson::new(0.001_000_1_f64.exp()).unwrap()),
        continued(Probit),
        continued(CLogLog),
    ]
}
