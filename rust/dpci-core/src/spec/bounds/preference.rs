//! Counts of cells, by which a choice of bounds prefers cells near the middle, whatever the data (docs/proofs/bounds.md).

use num_bigint::BigUint;

/// Beyond the values of a column all cells are equally wrong, and there are many. Where each counts as a part of the one inside of it,
/// all of them together hardly count more than the first.
///
/// A cell counts as `1 + 1/over` times the next outer one; each the same where `over` is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Preference {
    over: Option<u32>,
}

/// Count of the outermost cell, which rounding to whole numbers is relative to.
const OUTERMOST: u32 = 64;

impl Preference {
    /// Each cell counts as one.
    pub(super) const NONE: Self = Self { over: None };
    /// All that are considered, the weakest first.
    pub(super) const ALL: [Self; 5] = [
        Self::NONE,
        Self { over: Some(16) },
        Self { over: Some(8) },
        Self { over: Some(4) },
        Self { over: Some(2) },
    ];

    fn ln_ratio(self) -> f64 {
        self.over.map_or(0.0, |over| f64::from(over).recip().ln_1p())
    }

    /// Logarithm of what a cell and all cells outside of it count as, over that cell.
    pub(super) fn outward(self, n_cells: usize) -> f64 {
        let ratio = (-self.ln_ratio()).exp();
        let cells = n_cells as f64;
        if self.over.is_none() {
            cells.ln()
        } else {
            ((1.0 - ratio.powf(cells)) / (1.0 - ratio)).ln()
        }
    }

    /// Logarithm of what the innermost cell counts as, over the outermost.
    pub(super) fn inward(self, n_cells: usize) -> f64 {
        self.ln_ratio() * (n_cells as f64 - 1.0)
    }

    /// Count of each cell, the innermost first.
    pub(crate) fn counts(self, n_cells: usize) -> Vec<BigUint> {
        let mut count = BigUint::from(OUTERMOST);
        let mut counts: Vec<BigUint> = (0..n_cells)
            .map(|_| {
                let here = count.clone();
                if let Some(over) = self.over {
                    count += &here / over;
                }
                here
            })
            .collect();
        counts.reverse();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_fall_outward_by_the_ratio() {
        for preference in Preference::ALL {
            let counts = preference.counts(64);
            let ratio = preference.ln_ratio().exp();
            for pair in counts.windows(2) {
                let [inner, outer] = [0, 1].map(|i| u64::try_from(&pair[i]).unwrap() as f64);
                assert!((inner / outer / ratio - 1.0).abs() < 1.0 / 64.0, "{preference:?}");
            }
            let all: BigUint = counts.iter().sum();
            let all = u64::try_from(all).unwrap() as f64 / u64::try_from(&counts[0]).unwrap() as f64;
            assert!((all.ln() - preference.outward(64)).abs() < 0.05);
            let span = u64::try_from(&counts[0]).unwrap() as f64 / 64.0;
            assert!((span.ln() - preference.inward(64)).abs() < 0.3);
        }
    }
}
