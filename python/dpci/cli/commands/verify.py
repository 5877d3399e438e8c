"""The command ``verify``: holds a released file, its schema and the ledger that paid for it against each other."""

from pathlib import Path
from typing import Annotated

import typer

from dpci.approval.approvable import statement_of
from dpci.approval.findings import DAMAGED, MISSING, UNREAD, conclusion, exit_code
from dpci.approval.statement import verified
from dpci.base.codec import DIFFERENT
from dpci.base.tables import printable
from dpci.cli import options
from dpci.cli.app import Command, app, show_json
from dpci.cli.commands.model import Model
from dpci.cli.options import INPUT, option
from dpci.cli.saved import load
from dpci.errors import DpciError

_EXAMPLES = """\
dpci verify model.json
dpci verify model.json --schema people.toml
dpci verify model.json --ledger people.ledger --json
dpci verify tuned.json
"""


@app.command(cls=Command, epilog=_EXAMPLES)
def verify(
    model: Model,
    *,
    ledger: Annotated[Path | None, option(INPUT, "Ledger that paid for the model.")] = None,
    schema: options.ModelSchema = None,
    formula: options.Formula = None,
    json: options.Json = False,
) -> None:
    """Check a released file against its hash, schema and ledger.

    The file may hold a model, the models of strata, a tuning, a regression, a moment matrix or a per-instance report.
    The command prints what agrees, what differs and what cannot be checked; its last line is the result. Exit code 1:
    something differs. Exit code 2: the file was altered, or something cannot be read. Exit code 6: nothing differs, but
    the ledger or the schema was not given, or another version made the file. Reads no data.
    """
    try:
        statement = statement_of(load(model))
        found = verified(statement, ledger=ledger, schema=options.agreed_schema(schema, formula))
    except DpciError as error:
        if not json:
            missing = ledger if error.code == "ledger_missing" else None if model.exists() else model
            unread = UNREAD if missing is None else MISSING.format(printable(str(missing)))
            typer.echo(DAMAGED if error.code == DIFFERENT else unread)
        raise
    if json:
        claim = statement.claim
        show_json({"digest": claim.digest, "kind": claim.kind, "findings": [finding._asdict() for finding in found]})
    else:
        lines = [f"{finding.outcome:13}{printable(finding.what)}" for finding in found]
        typer.echo("\n".join([*lines, "", conclusion(found)]))
    if code := exit_code(found):
        raise typer.Exit(code)
