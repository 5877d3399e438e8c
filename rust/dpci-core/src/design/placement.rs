//! Columns moved to the middle of public bounds and divided by half their width, a block of rows at a time.

use crate::linalg::{clip_rows, place_rows};

/// Shift and scale of each column.
#[derive(Debug, Clone)]
pub(super) struct Placement {
    middle: Vec<f64>,
    half: Vec<f64>,
    /// The greatest numbers that make at most 1 of half the width, as products are faster than quotients; none where one is out of range.
    factor: Vec<f64>,
    /// Whether finite numbers beyond the bounds are moved to them.
    pub(super) clip: bool,
}

impl Placement {
    pub(super) fn new(middle: &[f64], half: &[f64]) -> Self {
        Self {
            middle: middle.to_vec(),
            factor: factors(half),
            half: half.to_vec(),
            clip: false,
        }
    }

    /// Rows, placed. What is not finite stays so, or is no number.
    pub(super) fn of(&self, rows: &[f64]) -> Vec<f64> {
        let mut placed = vec![0.0; rows.len()];
        let (middle, factor) = (&self.middle[..], &self.factor[..]);
        if factor.is_empty() {
            self.divide(&mut placed, rows);
        } else if self.clip {
            clip_rows(&mut placed, rows, middle, factor);
        } else {
            place_rows(&mut placed, rows, middle, factor);
        }
        placed
    }

    /// The same for bounds of any width.
    fn divide(&self, placed: &mut [f64], rows: &[f64]) {
        let columns = self.middle.iter().zip(&self.half).cycle();
        for ((o, x), (m, h)) in placed.iter_mut().zip(rows).zip(columns) {
            let value = (x - m) / h;
            *o = if self.clip {
                value.clamp(-1.0, 1.0) + x * 0.0
            } else {
                value
            };
        }
    }
}

/// Factors in place of the quotients, unless one has no exact exponent in double precision.
fn factors(half: &[f64]) -> Vec<f64> {
    let found: Vec<f64> = half.iter().map(|h| factor_of(*h)).collect();
    let usable = found.iter().all(|f| f.is_normal());
    if usable { found } else { Vec::new() }
}

/// 1/h, rounded down.
fn factor_of(half: f64) -> f64 {
    let factor = 1.0 / half;
    if half.mul_add(factor, -1.0) > 0.0 {
        factor.next_down()
    } else {
        factor
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::factor_of;
    use crate::Error;
    use crate::design::{Csr, Design, OnViolation, RowBounds, Rows};
    use crate::exec::Executor;
    use crate::loss::Targets;
    use crate::row_domain::{Blocks, RowDomain};

    const MIDDLE: [f64; 2] = [2005.0, 0.5];
    const HALF: [f64; 2] = [15.0, 0.5];

    fn placed(features: &[f64], on_violation: OnViolation) -> crate::Result<Vec<f64>> {
        let n = features.len() / 2;
        let targets = vec![1.0; n];
        let bounds = RowBounds {
            rows: RowDomain::Blocks(Arc::new(Blocks::new(vec![1.0; 2], vec![0, 1])?)),
            targets: Targets::Signs,
            on_violation,
        };
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let rows = Rows::dense(features, 2).placed(&MIDDLE, &HALF)?;
        let design = Design::new(rows, &targets, Some(0.5), &bounds, &exec)?;
        let mut numbers = vec![0.0; n * 3];
        design.write_rows(0..n, &mut numbers);
        let mut again = vec![0.0; n * 3];
        design.owned().write_rows(0..n, &mut again);
        assert_eq!(numbers, again, "a copy has the placed rows");
        Ok(numbers)
    }

    #[test]
    fn bounds_become_one() {
        let found = placed(&[1990.0, 0.0, 2020.0, 1.0, 2008.0, 0.75], OnViolation::Error).unwrap();
        let expected = [-1.0, -1.0, 0.5, 1.0, 1.0, 0.5, 0.2, 0.5, 0.5];
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() < 1e-15 && f.abs() <= 1.0, "{f} {e}");
        }
    }

    #[test]
    fn factors_make_at_most_one_of_half_the_width() {
        for i in 1..2000 {
            let half = f64::from(i) / 7.0;
            assert!(half * factor_of(half) <= 1.0 && half * factor_of(half) > 1.0 - 1e-15);
        }
        assert!(factor_of(0.25).to_bits() == 4.0_f64.to_bits());
    }

    #[test]
    fn numbers_beyond_are_refused_or_moved_to_their_bounds() {
        let beyond = [1980.0, 0.5, 2005.0, 3.0];
        let refused = placed(&beyond, OnViolation::Error);
        assert!(matches!(refused, Err(Error::RowBlock { row: 0, .. })), "{refused:?}");
        let moved = placed(&beyond, OnViolation::Clip).unwrap();
        assert_eq!(moved, [-1.0, 0.0, 0.5, 0.0, 1.0, 0.5]);
        let far = placed(&[-f64::MAX, 0.5], OnViolation::Clip).unwrap();
        assert_eq!(far, [-1.0, 0.0, 0.5]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for on_violation in [OnViolation::Error, OnViolation::Clip] {
                let found = placed(&[2000.0, 0.5, bad, 0.5], on_violation);
                assert!(matches!(found, Err(Error::NonFiniteRow { row: 1, .. })), "{found:?}");
            }
        }
    }

    #[test]
    fn other_numbers_of_columns_and_sparse_rows_are_refused() {
        assert!(Rows::dense(&[0.0; 4], 2).placed(&[0.0], &[1.0]).is_err());
        let (starts, columns, values) = (vec![0_i64, 1], vec![0_i32], vec![1.0]);
        let sparse = Rows::Csr(Csr::new(starts, columns, values, 1).unwrap());
        assert!(matches!(sparse.placed(&[0.0], &[1.0]), Err(Error::Unsupported(_))));
    }
}
