"""``release_schema``: bounds of columns that nobody knows, chosen from the data under differential privacy."""

import dataclasses
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpci.base.habits import KEYWORDS
from dpci.base.validation import advised, broken
from dpci.budgets import Budget, NeighborsLike, check_budget, read_neighbors
from dpci.data.frames import named_columns
from dpci.data.parts import Partitions, PartRules
from dpci.data.persons import check_columns_of_unit
from dpci.data.rows import Rows, Source, check_index_beside
from dpci.described.bounds import BoundsStage, check_persons, stage_alone
from dpci.described.parts import GapParts
from dpci.described.record import SchemaRecord
from dpci.described.result import ReleasedSchema
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.released.choices import NoModel
from dpci.schema.cells import columns_beside
from dpci.schema.partial import PartialSchema
from dpci.schema.table import RawTable, Table
from dpci.sources.chunks import Chunks
from dpci.sources.described import table_parts
from dpci.unit import Persons, given_unit


@advised(KEYWORDS)
def release_schema(
    table: Table | Partitions | str | PathLike[str],
    *,
    schema: PartialSchema | None = None,
    budget: Budget,
    persons: ArrayLike | Persons | str | None = None,
    neighbors: NeighborsLike = "replace_one",
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> ReleasedSchema:
    """Release the bounds and lists that nobody knows, and return the schema that they complete.

    Bounds are chosen among public points by the exponential mechanism: those that leave out up to about 2% of the
    values on either side, or more where the budget is small. Categories are listed that enough records have. What is
    known of a column costs nothing. The result is differentially private at the budget, whatever the table holds.

    Parameters
    ----------
    table : mapping of columns or data frame
        The table with the columns and the ids; the target is read where its bounds are released. Missing values of
        numbers are refused, unless the column has ``missing="middle"``. Or a ``.csv``, ``.csv.gz`` or ``.parquet``
        file, :class:`dpci.Chunks` of tables or a Dask frame, which are read once for each stage (docs/scale.md).
    schema : dpci.schema.PartialSchema, optional
        The description of the table; None: that of the chunks. Bounds are released of each
        :class:`dpci.schema.UnboundedColumn`, and categories of each :class:`dpci.schema.UnlistedColumn`. The target may
        be a :class:`dpci.schema.UnboundedTarget`.
    budget : PureDP, ZCDP or ApproxDP
        Budget of the bounds; a tenth of that of a fit is a good start. Lists need ApproxDP. Its delta is charged,
        though bounds need none.
    persons : array-like of shape (n_samples,), Persons or str, optional
        The person of each row, or the column of ids, with ``max_rows`` by :class:`dpci.Persons`.
    neighbors : "replace_one" or AddRemove
        See :func:`dpci.fit`.
    ledger : Ledger, optional
        The ledger that pays, before the choice is drawn.
    seed : int, optional
        For simulations and tests: a choice from this seed; the result is marked as not private.

    Returns
    -------
    ReleasedSchema
        The schema, the bounds and their cost.

    Raises
    ------
    InvalidInput
        For a schema without a gap, a column that is missing or holds no finite numbers, persons without ``max_rows``,
        and a budget that cannot find bounds among so many records, before anything is spent; the message has the least
        budget that finds them.
    BudgetExceeded, LedgerError, ReleaseFailed
        See :func:`dpci.fit`.

    Warns
    -----
    SeededNoiseWarning
        If a seed is given.

    References
    ----------
    McSherry & Talwar, "Mechanism design via differential privacy", 2007. docs/proofs/bounds.md has the proof.

    Examples
    --------
    >>> from dpci.schema import ClassTarget, PartialSchema, UnboundedColumn
    >>> rng = np.random.default_rng(0)
    >>> people = {"age": rng.integers(18, 90, 5000), "income": rng.lognormal(10, 1, 5000), "ill": ["no"] * 5000}
    >>> partial = PartialSchema(
    ...     columns=(UnboundedColumn(name="age", lower=0, upper=120), UnboundedColumn(name="income")),
    ...     target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    ... )
    >>> found = dpci.release_schema(people, schema=partial, budget=dpci.PureDP(0.5))
    >>> 50 < found.bounds["age"][1] <= 120
    True
    """
    if schema is None and isinstance(table, Chunks):
        described = table.schema
        schema = described if isinstance(described, PartialSchema) else None
    unit, _, beside = given_unit(persons, None, schema)
    check_budget(budget)
    choices = NoModel(budget=budget, **read_neighbors(neighbors), unit=unit, seed=seed)
    payment = Payment.of("dpci.release_schema", ledger, choices, budget=budget)
    if not isinstance(schema, PartialSchema):
        raise broken("schema", "a dpci.schema.PartialSchema, which has columns without bounds", schema)
    check_columns_of_unit(schema.persons, beside)
    check_persons(unit)
    given = schema
    # The name of a column of ids stays with the schema.
    if isinstance(beside.persons, str):
        schema = dataclasses.replace(schema, persons=beside.persons)

    tables: list[Any] = []

    def prepare(source: Source) -> Source:
        cells = named_columns(table)
        check_index_beside(table, source.beside)
        tables.append(cells)
        # Whatever can be wrong with the cells is found before they are paid for.
        X = schema.gaps_of(cells)
        return Source(X, np.zeros(len(X)), columns_beside(cells, source.beside))

    def resolve(n_records: int, _: int) -> BoundsStage:
        return stage_alone(schema, payment.budget, choices.public_n(n_records), unit=unit, neighbors=choices.neighbors)

    def release(rows: Rows, stage: BoundsStage, paid: Paid) -> Outcome[ReleasedSchema]:
        threads, seed = choices.n_threads, choices.seed
        found = (
            stage.release(tables[0], rows.persons, n_threads=threads, seed=seed)
            if rows.parts is None
            else stage.release_parts(rows.parts, seed=seed)
        )
        facts = {"steps": found.facts.steps, "seals": (), "private": found.private}
        record = SchemaRecord(
            **{**choices.recorded(rows.n_records, facts, paid=paid), "budget": payment.budget},
            named_columns=True,
            rows=None,
            table=found.schema,
            ranges=found.facts.ranges,
            zeros=found.facts.zeros,
            logarithmic=found.facts.logarithmic,
            listed=found.facts.listed,
            share=found.facts.share,
            counts=found.facts.counts,
        )
        return ReleasedSchema(record), ()

    rules = PartRules.of(choices)
    kind = Kind(choices=choices, resolve=resolve, release=release, parts=rules, any_rows=True, what="schema")
    gaps = tuple(column.name for column in schema.gaps)
    parts = table_parts(table, None, given, beside, columns=gaps, target=gaps[-1])
    in_memory = Source(RawTable(table, schema.blank), (), beside, prepare)
    source = in_memory if parts is None else Source(GapParts(parts, schema, beside.names), None, beside)
    return run(payment, kind, source)
