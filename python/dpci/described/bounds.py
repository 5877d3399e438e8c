"""Release of the bounds of a schema with gaps: by itself, or within the budget of a release that needs them."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpci import _core
from dpci.accounting.costs import steps_from
from dpci.base.validation import check_fraction
from dpci.budgets import Budget, split_budget
from dpci.data.rows import Rows
from dpci.errors import InvalidInput
from dpci.released.bounds import ReleasedBounds, bounds_spec, source_of
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.unit import Persons

SHARES = (0.05, 0.1, 0.15, 0.2, 0.25)
"""Shares of a budget that bounds may take by default."""
_LEFT_OUT = 0.05
# The noise of a seeded release is independent of that of its bounds.
_SEED_BITS = 0x5DEECE66D


@dataclass(frozen=True, kw_only=True)
class BoundsStage:
    """Release of bounds that is calibrated, and what it leaves of the budget. Holds no data."""

    schema: PartialSchema
    spec: _core.BoundsSpec
    budget: Budget
    """Budget of the bounds."""
    rest: Budget | None
    """The rest of the budget; None where the bounds are released by themselves."""

    def release(self, records: _core.Records, *, n_threads: int | None, seed: int | None) -> "Completed":
        """Release bounds of the columns of the records, which are the numbers of the gaps.

        It spends ``budget``, which has been paid for.
        """
        found = _core.release_bounds(self.spec, records, n_threads=n_threads, seed=seed)
        gaps = self.schema.gaps
        bounds = dict(zip((column.name for column in gaps), found["bounds"], strict=True))
        steps = steps_from(found["steps"])
        return Completed(
            schema=self.schema.completed(bounds, source=source_of(self.budget)),
            facts=ReleasedBounds.of(gaps, self.budget, self.spec.share, steps),
            private=found["private"],
        )

    def release_beside(
        self,
        table: Any,  # noqa: ANN401  # of any library
        rows: Rows,
        *,
        n_threads: int | None,
        seed: int | None,  # of any library
    ) -> "tuple[Completed, Rows]":
        """Release the bounds of a table, and encode it by the schema that they complete.

        ``rows`` are those of the table by the blank schema, which were read and paid for. The rows that are returned
        differ from these in their numbers alone.
        """
        numbers = self.schema.numbers(table)
        records = _core.Records(numbers, np.zeros(len(numbers)), persons=rows.persons)
        other_seed = None if seed is None else seed ^ _SEED_BITS
        completed = self.release(records, n_threads=n_threads, seed=other_seed)
        values = completed.schema.features(table)
        core = _core.Records(values, rows.targets, persons=rows.persons, weights=rows.weights)
        return completed, dataclasses.replace(rows, held=(values, rows.targets), core=core)


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
            "persons must have max_rows where bounds are released, because each row may move a rank, got "
            "max_rows=None (pass dpci.Persons(ids, max_rows=...))"
        )


def stage_alone(schema: PartialSchema, budget: Budget, n_records: int, unit: Persons | None) -> BoundsStage:
    """Calibrate a release of bounds for a whole budget.

    Raises
    ------
    InvalidInput
        For persons without ``max_rows``, and for a budget that cannot find bounds among so many records.
    """
    return BoundsStage(schema=schema, spec=_spec(schema, budget, n_records, unit), budget=budget, rest=None)


def stage_within(
    schema: PartialSchema, budget: Budget, n_records: int, unit: Persons | None, share: float | None
) -> BoundsStage:
    """Calibrate a release of bounds for a share of the budget of a release that needs them.

    Without a share it is the smallest of ``SHARES`` at which bounds leave out no more than 5% of the values on either
    side, and the greatest if none does: public values alone decide.

    Raises
    ------
    InvalidInput
        For a share that is not between 0 and 1, persons without ``max_rows``, and a share of the budget that cannot
        find bounds among so many records.
    """
    if share is not None:
        return _within(schema, budget, n_records, unit, check_fraction("bounds_share", share))
    for one in SHARES[:-1]:
        try:
            found = _within(schema, budget, n_records, unit, one)
        except InvalidInput:  # a greater share may be enough
            continue
        if found.spec.share <= _LEFT_OUT:
            return found
    return _within(schema, budget, n_records, unit, SHARES[-1])


def _within(schema: PartialSchema, budget: Budget, n_records: int, unit: Persons | None, share: float) -> BoundsStage:
    own, rest = split_budget(budget, share, "bounds_share")
    try:
        spec = _spec(schema, own, n_records, unit)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; bounds_share={share:g} of the budget is for the bounds") from error
    return BoundsStage(schema=schema, spec=spec, budget=own, rest=rest)


def _spec(schema: PartialSchema, budget: Budget, n_records: int, unit: Persons | None) -> _core.BoundsSpec:
    return bounds_spec(((column.range, column.zeros) for column in schema.gaps), n_records, budget, unit)
