//! Quadrature for the mixing variable of spherical Laplace noise.

/// Where the map `ξ(y) = y - exp(-y-1)` is 0.
const CENTRE: f64 = 0.278_464_542_761_073_8;

/// Where to stop on the left: nodes that matter less than exp(-38) = 3e-17 even with the factor `W^(-1/2)` of a density at 0.
const LEFT_CUT: f64 = -38.0;

/// Nodes W and weights of the law of `W = Ω/E Ω ~ Gamma(k, rate k)`, `k = (dim+1)/2`.
///
/// The trapezoid rule in y, where `W = exp(y - exp(-y-1))`: the integrand then decays doubly exponentially on both sides,
/// also for small k, and the rule converges geometrically in 1/step. The weights are scaled to sum to 1.
#[derive(Debug)]
pub(super) struct Mixture {
    /// Nodes and their weights, nodes increasing.
    pub(super) nodes: Vec<(f64, f64)>,
    /// Shape k of the gamma law.
    pub(super) shape: f64,
}

impl Mixture {
    /// Some sixty nodes: 1e-10 or better for probabilities of tails down to 1e-16.
    pub(super) fn new(dim: usize) -> Self {
        Self::with_resolution(dim, 1.0, -75.0)
    }

    /// Several hundred nodes: for tails down to the least float.
    pub(super) fn fine(dim: usize) -> Self {
        Self::with_resolution(dim, 4.0, -760.0)
    }

    /// In log W the gamma law has width `1/√k`, and a tail probability p narrows what matters to about `1/√(k + ln(1/p))`:
    /// the step is half of that at p = 1e-12.
    fn with_resolution(dim: usize, resolution: f64, right_cut: f64) -> Self {
        let shape = f64::midpoint(dim as f64, 1.0);
        let step = 0.55 / (resolution * (1.2 * shape + 26.0).sqrt());
        let node = |i: f64| {
            let y = CENTRE + i * step;
            let descent = (-y - 1.0).exp();
            let log_w = y - descent;
            let log_weight = shape * (log_w - log_w.exp_m1()) + descent.ln_1p();
            (log_w, log_weight)
        };
        let left = (1..)
            .map(|i| node(-f64::from(i)))
            .take_while(|(log_w, log_weight)| log_weight - 0.5 * log_w > LEFT_CUT);
        let right = (0..)
            .map(|i| node(f64::from(i)))
            .take_while(|(_, log_weight)| *log_weight > right_cut);
        let mut nodes: Vec<_> = left.collect();
        nodes.reverse();
        nodes.extend(right);
        let total: f64 = nodes.iter().map(|(_, log_weight)| log_weight.exp()).sum();
        for (w, weight) in &mut nodes {
            (*w, *weight) = (w.exp(), weight.exp() / total);
        }
        Self { nodes, shape }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact() {
        for dim in [1, 2, 3, 10, 91, 1000, 100_000] {
            for (mixture, tolerance) in [(Mixture::new(dim), 1e-11), (Mixture::fine(dim), 1e-12)] {
                let k = mixture.shape;
                let moment = |p: f64| {
                    mixture
                        .nodes
                        .iter()
                        .map(|(w, q)| q * w.powf(p))
                        .sum::<f64>()
                };
                assert!((moment(1.0) - 1.0).abs() < tolerance, "{dim}");
                assert!((moment(2.0) - (1.0 + 1.0 / k)).abs() < tolerance, "{dim}");
                if k > 1.0 {
                    assert!((moment(-1.0) * (k - 1.0) / k - 1.0).abs() < 1e-7, "{dim}");
                }
            }
            let nodes = Mixture::new(dim).nodes.len();
            assert!((30..110).contains(&nodes), "{dim}: {nodes} nodes");
        }
    }
}
