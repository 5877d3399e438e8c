"""``Newton``: released values of a fit by Newton steps, on rows that a released map makes round."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.costs import Step
from dpci.base.codec import NotNegative, Positive, read_only
from dpci.errors import InvalidInput

_GREATEST = 6.0
"""No radius of round rows is greater than this many times the root of their dimension, as in the core."""
_SEEN_MARKS = (4.0, 6.0)
"""Records that a column of zeros and ones must mark, over the noise in second moments in units of a record, for its
coefficient to have an interval, and the same under pure DP. In eight fits each of 5,000 records the rule's 21, 85 and
217 at ρ = .5, (1, 1e-6) and ε = 1 lie between the counts of which some and all had one."""
_SHORT = 8
"""Times as many for an interval that is about as long as others."""


def least_marks(steps: Iterable[Step], *, pure: bool) -> int:
    """Return how many records a column of zeros and ones must mark for its coefficient to have an interval, about."""
    shape = next(step for step in steps if step.step == "shape")
    return math.ceil(_SEEN_MARKS[pure] * shape.scale / shape.sensitivity)


@dataclass(frozen=True, kw_only=True, eq=False)
class Newton:
    """Released values of a fit by Newton steps (docs/proofs/newton.md); k is the number of parameters.

    Rows x become round by ``round_map' x``; those longer than the last radius weigh less. By ``z = map' x`` Hessians
    are round, too. Rows weigh less whose gradient or Hessian could be longer than its bound. Parameters of z become
    those of x by ``map @``.
    """

    map: NDArray[np.float64]
    """T, shape (k, k), computed from released second moments and Hessians."""
    round_map: NDArray[np.float64]
    """Map of the rows to those that decide their weights, shape (k, k), computed from released second moments."""
    radii: NDArray[np.float64]
    """Radii beyond which rows weigh less: in each round, one or under pure DP two, and at last; shape (2,) or (3,)."""
    bounds: NDArray[np.float64]
    """Norms that the gradient and the Hessian of no record exceed, and the greatest stretch of round rows: at each
    of three points, of which the first has the gradient at 0, or under pure DP one; shape (3, 3) or (1, 3)."""
    starts: NDArray[np.float64]
    """Parameters of z where steps to ``params`` start, shape (m, k): m is 2, or under pure DP 1. The matrices are those
    of the last one."""
    gradients: NDArray[np.float64]
    """Mean gradients there with their noise, shape (m, k): released, or under pure DP what the ridge balances."""
    weights: NDArray[np.float64]
    """How much each step counts, 1 in all, shape (m,)."""
    centre: NDArray[np.float64]
    """Centre of the ridge under pure DP, the best constant predictor, shape (k,); 0 for other notions."""
    ridge: NotNegative
    """Strength of the ridge whose perturbed minimiser is the start, under pure DP; 0 for other notions."""
    params: NDArray[np.float64]
    """Weighted mean of where the steps end, shape (k,)."""
    edge: Positive
    """Eigenvalues of the Hessian below it are not told from noise."""

    def __post_init__(self) -> None:
        for part in fields(self):
            if part.name not in {"edge", "ridge"}:
                object.__setattr__(self, part.name, read_only(getattr(self, part.name)))
        k, is_pure = len(self.params), self.ridge > 0.0
        n_steps = 1 if is_pure else 2
        points = {**dict.fromkeys(("starts", "gradients"), (n_steps, k)), "weights": (n_steps,)}
        vectors = {**points, **dict.fromkeys(("centre", "params"), (k,))}
        maps = dict.fromkeys(("map", "round_map"), (k, k))
        shapes = {**maps, **vectors, "radii": (3,) if is_pure else (2,), "bounds": (1, 3) if is_pure else (3, 3)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {getattr(self, name).shape}")
        for name in ("radii", "bounds"):
            if not (getattr(self, name) > 0.0).all():
                raise InvalidInput(f"{name} must be > 0, got {getattr(self, name).tolist()}")

    @property
    def made_by(self) -> str:
        """Mechanism in words."""
        return "Newton steps with noisy gradients" if self.ridge == 0.0 else "objective perturbation and a Newton step"

    @property
    def is_bounded(self) -> bool:
        """Whether the last radius is the greatest one (docs/proofs/newton.md, "Radius and norms")."""
        return float(self.radii[-1]) >= _GREATEST * math.sqrt(len(self.params)) * (1.0 - 1e-9)

    def marks_few(self, rows: NDArray[np.float64], n: float, steps: Iterable[Step]) -> NDArray[np.bool_]:
        """Return which columns of zeros and ones mark so few of ``n`` records that noise is most of their intervals.

        ``rows``, shape (m, k), are their entries in the rows of which the map was computed, each in its own column.
        """
        moments = np.linalg.inv(self.round_map @ self.round_map.T)
        own = np.abs(rows).argmax(axis=1)
        marks = n * moments[own, own] / rows[np.arange(len(rows)), own] ** 2
        return np.asarray(marks < _SHORT * least_marks(steps, pure=self.ridge > 0.0))

    @property
    def further(self) -> NDArray[np.float64]:
        """M, which moves round rows to z, shape (k, k)."""
        return np.asarray(np.linalg.solve(self.round_map, self.map))
