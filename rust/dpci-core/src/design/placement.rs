//! Columns moved to the middle of public bounds and divided by half their width, a block of rows at a time.

/// What is done with each column.
#[derive(Debug, Clone)]
pub(super) struct Placement {
    middle: Vec<f64>,
    half: Vec<f64>,
    /// Whether finite numbers beyond the bounds are moved to them.
    pub(super) clip: bool,
}

impl Placement {
    pub(super) fn new(middle: &[f64], half: &[f64]) -> Self {
        Self {
            middle: middle.to_vec(),
            half: half.to_vec(),
            clip: false,
        }
    }

    /// Rows, placed. What is not finite stays so.
    pub(super) fn of(&self, rows: &[f64]) -> Vec<f64> {
        let mut placed = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(self.middle.len().max(1)) {
            let columns = row.iter().zip(&self.middle).zip(&self.half);
            if self.clip {
                placed.extend(columns.map(|((x, m), h)| {
                    if x.is_finite() {
                        ((x - m) / h).clamp(-1.0, 1.0)
                    } else {
                        f64::NAN
                    }
                }));
            } else {
                placed.extend(columns.map(|((x, m), h)| (x - m) / h));
            }
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

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
        let found = placed(
            &[1990.0, 0.0, 2020.0, 1.0, 2008.0, 0.75],
            OnViolation::Error,
        )
        .unwrap();
        assert_eq!(found, [-1.0, -1.0, 0.5, 1.0, 1.0, 0.5, 0.2, 0.5, 0.5]);
    }

    #[test]
    fn numbers_beyond_are_refused_or_moved_to_their_bounds() {
        let beyond = [1980.0, 0.5, 2005.0, 3.0];
        let refused = placed(&beyond, OnViolation::Error);
        assert!(
            matches!(refused, Err(Error::RowBlock { row: 0, .. })),
            "{refused:?}"
        );
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
                assert!(
                    matches!(found, Err(Error::NonFiniteRow { row: 1, .. })),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn other_numbers_of_columns_and_sparse_rows_are_refused() {
        assert!(Rows::dense(&[0.0; 4], 2).placed(&[0.0], &[1.0]).is_err());
        let (starts, columns, values) = (vec![0_i64, 1], vec![0_i32], vec![1.0]);
        let sparse = Rows::Csr(Csr::new(starts, columns, values, 1).unwrap());
        assert!(matches!(
            sparse.placed(&[0.0], &[1.0]),
            Err(Error::Unsupported(_))
        ));
    }
}
