//! Edges of the profiles: bounds that are probabilities, slopes against differences, refusals by name.

use super::gaussian::{delta, delta_descent};
use super::*;

fn profile(neighbors: Neighbors, slopes: Slopes) -> ObjectiveProfile {
    let bounds = DataBounds::new(1.0, 1.0, neighbors, 3).unwrap();
    ObjectiveProfile::new(&bounds, slopes, 0.01, 1.0).unwrap()
}

#[test]
fn no_profile_is_above_one() {
    for neighbors in [Neighbors::ReplaceOne, Neighbors::AddRemove] {
        for slopes in [Slopes::OneSigned, Slopes::AnySign, Slopes::Classes(3)] {
            let profile = profile(neighbors, slopes);
            let mut above = 0;
            for k in 1..400 {
                let found = profile.delta(0.5, 0.02 * f64::from(k), 0.3);
                assert!((0.0..=1.0).contains(&found), "{found}");
                above += u32::from(found >= 1.0);
            }
            // The sum of corners passes 1 on the way.
            assert!(above > 100);
            assert!((profile.delta(0.005, 0.1, 0.0) - 1.0).abs() < f64::MIN_POSITIVE);
        }
    }
}

#[test]
fn renyi_divergence_of_almost_no_shift() {
    // Two records of any sign: ln(2·½·(1 + 1))/(α - 1) beside the determinant.
    let profile = profile(Neighbors::ReplaceOne, Slopes::AnySign);
    for order in [1.5, 3.0, 20.0] {
        let expected = profile.log_det + 2.0_f64.ln() / (order - 1.0);
        let found = profile.rdp(order, 1e-12, 0.0).unwrap();
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
    // ln(2·Φ(2kA)·(1 + e^(2kαA²)))/k + αμ²/2 at k = 2, α = 3, A = 1/2, μ = 1: Φ(2), e³.
    let exact = (2.0 * 0.977_249_868_051_820_8 * (1.0 + 3.0_f64.exp())).ln() / 2.0 + 1.5;
    let found = profile.rdp(3.0, 0.5, 1.0).unwrap() - profile.log_det;
    assert!((found / exact - 1.0).abs() < 1e-12, "{found} {exact}");
}

#[test]
fn a_smaller_region_of_two_slopes_needs_less_noise() {
    let whole = profile(Neighbors::ReplaceOne, Slopes::OneSigned);
    assert!((whole.with_pair(f64::NAN).pair - 2.0).abs() < f64::MIN_POSITIVE);
    assert!((whole.with_pair(0.1).pair - 1.0).abs() < f64::MIN_POSITIVE);
    for pair in [1.3, 1.6, 1.9] {
        let region = whole.with_pair(pair);
        let corner = |square: f64| delta(region.remaining(1.0), (0.3 * square.sqrt()).hypot(0.2));
        let expected = 2.0 * corner(pair * pair) + 2.0 * corner(1.0) + corner(0.0);
        let found = region.delta(1.0, 0.3, 0.2);
        assert!((found / expected.min(whole.delta(1.0, 0.3, 0.2)) - 1.0).abs() < 1e-12);
        // The whole budget at the region's shift: the noise σ = pair·LR/m is less.
        let [all, less] = [whole, region].map(|p| p.mu_squared(1.0, 1e-6, 0.9).unwrap().sqrt());
        assert!(
            pair / less < 2.0 / all && pair / less > 0.5 * pair * 2.0 / all,
            "{pair}"
        );
        assert!(region.delta(1.0, less * 0.9_f64.sqrt() / pair, less * 0.1_f64.sqrt()) <= 1e-6);
        assert!(region.rdp(3.0, 0.3, 0.2).unwrap() <= whole.rdp(3.0, 0.3, 0.2).unwrap());
        assert!(region.rdp(40.0, 1.0, 0.2).unwrap() < whole.rdp(40.0, 1.0, 0.2).unwrap());
        let h = 1e-4;
        let m = |e: f64| region.mu_squared(e, 1e-6, 0.9).unwrap().sqrt();
        let difference = (m(1.0 + h) - m(1.0 - h)) / (2.0 * h);
        let slope = region.mu_slope(1.0, m(1.0).powi(2), 0.9);
        assert!((slope / difference - 1.0).abs() < 1e-6, "{slope} {difference}");
    }
    // Only where both slopes have one sign.
    let any = profile(Neighbors::ReplaceOne, Slopes::AnySign);
    assert!((any.with_pair(1.3).delta(1.0, 0.3, 0.2) / any.delta(1.0, 0.3, 0.2) - 1.0).abs() < 1e-12);
}

#[test]
fn the_slope_of_delta_is_its_difference() {
    for epsilon in [0.1_f64, 1.0, 3.0] {
        for mu in [0.3, 1.0, 4.0] {
            let step = 1e-5 * epsilon;
            let difference = (delta(epsilon - step, mu) - delta(epsilon + step, mu)) / (2.0 * step);
            let found = delta_descent(epsilon, mu);
            assert!(
                (found / difference - 1.0).abs() < 1e-4,
                "{epsilon} {mu} {found} {difference}"
            );
        }
    }
}

#[test]
fn bad_arguments_are_refused_by_their_name() {
    let profile = profile(Neighbors::AddRemove, Slopes::OneSigned);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = profile.mu_squared(bad, 1e-6, 1.0).unwrap_err().to_string();
        assert!(error.starts_with("epsilon must be finite and > 0"), "{error}");
    }
    for bad in [0.0, 1.0, f64::NAN] {
        let error = profile.mu_squared(1.0, bad, 1.0).unwrap_err().to_string();
        assert!(error.starts_with("delta must be"), "{error}");
    }
    for bad in [0.0, -0.1, 1.1, f64::NAN] {
        let error = profile.mu_squared(1.0, 1e-6, bad).unwrap_err().to_string();
        assert!(error.starts_with("the share of the coefficients must be"), "{error}");
    }
    let error = profile.mu_squared(0.005, 1e-6, 1.0).unwrap_err().to_string();
    assert!(error.contains("ln(1 + kappa)"), "{error}");
}

#[test]
fn no_delta_of_zcdp_is_above_one() {
    for (rho, epsilon) in [(100.0, 0.1), (3.0, 0.0), (0.5, 0.01)] {
        let delta = zcdp_to_approx_delta(rho, epsilon).unwrap();
        assert!(delta > 0.3 && delta <= 1.0, "{rho} {epsilon} {delta}");
    }
}

#[test]
fn profiles_at_known_arguments() {
    // A = .3, μ = .2, ε = 1 and κ = .01: sums of hockey-stick divergences, to 17 digits elsewhere.
    for (neighbors, slopes, expected) in [
        (Neighbors::ReplaceOne, Slopes::OneSigned, 0.026_276_178_955_180_002),
        (Neighbors::ReplaceOne, Slopes::AnySign, 0.050_425_314_251_084_304),
        (Neighbors::AddRemove, Slopes::OneSigned, 0.000_531_783_685_442_761_5),
        (Neighbors::AddRemove, Slopes::AnySign, 0.001_063_521_829_637_85),
    ] {
        let found = profile(neighbors, slopes).delta(1.0, 0.3, 0.2);
        assert!((found / expected - 1.0).abs() < 1e-10, "{found} {expected}");
    }
}

#[test]
fn printed_sensitivities_of_the_logistic_polynomial() {
    // d²/4 + 3d where a record is replaced, half of it where one is added.
    for (neighbors, factor) in [(Neighbors::ReplaceOne, 1.0), (Neighbors::AddRemove, 0.5)] {
        for (dim, printed) in [(1, 3.25), (3, 11.25), (20, 160.0)] {
            let found = Polynomial::Logistic.l1_sensitivity(dim, neighbors, Calibration::Paper);
            assert!((found / (factor * printed) - 1.0).abs() < 1e-14, "{dim} {found}");
        }
    }
}

#[test]
fn bounds_without_parameters_are_refused_with_their_number() {
    let refused = DataBounds::new(10.0, 1.0, Neighbors::ReplaceOne, 0);
    let message = refused.unwrap_err().to_string();
    assert!(
        message.ends_with("number of parameters must be at least 1, got 0"),
        "{message}"
    );
}
