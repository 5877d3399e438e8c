"""The targets of a moment matrix, one or several: what they are called, and their public bounds."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.validation import broken, check_positive, check_real, composed
from dpci.data.frames import column_labels
from dpci.errors import InvalidInput
from dpci.regression.choices.model import INTERCEPT

_F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets, one or several, by the middle of their bounds and half the width."""

    middle: _F64
    half: _F64
    given: tuple[str, ...] | None = None
    """Names that came with the caller's table of targets."""

    def __post_init__(self) -> None:
        for middle, half in zip(self.middle, self.half, strict=True):
            _core.check_bounds(True, middle, half)  # noqa: FBT003  # of targets

    @classmethod
    def one(cls, middle: float, half: float, name: str | None = None) -> "Targets":
        """Return a single target."""
        return cls(np.array([middle]), np.array([half]), None if name is None else (name,))

    def named(self, y: object) -> "Targets":
        """Return the same; a single one without a name has that of a frame's column y."""
        name = getattr(y, "name", None)
        if self.further or self.given is not None or not isinstance(name, str) or not name:
            return self
        return replace(self, given=(composed(name),))

    @classmethod
    def checked(cls, y: object, bound: object) -> "Targets":
        """Return the targets: the columns of y; of rows in parts, which hold them, one for each pair of bounds."""
        pairs = _listed(bound)
        shape: Any = getattr(y, "shape", ())
        several = isinstance(shape, tuple) and len(shape) == 2
        if isinstance(shape, tuple) and len(shape) > 2:
            raise InvalidInput(f"y must have one dimension, or two with a column for each target, got shape {shape}")
        if several and shape[1] == 0:
            raise InvalidInput("y must have at least one column, got none")
        count = len(pairs or (1,)) if y is None else int(shape[1]) if several else 1
        bounds = [_interval(bound)] * count if pairs is None else [_interval(pair) for pair in pairs]
        if len(bounds) != count:
            raise InvalidInput(
                f"target_bound must be one pair (lower, upper), or a list of one for each column of y ({count}), got a "
                f"list of {len(bounds)}"
            )
        middle, half = np.array(bounds).T
        given = column_labels(y) if several else None
        if count > 1 and given is not None and (len(set(given)) < len(given) or INTERCEPT in given):
            raise InvalidInput(f"columns of y must have different names, none of them {INTERCEPT!r}, got {given}")
        return cls(middle, half, given)

    @property
    def further(self) -> int:
        """How many there are besides the last, which the core takes for y; they are its last columns of X."""
        return len(self.middle) - 1

    def names(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return what targets are called beside columns of these names: as in their frame, or "y", or y0, y1, ...

        Names have underscores where a column, or the intercept, has the same, but for those of a frame of several.
        """
        if self.given is not None and self.further:
            both = sorted(set(self.given) & set(columns))
            if both:
                raise InvalidInput(f"columns of y and of X must have different names, got {both[0]!r} in both")
            return self.given
        plain = [f"y{i}" for i in range(len(self.middle))] if self.further else [*(self.given or ("y",))]
        for i in range(len(plain)):
            while plain[i] in (*columns, INTERCEPT):
                plain[i] += "_"
        return tuple(plain)

    def split(self, values: _F64, *, clip: bool) -> tuple[_F64, _F64]:
        """Return the further targets as columns, and the last target."""
        count = len(self.middle)
        if values.ndim != 2 or values.shape[1] != count:
            raise InvalidInput(
                f"y must have the {count} columns that target_bound is for, got an array of shape {values.shape}"
            )
        first = values[:, :-1]
        middle, half = self.middle[:-1], self.half[:-1]
        if clip:
            return np.clip(first, middle - half, middle + half), values[:, -1]
        outside = ~(np.abs(first - middle) <= half)
        if outside.any():
            i, j = map(int, np.argwhere(outside)[0])
            shown = f"{middle[j] - half[j]:g} to {middle[j] + half[j]:g}"
            raise InvalidInput(
                f"y must be finite and within target_bound ({shown} in column {j}), got {first[i, j]} at index {(i, j)}"
            )
        return first, values[:, -1]


def _listed(bound: object) -> list[Any] | None:
    """Return the pairs of a list of them; None for a single pair or number."""
    pairs = list(bound) if isinstance(bound, list | tuple) else []
    return pairs if pairs and all(isinstance(pair, list | tuple) for pair in pairs) else None


def _interval(value: Any) -> tuple[float, float]:  # noqa: ANN401  # whatever the caller has
    """Return the middle of the targets' bounds and half their width, from a bound on their size or (lower, upper)."""
    if not isinstance(value, tuple | list):
        return 0.0, check_positive("target_bound", value)
    if len(value) != 2:
        raise broken("target_bound", "a number or a pair (lower, upper)", value)
    lower, upper = (check_real(f"target_bound[{i}]", part) for i, part in enumerate(value))
    if not (lower < upper and np.isfinite(upper - lower)):
        raise broken("target_bound", "finite and increasing", value)
    middle = lower + 0.5 * (upper - lower)
    return middle, max(upper - middle, middle - lower)
