"""The command ``verify``: holds a model, its schema and the ledger that paid for it against each other."""

from pathlib import Path
from typing import Annotated

import typer

from dpci.cli import options
from dpci.cli.app import Command, app, show_json
from dpci.cli.checks import findings
from dpci.cli.commands.model import Model, read_model
from dpci.cli.options import find_schema

_EXAMPLES = """\
dpci verify model.json
dpci verify model.json --schema people.toml
dpci verify model.json --ledger people.ledger --json
"""


@app.command(cls=Command, epilog=_EXAMPLES)
def verify(
    model: Model,
    *,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger that paid for the model.", rich_help_panel=options.INPUT)
    ] = None,
    schema: options.ModelSchema = None,
    formula: options.Formula = None,
    json: options.Json = False,
) -> None:
    """Check a model against its hash, schema and ledger.

    Says what agrees, what does not and what cannot be checked. Exit code 1 if anything does not agree. Reads no data.
    """
    fitted = read_model(model)
    found = findings(fitted, None if schema is None else find_schema(schema, None, formula), ledger)
    if json:
        show_json({"digest": fitted.digest, "findings": [finding._asdict() for finding in found]})
    else:
        typer.echo("\n".join(f"{finding.outcome:13}{finding.what}" for finding in found))
    if any(finding.outcome == "FAILED" for finding in found):
        raise typer.Exit(1)
