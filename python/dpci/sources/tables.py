"""Tables in parts that a schema describes: files, chunks and Dask frames, before they are encoded."""

import os
from typing import Any

from dpci.base.validation import as_name
from dpci.data.dask import dask_partitions
from dpci.data.frames import is_frame
from dpci.data.rows import is_dask, is_in_parts
from dpci.errors import InvalidInput
from dpci.schema.cells import absent
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.sources.chunks import Chunks
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

    Raises
    ------
    InvalidInput
        For chunks that were made with another schema, or that come with targets, and for columns that are absent.
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
