"""Coverage of ridge intervals over fresh samples of a model whose regularised target is known in closed form."""

import numpy as np
import pytest
from scipy import stats

import dpci

N, DIM, RUNS = 6000, 3, 400
L2_STRENGTH, LEVEL = 0.1, 0.9
BETA = np.array([0.5, -0.4, 0.2])
pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")


def sample(rng):
    """Rows uniform on the sphere, so that E[x xT] = I / 3; noise whose spread depends on the row."""
    X = rng.standard_normal((N, DIM))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ BETA + 0.3 * X[:, 0] * rng.uniform(-1.0, 1.0, N)


def target():
    """Minimiser of E(xT theta - y)² + lambda/2 |theta|², as E[x y] = BETA / 3."""
    return BETA * (2.0 / 3.0) / (2.0 / 3.0 + L2_STRENGTH)


@pytest.mark.parametrize("mechanism", ["output", "objective"])
@pytest.mark.parametrize(
    "budget", [dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6)], ids=lambda budget: budget.notion
)
def test_coverage(budget, mechanism):
    """The share of covered coordinates lies within 5 standard errors of the level (false-positive rate 6e-7)."""
    rng = np.random.default_rng(60)
    covered, refused = [], 0
    for seed in range(RUNS):
        result = dpci.fit(
            *sample(rng), budget=budget, l2_strength=L2_STRENGTH, loss="squared", mechanism=mechanism, radius=2.0,
            fit_intercept=False, seed=seed,
        )  # fmt: skip
        if result.interval_refusal is not None:
            refused += 1
            continue
        intervals = result.conf_int(level=LEVEL)
        covered.append(((intervals.lower <= target()) & (target() <= intervals.upper)).mean())
    assert refused == 0
    mean, error = np.mean(covered), np.std(covered) / np.sqrt(len(covered))
    # Two hundredths for what the noise in the matrices adds at this n, which only lengthens intervals.
    assert LEVEL - 5.0 * error <= mean <= LEVEL + 0.02 + 5.0 * error


def test_given_and_wrong_is_rare_where_refusals_are_frequent():
    """Near the sphere many fits refuse; intervals that are given and miss stay below 1 - level by the claim."""
    rng = np.random.default_rng(61)
    radius = float(np.linalg.norm(target())) + 0.05
    wrong, given = 0, 0
    for seed in range(RUNS):
        result = dpci.fit(
            *sample(rng), budget=dpci.PureDP(2.0), l2_strength=L2_STRENGTH, loss="squared", mechanism="output",
            radius=radius, fit_intercept=False, seed=seed,
        )  # fmt: skip
        if result.interval_refusal is None:
            interval = result.conf_int(level=LEVEL)
            given += 1
            wrong += not interval.lower[0] <= target()[0] <= interval.upper[0]
    assert 0.05 * RUNS < given < 0.95 * RUNS
    assert stats.binom(RUNS, 1.0 - LEVEL).sf(wrong - 1) > 1e-6
