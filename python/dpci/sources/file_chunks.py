"""Chunks of rows read from files, one file after the other."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from dpci.errors import DpciError, InvalidInput
from dpci.sources.files import Columns, check_named_once, is_stream, read_batches, uncut

Chunk: TypeAlias = tuple[Any, Any] | tuple[Any, Any, Mapping[str, Any]]
"""Rows (anything that ``fit`` takes as X), their targets, and columns beside them by name."""
Paths: TypeAlias = str | PathLike[str] | Iterable[str | PathLike[str]]


def as_paths(path: Paths) -> tuple[Path, ...]:
    """Return one path or several as a tuple."""
    several = isinstance(path, Iterable) and not isinstance(path, str | bytes)
    named: tuple[Any, ...] = tuple(path) if several else (path,)  # type: ignore[arg-type]  # by several
    for each in named:
        if not isinstance(each, str | PathLike) or not isinstance(os.fspath(each), str):
            raise InvalidInput(f"path must be a path or several, of type str or os.PathLike, got {each!r}")
    if not named:
        raise InvalidInput("path must name at least one file, got no file")
    return tuple(map(Path, named))


def check_files(paths: Sequence[Path]) -> None:
    """Refuse, before a ledger pays, what cannot be read in several passes, and files that are named twice."""
    for path in paths:
        if is_stream(path):
            raise InvalidInput(f"path must name files, because they are read several times, got {str(path)!r}")
    check_named_once(paths)


def chunks_of_files(
    paths: Sequence[Path],
    encode: Callable[[Columns], Chunk],
    *,
    n_rows: int,
    columns: Sequence[str],
    delimiter: str = ",",
    together: str | None = None,
) -> Iterator[Chunk]:
    """Read files one after the other; errors say where. Chunks are cut where the column ``together`` changes."""
    check_files(paths)
    for path in paths:
        start = 0
        batches = read_batches(path, n_rows=n_rows, delimiter=delimiter, columns=columns)
        for batch in batches if together is None else uncut(batches, together):
            try:
                chunk = encode(batch)
            except DpciError as error:
                error.add_note(f"rows are counted from row {start} of {path}")
                raise
            yield chunk
            start += len(chunk[1])
