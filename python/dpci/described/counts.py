"""Numbers of rows in the cells of the columns of a table, and of those beyond their bounds. Not private."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.released.bounds import numbers_of
from dpci.released.counts import N_BINS, cells_of_numbers, edges
from dpci.schema.cells import drops
from dpci.schema.columns import CategoricalColumn, UnboundedColumn
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema


@dataclass(frozen=True)
class CellCounts:
    """Rows in the cells of each gap, and records or persons with a number beyond its bounds."""

    cells: tuple[NDArray[np.int64], ...]
    beyond: int

    def merge(self, other: "CellCounts") -> "CellCounts":
        """Return the counts of both."""
        return CellCounts(
            tuple(a + b for a, b in zip(self.cells, other.cells, strict=True)), self.beyond + other.beyond
        )


def count_rows(
    partial: PartialSchema,
    complete: Schema,
    cells: Mapping[str, Any],
    persons: NDArray[np.int64] | None = None,
    most: int | None = None,
) -> CellCounts:
    """Count the rows of the gaps of a table by the schema that completes it; ``most`` of each person."""
    kept = None if persons is None or most is None else first_rows(persons, most)
    numeric = numbers_of(complete)
    lists = {column.name: column for column in complete.columns if isinstance(column, CategoricalColumn)}
    found, beyond = [], None
    for gap in partial.gaps:
        if isinstance(gap, UnboundedColumn):
            numbers = gap.numbers(cells[gap.name])
            if gap.range is not None:
                # Values beyond the public range count as its ends.
                numbers = np.clip(numbers, *gap.range)
            bounds = numeric[gap.name]
            codes = cells_of_numbers(numbers, edges(bounds.lower, bounds.upper, gap.transform))
            outside = (codes == 0) | (codes == N_BINS + 1)
            beyond = outside if beyond is None else beyond | outside
            n_cells = N_BINS + 3
        else:
            column = lists[gap.name]
            codes, n_cells = column.codes(cells[gap.name]), len(column.categories)
            if drops(column):  # the codes are those of a category, which an empty cell is not
                codes = np.where(column.gaps(cells[gap.name]), -1, codes)
        counted = codes if kept is None else codes[kept]
        found.append(np.bincount(counted[counted >= 0], minlength=n_cells))
    if beyond is None:
        return CellCounts(tuple(found), 0)
    if persons is None:
        return CellCounts(tuple(found), int(beyond.sum()))
    return CellCounts(tuple(found), len(np.unique(persons[beyond if kept is None else beyond & kept])))


def first_rows(persons: NDArray[np.int64], most: int) -> NDArray[np.bool_]:
    """Return which rows are among the first so many of their person."""
    order = np.argsort(persons, kind="stable")
    ordered = persons[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    place = np.arange(len(persons)) - np.repeat(starts, np.diff(np.r_[starts, len(persons)]))
    kept = np.empty(len(persons), dtype=bool)
    kept[order] = place < most
    return kept
