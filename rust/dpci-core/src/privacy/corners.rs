//! The corners of Gaussian objective perturbation: fixed shifts of the noise, at one of which the privacy loss of the coefficients is greatest.

use super::{Neighbors, ObjectiveProfile};
use crate::loss::Loss;

/// Property of a loss on which the corners depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slopes {
    /// One linear predictor, whose slope never changes sign for a given target.
    OneSigned,
    /// One linear predictor.
    AnySign,
    /// The multinomial loss of so many classes.
    Classes(usize),
}

impl Slopes {
    /// Reads the property of a loss.
    pub fn of(loss: &dyn Loss) -> Self {
        match (loss.n_predictors(), loss.one_signed()) {
            (1, true) => Self::OneSigned,
            (1, false) => Self::AnySign,
            (others, _) => Self::Classes(others + 1),
        }
    }
}

/// How many corners there are at most of one length, and the square of that length in units of LR.
pub(super) type Corner = (f64, f64);

impl ObjectiveProfile {
    /// The corners that bound δ(ε), where `sum` adds up what each set of corners contributes.
    ///
    /// A shift is `a x` (add/remove) or `a x - a' x'` (replace-one) with slopes of size at most L: for a loss whose slope has one sign for
    /// each target the corners are 0, LR, LR and 2LR (0 and LR), else `±LRx ± LRx'` (`±LRx`). Those of several classes are in
    /// docs/proofs/multinomial.md, "Gaussian objective perturbation".
    pub(super) fn corners(&self, sum: impl Fn(&[Corner]) -> f64) -> Vec<Corner> {
        let greater = |a: Vec<Corner>, b: Vec<Corner>| if sum(&a) > sum(&b) { a } else { b };
        match (self.neighbors, self.slopes) {
            (Neighbors::AddRemove, Slopes::OneSigned) => vec![(1.0, 1.0), (1.0, 0.0)],
            (Neighbors::AddRemove, Slopes::AnySign) => vec![(2.0, 1.0)],
            (Neighbors::ReplaceOne, Slopes::OneSigned) => {
                // One corner with both slopes at L, or two with less.
                let others = [(2.0, 1.0), (1.0, 0.0)];
                let [one, two] = [(1.0, 4.0), (2.0, self.pair.powi(2))];
                let longest = if sum(&[one]) < sum(&[two]) { one } else { two };
                [longest].into_iter().chain(others).collect()
            }
            // The worst angle between the two records makes the squares of their sum and difference 0 and 4, or 2 and 2.
            (Neighbors::ReplaceOne, Slopes::AnySign) if self.single => {
                greater(vec![(2.0, 4.0), (2.0, 0.0)], vec![(4.0, 2.0)])
            }
            (Neighbors::ReplaceOne, Slopes::AnySign) => corners_at_any_angle(sum),
            (Neighbors::AddRemove, Slopes::Classes(classes)) => {
                let others = classes as f64 - 2.0;
                vec![(others, 1.0), (1.0, 0.5), (1.0, 0.0)]
            }
            (Neighbors::ReplaceOne, Slopes::Classes(classes)) => {
                let others = classes as f64 - 2.0;
                vec![
                    (others, 4.0),
                    (others * (others - 1.0), 3.0),
                    (2.0 * others, 2.5),
                    (1.0, 2.0),
                    (2.0 * others, 1.0),
                    (2.0, 0.5),
                    (1.0, 0.0),
                ]
            }
        }
    }
}

/// Mean excess of one corner below which [`corners_at_any_angle`] has its bound from a chord: `φ(0)`, that at ε = 1/2 and μ = 1, rounded down.
const GREATEST_EXCESS: f64 = 0.3989;

/// Corners whose mean excess is at least that of the four shifts of squares w, w, 4 - w and 4 - w, whatever w
/// (docs/proofs/persons.md, "The worst angle").
///
/// Their mean square is 2, so the concave envelope of the mean excess there bounds them: the greatest chord between 0 and a square from 2 to 4.
fn corners_at_any_angle(sum: impl Fn(&[Corner]) -> f64) -> Vec<Corner> {
    if sum(&[(1.0, 4.0)]) > GREATEST_EXCESS {
        // More than 1 in all, which any bound may be.
        return vec![(4.0, 4.0)];
    }
    let chord = |square: f64| vec![(8.0 / square, square), (4.0 - 8.0 / square, 0.0)];
    let height = |square: f64| sum(&chord(square));
    // The height has one maximum: by golden sections, after which its error is of second order and below 1e-15, or at an end.
    let (mut low, mut high) = (2.0, 4.0);
    for _ in 0..40 {
        let inner = GOLDEN * (high - low);
        if height(high - inner) > height(low + inner) {
            high = low + inner;
        } else {
            low = high - inner;
        }
    }
    let points = [2.0, 4.0, f64::midpoint(low, high)];
    let greatest = points.into_iter().max_by(|a, b| height(*a).total_cmp(&height(*b)));
    chord(greatest.unwrap_or(4.0))
}

/// `(√5 - 1)/2`.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

#[cfg(test)]
mod tests {
    use super::super::{DataBounds, Neighbors};
    use super::*;

    /// `e_k - e_y` in the coordinates of the classes but the reference, times x, on two columns.
    fn gradient(class: usize, target: usize, x: [f64; 2], classes: usize) -> Vec<f64> {
        (1..classes)
            .flat_map(|k| {
                let r = f64::from(u8::from(k == class)) - f64::from(u8::from(k == target));
                x.map(|entry| r * entry)
            })
            .collect()
    }

    /// Squares of the lengths of the corners in units of LR, L = √2, the longest first.
    fn lengths(records: &[(usize, [f64; 2])], classes: usize) -> Vec<f64> {
        let all = |(target, x): (usize, [f64; 2])| (0..classes).map(move |class| gradient(class, target, x, classes));
        let mut found: Vec<f64> = Vec::new();
        for first in all(records[0]) {
            let Some(second) = records.get(1) else {
                found.push(0.5 * first.iter().map(|g| g * g).sum::<f64>());
                continue;
            };
            for other in all(*second) {
                let square = first.iter().zip(&other).map(|(a, b)| (a - b).powi(2));
                found.push(0.5 * square.sum::<f64>());
            }
        }
        found.sort_by(|a, b| b.total_cmp(a));
        found
    }

    /// The corners of a profile one by one, the longest first.
    fn claimed(neighbors: Neighbors, classes: usize) -> Vec<f64> {
        let bounds = DataBounds::new(1.0, 1.0, neighbors, 2 * (classes - 1)).unwrap();
        let profile = ObjectiveProfile::new(&bounds, Slopes::Classes(classes), 0.0, 1.0).unwrap();
        let corners = profile.corners(|_| 0.0).into_iter();
        corners
            .flat_map(|(count, square)| (0..).take_while(move |i| f64::from(*i) < count).map(move |_| square))
            .collect()
    }

    /// The logistic loss has the slope bound 1, and L is √2 where the classes are counted.
    #[test]
    fn of_two_classes_the_corners_are_those_of_the_logistic_loss() {
        for neighbors in [Neighbors::ReplaceOne, Neighbors::AddRemove] {
            let bounds = DataBounds::new(1.0, 1.0, neighbors, 3).unwrap();
            let profile = |slopes| ObjectiveProfile::new(&bounds, slopes, 0.25, 1.0).unwrap();
            let (several, logistic) = (profile(Slopes::Classes(2)), profile(Slopes::OneSigned));
            for (epsilon, ratio, mu) in [(1.0, 0.2, 0.1), (0.3, 0.05, 0.0), (3.0, 1.0, 0.4)] {
                let found = several.delta(epsilon, 2.0_f64.sqrt() * ratio, mu);
                let expected = logistic.delta(epsilon, ratio, mu);
                assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
                // Of the cases of a maximum the classes count more precisely.
                let found = several.rdp(8.0, 2.0_f64.sqrt() * ratio, mu).unwrap();
                let expected = logistic.rdp(8.0, ratio, mu).unwrap();
                assert!(
                    found <= expected * (1.0 + 1e-12) && found > 0.5 * expected,
                    "{found} {expected}"
                );
            }
        }
    }

    #[test]
    fn no_two_records_of_several_classes_have_longer_corners() {
        for classes in 3..=6 {
            for neighbors in [Neighbors::ReplaceOne, Neighbors::AddRemove] {
                let bound = claimed(neighbors, classes);
                let mut greatest = vec![0.0_f64; bound.len()];
                for draw in 0..500 {
                    let at = |i: usize| ((draw * 7 + i) as f64 * 0.737).sin();
                    // Rows at all angles, two in three of them of norm 1, some opposite ones.
                    let row = |i: usize| {
                        let length = if draw % 3 == 0 { at(i).abs() } else { 1.0 };
                        let angle = if draw % 5 == 0 { 0.0 } else { 9.0 * at(i + 1) };
                        [length * angle.cos(), length * angle.sin()]
                    };
                    let (x, z) = (row(0), row(3));
                    let z = if draw % 10 == 5 { x.map(|x| -x) } else { z };
                    for y in 0..classes {
                        let others = if neighbors == Neighbors::ReplaceOne { classes } else { 1 };
                        for v in 0..others {
                            let records = [(y, x), (v, z)];
                            let found = lengths(&records[..others.min(2)], classes);
                            assert_eq!(found.len(), bound.len());
                            for (i, (found, bound)) in found.iter().zip(&bound).enumerate() {
                                assert!(*found <= bound + 1e-12, "{classes} {y} {v}: {found} {bound}");
                                greatest[i] = greatest[i].max(*found);
                            }
                        }
                    }
                }
                // Attained, all at once: by opposite rows of one class but the reference.
                for (found, bound) in greatest.iter().zip(&bound) {
                    assert!((found - bound).abs() < 1e-12, "{classes}: {greatest:?} {bound:?}");
                }
            }
        }
    }
}
