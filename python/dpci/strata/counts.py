"""Released numbers of records of the strata: counts with noise, which one record changes by one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.budgets import ApproxDP, Budget, Neighbors, PureDP, core_budget, split_budget
from dpci.released.whole import Whole
from dpci.unit import core_terms

_SEED_BITS = 2**64 - 1

# A count is taken for so many scales of its noise at least. Fits refuse more than 16 times as many records as they are
# told; the noise would have to be 60 times its scale for that.
_LEAST_SCALES = 4.0


@dataclass(frozen=True)
class CountNoise:
    """Cost of the counts of strata, and the noise on each."""

    budget: Budget
    law: str
    scale: float

    def __str__(self) -> str:
        return f"{self.law} noise of scale {self.scale:.3g} on each"


def split_off_counts(budget: Budget, share: float) -> tuple[Budget, Budget]:
    """Return the budget of the fits and that of the counts, whose exact sum never exceeds the budget.

    Counts spend no delta: at a small ε their Laplace noise is less than Gaussian noise would be.
    """
    if isinstance(budget, ApproxDP):
        counts, rest = split_budget(PureDP(budget.epsilon), share, "count_share")
        assert isinstance(rest, PureDP)  # noqa: S101  # for the type checker: the share is below 1
        return ApproxDP(rest.epsilon, budget.delta), counts
    counts, remaining = split_budget(budget, share, "count_share")
    assert remaining is not None  # noqa: S101  # as above
    return remaining, counts


def whole_of(parts: int, neighbors: Neighbors, charged: Budget, counted: CountNoise | None) -> Whole:
    """Return the release of all strata, of which each model says that it is a part."""
    if counted is None:
        return Whole("strata", parts, neighbors, charged)
    return Whole("counted_strata", parts, neighbors, charged, counted.budget.parameters())


def is_rest(budget: Budget, whole: Budget, counts: Budget) -> bool:
    """Whether a fit has what counts leave of a budget, up to the last digits, and no more."""
    taken = counts.parameters()
    if type(budget) is not type(whole) or taken.keys() - whole.parameters().keys():
        return False
    spent = {name: Fraction(value) + Fraction(taken.get(name, 0.0)) for name, value in budget.parameters().items()}
    return all(0 <= value - spent[name] <= 1e-14 * value for name, value in whole.parameters().items())


def _grid(n_strata: int, budget: Budget) -> _core.HistogramSpec:
    """Return a histogram with a cell for each stratum; records are the numbers of their strata."""
    return _core.HistogramSpec(
        core_terms(0, "add_remove"),
        axes=[([0], [float(code) for code in range(n_strata)])],
        n_columns=1,
        targets=[0.0],
        loss=_core.Loss("squared", 1.0),
        l2_strength=1.0,
        intercept=None,
        budget=core_budget(budget),
    )


def count_noise(n_strata: int, budget: Budget) -> CountNoise:
    """Return law and scale of the noise of a count, which are public."""
    return CountNoise(budget, *_grid(n_strata, budget).noise())


def release_counts(
    sizes: Mapping[str, int], budget: Budget, *, least: float = 1.0, n_threads: int | None, seed: int | None
) -> dict[str, int]:
    """Release how many records or persons each stratum has, for one that is added or removed.

    Counts are raised to four scales of their noise at least, and to the public number ``least``. The noise is
    independent of that of fits with this seed.
    """
    spec = _grid(len(sizes), budget)
    codes: NDArray[np.float64] = np.repeat(np.arange(float(len(sizes))), list(sizes.values()))
    released = _core.release(
        spec,
        _core.Records(codes[:, None], np.zeros(len(codes))),
        on_violation="clip",
        n_threads=n_threads,
        seed=None if seed is None else seed ^ _SEED_BITS,
    )
    floor = max(1, math.ceil(least), math.ceil(_LEAST_SCALES * spec.noise()[1]))
    return {name: max(floor, round(float(count))) for name, count in zip(sizes, released["counts"], strict=True)}
