"""Streams the lines of a large file into sparse rows, a chunk at a time."""

import dataclasses
from collections.abc import Iterable, Iterator
from io import BufferedIOBase
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpci.datasets.catalogue import Layout
from dpci.datasets.tables import parse
from dpci.errors import InvalidInput
from dpci.schema.columns import CategoricalColumn
from dpci.schema.table import Encoded, Schema

# A chunk of dense rows is about 50 MB for KDD Cup 1999; larger ones are no faster.
CHUNK_ROWS = 50_000


class SparseRows(NamedTuple):
    """Sparse rows and their targets."""

    X: csr_array
    y: NDArray[np.float64]


def read_rows(content: BufferedIOBase, layout: Layout, schema: Schema, name: str) -> SparseRows:
    """Sparse rows of the delimited lines of a stream; the values are those of the dense rows.

    Parameters
    ----------
    content : binary stream
        One record a line, without a header.
    layout : Layout
        How a line is read.
    schema : Schema
        The public bounds. Here a category that it does not list is an error: a file of public data holds none.
    name : str
        Name of the file in messages.
    """
    strict = dataclasses.replace(
        schema,
        columns=tuple(
            dataclasses.replace(column, unknown="error") if isinstance(column, CategoricalColumn) else column
            for column in schema.columns
        ),
    )
    return stack(_encoded(content, layout, strict, name), len(schema.names))


def stack(chunks: Iterable[Encoded], n_columns: int) -> SparseRows:
    """Join chunks of dense rows as one sparse matrix; at its largest, memory is that matrix and one chunk."""
    values, columns, y = np.empty(0), np.empty(0, dtype=np.int32), np.empty(0)
    ends = np.zeros(1, dtype=np.int64)
    for chunk in chunks:
        rows = csr_array(chunk.X)
        _extend(ends, rows.indptr[1:] + ends[-1])
        _extend(values, rows.data)
        _extend(columns, rows.indices)
        _extend(y, chunk.y)
    # SciPy wants one type for both, and would widen the indices, a third of the matrix, to that of the ends.
    narrow = ends.astype(np.int32) if ends[-1] <= np.iinfo(np.int32).max else ends
    return SparseRows(csr_array((values, columns, narrow), shape=(len(y), n_columns)), y)


def _extend(array: NDArray[np.generic], more: NDArray[np.generic]) -> None:
    """Append in place: the allocator moves pages, where a list of chunks to be joined would need twice the memory."""
    size = len(array)
    # Nothing else refers to the array; the check would also count the names of this function and its caller.
    array.resize(size + len(more), refcheck=False)
    array[size:] = more


def _encoded(content: BufferedIOBase, layout: Layout, schema: Schema, name: str) -> Iterator[Encoded]:
    n_before = 0
    while lines := list(islice(content, CHUNK_ROWS)):
        try:
            encoded = _encode(lines, layout, schema)
        except ValueError:
            # InvalidInput is one too.
            position = _first_bad(lines, layout, schema)
            rule = _complaint(lines[position], layout, schema)
            raise InvalidInput(f"line {n_before + position + 1} of {name}: {rule}") from None
        yield encoded
        n_before += len(lines)


def _encode(lines: list[bytes], layout: Layout, schema: Schema) -> Encoded:
    """Rows of some lines; a ValueError if any of them does not fit."""
    # The reader skips empty lines, and a quotation mark may join two.
    if not all(map(bytes.strip, lines)):
        raise InvalidInput("a line must hold a record")
    encoded = schema.transform(parse(b"".join(lines), layout))
    if len(encoded.y) != len(lines):
        raise InvalidInput(f"{len(lines)} lines must hold as many records, got {len(encoded.y)}")
    return encoded


def _first_bad(lines: list[bytes], layout: Layout, schema: Schema) -> int:
    """Position of the first line that does not fit, by halving; all of it costs about as much as one chunk."""
    start, stop = 0, len(lines)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            _encode(lines[start:middle], layout, schema)
        except ValueError:
            stop = middle
        else:
            start = middle
    return start


def _complaint(line: bytes, layout: Layout, schema: Schema) -> str:
    """Rule that one line breaks, and what it holds instead."""
    text = line.decode("utf-8", errors="backslashreplace").rstrip("\r\n")
    fields = text.split(layout.delimiter)
    if len(fields) != len(layout.columns):
        return f"a line must have {len(layout.columns)} fields, got {len(fields) if text.strip() else 0}"
    try:
        schema.transform({column: [field] for column, field in zip(layout.columns, fields, strict=True)})
    except InvalidInput as error:
        # The row of the schema's message is that of this table of one row.
        return str(error).replace(" in row 0", "", 1)
    return f"a line must be readable by NumPy, got {text!r}"
