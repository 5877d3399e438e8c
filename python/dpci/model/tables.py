"""Tables through a public schema: what ``fit(schema=)`` takes, as rows that are encoded where they may be read."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpci.base.validation import broken, check_count
from dpci.data.arrays import NamedRows, as_numbers
from dpci.data.dask import dask_partitions, is_dask
from dpci.data.frames import check_same_index, is_frame
from dpci.data.interchange import named_columns, taken_over
from dpci.data.labels import Classes, CodedLabels
from dpci.data.parts import NOTHING, Mergeable, Partitions, on_threads
from dpci.data.persons import check_columns_of_counts, check_index_of_persons
from dpci.data.rows import is_in_parts
from dpci.data.weights import check_index_of_weights
from dpci.errors import InvalidInput
from dpci.losses import COUNTS
from dpci.schema.cells import absent, column_of
from dpci.schema.columns import ClassTarget, NumericTarget, class_labels
from dpci.schema.table import Schema
from dpci.sources.chunks import Chunks

_Merged = TypeVar("_Merged", bound=Mergeable)

_CODED: Classes = (-1, 1)


class Source(NamedTuple):
    """Input of a fit: rows and targets, and the function that makes them where they are read at once."""

    X: Any
    y: Any
    prepare: Callable[[Any, Any], tuple[Any, Any]] | None


def check_schema(schema: object) -> Schema:
    """Return a public schema that a result can be saved with."""
    if not isinstance(schema, Schema):
        raise broken("schema", "a dpci.schema.Schema or None", schema)
    try:
        kept = Schema.from_dict(json.loads(json.dumps(schema.to_dict(defaults=True), allow_nan=False)))
    except (TypeError, ValueError) as error:  # found before anything is spent
        raise InvalidInput(f"schema must be one that a file can hold, got {schema!r}: {error}") from error
    if kept.digest != schema.digest:
        raise InvalidInput(f"schema must be read from a file as it was written, got {schema!r}")
    return schema


def schema_classes(schema: Schema) -> Classes | None:
    """Return (negative, positive) as the table has them; None for a target that is a number."""
    return (class_labels(schema.target) or _CODED) if isinstance(schema.target, ClassTarget) else None


def check_counts(loss: str, schema: Schema) -> None:
    """Refuse a loss of counts for a target that a schema encodes as anything but a share of its upper bound."""
    target = schema.target
    if loss in COUNTS and isinstance(target, NumericTarget) and (target.scale, target.lower) != ("unit", 0.0):
        raise InvalidInput(
            f"the target of a schema must have scale='unit' and lower=0 for the {loss} loss, which then models counts "
            f"in units of its upper bound (count_bound=1), got scale={target.scale!r} and lower={target.lower:g}"
        )


def beside_rows(*columns: object) -> tuple[str, ...]:
    """Return the columns of ids and weights that are named."""
    return tuple(column for column in columns if isinstance(column, str))


def described(
    X: Any,  # noqa: ANN401  # whatever the caller has
    y: Any,  # noqa: ANN401
    schema: Schema,
    beside: tuple[str, ...] = (),
    *,
    persons: object = None,
) -> Source:
    """Return what a fit reads of a table that a schema describes; nothing is read here.

    Parameters
    ----------
    X : table, path, Chunks or Dask frame
        Columns of the schema, encoded in the fit; the target too, unless ``y`` has it. Chunks that were made with a
        schema are encoded already.
    y : array-like or None
        The column of targets, if it is not in the table.
    schema : Schema
        Public description of the columns.
    beside : tuple of str
        Columns of ids and weights, which parts keep beside their encoded rows.
    persons : object
        If it is the name of one of them, files are cut between these persons.

    Raises
    ------
    InvalidInput
        For anything that is no such table, and chunks of another schema.
    """
    if isinstance(X, str | os.PathLike):
        X = _file(X, schema, beside, persons if isinstance(persons, str) else None)
    _check_no_targets(X, y)
    if isinstance(X, Chunks) and X.schema is not None:
        if X.schema.digest != schema.digest:
            raise InvalidInput(
                f"schema must be the one that the chunks were made with, {X.schema.digest}, got {schema.digest}"
            )
        return Source(SchemaParts(X, schema, beside, encoded=True), y, None)
    if isinstance(X, NamedRows):  # encoded already
        if X.names != schema.names:
            raise InvalidInput(f"the columns of X must be those of the schema, {schema.names}, got {X.names}")
        return Source(X, None if y is None else _coded(y, schema), None)
    if hasattr(type(X), "reduce") and isinstance(X, Partitions):
        return Source(SchemaParts(X, schema, beside), y, None)
    if is_dask(X):
        needed = [*dict.fromkeys([*(column.name for column in schema.columns), *beside])]
        if missing := [name for name in [*needed, *([schema.target.column] if y is None else ())] if name not in X]:
            raise InvalidInput(absent(missing[0], X))
        parts = dask_partitions(X[needed], X[schema.target.column] if y is None else y)
        return Source(SchemaParts(parts, schema, beside), None, None)
    if not (is_frame(X) or isinstance(X, Mapping) or getattr(getattr(X, "dtype", None), "names", None)):
        raise InvalidInput(
            "X must be a table with named columns where there is a schema (a frame, a mapping of columns, a file, or "
            f"chunks of these), got {type(X).__name__}"
        )
    return Source(RawTable(X, schema), y, _encoded)


def check_unit_columns(schema: Schema | None, X: object, *, persons: object, weights: object) -> None:
    """Refuse names of columns without a schema, and rows without the persons of whom the schema has a column of ids."""
    for name, values, what in (("persons", persons, "ids"), ("weights", weights, "numbers")):
        if isinstance(values, str) and schema is None and not is_in_parts(X):
            raise InvalidInput(
                f"{name} must be an array of {what} without a schema, because all columns of X are used, got the name "
                "of a column"
            )
        if isinstance(values, str) and isinstance(X, NamedRows):
            raise InvalidInput(
                f"{name} must be an array of {what} for rows that are encoded already, got the name of a column"
            )
    # Chunks may know a schema that the fit was not given.
    known = schema if schema is not None else X.schema if isinstance(X, Chunks) else None
    named = known.persons if isinstance(known, Schema) else None
    check_columns_of_counts(named, persons, weights)


def column_values(X: Any, values: Any) -> Any:  # noqa: ANN401  # a column of any library
    """Return ids or weights, of a table those of the column that is named."""
    # Parts are asked for their columns one by one.
    if not isinstance(values, str) or is_in_parts(X):
        return values
    return column_of(X.columns if isinstance(X, RawTable) else X, values)


def counts_beside(X: Any, *, persons: Any, weights: Any) -> dict[str, Any]:  # noqa: ANN401  # columns of any library
    """Return ids and weights of the rows of a table: those of the columns that are named, or as they are given.

    Raises
    ------
    InvalidInput
        Where the table and one of them have an index and the two differ.
    """
    # Encoded rows have no index any more.
    table = X.table if isinstance(X, RawTable) else X
    check_index_of_persons(table, persons)
    check_index_of_weights(table, weights)
    return {"persons": column_values(X, persons), "weights": column_values(X, weights)}


@dataclass(frozen=True, eq=False, repr=False)
class RawTable:
    """A table in memory that is not encoded yet, with the shape that it will have."""

    table: Any
    schema: Schema

    @cached_property
    def columns(self) -> Any:  # noqa: ANN401  # tables of any library
        """The table, whose columns can be asked for; one that is a stream of Arrow is read here, once."""
        return named_columns(self.table)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of encoded columns, without a look at a value."""
        table, name = self.table, self.schema.columns[0].name
        try:
            n_rows = len(table[name]) if isinstance(table, Mapping) and name in table else len(table)
        except TypeError as error:  # such as a lazy frame
            raise InvalidInput(f"a table must be in memory, got {type(table).__name__}") from error
        return n_rows, len(self.schema.names)


class SchemaParts:
    """Parts of a table, each of which a schema encodes, or has encoded, where it lies."""

    def __init__(self, parts: Any, schema: Schema, beside: tuple[str, ...] = (), *, encoded: bool = False) -> None:  # noqa: ANN401  # any partitions
        self._parts = parts
        self._schema = schema
        self._beside = beside
        self._encoded = encoded

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return self._schema.names

    def on_threads(self, n_threads: int | None) -> tuple["SchemaParts", int | None]:
        """Return the parts on so many threads, and the threads of each."""
        parts, each = on_threads(self._parts, n_threads)
        return SchemaParts(parts, self._schema, self._beside, encoded=self._encoded), each

    def reduce(self, work: Callable[..., _Merged]) -> _Merged | None:
        """Apply ``work`` to the encoded rows and targets of every part."""
        merged: _Merged | None = self._parts.reduce(_Encoding(self._schema, work, self._beside, encoded=self._encoded))
        return merged


@dataclass(frozen=True)
class _Encoding:
    """Work on encoded rows, as work on those of the table."""

    schema: Schema
    work: Callable[..., Any]
    beside: tuple[str, ...]
    encoded: bool

    def __call__(self, X: Any, y: Any, given: Mapping[str, Any] = NOTHING) -> Any:  # noqa: ANN401  # whatever a source gives
        if self.encoded:
            return self.work(X, _coded(y, self.schema), given)
        # Once, also here: a stream can be read only once.
        X = named_columns(X)
        columns = {name: column_of(X, name) for name in self.beside if name not in given}
        return self.work(*encode_table(X, y, self.schema), {**given, **columns})


def encode_table(X: Any, y: Any, schema: Schema) -> tuple[NamedRows, Any]:  # noqa: ANN401  # tables of any library
    """Return rows and targets of a table; ``y`` None: the table has the column of targets."""
    check_same_index(X, y)
    X = named_columns(X)  # once: a stream can be read only once
    features = schema.features(X)
    targets = schema.targets(X) if y is None else schema.target.encode(taken_over("y", y))
    return NamedRows(features, schema.names), _coded(targets, schema)


def _encoded(X: RawTable, y: Any) -> tuple[NamedRows, Any]:  # noqa: ANN401  # a column of any library
    return encode_table(X.columns, y, X.schema)


def _coded(targets: Any, schema: Schema) -> Any:  # noqa: ANN401  # encoded targets
    """Return encoded targets with the classes that they stand for, if they stand for any."""
    classes = schema_classes(schema)
    return targets if classes is None else CodedLabels(as_numbers("y", targets).astype(np.float64), classes)


def _check_no_targets(X: Any, y: Any) -> None:  # noqa: ANN401  # whatever the caller has
    if isinstance(X, Chunks) and y is not None:
        raise InvalidInput(
            f"y must be None where X is a file or chunks, which hold the target, got y of type {type(y).__name__}"
        )


def _file(path: Any, schema: Schema, beside: tuple[str, ...], together: str | None) -> Chunks:  # noqa: ANN401  # a path
    read = Chunks.from_parquet if str(path).lower().endswith(".parquet") else Chunks.from_csv
    return read(path, schema=schema, beside=beside, together=together)


def n_planned_columns(n_features: object, schema: Schema | None) -> int:
    """Return the number of columns that a plan is given, or that of its schema.

    Raises
    ------
    InvalidInput
        For neither, and for both where they differ.
    """
    if schema is None:
        if n_features is None:
            raise InvalidInput("n_features must be given for a plan without a schema, got None")
        return check_count("n_features", n_features, least=0)
    n_columns = len(check_schema(schema).names)
    if n_features is not None and check_count("n_features", n_features, least=0) != n_columns:
        raise InvalidInput(f"n_features must be that of the schema, {n_columns}, or None, got n_features={n_features}")
    return n_columns
