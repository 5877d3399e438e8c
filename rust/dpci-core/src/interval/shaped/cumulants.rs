//! Cumulants of the noise of a contrast: exact, of any blocks.
//!
//! A sum over a uniform point of a block of k coordinates, `Σ x_j u_j`, has the moments `(2p)! k!/(k + 2p)!·h_p(x²)`, where `h_p` is the
//! complete homogeneous symmetric polynomial: times a number of law Gamma(k + 1) it is a sum of Laplace numbers, whose characteristic
//! function is `Π 1/(1 + x_j² t²)`. Blocks are independent given the radius, so their cumulants add up; the radius multiplies moments.

use crate::row_domain::Blocks;

/// Cumulants or moments of order 2, 4, 6 and 8 of a law that is symmetric about 0.
type Even = [f64; 4];

/// Cumulants of order 4, 6 and 8 of `r·Σ w_j u_j` over powers of its standard deviation; `r ~ Gamma(D + 1)`, u uniform in the blocks, and w
/// the standard deviations of the terms, whose squares sum to 1.
pub(super) fn standardised(weights: &[f64], blocks: &Blocks) -> [f64; 3] {
    let sizes = blocks.sizes();
    let mut powers = vec![[0.0; 4]; sizes.len()];
    for (weight, block) in weights.iter().zip(blocks.members()) {
        let size = sizes[*block] as f64;
        // The variance of a coordinate is 2/((k + 1)(k + 2)).
        let square = weight * weight * ((size + 1.0) * (size + 2.0) / 2.0);
        let mut power = 1.0;
        for sum in &mut powers[*block] {
            power *= square;
            *sum += power;
        }
    }
    let mut total = [0.0; 4];
    for (sums, size) in powers.iter().zip(sizes) {
        for (sum, cumulant) in total.iter_mut().zip(of_block(sums, *size as f64)) {
            *sum += cumulant;
        }
    }
    let dim = blocks.dim() as f64;
    let mut radius = 1.0;
    let square = (dim + 1.0) * (dim + 2.0);
    let mut noise = moments(&total);
    for (p, moment) in noise.iter_mut().enumerate() {
        let order = 2.0 * p as f64;
        radius *= (dim + order + 1.0) * (dim + order + 2.0) / square;
        *moment *= radius;
    }
    let [_, fourth, sixth, eighth] = cumulants(&noise);
    [fourth, sixth, eighth]
}

/// Cumulants of a sum over a block of `size` coordinates of weights with these sums of powers of squares.
fn of_block(powers: &Even, size: f64) -> Even {
    let mut symmetric = [1.0; 5];
    for p in 1..5 {
        let terms = (1..=p).map(|i| powers[i - 1] * symmetric[p - i]);
        symmetric[p] = terms.sum::<f64>() / p as f64;
    }
    let mut factor = 1.0;
    let mut found = [0.0; 4];
    for (p, moment) in found.iter_mut().enumerate() {
        let order = 2.0 * p as f64;
        factor *= (order + 1.0) / (size + order + 1.0) * ((order + 2.0) / (size + order + 2.0));
        *moment = factor * symmetric[p + 1];
    }
    cumulants(&found)
}

/// Cumulants of moments.
fn cumulants([m2, m4, m6, m8]: &Even) -> Even {
    let k4 = m4 - 3.0 * m2 * m2;
    let k6 = m6 - 5.0 * m2 * m4 - 10.0 * k4 * m2;
    let k8 = m8 - 7.0 * m2 * m6 - 35.0 * k4 * m4 - 21.0 * k6 * m2;
    [*m2, k4, k6, k8]
}

/// Moments of cumulants.
fn moments([k2, k4, k6, k8]: &Even) -> Even {
    let m4 = k4 + 3.0 * k2 * k2;
    let m6 = k6 + 5.0 * k2 * m4 + 10.0 * k4 * k2;
    let m8 = k8 + 7.0 * k2 * m6 + 35.0 * k4 * m4 + 21.0 * k6 * k2;
    [*k2, m4, m6, m8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: [f64; 3], expected: [f64; 3]) {
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() <= 1e-12 * e.abs().max(1.0), "{found:?} {expected:?}");
        }
    }

    #[test]
    fn one_block_is_a_sum_of_laplace_numbers() {
        // Independent Laplace numbers of variance w²: cumulants (2p)!/p·Σ (w²/2)^p.
        for weights in [vec![1.0], vec![0.6, -0.8], vec![0.5, 0.5, 0.0, -0.5, 0.5]] {
            let blocks = Blocks::new(vec![3.0], vec![0; weights.len()]).unwrap();
            let sum = |p: i32| weights.iter().map(|w: &f64| w.powi(2 * p)).sum::<f64>();
            let expected = [3.0 * sum(2), 30.0 * sum(3), 630.0 * sum(4)];
            near(standardised(&weights, &blocks), expected);
        }
    }

    #[test]
    fn a_coordinate_among_many_is_uniform() {
        let blocks = Blocks::new(vec![1.0; 400_000], (0..400_000).collect()).unwrap();
        let mut weights = vec![0.0; 400_000];
        weights[7] = -1.0;
        let found = standardised(&weights, &blocks);
        for (f, e) in found.iter().zip([-1.2, 48.0 / 7.0, -86.4]) {
            assert!((f / e - 1.0).abs() < 1e-3, "{found:?}");
        }
    }
}
