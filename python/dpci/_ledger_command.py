"""The command ``ledger``: creates a ledger, shows it, and exports its history."""

from pathlib import Path
from typing import Annotated, Any

import typer

import dpci
from dpci import _options as options
from dpci._commands import app
from dpci._options import parse_budget
from dpci.errors import InvalidInput

ledger_app = typer.Typer(help="Totals that many fits draw on.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(ledger_app, name="ledger")

File = Annotated[Path, typer.Argument(help="File of the ledger.")]


@ledger_app.command()
def create(
    file: File,
    *,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    neighbors: Annotated[str, typer.Option(help="replace_one or add_remove.")] = "replace_one",
) -> None:
    """Create a ledger with this total; a file that exists is left alone."""
    if file.exists():
        msg = f"a new ledger needs a new file, got {str(file)!r}, which exists"
        raise InvalidInput(msg)
    relation: Any = neighbors
    with dpci.Ledger(parse_budget(epsilon, delta, rho), relation, file) as ledger:
        typer.echo(ledger.summary())


@ledger_app.command()
def show(file: File) -> None:
    """Print the total, what is spent, what remains, and every entry."""
    with dpci.Ledger.open(file) as ledger:
        typer.echo(ledger.summary())


@ledger_app.command()
def export(
    file: File,
    json: Annotated[Path | None, typer.Option(help="Write to this file instead of the screen.")] = None,
) -> None:
    """Export the ledger with its history as JSON."""
    with dpci.Ledger.open(file) as ledger:
        text = ledger.to_json()
    if json is None:
        typer.echo(text)
        return
    try:
        with json.open("x", encoding="utf-8") as target:
            target.write(text)
    except FileExistsError as error:
        msg = f"--json must name a new file, got {str(json)!r}, which exists"
        raise InvalidInput(msg) from error
    typer.echo(f"wrote {json}")
