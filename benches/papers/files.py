"""Reader of the CSV files that a user brings: names of the columns and lines of cells, every line of one length."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from dpci.errors import InvalidInput

Table: TypeAlias = Mapping[str, NDArray[Any]]
"""Columns by name."""


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked if its name ends in ``.gz``.

    Raises
    ------
    InvalidInput
        The file cannot be read.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix.lower() == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"a table must be readable, got {str(path)!r}: {error}") from error


def read_csv(name: object, content: bytes) -> tuple[Sequence[str], Iterator[Sequence[str]]]:
    """Return the names of the columns and the lines, without the blank ones.

    Raises
    ------
    InvalidInput
        The content is not CSV text in UTF-8 with quotes around whole cells.
    """
    lines = _lines(name, content)
    return next(lines, []), lines


def _lines(name: object, content: bytes) -> Iterator[Sequence[str]]:
    try:
        # Spreadsheets put a byte order mark in front.
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        yield from filter(None, csv.reader(text, skipinitialspace=True, strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name} must be CSV text in UTF-8 whose quotes surround whole cells: {error}") from error
