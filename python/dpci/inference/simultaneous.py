"""Levels at which intervals of single contrasts cover all their targets at once, from the law of the errors."""

import math
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci import _core
from dpci.errors import InvalidInput

_F64 = NDArray[np.float64]
_Components = TypeVar("_Components")

FAILURE_PROBABILITY = 1e-6
"""Probability, over the draws of :func:`joint_level`, of a level below the exact one."""

DEFAULT_DRAWS = 100_000
_MOST_NUMBERS = 2 * 10**7
_BISECTIONS = 40
# Between it and 1 there is no float: a level that belongs there is off by less than the rounding of the one asked for.
_GREATEST_LEVEL = math.nextafter(1.0, 0.0)


def bonferroni_level(level: float, n_rows: int) -> float:
    """Return the level of each of n intervals that together cover with at least ``level``, by the union bound."""
    return min(1.0 - (1.0 - level) / max(n_rows, 1), _GREATEST_LEVEL)


def sidak_level(level: float, n_rows: int) -> float:
    """Return the level of each of n intervals that together cover with at least ``level``, by Šidák's inequality.

    Centred normal errors are in a box of intervals with at least the product of the probabilities (Šidák 1967). Given
    Omega that applies; each factor falls with Omega, so that the mean of the product is at least the product of the
    means (Chebyshev).
    """
    return min(math.exp(math.log(level) / max(n_rows, 1)), _GREATEST_LEVEL)


class JointLaw(Protocol[_Components]):
    """The law of the errors of contrasts."""

    def draw(self, rng: np.random.Generator, rows: _F64, n_draws: int, /) -> _F64:
        """Return draws of the errors, shape (n_draws, m)."""

    def components(self, rows: _F64, /) -> _Components:
        """Return what intervals of contrasts depend on."""

    def half_widths_of(self, components: _Components, level: float, /) -> _F64:
        """Return half the lengths of their intervals."""


def joint_level(
    law: JointLaw[_Components], contrasts: _F64, level: float, *, n_draws: int | None, seed: int | None
) -> float:
    """Return the smallest common level of the intervals of these contrasts at which they cover together with ``level``.

    The errors of all contrasts are covered from some common level on: the largest of the levels at which each interval
    just reaches its error. (Under Gaussian noise that is a function of the largest absolute z.) The quantile of this
    level is bounded from above by an order statistic of the draws, which fails with :data:`FAILURE_PROBABILITY`, and by
    :func:`sidak_level`, which needs no draws.
    """
    n_rows = len(contrasts)
    safe = sidak_level(level, n_rows)
    if n_rows <= 1:
        return level
    if n_draws is None:
        n_draws = max(1, min(DEFAULT_DRAWS, _MOST_NUMBERS // n_rows))
    elif n_draws * n_rows > 10 * _MOST_NUMBERS:
        raise InvalidInput(
            f"n_draws must be at most {10 * _MOST_NUMBERS // n_rows} for {n_rows} intervals, got n_draws={n_draws}"
        )
    needed = order_statistic(n_draws, level)
    if needed > n_draws:
        return safe
    errors = law.draw(np.random.default_rng(0 if seed is None else seed), contrasts, n_draws)
    np.abs(errors, out=errors)
    components = law.components(contrasts)
    low, high = level, safe
    for _ in range(_BISECTIONS):
        # In the logarithm of what is missing to 1, because levels may be next to it.
        middle = 1.0 - float(np.sqrt((1.0 - low) * (1.0 - high)))
        if not low < middle < high:
            break
        bounds = law.half_widths_of(components, middle)
        enough = np.count_nonzero((errors <= bounds).all(axis=1)) >= needed
        low, high = (low, middle) if enough else (middle, high)
    return high


def order_statistic(n_draws: int, level: float) -> int:
    """Return the least j whose order statistic of n draws is below the quantile at most with the failure probability.

    The j-th of n draws is below the quantile if at least j of them are, whose number is binomial. n + 1: there is none.
    """
    j = np.arange(1, n_draws + 1)
    at_least_j = special.betainc(j, n_draws - j + 1.0, level)
    return 1 + int(np.searchsorted(-at_least_j, -FAILURE_PROBABILITY))


def shaped_draws(rng: np.random.Generator, blocks: _core.RowDomain, scale: float, n: int) -> _F64:
    """Return simulated noise in the shape of blocks, shape (n, k): never for a release."""
    members, bounds = np.array(blocks.members), np.array(blocks.bounds)
    dim = len(members)
    # A uniform point of an l1 ball of k dimensions: exponentials with random signs over the sum of k + 1 of them.
    size = rng.standard_exponential((n, dim))
    total = rng.standard_exponential((n, len(bounds))) + size @ (members[:, None] == np.arange(len(bounds)))
    signs = 2.0 * rng.integers(0, 2, (n, dim)) - 1.0
    radius = scale * rng.standard_gamma(dim + 1.0, (n, 1))
    return np.asarray(radius * signs * size * (bounds / total)[:, members])
