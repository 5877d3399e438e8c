//! Calibrations and conversions at any numbers: an error, or constants that keep the direction in which they must be rounded.

use arbitrary::Arbitrary;
use dpci_core::privacy::{
    Budget, Calibration, DataBounds, EpsilonTable, Neighbors, ObjectiveProfile, Polynomial,
    RunCount, approx_to_zcdp, exponential_epsilon, gaussian_delta, gaussian_epsilon, gaussian_mu,
    gaussian_std_dev, laplace_rate, least_l2_strength, objective_rate, pure_epsilon, pure_to_zcdp,
    zcdp_to_approx_delta, zcdp_to_approx_epsilon, zcdp_to_pure,
};

use crate::number::Number;

/// Arguments for all functions.
#[derive(Debug, Arbitrary)]
pub struct Input {
    epsilon: Number,
    delta: Number,
    mu: Number,
    rho: Number,
    n: Number,
    row_norm: Number,
    strength: Number,
    curvature: Number,
    share: Number,
    order: Number,
    shape: Number,
    mean: Number,
    params: u8,
    paper: bool,
    add_remove: bool,
    one_signed: bool,
}

/// Room for the rounding of a composition of two conversions.
const ROOM: f64 = 1.0 + 1e-9;

/// Calls every function.
///
/// # Panics
/// If a result is NaN or negative, or a conversion and its inverse promise more privacy than there was.
pub fn run(input: Input) {
    let (epsilon, delta, mu, rho) = (input.epsilon.0, input.delta.0, input.mu.0, input.rho.0);
    let calibration = if input.paper {
        Calibration::Paper
    } else {
        Calibration::Tight
    };
    let neighbors = if input.add_remove {
        Neighbors::AddRemove
    } else {
        Neighbors::ReplaceOne
    };
    let sound = |name: &str, value: dpci_core::Result<f64>| {
        if let Ok(value) = value {
            assert!(value >= 0.0, "{name} gave {value}");
        }
    };
    if let Ok(found) = gaussian_delta(epsilon, mu) {
        assert!((0.0..=1.0).contains(&found), "delta {found}");
    }
    if let Ok(found) = gaussian_mu(epsilon, delta) {
        assert!(found >= 0.0 && found.is_finite(), "mu {found}");
        if found > 0.0
            && let Ok(back) = gaussian_delta(epsilon, found)
        {
            assert!(
                back <= (delta * ROOM).max(f64::MIN_POSITIVE),
                "mu {found:e} of ({epsilon:e}, {delta:e}) costs {back:e}"
            );
        }
    }
    sound("gaussian_epsilon", gaussian_epsilon(mu, delta));
    sound("pure_to_zcdp", pure_to_zcdp(epsilon, calibration));
    if let Ok(found) = zcdp_to_pure(rho, calibration)
        && found > 0.0
        && let Ok(back) = pure_to_zcdp(found, calibration)
    {
        assert!(
            back <= rho * ROOM,
            "epsilon {found:e} costs {back:e}, not {rho:e}"
        );
    }
    sound("zcdp_to_approx_delta", zcdp_to_approx_delta(rho, epsilon));
    sound(
        "zcdp_to_approx_epsilon",
        zcdp_to_approx_epsilon(rho, delta, calibration),
    );
    if let Ok(found) = approx_to_zcdp(epsilon, delta, calibration)
        && found > 0.0
        && let Ok(back) = zcdp_to_approx_delta(found, epsilon)
    {
        // The margin for the rounding of the logarithm is added on both ways.
        // A δ below the normal numbers is rounded up to them.
        let allowed = (delta * 1.000_001).max(f64::MIN_POSITIVE);
        assert!(
            back <= allowed,
            "rho {found:e} has delta {back:e}, not {delta:e}"
        );
    }
    sound("laplace_rate", laplace_rate(mu, epsilon));
    sound("gaussian_std_dev", gaussian_std_dev(rho, mu));
    for budget in [
        Budget::pure(epsilon),
        Budget::zcdp(rho),
        Budget::approx(epsilon, delta),
    ]
    .into_iter()
    .flatten()
    {
        sound("exponential_epsilon", exponential_epsilon(&budget));
        sound("pure_epsilon", pure_epsilon(&budget));
    }
    // A number of records, which `Spec` takes as an integer.
    if let Ok(bounds) = DataBounds::new(
        input.n.0.max(1.0),
        input.row_norm.0,
        neighbors,
        usize::from(input.params),
    ) {
        let (strength, curvature) = (input.strength.0, input.curvature.0);
        // No row above 1e150 is taken, whatever the bound.
        let moderate = input.row_norm.0 <= 1e150;
        if moderate
            && strength > 0.0
            && strength.is_finite()
            && curvature >= 0.0
            && curvature.is_finite()
        {
            if epsilon > 0.0 && epsilon < 700.0 {
                assert!(!least_l2_strength(&bounds, curvature, epsilon).is_nan());
            }
            let rate = objective_rate(&bounds, 1.0, curvature, strength, epsilon);
            sound("objective_rate", rate);
            profile(&input, &bounds);
        }
    }
    if let Ok(table) = EpsilonTable::new(mu, delta) {
        assert!(!table.at(mu / 2.0).is_nan());
    }
    if let Ok(polynomial) = Polynomial::squared(input.row_norm.0) {
        let found =
            polynomial.l1_sensitivity(usize::from(input.params) + 1, neighbors, calibration);
        assert!(!found.is_nan());
    }
    // The law of the number of runs is a table as long as twenty times its mean.
    if input.mean.0 < 200.0
        && let Ok(count) = RunCount::new(input.shape.0, input.mean.0)
    {
        let total: f64 = count.probabilities().iter().sum();
        assert!((total - 1.0).abs() < 1e-6, "probabilities sum to {total}");
        sound("run_epsilon", count.run_epsilon(epsilon));
        sound("run_rho", count.run_rho(epsilon, delta));
    }
}

fn profile(input: &Input, bounds: &DataBounds) {
    let Ok(profile) = ObjectiveProfile::new(
        bounds,
        input.one_signed,
        input.curvature.0,
        input.strength.0,
    ) else {
        return;
    };
    if let Ok(found) = profile.mu_squared(input.epsilon.0, input.delta.0, input.share.0) {
        assert!(found >= 0.0, "mu squared {found}");
    }
    if let Ok(found) = profile.rdp(input.order.0, input.mu.0, input.mu.0) {
        assert!(found >= 0.0, "divergence {found}");
    }
}
