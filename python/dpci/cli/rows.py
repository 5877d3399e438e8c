"""Turns the tables of the command line into bounded rows: one file or many, whole or by chunks, with progress."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpci.base.progress import progress_bar
from dpci.base.validation import as_name
from dpci.cli import options
from dpci.data.arrays import NamedRows
from dpci.data.persons import check_columns_of_unit
from dpci.data.rows import Source
from dpci.data.storage import EncodedRows, stacked
from dpci.data.weights import weights_of_cells
from dpci.errors import InvalidInput
from dpci.released.choices import weights_of
from dpci.schema.partial import PartialSchema, known_of
from dpci.schema.parts import rows_to_predict
from dpci.schema.table import Schema, category_names, encoded_rows, numeric_names
from dpci.sources.chunks import Chunks, given_cells
from dpci.sources.described import described
from dpci.sources.files import Columns, place_of, read_batches, uncut
from dpci.sources.formats import PLAIN, Format
from dpci.unit import Beside, Persons, Weights, given_unit

CHUNK_ROWS: Final = 65_536
"""Rows that are read at a time where no number is given: some megabytes of text."""

MOST_BYTES: Final = 512 * 2**20
"""Rows that take more are not held in memory: each pass of the solver reads the files again."""

_Rows = TypeVar("_Rows")

Chunk: TypeAlias = tuple[EncodedRows, NDArray[np.float64], dict[str, list[Any]]]
"""Rows, targets, and columns beside them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableRows:
    """The rows of a table in one or several files, as a schema encodes them, chunk by chunk and as often as wanted."""

    files: tuple[Path, ...]
    schema: Schema
    form: Format = PLAIN
    weights: str | None = None
    """The column of weights beside those of the schema, which are numbers too."""
    chunk_rows: int = CHUNK_ROWS

    def __post_init__(self) -> None:
        if self.chunk_rows < 1:
            raise InvalidInput(f"--chunk-rows must be at least 1, got --chunk-rows {self.chunk_rows}")

    def features(self, kept: Sequence[str] = ()) -> Iterator[tuple[Columns, NamedRows]]:
        """Yield the columns of each chunk, ``kept`` ones with exact values, and its rows; the target may be missing."""
        return self._chunks(partial(rows_to_predict, self.schema), kept, exact=kept)

    def _encoded(self, table: Any) -> tuple[EncodedRows, NDArray[np.float64]]:  # noqa: ANN401  # columns
        return encoded_rows(self.schema, table), self.schema.targets(table)

    def columns(self, beside: Sequence[str] = ()) -> Columns:
        """Return the columns that the schema names, of all files, as they are written.

        Columns of ids and those ``beside`` are as a fit has them.
        """
        ids = list(dict.fromkeys([*([self.schema.persons] if self.schema.persons else []), *beside]))
        parts = [table for table, _ in self._chunks(lambda _: None, (self.schema.target.column, *ids), exact=ids)]
        found = {name: [cell for part in parts for cell in part[name]] for name in parts[0]}
        return {**found, **{name: given_cells(found[name]) for name in ids}}

    def beside(self, unit: "UnitOptions") -> Iterator[Chunk]:
        """Yield rows and targets of each chunk with the columns that say how much they count.

        Chunks are cut between persons whose rows follow each other.
        """
        names = unit.columns
        target = self.schema.target.column
        alone = [name for name in category_names(self.schema) if name not in (target, unit.persons, *names)]
        for table, (X, y) in self._chunks(
            self._encoded, (target, *names), exact=names, together=unit.persons, categories=alone
        ):
            yield X, y, {name: list(given_cells(table[name])) for name in names}

    def tables(self, unit: "UnitOptions") -> Iterator[tuple[Columns, None, dict[str, list[Any]]]]:
        """Yield the columns of each chunk as they are written; otherwise as :meth:`beside`."""
        names = unit.columns
        for table, _ in self._chunks(
            lambda _: None, (self.schema.target.column, *names), exact=names, together=unit.persons
        ):
            yield table, None, {name: list(given_cells(table[name])) for name in names}

    def _chunks(
        self,
        encode: Callable[[Any], _Rows],
        more: Sequence[str],
        *,
        exact: Sequence[str] = (),
        together: str | None = None,
        categories: Sequence[str] = (),
    ) -> Iterator[tuple[Columns, _Rows]]:
        columns = tuple(dict.fromkeys([*(column.name for column in self.schema.columns), *more]))
        numbers = {*numeric_names(self.schema), *([self.weights] if self.weights else [])}
        for file in self.files:
            start = 0
            batches = read_batches(
                file,
                form=self.form,
                n_rows=self.chunk_rows,
                columns=columns,
                exact=exact,
                numbers=numbers,
                categories=categories,
            )
            for table in batches if together is None else uncut(batches, together):
                try:
                    rows = encode(table)
                except InvalidInput as error:
                    raise InvalidInput(f"{error} ({place_of(error, file, start)})") from error
                yield table, rows
                start += len(next(iter(table.values())))


def held_chunks(chunks: Iterable[Chunk], most_bytes: float, *, progress: bool = False) -> Chunk | None:
    """Return all chunks as one, or None where their rows take more memory than that."""
    parts: list[Chunk] = []
    n_bytes = 0
    with progress_bar(None, "rows", wanted=progress, what="read") as advance:
        for part in chunks:
            n_bytes += part[0].nbytes
            if n_bytes > most_bytes:
                return None
            parts.append(part)
            advance(len(part[0]))
    if len(parts) == 1:
        return parts[0]
    beside = {name: [cell for _, _, cells in parts for cell in cells[name]] for name in parts[0][2]}
    return stacked([X for X, _, _ in parts]), np.concatenate([y for _, y, _ in parts]), beside


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitOptions:
    """The options of persons and weights."""

    persons: options.Persons = None
    max_rows: options.MaxRows = None
    weights: options.Weights = None
    weight_bound: options.WeightBound = None
    weight_total: options.WeightTotal = None

    def __post_init__(self) -> None:
        for name in ("persons", "weights"):
            object.__setattr__(self, name, as_name(getattr(self, name)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns beside those of the schema that are read."""
        return tuple(name for name in (self.persons, self.weights) if name is not None)

    def check(self, schema: Schema) -> None:
        """Refuse what the options rule out, before anything is read."""
        if self.persons is None and schema.persons:
            raise InvalidInput(
                f"--persons {schema.persons} must be given with this schema, which names the column of persons, got "
                "none"
            )
        check_columns_of_unit(schema.persons, Beside(self.persons, self.weights))
        self._check_persons(self.persons)
        for option, value in (("--weight-bound", self.weight_bound), ("--weight-total", self.weight_total)):
            if self.weights is None and value is not None:
                raise InvalidInput(f"--weights must be given with {option}, got {option} {value} alone")
        self._check_bound(self.weights)

    def planned(self, schema: Schema | None) -> dict[str, Any]:
        """Return the keywords of a plan, whose records are persons also where the schema names them."""
        named = "" if schema is None else schema.persons
        if self.persons is not None:
            check_columns_of_unit(named, Beside(self.persons))
        whose = self.persons or named or None
        self._check_persons(whose)
        self._check_bound(self.weight_total)
        return {
            "persons": None if whose is None else Persons(max_rows=self.max_rows),
            "weights": None if self.weight_bound is None else Weights(bound=self.weight_bound, total=self.weight_total),
        }

    def _check_persons(self, persons: str | None) -> None:
        if persons is None and self.max_rows is not None:
            raise InvalidInput(f"--max-rows must go with --persons, got --max-rows {self.max_rows} alone")

    def _check_bound(self, needed_by: object) -> None:
        if needed_by is not None and self.weight_bound is None:
            raise InvalidInput(
                "--weight-bound, the greatest weight that any record could have, must be given with weights, because "
                "it must not depend on the data, got none"
            )

    def read(self, rows: TableRows, most_bytes: float, *, progress: bool) -> tuple[Any, Any, dict[str, Any]]:
        """Return rows and targets, and the keywords of a fit that say how much they count.

        Rows that take more than so many bytes are chunks that every pass reads again; with 0 nothing is read here.
        """
        if rows.schema.drops:  # whose rows are weighed where the cells themselves are read
            table, keywords = self.read_table(rows, rows.schema, in_parts=not most_bytes, progress=progress)
            return table, None, keywords
        rows = dataclasses.replace(rows, weights=self.weights)
        held = held_chunks(rows.beside(self), most_bytes, progress=progress) if most_bytes else None
        if held is None:
            source = Passes(rows, self, progress=progress)
            chunks = Chunks(source, names=rows.schema.names, schema=rows.schema, progress=False)
            return chunks, None, self._keywords(self.persons, self.weights)
        X, y, beside = held
        ids, weights = (None if name is None else beside[name] for name in (self.persons, self.weights))
        return NamedRows(X, rows.schema.names), y, self._keywords(ids, weights_of_cells(weights))

    def read_arrays(self, rows: TableRows, *, progress: bool) -> tuple[Any, Any, dict[str, Any]]:
        """Return encoded rows and targets, as studies take them, with arrays of ids and weights in the keywords."""
        X, y, keywords = self.read(rows, math.inf, progress=progress)
        if not rows.schema.drops:
            return X, y, keywords
        unit, weights, beside = given_unit(**keywords)
        source = described(Source(X, None, beside), rows.schema)
        assert source.prepare is not None  # noqa: S101  # for the type checker: of tables in memory
        X, y, beside, _ = source.prepare(source)
        weights = weights_of(weights, rows.schema, far_rows=False)
        return X, y, {
            "persons": unit and dataclasses.replace(unit, ids=beside.persons),
            "weights": weights and dataclasses.replace(weights, values=beside.weights),
        }  # fmt: skip

    def read_table(
        self, rows: TableRows, schema: Schema | PartialSchema, *, in_parts: bool, progress: bool
    ) -> tuple[Any, dict[str, Any]]:
        """Return the table of a schema with gaps as it is written, and the keywords that say how much its rows count.

        In parts they are chunks that every pass reads again, and nothing is read here.
        """
        rows = dataclasses.replace(rows, weights=self.weights)
        if in_parts:
            chunks = Chunks(Passes(rows, self, encoded=False, progress=progress), schema=schema, progress=False)
            return chunks, self._keywords(self.persons, self.weights)
        with progress_bar(None, "rows", wanted=progress, what="read") as advance:
            table = rows.columns(self.columns)
            advance(len(next(iter(table.values()))))
        weights = None if self.weights is None else table[self.weights]
        # That of a row which is left out is not looked at.
        weights = weights if known_of(schema).drops else weights_of_cells(weights)
        return table, self._keywords(self.persons, weights)

    def _keywords(self, persons: object, weights: object) -> dict[str, Any]:
        return {
            "persons": None if self.persons is None else Persons(persons, max_rows=self.max_rows),
            "weights": None
            if self.weight_bound is None
            else Weights(weights, bound=self.weight_bound, total=self.weight_total),
        }


class Passes:
    """A source of chunks that is read several times, each pass with a progress bar if one is wanted.

    How many passes a fit makes depends on the data: the bar is for whoever holds them.
    """

    def __init__(self, rows: TableRows, unit: UnitOptions, *, encoded: bool = True, progress: bool) -> None:
        self._rows = rows
        self._unit = unit
        self._encoded = encoded
        self._progress = progress
        self._n_passes = 0
        self._n_rows: int | None = None

    def __call__(self) -> Iterator[Any]:
        """Read all rows once more, a chunk at a time."""
        self._n_passes += 1
        with progress_bar(self._n_rows, "rows", wanted=self._progress, what=f"pass {self._n_passes}") as advance:
            n_rows = 0
            for chunk in self._rows.beside(self._unit) if self._encoded else self._rows.tables(self._unit):
                yield chunk
                each = len(next(iter(chunk[0].values())) if isinstance(chunk[0], Mapping) else chunk[0])
                n_rows += each
                advance(each)
        self._n_rows = n_rows
