"""The command ``ledger``: creates a ledger, shows it, and exports its history."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dpci.cli import options
from dpci.cli.app import Command, ExampleGroup, app, note
from dpci.cli.options import BUDGET, OUTPUT, one_of, option, parse_budget
from dpci.cli.output import check_new, ledger_files, new_file
from dpci.errors import InvalidInput
from dpci.ledger.ledger import Ledger

_LEDGER_EXAMPLES = """\
dpci ledger create people.ledger --epsilon 1
dpci ledger show people.ledger
"""

ledger_app = typer.Typer(
    cls=ExampleGroup,
    help="Ledgers: one total budget for many fits.",
    epilog=_LEDGER_EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(ledger_app, name="ledger")

File = Annotated[Path, typer.Argument(help="File of the ledger.")]


_CREATE_EXAMPLES = """\
dpci ledger create people.ledger --epsilon 1
dpci ledger create adaptive.ledger --epsilon 1 --delta 1e-6 --neighbors add_remove
dpci ledger create service.ledger --rho 0.5 --errors private
"""

_SHOW_EXAMPLES = """\
dpci ledger show people.ledger
dpci ledger show people.ledger --json
"""

_EXPORT_EXAMPLES = """\
dpci ledger export people.ledger
dpci ledger export people.ledger --output history.json
"""


@ledger_app.command(cls=Command, epilog=_CREATE_EXAMPLES)
def create(
    file: File,
    *,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    neighbors: Annotated[
        str, one_of(BUDGET, "replace_one or add_remove.", "replace_one", "add_remove")
    ] = "replace_one",
    errors: Annotated[
        str,
        one_of(
            BUDGET,
            "detailed or private. With private, a failed release gives no reason, and its budget stays spent.",
            "detailed",
            "private",
        ),
    ] = "detailed",
    n_public: Annotated[
        int | None, option(BUDGET, "Value of --n-public for all fits; required for --errors private with add_remove.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Create a ledger with this total; an existing file is not changed."""
    if file.exists():
        raise InvalidInput(f"a new ledger must have a new file, got {str(file)!r}, which exists")
    if not file.parent.is_dir():
        raise InvalidInput(f"a new ledger must be in a folder that exists, got {str(file)!r}")
    relation: Any = neighbors
    kind: Any = errors
    total = parse_budget(epsilon, delta, rho)
    with Ledger(total, relation, file, errors=kind, n_public=n_public) as ledger:
        typer.echo(ledger.to_json() if json else ledger.summary())


@ledger_app.command(cls=Command, epilog=_SHOW_EXAMPLES)
def show(file: File, *, json: options.Json = False) -> None:
    """Print the total, the spent and the remaining budget, and every entry."""
    with Ledger.open(file) as ledger:
        typer.echo(ledger.to_json() if json else ledger.summary())


@ledger_app.command(cls=Command, epilog=_EXPORT_EXAMPLES)
def export(
    file: File,
    *,
    output: Annotated[Path | None, option(OUTPUT, "Write to this new file instead of stdout.")] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Export the ledger with its history as JSON."""
    check_new("--output", output, force=force, sources=ledger_files(file))
    with Ledger.open(file) as ledger:
        text = ledger.to_json()
    if output is None:
        typer.echo(text)
        return
    with new_file("--output", output, force=force) as path:
        path.write_text(text, encoding="utf-8")
    note(f"wrote {output}", quiet=quiet)
