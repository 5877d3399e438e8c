"""Budgets of a utility: roots of its prediction, confirmed and refined by fits with the same draws of the noise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from dpci import _core
from dpci.errors import NotConverged
from dpci.utility.expected import BudgetPath

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


# First step of a refinement, the longest one, and that at which it has converged, on the scale of the logarithms.
_FIRST_STEP, _LONGEST_STEP, _LAST_STEP = 0.02, 0.25, 1e-4

# How far from a predicted root the computed one may be: further off the prediction says nothing.
_REACH = 0.5

_MAX_STEPS = 12

# Fits that look for a root where predictions show none.
_FITTED_POINTS = 13


@dataclass(frozen=True)
class Refits:
    """Fits at other budgets with the draws of measuring points, each started from the Newton prediction there."""

    utility: _core.Utility
    path: BudgetPath
    seed: int
    n_steps: int
    anchors: tuple[_core.UtilityAnchor, ...]

    def params(self, value: float) -> _F64:
        """Return the parameters at a budget, shape (n_draws, k); output perturbation is predicted exactly."""
        spec = self.path.spec(value)
        points = np.array([self.utility.predict(anchor, [spec], self.n_steps)[0] for anchor in self.anchors])
        if self.path.settings.mechanism.name == "output":
            return points
        found = []
        for (noise, residual), start in zip(self._terms, points, strict=True):
            moved = noise + residual / spec.noise_scale
            found.append(self.utility.anchor(spec, moved, params=None, start=start).params)
        return np.array(found)

    @cached_property
    def _terms(self) -> list[tuple[_F64, _F64]]:
        """Each draw at scale 1, and minus n times the gradient, which makes a caller's parameters a minimiser."""
        spec, n = self.path.spec(self.path.at), self.path.divisor
        terms = []
        for draw, anchor in enumerate(self.anchors):
            noise = _core.Utility.draw_noise(spec, self.seed, draw)
            gradient = self.utility.total * self.utility.mean_derivatives(anchor.params, width=None)[0]
            gradient += n * self.path.l2_strength(self.path.at) * anchor.params + spec.noise_scale * noise
            terms.append((noise, -gradient))
        return terms


def least_root(
    predict: Callable[[_F64], _F64], compute: Callable[[float], float], values: _F64
) -> tuple[float | None, _F64]:
    """Return the smallest root that is found, or None; and gaps that were computed where predictions did not help.

    1. Roots of ``predict`` are candidates; each is confirmed and refined by ``compute``. 2. Where none holds, since
    Newton steps overshoot far from the measuring point, ``compute`` itself is bracketed at thirteen budgets.

    Parameters
    ----------
    predict, compute : callable
        The gap to the target: cheap, of budgets of shape (m,), and dear, of one budget.
    values : numpy.ndarray of shape (n,)
        Ascending budgets between which a change of sign is looked for.
    """

    def at(log: float) -> float:
        return float(np.clip(np.exp(log), values[0], values[-1]))

    from scipy.optimize import brentq  # noqa: PLC0415  # slow to import, and searches alone need it

    logs, gaps = np.log(values), predict(values)

    def candidates() -> Iterator[float]:
        signs = np.sign(gaps)
        if np.all(signs == signs[0]) and signs[0] != 0.0:
            yield float(logs[np.argmin(np.abs(gaps))])  # predictions may end just short of the target
        for i, log in enumerate(logs):
            if signs[i] == 0.0:
                yield float(log)
            elif i + 1 < len(logs) and signs[i] * signs[i + 1] < 0.0:
                yield float(brentq(lambda x: float(predict(np.array([at(x)]))[0]), log, logs[i + 1], xtol=1e-10))

    for candidate in candidates():
        found = refined_root(lambda x: compute(at(x)), candidate, logs[0], logs[-1])
        if found is not None:
            return at(found), gaps
    return computed_root(compute, values[np.linspace(0, len(values) - 1, _FITTED_POINTS).astype(np.intp)])


def computed_root(compute: Callable[[float], float], values: _F64) -> tuple[float | None, _F64]:
    """Return the smallest root of ``compute`` between two of the values, or None; and its finite values there."""
    from scipy.optimize import brentq  # noqa: PLC0415  # likewise

    def gap(value: float) -> float:
        try:
            return compute(value)
        except NotConverged:  # so much noise that the minimiser is lost in rounding
            return np.nan

    gaps = np.array([gap(value) for value in values])
    known = np.isfinite(gaps)
    values, gaps = values[known], gaps[known]
    for i in range(len(gaps)):
        if gaps[i] == 0.0:
            return float(values[i]), gaps
        if i + 1 < len(gaps) and np.sign(gaps[i]) * np.sign(gaps[i + 1]) < 0.0:
            low, high = np.log(values[i]), np.log(values[i + 1])
            log = brentq(lambda x: compute(float(np.exp(x))), float(low), float(high), xtol=_LAST_STEP)
            return float(np.exp(float(log))), gaps
    return None, gaps


def refined_root(compute: Callable[[float], float], start: float, least: float, greatest: float) -> float | None:
    """Return the root of ``compute`` near ``start`` by secant steps; None if there is none near.

    Parameters
    ----------
    compute : callable
        The gap at one point, dear.
    start : float
        Root of a prediction.
    least, greatest : float
        Where to look.

    Notes
    -----
    1. The first step only measures a slope. 2. Later ones go to the root of the secant, a quarter at most. 3. A step
    below 1e-4 ends the search. A bracket is not kept: where predictions are good three points suffice.
    """
    low, high = max(least, start - _REACH), min(greatest, start + _REACH)
    before, gap_before = start, compute(start)
    if gap_before == 0.0:
        return start
    here = start + _FIRST_STEP if start + _FIRST_STEP <= high else start - _FIRST_STEP
    if here < low:  # the range is narrower than the step
        here = low if start - low > high - start else high
    for _ in range(_MAX_STEPS):
        gap = compute(here)
        if gap == 0.0:
            return here
        if gap == gap_before:
            return None
        step = -gap * (here - before) / (gap - gap_before)
        following = float(np.clip(here + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP), low, high))
        before, gap_before = here, gap
        if abs(following - here) < _LAST_STEP:
            # At an end of the range the root may lie beyond.
            return following if abs(step) < 2.0 * _LAST_STEP else None
        here = following
    return None
