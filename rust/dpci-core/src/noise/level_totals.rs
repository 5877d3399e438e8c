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
    /// Sum of the weights.
    pub weight: f64,
    /// Sums of the squares of each column but the constant.
    pub squares: Vec<f64>,
    /// Sum of each number; 0 for other columns.
    pub numbers: Vec<f64>,
}

impl LevelTotals {
    /// How many times finer the entries that cells tell are sealed than the others: a power of 2. They have far less noise.
    pub const FINER: f64 = 256.0;

    /// The cells of rows whose last coordinate is the constant, with noise of this rate.
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

    getters! { self =>
        /// Rows with their constant.
        pub rows: &Blocks = &self.rows;
        /// Columns of each block but the constant.
        pub columns: &[Vec<usize>] = &self.columns;
        /// 1/rate.
        pub scale: f64 = 1.0 / self.rate;
        /// The law of the cells' noise.
        pub law: Result<ShapedLaplace> = ShapedLaplace::new(Arc::clone(&self.cells), self.rate);
        /// Number of cells.
        pub n_cells: usize = self.cells.dim();
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
    pub fn weight_std_dev(&self) -> f64 {
        let sizes = self.cells.sizes().iter().enumerate();
        let precision: f64 = sizes
            .map(|(b, size)| 1.0 / (*size as f64 * self.std_dev(b).powi(2)))
            .sum();
        precision.sqrt().recip()
    }

    /// The sums that cells tell.
    pub fn totals(&self, cells: &[f64]) -> Totals {
        let constant = self.rows.dim() - 1;
        let mut totals = Totals {
            weight: 0.0,
            squares: vec![0.0; constant],
            numbers: vec![0.0; constant],
        };
        for ((of_block, columns), share) in self.blocks(cells).zip(&self.columns).zip(self.shares()) {
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
    pub fn reach(&self, j: usize) -> f64 {
        self.rows.bounds()[self.rows.members()[j]]
    }

    /// Multiplies the entries that cells tell, and leaves the others.
    pub(crate) fn scale_told(&self, matrix: &mut [f64], factor: f64) {
        let (dim, constant) = (self.rows.dim(), self.rows.dim() - 1);
        for entry in matrix.iter_mut().step_by(dim + 1) {
            *entry *= factor;
        }
        for columns in &self.columns {
            if let [j] = columns[..] {
                matrix[j * dim + constant] *= factor;
                matrix[constant * dim + j] *= factor;
            }
        }
    }

    /// Greatest distance, in isometric coordinates, of the entries of a draw for a release from those of the ideal one.
    ///
    /// In one block the errors of the cells are at most E in the sum of sizes. A sum of them, and the mean over blocks, add at most as many
    /// roundings as there are cells, and 9, each below E/20. An entry is the product of two bounds times such a sum, with factors of at most
    /// 1; beside the constant it counts twice.
    pub fn error_bound(&self) -> Result<f64> {
        let cells = self.cells.dim() as f64;
        let in_block = self.law()?.error_bound() / self.cells.norm();
        let scale = self.reach(self.rows.dim() - 1);
        let of_blocks = self.columns.iter().map(|columns| {
            let bound = self.reach(columns[0]);
            let beside = if columns.len() == 1 { 2.0 } else { 0.0 };
            bound * bound * (bound * bound + beside * scale * scale)
        });
        let gain = (of_blocks.sum::<f64>() + scale.powi(4)).sqrt();
        Ok(in_block * (1.0 + (cells + 9.0) / 20.0) * gain * (1.0 + 1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::vector;
    use crate::noise::SimulationGenerator;
    use crate::noise::bounded;
    use crate::noise::testing::{assert_cdf, assert_mean};

    const RATE: f64 = 3.0;

    /// Two levels, a number, three levels and the constant, in mixed order.
    fn levels() -> LevelTotals {
        let blocks = Blocks::new(vec![0.5, 2.0, 1.5, 3.0], vec![0, 2, 1, 2, 0, 2, 3]).unwrap();
        LevelTotals::new(Arc::new(blocks), RATE).unwrap()
    }

    /// The cells of a record of weight 1.
    fn cells(levels: &LevelTotals, row: &[f64]) -> Vec<f64> {
        let mut found = Vec::new();
        for columns in levels.columns() {
            let u: Vec<f64> = columns.iter().map(|j| row[*j] / levels.reach(*j)).collect();
            if let [u] = u[..] {
                found.extend([0.25 * (1.0 - u).powi(2), 0.5 * (1.0 - u * u), 0.25 * (1.0 + u).powi(2)]);
            } else {
                let squares: Vec<f64> = u.iter().map(|u| u * u).collect();
                found.extend(&squares);
                found.push(1.0 - squares.iter().sum::<f64>());
            }
        }
        found
    }

    #[test]
    fn cells_of_a_record_are_not_negative_and_sum_to_its_weight() {
        let levels = levels();
        let rows = [
            [0.5, 0.0, -1.3, 1.5, 0.0, 0.0, 3.0],
            [0.0, 0.0, 2.0, 0.0, -0.5, 1.5, 3.0],
            [0.2, 0.5, 0.0, -0.5, -0.3, 0.5, 3.0],
        ];
        for row in rows {
            let cells = cells(&levels, &row);
            assert!(cells.iter().all(|c| *c >= 0.0), "{cells:?}");
            for block in levels.blocks(&cells) {
                assert!((block.iter().sum::<f64>() - 1.0).abs() < 1e-15);
            }
            assert!((levels.cells.norm_of(&cells) - 1.0).abs() < 1e-15);
            // They tell the entries of x xᵀ, and nothing else.
            let mut matrix = vec![f64::NAN; 49];
            levels.put(&cells, &mut matrix);
            for i in 0..7 {
                for j in 0..7 {
                    let found = matrix[7 * i + j];
                    let told = i == j || (i.max(j), i.min(j)) == (6, 2);
                    assert_eq!(told, !found.is_nan(), "{i} {j}");
                    assert!(!told || (found - row[i] * row[j]).abs() < 1e-14);
                }
            }
            let totals = levels.totals(&cells);
            assert_eq!(levels.read(&matrix).numbers.len(), 6);
            for (a, b) in levels.read(&matrix).squares.iter().zip(&totals.squares) {
                assert!((a - b).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn neighbours_differ_by_two_weights_at_most_and_that_is_attained() {
        let levels = levels();
        let [one, other] = [
            [0.5, 0.0, -2.0, 1.5, 0.0, 0.0, 3.0],
            [0.0, 1.5, 2.0, 0.0, 0.5, 0.0, 3.0],
        ]
        .map(|row| cells(&levels, &row));
        let gap: Vec<f64> = one.iter().zip(&other).map(|(a, b)| a - b).collect();
        assert!((levels.cells.norm_of(&gap) - 2.0).abs() < 1e-15);
    }

    #[test]
    fn the_noise_has_the_shape_of_the_cells_and_the_stated_deviations() {
        let levels = levels();
        let law = levels.law().unwrap();
        let mut generator = SimulationGenerator::new(91, 0);
        let draws: Vec<Vec<f64>> = (0..20_000)
            .map(|_| law.sample_bounded(&mut generator).unwrap())
            .collect();
        let norms = draws.iter().map(|draw| levels.cells.norm_of(draw)).collect();
        assert_eq!(levels.n_cells(), 10);
        assert_cdf(norms, |r| statrs::function::gamma::gamma_lr(10.0, RATE * r));
        for (b, columns) in levels.columns().iter().enumerate() {
            let squares: Vec<f64> = draws
                .iter()
                .map(|draw| (levels.blocks(draw).nth(b).unwrap()[0] / levels.std_dev(b)).powi(2))
                .collect();
            assert_mean(&squares, 1.0);
            assert!(columns.len() == [2, 1, 3][b]);
        }
        let weights: Vec<f64> = draws
            .iter()
            .map(|draw| (levels.totals(draw).weight / levels.weight_std_dev()).powi(2))
            .collect();
        assert_mean(&weights, 1.0);
    }

    #[test]
    fn errors_of_a_draw_are_within_their_bound() {
        // Errors whose sizes sum to 1 in each block are greatest where one cell has them: the map to isometric coordinates is within its gain.
        let levels = levels();
        let law = levels.law().unwrap();
        let in_block = law.error_bound() / levels.cells.norm();
        let gain = levels.error_bound().unwrap() / in_block / (1.0 + 19.0 / 20.0);
        let (mut worst, mut rest) = (0.0_f64, 0);
        for pattern in 0..8 * 6 * 6 {
            let mut at = pattern;
            let mut cells = vec![0.0; 10];
            for (first, size) in [(0, 3), (3, 3), (6, 4)] {
                cells[first + at % size] = if at / size % 2 == 0 { 1.0 } else { -1.0 };
                at /= 2 * size;
            }
            let mut matrix = vec![0.0; 49];
            levels.put(&cells, &mut matrix);
            worst = worst.max(vector::norm(&matrix));
            // What is told is what is scaled.
            let told: Vec<f64> = matrix.iter().map(|v| 4.0 * v).collect();
            levels.scale_told(&mut matrix, 4.0);
            rest += usize::from(matrix != told);
        }
        assert!(worst <= gain && worst > 0.8 * gain && rest == 0, "{worst} {gain}");
        // A rounding of the greatest size that passes is below a twentieth of the error.
        let greatest = 1.001 * bounded::sum_tail(11) / RATE;
        assert!(greatest * bounded::U < in_block / 20.0);
    }

    #[test]
    fn bad_rates_are_refused() {
        let blocks = Arc::new(Blocks::new(vec![1.0, 1.0], vec![0, 1]).unwrap());
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(LevelTotals::new(Arc::clone(&blocks), rate).is_err());
        }
        let alone = Arc::new(Blocks::new(vec![1.0], vec![0]).unwrap());
        assert!(LevelTotals::new(alone, 1.0).is_err());
    }
}
