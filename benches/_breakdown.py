"""What a replicate of dpci costs and where the time goes, from differences between public calls."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import dpci
from _timing import minimum, pin

F64 = NDArray[np.float64]
EPSILON, L2_STRENGTH = 1.0, 0.002
# The core solves sixteen replicates side by side, so counts are multiples of sixteen a thread.
LANES = 16
FEW = 2 * LANES
# Eigenvalue floor in both, so that dpci and the opponent release the same intervals.
MODEL: dict[str, Any] = {
    "budget": dpci.PureDP(EPSILON),
    "l2_strength": L2_STRENGTH,
    "fit_intercept": False,
    "classes": (-1, 1),
    "projection": "floor",
}


def coverage(X: F64, y: F64, count: int, n_threads: int = 1, **keywords: Any) -> Any:
    options = {**MODEL, **keywords}
    return dpci.simulate.coverage(X, y, n_replicates=count, n_variability=0, n_threads=n_threads, **options)


def variability(X: F64, y: F64, count: int, configs: int = 1, **keywords: Any) -> Any:
    options = {**MODEL, **keywords}
    return dpci.simulate.variability(X, y, n_variability=count, n_threads=1, configs=[{}] * configs, **options)


@dataclass(frozen=True)
class Cost:
    """Seconds of a study: ``each`` with and ``marginal`` without its share of the set-up."""

    each: float
    marginal: float
    setup: float


def cost(study: Callable[[int], object], count: int, repetitions: int) -> Cost:
    """Time a study of ``count`` replicates and one of few, whose difference leaves the set-up out."""
    few, many = minimum(lambda: study(FEW), repetitions), minimum(lambda: study(count), repetitions)
    marginal = (many - few) / (count - FEW)
    return Cost(each=many / count, marginal=marginal, setup=max(0.0, many - count * marginal))


@dataclass(frozen=True)
class Breakdown:
    """Seconds of one replicate on one core by part; they add up to the marginal cost."""

    weights: float
    gradients: float
    moments: float
    small: float

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.moments + self.small


def breakdown(X: F64, y: F64, count: int, repetitions: int) -> Breakdown:
    """Split the cost of a replicate.

    Two configurations share the weights, so a second one adds the solving alone. Intervals add the moments. The same on
    twenty rows that repeat leaves what does not depend on the number of distinct rows: noise, the two loops of the
    solver, eigenvalues, the sandwich, intervals.
    """
    pin(1)

    def parts(X: F64, y: F64) -> tuple[float, float, float]:
        one = cost(lambda k: variability(X, y, k), count, repetitions).marginal
        two = cost(lambda k: variability(X, y, k, configs=2), count, repetitions).marginal
        full = cost(lambda k: coverage(X, y, k), count, repetitions).marginal
        return 2 * one - two, two - one, full - one

    weights, solving, moments = parts(X, y)
    repeated = len(y) // 20
    _, small_solving, small_moments = parts(np.tile(X[:20], (repeated, 1)), np.tile(y[:20], repeated))
    return Breakdown(
        weights=weights,
        gradients=solving - small_solving,
        moments=moments - small_moments,
        small=small_solving + small_moments,
    )


class _CountingLogistic:
    """Counts the elements whose slope is asked for."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()
        self.loss = dpci.losses.Custom(
            lambda u, y: np.logaddexp(0, -y * u),
            self._slope,
            lambda u, y: expit(y * u) * expit(-y * u),
            slope_bound=1.0,
            curvature_bound=0.25,
            one_signed=True,
        )

    def _slope(self, u: F64, y: F64) -> F64:
        with self._lock:
            self.count += u.size
        return -y * expit(-y * u)


def gradient_passes(X: F64, y: F64) -> float:
    """Gradient passes over the rows that a group of sixteen replicates makes, counted by a loss in Python."""
    counts = []
    for replicates in (LANES, 3 * LANES):
        logistic = _CountingLogistic()
        study = variability(X, y, replicates, loss=logistic.loss)[0]
        counts.append(logistic.count)
    return float((counts[1] - counts[0]) / (2 * LANES * study.n_distinct))
