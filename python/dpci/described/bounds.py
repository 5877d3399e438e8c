"""Release of the bounds and lists that a schema lacks: by itself, or within the budget of a release that needs them."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.base.validation import check_fraction
from dpci.budgets import Budget, Neighbors, split_budget
from dpci.data.rows import Rows
from dpci.errors import InvalidInput
from dpci.released.bounds import GapSpecs, ReleasedBounds, gap_specs, source_of
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.unit import Persons

SHARES = (0.05, 0.1, 0.15, 0.2, 0.25)
"""Shares of a budget that bounds may take by default."""
_LEFT_OUT = 0.05
# The noise of a seeded release is independent of that of its bounds, and these of that of its lists.
_OF_BOUNDS, _OF_LEVELS = 0x5DEECE66D, 0x2545F4914F6CDD1D


@dataclass(frozen=True, kw_only=True)
class BoundsStage:
    """Release of bounds and lists that is calibrated, and what it leaves of the budget. Holds no data."""

    schema: PartialSchema
    specs: GapSpecs
    budget: Budget
    """Budget of the bounds and lists."""
    rest: Budget | None
    """The rest of the budget; None where the bounds are released by themselves."""

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
        schema, specs, private = self.schema, self.specs, seed is None
        bounds: dict[str, tuple[float, float] | None] = {}
        levels: dict[str, list[str]] = {}
        if specs.bounds is not None:
            records = _records(schema.numbers(table), persons)
            found = _core.release_bounds(specs.bounds, records, n_threads=n_threads, seed=seed)
            bounds = dict(zip((column.name for column in schema.unbounded), found["bounds"], strict=True))
        if specs.levels is not None:
            codes, labels = schema.levels(table)
            other = None if seed is None else seed ^ _OF_LEVELS
            kept = _core.release_levels(specs.levels, _records(codes, persons), n_threads=n_threads, seed=other)
            for column, names, listed in zip(schema.unlisted, labels, kept["levels"], strict=True):
                levels[column.name] = [names[code] for code in listed]
        return Completed(
            schema=schema.completed(bounds, levels, source=source_of(self.budget)),
            facts=ReleasedBounds.of(schema, self.budget, specs),
            private=private,
        )

    def release_beside(
        self,
        table: Any,  # noqa: ANN401  # of any library
        rows: Rows,
        *,
        n_threads: int | None,
        seed: int | None,
    ) -> "tuple[Completed, Rows]":
        """Release the gaps of a table, and encode it by the schema that they complete.

        ``rows`` are those of the table by the blank schema, which were read and paid for. The rows that are returned
        have the columns of the complete schema.
        """
        other_seed = None if seed is None else seed ^ _OF_BOUNDS
        completed = self.release(table, rows.persons, n_threads=n_threads, seed=other_seed)
        values, names = completed.schema.features(table), completed.schema.names
        core = _core.Records(values, rows.targets, persons=rows.persons, weights=rows.weights)
        # The intercept is last.
        names = (*names, *rows.names[rows.shape[1] :])
        return completed, dataclasses.replace(
            rows, shape=values.shape, names=names, held=(values, rows.targets), core=core
        )


def _records(numbers: NDArray[np.float64], persons: NDArray[np.int64] | None) -> _core.Records:
    return _core.Records(numbers, np.zeros(len(numbers)), persons=persons)


@dataclass(frozen=True, kw_only=True)
class Completed:
    """Schema whose bounds were released, and what they cost."""

    schema: Schema
    facts: ReleasedBounds
    private: bool


def check_persons(unit: Persons | None) -> None:
    """Refuse persons of whom any number of rows counts, before anything is spent.

    Raises
    ------
    InvalidInput
        For persons without ``max_rows``.
    """
    if unit is not None and unit.max_rows is None:
        raise InvalidInput(
            "persons must have max_rows where bounds are released, because each row may move a rank or make a "
            "level, got max_rows=None (pass dpci.Persons(ids, max_rows=...))"
        )


def stage_alone(
    schema: PartialSchema, budget: Budget, n_records: int, *, unit: Persons | None, neighbors: Neighbors
) -> BoundsStage:
    """Calibrate a release of bounds and lists for a whole budget.

    Raises
    ------
    InvalidInput
        For lists without (ε, δ), persons without ``max_rows``, and for a budget that cannot find bounds among so many
        records.
    """
    specs = _specs(schema, budget, n_records, unit=unit, neighbors=neighbors)
    return BoundsStage(schema=schema, specs=specs, budget=budget, rest=None)


def stage_within(
    schema: PartialSchema,
    budget: Budget,
    n_records: int,
    *,
    unit: Persons | None,
    neighbors: Neighbors,
    share: float | None,
) -> BoundsStage:
    """Calibrate a release of bounds and lists for a share of the budget of a release that needs them.

    Without a share it is the smallest of ``SHARES`` at which bounds leave out no more than 5% of the values on either
    side, and a level of 5% of the records is listed in half of the releases; the greatest if none does. Public values
    alone decide.

    Raises
    ------
    InvalidInput
        For a share that is not between 0 and 1, lists without (ε, δ), persons without ``max_rows``, and a share of the
        budget that cannot find bounds among so many records.
    """

    def within(share: float) -> BoundsStage:
        own, rest = split_budget(budget, share, "bounds_share")
        try:
            specs = _specs(schema, own, n_records, unit=unit, neighbors=neighbors)
        except InvalidInput as error:
            raise InvalidInput(f"{error}; bounds_share={share:g} of the budget is for the bounds") from error
        return BoundsStage(schema=schema, specs=specs, budget=own, rest=rest)

    if share is not None:
        return within(check_fraction("bounds_share", share))
    for one in SHARES[:-1]:
        try:
            found = within(one)
        except InvalidInput:  # a greater share may be enough
            continue
        if found.left_out(n_records) <= _LEFT_OUT:
            return found
    return within(SHARES[-1])


def _specs(
    schema: PartialSchema, budget: Budget, n_records: int, *, unit: Persons | None, neighbors: Neighbors
) -> GapSpecs:
    ranges = [(column.range, column.zeros) for column in schema.unbounded]
    return gap_specs(ranges, len(schema.unlisted), n_records, budget, unit=unit, neighbors=neighbors)
