"""The law of released bounds against an independent implementation: privacy by brute force, and goodness of fit."""

import numpy as np
import pytest
from scipy import stats

from dpci import _core
from support.core import specified

EPSILON = 1.3
LOWER, UPPER = -2.0, 6.0
N = 400


def points():
    """Return the public points: 33 equidistant ones and powers of the root of two on both sides of 0."""
    powers = 6.0 * 2.0 ** (-np.arange(48) / 2)
    all_of = np.concatenate([np.linspace(LOWER, UPPER, 33), powers, -powers, [0.0]])
    return np.unique(all_of[(all_of >= LOWER) & (all_of <= UPPER)])


CELLS = len(points()) - 1


def counts(k):
    """Return what cells count, the innermost first: each 1/k more than the next outer one, in whole numbers."""
    found = [64]
    while len(found) < CELLS:
        found.append(found[-1] + found[-1] // k)
    return np.array(found[::-1], dtype=float)


def ranks(counted):
    """Return the ranks by which both bounds of one column err together: 6.9 is for one release in 1,000."""
    return 2.0 / EPSILON * (2.0 * np.log(counted) + 6.9)


# The inner cells may count as much more as .6 of the records outweigh; where 0 stands apart each cell counts once.
ALLOWED = [k for k in (16, 8, 4, 2) if ranks((1 + 1 / k) ** (CELLS - 1)) <= 0.6 * N]
RANK_ERROR, PREFERRED = min((ranks(sum((1 + 1 / k) ** -i for i in range(CELLS))), k) for k in ALLOWED)


def errors(values, zeros):
    """Return the ranks by which each cell misses the lower and the upper one."""
    grid = points()
    counted = np.clip(values[values != 0.0] if zeros else values, LOWER, UPPER)
    m = len(counted)
    rank = min(int(max(0.2 * m, ranks(CELLS), 1.0) if zeros else max(0.02 * m, RANK_ERROR, 1.0)), m // 3)
    below = np.array([(counted < g).sum() for g in grid])
    above = np.array([(counted > g).sum() for g in grid])
    # The cells at the ends have what lies at the ends.
    lower = np.maximum(0, np.maximum(below[:-1] - rank, rank - np.append(below[1:-1], m)))
    upper = np.maximum(0, np.maximum(above[1:] - rank, rank - np.append(m, above[1:-1])))
    return lower, upper


def law(values, zeros):
    """Return the probability of each pair of cells."""
    lower, upper = errors(values, zeros)
    preferred = np.ones(CELLS) if zeros else counts(PREFERRED)
    weights = np.exp(-EPSILON * np.maximum(lower[:, None], upper[None, :]) / 2.0) * np.outer(preferred[::-1], preferred)
    return weights / weights.sum()


def specification(zeros):
    return specified(
        _core.BoundsSpec, columns=[((LOWER, UPPER), zeros)], n_samples=N, budget=_core.Budget.pure(EPSILON)
    )


def tables():
    rng = np.random.default_rng(2)
    yield rng.normal(2.0, 1.0, N)
    yield np.where(rng.uniform(size=N) < 0.8, 0.0, rng.normal(2.0, 1.0, N))
    yield np.full(N, 3.0)
    yield rng.choice([LOWER, 0.0, 1.0], N)
    yield np.concatenate([np.full(N // 2, 1.0), np.full(N // 2, 5.0)])


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("case", range(5))
def test_no_neighbour_is_told_apart_beyond_epsilon(case, zeros):
    values = list(tables())[case]
    first = law(values, zeros)
    greatest = 0.0
    for replaced in {0, N // 2, N - 1}:
        for value in (-9.0, LOWER, -0.5, 0.0, 1e-9, 1.0, 2.9, 3.0, 3.1, 5.0, UPPER, 99.0):
            other = values.copy()
            other[replaced] = value
            ratio = np.log(law(other, zeros) / first)
            greatest = max(greatest, np.abs(ratio).max())
    assert greatest <= EPSILON * (1 + 1e-9)
    # The bound is used: a law of half this loss would be twice as private as it says.
    assert greatest > 0.2 * EPSILON


def bounds_of(grid, share, lower, upper, zeros):
    """Return the bounds of two cells, widened for a normal column."""
    low, high = (grid[upper], grid[lower + 1]) if lower == upper + 1 else (grid[lower], grid[upper + 1])
    stretch = 1.0 if zeros else 2.2 / stats.norm.ppf(1 - share)
    middle, half = (low + high) / 2, (high - low) / 2 * stretch
    if high <= low:
        return LOWER, UPPER
    bounds = max(middle - half, LOWER), min(middle + half, UPPER)
    return (min(0.0, bounds[0]), max(0.0, bounds[1])) if zeros else bounds


@pytest.mark.parametrize("zeros", [False, True])
def test_releases_have_the_law_and_its_bounds(zeros):
    """Goodness of fit of the lower and upper ends together; false positives 1e-6."""
    values, spec = next(tables()), specification(zeros)
    grid, expected = points(), {}
    for (i, j), p in np.ndenumerate(law(values, zeros)):
        key = tuple(np.round(bounds_of(grid, spec.share, i, j, zeros), 9))
        expected[key] = expected.get(key, 0.0) + p
    records = _core.Records(values[:, None], np.zeros(N))
    n_draws, found = 4_000, {}
    for seed in range(n_draws):
        key = tuple(np.round(_core.release_bounds(spec, records, n_threads=1, seed=seed)[0], 9))
        found[key] = found.get(key, 0) + 1
    assert set(found) <= set(expected)
    common = [key for key, p in expected.items() if n_draws * p >= 10]
    rest = n_draws - sum(found.get(key, 0) for key in common)
    observed = [*(found.get(key, 0) for key in common), rest]
    odds = [expected[key] for key in common]
    assert stats.chisquare(observed, [n_draws * p for p in [*odds, 1 - sum(odds)]]).pvalue > 1e-6
