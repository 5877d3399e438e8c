"""Reads the user's files of tables into columns, at once or by batches of rows, and writes columns as CSV."""

import codecs
import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

import numpy as np

from dpci.base.optional import optional
from dpci.base.validation import composed, hint
from dpci.data.frames import text_of
from dpci.errors import DpciError, InvalidInput
from dpci.schema.cells import Dictionary, absent, as_cells, dictionary_of, separated
from dpci.sources.formats import NO_QUOTE, PLAIN, Format
from dpci.sources.workbooks import WORKBOOKS, read_sheet

Columns: TypeAlias = dict[str, Any]

ENDINGS: Final = (".csv", ".csv.gz", ".parquet", *WORKBOOKS)
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+]+://", re.IGNORECASE)
STDIN: Final = Path("-")
"""Stands for CSV text on the standard input."""


def read_batches(
    path: Path,
    *,
    n_rows: int | None,
    form: Format = PLAIN,
    columns: Sequence[str] | None = None,
    exact: Collection[str] = (),
    numbers: Collection[str] | None = None,
    categories: Collection[str] = (),
) -> Iterator[Columns]:
    """Yield columns of a file of one of the `ENDINGS`, or of `STDIN`, at most ``n_rows`` rows at a time.

    The columns are those that are named, or all; the cells of CSV text stay text. Names are those that
    :func:`dpci.base.validation.composed` returns. ``numbers`` are columns of numbers, for :meth:`Format.with_points`.

    Memory does not grow with the file, but that of a sheet. A file without rows is one batch without rows; ``n_rows``
    of None is one batch.
    Columns of Parquet files are arrays, but those in ``exact`` are lists of Python's numbers, truth values and texts,
    in which a missing value is None: an array has no missing integers. ``categories`` are columns of texts of which a
    Parquet file may yield each distinct one once, as it stores them.
    """
    name = path.name.lower()
    if path != STDIN and not name.endswith(ENDINGS):
        raise InvalidInput(f"a table must be a file of the kind {', '.join(ENDINGS)}, got {str(path)!r}")
    with _readable(path):
        if name.endswith(".parquet"):
            yield from _parquet_batches(path, n_rows, columns, exact, categories)
            return
        if name.endswith(WORKBOOKS):
            yield from _sheet_batches(path, form, n_rows, columns)
            return
        with open_text(path, "rt", form.encoding) as file:
            for batch in _csv_batches(path, file, form, n_rows, columns):
                yield form.with_dates(form.with_points(batch, numbers, path))


def uncut(batches: Iterable[Columns], name: str) -> Iterator[Columns]:
    """Yield the rows of batches, cut only where a column changes: equal cells that follow each other stay together.

    Texts are compared as the ids of persons are (:func:`dpci.data.frames.text_of`).
    """
    held: list[Columns] = []
    for batch in batches:
        cells = batch[name]
        if held and not len(cells):
            continue
        cut = len(cells)
        while cut and _same(cells[cut - 1], cells[-1]):
            cut -= 1
        if cut:
            yield joined([*held, {column: each[:cut] for column, each in batch.items()}])
            held = [{column: each[cut:] for column, each in batch.items()}]
        elif held and len(held[-1][name]) and not _same(held[-1][name][-1], cells[-1]):
            yield joined(held)
            held = [batch]
        else:
            held.append(batch)
    if held:
        yield joined(held)


def _same(first: Any, second: Any) -> bool:  # noqa: ANN401  # cells
    if isinstance(first, str) and isinstance(second, str):
        return text_of(first) == text_of(second)
    try:
        return bool(first == second)
    except (TypeError, ValueError):  # lists of a Parquet file, which are no ids
        return False


def joined(tables: Sequence[Columns]) -> Columns:
    """Return the rows of tables of the same columns as one."""
    first = tables[0]
    if len(tables) == 1:
        return first
    return {column: _together([table[column] for table in tables]) for column in first}


class FileColumns(dict[str, Any]):
    """Columns of files in memory, which know where a row stands."""

    def __init__(self, files: Sequence[Path], tables: Sequence[Columns]) -> None:
        super().__init__(joined(tables))
        self._sizes = [(file, len(next(iter(table.values()), ()))) for file, table in zip(files, tables, strict=True)]

    def locate(self, error: InvalidInput) -> None:
        """Add to an error of one row a note on the file and the line of it."""
        if error.row is not None:
            start = 0
            for file, size in self._sizes:
                if error.row < start + size:
                    error.add_note(place_of(error, file, -start))
                    return
                start += size


def place_of(error: DpciError, path: Path, start: int) -> str:
    """Return where the row of an error stands in a file, of which row ``start`` is the first of those that were read.

    Lines are those of a text or a sheet, whose first line holds the names; blank ones are not counted.
    """
    row: int = getattr(error, "row", None) or 0
    is_parquet = path.name.lower().endswith(".parquet")
    place = f"row {start + row}" if is_parquet else f"line {start + row + 2}"
    return f"row {row}, counted from 0, is {place} of {path}"


def _together(parts: list[Any]) -> Any:  # noqa: ANN401  # lists or arrays of cells
    # Batches of a file have dictionaries of their own.
    parts = [part.decoded if isinstance(part, Dictionary) else part for part in parts]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [cell for part in parts for cell in (part.tolist() if isinstance(part, np.ndarray) else part)]


def parquet_names(path: Path) -> list[str]:
    """Names of the columns of a Parquet file but the index of a pandas frame; errors as in :func:`read_batches`."""
    with _readable(path), _parquet_file(path) as file:
        schema = file.schema_arrow
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        return [composed(name) for name in schema.names if name not in index]


def identity(path: Path) -> object:
    """Return what is equal for all names of one file: links, other spellings, and the standard input among them."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path == STDIN and sys.stdin is not None else path.stat()
    except (OSError, ValueError):
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def is_stream(path: Path) -> bool:
    """Whether it can be read only once, or not at all: the standard input, a pipe, a folder."""
    return path == STDIN or (path.exists() and not path.is_file())


def first_pair(files: Sequence[Path], key: Callable[[Path], object]) -> tuple[str, str] | None:
    """Return the first two files of which a key is equal."""
    places: dict[object, int] = {}
    for place, file in enumerate(files):
        if (first := places.setdefault(key(file), place)) != place:
            return str(files[first]), str(file)
    return None


def check_named_once(files: Sequence[Path]) -> None:
    """Refuse a file that is named twice in any way: a row, which bounds what one person can change, counts once."""
    if pair := first_pair(files, identity):
        raise InvalidInput(f"a table must be named once, got {' and '.join(pair)}, which are one file")


def write_csv(path: Path, table: Mapping[str, Iterable[Any]]) -> None:
    """Write columns of equal length with one header line; compressed if the name ends in ``.gz``."""
    with open_text(path, "wt") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*(map(_cell, column) for column in table.values()), strict=True))


def open_text(path: Path, mode: str, encoding: str = "utf-8") -> TextIO:
    """Open text, through gzip where the name says so; `STDIN` is the standard input."""
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
        raise InvalidInput(f"a table must be readable, got {str(path)!r}: {reason}") from error


def _csv_batches(
    path: Path, file: TextIO, form: Format, n_rows: int | None, columns: Sequence[str] | None
) -> Iterator[dict[str, list[str]]]:
    lines = _csv_lines(path, file, form)
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


def csv_records(name: object, lines: Iterable[str], form: Format = PLAIN) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line of CSV text and its fields, none for a blank line.

    A record ends with its line. Otherwise one stray quote would swallow the records of other people up to the next one,
    and the number of rows would depend on more than who is in the table.
    """
    style: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if form.quote == NO_QUOTE else {"quotechar": form.quote}
    skips = form.delimiter != " "
    reader = csv.reader(lines, delimiter=form.delimiter, skipinitialspace=skips, strict=True, **style)
    before = 0
    try:
        for fields in reader:
            if reader.line_num != before + 1:
                raise InvalidInput(
                    f"a record of {name} must end on its line, got one from line {before + 1} to {reader.line_num}: "
                    "close its quotes, and double those inside a field"
                )
            before += 1
            yield before, fields
    except csv.Error as error:
        raise InvalidInput(
            f"{name} must be CSV text whose quotes surround whole fields, got {error} after line {before} (quotes that "
            f"are letters: {hint('quote', NO_QUOTE)})"
        ) from error
    except UnicodeError as error:
        encoding = form.encoding.removesuffix("-sig")
        # Bytes are decoded before lines are counted.
        where = f"after line {before}" if before else "near its start"
        advice = _other(lines, encoding)
        raise InvalidInput(
            f"{name} must be CSV text in {encoding.upper()}, got other bytes {where} ({advice})"
        ) from error


def _other(lines: Iterable[str], encoding: str) -> str:
    """Return which encoding text has that is not in the one that was named: that of its mark, or a frequent one."""
    file = getattr(lines, "buffer", None)
    try:
        marked = file is not None and file.seek(0) == 0 and file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    except (OSError, EOFError, zlib.error):  # of a pipe
        marked = False
    if marked:
        return hint("encoding", "utf-16")
    return hint("encoding", "cp1252") if encoding == "utf-8" else hint("encoding", "utf-8")


def _csv_lines(path: Path, file: TextIO, form: Format) -> Iterator[list[str]]:
    """Yield the names of the columns, then the fields of each line."""
    records = csv_records(path, file, form)
    header = [composed(name.strip()) for name in next(records, (0, []))[1]]
    if not header or len(set(header)) != len(header):
        raise InvalidInput(f"{path} must begin with a line of distinct column names, got {header}")
    yield header
    # The blank line of a single column is a missing value; between fields there would be delimiters.
    blank = [""] if len(header) == 1 else None
    for number, fields in records:
        line = fields or blank
        if line is None:
            continue
        if len(line) != len(header):
            msg = f"every line of {path} must have {len(header)} fields, got {len(line)} in line {number}"
            raise InvalidInput(msg + separated(header))
        yield line


def _sheet_batches(path: Path, form: Format, n_rows: int | None, columns: Sequence[str] | None) -> Iterator[Columns]:
    table = read_sheet(path, form.sheet)
    _check_present(path, list(table), columns)
    wanted = {name: table[name] for name in columns or table}
    total = len(next(iter(table.values())))
    step = n_rows or max(total, 1)
    for start in range(0, max(total, 1), step):
        yield form.with_dates({name: cells[start : start + step] for name, cells in wanted.items()})


def _parquet_batches(
    path: Path,
    n_rows: int | None,
    columns: Sequence[str] | None,
    exact: Collection[str],
    categories: Collection[str],
) -> Iterator[Columns]:
    with _parquet_file(path, frozenset(categories) - frozenset(exact)) as file:
        written = {composed(name): name for name in file.schema_arrow.names}
        _check_present(path, list(written), columns)
        for name in exact:
            _check_exact(name, file.schema_arrow.field(written[name]).type)
        wanted = None if columns is None else [written[name] for name in columns]
        if n_rows is None or not file.metadata.num_rows:
            tables = iter([file.read(columns=wanted)])
        else:
            tables = file.iter_batches(batch_size=n_rows, columns=wanted)
        for table in tables:
            cells = {composed(name): table.column(name) for name in table.schema.names}
            yield {
                name: _exact_values(each)
                if name in exact
                else (dictionary_of(each) if name in categories else None) or _as_array(each)
                for name, each in cells.items()
            }


def _as_array(column: Any) -> Any:  # noqa: ANN401  # of pyarrow, to NumPy
    return as_cells(column)


def _texts(schema: Any, names: Collection[str]) -> list[str]:  # noqa: ANN401  # of pyarrow
    """Return which of the columns are texts."""
    import pyarrow.types as kinds  # noqa: PLC0415  # optional

    return [part.name for part in schema if composed(part.name) in names and kinds.is_string(part.type)]


def _exact_values(column: Any) -> list[Any]:  # noqa: ANN401  # of pyarrow
    import pyarrow.types as kinds  # noqa: PLC0415  # optional

    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # Python has no nanoseconds, and JSON no decimals: their texts are exact.
    if kinds.is_temporal(column.type) or kinds.is_decimal(column.type):
        column = column.cast("string")
    # Not a number is how pandas writes a missing one.
    return [None if value != value else value for value in column.to_pylist()]  # noqa: PLR0124  # NaN alone is not itself


def _check_exact(name: str, kind: Any) -> None:  # noqa: ANN401  # of pyarrow
    import pyarrow.types as kinds  # noqa: PLC0415  # optional

    value = kind.value_type if kinds.is_dictionary(kind) else kind
    plain = (kinds.is_null, kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_decimal)
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_date, kinds.is_time, kinds.is_timestamp)
    # The last kind of text has its own test in later versions only.
    if not (any(of_kind(value) for of_kind in (*plain, *texts)) or str(value) == "string_view"):
        raise InvalidInput(
            f"a column that is kept must hold numbers, truth values, texts, dates or times, got {name!r} of {kind}"
        )


@contextmanager
def _parquet_file(path: Path, categories: Collection[str] = ()) -> Iterator[Any]:
    """Open a file; texts of ``categories`` are read as dictionaries."""
    with optional("pyarrow", extra="parquet", what="a Parquet file"):
        import pyarrow as pa  # noqa: PLC0415  # optional
        import pyarrow.parquet as pq  # noqa: PLC0415  # optional
    try:
        texts = _texts(pq.read_schema(path), categories) if categories else None
        with pq.ParquetFile(path, pre_buffer=False, read_dictionary=texts) as file:
            names = file.schema_arrow.names
            if len(set(map(composed, names))) != len(names):
                raise InvalidInput(f"{path} must have distinct column names, got {names}")
            yield file
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} must be a Parquet file, got {error}") from error


def _check_present(path: Path, present: Sequence[str], wanted: Sequence[str] | None) -> None:
    missing = [name for name in wanted or () if name not in present]
    if missing:
        raise InvalidInput(absent(missing[0], present, f" in {str(path)!r}"))


def _cell(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
        if _ADDRESS.match(os.fspath(each)):
            raise InvalidInput(f"path must name a file, got the address {os.fspath(each)!r} (download it first)")
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
    form: Format = PLAIN,
    together: str | None = None,
    numbers: Collection[str] | None = None,
    categories: Collection[str] = (),
) -> Iterator[Chunk]:
    """Read files one after the other; errors say where. Chunks are cut where the column ``together`` changes."""
    check_files(paths)
    for path in paths:
        start = 0
        batches = read_batches(path, n_rows=n_rows, form=form, columns=columns, numbers=numbers, categories=categories)
        for batch in batches if together is None else uncut(batches, together):
            try:
                chunk = encode(batch)
            except DpciError as error:
                error.add_note(place_of(error, path, start))
                raise
            yield chunk
            start += len(batch[columns[0]])
