"""Public bounds of single columns: rows are moved to the middle of their bounds and divided by half their width."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.validation import broken, check_finite, check_real
from dpci.data.arrays import Features, NamedRows, OnViolation, PlacedRows, as_features, as_matrix, as_numbers, as_vector
from dpci.data.coded import CodedRows
from dpci.data.frames import check_same_index, is_frame
from dpci.data.parts import NOTHING, Mergeable, Partitions, on_threads
from dpci.data.storage import SparseRows
from dpci.errors import InvalidInput
from dpci.regression.choices.targets import Targets
from dpci.rows import Ball, Blocks, RowDomain, same_blocks
from dpci.schema.columns import NumericTarget
from dpci.schema.table import Schema
from dpci.unit import Persons

_F64 = NDArray[np.float64]
_Merged = TypeVar("_Merged", bound=Mergeable)

# Numbers in a block of rows: it stays in the cache between the operations on it.
_BLOCK = 1 << 15

SPARSE = (
    "X must be dense with bounds of the columns, by which they are centred and scaled, got a sparse matrix (pass "
    "rows instead, or X.toarray())"
)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of columns; of all alike where they are numbers."""

    lower: _F64
    upper: _F64
    in_core: bool = False
    """Whether they follow from blocks, of which the core checks each as a whole."""

    def __post_init__(self) -> None:
        # Without a scale in double precision a robust covariance would fail after it is paid.
        for middle, half in np.broadcast(*_middle_and_half(self.lower, self.upper)):
            _core.check_bounds(False, middle, half)  # noqa: FBT003  # of columns

    @classmethod
    def of_blocks(cls, rows: Blocks, *, always: bool = False) -> "Bounds | None":
        """Return what makes all blocks equally long; None where they are, unless it is always wanted."""
        if len(set(rows.block_bounds)) == 1 and not always:
            return None
        upper = np.array([rows.block_bounds[block] for block in rows.members])
        return cls(-upper, upper, in_core=True)

    @classmethod
    def of_schema(cls, schema: Schema) -> "Bounds":
        """Return the bounds of encoded columns; single ones may be moved to their middle, those of a group may not."""
        members = schema.rows.members
        upper = np.array([schema.rows.block_bounds[block] for block in members])
        alone = np.array([members.count(block) == 1 for block in members])
        return cls(np.where(alone & ~schema.both_signs, 0.0, -upper), upper, in_core=True)

    @classmethod
    def checked(cls, value: object) -> "Bounds":
        """Return the caller's (lower, upper)."""
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise broken("bounds", "a pair (lower, upper)", value)
        lower, upper = (_numbers(f"bounds[{i}]", part) for i, part in enumerate(value))
        shapes = {part.shape for part in (lower, upper)} - {()}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise InvalidInput(
                "bounds must hold numbers, or one for each column, got shapes " + f"{lower.shape} and {upper.shape}"
            )
        with np.errstate(over="ignore"):
            width = upper - lower
        if not (np.all(width > 0.0) and np.all(np.isfinite(width))):
            raise broken("bounds", "increasing", value)
        return cls(lower, upper)

    def placed(self, n_columns: int) -> tuple[_F64, _F64]:
        """Return the middle and half the width for each of so many columns."""
        for part in (self.lower, self.upper):
            if part.shape not in {(), (n_columns,)}:
                raise InvalidInput(
                    f"bounds must hold one number for each of the {n_columns} columns of X, got {len(part)}"
                )
        middle, half = _middle_and_half(self.lower, self.upper)
        return np.broadcast_to(middle, n_columns).copy(), np.broadcast_to(half, n_columns).copy()


def _middle_and_half(lower: _F64, upper: _F64) -> tuple[_F64, _F64]:
    middle = lower + 0.5 * (upper - lower)
    # The greater distance, so that no bound lies beyond 1 when the middle is rounded.
    return middle, np.maximum(upper - middle, middle - lower)


def _numbers(name: str, value: object) -> _F64:
    if isinstance(value, np.ndarray | list | tuple):
        return check_finite(name, as_vector(name, value))
    number = check_real(name, value)
    if not np.isfinite(number):
        raise InvalidInput(f"{name} must be finite, got {name}={number}")
    return np.array(number)


@dataclass(frozen=True, eq=False)
class Standardise:
    """Moves rows and targets to the middle of their bounds, and scales rows to ±1; picklable."""

    bounds: Bounds | None
    targets: Targets
    on_violation: OnViolation

    def place(self, n_columns: int) -> tuple[_F64, _F64]:
        """Return the middle and half the width of each of so many columns, the last of which are further targets."""
        n_features = n_columns - self.targets.further
        plain = np.zeros(n_features), np.ones(n_features)
        middle, half = plain if self.bounds is None else self.bounds.placed(n_features)
        return np.append(middle, self.targets.middle[:-1]), np.append(half, self.targets.half[:-1])

    def joined(self, X: Any, y: Any) -> tuple[Any, Any]:  # noqa: ANN401  # whatever the caller has
        """Return a table with all targets but the last behind the columns of X, and the last; one target as it is."""
        shape: Any = getattr(y, "shape", ())
        if not self.targets.further and not (len(shape) == 2 and shape[1] == 1):
            return X, y
        check_same_index(X, y)
        values = as_matrix(y).values if is_frame(y) else as_numbers("y", y).astype(np.float64)
        if not self.targets.further:
            return X, values[:, 0]
        features, matrix = _dense(X)
        further, last = self.targets.split(values, clip=self.on_violation != "error")
        if len(last) != features.shape[0]:
            raise InvalidInput(f"y must have one row for each of the {features.shape[0]} rows of X, got {len(last)}")
        rows = np.column_stack([matrix, further])
        if features.names is None:
            return rows, last
        return NamedRows(rows, (*features.names, *self.targets.names(features.names)[:-1])), last

    def rows(self, X: Any) -> Any:  # noqa: ANN401  # whatever the caller has
        """Return a table in which every bounded column lies within ±1."""
        if self.bounds is None:
            return X
        features, values = _dense(X)
        middle, half = self.place(values.shape[1])
        out = np.empty(values.shape)
        height = max(1, _BLOCK // max(1, values.shape[1]))
        for start in range(0, len(values), height):
            at = slice(start, start + height)
            self._scale(values[at], out[at], middle, half, start)
        return out if features.names is None else NamedRows(out, features.names)

    def placed(self, X: Any) -> Any:  # noqa: ANN401  # whatever the caller has
        """Return the same without a copy: the core moves and scales a block of rows at a time."""
        if self.bounds is None:
            return X
        features, values = _dense(X)
        return PlacedRows(values, features.names, self.place(features.shape[1]))

    def explain(self, X: Any) -> None:  # noqa: ANN401  # whatever the caller has
        """Name the column and its bounds, as the caller gave them, where a number of placed rows is beyond them."""
        if isinstance(X, PlacedRows):
            self.rows(X)

    def _scale(self, values: NDArray[Any], out: _F64, middle: _F64, half: _F64, start: int) -> None:
        np.subtract(values, middle, out=out)
        np.divide(out, half, out=out)
        if self.on_violation == "weight" or (self.bounds is not None and self.bounds.in_core):
            return
        # The least and the greatest number say whether any is outside, or none at all.
        inside = out.size == 0 or (out.min() >= -1.0 and out.max() <= 1.0)
        if inside:
            return
        outside = ~(np.abs(out) <= 1.0) & ~((self.on_violation == "clip") & np.isfinite(values))
        if outside.any():
            i, j = map(int, np.argwhere(outside)[0])
            value = float(values[i, j])
            rule = "within its bounds" if np.isfinite(value) else "finite"
            shown = f"{middle[j] - half[j]:g} to {middle[j] + half[j]:g}"
            raise InvalidInput(f"X must be {rule} ({shown} in column {j}), got {value} at index {(start + i, j)}")
        np.clip(out, -1.0, 1.0, out=out)

    def last(self, X: Any, y: Any) -> Any:  # noqa: ANN401  # whatever the caller has
        """Return the targets around 0 of which the core checks the bound."""
        if not isinstance(X, np.ndarray):
            check_same_index(X, y)
        middle, half = float(self.targets.middle[-1]), float(self.targets.half[-1])
        if middle == 0.0:
            return y
        given = as_vector("y", y)
        moved = given - middle
        outside = np.abs(moved) > half
        if self.on_violation == "error" and outside.any():
            row = int(np.argmax(outside))
            lower, upper = middle - half, middle + half
            raise InvalidInput(f"y must be within target_bound ({lower:g}, {upper:g}), got {given[row]:g} in row {row}")
        return moved


def _dense(X: Any) -> tuple[Features, NDArray[Any]]:  # noqa: ANN401  # whatever the caller has
    """Return a table, and its numbers as one array."""
    features = as_features(X)
    if isinstance(features.values, np.ndarray):
        return features, features.values
    if not isinstance(X, NamedRows | CodedRows | SparseRows):  # which a schema has made
        raise InvalidInput(SPARSE)
    return features, as_matrix(X).values


@dataclass(frozen=True, eq=False)
class OnStandardised:
    """Work on a part of the rows, done after they are moved and scaled; picklable as the work is."""

    work: Callable[..., Any]
    standardise: Standardise

    def __call__(self, X: Any, y: Any, beside: Mapping[str, Any] = NOTHING) -> Any:  # noqa: ANN401  # whatever a source gives
        """Return what the work makes of one part."""
        X, y = self.standardise.joined(X, y)
        return self.work(self.standardise.rows(X), self.standardise.last(X, y), beside)


class StandardisedParts:
    """Rows in parts, moved and scaled wherever they are worked on."""

    def __init__(self, parts: Partitions, standardise: Standardise) -> None:
        self._parts = parts
        self._standardise = standardise

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, where the source knows them."""
        names = self._parts.names
        return names if names is None else (*names, *self._standardise.targets.names(names)[:-1])

    def on_threads(self, n_threads: int | None) -> tuple["StandardisedParts", int | None]:
        """Return the parts on so many threads, and the threads of each."""
        parts, each = on_threads(self._parts, n_threads)
        return StandardisedParts(parts, self._standardise), each

    def reduce(self, work: Callable[..., _Merged]) -> _Merged | None:
        """Apply ``work`` to every part, and merge in their order."""
        return self._parts.reduce(OnStandardised(work, self._standardise))


def bounds_and_domain(
    bounds: tuple[ArrayLike, ArrayLike] | None,
    rows: RowDomain | None,
    *,
    several: bool = False,
) -> tuple[Bounds | None, RowDomain | None]:
    """Return by what columns are moved and scaled, and the domain of the rows; one of the two says which."""
    if bounds is None:
        domain = rows or Ball()
        if several and not isinstance(domain, Blocks):
            raise InvalidInput(
                "several targets require bounds of the columns of X, or rows in blocks, got rows in a ball (pass "
                "bounds=(lower, upper), or pass further targets as columns of X)"
            )
        return (Bounds.of_blocks(domain, always=several) if isinstance(domain, Blocks) else None), domain
    if rows is not None:
        raise broken("rows", "None, or 'clip', with bounds of the columns", rows)
    return Bounds.checked(bounds), None


def domain_of(bounds: Bounds | None, rows: RowDomain | None, n_columns: int, further: int = 0) -> RowDomain:
    """Return the domain of rows as the core sees them: blocks of length 1 where they were scaled.

    The last of the columns are further targets.
    """
    if rows is None:
        return Blocks([1.0] * n_columns) if n_columns else Ball()
    rows.check_columns(n_columns - further)
    if bounds is None or isinstance(rows, Ball):
        return rows
    return Blocks([1.0] * (len(rows.bounds) + further), [(columns, 1.0) for columns, _ in rows.groups])


def check_of_schema(table: Schema, columns: tuple[str, ...], rows: Blocks | None, persons: Persons | None) -> None:
    """Refuse a saved matrix of other columns, rows, target and unit than those of its schema."""
    if table.names != columns:
        raise InvalidInput(f"the schema must name the columns {columns}, got {table.names}")
    if rows is None or not same_blocks(rows, table.rows):
        raise InvalidInput(f"rows must be those of the schema, {table.rows}, got {rows}")
    if not isinstance(table.target, NumericTarget):
        raise InvalidInput(f"the target of the schema must be a number, got {table.target!r}")
    if table.persons and persons is None:
        raise InvalidInput(f"persons must be given where the schema names a column of them, {table.persons!r}")
