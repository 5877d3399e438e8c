"""Gaps of tables in parts: what each part counts, and that every pass finds the same rows."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.data.arrays import NamedRows
from dpci.data.frames import named_columns, taken_over
from dpci.data.parts import (
    NOTHING,
    DescribedParts,
    Mergeable,
    Partitions,
    PartRules,
    SumOver,
    describe,
    on_threads,
)
from dpci.data.rows import Rows, Source
from dpci.described.counts import CellCounts, count_rows, first_rows
from dpci.errors import InvalidInput
from dpci.released.choices import NoModel
from dpci.schema.cells import column_of
from dpci.schema.columns import UnboundedTarget
from dpci.schema.partial import PartialSchema
from dpci.schema.parts import SchemaParts
from dpci.schema.table import Schema
from dpci.unit import Beside, Persons

_Merged = TypeVar("_Merged", bound=Mergeable)

Counted: TypeAlias = tuple[int, tuple[float, float] | None, bool, bool]
"""Column, its range, whether 0 stands apart, and whether the range was found: what the core counts values of."""


@dataclass(frozen=True)
class GapRows(NamedRows):
    """Columns without bounds or lists of one part, and numbers that tell their cells apart in all parts and passes."""

    numbers: NDArray[np.float64]
    """(n, unbounded) numbers, NaN for missing ones."""
    codes: NDArray[np.float64]
    """(n, unlisted) numbers of levels, -1 for those that are known or missing."""
    labels: list[list[str]]
    """Levels of each column by their numbers."""
    cells: Mapping[str, Any]
    """Cells of each column."""


class GapParts:
    """Parts of a table, of which work gets the columns without bounds or lists."""

    names = None

    def __init__(self, parts: Any, schema: PartialSchema, beside: tuple[str, ...] = (), key: bytes = b"") -> None:  # noqa: ANN401  # any partitions
        self._parts = parts
        self._schema = schema
        self._beside = beside
        # Nobody who does not know it can choose labels that are taken for others.
        self._key = key or os.urandom(32)

    def on_threads(self, n_threads: int | None) -> tuple["GapParts", int | None]:
        """Return the parts on so many threads, and the threads of each."""
        parts, each = on_threads(self._parts, n_threads)
        return GapParts(parts, self._schema, self._beside, self._key), each

    def reading(self, work: Callable[..., _Merged]) -> Callable[..., _Merged]:
        """Return work on gaps as work on the tables."""
        return _OnGaps(self._schema, work, self._beside, self._key)

    def reduce(self, work: Callable[..., _Merged]) -> _Merged | None:
        """Apply ``work`` to the gaps of every part."""
        merged: _Merged | None = self._parts.reduce(self.reading(work))
        return merged


@dataclass(frozen=True)
class _OnGaps:
    """Work on gaps, as work on the tables."""

    schema: PartialSchema
    work: Callable[..., Any]
    beside: tuple[str, ...]
    key: bytes

    def __call__(self, X: Any, y: Any, given: Mapping[str, Any] = NOTHING) -> Any:  # noqa: ANN401  # whatever a source gives
        columns = named_columns(X)
        cells = gap_cells(columns, y, self.schema)
        beside = {name: given[name] if name in given else column_of(columns, name) for name in self.beside}
        rows = self.rows(cells)
        return self.work(rows, np.zeros(len(rows.values)), beside)

    def rows(self, cells: Mapping[str, Any]) -> GapRows:
        """Return the gaps of a part, with whole numbers below 2**32 that differ where cells do."""
        schema = self.schema
        n_rows = len(cells[schema.gaps[0].name])
        numbers, codes = np.empty((n_rows, 0)), np.empty((n_rows, 0))
        labels: list[list[str]] = []
        bits: list[NDArray[np.uint64]] = []
        if schema.unbounded:
            numbers = schema.numbers(cells)
            # Of all missing values one, and of the two zeros one.
            alike = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
            bits += list(np.ascontiguousarray(alike.T).view(np.uint64))
        if schema.unlisted:
            codes, labels = schema.levels(cells)
            for column, known in zip(codes.T, labels, strict=True):
                hashes = np.array([*(_hash(label, self.key) for label in known), 0], dtype=np.uint64)
                bits.append(hashes[column.astype(np.int64)])
        halves = [half for each in bits for half in (each >> np.uint64(32), each & np.uint64(2**32 - 1))]
        values = np.column_stack(halves).astype(np.float64)
        return GapRows(values, tuple(f"x{i}" for i in range(values.shape[1])), numbers, codes, labels, cells)


def _hash(label: str, key: bytes) -> int:
    state = blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8, key=key, person=b"dpci levels")
    return int.from_bytes(state.digest(), "little")


def gap_cells(columns: Any, y: Any, schema: PartialSchema) -> dict[str, Any]:  # noqa: ANN401  # tables of any library
    """Return the columns without bounds or lists of a table, the target by itself where ``y`` has it."""
    given = {schema.target.column: taken_over("y", y)} if y is not None else {}
    own = given if isinstance(schema.target, UnboundedTarget) else {}
    return {column.name: own[column.name] if column.name in own else column_of(columns, column.name)
            for column in schema.gaps}  # fmt: skip


@dataclass(frozen=True)
class _Counts:
    """Counts of the rows of some parts, and the sums that tell their rows apart."""

    sums: _core.Sums
    cells: tuple[tuple[NDArray[np.uint64], NDArray[np.uint64]], ...]
    """Values of each column at its public points and between them."""
    levels: tuple[Counter[str], ...]
    """Rows of each level of each column."""
    rows: CellCounts | None = None
    """Rows by a complete schema."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.sums.n_rows

    def merge(self, other: "_Counts") -> "_Counts":
        """Return the counts of both."""
        if not other.n_rows or not self.n_rows:
            return self if self.n_rows else other
        cells = tuple((a + c, b + d) for (a, b), (c, d) in zip(self.cells, other.cells, strict=True))
        levels = tuple(a + b for a, b in zip(self.levels, other.levels, strict=True))
        rows = None if self.rows is None or other.rows is None else self.rows.merge(other.rows)
        return _Counts(self.sums.merge(other.sums), cells, levels, rows)


@dataclass(frozen=True)
class _Count:
    """The work of one pass: counts of the values of columns, of the cells of a complete schema, or of levels."""

    request: _core.Request
    rules: PartRules
    columns: tuple[Counted, ...] = ()
    complete: tuple[PartialSchema, Schema] | None = None

    def __call__(self, X: GapRows, y: NDArray[np.float64], beside: Mapping[str, Any] = NOTHING) -> _Counts:
        sums, _, of_persons = self.rules.sums(self.request, X, y, beside)
        if not len(y):
            return _Counts(sums, (), ())
        persons = None if of_persons is None else of_persons.numbers
        most = None if self.rules.unit is None else self.rules.unit.max_rows
        if self.columns:
            records = _core.Records(X.numbers, y, persons=persons)
            counts = _core.count_cells(list(self.columns), records, max_rows=most, n_threads=self.rules.n_threads)
            cells = tuple((np.array(at, dtype=np.uint64), np.array(off, dtype=np.uint64)) for at, off in counts)
            return _Counts(sums, cells, ())
        if self.complete is not None:
            return _Counts(sums, (), (), count_rows(*self.complete, X.cells, persons, most))
        kept = np.ones(len(y), dtype=bool) if persons is None or most is None else first_rows(persons, most)
        found = []
        for column, labels in zip(X.codes.T, X.labels, strict=True):
            each = np.bincount(column[kept & (column >= 0)].astype(np.int64), minlength=len(labels))
            found.append(Counter({label: int(n) for label, n in zip(labels, each, strict=True) if n}))
        return _Counts(sums, (), tuple(found))


def count_cells(parts: DescribedParts, columns: list[Counted]) -> list[tuple[list[int], list[int]]]:
    """Return the values of columns at their public points and between them: one pass. Not private."""
    counts = _counted(parts, _Count(parts.first[0], parts.rules, tuple(columns)))
    return [(at.tolist(), between.tolist()) for at, between in counts.cells]


def count_levels(parts: DescribedParts) -> tuple[list[list[str]], list[list[int]]]:
    """Return the levels of each column, in order, and how many rows have each: one pass. Not private."""
    counts = _counted(parts, _Count(parts.first[0], parts.rules))
    labels = [sorted(each) for each in counts.levels]
    return labels, [[each[label] for label in known] for known, each in zip(labels, counts.levels, strict=True)]


def count_parts(parts: DescribedParts, partial: PartialSchema, complete: Schema) -> CellCounts:
    """Return the numbers of rows by a complete schema: one pass. Not private."""
    counts = _counted(parts, _Count(parts.first[0], parts.rules, complete=(partial, complete)))
    assert counts.rows is not None  # noqa: S101  # for the type checker: a table has rows
    return counts.rows


def _counted(parts: DescribedParts, work: _Count) -> _Counts:
    found = parts.partitions.reduce(work)
    if found is None:
        raise InvalidInput(
            f"a source must return a fresh iterable each time: every pass over it must find the same rows, got no "
            f"parts after {parts.n_rows} rows"
        )
    found.sums.check_same_rows(parts.first[1])
    return found


@dataclass(frozen=True)
class _Both:
    """Outcomes of two kinds of work on the same parts."""

    first: Any
    gaps: _core.Sums

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.gaps.n_rows

    def merge(self, other: "_Both") -> "_Both":
        """Return both of both."""
        return _Both(self.first.merge(other.first), self.gaps.merge(other.gaps))


@dataclass(frozen=True)
class _DoBoth:
    """Two kinds of work on the same tables."""

    first: Callable[..., Any]
    gaps: Callable[..., _core.Sums]

    def __call__(self, X: Any, y: Any, beside: Mapping[str, Any] = NOTHING) -> _Both:  # noqa: ANN401  # whatever a source gives
        # Once: a stream can be read only once.
        X, y = named_columns(X), None if y is None else taken_over("y", y)
        return _Both(self.first(X, y, beside), self.gaps(X, y, beside))


class _Checked:
    """Encoded rows of tables, whose gaps every pass holds against those of which bounds were released."""

    def __init__(self, rows: SchemaParts, gaps: DescribedParts) -> None:
        self._rows = rows
        self._gaps = gaps

    @property
    def names(self) -> tuple[str, ...]:
        return self._rows.names

    def on_threads(self, n_threads: int | None) -> tuple["_Checked", int | None]:
        rows, each = self._rows.on_threads(n_threads)
        return _Checked(rows, self._gaps), each

    def reduce(self, work: Callable[..., _Merged]) -> _Merged | None:
        gaps = self._gaps
        sums = SumOver(gaps.first[0], gaps.rules)
        # Gaps are described from nothing else.
        tables = cast("GapParts", gaps.partitions)
        both = _DoBoth(self._rows.encoding(work), tables.reading(sums))
        found: _Both | None = self._rows.tables.reduce(both)
        if found is None:
            return None
        found.gaps.check_same_rows(gaps.first[1])
        merged: _Merged = found.first
        return merged


def describe_complete(
    rows: SchemaParts,
    rules: PartRules,
    gaps: DescribedParts,
    arrange: Callable[[Source], Source] | None = None,
) -> DescribedParts:
    """Describe rows by the schema that released gaps complete, and refuse other rows than those of the release.

    The gaps of the table are compared in this pass, and its complete rows in all that follow. ``arrange``: from encoded
    rows to those that are described.
    """

    def arranged(parts: Partitions) -> Partitions:
        if arrange is None:
            return parts
        found: Partitions = arrange(Source(parts, None, rules.beside)).X
        return found

    return replace(describe(arranged(_Checked(rows, gaps)), rules), partitions=arranged(rows))


def check_as_many(parts: DescribedParts, rows: Rows) -> None:
    """Refuse other numbers of rows and records than those of the first pass, for which a release is calibrated."""
    found, first = (parts.n_rows, parts.n_records), (rows.shape[0], rows.n_records)
    if found != first:
        raise InvalidInput(
            f"every pass over the data must find the same rows, got {found[0]} rows and {found[1]} records after "
            f"{first[0]} rows and {first[1]} records"
        )


def gap_rules(unit: Persons | None, n_threads: int | None, persons: str | None) -> PartRules:
    """Return the rules by which gaps are read, of which nothing is assumed; ``persons``: the column of ids."""
    return PartRules(
        loss=NoModel.encoded_loss,
        classes=None,
        rows=NoModel.rows,
        intercept=None,
        treatment="clip",
        n_threads=n_threads,
        unit=unit,
        beside=Beside(persons),
    )
