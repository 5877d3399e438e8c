"""Cost of a replicate of dpci, and where the time goes, from differences between public calls."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import dpci
from _timing import Timed
from dpci._core import LANES

F64 = NDArray[np.float64]
EPSILON, L2_STRENGTH = 1.0, 0.002
# The core solves LANES replicates side by side, so counts are multiples of that for each of two threads.
FEW = 2 * LANES
# The set-up of a study is shared by as many replicates as a cell of the published tables has.
STUDY_REPLICATES = 1000
# Eigenvalue floor in both, so that dpci and the opponent release the same intervals.
MODEL: dict[str, Any] = {
    "budget": dpci.PureDP(EPSILON),
    "l2_strength": L2_STRENGTH,
    "rows": dpci.rows.Within(intercept=False),
    "classes": (-1, 1),
    "mechanism": dpci.ObjectivePerturbation(projection="floor"),
}


def coverage(X: F64, y: F64, count: int, n_threads: int = 1, **keywords: Any) -> Any:
    options = {**MODEL, **keywords}
    return dpci.simulate.coverage(X, y, n_replicates=count, n_variability=0, n_threads=n_threads, **options)


def variability(X: F64, y: F64, count: int, configs: int = 1, **keywords: Any) -> Any:
    options = {**MODEL, **keywords}
    return dpci.simulate.variability(X, y, n_variability=count, n_threads=1, configs=[{}] * configs, **options)


@dataclass(frozen=True)
class Cost:
    """Seconds of a study: what a further replicate costs, and what is done once."""

    marginal: float
    setup: float

    @property
    def each(self) -> float:
        """Seconds of a replicate with its share of the set-up."""
        return self.marginal + self.setup / STUDY_REPLICATES


def timed_studies(study: Callable[[int], object], count: int, cores: int = 1) -> dict[str, Timed]:
    """A study of few and one of ``count`` replicates, to be timed."""
    return {
        "few": Timed(lambda: study(FEW), cores),
        "many": Timed(lambda: study(count), cores),
    }


def cost(seconds: Mapping[str, float], count: int) -> Cost:
    """Cost from the times of :func:`timed_studies`, whose difference leaves the set-up out."""
    marginal = (seconds["many"] - seconds["few"]) / (count - FEW)
    return Cost(marginal=marginal, setup=max(0.0, seconds["many"] - count * marginal))


@dataclass(frozen=True)
class Breakdown:
    """Seconds of one replicate on one core by part; they should add up to the marginal cost."""

    weights: float
    gradients: float
    moments: float
    small: float

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.moments + self.small


def breakdown_studies(X: F64, y: F64) -> dict[tuple[str, str], Callable[[int], object]]:
    """Studies whose costs :func:`breakdown` subtracts, on these rows and on twenty rows that repeat."""
    repeated = len(y) // 20
    tiled = np.tile(X[:20], (repeated, 1)), np.tile(y[:20], repeated)
    studies: dict[tuple[str, str], Callable[[int], object]] = {}
    for name, data in (("all", (X, y)), ("tiled", tiled)):
        studies[name, "one"] = lambda k, data=data: variability(*data, k)
        studies[name, "two"] = lambda k, data=data: variability(*data, k, configs=2)
        studies[name, "full"] = lambda k, data=data: coverage(*data, k)
    return studies


def breakdown(marginal: Mapping[tuple[str, str], float]) -> Breakdown:
    """Split the cost of a replicate, from the marginal costs of :func:`breakdown_studies`.

    Two configurations share the weights, so a second one adds the solving alone. Intervals add the moments. The same on
    twenty rows that repeat leaves what does not depend on the number of distinct rows: noise, the two loops of the
    solver, eigenvalues, the sandwich, intervals.
    """
    solving = {name: marginal[name, "two"] - marginal[name, "one"] for name in ("all", "tiled")}
    moments = {name: marginal[name, "full"] - marginal[name, "one"] for name in ("all", "tiled")}
    return Breakdown(
        weights=2 * marginal["all", "one"] - marginal["all", "two"],
        gradients=solving["all"] - solving["tiled"],
        moments=moments["all"] - moments["tiled"],
        small=solving["tiled"] + moments["tiled"],
    )


class CountingLogistic:
    """The logistic loss in Python; counts the elements whose slope is asked for."""

    def __init__(self) -> None:
        self.slopes = 0
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
            self.slopes += u.size
        return -y * expit(-y * u)


def passes(study: Callable[..., Any], X: F64, y: F64, n_distinct: int, **keywords: Any) -> float:
    """Passes over the rows that a group of replicates of :func:`coverage` or :func:`variability` makes.

    Counted by a loss in Python: how often it is asked for the slope of each distinct row.
    """
    counts = []
    for replicates in (LANES, 3 * LANES):
        logistic = CountingLogistic()
        study(X, y, replicates, loss=logistic.loss, **keywords)
        counts.append(logistic.slopes)
    return (counts[1] - counts[0]) / (2 * LANES * n_distinct)
