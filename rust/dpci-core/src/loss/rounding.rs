//! How far rounding moves sums of a loss over rows, and how many digits there are against it: bounds from public numbers.

use super::{Loss, VALUE_ROUNDINGS};
use crate::linalg::{DOUBLED_EPSILON, GRADIENT_ROUNDINGS, GRAM_ROUNDINGS, sum_rounding};

/// Covers the roundings of the few operations of a bound.
const ROOM: f64 = 1.0 + 1e-9;

/// One rounding.
const UNIT: f64 = 0.5 * f64::EPSILON;

/// Parameters up to which systems in doubled precision take seconds, not hours.
pub(crate) const HINGE_MAX_DIM: usize = 2048;

/// Parameters up to which Hessians and rows take seconds.
const DOUBLED_MAX_DIM: usize = 2048;

/// Radii whose squares have all digits of doubled precision.
const DOUBLED_RADII: std::ops::RangeInclusive<f64> = 1e-60..=1e60;

/// Bound on the Euclidean distance of the data part of a gradient of `Objective::evaluate` to `(1/n) Σ l'(ûᵢ) xᵢ` in real numbers, `ûᵢ`
/// the computed predictor of record i, in terms of `N/n·sup|l'|·R` for `N` records.
pub fn gradient_rounding(n_rows: usize) -> f64 {
    sum_rounding(GRADIENT_ROUNDINGS + VALUE_ROUNDINGS, n_rows)
}

/// The same for the data part of its Hessian, Frobenius, in terms of `N/n·sup l''·R²`.
pub fn hessian_rounding(n_rows: usize) -> f64 {
    sum_rounding(GRAM_ROUNDINGS + VALUE_ROUNDINGS, n_rows)
}

/// Bound on the Frobenius distance of a matrix of `data_moments` to `(1/n) Σ cᵢ xᵢxᵢᵀ` in real numbers, in terms of `N/n·sup c·R²` for
/// `N` records: `cᵢ` is l'' or l'² at the predictor of record i, a function of that record and the parameters alone; `sup c` its supremum
/// over `|u| ≤ R‖θ‖`, `R` the bound on the rows with their intercept. The predictor is that of `Design::linear_predictor`, which has the
/// same bits on every machine and in every storage. The [`Loss::tail_roundings`] of a curvature come on top.
pub fn moment_rounding(n_rows: usize) -> f64 {
    sum_rounding(GRAM_ROUNDINGS + VALUE_ROUNDINGS, n_rows)
}

/// The same for the gradient covariance of persons, `(1/n) Σ ḡḡᵀ`: in terms of `N/n·sup l'²·R²` for `N` persons with so many rows together.
/// A gradient that errs by a share `e` moves its square by at most `2e + e²`.
pub fn person_rounding(n_rows: usize) -> f64 {
    moment_rounding(n_rows) + 2.01 * gradient_rounding(n_rows)
}

/// The same for `second_moments`: its `gram` in terms of `N·R²`, its `cross` of `N·R·B`, `B` the bound on targets (Euclidean).
pub fn second_moment_rounding(n_rows: usize) -> f64 {
    sum_rounding(GRAM_ROUNDINGS, n_rows)
}

/// Sizes on which the rounding of a gradient depends: the numbers of a data set, or public bounds on those of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent<'a> {
    /// Loss.
    pub(crate) loss: &'a dyn Loss,
    /// Number of parameters.
    pub(crate) n_params: usize,
    /// Number of terms in a sum.
    pub(crate) n_rows: usize,
    /// `N/n`.
    pub(crate) mass: f64,
    /// Bound R on the rows x, whose weights w are at most 1: `w‖x‖ ≤ R` and `w‖x‖² ≤ R²`.
    pub(crate) row_norm: f64,
    /// Bound on the rows, whatever their weights.
    pub(crate) longest: f64,
    /// λ.
    pub(crate) l2_strength: f64,
    /// Norm of the linear term.
    pub(crate) linear: f64,
}

impl Extent<'_> {
    /// Bound on the distance of a gradient computed in doubled precision at a point of this norm to the exact one.
    pub(crate) fn doubled_rounding(&self, params_norm: f64) -> f64 {
        let loss = self.loss;
        // At most a product and a sum of each entry, with 10·2⁻¹⁰⁶ for the two.
        let roundings = (self.n_params as f64 + 4.0) * DOUBLED_EPSILON;
        let predictor = roundings * (self.row_norm * params_norm);
        let reach = self.longest * params_norm;
        let bound = loss.slope_bound();
        let slope = if bound.is_finite() {
            bound
        } else {
            loss.sup_slope(reach)
        };
        let curvature = loss.curvature_within(reach + roundings * reach);
        let slope_error = 8.0 * DOUBLED_EPSILON * slope + curvature * predictor;
        let sums = (self.n_rows as f64 + 32.0) * DOUBLED_EPSILON;
        let data = self.mass * self.row_norm * (slope_error + sums * (slope + slope_error));
        let ridge = self.l2_strength * params_norm;
        (data + 4.0 * DOUBLED_EPSILON * (ridge + self.linear)) * ROOM + f64::MIN_POSITIVE
    }

    /// Bound on the distance of the gradient of `Objective::evaluate` at a point of this norm to the exact one: the sum of what each
    /// step can add; the sizes are bounds that hold for all rows.
    pub(crate) fn rounding(&self, params_norm: f64) -> f64 {
        let (loss, dim) = (self.loss, self.n_params as f64);
        // A product and a sum of each entry, the scale, the intercept; underflow.
        let predictor = |reach: f64| (dim + 5.0) * UNIT * reach * ROOM + f64::MIN_POSITIVE;
        let reach = self.longest * params_norm;
        let reach = reach + predictor(reach);
        let predictor = predictor(self.row_norm * params_norm);
        let slope_error = loss.slope_error(reach) + loss.curvature_within(reach) * predictor;
        let slope = loss.sup_slope(reach) + slope_error;
        let sums = sum_rounding(GRADIENT_ROUNDINGS, self.n_rows);
        let data = self.mass * self.row_norm * (slope_error + sums * slope);
        // λθ, its sum with the linear term, and that with the data part.
        let rest = UNIT * (3.0 * self.l2_strength * params_norm + 2.0 * self.linear);
        (data + rest) * ROOM + (1.0 + dim) * f64::MIN_POSITIVE
    }
}

/// The certificate that every data set of this extent reaches, with a minimiser of at most this norm (`certify.rs`): the roundings of the
/// residual, and the root of those of the excess at the kinks, one of at most each row.
pub(crate) fn hinge_floor(extent: &Extent<'_>, params_norm: f64) -> f64 {
    let lambda = extent.l2_strength;
    let products = (extent.n_params as f64 + 4.0) * DOUBLED_EPSILON;
    let sums = products + (extent.n_rows as f64 + 32.0) * DOUBLED_EPSILON;
    let size = 2.0 * extent.mass * extent.row_norm + extent.linear + lambda * params_norm;
    let excess = products * extent.mass * (1.0 + extent.row_norm * params_norm);
    sums * size / lambda + (excess / lambda).sqrt() + f64::MIN_POSITIVE
}

/// Whether there are more digits than those of f64 for this loss, number of parameters and radius.
pub(crate) fn has_more_digits(loss: &dyn Loss, n_params: usize, radius: Option<f64>) -> bool {
    loss.has_doubled_slopes() && n_params <= DOUBLED_MAX_DIM && radius.is_none_or(|w| DOUBLED_RADII.contains(&w))
}

/// Parameters up to which the search that always ends is short enough to wait for: its length grows with their square.
const CUTS_MAX_DIM: usize = 100;

/// Whether the search for a minimiser ends on every data set, in exact arithmetic (docs/certificates.md, "Convergence"): only where
/// rounding does not end it first, and nowhere on a sphere.
pub(crate) fn always_converges(loss: &dyn Loss, n_params: usize, radius: Option<f64>) -> bool {
    radius.is_none()
        && n_params <= CUTS_MAX_DIM
        && loss.curvature_bound().is_finite()
        && has_more_digits(loss, n_params, None)
}

#[cfg(test)]
mod tests {
    use super::super::{Hinge, Logistic};
    use super::*;

    /// A million logistic records of three parameters with rows up to 2.
    fn extent(loss: &dyn Loss) -> Extent<'_> {
        Extent {
            loss,
            n_params: 3,
            n_rows: 1_000_000,
            mass: 1.0,
            row_norm: 2.0,
            longest: 2.0,
            l2_strength: 0.01,
            linear: 0.5,
        }
    }

    #[track_caller]
    fn assert_just_above(got: f64, exact: f64) {
        assert!(got >= exact && got <= exact * (1.0 + 3e-9), "{got:e} against {exact:e}");
    }

    /// Without records there are λθ, its sum with the linear term, and that with zero: three roundings pass over λθ, two over the term.
    #[test]
    fn without_records_the_ridge_and_the_linear_term_are_rounded() {
        let empty = Extent {
            mass: 0.0,
            ..extent(&Logistic)
        };
        let (ridge, unit) = (0.01 * 4.0, 0.5 * f64::EPSILON);
        assert_just_above(empty.rounding(4.0), unit * (3.0 * ridge + 2.0 * 0.5));
        assert_just_above(empty.doubled_rounding(4.0), 4.0 * DOUBLED_EPSILON * (ridge + 0.5));
    }

    /// At the origin the predictors are exact: what is left is the slope's own error, eight units of its bound 1, and that of the sum.
    #[test]
    fn at_the_origin_slopes_and_their_sum_are_rounded() {
        let free = Extent {
            linear: 0.0,
            ..extent(&Logistic)
        };
        let sum = 1e6 + 32.0;
        assert_just_above(free.doubled_rounding(0.0), 2.0 * (8.0 + sum) * DOUBLED_EPSILON);
        let one = Extent { n_rows: 1, ..free };
        assert_just_above(one.doubled_rounding(0.0), 2.0 * (8.0 + 33.0) * DOUBLED_EPSILON);
        let slope_error = Logistic.slope_error(0.0);
        let slope = 0.5 + slope_error;
        assert_just_above(
            one.rounding(0.0),
            2.0 * (slope_error + sum_rounding(GRADIENT_ROUNDINGS, 1) * slope),
        );
    }

    /// The excess at the kinks is all that counts with a small ridge: the root of `(d + 4)·ε·(N/n)·(1 + R‖θ‖)/λ`.
    #[test]
    fn the_floor_of_the_hinge_is_that_of_its_kinks() {
        for (n_params, l2_strength) in [(1, 0.01), (3, 0.01), (3, 1e-4)] {
            let extent = Extent {
                n_params,
                l2_strength,
                mass: 3.0,
                ..extent(&Hinge)
            };
            let products = (n_params as f64 + 4.0) * DOUBLED_EPSILON;
            let floor = hinge_floor(&extent, 4.0);
            let kinks = (products * 3.0 * 9.0 / l2_strength).sqrt();
            assert!(
                floor >= kinks && floor <= kinks * (1.0 + 1e-4),
                "{floor:e} against {kinks:e}"
            );
        }
    }

    /// The residual is all that counts for a risk that is pulled hard, and in it the pull: `((d + 4) + (N + 32))·ε·‖b‖/λ`.
    #[test]
    fn the_floor_of_a_pulled_hinge_is_that_of_its_residual() {
        for n_rows in [1, 1000] {
            let pulled = Extent {
                n_rows,
                linear: 1e40,
                ..extent(&Hinge)
            };
            let roundings = 7.0 + n_rows as f64 + 32.0;
            let exact = roundings * DOUBLED_EPSILON * 1e40 / 0.01;
            assert_just_above(hinge_floor(&pulled, 4.0), exact);
        }
    }

    #[test]
    fn without_anything_to_round_the_bounds_are_those_of_underflow() {
        let nothing = Extent {
            mass: 0.0,
            linear: 0.0,
            ..extent(&Logistic)
        };
        // An entry of the gradient each, and one more.
        assert_just_above(nothing.rounding(0.0), 4.0 * f64::MIN_POSITIVE);
        assert_just_above(nothing.doubled_rounding(0.0), f64::MIN_POSITIVE);
    }

    #[test]
    fn sizes_up_to_which_there_are_more_digits_and_a_search_that_ends() {
        for (n_params, digits, search) in [
            (100, true, true),
            (101, true, false),
            (2048, true, false),
            (2049, false, false),
        ] {
            assert_eq!(has_more_digits(&Logistic, n_params, None), digits);
            assert_eq!(always_converges(&Logistic, n_params, None), search);
        }
        for (radius, digits) in [(1e-60, true), (1e60, true), (0.9e-60, false), (1.1e60, false)] {
            assert_eq!(has_more_digits(&Logistic, 1, Some(radius)), digits);
            assert!(!always_converges(&Logistic, 1, Some(radius)));
        }
    }

    /// Far out the predictor's error is all that counts: `(N/n)·R·sup l''` of it.
    #[test]
    fn far_out_predictors_are_rounded() {
        let far = Extent {
            n_rows: 1,
            mass: 3.0,
            linear: 0.0,
            l2_strength: 0.0,
            ..extent(&Logistic)
        };
        // At most a product and a sum of each of three entries, and some operations beside them.
        let (reach, unit) = (2.0 * 1e20, 0.5 * f64::EPSILON);
        assert_just_above(
            far.doubled_rounding(1e20),
            3.0 * 2.0 * 0.25 * (7.0 * DOUBLED_EPSILON * reach),
        );
        // Of so many records that the sum errs by a sixteenth, too.
        for n_rows in [1, 1 << 50] {
            let error = 0.25 * (8.0 * unit * reach);
            let sums = sum_rounding(GRADIENT_ROUNDINGS, n_rows);
            assert_just_above(
                Extent { n_rows, ..far }.rounding(1e20),
                3.0 * 2.0 * (error + sums * (1.0 + error)),
            );
        }
    }
}
