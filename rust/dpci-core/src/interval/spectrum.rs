//! The spectrum of a Hessian whose release is noisy, and what its release would look like (docs/proofs/intervals.md, "Noise in the matrices").

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use super::MatrixDraws;
use super::matrix_draws::Draw;
use crate::Result;
use crate::linalg::Eigen;

/// How many times each hidden eigenvalue is the next one, as a power of 2: at most, at least, and over all of them.
const FALL: [f64; 3] = [1.0, 0.25, 12.0];

/// Share of its own noise's variance that the sum of the unequal hidden eigenvalues loses.
const SHRINKAGE: f64 = 0.1;

/// Eigenvalues of the Hessian's data part, in ascending order, with the simulated releases of a Hessian that has them.
pub(super) struct Spectrum<'a> {
    /// Estimated from the released ones.
    pub(super) eigenvalues: Eigenvalues,
    /// `E (u_iᵀw_j)²`: row i for the released direction, column j for the true one.
    pub(super) overlaps: Vec<f64>,
    /// The simulated releases.
    pub(super) simulated: Vec<Simulated<'a>>,
}

/// Estimated eigenvalues, in ascending order, with two guesses at those that the noise hides.
pub(super) struct Eigenvalues {
    /// Unequal hidden ones: what the noise of the coefficients is multiplied with rests on these.
    pub(super) unequal: Vec<f64>,
    /// Equal hidden ones: the sampling error rests on these.
    pub(super) equal: Vec<f64>,
}

/// One simulated release of a Hessian that is diagonal.
pub(super) struct Simulated<'a> {
    /// Its eigenvalues as they are estimated from this release.
    pub(super) eigenvalues: Eigenvalues,
    /// The released eigenvectors, one after another.
    pub(super) vectors: Vec<f64>,
    /// The draw behind it.
    pub(super) draw: Draw<'a>,
}

impl<'a> Spectrum<'a> {
    /// From the released eigenvalues; `noise`: standard deviation of an isometric coordinate; `may_be_flat`: the gradients' covariance says
    /// nothing of the eigenvalues.
    pub(super) fn new(released: &[f64], noise: f64, may_be_flat: bool, draws: &'a MatrixDraws) -> Result<Self> {
        // A first estimate, corrected by what noise does to eigenvalues on average.
        let first = onto_simplex(released);
        let corrected: Vec<f64> = mean_shift(&first, &simulate(&first, noise, draws)?)
            .iter()
            .zip(released)
            .map(|(shift, l)| l - shift)
            .collect();
        let eigenvalues = estimated(&corrected, noise, may_be_flat);
        let releases = simulate(&eigenvalues.unequal, noise, draws)?;
        let shift = mean_shift(&eigenvalues.unequal, &releases);
        let dim = released.len();
        let mut overlaps = vec![0.0; dim * dim];
        for release in &releases {
            for (overlap, u) in overlaps.iter_mut().zip(&release.vectors) {
                *overlap += u * u / releases.len() as f64;
            }
        }
        let simulated = releases.into_iter().zip(draws.iter()).map(|(release, draw)| {
            let corrected: Vec<f64> = release.values.iter().zip(&shift).map(|(l, s)| l - s).collect();
            Simulated {
                eigenvalues: estimated(&corrected, noise, may_be_flat),
                vectors: release.vectors,
                draw,
            }
        });
        Ok(Self {
            simulated: simulated.collect(),
            eigenvalues,
            overlaps,
        })
    }
}

/// Releases of a Hessian with these eigenvalues along the axes.
fn simulate(eigenvalues: &[f64], noise: f64, draws: &MatrixDraws) -> Result<Vec<Eigen>> {
    let dim = eigenvalues.len();
    let release = |draw: Draw<'_>| {
        let mut matrix: Vec<f64> = draw.hessian.iter().map(|z| draw.sign * noise * z).collect();
        for (entry, h) in matrix.iter_mut().step_by(dim + 1).zip(eigenvalues) {
            *entry += h;
        }
        Eigen::new(&matrix, dim, "a simulated Hessian")
    };
    draws.iter().map(release).collect()
}

/// Mean released eigenvalues minus the true ones, both in ascending order.
fn mean_shift(eigenvalues: &[f64], releases: &[Eigen]) -> Vec<f64> {
    let mean = |j: usize| releases.iter().map(|release| release.values[j]).sum::<f64>() / releases.len() as f64;
    eigenvalues.iter().enumerate().map(|(j, h)| mean(j) - h).collect()
}

/// Eigenvalues from released ones without their mean shift, in ascending order. Of those that the noise hides only the sum is known: they are
/// replaced by a geometric sequence and by equal values.
///
/// The noise of k of them has a spectrum that ends near `s√(2k)`; hidden are the k least, for the greatest k with all below half of that.
/// Both guesses err to the long side of an interval: unequal eigenvalues, with a sum that is shrunk, make the inverse great that multiplies the noise of
/// the coefficients; equal ones, with a sum that is not, make the sampling variance great, as `h/(λ+h)²` is concave up to 2λ. Beyond that
/// unequal ones can have more. If the gradients' covariance does not vanish with the eigenvalues (`may_be_flat`), the sampling variance falls in
/// them as the noise does, and the same ones serve both.
fn estimated(corrected: &[f64], noise: f64, may_be_flat: bool) -> Eigenvalues {
    let mut unequal = onto_simplex(corrected);
    unequal.sort_unstable_by(f64::total_cmp);
    let edge = |k: usize| 0.5 * noise * (2.0 * k as f64).sqrt();
    let hidden = unequal.iter().enumerate().rposition(|(i, h)| *h <= edge(i + 1));
    let k = hidden.map_or(0, |i| i + 1);
    if k < 2 || !(noise > 0.0) {
        let equal = unequal.clone();
        return Eigenvalues { unequal, equal };
    }
    let found: f64 = unequal[..k].iter().sum();
    let variance = noise * noise * k as f64;
    if found > 0.0 {
        // As James and Stein shrink a mean: a sum within its noise counts as nothing.
        let sum = found * (1.0 - SHRINKAGE * variance / (found * found)).max(0.0);
        let [most, least, over_all] = FALL;
        let fall = (over_all / (k as f64 - 1.0)).clamp(least, most);
        // A greater one would not be hidden: the sequence is flatter where the sum is near what all could have.
        let fall = flattest(fall, |fall| sum * greatest_share(fall, k) <= edge(k));
        let sequence: Vec<f64> = (0..k).map(|i| (fall * i as f64).exp2()).collect();
        let total: f64 = sequence.iter().sum();
        for (h, term) in unequal.iter_mut().zip(sequence) {
            *h = sum * (term / total);
        }
    }
    let mut equal = unequal.clone();
    if !may_be_flat {
        equal[..k].fill(mean_of_positive(found, variance.sqrt()) / k as f64);
    }
    Eigenvalues { unequal, equal }
}

/// Mean of a normal law with mean `found`, at least 0, and standard deviation `noise` that is cut off at 0: what is expected of a positive value, found with noise.
pub(super) fn mean_of_positive(found: f64, noise: f64) -> f64 {
    let score = found / noise;
    if score < -30.0 {
        // Both factors below vanish; the mean is noise²/|found| to a part in 900.
        return -noise / score;
    }
    let mass = 0.5 * libm::erfc(-score * FRAC_1_SQRT_2);
    found + noise * (-0.5 * score * score).exp() / (TAU.sqrt() * mass)
}

/// Share of the last of k terms, each `2^fall` times the one before, in their sum.
fn greatest_share(fall: f64, k: usize) -> f64 {
    if fall > 0.0 {
        (1.0 - (-fall).exp2()) / (1.0 - (-fall * k as f64).exp2())
    } else {
        (k as f64).recip()
    }
}

/// The greatest value up to `fall` that is allowed. What is allowed ends at one border, and 0 is allowed.
fn flattest(fall: f64, allowed: impl Fn(f64) -> bool) -> f64 {
    if allowed(fall) {
        return fall;
    }
    let (mut low, mut high) = (0.0, fall);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if allowed(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The nearest values that are at least 0 and have the same sum, which noise barely changes; zeros if that is negative.
pub(super) fn onto_simplex(values: &[f64]) -> Vec<f64> {
    let total: f64 = values.iter().sum();
    if total <= 0.0 {
        return vec![0.0; values.len()];
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut threshold) = (0.0, 0.0);
    for (i, value) in sorted.iter().enumerate() {
        sum += value;
        let candidate = (sum - total) / (i as f64 + 1.0);
        if value - candidate <= 0.0 {
            break;
        }
        threshold = candidate;
    }
    values.iter().map(|v| (v - threshold).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::noise::MatrixLaw;

    #[track_caller]
    fn assert_near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-12, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn the_simplex_keeps_the_sum() {
        assert_near(&onto_simplex(&[3.0, 1.0, -1.0]), &[2.5, 0.5, 0.0]);
        assert_near(&onto_simplex(&[0.5, 2.0]), &[0.5, 2.0]);
        assert_near(&onto_simplex(&[1.0, -2.0]), &[0.0, 0.0]);
    }

    #[test]
    fn a_positive_value_is_expected_to_be_the_mean_of_a_normal_law_cut_off_at_zero() {
        // Against the midpoint rule.
        for (found, noise) in [(0.0, 1.0), (0.3, 2.0), (1.5, 3.0_f64.sqrt()), (4.0, 0.5)] {
            let (mut mass, mut first) = (0.0, 0.0);
            for i in 0..200_000 {
                let x = (f64::from(i) + 0.5) * 1e-4;
                let weight = (-0.5 * ((x - found) / noise).powi(2)).exp();
                mass += weight;
                first += weight * x;
            }
            assert!((mean_of_positive(found, noise) - first / mass).abs() < 1e-7);
        }
        assert!((mean_of_positive(1.0, 1e-300) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn equal_hidden_eigenvalues_have_the_greatest_sampling_variance_of_all_with_their_sum() {
        let (ridge, mean) = (1.0, 0.6);
        let variance = |h: f64| h / (ridge + h).powi(2);
        for i in 0..=100 {
            let first = 0.02 * mean * f64::from(i);
            for j in 0..=100 {
                let second = (2.0 * mean).min(0.03 * mean * f64::from(j));
                let third = 3.0 * mean - first - second;
                if (0.0..=2.0 * ridge).contains(&third) {
                    let found = variance(first) + variance(second) + variance(third);
                    assert!(found <= 3.0 * variance(mean) + 1e-12);
                }
            }
        }
    }

    #[test]
    fn hidden_eigenvalues_halve_and_keep_their_shrunk_sum() {
        // Edges ½s√(2k): .71, 1, 1.22, 1.41 for s = 1; three are hidden, with the sum 1.5 - .1·3/1.5.
        let Eigenvalues { unequal, equal } = estimated(&[0.2, 0.3, 1.0, 9.0], 1.0, false);
        assert_near(&unequal, &[1.3 / 7.0, 2.6 / 7.0, 5.2 / 7.0, 9.0]);
        let mean = mean_of_positive(1.5, 3.0_f64.sqrt()) / 3.0;
        assert_near(&equal, &[mean, mean, mean, 9.0]);
        // None is above the edge: then they are nearer to each other.
        let Eigenvalues { unequal, .. } = estimated(&[0.7, 0.9, 1.2, 9.0], 1.0, false);
        assert_near(
            &[unequal[..3].iter().sum(), unequal[2]],
            &[2.8 - 0.3 / 2.8, 1.5_f64.sqrt()],
        );
        assert_near(&[unequal[1] / unequal[0]], &[unequal[2] / unequal[1]]);
        assert!(unequal[0] > 0.6);
        // A sum within its noise counts as nothing, but not in the sampling variance: there it is that of a normal number's size.
        let Eigenvalues { unequal, equal } = estimated(&[0.05, 0.1, 9.0], 1.0, false);
        assert_near(&unequal, &[0.0, 0.0, 9.0]);
        assert!(equal[0] > 0.5 && equal[0] < 0.7, "{equal:?}");
        let equal = estimated(&[0.0, 0.0, 9.0], 1.0, false).equal;
        assert_near(&equal, &[PI.sqrt().recip(), PI.sqrt().recip(), 9.0]);
        // Slopes without curvature: nothing speaks for a greater sum.
        for values in [[0.2, 0.3, 1.0, 9.0], [0.0, 0.0, 0.1, 9.0], [0.0, 0.0, 0.0, 9.0]] {
            let Eigenvalues { unequal, equal } = estimated(&values, 1.0, true);
            assert_near(&unequal, &estimated(&values, 1.0, false).unequal);
            assert_near(&equal, &unequal);
        }
        // Without noise nothing is hidden, and one alone is known.
        for (values, noise) in [([0.7, 0.9, 9.0], 0.0), ([0.5, 2.0, 9.0], 1.0)] {
            let Eigenvalues { unequal, equal } = estimated(&values, noise, false);
            assert_near(&unequal, &values);
            assert_near(&equal, &values);
        }
        // Over many the sequence falls by 2^-12, over very many by a fourth root of 2 each.
        for (k, ratio) in [(25_usize, 0.5), (49, 0.25), (97, 0.25)] {
            let Eigenvalues { unequal, .. } = estimated(&vec![0.1; k], 1.0, false);
            for pair in unequal.windows(2) {
                assert!((pair[1] / pair[0] - f64::exp2(ratio)).abs() < 1e-9, "{k}");
            }
        }
        // Where they fill the room below the edge they are nearly equal.
        for h in estimated(&[3.9; 32], 1.0, false).unequal {
            assert!((h - 3.9).abs() <= 0.11, "{h}");
        }
    }

    #[test]
    fn without_noise_the_spectrum_is_the_released_one() {
        let law = MatrixLaw::Gaussian { std_dev: 1.0 };
        let draws = MatrixDraws::new(3, Some(law), law).unwrap();
        let spectrum = Spectrum::new(&[0.1, 0.5, 2.0], 0.0, false, &draws).unwrap();
        assert_near(&spectrum.eigenvalues.unequal, &[0.1, 0.5, 2.0]);
        assert_near(&spectrum.eigenvalues.equal, &[0.1, 0.5, 2.0]);
        assert_near(&spectrum.overlaps, &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        for release in &spectrum.simulated {
            assert_near(&release.eigenvalues.unequal, &[0.1, 0.5, 2.0]);
        }
    }

    #[test]
    fn overlaps_are_doubly_stochastic_and_mix_where_noise_is_great() {
        let law = MatrixLaw::MatrixLaplace { rate: 1.0 };
        let draws = MatrixDraws::new(4, Some(law), law).unwrap();
        let spectrum = Spectrum::new(&[0.0, 0.1, 0.2, 50.0], 1.0, false, &draws).unwrap();
        let overlaps = &spectrum.overlaps;
        for i in 0..4 {
            let row: f64 = overlaps[4 * i..4 * i + 4].iter().sum();
            let column: f64 = overlaps.iter().skip(i).step_by(4).sum();
            assert!((row - 1.0).abs() < 1e-12 && (column - 1.0).abs() < 1e-12);
        }
        assert!(overlaps[15] > 0.98, "{overlaps:?}");
        assert!(overlaps[0] < 0.6 && overlaps[1] > 0.1, "{overlaps:?}");
    }
}
