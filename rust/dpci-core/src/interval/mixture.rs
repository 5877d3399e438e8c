//! Quadrature for the mixing variable of an error: a gamma law.

/// Nodes and weights of the gamma law of shape k and mean 1.
///
/// The trapezoid rule in ξ = log W, where the density is `∝ exp(k(ξ - e^ξ))` and converges geometrically in 1/step: everything
/// that is averaged over it is analytic for |Im ξ| < π/2. The weights are scaled to sum to 1.
#[derive(Debug)]
pub(super) struct Mixture {
    /// Nodes and their weights, nodes increasing.
    pub(super) nodes: Vec<(f64, f64)>,
    /// Shape k of the gamma law.
    pub(super) shape: f64,
}

impl Mixture {
    /// For tails down to 1e-16, relative to which it is accurate to 1e-11 or better.
    ///
    /// The law of log W has width `1/√k`; a tail of probability p leaves of it about `1/√(k + ln(1/p))`, and the step is half of
    /// that at p = 1e-12. Tails grow with W, so what is cut on the left weighs less than its own probability.
    pub(super) fn for_tail(shape: f64) -> Self {
        Self::new(shape, tail_step(shape), |_, log_weight| log_weight > -38.0, -75.0)
    }

    /// For tails down to 1e-16, relative to which it is accurate to 1e-4.
    pub(super) fn coarse(shape: f64) -> Self {
        Self::new(shape, 2.5 * tail_step(shape), |_, log_weight| log_weight > -14.0, -75.0)
    }

    /// For tails down to the least float.
    pub(super) fn for_far_tail(shape: f64) -> Self {
        Self::new(
            shape,
            tail_step(shape) / 4.0,
            |_, log_weight| log_weight > -38.0,
            -760.0,
        )
    }

    /// For probabilities of the centre, down to the density at 0, `∝ E V^(-1/2)`, which is finite for shapes above 1/2. Of smaller
    /// shapes only a part of the variance is mixed, and their own weights say what matters.
    pub(super) fn for_centre(shape: f64) -> Self {
        let lift = if shape >= 1.0 { 0.5 } else { 0.0 };
        let matters = |log_w: f64, log_weight: f64| log_weight - lift * log_w > -30.0;
        Self::new(shape, 0.3 / f64::midpoint(1.0, shape).sqrt(), matters, -40.0)
    }

    /// Nodes to the left as long as they matter, to the right as long as their log weight exceeds the cut; 0 is the mode.
    fn new(shape: f64, step: f64, matters: impl Fn(f64, f64) -> bool, right_cut: f64) -> Self {
        let node = |i: i32| {
            let log_w = f64::from(i) * step;
            (log_w, shape * (log_w - log_w.exp_m1()))
        };
        let left = (1..)
            .map(|i| node(-i))
            .take_while(|(log_w, log_weight)| matters(*log_w, *log_weight));
        let right = (0..).map(node).take_while(|(_, log_weight)| *log_weight > right_cut);
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

fn tail_step(shape: f64) -> f64 {
    0.55 / (1.2 * shape + 26.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact() {
        for k in [1.0, 1.5, 2.0, 5.5, 46.0, 500.5, 50_000.5] {
            for mixture in [Mixture::for_tail(k), Mixture::for_far_tail(k), Mixture::for_centre(k)] {
                let moment = |p: i32| mixture.nodes.iter().map(|(w, q)| q * w.powi(p)).sum::<f64>();
                assert!((moment(1) - 1.0).abs() < 1e-11, "{k}: {}", moment(1));
                assert!((moment(2) - (1.0 + 1.0 / k)).abs() < 1e-10, "{k}: {}", moment(2));
            }
        }
        // E W^(-1/2) of the exponential law is √π.
        let centre = Mixture::for_centre(1.0);
        let density: f64 = centre.nodes.iter().map(|(w, q)| q / w.sqrt()).sum();
        assert!((density / std::f64::consts::PI.sqrt() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn node_counts_stay_small() {
        for k in [5.5, 46.0, 500.5, 50_000.5] {
            let (tail, centre) = (Mixture::for_tail(k).nodes.len(), Mixture::for_centre(k).nodes.len());
            assert!(tail < 120 && centre < 120, "{k}: {tail} and {centre} nodes");
        }
    }
}
