"""``Chunks``: rows that are read, or made, a part at a time, in as many passes as a fit needs."""

import copy
import functools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from types import GeneratorType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpci.base.progress import progress_bar
from dpci.base.validation import as_name, broken, check_count, check_flag, composed, in_short
from dpci.data.arrays import as_numbers
from dpci.data.coded import CodedRows
from dpci.data.labels import Classes
from dpci.data.parts import Mergeable
from dpci.data.storage import SparseRows
from dpci.errors import DpciError, InvalidInput
from dpci.schema.cells import is_missing
from dpci.schema.columns import ClassTarget
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.table import Schema, category_names, encoded_rows, numeric_names
from dpci.sources.ahead import outcomes
from dpci.sources.files import (
    Chunk,
    Columns,
    Paths,
    as_paths,
    check_files,
    chunks_of_files,
    parquet_names,
)
from dpci.sources.find import find_tables
from dpci.sources.formats import PLAIN, Format

__all__ = ["Chunks"]


_Merged = TypeVar("_Merged", bound=Mergeable)

_AT_ONCE = 2
"""Chunks that are summed at once, where there are threads for it: each more is two more in memory."""


class Chunks:
    """Rows in parts, for data that do not fit into memory: ``dpci.fit(Chunks(source), ...)``.

    Holds no rows; they are read again in every pass (docs/scale.md, "How a fit reads rows in parts"), and checked in
    every pass against the public bounds. A pass that finds other rows than the first one is an error, and nothing is
    released. The order of rows may differ.

    One chunk is in memory at a time. With two threads or more there are up to three: the thread that called ``fit``
    reads all chunks and sums over some of them, and another thread sums over the others.

    Chunks of 10⁵ to 10⁷ numbers are sensible. Each chunk costs about 50 µs in every pass whatever its size, so many
    small ones are slow; larger ones gain nothing.

    Parameters
    ----------
    source : callable or re-iterable
        A function without arguments that returns a fresh iterable of ``(X, y)`` each time, such as a generator
        function; or a collection of such pairs, such as a list. X is anything that :func:`dpci.fit` takes (arrays,
        frames, sparse rows), with the same columns in all chunks; a chunk may be empty. A generator that is already
        running is refused: it can be read only once.
        A chunk ``(X, y, {"id": ids, "weight": weights})`` has columns beside its rows, which
        ``fit(persons="id", weights="weight")`` names. All rows of a person must be in one chunk.
    progress : bool, optional
        Whether each pass shows a progress bar, which needs tqdm. None: on a terminal and in a notebook, where it is
        installed. How many passes there are depends on the data: the bar is for whoever holds them, and a ledger with
        private errors hides it.
    names : sequence of str, optional
        Names of the columns. None: those of the chunks, if they are frames.
    schema : dpci.schema.Schema, optional
        The schema by which the chunks were encoded. None for chunks that are not encoded; ``fit(schema=)`` encodes
        those. A :class:`dpci.schema.PartialSchema` describes chunks of tables, which are encoded once its bounds are
        released.

    Raises
    ------
    InvalidInput
        For a source that can be read only once, and for names that are not distinct strings.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> def source():
    ...     for k in range(4):
    ...         rng = np.random.default_rng(k)
    ...         X = rng.uniform(-0.5, 0.5, size=(2500, 2))
    ...         yield X, X[:, 0] > 0
    >>> result = dpci.fit(dpci.Chunks(source), budget=dpci.ZCDP(rho=0.5), l2_strength=0.01)
    >>> result.n_samples
    10000
    """

    def __init__(
        self,
        source: Callable[[], Iterable[Chunk]] | Iterable[Chunk],
        *,
        names: Sequence[str] | None = None,
        schema: Schema | PartialSchema | None = None,
        progress: bool | None = None,
    ) -> None:
        if not callable(source):
            if not hasattr(type(source), "__iter__") or isinstance(source, str | bytes | np.ndarray):
                raise InvalidInput(
                    "source must be a function that returns an iterable of (X, y), or a collection of such pairs, got "
                    f"{type(source).__name__}"
                )
            if isinstance(source, Iterator):
                raise InvalidInput(
                    "source must be readable several times (pass a generator function, not its generator), got "
                    f"{type(source).__name__}"
                )
        self._source = source
        self._fresh = False
        self._at_once = 1
        # The members of a list stay as they are while the next is read; a function may fill the same arrays again.
        self._held = isinstance(source, Sequence)
        self._names = None if names is None else _check_names(names)
        self._classes: Classes | None = None
        self._schema = schema
        self._progress = None if progress is None else check_flag("progress", progress)
        self._n_chunks: int | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, where they were given."""
        return self._names

    @property
    def classes(self) -> Classes | None:
        """Classes of the targets, where a schema makes them: (-1, 1)."""
        return self._classes

    @property
    def schema(self) -> Schema | PartialSchema | None:
        """The schema that has encoded the rows, or that has gaps, where there is one."""
        return self._schema

    def on_threads(self, n_threads: int | None) -> tuple["Chunks", int]:
        """Return the chunks as so many threads sum over them, two chunks at once, and the threads of each chunk."""
        total = _n_processors() if n_threads is None else n_threads
        if total < _AT_ONCE:
            return self, total
        chunks = copy.copy(self)
        chunks._at_once = _AT_ONCE  # noqa: SLF001  # its own
        return chunks, total // _AT_ONCE

    def remembered(self, most_bytes: int) -> "Chunks":
        """Return chunks that keep what the first whole pass has read, if it takes at most about so many bytes.

        For chunks of files, which make new arrays each time.
        """
        chunks = copy.copy(self)
        chunks._source = _Remembered(self._source, most_bytes)  # noqa: SLF001  # its own
        return chunks

    def reduce(self, work: Callable[..., _Merged]) -> _Merged | None:
        """Apply ``work(*chunk)`` to every chunk and merge what it returns in their order; None without chunks."""
        source: Any = self._source() if callable(self._source) else self._source
        if isinstance(source, Iterator) and not self._fresh:
            # Found in the pass before a ledger pays. An iterator that wraps one that was read is found in the next.
            if self._source() is source:  # type: ignore[operator]  # no collection: those are refused if they are iterators
                raise InvalidInput(
                    "source must return a fresh iterable each time it is called, got the same "
                    f"{type(source).__name__} twice, which can be read only once"
                )
            self._fresh = True
        if not hasattr(type(source), "__iter__"):
            raise InvalidInput(f"source must return an iterable of (X, y), got {type(source).__name__}")
        chunks = iter(source)

        def on_chunk(number: int, chunk: Chunk) -> _Merged:
            try:
                return work(*chunk)
            except DpciError as error:
                error.add_note(f"in chunk {number}, whose rows are counted from 0")
                raise

        total: _Merged | None = None
        try:
            checked = map(_checked, chunks)
            with (
                closing(outcomes(checked, on_chunk, at_once=self._at_once, held=self._held)) as parts,
                progress_bar(self._n_chunks, "chunks", wanted=self._progress) as advance,
            ):
                number = -1
                for number, part in enumerate(parts):
                    advance(1)
                    try:
                        total = part if total is None else total.merge(part)
                    except DpciError as error:
                        error.add_note(f"in chunk {number}, whose rows are counted from 0")
                        raise
            self._n_chunks = number + 1
        finally:
            if isinstance(chunks, GeneratorType):
                chunks.close()
        return total

    @classmethod
    def from_csv(
        cls,
        path: Paths,
        *,
        schema: Schema | PartialSchema,
        delimiter: str = ",",
        decimal: str = ".",
        encoding: str = "utf-8",
        quote: str = '"',
        date_format: str | None = None,
        chunk_rows: int = 65_536,
        beside: Sequence[str] = (),
        together: str | None = None,
    ) -> "Chunks":
        """Read the rows of CSV files by a public schema, as ``dpci fit`` does.

        Parameters
        ----------
        path : path or paths
            ``.csv`` or ``.csv.gz`` files, each with one line of column names and then one line for each record; or a
            folder of them, or a pattern. No file may be named twice, because no record may count twice.
        schema : Schema or PartialSchema
            Public description of the columns. With gaps the chunks stay tables.
        delimiter, decimal, encoding, quote, date_format
            See :func:`dpci.read`.
        chunk_rows : int
            Number of rows in memory at a time.
        beside : sequence of str
            Columns of persons and of weights, which ``fit(persons=, weights=)`` names; ids are texts.
        together : str, optional
            The column of persons: chunks are cut between persons, all of whose rows must be in one chunk. So the rows
            of a person must follow each other in one file. None: the column that the schema names, if it is beside.

        Raises
        ------
        InvalidInput
            For arguments out of range. While the rows are read: for files that are not as described.
        """
        chunk_rows = check_count("chunk_rows", chunk_rows)
        form = Format(delimiter=delimiter, decimal=decimal, encoding=encoding, quote=quote, date_format=date_format)
        return cls._from_files(path, schema, chunk_rows, form, beside=beside, together=together)

    @classmethod
    def from_parquet(
        cls,
        path: Paths,
        *,
        schema: Schema | PartialSchema | None = None,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        chunk_rows: int = 65_536,
        beside: Sequence[str] = (),
        together: str | None = None,
    ) -> "Chunks":
        """Read the rows of Parquet files: by a public schema, or numeric columns as they are. Needs pyarrow.

        Parameters
        ----------
        path : path or paths
            ``.parquet`` files, each named once; or a folder of them, or a pattern.
        schema : Schema or PartialSchema, optional
            Public description of the columns. With gaps the chunks stay tables.
        target : str, optional
            The column of targets, without a schema.
        columns : sequence of str, optional
            The columns of X, without a schema; None: all but the target and the index of a pandas frame.
        chunk_rows : int
            Number of rows in memory at a time.
        beside : sequence of str
            Columns of persons and of weights, which ``fit(persons=, weights=)`` names.
        together : str, optional
            See :meth:`from_csv`.

        Raises
        ------
        InvalidInput
            For arguments out of range, or a schema with ``target`` or ``columns``. While the rows are read: for files
            that are not as described.
        DpciError
            If pyarrow is not installed.
        """
        chunk_rows = check_count("chunk_rows", chunk_rows)
        if schema is not None:
            if target is not None or columns is not None:
                raise InvalidInput(
                    f"target and columns must be None with a schema, got target={in_short(target)} and "
                    f"columns={in_short(columns)}"
                )
            return cls._from_files(path, schema, chunk_rows, PLAIN, beside=beside, together=together)
        if not isinstance(target, str):
            raise InvalidInput(f"target must name a column if no schema is given, got target={in_short(target)}")
        target = composed(target)
        paths = find_tables(as_paths(path))
        check_files(paths)
        beside = _check_beside(beside)
        present = [name for name in parquet_names(paths[0]) if name not in (target, *beside)]
        names = _check_names(present if columns is None else columns)
        if target in names:
            raise InvalidInput(f"columns must not hold the target, got {target!r} among {names}")

        def encode(batch: Columns) -> Chunk:
            return (
                _numeric_rows(batch, names),
                _without_gaps(target, batch[target]),
                {name: batch[name] for name in beside},
            )

        needed = [*dict.fromkeys([*names, target, *beside])]
        together = _checked_together(together, beside)
        source = functools.partial(chunks_of_files, paths, encode, n_rows=chunk_rows, columns=needed, together=together)
        chunks = cls(source, names=names)
        chunks._held = True
        return chunks

    @classmethod
    def _from_files(
        cls,
        path: Paths,
        schema: Schema | PartialSchema,
        chunk_rows: int,
        form: Format,
        *,
        beside: Sequence[str],
        together: str | None,
    ) -> "Chunks":
        if not isinstance(schema, Schema | PartialSchema):
            raise broken("schema", "a dpci.schema.Schema or PartialSchema", schema)
        paths = find_tables(as_paths(path))
        beside = _check_beside(beside)
        needed = [*dict.fromkeys([*(column.name for column in schema.columns), schema.target.column, *beside])]
        # Gaps are completed, and rows with missing values weighed, where the cells themselves are read.
        by = schema if isinstance(schema, Schema) and not schema.drops else None

        def encode(batch: Columns) -> Chunk:
            rows: tuple[Any, Any] = batch, None
            if by is not None:
                rows = encoded_rows(by, batch), by.targets(batch)
            return *rows, {name: given_cells(batch[name]) for name in beside}

        together = _checked_together(together, beside)
        if together is None and schema.persons in beside:
            together = schema.persons
        source = functools.partial(
            chunks_of_files,
            paths,
            encode,
            n_rows=chunk_rows,
            form=form,
            columns=needed,
            together=together,
            numbers={
                *numeric_names(known_of(schema)),
                *(name for name in beside if name not in (together, schema.persons)),
            },
            categories=() if by is None else _alone(by, beside, together),
        )
        chunks = cls(source, names=None if by is None else by.names, schema=schema)
        chunks._held = True
        if by is not None and isinstance(by.target, ClassTarget):
            chunks._classes = -1, 1  # as it codes them, whatever the files hold
        return chunks

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: ANN401, FBT001  # NumPy's own
        """Refuse to become one array, which is what functions that need all rows in memory ask for."""
        raise InvalidInput(
            "this function requires rows in one array, got rows in parts (dpci.fit, dpci.multinomial.fit, "
            "dpci.release_schema, dpci.regression.release and dpci.lowlevel.minimize_erm accept parts)"
        )

    def __repr__(self) -> str:
        """Return what is known without reading."""
        return f"Chunks(names={self._names!r})"


# About as much as an object of Python takes.
_BYTES_OF_CELL = 64


class _Remembered:
    """A source of chunks that is read once, if all of them take at most about so many bytes."""

    def __init__(self, source: Callable[[], Iterable[Chunk]] | Iterable[Chunk], most_bytes: int) -> None:
        self._source = source
        self._most_bytes = most_bytes
        self._kept: list[Chunk] | None = None

    def __call__(self) -> Iterator[Chunk]:
        """Return all chunks, as they were read or read again."""
        return self._read() if self._kept is None else iter(self._kept)

    def _read(self) -> Iterator[Chunk]:
        kept: list[Chunk] = []
        n_bytes = 0
        for chunk in self._source() if callable(self._source) else self._source:
            n_bytes += _bytes_of(chunk)
            if n_bytes <= self._most_bytes:
                kept.append(chunk)
            else:
                kept.clear()
            yield chunk
        if n_bytes <= self._most_bytes:
            self._kept = kept


def _bytes_of(part: Any) -> int:  # noqa: ANN401  # a chunk, or what is in it
    if isinstance(part, tuple):
        return sum(map(_bytes_of, part))
    if isinstance(part, Mapping):
        return sum(map(_bytes_of, part.values()))
    if isinstance(part, CodedRows | SparseRows):
        return part.nbytes
    if part is None:
        return 0
    held: int = part.nbytes if isinstance(part, np.ndarray) and part.dtype.kind != "O" else _BYTES_OF_CELL * len(part)
    return held


def _n_processors() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


def _checked(chunk: Any) -> Chunk:  # noqa: ANN401  # whatever a source gives
    """Return a chunk that is one."""
    if not isinstance(chunk, tuple | list) or len(chunk) not in (2, 3):
        size = f" of {len(chunk)}" if isinstance(chunk, tuple | list) else ""
        raise InvalidInput(f"every chunk must be a pair (X, y), got {type(chunk).__name__}{size}")
    if len(chunk) == 3 and not isinstance(chunk[2], Mapping):
        raise InvalidInput(
            f"the third member of a chunk must be a mapping from names to columns, got {type(chunk[2]).__name__}"
        )
    if len(chunk) == 3:
        return *chunk[:2], {as_name(name): cells for name, cells in chunk[2].items()}
    return cast("Chunk", chunk)


def _check_names(names: Sequence[str]) -> tuple[str, ...]:
    listed = () if isinstance(names, str) or not isinstance(names, Iterable) else tuple(map(as_name, names))
    if not listed or not all(isinstance(name, str) for name in listed) or len(set(listed)) != len(listed):
        raise InvalidInput(f"names of columns must be different strings, got {names!r}")
    return listed


def _checked_together(name: str | None, beside: tuple[str, ...]) -> str | None:
    if name is not None and as_name(name) not in beside:
        raise InvalidInput(f"together must be one of the columns beside={beside!r}, got together={name!r}")
    return as_name(name)


def _check_beside(names: Sequence[str]) -> tuple[str, ...]:
    return _check_names(names) if isinstance(names, str) or len(names) else ()


def given_cells(cells: Sequence[Any]) -> Sequence[Any]:
    """Return cells with None for those that hold nothing, as files of text and schemas write missing values."""
    return [None if is_missing(cell) else cell for cell in cells] if isinstance(cells, list) else cells


def _alone(schema: Schema, beside: Sequence[str], together: str | None) -> list[str]:
    """Return the columns of categories that are nothing else."""
    return [name for name in category_names(schema) if name not in (schema.target.column, together, *beside)]


def _numeric_rows(batch: Columns, names: tuple[str, ...]) -> NDArray[np.float64]:
    columns = [as_numbers(f"column {name!r}", _without_gaps(name, batch[name])) for name in names]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


def _without_gaps(name: str, values: Sequence[Any]) -> NDArray[Any]:
    """Return a column, whose integers and truth values are objects beside missing ones, which are refused."""
    column = np.asarray(values)
    if column.dtype.kind == "O":
        missing = np.array([value is None or (isinstance(value, float) and math.isnan(value)) for value in column])
        if missing.any():
            raise InvalidInput(f"column {name!r} must have no missing values, got one in row {np.argmax(missing)}")
    return column
