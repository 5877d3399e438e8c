//! A public grid of cells, and the cell of a point: the nearest level on every axis.

use crate::{Error, Result};

/// Most numbers that the centres of all cells may hold together: 256 MiB.
const MAX_NUMBERS: usize = 1 << 25;

/// One attribute: the columns that code it, and its public levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Columns of the rows.
    pub columns: Vec<usize>,
    /// Levels one after another, a number for each of the columns.
    pub levels: Vec<f64>,
}

/// The product of axes over the columns of the rows and of levels of the target. Holds no data.
#[derive(Debug, Clone)]
pub struct Grid {
    axes: Vec<Axis>,
    n_columns: usize,
    targets: Vec<f64>,
    n_cells: usize,
}

impl Grid {
    /// A grid over rows of `n_columns` numbers, without the intercept, and a target.
    pub fn new(axes: Vec<Axis>, n_columns: usize, targets: Vec<f64>) -> Result<Self> {
        let mut seen = vec![0_u32; n_columns];
        let mut n_cells = Some(targets.len());
        for (k, axis) in axes.iter().enumerate() {
            let width = axis.columns.len();
            if width == 0 || axis.levels.is_empty() || !axis.levels.len().is_multiple_of(width) {
                return Err(Error::Unsupported(format!(
                    "every axis must have at least one column, and levels with one number for each column, got {width} columns and {} numbers in axis {k}",
                    axis.levels.len()
                )));
            }
            for column in &axis.columns {
                *seen.get_mut(*column).ok_or_else(|| {
                    Error::Unsupported(format!(
                        "an axis must name columns of X by indices below {n_columns}, got column {column} in axis {k}"
                    ))
                })? += 1;
            }
            n_cells = n_cells.and_then(|n| n.checked_mul(axis.levels.len() / width));
        }
        if let Some(column) = seen.iter().position(|count| *count != 1) {
            return Err(Error::Unsupported(format!(
                "every column of X must be in exactly one axis, got column {column} in {} axes",
                seen[column]
            )));
        }
        let levels = axes.iter().flat_map(|axis| &axis.levels).chain(&targets);
        if let Some(&value) = levels.into_iter().find(|v| !v.is_finite()) {
            return Err(Error::OutOfRange {
                name: "every level",
                rule: "finite",
                value,
            });
        }
        let limit = MAX_NUMBERS / (n_columns + 1);
        match n_cells {
            Some(n_cells) if n_cells > 0 && n_cells <= limit => Ok(Self {
                axes,
                n_columns,
                targets,
                n_cells,
            }),
            Some(0) => Err(Error::Unsupported(
                "the target must have at least one level, got none".into(),
            )),
            n_cells => Err(Error::Unsupported(format!(
                "the number of cells must be at most {limit} for {n_columns} columns, got {} (use fewer levels)",
                n_cells.map_or("more than 2^63".into(), |n| n.to_string())
            ))),
        }
    }

    /// Number of cells.
    pub fn n_cells(&self) -> usize {
        self.n_cells
    }

    /// Number of columns, without the intercept.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The cell of a record: that of its nearest level on each axis, the first of several.
    pub(crate) fn cell(&self, row: &[f64], target: f64) -> usize {
        let mut cell = nearest(&self.targets, 1, |_| target);
        for axis in &self.axes {
            let width = axis.columns.len();
            let level = nearest(&axis.levels, width, |j| row[axis.columns[j]]);
            cell = cell * (axis.levels.len() / width) + level;
        }
        cell
    }

    /// Writes the centre of a cell to `row` and returns its target.
    pub fn center(&self, cell: usize, row: &mut [f64]) -> f64 {
        let mut rest = cell;
        for axis in self.axes.iter().rev() {
            let width = axis.columns.len();
            let count = axis.levels.len() / width;
            let level = &axis.levels[rest % count * width..][..width];
            for (column, value) in axis.columns.iter().zip(level) {
                row[*column] = *value;
            }
            rest /= count;
        }
        self.targets[rest]
    }
}

/// Points beyond this many times the size of the levels are moved nearer: the squares of their distances would round to the same
/// number, or to infinity.
const FAR: f64 = (1_u32 << 20) as f64;

/// Index of the level nearest to a point given coordinate by coordinate.
fn nearest(levels: &[f64], width: usize, point: impl Fn(usize) -> f64) -> usize {
    let greater = |a: f64, b: f64| if b.abs() > a { b.abs() } else { a };
    let reach = FAR * levels.iter().copied().fold(0.0, greater);
    let size = (0..width).map(&point).fold(0.0, greater);
    // Towards the origin: for far points it is the direction that says which level is nearest.
    let shrink = if size > reach { reach / size } else { 1.0 };
    let (mut best, mut least) = (0, f64::INFINITY);
    for (k, level) in levels.chunks_exact(width).enumerate() {
        let coordinates = level.iter().enumerate();
        let square: f64 = coordinates
            .map(|(j, v)| point(j) * shrink - v)
            // Not a power, whose rounding is not fixed: the cell of a record is the same on every machine.
            .map(|gap| gap * gap)
            .sum();
        if square < least {
            (best, least) = (k, square);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(columns: &[usize], levels: &[f64]) -> Axis {
        Axis {
            columns: columns.to_vec(),
            levels: levels.to_vec(),
        }
    }

    #[test]
    fn the_centre_of_a_cell_lies_in_it() {
        let axes = vec![
            axis(&[2, 0], &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]),
            axis(&[1], &[-0.5, 0.0, 0.25, 0.5]),
        ];
        let grid = Grid::new(axes, 3, vec![-1.0, 1.0]).unwrap();
        assert_eq!(grid.n_cells(), 24);
        let mut row = [0.0; 3];
        for cell in 0..24 {
            let target = grid.center(cell, &mut row);
            assert_eq!(grid.cell(&row, target), cell);
        }
        // Beyond the last level, and between two.
        assert_eq!(grid.cell(&[0.1, 9.0, 0.8], -7.0), grid.cell(&[0.0, 0.5, 1.0], -1.0));
    }

    #[test]
    fn points_far_beyond_the_grid_go_to_its_end() {
        let bins: Vec<f64> = (0..10).map(|i| f64::from(i) / 10.0 - 0.45).collect();
        for size in [1.0, 1e5, 1e17, 1e200, f64::MAX] {
            assert_eq!(nearest(&bins, 1, |_| size), 9);
            assert_eq!(nearest(&bins, 1, |_| -size), 0);
        }
        // The reference category, and two others: the greater coordinate decides.
        let levels = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        for size in [4.0, 1e17, 1e200] {
            assert_eq!(nearest(&levels, 2, |j| size * [1.0, 0.8][j]), 1);
            assert_eq!(nearest(&levels, 2, |j| size * [0.8, 1.0][j]), 2);
            assert_eq!(nearest(&levels, 2, |_| -size), 0);
        }
        assert_eq!(nearest(&[0.0], 1, |_| 1e300), 0);
    }

    #[test]
    fn bad_grids_are_refused() {
        let refusal = |axes, n_columns, targets| Grid::new(axes, n_columns, targets).unwrap_err().to_string();
        let one = || axis(&[0], &[0.0, 1.0]);
        for (message, broken) in [
            (
                "exactly one axis, got column 1 in 0",
                refusal(vec![one()], 2, vec![0.0]),
            ),
            (
                "exactly one axis, got column 0 in 2",
                refusal(vec![one(), one()], 1, vec![0.0]),
            ),
            (
                "got column 3 in axis 0",
                refusal(vec![axis(&[3], &[0.0])], 1, vec![0.0]),
            ),
            (
                "levels with one number for each column",
                refusal(vec![axis(&[0, 1], &[0.0])], 2, vec![0.0]),
            ),
            ("at least one level", refusal(vec![one()], 1, vec![])),
            ("must be finite", refusal(vec![axis(&[0], &[f64::NAN])], 1, vec![0.0])),
        ] {
            assert!(broken.contains(message), "{broken}");
        }
        let wide = || (0..64).map(|c| axis(&[c], &[0.0, 1.0])).collect::<Vec<_>>();
        assert!(refusal(wide(), 64, vec![0.0]).contains("got more than 2^63"));
        assert!(refusal(wide()[..40].to_vec(), 40, vec![0.0]).contains("at most 818400 for 40 columns"));
    }
}
