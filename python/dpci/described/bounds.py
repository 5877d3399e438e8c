"""Release of the bounds and lists that a schema lacks: by itself, or within the budget of a release that needs them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import steps_from
from dpci.budgets import Budget, Neighbors
from dpci.data.parts import DescribedParts
from dpci.described.counts import CellCounts, count_rows
from dpci.described.parts import count_cells, count_levels, count_parts
from dpci.errors import InvalidInput
from dpci.released.bounds import GapSpecs, ReleasedBounds, check_lists, first_part, gap_specs, rest_after, source_of
from dpci.released.counts import Counting, ReleasedCounts, half_width
from dpci.schema.columns import CategoricalColumn, Column, UnboundedColumn
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.schema.transforms import back_within
from dpci.unit import Persons

SHARES = (0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25)
"""Shares of a budget that bounds may take by default."""
_LEFT_OUT, _OF_FEW = 2.0, 0.5
"""Most that bounds leave out on either side, over their share of the budget, and the same where 0 stands apart, because
few other values may be left."""
# The noise of a seeded release is independent of that of its bounds, these of that of its lists, and of its counts.
OF_BOUNDS, _OF_LEVELS = 0x5DEECE66D, 0x2545F4914F6CDD1D
_OF_BEYOND, _OF_COUNTS = 0x1B873593CC9E2D51, 0x38495AB5E6546B64


@dataclass(frozen=True, kw_only=True)
class BoundsStage:
    """Release of bounds and lists that is calibrated, and what it leaves of the budget. Holds no data."""

    schema: PartialSchema
    specs: GapSpecs
    budget: Budget
    """Budget of the bounds and lists."""
    rest: Budget | None
    """The rest of the budget; None where the bounds are released by themselves."""
    share: float = 1.0
    """Share of the budget of the release that needs them."""
    most_rows: int | None = None
    """Rows of a person that count; None of records."""

    def left_out(self, n_records: int) -> float:
        """Return the greatest share of records that it may leave out: beyond a bound, or with a level of its own."""
        levels = self.specs.levels
        return max(self.specs.share or 0.0, 0.0 if levels is None else levels.half_count / n_records)

    def release(
        self,
        table: Any,  # noqa: ANN401  # of any library
        persons: NDArray[np.int64] | None,
        *,
        n_threads: int | None,
        seed: int | None,
    ) -> "Completed":
        """Release bounds and lists of the columns of a table, whose rows belong to these persons.

        It spends ``budget``, which has been paid for.
        """
        schema, specs = self.schema, self.specs
        bounds: dict[str, tuple[float, float] | None] = {}
        levels: dict[str, list[str]] = {}
        if specs.bounds is not None:
            records = _records(schema.numbers(table), persons)
            found = _core.release_bounds(specs.bounds, records, n_threads=n_threads, seed=seed)
            bounds = _in_the_table(schema, found)
        if specs.levels is not None:
            codes, labels = schema.levels(table)
            other = None if seed is None else seed ^ _OF_LEVELS
            kept = _core.release_levels(specs.levels, _records(codes, persons), n_threads=n_threads, seed=other)
            for column, names, listed in zip(schema.unlisted, labels, kept, strict=True):
                levels[column.name] = [names[code] for code in listed]
        complete = self._complete(bounds, levels)
        cells = schema.gap_cells(table)
        return self._completed(
            complete, lambda: count_rows(schema, complete, cells, persons, self.most_rows), seed=seed
        )

    def release_parts(self, gaps: DescribedParts, *, seed: int | None) -> "Completed":
        """Release bounds and lists of the gaps of a table in parts; see :meth:`release`."""
        schema, specs = self.schema, self.specs
        bounds: dict[str, tuple[float, float] | None] = {}
        levels: dict[str, list[str]] = {}
        if specs.bounds is not None:
            found = _core.release_bounds(
                specs.bounds, lambda columns: count_cells(gaps, columns), n_threads=None, seed=seed
            )
            bounds = _in_the_table(schema, found)
        if specs.levels is not None:
            labels, counts = count_levels(gaps)
            other = None if seed is None else seed ^ _OF_LEVELS
            kept = _core.release_levels(specs.levels, counts, n_threads=None, seed=other)
            for column, names, listed in zip(schema.unlisted, labels, kept, strict=True):
                levels[column.name] = [names[level] for level in listed]
        complete = self._complete(bounds, levels)
        return self._completed(complete, lambda: count_parts(gaps, schema, complete), seed=seed)

    def _complete(self, bounds: dict[str, tuple[float, float] | None], levels: dict[str, list[str]]) -> Schema:
        return self.schema.completed(bounds, levels, source=source_of(self.budget, len(self.schema.gaps)))

    def _completed(self, complete: Schema, count: Callable[[], CellCounts], *, seed: int | None) -> "Completed":
        """Release the counts of a schema whose gaps were released, if any are."""
        schema, specs, counts = self.schema, self.specs, None
        if self.counts:
            found = count()
            beyond, cells = None, {}
            if specs.beyond is not None:
                (beyond,) = _core.release_counts(specs.beyond, [found.beyond], seed=_other(seed, _OF_BEYOND))
            if specs.counts is not None:
                flat = np.concatenate(found.cells).tolist()
                released = iter(_core.release_counts(specs.counts, flat, seed=_other(seed, _OF_COUNTS)))
                names = [column.name for column in schema.gaps]
                for name, own in zip(names, found.cells, strict=True):
                    cells[name] = tuple(next(released) for _ in own)
                (step,) = steps_from([specs.counts.step])
                complete, cells = _compared(schema, complete, cells, half_width(step))
            counts = ReleasedCounts(
                beyond_share=schema.beyond_share, counts_share=schema.counts_share, beyond=beyond, cells=cells
            )
        facts = ReleasedBounds.of(schema, self.budget, specs, counts)
        return Completed(schema=complete, facts=facts, private=seed is None)

    @property
    def counts(self) -> bool:
        """Whether anything is counted."""
        return self.specs.beyond is not None or self.specs.counts is not None


def _in_the_table(
    schema: PartialSchema, found: list[tuple[float, float] | None]
) -> dict[str, tuple[float, float] | None]:
    """Return bounds that were chosen after the transform of each column as numbers of the table, with few digits."""
    return {
        column.name: None if bounds is None else outward(column, back_within(column.transform, bounds, column.range))
        for column, bounds in zip(schema.unbounded, found, strict=True)
    }


def outward(column: UnboundedColumn, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return bounds a hundredth wider at most: three figures of the width or, before a logarithm, of each bound."""
    lower, upper = bounds
    least, most = column.range or (-math.inf, math.inf)

    def moved(end: Callable[[float], int], bound: float) -> float:
        size = upper - lower if column.transform == "none" else abs(bound)
        if not 1e-290 < size < 1e290:  # whose figures no float counts
            return bound
        places = 2 - math.floor(math.log10(size))
        return round(end(bound * 10.0**places) * 10.0**-places, places)

    return max(least, min(lower, moved(math.floor, lower))), min(most, max(upper, moved(math.ceil, upper)))


def _compared(
    schema: PartialSchema, complete: Schema, cells: dict[str, tuple[int, ...]], error: float
) -> tuple[Schema, dict[str, tuple[int, ...]]]:
    """Return the complete schema and its counts, where these name a reference that nobody named.

    It is the most common released category. Where the count of ``other`` is no more than its noise explains, ``other``
    has no column, which no rows would tell from the rest: such rows count as the reference. Terms name theirs.
    """
    if complete.terms:
        return complete, cells
    unnamed = {column.name: column.other for column in schema.unlisted if column.reference is None}
    found = dict(cells)

    def compared(column: Column) -> Column:
        if column.name not in unnamed or not isinstance(column, CategoricalColumn):
            return column
        counts, other = dict(zip(column.categories, cells[column.name], strict=True)), unnamed[column.name]
        reference = max(counts, key=counts.__getitem__)
        if counts[other] <= error and reference != other:
            del counts[other]
        found[column.name] = tuple(counts.values())
        kept = other if other in counts else reference
        missing = kept if column.missing == other else column.missing
        return replace(column, categories=tuple(counts), reference=reference, other=kept, missing=missing)

    made = replace(complete, columns=tuple(map(compared, complete.columns)))
    # A matrix has a column, whatever was released.
    return (made, found) if made.names else (complete, cells)


def _records(numbers: NDArray[np.float64], persons: NDArray[np.int64] | None) -> _core.Records:
    return _core.Records(numbers, np.zeros(len(numbers)), persons=persons)


@dataclass(frozen=True, kw_only=True)
class Completed:
    """Schema whose bounds were released, and what they cost."""

    schema: Schema
    facts: ReleasedBounds
    private: bool


def check_persons(unit: Persons | None) -> None:
    """Refuse persons of whom any number of rows counts, before anything is spent."""
    if unit is not None and unit.max_rows is None:
        raise InvalidInput(
            "persons must have max_rows where bounds are released, because each row may move a rank or make a "
            "level, got max_rows=None (pass a public number, such as dpci.Persons(ids, max_rows=3), in a shell "
            "--max-rows 3)"
        )


def stage_alone(
    schema: PartialSchema, budget: Budget, n_records: int, *, unit: Persons | None, neighbors: Neighbors
) -> BoundsStage:
    """Calibrate a release of bounds and lists for a whole budget."""
    specs = _specs(schema, budget, n_records, unit=unit, neighbors=neighbors)
    return BoundsStage(schema=schema, specs=specs, budget=budget, rest=None, most_rows=_most(unit))


def stage_within(
    schema: PartialSchema,
    budget: Budget,
    n_records: int,
    *,
    unit: Persons | None,
    neighbors: Neighbors,
    joint: bool = False,
) -> BoundsStage:
    """Calibrate a release of bounds and lists for a share of the budget of a release that needs them.

    Where the schema names no share it is the smallest of ``SHARES`` at which bounds leave out no more than twice this
    share of the values on either side, or half of it where 0 stands apart, and a level of so many records is listed in
    half of the releases; the greatest if none does. Public values alone decide. ``joint``: it is accounted for jointly
    with what follows.
    """
    lists = bool(schema.unlisted)
    check_lists(budget, lists=lists)

    def within(share: float) -> BoundsStage:
        own = first_part(budget, share, lists=lists, joint=joint)
        try:
            specs = _specs(schema, own, n_records, unit=unit, neighbors=neighbors)
        except InvalidInput as error:
            raise InvalidInput(f"{error}; bounds_share={share:g} of the budget is for the bounds") from error
        stages = 0 if specs.bounds is None else len(specs.bounds.steps)
        rest = rest_after(own, budget, stages=stages, lists=lists, joint=joint, counting=_counting(schema))
        return BoundsStage(schema=schema, specs=specs, budget=own, rest=rest, share=share, most_rows=_most(unit))

    if schema.bounds_share is not None:
        return within(schema.bounds_share)
    most = _OF_FEW if any(column.zeros for column in schema.unbounded) else _LEFT_OUT
    for one in SHARES[:-1]:
        try:
            found = within(one)
        except InvalidInput:  # a greater share may be enough
            continue
        if found.left_out(n_records) <= most * one:
            return found
    return within(SHARES[-1])


def _specs(
    schema: PartialSchema, budget: Budget, n_records: int, *, unit: Persons | None, neighbors: Neighbors
) -> GapSpecs:
    ranges = [(column.range, column.zeros, column.transform) for column in schema.unbounded]
    return gap_specs(
        ranges, len(schema.unlisted), n_records, budget, unit=unit, neighbors=neighbors, counting=_counting(schema)
    )


def _counting(schema: PartialSchema) -> Counting:
    return Counting(schema.beyond_share, schema.counts_share)


def _most(unit: Persons | None) -> int | None:
    return None if unit is None else unit.max_rows


def _other(seed: int | None, key: int) -> int | None:
    return None if seed is None else seed ^ key
