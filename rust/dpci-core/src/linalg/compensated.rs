//! Sums of many vectors whose rounding does not grow with their number.

use super::doubled::two_sum;
use crate::exec::BLOCK;

/// A sum of vectors, with what each addition loses summed beside it (Neumaier 1974).
///
/// Of `k` vectors, in any number of merged parts, entry `j` comes out within `ε/2·|Σ vⱼ| + (kε)²·Σ|vⱼ|` (Ogita, Rump & Oishi 2005,
/// Proposition 4.5, with room for the merging).
#[derive(Debug, Clone, Default)]
pub struct CompensatedSum {
    high: Vec<f64>,
    low: Vec<f64>,
}

impl CompensatedSum {
    /// Adds a vector; the first one sets the length.
    pub fn add(&mut self, terms: &[f64]) {
        self.high.resize(terms.len(), 0.0);
        self.low.resize(terms.len(), 0.0);
        for ((high, low), term) in self.high.iter_mut().zip(&mut self.low).zip(terms) {
            let (sum, lost) = two_sum(*high, *term);
            *high = sum;
            *low += lost;
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        if !other.is_empty() {
            self.add(&other.high);
            for (low, lost) in self.low.iter_mut().zip(&other.low) {
                *low += lost;
            }
        }
    }

    /// Adds the entries of another sum after its own.
    pub fn append(&mut self, other: &Self) {
        self.high.extend_from_slice(&other.high);
        self.low.extend_from_slice(&other.low);
    }

    /// Number of entries; 0 before the first vector.
    pub fn len(&self) -> usize {
        self.high.len()
    }

    /// Whether no vector was added.
    pub fn is_empty(&self) -> bool {
        self.high.is_empty()
    }

    /// The sums as they were rounded, and what was lost.
    pub fn halves(&self) -> [&[f64]; 2] {
        [&self.high, &self.low]
    }

    /// The sum of these [`CompensatedSum::halves`]; `None` where their lengths differ.
    pub fn from_halves(high: &[f64], low: &[f64]) -> Option<Self> {
        (high.len() == low.len()).then(|| Self {
            high: high.to_vec(),
            low: low.to_vec(),
        })
    }

    /// The sum.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        self.high.iter().zip(&self.low).map(|(h, l)| h + l)
    }
}

/// Roundings that one term of a gradient passes through beside those of its slope: multiplicity, scale and product, the additions in
/// its block, compensated sum and quotient.
pub const GRADIENT_ROUNDINGS: usize = BLOCK + 8;

/// Relative rounding of a sum over `n_rows` rows whose terms pass `roundings` roundings each and are then summed with compensation:
/// in terms of the sum of the sizes of the terms (docs/certificates.md, "Sums over rows").
pub fn sum_rounding(roundings: usize, n_rows: usize) -> f64 {
    let second_order = (n_rows as f64 * f64::EPSILON).powi(2);
    // A millionth covers the higher powers of ε in the first term.
    roundings as f64 * 0.5 * f64::EPSILON * (1.0 + 1e-6) + second_order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cancels_is_not_lost() {
        let mut parts = [CompensatedSum::default(), CompensatedSum::default()];
        for part in &mut parts {
            for k in 0..1000 {
                part.add(&[1e16 * f64::from(k % 2 * 2 - 1), 0.1]);
                part.add(&[1.0, 0.1]);
            }
        }
        let [mut total, other] = parts;
        total.merge(&other);
        total.merge(&CompensatedSum::default());
        let values: Vec<f64> = total.values().collect();
        assert!((values[0] - 2000.0).abs() < f64::EPSILON);
        assert!((values[1] - 400.0).abs() <= 400.0 * f64::EPSILON);
    }
}
