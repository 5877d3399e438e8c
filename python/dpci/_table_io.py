"""Reads the user's CSV and Parquet files into columns, and writes columns as CSV."""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from dpci._optional import optional
from dpci.errors import InvalidInput


def read_table(path: Path, *, delimiter: str = ",") -> dict[str, Sequence[Any]]:
    """Columns of a ``.csv``, ``.csv.gz`` or ``.parquet`` file; the cells of a CSV file stay text.

    Raises
    ------
    InvalidInput
        The ending is another one, the file cannot be read, has no header, repeats a name, or has a line of another
        number of fields.
    """
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        msg = f"a table must be a .csv, .csv.gz or .parquet file, got {str(path)!r}"
        raise InvalidInput(msg)
    try:
        if name.endswith(".parquet"):
            return _read_parquet(path)
        with _open_text(path, "rt") as file:
            return _read_csv(path, file, delimiter)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"a table must be readable, got {str(path)!r}: {reason}"
        raise InvalidInput(msg) from error


def write_csv(path: Path, table: Mapping[str, Iterable[Any]]) -> None:
    """Write columns of equal length with one header line; compressed if the name ends in ``.gz``."""
    with _open_text(path, "wt") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*(map(_cell, column) for column in table.values()), strict=True))


def _open_text(path: Path, mode: str) -> TextIO:
    opener: Callable[..., TextIO] = gzip.open if path.name.lower().endswith(".gz") else open
    # A byte order mark, as spreadsheets write it, is no part of the first name.
    return opener(path, mode, encoding="utf-8-sig" if mode == "rt" else "utf-8", newline="")


def _read_csv(path: Path, file: TextIO, delimiter: str) -> dict[str, Sequence[Any]]:
    if len(delimiter) != 1:
        msg = f"the delimiter must be one character, got {delimiter!r}"
        raise InvalidInput(msg)
    reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if not header or len(set(header)) != len(header):
            msg = f"{path} must begin with a line of distinct column names, got {header}"
            raise InvalidInput(msg)
        columns: list[list[str]] = [[] for _ in header]
        # Columns repeat few texts: keeping each once makes a big table fit into memory.
        known: dict[str, str] = {}
        for line in reader:
            if not line:
                continue
            if len(line) != len(header):
                msg = f"every line of {path} must have {len(header)} fields, got {len(line)} in line {reader.line_num}"
                raise InvalidInput(msg)
            for column, cell in zip(columns, line, strict=True):
                column.append(known.setdefault(cell, cell))
    except (csv.Error, UnicodeDecodeError) as error:
        msg = f"{path} must be CSV text in UTF-8, got {error}"
        raise InvalidInput(msg) from error
    return dict(zip(header, columns, strict=True))


def _read_parquet(path: Path) -> dict[str, Sequence[Any]]:
    with optional("pyarrow", extra="parquet", what="a Parquet file"):
        import pyarrow as pa  # noqa: PLC0415  # optional
        import pyarrow.parquet as pq  # noqa: PLC0415  # optional
    try:
        table = pq.read_table(path)
        return {name: table.column(name).to_numpy() for name in table.column_names}
    except (pa.ArrowException, UnicodeDecodeError) as error:
        msg = f"{path} must be a Parquet file, got {error}"
        raise InvalidInput(msg) from error


def _cell(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
