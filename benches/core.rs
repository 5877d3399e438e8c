//! The kernels on which the speed of a fit rests, at the sizes of the Python benchmarks.
#![allow(missing_docs, reason = "criterion's macros define undocumented items")]

use std::hint::black_box;
use std::sync::atomic::AtomicBool;

use criterion::{Criterion, criterion_group, criterion_main};
use dpci_core::exec::Executor;
use dpci_core::interval::{ErrorShape, half_widths};
use dpci_core::linalg::weighted_gram;
use dpci_core::noise::{
    DiscreteGaussian, DiscreteLaplace, Gaussian, Law, MatrixLaplace, NoiseLaw, ReleaseGenerator, SimulationGenerator,
    SphericalLaplace,
};

fn gram(c: &mut Criterion) {
    let (n, dim) = (100_000, 91);
    let rows: Vec<f64> = (0..n * dim).map(|i| (i as f64 * 0.618).sin()).collect();
    let weights: Vec<f64> = (0..n).map(|i| (i as f64 * 0.382).cos()).collect();
    let cancel = AtomicBool::new(false);
    let exec = Executor::sequential(&cancel);
    c.bench_function("weighted gram 100000 x 91", |b| {
        b.iter(|| weighted_gram(black_box(&rows), dim, &weights, &exec));
    });
}

fn intervals(c: &mut Criterion) {
    let shape = ErrorShape::plug_in(NoiseLaw::SphericalLaplace { dim: 91, rate: 0.5 });
    let v: Vec<f64> = (0..91).map(|i| 1e-4 * (1.0 + f64::from(i))).collect();
    let a = vec![1e-4; 91];
    c.bench_function("91 exact half widths, dim 91", |b| {
        b.iter(|| half_widths(black_box(&v), &a, &shape, 0.95));
    });
}

fn samplers(c: &mut Criterion) {
    let mut generator = SimulationGenerator::new(0, 0);
    c.bench_function("matrix Laplace, dim 91", |b| {
        b.iter(|| MatrixLaplace::new(91, 1.0).map(|law| law.sample(&mut generator)));
    });
}

/// A thousand numbers a call, by the generator of releases: the times read as nanoseconds a number in microseconds.
fn release_samplers(c: &mut Criterion) {
    const N: usize = 1000;
    let Ok(mut generator) = ReleaseGenerator::new() else {
        return;
    };
    for scale in [30, 1 << 20, 1 << 40] {
        let law = DiscreteLaplace::new(scale);
        c.bench_function(&format!("1000 discrete Laplace numbers, scale {scale}"), |b| {
            b.iter(|| {
                law.as_ref()
                    .map(|law| (0..N).map(|_| law.sample(&mut generator)).sum::<i128>())
            });
        });
        let law = DiscreteGaussian::new(scale);
        c.bench_function(&format!("1000 discrete Gaussian numbers, scale {scale}"), |b| {
            b.iter(|| {
                law.as_ref()
                    .map(|law| (0..N).map(|_| law.sample(&mut generator)).sum::<i128>())
            });
        });
    }
    c.bench_function("1000 bounded Gaussian numbers", |b| {
        b.iter(|| Gaussian::new(N, 1.0).map(|law| law.sample_bounded(&mut generator)));
    });
    c.bench_function("1000 bounded spherical Laplace numbers", |b| {
        b.iter(|| SphericalLaplace::new(N, 1.0).map(|law| law.sample_bounded(&mut generator)));
    });
    c.bench_function("bounded matrix Laplace, dim 91", |b| {
        b.iter(|| MatrixLaplace::new(91, 1.0).map(|law| law.sample_bounded(&mut generator)));
    });
}

criterion_group!(benches, gram, intervals, samplers, release_samplers);
criterion_main!(benches);
