//! The kernels on which the speed of a fit rests, at the sizes of the Python benchmarks.
#![allow(missing_docs, reason = "criterion's macros define undocumented items")]

use std::hint::black_box;
use std::sync::atomic::AtomicBool;

use criterion::{Criterion, criterion_group, criterion_main};
use dpci_core::exec::Executor;
use dpci_core::interval::half_widths;
use dpci_core::linalg::weighted_gram;
use dpci_core::noise::{MatrixLaplace, NoiseLaw, SimulationGenerator};

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
    let law = NoiseLaw::SphericalLaplace { dim: 91, rate: 0.5 };
    let v: Vec<f64> = (0..91).map(|i| 1e-4 * (1.0 + f64::from(i))).collect();
    let a = vec![1e-4; 91];
    c.bench_function("91 exact half widths, dim 91", |b| {
        b.iter(|| half_widths(black_box(&v), &a, &law, 0.95));
    });
}

fn samplers(c: &mut Criterion) {
    let mut generator = SimulationGenerator::new(0, 0);
    c.bench_function("matrix Laplace, dim 91", |b| {
        b.iter(|| MatrixLaplace::new(91, 1.0).map(|law| law.sample(&mut generator)));
    });
}

criterion_group!(benches, gram, intervals, samplers);
criterion_main!(benches);
