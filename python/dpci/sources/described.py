"""Tables through a public schema: what ``fit(schema=)`` takes, as rows that are encoded where they may be read."""

import json
import os
from collections.abc import Mapping
from typing import Any

from dpci.base.validation import as_name, broken, in_short
from dpci.data.arrays import NamedRows
from dpci.data.dask import dask_partitions
from dpci.data.frames import is_frame, named_columns
from dpci.data.persons import check_columns_of_unit
from dpci.data.rows import Source, check_index_beside, is_dask, is_in_parts, names_beside
from dpci.errors import InvalidInput
from dpci.schema.cells import absent, columns_beside
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.parts import COMPLETE, SchemaParts, coded, encode_table, weights_of_complete
from dpci.schema.table import RawTable, Schema
from dpci.sources.chunks import Chunks
from dpci.sources.files import FileColumns
from dpci.unit import Beside

MOST_BYTES = 512 * 2**20
"""Chunks of a file that take more are read again in every pass."""


def table_parts(
    X: Any,  # noqa: ANN401  # whatever the caller has
    y: Any,  # noqa: ANN401
    schema: Schema | PartialSchema,
    beside: Beside,
    *,
    columns: tuple[str, ...],
    target: str,
) -> Any:  # noqa: ANN401  # any partitions
    """Return the parts of a file, of chunks or of a Dask frame; None for a table in memory. Nothing is read here.

    Of a Dask frame they have these columns, those of ids and weights that are named, and the target unless ``y`` is.
    """
    if isinstance(X, str | os.PathLike):
        X = _file(X, schema, beside)
    if isinstance(X, Chunks):
        if y is not None:
            raise InvalidInput(
                f"y must be None where X is a file or chunks, which hold the target, got y of type {type(y).__name__}"
            )
        _check_same_schema(X.schema, schema)
    if is_in_parts(X):
        return X
    if not is_dask(X):
        return None
    X = X.rename(columns=as_name) if is_frame(X) else X
    needed = [*dict.fromkeys([*columns, *beside.names])]
    if missing := [name for name in [*needed, *([target] if y is None else ())] if name not in X]:
        raise InvalidInput(absent(missing[0], X))
    return dask_partitions(X[needed], X[target] if y is None else y)


def _check_same_schema(made: Schema | PartialSchema | None, given: Schema | PartialSchema) -> None:
    """Refuse another schema than that with which chunks were made."""
    if isinstance(made, Schema) and isinstance(given, Schema):
        if made.digest != given.digest:
            raise InvalidInput(
                f"schema must be the one that the chunks were made with, {made.digest}, got {given.digest}"
            )
    elif isinstance(made, Schema) or (made is not None and made != given):
        raise InvalidInput("schema must be the one that the chunks were made with, got another one (pass schema=None)")


def _file(path: Any, schema: Schema | PartialSchema, beside: Beside) -> Chunks:  # noqa: ANN401  # a path
    read = Chunks.from_parquet if str(path).lower().endswith(".parquet") else Chunks.from_csv
    together = beside.persons if isinstance(beside.persons, str) else None
    return read(path, schema=schema, beside=beside.names, together=together).remembered(MOST_BYTES)


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
        raise InvalidInput(f"schema must be one that a file can hold, got {in_short(schema)}: {error}") from error
    if kept.digest != schema.digest:
        raise InvalidInput(f"schema must be read from a file as it was written, got {in_short(schema)}")
    return schema


def source_of(source: Source, schema: Schema | PartialSchema | None) -> Source:
    """Return what a fit reads of a caller's source, which a schema may describe."""
    _check_no_formula(source)
    source = source if schema is None else described(source, schema)
    check_unit_columns(None if schema is None else known_of(schema), source)
    return source


def _check_no_formula(source: Source) -> None:
    """Refuse formulas and names of targets, which other libraries take beside a table."""
    if isinstance(source.y, Schema | PartialSchema):
        raise InvalidInput("y must be an array of targets, got a schema (pass it by its name: schema=...)")
    for name, given, other in (("X", source.X, source.y), ("y", source.y, source.X)):
        if isinstance(given, str) and other is not None:
            rule = f"{name} must be {'rows' if name == 'X' else 'an array of targets'}, got the text {in_short(given)}"
            raise InvalidInput(
                f"{rule} (pass the table first, and schema=, which names the target; for a formula "
                "schema=Schema.from_formula(formula, schema))"
            )


def described(source: Source, schema: Schema | PartialSchema) -> Source:
    """Return what a fit reads of a table that a schema describes; nothing is read here.

    Parameters
    ----------
    source : Source
        Columns of the schema, encoded in the fit, of a table, path, chunks or Dask frame; the target too, unless ``y``
        has it. Chunks that were made with a schema are encoded already. Columns of ids and weights that are named parts
        keep beside their encoded rows, and files are cut between persons.
    schema : Schema or PartialSchema
        Public description of the columns; one with gaps encodes rows by what is known.
    """
    X, y, beside, _ = source
    known = known_of(schema)
    if isinstance(X, NamedRows):  # encoded already
        if X.names != known.names:
            raise InvalidInput(f"the columns of X must be those of the schema, {known.names}, got {X.names}")
        return source._replace(y=None if y is None else coded(y, known))
    columns = tuple(column.name for column in known.columns)
    parts = table_parts(X, y, schema, beside, columns=columns, target=known.target.column)
    if parts is not None:
        if known.drops:
            beside = beside._replace(weights=COMPLETE if beside.weights is None else beside.weights)
            source = source._replace(beside=beside)
        encoded = isinstance(parts, Chunks) and isinstance(parts.schema, Schema) and not known.drops
        return source._replace(X=SchemaParts(parts, known, names_beside(beside), encoded=encoded), y=None)
    if not (is_frame(X) or isinstance(X, Mapping) or getattr(getattr(X, "dtype", None), "names", None)):
        raise InvalidInput(
            "X must be a table with named columns where there is a schema (a frame, a mapping of columns, a file, or "
            f"chunks of these), got {type(X).__name__}"
        )
    return source._replace(X=RawTable(X, known), prepare=_encoded)


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
    named = None if known is None else known.persons
    check_columns_of_unit(named, source.beside)


def _encoded(source: Source) -> Source:
    table, schema = source.X.table, source.X.schema
    # Encoded rows have no index any more.
    check_index_beside(table, source.beside)
    columns = named_columns(table)
    beside = columns_beside(columns, source.beside)
    try:
        rows, targets, complete = encode_table(columns, source.y, schema)
        if complete is not None:
            weights = beside.weights
            whole = complete if weights is None else weights_of_complete(weights, complete, columns)
            beside = beside._replace(weights=whole)
        return Source(rows, targets, beside)
    except InvalidInput as error:
        if isinstance(table, FileColumns):
            table.locate(error)
        raise
