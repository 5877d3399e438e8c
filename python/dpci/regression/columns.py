"""Means, variances and correlations of the columns of a released moment matrix, with intervals.

docs/proofs/linear_regression.md has the formulas. Sampling errors of variances and correlations depend on
fourth moments, which are not released: they follow from bounds, or from an assumption that the caller states.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpci.errors import InvalidInput
from dpci.inference.intervals import ConfidenceIntervals
from dpci.regression.law import ErrorParts, Noise, positive_part
from dpci.regression.record import MomentRecord
from dpci.schema.table import Schema

_F64 = NDArray[np.float64]

# Columns must vary this many standard deviations of the noise for a correlation, as regressors must for a regression.
_CLEAR = 4.0
# Halvings that leave no digit of a bound open.
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class _Column:
    """A column less its released mean, as a combination of those of the matrix."""

    name: str
    mean: float
    """In the caller's units, as are all of these."""
    centred: _F64
    variance: float
    """Estimated without bias; it may be negative."""
    gradient: tuple[float, float]
    """Eigenvalues of the gradient of the variance in the matrix."""
    reach: float
    """No number of the column is farther from the mean than this."""


class Columns:
    """The columns of a record, and the laws of what is estimated about them."""

    def __init__(self, record: MomentRecord) -> None:
        self._record = record
        k = len(record.columns)
        self._noise = record.noise()
        self._degrees = np.inf if record.is_gaussian else 0.5 * (k + 3)
        self._constant = np.zeros(k + 2)
        self._constant[k] = 1.0 / record.constant
        # The noisy mean of 1: the true one is public, or tells how much the records count together.
        self._ones = float(record.matrix[k, k]) / record.constant**2
        if self._ones <= 0.0:
            raise InvalidInput(
                "means, variances and correlations need a matrix whose noise does not hide the number of records: the "
                f"released share of records must be above 0, got {self._ones:.3g}"
            )
        self._public = record.counted_is_public
        # Of persons and of weighted records that of as many independent rows is a bound, by Jensen's inequality.
        self._n = record.divisor * (1.0 if self._public else self._ones)

    def means(self, names: Sequence[str], level: float) -> ConfidenceIntervals:
        """Return the mean of each column."""
        found = [self._column(name) for name in names]
        # The gradient of a mean is (u c' + c u')/2, u the centred column: of rank two.
        lengths = np.array([np.linalg.norm(column.centred) for column in found]) / self._ones
        length = float(np.linalg.norm(self._constant))
        along = np.array([column.centred @ self._constant for column in found]) / self._ones
        sampling, uncertain = self._variances(found)
        parts = ErrorParts(
            sampling=sampling / self._n,
            sampling_variance=uncertain / self._n**2 + 2.0 * sampling**2 / self._n**3,
            noises=(self._noises(0.5 * (along + length * lengths), 0.5 * (along - length * lengths)),),
        )
        half = parts.half_width(level)
        values = np.array([column.mean for column in found])
        return _intervals(names, (values, values - half, values + half), level)

    def variances(self, names: Sequence[str], level: float, *, normal: bool) -> ConfidenceIntervals:
        """Return the variance of each column; those of (x - mean)² follow from the bounds, or from a normal law."""
        found = [self._column(name) for name in names]
        values = np.array([column.variance for column in found])
        positive, uncertain = self._variances(found)
        reach = np.array([column.reach for column in found])
        # A variable in [0, b] with mean a has at most the variance a (b - a).
        sampling = 2.0 * positive**2 if normal else positive * np.maximum(reach**2 - positive, 0.0)
        # Of the square of the sample's mean, which alone is left where all numbers are equally far from theirs.
        sampling = sampling + 2.0 * positive**2 / self._n
        slope = 4.0 * positive if normal else np.maximum(reach**2 - 2.0 * positive, 0.0)
        plus, minus = np.array([column.gradient for column in found]).T
        parts = ErrorParts(
            sampling=sampling / self._n,
            sampling_variance=slope**2 * uncertain / self._n**2,
            noises=(self._noises(plus, minus),),
        )
        half = parts.half_width(level)
        return _intervals(names, (values, np.maximum(values - half, 0.0), np.maximum(values + half, 0.0)), level)

    def correlations(self, names: Sequence[str], level: float) -> ConfidenceIntervals:
        """Return the correlation of each pair of columns, of which every two are normal together."""
        found = [self._column(name) for name in names]
        hidden = [column.name for column in found if not column.variance > _CLEAR * self._spread(column)]
        pairs = list(combinations(found, 2))
        lost = [[column.name for column in pair if column.name in hidden] for pair in pairs]
        refusals = [
            f"{' and '.join(names)} vary no more than the noise in the matrix" if names else None for names in lost
        ]
        rows = np.full((len(pairs), 3), np.nan)
        clear = [i for i, names in enumerate(lost) if not names]
        if clear:
            rows[clear] = self._correlations([pairs[i] for i in clear], level)
        labels = [f"{one.name}:{other.name}" for one, other in pairs]
        return _intervals(labels, (rows[:, 0], rows[:, 1], rows[:, 2]), level, tuple(refusals))

    def _correlations(self, pairs: Sequence[tuple[_Column, _Column]], level: float) -> _F64:
        """Return the correlation of each pair and the ends of its interval."""
        estimates, plus, minus = np.array([self._correlation(one, other) for one, other in pairs]).T
        noise = self._noises(plus, minus)

        def tail(rho: _F64) -> _F64:
            """Probability of errors at least as great as those of the estimates, where the correlations are these."""
            sampling = (1.0 - rho**2) ** 2 / self._n
            return ErrorParts(sampling, np.zeros(len(rho)), (noise,)).tail(np.abs(estimates - rho))

        within = np.clip(estimates, -1.0, 1.0)
        ends = [_ends(tail, within, end, 1.0 - level) for end in (-1.0, 1.0)]
        return np.column_stack([estimates, *ends])

    def _correlation(self, one: _Column, other: _Column) -> tuple[float, float, float]:
        """Return a correlation, and the eigenvalues of its gradient in the matrix."""
        ones = 1.0 if self._public else self._ones
        u, v = (column.centred / np.sqrt(ones * column.variance) for column in (one, other))
        r = float(u @ self._record.matrix @ v) * self._n / (self._n - 1.0)
        # The gradient (u v' + v u')/2 - r (u u' + v v')/2 lies in the plane of u and v: its eigenvalues there.
        a, b = _plane(u, v)
        within = min(max(r, -1.0), 1.0)
        gradient = 0.5 * (np.outer(a, b) + np.outer(b, a) - within * (np.outer(a, a) + np.outer(b, b)))
        low, high = np.linalg.eigvalsh(gradient)
        return r, float(high), float(low)

    def _variances(self, found: Sequence[_Column]) -> tuple[_F64, _F64]:
        seen = np.array([column.variance for column in found])
        return positive_part(seen, np.array([self._spread(column) for column in found]))

    def _spread(self, column: _Column) -> float:
        """Return the standard deviation of the noise in the variance of a column."""
        return self._noise * float(np.hypot(*column.gradient))

    def _noises(self, plus: _F64, minus: _F64) -> Noise:
        return Noise(self._noise * plus, self._noise * minus, float(self._degrees))

    def _column(self, name: str) -> _Column:
        record = self._record
        k = len(record.columns)
        row = np.zeros(k + 2)
        if name == record.target:
            row[k + 1], middle, half = 1.0 / record.target_weight, record.target_middle, record.target_half
        else:
            at = record.columns.index(name)
            row[at], middle, half = record.scale[at], float(record.middle[at]), self._half(at)
        matrix, constant = record.matrix, self._constant
        offset = float(row @ matrix @ constant) / self._ones
        centred = row - offset * constant
        # The mean is fitted to noise as well, which makes the variance too small.
        square, along = float(constant @ constant), float(constant @ centred)
        fitted = 0.5 * (square * float(centred @ centred) + along**2) / self._ones
        seen = float(centred @ matrix @ centred) + self._noise**2 * fitted
        factor = self._n / max(self._n - 1.0, 1.0)
        # Of the Schur complement v'Nv it is vv'; over the noisy mean of 1 it is (vv' - variance·cc') over that.
        gradient = factor * float(centred @ centred), 0.0
        if not self._public:
            factor /= self._ones
            a, b = _plane(centred, constant)
            form = np.outer(a, a) - seen / self._ones * np.outer(b, b)
            low, high = factor * np.linalg.eigvalsh(form)
            gradient = float(high), float(low)
        return _Column(
            name=name,
            mean=middle + offset,
            centred=centred,
            variance=factor * seen,
            gradient=gradient,
            reach=half + min(abs(offset), half),
        )

    def _half(self, at: int) -> float:
        """Half the width of the bounds of a column."""
        record = self._record
        if record.row_norm is not None:
            return record.row_norm
        if at >= len(record.features):
            lower, upper = record.target_bounds()[at - len(record.features)]
            return 0.5 * (upper - lower)
        if record.blocks is not None and np.all(record.scale == 1.0):
            return float(record.blocks.block_bounds[record.blocks.members[at]])
        return float(record.scale[at])


def _plane(one: _F64, other: _F64) -> tuple[_F64, _F64]:
    """Return the coordinates of two vectors in their plane."""
    coordinates = np.asarray(np.linalg.qr(np.column_stack([one, other]), mode="r"))
    return coordinates[:, 0], coordinates[:, 1]


def _ends(tail: Callable[[_F64], _F64], start: _F64, end: float, level: float) -> _F64:
    """Return the last values from each start to the end whose tails are at least this."""
    inside, outside = start, np.full_like(start, end)
    reached = tail(outside) >= level
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        is_inside = tail(middle) >= level
        inside, outside = np.where(is_inside, middle, inside), np.where(is_inside, outside, middle)
    return np.where(reached, end, 0.5 * (inside + outside))


def _intervals(
    names: Sequence[str], numbers: tuple[_F64, _F64, _F64], level: float, refusals: tuple[str | None, ...] = ()
) -> ConfidenceIntervals:
    estimate, lower, upper = (np.array(part, dtype=np.float64) for part in numbers)
    return ConfidenceIntervals(tuple(names), estimate, lower, upper, level, "exact", None, refusals)


def in_table_units(found: ConfidenceIntervals, table: Schema | None, *, power: int = 1) -> ConfidenceIntervals:
    """Return means, or variances (``power`` 2), of encoded columns in the units of the table, with these."""
    if table is None:
        return found
    scales = table.own_scales()
    offset, slope = np.array([scales.get(name, (0.0, 1.0, ""))[:2] for name in found.names]).T
    moved = offset if power == 1 else 0.0
    columns = ((column - moved) / slope**power for column in (found.estimate, found.lower, found.upper))
    estimate, lower, upper = map(np.asarray, columns)
    units = tuple(scales[name][2] if name in scales else "scaled" for name in found.names)
    per = units if power == 1 else tuple(f"({unit})^2" if " " in unit else f"{unit}^2" for unit in units)
    return replace(found, estimate=estimate, lower=lower, upper=upper, per=per)
