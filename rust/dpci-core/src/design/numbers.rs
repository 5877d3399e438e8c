//! The numbers of the rows in the precision in which the caller stores them, read in double precision.

use std::borrow::Cow;
use std::ops::Range;

use crate::linalg::vector;

/// Numbers in double or single precision. Every single one is a double one, so nothing that is computed can tell them apart.
#[derive(Debug, Clone)]
pub enum Numbers<'a> {
    /// Double precision.
    Double(Cow<'a, [f64]>),
    /// Single precision, half the memory.
    Single(Cow<'a, [f32]>),
}

impl Numbers<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Double(numbers) => numbers.len(),
            Self::Single(numbers) => numbers.len(),
        }
    }

    /// A range in double precision: borrowed where stored so, else converted, for which a block of rows is a good size.
    pub(super) fn doubles(&self, range: Range<usize>) -> Cow<'_, [f64]> {
        match self {
            Self::Double(numbers) => Cow::Borrowed(&numbers[range]),
            Self::Single(numbers) => vector::widened(&numbers[range]).into(),
        }
    }

    /// Ranges one after another, each times its scale. In single precision unless the scales, which are not, change something.
    pub(super) fn gathered(
        &self,
        ranges: impl Iterator<Item = Range<usize>> + Clone,
        scales: Option<impl Iterator<Item = f64>>,
    ) -> Numbers<'static> {
        let total = ranges.clone().map(|range| range.len()).sum();
        match (self, scales) {
            (Self::Single(numbers), None) => {
                let mut gathered = Vec::with_capacity(total);
                ranges.for_each(|range| gathered.extend_from_slice(&numbers[range]));
                Numbers::Single(gathered.into())
            }
            (_, scales) => {
                let mut gathered = Vec::with_capacity(total);
                let mut scales = scales.into_iter().flatten();
                for range in ranges {
                    let scale = scales.next().unwrap_or(1.0);
                    gathered.extend(self.doubles(range).iter().map(|v| scale * v));
                }
                Numbers::Double(gathered.into())
            }
        }
    }
}

impl<'a> From<&'a [f64]> for Numbers<'a> {
    fn from(numbers: &'a [f64]) -> Self {
        Self::Double(numbers.into())
    }
}

impl<'a> From<&'a [f32]> for Numbers<'a> {
    fn from(numbers: &'a [f32]) -> Self {
        Self::Single(numbers.into())
    }
}

impl From<Vec<f64>> for Numbers<'_> {
    fn from(numbers: Vec<f64>) -> Self {
        Self::Double(numbers.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::design::{Csr, Design, OnViolation, RowBounds, Rows};
    use crate::exec::Executor;
    use crate::loss::Targets;
    use crate::row_domain::RowDomain;

    const WIDTH: usize = 5;

    /// Rows of which some are longer than the bound, and others equal.
    fn singles() -> Vec<f32> {
        (0..300 * WIDTH).map(|e| ((e % 375) as f32 * 0.7).sin() * 0.5).collect()
    }

    fn csr<'a, N: Into<Numbers<'a>>>(numbers: N) -> Rows<'a> {
        let starts: Vec<i64> = (0..=300).map(|i| i * 5).collect();
        let columns: Vec<i32> = (0..300).flat_map(|_| 0..5).collect();
        Rows::Csr(Csr::new(starts, columns, numbers, WIDTH).unwrap())
    }

    /// Everything that a design says of its rows, before and after merging.
    fn facts(rows: Rows<'_>) -> Vec<u64> {
        let bounds = RowBounds {
            rows: RowDomain::Ball(0.8),
            targets: Targets::Signs,
            on_violation: OnViolation::Clip,
        };
        let cancel = AtomicBool::new(false);
        let exec = Executor::sequential(&cancel);
        let targets = [1.0; 300];
        let design = Design::new(rows, &targets, Some(0.5), &bounds, &exec).unwrap();
        let merged = design.merged(&exec).unwrap();
        assert!(merged.n_rows() < 300, "equal rows are merged");
        let subset = design.subset(&[7, 0, 299]).unwrap();
        let mut facts = Vec::new();
        for design in [design, merged, subset] {
            let (n, dim) = (design.n_rows(), design.n_params());
            let mut numbers = vec![0.0; n * (dim + 2) + dim];
            let (written, rest) = numbers.split_at_mut(n * dim);
            let (predictor, rest) = rest.split_at_mut(n);
            let (squares, sums) = rest.split_at_mut(n);
            design.write_rows(0..n, written);
            design.linear_predictor(0..n, &[0.3, -1.7, 0.9, 2.1, 0.1, -0.2], predictor);
            design.squared_norms(0..n, squares);
            design.add_weighted_rows(0..n, &mut predictor.to_vec(), sums);
            facts.extend(numbers.into_iter().map(f64::to_bits));
        }
        facts
    }

    #[test]
    fn single_precision_changes_no_bit() {
        let singles = singles();
        let doubles: Vec<f64> = singles.iter().copied().map(f64::from).collect();
        let expected = facts(Rows::dense(&doubles, WIDTH));
        assert_eq!(facts(Rows::dense_single(&singles, WIDTH)), expected);
        assert_eq!(facts(csr(&singles[..])), facts(csr(&doubles[..])));
    }

    #[test]
    fn copies_stay_in_single_precision_unless_scaled() {
        let singles = singles();
        let numbers = Numbers::from(&singles[..]);
        let all = std::iter::once(0..singles.len());
        let none = None::<std::iter::Empty<f64>>;
        assert!(matches!(numbers.gathered(all.clone(), none), Numbers::Single(_)));
        let halved = numbers.gathered(all, Some(std::iter::once(0.5)));
        let expected = 0.5 * f64::from(singles[1]);
        assert_eq!(halved.doubles(1..2)[0].to_bits(), expected.to_bits());
    }
}
