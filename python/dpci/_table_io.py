"""Reads the user's CSV and Parquet files, whole or by batches of rows, into columns, and writes columns as CSV."""

import csv
import gzip
import io
import itertools
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

from dpci.errors import InvalidInput

Columns: TypeAlias = dict[str, Sequence[Any]]

ENDINGS: Final = (".csv", ".csv.gz", ".parquet")
STDIN: Final = Path("-")
"""Stands for CSV text on the standard input."""


def read_table(path: Path, *, delimiter: str = ",") -> Columns:
    """Columns of a ``.csv``, ``.csv.gz`` or ``.parquet`` file; the cells of a CSV file stay text.

    Raises
    ------
    InvalidInput
        The ending is another one, the file cannot be read, has no header, repeats a name, or has a line of another
        number of fields.
    """
    (table,) = read_batches(path, delimiter=delimiter)
    return table


def read_batches(
    path: Path, *, delimiter: str = ",", n_rows: int | None = None, columns: Sequence[str] | None = None
) -> Iterator[Columns]:
    """Columns of so many rows at a time, in memory that does not grow with the file; errors as in `read_table`.

    Parameters
    ----------
    path : Path
        A file, or `STDIN`.
    delimiter : str
        Between the fields of CSV text.
    n_rows : int, optional
        Rows of every batch but the last one; None: all in one. A table without rows is one batch without rows.
    columns : sequence of str, optional
        What will be asked for; others need not be read.
    """
    name = path.name.lower()
    if path != STDIN and not name.endswith(ENDINGS):
        msg = f"a table must be a .csv, .csv.gz or .parquet file, got {str(path)!r}"
        raise InvalidInput(msg)
    try:
        if name.endswith(".parquet"):
            yield from _parquet_batches(path, n_rows, columns)
        else:
            with open_text(path, "rt") as file:
                yield from _csv_batches(path, file, delimiter, n_rows)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"a table must be readable, got {str(path)!r}: {reason}"
        raise InvalidInput(msg) from error


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


def _csv_batches(path: Path, file: TextIO, delimiter: str, n_rows: int | None) -> Iterator[Columns]:
    if len(delimiter) != 1:
        msg = f"the delimiter must be one character, got {delimiter!r}"
        raise InvalidInput(msg)
    reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if not header or len(set(header)) != len(header):
            msg = f"{path} must begin with a line of distinct column names, got {header}"
            raise InvalidInput(msg)
        lines = (line for line in reader if line)
        batch = _csv_batch(path, header, itertools.islice(lines, n_rows), reader)
        yield batch
        while n_rows is not None and len(batch[header[0]]) == n_rows:
            batch = _csv_batch(path, header, itertools.islice(lines, n_rows), reader)
            if not batch[header[0]]:
                break
            yield batch
    except (csv.Error, UnicodeDecodeError) as error:
        msg = f"{path} must be CSV text in UTF-8, got {error}"
        raise InvalidInput(msg) from error


def _csv_batch(path: Path, header: Sequence[str], lines: Iterable[list[str]], reader: Any) -> Columns:  # noqa: ANN401  # csv has no name for it
    columns: list[list[str]] = [[] for _ in header]
    # Columns repeat few texts: keeping each once makes a big table fit into memory.
    known: dict[str, str] = {}
    for line in lines:
        if len(line) != len(header):
            msg = f"every line of {path} must have {len(header)} fields, got {len(line)} in line {reader.line_num}"
            raise InvalidInput(msg)
        for column, cell in zip(columns, line, strict=True):
            column.append(known.setdefault(cell, cell))
    return dict(zip(header, columns, strict=True))


def _parquet_batches(path: Path, n_rows: int | None, columns: Sequence[str] | None) -> Iterator[Columns]:
    try:
        import pyarrow as pa  # noqa: PLC0415  # optional
        import pyarrow.parquet as pq  # noqa: PLC0415  # optional
    except ImportError as error:
        msg = f"a Parquet file needs pyarrow: pip install 'dpci[parquet]', got {str(path)!r}"
        raise InvalidInput(msg) from error
    try:
        with pq.ParquetFile(path) as file:
            present = file.schema_arrow.names
            # With one missing, the message that says so names all that are there.
            wanted = columns if columns is not None and set(columns) <= set(present) else None
            if n_rows is None or not file.metadata.num_rows:
                yield _from_arrow(file.read(columns=wanted))
                return
            for batch in file.iter_batches(batch_size=n_rows, columns=wanted):
                yield _from_arrow(pa.Table.from_batches([batch]))
    except (pa.ArrowException, UnicodeDecodeError) as error:
        msg = f"{path} must be a Parquet file, got {error}"
        raise InvalidInput(msg) from error


def _from_arrow(table: Any) -> Columns:  # noqa: ANN401  # pyarrow has no types
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _cell(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
