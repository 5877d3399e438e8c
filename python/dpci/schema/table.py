"""Public description of a table, which turns records into bounded rows without looking at the data.

A range, a category list or a scale that is computed from the records is itself a statement about them. Here all of them
are written down beforehand: a `Schema` is known before any data, and what it does to one record does not depend on any
other record.
"""

import dataclasses
import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import check_choice, check_flag
from dpci.errors import InvalidInput
from dpci.rows import Ball, Blocks
from dpci.schema.check import Finding, SchemaCheck, check_column, check_target
from dpci.schema.columns import CategoricalColumn, ClassTarget, Column, NumericColumn, NumericTarget, Target, as_cells

__all__ = ["Encoded", "Schema", "Table"]

_Part = TypeVar("_Part")
Encoding: TypeAlias = Literal["unit_norm", "full_range"]

# Rows are divided by slightly more than the worst-case norm, so that rounding cannot lift a row above 1.
_ROUNDING_MARGIN = 1.0 + 2.0**-40


class Table(Protocol):
    """A mapping of columns, a data frame or a structured array: anything with ``table[name]``."""

    def __getitem__(self, name: Any, /) -> Any:  # noqa: ANN401  # keys and columns of every such type
        """Return a column."""


class Encoded(NamedTuple):
    """Rows, targets and the names of the columns of the rows."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    names: tuple[str, ...]


_KINDS: dict[str, type[Column]] = {"numeric": NumericColumn, "categorical": CategoricalColumn}


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Everything public about a table: its columns, their bounds and categories, and the target.

    Every row that `transform` can ever give lies in `rows`: each number is within its own bounds, and the indicators of
    a categorical column hold at most a single 1. The bounds depend on the schema alone.

    Parameters
    ----------
    columns : tuple of NumericColumn and CategoricalColumn
        In the order in which the matrix is built. Columns of the table that are not named here are ignored.
    target : ClassTarget or NumericTarget
        The column to be predicted.
    encoding : {"unit_norm", "full_range"}
        "unit_norm": numbers are in [-1, 1] or [0, 1], indicators are 0 and 1, and all columns are divided by sqrt(k), k
        the columns of the table, so that every row has norm at most 1. "full_range", for fits with
        ``rows=schema.rows``: nothing is divided by sqrt(k). Numbers are in units of their range, from -1/2 to 1/2
        ("symmetric") or from 0 to 1 ("unit"), and indicators are 0 and 1: a parameter is what the whole range of a
        number adds, or a category against the reference.
    name, title, source, licence : str
        What the table is, who described it, and on what terms it may be used.

    Examples
    --------
    >>> schema = Schema(
    ...     columns=(
    ...         NumericColumn(name="age", lower=18, upper=100),
    ...         CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
    ...     ),
    ...     target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    ... )
    >>> X, y, names = schema.transform({"age": [18, 59], "sex": ["M", "F"], "ill": ["no", "yes"]})
    >>> names, y.tolist()
    (('age', 'sex=M'), [-1.0, 1.0])
    """

    columns: tuple[Column, ...]
    target: Target
    encoding: Encoding = "unit_norm"
    name: str = ""
    title: str = ""
    source: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        columns: object = self.columns
        if not isinstance(columns, Sequence) or not all(
            isinstance(c, NumericColumn | CategoricalColumn) for c in columns
        ):
            msg = f"columns must be a sequence of NumericColumn and CategoricalColumn, got {columns!r}"
            raise InvalidInput(msg)
        object.__setattr__(self, "columns", tuple(columns))
        target: object = self.target
        if not isinstance(target, ClassTarget | NumericTarget):
            msg = f"target must be a ClassTarget or a NumericTarget, got {target!r}"
            raise InvalidInput(msg)
        check_choice("encoding", self.encoding, get_args(Encoding))
        if not self.columns:
            msg = "a schema must name at least one column, got none"
            raise InvalidInput(msg)
        used = [self.target.column, *(column.name for column in self.columns)]
        if repeated := sorted({name for name in used if used.count(name) > 1}):
            msg = f"a schema must name a column once, target included, got {repeated} twice"
            raise InvalidInput(msg)
        names = self.names
        if len(set(names)) < len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            msg = f"columns of the matrix must have different names, got {repeated} twice (rename a column)"
            raise InvalidInput(msg)

    @property
    def rows(self) -> Blocks:
        """The tightest public blocks that hold every row: each number and each group of indicators by itself."""
        bounds: list[float] = []
        groups: list[tuple[range, float]] = []
        for start, column in zip(self._starts, self.columns, strict=True):
            bound = 1.0 / self._divisor(column)
            if len(column.names) == 1:
                bounds.append(bound)
            else:
                groups.append((range(start, start + len(column.names)), bound))
        return Blocks(bounds, groups)

    @property
    def domain(self) -> Ball | Blocks:
        """The domain of rows that goes with the encoding: the unit ball, or `rows`."""
        return Ball(self.row_norm) if self.encoding == "unit_norm" else self.rows

    @property
    def row_norm(self) -> float:
        """Public bound on ||x||_2 for every row: 1 for the encoding "unit_norm"."""
        return 1.0 if self.encoding == "unit_norm" else self.rows.norm

    @property
    def row_scale(self) -> float:
        """What indicators are divided by: sqrt(k), and a little more, or 1 for the encoding "full_range"."""
        return math.sqrt(len(self.columns)) * _ROUNDING_MARGIN if self.encoding == "unit_norm" else 1.0

    @property
    def divisors(self) -> NDArray[np.float64]:
        """What each column of the matrix is divided by after the scale of its column of the table: (len(names),)."""
        return np.repeat([self._divisor(c) for c in self.columns], [len(c.names) for c in self.columns])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(name for column in self.columns for name in column.names)

    def features(self, table: Table) -> NDArray[np.float64]:
        """Rows of a table, without the target.

        Parameters
        ----------
        table : mapping of columns or data frame
            Anything with ``table[name]``; the columns have equal length. Text that reads as a number is a number.

        Returns
        -------
        ndarray of shape (n, len(self.names))
            Float64, C-contiguous, every row in `rows` and of norm at most `row_norm`.

        Raises
        ------
        InvalidInput
            A column is missing, columns differ in length, or a value is no finite number, or, where the schema asks for
            an error, beyond its bounds or not in the list; names the column and the first such row, counted from 0.
        """
        first, *rest = (_column(table, column.name) for column in self.columns)
        n_samples = len(first)
        for column, values in zip(self.columns[1:], rest, strict=True):
            _check_length(column.name, values, n_samples)
        rows = np.empty((n_samples, len(self.names)))
        for start, column, values in zip(self._starts, self.columns, (first, *rest), strict=True):
            rows[:, start : start + len(column.names)] = column.encode(values)
        rows /= self.divisors
        return rows

    def targets(self, table: Table) -> NDArray[np.float64]:
        """Targets of a table: -1 and 1, or scaled numbers; errors as in `features`."""
        return self.target.encode(_column(table, self.target.column))

    def transform(self, table: Table) -> Encoded:
        """``(X, y, names)`` of a table; parameters and errors as in `features`."""
        X = self.features(table)
        y = self.targets(table)
        _check_length(self.target.column, y, len(X))
        return Encoded(X, y, self.names)

    def check(self, table: Table) -> SchemaCheck:
        """Return what the schema would do to a table: what it moves or refuses, and categories that no row has.

        **Not private**: it counts rows, and is for the holder of the data, before anything is spent. The target is
        looked at where the table has it.

        Raises
        ------
        InvalidInput
            For a table without a column of the schema, or with columns of different lengths.
        """
        columns = [(column, _column(table, column.name)) for column in self.columns]
        n_rows = len(columns[0][1])
        found: list[Finding] = []
        for column, values in columns:
            _check_length(column.name, values, n_rows)
            found += check_column(column, values)
        if self.target.column in _names_of(table):
            targets = _column(table, self.target.column)
            _check_length(self.target.column, targets, n_rows)
            found += check_target(self.target, targets)
        return SchemaCheck(n_rows, tuple(found))

    @property
    def units(self) -> tuple[str, ...]:
        """What the parameter of each column of the matrix means in the table: "per year", "against F"."""
        return tuple(unit for column in self.columns for unit in column.units)

    def from_units(self) -> NDArray[np.float64]:
        """Return the linear map from columns in the units of the table to those of the matrix.

        Returns
        -------
        ndarray of shape (k + 1, k + 1)
            A with ``(x, 1) = A (z, 1)``: x is a row of the matrix, z the same columns before they are scaled: numbers
            within their bounds, after their transform, and indicators. What is linear in x is linear in z: ``theta' x``
            plus a constant c is ``A' (theta, c)`` as coefficients of z and of 1.
        """
        offsets, slopes = (np.concatenate(parts) for parts in zip(*(c.scaling for c in self.columns), strict=True))
        scaled = np.diag(np.append(slopes / self.divisors, 1.0))
        scaled[:-1, -1] = offsets / self.divisors
        return scaled

    @property
    def digest(self) -> str:
        """SHA-256 of what the schema does to a table: equal for schemas that encode every table alike.

        Names of the table, its source and its licence do not count, nor do sources and units of columns.
        """
        parts = [_essential(_plain(part, defaults=True)) for part in (self.target, *self.columns)]
        text = json.dumps([self.encoding, self.row_scale, *parts], sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def to_dict(self, *, defaults: bool = False) -> dict[str, Any]:
        """Plain dictionary, the inverse of `from_dict`; fields at their defaults are left out unless asked for."""
        defaults = check_flag("defaults", defaults)
        kinds = {kind: name for name, kind in _KINDS.items()}
        columns = [{"kind": kinds[type(column)], **_plain(column, defaults=defaults)} for column in self.columns]
        head = {field: getattr(self, field) for field in ("name", "title", "source", "licence") if getattr(self, field)}
        if self.encoding != "unit_norm" or defaults:
            head["encoding"] = self.encoding
        return {**head, "target": _plain(self.target, defaults=defaults), "columns": columns}

    @property
    def _starts(self) -> tuple[int, ...]:
        """First column of the matrix of each column of the table."""
        return tuple(itertools.accumulate((len(column.names) for column in self.columns[:-1]), initial=0))

    def _divisor(self, column: Column) -> float:
        """Return what a column's values, of at most 1, are divided by."""
        halved = self.encoding == "full_range" and isinstance(column, NumericColumn) and column.scale == "symmetric"
        return 2.0 if halved else self.row_scale

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Schema":
        """Return the schema of a dictionary as TOML or JSON gives it; see docs/data.md for the layout."""
        entries = _as_mapping("a schema", description)
        for required in ("target", "columns"):
            if required not in entries:
                msg = f"a schema must have {required!r}, got {sorted(entries)}"
                raise InvalidInput(msg)
        target = _as_mapping("the target", entries.pop("target"))
        columns = entries.pop("columns")
        if not isinstance(columns, list | tuple):
            msg = f"columns must be a list of tables, got {columns!r}"
            raise InvalidInput(msg)
        target_kind: type[Target] = NumericTarget if "lower" in target else ClassTarget
        return _build(
            cls,
            "a schema",
            {
                **entries,
                "target": _build(target_kind, "the target", target),
                "columns": tuple(_build_column(_as_mapping("a column", column)) for column in columns),
            },
        )

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "Schema":
        """Return the schema of a ``.toml`` or ``.json`` file."""
        path = Path(path)
        readers = {".toml": tomllib.loads, ".json": json.loads}
        if path.suffix not in readers:
            msg = f"a schema file must end in .toml or .json, got {str(path)!r}"
            raise InvalidInput(msg)
        try:
            return cls.from_dict(readers[path.suffix](path.read_text(encoding="utf-8-sig")))
        except OSError as error:
            msg = f"a schema file must be readable, got {str(path)!r}: {error.strerror}"
            raise InvalidInput(msg) from error
        except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            msg = f"a schema file must be valid {path.suffix[1:].upper()}, got {path}: {error}"
            raise InvalidInput(msg) from error


def same_columns(schema: Schema, other: Schema) -> bool:
    """Whether two schemas make the same rows of every table; their targets do not matter."""
    used = [column.name for column in (*schema.columns, *other.columns)]
    # A target of a name of its own goes with both.
    target = ClassTarget(column="".join(used) + "?", negative=("0",), positive=("1",))
    first, second = (dataclasses.replace(each, target=target).digest for each in (schema, other))
    return first == second


def _build_column(fields: dict[str, Any]) -> Column:
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        msg = f"kind of column {fields.get('name')!r} must be one of {list(_KINDS)}, got {kind!r}"
        raise InvalidInput(msg)
    return _build(_KINDS[kind], f"column {fields.get('name')!r}", fields)


def _build(kind: type[_Part], what: str, fields: Mapping[str, Any]) -> _Part:
    known = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    if extra := sorted(set(fields) - set(known)):
        msg = f"{what} may have the fields {list(known)}, got {extra}"
        raise InvalidInput(msg)
    required = {name for name, field in known.items() if field.default is dataclasses.MISSING}
    if missing := sorted(required - set(fields)):
        msg = f"{what} must have {missing}, got {sorted(fields)}"
        raise InvalidInput(msg)
    return kind(**fields)


def _plain(part: Column | Target, *, defaults: bool = False) -> dict[str, Any]:
    values = {field.name: (getattr(part, field.name), field.default) for field in dataclasses.fields(part)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, (value, default) in values.items()
        if defaults or value != default
    }


def _essential(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a column or a target that decide what it does; 1 and 1.0 are one bound."""
    kept = {name: value for name, value in part.items() if name not in {"source", "unit"}}
    return {name: float(value) if isinstance(value, int) else value for name, value in kept.items()}


def _as_mapping(what: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        msg = f"{what} must be a table of fields, got {value!r}"
        raise InvalidInput(msg)
    return dict(value)


def _column(table: Table, name: str) -> NDArray[Any]:
    if hasattr(type(table), "collect"):
        msg = f"a table must be in memory, got a lazy {type(table).__name__}: collect() it"
        raise InvalidInput(msg)
    present = _names_of(table)
    if name not in present:
        msg = f"the table must have the column {name!r}, got {[str(column) for column in present]}"
        raise InvalidInput(msg)
    values = as_cells(table[name])
    if values.ndim != 1:
        msg = f"column {name!r} must be one-dimensional, got shape {values.shape}"
        raise InvalidInput(msg)
    return values


def _names_of(table: Table) -> list[Any]:
    # The columns of a table of pyarrow are no names.
    present = getattr(table, "column_names", getattr(table, "columns", None))
    if present is None:
        present = table.keys() if isinstance(table, Mapping) else getattr(getattr(table, "dtype", None), "names", None)
    if present is None:
        msg = f"a table must be a mapping of columns or a data frame, got {type(table).__name__}"
        raise InvalidInput(msg)
    return list(present)


def _check_length(name: str, values: NDArray[Any], n_samples: int) -> None:
    if len(values) != n_samples:
        msg = f"all columns must have equal length, got {len(values)} in {name!r} and {n_samples} before it"
        raise InvalidInput(msg)
