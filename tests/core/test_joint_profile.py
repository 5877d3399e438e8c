"""Joint profile of exponential mechanisms and Gaussian noise: no pair of laws exceeds it."""

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


def products(first, second):
    """Laws of two outcomes, where the law of the second depends on the first."""
    p = np.concatenate([weight * law for weight, (law, _) in zip(first[0], second, strict=True)])
    q = np.concatenate([weight * law for weight, (_, law) in zip(first[1], second, strict=True)])
    return p, q


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
