//! The numbers of the rows in the precision in which the caller stores them, read in double precision.

use std::borrow::Cow;
use std::ops::Range;

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
            Self::Single(numbers) => numbers[range].iter().copied().map(f64::from).collect(),
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
