//! Public points that the bounds of a column are chosen from, and the values of it that stand apart.

use std::cmp::Ordering;

use crate::error::check;
use crate::{Error, Result};

/// Equidistant parts of a public range.
const PARTS: u32 = 32;
/// Powers of √2 below the greatest end of a public range.
const HALVINGS: i32 = 48;
/// Equidistant parts of a range that was found.
const FOUND_PARTS: u32 = 64;
/// Least and greatest power of 4 where no range is public.
const POWERS: std::ops::RangeInclusive<i32> = -20..=30;
/// Most points of one column.
const MOST_POINTS: usize = 4096;

/// Increasing points, of which the first and the last enclose every value, and atoms: values that do not count.
///
/// A value that many records share hides the others: half of a column may be 0, or a code for a missing answer. Bounds are those of the
/// rest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PublicPoints {
    points: Vec<f64>,
    atoms: Vec<f64>,
}

impl PublicPoints {
    /// Points in any order, each counted once, and atoms.
    pub(crate) fn new(mut points: Vec<f64>, atoms: Vec<f64>) -> Result<Self> {
        if let Some(&value) = points.iter().chain(&atoms).find(|v| !v.is_finite()) {
            return Err(Error::OutOfRange {
                name: "every point",
                rule: "finite",
                value,
            });
        }
        // Of -0 and 0 one is left.
        points.sort_unstable_by(f64::total_cmp);
        points.dedup_by(|a, b| a.partial_cmp(&b) == Some(Ordering::Equal));
        if !(2..=MOST_POINTS).contains(&points.len()) {
            return Err(Error::Unsupported(format!(
                "a column must have 2 to {MOST_POINTS} different points to choose bounds from, got {}",
                points.len()
            )));
        }
        let width = points[points.len() - 1] - points[0];
        check(width.is_finite(), "the width of a public range", "finite", width)?;
        Ok(Self { points, atoms })
    }

    /// Points of a public range: equidistant ones for a column that fills it, and powers of √2 of its greater end on both sides of 0, for a
    /// column that is far smaller.
    pub(crate) fn of_range(lower: f64, upper: f64, atoms: Vec<f64>) -> Result<Self> {
        let greatest = lower.abs().max(upper.abs());
        let mut points = equidistant(lower, upper, PARTS);
        points.push(0.0);
        for k in 0..HALVINGS {
            let power = greatest * root_power(-k);
            points.extend([power, -power]);
        }
        points.retain(|p| !(*p < lower || *p > upper));
        Self::new(points, atoms)
    }

    /// Equidistant points of a range that was found, on both sides of 0.
    pub(crate) fn of_found(lower: f64, upper: f64, atoms: Vec<f64>) -> Result<Self> {
        Self::new(equidistant(lower, upper, FOUND_PARTS), atoms)
    }

    /// Points for a column of which no range is public: powers of 4 from 2⁻⁴⁰ to 2⁶⁰ on both sides of 0. Values beyond the greatest count
    /// as the greatest. Few points leave little to chance: what they miss, a second choice finds.
    pub(crate) fn unbounded(atoms: Vec<f64>) -> Result<Self> {
        let powers = POWERS.map(|k| 4.0_f64.powi(k));
        let points = powers.flat_map(|p| [-p, p]).chain([0.0]).collect();
        Self::new(points, atoms)
    }

    /// The points, increasing.
    pub(crate) fn points(&self) -> &[f64] {
        &self.points
    }

    /// Number of cells between neighbouring points.
    pub(crate) fn n_cells(&self) -> usize {
        self.points.len() - 1
    }

    /// The range of values whose size is in this cell or below it, where points lie alike on both sides of 0.
    pub(crate) fn sizes_up_to(&self, cell: usize) -> [f64; 2] {
        let most = self.points[self.n_cells() / 2 + cell + 1];
        [-most, most]
    }

    /// Whether some values stand apart by the caller's choice.
    pub(crate) fn has_atoms(&self) -> bool {
        !self.atoms.is_empty()
    }

    /// Whether a value does not count: an atom, or missing.
    pub(crate) fn stands_apart(&self, value: f64) -> bool {
        value.is_nan() || self.atoms.contains(&value)
    }
}

/// Ends of equal parts of a range, the last one exactly.
fn equidistant(lower: f64, upper: f64, parts: u32) -> Vec<f64> {
    let width = upper - lower;
    let ends = (0..parts).map(|k| lower + width * (f64::from(k) / f64::from(parts)));
    ends.chain([upper]).collect()
}

/// A power of √2, whose even ones are exact.
fn root_power(k: i32) -> f64 {
    let root = if k.rem_euclid(2) == 1 {
        std::f64::consts::SQRT_2
    } else {
        1.0
    };
    root * 2.0_f64.powi(k.div_euclid(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_equidistant_points_and_powers_down_to_its_smallest_values() {
        let of = PublicPoints::of_range(0.0, 1000.0, vec![0.0]).unwrap();
        assert_eq!((of.points[0], of.points[of.n_cells()]), (0.0, 1000.0));
        for expected in [31.25, 500.0, 968.75, 1000.0 / 1024.0] {
            assert!(of.points.contains(&expected), "{expected}");
        }
        assert!(of.points.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(of.stands_apart(0.0) && of.stands_apart(f64::NAN) && !of.stands_apart(1.0));
        let negative = PublicPoints::of_range(-10.0, -2.0, vec![]).unwrap();
        assert_eq!((negative.points[0], negative.points[negative.n_cells()]), (-10.0, -2.0));
        assert!(!negative.stands_apart(-10.0) && !negative.points.contains(&0.0));
        let all = PublicPoints::unbounded(vec![]).unwrap();
        assert_eq!(all.points.len(), 103);
        assert_eq!(all.points[102].to_bits(), 2.0_f64.powi(60).to_bits());
        assert!(all.points.contains(&2.0_f64.powi(-40)));
    }

    #[test]
    fn a_range_that_was_found_has_equidistant_points_alone() {
        let found = PublicPoints::of_found(-16.0, 16.0, vec![0.0]).unwrap();
        assert_eq!((found.points[0], found.points[64]), (-16.0, 16.0));
        assert!(found.points.contains(&0.0) && found.points.contains(&-15.5));
        assert!(PublicPoints::of_found(1.0, 1.0, vec![]).is_err());
    }

    #[test]
    fn bad_points_are_refused() {
        assert!(PublicPoints::new(vec![1.0], vec![]).is_err());
        assert!(PublicPoints::new(vec![0.0, -0.0], vec![]).is_err());
        assert!(PublicPoints::new(vec![0.0, f64::NAN], vec![]).is_err());
        assert!(PublicPoints::new(vec![0.0, 1.0], vec![f64::INFINITY]).is_err());
        assert!(PublicPoints::of_range(-f64::MAX, f64::MAX, vec![]).is_err());
        assert!(PublicPoints::of_range(1.0, 1.0, vec![]).is_err());
        assert!(PublicPoints::of_range(2.0, 1.0, vec![]).is_err());
        assert!(PublicPoints::of_range(f64::NAN, 1.0, vec![]).is_err());
        assert!(PublicPoints::new((0..5000).map(f64::from).collect(), vec![]).is_err());
    }
}
