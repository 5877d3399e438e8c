"""Reads the user's CSV and Parquet files into columns, at once or by batches of rows, and writes columns as CSV."""

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

from dpci._optional import optional
from dpci.errors import InvalidInput

Columns: TypeAlias = dict[str, Sequence[Any]]

ENDINGS: Final = (".csv", ".csv.gz", ".parquet")
STDIN: Final = Path("-")
"""Stands for CSV text on the standard input."""


def read_table(path: Path, *, delimiter: str = ",") -> Columns:
    """Columns of a ``.csv``, ``.csv.gz`` or ``.parquet`` file, or of `STDIN`; the cells of CSV text stay text.

    Raises
    ------
    InvalidInput
        The ending is another one, the file cannot be read, has no header, repeats a name, or has a line of another
        number of fields.
    """
    (table,) = read_batches(path, n_rows=None, delimiter=delimiter)
    return table


def read_batches(
    path: Path, *, n_rows: int | None, delimiter: str = ",", columns: Sequence[str] | None = None
) -> Iterator[Columns]:
    """Yield columns as :func:`read_table` returns them, of at most ``n_rows`` rows at a time; only those named, if any.

    Memory does not grow with the file. A file without rows is one batch without rows; ``n_rows`` of None is one batch.

    Raises
    ------
    InvalidInput
        As :func:`read_table`, when the file is read; and for a column that it does not have.
    """
    name = path.name.lower()
    if path != STDIN and not name.endswith(ENDINGS):
        msg = f"a table must be a .csv, .csv.gz or .parquet file, got {str(path)!r}"
        raise InvalidInput(msg)
    with _readable(path):
        if name.endswith(".parquet"):
            yield from _parquet_batches(path, n_rows, columns)
            return
        with open_text(path, "rt") as file:
            yield from _csv_batches(path, file, delimiter, n_rows, columns)


def parquet_names(path: Path) -> list[str]:
    """Names of the columns of a Parquet file; errors as in :func:`read_table`."""
    with _readable(path), _parquet_file(path) as file:
        return list(file.schema_arrow.names)


def write_csv(path: Path, table: Mapping[str, Iterable[Any]]) -> None:
    """Write columns of equal length with one header line; compressed if the name ends in ``.gz``."""
    with open_text(path, "wt") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*(map(_cell, column) for column in table.values()), strict=True))


def open_text(path: Path, mode: str) -> TextIO:
    """Open text in UTF-8, through gzip where the name says so; `STDIN` is the standard input."""
    # A byte order mark, as spreadsheets write it, is no part of the first name.
    encoding = "utf-8-sig" if mode == "rt" else "utf-8"
    if path == STDIN:
        stdin = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        return io.TextIOWrapper(stdin, encoding=encoding, newline="")
    opener: Callable[..., TextIO] = gzip.open if path.name.lower().endswith(".gz") else open
    return opener(path, mode, encoding=encoding, newline="")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"a table must be readable, got {str(path)!r}: {reason}"
        raise InvalidInput(msg) from error


def _csv_batches(
    path: Path, file: TextIO, delimiter: str, n_rows: int | None, columns: Sequence[str] | None
) -> Iterator[Columns]:
    lines = _csv_lines(path, file, delimiter)
    header = next(lines)
    _check_present(path, header, columns)
    is_first = True
    while True:
        table = _csv_columns(header, islice(lines, n_rows))
        n_found = len(table[header[0]])
        if n_found or is_first:
            yield {name: table[name] for name in columns or header}
        if n_rows is None or n_found < n_rows:
            return
        is_first = False


def _csv_columns(header: list[str], lines: Iterable[list[str]]) -> dict[str, list[str]]:
    columns: list[list[str]] = [[] for _ in header]
    # Columns repeat few texts: keeping each once makes a big table fit into memory.
    known: dict[str, str] = {}
    for line in lines:
        for column, cell in zip(columns, line, strict=True):
            column.append(known.setdefault(cell, cell))
    return dict(zip(header, columns, strict=True))


def _csv_lines(path: Path, file: TextIO, delimiter: str) -> Iterator[list[str]]:
    """Yield the names of the columns, then the fields of each line."""
    if len(delimiter) != 1:
        msg = f"the delimiter must be one character, got {delimiter!r}"
        raise InvalidInput(msg)
    reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if not header or len(set(header)) != len(header):
            msg = f"{path} must begin with a line of distinct column names, got {header}"
            raise InvalidInput(msg)
        yield header
        for line in reader:
            if not line:
                continue
            if len(line) != len(header):
                msg = f"every line of {path} must have {len(header)} fields, got {len(line)} in line {reader.line_num}"
                raise InvalidInput(msg)
            yield line
    except (csv.Error, UnicodeDecodeError) as error:
        msg = f"{path} must be CSV text in UTF-8, got {error}"
        raise InvalidInput(msg) from error


def _parquet_batches(path: Path, n_rows: int | None, columns: Sequence[str] | None) -> Iterator[Columns]:
    with _parquet_file(path) as file:
        _check_present(path, file.schema_arrow.names, columns)
        wanted = None if columns is None else list(columns)
        if n_rows is None or not file.metadata.num_rows:
            table = file.read(columns=wanted)
            yield {name: table.column(name).to_numpy() for name in table.column_names}
            return
        for batch in file.iter_batches(batch_size=n_rows, columns=wanted):
            yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    with optional("pyarrow", extra="parquet", what="a Parquet file"):
        import pyarrow as pa  # noqa: PLC0415  # optional
        import pyarrow.parquet as pq  # noqa: PLC0415  # optional
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except (pa.ArrowException, UnicodeDecodeError) as error:
        msg = f"{path} must be a Parquet file, got {error}"
        raise InvalidInput(msg) from error


def _check_present(path: Path, present: Sequence[str], wanted: Sequence[str] | None) -> None:
    missing = [name for name in wanted or () if name not in present]
    if missing:
        msg = f"the table must have the column {missing[0]!r}, got {list(present)} in {str(path)!r}"
        raise InvalidInput(msg)


def _cell(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
