//! Exact intervals and p-values: quantiles and tails of a normal mixture, by quadrature and a root.
//!
//! The error of a contrast is normal with variance `v + a²σ²` under Gaussian noise. Under spherical Laplace noise it is
//! normal with variance `v + a²Ω` given Ω, `Ω ~ Gamma((dim+1)/2, rate γ²/2)`, so that
//! `P(|X| ≤ q) = E[2Φ(q/√(v+a²Ω)) - 1]` (docs/proofs/intervals.md, "Intervals"): no Monte-Carlo error and no number of draws.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use errorfunctions::RealErrorFunctions;
use statrs::function::erf::{erf_inv, erfc_inv};

use super::mixture::Mixture;
use super::spread::{ErrorShape, Spread};
use super::{check_lengths, check_level, shaped};
use crate::Result;
use crate::error::check;

/// Relative step after which a root is accepted: the next error of a cubically convergent iteration is below rounding.
const LAST_STEP: f64 = 1e-6;

/// More steps than bisection alone would need.
const MAX_STEPS: usize = 200;

/// The q with `P(|X| ≤ q) = level` for the error X of one contrast with sampling variance `v` and noise multiplier `a`.
///
/// # Errors
/// As [`half_widths`].
pub fn half_width(v: f64, a: f64, shape: &ErrorShape, level: f64) -> Result<f64> {
    Ok(half_widths(&[v], &[a], shape, level)?[0])
}

/// The half widths of several contrasts, to a relative accuracy of 1e-9 or better at any level.
///
/// Under noise in the shape of blocks `a` holds the multipliers of all its coordinates, contrast by contrast, and the accuracy is 1e-2.
pub fn half_widths(v: &[f64], a: &[f64], shape: &ErrorShape, level: f64) -> Result<Vec<f64>> {
    check_level(level)?;
    if let Some(blocks) = shape.law.blocks() {
        return shaped::half_widths(v, a, shape, blocks, level);
    }
    check_lengths("a", v, a)?;
    shape.check()?;
    let normal = normal_half_width(level);
    let quadrature = if level > 0.5 {
        Mixture::for_tail
    } else {
        Mixture::for_centre
    };
    let mut mixtures = Mixtures::new(quadrature);
    let mut std_devs = Vec::new();
    v.iter()
        .zip(a)
        .map(|(v, a)| {
            let spread = Spread::new(*v, *a, shape)?;
            let unit = match mixtures.of(&spread) {
                Some(mixture) => Quantile::new(mixture, &spread, &mut std_devs).solve(level, normal),
                None => normal,
            };
            Ok(spread.scale * unit)
        })
        .collect()
}

/// `P(|X| ≥ |x|)` for the error X of one contrast: the p-value of an estimate that lies x away from its hypothesis.
pub fn tail(v: f64, a: f64, shape: &ErrorShape, x: f64) -> Result<f64> {
    Ok(tails(&[v], &[a], shape, &[x])?[0])
}

/// The tails of several contrasts, each at its own `x`.
pub fn tails(v: &[f64], a: &[f64], shape: &ErrorShape, x: &[f64]) -> Result<Vec<f64>> {
    if let Some(blocks) = shape.law.blocks() {
        return shaped::tails(v, a, shape, blocks, x);
    }
    check_lengths("a", v, a)?;
    check_lengths("statistic", v, x)?;
    shape.check()?;
    let mut mixtures = Mixtures::new(Mixture::for_far_tail);
    v.iter()
        .zip(a)
        .zip(x)
        .map(|((v, a), x)| {
            let spread = Spread::new(*v, *a, shape)?;
            check(!x.is_nan(), "statistic", "a number", *x)?;
            // An error that is surely 0 is at 0, and infinitely far from anything else.
            let unit = if x.abs() > 0.0 { x.abs() / spread.scale } else { 0.0 };
            Ok(unit_tail(mixtures.of(&spread), &spread, unit).min(1.0))
        })
        .collect()
}

/// `P(|X| ≥ unit·scale)`.
fn unit_tail(mixture: Option<&Mixture>, spread: &Spread, unit: f64) -> f64 {
    match mixture {
        Some(mixture) => mixture
            .nodes
            .iter()
            .map(|(w, weight)| {
                let std_dev = (spread.fixed + spread.mixed * w).sqrt();
                weight * libm::erfc(unit / std_dev * FRAC_1_SQRT_2)
            })
            .sum(),
        None => libm::erfc(unit * FRAC_1_SQRT_2),
    }
}

/// The half width of the standard normal law.
fn normal_half_width(level: f64) -> f64 {
    SQRT_2
        * if level > 0.5 {
            erfc_inv(1.0 - level)
        } else {
            erf_inv(level)
        }
}

/// The quadrature of the last error, which the next one shares if its variance is mixed by the same law.
struct Mixtures<Q> {
    quadrature: Q,
    last: Option<Mixture>,
}

impl<Q: Fn(f64) -> Mixture> Mixtures<Q> {
    fn new(quadrature: Q) -> Self {
        Self { quadrature, last: None }
    }

    /// `None` for an error whose variance is not mixed.
    fn of(&mut self, spread: &Spread) -> Option<&Mixture> {
        if spread.mixed <= 0.0 {
            return None;
        }
        match &self.last {
            Some(last) if last.shape.to_bits() == spread.shape.to_bits() => {}
            _ => self.last = Some((self.quadrature)(spread.shape)),
        }
        self.last.as_ref()
    }
}

/// The quantile of |X| in standard units; the nodes' inverse standard deviations are computed once.
struct Quantile<'a> {
    mixture: &'a Mixture,
    inverse_std_devs: &'a [f64],
    mixed: f64,
}

impl<'a> Quantile<'a> {
    fn new(mixture: &'a Mixture, spread: &Spread, buffer: &'a mut Vec<f64>) -> Self {
        buffer.clear();
        let variances = mixture.nodes.iter().map(|(w, _)| spread.fixed + spread.mixed * w);
        buffer.extend(variances.map(|variance| variance.sqrt().recip()));
        Self {
            mixture,
            inverse_std_devs: buffer,
            mixed: spread.mixed,
        }
    }

    /// Above one half the equation is solved in the log of the tail, which is nearly linear in the far tail; below, in the
    /// probability of the centre, which starts out linear.
    fn solve(&self, level: f64, normal: f64) -> f64 {
        if level > 0.5 {
            // Cornish-Fisher: the excess kurtosis of the mixture is 3·mixed²/k.
            let kurtosis = 3.0 * self.mixed * self.mixed / self.mixture.shape;
            let start = normal * (1.0 + kurtosis * (normal * normal - 3.0) / 24.0);
            let log_tail = (1.0 - level).ln();
            root(start.max(0.5 * normal), |q| {
                let [tail, density, density_slope] = self.sums(q, |x, e| e * (x * FRAC_1_SQRT_2).erfcx());
                let hazard = density / tail;
                let curvature = -density_slope / tail - hazard * hazard;
                [tail.ln() - log_tail, -hazard, curvature]
            })
        } else {
            let [_, density, _] = self.sums(0.0, |_, _| 0.0);
            root(level / density, |q| {
                let [centre, density, density_slope] = self.sums(q, |x, _| libm::erf(x * FRAC_1_SQRT_2));
                [1.0 - centre / level, -density / level, -density_slope / level]
            })
        }
    }

    /// Mixture sums at q of a probability given by `part(x, exp(-x²/2))` at `x = q/std_dev`, of the density of |X|, and of the
    /// density's derivative.
    fn sums(&self, q: f64, part: impl Fn(f64, f64) -> f64) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for ((_, weight), inverse) in self.mixture.nodes.iter().zip(self.inverse_std_devs) {
            let x = q * inverse;
            let e = (-0.5 * x * x).exp();
            let density = weight * e * inverse;
            sums[0] += weight * part(x, e);
            sums[1] += density;
            sums[2] -= density * x * inverse;
        }
        let normalisation = (2.0 / PI).sqrt();
        [sums[0], normalisation * sums[1], normalisation * sums[2]]
    }
}

/// Root of a decreasing function of q > 0 from its value, slope and curvature: Halley's step, or bisection where that leaves
/// the bracket found so far.
fn root(start: f64, function: impl Fn(f64) -> [f64; 3]) -> f64 {
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut q = start;
    for _ in 0..MAX_STEPS {
        let [value, slope, curvature] = function(q);
        if value > 0.0 {
            low = q;
        } else {
            high = q;
        }
        let halley = q - 2.0 * value * slope / (2.0 * slope * slope - value * curvature);
        let next = if (low..=high).contains(&halley) {
            halley
        } else if high.is_finite() {
            f64::midpoint(low, high)
        } else {
            2.0 * q
        };
        let step = (next - q).abs();
        q = next;
        if step <= LAST_STEP * q {
            break;
        }
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::NoiseLaw;

    /// Mixed shares of the variance, a column of [`REFERENCE`] each.
    const RATIOS: [f64; 4] = [0.05, 0.5, 0.99, 1.0];

    /// (dim, level, half widths of the error of unit variance at each of [`RATIOS`]), from mpmath at 34 digits: several hundred
    /// trapezoids in log W, halved until stable, then bisection and the secant method on the log of the tail (of the centre
    /// below level 1/2).
    #[expect(clippy::unreadable_literal, reason = "printed by mpmath")]
    #[rustfmt::skip]
    const REFERENCE: &[(usize, f64, [f64; 4])] = &[
        (1, 1e-06, [1.2522220952341638e-06, 1.1693620332553438e-06, 7.852442126068375e-07, 7.071071347401738e-07]),
        (1, 0.5, [0.6739857271412834, 0.634813422708746, 0.4947789587481498, 0.4901290717342736]),
        (1, 0.95, [1.9604037993030092, 1.9886476235136856, 2.114791170758583, 2.11830260524942]),
        (1, 0.999, [3.2988809992571855, 3.9538769808313394, 4.867143324376382, 4.88452060054544]),
        (1, 1.0 - 1e-12, [7.364301800704502, 14.31552161894668, 19.44726879005183, 19.538098044773093]),
        (2, 1e-06, [1.2525689756409955e-06, 1.1914201300051806e-06, 9.309452547157612e-07, 9.068996821224469e-07]),
        (2, 0.5, [0.6741469632027063, 0.6455569477402172, 0.546673201572566, 0.5434377713692478]),
        (2, 0.95, [1.9602729527305625, 1.9829455498142776, 2.077676426663161, 2.080411625849812]),
        (2, 0.999, [3.2960351899034372, 3.7600288937259405, 4.494091879169132, 4.50849733541977]),
        (2, 1.0 - 1e-12, [7.2491822191403275, 12.490015996456982, 16.736706149985814, 16.812421351572556]),
        (10, 1e-06, [1.2531034998988078e-06, 1.2333628400361382e-06, 1.1676882945743527e-06, 1.1655317769782421e-06]),
        (10, 0.5, [0.6743933705652589, 0.665327800924387, 0.6367252616665028, 0.6358676994553671]),
        (10, 0.95, [1.9600549959678317, 1.968303101508371, 1.9979202480605018, 1.9988312389727256]),
        (10, 0.999, [3.292001544637846, 3.431395997953142, 3.7418532983531385, 3.7488166153932743]),
        (10, 1.0 - 1e-12, [7.152511025829945, 8.980204062395224, 11.198737067864858, 11.240282059183434]),
        (91, 1e-06, [1.2532886378720883e-06, 1.250780842564838e-06, 1.2432727422660361e-06, 1.2430643982506176e-06]),
        (91, 0.5, [0.6744781051638897, 0.673332469319897, 0.66992139071886, 0.6698272643040944]),
        (91, 0.95, [1.9599751494233817, 1.9610684668220157, 1.9644180989212898, 1.964512924517587]),
        (91, 0.999, [3.2907018758956994, 3.3079437272333596, 3.356571781698202, 3.357848678993095]),
        (91, 1.0 - 1e-12, [7.1328614215485375, 7.36510546599277, 7.89704223774764, 7.909183042402529]),
        (1000, 1e-06, [1.2533117900689728e-06, 1.2530795539402826e-06, 1.2523935453214217e-06, 1.2523748170566107e-06]),
        (1000, 0.5, [0.6744886785228918, 0.6743826443190625, 0.6740695824813617, 0.6740610398394743]),
        (1000, 0.95, [1.9599650139473697, 1.96006682259786, 1.9603682711416943, 1.9603765202865704]),
        (1000, 0.999, [3.290542814826152, 3.292134238526398, 3.2968086141749176, 3.296935559036815]),
        (1000, 1.0 - 1e-12, [7.130723183779587, 7.151845807547206, 7.212305865819878, 7.213910226375487]),
    ];

    /// `v` and `a` of unit variance whose mixed share is `ratio`.
    fn parts(ratio: f64, law: &ErrorShape) -> (f64, f64) {
        (1.0 - ratio, ratio.sqrt() / law.law.coordinate_std_dev())
    }

    #[test]
    fn half_widths_match_high_precision() {
        let mut worst: f64 = 0.0;
        for &(dim, level, expected) in REFERENCE {
            let law = ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim, rate: 0.7 });
            for (ratio, expected) in RATIOS.into_iter().zip(expected) {
                let (v, a) = parts(ratio, &law);
                let got = half_width(v, a, &law, level).unwrap();
                let error = (got / expected - 1.0).abs();
                assert!(
                    error < 1e-10,
                    "dim={dim} level={level} ratio={ratio}: {got} against {expected}"
                );
                worst = worst.max(error);
            }
        }
        println!("largest relative error {worst:e}");
    }

    #[test]
    fn one_dimension_of_pure_noise_is_the_laplace_law() {
        let law = ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim: 1, rate: 2.0 });
        for level in [1e-12_f64, 1e-3, 0.5, 0.9, 1.0 - 1e-15] {
            let expected = -(-level).ln_1p() / 2.0;
            let got = half_width(0.0, 1.0, &law, level).unwrap();
            assert!(
                (got / expected - 1.0).abs() < 1e-10,
                "{level}: {got} against {expected}"
            );
        }
        for x in [0.1, 1.0, 30.0, 340.0] {
            let got = tail(0.0, 1.0, &law, -x).unwrap();
            assert!((got / (-2.0 * x).exp() - 1.0).abs() < 1e-7, "{x}: {got}");
        }
    }

    #[test]
    fn tails_invert_half_widths() {
        for law in [
            ErrorShape::plug_in(NoiseLaw::Gaussian { std_dev: 3.0 }),
            ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim: 1, rate: 2.0 }),
            ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim: 40, rate: 2.0 }),
        ] {
            for level in [1e-9, 0.3, 0.95, 1.0 - 1e-9] {
                for (v, a) in [(0.0, 1.0), (1.0, 0.0), (2.0, 0.5), (1e-300, 1e-150), (1e290, 1e140)] {
                    let q = half_width(v, a, &law, level).unwrap();
                    let p = tail(v, a, &law, q).unwrap();
                    assert!((p / (1.0 - level) - 1.0).abs() < 1e-10, "{law:?} {level} {v} {a}: {p}");
                }
            }
        }
    }

    #[test]
    fn gaussian_noise_is_closed_form() {
        let law = ErrorShape::plug_in(NoiseLaw::Gaussian { std_dev: 2.0 });
        let got = half_width(5.0, 1.0, &law, 0.95).unwrap();
        assert!((got / (3.0 * 1.959_963_984_540_054) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn limits_and_bad_arguments() {
        let law = ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim: 4, rate: 1.0 });
        assert!(half_width(0.0, 0.0, &law, 0.95).unwrap().abs() < f64::MIN_POSITIVE);
        assert!((tail(0.0, 0.0, &law, 0.0).unwrap() - 1.0).abs() < f64::EPSILON);
        assert!(tail(0.0, 0.0, &law, 1.0).unwrap().abs() < f64::MIN_POSITIVE);
        assert!(tail(1.0, 1.0, &law, f64::INFINITY).unwrap().abs() < f64::MIN_POSITIVE);
        assert!((tail(1.0, 1.0, &law, 0.0).unwrap() - 1.0).abs() < 1e-12);
        assert!(tail(1.0, 1.0, &law, f64::NAN).is_err());
        for level in [0.0, 1.0, -0.5, 1.5, f64::NAN] {
            assert!(half_width(1.0, 1.0, &law, level).is_err());
        }
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            for (v, a) in [(bad, 1.0), (1.0, bad)] {
                assert!(half_width(v, a, &law, 0.95).is_err() && tail(v, a, &law, 1.0).is_err());
            }
        }
        assert!(half_widths(&[1.0, 2.0], &[1.0], &law, 0.95).is_err());
        assert!(tails(&[1.0], &[1.0], &law, &[]).is_err());
        let none = ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim: 0, rate: 1.0 });
        assert!(half_width(1.0, 1.0, &none, 0.95).is_err());
        assert!(half_widths(&[], &[], &law, 0.95).unwrap().is_empty());
    }
}
