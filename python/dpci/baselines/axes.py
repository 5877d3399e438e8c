"""The axes of a public grid: which columns code an attribute, and its public levels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import broken, check_count, check_flag, check_positive, check_real, in_short
from dpci.data.persons import check_no_column_of_persons
from dpci.errors import InvalidInput
from dpci.schema.columns import NumericColumn
from dpci.schema.table import Schema

__all__ = ["Axis", "Bins", "Levels", "OneHot", "axes_of"]


# More cells than this are refused by the histogram; an array of their centres must not be asked for.
_MOST_BINS = 2**25


@dataclass(frozen=True)
class Bins:
    """One numeric column, cut into equal bins between public bounds; a value beyond a bound falls into the bin there.

    Parameters
    ----------
    column : int
        Column of X.
    count : int
        Number of bins, at least 1.
    lower, upper : float
        Public bounds, ``lower < upper``, in the unit of X.
    """

    column: int
    count: int
    lower: float = -1.0
    upper: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", check_count("column", self.column, least=0))
        object.__setattr__(self, "count", check_bins("count", self.count))
        lower, upper = check_real("lower", self.lower), check_real("upper", self.upper)
        if not (lower < upper and math.isfinite((upper - lower) * self.count)):
            raise InvalidInput(f"lower must be below upper, both finite, got lower={lower}, upper={upper}")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns of X."""
        return (self.column,)

    @property
    def levels(self) -> NDArray[np.float64]:
        """Centres of the bins, shape (count, 1)."""
        return bin_centers(self.count, self.lower, self.upper)[:, np.newaxis]


@dataclass(frozen=True)
class OneHot:
    """A categorical attribute coded by indicator columns: one level for each column, and one for none of them.

    Parameters
    ----------
    columns : sequence of int
        Columns of X.
    value : float
        Number that a column holds in its own category; it holds 0 in the others.
    reference : bool
        Whether "none of the columns" is a level: the reference category, or an unknown one.
    """

    columns: tuple[int, ...]
    value: float = 1.0
    reference: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _checked_columns(self.columns))
        object.__setattr__(self, "value", check_positive("value", self.value))
        object.__setattr__(self, "reference", check_flag("reference", self.reference))

    @property
    def levels(self) -> NDArray[np.float64]:
        """Codes of the categories, the reference first, shape (n_levels, n_columns)."""
        codes = self.value * np.eye(len(self.columns))
        return np.vstack([np.zeros((1, len(self.columns))), codes]) if self.reference else codes


@dataclass(frozen=True, eq=False)
class Levels:
    """Any attribute: its columns, and public points; each record is moved to the nearest of them.

    Parameters
    ----------
    columns : sequence of int
        Columns of X.
    points : array-like of shape (n_levels, n_columns)
        The levels; a flat sequence where there is one column.
    """

    columns: tuple[int, ...]
    points: Sequence[Sequence[float]] | Sequence[float] | NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _checked_columns(self.columns))
        try:
            points = np.array(self.points, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"points must be an array of numbers, got {self.points!r}") from error
        width = len(self.columns)
        if points.ndim == 1 and width == 1:
            points = points[:, np.newaxis]
        if points.ndim != 2 or points.shape[1] != width or not len(points):
            raise InvalidInput(f"points must have shape (n_levels, {width}), got shape {points.shape}")
        points.flags.writeable = False
        object.__setattr__(self, "points", points)

    @property
    def levels(self) -> NDArray[np.float64]:
        """The points, shape (n_levels, n_columns)."""
        return np.asarray(self.points)


Axis = Bins | OneHot | Levels


def axes_of(schema: Schema, bins: int | Mapping[str, int] = 10) -> tuple[Axis, ...]:
    """Return the axes of a schema: an axis for each column of its table, in the units of the rows that it makes.

    Parameters
    ----------
    schema : Schema
        Public bounds and categories.
    bins : int or mapping of str to int
        Number of bins of the numeric columns, of all or by name (10 for those not named).

    Raises
    ------
    InvalidInput
        For what is not a schema, counts below 1, names that are not numeric columns of the schema, and a schema that
        names a column of persons.
    """
    if not isinstance(schema, Schema):
        raise InvalidInput(f"schema must be a Schema, got {in_short(schema)}")
    check_no_column_of_persons(schema.persons, "a histogram takes every row for a person")
    if len(schema.names) != sum(len(column.names) for column in schema.columns) or schema.terms:
        raise InvalidInput(
            "schema must have no terms and no columns that mark missing numbers, because each axis is one column"
        )
    numeric = [column.name for column in schema.columns if isinstance(column, NumericColumn)]
    if isinstance(bins, Mapping):
        if unknown := sorted(set(bins) - set(numeric)):
            raise InvalidInput(f"bins must name numeric columns of the schema, {numeric}, got {unknown}")
        counts = {name: check_count(f"bins[{name!r}]", bins.get(name, 10)) for name in numeric}
    else:
        counts = dict.fromkeys(numeric, check_count("bins", bins))
    axes: list[Axis] = []
    start = 0
    for column in schema.columns:
        stop = start + len(column.names)
        unit = 1.0 / float(schema.divisors[start])
        if isinstance(column, NumericColumn):
            lower = 0.0 if column.scale == "unit" else -unit
            axes.append(Bins(start, counts[column.name], lower, unit))
        else:
            everything_coded = column.reference is None and column.covers_all
            axes.append(OneHot(tuple(range(start, stop)), unit, reference=not everything_coded))
        start = stop
    return tuple(axes)


def check_axes(axes: object) -> tuple[Axis, ...]:
    """Return the axes as a tuple; that they cover the columns is checked by the core."""
    if not isinstance(axes, Sequence) or not all(isinstance(axis, Bins | OneHot | Levels) for axis in axes):
        raise broken("axes", "a sequence of Bins, OneHot and Levels", axes)
    return tuple(axes)


def check_bins(name: str, value: object) -> int:
    """Return a number of bins, whose centres an array can hold."""
    count = check_count(name, value)
    if count > _MOST_BINS:
        raise InvalidInput(f"{name} must be at most {_MOST_BINS}, got {name}={count}")
    return count


def bin_centers(count: int, lower: float, upper: float) -> NDArray[np.float64]:
    """Return the centres of equal bins, shape (count,)."""
    return lower + (upper - lower) * (np.arange(count) + 0.5) / count


def _checked_columns(columns: object) -> tuple[int, ...]:
    if (
        not isinstance(columns, Sequence | np.ndarray)
        or isinstance(columns, str)
        or getattr(columns, "ndim", 1) != 1
        or not len(columns)
    ):
        raise broken("columns", "a sequence of at least one column index", columns)
    return tuple(check_count("every one of columns", column, least=0) for column in columns)
