"""Many values of a smooth curve from few: interpolation that asks for more points until it has settled."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.interpolate import PchipInterpolator

_F64: TypeAlias = NDArray[np.float64]

# Error to aim at, as a share of the range of the curve; and what is enough for a curve with small jumps.
TOLERANCE, JUMP_TOLERANCE = 1e-4, 2e-3

# One pass over the rows serves sixteen points: 16 at first, then 15 between them, and so on.
_INTERVALS = 15


def tabulate(curve: Callable[[_F64], _F64], points: _F64) -> _F64:
    """Return ``curve`` at ``points``, shape (..., len(points)), interpolated where that is cheaper.

    Parameters
    ----------
    curve : callable
        Takes points of shape (m,) and returns one or more smooth functions of them, shape (..., m).
    points : numpy.ndarray of shape (m,)
        Where to evaluate it. Up to 16 points are evaluated directly.

    Notes
    -----
    The polynomial through the Chebyshev-Lobatto points of the range is accepted when the last third of its coefficients
    sums to less than 1e-4 of the range of the curve; otherwise the intervals are halved. Predictions from losses whose
    curvature jumps have small jumps themselves, which no polynomial follows: monotone cubic pieces are accepted in its
    place when those through the points before the last halving met the new ones within 2e-3 of the range. Where as many
    points would be needed as were asked for, these are evaluated directly.
    """
    from scipy.fft import dct  # noqa: PLC0415  # slow to import, and curves alone need it
    from scipy.interpolate import PchipInterpolator  # noqa: PLC0415  # likewise

    low, high = float(points.min()), float(points.max())
    intervals = _INTERVALS
    if len(points) <= intervals + 1 or not low < high:
        return curve(points)

    def nodes(which: NDArray[np.intp], intervals: int) -> _F64:
        inner = (low + high) / 2.0 + (high - low) / 2.0 * np.cos(np.pi * which / intervals)
        return np.asarray(np.clip(inner, low, high))

    def pieces(at: _F64, values: _F64) -> "PchipInterpolator":
        return PchipInterpolator(at[::-1], values[..., ::-1], axis=-1)

    values = curve(nodes(np.arange(intervals + 1), intervals))
    before, missed = np.inf, np.inf
    while True:
        coefficients = dct(values, type=1, axis=-1) / intervals
        coefficients[..., [0, -1]] /= 2.0
        tail = np.abs(coefficients[..., -(intervals // 3) :]).sum(axis=-1)
        # Curves that are flat but for rounding have settled.
        scale = np.maximum(np.ptp(values, axis=-1) + 1e-9 * np.abs(values).max(axis=-1), np.finfo(float).tiny)
        unsettled = float((tail / scale).max())
        if unsettled <= TOLERANCE:
            position = (2.0 * points - (low + high)) / (high - low)
            return np.asarray(chebyshev.chebval(position, np.moveaxis(coefficients, -1, 0)))
        jumps = unsettled > before / 2.0
        if jumps and missed <= JUMP_TOLERANCE:
            return np.asarray(pieces(nodes(np.arange(intervals + 1), intervals), values)(points))
        if (jumps and intervals > 2 * _INTERVALS) or 2 * intervals + 1 >= len(points):
            return curve(points)
        before = unsettled
        at, between = nodes(np.arange(intervals + 1), intervals), nodes(np.arange(1, 2 * intervals, 2), 2 * intervals)
        found = curve(between)
        missed = float((np.abs(pieces(at, values)(between) - found).max(axis=-1) / scale).max())
        finer = np.empty((*values.shape[:-1], 2 * intervals + 1))
        finer[..., ::2], finer[..., 1::2] = values, found
        values, intervals = finer, 2 * intervals
