"""Tables through a public schema: what ``fit(schema=)`` takes, as rows that are encoded where they may be read."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpci.base.validation import as_name, broken, check_count
from dpci.data.arrays import NamedRows, as_numbers
from dpci.data.dask import dask_partitions
from dpci.data.frames import check_same_index, is_frame, named_columns, taken_over
from dpci.data.labels import Classes, CodedLabels
from dpci.data.parts import NOTHING, Mergeable, on_threads
from dpci.data.persons import check_columns_of_unit
from dpci.data.rows import Source, check_index_beside, is_dask, is_in_parts
from dpci.errors import InvalidInput
from dpci.losses import COUNTS
from dpci.schema.cells import absent, column_of, columns_beside
from dpci.schema.columns import ClassTarget, NumericTarget, class_labels
from dpci.schema.partial import PartialSchema
from dpci.schema.table import RawTable, Schema
from dpci.sources.chunks import Chunks
from dpci.sources.files import Columns, read_batches
from dpci.unit import Beside

_Merged = TypeVar("_Merged", bound=Mergeable)

_CODED: Classes = (-1, 1)
_CELLS = {"persons": "ids", "weights": "numbers"}


def check_schema(schema: object) -> Schema:
    """Return a public schema that a result can be saved with."""
    if isinstance(schema, PartialSchema):
        gaps = [column.name for column in schema.gaps]
        raise InvalidInput(
            f"schema must have bounds for every column for this function, got none for {gaps} (dpci.release_schema "
            "releases them)"
        )
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


def source_of(source: Source, schema: Schema | None) -> Source:
    """Return what a fit reads of a caller's source, which a schema may describe."""
    source = source if schema is None else described(source, schema)
    check_unit_columns(schema, source)
    return source


def described(source: Source, schema: Schema) -> Source:
    """Return what a fit reads of a table that a schema describes; nothing is read here.

    Parameters
    ----------
    source : Source
        Columns of the schema, encoded in the fit, of a table, path, chunks or Dask frame; the target too, unless ``y``
        has it. Chunks that were made with a schema are encoded already. Columns of ids and weights that are named parts
        keep beside their encoded rows, and files are cut between persons.
    schema : Schema
        Public description of the columns.
    """
    X, y, beside, _ = source
    if isinstance(X, str | os.PathLike):
        X = _file(X, schema, beside)
    _check_no_targets(X, y)
    if isinstance(X, Chunks) and X.schema is not None:
        if X.schema.digest != schema.digest:
            raise InvalidInput(
                f"schema must be the one that the chunks were made with, {X.schema.digest}, got {schema.digest}"
            )
        return source._replace(X=SchemaParts(X, schema, beside.names, encoded=True))
    if isinstance(X, NamedRows):  # encoded already
        if X.names != schema.names:
            raise InvalidInput(f"the columns of X must be those of the schema, {schema.names}, got {X.names}")
        return source._replace(y=None if y is None else _coded(y, schema))
    if is_in_parts(X):
        return source._replace(X=SchemaParts(X, schema, beside.names))
    if is_dask(X):
        X = X.rename(columns=as_name) if is_frame(X) else X
        needed = [*dict.fromkeys([*(column.name for column in schema.columns), *beside.names])]
        if missing := [name for name in [*needed, *([schema.target.column] if y is None else ())] if name not in X]:
            raise InvalidInput(absent(missing[0], X))
        parts = dask_partitions(X[needed], X[schema.target.column] if y is None else y)
        return source._replace(X=SchemaParts(parts, schema, beside.names), y=None)
    if not (is_frame(X) or isinstance(X, Mapping) or getattr(getattr(X, "dtype", None), "names", None)):
        raise InvalidInput(
            "X must be a table with named columns where there is a schema (a frame, a mapping of columns, a file, or "
            f"chunks of these), got {type(X).__name__}"
        )
    return source._replace(X=RawTable(X, schema), prepare=_encoded)


def check_unit_columns(schema: Schema | None, source: Source) -> None:
    """Refuse names of columns without a schema, and rows without the persons of whom the schema has a column of ids."""
    X = source.X
    for name, values in source.beside.given.items():
        what = _CELLS[name]
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
    check_columns_of_unit(named, source.beside)


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


def _encoded(source: Source) -> Source:
    table, schema = source.X.table, source.X.schema
    # Encoded rows have no index any more.
    check_index_beside(table, source.beside)
    columns = named_columns(table)
    beside = columns_beside(columns, source.beside)
    return Source(*encode_table(columns, source.y, schema), beside)


def _coded(targets: Any, schema: Schema) -> Any:  # noqa: ANN401  # encoded targets
    """Return encoded targets with the classes that they stand for, if they stand for any."""
    classes = schema_classes(schema)
    return targets if classes is None else CodedLabels(as_numbers("y", targets).astype(np.float64), classes)


def _check_no_targets(X: Any, y: Any) -> None:  # noqa: ANN401  # whatever the caller has
    if isinstance(X, Chunks) and y is not None:
        raise InvalidInput(
            f"y must be None where X is a file or chunks, which hold the target, got y of type {type(y).__name__}"
        )


def _file(path: Any, schema: Schema, beside: Beside) -> Chunks:  # noqa: ANN401  # a path
    read = Chunks.from_parquet if str(path).lower().endswith(".parquet") else Chunks.from_csv
    together = beside.persons if isinstance(beside.persons, str) else None
    return read(path, schema=schema, beside=beside.names, together=together)


def whole_file(path: str | os.PathLike[str], schema: Schema, beside: Beside, *, is_private: bool) -> Columns:
    """Return the columns of a file that a schema describes, and those of ids and weights.

    Raises
    ------
    InvalidInput
        For a ledger with private errors, which no file may be read before; and what a file must not be.
    """
    if is_private:
        raise InvalidInput(
            "X must be a table in memory with a ledger that has errors='private', because a file is read before it is "
            f"paid for, got the path {str(path)!r}"
        )
    needed = [*dict.fromkeys([*(c.name for c in schema.columns), schema.target.column, *beside.names])]
    (table,) = read_batches(Path(path), n_rows=None, columns=needed)
    return table


def n_planned_columns(n_features: object, schema: Schema | None) -> int:
    """Return the number of columns that a plan is given, or that of its schema."""
    if schema is None:
        if n_features is None:
            raise InvalidInput("n_features must be given for a plan without a schema, got None")
        return check_count("n_features", n_features, least=0)
    n_columns = len(check_schema(schema).names)
    if n_features is not None and check_count("n_features", n_features, least=0) != n_columns:
        raise InvalidInput(f"n_features must be that of the schema, {n_columns}, or None, got n_features={n_features}")
    return n_columns
