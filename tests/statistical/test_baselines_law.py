"""The laws of the baselines: their noise, and the functional mechanism of one parameter against its exact law."""

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import _core, baselines
from support.core import specified

EPSILON, N_RUNS = 1.0, 6000
SCALE = 4.0 / EPSILON  # one parameter: the linear coefficient moves by 4 where y changes sign
RIDGE = 4.0 * np.sqrt(2.0) * SCALE
ROWS = np.full((12, 1), 1.0)
# Neighbours at the sensitivity: the sum of yx is 6 and 4.
TARGETS = [np.where(np.arange(12) < k, 1.0, -1.0) for k in (9, 8)]


def cdf(t, y):
    """P(params <= t): with Q = 12 + ridge + noise and c/2 = sum(y) + noise/2, params is c/2Q where Q > 0, else 0.

    Given Q, c/2 <= tQ is an event of the Laplace noise on c; Q is integrated by the trapezoidal rule on both sides of
    its mode. On equal nodes the rule keeps the ratio of neighbours within that of the integrands.
    """
    t = np.atleast_1d(t)[:, np.newaxis]
    mode = 12.0 + RIDGE
    tail = np.linspace(0.0, 30.0, 3001)[1:] * SCALE
    total = np.zeros(len(t))
    for q in (np.concatenate([[mode], mode + tail]), np.linspace(mode, 0.0, 2001)):
        inside = stats.laplace.cdf((t * q - y.sum()) * 2.0, scale=SCALE) * stats.laplace.pdf(q, loc=mode, scale=SCALE)
        total += np.trapezoid(inside, x=np.abs(q - mode), axis=1)
    return total + (t[:, 0] >= 0.0) * stats.laplace.cdf(0.0, loc=mode, scale=SCALE)


@pytest.fixture(scope="module", name="runs")
def make_runs():
    def run(y, seed):
        return baselines.functional_mechanism(ROWS, y, budget=dpci.PureDP(EPSILON), intercept=False, seed=seed).params[
            0
        ]

    return [np.array([run(y, seed + 10**6 * i) for seed in range(N_RUNS)]) for i, y in enumerate(TARGETS)]


@pytest.mark.parametrize("which", [0, 1])
def test_one_parameter_has_its_exact_law(runs, which, accept):
    # Few runs are exactly 0, where Q is not positive: their number is binomial, and the rest is continuous.
    zero = stats.laplace.cdf(0.0, loc=12.0 + RIDGE, scale=SCALE)
    n_zero = int((runs[which] == 0.0).sum())
    accept(stats.binomtest(n_zero, N_RUNS, zero).pvalue)
    grid = np.linspace(-3.0, 3.0, 401)
    table = cdf(grid, TARGETS[which])
    accept(stats.kstest(runs[which], lambda t: np.interp(t, grid, table)).pvalue)


def test_neighbours_are_within_epsilon_and_would_not_be_within_half():
    # All events "params <= t" and their complements, exactly.
    grid = np.linspace(-2.0, 3.0, 301)
    first, second = (np.concatenate([p, 1.0 - p]) for p in (cdf(grid, y) for y in TARGETS))
    keep = np.minimum(first, second) > 1e-7
    loss = np.abs(np.log(first[keep] / second[keep])).max()
    assert 0.5 * EPSILON < loss <= EPSILON + 1e-9


def test_laplace_noise(accept):
    draws = dpci.lowlevel.laplace(20_000, 4, 2.5, 77)
    accept(stats.kstest(draws.ravel(), stats.laplace(scale=2.5).cdf).pvalue)
    accept(min(stats.spearmanr(draws[:, 0], draws[:, j]).pvalue for j in (1, 2, 3)), n_tests=3)


def test_counts_of_empty_cells_have_the_noise_of_full_ones(accept):
    spec = specified(
        _core.HistogramSpec,
        axes=[([0], np.linspace(-1.0, 1.0, 2000).tolist())],
        n_columns=1,
        targets=[0.0],
        loss=_core.Loss("squared", 1.0),
        l2_strength=1.0,
        intercept=None,
        budget=_core.Budget.pure(0.5),
        neighbors="replace_one",
    )
    x = np.tile(np.linspace(-1.0, 1.0, 2000)[:1000, None], (3, 1))  # three records in each cell of the first half
    counts = _core.release(spec, _core.Records(x, np.zeros(3000)), clip=True, n_threads=1, seed=None)["counts"]
    law = stats.laplace(scale=2.0 / 0.5)
    accept(stats.kstest(counts[:1000] - 3.0, law.cdf).pvalue)
    accept(stats.kstest(counts[1000:], law.cdf).pvalue)
