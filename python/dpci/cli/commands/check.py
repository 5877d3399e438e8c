"""The command ``check``: what a schema would do to a table, for the holder of the data before any budget is spent."""

from dataclasses import asdict

import typer

from dpci.cli import options
from dpci.cli.app import Command, app, show_json
from dpci.cli.options import find_any_schema
from dpci.cli.rows import TableRows
from dpci.schema.partial import known_of
from dpci.sources.find import find_tables

_EXAMPLES = """\
dpci check people.csv --schema people.toml
dpci check people.csv --schema gaps.toml --json
"""


@app.command(cls=Command, epilog=_EXAMPLES)
@options.with_options()
def check(
    files: options.Tables,
    *,
    schema: options.SchemaText,
    target: options.Target = None,
    formula: options.Formula = None,
    persons: options.CheckedPersons = None,
    form: options.FormatOptions,
    json: options.Json = False,
) -> None:
    """Show what a schema would change or refuse in a table.

    Lists values outside their bounds, missing values, unknown categories, categories that no row has, and the
    number of persons. Spends no budget. The output is NOT private: it counts rows and shows values. Exit code
    1 if a fit would refuse the table.
    """
    description = find_any_schema(schema, target, formula)
    rows = TableRows(files=find_tables(files), schema=known_of(description), form=form.read())
    found = description.check(rows.columns(() if persons is None else (persons,)), persons=persons)
    if json:
        findings = [asdict(finding) for finding in found.findings]
        show_json({"private": False, "n_rows": found.n_rows, "refused": found.refused, "findings": findings})
    else:
        typer.echo(str(found))
    if found.refused:
        raise typer.Exit(1)
