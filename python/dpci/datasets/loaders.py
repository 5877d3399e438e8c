"""Loads public data sets as rows bounded by their public schemas; large files are streamed, a chunk at a time."""

import dataclasses
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from io import BufferedIOBase
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpci.base.validation import check_flag
from dpci.datasets import files as _files
from dpci.datasets.catalogue import CATALOGUE, KDDCUP99, Layout
from dpci.datasets.tables import Table, load_sample_table, load_table, parse, without_missing
from dpci.errors import InvalidInput
from dpci.schema.columns import CategoricalColumn
from dpci.schema.table import Encoded, Schema


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows ready for `dpci.fit`, and what is public about them.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d)
        Float64, every row of norm at most 1. Dense rows are C-contiguous. `load_kddcup99` (``percent10=False`` or
        ``sparse=True``) and `simulate_kddcup99` give SciPy's compressed sparse rows in canonical form, int32 indices.
    y : ndarray of shape (n,)
        -1 and 1.
    names : tuple of str
        Names of the columns of X.
    schema : Schema or None
        The public description by which the rows were made; None if there is none.
    licence : str
        Terms of use and attribution.
    """

    X: NDArray[np.float64] | csr_array = field(repr=False)
    y: NDArray[np.float64] = field(repr=False)
    names: tuple[str, ...]
    schema: Schema | None = field(repr=False)
    licence: str


def schema_names() -> tuple[str, ...]:
    """Names of the packaged schemas."""
    folder = resources.files(__package__).joinpath("schemas")
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def load_schema(name: str) -> Schema:
    """Return a packaged public schema: "adult", "adult_demo", "bank", "credit_default" or "kddcup99"."""
    given: object = name
    if not isinstance(given, str) or given not in schema_names():
        raise InvalidInput(f"a packaged schema must be one of {list(schema_names())}, got {name!r}")
    with resources.as_file(resources.files(__package__).joinpath("schemas", f"{name}.toml")) as path:
        return Schema.from_file(path)


def load_adult(
    split: Literal["train", "test", "all"] = "train", *, drop_missing: bool = True, download: bool = True
) -> Dataset:
    """Adult, an extract of the US Current Population Survey of 1994; positive: an income above 50,000 dollars.

    Parameters
    ----------
    split : {"train", "test", "all"}
        The published halves of 32,561 and 16,281 rows, or both.
    drop_missing : bool
        Leave out rows with a missing value, which leaves 30,162 and 15,060. Otherwise a missing value gives zeros. The
        rule looks at one row at a time, but the number of rows that are left is a fact about the data, here published.
    download : bool
        Whether a file that is not here may be fetched.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetUnavailable
        The file is not here and cannot be fetched, or is not the published one.
    """
    table = load_table("adult", split, download=download)
    return _dataset("adult", without_missing(table) if drop_missing else table)


def load_adult_sample(schema: str = "adult_demo") -> Dataset:
    """4,000 complete rows of Adult that come with the package; ``schema`` is "adult_demo" (6 columns) or "adult"."""
    return _dataset("adult", load_sample_table(), schema)


def load_bank(*, download: bool = True) -> Dataset:
    """Bank Marketing, 45,211 rows by date; positive: the client subscribed. Errors as in `load_adult`."""
    return _dataset("bank", load_table("bank", download=download))


def load_credit_default(*, download: bool = True) -> Dataset:
    """Default of Credit Card Clients, 30,000 rows; positive: default next month. Errors as in `load_adult`."""
    return _dataset("credit_default", load_table("credit_default", download=download))


def load_kddcup99(*, percent10: bool = True, sparse: bool = False, download: bool = True) -> Dataset:
    """KDD Cup 1999, rows by time; positive: a normal connection.

    Parameters
    ----------
    percent10 : bool
        The 10% file of 494,021 rows, or the full training file of 4,898,431. The text of the full file (743 MB) is
        never held: it is streamed out of its archive into sparse rows of about 0.8 GB, 1.1 GB at the peak.
    sparse : bool
        Sparse rows of the 10% file as well (80 MB instead of 482 MB). The full file is always sparse.
    download : bool
        Whether a file that is not here may be fetched.

    Returns
    -------
    Dataset
        With a `scipy.sparse.csr_array` as ``X`` where the rows are sparse; the values are those of the dense rows.

    Raises
    ------
    DatasetUnavailable
        The file is not here and cannot be fetched, or is not the published one; for the full file, also if it is not
        the gzip archive, because only the checksum of the archive is known.
    InvalidInput
        A line of a streamed file does not hold 42 fields, or a field holds no number or a category that is not in the
        public schema; names the line, counted from 1, and the value.
    """
    percent10, sparse = check_flag("percent10", percent10), check_flag("sparse", sparse)
    if percent10 and not sparse:
        return _dataset(KDDCUP99.name, load_table(KDDCUP99.name, download=download))
    schema = load_schema(KDDCUP99.name)
    file = KDDCUP99.files["percent10" if percent10 else "full"]
    if percent10:
        content = io.BytesIO(_files.read(file, download=download))
        X, y = read_rows(content, KDDCUP99.layout, schema, file.path)
    else:
        with _files.stream(file, download=download) as lines:
            X, y = read_rows(lines, KDDCUP99.layout, schema, file.path)
    return Dataset(X=X, y=y, names=schema.names, schema=schema, licence=f"{KDDCUP99.licence}: {KDDCUP99.citation}")


def _dataset(name: str, table: Table, schema_name: str | None = None) -> Dataset:
    schema = load_schema(name if schema_name is None else schema_name)
    X, y, names = schema.transform(table)
    source = CATALOGUE[name]
    return Dataset(X=X, y=y, names=names, schema=schema, licence=f"{source.licence}: {source.citation}")


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
