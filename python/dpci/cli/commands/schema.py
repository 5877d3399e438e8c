"""The command ``schema``: releases the bounds that a schema lacks, from a table."""

from dataclasses import dataclass

from dpci.base.threads import threads
from dpci.cli import options
from dpci.cli.app import Command, app
from dpci.cli.commands.fit import read_in_passes
from dpci.cli.delivery import Delivery, deliver
from dpci.cli.options import find_any_schema, parse_budget
from dpci.cli.rows import TableRows, UnitOptions
from dpci.described.release import release_schema
from dpci.errors import InvalidInput
from dpci.schema.partial import PartialSchema
from dpci.sources.find import find_tables

_EXAMPLES = """\
dpci schema people.csv --schema gaps.toml --epsilon 4 --output people.json
dpci schema people.csv --schema gaps.toml --epsilon 1 --ledger people.ledger --json
"""


@dataclass(frozen=True, kw_only=True)
class SchemaDelivery(Delivery):
    """The options of a command that releases a schema."""

    output: options.ReleasedSchema = None


@app.command(cls=Command, epilog=_EXAMPLES)
@options.with_options(without=("weights", "weight_bound", "weight_total", "plot"))
def schema(
    files: options.Tables,
    *,
    schema: options.SchemaWithGaps,
    target: options.Target = None,
    formula: options.Formula = None,
    form: options.FormatOptions,
    chunk_rows: options.ChunkRows = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    neighbors: options.Neighbors = None,
    n_public: options.NPublic = None,
    unit: UnitOptions,
    delivery: SchemaDelivery,
) -> None:
    """Release the bounds that a schema lacks.

    Columns of the kind "unbounded" get bounds that are chosen from the table under differential privacy. Prints the
    bounds and the spent budget. The written file is a schema for --schema of all other commands.
    """
    # Whatever can be refused is refused before budget is spent.
    budget = parse_budget(epsilon, delta, rho)
    tables = find_tables(files)
    delivery.check(tables, schema)
    paying = delivery.payer()
    in_parts = read_in_passes(tables, paying, chunk_rows)
    description = find_any_schema(schema, target, formula)
    if not isinstance(description, PartialSchema):
        raise InvalidInput(
            f'--schema must have a column of the kind "unbounded", whose bounds are released, got none in {schema!r}'
        )
    unit.check(description.blank)
    rows = TableRows(files=tables, schema=description.blank, form=form.read(), **options.given(chunk_rows=chunk_rows))
    shown = delivery.shows_progress(is_private=paying is not None and paying.errors == "private")
    table, beside = unit.read_table(rows, description, in_parts=in_parts, progress=shown)
    with threads(delivery.threads):
        result = release_schema(
            table,
            schema=description,
            budget=budget,
            persons=beside["persons"],
            neighbors=options.relation(neighbors, n_public),
            ledger=paying,
        )
    deliver(result, delivery, options.view())
