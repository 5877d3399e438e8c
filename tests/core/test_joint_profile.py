"""Joint profile of exponential mechanisms and Gaussian noise, against integrals over pairs of laws."""

import math

import numpy as np
import pytest
from scipy import stats

from dpci import _core

CASES = [(1.0, 0.2, 1, 0.24), (1.0, 0.1, 2, 0.24), (3.0, 0.6, 1, 0.65), (0.1, 0.01, 2, 0.02), (0.0, 0.3, 1, 0.2)]


def hockey_stick(p, q, epsilon, mu):
    """Divergence of p x N(mu, 1) from q x N(0, 1) at an epsilon, by integration over the normal coordinate."""
    x, dx = np.linspace(-10.0, 10.0 + mu, 20_001, retstep=True)
    first, second = stats.norm.pdf(x, mu), stats.norm.pdf(x)
    excess = p[:, None] * first - math.exp(epsilon) * q[:, None] * second
    return float(np.maximum(excess, 0.0).sum() * dx)


def two_points(t, bound):
    """Two outcomes whose losses are t and t - bound."""
    p = math.expm1(t - bound) / math.expm1(-bound)
    return np.array([p, 1.0 - p]), np.array([p * math.exp(-t), (1.0 - p) * math.exp(bound - t)])


def products(first, second):
    """Laws of two outcomes, where the law of the second depends on the first."""
    p = np.concatenate([weight * law for weight, (law, _) in zip(first[0], second, strict=True)])
    q = np.concatenate([weight * law for weight, (_, law) in zip(first[1], second, strict=True)])
    return p, q


@pytest.mark.parametrize(("epsilon", "each", "stages", "mu"), CASES)
def test_it_is_that_of_the_worst_two_point_laws(epsilon, each, stages, mu):
    bound = _core.joint_delta(epsilon, mu, stage_epsilon=each, stages=stages)
    grid = np.linspace(0.0, each, 65 if stages == 1 else 17)

    def worst(epsilon, stages):
        # The law of a second mechanism may depend on the outcome of the first: after each comes its own worst one.
        if stages == 1:
            return max(hockey_stick(*two_points(t, each), epsilon, mu) for t in grid)
        laws = [zip(two_points(t, each)[0], (t, t - each), strict=True) for t in grid]
        return max(sum(p * worst(epsilon - loss, 1) for p, loss in law) for law in laws)

    found = worst(epsilon, stages)
    assert found <= bound * (1.0 + 1e-5)
    assert bound <= found * (1.01 if stages == 2 else 1.003)


@pytest.mark.parametrize(("epsilon", "each", "stages", "mu"), CASES)
def test_no_laws_of_bounded_range_exceed_it(epsilon, each, stages, mu):
    rng = np.random.default_rng(7)

    def law():
        # Weights of an exponential mechanism and of its neighbour, whose utilities differ by at most 1.
        utility, n = rng.normal(0.0, 3.0, 6), 6
        change = rng.choice([-1.0, 1.0], n) if rng.random() < 0.7 else rng.uniform(-1.0, 1.0, n)
        p, q = (np.exp(0.5 * each * u) for u in (utility, utility + change))
        return p / p.sum(), q / q.sum()

    bound = _core.joint_delta(epsilon, mu, stage_epsilon=each, stages=stages)
    for _ in range(40):
        found = law()
        if stages == 2:
            found = products(found, [law() for _ in found[0]])
        assert hockey_stick(*found, epsilon, mu) <= bound * (1.0 + 1e-5)


def test_it_lies_between_gaussian_noise_alone_and_basic_composition():
    for epsilon in (0.05, 0.5, 1.0, 3.0):
        for mu in (0.05, 0.24, 0.7):
            alone = _core.gaussian_delta(epsilon, mu)
            tiny = _core.joint_delta(epsilon, mu, stage_epsilon=1e-12, stages=2)
            assert tiny == pytest.approx(alone, rel=1e-8)
            found = [_core.joint_delta(epsilon, mu, stage_epsilon=each, stages=1) for each in (1e-12, 0.01, 0.02, 0.04)]
            assert found == sorted(found)
            assert alone <= found[0]
            assert found[-1] <= _core.gaussian_delta(epsilon - 0.04, mu) * (1.0 + 1e-11)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (3.0, 1e-6), (0.3, 1e-9), (10.0, 1e-4)])
def test_the_rest_is_the_greatest_that_stays_within_the_whole(epsilon, delta):
    for share, stages in ((0.2, 1), (0.2, 2), (0.6, 2)):
        ranges = {"stage_epsilon": share * epsilon / stages, "stages": stages}
        own = _core.joint_rest(epsilon, delta, **ranges)
        assert (1.0 - share) * epsilon < own < epsilon

        def spent(own, ranges=ranges):
            mu = _core.gaussian_mu(0.999 * own, 0.999 * delta)
            return _core.joint_delta(epsilon - 0.001 * own, mu, **ranges) + 0.001 * delta

        assert delta * (1.0 - 1e-6) <= spent(own) <= delta
        assert spent(1.0001 * own) > delta
