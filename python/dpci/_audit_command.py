"""The command ``audit``: attacks on every mechanism, and a table of what they show."""

from pathlib import Path
from typing import Annotated

import typer

from dpci import _options as options
from dpci import audit as tool
from dpci._cli_app import Command, app
from dpci.budgets import ZCDP, ApproxDP, Budget, PureDP
from dpci.errors import InvalidInput

_EXAMPLES = """\
dpci audit --mechanism output --runs 2000
dpci audit --mechanism output --mechanism histogram --runs 2000 --epsilon 0.5 --json
"""


@app.command(cls=Command, epilog=_EXAMPLES)
def audit(
    *,
    mechanism: Annotated[
        list[str] | None, typer.Option(help=f"May be repeated; by default all: {', '.join(tool.MECHANISMS)}.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Claim under pure and under approximate DP.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Claim under approximate DP; runs in the thousands need 0.01.")] = 0.01,
    rho: Annotated[float, typer.Option(help="Claim under zero-concentrated DP.")] = 0.5,
    runs: Annotated[int, typer.Option(help="On each of two neighbouring data sets.")] = 100_000,
    confidence: Annotated[float, typer.Option(help="Of each bound.")] = 0.999,
    seed: Annotated[int | None, typer.Option(help="Of the noise; by default a fresh one.")] = None,
    threads: Annotated[int | None, typer.Option(help="By default all cores.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the report as JSON to this new file.")] = None,
    json: options.Json = False,
) -> None:
    """Attack every mechanism on its worst cases. Reads no data.

    Exit code 1 if an attack refutes a claim.
    """
    budgets: tuple[Budget, ...] = (PureDP(epsilon), ZCDP(rho), ApproxDP(epsilon, delta))
    if output is not None:
        _check_new(output)
    found = tool.report(
        budgets=budgets,
        mechanisms=tuple(mechanism or tool.MECHANISMS),
        n_runs=runs,
        confidence=confidence,
        seed=seed,
        n_threads=threads,
    )
    typer.echo(found.to_json() if json else found.summary())
    if output is not None:
        with output.open("x", encoding="utf-8") as target:
            target.write(found.to_json())
    if found.refuted:
        raise typer.Exit(1)


def _check_new(output: Path) -> None:
    """Refuse, before the runs, a file that exists or cannot be written; nothing of the trial stays."""
    try:
        output.open("x").close()
    except FileExistsError as error:
        msg = f"--output must name a new file, got {str(output)!r}, which exists"
        raise InvalidInput(msg) from error
    except (OSError, ValueError) as error:
        msg = f"--output must name a file that can be written, got {str(output)!r} ({error})"
        raise InvalidInput(msg) from error
    output.unlink()
