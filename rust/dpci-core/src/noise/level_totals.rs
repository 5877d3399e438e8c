//! Noise in the totals of levels: on the diagonal of a sum `Σ w x xᵀ`, and where numbers meet the constant (docs/proofs/intervals.md,
//! "Level totals").

use std::sync::Arc;

use super::{Law, ShapedLaplace, check_positive};
use crate::Result;
use crate::row_domain::Blocks;

/// How a record's weight w is divided among the cells of each block, and the Laplace noise in the sums of all cells, in their shape.
///
/// A block of several columns has a cell of weight `w(x_j/a)²` for each, and one for the rest. A number u = x/a has three, of weights
/// `w(1-u)²/4`, `w(1-u²)/2` and `w(1+u)²/4`. Cells of a block are not negative and sum to w, so that sums of neighbours differ by at most
/// the weights of the records that differ in the norm of this noise, whatever the number of blocks is.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelTotals {
    /// Rows with their constant, the last coordinate.
    rows: Arc<Blocks>,
    /// Columns of each block but the constant.
    columns: Vec<Vec<usize>>,
    cells: Arc<Blocks>,
    rate: f64,
}

/// Sums that cells tell: entries of `Σ w x xᵀ` over the bounds of their columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// Of the weights.
    pub weight: f64,
    /// Of the squares of each column but the constant.
    pub squares: Vec<f64>,
    /// Of each number; 0 for other columns.
    pub numbers: Vec<f64>,
}

impl LevelTotals {
    /// The cells of rows whose last coordinate is the constant, with noise of this rate.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`] unless the rate is finite and positive; [`crate::Error::Unsupported`] for rows of a constant alone.
    pub fn new(rows: Arc<Blocks>, rate: f64) -> Result<Self> {
        check_positive("rate", rate)?;
        let constant = rows.dim() - 1;
        let mut columns = vec![Vec::new(); rows.bounds().len()];
        for (j, block) in rows.members()[..constant].iter().enumerate() {
            columns[*block].push(j);
        }
        columns.retain(|members| !members.is_empty());
        let sizes = columns
            .iter()
            .map(|members| if members.len() > 1 { members.len() + 1 } else { 3 });
        let members = sizes.enumerate().flat_map(|(b, size)| vec![b; size]).collect();
        let cells = Arc::new(Blocks::new(vec![1.0; columns.len()], members)?);
        Ok(Self {
            rows,
            columns,
            cells,
            rate,
        })
    }

    /// Rows with their constant.
    #[must_use]
    pub fn rows(&self) -> &Blocks {
        &self.rows
    }

    /// Columns of each block but the constant.
    #[must_use]
    pub fn columns(&self) -> &[Vec<usize>] {
        &self.columns
    }

    /// 1/rate.
    #[must_use]
    pub fn scale(&self) -> f64 {
        1.0 / self.rate
    }

    /// The law of the cells' noise.
    ///
    /// # Errors
    /// As [`ShapedLaplace::new`].
    pub fn law(&self) -> Result<ShapedLaplace> {
        ShapedLaplace::new(Arc::clone(&self.cells), self.rate)
    }

    /// Number of cells.
    #[must_use]
    pub fn n_cells(&self) -> usize {
        self.cells.dim()
    }

    /// The cells of each block, out of one number for each cell.
    pub fn blocks<'a>(&self, cells: &'a [f64]) -> impl Iterator<Item = &'a [f64]> {
        let mut rest = cells;
        self.cells.sizes().iter().map(move |size| {
            let (first, others) = rest.split_at(*size);
            rest = others;
            first
        })
    }

    /// Standard deviation of the noise in a cell of a block.
    #[must_use]
    pub fn std_dev(&self, block: usize) -> f64 {
        let dim = self.cells.dim() as f64;
        let size = self.cells.sizes()[block] as f64;
        (2.0 * (dim + 1.0) * (dim + 2.0) / ((size + 1.0) * (size + 2.0))).sqrt() / self.rate
    }

    /// Share of each block in the mean of the sums over blocks, by their precision.
    fn shares(&self) -> Vec<f64> {
        let sizes = self.cells.sizes().iter().enumerate();
        let precisions = sizes.map(|(b, size)| 1.0 / (*size as f64 * self.std_dev(b).powi(2)));
        let precisions: Vec<f64> = precisions.collect();
        let total: f64 = precisions.iter().sum();
        precisions.iter().map(|p| p / total).collect()
    }

    /// Standard deviation of the noise in the sum of the weights.
    #[must_use]
    pub fn weight_std_dev(&self) -> f64 {
        let sizes = self.cells.sizes().iter().enumerate();
        let precision: f64 = sizes
            .map(|(b, size)| 1.0 / (*size as f64 * self.std_dev(b).powi(2)))
            .sum();
        precision.sqrt().recip()
    }

    /// The sums that cells tell.
    #[must_use]
    pub fn totals(&self, cells: &[f64]) -> Totals {
        let constant = self.rows.dim() - 1;
        let mut totals = Totals {
            weight: 0.0,
            squares: vec![0.0; constant],
            numbers: vec![0.0; constant],
        };
        for ((of_block, columns), share) in
            self.blocks(cells).zip(&self.columns).zip(self.shares())
        {
            totals.weight += share * of_block.iter().sum::<f64>();
            if let ([j], [low, middle, high]) = (&columns[..], of_block) {
                totals.squares[*j] = low - middle + high;
                totals.numbers[*j] = high - low;
            } else {
                for (j, cell) in columns.iter().zip(of_block) {
                    totals.squares[*j] = *cell;
                }
            }
        }
        totals
    }

    /// Writes what cells tell of `Σ w x xᵀ` into its entries, and leaves the others.
    pub fn put(&self, cells: &[f64], matrix: &mut [f64]) {
        let (dim, constant) = (self.rows.dim(), self.rows.dim() - 1);
        let scale = self.reach(constant);
        let totals = self.totals(cells);
        for columns in &self.columns {
            for j in columns {
                let bound = self.reach(*j);
                matrix[j * dim + j] = bound * bound * totals.squares[*j];
                if columns.len() == 1 {
                    let entry = bound * scale * totals.numbers[*j];
                    (matrix[j * dim + constant], matrix[constant * dim + j]) = (entry, entry);
                }
            }
        }
        matrix[dim * dim - 1] = scale * scale * totals.weight;
    }

    /// The sums that a matrix `Σ w x xᵀ` tells.
    #[must_use]
    pub fn read(&self, matrix: &[f64]) -> Totals {
        let (dim, constant) = (self.rows.dim(), self.rows.dim() - 1);
        let scale = self.reach(constant);
        let square = |j: usize| matrix[j * dim + j] / self.reach(j).powi(2);
        let mut numbers = vec![0.0; constant];
        for columns in &self.columns {
            if let [j] = columns[..] {
                numbers[j] = matrix[j * dim + constant] / (self.reach(j) * scale);
            }
        }
        Totals {
            weight: square(constant),
            squares: (0..constant).map(square).collect(),
            numbers,
        }
    }

    /// Greatest entry of a row at this place.
    #[must_use]
    pub fn reach(&self, j: usize) -> f64 {
        self.rows.bounds()[self.rows.members()[j]]
    }

    /// Greatest distance, in isometric coordinates, of the entries of a draw for a release from those of the ideal one.
    ///
    /// An entry is at most the greatest product of two bounds times a sum of cells with factors of at most 1, and of the entries of one
    /// number or level that off the diagonal counts twice. Each entry has at most as many roundings as there are cells, and 8.
    ///
    /// # Errors
    /// As [`Self::law`].
    pub fn error_bound(&self) -> Result<f64> {
        let cells = self.cells.dim() as f64;
        let greatest = self.rows.bounds().iter().fold(0.0_f64, |a, b| a.max(*b));
        let gain = greatest * greatest * (cells.sqrt() + 4.0);
        Ok(gain * (cells + 10.0) * self.law()?.error_bound())
    }
}
