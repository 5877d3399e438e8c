"""``GapsFirst``: bounds and lists that a release needs, released before it and within its budget."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

from dpci.budgets import Budget
from dpci.data.frames import named_columns, taken_over
from dpci.data.parts import DescribedParts, PartRules, describe
from dpci.data.rows import Rows, Source, names_beside, read
from dpci.described.bounds import OF_BOUNDS, BoundsStage, Completed, check_persons, stage_within
from dpci.described.parts import GapParts, check_as_many, describe_complete, gap_cells, gap_rules
from dpci.errors import InvalidInput
from dpci.ledger.payment import PublicChoices
from dpci.released.bounds import are_joint
from dpci.schema.partial import PartialSchema
from dpci.schema.parts import SchemaParts
from dpci.schema.table import RawTable, Schema

Arrange: TypeAlias = Callable[[Source], Source]


def stage_of(
    partial: PartialSchema, choices: PublicChoices, budget: Budget, mechanism: str, n_records: int
) -> BoundsStage:
    """Return the release of bounds and lists that a release of these choices begins with; errors as of the release."""
    check_persons(choices.unit)
    n = n_records if choices.n_public is None else choices.n_public
    joint = are_joint(budget, mechanism)
    return stage_within(partial, budget, n, unit=choices.unit, neighbors=choices.neighbors, joint=joint)


class GapsFirst:
    """A release whose schema has gaps: its table by what is known, the release of the gaps, and its complete rows.

    Parameters
    ----------
    partial : PartialSchema
        The schema.
    source : Source
        The table by the blank schema, see ``sources.described``. Nothing is read here.
    choices : PublicChoices
        Choices of the release, with the blank schema.
    budget : Budget
        Budget of the whole.
    mechanism : str
        Name of the mechanism that follows, which says whether both are accounted for jointly.

    Raises
    ------
    InvalidInput
        For rows that are encoded already, and persons without ``max_rows``.
    """

    def __init__(
        self, partial: PartialSchema, source: Source, choices: PublicChoices, budget: Budget, mechanism: str
    ) -> None:
        if source.prepare is None and not isinstance(source.X, SchemaParts):
            raise InvalidInput(f"a schema with gaps needs a table that is not encoded, got {type(source.X).__name__}")
        check_persons(choices.unit)
        self._partial = partial
        self._source = source
        self._choices = choices
        self._budget = budget
        self._mechanism = mechanism
        # Known once there is access to the data: a table in memory, or the gaps of rows in parts.
        self._table: Any = None
        self._gaps: DescribedParts | None = None

    @property
    def source(self) -> Source:
        """Table that is read, by its blank schema."""
        if self._source.prepare is None:
            return self._source
        # The table has the targets that are not given.
        return self._source._replace(y=() if self._source.y is None else self._source.y, prepare=self._prepare)

    def _prepare(self, given: Source) -> Source:
        # Once: a stream can be read only once.
        y = None if self._source.y is None else taken_over("y", self._source.y)
        self._source = self._source._replace(y=y, beside=given.beside)
        self._table = named_columns(given.X.table)
        return self._encoded(self._partial.blank)

    def _encoded(self, schema: Schema) -> Source:
        prepare = self._source.prepare
        assert prepare is not None  # noqa: S101  # for the type checker: of tables in memory
        return prepare(Source(RawTable(self._table, schema), self._source.y, self._source.beside))

    def stage(self, n_records: int) -> BoundsStage:
        """Return the calibrated release of the gaps."""
        return stage_of(self._partial, self._choices, self._budget, self._mechanism, n_records)

    def release(self, stage: BoundsStage, rows: Rows) -> Completed:
        """Release the gaps of a table whose rows were read by the blank schema. It spends the budget of the stage."""
        choices = self._choices
        seed = None if choices.seed is None else choices.seed ^ OF_BOUNDS
        if rows.parts is None:
            cells = gap_cells(self._table, self._source.y, self._partial)
            return stage.release(cells, rows.persons, n_threads=choices.n_threads, seed=seed)
        persons = self._source.beside.persons
        gaps = GapParts(self._source.X.tables, self._partial, () if persons is None else (persons,))
        self._gaps = describe(gaps, gap_rules(choices.unit, choices.n_threads, persons))
        check_as_many(self._gaps, rows)
        return stage.release_parts(self._gaps, seed=seed)

    def complete(self, schema: Schema, rows: Rows, choices: PublicChoices, arrange: Arrange | None = None) -> Rows:
        """Return the rows by the schema that the released gaps complete, in place of those by the blank one.

        ``choices`` are those with the schema; ``arrange``: as of the :class:`Kind` of the release.
        """
        if self._gaps is None:
            encoded = self._encoded(schema)
            found, _ = read(encoded if arrange is None else arrange(encoded), choices, lambda *_: None)
            return found
        beside = names_beside(self._source.beside)
        rules = dataclasses.replace(PartRules.of(choices), beside=beside)
        encoded_parts = SchemaParts(self._source.X.tables, schema, beside)
        parts = describe_complete(encoded_parts, rules, self._gaps, arrange)
        check_as_many(parts, rows)
        # The intercept is last.
        names = (*schema.names, *rows.names[rows.shape[1] :])
        return dataclasses.replace(rows, shape=(parts.n_rows, parts.n_columns), names=names, parts=parts)
