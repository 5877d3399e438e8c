//! Log-odds that have a normal law over the records: means over it, and the law that has given ones.

/// The trapezoidal rule over standard normal values: its step, and where it ends. Exact to 1e-8 for standard deviations up to 4.
const STEP: f64 = 0.2;
const END: f64 = 7.0;

/// Halvings of the range of standard deviations that are searched.
const HALVINGS: usize = 30;

/// Mean and standard deviation of log-odds over the records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalOdds {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub std_dev: f64,
}

impl NormalOdds {
    /// Mean probability, and mean curvature.
    pub fn means(&self) -> [f64; 2] {
        let (mut sums, mut whole) = ([0.0; 2], 0.0);
        let mut z = -END;
        while z <= END {
            let weight = (-0.5 * z * z).exp();
            let p = (1.0 + (-self.mean - self.std_dev * z).exp()).recip();
            sums[0] += weight * p;
            sums[1] += weight * p * (1.0 - p);
            whole += weight;
            z += STEP;
        }
        sums.map(|sum| sum / whole)
    }

    /// Log-odds with this standard deviation and this mean probability.
    pub fn with_share(share: f64, std_dev: f64) -> Self {
        let mut odds = Self {
            mean: (share / (1.0 - share)).ln(),
            std_dev,
        };
        // Newton's method: no step is longer than 1, and the mean probability grows with the mean.
        for _ in 0..50 {
            let [found, curvature] = odds.means();
            let change = ((share - found) / curvature).clamp(-1.0, 1.0);
            odds.mean += change;
            if change.abs() < 1e-10 {
                break;
            }
        }
        odds
    }

    /// Log-odds with this mean probability, of which this is the length of the mean products of standardised columns with the probability;
    /// the standard deviation is at most the greatest one.
    ///
    /// Such a product is the mean curvature times the coefficient (Stein's identity), so that the length is the mean curvature times the
    /// standard deviation, which grows with it.
    pub fn of_product(share: f64, product: f64, greatest: f64) -> Self {
        let (mut low, mut high) = (0.0, greatest);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            let [_, curvature] = Self::with_share(share, middle).means();
            if middle * curvature < product {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self::with_share(share, low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of a function of standard normal values by a fine midpoint rule.
    fn mean(of: impl Fn(f64) -> f64) -> f64 {
        let values = (0..400_000).map(|i| -10.0 + (f64::from(i) + 0.5) * 5e-5);
        let density = (0.5 * std::f64::consts::FRAC_1_PI).sqrt();
        values.map(|z| density * (-0.5 * z * z).exp() * of(z) * 5e-5).sum()
    }

    fn probability(odds: NormalOdds, z: f64) -> f64 {
        (1.0 + (-odds.mean - odds.std_dev * z).exp()).recip()
    }

    #[test]
    fn means_are_those_of_a_finer_rule_and_obey_steins_identity() {
        for (mean_odds, std_dev) in [(0.0, 0.0), (-4.0, 0.5), (1.0, 2.0), (-2.5, 4.0)] {
            let odds = NormalOdds {
                mean: mean_odds,
                std_dev,
            };
            let [share, curvature] = odds.means();
            let p = |z: f64| probability(odds, z);
            assert!((share - mean(p)).abs() < 1e-8, "{odds:?}");
            let of_curvature = mean(|z| p(z) * (1.0 - p(z)));
            assert!((curvature - of_curvature).abs() < 1e-8, "{odds:?}");
            // E z·p(m + sz) = s·E p'(m + sz).
            let product = mean(|z| z * p(z));
            assert!((product - std_dev * curvature).abs() < 1e-7, "{odds:?}");
        }
    }

    #[test]
    fn the_law_of_given_means_has_them() {
        for (share, std_dev) in [(0.5, 1.0), (0.02, 0.3), (0.97, 2.9), (0.24, 2.65)] {
            let odds = NormalOdds::with_share(share, std_dev);
            let [found, curvature] = odds.means();
            assert!((found - share).abs() < 1e-9, "{found} {share}");
            let again = NormalOdds::of_product(share, std_dev * curvature, 3.0);
            assert!((again.std_dev - std_dev).abs() < 1e-6, "{again:?}");
            assert!((again.mean - odds.mean).abs() < 1e-5, "{again:?}");
        }
        // No product is as long as that of classes that are told with certainty: the greatest standard deviation stands for it.
        let far = NormalOdds::of_product(0.3, 0.5, 3.0);
        assert!((far.std_dev - 3.0).abs() < 1e-8, "{far:?}");
        assert!(NormalOdds::of_product(0.3, 0.0, 3.0).std_dev < 1e-8);
    }
}
