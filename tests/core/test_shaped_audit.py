"""A black-box audit of noise in the shape of rows: below its claim, and above it with half the noise."""

import numpy as np
import pytest
from scipy import stats

from dpci import _core

ROWS = _core.RowDomain.blocks([1.0, 1.0], [0, 1])
N, RUNS, CLAIM, L2_STRENGTH = 40, 40_000, 2.0, 0.05


def spec_of(epsilon):
    return _core.Spec(
        n_samples=N, n_columns=2, intercept=None, row_norm=ROWS, loss=_core.Loss.logistic(), l2_strength=L2_STRENGTH,
        radius=None, budget=_core.Budget.pure(epsilon), mechanism="objective", noise=None, variant="standard",
        project=False, split=None, moments="none", projection="floor", calibration="tight", neighbors="replace_one",
    )  # fmt: skip


def data(first):
    """All but one record pull the second parameter far down: the one of either side then has a slope of almost 1."""
    x = np.tile([0.0, 1.0], (N, 1))
    x[0] = [first, 1.0]
    y = np.full(N, -1.0)
    y[0] = 1.0
    return x, y


def log_densities(spec, x, y, params):
    """Log density of the released parameters: that of their noise, and the determinant of its derivative."""
    u = params @ x.T
    slope = -y / (1.0 + np.exp(y * u))
    curvature = np.exp(-np.abs(u)) / (1.0 + np.exp(-np.abs(u))) ** 2
    noise = -(slope @ x + N * spec.l2_strength * params)
    gauge = np.abs(noise).max(axis=1)
    hessian = np.einsum("ri,ij,ik->rjk", curvature, x, x) + N * spec.l2_strength * np.eye(2)
    return -gauge / spec.noise_scale + np.linalg.slogdet(hessian)[1]


def audited(spec):
    """Lower bound on epsilon at 99.9% from releases on both sides, by the best of some thresholds on the exact loss."""
    sides = [data(1.0), data(-1.0)]
    losses = []
    for i, (x, y) in enumerate(sides):
        params = _core.simulate(spec, x, y, n_runs=RUNS, seed=40 + i, n_threads=1)
        losses.append(log_densities(spec, *sides[0], params) - log_densities(spec, *sides[1], params))
    best = 0.0
    # The first half of the runs chooses the threshold, the second one counts.
    for threshold in [max(np.linspace(0.0, 6.0, 121), key=lambda t: bound(losses, t, slice(None, RUNS // 2)))]:
        best = max(best, bound(losses, threshold, slice(RUNS // 2, None)))
    return best


def bound(losses, threshold, part):
    first, second = ((loss[part] > threshold).sum() for loss in losses)
    n = len(losses[0][part])
    low = stats.beta.ppf(0.0005, first, n - first + 1) if first else 0.0
    high = stats.beta.ppf(0.9995, second + 1, n - second)
    return np.log(low / high) if low > 0.0 else 0.0


def test_releases_stay_below_their_claim_and_half_the_noise_does_not():
    spec = spec_of(CLAIM)
    assert spec.noise_law == "shaped_laplace"
    found = audited(spec)
    assert 0.5 * CLAIM < found <= CLAIM
    low, high = CLAIM, 4.0 * CLAIM
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if spec_of(middle).noise_scale > 0.5 * spec.noise_scale else (low, middle)
    half = spec_of(high)
    assert half.noise_scale == pytest.approx(0.5 * spec.noise_scale, rel=1e-6)
    assert audited(half) > CLAIM


def test_gaussian_noise_in_the_metric_keeps_its_delta_and_half_the_noise_does_not():
    """The mean of (1 - exp(epsilon - loss))+ over releases is the delta of the pair of data sets."""
    epsilon, delta = CLAIM, 0.02
    rows = _core.RowDomain.blocks([1.0, 2.0], [0, 1])

    def spec_at(delta):
        return _core.Spec(
            n_samples=N, n_columns=2, intercept=None, row_norm=rows, loss=_core.Loss.logistic(),
            l2_strength=L2_STRENGTH, radius=None, budget=_core.Budget.approx(epsilon, delta), mechanism="objective",
            noise=None, variant="standard", project=False, split=None, moments="none", projection="floor",
            calibration="tight", neighbors="add_remove",
        )  # fmt: skip

    spec = spec_at(delta)
    assert spec.noise_law == "shaped_gaussian"
    metric = rows.metric()
    np.testing.assert_allclose(metric, [2.0, 8.0], rtol=1e-12)
    # One record more, which pulls against all others; both bounds of its row are attained.
    x = np.tile([0.0, 2.0], (N + 1, 1))
    x[0] = [1.0, 2.0]
    y = np.full(N + 1, -1.0)
    y[0] = 1.0
    # Where it is not, its slope is greatest and parameters far from it are the likelier ones.
    sides = [(np.ascontiguousarray(x[1:]), y[1:]), (x, y)]

    def found(scale):
        def log_density(side, params):
            x, y = side
            u = params @ x.T
            slope = -y / (1.0 + np.exp(y * u))
            curvature = np.exp(-np.abs(u)) / (1.0 + np.exp(-np.abs(u))) ** 2
            noise = slope @ x + N * L2_STRENGTH * params
            hessian = np.einsum("ri,ij,ik->rjk", curvature, x, x) + N * L2_STRENGTH * np.eye(2)
            return -(noise**2 / metric).sum(axis=1) / (2.0 * scale**2) + np.linalg.slogdet(hessian)[1]

        params = _core.simulate(scale_specs[scale], *sides[0], n_runs=RUNS, seed=47, n_threads=1)
        losses = log_density(sides[0], params) - log_density(sides[1], params)
        return np.maximum(0.0, -np.expm1(epsilon - losses)).mean()

    low, high = delta, 0.9
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if spec_at(middle).noise_scale > 0.5 * spec.noise_scale else (low, middle)
    half = spec_at(high)
    scale_specs = {spec.noise_scale: spec, half.noise_scale: half}
    assert 0.1 * delta < found(spec.noise_scale) <= delta
    assert found(half.noise_scale) > delta
