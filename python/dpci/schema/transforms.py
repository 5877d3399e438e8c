"""Transforms of the numbers of a column, and back."""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Transform: TypeAlias = Literal["none", "signed_log"]
_F64: TypeAlias = NDArray[np.float64]
# Greatest number that is made of a logarithm: a finite one.
_FARTHEST = 1e300


def forth(transform: Transform, numbers: _F64) -> _F64:
    """Numbers after a transform."""
    return np.sign(numbers) * np.log1p(np.abs(numbers)) if transform == "signed_log" else numbers


def back(transform: Transform, numbers: _F64) -> _F64:
    """Return the numbers that a transform takes to these."""
    return np.sign(numbers) * np.expm1(np.abs(numbers)) if transform == "signed_log" else numbers


def back_within(
    transform: Transform, bounds: tuple[float, float], extent: tuple[float, float] | None
) -> tuple[float, float]:
    """Return bounds that were chosen after a transform as numbers of the table, within a public range."""
    ends = np.array((-_FARTHEST, _FARTHEST) if extent is None else extent)
    scaled = np.clip(bounds, *forth(transform, ends))
    # Of rounding: back is not forth to the last bit.
    lower, upper = np.clip(back(transform, scaled), *ends).tolist()
    return lower, upper
