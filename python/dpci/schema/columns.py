"""One column of a table each: its public bounds or categories, and how a value becomes numbers of at most 1."""

import contextlib
import math
import re
import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dpci.data.frames import decoded
from dpci.errors import InvalidInput

Scale: TypeAlias = Literal["symmetric", "unit"]
Transform: TypeAlias = Literal["none", "signed_log"]
Outside: TypeAlias = Literal["clip", "error"]
Unknown: TypeAlias = Literal["zeros", "error"]
_F64: TypeAlias = NDArray[np.float64]

# Types whose equal values have equal labels, and those of which a list is kept as it is.
_PLAIN = {str, bool, int, float, type(None)}
_SINGLE_VALUES = (*_PLAIN, np.bool_, np.integer, np.floating)
_WHOLE_NUMBER = re.compile(r"(-?[0-9]+)\.0*")


@dataclass(frozen=True, kw_only=True)
class NumericColumn:
    """A number with public bounds; gives one column of the matrix.

    Parameters
    ----------
    name : str
        Column of the table.
    lower, upper : float
        Public bounds in the unit of the table, ``lower < upper``.
    scale : {"symmetric", "unit"}
        The bounds are mapped to [-1, 1] or to [0, 1].
    transform : {"none", "signed_log"}
        ``signed_log`` applies sign(v) log(1 + abs(v)) to value and bounds before scaling: for money or traffic.
    outside : {"clip", "error"}
        What happens to a value beyond its bounds.
    source : str
        Why the bounds are public.
    unit : str
        What the table counts in, for results: "year".
    """

    name: str
    lower: float
    upper: float
    scale: Scale = "symmetric"
    transform: Transform = "none"
    outside: Outside = "clip"
    source: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_bounds(self.name, self.lower, self.upper)
        _check_choice(self.name, "scale", self.scale, Scale)
        _check_choice(self.name, "transform", self.transform, Transform)
        _check_choice(self.name, "outside", self.outside, Outside)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the one column of the matrix."""
        return (self.name,)

    @property
    def units(self) -> tuple[str, ...]:
        """What a parameter of the column is per, in the terms of the table."""
        unit = self.unit or "unit"
        return (f"per {unit}" if self.transform == "none" else f"per log {unit}",)

    @property
    def scaling(self) -> tuple[_F64, _F64]:
        """``(offset, slope)`` of the column: what `encode` gives is offset + slope * value, after the transform."""
        lower, upper = self._transformed_bounds()
        offset, slope = -lower / (upper - lower), 1.0 / (upper - lower)
        if self.scale == "symmetric":
            offset, slope = 2.0 * offset - 1.0, 2.0 * slope
        return np.array([offset]), np.array([slope])

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n, 1) values in [-1, 1] or [0, 1]."""
        numbers = _bounded_numbers(self.name, values, self.lower, self.upper, self.outside)
        bounds = self._transformed_bounds()
        if self.transform == "signed_log":
            numbers = _signed_log(numbers)
        unit = np.clip((numbers - bounds[0]) / (bounds[1] - bounds[0]), 0.0, 1.0)
        scaled: NDArray[np.float64] = unit if self.scale == "unit" else 2.0 * unit - 1.0
        return scaled[:, None]

    def _transformed_bounds(self) -> _F64:
        bounds = np.array([self.lower, self.upper], dtype=np.float64)
        return _signed_log(bounds) if self.transform == "signed_log" else bounds


@dataclass(frozen=True, kw_only=True)
class CategoricalColumn:
    """A value out of a public list; gives one 0/1 column of the matrix per category, named ``column=category``.

    Parameters
    ----------
    name : str
        Column of the table.
    categories : tuple of str
        The public list. Whole numbers are compared by their digits, so ``2``, ``2.0`` and ``"2"`` are one category.
    reference : str, optional
        Category without a column of its own: the others are measured against it.
    unknown : {"error", "zeros"}
        What happens to a value that is not in the list: an error, or zeros in all columns. With "zeros" a list that
        spells categories in another way than the table gives a column without a row: ``Schema.check`` shows it.
    source : str
        Why the list is public.
    """

    name: str
    categories: tuple[str, ...]
    reference: str | None = None
    unknown: Unknown = "error"
    source: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        categories: object = self.categories
        if isinstance(categories, str):
            # "A, B" would be one category, which no record has.
            msg = f"column {self.name!r}: categories must be a list, got {categories!r}"
            raise InvalidInput(msg)
        object.__setattr__(self, "categories", _labels_of(self.name, "categories", self.categories))
        if self.reference is not None:
            object.__setattr__(self, "reference", label_of(self.reference))
            if self.reference not in self.categories:
                msg = f"column {self.name!r}: reference must be a category, got {self.reference!r}"
                raise InvalidInput(msg)
            if len(self.categories) == 1:
                msg = f"column {self.name!r}: needs a category besides the reference, got {self.categories!r}"
                raise InvalidInput(msg)
        _check_choice(self.name, "unknown", self.unknown, Unknown)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(f"{self.name}={category}" for category in self.categories if category != self.reference)

    @property
    def units(self) -> tuple[str, ...]:
        """What the parameter of each category is measured against."""
        against = "no category" if self.reference is None else self.reference
        return (f"against {against}",) * len(self.names)

    @property
    def scaling(self) -> tuple[_F64, _F64]:
        """``(offset, slope)`` of the columns: indicators are 0 and 1 as they are."""
        return np.zeros(len(self.names)), np.ones(len(self.names))

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n, categories without the reference) indicators."""
        codes = _codes(values, {category: code for code, category in enumerate(self.categories)})
        if self.unknown == "error":
            _check_rows(self.name, values, codes >= 0, f"hold one of {list(self.categories)}")
        indicators = np.zeros((codes.size, len(self.categories)))
        known = np.flatnonzero(codes >= 0)
        indicators[known, codes[known]] = 1.0
        if self.reference is not None:
            indicators = np.delete(indicators, self.categories.index(self.reference), axis=1)
        return indicators


@dataclass(frozen=True, kw_only=True)
class ClassTarget:
    """Two public classes, each one or several labels of the table; gives -1 (negative) and 1 (positive)."""

    column: str
    negative: tuple[str, ...]
    positive: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_name(self.column)
        object.__setattr__(self, "negative", _labels_of(self.column, "negative", self.negative))
        object.__setattr__(self, "positive", _labels_of(self.column, "positive", self.positive))
        if both := set(self.negative) & set(self.positive):
            msg = f"target {self.column!r}: a label belongs to one class, got {sorted(both)} in both"
            raise InvalidInput(msg)

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n,) of -1 and 1; a label of neither class is an error."""
        index = dict.fromkeys(self.negative, 0) | dict.fromkeys(self.positive, 1)
        codes = _codes(values, index)
        _check_rows(self.column, values, codes >= 0, f"hold one of {list(index)}")
        return np.where(codes == 1, 1.0, -1.0)


@dataclass(frozen=True, kw_only=True)
class NumericTarget:
    """A number with public bounds, clipped and mapped to [-1, 1] ("symmetric") or [0, 1] ("unit")."""

    column: str
    lower: float
    upper: float
    scale: Scale = "symmetric"
    source: str = ""
    unit: str = ""

    @property
    def scaling(self) -> tuple[float, float]:
        """``(offset, slope)``: what `encode` gives is offset + slope * value."""
        offset, slope = NumericColumn(name=self.column, lower=self.lower, upper=self.upper, scale=self.scale).scaling
        return float(offset[0]), float(slope[0])

    def __post_init__(self) -> None:
        _check_name(self.column)
        _check_bounds(self.column, self.lower, self.upper)
        _check_choice(self.column, "scale", self.scale, Scale)

    def encode(self, values: object) -> NDArray[np.float64]:
        """(n,) scaled targets."""
        column = NumericColumn(name=self.column, lower=self.lower, upper=self.upper, scale=self.scale)
        return column.encode(values)[:, 0]


def class_labels(target: ClassTarget | NumericTarget) -> tuple[str, str] | None:
    """Return the two classes as the table has them: several labels of one class are joined by ``|``."""
    if not isinstance(target, ClassTarget):
        return None
    negative, positive = "|".join(target.negative), "|".join(target.positive)
    return None if negative == positive else (negative, positive)


Column: TypeAlias = NumericColumn | CategoricalColumn
Target: TypeAlias = ClassTarget | NumericTarget


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        msg = f"a column name must be a non-empty string, got {name!r}"
        raise InvalidInput(msg)


def _check_bounds(name: str, lower: object, upper: object) -> None:
    for bound in (lower, upper):
        # Compared, not converted: NaN fails, and an integer may have hundreds of digits.
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not (abs(bound) <= sys.float_info.max):
            msg = f"column {name!r}: bounds must be finite numbers, got {bound!r}"
            raise InvalidInput(msg)
    if not (lower < upper):  # type: ignore[operator]  # both were just found to be numbers
        msg = f"column {name!r}: lower must be below upper, got lower={lower}, upper={upper}"
        raise InvalidInput(msg)
    if not math.isfinite(upper - lower):  # type: ignore[operator]
        msg = f"column {name!r}: upper - lower must be finite, got lower={lower}, upper={upper}"
        raise InvalidInput(msg)


def _check_choice(name: str, field: str, value: object, choices: object) -> None:
    if not isinstance(value, str) or value not in get_args(choices):
        msg = f"column {name!r}: {field} must be one of {list(get_args(choices))}, got {value!r}"
        raise InvalidInput(msg)


def _labels_of(name: str, field: str, values: object) -> tuple[str, ...]:
    """One label or several as a tuple of distinct strings."""
    if isinstance(values, str) or getattr(values, "ndim", 1) == 0 or not isinstance(values, Iterable):
        values = (values,)
    labels = tuple(label_of(value) for value in values)
    if not labels or len(set(labels)) != len(labels):
        msg = f"column {name!r}: {field} must be distinct and at least one, got {list(labels)}"
        raise InvalidInput(msg)
    return labels


def label_of(value: object) -> str:
    """Return the text by which categories are compared: digits of a whole number, otherwise the stripped text."""
    if isinstance(value, bytes):
        # Its own text is b'...', which no list of categories holds, so that every record would be of none.
        msg = f"categories and labels must be text or numbers, got bytes {value!r}: decode the column"
        raise InvalidInput(msg)
    text = str(value).strip()
    # A table with a gap turns 2 into 2.0.
    whole = _WHOLE_NUMBER.fullmatch(text)
    label = whole[1] if whole else text
    return "0" if label == "-0" else label  # zeros are equal


def as_cells(values: object) -> NDArray[Any]:
    """Return a column as an array in which no value decides how another one reads: rows belong to different people.

    NumPy makes texts as wide as the longest of them, and integers beside a missing value floats of fewer digits.
    """
    if isinstance(values, list | tuple):
        one_by_one = all(issubclass(kind, _SINGLE_VALUES) for kind in set(map(type, values)))
        return np.array(values, dtype=object) if one_by_one else np.asarray(values)
    values = decoded(values)
    cells = np.asarray(values)
    kind = getattr(values, "type", getattr(values, "dtype", ""))
    if cells.dtype.kind == "f" and "int" in str(kind).lower():
        column: Any = values
        listed = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
        cells = np.array([cell if isinstance(cell, int | float) else math.nan for cell in listed], dtype=object)
    return cells


def _codes(values: object, index: Mapping[str, int]) -> NDArray[np.int64]:
    """Position of each value in a list of labels, -1 where it is not in the list."""
    listed = as_cells(values).tolist()
    kinds = set(map(type, listed))
    if len(kinds) > 1 or not kinds <= _PLAIN:
        return np.fromiter((index.get(label_of(cell), -1) for cell in listed), np.int64, len(listed))
    # Few distinct values: look each one up once.
    found: dict[Hashable, int] = {cell: index.get(label_of(cell), -1) for cell in set(listed)}
    return np.fromiter((found[cell] for cell in listed), np.int64, len(listed))


def _bounded_numbers(name: str, values: object, lower: float, upper: float, outside: Outside) -> NDArray[np.float64]:
    cells = as_cells(values)
    if cells.dtype.kind in "mM":  # as numbers, counts of days or of nanoseconds
        msg = f"column {name!r} must hold finite numbers, got dtype {cells.dtype}"
        raise InvalidInput(msg)
    numbers = as_floats(cells)
    _check_rows(name, cells, np.isfinite(numbers), "hold finite numbers")
    if outside == "error":
        _check_rows(name, cells, (numbers >= lower) & (numbers <= upper), f"lie in [{lower:g}, {upper:g}]")
    return np.clip(numbers, lower, upper)


def as_floats(cells: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers that cells hold; NaN where they hold none."""
    if cells.dtype.kind in "mM":
        return np.full(cells.shape, np.nan)
    numbers: NDArray[np.float64] | None = None
    if not _has_underscores(cells):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            # A cast would drop imaginary parts.
            numbers = cells.astype(np.float64, casting="same_kind" if cells.dtype.kind == "c" else "unsafe")
    if numbers is None:
        numbers = np.fromiter((_number(cell) for cell in cells.tolist()), np.float64, cells.size)
    return numbers


def _signed_log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sign(values) * np.log1p(np.abs(values))


def _has_underscores(cells: NDArray[np.generic]) -> bool:
    """Whether a text has the underscore that Python allows between digits and no other program of tables does."""
    return cells.dtype.kind in "OU" and any(isinstance(cell, str) and "_" in cell for cell in cells.tolist())


def _number(cell: object) -> float:
    """Return the number that a cell holds; NaN where it holds none."""
    if isinstance(cell, str) and "_" in cell:
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # the except clause is the check
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:  # an integer beyond the range of floats
        return math.inf


def _shortened(cell: object) -> str:
    """Return a cell as text; it may be as long as a file."""
    text = repr(cell)
    return text if len(text) <= 80 else f"{text[:60]}..."


def _check_rows(name: str, values: object, valid: NDArray[np.bool_], rule: str) -> None:
    if not valid.all():
        row = int(np.argmin(valid))
        msg = f"column {name!r} must {rule}, got {_shortened(as_cells(values).tolist()[row])} in row {row}"
        raise InvalidInput(msg)
