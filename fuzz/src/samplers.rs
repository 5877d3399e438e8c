//! Noise of any scale and dimension: a law refuses its parameters, or draws finite numbers.

use arbitrary::Arbitrary;
use dpci_core::noise::{
    AnyLaw, Gaussian, Laplace, Law, MatrixLaplace, SimulationGenerator, SphericalLaplace,
    SquareLaplace, SymmetricGaussian, partition, symmetric, uniform_index, weighted_index,
};

use crate::number::{Number, plain};

/// A law and what it draws.
#[derive(Debug, Arbitrary)]
pub struct Input {
    dim: u8,
    scale: Number,
    seed: u64,
    sizes: Vec<u8>,
    probabilities: Vec<Number>,
}

/// Draws from every law.
///
/// # Panics
/// For a draw of the wrong length, or one that is NaN.
pub fn run(input: Input) {
    let dim = usize::from(input.dim % 40);
    let scale = input.scale.0;
    let mut generator = SimulationGenerator::new(input.seed, 1);
    let check = |draw: Vec<f64>, expected: usize| {
        assert_eq!(draw.len(), expected);
        // Beyond these scales draws overflow, which a release refuses.
        let moderate = (1e-150..1e150).contains(&scale);
        assert!(
            !moderate || draw.iter().all(|x| x.is_finite()),
            "{draw:?} at scale {scale:e}"
        );
    };
    let laws = [
        Gaussian::new(dim, scale).map(AnyLaw::from),
        Laplace::new(dim, scale).map(AnyLaw::from),
        SphericalLaplace::new(dim, scale).map(AnyLaw::from),
    ];
    for law in laws.into_iter().flatten() {
        check(law.sample(&mut generator), dim);
        assert!(law.error_bound() > 0.0);
        if let Ok(draw) = law.sample_bounded(&mut generator) {
            check(draw, dim);
        }
    }
    let laws = [
        SymmetricGaussian::new(dim, scale).map(AnyLaw::from),
        MatrixLaplace::new(dim, scale).map(AnyLaw::from),
        SquareLaplace::new(dim, scale).map(AnyLaw::from),
    ];
    for law in laws.into_iter().flatten() {
        let draw = law.sample(&mut generator);
        for i in 0..dim {
            for j in 0..i {
                assert_eq!(draw[i * dim + j].to_bits(), draw[j * dim + i].to_bits());
            }
        }
        check(draw, dim * dim);
        if let Ok(draw) = law.sample_bounded(&mut generator) {
            check(draw, dim * dim);
        }
    }
    check(
        symmetric::from_isometric(dim, &vec![scale; symmetric::isometric_dim(dim)]),
        dim * dim,
    );
    let sizes: Vec<usize> = input
        .sizes
        .iter()
        .take(20)
        .map(|n| usize::from(*n))
        .collect();
    let parts = partition(&sizes, &mut generator);
    assert_eq!(
        parts.iter().map(Vec::len).sum::<usize>(),
        sizes.iter().sum()
    );
    if dim > 0 {
        assert!(uniform_index(dim, &mut generator) < dim);
    }
    let probabilities = plain(&input.probabilities);
    let legal = probabilities.iter().all(|p| *p >= 0.0 && p.is_finite());
    let total: f64 = probabilities.iter().sum();
    if legal && total > 0.0 && total.is_finite() {
        let normed: Vec<f64> = probabilities.iter().map(|p| p / total).collect();
        assert!(weighted_index(&normed, &mut generator) < normed.len());
    }
}
