//! The public set that rows lie in: a ball, or blocks of columns whose absolute values have bounded sums. Numbers only.

use std::fmt;
use std::sync::Arc;

use crate::error::check_length;
use crate::{Error, Result};

/// The set that every row lies in, without the intercept.
#[derive(Debug, Clone, PartialEq)]
pub enum RowDomain {
    /// Rows of at most this Euclidean norm.
    Ball(f64),
    /// Rows of bounded blocks.
    Blocks(Arc<Blocks>),
}

impl RowDomain {
    /// A bound on the Euclidean norm of a row, rounded up.
    pub fn norm(&self) -> f64 {
        match self {
            Self::Ball(norm) => *norm,
            Self::Blocks(blocks) => blocks.norm(),
        }
    }

    /// The greatest absolute value of each of the coordinates of a row.
    pub fn greatest_entries(&self, dim: usize) -> Vec<f64> {
        match self {
            Self::Ball(norm) => vec![*norm; dim],
            Self::Blocks(blocks) => blocks.members.iter().map(|b| blocks.bounds[*b]).collect(),
        }
    }

    /// Whether it is a ball.
    pub fn is_ball(&self) -> bool {
        matches!(self, Self::Ball(_))
    }

    /// Whether every row of another domain lies in this one, as far as bounds alone say.
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ball(norm), other) => other.norm() <= *norm,
            (Self::Blocks(outer), Self::Blocks(inner)) => {
                let bounds = outer.bounds.iter().zip(&inner.bounds);
                outer.members == inner.members && bounds.into_iter().all(|(a, b)| b <= a)
            }
            (Self::Blocks(_), Self::Ball(_)) => false,
        }
    }

    /// The blocks; `None` for a ball.
    pub fn shape(&self) -> Option<&Arc<Blocks>> {
        match self {
            Self::Ball(_) => None,
            Self::Blocks(blocks) => Some(blocks),
        }
    }

    /// The domain of rows with a constant appended, which is a block of its own.
    ///
    /// # Errors
    /// As [`Blocks::new`].
    pub fn with_constant(&self, scale: f64) -> Result<Self> {
        match self {
            Self::Ball(norm) => Ok(Self::Ball(row_norm_bound(*norm, Some(scale)))),
            Self::Blocks(blocks) => {
                let (mut bounds, mut members) = (blocks.bounds.clone(), blocks.members.clone());
                members.push(bounds.len());
                bounds.push(scale);
                Ok(Self::Blocks(Arc::new(Blocks::new(bounds, members)?)))
            }
        }
    }

    /// The blocks of rows with their intercept; `None` for a ball.
    ///
    /// # Errors
    /// As [`Blocks::new`].
    pub fn blocks(&self, intercept: Option<f64>) -> Result<Option<Arc<Blocks>>> {
        let whole = match intercept {
            Some(scale) if !self.is_ball() => self.with_constant(scale)?,
            _ => self.clone(),
        };
        Ok(whole.shape().cloned())
    }

    /// Refuses blocks of another number of columns; a ball lies in any space.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn check_columns(&self, n_columns: usize) -> Result<()> {
        match self {
            Self::Ball(_) => Ok(()),
            Self::Blocks(blocks) => check_length("each row of X", blocks.members.len(), n_columns),
        }
    }
}

impl fmt::Display for RowDomain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ball(norm) => write!(formatter, "{norm}"),
            Self::Blocks(blocks) => write!(
                formatter,
                "blocks of {} columns with bounds {:?}",
                blocks.dim(),
                blocks.bounds
            ),
        }
    }
}

/// The bound √(R² + s²) on rows with an intercept column `s`, rounded up.
pub fn row_norm_bound(row_norm: f64, intercept: Option<f64>) -> f64 {
    // The library's hypot errs by less than one unit in the last place; the least number covers subnormal ones.
    intercept.map_or(row_norm, |s| {
        row_norm.hypot(s) * (1.0 + 2.0 * f64::EPSILON) + f64::from_bits(1)
    })
}

/// Blocks of coordinates: the absolute values of block b sum to at most its bound `a_b`.
///
/// They are the unit ball of the norm `‖z‖_K = max_b ‖z_b‖₁/a_b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks {
    bounds: Vec<f64>,
    /// The block of each coordinate.
    members: Vec<usize>,
    /// Number of coordinates of each block.
    sizes: Vec<usize>,
}

impl Blocks {
    /// Blocks with their bounds, and the block of each coordinate.
    pub fn new(bounds: Vec<f64>, members: Vec<usize>) -> Result<Self> {
        let bad = bounds.iter().find(|a| !(**a > 0.0 && a.is_finite()));
        if let Some(&value) = bad {
            return Err(Error::OutOfRange {
                name: "the bound of a block",
                rule: "finite and > 0",
                value,
            });
        }
        let mut sizes = vec![0; bounds.len()];
        for block in &members {
            let Some(size) = sizes.get_mut(*block) else {
                return Err(Error::Unsupported(format!(
                    "members must be blocks from 0 to {}, got {block}",
                    bounds.len().saturating_sub(1)
                )));
            };
            *size += 1;
        }
        if members.is_empty() || sizes.contains(&0) {
            return Err(Error::Unsupported(
                "every block must have a column, got one without".into(),
            ));
        }
        Ok(Self { bounds, members, sizes })
    }

    getters! { self =>
        /// `a_b` of each block.
        pub bounds: &[f64] = &self.bounds;
        /// The block of each coordinate.
        pub members: &[usize] = &self.members;
        /// Number of coordinates of each block.
        pub sizes: &[usize] = &self.sizes;
        /// Number of coordinates.
        pub dim: usize = self.members.len();
    }

    /// `√(Σ a_b²)`, the greatest Euclidean norm, rounded up: that of a block is at most its sum of absolute values.
    pub fn norm(&self) -> f64 {
        let greatest = self.bounds.iter().fold(0.0, |a: f64, b| a.max(*b));
        if self.bounds.len() == 1 {
            return greatest;
        }
        // Ratios to the greatest bound neither overflow nor matter where they underflow: it rounds up by more.
        let squares: f64 = self.bounds.iter().map(|a| (a / greatest).powi(2)).sum();
        greatest * squares.sqrt() * (1.0 + (self.bounds.len() as f64 + 8.0) * f64::EPSILON)
    }

    /// `‖z‖_K`; `z` has one number for each coordinate.
    pub fn norm_of(&self, z: &[f64]) -> f64 {
        let mut sums = vec![0.0; self.bounds.len()];
        for (block, value) in self.members.iter().zip(z) {
            sums[*block] += value.abs();
        }
        let ratios = sums.iter().zip(&self.bounds).map(|(sum, a)| sum / a);
        ratios.fold(0.0, f64::max)
    }

    /// Variances of the coordinates of a uniform point of the unit ball: `2a²/((k+1)(k+2))` in a block of k.
    pub fn variances(&self) -> Vec<f64> {
        let variance = |block: &usize| {
            let size = self.sizes[*block] as f64;
            2.0 * self.bounds[*block].powi(2) / ((size + 1.0) * (size + 2.0))
        };
        self.members.iter().map(variance).collect()
    }
}

impl Blocks {
    /// Variances `c_j = a²D/k` of a coordinate in a block of k, D coordinates in all: `Σ x_j²/c_j ≤ 1` for every row, and no other diagonal
    /// for which that holds has a smaller product (docs/proofs/mechanisms.md, "Gaussian objective perturbation"). Rounded up.
    pub fn metric(&self) -> Vec<f64> {
        let dim = self.dim() as f64;
        let variance = |block: &usize| {
            self.bounds[*block].powi(2) * (dim / self.sizes[*block] as f64) * (1.0 + 4.0 * f64::EPSILON)
        };
        self.members.iter().map(variance).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Blocks {
        Blocks::new(vec![3.0, 4.0], vec![1, 0, 1]).unwrap()
    }

    #[test]
    fn the_norm_is_that_of_the_longest_row() {
        let domain = RowDomain::Blocks(Arc::new(blocks()));
        assert!((5.0..5.0 + 1e-13).contains(&domain.norm()));
        assert_eq!(domain.blocks(None).unwrap().unwrap().dim(), 3);
        let whole = domain.blocks(Some(12.0)).unwrap().unwrap();
        assert_eq!(whole.members(), [1, 0, 1, 2]);
        assert_eq!(whole.sizes(), [1, 2, 1]);
        assert!((13.0..13.0 + 1e-13).contains(&whole.norm()));
        assert!(RowDomain::Ball(2.0).blocks(Some(1.0)).unwrap().is_none());
        let one = Blocks::new(vec![0.1], vec![0, 0]).unwrap();
        assert!(one.norm().to_bits() == 0.1_f64.to_bits());
        let wide = Blocks::new(vec![1e200, 1e-200], vec![0, 1]).unwrap();
        assert!(wide.norm() >= 1e200 && wide.norm() < 1.001e200);
    }

    #[test]
    fn gauge_and_variances() {
        assert!((blocks().norm_of(&[1.0, -1.5, -2.0]) - 0.75).abs() < 1e-15);
        assert!((blocks().norm_of(&[1.0, -3.0, -2.0]) - 1.0).abs() < 1e-15);
        let expected = [32.0 / 12.0, 18.0 / 6.0, 32.0 / 12.0];
        for (found, expected) in blocks().variances().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn the_metric_is_that_of_the_rows() {
        let metric = blocks().metric();
        let square = |x: [f64; 3]| -> f64 { x.iter().zip(&metric).map(|(x, c)| x * x / c).sum() };
        // The corners attain it, and its mean is the square of the norm.
        assert!((1.0 - 1e-14..=1.0).contains(&square([4.0, -3.0, 0.0])));
        assert!((1.0 - 1e-14..=1.0).contains(&square([0.0, 3.0, 4.0])));
        assert!((metric.iter().sum::<f64>() / 3.0 - 25.0).abs() < 1e-12);
    }

    #[test]
    fn what_lies_in_what() {
        let domain =
            |a, b, members: &[usize]| RowDomain::Blocks(Arc::new(Blocks::new(vec![a, b], members.to_vec()).unwrap()));
        let outer = domain(3.0, 4.0, &[0, 1]);
        assert!(outer.contains(&outer) && outer.contains(&domain(3.0, 3.5, &[0, 1])));
        assert!(!outer.contains(&domain(3.0, 4.5, &[0, 1])));
        assert!(!outer.contains(&domain(3.0, 4.0, &[1, 0])));
        assert!(!outer.contains(&RowDomain::Ball(0.1)));
        assert!(RowDomain::Ball(5.1).contains(&outer) && !RowDomain::Ball(4.9).contains(&outer));
        assert!(RowDomain::Ball(1.0).contains(&RowDomain::Ball(1.0)));
    }

    #[test]
    fn bad_blocks_are_refused() {
        for bound in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Blocks::new(vec![bound], vec![0]).is_err());
        }
        assert!(Blocks::new(vec![1.0], vec![1]).is_err());
        assert!(Blocks::new(vec![1.0, 1.0], vec![0]).is_err());
        assert!(Blocks::new(vec![], vec![]).is_err());
        let domain = RowDomain::Blocks(Arc::new(blocks()));
        assert!(domain.check_columns(3).is_ok() && domain.check_columns(4).is_err());
        assert!(RowDomain::Ball(1.0).check_columns(4).is_ok());
    }
}
